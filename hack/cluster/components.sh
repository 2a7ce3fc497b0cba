# shellcheck shell=bash
# The cluster's processes: how each is started, stopped and looked at. They run in the node's namespaces (node.sh), and
# so do the process ids in their files: a signal can never reach a process that is not the cluster's. Source it after node.sh.

# In the order of their start.
COMPONENTS=(etcd containerd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy provisioner)

ETC=$DATA/etc
PKI=$DATA/pki

# command_of NAME: sets COMMAND to the component's command line. KUBERNETES, ETCD and PROVISIONER are the paths of the
# binaries that tool.sh built.
command_of() {
  local kubeconfig=$ETC/$1.kubeconfig
  case $1 in
    etcd)
      # The default addresses: loopback of the node's own namespace, which only the node's processes reach.
      COMMAND=("$ETCD" --name="$NODE" --data-dir="$DATA/etcd"
        --unsafe-no-fsync) # the data does not outlive the cluster
      ;;
    containerd)
      COMMAND=(containerd --config="$ETC/containerd.toml")
      ;;
    kube-apiserver)
      COMMAND=("$KUBERNETES/kube-apiserver"
        --etcd-servers=http://127.0.0.1:2379
        --bind-address="$NODE_IP" --advertise-address="$NODE_IP" --secure-port=6443
        --service-cluster-ip-range="$SERVICE_CIDR"
        "--authorization-mode=Node,RBAC" --enable-admission-plugins=NodeRestriction
        --client-ca-file="$PKI/ca.crt"
        --tls-cert-file="$PKI/kube-apiserver.crt" --tls-private-key-file="$PKI/kube-apiserver.key"
        --kubelet-certificate-authority="$PKI/ca.crt"
        --kubelet-client-certificate="$PKI/kube-apiserver-kubelet-client.crt"
        --kubelet-client-key="$PKI/kube-apiserver-kubelet-client.key"
        --kubelet-preferred-address-types=InternalIP # nothing resolves the node's name
        --service-account-issuer=https://kubernetes.default.svc
        --service-account-key-file="$PKI/service-account.pub"
        --service-account-signing-key-file="$PKI/service-account.key")
      ;;
    kube-controller-manager)
      COMMAND=("$KUBERNETES/kube-controller-manager" --kubeconfig="$kubeconfig" --leader-elect=false
        --bind-address=127.0.0.1
        --flex-volume-plugin-dir=/var/lib/kubelet/volume-plugins # which it makes, so not in its usual place
        --use-service-account-credentials
        --root-ca-file="$PKI/ca.crt" --service-account-private-key-file="$PKI/service-account.key"
        # After an outage of the API server that a test made, the only node would count as lost and all pods as
        # unready, until its next heartbeat is seen. With one node there is nothing to gain from that.
        --node-monitor-grace-period=1h)
      ;;
    kube-scheduler)
      COMMAND=("$KUBERNETES/kube-scheduler" --kubeconfig="$kubeconfig" --leader-elect=false --bind-address=127.0.0.1)
      ;;
    kubelet)
      COMMAND=("$KUBERNETES/kubelet" --kubeconfig="$kubeconfig" --config="$ETC/kubelet.yaml"
        --hostname-override="$NODE" --node-ip="$NODE_IP")
      ;;
    kube-proxy)
      COMMAND=("$KUBERNETES/kube-proxy" --config="$ETC/kube-proxy.yaml" --hostname-override="$NODE")
      ;;
    provisioner)
      COMMAND=("$PROVISIONER" --kubeconfig="$kubeconfig" --node="$NODE" --root="$DATA/volumes")
      ;;
    *) die "there is no component named $1; there are: ${COMPONENTS[*]}" ;;
  esac
}

pid_file() { echo "$DATA/run/$1.pid"; }

alive() { same_process "/proc/$(node_pid)/root/proc" "$(pid_file "$1")"; }

# start_component NAME: starts it unless it runs.
start_component() {
  alive "$1" && return
  command_of "$1"
  mkdir -p "$DATA/run" "$LOGS"
  # setsid forks, so that the component becomes a child of the node's first process, which reaps it. The inner shell
  # writes down its own identity and then becomes the component.
  # shellcheck disable=SC2016 # for the inner shell
  in_node setsid --fork bash -c "$(declare -f start_time)"'
    echo "$$ $(start_time /proc $$)" >"$1" && shift && exec "$@"' bash "$(pid_file "$1")" "${COMMAND[@]}" \
    >>"$LOGS/$1.log" 2>&1 </dev/null
  await "$1" 5 alive "$1"
}

# stop_component NAME: ends it, politely first. An API server waits for its watches, which do not end by themselves.
stop_component() {
  local signal
  for signal in TERM KILL; do
    alive "$1" || return 0
    # shellcheck disable=SC2016 # for the shell in the node
    in_node bash -c 'kill -s "$1" "$2"' bash "$signal" "$(cut -d' ' -f1 "$(pid_file "$1")")" || true
    wait_for "" 5 stopped "$1" || true
  done
  stopped "$1" || die "$1 does not end"
}

stopped() { ! alive "$1"; }

# await NAME SECONDS COMMAND...: waits until COMMAND holds; when that takes too long, shows the component's log.
await() {
  local name=$1
  wait_for "$@" && return
  tail -n 15 "$LOGS/$name.log" >&2 || true
  die "$name is not ready; its log is $LOGS/$name.log. 'make cluster-down' and then 'make cluster-up' start from nothing"
}

apiserver_ready() { kubectl get --raw /readyz >/dev/null 2>&1; }

containerd_ready() { in_node ctr version >/dev/null 2>&1; }

# Asked of the kubelet itself: what the API server has stored about the node may be from before it stopped.
kubelet_ready() { kubectl get --raw "/api/v1/nodes/$NODE/proxy/healthz" >/dev/null 2>&1; }

dns_ready() {
  [[ $(kubectl -n kube-system get deployment coredns -o 'jsonpath={.status.readyReplicas}' 2>/dev/null) == 1 ]]
}

# import TARBALL...: puts images where the kubelet looks for them.
import() {
  local tarball
  for tarball in "$@"; do
    # By stdin, since the node does not see all of this machine's folders.
    in_node ctr --namespace k8s.io images import - <"$tarball" >/dev/null ||
      die "cannot import the image of $tarball"
  done
}

kubectl() { "$KUBERNETES/kubectl" --kubeconfig="$CLUSTER_KUBECONFIG" --cache-dir="$DATA/kubectl" "$@"; }
