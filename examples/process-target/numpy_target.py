# SPDX-License-Identifier: MIT
"""A process target in numpy: a GGUF model of the Llama family with weights in q8_0, computed to the bit as wager does.

    wager generate -m MODEL.gguf --target "process:command=python3 numpy_target.py MODEL.gguf" -p "Once upon a time"

Equal bits need what docs/numerics.md states, and nothing less: every sum in its order (16 lanes, blocks of 32, chunks of 64 keys at
absolute positions), fused multiply-adds rounded once, inputs of products in 8 bits, exp by its polynomial, keys and values in f16. So
text, draws and traces are those of the model run in the program itself. A target that rounds otherwise is equal in law only."""
import mmap
import struct
import sys

import numpy as np

import row_peer

f32, f64, i32 = np.float32, np.float64, np.int32

# ---- GGUF


class Gguf:
    """meta: key -> value; place: tensor name -> (dimensions, type, offset)."""

    FORMS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        self.at = 0
        if self.take("I") != 0x46554747 or self.take("I") not in (2, 3):
            sys.exit("%s: not a GGUF file of version 2 or 3" % path)
        tensors, keys = self.take("Q"), self.take("Q")
        self.meta = {self.string(): self.value(self.take("I")) for _ in range(keys)}
        self.place = {}
        for _ in range(tensors):
            name = self.string()
            dims = [self.take("Q") for _ in range(self.take("I"))]
            self.place[name] = dims, self.take("I"), self.take("Q")
        align = self.meta.get("general.alignment", 32)
        self.start = (self.at + align - 1) // align * align

    def take(self, form):
        v, = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return v

    def string(self):
        n = self.take("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode("utf-8", "replace")

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind == 9:
            element, n = self.take("I"), self.take("Q")
            return [self.value(element) for _ in range(n)]
        return self.take(self.FORMS[kind])

    def vector(self, name):
        dims, kind, offset = self.place[name]
        if kind != 0:
            sys.exit("tensor %s: type %d; expected f32" % (name, kind))
        return np.frombuffer(self.data, "<f4", dims[0], self.start + offset)

    def matrix(self, name):
        """q8_0 as codes (out, blocks, 32) in f32, in which products of 8-bit integers are exact, and scales (out, blocks)."""
        (k, n), kind, offset = self.place[name]
        if kind != 8:
            sys.exit("tensor %s: type %d; expected q8_0" % (name, kind))
        block = np.frombuffer(self.data, np.dtype([("d", "<f2"), ("q", "i1", 32)]), n * k // 32, self.start + offset)
        return block["q"].astype(f32).reshape(n, k // 32, 32), block["d"].astype(f32).reshape(n, k // 32)


# ---- operations, to the bit (docs/numerics.md)


def fma(a, b, c):
    """a b + c, rounded once to f32. The product is exact in f64. The sum is rounded to odd there: where it is inexact its last bit
    is 1, so that rounding it again to f32 cannot meet a tie that was none."""
    p = np.multiply(a, b, dtype=f64)
    c = np.asarray(c, f64)
    s = p + c
    t = s - p
    lost = (p - (s - t)) + (c - t)
    bits = s.view(np.int64)
    bits += np.where((lost != 0) & (bits & 1 == 0), np.where((lost > 0) == (s > 0), 1, -1), 0)
    return s.astype(f32)


def fold16(lane):
    """The sum of 16 lanes, the last axis."""
    for w in (8, 4, 2, 1):
        lane = lane[..., :w] + lane[..., w:2 * w]
    return lane[..., 0]


EXP = [f32(float.fromhex(c)) for c in ("0x1.6a2434p-10", "0x1.1239e2p-7", "0x1.5558f2p-5", "0x1.555492p-3", "0x1.fffffcp-2", "1", "1")]


def exp(x):
    """Of x <= 88.7."""
    t = fma(x, f32(float.fromhex("0x1.715476p+0")), f32(12582912))
    n = t - f32(12582912)
    r = fma(n, f32(float.fromhex("0x1.05c61p-29")), fma(n, f32(float.fromhex("-0x1.62e43p-1")), x))
    p = np.broadcast_to(EXP[0], r.shape)
    for c in EXP[1:]:
        p = fma(p, r, c)
    y = (p.view(np.uint32) + (t.view(np.uint32) << 23)).view(f32)
    return np.where(x < f32(-87.3), f32(0), y)


def rmsnorm(x, weight, eps):
    lane = np.zeros(x.shape[:-1] + (16,), f32)
    for i in range(0, x.shape[-1], 16):
        lane = fma(x[..., i:i + 16], x[..., i:i + 16], lane)
    r = f32(1) / np.sqrt(fold16(lane) / f32(x.shape[-1]) + f32(eps))
    return x * r[..., None] * weight


def product(x, matrices):
    """x W^T of several q8_0 matrices: inputs in 8 bits, a scale for every 32."""
    x = x.reshape(len(x), -1, 32)
    scale = np.abs(x).max(-1) / f32(127)
    scale = ((scale.view(np.uint32) + 0xff) & ~np.uint32(0xff)).view(f32)
    scale = np.where(scale < f32(1e-30), f32(0), scale)
    inverse = np.divide(f32(1), scale, out=np.zeros_like(scale), where=scale > 0)
    code = np.rint(x * inverse[..., None])
    out = []
    for w, d in matrices:
        y = np.zeros((len(x), len(w)), f32)
        for b in range(w.shape[1]):
            y = fma((code[:, b] @ w[:, b].T) * scale[:, b, None], d[:, b], y)
        out.append(y)
    return out


def rotate(x, cos, sin):
    """x (rows, heads, hd), of pairs (2i, 2i + 1); cos, sin (rows, pairs)."""
    c, s = cos[:, None], sin[:, None]
    a, b = x[..., 0::2].copy(), x[..., 1::2].copy()
    x[..., 0::2], x[..., 1::2] = fma(a, c, -(b * s)), fma(a, s, b * c)
    return x


def attention(q, k, v, seen):
    """q (rows, heads, hd), k, v (slots, kv heads, hd), seen (rows, most) the slots that each row sees by position, -1 behind them."""
    heads, hd = q.shape[1:]
    head = np.arange(heads) * k.shape[1] // heads
    out, most, total = np.zeros(q.shape, f32), np.full(q.shape[:2], -np.inf, f32), np.zeros(q.shape[:2], f32)
    for first in range(0, seen.shape[1], 64):
        slot = seen[:, first:first + 64]
        here = (slot >= 0)[:, None, :]  # (rows, 1, keys)
        key = k[slot][:, :, head].transpose(0, 2, 1, 3)  # (rows, heads, keys, hd)
        lane = np.zeros(key.shape[:-1] + (16,), f32)
        for d in range(0, hd, 16):
            lane = fma(q[:, :, None, d:d + 16], key[..., d:d + 16], lane)
        score = np.where(here, fold16(lane) * f32(1 / np.sqrt(f64(hd))), f32(-np.inf))
        up = np.maximum(most, score.max(-1))
        shrink = exp(most - up) if first else np.zeros(up.shape, f32)
        shrink = np.where(here.any(-1), shrink, f32(1))
        most = up
        weight = np.where(here, exp(np.where(here, score - up[..., None], f32(0))), f32(0))
        lane = np.zeros(q.shape[:2] + (16,), f32)
        for j in range(0, slot.shape[1], 16):
            part = weight[..., j:j + 16]
            lane[..., :part.shape[-1]] += part
        total = np.where(here.any(-1), fma(total, shrink, fold16(lane)), total)
        out *= shrink[..., None]
        for j in range(slot.shape[1]):
            value = v[slot[:, j]][:, head]
            out = np.where(here[:, :, j, None], fma(weight[..., j, None], value, out), out)
    return out / total[..., None]


# ---- the model


class Model:
    def __init__(self, path):
        g = Gguf(path)
        if g.meta["general.architecture"] != "llama":
            sys.exit("%s: family %s; expected llama" % (path, g.meta["general.architecture"]))
        key = lambda name: g.meta["llama." + name]  # noqa: E731
        self.name, self.context, self.layers = g.meta.get("general.name", path), key("context_length"), key("block_count")
        self.dim, self.heads, self.eps = key("embedding_length"), key("attention.head_count"), key("attention.layer_norm_rms_epsilon")
        self.kv_heads, self.hd = key("attention.head_count_kv"), self.dim // self.heads
        self.embedding = g.matrix("token_embd.weight")
        self.vocab = len(self.embedding[0])
        self.head = g.matrix("output.weight") if "output.weight" in g.place else self.embedding
        self.norm = g.vector("output_norm.weight")
        self.layer = [{n: (g.vector if "norm" in n else g.matrix)("blk.%d.%s.weight" % (i, n)) for n in (
            "attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down")}
            for i in range(self.layers)]
        frequency = key("rope.freq_base") ** (-2.0 * np.arange(self.hd // 2) / self.hd)
        angle = np.arange(self.context)[:, None] * frequency
        self.cos, self.sin = np.cos(angle).astype(f32), np.sin(angle).astype(f32)
        self.cache = {}  # of a sequence: (layers, 2, slots, kv heads, hd), the text and behind it the rows of its last request

    def ask(self, parts, logits, taps):
        at = 0
        for p in parts:
            states = self.forward(p)
            if taps is not None:
                for i, t in enumerate(self.tap):
                    taps[at:at + len(p.rows), i] = states[t]
            wanted = p.rows[:, 3] >= 0
            if wanted.any():
                logits[p.rows[wanted, 3]] = product(states[-1][wanted], [self.head])[0]
            at += len(p.rows)

    def settle(self, p):
        """The cache with what is kept, and room for the new rows. Returns it, and the number of tokens that are kept."""
        old, text = self.cache.get(p.sequence, (np.zeros((self.layers, 2, 0, self.kv_heads, self.hd), f32), 0))
        kept = np.concatenate([np.arange(p.kept), text + p.path]).astype(int)
        room = np.zeros((self.layers, 2, len(p.rows), self.kv_heads, self.hd), f32)
        cache = np.concatenate([old[:, :, kept], room], 2)
        self.cache[p.sequence] = cache, len(kept)
        return cache, len(kept)

    def forward(self, p):
        """The hidden states of the rows: the embedding, that behind every layer, and the last behind the final norm."""
        cache, text = self.settle(p)
        token, parent, position, _ = p.rows.T
        seen = np.full((len(token), position.max() + 1), -1)
        for r in range(len(token)):  # a row sees the text, then its ancestors, then itself
            seen[r, :position[r]] = seen[parent[r], :position[r]] if parent[r] >= 0 else np.arange(text)
            seen[r, position[r]] = text + r
        cos, sin = self.cos[position], self.sin[position]
        code, scale = self.embedding
        x = (code[token] * scale[token][..., None]).reshape(len(token), self.dim)
        states = [x]
        for i, w in enumerate(self.layer):
            h = rmsnorm(x, w["attn_norm"], self.eps)
            q, k, v = (y.reshape(len(x), -1, self.hd) for y in product(h, [w["attn_q"], w["attn_k"], w["attn_v"]]))
            cache[i, 0, text:] = rotate(k, cos, sin).astype(np.float16)
            cache[i, 1, text:] = v.astype(np.float16)
            a = attention(rotate(q, cos, sin), cache[i, 0], cache[i, 1], seen)
            x = x + product(a.reshape(len(x), -1), [w["attn_output"]])[0]
            gate, up = product(rmsnorm(x, w["ffn_norm"], self.eps), [w["ffn_gate"], w["ffn_up"]])
            x = x + product(gate / (f32(1) + exp(-gate)) * up, [w["ffn_down"]])[0]
            states.append(x)
        return states + [rmsnorm(x, self.norm, self.eps)]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: numpy_target.py MODEL.gguf   (started by wager: \"kind\": \"process\")")
    np.seterr(all="ignore")
    row_peer.serve(Model(sys.argv[1]))
