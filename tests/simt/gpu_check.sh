#!/usr/bin/env bash
# gpu-check.sh with no card: all of its sections over the emulation, with tiny shapes and what stands in for the tools of a
# card; then with programs that fail, hang and are cut off in the middle of a line.
# usage: tests/simt/gpu_check.sh WAGER_GPU FOLDER   FOLDER: of the other programs (law_prefix_gpu, test_gpu_*)
set -u
command -v python3 >/dev/null || { echo "SKIPPED: needs python3"; exit 77; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
failed=0
fail() { echo "FAILED: $*" >&2; failed=1; }
is() { # FILE PYTHON: an expression over the JSON `r`
  python3 -c "import json, sys; r = json.load(open(sys.argv[1])); sys.exit(not ($2))" "$1" || fail "$2: $(cat "$1")"
}
script() { # FILE: a program, from standard input
  cat >"$1" && chmod +x "$1"
}
mkdir "$tmp/bin" "$tmp/bad" "$tmp/tools"
ln -s "$(realpath "$1")" "$tmp/bin/wager"
ln -s "$(realpath "$2/law_prefix_gpu")" "$tmp/bin/law_prefix"
script "$tmp/bin/law_settle" <<'LAW' # half a minute, and a test of its own; so is the next
#!/bin/sh
[ $# = 1 ] && [ "$1" -gt 0 ]
LAW
script "$tmp/bin/law_loop" <<'LAW'
#!/bin/sh
[ $# = 0 ]
LAW
for test in draw move; do ln -s "$(realpath "$2/test_gpu_$test")" "$tmp/bin/"; done
script "$tmp/bin/gpu_probe" <<'PROBE'
#!/bin/sh
echo '{"read_gb_s": 2.5}'
echo '{"product": "bf16", "n": 2048, "k": 2048, "floor_us": 2, "us_1": 3}'
PROBE
script "$tmp/tools/compute-sanitizer" <<'TOOL'
#!/bin/bash
[ "$*" = "--target-processes all --error-exitcode 9 --tool ${6:-} ${7:-}" ] && [[ $6 == *check && -x $7 ]]
TOOL

export WG_GPU=simt PATH=$tmp/tools:$PATH RESULTS=$tmp
OUT=$tmp/out ./gpu-check.sh "$tmp/bin" >"$tmp/said" 2>&1 || fail "a run of all sections: $(cat "$tmp/said")"
json=$(ls "$tmp"/*-emulated.json)
[ "$(wc -l <"$tmp/said")" -le 30 ] || fail "more than 30 lines"
grep -q 'read-only bandwidth, GB/s' "$tmp/said" || fail "no table: $(cat "$tmp/said")"
skipped='"forward_8b_f8", "peer"' # a build may have some of them
is "$json" "[k for k, v in r['sections'].items() if v['result'] != 'passed' and k not in ($skipped,)] == []"
is "$json" "[x['rows'] for x in r['fast_8b_bf16']] == [1, 2] and r['fast_1b_bf16'][0]['ms'] > 0"
is "$json" "len(r['sections']) >= 26 and r['schema'] == 2 and r['card'] == 'emulated'"
is "$json" "[x['rows'] for x in r['forward_8b_bf16']] == [1, 2] and r['forward_8b_q4_k'][0]['ms'] > 0"
is "$json" "[x.get('arm') for x in r['oracle_8b_bf16']] == [None, None, 'plain', 'synthetic']"
is "$json" "r['oracle_1b_bf16'][3]['tau'] > 1.5 and r['probe'][0]['read_gb_s'] == 2.5"
is "$json" "[x['type'] for x in r['logits']] == ['q8_0', 'bf16'] and 0 < r['logits'][1]['difference'] < 1e-2"

for program in wager law_prefix law_settle law_loop test_gpu_draw; do ln -s "$(type -P true)" "$tmp/bad/$program"; done
ln -s "$(type -P false)" "$tmp/bad/test_gpu_move"
script "$tmp/bad/gpu_probe" <<'PROBE'
#!/bin/sh
echo '{"read_gb_s": 7}'
printf '{"graph_gap_us": 1.'
exec sleep 100
PROBE
rm "$json"
SECONDS_ALL=5 OUT=$tmp/out ./gpu-check.sh "$tmp/bad" >"$tmp/said" 2>&1 && fail "what failed was no failure"
is "$json" "r['sections']['unit']['result'] == 'failed' and r['sections']['law']['result'] == 'passed'"
is "$json" "r['sections']['probe']['result'] == 'out of time' and r['probe'] == [{'read_gb_s': 7}]"
is "$json" "r['sections']['sanitizer_memcheck']['result'] == 'no time left' and 'forward_8b_bf16' not in r"
grep -q '^failed: unit' "$tmp/said" && grep -q '^out of time: probe' "$tmp/said" || fail "not said: $(cat "$tmp/said")"
./gpu-check.sh "$tmp/nowhere" >"$tmp/said" 2>&1 && fail "programs from nowhere"
grep -q "no wager in $tmp/nowhere" "$tmp/said" || fail "not said: $(cat "$tmp/said")"
exit $failed
