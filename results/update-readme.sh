#!/usr/bin/env bash
# Runs the quickstart experiment and puts the table it prints into README.md, between the two markers.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
table=$(mktemp)
trap 'rm -f "$table"' EXIT
build/release/wager run configs/experiments/quickstart.json >"$table"
awk -v table="$table" '
  /<!-- results:begin -->/ { print; print "```"; while ((getline line < table) > 0) print line; print "```"; skip = 1; next }
  /<!-- results:end -->/ { skip = 0 }
  !skip' README.md >README.md.tmp
mv README.md.tmp README.md
