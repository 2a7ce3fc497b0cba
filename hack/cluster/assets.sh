#!/usr/bin/env bash
# Usage: KUBEBUILDER_ASSETS=$(hack/cluster/assets.sh) go test ...
#
# Prints a folder that holds kube-apiserver, etcd and kubectl, for envtest; builds them first where that was not done.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

kubernetes=$("$ROOT/hack/tool.sh" kubernetes kubectl)
etcd=$("$ROOT/hack/tool.sh" etcd)
folder=$CACHE/envtest/$(basename "$(dirname "$kubernetes")")-$(basename "$(dirname "$etcd")")
if [[ ! -d $folder ]]; then
  mkdir -p "$CACHE/envtest"
  part=$(mktemp -d "$folder.XXXXXX")
  ln -s "$(dirname "$kubernetes")"/{kube-apiserver,kubectl} "$etcd" "$part"
  chmod 755 "$part"
  mv -T "$part" "$folder" 2>/dev/null || rm -r "$part" # somebody else was faster
fi
echo "$folder"
