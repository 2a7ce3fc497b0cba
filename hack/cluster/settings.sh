# shellcheck shell=bash
# The components' settings files, written anew at every start. Source it after components.sh.

# write_settings PAUSE_IMAGE
write_settings() {
  mkdir -p "$ETC/cni" "$DATA/volumes"
  containerd_settings "$1" >"$ETC/containerd.toml"
  network_settings >"$ETC/cni/10-storagemux.conflist"
  kubelet_settings >"$ETC/kubelet.yaml"
  proxy_settings >"$ETC/kube-proxy.yaml"
}

containerd_settings() {
  local pause_image=$1 snapshotter=overlayfs cni
  # An overlay cannot lie on another, as in a container of Docker's.
  [[ $(stat -f -c %T "$DATA") != overlayfs ]] || snapshotter=native
  cni=$(cni_plugins)
  cat <<END
version = 2
root = "$DATA/containerd"
# Everything not named here has its usual place in /run, which is the node's own.
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[plugins."io.containerd.internal.v1.opt"]
  path = "$DATA/containerd-opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$pause_image"
  # Root without CAP_SYS_RESOURCE, as in many sandboxes, may not lower a score, and then no pod would start.
  restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "$snapshotter"
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "$cni"
  conf_dir = "$ETC/cni"
END
}

# Where Debian's package puts the plug-ins, or where everybody else does.
cni_plugins() {
  local dir
  for dir in /usr/lib/cni /opt/cni/bin; do
    [[ ! -x $dir/ptp ]] || { echo "$dir"; return; }
  done
  die "the CNI plug-in ptp is in neither /usr/lib/cni nor /opt/cni/bin"
}

# A link per pod and routes, no bridge: an answer from pod to pod then always passes where kube-proxy's rules undo the
# translation of a Service address, whether or not the kernel filters what crosses bridges. No masquerading
# either: pods reach each other, Services and this machine, and nothing beyond it. NetworkPolicy objects are accepted by
# the API server, and nothing here enforces them.
network_settings() {
  cat <<END
{"cniVersion": "0.4.0", "name": "storagemux", "plugins": [{"type": "ptp", "ipam": {
  "type": "host-local", "ranges": [[{"subnet": "$POD_CIDR"}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "$DATA/cni"}}]}
END
}

kubelet_settings() {
  cat <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $NODE_IP
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $PKI/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $PKI/kubelet.crt
tlsPrivateKeyFile: $PKI/kubelet.key
clusterDNS: [$DNS_IP]
clusterDomain: cluster.local
resolvConf: ""                      # names of the cluster only, whatever this machine resolves
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs              # no systemd inside the node
cgroupRoot: /$CGROUP
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false       # kube-proxy's nftables rules are all there is
volumePluginDir: /var/lib/kubelet/volume-plugins
imageGCHighThresholdPercent: 100    # images come from files, once: one that is collected is gone
# Disks of developers are often nearly full; only a really full one should evict.
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%}
END
}

proxy_settings() {
  cat <<END
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: $ETC/kube-proxy.kubeconfig}
mode: nftables
clusterCIDR: $POD_CIDR
# Zero leaves the kernel's own limits, which often cannot be written.
conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
END
}
