#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes kernels/codebook_table.c: the code books of GGUF's types iq1_s, iq1_m, iq2_xxs, iq2_xs, iq2_s, iq3_xxs and iq3_s.

The values are facts of the format; they are taken from the reader of the package gguf (python3 -m venv V && V/bin/pip install gguf),
as indices of magnitudes: of iq2 two bits for each of 8 elements (8, 25, 43), of iq3 three bits for each of 4 elements, of iq1 two
bits for each of 8 elements (-1, 0, 1). The first element is in the lowest bits.

    tools/make_codebooks.py            the table
    tools/make_codebooks.py --golden   tests/golden/codebooks.txt: blocks of every type with the digest of what gguf makes of them
"""
import hashlib
import os
import sys

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BOOKS = [("iq1", quants.IQ1_S, [-1, 0, 1], 2), ("iq2_xxs", quants.IQ2_XXS, [8, 25, 43], 2), ("iq2_xs", quants.IQ2_XS, [8, 25, 43], 2),
         ("iq2_s", quants.IQ2_S, [8, 25, 43], 2), ("iq3_xxs", quants.IQ3_XXS, [4, 12, 20, 28, 36, 44, 52, 62], 3),
         ("iq3_s", quants.IQ3_S, [1, 3, 5, 7, 9, 11, 13, 15], 3)]
TYPES = ["IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "TQ1_0", "TQ2_0"]
BLOCKS = 64


def words(cls, magnitudes, bits):
    cls.init_grid()
    rows = np.asarray(cls.grid).reshape(cls.grid_shape)
    return [sum(magnitudes.index(int(x)) << bits * i for i, x in enumerate(row)) for row in rows]


def table():
    lines = ["/* SPDX-License-Identifier: MIT", " * Written by tools/make_codebooks.py: the code books of GGUF's types of 1 to 3 bits. */",
             '#include "kernels/codebooks.h"', "", "/* clang-format off */"]
    for name, cls, magnitudes, bits in BOOKS:
        v = words(cls, magnitudes, bits)
        lines.append(f"const uint16_t wg_book_{name}[{len(v)}] = {{")
        lines += ["    " + ", ".join(f"0x{x:04X}" for x in v[i:i + 15]) + "," for i in range(0, len(v), 15)]
        lines.append("};")
    return "\n".join(lines) + "\n"


def digest(x):
    return hashlib.sha256(x.tobytes()).hexdigest()


def golden():
    """The f16 of a block's scale is one of ordinary weights; all other bytes are those of SplitMix64."""
    out = [f"# type, bytes of a block, SHA-256 of {BLOCKS} blocks, SHA-256 of their elements as little-endian f32 (gguf)"]
    for name in TYPES:
        kind = T[name]
        _, size = GGML_QUANT_SIZES[kind]
        state, raw = kind.value, np.zeros((BLOCKS, size), np.uint8)
        for b in range(BLOCKS):
            for i in range(size):
                state = (state + 0x9E3779B97F4A7C15) & (1 << 64) - 1
                z = state
                z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & (1 << 64) - 1
                z = (z ^ z >> 27) * 0x94D049BB133111EB & (1 << 64) - 1
                raw[b, i] = (z ^ z >> 31) >> 56
            if name == "IQ1_M":  # the scale's highest bits are those of the last word of scales
                raw[b, 55] = raw[b, 55] & 0x8F | 0x10
            else:
                at = {"TQ1_0": 52, "TQ2_0": 64}.get(name, 0)
                raw[b, at + 1] = raw[b, at + 1] & 0x83 | 0x10
        x = quants.dequantize(raw.reshape(-1), kind).astype("<f4")
        assert np.isfinite(x).all() and x.size == 256 * BLOCKS
        out.append(f"{name.lower()} {size} {digest(raw)} {digest(x)}")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    is_golden = sys.argv[1:] == ["--golden"]
    path = os.path.join(ROOT, *(["tests", "golden", "codebooks.txt"] if is_golden else ["kernels", "codebook_table.c"]))
    with open(path, "w") as f:
        f.write(golden() if is_golden else table())
