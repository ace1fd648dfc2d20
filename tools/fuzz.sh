#!/usr/bin/env bash
# Runs every fuzz target of every module for the given time, one after the other.
set -euo pipefail
time=${1:-20s}
grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' --exclude-dir=.cache . | xargs -n1 dirname | sort -u | while read -r dir; do
  grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go | sed 's/^func //' | while read -r target; do
    echo "fuzzing $dir $target for $time"
    # From its own directory, because it may belong to a nested module.
    (cd "$dir" && go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" .)
  done
done
