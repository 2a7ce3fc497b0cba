#!/usr/bin/env bash
# Usage: hack/stores/run.sh [-update]
#
# Runs the acceptance suite of every backend type against its real server, on loopback, with bodies to 100 MiB, and
# compares the table of results with the one in docs/stores.md, or writes it there. Servers that are missing are installed
# or built first. GOTESTFLAGS are passed on.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
cd "$ROOT"

update=()
case ${1:-} in
  '') ;;
  -update) update=(-update) ;;
  *) die "usage: hack/stores/run.sh [-update]" ;;
esac

source hack/stores/servers.sh
STORAGEMUX_STORES_RESULTS=$(mktemp -d)
export STORAGEMUX_STORES_RESULTS
trap 'rm -rf "$STORAGEMUX_STORES_RESULTS"' EXIT

stores=(swift azure http s3 bunny file memory) # the slowest first
# What needs no real server is among `make test`.
tests='(Memory|File|Versitygw|GoWebDAV|Nginx|NginxWebDAV|Lighttpd|Bunny|Swift|Azure)KeepsTheContract$|PlainFiles'
# shellcheck disable=SC2086 # flags are words
go run ./hack/gotest -count=1 -tags stores -timeout 20m -p 2 -run "$tests" ${GOTESTFLAGS:-} "${stores[@]/#/./internal/storage/}"
go run ./hack/stores "${update[@]}" "$STORAGEMUX_STORES_RESULTS"
log "docs/stores.md says what this run has shown"
