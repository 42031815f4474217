#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes two Hugging Face folders of the form of Qwen3-8B and Qwen3-0.6B, some hundred kilobytes each: miniature_pair.py FOLDER. BF16 in
shards, a byte-level tokenizer, a chat template; random weights. Needs the standard library alone."""
import json
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "conformance"))
from make_miniatures import draw  # noqa: E402

VOCAB, SHARDS = 600, 2
TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def tensors(dim, hidden, heads, kv_heads, head_dim, layers, tied):
    yield "model.embed_tokens.weight", [VOCAB, dim]
    for i in range(layers):
        at = f"model.layers.{i}."
        yield at + "input_layernorm.weight", [dim]
        yield at + "post_attention_layernorm.weight", [dim]
        yield at + "self_attn.q_norm.weight", [head_dim]
        yield at + "self_attn.k_norm.weight", [head_dim]
        yield at + "self_attn.q_proj.weight", [heads * head_dim, dim]
        yield at + "self_attn.k_proj.weight", [kv_heads * head_dim, dim]
        yield at + "self_attn.v_proj.weight", [kv_heads * head_dim, dim]
        yield at + "self_attn.o_proj.weight", [dim, heads * head_dim]
        yield at + "mlp.gate_proj.weight", [hidden, dim]
        yield at + "mlp.up_proj.weight", [hidden, dim]
        yield at + "mlp.down_proj.weight", [dim, hidden]
    yield "model.norm.weight", [dim]
    if not tied:
        yield "lm_head.weight", [VOCAB, dim]


def save(folder, name, value):
    with open(os.path.join(folder, name), "w") as f:
        json.dump(value, f)


def write_shard(path, part):
    header, data = {}, b""
    for name, shape in part:
        values = b"".join(struct.pack("<f", v)[2:] for v in draw(name, shape))  # BF16 holds them exactly
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def model(folder, **of):
    os.makedirs(folder)
    save(folder, "config.json", {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": of["dim"], "intermediate_size": of["hidden"],
        "num_hidden_layers": of["layers"], "num_attention_heads": of["heads"], "num_key_value_heads": of["kv_heads"],
        "head_dim": of["head_dim"], "vocab_size": VOCAB, "max_position_embeddings": 512, "rms_norm_eps": 1e-6, "rope_theta": 1000000,
        "tie_word_embeddings": of["tied"], "torch_dtype": "bfloat16", "use_sliding_window": False, "hidden_act": "silu"})
    with open(os.path.join(HERE, "..", "conformance", "tokenizers", "qwen2.json")) as f:
        save(folder, "tokenizer.json", json.load(f)["tokenizer"])
    save(folder, "tokenizer_config.json", {"eos_token": "<|im_end|>", "chat_template": TEMPLATE})
    save(folder, "generation_config.json", {"eos_token_id": [420, 9]})
    files = [f"model-{i + 1:05d}-of-{SHARDS:05d}.safetensors" for i in range(SHARDS)]
    parts, all_tensors = [[] for _ in files], list(tensors(**of))
    for i, t in enumerate(all_tensors):
        parts[i * SHARDS // len(all_tensors)].append(t)
    for name, part in zip(files, parts):
        write_shard(os.path.join(folder, name), part)
    save(folder, "model.safetensors.index.json",
         {"metadata": {}, "weight_map": {t[0]: name for name, part in zip(files, parts) for t in part}})


if __name__ == "__main__":
    model(os.path.join(sys.argv[1], "Qwen3-8B"), dim=64, hidden=96, heads=4, kv_heads=2, head_dim=16, layers=2, tied=False)
    model(os.path.join(sys.argv[1], "Qwen3-0.6B"), dim=32, hidden=32, heads=2, kv_heads=1, head_dim=16, layers=1, tied=True)
