# SPDX-License-Identifier: MIT
"""Logits of a GGUF model of a family of FAMILIES in float64, from the formulas: an independent check of the engine's forward pass.

    forward_oracle.py MODEL.gguf --tokens 1,2,3 [--parents -1,0,1] [--out FILE.f32]     all rows, row-major f32
    forward_oracle.py MODEL.gguf --tokens 1,2,3 --compare FILE.f32 [--tolerance 1e-3]   exit 1 when further away

A token's parent is an earlier index (or -1); the default is a chain. Needs numpy and nothing else: the GGUF reader below
knows f32, f16, bf16, q8_0 and f8_e4m3. Error of a comparison: sqrt(sum (x - ref)^2 / sum ref^2) over all rows.
"""
import argparse
import math
import mmap
import struct
import sys

import numpy as np

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
F8_E4M3 = 0xF8E43
E4M3 = np.array([(-1.0) ** (c >> 7) * ((8 + c % 8) * 2.0 ** ((c >> 3 & 15) - 10) if c >> 3 & 15 else c % 8 * 2.0 ** -9)
                 if c % 128 != 127 else np.nan for c in range(256)])


class Gguf:
    """meta: key -> value; tensor(name): float64 array of shape (out, in) or (n,)."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        self.at = 0
        if self.take("I") != 0x46554747:
            sys.exit(f"{path}: not a GGUF file")
        if self.take("I") not in (2, 3):
            sys.exit(f"{path}: not GGUF v2 or v3")
        n_tensors, n_meta = self.take("Q"), self.take("Q")
        self.meta = {}
        for _ in range(n_meta):
            key = self.string()
            self.meta[key] = self.value(self.take("I"))
        self.place = {}
        for _ in range(n_tensors):
            name = self.string()
            dims = [self.take("Q") for _ in range(self.take("I"))]
            self.place[name] = (dims, self.take("I"), self.take("Q"))
        align = self.meta.get("general.alignment", 32)
        self.start = (self.at + align - 1) // align * align

    def take(self, code):
        v = struct.unpack_from("<" + code, self.data, self.at)[0]
        self.at += struct.calcsize("<" + code)
        return v

    def string(self):
        n = self.take("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode("utf-8", "replace")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            element, n = self.take("I"), self.take("Q")
            return [self.value(element) for _ in range(n)]
        return self.take(SCALARS[kind])

    def tensor(self, name):
        dims, kind, offset = self.place[name]
        n, at = int(np.prod(dims)), self.start + offset
        if kind == 0:
            x = np.frombuffer(self.data, "<f4", n, at).astype(np.float64)
        elif kind == 1:
            x = np.frombuffer(self.data, "<f2", n, at).astype(np.float64)
        elif kind == 30:
            x = (np.frombuffer(self.data, "<u2", n, at).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        elif kind == 8:
            block = np.frombuffer(self.data, np.dtype([("d", "<f2"), ("q", "i1", 32)]), n // 32, at)
            x = (block["d"].astype(np.float64)[:, None] * block["q"]).reshape(n)
        elif kind == F8_E4M3:
            block = np.frombuffer(self.data, np.dtype([("d", "<f4"), ("q", "u1", 128)]), n // 128, at)
            x = (block["d"].astype(np.float64)[:, None] * E4M3[block["q"]]).reshape(n)
        else:
            sys.exit(f"tensor {name}: type {kind} is none of f32, f16, bf16, q8_0, f8_e4m3")
        return x.reshape(dims[::-1])


def norm(x, weight, eps, bias=None):
    """RMSNorm, or with a bias, which may be 0, LayerNorm."""
    if bias is not None:
        x = x - np.mean(x, axis=-1, keepdims=True)
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight + (0 if bias is None else bias)


def gelu(x, exact):
    if exact:
        return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def slopes(heads, most):
    """ALiBi's: a geometric sequence of the first power of two of heads, then every other one of the next such sequence."""
    n = 2 ** int(math.log2(heads))
    first, second = ([2 ** (-most * (i + 1) / m) for i in range(m)] for m in (n, 2 * n))
    return np.array((first + second[::2])[:heads])


def rotate(x, angle, adjacent):
    """Pairs (2i, 2i+1) of every head, or (i, i + n_rot/2): x (rows, heads, hd), angle (rows, n_rot/2)."""
    n = 2 * angle.shape[1]
    first, second = (slice(0, n, 2), slice(1, n, 2)) if adjacent else (slice(0, n // 2), slice(n // 2, n))
    c, s = np.cos(angle)[:, None, :], np.sin(angle)[:, None, :]
    a, b = x[..., first].copy(), x[..., second].copy()
    x[..., first], x[..., second] = a * c - b * s, a * s + b * c
    return x


FAMILIES = ("llama", "qwen2", "qwen3", "gpt2", "gptneox", "falcon", "mpt")


def forward(g, tokens, parents):
    family = g.meta["general.architecture"]
    if family not in FAMILIES:
        sys.exit(f"model family {family}: expected one of {', '.join(FAMILIES)}")

    def key(name, default=None):
        v = g.meta.get(f"{family}.{name}", default)
        return v[0] if isinstance(v, list) else v

    layers, dim, heads = key("block_count"), key("embedding_length"), key("attention.head_count")
    kv_heads = key("attention.head_count_kv", heads)
    hd = key("attention.key_length", dim // heads)
    eps, ungated = key("attention.layer_norm_rms_epsilon"), family in FAMILIES[3:]
    eps = key("attention.layer_norm_epsilon") if ungated else eps
    alibi = key("attention.max_alibi_bias", 0)
    n_rot = 0 if alibi or "position_embd.weight" in g.place else key("rope.dimension_count", hd)
    scale = 1.0 if key("rope.scaling.type") == "none" else key("rope.scaling.factor", key("rope.scale_linear", 1.0))
    frequency = key("rope.freq_base", 10000.0) ** (-np.arange(0, n_rot, 2) / n_rot) / scale
    if "rope_freqs.weight" in g.place:
        frequency = frequency / g.tensor("rope_freqs.weight")

    rows = len(tokens)
    sees, depth = np.zeros((rows, rows), bool), np.zeros(rows)
    for i, p in enumerate(parents):
        if p >= 0:
            sees[i], depth[i] = sees[p], depth[p] + 1
        sees[i, i] = True
    angle = depth[:, None] * frequency

    def bias(name):
        return g.tensor(f"{name}.bias") if f"{name}.bias" in g.place else 0

    def normed(x, name):
        return norm(x, g.tensor(f"{name}.weight"), eps, bias(name) if ungated else None)

    def product(x, name):
        return x @ g.tensor(f"{name}.weight").T + bias(name)

    def attention(h, at):
        if f"{at}.attn_qkv.weight" in g.place:
            q, k, v = np.split(product(h, f"{at}.attn_qkv"), [heads * hd, (heads + kv_heads) * hd], axis=-1)
        else:
            q, k, v = (product(h, f"{at}.attn_{part}") for part in "qkv")
        q, k, v = (part.reshape(rows, -1, hd) for part in (q, k, v))
        if family == "qwen3":
            q, k = (norm(part, g.tensor(f"{at}.attn_{name}_norm.weight"), eps) for part, name in ((q, "q"), (k, "k")))
        q, k = rotate(q, angle, family == "llama"), rotate(k, angle, family == "llama")
        k, v = np.repeat(k, heads // kv_heads, axis=1), np.repeat(v, heads // kv_heads, axis=1)
        score = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(hd)
        if alibi:
            score = score + slopes(heads, alibi)[:, None, None] * (depth[None, None, :] - depth[None, :, None])
        score = np.where(sees[None], score, -np.inf)
        weight = np.exp(score - score.max(axis=-1, keepdims=True))
        weight /= weight.sum(axis=-1, keepdims=True)
        return product(np.einsum("hij,jhd->ihd", weight, v).reshape(rows, heads * hd), f"{at}.attn_output")

    def mlp(h, at):
        if ungated:
            return product(gelu(product(h, f"{at}.ffn_up"), family != "gpt2"), f"{at}.ffn_down")
        gate = product(h, f"{at}.ffn_gate")
        return product(gate / (1 + np.exp(-gate)) * product(h, f"{at}.ffn_up"), f"{at}.ffn_down")

    x = g.tensor("token_embd.weight")[tokens]
    if "position_embd.weight" in g.place:
        x = x + g.tensor("position_embd.weight")[depth.astype(int)]
    for l in range(layers):
        at = f"blk.{l}"
        second = f"{at}.ffn_norm" if f"{at}.ffn_norm.weight" in g.place else f"{at}.attn_norm"
        given = attention(normed(x, f"{at}.attn_norm"), at)
        x = x + given + mlp(normed(x if family in ("gptneox", "falcon") else x + given, second), at)
    head = "output.weight" if "output.weight" in g.place else "token_embd.weight"
    return normed(x, "output_norm") @ g.tensor(head).T


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("model")
    a.add_argument("--tokens", required=True)
    a.add_argument("--parents")
    a.add_argument("--out")
    a.add_argument("--compare")
    a.add_argument("--tolerance", type=float, default=1e-3)
    argv = sys.argv[1:]
    if "--parents" in argv[:-1]:  # the list starts with -1, which would be taken for an option
        i = argv.index("--parents")
        argv[i:i + 2] = ["--parents=" + argv[i + 1]]
    o = a.parse_args(argv)
    tokens = [int(t) for t in o.tokens.split(",")]
    parents = [int(p) for p in o.parents.split(",")] if o.parents else list(range(-1, len(tokens) - 1))
    if len(parents) != len(tokens) or any(not -1 <= p < i for i, p in enumerate(parents)):
        sys.exit("--parents: expected one earlier index, or -1, for each token")
    logits = forward(Gguf(o.model), tokens, parents)
    if o.out:
        logits.astype("<f4").tofile(o.out)
    if o.compare:
        got = np.fromfile(o.compare, "<f4").astype(np.float64)
        if got.size != logits.size:
            sys.exit(f"{o.compare}: {got.size} numbers, expected {logits.shape[0]} rows of {logits.shape[1]}")
        error = np.sqrt(np.sum((got.reshape(logits.shape) - logits) ** 2) / np.sum(logits ** 2))
        print(f"relative error {error:.3e}, allowed {o.tolerance:.0e}")
        sys.exit(0 if error <= o.tolerance else 1)
    if not o.out:
        for t, row in zip(tokens, logits):
            best = int(np.argmax(row))
            print(f"token {t}: argmax {best} ({row[best]:.6f}), mean {row.mean():.6f}, rms {np.sqrt(np.mean(row * row)):.6f}")


if __name__ == "__main__":
    main()
