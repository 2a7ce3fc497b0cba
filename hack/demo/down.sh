#!/usr/bin/env bash
# Usage: hack/demo/down.sh
#
# Removes what the demo made: the whole cluster if it is this machine's own, else the demo's namespace and the operator.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
source "$ROOT/hack/cluster/config.sh"
if ! foreign_kubeconfig; then
  exec "$ROOT/hack/cluster/down.sh"
fi
"$ROOT/hack/demo/clear.sh"
"$("$ROOT/hack/tool.sh" kustomize)" build "$ROOT/config/default" | kubectl delete --ignore-not-found -f -
