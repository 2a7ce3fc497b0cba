# shellcheck shell=bash disable=SC2153 # ROOT and DATA come from the files that are sourced before
# The node: one idle process that holds a mount, a process and a network namespace, and an Ethernet link into it. All of
# the cluster runs inside, so that it needs no free port, changes no setting and makes no mount out here, and the kernel
# itself ends all of it, mounts, interfaces and nftables rules included, when that one process ends. Source
# it after config.sh.

NODE_PID_FILE=$DATA/node.pid # the process id and start time of the process that holds the namespaces

# owner: prints the clone that the running cluster belongs to, or nothing when there is none. The link carries that, so
# that it is known to clones with another cache too, and is forgotten with the cluster.
owner() {
  cat "/sys/class/net/$LINK/ifalias" 2>/dev/null || true
}

# refuse_foreign_owner: ends the script when the cluster belongs to another clone that still exists.
refuse_foreign_owner() {
  local other
  other=$(owner)
  [[ -z $other || $other == "$ROOT" || ! -d $other ]] ||
    die "the cluster on this machine belongs to the clone $other; 'make cluster-down' there ends it"
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
  mkdir -p "$DATA/kubelet" "$LOGS"
  # The kubelet keeps a socket below this folder whatever its settings; inside, another is mounted over it.
  [[ -d /var/lib/kubelet ]] || { mkdir /var/lib/kubelet && touch "$DATA/made-var-lib-kubelet"; }
  setsid unshare --mount --propagation private --pid --net --fork --kill-child \
    bash -c "$(declare -f start_time inside_node); inside_node \"\$@\"" bash "$DATA" "$NODE_PID_FILE" "$pause" \
    >"$LOGS/node.log" 2>&1 </dev/null &
  wait_for "the node's namespaces" 10 node_ready
}

node_ready() { node_alive && [[ -e $DATA/node.ready ]]; }

# inside_node DATA PIDFILE PAUSE: the first process in the namespaces. It never returns.
inside_node() {
  set -euo pipefail
  local data=$1 pid_file=$2 pause=$3 pid
  # /proc is still the machine's, so this is the process id as seen from outside.
  read -r pid _ </proc/self/stat
  echo "$pid $(start_time /proc "$pid")" >"$pid_file"
  mount --make-rshared /
  mount -t proc proc /proc
  # Sockets and lock files of the usual names, and what containers log, without touching the machine's own.
  mount -t tmpfs -o mode=755 tmpfs /run
  mount -t tmpfs -o mode=755 tmpfs /var/log
  mount --bind "$data/kubelet" /var/lib/kubelet
  ip link set lo up
  echo 1 >/proc/sys/net/ipv4/ip_forward
  touch "$data/node.ready"
  exec "$pause"
}

# The link comes last of all that marks a cluster as up, and is made in one step: two starts cannot both succeed.
connect_node() {
  [[ ! -e /sys/class/net/$LINK ]] || return 0
  ip -4 route show | grep -Eq '(^| )10\.19[78]\.' &&
    die "this machine already has a route to 10.197.0.0/16 or 10.198.0.0/16, which the cluster needs for itself"
  ip link add "$LINK" type veth peer name eth0 netns "$(node_pid)" ||
    die "cannot make the network interface $LINK; 'make cluster-down' removes what was started"
  ip link set "$LINK" alias "$ROOT"
  in_node ip address add "$NODE_IP/30" dev eth0
  in_node ip link set eth0 up
  ip address add "$HOST_IP/30" dev "$LINK"
  ip link set "$LINK" up
  ip route add "$POD_CIDR" via "$NODE_IP"
  ip route add "$SERVICE_CIDR" via "$NODE_IP"
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
  [[ ! -e $DATA/made-var-lib-kubelet ]] || rmdir /var/lib/kubelet 2>/dev/null || true
  remove_cgroups
}

# clear_away: ends what runs and removes what it kept, but for the logs. Nothing of it needs to be there.
clear_away() {
  stop_node
  rm -rf --one-file-system "$DATA" "$CLUSTER_KUBECONFIG" "$STATE/kubectl"
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
    [[ ! -d $root/$CGROUP ]] || find "$root/$CGROUP" -depth -type d -exec rmdir {} +
  done
}

# wait_for WHAT SECONDS COMMAND...: polls until COMMAND holds; says so every ten seconds, and at the end of its
# patience, unless WHAT is empty.
wait_for() {
  local what=$1 limit=$2 start=$SECONDS next=10
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
    sleep 0.1
  done
}
