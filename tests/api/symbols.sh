#!/bin/sh
# SPDX-License-Identifier: MIT
# The shared library exports the functions of include/wager.h and nothing else, each under a version; the header declares what the
# version script lists; and its status codes are the library's own.
# usage: tests/api/symbols.sh LIBWAGER.so [LIBWAGER.a], from the root
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sed -n 's/^WG_API .*[ *]\(wg_[a-z_]*\)(.*/\1/p' include/wager.h | sort > "$dir/header"
sed -n 's/^    \(wg_[a-z_]*\);.*/\1/p' api/libwager.map | sort > "$dir/map"
nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | sed 's/@@WAGER_[0-9]*$//' | sort > "$dir/exported"
[ -s "$dir/header" ] || { echo "no function found in include/wager.h"; exit 1; }
diff "$dir/header" "$dir/map" || { echo "include/wager.h (<) and api/libwager.map (>) differ"; exit 1; }
diff "$dir/header" "$dir/exported" || { echo "include/wager.h (<) and the symbols of $1 (>) differ; unversioned ones have no @@"; exit 1; }
if [ -n "${2:-}" ]; then
  nm --defined-only "$2" 2> "$dir/notes" | awk '$2 ~ /[A-Z]/ && NF == 3 { print $3 }' | sort > "$dir/static"
  diff "$dir/header" "$dir/static" || { echo "include/wager.h (<) and the global symbols of $2 (>) differ"; exit 1; }
fi
# The codes: numbers in the header, an order in core/base/error.h.
sed -n 's/^    WG_\(E[A-Z]*\) = 1\([0-9]*\).*/\1 \2/p' include/wager.h > "$dir/codes"
sed -n 's/^    X(\(E[A-Z]*\), .*/\1/p' core/base/error.h | awk '{ printf "%s %03d\n", $1, NR }' > "$dir/own"
diff "$dir/codes" "$dir/own" || { echo "the codes of include/wager.h (<) and of core/base/error.h (>) differ; codes are never renumbered"; exit 1; }
echo "$(wc -l < "$dir/header") functions"
