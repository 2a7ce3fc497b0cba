#!/usr/bin/env bash
# Installs Azurite, as hack/tools/azurite pins it, from npm into the cache, once per machine, and prints the path of its
# blob server.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

module=$ROOT/hack/tools/azurite
hash=$(cat "$module"/package.json "$module"/package-lock.json | sha256sum | cut -c1-8)
target=$CACHE/npm/azurite-$hash

install() {
  [[ -d $target ]] && return # somebody else installed it while this waited for the lock
  local part=$target.part
  rm -rf "$part"
  mkdir -p "$part"
  cp "$module"/package.json "$module"/package-lock.json "$part"
  run_with_progress "installing Azurite" npm --prefix "$part" ci --ignore-scripts --no-audit --no-fund --omit=dev ||
    { rm -rf "$part"; return 1; }
  mv "$part" "$target"
}

need_packages node=nodejs npm=npm
[[ -d $target ]] || with_lock azurite install
echo "$target/node_modules/.bin/azurite-blob"
