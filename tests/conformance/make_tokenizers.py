#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/conformance/tokenizers: make_tokenizers.py [NAME...]. A development tool; tests read what it wrote.

texts.json holds the texts. For each pipeline NAME.json holds a tokenizer that was trained here on a few lines (`tokenizer`, as
the library writes it), the ids that the library `tokenizers` gives for each text (`ids`), and, where it is not the text itself,
what it decodes them to (`decoded`: pairs of the number of a text and a text). A published tokenizer.json with the same pipeline
has other tokens and merges. Training is not deterministic: a new run writes other tokenizers, on which the tests pass as well.

sp-*.model are models of SentencePiece, trained on the same lines; sp-*.json has the ids that its library gives.

Needs the libraries tokenizers 0.23, sentencepiece 0.2 and protobuf:
python3 -m venv V && V/bin/pip install tokenizers sentencepiece protobuf
"""

import json
import os
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers as pre, processors, trainers

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokenizers")
SPACE = "\u2581"

CORPUS = [
    "The quick brown fox jumps over the lazy dog. It's a wager: they'll win, we've lost, I'd say you're right.",
    "Speculative decoding verifies the drafts of a small model with one pass of the large model, so the text stays the same.",
    "def forward(self, x):\n    return self.norm(x + self.attention(x))\n\n\n"
    "for (int i = 0; i < n; i++) {\n\ttotal += value[i];\n}\n",
    "In 2024 there were 12345 tokens, 3.14159 of them 100% new; see https://example.org/a?b=c&d=e#f for 1,000,000 more...",
    "Die Straße nach Zürich führt über Köln. Où est le café déjà vu? ¿Dónde está el niño? Привет, мир! Добрый день.",
    "日本語のテキストと中文的文本。한국어 문장입니다. नमस्ते दुनिया ไทย עברית عربي",
]

TEXTS = [
    "",
    " ",
    "  ",
    "   ",
    "a",
    " a",
    "  a",
    "a ",
    "a  ",
    "\n",
    "\r\n",
    "\n\n",
    " \n",
    "\n ",
    "\t",
    "\t\t x",
    "Hello, world!",
    "  Hello  world  ",
    "the the  the   the    the",
    "trailing   ",
    "line\n\n\nline\r\n\r\n  indented",
    "x \n \n  y\n",
    ".\n\n.",
    "!?\r\n\r\n!",
    "... \n...",
    "a\u00a0b \u00a0c",
    "a\u0085b\u0085\u0085c",
    "\u3000全角\u3000\u3000空白",
    "a\u180eb \u180e c",
    "\u2028line\u2029sep",
    "zero\u200bwidth\ufeffmark\u200djoin",
    "👩‍👩‍👧‍👦 family 🏳️‍🌈 🧑🏽‍🚀x👍🏿y",
    "日本語のテキスト、中文,标点。カタカナ・ひらがな〜一二三",
    "한국어 문장입니다 ㄱㄴㄷ",
    "नमस्ते दुनिया किताब",
    "ไทยไม่มีช่องว่าง",
    "עברית וערבית عربي ١٢٣٤",
    "Iñtërnâtiônàlizætiøn",
    "e\u0301tude ne\u0308e \u0301alone",
    "\u0041\u030a \u00c5 \u212b \u1e9b\u0323 \u0344 \u0958",
    "a\u0315\u0300\u05ae\u0062 \u1100\u1161\u11a8 \uac00\u11a8 \u0b47\u0b3e",
    "\u1e0a\u0323 D\u0323\u0307 q\u0307\u0323 \u03b9\u0308\u0301 \u2126\u212a",
    "\u0300\u0301\u0302",
    "ABCdef XMLHttpRequest aBcD ÀÉÎõü ǅ ʰʱ ªº ΑΒΓδεζ Дом ДОМ дОм",
    "iPhone's CAMEL'S don'T WE'LL o'clock 'twas rock'n'roll ''s '''t",
    "I'm you're he's we've they'll I'd",
    "I'M YOU'RE HE'S WE'VE THEY'LL I'D",
    "'S'T'RE'VE'M'LL'D",
    "'\u017f 'l\u017f '\u017fx it's\u00a0fine",
    "1",
    "12",
    "123",
    "1234",
    "12345",
    "1234567 1 12 123",
    "a1b22c333d4444 3.14159 1,234.56",
    "½ ² Ⅻ ٣٤ १२३ ¼x²y",
    "v1.2.3-rc4 100% $5 #1 @2",
    "_snake_case SCREAM-CASE x_1",
    "--flag=value <a href=\"x\">&amp;</a> {[(~^`|\\)]} /* c */ // d",
    "int main(void) { return 0; }\n\n\tint x = 1;    // y\n",
    "http://example.org/a?b=c&d=%20#e/",
    "path/to/file.txt\r\n/\n/\n",
    "\u2581literal \u2581 \u2581\u2581x",
    "<s> </s> <unk> <0x0A> <pad>",
    "<|endoftext|><|im_start|>",
    "nul\u0000byte\u0000\u0000",
    "ſtraße İstanbul ǆ ẞ",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛 \U000323af\U000e0041 \U0001f1e9\U0001f1ea",
    "“quoted” ‘single’ – — … ·•‣ «x» ！？（）「」",
    "∑∫√ €£¥ ©®™ ¬± →⇒ ♥♦ ☃",
    "a" * 70,
    "ab" * 40,
    " " * 40 + "x",
    "=" * 40 + "\n" + "-" * 30,
    "aaa bbb" * 6,
    "\u0378\ue000\U0010ffff",
    "x<mask>y < <mask>  z <mask> ",
    " word wordy (word) sword word",
    "a <left> b<left>c  <both>  d<both>",
    "\u0ba8\u0bbf \u0c15\u0c4d\u0c37 ខ្មែរ ဗမာ ქართული ՀԱՅ",
    "tab\tand\u000bvt\u000cff \u001c\u001d",
    "Führer 4 ½ months—ago",
]

def charsmap(rules):
    """The map of characters of a SentencePiece model that is made with these rules."""
    import io
    import tempfile
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    file, model = io.BytesIO(), sentencepiece_model_pb2.ModelProto()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as f:
        f.write(rules)
        f.flush()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(CORPUS), model_writer=file, vocab_size=200, minloglevel=2,
                                                 hard_vocab_limit=False, normalization_rule_tsv=f.name)
    model.ParseFromString(file.getvalue())
    return model.normalizer_spec.precompiled_charsmap


# For the step Precompiled: full-width letters, ligatures, letters with marks, white space, several characters and none. Of a
# cluster the first piece counts: "A" with a ring, "x" with anything behind it, "q" before "qb".
MAPPED = ("FF21\t41\nFF22\t42\nFB01\t66 69\n41 30A\tC5\n3000\t20\nA0\t20\n200B\t\n2026\t2E 2E 2E\n78\t58\nE9\t65\n301\t27\n"
          "D\t\nBD\t31 2F 32\nFDFA\t635 644 649\n1100\t3131\nA9\t28 63 29\n600\t23\n71\t51\n71 62\t42\n")

GPT2 = pre.ByteLevel(add_prefix_space=False, use_regex=True)
BYTES = pre.ByteLevel(add_prefix_space=False, use_regex=False)
SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LINES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


def llama3(numbers):
    return SHORT + r"|[^\r\n\p{L}\p{N}]?\p{L}+|" + numbers + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|" + LINES


def cases(end, numbers):
    upper, lower, lead = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]", r"[^\r\n\p{L}\p{N}]?"
    return (
        lead
        + upper
        + "*"
        + lower
        + "+"
        + end
        + "|"
        + lead
        + upper
        + "+"
        + lower
        + "*"
        + end
        + "|"
        + numbers
        + r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|"
        + LINES
    )


QWEN35 = SHORT + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + LINES
DEEPSEEK3 = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|""" + LINES
)
CASED = (
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿ\u01c4-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝ\u1f5f-\u1f7d"
    "\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffcℂℇℊ-ℓℕℙ-ℝℤ"
    "\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ\U00010400-\U0001044f𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
)
CJK = "[一-龥ࠀ-一가-퟿]+"


def split(*patterns, behavior="isolated", invert=False):
    return [pre.Split(Regex(p), behavior, invert) for p in patterns]


def steps(*list_):
    return pre.Sequence(list(list_)) if len(list_) > 1 else list_[0]


def added(content, **flags):
    return AddedToken(content, **{"normalized": False, **flags})


PLAIN = [added("<|endoftext|>", special=True), added("<|im_start|>", special=True), added("<mask>")]
FLAGS = [
    added("<mask>", lstrip=True),
    added("<left>", lstrip=True, special=True),
    added("<both>", lstrip=True, rstrip=True),
    added("word", single_word=True),
    AddedToken("\u1e0c", normalized=True),
    AddedToken("<|im_start|>", normalized=True),
]
SPACES = [AddedToken(" " * n, normalized=True) for n in (4, 3, 2)]

# Byte-level BPE: name -> (normalizer, pre-tokenizer, ignore_merges, added tokens, template)
BYTE_LEVEL = {
    "gpt2": (None, GPT2, False, PLAIN, None),
    "llama3": (None, steps(*split(llama3(r"\p{N}{1,3}")), BYTES), True, PLAIN, (["<|endoftext|>"], [])),
    "qwen2": (normalizers.NFC(), steps(*split(llama3(r"\p{N}")), BYTES), False, PLAIN, None),
    "qwen35": (normalizers.NFC(), steps(*split(QWEN35), BYTES), False, PLAIN, None),
    "smollm": (None, steps(pre.Digits(individual_digits=True), GPT2), False, PLAIN, None),
    "tekken": (None, steps(*split(cases("", r"\p{N}")), BYTES), True, PLAIN, None),
    "o200k": (None, steps(*split(cases(SHORT + "?", r"\p{N}{1,3}")), BYTES), False, PLAIN, None),
    "deepseek-llm": (
        None,
        steps(
            *split("[\r\n]", CASED, "\\s?[!-/:-~！-／：-～‘-‟　-。]+", "\\s+$", CJK), pre.Digits(individual_digits=True), BYTES
        ),
        False,
        PLAIN,
        None,
    ),
    "deepseek-coder": (
        None,
        steps(*split("[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK), pre.Digits(individual_digits=True), BYTES),
        False,
        PLAIN,
        None,
    ),
    "deepseek-v3": (
        normalizers.Sequence([]),
        steps(*split(r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK3), BYTES),
        False,
        PLAIN,
        None,
    ),
    "falcon": (
        None,
        steps(pre.Punctuation("contiguous"), GPT2, pre.Digits(individual_digits=False), *split("[0-9][0-9][0-9]")),
        False,
        PLAIN,
        None,
    ),
    "mpt": (normalizers.NFC(), GPT2, False, PLAIN + SPACES, None),
    "nfd": (normalizers.NFD(), GPT2, False, PLAIN, None),
    "nfkc": (normalizers.NFKC(), GPT2, False, PLAIN, None),
    "nfkd": (normalizers.NFKD(), GPT2, False, PLAIN, None),
    "folded": (
        normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()]),
        GPT2,
        False,
        PLAIN,
        None,
    ),
    "lowercase": (normalizers.Lowercase(), GPT2, False, PLAIN, None),
    "nmt": (
        normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "),
                              normalizers.Strip()]),
        GPT2,
        False,
        PLAIN,
        None,
    ),
    "replaced": (
        normalizers.Sequence([normalizers.Replace(Regex(r"[\r\n]+|\t"), " | "), normalizers.Replace(Regex(r"\p{N}{2,3}"), "#"),
                              normalizers.Replace(Regex("(?i:the)|[^\\s\\p{L}\\p{N}]{2}"), ""), normalizers.Prepend("<< ")]),
        GPT2,
        False,
        PLAIN,
        None,
    ),
    "precompiled": (normalizers.Precompiled(charsmap(MAPPED)), GPT2, False, PLAIN, None),
    "flags": (normalizers.NFC(), GPT2, False, FLAGS, (["<left>", "<both>"], ["<|im_start|>"])),
    "behaviors": (
        normalizers.Sequence([normalizers.Strip(True, False), normalizers.Replace("the", "THE")]),
        steps(
            pre.Split("e", "merged_with_previous"),
            pre.Split(Regex(r"\p{N}+"), "merged_with_next"),
            *split(r"[^\r\n]++", behavior="contiguous", invert=True),
            pre.Split(Regex(r"[a-fA-F]{2,3}"), "isolated", True),
            BYTES,
        ),
        False,
        PLAIN,
        None,
    ),
    "prefix": (None, pre.ByteLevel(add_prefix_space=True, use_regex=True), False, PLAIN, None),
    "words": (None, steps(pre.WhitespaceSplit(), pre.Punctuation(), BYTES), False, PLAIN, None),
}

STRIP = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
KEEP = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()])
LLAMA2 = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])


def meta(scheme, split):
    return pre.Metaspace(replacement=SPACE, prepend_scheme=scheme, split=split)


def meta_decoder(scheme):
    return decoders.Metaspace(replacement=SPACE, prepend_scheme=scheme)


# In characters: name -> (model, byte fallback, normalizer, pre-tokenizer, decoder, template)
CHARACTERS = {
    "llama2": ("bpe", True, LLAMA2, None, STRIP, (["<s>"], [])),
    "gemma": ("bpe", True, normalizers.Replace(" ", SPACE), pre.Split(" ", "merged_with_previous"), KEEP, (["<s>"], [])),
    "mistral": ("bpe", True, None, meta("first", False), STRIP, (["<s>"], [])),
    "metaspace": ("bpe", False, normalizers.NFC(), meta("always", True), meta_decoder("always"), None),
    "no-prefix": ("bpe", True, None, meta("never", False), KEEP, (["<s>"], ["</s>"])),
    "unigram": ("unigram", False, None, meta("always", True), meta_decoder("always"), ([], ["</s>"])),
    "unigram-bytes": ("unigram", True, LLAMA2, None, STRIP, (["<s>"], [])),
    "xlm-r": (
        "unigram",
        False,
        normalizers.Sequence([normalizers.Precompiled(charsmap(MAPPED)), normalizers.Replace(Regex(" {2,}"), " ")]),
        meta("always", True),
        meta_decoder("always"),
        (["<s>"], ["</s>"]),
    ),
}
FIRST = ["<unk>", "<s>", "</s>"]


def template(t, around):
    before, after = around
    names = sorted({*before, *after})
    t.post_processor = processors.TemplateProcessing(
        single=" ".join([*before, "$A", *after]),
        pair=" ".join([*before, "$A", *after, "$B"]),
        special_tokens=[(n, t.token_to_id(n)) for n in names],
    )


def byte_level(name):
    normalizer, pre_tokenizer, ignore, tokens, around = BYTE_LEVEL[name]
    t = Tokenizer(models.BPE(ignore_merges=ignore))
    if normalizer is not None:
        t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizer
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=420, initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False)
    )
    t.add_tokens(tokens)
    if around:
        template(t, around)
    return t


def in_characters(name):
    kind, fallback, normalizer, pre_tokenizer, decoder, around = CHARACTERS[name]
    first = FIRST + [f"<0x{b:02X}>" for b in range(256)] * fallback
    if kind == "bpe":
        t = Tokenizer(models.BPE(byte_fallback=fallback, fuse_unk=True, unk_token="<unk>"))
        trainer = trainers.BpeTrainer(vocab_size=len(first) + 220, special_tokens=first, limit_alphabet=80, show_progress=False)
    else:
        t = Tokenizer(models.Unigram())
        trainer = trainers.UnigramTrainer(vocab_size=220, special_tokens=FIRST, unk_token="<unk>", show_progress=False)
    if normalizer is not None:
        t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizer or meta("never", False)  # without any, BPE learns lines
    t.train_from_iterator(CORPUS, trainer)
    j = json.loads(t.to_str())
    if kind == "unigram" and fallback:
        j["model"]["vocab"] += [[f"<0x{b:02X}>", -20.0 - b / 7] for b in range(256)]
        j["model"]["byte_fallback"] = True
    if pre_tokenizer is None:
        j["pre_tokenizer"] = None
    j["added_tokens"] = [a for a in j["added_tokens"] if a["id"] < 3]
    t = Tokenizer.from_str(json.dumps(j))
    t.decoder = decoder
    t.add_tokens([added("<mask>", rstrip=name == "mistral")])
    if around:
        template(t, around)
    return t


def write(name):
    t = (byte_level if name in BYTE_LEVEL else in_characters)(name)
    ids, decoded = [], []
    for i, text in enumerate(TEXTS):
        e = t.encode(text)
        ids.append(e.ids)
        back = t.decode(t.encode(text, add_special_tokens=False).ids, skip_special_tokens=False)
        if back != text:
            decoded.append([i, back])
    j = json.loads(t.to_str())
    if name == "gpt2":  # as older versions of the library write merges
        j["model"]["merges"] = [" ".join(m) for m in j["model"]["merges"]]
    with open(os.path.join(HERE, name + ".json"), "w") as f:
        json.dump({"tokenizer": j, "ids": ids, "decoded": decoded}, f, separators=(",", ":"))
        f.write("\n")
    print(name, t.get_vocab_size(), len(decoded))


# SentencePiece: name -> options of its trainer
RULES = "FF21\t41\nFB01\t66 69\n41 30A\tC5\n3000\t20\nB\t20\n200B\t\n2026\t2E 2E 2E\n"  # full-width A, a ligature, A with ring, spaces
MODELS = {
    "sp-bpe": dict(
        model_type="bpe",
        vocab_size=480,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        character_coverage=0.98,
    ),
    "sp-unigram": dict(model_type="unigram", vocab_size=260, character_coverage=0.98),
    "sp-unigram-bytes": dict(
        model_type="unigram", vocab_size=460, byte_fallback=True, add_dummy_prefix=False, character_coverage=0.98
    ),
}


def sentencepiece_model(name):
    import io
    import tempfile
    import sentencepiece

    options, model = dict(MODELS[name]), io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        rules.write(RULES)
        rules.flush()
        if "normalization_rule_name" not in options:
            options["normalization_rule_tsv"] = rules.name
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter("\n".join(CORPUS).split("\n")),
            model_writer=model,
            minloglevel=2,
            hard_vocab_limit=False,
            **options,
        )
    with open(os.path.join(HERE, name + ".model"), "wb") as f:
        f.write(model.getvalue())
    sp = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    with open(os.path.join(HERE, name + ".json"), "w") as f:
        json.dump({"size": sp.vocab_size(), "ids": [sp.encode(text) for text in TEXTS]}, f, separators=(",", ":"))
        f.write("\n")
    print(name, sp.vocab_size(), len(model.getvalue()))


os.makedirs(HERE, exist_ok=True)
with open(os.path.join(HERE, "texts.json"), "w") as f:
    json.dump(TEXTS, f, separators=(",\n", ": "))
    f.write("\n")
for name in sys.argv[1:] or [*BYTE_LEVEL, *CHARACTERS, *MODELS]:
    (sentencepiece_model if name in MODELS else write)(name)
