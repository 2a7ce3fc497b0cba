#!/usr/bin/env bash
# Usage: [IMAGE=REFERENCE] [VERSION=VERSION] [IMAGE_REGISTRY=HOST/PATH] hack/image/build.sh
#
# Builds the image of this clone without a container engine: dist/storagemux.tar, which holds it as IMAGE. With
# IMAGE_REGISTRY it is pushed there too. Prints the reference that a cluster should use. GOARCH is honoured.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
cd "$ROOT"

image=${IMAGE:-localhost/storagemux:dev}
version=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo dev)}
arch=$(go env GOARCH)
folder=dist/linux-$arch
roots=/etc/ssl/certs/ca-certificates.crt

mkdir -p "$folder"
CGO_ENABLED=0 GOOS=linux run_with_progress "building storagemux for linux/$arch" \
  go build -buildvcs=false -o "$folder/storagemux" \
  -ldflags "-s -w -X github.com/suaveplan/storagemux/internal/version.version=$version" ./cmd/storagemux

options=(--binary "$folder/storagemux" --platform "linux/$arch" --dir /tmp
  --label "org.opencontainers.image.version=$version" --label org.opencontainers.image.licenses=Apache-2.0)
if [[ -e $roots ]]; then
  options+=(--file "$roots:$roots")
else
  log "this machine has no $roots: the image will trust no public certificate authority"
fi
maker=$(GOOS='' GOARCH='' hack/tool.sh image)
"$maker" "${options[@]}" --name "$image" --output dist/storagemux.tar
log "wrote dist/storagemux.tar: $image, $(($(wc -c <dist/storagemux.tar) >> 20)) MiB"
if [[ -n ${IMAGE_REGISTRY:-} ]]; then
  image=${IMAGE_REGISTRY%/}/${image##*/}
  "$maker" "${options[@]}" --push "$image"
  log "pushed $image"
fi
echo "$image"
