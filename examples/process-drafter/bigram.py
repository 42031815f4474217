#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A process drafter (docs/process-drafter.md): proposes the token that followed the last one before, as a chain of K tokens.

    wager generate -m TARGET.gguf -p "..." --draft "process:command=python3 examples/process-drafter/bigram.py 4"
"""
import json
import sys

k = int(sys.argv[1]) if len(sys.argv) > 1 else 4
texts = {}  # request -> tokens so far
after = {}  # request -> {token: the token that followed it last}

for line in sys.stdin:
    message = json.loads(line)
    if "forget" in message:
        texts.pop(message["forget"], None)
        after.pop(message["forget"], None)
        continue
    text = texts.setdefault(message["request"], [])
    follows = after.setdefault(message["request"], {})
    for token in message["tokens"]:
        if text:
            follows[text[-1]] = token
        text.append(token)
    draft, last = [], text[-1]
    while len(draft) < min(k, message["room"], message["nodes"]) and last in follows:
        last = follows[last]
        draft.append(last)
    print(json.dumps({"tokens": draft}), flush=True)
