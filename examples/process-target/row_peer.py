# SPDX-License-Identifier: MIT
"""The row protocol of process targets (docs/process-target.md) in Python: serve(model) answers wager's requests from standard
input until it ends. Standard output belongs to the protocol: what a model prints goes to standard error.

A model has vocab, context, layers and dim (0 and 0: no hidden states) and name; and ask(parts, logits, taps), which fills arrays
(rows, vocab) and, where hidden states are wanted, (rows, taps, dim). taps is None where they are not; model.tap lists which."""
import collections
import mmap
import os
import struct
import sys

import numpy as np

MAGIC, VERSION = 0x53574F52, 1
HELLO, OPEN, ASK, FAILED = 1, 2, 3, 4
SHARED = 3  # the number of the descriptor of the shared memory

# Rows of one sequence. It keeps `kept` tokens of its text, then rows `path` of its last request, and nothing else; `rows` is (n, 4):
# token, parent (a row of these, or -1: what is kept), position, row of its logits (or -1: none are wanted).
Part = collections.namedtuple("Part", "sequence kept path rows")


def parts_of(words):
    at = 0
    while at < len(words):
        sequence, kept, path_n, n = words[at:at + 4]
        rows = at + 4 + path_n
        yield Part(int(sequence), int(kept), words[at + 4:rows], words[rows:rows + 4 * n].reshape(n, 4))
        at = rows + 4 * n


def map_memory(model, words, most_rows):
    """Of OPEN: the arrays of logits and of hidden states in the shared memory."""
    size, taps_at = struct.unpack("<2Q", words[:4].tobytes())
    model.tap = [int(t) for t in words[5:5 + words[4]]]
    memory = mmap.mmap(SHARED, size)
    logits = np.ndarray((most_rows, model.vocab), np.float32, memory)
    taps = np.ndarray((most_rows, len(model.tap), model.dim), np.float32, memory, taps_at) if model.tap else None
    return logits, taps


def serve(model):
    requests, answers = os.fdopen(0, "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    logits = taps = None
    most_rows = 0

    def answer(kind, serial, words):
        answers.write(struct.pack("<4i", MAGIC, kind, serial, len(words)) + np.asarray(words, "<i4").tobytes())
        answers.flush()

    while True:
        header = requests.read(16)
        if len(header) < 16:
            return
        magic, kind, serial, n = struct.unpack("<4i", header)
        words = np.frombuffer(requests.read(4 * n), "<i4")
        if magic != MAGIC:
            sys.exit("the request does not begin with the protocol's word")
        try:
            if kind == HELLO:
                if words[0] != VERSION:
                    raise ValueError("version %d of the row protocol is not known" % words[0])
                most_rows = int(words[1])
                name = model.name.encode()[:60]
                name = np.frombuffer(name + bytes(-len(name) % 4), "<i4")
                answer(HELLO, serial, [VERSION, model.vocab, model.context, model.layers, model.dim, *name])
            elif kind == OPEN:
                logits, taps = map_memory(model, words, most_rows)
                answer(OPEN, serial, [])
            elif kind == ASK:
                parts = list(parts_of(words[2:]))
                model.ask(parts, logits, taps if words[0] else None)
                rows = sum(len(p.rows) for p in parts)
                answer(ASK, serial, [sum(int((p.rows[:, 3] >= 0).sum()) for p in parts), rows if words[0] else 0])
            else:
                raise ValueError("no request of kind %d is known" % kind)
        except Exception as e:  # the request fails with this text, and wager starts the program again
            text = ("%s: %s" % (type(e).__name__, e)).encode()[:1000]
            answer(FAILED, serial, np.frombuffer(text + bytes(-len(text) % 4), "<i4"))
