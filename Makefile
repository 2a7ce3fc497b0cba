# Each target is a few lines here or one script under hack/. Tools are pinned in modules of their own under hack/tools
# and are built on first use into a cache outside the work tree, which all clones on a machine share.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The version that is stamped into binaries, and the image that dist/install.yaml names and `make image` builds.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
IMAGE ?= localhost/storagemux:dev
export VERSION IMAGE

LDFLAGS := -s -w -X github.com/suaveplan/storagemux/internal/version.version=$(VERSION)
tool = $$(hack/tool.sh $(1))

##@ Every day

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z][a-z0-9.-]*:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the binaries for this machine into bin/
	CGO_ENABLED=0 go build -ldflags "$(LDFLAGS)" -o bin/ ./cmd/...

.PHONY: test
test: ## Run all tests but the end-to-end ones, with the race detector and a real API server
	assets=$$(hack/cluster/assets.sh); store=$(call tool,versitygw); \
	KUBEBUILDER_ASSETS=$$assets STORAGEMUX_VERSITYGW=$$store \
		go run ./hack/gotest -race -timeout 20m $(GOTESTFLAGS) $$(go list ./... | grep -v /test/)
	go run ./hack/gotest -run 'Allocations$$' ./internal/muxengine # what the race detector would distort
	go run ./hack/gotest -C hack/image $(GOTESTFLAGS) ./...

.PHONY: test-memory
test-memory: ## Measure what a proxy has in memory: 16 writes of 1 GiB at once to three stores, and one of 5 GiB
	go test -tags memory -count 1 -timeout 60m -v -run '^TestLargeWrites' ./internal/proxy
	STORAGEMUX_MEMORY_BYTES=5368709120 STORAGEMUX_MEMORY_CLIENTS=1 go test -tags memory -count 1 -timeout 60m -v -run '^TestLargeWrites' ./internal/proxy

.PHONY: fmt
fmt: ## Format the Go code
	$(call tool,golangci-lint) fmt

.PHONY: lint
lint: ## Check the Go code, the import table among it
	$(call tool,golangci-lint) run --concurrency 2

.PHONY: verify
verify: ## Check all that needs no test: generated files, formatting, lint, scripts, go.mod
	hack/verify.sh

.PHONY: test-stores
test-stores: ## Run the acceptance suite of every backend type against its real server (STORESFLAGS=-update writes docs/stores.md)
	hack/stores/run.sh $(STORESFLAGS)

.PHONY: bench-stores
bench-stores: ## Measure GET and PUT of every backend type beside a bare client and write the figures into docs/stores.md
	hack/stores/bench.sh

##@ Generated files

.PHONY: generate
generate: ## Generate Go code from the API types
	$(call tool,controller-gen) object applyconfiguration paths=./api/v1alpha1

.PHONY: manifests
manifests: ## Generate the CRDs, the operator's role, the API reference and dist/install.yaml
	$(call tool,controller-gen) crd paths=./api/v1alpha1 output:crd:dir=config/crd/bases
	$(call tool,controller-gen) rbac:roleName=storagemux-operator paths=./internal/controller/... output:rbac:dir=config/rbac
	$(call tool,crd-ref-docs) --log-level=ERROR --source-path=api/v1alpha1 --config=hack/crd-ref-docs.yaml \
		--renderer=markdown --output-path=docs/reference/api.md
	go test ./api/v1alpha1 -run TestEveryConditionAndReason -update-reference >/dev/null
	@$(MAKE) --no-print-directory install.yaml

.PHONY: install.yaml
install.yaml: ## Write dist/install.yaml, which installs the operator with IMAGE
	mkdir -p dist
	$(call tool,kustomize) build config/default | sed 's|localhost/storagemux:dev|$(IMAGE)|' >dist/install.yaml

.PHONY: conformance
conformance: ## Write docs/conformance.md from the output of the engine's tests
	go run ./hack/conformance

.PHONY: mutants
mutants: ## Show that the engine's tests can fail: break the engine in small ways and expect them to notice
	go run ./hack/conformance -mutants

.PHONY: bench-scale
bench-scale: build ## Measure the operator with a thousand muxes and write docs/scale.md (SCALEFLAGS for smaller ones)
	KUBEBUILDER_ASSETS=$$(hack/cluster/assets.sh) go run ./hack/scale $(SCALEFLAGS)

##@ A cluster

.PHONY: cluster-up
cluster-up: ## Start a Kubernetes cluster on this machine, or use the one of KUBECONFIG
	hack/cluster/up.sh

.PHONY: cluster-down
cluster-down: ## Stop that cluster and leave nothing behind
	hack/cluster/down.sh

.PHONY: image
image: ## Build the container image IMAGE without a Docker daemon
	hack/image/build.sh

.PHONY: demo
demo: ## Show a mux at work: stores, failover, rotation, outages
	hack/demo/run.sh

.PHONY: demo-down
demo-down: ## Remove what the demo left
	hack/demo/down.sh

.PHONY: test-clients
test-clients: ## Run real S3 clients against every mode, and check docs/clients.md
	hack/clients/run.sh $(CLIENTFLAGS)

.PHONY: bench
bench: ## Measure side by side with other programs and write docs/benchmarks.md (BENCHFLAGS=-short: ten minutes)
	hack/bench/run.sh $(BENCHFLAGS)

.PHONY: test-e2e
test-e2e: ## Run the end-to-end tests in that cluster
	hack/e2e/run.sh $(GOTESTFLAGS)
