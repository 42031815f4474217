#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares selections of one of two distinct siblings (verify/pair_selection.h) on random pairs of p and q: how much of alpha*
each loses in the mean, at most, and in how many pairs. Needs numpy.

  selections.py [SEED]     (some seconds of one core)"""
import sys

import numpy as np

SIZES = [(3, 100), (4, 100), (6, 100), (8, 100), (16, 100), (32, 10), (64, 10)]  # tokens, pairs of each kind
KINDS = ['flat', 'peaked', 'near', 'zipf', 'sparse', 'heavy']


def rows(rng, kind, vocab):
    if kind == 'flat':
        p, q = rng.random(vocab) + .5, rng.random(vocab) + .5
    elif kind == 'peaked':
        p, q = rng.random(vocab) ** 6 + 1e-3, rng.random(vocab) ** 6 + 1e-3
    elif kind == 'near':
        p = rng.random(vocab) ** 3 + 1e-3
        q = p * np.exp(.5 * rng.standard_normal(vocab))
    elif kind == 'zipf':
        rank = -1.2 * np.log(1 + rng.permutation(vocab))
        p = np.exp(rank + .7 * rng.standard_normal(vocab))
        q = np.exp(rank * rng.choice([.8, 1, 1.3]) + .7 * rng.standard_normal(vocab))
    elif kind == 'sparse':
        p, q = rng.dirichlet(np.full(vocab, .3)), rng.dirichlet(np.full(vocab, .3))
    else:
        p, q = rng.random(vocab) ** 2 + 1e-3, rng.random(vocab) * .05 / vocab
        q[rng.integers(vocab)] = 1
    p, q = np.maximum(p, 1e-12), np.maximum(q, 1e-12)
    return p / p.sum(), q / q.sum()


def pairs(q):
    """w(a, b); tokens in ascending order of p/q."""
    odds = q / np.array([q[:a].sum() + q[a + 1:].sum() for a in range(len(q))])
    w = np.outer(q, odds) + np.outer(odds, q)
    np.fill_diagonal(w, 0)
    return w


def inside(w):
    """f of every prefix."""
    return np.cumsum(np.cumsum(w, 0), 1).diagonal() / 2


def optimum(p, w):
    return 1 - max(0, (inside(w) - np.cumsum(p)).max())


def rounds(p, q):
    kept, left = np.minimum(p, q), np.maximum(p - q, 0)
    total = kept.sum()
    for x in np.nonzero(q > kept)[0] if left.sum() > 1e-15 else []:
        second = q / (q.sum() - q[x])
        second[x] = 0
        total += (q[x] - kept[x]) * np.minimum(left / left.sum(), second).sum()
    return total


def even(p, w):
    """The law when each token, best first, takes the same part of all its pairs with worse ones."""
    s = np.zeros(len(p))
    for a in reversed(range(len(p))):
        below = w[a, :a].sum()
        part = min(1, max(0, (p[a] - s[a]) / below)) if below > 0 else 0
        s[a] += part * below
        s[:a] += (1 - part) * w[a, :a]
    return s


def worst_first(p, w):
    """The same, but each fills what it wants with its worst partners first."""
    s = np.zeros(len(p))
    for a in reversed(range(len(p))):
        want = max(p[a] - s[a], 0)
        for b in range(a):
            taken = min(want, w[a, b])
            want -= taken
            s[a] += taken
            s[b] += w[a, b] - taken
    return s


def divided(p, w, levels, tightest=True):
    """The law by divisions, after the prefix with the least room or in the middle."""
    n = len(p)
    if n < 2 or levels == 0:
        return even(p, w)
    f, slack = inside(w), np.cumsum(p) - inside(w)
    between = np.cumsum(w.sum(1)) - 2 * f
    room = np.where(between[:-1] > 1e-300, slack[:-1] / np.maximum(between[:-1], 1e-300), 9)
    k = room.argmin() + 1 if tightest else n // 2
    part = min(1, max(0, room[k - 1]))
    low, high = part * w[:k, k:].sum(1), (1 - part) * w[k:, :k].sum(1)
    return np.concatenate([low + divided(p[:k] - low, w[:k, :k], levels - 1, tightest),
                           high + divided(p[k:] - high, w[k:, k:], levels - 1, tightest)])


def main():
    rng = np.random.default_rng(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    lost = {}
    for vocab, count in SIZES:
        for kind in KINDS * count:
            p, q = rows(rng, kind, vocab)
            order = np.argsort(p / q, kind='stable')
            p, q = p[order], q[order]
            w = pairs(q)
            kept = {'two rounds of rejection': rounds(p, q)}
            for name, law in (('best first, an even part', even(p, w)), ('best first, worst partners', worst_first(p, w)),
                              ('divided in the middle', divided(p, w, 99, False)), ('divided at the tightest', divided(p, w, 99)),
                              ('the same, 8 levels', divided(p, w, 8))):
                kept[name] = np.minimum(p, law).sum()
            for name, k in kept.items():
                lost.setdefault(name, []).append(optimum(p, w) - k)
    print(f'{"":26} {"mean":>9} {"most":>9} {"pairs":>6} of {len(lost["the same, 8 levels"])}')
    for name, v in lost.items():
        print(f'{name:26} {np.mean(v):9.6f} {np.max(v):9.5f} {sum(x > 1e-9 for x in v):6}')


if __name__ == '__main__':
    main()
