# shellcheck shell=bash
# What the scripts of hack/cluster agree on: names, addresses, folders, and the two questions that each of them asks
# first. Source it after hack/lib.sh, do not run it.

# shellcheck disable=SC2034 # used by the scripts that source this
{
  NODE=storagemux-node       # the Kubernetes Node, and the machine's end of the link to it is named:
  LINK=storagemux0
  HOST_IP=10.197.255.2       # this machine, as the cluster sees it
  NODE_IP=10.197.255.1       # the node, where the API server listens
  POD_CIDR=10.197.0.0/24
  SERVICE_CIDR=10.198.0.0/16
  API_SERVICE_IP=10.198.0.1
  DNS_IP=10.198.0.10
  CGROUP=storagemux-cluster

  STATE=$CACHE/cluster
  CLUSTER_KUBECONFIG=$STATE/kubeconfig
  LOGS=$STATE/log            # kept until the next start, to be read after a failure
  DATA=$STATE/data           # everything else; gone when the cluster is down
}

# foreign_kubeconfig: true when KUBECONFIG names a cluster other than the one that these scripts make.
foreign_kubeconfig() {
  [[ -n ${KUBECONFIG:-} ]] && [[ ! $KUBECONFIG -ef $CLUSTER_KUBECONFIG && $KUBECONFIG != "$CLUSTER_KUBECONFIG" ]]
}

# require_linux_root: ends the script with one line where a cluster from source cannot run.
require_linux_root() {
  [[ $(uname -s) == Linux && $(id -u) == 0 ]] ||
    die "a cluster from source needs Linux and root: set KUBECONFIG to a cluster that you have, or to one that" \
      "'kind create cluster' made; or use 'storagemux serve --manifests DIR' with manifests of your own, which needs no cluster"
}
