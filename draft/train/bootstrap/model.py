"""The Llama-shaped network of the bundled pair: RMSNorm, rotary pairs (2i, 2i+1), grouped-query
attention, SwiGLU, no biases, output tied to the embedding. Module names are the GGUF tensor names
(with `blk_N` for `blk.N`), so that export needs no mapping table."""
from dataclasses import asdict, dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Shape:
    dim: int
    layers: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int = 4096
    context: int = 512
    eps: float = 1e-5
    theta: float = 10000.0


SHAPES = {
    "target": Shape(dim=384, layers=6, heads=6, kv_heads=3, ffn=1024),
    "draft": Shape(dim=128, layers=3, heads=4, kv_heads=2, ffn=384),
}


def linear(n_in, n_out, std=None):
    layer = nn.Linear(n_in, n_out, bias=False)
    nn.init.normal_(layer.weight, std=n_in ** -0.5 if std is None else std)
    return layer


def rotate(x, cos, sin):
    """Turn each adjacent pair of x [batch, time, head, size] by its angle; cos and sin are [time, 1, size/2]."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2).type_as(x)


def attend(q, k, v, mask):
    """Attention written out: for these short contexts it compiles to faster CPU code than the fused kernel."""
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2) + mask
    return scores.softmax(-1).to(v.dtype) @ v


class Block(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.heads, self.kv_heads, self.size = s.heads, s.kv_heads, s.dim // s.heads
        self.attn_norm = nn.RMSNorm(s.dim, eps=s.eps)
        self.attn_q = linear(s.dim, s.heads * self.size)
        self.attn_k = linear(s.dim, s.kv_heads * self.size)
        self.attn_v = linear(s.dim, s.kv_heads * self.size)
        self.attn_output = linear(s.dim, s.dim, std=0.0)
        self.ffn_norm = nn.RMSNorm(s.dim, eps=s.eps)
        self.ffn_gate = linear(s.dim, s.ffn)
        self.ffn_up = linear(s.dim, s.ffn)
        self.ffn_down = linear(s.ffn, s.dim, std=0.0)

    def forward(self, x, cos, sin, mask):
        b, t, _ = x.shape
        h = self.attn_norm(x)
        q = rotate(self.attn_q(h).view(b, t, self.heads, self.size), cos, sin).transpose(1, 2)
        k = rotate(self.attn_k(h).view(b, t, self.kv_heads, self.size), cos, sin).transpose(1, 2)
        v = self.attn_v(h).view(b, t, self.kv_heads, self.size).transpose(1, 2)
        group = self.heads // self.kv_heads
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        h = attend(q, k, v, mask)
        x = x + self.attn_output(h.transpose(1, 2).reshape(b, t, -1))
        h = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Llama(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.token_embd = nn.Embedding(shape.vocab, shape.dim)
        nn.init.normal_(self.token_embd.weight, std=0.02)
        for i in range(shape.layers):
            self.add_module(f"blk_{i}", Block(shape))
        self.output_norm = nn.RMSNorm(shape.dim, eps=shape.eps)
        size = shape.dim // shape.heads
        freq = shape.theta ** (-torch.arange(0, size, 2) / size)
        angle = torch.arange(shape.context)[:, None, None] * freq
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        future = torch.full((shape.context, shape.context), float("-inf")).triu(1)
        self.register_buffer("mask", future, persistent=False)

    def forward(self, ids):
        x = self.token_embd(ids)
        t = ids.shape[1]
        cos, sin, mask = self.cos[:t], self.sin[:t], self.mask[:t, :t]
        for i in range(self.shape.layers):
            x = getattr(self, f"blk_{i}")(x, cos, sin, mask)
        return F.linear(self.output_norm(x), self.token_embd.weight)


def save(model, path, **extra):
    torch.save({"shape": asdict(model.shape), "weights": model.state_dict(), **extra}, path)


def load(path):
    saved = torch.load(path, weights_only=True)
    model = Llama(Shape(**saved["shape"]))
    model.load_state_dict(saved["weights"])
    return model
