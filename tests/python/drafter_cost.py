# SPDX-License-Identifier: MIT
"""drafter_cost.py C_PROGRAM: microseconds of a drafter's round in Python above the same round in C
(tests/python/drafter_cost.c), with one token a round and with many. A development measurement: medians of nine
alternating repetitions, and in brackets the least of them, which other programs on the machine disturb least."""

import statistics
import subprocess
import sys
import time

import wager

TEXT = [(i * 7 + (i >> 4) * 3) % 97 for i in range(1 << 18)]


def python_round(kind, n, rounds):
    with wager.Drafter(kind, vocab=1000, context=64 + n * rounds + 64, k=4) as drafter:
        text = drafter.sequence(TEXT[:64])
        chunks = [TEXT[64 + i * n : 64 + (i + 1) * n] for i in range(rounds)]
        start = time.process_time_ns()
        for chunk in chunks:
            text.advance(chunk)
        return (time.process_time_ns() - start) / rounds


for kind in ("ngram", "suffix"):
    for n in (1, 4, 16, 64):
        ours, theirs = [], []
        for _ in range(9):
            ours.append(python_round(kind, n, 2000))
            theirs.append(float(subprocess.check_output([sys.argv[1], kind, str(n), "2000"])))
        median, least = ((of(ours) - of(theirs)) / 1000 for of in (statistics.median, min))
        print(
            f"{kind}, {n} tokens a round: C {statistics.median(theirs) / 1000:.2f} us, above it {median:.2f} us a round, "
            f"{median / n:.2f} us a token [{least / n:.2f}]"
        )
