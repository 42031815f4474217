#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the fixtures of this folder: make_miniatures.py [NAME...]. A development tool; tests read what it wrote.

For each miniature model: config.json (and generation_config.json) as a checkpoint has them, case.json (tensors by name, dtype,
shape and file; tokens) and logits.f32 (a row for each token). Weights are not stored: test_conformance.c draws the same ones. The
logits are those of transformers in float32 with eager attention.

Element e of a tensor: u = mix(hash(name) + (e + 1) * 0x9E3779B97F4A7C15), i = the highest byte of u as a signed integer; norms are
1 + (i >> 2) / 128, biases i / 256, embeddings i / 128, other matrices i * 2^-k with the k that gives a deviation next to
1/sqrt(columns). hash: FNV-1a of 64 bits; mix: the finaliser of splitmix64. These numbers are exact in F32, F16 and BF16.

Needs torch and transformers: python3 -m venv V && V/bin/pip install torch transformers
"""
import json
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MASK = (1 << 64) - 1
TOKENS = 64

# Keys as checkpoints of both dialects write them; `shards`: files of the model.
MODELS = {
    "llama-scaled": dict(  # llama3 scaling in the older dialect, grouped queries, a tied head
        architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, vocab_size=200, max_position_embeddings=256, rms_norm_eps=1e-5,
        rope_theta=500000.0, tie_word_embeddings=True, torch_dtype="float32", bos_token_id=1, eos_token_id=[2, 5],
        rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                          original_max_position_embeddings=32)),
    "llama-biased": dict(  # biases of attention, heads wider than their share, linear scaling
        architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=48, intermediate_size=80, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=1, head_dim=24, vocab_size=150, max_position_embeddings=256,
        rms_norm_eps=1e-6, rope_theta=10000.0, attention_bias=True, tie_word_embeddings=False, torch_dtype="bfloat16",
        rope_scaling=dict(type="linear", factor=4.0)),
    "mistral": dict(  # the newer dialect of rotary parameters, no window
        architectures=["MistralForCausalLM"], model_type="mistral", hidden_size=80, intermediate_size=112, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=20, vocab_size=170, max_position_embeddings=256,
        rms_norm_eps=1e-5, rope_parameters=dict(rope_type="default", rope_theta=1000000.0), sliding_window=None,
        tie_word_embeddings=False, dtype="float16"),
    "mistral-window": dict(  # a window of 40 tokens, which changes the logits of later ones
        architectures=["MistralForCausalLM"], model_type="mistral", hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=16, vocab_size=130, max_position_embeddings=256,
        rms_norm_eps=1e-5, rope_theta=10000.0, sliding_window=40, tie_word_embeddings=False, torch_dtype="float32"),
    "qwen2": dict(  # biases that no key names, a tied head
        architectures=["Qwen2ForCausalLM"], model_type="qwen2", hidden_size=96, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=6, num_key_value_heads=2, vocab_size=180, max_position_embeddings=256, rms_norm_eps=1e-6,
        rope_theta=1000000.0, use_sliding_window=False, sliding_window=32, max_window_layers=1, tie_word_embeddings=True,
        hidden_act="silu", torch_dtype="bfloat16", bos_token_id=3, eos_token_id=4),
    "qwen3": dict(  # norms of heads of 40, three files
        architectures=["Qwen3ForCausalLM"], model_type="qwen3", hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, head_dim=40, vocab_size=160, max_position_embeddings=256,
        rms_norm_eps=1e-6, rope_theta=1000000, rope_scaling=None, use_sliding_window=False, sliding_window=None,
        max_window_layers=2, attention_bias=False, tie_word_embeddings=False, torch_dtype="float32"),
    "qwen3-biased": dict(  # norms of heads over biases, in the newer dialect
        architectures=["Qwen3ForCausalLM"], model_type="qwen3", hidden_size=64, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=5, num_key_value_heads=5, head_dim=16, vocab_size=140, max_position_embeddings=256,
        rms_norm_eps=1e-6, rope_parameters=dict(rope_type="default", rope_theta=10000.0), attention_bias=True,
        tie_word_embeddings=True, dtype="float16"),
}
SHARDS = {"qwen3": 3}
DTYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def fnv(text):
    h = 0xCBF29CE484222325
    for b in text.encode():
        h = ((h ^ b) * 0x100000001B3) & MASK
    return h


def draw(name, shape):
    key, n = fnv(name), math.prod(shape)
    for e in range(n):
        i = mix((key + (e + 1) * 0x9E3779B97F4A7C15) & MASK) >> 56
        i -= 256 * (i > 127)
        if name.endswith("norm.weight"):
            yield 1 + (i >> 2) / 128
        elif name.endswith(".bias"):
            yield i / 256
        elif "embed_tokens" in name:
            yield i / 128
        else:
            yield i * 2.0 ** -round(math.log2(74 * math.sqrt(shape[-1])))


def save(path, value):
    with open(path, "w") as f:
        json.dump(value, f, indent=1, ensure_ascii=True)
        f.write("\n")


def model(name):
    import torch
    import transformers
    folder, keys = os.path.join(HERE, name), MODELS[name]
    os.makedirs(folder, exist_ok=True)
    save(os.path.join(folder, "config.json"), keys)
    config = transformers.AutoConfig.from_pretrained(folder)
    config._attn_implementation = "eager"
    m = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    shards, tensors = SHARDS.get(name, 1), []
    dtype = DTYPES[keys.get("torch_dtype", keys.get("dtype"))]
    with torch.no_grad():
        for key, p in m.named_parameters():
            p.copy_(torch.tensor(list(draw(key, p.shape)), dtype=torch.float64).reshape(p.shape).float())
            tensors.append(dict(name=key, dtype=dtype, shape=list(p.shape), file=len(tensors) % shards))
    tokens = [mix(fnv(name) + i) % keys["vocab_size"] for i in range(TOKENS)]
    with torch.no_grad():
        logits = m(torch.tensor([tokens])).logits[0].float()
    logits.numpy().astype("<f4").tofile(os.path.join(folder, "logits.f32"))
    save(os.path.join(folder, "case.json"), dict(files=shards, tensors=tensors, tokens=tokens))
    print(f"{name}: {sum(p.numel() for p in m.parameters())} weights, logits of rms {logits.square().mean().sqrt():.3f}")


def main():
    for name in sys.argv[1:] or MODELS:
        model(name)


if __name__ == "__main__":
    main()
