#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes pretok.txt, gpt2.txt and llama-spm.txt with PyPI `tokenizers` and `sentencepiece` as the judges.

    python3 tests/golden/text/make.py TOKENIZERS      the folder with gpt2/{encoder.json,vocab.bpe} and llama2/tokenizer.model

A line is `escaped input TAB numbers` (pretok.txt: `name TAB escaped input TAB lengths`). Only \\xNN, \\n, \\r, \\t and \\\\ are
escapes. Bytes that are not UTF-8 cannot be given to either library; a private-use character stands in for each, which the
patterns also count as punctuation and the vocabularies also do not know, and is turned back into its byte afterwards.
"""
import json
import os
import sys

from tokenizers import Regex, models, pre_tokenizers

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
PATTERNS = {"gpt-2": GPT2, "llama-bpe": LLAMA3, "qwen2": LLAMA3.replace("{1,3}", ""), "smollm": GPT2}
STAND_IN = 0xE000

INPUTS = [s.encode() for s in [
    "", " ", "  ", "   ", "\n", "\r\n", "\n\n", " \n", "\n ", "\t", "\t\t x", "Hello", " Hello", "  Hello", "Hello world",
    "Hello  world", "Hello   world\n", "trailing   ", "a\u00a0b", "\u00a0\u00a0b", "a\u0085b", "\u0085\u0085b", "\u3000全角\u3000\u3000空白",
    "a\u180eb \u180e c", "\u2028line\u2029sep", "zero\u200bwidth\ufeffmark", "👩‍👩‍👧‍👦 family", "🏳️‍🌈 🧑🏽‍🚀", "x👍🏿y", "日本語のテキスト", "中文,标点。",
    "한국어 문장", "e\u0301tude ne\u0308e \u0301alone", "résumé naïve coöperate", "नमस्ते दुनिया", "ไทยไม่มีช่องว่าง", "עברית וערבית عربي",
    "a\r\nb\r\n\r\nc", "a\n\n  b", "  \n  \n  x", "\n\n\n   x", "x \n", "x\n ", ".\n\n.", "!?\r\n\r\n!", "... \n...",
    "1", "12", "123", "1234", "12345", "123456", "1234567", " 1 12 123", "a1b22c333", "1,234.56", "½ ² Ⅻ ٣٤ १२३", "v1.2.3-rc4",
    "I'm you're he's we've they'll I'd don't", "I'M YOU'RE HE'S WE'VE THEY'LL I'D DON'T", "'S'T'RE'VE'M'LL'D", "o'clock rock'n'roll",
    "'\u017f 'l\u017f", "'\u017fx 'Sx", "''s '''t", "’s ‘quoted’ “double”", "it's\u00a0fine", "_snake_case camelCase SCREAM", "--flag=value",
    "int main(void) { return 0; }\n\n\tint x = 1;", "    indented\n        more", "a  b   c    d     e", "http://example.org/a?b=c&d=%20#e",
    "\u2581literal \u2581", "<s> </s> <unk> <0x0A>", "<|endoftext|>", "\\n is not a newline", "tab\tand\\slash", "ſtraße İstanbul ǅ",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛", "\U000323af\U000e0041", "\u0300\u0301\u0302", "a" * 100, "ab" * 60, " " * 40 + "x", "=" * 70 + "\n" + "-" * 30,
    "Führer 4 ½ months", "The quick brown fox jumps over the lazy dog.", "speculative decoding is a wager",
]] + [b"nul\x00byte\x00\x00", b"\xff", b"\xfe\xff text", b"a\x80b", b"cut \xe2\x96", b"cut \xf0\x9f\x98", b"\xc0\x80 overlong",
      b"lone \xed\xa0\x80 surrogate", b"\xf4\x90\x80\x80", b"ok \xe2\x9c\x93 bad \xe2\x9c ok", b" \xff \xff\n\xff1\xffa"]


def split(pattern, digits_first):
    step = pre_tokenizers.Split(Regex(pattern), "isolated")
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), step]) if digits_first else step


def stand_in(raw):
    """Text with a private-use character for every byte that is not UTF-8, and the way back."""
    out = []
    for c in raw.decode("utf-8", "surrogateescape"):
        out.append(chr(STAND_IN + ord(c) - 0xDC00) if 0xDC80 <= ord(c) <= 0xDCFF else c)
    return "".join(out)


def back(text):
    return b"".join(bytes([ord(c) - STAND_IN]) if STAND_IN + 0x80 <= ord(c) <= STAND_IN + 0xFF else c.encode() for c in text)


def escape(raw):
    named = {10: "\\n", 13: "\\r", 9: "\\t", 92: "\\\\"}
    try:
        text = raw.decode()
        return "".join(named.get(ord(c)) or (f"\\x{ord(c):02x}" if ord(c) < 32 else c) for c in text)
    except UnicodeDecodeError:
        return "".join(named.get(b) or (chr(b) if 32 <= b < 127 else f"\\x{b:02x}") for b in raw)


def byte_map():
    prints = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in prints]
    return {b: chr(b) for b in prints} | {b: chr(256 + i) for i, b in enumerate(others)}


def gpt2_encoder(folder):
    with open(os.path.join(folder, "gpt2/encoder.json"), encoding="utf-8") as f:
        vocab = json.load(f)
    with open(os.path.join(folder, "gpt2/vocab.bpe"), encoding="utf-8") as f:
        merges = [tuple(line.split(" ")) for line in f.read().split("\n")[1:] if line]
    model, cut, to = models.BPE(vocab=vocab, merges=merges), split(GPT2, False), byte_map()
    return lambda raw: [t.id for word, _ in cut.pre_tokenize_str(stand_in(raw))
                        for t in model.tokenize("".join(to[b] for b in back(word)))]


def spm_encoder(folder):
    import sentencepiece
    sp = sentencepiece.SentencePieceProcessor(model_file=os.path.join(folder, "llama2/tokenizer.model"))
    first = sp.piece_to_id("<0x00>")

    def encode(raw):
        ids, out = sp.encode(stand_in(raw)), []
        while ids:
            three = bytes(max(0, min(255, i - first)) for i in ids[:3])
            if ids[0] >= first and len(three) == 3 and max(ids[:3]) < first + 256 and 0xEE == three[0]:
                out.append(first + back(three.decode())[0])
                ids = ids[3:]
            else:
                out.append(ids.pop(0))
        return out
    return encode


def write(name, lines):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), "w", encoding="utf-8", newline="\n") as f:
        f.writelines(line + "\n" for line in lines)


def main():
    folder = sys.argv[1]
    pretok = []
    for name, pattern in PATTERNS.items():
        cut = split(pattern, name == "smollm")
        for raw in INPUTS:
            lengths = [len(back(word)) for word, _ in cut.pre_tokenize_str(stand_in(raw))]
            pretok.append("\t".join([name, escape(raw), " ".join(map(str, lengths))]))
    write("pretok.txt", pretok)
    for name, encode in ("gpt2.txt", gpt2_encoder(folder)), ("llama-spm.txt", spm_encoder(folder)):
        write(name, [escape(raw) + "\t" + " ".join(map(str, encode(raw))) for raw in INPUTS])


main()
