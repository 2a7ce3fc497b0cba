#!/usr/bin/env bash
# Usage: hack/cluster/image.sh NAME
#
# Makes the image localhost/NAME:VERSION of a tool that tool.sh builds, once per machine, and prints two words: the path
# of its tarball, and that reference.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

name=${1:?usage: hack/cluster/image.sh NAME}
binary=$(GOOS=linux "$ROOT/hack/tool.sh" "$name")
key=$(basename "$(dirname "$binary")") # NAME-VERSION-HASH-OS-ARCHITECTURE
version=${key#"$name"-}
reference=localhost/$name:${version%-*-*-*}
tarball=$CACHE/images/$key.tar
if [[ ! -e $tarball ]]; then
  mkdir -p "$CACHE/images"
  maker=$(GOOS='' GOARCH='' "$ROOT/hack/tool.sh" image)
  "$maker" --binary "$binary" --name "$reference" --platform "linux/${key##*-}" --output "$tarball"
fi
echo "$tarball" "$reference"
