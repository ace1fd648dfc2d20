# `make help` lists the targets. Each works in a fresh clone. Go and make suffice, unless the list
# names another requirement.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CACHE     := $(CURDIR)/.cache
BIN       := $(CACHE)/bin
FUNCTIONS := lock enqueue dispatcher limit
GO_TEST   := go test -timeout 15m

# MODULES are the product's Go modules. TOOLS are the tool modules that have tests. Each other tool
# module is built by the target that needs it.
MODULES   := . client terraform/provider
TOOLS     := tools/packager tools/goreleaser

.PHONY: help
help: ## Show this list
	@[ -t 1 ] && on=$$'\033[36m' off=$$'\033[0m' || on= off=; \
	awk -v on="$$on" -v off="$$off" 'BEGIN {FS = ":.*## "} /^[a-z][a-zA-Z0-9_ -]*:.*## / {sub(/ .*/, "", $$1); printf "  %s%-19s%s %s\n", on, $$1, off, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: redis ## Run a scenario on the local stack and check each result
	@go run ./localstack demo

.PHONY: up
up: ## Start the whole system on this machine until Ctrl-C
	@mkdir -p $(BIN) && go build -o $(BIN)/localstack ./localstack
	@set -m; $(BIN)/localstack up $(ARGS); exit $$? # a foreground job: Ctrl-C stops localstack, not make

.PHONY: redis
redis:
	@tools/ensure-redis.sh

.PHONY: terraform-tool
terraform-tool:
	@tools/ensure-tofu.sh

.PHONY: test
test: redis terraform-tool ## Run all tests, on a real Redis as a single server and as a cluster
	@for m in $(MODULES) $(TOOLS); do (cd $$m && set -x && $(GO_TEST) ./...); done

.PHONY: test-server
test-server: ## Run the tests of the root module and the client on the Redis or Valkey executable in REDIS_SERVER
	@$${REDIS_SERVER:-redis-server} --version
	$(GO_TEST) ./...
	cd client && $(GO_TEST) ./...

.PHONY: test-race
test-race: redis terraform-tool ## Run all tests, the product's tests under the race detector (needs a C compiler)
	@for m in $(MODULES); do (cd $$m && set -x && $(GO_TEST) -race $$(go list ./... | grep -v /acceptance)); done
	cd terraform/provider && $(GO_TEST) ./acceptance # these tests start processes, and the race detector does not observe them
	@for m in $(TOOLS); do (cd $$m && set -x && $(GO_TEST) ./...); done

.PHONY: chaos
chaos: redis ## Run the long fault suite: 20 000 jobs, 50 kills, Redis unavailable for 60 s; no job may be lost
	SLUICE_CHAOS_JOBS=20000 SLUICE_CHAOS_KILLS=50 SLUICE_CHAOS_OUTAGE_SECONDS=60 go test -count=1 -timeout 30m -v ./localstack/chaos/...

.PHONY: bench bench-quick bench-check
bench: redis ## Measure Sluice against peer libraries (several minutes) and write docs/benchmarks.md and its plots
	cd bench && go run . -docs ../docs
bench-quick: redis ## Measure with fewer and shorter rounds, without writing documents
	cd bench && go run . -quick
bench-check: redis ## Measure quickly and fail if a result reaches less than 40 % of its target
	cd bench && go run . -quick -check 0.4 -only P1,P3,P4,P5,P6,P7,P8

.PHONY: fuzz
fuzz: ## Run each fuzz test for FUZZTIME (default 20s)
	tools/fuzz.sh $(or $(FUZZTIME),20s)

.PHONY: lint
lint: $(BIN)/golangci-lint ## Check format, style, imports between packages, and prose
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); if [ -n "$$unformatted" ]; then echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; fi
	@for m in $(MODULES) $(TOOLS); do (cd $$m && set -x && GOLANGCI_LINT_CACHE=$(CACHE)/golangci $(BIN)/golangci-lint run --allow-parallel-runners ./...); done
	@go run ./tools/prose

# A module in tools/ pins the version of each tool. Each tool is built once, into .cache/bin.
$(BIN)/golangci-lint: tools/golangci/go.mod
	@echo "building golangci-lint (once, a few minutes)..."
	@cd tools/golangci && go build -ldflags '-s -w' -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint && touch $@

.PHONY: build
build: ## Build the command line, the Terraform provider and the functions into bin/ (ARCH: arm64 or amd64)
	go build -trimpath -o bin/sluice ./cmd/sluice
	cd terraform/provider && go build -trimpath -o $(CURDIR)/bin/terraform-provider-sluice .
	@for f in $(FUNCTIONS); do \
	  CGO_ENABLED=0 GOOS=linux GOARCH=$(or $(ARCH),arm64) go build -trimpath -tags lambda.norpc,nethttpomithttp2 -ldflags "-s -w" -o bin/functions/$$f/bootstrap ./functions/$$f; \
	done
	@ls -l bin bin/functions/*/bootstrap

.PHONY: clean
clean: ## Remove everything that was built, including the tools
	rm -rf bin dist .cache

# --- Deployment: packages and the Terraform module ------------------------------------------------

.PHONY: package
package: ## Build the functions' zips for arm64 and amd64 into dist/, with checksums and bills of materials
	@cd tools/packager && go run . -root $(CURDIR) -out $(CURDIR)/dist

.PHONY: module-check
module-check: ## Validate, test and plan the Terraform module and its examples, without an AWS account
	@tools/check-module.sh

.PHONY: localstack-up localstack-deploy localstack-down
localstack-up: ## Start LocalStack and Valkey (needs Docker and a LocalStack token; `make up` needs neither)
	@tools/localstack.sh up
localstack-deploy: ## Apply the Terraform module to the running LocalStack
	@tools/localstack.sh deploy
localstack-down: ## Stop LocalStack and delete its data
	@tools/localstack.sh down

.PHONY: module-lint
module-lint: $(BIN)/tflint $(BIN)/trivy-terraform ## Lint the Terraform module with tflint and trivy
	@tools/lint-module.sh

$(BIN)/tflint: tools/tflint/go.mod
	@echo "building tflint (once, about three minutes)..."
	@cd tools/tflint && go build -ldflags '-s -w' -o $@ github.com/terraform-linters/tflint && touch $@

$(BIN)/trivy-terraform: tools/trivy/go.mod tools/trivy/main.go
	@echo "building trivy's Terraform checks (once, about three minutes)..."
	@cd tools/trivy && GOEXPERIMENT=jsonv2 go build -ldflags '-s -w' -o $@ . && touch $@

$(BIN)/tfplugindocs: tools/tfplugindocs/go.mod
	@echo "building tfplugindocs (once)..."
	@cd tools/tfplugindocs && go build -ldflags '-s -w' -o $@ github.com/hashicorp/terraform-plugin-docs/cmd/tfplugindocs && touch $@

.PHONY: provider-docs provider-docs-check
provider-docs: terraform-tool $(BIN)/tfplugindocs ## Generate terraform/provider/docs from the provider's schema and terraform/examples
	@tools/provider-docs.sh
provider-docs-check: terraform-tool $(BIN)/tfplugindocs ## Fail if terraform/provider/docs is not up to date
	@tools/provider-docs.sh --check

.PHONY: tofu
tofu: $(BIN)/tofu ## Build OpenTofu, for machines that have neither OpenTofu nor Terraform

$(BIN)/tofu: tools/tofu/go.mod tools/tofu/build.sh
	@echo "building OpenTofu (once, two or three minutes)..."
	@tools/tofu/build.sh $@

# --- Releases -------------------------------------------------------------------------------------

.PHONY: release-assets
release-assets: package $(BIN)/cyclonedx-gomod ## Build the packages that goreleaser publishes and the SBOM generator that it calls

$(BIN)/cyclonedx-gomod: tools/packager/go.mod
	@cd tools/packager && go build -ldflags '-s -w' -o $@ github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod && touch $@

.PHONY: release-check
release-check: $(BIN)/actionlint ## Check the GitHub workflows and the release configurations
	$(BIN)/actionlint
	@cd tools/goreleaser && go run . -root $(CURDIR) .goreleaser.yaml terraform/provider/.goreleaser.yaml

$(BIN)/actionlint: tools/actionlint/go.mod
	@cd tools/actionlint && go build -ldflags '-s -w' -o $@ github.com/rhysd/actionlint/cmd/actionlint && touch $@
