# shellcheck shell=bash
# Brings up what test/e2e needs, for run.sh and for the demo: a cluster, the images in it, the operator, the clients.
# Source it after hack/lib.sh. It sets KUBECONFIG, STORAGEMUX_OWN_CLUSTER and STORAGEMUX_STORE_IMAGE.

source "$ROOT/hack/cluster/config.sh"

prepare() {
  foreign_kubeconfig || require_linux_root
  need_packages aws=awscli rclone=rclone curl=curl
  local tag image
  tag=$(git -C "$ROOT" describe --tags --always --dirty 2>/dev/null || echo dev)-$(date +%s)
  if foreign_kubeconfig; then
    [[ -n ${IMAGE_REGISTRY:-} ]] ||
      die "not tried: KUBECONFIG names a cluster, so images must be pushed where it can pull them; set IMAGE_REGISTRY to a registry (HOST/PATH), or unset KUBECONFIG for a cluster on this machine"
    command -v kubectl >/dev/null || PATH=$PATH:$(dirname "$("$ROOT/hack/tool.sh" kubernetes kubectl)")
    image=$(IMAGE=storagemux:$tag "$ROOT/hack/image/build.sh")
    STORAGEMUX_STORE_IMAGE=${IMAGE_REGISTRY%/}/versitygw:v1.8.0
    "$("$ROOT/hack/tool.sh" image)" --binary "$(GOOS=linux "$ROOT/hack/tool.sh" versitygw)" --push "$STORAGEMUX_STORE_IMAGE"
    STORAGEMUX_OWN_CLUSTER=false
  else
    "$ROOT/hack/cluster/up.sh"
    export KUBECONFIG=$CLUSTER_KUBECONFIG
    PATH=$STATE:$PATH # kubectl
    # What an earlier cluster at this address had is nothing to go by.
    export KUBECACHEDIR=$DATA/kubectl
    image=$(IMAGE=localhost/storagemux:$tag "$ROOT/hack/image/build.sh")
    local tarball
    read -r tarball STORAGEMUX_STORE_IMAGE < <("$ROOT/hack/cluster/image.sh" versitygw)
    "$ROOT/hack/cluster/load.sh" "$ROOT/dist/storagemux.tar" "$tarball"
    STORAGEMUX_OWN_CLUSTER=true
  fi
  export PATH STORAGEMUX_OWN_CLUSTER STORAGEMUX_STORE_IMAGE
  install_operator "$image"
}

# install_operator IMAGE: applies config/default with that image, as dist/install.yaml does, and waits for it.
install_operator() {
  log "installing the operator, image $1 ..."
  "$("$ROOT/hack/tool.sh" kustomize)" build "$ROOT/config/default" | sed "s|localhost/storagemux:dev|$1|" |
    kubectl apply --server-side --force-conflicts -f - >&2
  kubectl -n storagemux-system rollout status deployment/storagemux-operator --timeout=3m >&2
  [[ -z ${KUBECACHEDIR:-} ]] || rm -rf "$KUBECACHEDIR/discovery" # kinds may have changed
}
