#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The regret of the drafter `auto`: every cell of `auto` in some experiments, at kernel levels and thread counts, against plain
decoding and against the fastest fixed setting of its group (summary.json: speedup), until both half-widths are at most --half-width
or the time is over. The first run of an experiment has all of its cells; the later ones, each with another seed (and other prompts, where
the experiment shuffles them), have the cells of `auto` and the two fastest settings beside each. Next is always the experiment, level and thread
count whose interval is widest. A ratio is one of totals over the prompts that a run asked in both cells, its interval from how prompts differ in it;
runs are combined with weights 1 / half-width^2, their spread counted where it is larger. Everything is kept in --out: called again, it goes on, and
--minutes 0 prints the table of what is there. A Markdown table on standard output, what it runs on standard error.

usage: tools/auto_regret.py [--wager PROGRAM] [--levels avx2,avx512] [--threads 1,2] [--out DIR] [--half-width 0.03] [--minutes 90]
                            [--below 0.97] [--share 0.95] [--beside] [--set A.B=V]... CONFIG...   (paths of --set: from the config's folder)
With --beside another program takes a core and reads memory meanwhile, in stretches of two seconds on average between pauses as long.
With --by-steps nothing is timed: the steps of a run are priced, each pass by --costs (of 1, 2, ... rows; the last slope goes on) and each
drafted token of a model by --draft-cost, and the table has tokens per cost of every cell, plain decoding being 1. Reading the prompt, and
passes of a draft model after which no token was drafted, are left out.
usage: tools/auto_regret.py --by-steps --costs 1/1.1/1.33 --draft-cost 0.1 [--wager PROGRAM] [--out DIR] [--set A.B=V]... CONFIG
Exit status: 0, both bounds hold everywhere; 1, a cell is below one of them; 2, a run failed; 3, a half-width is still too large.
Run it on a machine that does nothing else. drafters.json needs what results/run-all.sh prepares. An experiment without `auto` has no row."""
import arguments
import itertools
import json
import math
import os
import subprocess
import sys
import time


BESIDE = """import random, time
data = bytearray(64 << 20)
while True:
    end = time.monotonic() + random.expovariate(0.5)
    while time.monotonic() < end:
        data.count(1)
    time.sleep(random.expovariate(0.5))
"""


def run(args, config, level, threads, attempt, sets=()):
    """The summary of a new run, in a folder of its own."""
    out = folder(args, config, level, threads, attempt)
    done = finished(out)
    if done:
        return done
    command = [os.path.abspath(args.wager), "run", os.path.basename(config), "--resume", "--out", os.path.abspath(out), "--threads",
               str(threads), "--set", f"seed={7 + attempt}"]
    for value in [*args.set, *sets]:
        command += ["--set", value]
    print(time.strftime("%H:%M:%S"), f"WG_CPU={level}", " ".join(word if len(word) < 80 else word[:80] + "..." for word in command), file=sys.stderr)
    done = subprocess.run(command, cwd=os.path.dirname(os.path.abspath(config)), env={**os.environ, "WG_CPU": level},
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        print(f"auto_regret: {done.stderr.strip() or command}", file=sys.stderr)
        sys.exit(2)
    return finished(out)


def finished(out):
    """The summary of a run that is whole, or None."""
    try:
        with open(os.path.join(out, "summary.json"), encoding="utf-8") as f:
            summary = json.load(f)
        return summary if summary["complete"] else None
    except OSError:
        return None


def name_of(config):
    return os.path.splitext(os.path.basename(config))[0]


def folder(args, config, level, threads, attempt):
    return os.path.join(args.out, f"{name_of(config)}-{level}-{threads}-{'beside-' * args.beside}{attempt}")


def words(cell):
    """What distinguishes a cell, for people."""
    of = cell["cell"].get("draft.of", "")
    kinds = "|".join(part.strip("{}").split(":")[0] for part in of.split("|")) if of else cell["drafter"]
    return f"{kinds}, {cell['rule']}, T = {cell['temperature']:g}"


def expand(sweep):
    """The cells of a sweep, in the order of a run (by name of what is set, the last one fastest): {dotted path: value}."""
    return [dict(zip(sorted(block), values)) for block in (sweep if isinstance(sweep, list) else [sweep])
            for values in itertools.product(*(block[name] for name in sorted(block)))]


def totals(out, cells):
    """What a run decoded: for each cell {prompt: [milliseconds, tokens after the first]}."""
    of = [{} for _ in range(cells)]
    with open(os.path.join(out, "requests.jsonl"), encoding="utf-8") as f:
        for line in map(json.loads, f):
            if line["cell"] is not None:
                total = of[line["cell"]].setdefault(line["prompt"], [0, 0])
                total[0] += line["decode_ms"]
                total[1] += line["tokens"] - 1
    return of


def ratio(a, b):
    """How many times as fast as b a is, and the half-width of its interval of 95 % (delta method, prompts in both cells are pairs)."""
    prompts = a.keys() & b.keys()
    (ms_a, n_a), (ms_b, n_b) = ([sum(x[p][i] for p in prompts) for i in (0, 1)] for x in (a, b))
    value = ms_b / n_b / (ms_a / n_a)
    errors = [(b[p][0] - ms_b / n_b * b[p][1]) / ms_b - (a[p][0] - ms_a / n_a * a[p][1]) / ms_a for p in prompts]
    return value, 1.96 * value * math.sqrt(sum(e * e for e in errors) * len(errors) / max(len(errors) - 1, 1))


def combine(series):
    """Mean and half-width of independent runs [(value, half-width), ...]: wider where runs differ by more than their half-widths say
    (Birge 1932), as beside a load, which is one and the same for a part of a run."""
    weights = [1 / max(half, 1e-6) ** 2 for _, half in series]
    total = sum(weights)
    mean = sum(w * v for w, (v, _) in zip(weights, series)) / total
    excess = 1.96 ** 2 * sum(w * (v - mean) ** 2 for w, (v, _) in zip(weights, series)) / max(len(series) - 1, 1)
    return mean, (max(excess, 1) / total) ** 0.5


class Measured:
    """An experiment at a level and a number of threads: the speed-ups of its cells, by what a cell sets."""

    def __init__(self, args, config, level, threads):
        self.args, self.config, self.level, self.threads = args, config, level, threads
        with open(config, encoding="utf-8") as f:
            self.json = json.load(f)
        self.cells = expand(self.json["sweep"])
        self.of, self.runs, self.seconds = {}, 0, 0  # of: key -> [summary's cell of each run, with its totals]

    def wanted(self):
        """The cells of the next run: all, or those of `auto` and the two fastest settings beside each."""
        if not self.of:
            return self.cells
        keep = []
        for key in self.autos():
            rivals = sorted(self.rivals(key), key=lambda k: -self.speed(k)[0])
            keep += [key] + rivals[:2]
        return [json.loads(key) for key in dict.fromkeys(keep)]

    def autos(self):
        return [k for k, runs in self.of.items() if runs[0]["drafter"].startswith("auto") and runs[0]["speedup"]]

    def rivals(self, key):
        own = self.of[key][0]
        return [k for k, runs in self.of.items()
                if runs[0]["speedup"] and not runs[0]["drafter"].startswith(("auto", "synthetic")) and runs[0]["rule"] == own["rule"]
                and runs[0]["temperature"] == own["temperature"] and runs[0]["group"] == own["group"]]

    def go_on(self):
        """One more run."""
        cells = self.wanted()
        sets = [] if not self.of else ["sweep=" + json.dumps([{k: [v] for k, v in cell.items()} for cell in cells])]
        if self.of and self.json["prompts"].get("shuffle"):
            sets.append(f"prompts.shuffle={self.json['prompts']['shuffle'] + self.runs}")
        summary = run(self.args, self.config, self.level, self.threads, self.runs, sets)
        if len(summary["cells"]) != len(cells):
            sys.exit(f"auto_regret: {self.config}: {len(summary['cells'])} cells, not {len(cells)}; another --out?")
        each = totals(folder(self.args, self.config, self.level, self.threads, self.runs), len(cells))
        for cell, measured, total in zip(cells, summary["cells"], each):
            kind = cell.get("draft", {}).get("kind", measured["drafter"])
            if measured["drafter"] != kind or measured["temperature"] != cell.get("sampling.temperature", measured["temperature"]):
                sys.exit(f"auto_regret: {self.config}: its cells are not in the order of its sweep")
            self.of.setdefault(json.dumps(cell, sort_keys=True), []).append({**measured, "run": self.runs, "total": total})
        self.runs += 1
        self.seconds = summary["seconds"]

    def speed(self, key):
        """The speed-up over plain decoding and its half-width."""
        each = []
        for cell in self.of[key]:
            low, high = cell["speedup_ci"] or (0, 2 * cell["speedup"])
            each.append((cell["speedup"], (high - low) / 2))
        return combine(each)

    def share(self, key):
        """The speed as a share of the fastest setting's, plain decoding's included, its half-width, and that setting's name."""
        best = max(self.rivals(key), key=lambda k: self.speed(k)[0], default=None)
        if best is None or self.speed(best)[0] <= 1:
            return *self.speed(key), "plain"
        both = {cell["run"]: cell["total"] for cell in self.of[best]}
        return *combine([ratio(cell["total"], both[cell["run"]]) for cell in self.of[key] if cell["run"] in both]), self.of[best][0]["drafter"]

    def width(self):
        """The largest half-width of what is asked."""
        return max((max(self.speed(k)[1], self.share(k)[1]) for k in self.autos()), default=0) if self.of else math.inf

    def rows(self):
        for key in self.autos():
            value, half = self.speed(key)
            share, wide, best = self.share(key)
            disturbed = sum(bool(cell["disturbed"]) for cell in self.of[key])
            low = value < self.args.below or share < self.args.share
            verdict = "open" if max(half, wide) > self.args.half_width else "**low**" if low else "holds"
            yield verdict, (f"| {name_of(self.config)} | {self.level} | {self.threads} | {words(self.of[key][0])} | {value:.2f} ± {half:.2f} | "
                            f"{share:.2f} ± {wide:.2f} of {best} | {verdict} | {len(self.of[key])}, {disturbed} |")


def measure(args):
    """Runs until every interval is narrow enough or the time is over, then prints the table. The exit status."""
    begin, verdicts = time.time(), []
    todo = [Measured(args, config, level, int(threads))
            for config in args.config for level in args.levels.split(",") for threads in args.threads.split(",")]
    for m in todo:
        while finished(folder(args, m.config, m.level, m.threads, m.runs)):
            m.go_on()
    while todo:
        at = max(todo, key=lambda m: (m.width(), -m.runs))
        if at.width() <= args.half_width or 60 * args.minutes - (time.time() - begin) <= at.seconds / 2:
            break
        at.go_on()
    print("| experiment | level | threads | cell | speed-up | of the best fixed | | runs, disturbed |")
    print("|---|---|--:|---|--:|--:|---|--:|")
    for m in todo:
        for verdict, row in m.rows() if m.of else []:
            verdicts.append(verdict)
            print(row)
    unmeasured = sum(not m.of for m in todo)
    print(f"{verdicts.count('holds')} hold, {verdicts.count('**low**')} low, {verdicts.count('open')} open, {unmeasured} not begun; "
          f"{(time.time() - begin) / 60:.0f} minutes", file=sys.stderr)
    return 1 if "**low**" in verdicts else 3 if "open" in verdicts or unmeasured else 0


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
    out = folder(args, config, args.levels.split(",")[0], 1, 0)
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
    parser = arguments.Parser(description=__doc__.splitlines()[0])
    parser.add_argument("--wager", default="build/release/wager")
    parser.add_argument("--levels", default="avx2,avx512")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--out", default="build/results/auto-regret")
    parser.add_argument("--half-width", type=float, default=0.03)
    parser.add_argument("--minutes", type=float, default=90)
    parser.add_argument("--below", type=float, default=0.97)
    parser.add_argument("--share", type=float, default=0.95)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--beside", action="store_true")
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
    other = subprocess.Popen([sys.executable, "-c", BESIDE]) if args.beside else None
    try:
        return measure(args)
    finally:
        if other:
            other.kill()


if __name__ == "__main__":
    sys.exit(main())
