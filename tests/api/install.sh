#!/bin/sh
# SPDX-License-Identifier: MIT
# What a user has after `cmake --install`: the header alone as C99 and C++, examples/embed by pkg-config (shared and static) and as
# a CMake package, its text that of `wager generate`, the manual pages, the bill of materials, the snippets of docs/embed.md; and
# the Debian package, which has the same files.
# usage: tests/api/install.sh BUILD CC, from the root
set -eu
build=$1 cc=$2 model=models/story-draft-q8_0.gguf
root=$(pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cmake --install "$build" --prefix "$dir/usr" > "$dir/log" || { tail "$dir/log"; exit 1; }
pc=$(dirname "$(find "$dir/usr" -name wager.pc)")
export PKG_CONFIG_PATH="$pc${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}" LD_LIBRARY_PATH="$pc/.."
[ "$(find "$dir/usr" -name '*.h')" = "$dir/usr/include/wager.h" ] || { echo "another header than wager.h is installed"; exit 1; }

# The header by itself.
echo '#include <wager.h>' > "$dir/alone.c"
cp "$dir/alone.c" "$dir/alone.cpp"
flags=$(pkg-config --cflags wager)
"$cc" -std=c99 -pedantic -Wall -Wextra -Werror $flags -fsyntax-only "$dir/alone.c"
if command -v g++ > "$dir/which"; then g++ -std=c++11 -pedantic -Wall -Wextra -Werror $flags -fsyntax-only "$dir/alone.cpp"; fi

# examples/embed: its text is the program's.
prompt="Once upon a time, a cat and a dog"
"$cc" -std=c99 -Wall -Wextra -Werror examples/embed/embed.c $flags $(pkg-config --libs wager) -o "$dir/embed"
"$dir/embed" "$model" "$prompt" > "$dir/text" 2> "$dir/said"
grep -q '^64 tokens in [0-9]* passes of the target: [1-9][0-9]* of [0-9]* drafted tokens were right$' "$dir/said" || { echo "embed said:"; cat "$dir/said"; exit 1; }
"$dir/usr/bin/wager" generate -m "$model" -p "$prompt" -n 64 --json > "$dir/json"
python3 - "$dir/json" "$dir/text" "$prompt" <<'END'
import json, sys
want = json.load(open(sys.argv[1]))["text"]
got = open(sys.argv[2], encoding="utf-8").read()
if want not in (got, sys.argv[3] + got):
    sys.exit(f"libwager: {got!r}\nwager generate: {want!r}")
END
"$dir/embed" missing.gguf x 2> "$dir/said" && { echo "embed took a missing model"; exit 1; }
grep -q '^embed: config.*target.model: no such file: "missing.gguf"' "$dir/said" || { cat "$dir/said"; exit 1; }

# The static library: the same program.
if [ -f "$pc/../libwager.a" ]; then
  "$cc" examples/embed/embed.c $flags "$pc/../libwager.a" $(pkg-config --static --libs-only-l wager | sed 's/-lwager//') -o "$dir/static"
  "$dir/static" "$model" "$prompt" 2> "$dir/said" | cmp - "$dir/text" || { cat "$dir/said"; exit 1; }
fi

# The CMake package.
cmake -S examples/embed -B "$dir/cmake" -DCMAKE_PREFIX_PATH="$dir/usr" -DCMAKE_C_COMPILER="$cc" > "$dir/log" 2>&1 &&
  cmake --build "$dir/cmake" >> "$dir/log" 2>&1 || { tail -n 20 "$dir/log"; exit 1; }
"$dir/cmake/embed" "$model" "$prompt" 2> "$dir/said" | cmp - "$dir/text"

# The snippets of the page, each a program when it has a main.
if [ -f docs/embed.md ]; then
  awk -v dir="$dir" '/^```c$/ { n++; on = 1; next } /^```$/ { on = 0 } on { print > (dir "/snippet" n ".c") }' docs/embed.md
  for file in "$dir"/snippet*.c; do
    "$cc" -std=c99 -Wall -Wextra -Werror "$file" $flags $(pkg-config --libs wager) -lm -o "${file%.c}" || { echo "$file:"; cat "$file"; exit 1; }
    "${file%.c}" > "$dir/out" 2> "$dir/said" || { echo "docs/embed.md: snippet $(basename "$file") failed:"; cat "$file" "$dir/said"; exit 1; }
    [ -s "$dir/out" ] || { echo "docs/embed.md: snippet $(basename "$file") printed nothing"; exit 1; }
  done
fi

# Pages and papers.
for page in man1/wager.1 man3/wager.h.3; do
  file=$(find "$dir/usr" -path "*/$page")
  [ -n "$file" ] || { echo "no $page"; exit 1; }
  if command -v groff > "$dir/which"; then groff -man -Tascii -ww "$file" > "$dir/page" 2> "$dir/said"; [ ! -s "$dir/said" ] || { head "$dir/said"; exit 1; }; fi
done
for script in bash-completion/completions/wager bash-completion/completions/wager-serve zsh/site-functions/_wager fish/vendor_completions.d/wager.fish; do
  [ -s "$dir/usr/share/$script" ] || { echo "no $script"; exit 1; }
done
for command in $("$dir/usr/bin/wager" --help | sed -n 's/^  \([a-z-]*\)  *[A-Za-z].*/\1/p'); do
  [ -n "$(find "$dir/usr" -path "*/man1/wager-$command.1")" ] || { echo "no page of wager $command"; exit 1; }
done
for what in jansson libmd libdivsufsort; do
  grep -A 2 "^PackageName: $what\$" "$(find "$dir/usr" -name wager.spdx)" | grep -q '^PackageVersion: [0-9]' || { echo "wager.spdx: no version of $what"; exit 1; }
done
for file in "$dir/usr/bin/wager" "$(find "$dir/usr" -name 'libwager.so.*.*')"; do # no library is linked that has no line
  for what in $(readelf -d "$file" | sed -n 's/.*NEEDED.*\[lib\([a-z]*\)\.so.*/\1/p' | grep -vx 'c\|m\|wager'); do
    grep -q "^PackageName: \(lib\)\{0,1\}$what\$" "$(find "$dir/usr" -name wager.spdx)" || { echo "wager.spdx has no line of lib$what"; exit 1; }
  done
done

# The Debian package.
if command -v dpkg-deb > "$dir/which" && command -v dpkg-shlibdeps > "$dir/which"; then
  (cd "$build" && cpack -G DEB -B "$dir/deb" -D CPACK_DEBIAN_COMPRESSION_TYPE=none) > "$dir/log" 2>&1 || { tail "$dir/log"; exit 1; }
  dpkg-deb -x "$dir"/deb/wager_*.deb "$dir/root"
  (cd "$dir/usr" && find . ! -type d | sort) > "$dir/installed"
  (cd "$dir/root/usr" && find . ! -type d | sort) | diff "$dir/installed" - || { echo "the package has other files than are installed"; exit 1; }
  for what in libjansson4 libmd0 libdivsufsort3; do
    dpkg-deb -f "$dir"/deb/wager_*.deb Depends | grep -q "$what" || { echo "the package does not depend on $what"; exit 1; }
  done
  LD_LIBRARY_PATH="$dir/root/usr/lib" "$dir/embed" "$model" "$prompt" 2> "$dir/said" | cmp - "$dir/text" || { cat "$dir/said"; exit 1; }
  "$dir/root/usr/bin/wager" --version > "$dir/out"
else
  echo "SKIPPED in part: the Debian package needs dpkg-deb and dpkg-shlibdeps (dpkg-dev)"
fi
cd "$root"
