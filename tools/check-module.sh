#!/usr/bin/env bash
# Checks the Terraform module, its examples and the LocalStack configuration without an AWS account:
# format, validation, tests, and plans with the real schema of the AWS provider (tools/awsstub). It
# works on a copy of the folders, because the lock files that it creates contain the stand-in's
# checksum. With such a lock file, a later `tofu init` would reject the real provider.
#
#   tools/check-module.sh            all folders
#   tools/check-module.sh minimal    the folders whose name contains "minimal"
set -euo pipefail
cd "$(dirname "$0")/.."
only=${1:-}

tool=${TOFU:-}
[ -n "$tool" ] || { [ -x .cache/bin/tofu ] && tool=$PWD/.cache/bin/tofu; } || tool=$(command -v tofu || command -v terraform || true)
[ -n "$tool" ] || { echo "neither tofu nor terraform is on the PATH. Run: make tofu (a single build of a few minutes), or install OpenTofu 1.8 or later" >&2; exit 1; }
command -v go >/dev/null || { echo "go is not on the PATH; it builds the stand-in for the AWS provider" >&2; exit 1; }

unset TF_DATA_DIR TF_CLI_ARGS
TF_CLI_CONFIG_FILE=$(tools/awsstub/mirror.sh .cache/awsstub)
export TF_CLI_CONFIG_FILE TF_IN_AUTOMATION=1 CHECKPOINT_DISABLE=1

# Add the provider sluicehq/sluice to the mirror, in a version that every example accepts.
platform=$(go env GOOS)_$(go env GOARCH)
(cd terraform/provider && go build -o ../../.cache/awsstub/sluice .)
for host in registry.opentofu.org registry.terraform.io; do
  target=.cache/awsstub/mirror/$host/sluicehq/sluice/9.9.9/$platform
  mkdir -p "$target"
  ln -f .cache/awsstub/sluice "$target/terraform-provider-sluice_v9.9.9"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/localstack"
cp -R terraform "$work/terraform"
cp -R localstack/compose "$work/localstack/compose"
find "$work" \( -name .terraform -o -name .terraform.lock.hcl -o -name 'terraform.tfstate*' \) -prune -exec rm -rf {} +
# Use small zips instead of the packages that `make package` builds: a plan reads only the zips'
# digests.
mkdir -p "$work/dist/amd64"
cp terraform/module/tests/packages/*.zip "$work/dist"
cp terraform/module/tests/packages/*.zip "$work/dist/amd64"

"$tool" fmt -check -diff -recursive "$work/terraform" || { echo "not formatted: $tool fmt -recursive terraform" >&2; exit 1; }
"$tool" fmt -check -diff "$work/localstack/compose" || { echo "not formatted: $tool fmt localstack/compose" >&2; exit 1; }

# Validate the compose file.
(cd tools/compose && go run . ../../localstack/compose/compose.yaml)

# check FOLDER [ARGUMENT...] runs init, validate and test, and prints their output if one fails.
check() {
  local folder=$1 log
  log=$(mktemp "$work/log.XXXXXX")
  shift
  if (cd "$work/$folder" && "$tool" init -backend=false -input=false -no-color && "$tool" validate -no-color && "$tool" test -no-color "$@") >"$log" 2>&1; then
    echo "ok    $folder $*: $(grep -oE '[0-9]+ passed' "$log" | tail -1)"
  else
    echo "FAIL  $folder $*"
    grep -vE '\.\.\. (pass|in progress|tearing down)$' "$log"
    return 1
  fi
}

# Check the stand-in first: like the real provider, it must reject a misspelt and a read-only
# argument.
mkdir "$work/canary"
printf 'resource "aws_sqs_queue" "q" {\n  nmae = "a misspelt argument"\n}\n\nresource "aws_sqs_queue" "r" {\n  arn = "what only AWS decides"\n}\n' >"$work/canary/main.tf"
(cd "$work/canary" && "$tool" init -backend=false -input=false -no-color >/dev/null)
found=$(cd "$work/canary" && "$tool" validate -no-color 2>&1 || true)
[[ $found == *nmae* ]] || { echo "the stand-in for the AWS provider accepted a misspelt argument:" "$found" >&2; exit 1; }
sed -i.orig '/nmae/d' "$work/canary/main.tf"
found=$(cd "$work/canary" && "$tool" validate -no-color 2>&1 || true)
[[ $found == *unconfigurable* ]] || { echo "the stand-in for the AWS provider accepted a read-only argument:" "$found" >&2; exit 1; }

jobs_failed=0
if [[ terraform/module == *"$only"* ]]; then
  # The module's test files run concurrently: up to three processes, one for each file.
  (cd "$work/terraform/module" && "$tool" init -backend=false -input=false -no-color >/dev/null)
  suites=("$work"/terraform/module/tests/*.tftest.hcl)
  running=()
  for suite in "${suites[@]}"; do
    check terraform/module "-filter=tests/$(basename "$suite")" &
    running+=($!)
    if [ "${#running[@]}" -ge 3 ]; then wait "${running[0]}" || jobs_failed=1; running=("${running[@]:1}"); fi
  done
  for pid in "${running[@]}"; do wait "$pid" || jobs_failed=1; done
fi
for folder in terraform/examples/* localstack/compose; do
  [[ $folder == *"$only"* ]] || continue
  [ -d "$work/$folder/tests" ] || continue
  check "$folder" || jobs_failed=1
done
exit "$jobs_failed"
