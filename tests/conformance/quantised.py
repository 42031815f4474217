#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes quantised/TYPE.f32, what test_quantised compares with: quantised.py ORACLE_MODELS. A development tool.

For each quantised type a model of random codes (quantised.h, written by ORACLE_MODELS, the program oracle_models of a build): the
gguf package (ggml's reader of each type) makes numbers of its weights, and the formulas of ../oracle/forward_oracle.py, in float64,
make logits of them: (tokens, vocabulary) in f32. Needs numpy and gguf: python3 -m venv V && V/bin/pip install gguf
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from gguf import GGUFReader
from gguf.quants import dequantize

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "oracle"))
import forward_oracle  # noqa: E402

TOKENS = [(37 * i + 5) % 96 for i in range(24)]


class Quantised(forward_oracle.Gguf):
    def __init__(self, path):
        super().__init__(path)
        self.by_name = {t.name: t for t in GGUFReader(path).tensors}

    def tensor(self, name):
        t = self.by_name[name]
        return dequantize(t.data, t.tensor_type).astype(np.float64).reshape(self.place[name][0][::-1])


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], "--quantised", folder], check=True)
    for path in sorted(pathlib.Path(folder).glob("*.gguf")):
        rows = forward_oracle.forward(Quantised(str(path)), TOKENS, list(range(-1, len(TOKENS) - 1)))
        rows.astype("<f4").tofile(HERE / "quantised" / (path.stem + ".f32"))
        print(path.stem, rows.shape, "rms", np.sqrt(np.mean(rows * rows)))
