#!/usr/bin/env bash
# Lints the Terraform module, its examples and the LocalStack configuration: tflint for the language, trivy for what a security reviewer looks for.
# Exceptions are argued where they are made: in terraform/.tflint.hcl, and beside each "trivy:ignore".
set -euo pipefail
cd "$(dirname "$0")/.."

# find TOOL: the one that the Makefile has built, else the one on the PATH.
find_tool() {
  if [ -x ".cache/bin/$1" ]; then echo "$PWD/.cache/bin/$1"; else command -v "$1" || { echo "$1 is not here. Type: make $1 (builds it once, some minutes)" >&2; return 1; }; fi
}
tflint=$(find_tool tflint)
trivy=$(find_tool trivy)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
config=$PWD/terraform/.tflint.hcl
for folder in terraform/module terraform/module/modules/* terraform/examples/* localstack/compose; do
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
# trivy sees what the examples make. One more makes what none of them does: a brought VPC with a way out of its own.
cp -R "$work/terraform/examples/existing-vpc" "$work/terraform/examples/own-way-out"
sed -i.orig 's/create_endpoints = true/create_endpoints = false/' "$work/terraform/examples/own-way-out/main.tf"
"$trivy" config --skip-check-update --skip-version-check --quiet --exit-code 1 --severity LOW,MEDIUM,HIGH,CRITICAL "$work/terraform" || failed=1
echo "trivy: looked through"
exit "$failed"
