# shellcheck shell=bash
# The cluster's certificates and kubeconfigs: one authority, and for each component a certificate that says who it is,
# so that Node and RBAC authorization hold here as they do elsewhere. Source it after components.sh.

# write_pki: makes everything, unless that was done before.
write_pki() {
  [[ -e $PKI/complete ]] && return
  rm -rf "$PKI"
  mkdir -p "$ETC"
  (
    umask 077
    mkdir -p "$PKI"
    make_authority
    make_service_account_key
    # NAME, SUBJECT, and for servers the names and addresses they are reached by.
    issue kube-apiserver /CN=kube-apiserver \
      "DNS:localhost,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,IP:127.0.0.1,IP:$API_SERVICE_IP,IP:$NODE_IP"
    issue kubelet "/O=system:nodes/CN=system:node:$NODE" "IP:$NODE_IP"
    issue kube-apiserver-kubelet-client /CN=kube-apiserver-kubelet-client
    issue kube-controller-manager /CN=system:kube-controller-manager
    issue kube-scheduler /CN=system:kube-scheduler
    issue kube-proxy /CN=system:kube-proxy
    issue provisioner /CN=storagemux-provisioner
    issue admin /O=system:masters/CN=admin
    local name
    for name in kubelet kube-controller-manager kube-scheduler kube-proxy provisioner; do
      kubeconfig_of "$name" >"$ETC/$name.kubeconfig"
    done
    kubeconfig_of admin >"$CLUSTER_KUBECONFIG.part"
    mv "$CLUSTER_KUBECONFIG.part" "$CLUSTER_KUBECONFIG"
    touch "$PKI/complete"
  )
}

# quietly COMMAND...: openssl tells the story of every key on stderr.
quietly() {
  local story
  story=$("$@" 2>&1) || die "$1 $2 failed: $story"
}

make_key() { quietly openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"; }

make_authority() {
  make_key "$PKI/ca.key"
  quietly openssl req -x509 -new -key "$PKI/ca.key" -subj /CN=storagemux-cluster -days 365 -out "$PKI/ca.crt"
}

make_service_account_key() {
  make_key "$PKI/service-account.key"
  quietly openssl pkey -in "$PKI/service-account.key" -pubout -out "$PKI/service-account.pub"
}

# issue NAME SUBJECT [ALTERNATIVE_NAMES]: a client's certificate, and a server's too if it has alternative names.
issue() {
  local name=$1 subject=$2 names=${3:-} usage=clientAuth
  [[ -z $names ]] || usage=clientAuth,serverAuth
  make_key "$PKI/$name.key"
  quietly openssl req -new -key "$PKI/$name.key" -subj "$subject" -out "$PKI/$name.csr"
  {
    echo "keyUsage=critical,digitalSignature"
    echo "extendedKeyUsage=$usage"
    [[ -z $names ]] || echo "subjectAltName=$names"
  } >"$PKI/$name.ext"
  quietly openssl x509 -req -in "$PKI/$name.csr" -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" \
    -set_serial "0x$(openssl rand -hex 8)" -days 365 -extfile "$PKI/$name.ext" -out "$PKI/$name.crt"
  rm "$PKI/$name.csr" "$PKI/$name.ext"
}

# kubeconfig_of NAME: prints a kubeconfig with that certificate in it.
kubeconfig_of() {
  cat <<END
apiVersion: v1
kind: Config
current-context: storagemux
contexts: [{name: storagemux, context: {cluster: storagemux, user: $1}}]
clusters:
- name: storagemux
  cluster: {server: "https://$NODE_IP:6443", certificate-authority-data: $(base64 -w0 "$PKI/ca.crt")}
users:
- name: $1
  user: {client-certificate-data: $(base64 -w0 "$PKI/$1.crt"), client-key-data: $(base64 -w0 "$PKI/$1.key")}
END
}
