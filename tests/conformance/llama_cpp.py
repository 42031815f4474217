#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the fixtures of test_llama_cpp: logits of llama.cpp for the miniatures of this folder as GGUF files. A development tool.

    llama_cpp.py write ORACLE_MODELS [--level avx2]     llama.cpp/NAME.f32 and llama.cpp/cases.json, by the libraries of `peers.py build
                                                        --level LEVEL`. ORACLE_MODELS: the program oracle_models of a build, which writes
                                                        the GGUF files
    llama_cpp.py library                                libllama as a shared library, and the environment of the test llamacpp

Everything that is built or fetched lies outside the repository (--cache, ~/.cache/wager-peers). NAME.f32 holds the rows of the
tokens at ROWS, (types, rows, vocabulary) in f32, in the order of types that cases.json has. Miniatures whose names end in -256 have
rows of whole blocks and come in the types in common use, llama-scaled-256 in every type that is written; others as f32 and f16; `quantised` has random codes of the types
that are only read. Where llama.cpp computes another model than transformers (DIFFERS), the rows from that position on are not
compared; `write` prints llama.cpp's distance from transformers' logits, which decide. Miniatures that it cannot read or that differ
in all rows have no fixture, but a reason among the `others` of cases.json.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
REPO = HERE.parent.parent
sys.path += [str(REPO / "tools/peers"), str(HERE)]
import make_miniatures  # noqa: E402
import peers  # noqa: E402

OUT = HERE / "llama.cpp"
ROWS = [3, 7, 15, 23, 31, 39, 47, 63]
EVERY = ["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q6_k"]
COMMON = ["f32", "f16", "q8_0", "q4_0", "q4_k", "q6_k"]
SOME = ["f32", "f16"]
QUANTISED_TOKENS = [(37 * i + 5) % 96 for i in range(24)]  # quantised.h
# name: the first position whose logits differ, and why. Ours are those of transformers (test_conformance).
WINDOW = "llama.cpp gives this family no window"
SCALE = "llama.cpp takes 1/sqrt(width of a head) for the scale of scores, whatever the file says"
DIFFERS = {
    "mistral-window": (40, WINDOW),
    "qwen3-window": (32, WINDOW),
    "phi3": (37, WINDOW),
    "phi3-256": (37, WINDOW),
    "qwen3-moe-plain": (0, "llama.cpp makes the weights of a row's experts sum to 1, whatever the file says"),
    "gemma2": (0, SCALE),
    "gemma3-nested": (0, SCALE),
    "mpt-scaled": (0, SCALE),
    "llama-yarn": (0, "llama.cpp reads the two limits of YaRN's ramp in few families, not in this"),
}


def build(cache, level):
    """The program llama_logits."""
    source, home = peers.fetch(cache), peers.place(cache, level)
    archives = sorted((home / "build").rglob("*.a"))
    if not archives:
        raise peers.Trouble(f"{home}: the peer is not there; peers.py build --level {level} makes it")
    peers.call(["gcc", "-std=gnu11", "-O2", f"-I{source}/include", f"-I{source}/ggml/include", "-c", HERE / "llama_logits.c", "-o",
                home / "llama_logits.o"])
    peers.call(["g++", "-fopenmp", home / "llama_logits.o", "-o", home / "llama_logits", "-Wl,--start-group", *archives,
                "-Wl,--end-group", "-lpthread", "-ldl", "-lm"])
    return home / "llama_logits"


def library(cache):
    home, source = cache / "shared", peers.fetch(cache)
    flags = [x for x in peers.COMMON if not x.startswith("-DBUILD_SHARED_LIBS")]
    peers.call(["cmake", "-S", source, "-B", home, "-G", "Ninja", *flags, "-DBUILD_SHARED_LIBS=ON", *peers.LEVELS["avx2"]["flags"]])
    peers.call(["ninja", "-C", home, "llama"])
    print(f"WG_LIBLLAMA={sorted(home.rglob('libllama.so'))[0]}")


def error(x, ref):
    """Of all rows, as in test_llama_cpp."""
    return float(np.sqrt(np.sum((x.astype(np.float64) - ref) ** 2) / np.sum(ref.astype(np.float64) ** 2)))


def family_of(path):
    from gguf import GGUFReader
    return GGUFReader(path).get_field("general.architecture").contents()


def logits(program, path, vocab, tokens, folder):
    out = Path(folder) / "logits.f32"
    said = json.loads(peers.call([program, path, family_of(path), vocab, out, *tokens]))
    return np.fromfile(out, "<f4").reshape(len(tokens), vocab), said


def miniature(program, models, name, folder):
    """(types, rows, vocabulary), and the case."""
    case = json.loads((HERE / name / "case.json").read_text())
    vocab = make_miniatures.MODELS[name]["vocab_size"]
    wanted = np.fromfile(HERE / name / "logits.f32", "<f4").reshape(len(case["tokens"]), vocab)
    types, kept = EVERY if name == "llama-scaled-256" else COMMON if name.endswith("-256") else SOME, []
    for kind in types:
        path = Path(folder) / f"{name}-{kind}.gguf"
        peers.call([models, "--miniature", name, path, kind], env=dict(os.environ, WG_ROOT=str(REPO)))
        rows, said = logits(program, path, vocab, case["tokens"], folder)
        kept.append(rows[ROWS])
        if kind == "f32":
            first = [i for i in range(len(rows)) if error(rows[i], wanted[i]) > 1e-2]
            print(f"{name:22} f32 against transformers {error(rows, wanted):.1e}, worst row "
                  f"{max(error(x, w) for x, w in zip(rows, wanted)):.1e}, first row beyond 1e-2: {first[0] if first else '-'}, "
                  f"token by token {said['token_by_token']:.1e}")
    out = dict(name=name, vocab=vocab, types=types)
    if DIFFERS.get(name, (0,))[0] > 0:
        out.update(agrees_below=DIFFERS[name][0], why=DIFFERS[name][1])
    return np.stack(kept), out, said


def quantised(program, models, folder):
    peers.call([models, "--quantised", folder])
    types, kept = [], []
    for path in sorted(Path(folder).glob("*.gguf")):
        rows, _ = logits(program, path, 96, QUANTISED_TOKENS, folder)
        types.append(path.stem)
        kept.append(rows[[i for i in ROWS if i < len(rows)]])
    return np.stack(kept), dict(name="quantised", vocab=96, types=types)


def write(program, models, only):
    cases, others = [], {}
    OUT.mkdir(exist_ok=True)
    for name in only or [*make_miniatures.MODELS, "quantised"]:
        with tempfile.TemporaryDirectory() as folder:
            if name == "quantised":
                rows, case = quantised(program, models, folder)
            else:
                try:
                    rows, case, said = miniature(program, models, name, folder)
                except peers.Trouble as why:
                    others[name] = "not read: " + str(why).splitlines()[1]
                    print(f"{name:22} {others[name]}")
                    continue
            if DIFFERS.get(name, (1,))[0] == 0:
                others[name] = DIFFERS[name][1]
                continue
            rows.astype("<f4").tofile(OUT / f"{name}.f32")
            cases.append(case)
    if not only:
        text = json.dumps(dict(version=said["version"], package=f"{peers.PACKAGE} {peers.VERSION}", rows=ROWS, cases=cases, others=others), indent=1)
        (OUT / "cases.json").write_text(text + "\n")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("what", choices=["write", "library"])
    ap.add_argument("models", nargs="?", type=Path)
    ap.add_argument("--only", action="append")
    ap.add_argument("--level", choices=list(peers.LEVELS), default="avx2")
    ap.add_argument("--cache", type=Path, default=Path.home() / ".cache/wager-peers")
    o = ap.parse_args()
    if o.what == "library":
        library(o.cache)
    elif not o.models:
        ap.error("write needs ORACLE_MODELS")
    else:
        write(build(o.cache, o.level), o.models.resolve(), o.only)


if __name__ == "__main__":
    try:
        main()
    except peers.Trouble as why:
        sys.exit(f"llama_cpp: {why}")
