#!/usr/bin/env bash
# Usage: hack/bench/run.sh [FLAGS OF bench]
#
# Builds or installs the peers, runs the same work through each, and writes docs/benchmarks.md. With -short it ends in ten
# minutes; -only NAME measures one part and prints it.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
[[ $(uname) == Linux ]] || die "Linux is needed: processor time and memory are read from /proc"
need_packages nginx=nginx-light haproxy=haproxy
cd "$ROOT"
make --no-print-directory build
go build -o "$CACHE/bench" ./bench
exec "$CACHE/bench" -storagemux "$ROOT/bin/storagemux" -versitygw "$(hack/tool.sh versitygw)" -rclone "$(hack/tool.sh rclone)" "$@"
