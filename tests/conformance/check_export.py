#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Folders that `wager convert` writes, against the libraries they are for: check_export.py WAGER. A development tool.

Each miniature model: a checkpoint of its weights (make_miniatures.py draws them), to GGUF, and to a folder again; transformers loads
it and gives the committed logits to 1e-5 of each row. Each tokenizer of tokenizers/: over the weights of a miniature, to GGUF, and to
a folder again; its tokenizer.json loads in the library `tokenizers` and gives the committed ids, and AutoTokenizer those too.
Exits 77 (skipped) where torch, transformers or safetensors are missing.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
try:
    import safetensors.torch
    import tokenizers
    import torch
    import transformers
except ImportError as e:
    print(f"SKIPPED: {e}")
    sys.exit(77)
sys.path.insert(0, HERE)
import make_miniatures as mini  # noqa: E402

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
failed = 0


def load(*path):
    with open(os.path.join(HERE, *path)) as f:
        return json.load(f)


def write_checkpoint(config, tensors, folder):
    os.makedirs(folder)
    mini.save(os.path.join(folder, "config.json"), config)
    weights = {t["name"]: torch.tensor(list(mini.draw(t["name"], t["shape"])), dtype=torch.float64).reshape(t["shape"]).to(DTYPES[t["dtype"]])
               for t in tensors}
    safetensors.torch.save_file(weights, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})


def there_and_back(wager, folder, *flags):
    for words in ([folder, folder + ".gguf"], [folder + ".gguf", folder + "-again", *flags]):
        subprocess.run([wager, "convert", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder + "-again"


def check_model(wager, name, base):
    case, config = load(name, "case.json"), load(name, "config.json")
    write_checkpoint(config, case["tensors"], os.path.join(base, name))
    again = there_and_back(wager, os.path.join(base, name), "--type", "f32", "--shard-gb", "0.00005")
    m, info = transformers.AutoModelForCausalLM.from_pretrained(again, dtype=torch.float32, attn_implementation="eager",
                                                                output_loading_info=True)
    with torch.no_grad():
        got = m.eval()(torch.tensor([case["tokens"]])).logits[0].double()
    want = torch.frombuffer(bytearray(open(os.path.join(HERE, name, "logits.f32"), "rb").read()), dtype=torch.float32)
    want = want.reshape(got.shape).double()
    error = ((got - want).square().sum(1) / want.square().sum(1)).sqrt().max().item()
    odd = [k for k in ("missing_keys", "unexpected_keys", "mismatched_keys") if info[k]]
    return f"largest relative error of a row {error:.1e}" + (f", {odd}" if odd else ""), error < 1e-5 and not odd


def check_tokenizer(wager, name, base):
    fixture, texts = load("tokenizers", name + ".json"), load("tokenizers", "texts.json")
    config = dict(mini.MODELS["llama-dynamic"], vocab_size=600)
    shapes = {t["name"]: t["shape"] for t in load("llama-dynamic", "case.json")["tensors"]}
    shapes["model.embed_tokens.weight"] = [600, config["hidden_size"]]
    folder = os.path.join(base, "tokenizer-" + name)
    write_checkpoint(config, [dict(name=n, shape=s, dtype="F16") for n, s in shapes.items()], folder)
    model = os.path.join(HERE, "tokenizers", name + ".model")
    if os.path.exists(model):
        with open(os.path.join(folder, "tokenizer.model"), "wb") as f:
            f.write(open(model, "rb").read())
    else:
        mini.save(os.path.join(folder, "tokenizer.json"), fixture["tokenizer"])
    again = there_and_back(wager, folder)
    ours = tokenizers.Tokenizer.from_file(os.path.join(again, "tokenizer.json"))
    auto = transformers.AutoTokenizer.from_pretrained(again)
    special = not os.path.exists(model)  # the ids of SentencePiece are those of texts alone, and it reads "<s>" as letters
    wrong = [i for i, text in enumerate(texts) if (special or "<s>" not in text)
             and (ours.encode(text, add_special_tokens=special).ids != fixture["ids"][i]
             or auto(text, add_special_tokens=special)["input_ids"] != fixture["ids"][i])]
    return f"{len(texts)} texts, wrong: {wrong}", not wrong


def main():
    global failed
    wager, only = os.path.abspath(sys.argv[1]), sys.argv[2:]
    refused = {"sp-unigram", "sp-unigram-bytes"}  # a map of characters, which a tokenizer.json that is read here cannot hold
    models = list(mini.MODELS)
    files = sorted(f[:-5] for f in os.listdir(os.path.join(HERE, "tokenizers")) if f.endswith(".json") and f != "texts.json")
    with tempfile.TemporaryDirectory() as base:
        for check, names in ((check_model, models), (check_tokenizer, [f for f in files if f not in refused])):
            for name in names:
                if only and name not in only:
                    continue
                try:
                    text, fine = check(wager, name, base)
                except Exception as e:  # the report names all that fail
                    text, fine = f"{type(e).__name__}: {str(e)[:300]}", False
                print(f"{'ok    ' if fine else 'FAILED'} {name}: {text}", flush=True)
                failed += not fine
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
