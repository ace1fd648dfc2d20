#!/usr/bin/env bash
# Lints the Terraform module, its examples and the LocalStack configuration: tflint checks the
# language, and trivy checks security. Each exception has a reason, in terraform/.tflint.hcl or next
# to "trivy:ignore".
set -euo pipefail
cd "$(dirname "$0")/.."

tflint=$PWD/.cache/bin/tflint trivy=$PWD/.cache/bin/trivy-terraform
for tool in "$tflint" "$trivy"; do
  [ -x "$tool" ] || { echo "$tool is not built. Run: make module-lint (builds the tools once, in minutes)" >&2; exit 1; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
config=$PWD/terraform/.tflint.hcl
for folder in terraform/module terraform/module/modules/* terraform/examples/* localstack/compose; do
  # Examples without tests are snippets of the provider's documentation. The acceptance tests of the
  # provider validate them.
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
# trivy checks the resources that the examples create. A further example covers an existing VPC
# without endpoints of the module.
cp -R "$work/terraform/examples/existing-vpc" "$work/terraform/examples/without-endpoints"
sed -i.orig 's/create_endpoints = true/create_endpoints = false/' "$work/terraform/examples/without-endpoints/main.tf"
"$trivy" "$work/terraform" || failed=1

# Without the exceptions, trivy must report findings; otherwise it checks nothing.
sed -i.orig 's/trivy:ignore/excused/' "$work/terraform/module/security_groups.tf"
if "$trivy" "$work/terraform" >/dev/null 2>&1; then echo "trivy does not report the exception in security_groups.tf" >&2; failed=1; fi
exit "$failed"
