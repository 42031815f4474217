#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/conformance/folders: make_folders.py [NAME...]. A development tool; tests read what it wrote.

NAME.tar.gz is a folder as save_pretrained of a current transformers (or speculators) wrote it: no file is edited, source of the
library is left out. NAME.json
has the versions, and what the libraries compute from it: ids of texts, logits of some tokens in float32. `sentencepiece` has no
archive: its folders are tokenizer.model of ../tokenizers/sp-bpe.model beside the files that the JSON lists.

Needs torch, transformers, sentencepiece, protobuf and speculators (installed with --no-deps).
"""
import gzip
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "folders")
TEXTS = ["The cat sat on the mat.", "<|im_start|>user\nHi<|im_end|>", " ünïcödé\t12", ""]
PROSE = "the cat sat on the mat and the dog sat on the cat while the rain fell on the plain and the hat " * 3
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"


def pack(name, folder, facts):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for root, _, files in sorted(os.walk(folder)):
            for file in sorted(f for f in files if not f.endswith(".py")):  # speculators adds a copy of its source
                path = os.path.join(root, file)
                info = tarfile.TarInfo(os.path.relpath(path, folder))
                info.size = os.path.getsize(path)
                with open(path, "rb") as f:
                    tar.addfile(info, f)
    with open(os.path.join(OUT, name + ".tar.gz"), "wb") as f, gzip.GzipFile("", "wb", 9, f, 0) as z:
        z.write(raw.getvalue())
    write(name, dict(transformers=transformers.__version__, **facts))
    print(name, os.path.getsize(os.path.join(OUT, name + ".tar.gz")), sorted(os.listdir(folder)))


def write(name, facts):
    with open(os.path.join(OUT, name + ".json"), "w") as f:
        json.dump(facts, f, indent=1)
        f.write("\n")


def tokenizer():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.train_from_iterator([PROSE], trainers.BpeTrainer(vocab_size=280, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                                       show_progress=False))
    fast = PreTrainedTokenizerFast(tokenizer_object=t, eos_token="<|im_end|>", pad_token="<|endoftext|>",
                                   additional_special_tokens=["<|im_start|>"])
    fast.add_tokens([AddedToken("<think>", normalized=False)])
    fast.chat_template = {"default": TEMPLATE, "tool_use": TEMPLATE + "{{ tools }}"}
    return fast


def logits_of(model, tokens):
    model = model.float().eval()
    with torch.no_grad():
        out = model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]
    return dict(tokens=tokens, logits=[[float(f"{x:.8g}") for x in row] for row in out.tolist()])


def draw(config, cls):
    torch.manual_seed(7)
    model = cls(config)
    with torch.no_grad():  # rows that a rounding does not decide
        for p in model.parameters():
            if p.dim() > 1:
                p.normal_(0, p.shape[-1] ** -0.5)
    return model.to(torch.bfloat16)


def make_llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    fast = tokenizer()
    config = LlamaConfig(hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2,
                         num_key_value_heads=1, vocab_size=len(fast), max_position_embeddings=64, tie_word_embeddings=True,
                         bos_token_id=None, eos_token_id=fast.eos_token_id, pad_token_id=fast.pad_token_id)
    with tempfile.TemporaryDirectory() as d:
        model = draw(config, LlamaForCausalLM)
        model.save_pretrained(d)
        fast.save_pretrained(d)
        again = LlamaForCausalLM.from_pretrained(d)
        pack("llama", d, dict(texts=TEXTS, ids=[AutoTokenizer.from_pretrained(d).encode(x) for x in TEXTS],
                              **logits_of(again, [3, 141, 59, 26, 5])))


def make_untied():
    """A model that says its head is tied and has another one."""
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2,
                         num_key_value_heads=1, vocab_size=40, max_position_embeddings=64, tie_word_embeddings=False)
    with tempfile.TemporaryDirectory() as d:
        model = draw(config, LlamaForCausalLM)
        model.config.tie_word_embeddings = True
        model.save_pretrained(d)
        again = LlamaForCausalLM.from_pretrained(d)
        assert not torch.equal(again.lm_head.weight, again.model.embed_tokens.weight)
        pack("untied", d, logits_of(again, [3, 14, 15, 9, 26]))


def make_qwen3_moe():
    from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM
    config = Qwen3MoeConfig(hidden_size=16, intermediate_size=24, moe_intermediate_size=8, num_hidden_layers=2,
                            num_attention_heads=2, num_key_value_heads=1, head_dim=8, vocab_size=40, num_experts=4,
                            num_experts_per_tok=2, norm_topk_prob=True, max_position_embeddings=64, tie_word_embeddings=False)
    for name, original in [("qwen3-moe", True), ("qwen3-moe-fused", False)]:
        with tempfile.TemporaryDirectory() as d:
            draw(config, Qwen3MoeForCausalLM).save_pretrained(d, save_original_format=original)
            pack(name, d, logits_of(Qwen3MoeForCausalLM.from_pretrained(d), [3, 14, 15, 9, 26]))


def make_gemma3():
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration, Gemma3TextConfig, SiglipVisionConfig
    text = Gemma3TextConfig(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
                            num_key_value_heads=1, head_dim=8, vocab_size=40, max_position_embeddings=64, sliding_window=32,
                            query_pre_attn_scalar=8, layer_types=["sliding_attention", "full_attention"])
    vision = SiglipVisionConfig(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, image_size=16,
                                patch_size=8)
    config = Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=4, image_token_index=40)
    with tempfile.TemporaryDirectory() as d:
        draw(config, Gemma3ForConditionalGeneration).save_pretrained(d)
        pack("gemma3", d, logits_of(Gemma3ForConditionalGeneration.from_pretrained(d), [3, 14, 15, 9, 26]))


def make_speculators():
    from importlib.metadata import version
    from speculators.models.eagle3 import Eagle3DraftModel, Eagle3SpeculatorConfig
    from transformers import LlamaConfig
    layer = LlamaConfig(hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2,
                        num_key_value_heads=1, vocab_size=40, max_position_embeddings=64)
    config = Eagle3SpeculatorConfig(transformer_layer_config=layer, draft_vocab_size=20, norm_before_residual=False)
    with tempfile.TemporaryDirectory() as d:
        Eagle3DraftModel(config).to(torch.bfloat16).save_pretrained(d)
        pack("speculators", d, dict(speculators=version("speculators")))


def make_sentencepiece():
    """Folders with tokenizer.model alone, and the ids of transformers' LlamaTokenizer."""
    n = 480

    def token(text, special=True, **more):
        return dict(content=text, lstrip=False, rstrip=False, normalized=False, single_word=False, special=special) | more

    decoder = {str(n): token("<|im_start|>"), str(n + 1): token("<|im_end|>"),
               str(n + 2): token("<tool>", False, lstrip=True, rstrip=True)}
    plain = {"tokenizer_class": "LlamaTokenizer"}
    both = {"<|im_start|>": n, "<|im_end|>": n + 1}
    cases = [
        {"tokenizer_config.json": plain | {"add_bos_token": True}},
        {"tokenizer_config.json": plain | {"add_bos_token": False, "eos_token": "<|im_end|>"}, "added_tokens.json": both},
        {"tokenizer_config.json": plain | {"add_bos_token": False, "added_tokens_decoder": decoder}},
        {"tokenizer_config.json": plain | {"add_bos_token": False, "added_tokens_decoder": decoder, "legacy": True}},
        {"tokenizer_config.json": plain | {"add_bos_token": True, "add_eos_token": True, "added_tokens_decoder": decoder,
                                           "eos_token": {"__type": "AddedToken"} | token("<|im_end|>")}},
        {"tokenizer_config.json": plain | {"add_bos_token": False, "add_eos_token": True,
                                           "extra_special_tokens": ["<|im_start|>"]}, "added_tokens.json": both},
    ]
    texts = ["hello <|im_start|>user x<|im_end|> y", " a <tool> b", "the</s>", "the cat"]
    rows = []
    for files in cases:
        with tempfile.TemporaryDirectory() as d:
            shutil.copy(os.path.join(HERE, "tokenizers", "sp-bpe.model"), os.path.join(d, "tokenizer.model"))
            for name, value in (files | {"config.json": {"model_type": "llama"}}).items():
                with open(os.path.join(d, name), "w") as f:
                    json.dump(value, f)
            t = AutoTokenizer.from_pretrained(d)
            rows.append(dict(files=files, size=len(t), ids=[t.encode(x) for x in texts], eos=t.eos_token_id,
                             special=[i for i, x in t.added_tokens_decoder.items() if x.special and i >= n]))
    write("sentencepiece", dict(transformers=transformers.__version__, texts=texts, cases=rows))


if __name__ == "__main__":
    os.makedirs(OUT, exist_ok=True)
    makers = {k[5:]: v for k, v in list(globals().items()) if k.startswith("make_")}
    for name in sys.argv[1:] or makers:
        makers[name.replace("-", "_")]()
