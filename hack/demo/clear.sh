#!/usr/bin/env bash
# Usage: hack/demo/clear.sh
#
# Removes the namespace of the demo from the cluster of KUBECONFIG, if it is there. The muxes go first: Kubernetes
# removes the pods of a namespace before all else, and looks again only after half of their grace period.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

namespace=storagemux-demo
kubectl get namespace "$namespace" >/dev/null 2>&1 || exit 0
log "removing what an earlier demo left ..."
kubectl -n "$namespace" delete storagemuxes --all --timeout=1m >&2
kubectl -n "$namespace" wait --for=delete pod -l storagemux.dev/mux --timeout=2m >&2
kubectl -n "$namespace" delete storagebackends --all --timeout=1m >&2
kubectl delete namespace "$namespace" --timeout=2m >&2
