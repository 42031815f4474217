#!/usr/bin/env bash
# Would an archive of gpu-check.sh --pack run elsewhere? Its size, the symbol versions and the libraries that every program and
# library of it asks for, the card's code in it, and that each script is one and every file of the plan is there.
# usage: check_pack.sh FILE [emulated]      emulated: its suite has no code of a card
set -u
file=$1 kind=${2:-card}
most=${MOST:-24000000} glibc=${GLIBC:-2.35} # bytes, version; others in tests
system=" libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 ld-linux-x86-64.so.2 " # of every machine with that C library
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0
fail() { echo "FAILED: $*" >&2; failed=1; }

tar -xzf "$file" -C "$tmp" || exit 1
root=$tmp/wager-gpu-check
bytes=$(stat -c %s "$file")
[ "$bytes" -le $most ] || fail "$bytes bytes, at most $most are wanted"
newest=0 programs=0
while IFS= read -r f; do
  programs=$((programs + 1))
  versions=$(objdump -T "$f") || { fail "objdump cannot read $f"; continue; }
  v=$(grep -o 'GLIBC_[0-9.]*' <<<"$versions" | sed 's/GLIBC_//' | sort -Vu | tail -n 1)
  [ "$(printf '%s\n' "${v:-0}" "$newest" | sort -V | tail -n 1)" = "$newest" ] || newest=$v
  [ "$(printf '%s\n' "${v:-0}" $glibc | sort -V | tail -n 1)" = $glibc ] ||
    fail "${f#"$root"/} needs GLIBC_$v: $(grep "GLIBC_$v" <<<"$versions" | awk '{ print $NF }' | paste -sd' ' | cut -c 1-200)"
  for other in $(grep -oE '\(?(GLIBCXX|CXXABI|GCC)_[0-9.]*' <<<"$(grep 'UND' <<<"$versions")" | sort -u); do
    fail "${f#"$root"/} needs $other of a C++ library that is not in the archive"
  done
  for need in $(objdump -p "$f" | awk '$1 == "NEEDED" { print $2 }'); do
    [[ $system == *" $need "* || -e $root/lib/$need ]] ||
      fail "${f#"$root"/} needs $need, which is neither in the archive nor the system's"
  done
done < <(find "$root/bin" "$root/lib" -type f)
[ "$programs" -gt 0 ] || fail "no program is in $file"
objdump -p "$root/bin/gpu_suite" | grep -q 'R.*PATH.*\$ORIGIN/../lib' || fail "gpu_suite does not look in ../lib"
if [ "$kind" = card ]; then
  grep -qa 'sm_90a' "$root/bin/gpu_suite" || fail "no code for sm_90a is in gpu_suite"
  "$root/bin/gpu_suite" canary 2>&1 | grep -q '"canary"\|NVIDIA driver' || fail "the canary neither runs nor says why not"
fi
for script in "$root"/gpu-check.sh "$root"/tests/gpu/check/*.sh; do bash -n "$script" || fail "$script is no script"; done
(cd "$root" && ./gpu-check.sh --plan >/dev/null) || fail "its plan does not fit"
grep -qE '^[0-9a-f]{7,}|^unknown$' "$root/COMMIT" || fail "no commit is in it"
for f in models/story-target-q8_0.gguf models/story-draft-q8_0.gguf configs/prompts/quickstart.jsonl \
  results/gpu/table.py tests/gpu/peer_transformers.py; do
  [ -s "$root/$f" ] || fail "no $f is in it"
done
[ $failed = 0 ] &&
  echo "$file: $bytes bytes, commit $(cat "$root/COMMIT"), $programs programs and libraries, GLIBC_$newest at most"
exit $failed
