#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The regret of the drafter `auto`: every cell of `auto` in some experiments, at kernel levels and thread counts, against plain
decoding and against the fastest fixed setting of its group (summary.json: speedup, best_fixed). A cell is repeated, with another
seed each time, until the half-width of its speed-up is at most --half-width, or --tries runs were made; the runs of a cell are
combined with weights 1 / half-width^2. Writes a Markdown table to standard output, and what it runs to standard error.

usage: tools/auto_regret.py [--wager PROGRAM] [--levels avx2,avx512] [--threads 1,2] [--out DIR] [--half-width 0.03] [--tries 3]
                            [--below 0.97] [--share 0.95] [--set A.B=V]... CONFIG...
With --by-steps nothing is timed: the steps of a run are priced, each pass by --costs (of 1, 2, ... rows; the last slope goes on) and each
drafted token of a model by --draft-cost, and the table has tokens per cost of every cell, plain decoding being 1. Reading the prompt, and
passes of a draft model after which no token was drafted, are left out.
usage: tools/auto_regret.py --by-steps --costs 1/1.1/1.33 --draft-cost 0.1 [--wager PROGRAM] [--out DIR] [--set A.B=V]... CONFIG
Exit status: 0; 1 where a cell is below one of the two bounds by more than its half-width; 2 where a run failed.
Run it on a machine that does nothing else. An experiment without a cell of `auto` has no row."""
import argparse
import json
import os
import subprocess
import sys


def run(args, config, level, threads, attempt):
    """The summary of a new run, in a folder of its own."""
    name = os.path.splitext(os.path.basename(config))[0]
    out = os.path.join(args.out, f"{name}-{level}-{threads}-{attempt}")
    command = [args.wager, "run", config, "--resume", "--out", out, "--threads", str(threads), "--set", f"seed={7 + attempt}"]
    for value in args.set:
        command += ["--set", value]
    print(f"WG_CPU={level}", " ".join(command), file=sys.stderr)
    done = subprocess.run(command, env={**os.environ, "WG_CPU": level}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"auto_regret: {done.stderr.strip()}" if done.stderr else 2)
    with open(os.path.join(out, "summary.json"), encoding="utf-8") as f:
        return json.load(f)


def words(cell):
    """What distinguishes a cell, for people."""
    of = cell["cell"].get("draft.of", "")
    kinds = "|".join(part.strip("{}").split(":")[0] for part in of.split("|")) if of else cell["drafter"]
    return f"{kinds}, {cell['rule']}, T = {cell['temperature']:g}"


def combine(series):
    """Mean and half-width of independent runs [(value, half-width), ...]."""
    weights = [1 / max(half, 1e-6) ** 2 for _, half in series]
    total = sum(weights)
    return sum(w * v for w, (v, _) in zip(weights, series)) / total, total ** -0.5


def measure(args, config, level, threads):
    """The rows of one experiment at one level: [words, speed-up, half-width, share, disturbed runs, runs]."""
    speed, share, disturbed, name = {}, {}, {}, {}
    for attempt in range(args.tries):
        summary = run(args, config, level, threads, attempt)
        for i, cell in enumerate(summary["cells"]):
            if cell["drafter"] != "auto" or cell["speedup"] is None:
                continue
            low, high = cell["speedup_ci"] or (0, 2 * cell["speedup"])
            name[i] = words(cell)
            speed.setdefault(i, []).append((cell["speedup"], (high - low) / 2))
            disturbed[i] = disturbed.get(i, 0) + bool(cell["disturbed"])
            if cell["best_fixed"]:
                share.setdefault(i, []).append(cell["best_fixed"]["share"])
        if all(combine(s)[1] <= args.half_width for s in speed.values()):
            break
    return [[name[i], *combine(speed[i]), sum(share[i]) / len(share[i]) if i in share else None, disturbed[i], len(speed[i])]
            for i in sorted(speed)]


def price(costs, rows):
    """Of a pass over so many rows."""
    if rows <= len(costs):
        return costs[rows - 1]
    slope = costs[-1] - costs[-2] if len(costs) > 1 else 0
    return costs[-1] + (rows - len(costs)) * slope


def by_steps(args, config):
    """Prints tokens per cost of every cell, from the steps that requests.jsonl has of it."""
    costs = [float(x) for x in args.costs.split("/")]
    args.set += ["trace=steps", "alpha=false", "repeats=1"]
    cells = run(args, config, args.levels.split(",")[0], 1, 0)["cells"]
    out = os.path.join(args.out, f"{os.path.splitext(os.path.basename(config))[0]}-{args.levels.split(',')[0]}-1-0")
    tokens, cost = [0] * len(cells), [0.0] * len(cells)
    with open(os.path.join(out, "requests.jsonl"), encoding="utf-8") as f:
        for line in map(json.loads, f):
            if line.get("cell") is None or "ids" not in line:
                continue
            k, steps = line["cell"], line["speculative_decoding"]
            kinds = [part["drafter"] for part in cells[k].get("parts") or []] or [cells[k]["drafter"]]
            drafted = steps["per_step_drafted"]
            parts = steps.get("per_step_part") or [0] * len(drafted)
            tokens[k] += len(line["ids"])
            for n, part in zip(drafted, parts):
                cost[k] += price(costs, n + 1) + (n * args.draft_cost if kinds[max(part or 0, 0)] == "model" else 0)
    print("| cell | tokens per cost |\n|---|--:|")
    for k, cell in enumerate(cells):
        options = "".join(f", {key.split('.')[1]} {cell['cell'][key]}" for key in ("draft.length", "draft.k", "draft.costs")
                          if cell["cell"].get(key))
        print(f"| {cell['drafter']}: {words(cell)}{options} | {tokens[k] / cost[k]:.3f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wager", default="build/release/wager")
    parser.add_argument("--levels", default="avx2,avx512")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--out", default="build/results/auto-regret")
    parser.add_argument("--half-width", type=float, default=0.03)
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--below", type=float, default=0.97)
    parser.add_argument("--share", type=float, default=0.95)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--by-steps", action="store_true")
    parser.add_argument("--costs", default="1")
    parser.add_argument("--draft-cost", type=float, default=0)
    parser.add_argument("config", nargs="+")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    if args.by_steps:
        for config in args.config:
            by_steps(args, config)
        return 0
    missed = 0
    print("| experiment | level | threads | cell | speed-up | of the best fixed | runs, disturbed |")
    print("|---|---|--:|---|--:|--:|--:|")
    for config in args.config:
        for level in args.levels.split(","):
            for threads in args.threads.split(","):
                for name, value, half, share, disturbed, runs in measure(args, config, level, int(threads)):
                    low = value + half < args.below or (share is not None and share + half < args.share)
                    missed += low
                    print(f"| {os.path.splitext(os.path.basename(config))[0]} | {level} | {threads} | {name} | {value:.2f} ± {half:.2f}"
                          f"{' **low**' if low else ''} | {'-' if share is None else f'{share:.2f}'} | {runs}, {disturbed} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
