# SPDX-License-Identifier: MIT
"""arctic_check.py [REQUESTS]: `wager.shims.arctic` beside arctic-inference's own SuffixDecodingCache on the same streams, one
request after the other, drafts compared token by token. A development check; arctic_inference.suffix_decoding must be
importable (its package, or its csrc/suffix_decoding compiled with nanobind beside cache.py).

A draft that differs is counted under its reason:

  tie         both have the same score (the sum of their probabilities): equal counts, or equal sums of two matches
  explained   the scores differ as they must. A brute-force search of all matches gives theirs when a continuation's count is
              divided by all occurrences of what precedes it (also the one at the text's own end, which has no continuation
              yet), when matches and drafts share max_tree_depth tokens, and when the answer that is being written serves as a
              finished one; and it gives ours when the count is divided by the occurrences that have a continuation
  other       anything else, which fails the check"""

import heapq
import sys
import time
from collections import Counter

import numpy as np
from arctic_inference.suffix_decoding.cache import SuffixDecodingCache as Theirs

from wager.shims.arctic import SuffixDecodingCache as Ours

DEPTH = 64
REQUESTS, VOCAB, LENGTH = int(sys.argv[1]) if len(sys.argv) > 1 else 40, 500, 160


def stream(rng, memory):
    """A text that repeats pieces of itself and of earlier ones, as answers of agents do."""
    text = rng.integers(0, VOCAB, 20).tolist()
    while len(text) < LENGTH:
        source = text if rng.random() < 0.5 or not memory else memory[rng.integers(len(memory))]
        at, n = int(rng.integers(len(source))), int(rng.integers(3, 25))
        text += source[at : at + n] if rng.random() < 0.8 else rng.integers(0, VOCAB, 3).tolist()
    return text[:LENGTH]


def grown(texts, here, budget, settings, theirs, m):
    """The score of the tree that grows by its most probable node."""
    heap, score, n, order = [(-1.0, 0, 0, here)], 0.0, 0, 0
    while heap and n <= budget:
        p, _, depth, here = heapq.heappop(heap)
        n += depth > 0
        score -= p * (0 < depth and n <= budget)
        for token, q in continuations(texts, here, theirs, m + depth)[: None if theirs else 4]:
            if -p * q >= settings.get("min_token_prob", 0.1) - 1e-7:
                order += 1
                heapq.heappush(heap, (p * q, order, depth + 1, behind(texts, here, token)))
    return score, score


def chained(texts, here, budget, settings, theirs, m, p=1.0):
    """The least and the largest score of a chain that follows the most frequent token: among equal counts, any."""
    after = continuations(texts, here, theirs, m)
    if budget == 0 or not after or p * after[0][1] < settings.get("min_token_prob", 0.1) - 1e-7:
        return 0.0, 0.0
    p *= after[0][1]
    ends = [
        chained(texts, behind(texts, here, token), budget - 1, settings, theirs, m + 1, p)
        for token, q in after
        if q == after[0][1]
    ]
    return p + min(e[0] for e in ends), p + max(e[1] for e in ends)


def continuations(texts, here, theirs, depth):
    """(token, estimated probability) behind occurrences, the most frequent first."""
    after = Counter(texts[t][e] for t, e in here if e < len(texts[t]))
    below = len(here) if theirs else sum(after.values())
    return [] if theirs and depth >= DEPTH else [(token, count / below) for token, count in after.most_common()]


def behind(texts, here, token):
    return [(t, e + 1) for t, e in here if e < len(texts[t]) and texts[t][e] == token]


def expected(texts, context, settings, theirs):
    """The least and the largest of the best scores over all matches of the context's end in the texts."""
    found = [(t, e) for t, text in enumerate(texts) for e in range(1, len(text) + 1)]
    how, low, high = grown if settings.get("use_tree_spec") else chained, 0.0, 0.0
    for m in range(1, min(len(context) - theirs, DEPTH) + 1):
        found = [(t, e) for t, e in found if e >= m and texts[t][e - m] == context[-m]]
        if not found:
            break
        budget = min(settings["max_spec_tokens"], int(m * settings.get("max_spec_factor", 1.0) + 1e-6))
        least, most = how(texts, found, budget, settings, theirs, m)
        low, high = max(low, least), max(high, most)
    return low, high


def reason_of(a, b):
    return "tie" if abs(a.score - b.score) < 1e-4 * max(1, b.score) else "other"


def run(settings):
    rng, memory, answers = np.random.default_rng(5), [], []
    ours, theirs = Ours(DEPTH, vocab=VOCAB, context=1024, sequences=2), Theirs(DEPTH)
    counts = {"drafts": 0, "empty": 0, "same": 0, "tie": 0, "explained": 0, "other": 0}
    seconds = {"ours": 0.0, "theirs": 0.0}
    for number in range(REQUESTS):
        text = stream(rng, memory)
        memory.append(text)
        prompt, at = text[:40], 40
        for cache in (ours, theirs):
            cache.start_request(number, prompt)
        while at < LENGTH - 8:
            found = {}
            for name, cache in (("ours", ours), ("theirs", theirs)):
                start = time.process_time()
                found[name] = cache.speculate(number, text[max(0, at - 64) : at], **settings)
                seconds[name] += time.process_time() - start
            a, b = found["ours"], found["theirs"]
            reason = "same" if (a.token_ids, a.parents) == (b.token_ids, b.parents) else reason_of(a, b)
            if reason == "other":
                context = text[max(0, at - 64) : at]
                for draft, others, theirs_ in ((a, answers, 0), (b, [*answers, text[40:at]], 1)):
                    own, of_others = (expected(texts, context, settings, theirs_) for texts in ([text[:at]], others))
                    low, high = max(own[0], of_others[0]), max(own[1], of_others[1])
                    if not low - 1e-4 * max(1, low) <= draft.score <= high + 1e-4 * max(1, high):
                        print("other:", "theirs" if theirs_ else "ours", draft, low, high)
                        break
                else:
                    reason = "explained"
            counts[reason] += 1
            counts["drafts"] += 1
            counts["empty"] += not b.token_ids
            n = int(rng.integers(1, 6))
            for cache in (ours, theirs):
                start = time.process_time()
                cache.add_active_response(number, text[at : at + n])
                seconds["ours" if cache is ours else "theirs"] += time.process_time() - start
            at += n
        answers.append(text[40:at])
        for name, cache in (("ours", ours), ("theirs", theirs)):
            start = time.process_time()
            cache.stop_request(number)
            seconds[name] += time.process_time() - start
    tokens = REQUESTS * (LENGTH - 48)
    print(settings, counts, {k: f"{v / tokens * 1e6:.2f} us a token" for k, v in seconds.items()}, flush=True)
    return counts["other"] == 0


good = [
    run({"max_spec_tokens": 8}),
    run({"max_spec_tokens": 32, "max_spec_factor": 2.0, "min_token_prob": 0.3}),
    run({"max_spec_tokens": 16, "max_spec_factor": 1.0, "use_tree_spec": True}),
]
sys.exit(not all(good))
