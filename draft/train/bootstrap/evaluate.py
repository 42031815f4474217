"""Measure exported GGUF files on the held-out text: loss, bits per byte, agreement of the pair, samples.

    python evaluate.py --out OUT --target TARGET.gguf --draft DRAFT.gguf [--samples 2]

Reads the files back, runs their dequantised weights in float32. The held-out stream is cut into
non-overlapping windows of the full context; every token but the first of the stream is predicted once.
"""
import argparse
import json
import math
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

from data import BOS, EOS
from gguf_file import read
from model import Llama, Shape

OWN_TEXT = 32, 96  # texts and tokens per text that the target writes to measure the pair on


def load_gguf(path):
    keys, tensors = read(path)
    tokens = keys["tokenizer.ggml.tokens"]
    model = Llama(Shape(
        dim=keys["llama.embedding_length"], layers=keys["llama.block_count"],
        heads=keys["llama.attention.head_count"], kv_heads=keys["llama.attention.head_count_kv"],
        ffn=keys["llama.feed_forward_length"], vocab=len(tokens), context=keys["llama.context_length"],
        eps=keys["llama.attention.layer_norm_rms_epsilon"], theta=keys["llama.rope.freq_base"]))
    model.load_state_dict({n.replace("blk.", "blk_"): torch.from_numpy(x) for n, x in tensors.items()})
    return model.eval(), tokens


def held_out_windows(ids, context):
    ids = ids.astype(np.int64)
    for at in range(0, len(ids) - 1, context):
        piece = torch.from_numpy(ids[at:at + context + 1])
        yield piece[None, :-1], piece[1:]


@torch.no_grad()
def measure(target, draft, ids):
    nats, agree, accept, count = np.zeros(2), 0, 0.0, 0
    for x, y in held_out_windows(ids, target.shape.context):
        log_p, log_q = (m(x)[0].log_softmax(-1) for m in (target, draft))
        nats += [-lp.gather(1, y[:, None]).double().sum().item() for lp in (log_p, log_q)]
        accept += torch.minimum(log_p.exp(), log_q.exp()).double().sum().item()
        agree += (log_p.argmax(-1) == log_q.argmax(-1)).sum().item()
        count += len(y)
    return nats, accept / count, agree / count, count


@torch.no_grad()
def accept_on_samples(target, draft, sequences, length, generator):
    """The same sum(min(p, q)) on text that the target itself writes from <s> at temperature 1."""
    ids = torch.full((sequences, 1), BOS)
    for _ in range(length - 1):
        p = target(ids)[:, -1].softmax(-1)
        ids = torch.cat((ids, torch.multinomial(p, 1, generator=generator)), 1)
    p, q = (m(ids).softmax(-1) for m in (target, draft))
    return torch.minimum(p, q).sum(-1).mean().item()


@torch.no_grad()
def sample(model, tok, prompt, length, temperature, generator):
    ids = [BOS, *tok.encode(prompt).ids]
    for _ in range(length):
        p = (model(torch.tensor([ids]))[0, -1] / temperature).softmax(-1)
        ids.append(torch.multinomial(p, 1, generator=generator).item())
        if ids[-1] == EOS:
            break
    return tok.decode(ids[1:])


def main():
    parser = argparse.ArgumentParser(description="Measure the exported pair on the held-out text.")
    parser.add_argument("--out", required=True, help="folder written by data.py or train.py")
    parser.add_argument("--target", required=True)
    parser.add_argument("--draft", required=True)
    parser.add_argument("--samples", type=int, default=0)
    parser.add_argument("--prompt", default="Once upon a time")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()

    torch.set_num_threads(args.threads)
    generator = torch.Generator().manual_seed(1)
    out = Path(args.out)
    tok = Tokenizer.from_file(str(out / "tokenizer.json"))
    size = json.loads((out / "data.json").read_text())["held"]["bytes"]
    (target, tokens), (draft, draft_tokens) = load_gguf(args.target), load_gguf(args.draft)
    assert tokens == draft_tokens == [tok.id_to_token(i) for i in range(len(tokens))]

    nats, accept, agree, count = measure(target, draft, np.fromfile(out / "held.u16", np.uint16))
    for name, value in zip(("target", "draft"), nats):
        print(f"{name}: {value / count:.4f} nats/token, {value / math.log(2) / size:.4f} bits/byte")
    print(f"held-out text: {count} tokens, {size} bytes; E[sum min(p,q)] {accept:.4f}, same argmax {agree:.4f}")
    own = accept_on_samples(target, draft, *OWN_TEXT, generator)
    print(f"text sampled from the target: E[sum min(p,q)] {own:.4f} ({OWN_TEXT[0]} texts of {OWN_TEXT[1]} tokens)")
    for model, name in ((target, "target"), (draft, "draft")):
        for _ in range(args.samples):
            print(f"--- {name}, temperature 0.8\n{sample(model, tok, args.prompt, 120, 0.8, generator)}")


if __name__ == "__main__":
    main()
