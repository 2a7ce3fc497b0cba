#!/usr/bin/env bash
# Usage: hack/cluster/component.sh stop|start|status [NAME]
#
# Stops or starts one process of the cluster that up.sh started, for tests of outages; status lists all of them. What is
# stopped stays stopped until it is started here or by up.sh.
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/../lib.sh"
source "$here/config.sh"
source "$here/node.sh"
source "$here/components.sh"

status() {
  local name
  for name in "${COMPONENTS[@]}"; do
    if alive "$name"; then printf '%-24s running\n' "$name"; else printf '%-24s stopped\n' "$name"; fi
  done
}

start() {
  KUBERNETES=$(dirname "$(readlink "$STATE/kubectl")")
  ETCD=$("$ROOT/hack/tool.sh" etcd)
  PROVISIONER=$("$ROOT/hack/tool.sh" provisioner)
  start_component "$1"
  case $1 in
    kube-apiserver) await "$1" 60 apiserver_ready ;;
    containerd) await "$1" 60 containerd_ready ;;
    kubelet) await "$1" 60 kubelet_ready ;;
  esac
}

action=${1:-}
name=${2:-}
[[ $action == status || ($action =~ ^(stop|start)$ && " ${COMPONENTS[*]} " == *" $name "*) ]] ||
  die "usage: hack/cluster/component.sh stop|start|status [NAME], with a name of: ${COMPONENTS[*]}"
! foreign_kubeconfig || die "not tried: the processes of the cluster that KUBECONFIG names are not ours to stop"
require_linux_root
refuse_foreign_owner
node_alive || die "the cluster is not up: run 'make cluster-up'"
case $action in
  status) status ;;
  stop) with_lock cluster stop_component "$name" ;;
  start) with_lock cluster start "$name" ;;
esac
