#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""transformers' plain and assisted generation of models with random weights in the shapes of core/file/synth.c: greedy, bf16,
one token of prompt, every arm for a few seconds. A line of JSON per arm; exit status 77, with the reason, without the
library.

    peer_transformers.py --target llama-3.2-1b --draft draft-124m --tokens 256 --device cuda

Random models never agree, so assisted generation pays for its drafts and gains nothing: the comparison is of the cost of a
round, and both sides have the same acceptance."""
import argparse
import json
import statistics
import sys
import time

SHAPES = {  # layers, dim, heads, kv_heads, head_dim, hidden, vocab, rope_base, tied
    "llama-3.1-8b": (32, 4096, 32, 8, 128, 14336, 128256, 500000, False),
    "llama-3.2-1b": (16, 2048, 32, 8, 64, 8192, 128256, 500000, True),
    "draft-124m": (12, 768, 12, 12, 64, 2048, 50257, 10000, True),
    "tiny": (2, 32, 2, 1, 16, 64, 512, 10000, True),
}
LENGTH, MOST = 4, 5


def skip(why):
    print(why, file=sys.stderr)
    sys.exit(77)


def model_of(torch, transformers, shape, vocab, device):
    layers, dim, heads, kv_heads, head_dim, hidden, _, base, tied = SHAPES[shape]
    config = transformers.LlamaConfig(
        num_hidden_layers=layers, hidden_size=dim, num_attention_heads=heads, num_key_value_heads=kv_heads, head_dim=head_dim,
        intermediate_size=hidden, vocab_size=vocab, rope_theta=base, tie_word_embeddings=tied, max_position_embeddings=8192,
        bos_token_id=1, eos_token_id=None, pad_token_id=0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        model = transformers.LlamaForCausalLM(config).eval()
    torch.set_default_dtype(before)
    return model


def measure(torch, model, tokens, device, seconds, **more):
    """Tokens a second: the median of as many runs as fit, at most MOST and at least one, behind a short one that warms up."""
    prompt = torch.tensor([[1]], device=device)

    def run(n):
        with torch.inference_mode():
            out = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=n, min_new_tokens=n,
                                 do_sample=False, **more)
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        return out.shape[1] - 1

    run(min(tokens, 8))
    rates, end = [], time.monotonic() + seconds
    while len(rates) < MOST and (not rates or time.monotonic() < end):
        start = time.perf_counter()
        made = run(tokens)
        rates.append(made / (time.perf_counter() - start))
    return statistics.median(rates)


def main():
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--target", default="llama-3.2-1b", choices=SHAPES)
    args.add_argument("--draft", default="draft-124m", choices=SHAPES)
    args.add_argument("--tokens", type=int, default=256)
    args.add_argument("--seconds", type=float, default=8)
    args.add_argument("--device", default="cuda")
    o = args.parse_args()
    try:
        import torch
        import transformers
    except ImportError as why:
        skip(f"no peer: {why}")
    if o.device.startswith("cuda") and not torch.cuda.is_available():
        skip("no peer: torch finds no CUDA device")
    transformers.logging.set_verbosity_error()
    torch.manual_seed(1)
    vocab = SHAPES[o.target][6]
    target = model_of(torch, transformers, o.target, vocab, o.device)
    draft = model_of(torch, transformers, o.draft, vocab, o.device)
    draft.generation_config.num_assistant_tokens = LENGTH
    draft.generation_config.num_assistant_tokens_schedule = "constant"
    draft.generation_config.assistant_confidence_threshold = 0.0
    for what, more in [("plain", {}), ("assisted", {"assistant_model": draft})]:
        rate = measure(torch, target, o.tokens, o.device, o.seconds, **more)
        print(json.dumps({"peer": "transformers", "version": transformers.__version__, "torch": torch.__version__, "what": what,
                          "target": o.target, "draft": o.draft if more else None, "tok_s": rate}), flush=True)


if __name__ == "__main__":
    main()
