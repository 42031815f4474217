#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Both published models, ours beside llama.cpp and transformers: passes, texts and serving, in one table of README.md.

    real.py [--short] [--minutes M] [--only forward|texts|serving]... [--draft FILE] [--wager PROGRAM]
                                measures what is not measured yet, keeps it in results/peers/real.json and writes the table
    real.py tau                 tokens per pass of transformers' prompt look-up, counted (no quiet machine; torch, transformers, gguf)
    real.py page [--check]      writes the table from that file; --check: fails if README.md has another
    real.py --self-test

Needs the files of `wager pull smollm2-135m-instruct` and `wager pull gemma-3-270m`, `peers.py build --server`, and for the second
level `peers.py build --level avx2`; a machine without AVX-512 has one level. --short: two rounds of fewer answers, within 15 minutes
on two cores. Stopped, or at the end of --minutes, it goes on where it was when it is called again; --again forgets what was measured.

forward   one pass of 1 to 512 rows of each model, `wager bench forward` and llama_bench in turn
texts     one client, T = 0 and 0.7: plain decoding, look-ups, `auto`; llama.cpp's server with its own look-up, and with --draft FILE
          both with this draft model. Tokens a second of the answers; tokens per pass: a pass yields its accepted tokens and one more
serving   4 and 16 clients, T = 0
The last two are `wager load --sweep` of configs/load/peers-smollm2.json, which has every command line; repeats are outermost, so
servers are compared within the same minutes. The table has medians over rounds, and in brackets the least and the greatest ratio
of a round. Run it on a machine that does nothing else."""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]
sys.path.insert(0, str(HERE))
import peers  # noqa: E402
from peers import Trouble, middle, number  # noqa: E402

RESULT, PAGE, CONFIG = REPO / "results/peers/real.json", REPO / "README.md", REPO / "configs/load/peers-smollm2.json"
MODELS = {"SmolLM2": "smollm2-135m-instruct-q4_1.gguf", "Gemma 3": "gemma-3-270m-q4_k_m.gguf"}
ROWS = [1, 4, 8, 16, 64, 512]
SHOWN = [1, 8, 64, 512]  # rows in the table
SWEEPS = {"texts 0": dict(temperature=0, clients=[1]), "texts 0.7": dict(temperature=0.7, clients=[1]),
          "serving": dict(temperature=0, clients=[4, 16])}
SHORT = dict(max_tokens=48, repeats=2)
LOOKUPS = ("look-up", "look-up, 4 after 3")


def models():
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "wager/models"
    lacking = [name for name in MODELS.values() if not (folder / name).is_file()]
    if lacking:
        raise Trouble(f"{folder} lacks {', '.join(lacking)}; wager pull smollm2-135m-instruct and wager pull gemma-3-270m fetch them")
    return {name: folder / file for name, file in MODELS.items()}


def stored():
    return json.loads(RESULT.read_text()) if RESULT.is_file() else {}


def keep(result):
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    part = RESULT.with_suffix(".part")
    part.write_text(json.dumps(result, indent=1) + "\n")
    part.rename(RESULT)


# ---- measuring

def levels(o):
    """native, and avx2 where the processor has more and the peer is built for it."""
    if "avx512f" not in Path("/proc/cpuinfo").read_text():
        return ["native"]
    if (peers.place(o.cache, "avx2") / "llama_bench").is_file():
        return ["native", "avx2"]
    print("real: no peer at avx2: left out (peers.py build --level avx2)", file=sys.stderr)
    return ["native"]


def pass_arms(o, level, path):
    """{arm: command line} of passes."""
    home = peers.place(o.cache, level)
    bench = home / "llama_bench"
    if not bench.is_file():
        raise Trouble(f"{home}: the peer is not there; peers.py build --server --level {level} makes it")
    more = ["--rows", ",".join(map(str, ROWS)), "--threads", o.threads, "--repeats", 3]
    peer = [bench, path, *more, "--flash", 1, "--packed"]
    return {"wager": [o.wager, "bench", "forward", "-m", path, *more, "--json"], "packed": peer + [1], "plain": peer + [0]}


def forward(o, result, until):
    """Passes: result["forward"][model][level] = {arm: {rows: [tokens/s of each round]}}"""
    for name, path in models().items():
        for level in levels(o):
            to = result.setdefault("forward", {}).setdefault(name, {}).setdefault(level, {})
            arms = pass_arms(o, level, path)
            while (done := len(to.get("wager", {}).get("1", []))) < o.rounds and time.monotonic() < until:
                got = {}
                for arm in list(arms)[::1 if done % 2 else -1]:
                    rows, said = peers.parse(peers.call(arms[arm], env=dict(os.environ, **peers.LEVELS[level]["env"])))
                    got[arm] = {str(n): round(rows[n]["tok_s"], 3) for n in ROWS}
                    result["version"] = said.get("version", result.get("version"))
                for arm, speeds in got.items():
                    for n, speed in speeds.items():
                        to.setdefault(arm, {}).setdefault(n, []).append(speed)
                keep(result)
                print(f"{name}, {level}: passes, round {done + 1} of {o.rounds}", file=sys.stderr)


def sweep_config(o, name):
    """A sweep of the committed servers."""
    config = json.loads(CONFIG.read_text())
    config.update(SWEEPS[name], name=f"peers {name}", prompts=str(CONFIG.parent / config["prompts"]), repeats=o.rounds,
                  max_tokens=o.max_tokens or config["max_tokens"])
    for server in config["servers"]:
        arms = server["vary"]["speculation"]
        if o.draft:
            arms["draft"] = f"--draft model:model={o.draft.resolve()},length=4" if server["name"] == "wager" else (
                f"-md {o.draft.resolve()} --spec-type draft-simple --spec-draft-n-max 4")
        if name == "serving":
            arms.pop("ngram", None)
    return config


def sweep(o, result, name, until):
    folder = o.out / name.replace(" ", "-")
    made = o.out / f"{folder.name}.json"
    made.write_text(json.dumps(sweep_config(o, name), indent=1))
    path = f"{peers.place(o.cache, 'native') / 'build/bin'}:{os.environ['PATH']}"
    if not shutil.which("llama-server", path=path):
        raise Trouble("no llama-server; peers.py build --server makes it")
    command = [o.wager, "load", "--sweep", made, "--out", folder] + ["--resume"] * folder.is_dir()
    run = subprocess.Popen([str(x) for x in command], env=dict(os.environ, PATH=path), stdout=subprocess.DEVNULL)
    try:
        status = run.wait(max(1.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGINT)  # it ends its servers; what it measured stands
        status = run.wait()
    points = [json.loads(line) for line in (folder / "points.jsonl").read_text().splitlines()] if folder.is_dir() else []
    result.setdefault("sweeps", {})[name] = [
        {"server": p["server"], "clients": p["clients"], "repeat": p["repeat"], "tokens": p["total_output_tokens"], "seconds": p["duration"],
         "accepted": p.get("spec_decode_accepted_tokens") or 0, "ttft_ms": p["median_ttft_ms"], "failed": p["failed"]} for p in points]
    keep(result)
    if any(p["failed"] for p in points):
        raise Trouble(f"{folder}: requests failed; points.jsonl there says which and why")
    if status not in (0, 130, -signal.SIGINT):
        raise Trouble(f"{folder}: wager load ended with status {status}; the logs of the servers are there")


def measure(o):
    until = time.monotonic() + 60 * o.minutes
    if o.again:
        shutil.rmtree(o.out, ignore_errors=True)
        keep({k: v for k, v in stored().items() if k == "tau"})
    if not o.wager.is_file():
        raise Trouble(f"{o.wager}: no program there; build it (cmake --preset release) or name it with --wager")
    o.out.mkdir(parents=True, exist_ok=True)
    result = stored()
    machine = {"processor": peers.processor(), "cores": len(os.sched_getaffinity(0))}
    if result.get("machine", machine) != machine:
        raise Trouble(f"{RESULT} is of another machine ({result['machine']['processor']}); --again measures everything here")
    models()
    result.update(machine=machine, threads=o.threads, package=f"{peers.PACKAGE} {peers.VERSION}",
                  date=time.strftime("%Y-%m-%d", time.gmtime()))
    only = o.only or ["forward", "texts", "serving"]
    if "forward" in only:
        forward(o, result, until)
    for name in SWEEPS:
        if name.split()[0] in only and time.monotonic() < until:
            sweep(o, result, name, until)
    write_page(False)
    print("\n".join(table(result)))


# ---- counts of transformers

def tau(o):
    """Tokens per pass of transformers' prompt look-up (10 tokens, as its page says) on the same prompts, greedily."""
    sys.path.insert(0, str(REPO / "tests/conformance"))
    import make_real
    import torch
    meta, tensors = make_real.read(models()["SmolLM2"])
    made, encode = make_real.model_of(meta, tensors), make_real.tokenizer_of(meta)
    passes = [0]
    made.register_forward_pre_hook(lambda *_: passes.__setitem__(0, passes[0] + 1))
    config = json.loads(CONFIG.read_text())
    prompts = [json.loads(line)["prompt"] for line in (CONFIG.parent / config["prompts"]).read_text().splitlines()]
    tokens = 0
    for ids in (encode(text) for text in make_real.rendered(meta, prompts)):
        out = made.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids)), do_sample=False, prompt_lookup_num_tokens=10,
                            max_new_tokens=config["max_tokens"], eos_token_id=meta["tokenizer.ggml.eos_token_id"], pad_token_id=0)
        tokens += out.shape[1] - len(ids)
    result = stored()
    result["tau"] = {"tokens": tokens, "passes": passes[0], "transformers": make_real.transformers.__version__}
    keep(result)
    print(f"{tokens} tokens in {passes[0]} passes: {tokens / passes[0]:.2f}")


# ---- the table

def ratio(ours, theirs):
    """'1.92 [1.88, 1.97]' of two lists over the same rounds."""
    each = [a / b for a, b in zip(ours, theirs)]
    return f"{middle(each):.2f} [{min(each):.2f}, {max(each):.2f}]" if each else ""


def pass_row(name, level, arms):
    peer = {n: max((arms[a][str(n)] for a in arms if a != "wager"), key=middle) for n in SHOWN}
    ours = {n: arms["wager"][str(n)] for n in SHOWN}
    cells = [" / ".join(number(middle(x[n])) for n in SHOWN) for x in (ours, peer)]
    ratios = " / ".join(f"{middle([a / b for a, b in zip(ours[n], peer[n])]):.1f}" for n in SHOWN)
    return f"| {name}, a pass of {' / '.join(map(str, SHOWN))} rows{', AVX2' * (level == 'avx2')} | {cells[0]} | {cells[1]} | {ratios} |"


def speeds(points, server, clients):
    return [p["tokens"] / p["seconds"] for p in sorted(points, key=lambda p: p["repeat"]) if p["server"] == server and p["clients"] == clients]


def per_pass(points, server, clients):
    some = [p for p in points if p["server"] == server and p["clients"] == clients]
    tokens, accepted = (sum(p[k] for p in some) for k in ("tokens", "accepted"))
    return tokens / max(1, tokens - accepted)


def server_row(words, points, clients, ours, theirs):
    """A line of an arm of ours beside the fastest of theirs."""
    theirs = [x for x in theirs if speeds(points, x, clients)]
    if not theirs or not speeds(points, ours, clients):
        return None
    best = max(theirs, key=lambda x: middle(speeds(points, x, clients)))
    cells = [f"{number(middle(speeds(points, x, clients)))} ({per_pass(points, x, clients):.2f})" for x in (ours, best)]
    return f"| {words} | {cells[0]} | {cells[1]} | {ratio(speeds(points, ours, clients), speeds(points, best, clients))} |"


def table(result):
    machine = result.get("machine")
    if not machine:
        return []
    lines = [f"Tokens a second beside llama.cpp ({result['package']}), the same files, {result['threads']} threads of {machine['processor']}, "
             f"{machine['cores']} cores; in brackets", "tokens per pass. A ratio is the median over rounds [least, greatest]. "
             "`tools/peers/real.py --short` repeats it ([how](docs/performance.md#compared-with-llamacpp)).", "",
             "| | wager | llama.cpp | ratio |", "|---|--:|--:|--:|"]
    for name, of_levels in result.get("forward", {}).items():
        lines += [pass_row(name, level, arms) for level, arms in of_levels.items() if arms]
    sweeps, lookups = result.get("sweeps", {}), [f"llama.cpp, {x}" for x in LOOKUPS]
    for t in ("0", "0.7"):
        points = sweeps.get(f"texts {t}", [])
        lines += [server_row(f"SmolLM2, plain, T = {t}", points, 1, "wager, off", ["llama.cpp, off"]),
                  server_row(f"look-ups (`auto`), T = {t}", points, 1, "wager, auto", lookups),
                  server_row(f"a draft model, T = {t}", points, 1, "wager, draft", ["llama.cpp, draft"])]
    for clients in (4, 16):
        points = sweeps.get("serving", [])
        lines += [server_row(f"{clients} clients, plain", points, clients, "wager, off", ["llama.cpp, off"]),
                  server_row(f"{clients} clients, look-ups (`auto`)", points, clients, "wager, auto", lookups)]
    lines = [line for line in lines if line is not None]
    if "tau" in result:
        t = result["tau"]
        lines += ["", f"transformers' prompt look-up has {t['tokens'] / t['passes']:.2f} tokens per pass on these prompts at T = 0."]
    return lines


def write_page(check):
    begin, end = "<!-- peers real:begin -->\n", "<!-- peers real:end -->"
    page = PAGE.read_text()
    if begin not in page or end not in page:
        raise Trouble(f"{PAGE}: the lines {begin.strip()} and {end} are missing")
    head, rest = page.split(begin, 1)
    new = head + begin + "".join(line + "\n" for line in table(stored())) + end + rest.split(end, 1)[1]
    if check and new != page:
        raise Trouble(f"{PAGE} does not show {RESULT}; real.py page writes it")
    if not check:
        PAGE.write_text(new)


# ---- this script's own test

def self_test():
    rows = {str(n): [2.0 * n, 4.0 * n] for n in ROWS}
    half = {str(n): [1.0 * n, 1.0 * n] for n in ROWS}
    point = lambda server, clients, repeat, tokens, accepted: {"server": server, "clients": clients, "repeat": repeat, "tokens": tokens,
                                                               "seconds": 10.0, "accepted": accepted, "ttft_ms": 1.0, "failed": 0}
    texts = [point("wager, off", 1, 0, 1000, 0), point("llama.cpp, off", 1, 0, 500, 0), point("wager, auto", 1, 1, 3000, 1500),
             point("wager, auto", 1, 0, 2000, 1000), point("llama.cpp, look-up", 1, 0, 400, 10),
             point("llama.cpp, look-up, 4 after 3", 1, 0, 1000, 200), point("llama.cpp, look-up, 4 after 3", 1, 1, 1000, 200)]
    result = {"machine": {"processor": "P", "cores": 2}, "package": "p 1", "threads": 2,
              "forward": {"M": {"native": {"wager": rows, "packed": half, "plain": {k: [0.5, 0.5] for k in rows}}}},
              "sweeps": {"texts 0": texts}, "tau": {"tokens": 30, "passes": 20, "transformers": "5"}}
    said = table(result)
    assert "| M, a pass of 1 / 8 / 64 / 512 rows | 3.0 / 24.0 / 192 / 1536 | 1.0 / 8.0 / 64.0 / 512 | 3.0 / 3.0 / 3.0 / 3.0 |" in said, said
    assert "| SmolLM2, plain, T = 0 | 100 (1.00) | 50.0 (1.00) | 2.00 [2.00, 2.00] |" in said, said
    assert "| look-ups (`auto`), T = 0 | 250 (2.00) | 100 (1.25) | 2.50 [2.00, 3.00] |" in said, said
    assert said[-1].startswith("transformers' prompt look-up has 1.50 ") and not any("clients" in x for x in said), said
    assert table({}) != said and len([x for x in said if x.startswith("|")]) < 14
    config = sweep_config(argparse.Namespace(rounds=2, max_tokens=48, draft=Path("d.gguf")), "serving")
    assert config["clients"] == [4, 16] and config["repeats"] == 2 and "ngram" not in config["servers"][0]["vary"]["speculation"]
    assert all("d.gguf" in s["vary"]["speculation"]["draft"] for s in config["servers"]) and Path(config["prompts"]).is_file()
    print("real: self-test passed")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("what", nargs="?", choices=["run", "tau", "page"], default="run")
    ap.add_argument("--self-test", action="store_true")
    ap.add_argument("--check", action="store_true", help="with page: write nothing, fail if the page is not up to date")
    ap.add_argument("--short", action="store_true", help="two rounds, at most 15 minutes")
    ap.add_argument("--again", action="store_true", help="forget what was measured")
    ap.add_argument("--only", action="append", choices=["forward", "texts", "serving"])
    ap.add_argument("--minutes", type=float, help="stop then (--short: 15)")
    ap.add_argument("--rounds", type=int, help="(5; --short: 2)")
    ap.add_argument("--max-tokens", type=int, help="of an answer")
    ap.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    ap.add_argument("--draft", type=Path, help="a draft model of SmolLM2, for both sides")
    ap.add_argument("--cache", type=Path, default=Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "wager-peers")
    ap.add_argument("--wager", type=Path, default=REPO / "build/release/wager", help="the program (build/release/wager)")
    ap.add_argument("--out", type=Path, default=REPO / "build/results/peers-real", help="folders of the sweeps")
    o = ap.parse_args()
    o.rounds = o.rounds or (SHORT["repeats"] if o.short else 5)
    o.max_tokens = o.max_tokens or (SHORT["max_tokens"] if o.short else None)
    o.minutes = o.minutes or (15 if o.short else 600)
    o.wager, o.out = o.wager.resolve(), o.out.resolve()
    if o.self_test:
        return self_test()
    return dict(run=measure, tau=tau, page=lambda o: write_page(o.check))[o.what](o)


if __name__ == "__main__":
    try:
        main()
    except Trouble as why:
        sys.exit(f"real: {why}")
