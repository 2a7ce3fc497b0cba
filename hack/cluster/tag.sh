#!/usr/bin/env bash
# Usage: hack/cluster/tag.sh IMAGE NAME
#
# Gives an image in the cluster that up.sh started a second name, for tests of upgrades.
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/../lib.sh"
source "$here/config.sh"
source "$here/node.sh"

(($# == 2)) || die "usage: hack/cluster/tag.sh IMAGE NAME"
! foreign_kubeconfig || die "not tried: images can only be named in the cluster that 'make cluster-up' starts"
require_linux_root
refuse_foreign_owner
node_alive || die "the cluster is not up: run 'make cluster-up'"
in_node ctr --namespace k8s.io images tag --force "$1" "$2" >/dev/null || die "cannot give the image $1 the name $2"
