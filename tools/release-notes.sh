#!/usr/bin/env bash
# Prints the section of CHANGELOG.md that describes a version, without its heading. It fails if the
# section is missing or empty.
#
#   tools/release-notes.sh v1.2.3
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?usage: tools/release-notes.sh VERSION}
notes=$(awk -v version="${version#v}" '
  /^## / { inside = ($2 == version || $2 == "[" version "]"); next }
  inside
' CHANGELOG.md)
[ -n "${notes//[[:space:]]/}" ] || { echo "CHANGELOG.md has no section for ${version#v}" >&2; exit 1; }
printf '%s\n' "$notes"
