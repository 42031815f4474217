#!/usr/bin/env python3
"""The null experiment: runs one config several times and counts how often `wager compare` finds a difference, where there is none.

usage: tests/program/null_experiment.py [-n RUNS] [--out DIR] [--wager PROGRAM] [--set A.B=V]... CONFIG

Every pair of runs is compared. A family is all cells of one comparison. Printed are the share of cells and of families that
are called faster or slower
  raw       by the 95 % interval of raw time per token over prompts (what the machine did between the runs is in it),
  relative  by the 95 % interval of the ratio of speed-ups over the own baselines,
  verdict   as compare prints it, and --fail-if-slower judges: with Holm's adjustment over the family (at most 5 % of families),
and by cell the standard deviations between runs of the logarithms of time per token and of speed-up. "Left" is the share of
the baselines' difference d that the ratio of speed-ups D keeps beyond its variance V over prompts: the root of
sum (D^2 - V) / sum d^2 over all pairs of cells, of logarithms (verdict.h assumes WG_DRIFT_LEFT). Runs that DIR has (default:
build/null/NAME) are kept, so an interrupted experiment goes on."""
import argparse
import itertools
import json
import math
import os
import statistics
import subprocess
import sys


def run_all(args, folders):
    """Runs the config into each folder that has no complete run."""
    for number, folder in enumerate(folders, 1):
        try:
            with open(folder + "/summary.json", encoding="utf-8") as file:
                if json.load(file)["complete"]:
                    continue
        except (OSError, ValueError, KeyError):
            pass
        print(f"run {number} of {len(folders)}: {folder}", file=sys.stderr)
        sets = [word for value in args.set for word in ("--set", value)]
        subprocess.run([args.wager, "run", args.config, "--out", folder, *sets], check=True, stdout=subprocess.DEVNULL)


def differs(interval):
    return interval is not None and not interval[0] <= 1 <= interval[1]


def compare_all(args, folders):
    """For each method the numbers of cells and of families called different; the numbers of both; sums of D^2 - V and d^2."""
    called = {"raw": [0, 0], "relative": [0, 0], "verdict": [0, 0]}
    cells = families = busy = 0
    beyond = drift = 0.0
    for a, b in itertools.combinations(folders, 2):
        done = subprocess.run([args.wager, "compare", a, b, "--json"], check=True, capture_output=True, text=True)
        answer = json.loads(done.stdout)
        pairs = [p for p in answer["pairs"] if p["verdict"] != "unknown"]
        cells, families, busy = cells + len(pairs), families + 1, busy + (len(answer["warnings"]) > 0)
        for p in pairs:
            beyond += math.log(p["speedup_ratio"]) ** 2 - p["standard_error"][0] ** 2
            drift += math.log(p["baseline_faster"]) ** 2
        flags = {
            "raw": [differs(p["faster_ci"]) for p in pairs],
            "relative": [differs(p["speedup_ratio_ci"]) for p in pairs],
            "verdict": [p["verdict"] != "undecided" for p in pairs],
        }
        for method, flag in flags.items():
            called[method][0] += sum(flag)
            called[method][1] += any(flag)
    return called, cells, families, busy, math.sqrt(max(0, beyond) / drift) if drift else math.nan


def print_spread(folders):
    """Standard deviations between runs, by cell, in per cent."""
    runs = []
    for folder in folders:
        with open(folder + "/summary.json", encoding="utf-8") as file:
            runs.append(json.load(file)["cells"])
    print("\ncell  time per token  speed-up   (standard deviation between runs, %)")
    for i in range(len(runs[0])):
        known = [r[i] for r in runs if r[i]["speedup"] and r[i]["tok_s"]]
        if len(known) > 1:
            time, gain = (100 * statistics.stdev(math.log(c[key]) for c in known) for key in ("tok_s", "speedup"))
            print(f"{i:4}  {time:14.1f}  {gain:8.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("config")
    parser.add_argument("-n", type=int, default=10, help="runs, at least 2 (10)")
    parser.add_argument("--out", help="folder of the runs")
    parser.add_argument("--wager", default="build/release/wager")
    parser.add_argument("--set", action="append", default=[], help="as of wager run")
    args = parser.parse_args()
    if args.n < 2:
        parser.error("-n: two runs at least are needed")
    out = args.out or "build/null/" + os.path.splitext(os.path.basename(args.config))[0]
    os.makedirs(out, exist_ok=True)
    folders = [f"{out}/run-{i:02}" for i in range(1, args.n + 1)]
    try:
        run_all(args, folders)
        called, cells, families, busy, left = compare_all(args, folders)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"null_experiment: {error}")
    if not cells:
        sys.exit("null_experiment: no cell has a verdict; give the config at least five prompts")
    print(f"{args.n} runs of {args.config}, {families} pairs of runs, {cells} pairs of cells; {busy} pairs with a warning\n")
    print("called different   by cell  by family")
    for method, (by_cell, by_family) in called.items():
        print(f"{method:<17} {by_cell / cells:8.3f} {by_family / families:10.3f}")
    print(f"\nleft of the baselines' difference: {left:.3f}")
    print_spread(folders)


if __name__ == "__main__":
    main()
