#!/usr/bin/env bash
# Usage: hack/cluster/down.sh
#
# Ends the cluster that up.sh started from this clone, and leaves nothing of it but its logs. Without one it does
# nothing. A cluster that KUBECONFIG names is never touched.
here=$(dirname "${BASH_SOURCE[0]}")
source "$here/../lib.sh"
source "$here/config.sh"
source "$here/node.sh"

stop_cluster() {
  refuse_foreign_owner
  if [[ -z $(owner) && ! -e $DATA ]]; then
    log "the cluster is not up; nothing to do"
    return
  fi
  local began=$SECONDS
  log "stopping the cluster ..."
  clear_away
  log "the cluster is down after $((SECONDS - began)) s"
}

[[ $(uname -s) == Linux && $(id -u) == 0 ]] || { log "no cluster can have been started here; nothing to do"; exit; }
with_lock cluster stop_cluster
