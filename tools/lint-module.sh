#!/usr/bin/env bash
# Lints the Terraform module, its examples and the LocalStack configuration: tflint checks the
# language, and trivy checks security. Exceptions and their reasons are in terraform/.tflint.hcl and
# in "trivy:ignore" comments.
set -euo pipefail
cd "$(dirname "$0")/.."

tflint=$PWD/.cache/bin/tflint trivy=$PWD/.cache/bin/trivy-terraform
for tool in "$tflint" "$trivy"; do
  [ -x "$tool" ] || { echo "$tool is not built. Run: make module-lint (a single build of a few minutes)" >&2; exit 1; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
config=$PWD/terraform/.tflint.hcl
for folder in terraform/module terraform/module/modules/* terraform/examples/* localstack/compose; do
  # Examples without tests are snippets of the provider's documentation. The provider's acceptance
  # tests validate these snippets.
  if [[ $folder == terraform/examples/* ]] && [ ! -d "$folder/tests" ]; then continue; fi
  copy=$work/$folder
  mkdir -p "$copy/dist/amd64"
  cp -R "$folder/." "$copy"
  cp terraform/module/tests/packages/*.zip "$copy/dist"
  "$tflint" --chdir="$copy" --config="$config" --call-module-type=none || failed=1
done
echo "tflint: done"

rm -rf "$work"/*
cp -R terraform "$work/terraform"
find "$work" \( -name .terraform -o -name tests \) -prune -exec rm -rf {} +
# trivy checks the resources that the examples create. Add an example with an existing VPC in which
# the module creates no endpoints.
cp -R "$work/terraform/examples/existing-vpc" "$work/terraform/examples/without-endpoints"
sed -i.orig 's/create_endpoints = true/create_endpoints = false/' "$work/terraform/examples/without-endpoints/main.tf"
"$trivy" "$work/terraform" || failed=1

# Check trivy itself: with the exceptions of one file disabled, it must report findings.
sed -i.orig 's/trivy:ignore/excused/' "$work/terraform/module/security_groups.tf"
if "$trivy" "$work/terraform" >/dev/null 2>&1; then echo "trivy reports nothing although the exceptions in security_groups.tf are disabled" >&2; failed=1; fi
exit "$failed"
