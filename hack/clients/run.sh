#!/usr/bin/env bash
# Usage: hack/clients/run.sh [FLAGS OF test/clients]
#
# Runs real S3 clients against muxes of every mode over real stores on this machine, and checks docs/clients.md;
# rclone's own test suite too, for docs/rclone-suite.md.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

[[ $(uname) == Linux && $(id -u) == 0 ]] || die "root on Linux is needed: two of the clients mount file systems"
need_packages /usr/bin/aws=awscli /usr/lib/python3/dist-packages/boto3/__init__.py=python3-boto3 s3cmd=s3cmd rclone=rclone s3fs=s3fs \
  fusermount=fuse3 curl=curl node=nodejs npm=npm
[[ -e /dev/fuse ]] || mknod /dev/fuse c 10 229 || die "there is no /dev/fuse, and it cannot be made"

# aws-sdk-js with the versions that its lock file pins, installed once per machine.
install_sdk() {
  [[ -d $sdk ]] && return # somebody else installed it while this waited for the lock
  local part=$sdk.part
  rm -rf "$part"
  mkdir -p "$part"
  cp "$ROOT"/hack/tools/aws-sdk-js/package*.json "$part/"
  run_with_progress "installing aws-sdk-js" npm ci --prefix "$part" --no-audit --no-fund --ignore-scripts
  mv "$part" "$sdk"
}
sdk=$CACHE/bin/aws-sdk-js-$(sha256sum "$ROOT"/hack/tools/aws-sdk-js/package-lock.json | cut -c1-8)
[[ -d $sdk ]] || with_lock aws-sdk-js install_sdk
cp "$ROOT/test/clients/testdata/checks.mjs" "$sdk/checks.mjs"

# The test suite of rclone's s3 backend, with the versions that its module pins, built once per machine.
build_suite() {
  [[ -x $suite ]] && return
  CGO_ENABLED=0 GOWORK=off GOFLAGS='' run_with_progress "building rclone's suite for s3" \
    nice go -C "$module" test -c -mod=readonly -trimpath -o "$suite.part" "$package"
  mv "$suite.part" "$suite"
}
module=$ROOT/hack/tools/rclone-suite package=github.com/rclone/rclone/backend/s3
source_of=$(GOWORK=off GOFLAGS='' go -C "$module" list -mod=readonly -f '{{.Module.Version}} {{.Dir}}' "$package")
STORAGEMUX_RCLONE_SUITE_VERSION=${source_of%% *} STORAGEMUX_RCLONE_SUITE_FOLDER=${source_of#* }
suite=$CACHE/bin/rclone-suite-$STORAGEMUX_RCLONE_SUITE_VERSION-$(cat "$module"/{go.mod,go.sum,doc.go} | sha256sum | cut -c1-8)
[[ -x $suite ]] || with_lock rclone-suite build_suite
STORAGEMUX_RCLONE_SUITE=$suite
export STORAGEMUX_RCLONE_SUITE STORAGEMUX_RCLONE_SUITE_FOLDER STORAGEMUX_RCLONE_SUITE_VERSION

cd "$ROOT"
make --no-print-directory build
STORAGEMUX_BINARY=$ROOT/bin/storagemux STORAGEMUX_VERSITYGW=$(hack/tool.sh versitygw) STORAGEMUX_NODE_SDK=$sdk
export STORAGEMUX_BINARY STORAGEMUX_VERSITYGW STORAGEMUX_NODE_SDK
go run ./hack/gotest -timeout 30m -count 1 ./test/clients "$@"
