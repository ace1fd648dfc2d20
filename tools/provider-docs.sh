#!/usr/bin/env bash
# Generates the provider's documentation in terraform/provider/docs from its schema and from
# terraform/examples, in the format of the registries.
#
#   tools/provider-docs.sh            generate the documentation
#   tools/provider-docs.sh --check    fail if the documentation is out of date
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PWD/.cache/bin:$PATH CHECKPOINT_DISABLE=1
unset TF_CLI_ARGS TF_DATA_DIR

tool=$(command -v tofu || command -v terraform || true)
[ -n "$tool" ] || { echo "neither tofu nor terraform is on the PATH. Run: make tofu (a single build of a few minutes), or install OpenTofu 1.8 or later" >&2; exit 1; }
[ -x .cache/bin/tfplugindocs ] || { echo "tfplugindocs is not built. Run: make provider-docs" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd terraform/provider && go build -o "$work/terraform-provider-sluice" .)
cat >"$work/cli.tfrc" <<RC
provider_installation {
  dev_overrides { "sluicehq/sluice" = "$work" }
  direct {}
}
RC
mkdir "$work/empty"
printf 'terraform {\n  required_providers {\n    sluice = { source = "sluicehq/sluice" }\n  }\n}\n' >"$work/empty/main.tf"
# The generator expects the provider in the namespace hashicorp of Terraform's registry.
(cd "$work/empty" && TF_CLI_CONFIG_FILE=$work/cli.tfrc "$tool" providers schema -json) |
  sed -E 's#"registry\.[a-z]+\.[a-z]+/sluicehq/sluice"#"registry.terraform.io/hashicorp/sluice"#' >"$work/schema.json"

mkdir -p "$work/provider"
cp -R terraform/provider/templates "$work/provider/templates"
cp -R terraform/examples "$work/provider/examples"
.cache/bin/tfplugindocs generate --provider-dir "$work/provider" --provider-name sluice --rendered-provider-name Sluice \
  --providers-schema "$work/schema.json" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }

if [ "${1:-}" = --check ]; then
  diff -ru terraform/provider/docs "$work/provider/docs" || { echo "terraform/provider/docs is out of date. Run: make provider-docs" >&2; exit 1; }
  echo "the documentation of the provider is up to date"
else
  rm -rf terraform/provider/docs
  cp -R "$work/provider/docs" terraform/provider/docs
  find terraform/provider/docs -type f
fi
