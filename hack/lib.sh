# Shared helpers of the scripts under hack/; source it, do not run it. It sets ROOT (this clone) and CACHE (everything
# that is built or downloaded once per machine, outside the work tree), and writes only to stderr, so that a
# script's stdout stays free for its answer.

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
CACHE=${STORAGEMUX_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/storagemux}

log() { printf '%s\n' "$*" >&2; }

die() {
  log "$(basename "$0"): $*"
  exit 1
}

# run_with_progress LABEL COMMAND...: runs a long command with its output kept in a log. It says so at the start,
# every 15 seconds and at the end; when the command fails, the log's last lines are shown.
run_with_progress() {
  local label=$1 out start=$SECONDS next=15 pid status=0
  shift
  mkdir -p "$CACHE/log"
  out=$CACHE/log/${label//[^A-Za-z0-9._-]/_}.log
  log "$label ..."
  "$@" >"$out" 2>&1 </dev/null &
  pid=$!
  trap 'kill "$pid" 2>/dev/null; exit 130' INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    if ((SECONDS - start >= next)); then
      log "$label: $((SECONDS - start)) s $(tail -n 1 "$out" | cut -c -100)"
      next=$((next + 15))
    fi
    sleep 0.2
  done
  wait "$pid" || status=$?
  trap - INT TERM
  if ((status != 0)); then
    tail -n 20 "$out" >&2
    log "$label: failed after $((SECONDS - start)) s; the whole output is in $out"
    return "$status"
  fi
  log "$label: done in $((SECONDS - start)) s"
}

# with_lock NAME COMMAND...: one caller at a time on this machine. Where flock is missing (macOS) the command runs
# unlocked; builders move their result into place in one step, so that costs time but never a broken file.
with_lock() {
  local lock=$1
  shift
  mkdir -p "$CACHE/lock"
  if ! command -v flock >/dev/null; then
    "$@"
    return
  fi
  (
    exec 9>"$CACHE/lock/$lock"
    if ! flock -n 9; then
      log "waiting for another process that holds the lock '$lock' ..."
      flock 9
    fi
    "$@" 9>&- # a process that outlives this must not keep the lock
  )
}

# need_packages FILE=PACKAGE...: installs those Debian packages whose file (a command name or an absolute path) is
# missing. apt is not run when nothing is, and is told never to remove a package to get there nor to start what the
# packages bring as services.
need_packages() {
  local pair file missing=()
  for pair in "$@"; do
    file=${pair%%=*}
    if [[ $file == /* ]]; then [[ -e $file ]] && continue; else command -v "$file" >/dev/null && continue; fi
    missing+=("${pair#*=}")
  done
  ((${#missing[@]})) || return 0
  [[ -e /etc/debian_version ]] && command -v apt-get >/dev/null && [[ $(id -u) == 0 ]] ||
    die "missing: ${missing[*]}; install these (they are Debian's package names), or run this on Debian as root to have them installed"
  with_lock apt install_packages "${missing[@]}"
}

install_packages() {
  export DEBIAN_FRONTEND=noninteractive
  local apt=(apt-get -y -q -o DPkg::Lock::Timeout=300)
  if [[ ! -e /usr/sbin/policy-rc.d ]]; then
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod +x /usr/sbin/policy-rc.d
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  fi
  run_with_progress "apt-get update" "${apt[@]}" update
  run_with_progress "installing $*" "${apt[@]}" install --no-install-recommends --no-remove "$@"
}
