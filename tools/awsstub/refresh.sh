#!/usr/bin/env bash
# Generates schema.json: the schema of every AWS resource and data source that terraform/ and
# localstack/compose use. The script needs npm. Run it when the module uses a new type, or for a
# newer version of the provider. For a type that schema.json lacks, tofu reports "the provider does
# not support resource type".
set -euo pipefail
cd "$(dirname "$0")"
package=@cdktn/provider-aws@25.7.0 # generated from hashicorp/aws 6.66.0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm pack --silent "$package" >/dev/null && tar -xzf ./*.tgz --wildcards 'package/lib/*/index.js')
grep -rhoE --include='*.tf' '^(resource|data) "aws_[a-z0-9_]+"' ../../terraform ../../localstack/compose | tr -d '"' | LC_ALL=C sort -u |
  go run ./refresh -lib "$work/package/lib" -out schema.json
