# SPDX-License-Identifier: MIT
"""transformers_check.py [PROMPTS]: the shim of transformers on the bundled pair, run from the root with torch, transformers,
cffi and numpy installed and `wager` importable. A development check; it prints what it has compared and exits 1 on a
difference:

  greedy      the text of `generate` with wager's loop is that of `generate` alone, for each drafter
  cache       a cache that is given to `generate` is the one that is filled, and a later call goes on from it
  assisted    the same of transformers' assisted generation with wager's candidates
  sampled     tau at temperature 0.8 lies in the 95 % interval of `wager run` on the same files
  trace       `wager replay` repeats every recorded decision
  audit       `wager audit` finds the recorded rounds lossless"""

import json
import sys
import tempfile
from inspect import signature
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

import wager
from wager import program
from wager.shims.transformers import Candidates, Speculation, assisted

torch.set_num_threads(1)
PROMPTS = int(sys.argv[1]) if len(sys.argv) > 1 else 24
TOKENS = 64
bad = 0


def say(is_so, what):
    global bad
    bad += not is_so
    print(("ok   " if is_so else "FAIL ") + what, flush=True)


def main(folder):
    target, draft = str(folder / "target"), str(folder / "draft")
    for role, to in (("target", target), ("draft", draft)):
        program.call(["convert", f"models/story-{role}-q8_0.gguf", to])
    model, tokenizer = AutoModelForCausalLM.from_pretrained(target), AutoTokenizer.from_pretrained(target)
    lines = Path("configs/prompts/quickstart.jsonl").read_text().splitlines()[:PROMPTS]
    asked = [tokenizer(json.loads(line)["prompt"], return_tensors="pt") for line in lines]

    def texts(**how):
        return [model.generate(**q, max_new_tokens=TOKENS, **how)[0].tolist() for q in asked]

    plain = texts(do_sample=False)
    drafters = [("suffix", {"k": 8}), ("ngram", {"k": 8}), ("model", {"model": draft, "length": 4})]
    for kind, options in drafters:
        with Speculation(kind, **options) as s:
            found = texts(do_sample=False, custom_generate=s)
            same = sum(a == b for a, b in zip(plain, found))
            say(same == len(plain), f"greedy, {kind}: {same} of {len(plain)} texts are those of transformers, tau {s.tau:.3f}")
        with assisted(model, Candidates(kind, vocab=4096, **options)) as generate:
            found = [generate(**q, max_new_tokens=TOKENS, do_sample=False)[0].tolist() for q in asked]
            same = sum(a == b for a, b in zip(plain, found))
            say(same == len(plain), f"assisted, {kind}: {same} of {len(plain)} texts are those of transformers")

    cache = DynamicCache(config=model.config)
    given = "cache" if "cache" in signature(model.forward).parameters else "past_key_values"
    with Speculation("suffix", k=8) as s:
        how = {"do_sample": False, "custom_generate": s, given: cache}
        half = model.generate(**asked[0], max_new_tokens=TOKENS // 2, **how)
        held, whole = cache.get_seq_length(), model.generate(half, max_new_tokens=TOKENS // 2, **how)[0].tolist()
    say(
        held == half.shape[1] - 1 and whole == plain[0][: len(whole)],
        f"cache: it holds {held} of {half.shape[1]} tokens, and the text goes on as that of transformers",
    )

    config = {
        "name": "beside-transformers",
        "seed": 1,
        "target": {"model": target},
        "prompts": {"file": "configs/prompts/quickstart.jsonl", "limit": PROMPTS},
        "draft": {"kind": "model", "model": draft, "length": 4},
        "verify": {"rule": "rejection"},
        "sampling": {"temperature": 0.8},
        "max_tokens": TOKENS,
        "repeats": 1,
    }
    tau = wager.run(config, folder / "run")[0].tau
    trace = str(folder / "trace.wgt")
    torch.manual_seed(1)
    with Speculation("model", rule="rejection", seed=1, trace=trace, model=draft, length=4) as s:
        texts(do_sample=True, temperature=0.8, top_k=0, top_p=1.0, custom_generate=s)
        ours = s.tau
    inside = tau.low is None or tau.low <= ours <= tau.high
    say(inside, f"sampled: tau {ours:.3f} around transformers, {tau} by wager run")
    row = json.loads(program.call(["replay", trace, "--json"]))
    say(
        row["same_rounds"] == row["rounds"],
        f"trace: {row['same_rounds']} of {row['rounds']} rounds are repeated by wager replay",
    )
    verdict = json.loads(program.call(["audit", trace, "--json"]))["all"]
    say(verdict["verdict"] == "lossless", f"audit: {verdict['rounds']} rounds, {verdict['verdict']}: {verdict['why']}")


with tempfile.TemporaryDirectory() as scratch:
    main(Path(scratch))
sys.exit(bad > 0)
