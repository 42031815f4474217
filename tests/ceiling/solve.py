#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the fixture of ceilings, tests/golden/ceiling.json: random pairs of p and q on small trees, and for each the optimum
of the linear program of ceiling.py with its certificate. Needs scipy (HiGHS).

  solve.py FILE     (a few minutes of one core)"""
import json
import random
import sys

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from ceiling import Case

GRAIN = 64  # weights are whole numbers of about this sum, so that the fixture is exact
# vocabulary, children at each depth, pairs: sizes at which the prover enumerates every rule in a second
SHAPES = [(3, [1, 1], 12), (3, [1, 1, 1], 12), (4, [1, 1], 12), (3, [2], 12), (4, [2], 12), (4, [3], 12), (3, [2, 1], 12),
          (3, [2, 2], 12), (4, [2, 1], 12), (4, [2, 2], 6), (4, [3, 1], 6), (3, [2, 1, 1], 6)]
STYLES = ['flat', 'peaked', 'zeros', 'near', 'mixed', 'free']


def row(rng, style, vocab, of=None):
    if style == 'flat':
        weights = [rng.uniform(0.5, 1) for _ in range(vocab)]
    elif style == 'peaked':
        weights = [rng.random() ** 4 + 0.02 for _ in range(vocab)]
    elif style == 'near' and of:
        weights = [max(w + rng.choice((-6, 0, 6)), 1) / GRAIN for w in of]
    else:
        weights = [rng.random() for _ in range(vocab)]
    if style == 'zeros':
        kept = rng.randrange(vocab)
        weights = [w if x == kept or rng.random() < 0.7 else 0 for x, w in enumerate(weights)]
    return [max(round(w / sum(weights) * GRAIN), int(w > 0)) for w in weights]


def tables(rng, style, vocab, depth):
    texts = sum(vocab ** i for i in range(depth + 1))
    p, q = [], []
    for _ in range(texts):
        s = rng.choice(STYLES[:4]) if style == 'mixed' else style
        p.append(row(rng, s, vocab))
        q.append(row(rng, s, vocab, p[-1]))
    return p, q


def solve(case):
    """(value of the program, m, variables)."""
    trees = case.trees()
    nodes = sum(case.vocab ** i for i in range(case.depth + 1))
    words = [w for n in range(1, case.depth + 2) for w in case.texts(n) if case.mass(w) > 0]
    leaves = [w for w in words if case.length(w) == case.depth + 1]
    place = {w: i for i, w in enumerate(words)}
    equal, most = ([], [], []), ([], [], [])  # rows, columns, values

    def put(to, row_, column, value):
        for part, number in zip(to, (row_, column, value)):
            part.append(number)

    gain = []
    for t, (texts, _) in enumerate(trees):
        for a in sorted(set(texts)):
            put(equal, t, len(gain), 1)
            put(most, a, len(gain), 1)  # at most what the target has there: F(m + 1) = F(m), so m >= 0 loses nothing
            gain.append(case.length(a) + 1)
    first, rhs = len(gain), [u for _, u in trees]
    for w, i in place.items():
        put(most, case.before(w), first + i, -case.mass(w))
    for x in leaves:
        w = x
        while w:
            put(equal, len(rhs), first + place[w], 1)
            w = case.before(w)
        rhs.append(1)
    size = first + len(words)
    if size > 1000000:
        raise SystemExit(f'{size} variables; the limit is a million')
    cost = np.concatenate([-np.array(gain, float), np.zeros(len(words))])
    tight = dict(primal_feasibility_tolerance=1e-10, dual_feasibility_tolerance=1e-10)
    done = linprog(cost, A_eq=matrix(equal, len(rhs), size), b_eq=rhs, A_ub=matrix(most, nodes, size), b_ub=np.zeros(nodes),
                   method='highs', options=tight)
    if done.status:
        raise SystemExit(done.message)
    return -done.fun, [-float(m) for m in done.ineqlin.marginals], size


def matrix(entries, rows, columns):
    r, c, v = entries
    return coo_matrix((v, (r, c)), shape=(rows, columns))


def main():
    out, most, worst = [], 0, 0
    for vocab, width, pairs in SHAPES:
        rng = random.Random(f'{vocab} {width}')
        cases = []
        for n in range(pairs):
            p, q = tables(rng, STYLES[n % len(STYLES)], vocab, len(width))
            entry = dict(p=p, q=q)
            for law in ('iid', 'without_replacement'):
                case = Case(vocab, width, law, p, q)
                value, m, size = solve(case)
                m = [round(u, 9) for u in m]
                ceiling = case.bound(m)
                if abs(ceiling - value) > 2e-8:
                    raise SystemExit(f'{vocab} {width} {law} case {n}: the program says {value}, its certificate {ceiling}')
                most, worst = max(most, size), max(worst, abs(ceiling - value))
                entry[law] = dict(ceiling=ceiling, certificate=m)
            cases.append(entry)
        out.append(dict(vocab=vocab, width=width, cases=cases))
        print(vocab, width, 'variables up to', most, 'program against certificate', worst, flush=True)
    with open(sys.argv[1], 'w') as f:
        f.write('[\n' + ',\n'.join(
            '{"vocab": %d, "width": %s, "cases": [\n%s\n]}' % (s['vocab'], json.dumps(s['width']), ',\n'.join(
                json.dumps(c, separators=(',', ':')) for c in s['cases'])) for s in out) + '\n]\n')


if __name__ == '__main__':
    main()
