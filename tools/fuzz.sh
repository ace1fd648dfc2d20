#!/usr/bin/env bash
# Runs the fuzz targets of all modules one after another, each for the given time.
set -euo pipefail
time=${1:-20s}
grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' --exclude-dir=.cache . | xargs -n1 dirname | sort -u | while read -r dir; do
  grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go | sed 's/^func //' | while read -r target; do
    echo "fuzzing $dir $target for $time"
    # Run go in the target's directory: the target may belong to a nested module.
    (cd "$dir" && go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" .)
  done
done
