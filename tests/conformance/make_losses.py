# SPDX-License-Identifier: MIT
"""Values and gradients of the losses of draft/train by automatic differentiation (torch, float64), for test_loss.
usage: python3 tests/conformance/make_losses.py >tests/conformance/losses.json"""
import json
import torch

ROWS, VOCAB, T, LENGTH = 8, 7, 0.7, 4
torch.manual_seed(1)
z = (torch.randn(ROWS, VOCAB, dtype=torch.float64) * 2).requires_grad_()
p = torch.softmax(torch.randn(ROWS, VOCAB, dtype=torch.float64) * 2, -1)
text = torch.multinomial(p, 1)[:, 0]
index = torch.arange(ROWS)


def alpha(q):
    return torch.minimum(p, q).sum(-1)


def kl(a, b):
    return (a * (a.log() - b.log())).sum(-1)


def jsd(q, b=0.3):
    m = b * p + (1 - b) * q
    return b * kl(p, m) + (1 - b) * kl(q, m)


def lk(q, decay=3):
    w = torch.exp(-decay * alpha(q)).detach()
    return w * kl(p, q) + (1 - w) * (1 - alpha(q))


def dpace(q, a=0.5):
    kept = ((1 - a) * q[index, text] + a).detach().reshape(-1, LENGTH).cumprod(-1)
    weight = kept.flip(-1).cumsum(-1).flip(-1)
    return weight.reshape(-1) * kl(p, q)


def rejection(q):
    """1 + sum_l prod_{j<l} min(1, q/p)(y_j) sum_v min(p_l, q_l)(v), over text of the target."""
    ratio = torch.clamp(q[index, text] / p[index, text], max=1).reshape(-1, LENGTH).cumprod(-1)
    reached = torch.cat([torch.ones(ROWS // LENGTH, 1, dtype=torch.float64), ratio[:, :-1]], -1)
    return -(1 + (reached * alpha(q).reshape(-1, LENGTH)).sum(-1))


def block(q):
    """The same with the least of the products of the ratios, and sum_v min(A p_l, B q_l)(v)."""
    product = (q[index, text] / p[index, text]).reshape(-1, LENGTH).cumprod(-1)
    one = torch.ones(ROWS // LENGTH, 1, dtype=torch.float64)
    b = torch.cat([one, product[:, :-1]], -1)
    a = b.cummin(-1).values
    rows = torch.minimum(a.reshape(-1, 1) * p, b.reshape(-1, 1) * q).sum(-1)
    return -(1 + rows.reshape(-1, LENGTH).sum(-1))


terms = {
    '{"kl": 1}': lambda q: kl(p, q),
    '{"reverse_kl": 1}': lambda q: kl(q, p),
    '{"jsd": 1, "jsd_beta": 0.3}': jsd,
    '{"tv": 1}': lambda q: 0.5 * (p - q).abs().sum(-1),
    '{"nla": 1}': lambda q: -alpha(q).log(),
    '{"lk": 1}': lk,
    '{"ce": 1}': lambda q: -q[index, text].log(),
    '{"tv": 0.5, "kl": 0.5}': lambda q: 0.5 * (1 - alpha(q)) + 0.5 * kl(p, q),
    '{"kl": 1, "positions": "dpace"}': dpace,
    '{"rejection": 1}': rejection,
    '{"block": 1}': block,
}
out = {"z": z.flatten().tolist(), "p": p.flatten().tolist(), "text": text.tolist(), "temperature": T, "terms": {}}
for name, f in terms.items():
    value = f(torch.softmax(z / T, -1)).mean()
    (gradient,) = torch.autograd.grad(value, z)
    out["terms"][name] = {"loss": value.item(), "gradient": gradient.flatten().tolist()}
print(json.dumps(out, indent=0))
