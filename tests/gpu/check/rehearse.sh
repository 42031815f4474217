#!/usr/bin/env bash
# An archive of gpu-check.sh --pack in a minimal Debian 12: bash, coreutils, tar, no Python, no driver. All must run up to the
# calls of the device. Needs root, mmdebstrap or debootstrap, and Debian's packages; exit status 77 where one is missing.
# usage: tests/gpu/check/rehearse.sh FILE [ROOT]      ROOT: such a system, kept for the next time; when left out it is not kept
set -u
file=$(realpath "$1") || exit 1
[ "$(id -u)" = 0 ] || { echo "SKIPPED: needs root for chroot"; exit 77; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
root=${2:-$tmp/root}
if [ ! -x "$root/bin/bash" ]; then
  make=$(command -v mmdebstrap || command -v debootstrap) || { echo "SKIPPED: no mmdebstrap or debootstrap here"; exit 77; }
  $make --variant=minbase bookworm "$root" >&2 || { echo "SKIPPED: no Debian could be made here"; exit 77; }
fi
rm -rf "$root/check" && mkdir -p "$root/check/out"
tar -xzf "$file" -C "$root/check" || exit 1
in_root() {
  chroot "$root" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin OUT=/check/out bash -c "cd /check/wager-gpu-check && $1"
}
mkdir -p "$root/proc" "$root/dev"
[ -e "$root/dev/null" ] || mknod -m 666 "$root/dev/null" c 1 3
mount --bind /proc "$root/proc" && trap 'umount "$root/proc"; rm -rf "$tmp"' EXIT
failed=0
fail() { echo "FAILED: $*" >&2; failed=1; }

in_root 'cat /etc/debian_version; ldd --version | head -n 1; command -v python3 nvidia-smi gcc; ldd bin/gpu_suite' || true
in_root 'ldd bin/gpu_suite' | grep 'not found' && fail "a library is missing"
in_root 'bin/gpu_suite --help && bin/gpu_suite wager --help' >"$tmp/help" 2>&1 ||
  fail "a program does not start: $(tail -n 3 "$tmp/help")"
in_root './gpu-check.sh --rehearse' >"$tmp/said" 2>&1 || fail "the rehearsal"
cat "$tmp/said"
[ $failed = 0 ] || exit 1
json=$(echo "$root"/check/out/*/result.json)
grep -q '"texts": \[{"texts": "cpu", "same": true}\]' "$json" || fail "the CPU's texts were not made"
grep -q '"result": "failed"\|"out of time"' "$json" && fail "a section failed for another reason than the card"
grep '^needs a card' "$tmp/said" | grep -q 'forward_8b_bf16' || fail "a section that needs a card does not say so"

# With a driver's program but no driver the canary ends the run, and the reason is recorded.
mkdir -p "$root/usr/local/bin"
printf '#!/bin/sh\ncase "$*" in *name*) echo "Some Card" ;; *) echo 1, 2 ;; esac\n' >"$root/usr/local/bin/nvidia-smi"
chmod +x "$root/usr/local/bin/nvidia-smi"
rm -rf "$root"/check/out/*
in_root './gpu-check.sh' >"$tmp/said" 2>&1 && fail "a run without a driver was no failure"
rm "$root/usr/local/bin/nvidia-smi"
cat "$tmp/said"
grep -q '^ended early: the canary failed' "$tmp/said" || fail "the canary did not end the run"
exit $failed
