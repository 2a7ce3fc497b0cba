#!/usr/bin/env bash
# Usage: hack/tool.sh NAME [BINARY]
#
# Builds a tool from the Go module that pins it, once per machine, and prints where it is: the path of its binary, or,
# when the module has several and BINARY is not given, of the folder that holds them. The module is hack/tools/NAME for
# what others wrote, and hack/NAME or hack/cluster/NAME for this project's own helpers.
#
# A tool's module is its go.mod and go.sum, whose `tool` directives name the main packages to build; a main package of
# its own, where upstream has none that fits; and an optional file `flags`, one `go build` flag a line, in which
# {version} stands for the tool's version. The cache key is the tool's version and a hash over all these files, so an edit
# builds anew and a second clone shares. GOOS and GOARCH are honoured.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=${1:?usage: hack/tool.sh NAME [BINARY]}
binary=${2:-}
for module in "$ROOT/hack/tools/$name" "$ROOT/hack/$name" "$ROOT/hack/cluster/$name"; do
  [[ -f $module/go.mod ]] && break
done
[[ -f $module/go.mod ]] || die "there is no tool named $name"

# The version of the module that the first tool directive belongs to. For a main package of our own it is that of the
# first direct requirement, of which the binary is made; without any, it is v0.
tool_version() {
  awk '
    { sub(/\/\/ indirect/, "#indirect") }
    $1 == "module" { own = $2 }
    $2 == "(" { block = $1; next }
    $1 == ")" { block = ""; next }
    { path = block ? $1 : $2; version = block ? $2 : $3; kind = block ? block : $1 }
    kind == "tool" && !tool { tool = path }
    kind == "require" { versions[path] = version; if (!direct && !/#indirect/) direct = version }
    END {
      best = direct ? direct : "v0"
      for (m in versions) if (index(tool "/", m "/") == 1 && length(m) > length(owner)) { owner = m; best = versions[m] }
      if (tool) print best
    }' "$module/go.mod"
}

version=$(tool_version)
[[ -n $version ]] || die "$module/go.mod has no tool directive"

hash=$(cd "$module" && find . -type f \( -name "*.go" ! -name "*_test.go" -o -name go.mod -o -name go.sum -o -name flags \) | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c1-8)
platform=$(go env GOOS GOARCH | paste -sd-)
target=$CACHE/bin/$name-$version-$hash-$platform

build() {
  [[ -d $target ]] && return # somebody else built it while this waited for the lock
  local part=$target.part flags=() line
  if [[ -f $module/flags ]]; then
    while IFS= read -r line; do flags+=("${line//'{version}'/$version}"); done <"$module/flags"
  fi
  rm -rf "$part"
  mkdir -p "$part"
  # -v prints a line per compiled package, which is the progress that run_with_progress shows.
  CGO_ENABLED=0 GOWORK=off GOFLAGS='' run_with_progress "building $name $version" \
    nice go -C "$module" build -v -mod=readonly -trimpath -buildvcs=false -ldflags='-s -w' "${flags[@]}" -o "$part/" tool ||
    { rm -rf "$part"; return 1; }
  mv "$part" "$target"
}

[[ -d $target ]] || with_lock "tool-$name-$platform" build

if [[ -z $binary ]]; then
  built=("$target"/*)
  ((${#built[@]} > 1)) && { echo "$target"; exit; }
  binary=$(basename "${built[0]}")
fi
[[ -x $target/$binary ]] || die "hack/tool.sh $name builds no $binary"
echo "$target/$binary"
