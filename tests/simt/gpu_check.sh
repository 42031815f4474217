#!/usr/bin/env bash
# gpu-check.sh with no card: packed, unpacked and run with all of its sections over the emulation, with tiny shapes and what
# stands in for the tools of a card; then with programs that fail, hang, fall back, wedge the card and write too much.
# usage: tests/simt/gpu_check.sh GPU_SUITE      the suite over the emulation
set -u
command -v python3 >/dev/null || { echo "SKIPPED: needs python3"; exit 77; }
suite=$(realpath "$1") here=$PWD
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0
fail() { echo "FAILED: $*" >&2; failed=1; }
is() { # PYTHON: an expression over the JSON `r` of the last run, and `s`, the results of its sections
  python3 -c "import json, sys; r = json.load(open(sys.argv[1])); s = {k: v['result'] for k, v in r['sections'].items()}
sys.exit(not ($1))" "$json" || fail "$1: $(cat "$json")"
}
script() { # FILE: a program, from standard input
  mkdir -p "$(dirname "$1")" && cat >"$1" && chmod +x "$1"
}
run() { # EXIT-STATUS ARGS...: gpu-check.sh in the folder $at, its results in a new folder $out
  local want=$1 got
  shift
  out=$tmp/out-$((++runs))
  (cd "$at" && OUT=$out ./gpu-check.sh "$@") >"$tmp/said" 2>&1
  got=$?
  [ $got = "$want" ] || fail "run $runs: exit status $got, not $want: $(cat "$tmp/said")"
  json=$(echo "$out"/*/result.json)
}
runs=0

# ---- the plan fits, and is held to it

./gpu-check.sh --plan >"$tmp/plan" || fail "the plan: $(cat "$tmp/plan")"
mkdir -p "$tmp/longer/tests/gpu" && cp gpu-check.sh "$tmp/longer/" && cp -r tests/gpu/check "$tmp/longer/tests/gpu/"
sed -i 's/^\( *section canary\) 15/\1 60/' "$tmp/longer/tests/gpu/check/plan.sh"
"$tmp/longer/gpu-check.sh" --plan >/dev/null 2>&1 && fail "a plan of more than the budget fits"
sed -i 's/^\( *section canary\) 60/\1 1/; s/section basics/section canary/' "$tmp/longer/tests/gpu/check/plan.sh"
"$tmp/longer/gpu-check.sh" --plan >/dev/null 2>&1 && fail "two sections of one name"

# Every file of tests in the suite is a section.
"$suite" unit --list | sed 's|.*/test_gpu_\(.*\)\.c .*|\1|' | sort -u | paste -sd' ' >"$tmp/files"
(mode=cuda; . tests/gpu/check/settings.sh; printf '%s\n' $units | sort | paste -sd' ') | cmp -s - "$tmp/files" ||
  fail "settings.sh has other units than the suite: $(cat "$tmp/files")"

# Assertions of the suite fail where they must, and so does what compares logits.
"$suite" unit --self-test >"$tmp/said" 2>&1 || fail "the suite's own test: $(cat "$tmp/said")"
python3 -c "import array, sys
for name, numbers in {'a': [1, -2, 0.5], 'near': [1, -2.01, 0.5], 'nan': [1, float('nan'), 0.5],
                      'short': [1, -2], 'none': []}.items():
    array.array('f', numbers).tofile(open(sys.argv[1] + '-' + name, 'wb'))" "$tmp/f32"
compare() { "$suite" compare x "$tmp/f32-a" "$tmp/f32-$1" "$2" 2>&1; }
compare near 6e-3 | grep -q '"difference": 0.00499' || fail "compare: what is near"
compare a 1e-9 | grep -q '"difference": 0, "logits": 3' || fail "compare: what is equal"
for other in "near 4e-3" "nan 1" "short 1" "none 1" "missing 1"; do
  # shellcheck disable=SC2086
  compare $other >/dev/null && fail "compare: $other is no difference"
done

# ---- the archive, checked, unpacked elsewhere, and run

./gpu-check.sh --pack "$tmp/pack.tar.gz" "$suite" emulated >"$tmp/said" 2>&1 || fail "packing: $(cat "$tmp/said")"
check=tests/gpu/check/check_pack.sh
$check "$tmp/pack.tar.gz" card >/dev/null 2>&1 && fail "an archive without code of a card passed"
MOST=1000000 $check "$tmp/pack.tar.gz" emulated >/dev/null 2>&1 && fail "an archive over its size passed"
GLIBC=2.14 $check "$tmp/pack.tar.gz" emulated >/dev/null 2>&1 && fail "programs of a newer C library passed"
at=$tmp/wager-gpu-check
tar -xzf "$tmp/pack.tar.gz" -C "$tmp"
mv "$at/lib/libjansson.so.4" "$tmp/"
tar -czf "$tmp/less.tar.gz" -C "$tmp" wager-gpu-check
$check "$tmp/less.tar.gz" emulated 2>&1 | grep -q 'needs libjansson.so.4' || fail "an archive without a library passed"
mv "$tmp/libjansson.so.4" "$at/lib/"
env -u LD_LIBRARY_PATH ldd "$at/bin/gpu_suite" | grep -q "jansson.*$at/bin/../lib" ||
  fail "libraries are not taken from the archive"

export WG_GPU=simt
mv "$at/bin/gpu_suite" "$at/bin/real"
script "$at/bin/gpu_suite" <<'SUITE' # steps and rounds on a device take half a minute, and are tests of their own
#!/bin/bash
case $1 in
law_device_verify) [ $# = 2 ] && [ "$2" -gt 0 ]; exit ;;
law_device_decode) [ $# = 2 ] && [ "$2" -gt 0 ]; exit ;;
probe)
  echo '{"read_gb_s": 2.5}'
  [ "$2" = basics ] && echo '{"looped": true, "while_nodes": 400, "while_nodes_turn_us": 500.5}'
  [ "$2" = kernels ] && echo '{"product": "bf16", "n": 2048, "k": 2048, "floor_us": 2, "us_1": 3}'
  exit 0 ;;
esac
exec "$(dirname "$0")/real" "$@"
SUITE
script "$tmp/tools/compute-sanitizer" <<'TOOL'
#!/bin/bash
[ "$1 $2 $3 $4 $5" = "--target-processes all --error-exitcode 9 --tool" ] && [[ $6 == *check && -x $7 ]] && exec "${@:7}"
TOOL
script "$tmp/ncu/ncu" <<'TOOL'
#!/bin/bash
echo "==PROF== Profiling ${*}"
TOOL
plain=$PATH
PATIENCE=10 BUDGET=6000 PATH=$tmp/tools:$plain run 0 # however busy this machine is
is "{k for k, v in s.items() if v != 'passed'} == {'ncu', 'peer'} and s['ncu'] == 'skipped: no ncu'"
is "len(s) >= 40 and r['schema'] == 3 and r['card'] == 'emulated' and r['ended'] == '' and r['machine']['cores'] > 0"
is "r['commit'] == '$(cat "$at/COMMIT")' and list(s)[0] == 'canary' and r['canary'][0]['canary'] == 'emulated'"
is "[x['rows'] for x in r['forward_8b_bf16']] == [1, 2] and r['forward_8b_q4_k'][0]['ms'] > 0"
is "[x['rows'] for x in r['fast_8b_bf16']] == [1, 2] and r['fast_1b_bf16'][0]['ms'] > 0"
is "[x.get('arm') for x in r['oracle_8b_bf16']] == [None, None, 'plain', 'synthetic'] and r['oracle_1b_bf16'][3]['tau'] > 1.5"
is "[x.get('arm') for x in r['drafted_1b_sampled']] == [None, None, 'plain', 'model'] and r['basics'][0]['read_gb_s'] == 2.5"
is "r['train_11m'][0]['blas'] == 'cuBLAS' and r['train_11m'][0]['share'] > 0"
is "0 < r['logits_bf16'][0]['difference'] < 1e-2 and r['logits_q8_0'][0]['logits'] > 1000"
is "[x['texts'] for x in r['texts']] == ['cpu', 'device']"
[ "$(find "$out" -type f | wc -l)" = 3 ] || fail "not three files: $(find "$out" -type f)"
[[ $(basename "$(dirname "$json")") == 20*-emulated-* ]] || fail "the folder's name: $json"
grep -q 'read-only bandwidth, GB/s' "$(dirname "$json")/table.txt" || fail "no table: $(cat "$tmp/said")"
tar -tzf "$(dirname "$json")/logs.tar.gz" | grep -q 'logs/unit_move.err' || fail "no logs"

# ---- programs that do not behave: quick ones, which read what to do from files

bad=$tmp/bad at=$tmp/short
mkdir "$at" && cp -r gpu-check.sh tools "$at/" && ln -s "$here/models" "$here/results" "$here/tests" "$at/"
sed -i -E 's/^( *section basics) [0-9]+/\1 2/; s/^( *together correctness) [0-9]+/\1 8/; s/^( *again) [0-9]+/\1 6/' \
  "$at/tests/gpu/check/plan.sh"
script "$bad/gpu_suite" <<'SUITE'
#!/bin/bash
has() { [ -e "$(dirname "$0")/$1" ]; }
line='{"rows":1,"ms":1,"recorded":true}'
has silent && line='{"rows":1,"ms":1}'
case "$*" in
canary) has wedged && { echo "the card is gone" >&2; exit 1; }; echo '{"canary": "x"}' ;;
unit\ move) [ -n "${WG_GPU_SERIAL:-}" ] || { echo "wrong sum" >&2; exit 1; } ;;
unit\ draw) has hang_draw && exec sleep 100; has noisy && head -c 3000000 /dev/urandom ;;
law_prefix*cuda:0) echo "bits differ" >&2; exit 1 ;;
law_prefix*cuda:0/serial) exit 1 ;;
probe\ basics)
  echo '{"read_gb_s": 7}'
  has hang || exit 0
  printf '{"graph_gap_us": 1.'
  has hang_wedged && touch "$(dirname "$0")/wedged"
  trap '' TERM
  sleep 100 & wait; sleep 100 ;;
wager\ bench\ forward*q4_0*) echo "${line/true/false}" ;;
wager\ bench\ forward*) echo "$line" ;;
wager\ bench\ round*)
  echo '{"arm":"plain","looped":true,"recorded":true}'
  [[ $* == *model:* ]] && arm=model || arm=synthetic
  echo '{"arm":"'$arm'","looped":false,"recorded":true}' ;;
wager\ logits*) cp /dev/null "${@: -1}" ;;
wager\ convert*) touch "${@: -1}" ;;
wager\ generate*--device*) echo "[x output y" ;;
wager\ generate*) echo "[x output y" ;;
compare*) echo '{"type": "x", "difference": 0.001}' ;;
esac
exit 0
SUITE
export BUDGET=
PATH=$tmp/tools:$tmp/ncu:$plain run 1 "$bad"
is "s['unit_draw'] == s['canary'] == s['texts'] == s['ncu'] == 'passed' and len(r['ncu']) == 4"
is "s['unit_move'] == s['law'] == 'failed' and r['sections']['unit_move']['why'] == 'wrong sum'"
is "s['unit_move.eager'] == 'failed' and s['unit_move.serial'] == s['unit_move.both'] == 'passed' == s['law_exact']"
is "s['law.eager'] == s['law.both'] == 'passed' and s['law.serial'] == s['law.memcheck'] == s['unit_move.memcheck'] == 'failed'"
is "'unit_draw.eager' not in s and 'law_exact.eager' not in s"
is "s['forward_8b_q4_0'] == 'failed' and 'not recorded' in r['sections']['forward_8b_q4_0']['why']"
is "s['forward_8b_bf16'] == 'passed'"
is "s['drafted_1b_bf16'] == s['drafted_1b_sampled'] == 'failed' and 'not looped' in r['sections']['drafted_1b_bf16']['why']"
is "s['oracle_8b_bf16'] == s['steps_1b_bf16'] == s['racecheck_draw'] == 'passed' and s['racecheck_move'] == 'failed'"
grep -q '^failed: .*unit_move' "$tmp/said" || fail "not said: $(cat "$tmp/said")"

# A section that hangs, deaf to the first signal: its whole lines count, and the run goes on while the canary lives.
touch "$bad/hang" "$bad/hang_draw"
run 1 "$bad"
is "s['basics'] == 'out of time' and r['basics'] == [{'read_gb_s': 7}] and r['ended'] == ''"
is "s['unit_draw'] == 'out of time' and s['canary_after_basics'] == s['canary_after_unit_draw'] == 'passed'"
is "s['forward_8b_bf16'] == s['texts'] == 'passed'"
is "s['unit_draw.eager'] == s['unit_draw.serial'] == 'out of time'"
rm "$bad/hang_draw"

# The same, and the canary fails: nothing more is asked of the card.
touch "$bad/hang_wedged"
run 1 "$bad"
is "s['basics'] == 'out of time' and s['canary_after_basics'] == 'failed'"
is "s['forward_8b_bf16'] == s['law'] == s['peer'] == 'not run'"
is "r['ended'] == 'the canary failed after basics: the card is gone'"
grep -q '^ended early: the canary failed after basics' "$tmp/said" || fail "not said: $(cat "$tmp/said")"
run 1 "$bad" # still gone: the first canary
is "s['canary'] == 'failed' and s['basics'] == 'not run' and r['ended'] == 'the canary failed: the card is gone'"
rm -f "$bad/hang_wedged" "$bad/wedged"
BUDGET=26 run 1 "$bad" # of which 20 are for the results
is "s['peer'] == 'no time left' and s['canary'] == 'passed'"
pgrep -f "$bad/gpu_suite probe" >/dev/null && fail "a program that was deaf to the first signal still runs"
rm "$bad/hang"

# On a card what is not said counts as not done. The driver is a script.
script "$tmp/driver/nvidia-smi" <<'DRIVER'
#!/bin/sh
case "$*" in
*query-gpu=name*) echo 'Some "Card" 80GB' ;;
*lms*) exec sleep 1000 ;;
*query-gpu*) echo '580.1, 9.0, 81559 MiB' ;;
esac
DRIVER
touch "$bad/silent"
WG_GPU=cuda PATH=$tmp/driver:$plain run 1 "$bad"
is "s['forward_8b_bf16'] == 'failed' and s['eager_1b_bf16'] == 'passed' and s['oracle_8b_bf16'] == 'passed'"
is "r['card'] == 'Some Card 80GB' and r['machine']['driver_version'] == '580.1' and r['machine']['compute_cap'] == '9.0'"
[[ $json == */20*-Some-Card-80GB-* ]] || fail "the folder's name: $json"
rm "$bad/silent"

# ---- what comes back: at most 8 files, none of them too long, nothing left out without a word

touch "$bad/noisy"
PART_BYTES=1500000 run 1 "$bad"
[ "$(find "$out" -name 'logs.tar.gz.0*' | wc -l)" -ge 2 ] || fail "no parts: $(ls -l "$out"/*)"
cat "$out"/*/logs.tar.gz.0* | tar -tzf - | grep -q unit_draw || fail "the parts are no archive"
is "r['notes'] == []"
PART_BYTES=100000 run 1 "$bad"
[ "$(find "$out" -type f | wc -l)" -le 8 ] || fail "more than 8 files: $(ls -l "$out"/*)"
is "'unit_draw.txt' in r['notes'][0]"
cat "$out"/*/logs.tar.gz* | tar -xzOf - logs/unit_draw.txt | grep -qa 'gpu-check: .* bytes left out here' ||
  fail "the log does not say that it was cut"
rm "$bad/noisy"
mkdir "$tmp/full" && touch "$tmp/full"/{1,2,3,4,5,6,7}
OUT=$tmp/full "$at/gpu-check.sh" "$bad" >"$tmp/said" 2>&1
[ "$(find "$tmp/full" -type f | wc -l)" = 8 ] || fail "not eight files: $(find "$tmp/full")"
tar -tzf "$tmp"/full/*.tar.gz | grep -q 'result.json' || fail "no results in the archive of them: $(cat "$tmp/said")"
touch "$tmp/full/8"
OUT=$tmp/full "$at/gpu-check.sh" "$bad" >"$tmp/said" 2>&1
grep -q 'error: these would not come back .*more than 8 files' "$tmp/said" || fail "nine files: $(cat "$tmp/said")"

./gpu-check.sh "$tmp/nowhere" >"$tmp/said" 2>&1 && fail "programs from nowhere"
grep -q "no gpu_suite in $tmp/nowhere" "$tmp/said" || fail "not said: $(cat "$tmp/said")"
exit $failed
