#!/usr/bin/env bash
# Usage: hack/demo/run.sh
#
# The demo: the end-to-end specs with the label "demo", told step by step, on a cluster of this machine's own or on the
# one of KUBECONFIG. What it made stays for the reader to look at; hack/demo/down.sh removes it.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
source "$ROOT/hack/e2e/prepare.sh"
began=$SECONDS
prepare
cd "$ROOT"
"$ROOT/hack/demo/clear.sh"
run_with_progress "compiling the demo" go test -c -o "$CACHE/demo.test" ./test/e2e
(cd test/e2e && STORAGEMUX_KEEP=true "$CACHE/demo.test" -ginkgo.label-filter=demo -ginkgo.no-color -ginkgo.succinct) ||
  die "the demo missed an expectation (see MISSED above); what it made is still there: kubectl -n storagemux-demo get all"
cat <<EOF

The demo met every expectation, in $((SECONDS - began)) s. Everything is still there to look at:

  export KUBECONFIG=$KUBECONFIG PATH=$(dirname "$(command -v kubectl)"):\$PATH
  kubectl -n storagemux-demo get storagemux,storagebackend
  kubectl -n storagemux-demo describe storagemux assets
  kubectl -n storagemux-demo get storagebackend -o yaml
  kubectl -n storagemux-demo get events.events.k8s.io
  kubectl -n storagemux-demo get secret assets-storagemux-connection -o yaml

make demo-down removes it.
EOF
