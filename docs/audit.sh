#!/usr/bin/env bash
# Writes the last table of results/laws.md: rounds until each defect is named. usage: docs/audit.sh LAW_AUDIT (build/dev/tests/law_audit)
set -eu
test=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../results"
table=$("$test" --md)
awk -v table="$table" '/^<!-- defects -->$/ { print; print "| engine | defect | rounds, median | rounds, most | by text, median |"
  print "|---|---|---|---|---|"; print table; skip = 1 }
  /^<!-- end -->$/ { skip = 0 } !skip && !/^<!-- defects -->$/ { print }' laws.md >laws.new
mv laws.new laws.md
