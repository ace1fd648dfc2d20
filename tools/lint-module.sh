#!/usr/bin/env bash
# Lints the Terraform module, its examples and the LocalStack configuration: tflint for the
# language, trivy for what a security reviewer looks for. Exceptions are argued where they are made:
# in terraform/.tflint.hcl, and next to each "trivy:ignore".
set -euo pipefail
cd "$(dirname "$0")/.."

tflint=$PWD/.cache/bin/tflint trivy=$PWD/.cache/bin/trivy-terraform
for tool in "$tflint" "$trivy"; do
  [ -x "$tool" ] || { echo "$tool is not built. Type: make module-lint (builds what it needs once, some minutes)" >&2; exit 1; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
config=$PWD/terraform/.tflint.hcl
for folder in terraform/module terraform/module/modules/* terraform/examples/* localstack/compose; do
  # The other examples are snippets of the provider's documentation, which its acceptance tests
  # validate.
  if [[ $folder == terraform/examples/* ]] && [ ! -d "$folder/tests" ]; then continue; fi
  copy=$work/$folder
  mkdir -p "$copy/dist/amd64"
  cp -R "$folder/." "$copy"
  cp terraform/module/tests/packages/*.zip "$copy/dist"
  "$tflint" --chdir="$copy" --config="$config" --call-module-type=none || failed=1
done
echo "tflint: looked through"

rm -rf "$work"/*
cp -R terraform "$work/terraform"
find "$work" \( -name .terraform -o -name tests \) -prune -exec rm -rf {} +
# trivy sees what the examples make. One more makes what none of them does: a brought VPC with a way
# out of its own.
cp -R "$work/terraform/examples/existing-vpc" "$work/terraform/examples/own-way-out"
sed -i.orig 's/create_endpoints = true/create_endpoints = false/' "$work/terraform/examples/own-way-out/main.tf"
"$trivy" "$work/terraform" || failed=1

# A checker that finds nothing anywhere says nothing: what is excused must be found once its excuse
# is gone.
sed -i.orig 's/trivy:ignore/excused/' "$work/terraform/module/security_groups.tf"
if "$trivy" "$work/terraform" >/dev/null 2>&1; then echo "trivy no longer finds what security_groups.tf excuses" >&2; failed=1; fi
exit "$failed"
