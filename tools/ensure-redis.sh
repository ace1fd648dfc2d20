#!/usr/bin/env bash
# Makes sure that the tests and the demo find a server: Redis 6.2 or later, or Valkey 7.2 or later.
#
# If REDIS_SERVER is set, it selects the program, and this script only checks that it exists.
# Otherwise redis-server or valkey-server must be on the PATH. If neither is, the script installs
# Debian's redis-server. It can do this as root, or if sudo needs no password; otherwise it prints
# the command to run.
set -euo pipefail

if [ -n "${REDIS_SERVER:-}" ]; then
  command -v "$REDIS_SERVER" >/dev/null && exit 0
  echo "REDIS_SERVER names $REDIS_SERVER, which does not exist" >&2
  exit 1
fi
if command -v redis-server >/dev/null || command -v valkey-server >/dev/null; then exit 0; fi
if [ -x /opt/homebrew/bin/redis-server ] || [ "$(uname -s)" = Darwin ]; then
  echo "redis-server is not on the PATH. Run: brew install redis" >&2
  exit 1
fi
if ! command -v apt-get >/dev/null; then
  echo "redis-server is not on the PATH. Install Redis 6.2 or later, or Valkey 7.2 or later, with your package manager." >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" != 0 ]; then
  if ! sudo -n true 2>/dev/null; then
    echo "redis-server is not on the PATH. Run: sudo apt-get install -y redis-server" >&2
    exit 1
  fi
  as_root=(sudo -n)
fi
echo "installing redis-server with apt-get..."
log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
if ! { "${as_root[@]}" apt-get update -qq && "${as_root[@]}" apt-get install -y -qq --no-install-recommends redis-server; } >"$log" 2>&1; then
  cat "$log" >&2
  echo "apt-get could not install redis-server. Install Redis 6.2 or later manually, then run this script again." >&2
  exit 1
fi
rm -f "$log"
redis-server --version
