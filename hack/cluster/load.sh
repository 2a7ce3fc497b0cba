#!/usr/bin/env bash
# Usage: hack/cluster/load.sh TARBALL...
#
# Puts images into the cluster that up.sh started, under the names that the tarballs give them. Pods use them with
# imagePullPolicy IfNotPresent or Never.
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/../lib.sh"
source "$here/config.sh"
source "$here/node.sh"
source "$here/components.sh"

(($#)) || die "usage: hack/cluster/load.sh TARBALL..."
! foreign_kubeconfig ||
  die "not tried: images can only be put into the cluster that 'make cluster-up' starts; KUBECONFIG names another, so set IMAGE_REGISTRY to a registry that it can pull from"
require_linux_root
refuse_foreign_owner
node_alive || die "the cluster is not up: run 'make cluster-up'"
import "$@"
