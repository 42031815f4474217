#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make_head.py FOLDER: heads with random weights, in speculators' layout, for the target of `wager synth --like tiny`: EAGLE-3 in
FOLDER, DFlash in FOLDER/block, an MTP layer in FOLDER/mtp, and P-EAGLE, EAGLE-1, DSpark, DFlash 2 in FOLDER/p-eagle, eagle-1,
dspark, dflash-2."""
import array
import json
import os
import random
import struct
import sys

DIM, VOCAB, DRAFTS, HEADS, WIDTH, HIDDEN = 32, 512, 200, 2, 8, 24


def layer(reads):
    return {
        "layers.0.input_layernorm.weight": (DIM,), "layers.0.post_attention_layernorm.weight": (DIM,),
        "layers.0.self_attn.q_proj.weight": (HEADS * WIDTH, reads), "layers.0.self_attn.k_proj.weight": (WIDTH, reads),
        "layers.0.self_attn.v_proj.weight": (WIDTH, reads), "layers.0.self_attn.o_proj.weight": (DIM, HEADS * WIDTH),
        "layers.0.mlp.gate_proj.weight": (HIDDEN, DIM), "layers.0.mlp.up_proj.weight": (HIDDEN, DIM),
        "layers.0.mlp.down_proj.weight": (DIM, HIDDEN), "norm.weight": (DIM,), "lm_head.weight": (DRAFTS, DIM),
    }


EAGLE = layer(2 * DIM) | {"fc.weight": (DIM, 3 * DIM), "layers.0.hidden_norm.weight": (DIM,)}
BLOCK = layer(DIM) | {"fc.weight": (DIM, 2 * DIM), "hidden_norm.weight": (DIM,), "layers.0.self_attn.q_norm.weight": (WIDTH,),
                      "layers.0.self_attn.k_norm.weight": (WIDTH,)}
MTP = {f"mtp_layers.0.{name[9:]}": shape for name, shape in layer(DIM).items() if name.startswith("layers.0.")} | {
    "mtp_layers.0.input_proj.weight": (DIM, 2 * DIM), "mtp_layers.0.token_layernorm.weight": (DIM,),
    "mtp_layers.0.hidden_layernorm.weight": (DIM,), "mtp_layers.0.final_layernorm.weight": (DIM,)}
PARALLEL = EAGLE | {"mask_hidden": (3 * DIM,)}
FIRST = {name: shape for name, shape in layer(DIM).items() if name.startswith("layers.0.") and "input" not in name} | {
    "fc.weight": (DIM, 2 * DIM), "fc.bias": (DIM,)}
RANK = 6
SPARK = BLOCK | {
    "markov_head.markov_w1.weight": (VOCAB, RANK), "markov_head.markov_w2.weight": (DRAFTS, RANK),
    "confidence_head.proj.weight": (1, DIM + RANK), "confidence_head.proj.bias": (1,)}
SECOND = {name: shape for name, shape in BLOCK.items() if name != "lm_head.weight"} | {
    f"layers.0.{part}": shape for conv in ("attention_conv", "mlp_conv")
    for part, shape in ((f"{conv}.base_kernel", (4, DIM)), (f"{conv}.kernel_projection.weight", (4 * 2, DIM)))} | {
    "candidate_selector.predecessor_codebook": (VOCAB, RANK), "candidate_selector.successor_codebook": (VOCAB, RANK),
    "candidate_selector.hidden_projection.weight": (RANK, DIM)}


def write(folder, shapes, config):
    draw, header, data = random.Random(1), {}, b""
    for name, shape in shapes.items():
        n = shape[0] * (shape[1] if len(shape) > 1 else 1)
        norm = len(shape) == 1
        piece = array.array("f", (1.0 if norm else draw.gauss(0, shape[-1] ** -0.5) for _ in range(n))).tobytes()
        header[name] = dict(dtype="F32", shape=shape, data_offsets=[len(data), len(data) + len(piece)])
        data += piece
    if "lm_head.weight" in shapes:
        piece = array.array("q", (i * VOCAB // DRAFTS - i for i in range(DRAFTS))).tobytes()
        header["d2t"] = dict(dtype="I64", shape=[DRAFTS], data_offsets=[len(data), len(data) + len(piece)])
        data += piece
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(folder)
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f, indent=1)


def main():
    keys = dict(hidden_size=DIM, intermediate_size=HIDDEN, num_attention_heads=HEADS, num_key_value_heads=1, head_dim=WIDTH,
                vocab_size=VOCAB, rms_norm_eps=1e-5)
    write(sys.argv[1], EAGLE, dict(
        speculators_model_type="eagle3", transformer_layer_config=dict(keys, model_type="llama"),
        eagle_aux_hidden_state_layer_ids=[0, 1, 2], norm_before_residual=True))
    write(os.path.join(sys.argv[1], "block"), BLOCK, dict(
        speculators_model_type="dflash", transformer_layer_config=dict(keys, model_type="qwen3"), block_size=4, mask_token_id=1,
        aux_hidden_state_layer_ids=[1, 2]))
    write(os.path.join(sys.argv[1], "mtp"), MTP, dict(
        speculators_model_type="mtp", transformer_layer_config=dict(keys, model_type="llama"), num_nextn_predict_layers=1))
    write(os.path.join(sys.argv[1], "p-eagle"), PARALLEL, dict(
        speculators_model_type="peagle", transformer_layer_config=dict(keys, model_type="llama"),
        eagle_aux_hidden_state_layer_ids=[0, 1, 2], mask_token_id=1))
    write(os.path.join(sys.argv[1], "eagle-1"), FIRST, dict(keys, model_type="llama"))
    write(os.path.join(sys.argv[1], "dspark"), SPARK, dict(
        speculators_model_type="dspark", transformer_layer_config=dict(keys, model_type="qwen3"), block_size=3, mask_token_id=1,
        aux_hidden_state_layer_ids=[1, 2], markov_rank=RANK))
    write(os.path.join(sys.argv[1], "dflash-2"), SECOND, dict(
        keys, model_type="qwen3", dflash_config=dict(block_size=4, mask_token_id=1, target_layer_ids=[0, 1], selector_rank=RANK)))


main()
