"""Train one model of the bundled pair on the CPU, within a given wall-clock time.

    python train.py --text DIR --out OUT --model target --minutes 80
    python train.py --text DIR --out OUT --model draft --minutes 10 --name draft0
    python train.py --text DIR --out OUT --model draft --minutes 15 --init OUT/draft0.pt --teacher OUT/target.pt

The learning rate follows the clock, not the step count: a short warm-up, then linear decay to zero at the
last minute, so a slower machine trains on fewer tokens but always ends annealed. For the same reason two
runs are not bit-identical; the initial weights and the order of the data are fixed by --seed.

Matrices use Muon, embedding and norms AdamW. Products run in bfloat16, weights and optimiser in float32.
The work is shared by single-threaded processes that meet once per step, which on a busy machine loses far
less time than threads that meet in every operation.
With --teacher the loss is KL(teacher || model) + TV, where TV = 1 - sum(min(p, q)) is the probability that
a drafted token is rejected at temperature 1. The checkpoint OUT/MODEL.pt is rewritten every five minutes.
"""
import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import torch.multiprocessing as mp
import torch.nn.functional as F

from data import BOS, VOCAB, prepare
from model import SHAPES, Llama, load, save

CHECKPOINT_SECONDS = 300
WARM_UP = 0.02       # fraction of the time


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


def is_matrix(name, p):
    return p.ndim == 2 and not name.startswith("token_embd")


def owned(model, rank, workers):
    """The parameters that one worker updates: the dearest first, each to the worker with the least to do."""
    def cost(item):
        name, p = item
        return p.numel() * (min(p.shape) if is_matrix(name, p) else 30)

    load = [0] * workers
    mine = []
    for name, p in sorted(model.named_parameters(), key=cost, reverse=True):
        worker = load.index(min(load))
        load[worker] += cost((name, p))
        if worker == rank:
            mine.append((name, p))
    return mine


def make_optimisers(params, args):
    matrices = [p for n, p in params if is_matrix(n, p)]
    others = [p for n, p in params if not is_matrix(n, p)]
    optimisers = []
    if matrices:
        optimisers.append(torch.optim.Muon(matrices, lr=args.lr, weight_decay=args.decay))
    if others:
        optimisers.append(torch.optim.AdamW(others, lr=args.lr_embed, betas=(0.9, 0.98), weight_decay=0.0))
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["peak"] = group["lr"]
    return optimisers


@torch.no_grad()
def quick_loss(model, ids, count=32, context=256):
    """Held-out nats/token on `count` windows spread over the held-out text."""
    starts = np.linspace(0, len(ids) - context - 1, count).astype(int)
    batch = torch.from_numpy(np.stack([ids[s:s + context + 1] for s in starts]).astype(np.int64))
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(batch[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1).float(), batch[:, 1:].flatten()).item()


def work(rank, args, model, grads, shared, next_piece, barrier):
    """One worker: a single thread. Weights and gradients lie in shared memory. In each step the workers
    take pieces of the batch until none is left, then each adds up the gradients of the parameters it owns
    and updates them. `shared` holds the sum of the losses of the step and the progress (0 to 1)."""
    torch.set_num_threads(1)
    out = Path(args.out)
    path = out / f"{args.name or args.model}.pt"
    train, held = (np.fromfile(out / f"{part}.u16", np.uint16) for part in ("train", "held"))
    rng = np.random.default_rng(args.seed)  # the same in every worker: all draw the same batches
    short, full = (batches(train, c, args.batch, rng) for c in (model.shape.context // 2, model.shape.context))
    loss_of = make_loss(model, load(args.teacher).requires_grad_(False) if args.teacher else None)
    for p, grad in zip(model.parameters(), grads[rank]):
        p.grad = grad
    params = owned(model, rank, len(grads))
    index = {id(p): i for i, p in enumerate(model.parameters())}
    optimisers = make_optimisers(params, args)

    start = saved = time.time()
    step, mean = 0, None
    while (progress := shared[1].item()) < 1:
        batch = next(full if progress >= args.long_from else short)
        pieces = batch.split(max(1, args.micro // (batch.shape[1] - 1)))
        while True:
            with next_piece:
                i = next_piece.value
                next_piece.value += 1
            if i >= len(pieces):
                break
            loss = loss_of(pieces[i]) / len(pieces)
            loss.backward()
            with next_piece:
                shared[0] += loss.item()
        barrier.wait()
        for _, p in params:
            i = index[id(p)]
            for other in range(len(grads)):
                if other != rank:
                    p.grad += grads[other][i]
        for optimiser in optimisers:
            for group in optimiser.param_groups:
                group["lr"] = group["peak"] * min(progress / WARM_UP, 1.0, (1 - progress) / (1 - WARM_UP))
            optimiser.step()
        if rank == 0:
            step += 1
            loss = shared[0].item()
            mean = loss if mean is None else 0.98 * mean + 0.02 * loss
            next_piece.value = 0
            shared[0], shared[1] = 0.0, (time.time() - start) / (60 * args.minutes)
        barrier.wait()
        torch._foreach_zero_(grads[rank])
        if rank == 0 and step % 50 == 0:
            print(f"step {step} tokens {step * args.batch} seconds {time.time() - start:.0f} loss {mean:.4f}",
                  flush=True)
        if rank == 0 and (time.time() - saved > CHECKPOINT_SECONDS or shared[1] >= 1):
            saved = time.time()
            save(model, path, steps=step, tokens=step * args.batch)
            print(f"saved: steps {step} tokens {step * args.batch} held-out {quick_loss(model, held):.4f}",
                  flush=True)


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
    parser.add_argument("--micro", type=int, default=1024, help="tokens per forward and backward pass")
    parser.add_argument("--lr", type=float, default=0.02, help="of the matrices (Muon)")
    parser.add_argument("--lr-embed", type=float, default=0.004, help="of embedding and norms (AdamW)")
    parser.add_argument("--decay", type=float, default=0.1, help="weight decay of the matrices")
    parser.add_argument("--long-from", type=float, default=0.8,
                        help="fraction of the time after which windows have the full context, before it half")
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--vocab", type=int, default=VOCAB, help="tokens of the vocabulary; OUT is for one vocabulary")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    prepare(args.text, args.out, args.vocab)
    torch.manual_seed(args.seed)
    model = load(args.init) if args.init else Llama(replace(SHAPES[args.model], vocab=args.vocab))
    print(f"{args.model}: {sum(p.numel() for p in model.parameters())} parameters", flush=True)
    model.share_memory()
    grads = [[torch.zeros_like(p).share_memory_() for p in model.parameters()] for _ in range(args.workers)]
    shared = torch.zeros(2, dtype=torch.float64).share_memory_()
    context = mp.get_context("spawn")
    mp.start_processes(work, (args, model, grads, shared, context.Value("i", 0), context.Barrier(args.workers)),
                       nprocs=args.workers)


if __name__ == "__main__":
    main()
