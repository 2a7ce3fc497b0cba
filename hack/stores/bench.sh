#!/usr/bin/env bash
# Usage: hack/stores/bench.sh [FLAGS OF GO TEST]
#
# Measures GET and PUT of 1 KiB, 64 KiB and 8 MiB of every backend type against its real server, on loopback, three times
# each, and the same with a bare client library, and writes the figures into docs/stores.md. -benchtime=1s takes longer and
# says more.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
cd "$ROOT"
source hack/stores/servers.sh

output=$(mktemp)
trap 'rm -f "$output"' EXIT
stores=(memory file s3 http bunny swift azure)
go test -tags stores -run '^$' -bench . -benchtime 200ms -count 3 -p 1 -timeout 30m "$@" "${stores[@]/#/./internal/storage/}" |
  tee "$output" >&2
go run ./hack/stores -bench "$output"
