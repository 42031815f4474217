#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/conformance/families: make_families.py [NAME...]. A development tool; test_families reads what it wrote.

NAME.tar.gz is a folder as save_pretrained of a current transformers wrote it: no file is edited, except that transformers
writes no MXFP4 without a GPU: of gpt-oss-mxfp4 pack_experts does it, and transformers reads it back. NAME.json has what the
library computes from it: logits (rows of base64, f32) of some tokens in float32, ids of texts, the text of a conversation.

Needs torch and transformers; and accelerate, by which transformers reads MXFP4.
"""
import base64
import gzip
import io
import json
import os
import sys
import tarfile
import tempfile

import safetensors.torch
import torch
import transformers
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "families")
TOKENS = 24
TEXTS = ["The cat sat on the mat.", "<|im_start|>user\nHi<|im_end|>", " ünïcödé\t12345", "it's\n\n 3.14", ""]
PROSE = "the cat sat on the mat and the dog sat on the cat while the rain fell on the plain and the hat " * 3
TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "12"}]
TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] | trim }}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")

CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LINES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


def words(numbers):
    return CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|" + numbers + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|" + LINES


UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
SPLITS = {  # the expressions before the bytes, by tokenizer.ggml.pre
    "llama-bpe": [words(r"\p{N}{1,3}")], "smaug-bpe": [words(r"\p{N}{1,3}")], "glm4": [words(r"\p{N}{1,3}")],
    "dbrx": [words(r"\p{N}{1,3}")], "stablelm2": [words(r"\p{N}")], "gpt-2": None, "starcoder": "digits",
    "tekken": [r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + r"+|[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER
               + r"*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + LINES],
    "gpt-4o": [r"[^\r\n\p{L}\p{N}]?" + UPPER + "*" + LOWER + "+" + CONTRACTION + r"?|[^\r\n\p{L}\p{N}]?" + UPPER + "+" + LOWER
               + "*" + CONTRACTION + r"?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + LINES],
    "seed-coder": [CONTRACTION + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+"],
    "hunyuan-dense": [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
                      r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"""
                      + LINES],
}

YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=16, beta_fast=4.0, beta_slow=1.0)
SIZES = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
             max_position_embeddings=64)
FOUR = dict(num_hidden_layers=4)  # for patterns of layers
OSS = dict(head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=8,
           rope_parameters=YARN | dict(original_max_position_embeddings=32, factor=2.0, beta_fast=2.0, truncate=False))
# Name: class of the configuration, keys beside SIZES, tokenizer.ggml.pre (spm: SPM-style BPE with bytes).
FAMILIES = {
    "smollm3": ("SmolLM3Config", FOUR | dict(pad_token_id=0), "smaug-bpe"),
    "ministral3": ("Ministral3Config", dict(head_dim=16, rope_parameters=YARN | dict(
        mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1)), "tekken"),
    "mistral3-wrapped": ("Mistral3Config", dict(head_dim=8), "tekken"),
    "olmo2": ("Olmo2Config", dict(rope_theta=500000.0), "dbrx"),
    "olmo3": ("Olmo3Config", FOUR | dict(sliding_window=8, rope_parameters=dict(
        full_attention=YARN | dict(attention_factor=1.2), sliding_attention=dict(rope_type="default", rope_theta=10000.0))), "dbrx"),
    "granite": ("GraniteConfig", dict(embedding_multiplier=12.0, residual_multiplier=0.22, attention_multiplier=0.3,
                                      logits_scaling=8.0, tie_word_embeddings=True, attention_bias=True, mlp_bias=True), "starcoder"),
    "granite4": ("GraniteMoeHybridConfig", dict(
        embedding_multiplier=12.0, residual_multiplier=0.22, attention_multiplier=0.3, logits_scaling=4.0, num_local_experts=0,
        num_experts_per_tok=0, shared_intermediate_size=24, layer_types=["full_attention"] * 2, position_embedding_type="rope",
        mamba_n_heads=4, tie_word_embeddings=True), "starcoder"),
    "glm4": ("Glm4Config", dict(head_dim=16, pad_token_id=0), "glm4"),
    "exaone4": ("Exaone4Config", FOUR | dict(sliding_window=8, rope_parameters=dict(
        rope_type="llama3", rope_theta=10000.0, factor=16.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=32)), "gpt-2"),
    "exaone4-full": ("Exaone4Config", dict(sliding_window=None, layer_types=["full_attention"] * 2), "gpt-2"),
    "cohere2": ("Cohere2Config", FOUR | dict(sliding_window=8, logit_scale=0.25), "starcoder"),
    "seed-oss": ("SeedOssConfig", dict(head_dim=16, attention_dropout=0.0, residual_dropout=0.0), "seed-coder"),
    "hunyuan": ("HunYuanDenseV1Config", dict(head_dim=16, rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, factor=1.0, alpha=50.0)),
                "hunyuan-dense"),
    "ernie4_5": ("Ernie4_5Config", dict(head_dim=16), "spm"),
    "starcoder2": ("Starcoder2Config", dict(sliding_window=8), "starcoder"),
    "stablelm": ("StableLmConfig", dict(use_qkv_bias=True), "stablelm2"),
    "stablelm-parallel": ("StableLmConfig", dict(use_parallel_residual=True, partial_rotary_factor=0.5), "stablelm2"),
    "arcee": ("ArceeConfig", dict(), "llama-bpe"),
    "nemotron": ("NemotronConfig", dict(), "spm"),
    "gpt-oss": ("GptOssConfig", OSS, "gpt-4o"),
    "gpt-oss-mxfp4": ("GptOssConfig", OSS | dict(hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_local_experts=3,
                                                tie_word_embeddings=True), "gpt-4o"),
    "llama-mlp-bias": ("LlamaConfig", dict(mlp_bias=True, attention_bias=True), "llama-bpe"),
}


def sentencepiece():
    """SPM-style BPE with a token for each byte, as files that were made of a tokenizer.model have it."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    trained.train_from_iterator([PROSE], trainers.BpeTrainer(vocab_size=30, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    names = ["<unk>", "<|im_end|>"] + [f"<0x{b:02X}>" for b in range(256)] + sorted(model["vocab"], key=model["vocab"].get)
    t = Tokenizer(models.BPE({name: i for i, name in enumerate(names)}, [tuple(m) for m in model["merges"]], unk_token="<unk>",
                             byte_fallback=True, fuse_unk=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return t


def byte_level(pre):
    t = Tokenizer(models.BPE(ignore_merges=pre in ("llama-bpe", "tekken")))
    split = SPLITS[pre]
    byte = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=split is None or split == "digits")
    before = [pre_tokenizers.Digits(individual_digits=True)] if split == "digits" else [
        pre_tokenizers.Split(Regex(x), "isolated") for x in split or []]
    t.pre_tokenizer = pre_tokenizers.Sequence(before + [byte]) if before else byte
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator([PROSE], trainers.BpeTrainer(vocab_size=268, special_tokens=["<|im_end|>"], show_progress=False,
                                                       initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return t


def tokenizer(pre):
    fast = PreTrainedTokenizerFast(tokenizer_object=sentencepiece() if pre == "spm" else byte_level(pre), eos_token="<|im_end|>",
                                   additional_special_tokens=["<|im_start|>"], **(dict(unk_token="<unk>") if pre == "spm" else {}))
    fast.chat_template = TEMPLATE
    return fast


FP4 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def mxfp4(x):
    """Blocks (..., n / 32, 16) and scales (..., n / 32) of the numbers (..., n), OCP MX: of 32 numbers a power of two, two
    E2M1 codes a byte, the first one low."""
    runs = x.float().reshape(*x.shape[:-1], -1, 32)
    exponent = torch.floor(torch.log2(runs.abs().amax(-1).clamp(min=2.0**-100))) - 2
    scaled = runs / 2.0 ** exponent[..., None]
    code = (scaled.abs()[..., None] - FP4).abs().argmin(-1) + 8 * (scaled < 0)
    return (code[..., 0::2] | code[..., 1::2] << 4).to(torch.uint8), (exponent + 127).to(torch.uint8)


def pack_experts(folder):
    """Replaces the experts of a saved gpt-oss by MXFP4, as its published files have them."""
    path = os.path.join(folder, "model.safetensors")
    tensors = {}
    for name, t in safetensors.torch.load_file(path).items():
        if name.endswith("experts.gate_up_proj") or name.endswith("experts.down_proj"):
            tensors[name + "_blocks"], tensors[name + "_scales"] = mxfp4(t.transpose(-1, -2))
        else:
            tensors[name] = t
    safetensors.torch.save_file({k: v.contiguous() for k, v in tensors.items()}, path, metadata=dict(format="pt"))
    path = os.path.join(folder, "config.json")
    with open(path) as f:
        config = json.load(f)
    config["quantization_config"] = dict(quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn"])
    with open(path, "w") as f:
        json.dump(config, f, indent=2)


def pack(name, folder, facts):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for file in sorted(os.listdir(folder)):
            info = tarfile.TarInfo(file)
            info.size = os.path.getsize(os.path.join(folder, file))
            with open(os.path.join(folder, file), "rb") as f:
                tar.addfile(info, f)
    path = os.path.join(OUT, name + ".tar.gz")
    with open(path, "wb") as f, gzip.GzipFile("", "wb", 9, f, 0) as z:
        z.write(raw.getvalue())
    with open(os.path.join(OUT, name + ".json"), "w") as f:
        json.dump(dict(transformers=transformers.__version__) | facts, f, indent=1)
        f.write("\n")
    assert os.path.getsize(path) <= 40960, (name, os.path.getsize(path))
    print(name, os.path.getsize(path), sorted(os.listdir(folder)))


def make(name):
    kind, keys, pre = FAMILIES[name]
    fast = tokenizer(pre)
    keys = SIZES | dict(vocab_size=len(fast), bos_token_id=None, eos_token_id=fast.eos_token_id) | keys
    if kind == "Mistral3Config":
        vision = transformers.PixtralVisionConfig(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
                                                  image_size=16, patch_size=8)
        config = transformers.Mistral3Config(text_config=transformers.MistralConfig(**keys), vision_config=vision,
                                             image_token_index=3)
    else:
        config = getattr(transformers, kind)(**keys)
    config._attn_implementation = "eager"
    auto = transformers.AutoModelForImageTextToText if kind == "Mistral3Config" else transformers.AutoModelForCausalLM
    torch.manual_seed(7)
    model = auto.from_config(config)
    with torch.no_grad():
        for key, p in model.named_parameters():
            if p.dim() > 1:
                p.normal_(0, p.shape[-1] ** -0.5)
            elif "bias" in key or kind == "NemotronConfig":
                p.normal_(0, 0.25)
            else:
                p.normal_(1, 0.25)
            if "experts.gate_up_proj" in key and kind == "GptOssConfig":
                p.mul_(8)  # beyond the limits of the gates
    with tempfile.TemporaryDirectory() as d:
        model.to(torch.bfloat16).save_pretrained(d)
        fast.save_pretrained(d)
        if name == "gpt-oss-mxfp4":
            pack_experts(d)
        again = auto.from_pretrained(d, dtype=torch.float32, attn_implementation="eager").eval()
        read = AutoTokenizer.from_pretrained(d)
        tokens = [(37 * i + 11 * i * i) % len(fast) for i in range(TOKENS)]
        with torch.no_grad():
            logits = again(input_ids=torch.tensor([tokens]), use_cache=False).logits[0].float().numpy().astype("<f4")
        pack(name, d, dict(tokens=tokens, texts=TEXTS, ids=[read.encode(x) for x in TEXTS], pre=pre,
                           talk=TALK, said=read.apply_chat_template(TALK, tokenize=False, add_generation_prompt=True),
                           logits=[base64.b64encode(row.tobytes()).decode() for row in logits[::4]], every=4))


if __name__ == "__main__":
    os.makedirs(OUT, exist_ok=True)
    for name in sys.argv[1:] or FAMILIES:
        make(name)
