#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Another engine's verification rules against wager's golden vectors: five rules, written from docs/golden-vectors.md and the
papers alone, in exact arithmetic.

usage: check.py [FOLDER]      FOLDER: tests/golden/rules; exit 1 when a path differs"""
import json
import math
import pathlib
import sys
from fractions import Fraction


class Vector:
    def __init__(self, line):
        v = json.loads(line)
        self.law, self.options, self.want = v["law"], v["options"], (v["path"], v["next"])
        self.parent, self.token, self.qrow = v["parent"], v["token"], v["qrow"]
        self.p = [[Fraction(x) for x in row] for row in v["p"]]
        self.q = [[Fraction(x) for x in row] for row in v["q"]]
        self.u = {tuple(d[:4]): d[4] for d in v["draws"]}

    def children(self, node):
        return [i for i, parent in enumerate(self.parent) if parent == node]

    def uniform(self, kind, offset, index):
        return Fraction(self.u[kind, 0, offset, index])


def accepts(v, node, num, den):
    """True with probability min(1, num / den)."""
    return num > 0 if num >= den else v.uniform("accept", 0, node) * den < num


def pick(v, depth, weight):
    """The token whose running sum of weights first exceeds u times the total."""
    at, run = v.uniform("next", depth, 0) * sum(weight), Fraction(0)
    for x, w in enumerate(weight):
        run += w
        if w > 0 and at < run:
            return x


def walk(v, choose):
    """choose(node, depth) -> (child to descend to or None, next token)."""
    path = [0]
    while True:
        child, token = choose(path[-1], len(path) - 1)
        if child is None:
            return path, token
        path.append(child)


def greedy(v):
    def choose(node, depth):
        best = v.p[node].index(max(v.p[node]))
        return next((c for c in v.children(node) if v.token[c] == best), None), best
    return walk(v, choose)


def match(v):
    def choose(node, depth):
        row = v.p[node]
        token = pick(v, depth, row) if max(row) < 1 else row.index(1)
        return next((c for c in v.children(node) if v.token[c] == token), None), token
    return walk(v, choose)


def rounds(v):
    """Recursive rejection sampling (SpecInfer's, and without replacement): each sibling against the residual so far."""
    def choose(node, depth):
        r, drawn = v.p[node], []
        for c in v.children(node):
            x, mass = v.token[c], sum(r)
            if v.law == "fixed":
                q = [Fraction(int(y == x)) for y in range(len(r))]
            else:
                q = v.q[v.qrow[c]]
                if v.law == "without_replacement":
                    q = [Fraction(0) if y in drawn else w for y, w in enumerate(q)]
            of_q = sum(q)
            if accepts(v, c, r[x] * of_q, q[x] * mass):
                return c, None
            left = [max(a - b * mass / of_q, Fraction(0)) for a, b in zip(r, q)]
            r = left if sum(left) > 0 else r
            drawn.append(x)
        return None, r.index(max(r)) if sum(1 for w in r if w > 0) == 1 else pick(v, depth, r)
    return walk(v, choose)


def coupled(v):
    """The winner of exponential races on the lists that drafter and rule share; options: races=N lists."""
    lists = int(dict(o.split("=") for o in v.options.split(",") if o).get("races", 1))

    def choose(node, depth):
        times = [(-math.log1p(-v.u["race", n, depth, x]) / w, x) for n in range(lists) for x, w in enumerate(v.p[node]) if w > 0
                 and ("race", n, depth, x) in v.u]
        token = min(times)[1] if times else v.p[node].index(max(v.p[node]))
        return next((c for c in v.children(node) if v.token[c] == token), None), token
    return walk(v, choose)


RULES = {"greedy": greedy, "match": match, "rejection": rounds, "without_replacement": rounds, "coupled": coupled}


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2] / "tests/golden/rules")
    failed = 0
    for name, rule in RULES.items():
        lines = [Vector(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        bad = [i for i, v in enumerate(lines, 1) if tuple(map(lambda a, b: a == b, rule(v), v.want)) != (True, True)]
        print(f"{name}: {len(lines)} vectors, {len(bad)} differ" + (f" (lines {bad[:8]})" if bad else ""))
        failed += len(bad) + (not lines)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
