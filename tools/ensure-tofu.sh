#!/usr/bin/env bash
# Makes sure that the provider's tests find tofu or terraform in version 1.12 or later, because the
# tests use resource identity. If neither is found, the script builds OpenTofu once, into
# .cache/bin.
set -euo pipefail
cd "$(dirname "$0")/.."

unset TF_CLI_CONFIG_FILE TF_CLI_ARGS
for tool in tofu .cache/bin/tofu terraform; do
  command -v "$tool" >/dev/null || continue
  version=$("$tool" version 2>/dev/null | sed -nE 's/^(OpenTofu|Terraform) v1\.([0-9]+).*/\2/p' | head -1)
  if [ "${version:-0}" -ge 12 ]; then exit 0; fi
done
echo "neither tofu nor terraform 1.12 or later is on the PATH; building OpenTofu"
exec make --no-print-directory tofu
