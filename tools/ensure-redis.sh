#!/usr/bin/env bash
# Makes sure that a real redis-server (6.2 or later) is on the PATH, for the tests and the demo.
# Installs Debian's package when it may (root, or sudo without a password); else says the one line
# to type.
set -euo pipefail

command -v redis-server >/dev/null && exit 0
if [ -x /opt/homebrew/bin/redis-server ] || [ "$(uname -s)" = Darwin ]; then
  echo "redis-server is not on the PATH. Type: brew install redis" >&2
  exit 1
fi
if ! command -v apt-get >/dev/null; then
  echo "redis-server is not on the PATH. Install Redis 6.2 or later (or valkey with its redis-server name) with your package manager." >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" != 0 ]; then
  if ! sudo -n true 2>/dev/null; then
    echo "redis-server is not on the PATH. Type: sudo apt-get install -y redis-server" >&2
    exit 1
  fi
  as_root=(sudo -n)
fi
echo "installing redis-server with apt-get…"
log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
if ! { "${as_root[@]}" apt-get update -qq && "${as_root[@]}" apt-get install -y -qq --no-install-recommends redis-server; } >"$log" 2>&1; then
  cat "$log" >&2
  echo "apt-get could not install redis-server. Install Redis 6.2 or later by hand, then run this again." >&2
  exit 1
fi
rm -f "$log"
redis-server --version
