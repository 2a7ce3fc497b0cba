# The image for people who have Docker; `make image` builds the same one without a daemon.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY api api
COPY cmd cmd
COPY config/crd config/crd
COPY internal internal
ARG TARGETOS TARGETARCH VERSION=dev
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false \
    -ldflags="-s -w -X github.com/suaveplan/storagemux/internal/version.version=$VERSION" \
    -o /storagemux ./cmd/storagemux

FROM gcr.io/distroless/static:nonroot
COPY --from=build /storagemux /storagemux
USER 65532:65532
ENTRYPOINT ["/storagemux"]
