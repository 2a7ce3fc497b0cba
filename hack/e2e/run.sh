#!/usr/bin/env bash
# Usage: hack/e2e/run.sh [GO TEST FLAGS] [-args -ginkgo.focus=SPECS]
#
# Runs test/e2e in the cluster of hack/cluster, which is left up for the next run, or in the one of KUBECONFIG.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
source "$ROOT/hack/e2e/prepare.sh"
prepare
cd "$ROOT"
go run ./hack/gotest -live -timeout 45m -count 1 ./test/e2e/... "$@"
