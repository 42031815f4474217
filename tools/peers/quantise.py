#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Our quantisers beside ggml's (llama.cpp): rows of bf16 to blocks, one thread, turn by turn.

    quantise.py run [--level avx2] [--kernels build/release/libwg_kernels.a] [--rounds 5]    measures and prints a table
    quantise.py --self-test

The peer's libraries are those of `peers.py build --level LEVEL`. The bar is never slower. A ratio is the median of the ratios of rounds, in brackets the least and the greatest.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import peers
from peers import arguments

HERE, REPO = peers.HERE, peers.REPO
TYPES = ["q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q6_k"]


def libraries(cache, level):
    """Of ggml-base, which has the quantisers."""
    found = sorted((peers.place(cache, level) / "build").rglob("libggml-base.a"))
    if not found:
        raise peers.Trouble(f"{peers.place(cache, level)}: no libggml-base; peers.py build --level {level} makes it")
    return found[0]


def build(o):
    source, base = peers.fetch(o.cache), libraries(o.cache, o.level)
    out = peers.place(o.cache, o.level)
    out.mkdir(parents=True, exist_ok=True)
    ours, theirs = out / "quantise_ours", out / "quantise_peer"
    common = ["gcc", "-std=gnu11", "-O2", HERE / "quantise_bench.c"]
    peers.call([*common, f"-I{REPO}", "-o", ours, o.kernels, "-lm", "-lpthread"])
    peers.call([*common, "-DPEER", f"-I{source}/ggml/include", "-o", theirs, base, "-lstdc++", "-fopenmp",
                "-lm", "-lpthread", "-ldl"])
    return ours, theirs


def measure(programs, kind, rounds):
    """[[our rates], [the peer's]] in elements a second, and whether the blocks are the same."""
    rates, digests = ([], []), [None, None]
    for r in range(rounds):
        for side in (0, 1) if r % 2 == 0 else (1, 0):
            got = json.loads(peers.call([programs[side], "--type", kind]))
            rates[side].append(got["elements_s"])
            digests[side] = got["digest"]
    return rates, digests[0] == digests[1]


def table(results):
    lines = ["| | wager, M elements/s | llama.cpp | ratio | blocks |", "|---|---|---|---|---|"]
    for kind, ((ours, theirs), same) in results.items():
        x = [a / b for a, b in zip(ours, theirs)]
        lines.append(f"| {kind} | {statistics.median(ours) / 1e6:.0f} | {statistics.median(theirs) / 1e6:.0f} | "
                     f"{statistics.median(x):.2f} ({min(x):.2f}..{max(x):.2f}){'' if statistics.median(x) >= 1 else ' **slower**'} | "
                     f"{'the same' if same else 'other'} |")
    return lines


def self_test():
    lines = table({"q8_0": (([2e6, 3e6, 4e6], [1e6, 1e6, 1e6]), True), "q4_k": (([1e6], [2e6]), False)})
    assert lines[2] == "| q8_0 | 3 | 1 | 3.00 (2.00..4.00) | the same |", lines
    assert lines[3] == "| q4_k | 1 | 2 | 0.50 (0.50..0.50) **slower** | other |", lines
    print("quantise: self-test passed")


def main():
    ap = arguments.Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("what", nargs="?", choices=["run"])
    ap.add_argument("--self-test", action="store_true")
    ap.add_argument("--cache", type=Path, default=Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "wager-peers")
    ap.add_argument("--kernels", type=Path, default=REPO / "build/release/libwg_kernels.a")
    ap.add_argument("--level", choices=list(peers.LEVELS), default="native")
    ap.add_argument("--type", action="append", choices=TYPES)
    ap.add_argument("--rounds", type=int, default=5)
    o = ap.parse_args()
    if o.self_test:
        return self_test()
    if not o.what:
        ap.error("run is needed, or --self-test")
    programs = build(o)
    print(f"{o.level}, {peers.processor()}, one thread, {o.rounds} rounds")
    print("\n".join(table({kind: measure(programs, kind, o.rounds) for kind in o.type or TYPES})))
    return None


if __name__ == "__main__":
    try:
        main()
    except (peers.Trouble, subprocess.CalledProcessError) as why:
        sys.exit(f"quantise: {why}")
