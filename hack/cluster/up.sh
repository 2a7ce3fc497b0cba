#!/usr/bin/env bash
# Usage: hack/cluster/up.sh
#
# Starts a Kubernetes cluster of one node on this machine, in seconds once its binaries are built; or says that it runs
# already; or mends one of which a part is missing. With KUBECONFIG set nothing is started: that cluster is used.
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/../lib.sh"
source "$here/config.sh"
source "$here/node.sh"
source "$here/components.sh"
source "$here/settings.sh"
source "$here/pki.sh"

use_foreign_cluster() {
  log "KUBECONFIG is set: using the cluster of $KUBECONFIG; nothing is started here"
  log "images get there through a registry that it can pull from: set IMAGE_REGISTRY"
}

build_everything() {
  need_packages containerd=containerd runc=runc nft=nftables ip=iproute2 openssl=openssl "$(cni_package)"
  KUBERNETES=$(dirname "$("$ROOT/hack/tool.sh" kubernetes kubelet)")
  ETCD=$("$ROOT/hack/tool.sh" etcd)
  PROVISIONER=$("$ROOT/hack/tool.sh" provisioner)
  PAUSE=$("$ROOT/hack/tool.sh" pause)
  read -r PAUSE_TARBALL PAUSE_IMAGE < <("$here/image.sh" pause)
  read -r COREDNS_TARBALL COREDNS_IMAGE < <("$here/image.sh" coredns)
  # The S3 store of the demo and of the end-to-end tests.
  read -r STORE_TARBALL _ < <("$here/image.sh" versitygw)
}

cni_package() {
  [[ ! -x /opt/cni/bin/ptp ]] || { echo /opt/cni/bin/ptp=containernetworking-plugins; return; }
  echo /usr/lib/cni/ptp=containernetworking-plugins
}

start_cluster() {
  refuse_foreign_owner
  local began=$SECONDS
  if everything_runs; then
    log "the cluster is already up; nothing to do" # somebody else started it while this built or waited
    return
  elif node_alive; then
    log "a part of the cluster is missing: starting it"
  else
    log "starting the cluster ..."
    clear_away
    rm -rf "$LOGS"
    start_node "$PAUSE"
  fi
  connect_node
  write_pki
  write_settings "$PAUSE_IMAGE"

  start_component etcd
  start_component containerd
  start_component kube-apiserver
  await containerd 60 containerd_ready
  import "$PAUSE_TARBALL" "$COREDNS_TARBALL" "$STORE_TARBALL"
  await kube-apiserver 120 apiserver_ready
  local component
  for component in "${COMPONENTS[@]}"; do start_component "$component"; done
  apply_manifests
  await kubelet 120 kubelet_ready
  await kubelet 120 dns_ready
  ln -sfn "$KUBERNETES/kubectl" "$STATE/kubectl"
  log "the cluster is up after $((SECONDS - began)) s"
}

apply_manifests() {
  local file
  for file in "$here"/manifests/*.yaml; do
    echo ---
    sed "s|@DNS_IP@|$DNS_IP|; s|@COREDNS_IMAGE@|$COREDNS_IMAGE|" "$file"
  done | kubectl apply --server-side -f - >/dev/null
}

everything_runs() {
  local component
  [[ $(owner) == "$ROOT" ]] && node_alive || return 1
  for component in "${COMPONENTS[@]}"; do alive "$component" || return 1; done
  KUBERNETES=$(dirname "$(readlink "$STATE/kubectl")") || return 1
  apiserver_ready && kubelet_ready && dns_ready
}

describe() {
  log "  export KUBECONFIG=$CLUSTER_KUBECONFIG"
  log "  kubectl    $STATE/kubectl"
  log "  logs       $LOGS"
  log "  addresses  node $NODE_IP, pods $POD_CIDR, Services $SERVICE_CIDR; all reachable from this machine"
}

if foreign_kubeconfig; then
  use_foreign_cluster
  exit
fi
require_linux_root
refuse_foreign_owner
if everything_runs; then
  log "the cluster is already up; nothing to do"
else
  build_everything
  with_lock cluster start_cluster
fi
describe
