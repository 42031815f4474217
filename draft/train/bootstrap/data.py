"""Text cleaning, held-out split, tokenizer and token arrays for the bundled model pair.

    python data.py --text DIR [--text DIR ...] --out OUT
    python data.py --text DIR [--text DIR ...] --chapters OUT

Each *.md or *.txt file below a text folder is one book. Markdown headings cut a book into chapters; a
chapter is one document. A chapter is held out when the hash of (file name, chapter number) says so
(1 in 50), so that the split needs no list and no seed. The tokenizer sees the training part only.

--out: OUT receives tokenizer.json, train.u16, held.u16 (token ids, uint16) and data.json (counts, held-out list).
--chapters: OUT/train and OUT/held receive the chapters as NNNNN.txt, in the order of the arrays, for `wager train`.
"""
import argparse
import hashlib
import json
import re
from pathlib import Path

VOCAB = 4096
BOS, EOS = 0, 1
GPT2_SPLIT = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
HELD_OUT_ONE_IN = 50
MIN_CHAPTER = 400  # characters; shorter pieces (title pages, part headings) join the next chapter

PLAIN = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2032": "'",
                       "\u2014": "--", "\u2026": "...", "\u00a0": " ", "_": None, "*": None, "\r": None})


def chapters(raw):
    """Yield the cleaned chapters of one book: straight quotes, no emphasis marks, one blank line between
    paragraphs, headings as plain lines, no metadata lines (title, author, year) and no rules."""
    out = []
    for line in raw.translate(PLAIN).split("\n"):
        line = re.sub(r"[ \t]+", " ", line).strip()
        if re.fullmatch(r"-{3,}", line) or re.match(r"#+ (Title|Author|Year):", line):
            continue
        if line.startswith("#"):
            if sum(map(len, out)) >= MIN_CHAPTER:
                yield finish(out)
                out = []
            line = line.lstrip("# ")
        out.append(line)
    yield finish(out)


def finish(lines):
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def is_held_out(book, number):
    digest = hashlib.sha256(f"{book}/{number}".encode()).digest()
    return int.from_bytes(digest[:8], "little") % HELD_OUT_ONE_IN == 0


def read_books(folders):
    train, held, names = [], [], []
    files = sorted((f for d in folders for f in Path(d).rglob("*") if f.suffix in (".md", ".txt")),
                   key=lambda f: f.name)
    for file in files:
        for number, text in enumerate(chapters(file.read_text(encoding="utf-8"))):
            if len(text) < 2:
                continue
            if is_held_out(file.stem, number):
                held.append(text)
                names.append(f"{file.stem}/{number}")
            else:
                train.append(text)
    return train, held, names


def train_tokenizer(texts, vocab):
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(GPT2_SPLIT), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=vocab, special_tokens=["<s>", "</s>"], show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    assert tok.get_vocab_size() == vocab
    assert tok.token_to_id("<s>") == BOS and tok.token_to_id("</s>") == EOS
    return tok


def encode(tok, texts):
    """One array: <s> chapter </s> <s> chapter </s> ... and the number of text bytes in it."""
    import numpy as np
    ids, size = [], 0
    for text, enc in zip(texts, tok.encode_batch(texts)):
        assert tok.decode(enc.ids) == text, "tokenizer does not round-trip"
        ids += [BOS, *enc.ids, EOS]
        size += len(text.encode())
    return np.array(ids, np.uint16), size


def prepare(folders, out, vocab=VOCAB):
    out = Path(out)
    if (out / "data.json").exists():
        return
    out.mkdir(parents=True, exist_ok=True)
    train, held, names = read_books(folders)
    tok = train_tokenizer(train, vocab)
    tok.save(str(out / "tokenizer.json"))
    info = {}
    for part, texts in ("train", train), ("held", held):
        ids, size = encode(tok, texts)
        ids.tofile(out / f"{part}.u16")
        info[part] = {"chapters": len(texts), "tokens": len(ids), "bytes": size}
    for odd in ("", " ", "a\u3000b\x00c", "\u00e9\u4e2d\U0001f600", "  two  spaces\n\n\n 'tis I'll 12345"):
        assert tok.decode(tok.encode(odd).ids) == odd
    info["held_out_chapters"] = names
    (out / "data.json").write_text(json.dumps(info, indent=1) + "\n")
    print({k: v for k, v in info.items() if k != "held_out_chapters"})


def write_chapters(folders, out):
    for part, texts in zip(("train", "held"), read_books(folders)):
        folder = Path(out) / part
        folder.mkdir(parents=True, exist_ok=True)
        for number, text in enumerate(texts):
            (folder / f"{number:05}.txt").write_text(text, encoding="utf-8")
        print(f"{folder}: {len(texts)} chapters")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Prepare the tokenizer and the token arrays.")
    parser.add_argument("--text", action="append", required=True, help="folder of books (repeatable)")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--out", help="folder of the tokenizer and the token arrays")
    where.add_argument("--chapters", help="folder of the cleaned chapters, a file each")
    parser.add_argument("--vocab", type=int, default=VOCAB, help="tokens of the vocabulary")
    args = parser.parse_args()
    if args.chapters:
        write_chapters(args.text, args.chapters)
    else:
        prepare(args.text, args.out, args.vocab)
