# Sluice. `make help` lists what can be done; every target works from a fresh clone with Go and make.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CACHE     := $(CURDIR)/.cache
BIN       := $(CACHE)/bin
FUNCTIONS := lock enqueue dispatcher limit
GO_TEST   := go test -timeout 15m

# The Go modules that tests and lint cover, the root first. Tools and the benchmark are modules too,
# but are covered by what uses them.
MODULES   := . client terraform/provider tools/packager

.PHONY: help
help: ## Show this list
	@[ -t 1 ] && on=$$'\033[36m' off=$$'\033[0m' || on= off=; \
	awk -v on="$$on" -v off="$$off" 'BEGIN {FS = ":.*## "} /^[a-z][a-zA-Z0-9_ -]*:.*## / {sub(/ .*/, "", $$1); printf "  %s%-19s%s %s\n", on, $$1, off, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: redis ## Play a short story on the local stack and check every line of it
	@go run ./localstack demo

.PHONY: up
up: ## Start the whole system on this machine; Ctrl-C stops it
	@go run ./localstack up

.PHONY: redis
redis:
	@tools/ensure-redis.sh

.PHONY: terraform-tool
terraform-tool:
	@tools/ensure-tofu.sh

.PHONY: test
test: redis terraform-tool ## Run every test: unit, conformance, end to end, on real Redis (alone and as a cluster)
	@for m in $(MODULES); do (cd $$m && set -x && $(GO_TEST) ./...); done

.PHONY: test-race
test-race: redis terraform-tool ## The same under the race detector (needs a C compiler)
	@for m in $(MODULES); do (cd $$m && set -x && $(GO_TEST) -race $$(go list ./... | grep -v /terraform/provider/acceptance)); done
	cd terraform/provider && $(GO_TEST) ./acceptance # starts processes, which the race detector does not observe

.PHONY: chaos
chaos: redis ## The long fault suite: 20 000 jobs, 50 kills, Redis away for 60 s, every job accounted for
	SLUICE_CHAOS_JOBS=20000 SLUICE_CHAOS_KILLS=50 SLUICE_CHAOS_AWAY_SECONDS=60 go test -count=1 -timeout 30m -v ./localstack/chaos/...

.PHONY: bench bench-quick bench-check
bench: redis ## Measure everything against its peers (several minutes), and write docs/benchmarks.md with its plots
	cd bench && go run . -docs ../docs
bench-quick: redis ## The same with fewer and shorter rounds, and no document
	cd bench && go run . -quick
bench-check: redis ## Fail when a ratio is far below its target: what CI runs
	cd bench && go run . -quick -check 0.4 -only P1,P3,P4,P5,P6,P7,P8

.PHONY: fuzz
fuzz: ## Fuzz every decoder and handler for FUZZTIME (default 20s) each
	tools/fuzz.sh $(or $(FUZZTIME),20s)

.PHONY: lint
lint: $(BIN)/golangci-lint ## Check style and the borders between packages
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); if [ -n "$$unformatted" ]; then echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; fi
	@for m in $(MODULES); do (cd $$m && set -x && $(BIN)/golangci-lint run --allow-parallel-runners ./...); done
	@go run ./tools/prose

# The linter is built once, from its own module, so that nobody needs it on the PATH.
$(BIN)/golangci-lint: tools/golangci/go.mod
	@echo "building golangci-lint (once, a few minutes)…"
	@cd tools/golangci && go build -ldflags '-s -w' -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint && touch $@

.PHONY: build
build: ## Build the command line, the Terraform provider and the functions into bin/
	go build -trimpath -o bin/sluice ./cmd/sluice
	cd terraform/provider && go build -trimpath -o $(CURDIR)/bin/terraform-provider-sluice .
	@for f in $(FUNCTIONS); do \
	  CGO_ENABLED=0 GOOS=linux GOARCH=$(or $(ARCH),arm64) go build -trimpath -tags lambda.norpc -ldflags "-s -w" -o bin/functions/$$f/bootstrap ./functions/$$f; \
	done
	@ls -l bin bin/functions/*/bootstrap

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin dist .cache

# --- Deployment: packages and the Terraform module ---------------------------------------------------------------------------------------------

.PHONY: package
package: ## Build the functions' zips for arm64 and amd64 into dist/, with checksums and bills of materials
	@cd tools/packager && go run . -root $(CURDIR) -out $(CURDIR)/dist

.PHONY: module-check
module-check: ## Check the Terraform module, its examples and the LocalStack configuration; no account is needed
	@tools/check-module.sh

.PHONY: localstack-up localstack-deploy localstack-down
localstack-up: ## Start LocalStack and a Valkey (needs Docker and a LocalStack token; `make up` needs neither)
	@tools/localstack.sh up
localstack-deploy: ## Apply the Terraform module to that LocalStack
	@tools/localstack.sh deploy
localstack-down: ## Stop it and forget what was in it
	@tools/localstack.sh down

.PHONY: module-lint
module-lint: $(BIN)/tflint $(BIN)/trivy-terraform ## Lint the Terraform module with tflint and trivy
	@tools/lint-module.sh

$(BIN)/tflint: tools/tflint/go.mod
	@echo "building tflint (once, about three minutes)…"
	@cd tools/tflint && go build -ldflags '-s -w' -o $@ github.com/terraform-linters/tflint && touch $@

$(BIN)/trivy-terraform: tools/trivy/go.mod tools/trivy/main.go
	@echo "building the checks of trivy (once, about three minutes)…"
	@cd tools/trivy && GOEXPERIMENT=jsonv2 go build -ldflags '-s -w' -o $@ . && touch $@

$(BIN)/tfplugindocs: tools/tfplugindocs/go.mod
	@echo "building tfplugindocs (once)…"
	@cd tools/tfplugindocs && go build -ldflags '-s -w' -o $@ github.com/hashicorp/terraform-plugin-docs/cmd/tfplugindocs && touch $@

.PHONY: provider-docs provider-docs-check
provider-docs: terraform-tool $(BIN)/tfplugindocs ## Write terraform/provider/docs from the provider's schema and terraform/examples
	@tools/provider-docs.sh
provider-docs-check: terraform-tool $(BIN)/tfplugindocs ## Fail when terraform/provider/docs is not what would be written
	@tools/provider-docs.sh --check

.PHONY: tofu
tofu: $(BIN)/tofu ## Build OpenTofu once, for machines that have neither it nor Terraform

$(BIN)/tofu: tools/tofu/go.mod tools/tofu/build.sh
	@echo "building OpenTofu (once, two or three minutes)…"
	@tools/tofu/build.sh $@
