# shellcheck shell=bash disable=SC2153 # ROOT and DATA come from the files that are sourced before
# The node: one idle process that holds a mount, a process and a network namespace, and an Ethernet link into it. All of
# the cluster runs inside, so that it needs no free port, changes no setting and makes no mount out here, and the kernel
# itself ends all of it, mounts, interfaces and nftables rules included, when that one process ends. Source
# it after config.sh.

NODE_PID_FILE=$DATA/node.pid # the process id and start time of the process that holds the namespaces

# Folders that the kubelet and the CNI plug-ins use whatever their settings. Inside, others are mounted over them; out
# here they are made for that, where they do not exist, and removed again.
COVERED=(/var/lib/kubelet /var/lib/cni)

# Settings of the whole kernel that a kubelet changes (a panic reboots the machine, for one). Inside, plain files are
# mounted over them, which it may write as it likes.
FEIGNED=(vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes)

# owner: prints the clone that the running cluster belongs to, or nothing when there is none. The link carries that and
# the folder of its state, so that they are known to clones with another cache too, and are forgotten with the cluster.
owner() { link_alias | cut -f1; }

link_alias() { cat "/sys/class/net/$LINK/ifalias" 2>/dev/null || true; }

# refuse_foreign_owner: ends the script when the cluster is not of this clone and this cache. A clone that was deleted
# owns nothing any more.
refuse_foreign_owner() {
  local clone state
  IFS=$'\t' read -r clone state < <(link_alias) || return 0
  [[ $clone == "$ROOT" || ! -d $clone ]] ||
    die "the cluster on this machine belongs to the clone $clone; 'make cluster-down' there ends it"
  [[ $state == "$STATE" ]] ||
    die "the cluster on this machine was started with another cache; 'STORAGEMUX_CACHE=${state%/cluster} make cluster-down' ends it"
}

# start_time PROC PID: prints when the process began, which with its id is its identity; nothing for a zombie.
start_time() {
  local stat
  { stat=$(<"$1/$2/stat"); } 2>/dev/null || return 0
  # The second field is the command in parentheses, which may hold anything; the state is the third, the time the 22nd.
  read -r -a stat <<<"${stat##*) }"
  [[ ${stat[0]} == Z ]] || echo "${stat[19]}"
}

# same_process PROC FILE: true when the process that FILE names still runs.
same_process() {
  local pid started
  { read -r pid started <"$2"; } 2>/dev/null && [[ -n $started && $(start_time "$1" "$pid") == "$started" ]]
}

node_alive() { same_process /proc "$NODE_PID_FILE"; }

node_pid() { cut -d' ' -f1 "$NODE_PID_FILE"; }

# in_node COMMAND...: runs a command in the node's namespaces.
in_node() { nsenter --target "$(node_pid)" --mount --pid --net -- "$@"; }

# start_node PAUSE: makes the namespaces, held by the pause binary, which also reaps what is orphaned in there.
start_node() {
  local pause=$1
  make_cgroups
  mkdir -p "$DATA" "$LOGS"
  cover
  setsid unshare --mount --propagation private --pid --net --fork --kill-child \
    bash -c "$(declare -f start_time inside_node); $(declare -p COVERED FEIGNED); inside_node \"\$@\"" \
    bash "$DATA" "$NODE_PID_FILE" "$pause" \
    >"$LOGS/node.log" 2>&1 </dev/null &
  wait_for "the node's namespaces" 10 node_ready
}

node_ready() { node_alive && [[ -e $DATA/node.ready ]]; }

# inside_node DATA PIDFILE PAUSE: the first process in the namespaces. It never returns.
inside_node() {
  set -euo pipefail
  local data=$1 pid_file=$2 pause=$3 pid folder setting
  # /proc is still the machine's, so this is the process id as seen from outside.
  read -r pid _ </proc/self/stat
  echo "$pid $(start_time /proc "$pid")" >"$pid_file"
  mount --make-rshared /
  mount -t proc proc /proc
  # Sockets and lock files of the usual names, and what containers log, without touching the machine's own.
  mount -t tmpfs -o mode=755 tmpfs /run
  mount -t tmpfs -o mode=755 tmpfs /var/log
  for folder in "${COVERED[@]}"; do mount --bind "$data/covered$folder" "$folder"; done
  for setting in "${FEIGNED[@]}"; do
    mkdir -p "$data/feigned/${setting%/*}"
    cat "/proc/sys/$setting" >"$data/feigned/$setting"
    mount --bind "$data/feigned/$setting" "/proc/sys/$setting"
  done
  ip link set lo up
  echo 1 >/proc/sys/net/ipv4/ip_forward
  touch "$data/node.ready"
  exec "$pause"
}

# connect_node: makes the link, or completes it. Its making is one step of the kernel's, of which two starts cannot both
# succeed.
connect_node() {
  if [[ ! -e /sys/class/net/$LINK ]]; then
    ip -4 route show | grep -Eq '(^| )10\.19[78]\.' &&
      die "this machine already has a route to 10.197.0.0/16 or 10.198.0.0/16, which the cluster needs for itself"
    ip link add "$LINK" type veth peer name eth0 netns "$(node_pid)" ||
      die "cannot make the network interface $LINK; 'make cluster-down' removes what was started"
  fi
  # By this, refuse_foreign_owner knows whose it is.
  ip link set "$LINK" alias "$ROOT"$'\t'"$STATE"
  in_node ip address replace "$NODE_IP/30" dev eth0
  in_node ip link set eth0 up
  ip address replace "$HOST_IP/30" dev "$LINK"
  ip link set "$LINK" up
  ip route replace "$POD_CIDR" via "$NODE_IP"
  ip route replace "$SERVICE_CIDR" via "$NODE_IP"
}

# stop_node: ends everything in the namespaces; the kernel does that within the end of the process that holds them.
stop_node() {
  if node_alive; then
    kill -TERM "$(node_pid)"
    if ! wait_for "" 5 node_gone; then
      kill -KILL "$(node_pid)"
      wait_for "the node's end" 10 node_gone
    fi
  fi
  # The namespace may outlive its processes for a moment; the link must not.
  ip link delete "$LINK" 2>/dev/null || true
  uncover
  # A control group is busy for a moment after its last process has ended.
  wait_for "the end of the control groups" 10 remove_cgroups
}

# clear_away: ends what runs and removes what it kept, but for the logs. Nothing of it needs to be there.
clear_away() {
  stop_node
  rm -rf --one-file-system "$DATA" "$CLUSTER_KUBECONFIG" "$STATE/kubectl"
}

cover() {
  local folder
  for folder in "${COVERED[@]}"; do
    mkdir -p "$DATA/covered$folder"
    [[ -d $folder ]] || { mkdir -p "$folder" && touch "$DATA/covered$folder.made"; }
  done
}

uncover() {
  local folder
  for folder in "${COVERED[@]}"; do
    [[ ! -e $DATA/covered$folder.made ]] || rmdir "$folder" 2>/dev/null || true
  done
}

node_gone() { ! node_alive; }

# cgroup_roots: prints the root folder of every cgroup hierarchy: of the one of version 2, or of each of version 1.
cgroup_roots() {
  local dir
  for dir in /sys/fs/cgroup /sys/fs/cgroup/*; do
    [[ ! -e $dir/cgroup.procs || -L $dir ]] || { echo "$dir"; [[ $dir != /sys/fs/cgroup ]] || return 0; }
  done
}

make_cgroups() {
  local root
  for root in $(cgroup_roots); do mkdir -p "$root/$CGROUP"; done
}

remove_cgroups() {
  local root
  for root in $(cgroup_roots); do
    [[ ! -d $root/$CGROUP ]] || find "$root/$CGROUP" -depth -type d -exec rmdir {} + 2>/dev/null || return 1
  done
}

# wait_for WHAT SECONDS COMMAND...: polls until COMMAND holds, less often once that takes longer; says so every ten
# seconds, and at the end of its patience, unless WHAT is empty.
wait_for() {
  local what=$1 limit=$2 start=$SECONDS next=10 pause=0.1
  shift 2
  until "$@"; do
    if ((SECONDS - start >= limit)); then
      [[ -z $what ]] || log "gave up on $what after $limit s"
      return 1
    fi
    if [[ -n $what ]] && ((SECONDS - start >= next)); then
      log "waiting for $what: $next s"
      next=$((next + 10))
    fi
    ((SECONDS - start < 2)) || pause=0.5
    sleep "$pause"
  done
}
