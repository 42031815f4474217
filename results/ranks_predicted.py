#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Predicted milliseconds a token of models on ranks that are devices: from the latency and bandwidth of messages that
`wager bench comm --json` measured, and from numbers of the device that you give. Nothing here was measured on such devices.

    wager bench comm --ranks threads:2 --json >comm.jsonl
    results/ranks_predicted.py comm.jsonl --gb-s 3350 --tflops 400 --ranks 1,2,4,8

A pass costs the longer of reading a rank's weights and of its multiply-adds, and its joins: four a layer, one of embeddings, one of
logits, each a latency and the bytes of the other ranks. Speculation makes 1 + length rows a sequence and tau tokens a pass; drafts
are free (look-ups), and each is accepted with the same chance. --self-test compares with numbers worked out by hand."""
import argparse
import json

# layers, width, queries, keys and values, hidden, vocabulary
MODELS = {"8B": (32, 4096, 4096, 1024, 14336, 128256), "70B": (80, 8192, 8192, 1024, 28672, 128256)}


def weights(m):
    layers, dim, q, kv, hidden, vocab = m
    return layers * (2 * q * dim + 2 * kv * dim + 3 * hidden * dim) + vocab * dim  # of a pass: without the embedding


def joined(m):
    """Floats that ranks join for a row, and the number of joins of a pass."""
    layers, dim, q, _, hidden, vocab = m
    return layers * (q + dim + hidden + dim) + dim + vocab, 4 * layers + 2


def measured(lines):
    """Seconds of a small join, and bytes a second of a large one: 2 (n - 1) times its bytes pass through rank 0. ValueError:
    not the output of bench comm."""
    try:
        joins = sorted((r["bytes"], r["us"] * 1e-6, r["gb_s"] * 1e9) for r in map(json.loads, lines) if r["call"] == "join")
        return joins[0][1], joins[-1][2]
    except (ValueError, KeyError, TypeError, IndexError):
        raise ValueError("no joins are in it; expected the output of wager bench comm --json") from None


def pass_seconds(m, ranks, rows, o, latency, bandwidth):
    own = weights(m) / ranks
    compute = max(own * o.bytes / (o.gb_s * 1e9), 2 * own * rows / (o.tflops * 1e12))
    floats, joins = joined(m)
    messages = joins * latency + 2 * 4 * floats * rows * (ranks - 1) / ranks / bandwidth
    return compute + (messages if ranks > 1 else 0)


def tau(length, chance):
    return sum(chance**i for i in range(length + 1))


def token_ms(m, ranks, batch, length, o, latency, bandwidth):
    return pass_seconds(m, ranks, batch * (1 + length), o, latency, bandwidth) / tau(length, o.chance) * 1e3


def table(o, latency, bandwidth):
    print(f"*Predicted*, not measured: messages of {latency * 1e6:.1f} us and {bandwidth / 1e9:.2f} GB/s (measured by bench comm), "
          f"devices of {o.gb_s:g} GB/s and {o.tflops:g} TFLOP/s (given), {o.bytes:g} bytes a weight, drafts accepted with a chance of {o.chance:g}.\n")
    print("| model | ranks | batch | ms a token, no drafts | 4 drafts | best length | its ms | joins a token: none, 4 drafts |")
    print("|---|---|---|---|---|---|---|---|")
    for name, m in MODELS.items():
        for ranks in o.ranks:
            for batch in (1, 16, 64, 256):
                ms = [token_ms(m, ranks, batch, n, o, latency, bandwidth) for n in range(9)]
                best = min(range(9), key=ms.__getitem__)
                joins = joined(m)[1] if ranks > 1 else 0
                print(f"| {name} | {ranks} | {batch} | {ms[0]:.2f} | {ms[4]:.2f} | {best} | {ms[best]:.2f} | {joins}, "
                      f"{joins / tau(4, o.chance):.0f} |")


def self_test():
    m = (2, 4, 4, 2, 8, 16)  # 2 (2*16 + 2*8 + 3*32) + 64 = 352 weights; 2 (4 + 4 + 8 + 4) + 4 + 16 = 60 floats in 10 joins
    o = argparse.Namespace(bytes=1, gb_s=1e-6, tflops=1, chance=0.5)
    assert weights(m) == 352 and joined(m) == (60, 10)
    assert abs(pass_seconds(m, 1, 1, o, 1, 1) - 0.352) < 1e-12  # no message of one rank
    assert abs(pass_seconds(m, 2, 3, o, 0.01, 1000) - (0.176 + 0.1 + 0.72)) < 1e-12
    assert tau(0, 0.5) == 1 and tau(2, 0.5) == 1.75
    o.tflops = 1e-9  # 2 * 352 * 3 operations at 1000 a second
    assert abs(pass_seconds(m, 1, 3, o, 1, 1) - 2.112) < 1e-12
    lines = ['{"call":"join","bytes":8,"us":2,"gb_s":1}', '{"call":"join","bytes":4096,"us":9,"gb_s":3}',
             '{"call":"order","bytes":1,"us":1,"gb_s":9}']
    assert measured(lines) == (2e-6, 3e9)
    for read, text in ((measured, ["{}"]), (measured, []), (positive, "0"), (positive, "nan"), (chance, "1.1"), (numbers, "2,0")):
        try:
            read(text)
        except ValueError:
            continue
        raise AssertionError(f"{read.__name__} takes {text}")
    assert abs(joined(MODELS["8B"])[0] * 4 - (3.41e6 + 4 * (4096 + 128256))) < 5e3  # 3.41 MB a row, with embedding and logits
    print("ok")


def positive(text):
    if not 0 < float(text) < float("inf"):
        raise ValueError
    return float(text)


def chance(text):
    if not 0 <= float(text) <= 1:
        raise ValueError
    return float(text)


def numbers(text):
    if min(map(int, text.split(","))) < 1:
        raise ValueError
    return [int(n) for n in text.split(",")]


if __name__ == "__main__":
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("comm", nargs="?", help="output of wager bench comm --json")
    a.add_argument("--gb-s", type=positive, help="a device's memory bandwidth")
    a.add_argument("--tflops", type=positive, help="a device's products")
    a.add_argument("--bytes", type=positive, default=1.0625, help="of a weight")
    a.add_argument("--chance", type=chance, default=0.7, help="that a draft is accepted")
    a.add_argument("--ranks", type=numbers, default=[1, 2, 4, 8])
    a.add_argument("--self-test", action="store_true")
    o = a.parse_args()
    if o.self_test:
        self_test()
    elif not (o.comm and o.gb_s and o.tflops):
        a.error("the output of bench comm, --gb-s and --tflops are needed")
    else:
        try:
            with open(o.comm) as f:
                of = measured(f)
        except (OSError, ValueError) as e:
            a.error(f"{o.comm}: {e}")
        table(o, *of)
