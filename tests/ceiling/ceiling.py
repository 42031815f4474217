#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The most tokens that a lossless rule can emit in a step: E*[tokens], for a law of draft trees and a target's law.

What a rule does. From a draft tree T it emits a text w = a y: a is the text of a node of T (the accepted path), y any token.
Afterwards the text continues with the target's law P. So with D = depth + 1 the rule is lossless exactly if
    sum over the prefixes w of x of  Pr(w emitted) P(x | w)  =  P(x)      for every text x of D tokens.
(Sun et al. 2024, "Block Verification Accelerates Speculative Decoding", section 4, state it for chains; it needs nothing of the
chain. Rules that change the law of later steps are not covered.)

The linear program. With s(w) = Pr(w emitted) / P(w), the probability that the step ends at w given that the text goes that way,
the constraint is sum over the prefixes w of x of s(w) = 1. T matters only through the set of its nodes' texts. Variables
g(T, a) >= 0, the mass of drawing T and accepting a in T, and s(w) >= 0 for P(w) > 0:
    maximise   sum g(T, a) (|a| + 1)
    subject to sum over a of g(T, a) = Q(T)                       for every T
               sum over T of g(T, a) = sum over y of P(a y) s(a y)   for every a
               sum over the prefixes w of x of s(w) = 1           for every x with P(x) > 0.

The certificate. For any numbers m(a), one for each text that a node may have, no rule emits more tokens than
    F(m) = sum over T of Q(T) max over a in T of (|a| + 1 - m(a))  +  N(root),
    N(w) = max(P(w) m(w without its last token), sum over y of N(w y)), N(root) = the sum alone, at length D the first alone
(the dual with the other variables eliminated). F is computed here from m with sums alone, so a ceiling needs no trust in a
solver: solve.py finds m, and checks that the program's value is F(m).

  ceiling.py FILE   recomputes F(m) of every case of the fixture and fails where it is not the recorded ceiling"""
import json
import math
import sys


class Case:
    """Tables of p and q: rows after every text of fewer than D tokens. Text 0 is empty; text i followed by x is i V + 1 + x."""

    def __init__(self, vocab, width, law, p, q):
        self.vocab, self.width, self.law, self.depth = vocab, width, law, len(width)
        self.p, self.q = [normal(row) for row in p], [normal(row) for row in q]
        self.memo = {}

    def after(self, text, token):
        return text * self.vocab + 1 + token

    def before(self, text):
        return (text - 1) // self.vocab

    def length(self, text):
        n = 0
        while text:
            text, n = self.before(text), n + 1
        return n

    def texts(self, length):
        """The texts of this length."""
        first = sum(self.vocab ** i for i in range(length))
        return range(first, first + self.vocab ** length)

    def mass(self, text):
        """P(text)."""
        if not text:
            return 1.0
        before = self.before(text)
        return self.mass(before) * self.p[before][text - before * self.vocab - 1]

    def trees(self, text=0, depth=0, times=1):
        """[(nodes' texts, probability)] of what is drafted at a text and below it, by so many nodes that have this text."""
        key = text, times
        if key not in self.memo:
            self.memo[key] = [((text,), 1.0)]
            if depth < self.depth:
                self.memo[key] = self.trees_below(text, depth, times)
        return self.memo[key]

    def trees_below(self, text, depth, times):
        draws = {(0,) * self.vocab: 1.0}  # how often each token was drawn: probability
        for _ in range(times):
            draws = convolved(draws, self.children(self.q[text], self.width[depth]))
        merged = {}
        for counts, probability in draws.items():
            parts = [((text,), probability)]
            for x, n in enumerate(counts):
                if n:
                    below = self.trees(self.after(text, x), depth + 1, n)
                    parts = [(a + b, u * v) for a, u in parts for b, v in below]
            for nodes, u in parts:
                merged[nodes] = merged.get(nodes, 0.0) + u
        return sorted(merged.items())

    def children(self, q, k):
        """{counts of tokens: probability} of the k children of a node."""
        now = {(0,) * self.vocab: 1.0}
        for _ in range(k):
            then = {}
            for counts, u in now.items():
                open_ = [0 if self.law == 'without_replacement' and counts[x] else q[x] for x in range(self.vocab)]
                if not any(open_):
                    then[counts] = then.get(counts, 0.0) + u
                for x in range(self.vocab):
                    if open_[x]:
                        more = counts[:x] + (counts[x] + 1,) + counts[x + 1:]
                        then[more] = then.get(more, 0.0) + u * open_[x] / math.fsum(open_)
            now = then
        return now

    def bound(self, m):
        """F(m)."""
        first = math.fsum(u * max(self.length(a) + 1 - m[a] for a in {*nodes}) for nodes, u in self.trees())
        n = {}
        for length in range(self.depth + 1, 0, -1):
            for w in self.texts(length):
                n[w] = self.mass(w) * m[self.before(w)]
                if length <= self.depth:
                    n[w] = max(n[w], math.fsum(n[self.after(w, y)] for y in range(self.vocab)))
        return first + math.fsum(n[w] for w in self.texts(1))


def normal(row):
    return [v / sum(row) for v in row]


def convolved(a, b):
    out = {}
    for x, u in a.items():
        for y, v in b.items():
            z = tuple(i + j for i, j in zip(x, y))
            out[z] = out.get(z, 0.0) + u * v
    return out


def main():
    shapes, cases, failed = json.load(open(sys.argv[1])), 0, 0
    for shape in shapes:
        for at, entry in enumerate(shape['cases']):
            for law in ('iid', 'without_replacement'):
                known = entry[law]
                bound = Case(shape['vocab'], shape['width'], law, entry['p'], entry['q']).bound(known['certificate'])
                cases += 1
                if not abs(bound - known['ceiling']) <= 1e-12:
                    failed += 1
                    print(f'FAILED V = {shape["vocab"]}, widths {shape["width"]}, {law}, case {at}: the certificate proves '
                          f'{bound!r}; recorded is {known["ceiling"]!r}')
    print(f'{cases} certificates, {failed} failed')
    sys.exit(1 if failed or not cases else 0)


if __name__ == '__main__':
    main()
