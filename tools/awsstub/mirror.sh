#!/usr/bin/env bash
# Builds the stand-in for hashicorp/aws and puts it into a provider mirror in DIR, for OpenTofu and
# Terraform. It prints the path of a CLI configuration that installs providers only from this
# mirror.
#
#   export TF_CLI_CONFIG_FILE=$(tools/awsstub/mirror.sh .cache/awsstub)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:?usage: mirror.sh DIR}"
dir=$(cd "$1" && pwd)
version=$(sed -nE '1s/^\{"version":"([0-9.]+)".*/\1/p' "$here/schema.json")
platform=$(go env GOOS)_$(go env GOARCH)

(cd "$here" && go build -ldflags '-s -w' -o "$dir/provider" .)
for host in registry.opentofu.org registry.terraform.io; do
  target=$dir/mirror/$host/hashicorp/aws/$version/$platform
  mkdir -p "$target"
  ln -f "$dir/provider" "$target/terraform-provider-aws_v$version"
done
cat >"$dir/tofurc" <<C
provider_installation {
  filesystem_mirror {
    path = "$dir/mirror"
  }
}
disable_checkpoint = true
C
echo "$dir/tofurc"
