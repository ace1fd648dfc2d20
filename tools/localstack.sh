#!/usr/bin/env bash
# Runs Sluice on LocalStack, which needs Docker and a token. See localstack/compose/README.md.
#
#   tools/localstack.sh up | deploy | down
set -euo pipefail
cd "$(dirname "$0")/.."
command=${1:-}

need_docker() {
  docker compose version >/dev/null 2>&1 || { echo "docker compose is not installed. Install Docker, or run the local stack without it: make up" >&2; exit 1; }
}

case "$command" in
up)
  need_docker
  [ -n "${LOCALSTACK_AUTH_TOKEN:-}" ] || { echo "LOCALSTACK_AUTH_TOKEN is not set. Get a token at https://app.localstack.cloud (the Hobby plan is free), or run: make up" >&2; exit 1; }
  docker compose -f localstack/compose/compose.yaml up --detach --wait
  ;;
deploy)
  tool=${TOFU:-$(command -v tofu || command -v terraform || true)}
  [ -n "$tool" ] || { echo "neither tofu nor terraform is on the PATH. Install OpenTofu 1.8 or later" >&2; exit 1; }
  curl --fail --silent http://localhost:4566/_localstack/health >/dev/null || { echo "LocalStack does not respond. Run: make localstack-up" >&2; exit 1; }
  case "$(uname -m)" in arm64 | aarch64) arch=arm64 lambda=arm64 ;; *) arch=amd64 lambda=x86_64 ;; esac
  (cd tools/packager && go run . -root ../.. -out ../../dist -arch "$arch")
  "$tool" -chdir=localstack/compose init -input=false
  "$tool" -chdir=localstack/compose apply -input=false -auto-approve -var "architecture=$lambda"
  ;;
down)
  need_docker
  # The compose file requires a token, which is not needed to stop the containers.
  LOCALSTACK_AUTH_TOKEN=${LOCALSTACK_AUTH_TOKEN:-none} docker compose -f localstack/compose/compose.yaml down --volumes
  rm -f localstack/compose/terraform.tfstate localstack/compose/terraform.tfstate.backup
  ;;
*)
  echo "usage: tools/localstack.sh up | deploy | down" >&2
  exit 2
  ;;
esac
