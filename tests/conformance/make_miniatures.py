#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the fixtures of this folder: make_miniatures.py [NAME...]. A development tool; tests read what it wrote.

For each miniature model: config.json (and generation_config.json) as a checkpoint has them, case.json (tensors by name, dtype,
shape and file; tokens), logits.f32 (a row for each token) and taps.f32: of the tokens at TAPPED (positions, taps, width) the
residual stream after 0, 1 and all layers, and behind the final norm. Weights are not stored: test_conformance.c draws the same
ones. Logits and taps are those of transformers in float32 with eager attention, of falcon-rw with sdpa: eager adds the biases of
ALiBi twice. Taps are read by hooks, because the last of output_hidden_states is not the same thing in every class.

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
TAPPED = [0, 13, 44, 63]

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
MODELS |= {
    "gemma": dict(  # norms less one, the scaled embedding, GeGLU; heads wider than their share
        architectures=["GemmaForCausalLM"], model_type="gemma", hidden_size=48, intermediate_size=80, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=1, head_dim=20, vocab_size=120, max_position_embeddings=256,
        hidden_act="gelu_pytorch_tanh", torch_dtype="bfloat16"),
    "gemma2": dict(  # both soft caps, a window of every other layer, norms behind the blocks, a scale of scores of its own
        architectures=["Gemma2ForCausalLM"], model_type="gemma2", hidden_size=64, intermediate_size=96, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, head_dim=24, vocab_size=130, max_position_embeddings=256,
        query_pre_attn_scalar=20, sliding_window=24, attn_logit_softcapping=3.0, final_logit_softcapping=6.0,
        hidden_act="gelu_pytorch_tanh", hidden_activation="gelu_pytorch_tanh", rope_theta=10000.0, torch_dtype="bfloat16"),
    "gemma3": dict(  # norms of heads; two rotary bases, of which one is scaled: the older dialect, a pattern of three
        architectures=["Gemma3ForCausalLM"], model_type="gemma3_text", hidden_size=64, intermediate_size=96,
        num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=1, head_dim=32, vocab_size=110,
        max_position_embeddings=256, query_pre_attn_scalar=32, sliding_window=20, sliding_window_pattern=3,
        rope_theta=1000000.0, rope_local_base_freq=10000.0, rope_scaling=dict(rope_type="linear", factor=8.0),
        hidden_activation="gelu_pytorch_tanh", torch_dtype="float32"),
    "gemma3-nested": dict(  # the newer dialect: rotary parameters by kind of layer, kinds in a list; a final soft cap
        architectures=["Gemma3ForCausalLM"], model_type="gemma3_text", hidden_size=48, intermediate_size=64,
        num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=2, head_dim=24, vocab_size=90,
        max_position_embeddings=256, query_pre_attn_scalar=40, sliding_window=30, final_logit_softcapping=5.0,
        layer_types=["full_attention", "sliding_attention", "full_attention"],
        rope_parameters=dict(full_attention=dict(rope_type="default", rope_theta=500000.0),
                             sliding_attention=dict(rope_type="default", rope_theta=20000.0)),
        hidden_activation="gelu_pytorch_tanh", dtype="float16"),
    "qwen3-window": dict(  # a window from the second layer on
        architectures=["Qwen3ForCausalLM"], model_type="qwen3", hidden_size=64, intermediate_size=64, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, head_dim=16, vocab_size=100, max_position_embeddings=256,
        rms_norm_eps=1e-6, rope_theta=10000.0, use_sliding_window=True, sliding_window=32, max_window_layers=1,
        tie_word_embeddings=True, torch_dtype="bfloat16"),
    "llama-yarn": dict(  # YaRN over heads of 32: fast, slow and ramped pairs; an attention factor of its own
        architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=64, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, head_dim=32, vocab_size=100, max_position_embeddings=256,
        rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=True, torch_dtype="float32",
        rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=64, beta_fast=8.0, beta_slow=1.5,
                          attention_factor=1.3)),
    "llama-dynamic": dict(  # within its context, dynamic scaling changes nothing
        architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=48, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=3, num_key_value_heads=3, vocab_size=60, max_position_embeddings=96, rms_norm_eps=1e-5,
        rope_theta=10000.0, tie_word_embeddings=True, torch_dtype="float16", rope_scaling=dict(type="dynamic", factor=2.0)),
    "qwen2-yarn": dict(  # YaRN as Qwen's pages tell to add it, in the older dialect
        architectures=["Qwen2ForCausalLM"], model_type="qwen2", hidden_size=64, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, vocab_size=80, max_position_embeddings=64, rms_norm_eps=1e-6,
        rope_theta=1000000.0, tie_word_embeddings=True, torch_dtype="bfloat16",
        rope_scaling=dict(type="yarn", factor=4.0, original_max_position_embeddings=64)),
    "phi3": dict(  # fused projections, a window
        architectures=["Phi3ForCausalLM"], model_type="phi3", hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, vocab_size=120, max_position_embeddings=256, rms_norm_eps=1e-5,
        rope_theta=10000.0, rope_scaling=None, original_max_position_embeddings=256, sliding_window=37,
        tie_word_embeddings=False, hidden_act="silu", torch_dtype="bfloat16", pad_token_id=0, eos_token_id=0),
    "phi4-mini": dict(  # a part of each head turned, longrope in its long form, a tied head
        architectures=["Phi3ForCausalLM"], model_type="phi3", hidden_size=64, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, vocab_size=110, max_position_embeddings=512, rms_norm_eps=1e-5,
        rope_theta=10000.0, partial_rotary_factor=0.75, original_max_position_embeddings=32, sliding_window=None,
        rope_scaling=dict(type="longrope", long_factor=[1.0 + 0.5 * i for i in range(12)],
                          short_factor=[1.0 + 0.05 * i for i in range(12)]),
        tie_word_embeddings=True, hidden_act="silu", torch_dtype="float32", pad_token_id=0, eos_token_id=0),
    "mixtral": dict(  # four experts of which a row has two, whose weights always sum to 1
        architectures=["MixtralForCausalLM"], model_type="mixtral", hidden_size=48, intermediate_size=40, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, vocab_size=100, max_position_embeddings=256, rms_norm_eps=1e-5,
        rope_theta=10000.0, num_local_experts=4, num_experts_per_tok=2, sliding_window=None, tie_word_embeddings=False,
        torch_dtype="bfloat16"),
    "qwen3-moe": dict(  # nine experts of which a row has three, narrower than the MLP that no layer has
        architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", hidden_size=48, intermediate_size=112,
        moe_intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        vocab_size=90, max_position_embeddings=256, rms_norm_eps=1e-6, rope_theta=1000000.0, num_experts=9,
        num_experts_per_tok=3, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[], tie_word_embeddings=True,
        use_sliding_window=False, torch_dtype="float32"),
    "qwen3-moe-plain": dict(  # weights of experts as they come out of the softmax; a window
        architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", hidden_size=40, intermediate_size=40,
        moe_intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, head_dim=20,
        vocab_size=70, max_position_embeddings=256, rms_norm_eps=1e-6, rope_theta=10000.0, num_experts=5,
        num_experts_per_tok=2, norm_topk_prob=False, tie_word_embeddings=False, use_sliding_window=True, sliding_window=33,
        torch_dtype="float16"),
    "gpt2": dict(  # learned positions, LayerNorm, matrices by inputs, an MLP of its own width
        architectures=["GPT2LMHeadModel"], model_type="gpt2", n_embd=48, n_layer=2, n_head=4, n_positions=96, n_inner=80,
        vocab_size=100, layer_norm_epsilon=1e-5, activation_function="gelu_new", bos_token_id=0, eos_token_id=0,
        torch_dtype="float32"),
    "pythia": dict(  # a parallel block with two norms, the projections of a head together, a quarter of a head turned
        architectures=["GPTNeoXForCausalLM"], model_type="gpt_neox", hidden_size=64, intermediate_size=96, num_hidden_layers=2,
        num_attention_heads=4, vocab_size=110, max_position_embeddings=256, layer_norm_eps=1e-5, rotary_pct=0.25,
        rotary_emb_base=10000, hidden_act="gelu", use_parallel_residual=True, tie_word_embeddings=False, bos_token_id=0,
        eos_token_id=0, torch_dtype="float16"),
    "neox-serial": dict(  # one block behind the other, gelu by tanh, the newer dialect, no biases of attention
        architectures=["GPTNeoXForCausalLM"], model_type="gpt_neox", hidden_size=48, intermediate_size=80, num_hidden_layers=2,
        num_attention_heads=3, vocab_size=90, max_position_embeddings=256, layer_norm_eps=1e-6, attention_bias=False,
        rope_parameters=dict(rope_type="default", rope_theta=20000.0, partial_rotary_factor=0.5), hidden_act="gelu_fast",
        use_parallel_residual=False, tie_word_embeddings=True, dtype="float32"),
    "falcon-7b": dict(  # one key head, a parallel block with one norm, no biases
        architectures=["FalconForCausalLM"], model_type="falcon", hidden_size=80, num_hidden_layers=2, num_attention_heads=5,
        vocab_size=100, layer_norm_epsilon=1e-5, multi_query=True, parallel_attn=True, bias=False, alibi=False,
        new_decoder_architecture=False, bos_token_id=11, eos_token_id=11, torch_dtype="bfloat16"),
    "falcon-40b": dict(  # groups of queries with a key and a value, two norms
        architectures=["FalconForCausalLM"], model_type="falcon", hidden_size=64, num_hidden_layers=2, num_attention_heads=8,
        num_kv_heads=2, vocab_size=90, layer_norm_epsilon=1e-5, parallel_attn=True, bias=False, alibi=False,
        new_decoder_architecture=True, torch_dtype="bfloat16"),
    "falcon-11b": dict(  # the same with one norm, a width of its own, another base
        architectures=["FalconForCausalLM"], model_type="falcon", hidden_size=48, num_hidden_layers=2, num_attention_heads=6,
        num_kv_heads=3, ffn_hidden_size=112, vocab_size=80, layer_norm_epsilon=1e-5, num_ln_in_parallel_attn=1, bias=False,
        alibi=False, new_decoder_architecture=True, rope_theta=500042.0, max_position_embeddings=512,
        tie_word_embeddings=False, torch_dtype="float32"),
    "falcon-rw": dict(  # ALiBi before the scale of scores, blocks behind one another, biases; slopes are exact in bfloat16
        architectures=["FalconForCausalLM"], model_type="falcon", hidden_size=64, num_hidden_layers=2, num_attention_heads=8,
        vocab_size=90, layer_norm_epsilon=1e-5, multi_query=False, parallel_attn=False, bias=True, alibi=True,
        new_decoder_architecture=False, torch_dtype="float16"),
    "mpt": dict(  # ALiBi of heads that are no power of two, limited queries, keys and values, LayerNorm without biases
        architectures=["MPTForCausalLM"], model_type="mpt", d_model=72, n_heads=6, n_layers=2, expansion_ratio=4,
        max_seq_len=128, vocab_size=100, no_bias=True, learned_pos_emb=True, norm_type="low_precision_layernorm",
        logit_scale=None, attn_config=dict(alibi=True, alibi_bias_max=8, attn_impl="torch", attn_type="multihead_attention",
                                           clip_qkv=0.75, prefix_lm=False, qk_ln=False, softmax_scale=None),
        torch_dtype="bfloat16"),
    "mpt-scaled": dict(  # a scale of scores of its own
        architectures=["MPTForCausalLM"], model_type="mpt", d_model=32, n_heads=4, n_layers=3, max_seq_len=128, vocab_size=80,
        attn_config=dict(alibi=True, clip_qkv=None, softmax_scale=0.5), torch_dtype="float32"),
}
# Widths of whole blocks of 256, so that every matrix can have every type: llama_cpp.py makes GGUF files of them.
SIZES_256 = dict(hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                 vocab_size=64, max_position_embeddings=128, torch_dtype="float32")
MODELS |= {name + "-256": MODELS[name] | SIZES_256 | more for name, more in {
    "llama-scaled": dict(tie_word_embeddings=False),
    "mixtral": dict(intermediate_size=256),
    "qwen2": dict(),
    "qwen3": dict(num_attention_heads=2, num_key_value_heads=1, head_dim=128),
    "qwen3-moe": dict(moe_intermediate_size=256, num_attention_heads=4, head_dim=64, num_experts=4, num_experts_per_tok=2),
    "gemma": dict(num_key_value_heads=1, head_dim=64),
    "gemma2": dict(num_attention_heads=2, num_key_value_heads=1, head_dim=128, query_pre_attn_scalar=128),
    "gemma3": dict(num_attention_heads=2, num_key_value_heads=1, head_dim=128, query_pre_attn_scalar=128, num_hidden_layers=3),
    "phi3": dict(num_key_value_heads=4, original_max_position_embeddings=128),
    "pythia": dict(),
}.items()}
MODELS |= {
    "gpt2-256": MODELS["gpt2"] | dict(n_embd=256, n_inner=512, n_positions=128, vocab_size=64),
    "falcon-7b-256": MODELS["falcon-7b"] | dict(hidden_size=256, num_attention_heads=4, vocab_size=64, torch_dtype="float32"),
    "mpt-256": MODELS["mpt"] | dict(d_model=256, n_heads=4, vocab_size=64, torch_dtype="float32"),
}
SHARDS = {"qwen3": 3, "phi3": 2, "qwen3-moe": 4}
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
        if name.endswith("norm.weight") or name.endswith(".weight") and ("ln_" in name or "norm_" in name):
            yield 1 + (i >> 2) / 128
        elif name.endswith(".bias"):
            yield i / 256
        elif any(of in name for of in ("embed_tokens", "embed_in", "word_embeddings")) or name in ("wte.weight", "wpe.weight"):
            yield i / 128
        else:
            yield i * 2.0 ** -round(math.log2(74 * math.sqrt(shape[-1])))


def save(path, value):
    with open(path, "w") as f:
        json.dump(value, f, indent=1, ensure_ascii=True)
        f.write("\n")


def checkpoint(key, shape, kind):
    """The tensors of a checkpoint that a parameter of transformers is made of: names and shapes. Experts are one parameter there."""
    if ".experts." not in key:
        key = key.removeprefix("transformer.")
        if kind == "gpt_neox" and key == "lm_head.weight":
            key = "embed_out.weight"
        yield key.replace(".mlp.gate.", ".block_sparse_moe.gate.") if kind == "mixtral" else key, list(shape)
        return
    layer = key.split(".mlp.")[0]
    before, gate, up, down = ("block_sparse_moe", "w1", "w3", "w2") if kind == "mixtral" else ("mlp", "gate_proj", "up_proj", "down_proj")
    for e in range(shape[0]):
        for part in [gate, up] if "gate_up" in key else [down]:
            rows = shape[1] // 2 if "gate_up" in key else shape[1]
            yield f"{layer}.{before}.experts.{e}.{part}.weight", [rows, shape[2]]


class Taps:
    """The residual stream of a pass: what enters the first two layers, and what enters and leaves the final norm."""

    def __init__(self, m):
        base = m.base_model
        self.layers = next(getattr(base, name) for name in ("layers", "h", "blocks") if hasattr(base, name))
        self.norm = next(getattr(base, name) for name in ("norm", "ln_f", "final_layer_norm", "norm_f") if hasattr(base, name))
        self.kept, self.hooks = [], []

    def __enter__(self):
        def enters(module, args, kwargs):
            self.kept.append(args[0] if args else kwargs["hidden_states"])

        def leaves(module, args, out):
            self.kept.append(out)

        self.hooks = [layer.register_forward_pre_hook(enters, with_kwargs=True) for layer in self.layers[:2]]
        self.hooks += [self.norm.register_forward_pre_hook(enters, with_kwargs=True), self.norm.register_forward_hook(leaves)]
        return self

    def __exit__(self, *_):
        for hook in self.hooks:
            hook.remove()

    def rows(self, positions):
        import torch
        assert len(self.kept) == 4
        return torch.stack([k[0].float() for k in self.kept], dim=1)[positions]


def model(name):
    import torch
    import transformers
    folder, keys = os.path.join(HERE, name), MODELS[name]
    os.makedirs(folder, exist_ok=True)
    save(os.path.join(folder, "config.json"), keys)
    config = transformers.AutoConfig.from_pretrained(folder)
    config._attn_implementation = "sdpa" if keys.get("alibi") else "eager"
    m = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    shards, tensors = SHARDS.get(name, 1), []
    dtype = DTYPES[keys.get("torch_dtype", keys.get("dtype"))]
    with torch.no_grad():
        for key, p in m.named_parameters():
            values = []
            for part, shape in checkpoint(key, p.shape, keys["model_type"]):
                values += draw(part, shape)
                tensors.append(dict(name=part, dtype=dtype, shape=shape, file=len(tensors) % shards))
            p.copy_(torch.tensor(values, dtype=torch.float64).reshape(p.shape).float())
    tokens = [mix(fnv(name) + i) % keys["vocab_size"] for i in range(TOKENS)]
    with torch.no_grad(), Taps(m) as taps:
        logits = m(torch.tensor([tokens])).logits[0].float()
    taps.rows(TAPPED).numpy().astype("<f4").tofile(os.path.join(folder, "taps.f32"))
    logits.numpy().astype("<f4").tofile(os.path.join(folder, "logits.f32"))
    save(os.path.join(folder, "case.json"), dict(files=shards, tensors=tensors, tokens=tokens))
    print(f"{name}: {sum(p.numel() for p in m.parameters())} weights, logits of rms {logits.square().mean().sqrt():.3f}")


def main():
    for name in sys.argv[1:] or MODELS:
        model(name)


if __name__ == "__main__":
    main()
