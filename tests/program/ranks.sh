#!/usr/bin/env bash
# Ranks that share a target: the same digests for 1 to 4 of them, with drafters, batches, conversations and types of weights and
# caches. usage: tests/program/ranks.sh WAGER threads|mpi [whole]. mpi: ranks are processes; exit 77 where mpirun starts no two
# processes or the program was built without MPI.
set -u
program=$(realpath "$1")
how=$2
whole=${3:-}
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
root=$PWD
base=$(mktemp -d "${TMPDIR:-/tmp}/wager-ranks.XXXXXX")
trap 'rm -rf "$base"' EXIT
fail() { echo "FAIL: $1"; exit 1; }
if [ "$how" = mpi ]; then
  command -v mpirun >/dev/null && [ -e "$(dirname "$program")/libwager-mpi.so" ] || { echo "skipped: no mpirun, or built without MPI"; exit 77; }
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader,tcp
  why=$(timeout 60 mpirun -n 2 true 2>&1) || { echo "skipped: mpirun cannot start two processes here: $why"; exit 77; }
fi

# RANKS ARGUMENTS: the program on so many ranks.
ranked() {
  local n=$1
  shift
  if [ "$how" = mpi ] && [ "$n" -gt 1 ]; then timeout 300 mpirun --oversubscribe -n "$n" "$program" "$@"
  elif [[ "$1" =~ ^(generate|logits|bench)$ ]] && [ "$n" -gt 1 ]; then timeout 300 "$program" "$@" --ranks "threads:$n"
  else timeout 300 "$program" "$@"; fi
}

# NAME RANKS... -- ARGUMENTS: all numbers of ranks have the digest of one.
same() {
  local name=$1 counts=() n got want
  shift
  while [ "$1" != -- ]; do counts+=("$1"); shift; done
  shift
  for n in 1 "${counts[@]}"; do
    got=$(ranked "$n" "$@" --json 2>"$base/err" | grep -o '"output_sha256":"[0-9a-f]*"') || fail "$name on $n ranks: $(cat "$base/err")"
    [ "$n" -gt 1 ] || want=$got
    [ "$got" = "$want" ] || fail "$name: $n ranks give $got, one gives $want"
  done
  checked=$((checked + 1))
}

# NAME RANKS... -- ARGUMENTS: pipelines have the digest of one rank.
pipeline() {
  local name=$1 got want n shape shapes=()
  shift
  while [ "$1" != -- ]; do shapes+=("$1"); shift; done
  shift
  want=$(ranked 1 "$@" --json | grep -o '"output_sha256":"[0-9a-f]*"')
  for shape in "${shapes[@]}"; do
    n=${shape#*:}
    if [ "$how" = mpi ]; then got=$(timeout 300 mpirun --oversubscribe -n $((${n%x*} * ${n#*x})) "$program" "$@" --ranks "$shape" --json 2>"$base/err")
    else got=$(timeout 300 "$program" "$@" --ranks "$shape" --json 2>"$base/err"); fi || fail "$name on $shape: $(cat "$base/err")"
    got=$(grep -o '"output_sha256":"[0-9a-f]*"' <<<"$got")
    [ -n "$want" ] && [ "$got" = "$want" ] || fail "$name: $shape gives $got, one rank $want"
  done
  checked=$((checked + 1))
}

checked=0
"$program" synth --like tiny --type f32 --seed 1 --out "$base/f32.gguf" >/dev/null || exit 1
if [ "$whole" ]; then all=(2 3 4); elif [ "$how" = mpi ]; then all=(2); else all=(3); fi
story=models/story-target-q8_0.gguf
drafted=(--draft model:model=models/story-draft-q8_0.gguf,length=4)
said=(-p "Once upon a time there was" -n 24)
if [ "$how" = mpi ]; then
  same "drafts of a model" "${all[@]}" -- generate -m $story "${drafted[@]}" "${said[@]}"
  pipeline "drafts of a model, in stages" mpi:1x2 mpi:2x2 -- generate -m $story "${drafted[@]}" "${said[@]}"
else
  same "plain decoding, sampled" 2 3 4 -- generate -m $story -t 1 "${said[@]}"
  same "drafts of a model" "${all[@]}" -- generate -m $story "${drafted[@]}" "${said[@]}"
  same "a tree of drafts" "${all[@]}" -- generate -m $story --draft model:model=models/story-draft-q8_0.gguf,length=3,width=3 "${said[@]}"
  pipeline "a tree of drafts, in stages" threads:1x2 threads:2x2 -- generate -m $story --draft model:model=models/story-draft-q8_0.gguf,length=3,width=3 "${said[@]}"
  pipeline "a long prompt, read in two parts" threads:1x3 -- generate -m $story -p "$(head -c 500 README.md)" -n 8
  pipeline "a draft that is a part of the target, in stages" threads:1x2 -- generate -m $story --draft early_exit:layer=2,length=3 "${said[@]}"
  same "a cache of 8-bit codes" "${all[@]}" -- generate -m $story --kv-type q8 "${drafted[@]}" "${said[@]}"
  same "weights converted on loading" "${all[@]}" -- generate -m $story --quantize q4_0 "${said[@]}"
  same "a draft that is a part of the target" "${all[@]}" -- generate -m $story --draft early_exit:layer=2,length=3 "${said[@]}"
fi

# Rows of logits, and a text's perplexity, which has no digest: it is printed in full.
for n in 1 "${all[@]}"; do
  ranked "$n" logits $story --tokens 1,5,9,200,17 --out "$base/rows$n" 2>"$base/err" || fail "logits on $n ranks: $(cat "$base/err")"
  cmp "$base/rows1" "$base/rows$n" || fail "logits on $n ranks"
  ranked "$n" bench perplexity -m $story --text README.md --tokens 40 --json 2>"$base/err" | grep -o '"nats_per_token":[^,}]*' >"$base/bench$n" || fail "bench on $n ranks: $(cat "$base/err")"
  cmp "$base/bench1" "$base/bench$n" || fail "bench on $n ranks"
  ranked "$n" bench round -m $story -n 4 --repeats 1 --json 2>"$base/err" | grep -q '"arm":"plain"' || fail "bench round on $n ranks: $(cat "$base/err")"
done
checked=$((checked + 1))

# Of a pipeline rank 0 waits for rows, a part of each round; without one there is nothing to wait for.
waits() { "$program" bench round -m $story -n 4 --repeats 1 --json "$@" 2>/dev/null | sed -n 's/.*"verify_ms":\([0-9.e-]*\).*"wait_ms":\([^,}]*\).*/\1 \2/p'; }
if [ "$how" = threads ]; then
  read -r verify wait < <(waits --ranks threads:1x2)
  awk "BEGIN { exit !($wait > 0 && $wait < $verify) }" || fail "rank 0 waits $wait of $verify ms"
  [ "$(waits --ranks threads:2 | cut -d" " -f2)" = null ] || fail "ranks without stages wait"
fi

# What messages cost: five sizes of three calls.
if [ "$how" = mpi ]; then ranked 2 bench comm --repeats 1 --json; else "$program" bench comm --ranks threads:3 --repeats 1 --json; fi >"$base/comm" 2>"$base/err" || fail "bench comm: $(cat "$base/err")"
for call in order join round; do [ "$(grep -c "^{\"bytes\":[0-9]*,\"call\":\"$call\",\"gb_s\":[0-9.e-]*,.*\"us\":[0-9.e-]*}\$" "$base/comm")" = 5 ] || fail "bench comm: $(cat "$base/comm")"; done
checked=$((checked + 1))

# A rank that may have fewer bytes of its own than the weights: one rank is refused, two have a half each.
if [ "$how" = mpi ]; then
  "$program" synth --like draft-124m --type f16 --seed 1 --out "$base/large.gguf" >/dev/null || exit 1
  limit=$(($(stat -c %s "$base/large.gguf") / 1024 * 85 / 100))
  limited() { bash -c 'ulimit -d "$0"; exec "$@"' "$limit" "$@"; }
  words=(logits "$base/large.gguf" --tokens 1,2,3 --threads 1)
  limited timeout 300 "$program" "${words[@]}" >"$base/err" 2>&1 && fail "one rank has room in $limit KB"
  grep -q "out of memory" "$base/err" || fail "one rank in $limit KB: $(cat "$base/err")"
  "$program" "${words[@]}" --out "$base/rows1" || fail "a rank without a limit"
  limited timeout 300 mpirun --oversubscribe -n 2 "$program" "${words[@]}" --out "$base/rows2" 2>"$base/err" || fail "two ranks in $limit KB: $(cat "$base/err")"
  cmp "$base/rows1" "$base/rows2" || fail "rows of two ranks with a limit"
  checked=$((checked + 1))
fi

# A run: batches, conversations, a sweep over drafters; `tensor` in its config.
if [ "$how" = mpi ] && [ ! "$whole" ]; then model=f32.gguf; else model=$root/$story; fi # (two heads: two ranks at most)
cat >"$base/config.json" <<END
{"name": "ranks", "target": {"model": "$model", "threads": 1}, "draft": {"kind": "ngram"}, "max_tokens": 12, "batch": 3,
 "prompts": {"file": "prompts.jsonl", "turns": 2}, "sweep": {"sampling.temperature": [0, 1]}}
END
for i in 1 2 3 4; do echo "{\"id\": $i, \"turns\": [\"The $i cats sat. The $i cats\", \" and then the $i cats\"]}"; done >"$base/prompts.jsonl"
cd "$base" || exit 1
texts() { grep -o '"output_sha256":"[0-9a-f]*"\|"id":"[^"]*"' "$1/requests.jsonl"; }
"$program" run config.json --out one >err 2>&1 || fail "the run on one rank: $(cat err)"
for n in "${all[@]}"; do
  if [ "$how" = mpi ]; then asked=(--ranks mpi); else asked=(--ranks "threads:$n"); fi
  ranked "$n" run config.json "${asked[@]}" --out "of$n" >err 2>&1 || fail "the run on $n ranks: $(cat err)"
  [ -n "$(texts one)" ] && [ "$(texts one)" = "$(texts "of$n")" ] || fail "the run on $n ranks has other texts"
done
checked=$((checked + 1))

# --ranks replaces what the config says of them.
if [ "$how" = threads ]; then
  for asked in self threads:2 threads:1x2; do
    got=$("$program" run config.json --dry-run --ranks "$asked" --set target.tensor=3 --set target.pipeline=3 --set target.ranks=threads:3x3 2>&1) || fail "--ranks $asked over a config's: $got"
    want=$("$program" run config.json --dry-run --ranks "$asked") && [ "$got" = "$want" ] || fail "--ranks $asked over a config's: $got"
  done
  checked=$((checked + 1))
fi

# What each rank holds: weights in full as the ranks have them.
if [ "$how" = mpi ]; then ranked 2 check config.json >plan 2>err
else "$program" check config.json --set target.tensor=2 >plan 2>err; fi || fail "check: $(cat err)"
grep -q '^rank 1    layers 0 to [0-9]* of [0-9]*, heads [0-9]* to [0-9]* of [0-9]*, [0-9]* of [0-9]* of keys$' plan || fail "check: $(cat plan)"
[ "$(grep -c '^          weights [0-9.]* MB, of which a pass reads [0-9.]* MB, caches at most [0-9.]* MB$' plan)" = 2 ] || fail "check: $(cat plan)"
if [ "$how" = threads ]; then
  "$program" check config.json --set target.ranks=threads:1x2 2>err | grep -q '^rank 1    layers [1-9][0-9]* to .* heads 0 to ' || fail "check of stages: $(cat err)"
fi
checked=$((checked + 1))

# What goes wrong is named, and ends at once.
refused() { # WORDS COMMAND...
  local words=$1
  shift
  timeout 60 "$@" >err 2>&1 && fail "no error: $*"
  [ $? -ne 124 ] || fail "hangs: $*"
  grep -qF "$words" err || fail "expected '$words' of $*, not: $(cat err)"
  checked=$((checked + 1))
}
if [ "$how" = mpi ]; then
  two=(mpirun --oversubscribe -n 2 "$program")
  refused "none.gguf: there is no such file" "${two[@]}" generate -m none.gguf -p x
  refused "mpirun started 2 processes, which would wait in vain; leave ranks out, or mpirun" "${two[@]}" generate -m f32.gguf --ranks threads:2 -p x
  refused "tensor = 3, but the ranks are 2 (mpirun -n); expected as many" "${two[@]}" run config.json --ranks mpi --set target.tensor=3 --set target.model="$root/$story" --out no
  refused "ranks mpi:3: mpirun started 2 processes; expected 3" "${two[@]}" generate -m f32.gguf --ranks mpi:3 -p x
  refused "rank 1 has another command line; expected the same program with the same arguments on all ranks" \
    mpirun --oversubscribe -n 1 "$program" generate -m f32.gguf -p x : -n 1 "$program" generate -m f32.gguf -p y
  refused "libwager-mpi.so cannot be opened" env WAGER_MPI="$base/none.so" "${two[@]}" generate -m f32.gguf -p x
fi
echo "ok: $checked checks of ranks by $how"
