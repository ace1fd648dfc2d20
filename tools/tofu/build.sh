#!/usr/bin/env bash
# Builds OpenTofu, in the version that go.mod requires. The build omits parts that Sluice does not
# use and that take half of the build time: remote state (Azure, Google, Kubernetes, S3 and others),
# cloud keys for encrypted state, and modules from GCS and S3 buckets. Everything else is the
# released OpenTofu.
#
#   tools/tofu/build.sh FILE
set -euo pipefail
target=$1
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

# copy MODULE FOLDER copies the source of a module, in the version of go.mod, to a writable folder.
copy() {
  go mod download "$1"
  cp -R "$(go list -m -f '{{.Dir}}' "$1")/." "$2"
  chmod -R u+w "$2"
}
mkdir "$work/tofu" "$work/getter"
copy github.com/opentofu/opentofu "$work/tofu"
cd "$work/tofu"
copy github.com/hashicorp/go-getter "$work/getter"

sed -i.orig -E '/backend(Azure|Consul|Cos|GCS|Kubernetes|OSS|Pg|S3)\b/d' internal/backend/init/init.go
sed -i.orig -E -e '/keyprovider\/(aws_kms|azure_vault|gcp_kms|openbao)"/d' -e '/RegisterKeyProvider\((aws_kms|azure_vault|gcp_kms|openbao)\./,/^\t}/d' \
  internal/encryption/default_registry.go
sed -i.orig -E '/new\((getter\.)?(GCS|S3)Getter\)/d' internal/getmodules/getter.go "$work/getter/get.go"
rm "$work"/getter/get_{gcs,s3}.go
go mod edit -replace "github.com/hashicorp/go-getter=$work/getter"
go build -ldflags '-s -w -X github.com/opentofu/opentofu/version.dev=no' -o "$target" ./cmd/tofu
