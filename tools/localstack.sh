#!/usr/bin/env bash
# LocalStack proper, for those who have Docker and a token; localstack/compose/README.md says what
# it is and what it is not.
#
#   tools/localstack.sh up | deploy | down
set -euo pipefail
cd "$(dirname "$0")/.."
command=${1:-}

need_docker() {
  docker compose version >/dev/null 2>&1 || { echo "docker compose is not here: install Docker, or use the stack that needs none: make up" >&2; exit 1; }
}

case "$command" in
up)
  need_docker
  [ -n "${LOCALSTACK_AUTH_TOKEN:-}" ] || { echo "LOCALSTACK_AUTH_TOKEN is not set. Get one at https://app.localstack.cloud (the Hobby plan is free of charge), or use: make up" >&2; exit 1; }
  docker compose -f localstack/compose/compose.yaml up --detach --wait
  ;;
deploy)
  tool=${TOFU:-$(command -v tofu || command -v terraform || true)}
  [ -n "$tool" ] || { echo "neither tofu nor terraform is on the PATH: install OpenTofu 1.8 or later" >&2; exit 1; }
  curl --fail --silent http://localhost:4566/_localstack/health >/dev/null || { echo "LocalStack does not answer. Type: make localstack-up" >&2; exit 1; }
  case "$(uname -m)" in arm64 | aarch64) arch=arm64 lambda=arm64 ;; *) arch=amd64 lambda=x86_64 ;; esac
  (cd tools/packager && go run . -root ../.. -out ../../dist -arch "$arch")
  "$tool" -chdir=localstack/compose init -input=false
  "$tool" -chdir=localstack/compose apply -input=false -auto-approve -var "architecture=$lambda"
  ;;
down)
  need_docker
  # A token is demanded by the file, and of no use here.
  LOCALSTACK_AUTH_TOKEN=${LOCALSTACK_AUTH_TOKEN:-none} docker compose -f localstack/compose/compose.yaml down --volumes
  rm -f localstack/compose/terraform.tfstate localstack/compose/terraform.tfstate.backup
  ;;
*)
  echo "usage: tools/localstack.sh up | deploy | down" >&2
  exit 2
  ;;
esac
