#!/usr/bin/env bash
# Writes the table of docs/audit.md: rounds until each defect is named. usage: docs/audit.sh LAW_AUDIT (build/dev/tests/law_audit)
set -eu
test=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"
table=$("$test" --md)
awk -v table="$table" '/^<!-- defects -->$/ { print; print "| engine | defect | rounds, median | rounds, most | by text, median |"
  print "|---|---|---|---|---|"; print table; skip = 1 } /^<!-- end -->$/ { skip = 0 } !skip && !/^<!-- defects -->$/ { print }' audit.md >audit.new
mv audit.new audit.md
