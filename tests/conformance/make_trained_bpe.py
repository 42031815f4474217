# SPDX-License-Identifier: MIT
"""Vocabularies trained by the library `tokenizers`, as digests for test_bpe_train; or held against those of `wager tokenizer train`.
usage: python3 tests/conformance/make_trained_bpe.py >tests/conformance/trained_bpe.json     (WG_SHARED: the shared data)
       python3 tests/conformance/make_trained_bpe.py WAGER VOCAB TEXT...                       (prints where they part)"""
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SYLLABLES = ["ba", "ka", "ri", "ton", "e", "st", "in", "g", "ä", "лов", "字", "x1", "2026", "'s", "aaa", "\u00a0"]


def generated(n):
    """The text of test_bpe_train.c: words of syllables by a linear congruential generator."""
    state, out = 1, []
    for i in range(n):
        state = (state * 1103515245 + 12345) % 2**31
        for k in range(1 + state // 65536 % 3):
            state = (state * 1103515245 + 12345) % 2**31
            a = state // 65536 % 256
            out.append(SYLLABLES[a * a // 4096])
        out.append("\n\n" if i % 41 == 40 else ".  " if i % 17 == 16 else " ")
    return "".join(out)


def trained(texts, vocab, pre="gpt-2", least=2, special=()):
    t = Tokenizer(models.BPE(ignore_merges=pre == "llama-bpe"))
    digits = [pre_tokenizers.Digits(individual_digits=True)] if pre == "starcoder" else []
    split = pre_tokenizers.Split(Regex(LLAMA3 if pre == "llama-bpe" else GPT2), "isolated")
    t.pre_tokenizer = pre_tokenizers.Sequence(digits + [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=vocab, min_frequency=least, special_tokens=list(special),
                                                     initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return t


def digest(lines):
    return hashlib.sha256("".join(line + "\n" for line in lines).encode()).hexdigest()


def merges(t):
    return [" ".join(m) for m in json.loads(t.to_str())["model"]["merges"]]


def fixture():
    out = []
    shakespeare = os.path.join(os.environ.get("WG_SHARED", "../shared/data"), "text/tinyshakespeare")
    names = [os.path.join(shakespeare, f) for f in sorted(os.listdir(shakespeare)) if f.endswith(".txt")]
    for text, pre, vocab, least, special in (("generated", "gpt-2", 700, 2, ["<|endoftext|>"]), ("generated", "llama-bpe", 900, 3, []),
                                             ("generated", "starcoder", 2000, 2, ["<s>", "</s>", "in"]),
                                             ("tinyshakespeare", "gpt-2", 3000, 2, ["<|endoftext|>"])):
        body = generated(6000) if text == "generated" else open(names[0], encoding="utf-8", newline="").read()
        t = trained([body], vocab, pre, least, special)
        out.append({"text": text if text == "generated" else os.path.relpath(names[0], os.path.dirname(os.path.dirname(shakespeare))),
                    "pre": pre, "vocab": vocab, "least": least, "special": special, "tokens": t.get_vocab_size(),
                    "merges": len(merges(t)), "merges_sha256": digest(merges(t)),
                    "ids_sha256": digest(map(str, t.encode(body[:20000], add_special_tokens=False).ids))})
    print(json.dumps(out, indent=1, ensure_ascii=False))


def compare(wager, vocab, files):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokenizer.json")
        subprocess.run([wager, "tokenizer", "train", *files, "--vocab", vocab, "--out", path], check=True)
        ours = Tokenizer.from_file(path)
    texts = [open(f, encoding="utf-8", newline="").read() for f in files]
    theirs = trained(texts, int(vocab))
    a, b = merges(ours), merges(theirs)
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    print(f"{len(a)} and {len(b)} merges, the first {at} are equal")
    same = all(ours.encode(t[:200000]).ids == theirs.encode(t[:200000]).ids for t in texts)
    print("texts encode", "equal" if same else "DIFFERENTLY")
    sys.exit(a != b or not same or ours.get_vocab() != theirs.get_vocab())


if len(sys.argv) > 3:
    compare(sys.argv[1], sys.argv[2], sys.argv[3:])
else:
    fixture()
