#!/usr/bin/env bash
# Runs every fuzz target of the root module for the given time, one after the other.
set -euo pipefail
time=${1:-20s}
grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' . | xargs -n1 dirname | sort -u | while read -r dir; do
  grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go | sed 's/^func //' | while read -r target; do
    echo "fuzzing $dir $target for $time"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$dir"
  done
done
