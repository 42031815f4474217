"""Train one model of the bundled pair on the CPU, within a given wall-clock time.

    python train.py --text DIR --out OUT --model target --minutes 80
    python train.py --text DIR --out OUT --model draft --minutes 10
    python train.py --text DIR --out OUT --model draft --minutes 15 --init OUT/draft.pt --teacher OUT/target.pt

The learning rate follows the clock, not the step count: a short warm-up, then linear decay to zero at the
last minute, so a slower machine trains on fewer tokens but always ends annealed. For the same reason two
runs are not bit-identical; the initial weights and the order of the data are fixed by --seed.

Matrices use Muon, embedding and norms AdamW. Products run in bfloat16, weights and optimiser in float32.
With --teacher the loss is KL(teacher || model) + TV, where TV = 1 - sum(min(p, q)) is the probability that
a drafted token is rejected at temperature 1. The checkpoint OUT/MODEL.pt is rewritten every five minutes.
"""
import argparse
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from data import BOS, prepare
from model import SHAPES, Llama, load, save

CHECKPOINT_SECONDS = 300
WARM_UP = 0.02       # fraction of the time
LONG_FROM = 0.8      # from here on windows have the full context


def windows(ids, context, rng):
    """Endless windows of context + 1 tokens: every epoch shifts the grid and shuffles it. Half of the
    windows start with <s>, because that is how text starts when the model is used."""
    while True:
        first = rng.integers(context)
        count = (len(ids) - first - 1) // context
        for i in rng.permutation(count):
            window = ids[first + i * context:][:context + 1].astype(np.int64)
            if rng.random() < 0.5:
                window[0] = BOS
            yield window


def batches(ids, context, tokens, rng):
    stream = windows(ids, context, rng)
    while True:
        yield torch.from_numpy(np.stack([next(stream) for _ in range(tokens // context)]))


def make_loss(model, teacher):
    def plain(batch):
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(batch[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1).float(), batch[:, 1:].flatten())

    def distil(batch):
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(batch[:, :-1])
            with torch.no_grad():
                target = teacher(batch[:, :-1])
        log_p, log_q = target.float().log_softmax(-1), logits.float().log_softmax(-1)
        p, q = log_p.exp(), log_q.exp()
        kl = (p * (log_p - log_q)).sum(-1).mean()
        return kl + 1 - torch.minimum(p, q).sum(-1).mean()

    return torch.compile(distil if teacher else plain, dynamic=False)


def make_optimisers(model, lr, lr_embed, decay):
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and not n.startswith("token_embd")]
    others = [p for n, p in model.named_parameters() if p.ndim != 2 or n.startswith("token_embd")]
    return [torch.optim.Muon(matrices, lr=lr, weight_decay=decay),
            torch.optim.AdamW(others, lr=lr_embed, betas=(0.9, 0.98), weight_decay=0.0, fused=True)]


@torch.no_grad()
def quick_loss(model, ids, count=32, context=256):
    """Held-out nats/token on `count` windows spread over the held-out text."""
    starts = np.linspace(0, len(ids) - context - 1, count).astype(int)
    batch = torch.from_numpy(np.stack([ids[s:s + context + 1] for s in starts]).astype(np.int64))
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(batch[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1).float(), batch[:, 1:].flatten()).item()


def main():
    parser = argparse.ArgumentParser(description="Train one model of the bundled pair.")
    parser.add_argument("--text", action="append", required=True, help="folder of books (repeatable)")
    parser.add_argument("--out", required=True, help="folder for tokenizer, arrays and checkpoints")
    parser.add_argument("--model", choices=SHAPES, required=True)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--init", help="checkpoint to start from")
    parser.add_argument("--teacher", help="checkpoint of the target: distil instead of plain training")
    parser.add_argument("--name", help="name of the checkpoint (default: the model)")
    parser.add_argument("--batch", type=int, default=8192, help="tokens per step")
    parser.add_argument("--lr", type=float, default=0.02, help="of the matrices (Muon)")
    parser.add_argument("--lr-embed", type=float, default=0.004, help="of embedding and norms (AdamW)")
    parser.add_argument("--decay", type=float, default=0.1, help="weight decay of the matrices")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    prepare(args.text, args.out)
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    rng = np.random.default_rng(args.seed)
    out = Path(args.out)
    path = out / f"{args.name or args.model}.pt"
    train, held = (np.fromfile(out / f"{part}.u16", np.uint16) for part in ("train", "held"))

    model = load(args.init) if args.init else Llama(SHAPES[args.model])
    teacher = load(args.teacher).requires_grad_(False) if args.teacher else None
    print(f"{args.model}: {sum(p.numel() for p in model.parameters())} parameters", flush=True)
    loss_of = make_loss(model, teacher)
    optimisers = make_optimisers(model, args.lr, args.lr_embed, args.decay)
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["peak"] = group["lr"]

    short, full = (batches(train, c, args.batch, rng) for c in (model.shape.context // 2, model.shape.context))
    start = time.time()
    end, saved, step, mean = start + 60 * args.minutes, start, 0, None
    while (now := time.time()) < end:
        progress = (now - start) / (end - start)
        for optimiser in optimisers:
            for group in optimiser.param_groups:
                group["lr"] = group["peak"] * min(progress / WARM_UP, 1.0, (1 - progress) / (1 - WARM_UP))
        loss = loss_of(next(full if progress > LONG_FROM else short))
        loss.backward()
        for optimiser in optimisers:
            optimiser.step()
            optimiser.zero_grad()
        step += 1
        mean = loss.item() if mean is None else 0.98 * mean + 0.02 * loss.item()
        if step % 50 == 0:
            print(f"step {step} tokens {step * args.batch} seconds {now - start:.0f} loss {mean:.4f}", flush=True)
        if now - saved > CHECKPOINT_SECONDS:
            save(model, path, tokens=step * args.batch)
            saved = now
            print(f"held-out {quick_loss(model, held):.4f}", flush=True)
    save(model, path, steps=step, tokens=step * args.batch)
    print(f"done: steps {step} tokens {step * args.batch} held-out {quick_loss(model, held):.4f}", flush=True)


if __name__ == "__main__":
    main()
