#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Our forward pass beside llama.cpp's: the same file, the same minutes, turn by turn.

    peers.py build [--level avx2]       the peer, from the source package of llama-cpp-python (a development tool; minutes)
    peers.py build --server [--level avx2]
                                        the peer's server too, for wager load --sweep configs/load/peers.json; prints its path
    peers.py run [--level avx2] [--type q8_0] [--threads 2] [--rounds 5 | --quick]
                                        measures, keeps it in results/peers/peers.json and prints its table
    peers.py table [--level avx2]       prints all tables of that file
    peers.py page [--check]             writes the ratios in docs/performance.md from that file; --check: fails if they differ
    peers.py --self-test

A level is an instruction set for both sides. native: the peer is built for this very processor, we choose our best level.
avx2: the peer is built with AVX2, FMA, F16C and BMI2 and no more, we run with WG_CPU=avx2. --quick measures two rounds of one
pass: about three minutes for a type on one thread of a machine without AVX-512.

Everything that is built, fetched or made lies in a cache outside the repository (--cache, ~/.cache/wager-peers). A round
starts each program once, in the opposite order every other round; a program prints the median of its passes; the tables show
medians over rounds, and ratios are medians of the ratios of rounds. The peer gets its best: flash attention on, its repacking
of weights on, and off as well where that can be faster (PLAIN, or all types with --both): the faster of the two counts, for
every number of rows by itself. Run it on a machine that does nothing else.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parent.parent
RESULT = REPO / "results/peers/peers.json"
PAGE = REPO / "docs/performance.md"
PACKAGE, VERSION = "llama-cpp-python", "0.3.36"
TYPES = ["q8_0", "q4_0", "q4_k", "bf16", "f16"]
PLAIN = {"q4_k"}
ROWS = [1, 4, 8, 16, 32, 64, 512]
SHAPE = "tinyllama-1.1b"
COMMON = ["-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=OFF"] + [
    f"-DLLAMA_BUILD_{part}=OFF" for part in ("COMMON", "TESTS", "TOOLS", "EXAMPLES", "SERVER", "APP", "UI")]
# The server of the peer, over the same objects. No TLS, and no page, which would be fetched.
SERVER = [f"-DLLAMA_BUILD_{part}=ON" for part in ("COMMON", "TOOLS", "SERVER")] + ["-DLLAMA_USE_PREBUILT_UI=OFF", "-DLLAMA_OPENSSL=OFF"]
PARTS = ("AVX", "AVX2", "FMA", "F16C", "BMI2")
# Of each level: the flags of the peer, the words of the page, and our environment.
LEVELS = {
    "native": {"flags": ["-DGGML_NATIVE=ON"], "words": "`-march=native`", "env": {}},
    "avx2": {"flags": ["-DGGML_NATIVE=OFF", "-DGGML_AVX512=OFF"] + [f"-DGGML_{part}=ON" for part in PARTS],
             "words": "AVX2, FMA, F16C and BMI2 only (wager with `WG_CPU=avx2`)",
             "env": {"WG_CPU": "avx2"}},
}


class Trouble(Exception):
    """What went wrong and what to do, for the user."""


def call(args, **more):
    done = subprocess.run([str(a) for a in args], text=True, capture_output=True, **more)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-5:])
        raise Trouble(f"{Path(str(args[0])).name} ended with status {done.returncode}:\n{tail}")
    return done.stdout


# ---- building

def fetch(cache):
    """The folder of the peer's sources."""
    found = sorted(cache.glob("llama_cpp_python-*.tar.gz"))
    if not found:
        try:
            call([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", cache,
                  f"{PACKAGE}=={VERSION}"])
        except Trouble as why:
            raise Trouble(f"the source package {PACKAGE} {VERSION} cannot be fetched; without a package index, put its .tar.gz "
                          f"into {cache} and run this again\n{why}") from None
        found = sorted(cache.glob("llama_cpp_python-*.tar.gz"))
    name = found[-1].name.removesuffix(".tar.gz")
    source = cache / name / "vendor/llama.cpp"
    if not source.is_dir():
        with tarfile.open(found[-1]) as tar:
            tar.extractall(cache, filter="data") if hasattr(tarfile, "data_filter") else tar.extractall(cache)
    if not (source / "CMakeLists.txt").is_file():
        raise Trouble(f"{found[-1]}: there is no vendor/llama.cpp in it; expected the source package of {PACKAGE}")
    return source


def place(cache, level):
    """The folder of what is built for a level."""
    return cache if level == "native" else cache / level


def build_server(cache, level):
    build(cache, level)
    home = place(cache, level)
    call(["cmake", "-S", fetch(cache), "-B", home / "build", "-G", "Ninja", *COMMON, *SERVER, *LEVELS[level]["flags"]])
    call(["ninja", "-C", home / "build", f"-j{os.cpu_count()}", "llama-server"])
    print(f"built {home}/build/bin/llama-server")


def build(cache, level):
    for tool in ("cmake", "ninja", "gcc", "g++"):
        if not shutil.which(tool):
            raise Trouble(f"{tool} is missing; the peer is built with cmake, ninja and gcc")
    home = place(cache, level)
    home.mkdir(parents=True, exist_ok=True)
    source, out = fetch(cache), home / "build"
    call(["cmake", "-S", source, "-B", out, "-G", "Ninja", *COMMON, *LEVELS[level]["flags"]])
    print(f"building {source.parent.parent.name} (stopped, it goes on where it was)")
    call(["ninja", "-C", out, f"-j{os.cpu_count()}", "llama"])
    call(["gcc", "-std=gnu11", "-O2", f"-I{source}/include", f"-I{source}/ggml/include", "-c", HERE / "llama_bench.c", "-o",
          home / "llama_bench.o"])
    call(["g++", "-fopenmp", home / "llama_bench.o", "-o", home / "llama_bench", "-Wl,--start-group", *out.rglob("*.a"),
          "-Wl,--end-group", "-lpthread", "-ldl", "-lm"])
    print(f"built {home}/llama_bench")


# ---- measuring

def model(cache, home, wager, kind):
    """One file for both sides. Ours writes no K types: the peer makes that file, and both read it."""
    path = cache / f"{SHAPE}-{kind}.gguf"
    if not path.is_file():
        part = path.with_suffix(".part")
        if kind == "q4_k":
            call([home / "llama_bench", "--quantize", model(cache, home, wager, "f16"), part])
        else:
            call([wager, "synth", "--like", SHAPE, "--type", kind, "--seed", 1, "--out", part])
        part.rename(path)
    return path


def parse(text):
    """Lines of JSON: {rows: line}, and what else was said in one dictionary."""
    rows, said = {}, {}
    for line in text.splitlines():
        got = json.loads(line)
        if "rows" in got:
            rows[got["rows"]] = got
        else:
            said.update(got)
    return rows, said


def measure(o, kind):
    """Rounds of both programs on a file of this type; o: the options of the command line."""
    home, threads, repeats = place(o.cache, o.level), o.threads, o.repeats
    path, rows = model(o.cache, home, o.wager, kind), ",".join(map(str, ROWS))
    environment = dict(os.environ, **LEVELS[o.level]["env"])
    peer = [home / "llama_bench", path, "--rows", rows, "--threads", threads, "--repeats", repeats, "--flash", 1, "--packed"]
    ours = [o.wager, "bench", "forward", "-m", path, "--rows", rows, "--threads", threads, "--repeats", repeats, "--json"]
    arms = [("wager", ours), ("packed", peer + [1])]
    if o.both or kind in PLAIN:
        arms.append(("plain", peer + [0]))
    out = {"level": o.level, "type": kind, "threads": threads, "rounds": o.rounds, "repeats": repeats,
           "tok_s": {a: {} for a, _ in arms}, "stream_gb_s": [], "gb_s": []}
    for r in range(o.rounds):
        for arm, command in arms if r % 2 == 0 else arms[::-1]:
            got, said = parse(call(command, env=environment))
            for n in ROWS:
                out["tok_s"][arm].setdefault(str(n), []).append(round(got[n]["tok_s"], 3))
            if arm == "wager":
                out["stream_gb_s"].append(round(got[1]["stream_gb_s"], 2))
                out["gb_s"].append(round(got[1]["gb_s"], 2))
            out.update(said)
        print(f"{o.level}, {kind}, {threads} thread(s): round {r + 1} of {o.rounds}", file=sys.stderr)
    return out


def processor():
    """Its name with family and model, since a hypervisor may leave no more than the brand in the name."""
    said = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        said.setdefault(key.strip(), value.strip())
    name = said.get("model name", "unknown")
    return f"{name}, family {said['cpu family']}, model {said['model']}" if "cpu family" in said and "model" in said else name


def keep(run):
    """Into the file, in place of what was there of this level, processor, type and number of threads."""
    def key(x):
        return list(LEVELS).index(level_of(x)), x["processor"], x["threads"], TYPES.index(x["type"])
    old = json.loads(RESULT.read_text()) if RESULT.is_file() else {}
    runs = sorted([x for x in old.get("runs", []) if key(x) != key(run)] + [run], key=key)
    result = {"shape": SHAPE, "package": f"{PACKAGE} {VERSION}",
              "flags": {level: COMMON + at["flags"] for level, at in LEVELS.items()}, "runs": runs}
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    part = RESULT.with_suffix(".part")
    part.write_text(json.dumps(result, indent=1) + "\n")
    part.rename(RESULT)


# ---- the tables

def level_of(run):
    """Runs of an older file have no level: they are native."""
    return run.get("level", "native")


def middle(values):
    return statistics.median(values)


def peer_of(run, rows):
    """The faster of the peer's ways to hold the weights, for this number of rows."""
    ways = [run["tok_s"][arm][str(rows)] for arm in run["tok_s"] if arm != "wager"]
    return max(ways, key=middle)


def ratios(run, rows):
    return [a / b for a, b in zip(run["tok_s"]["wager"][str(rows)], peer_of(run, rows))]


def number(x):
    return f"{x:.0f}" if x >= 100 else f"{x:.1f}"


def speed_table(runs):
    lines = ["| tokens/s at rows | " + " | ".join(map(str, ROWS)) + " |", "|---" * (len(ROWS) + 1) + "|"]
    for run in runs:
        ours = [number(middle(run["tok_s"]["wager"][str(n)])) for n in ROWS]
        peer = [number(middle(peer_of(run, n))) for n in ROWS]
        times = [f"{middle(x):.2f} ({min(x):.2f}..{max(x):.2f})" for x in (ratios(run, n) for n in ROWS)]
        for what, cells in (("wager", ours), ("llama.cpp", peer), ("ratio", times)):
            lines.append(f"| {run['type']} {what} | " + " | ".join(cells) + " |")
    return lines


def text_of(result, level):
    """The tables of a level: one for each processor and number of threads that was measured."""
    runs = [x for x in result["runs"] if level_of(x) == level]
    if not runs:
        return f"Not measured: `peers.py build --level {level}` and `run --level {level}`, then `table`.\n"
    lines = [f"{SHAPE} shape, whole forward, context 0, logits for all rows up to 64 and the last of 512, f16 cache.",
             f"The peer: llama.cpp {runs[0]['version']} of {result['package']}, {LEVELS[level]['words']},",
             "flash attention on, the faster of its weights repacked or not. Medians over rounds; in brackets the least and the",
             "greatest ratio of a round."]
    for processor, threads in sorted({(x["processor"], x["threads"]) for x in runs}):
        some = [x for x in runs if (x["processor"], x["threads"]) == (processor, threads)]
        lines += ["", f"**{processor}**, {some[0]['cores']} cores, {threads} thread{'s' * (threads > 1)}, "
                  f"{'/'.join(str(x['rounds']) for x in some)} rounds.", "", *speed_table(some)]
    return "\n".join(lines) + "\n"


PAGE_ROWS = [1, 8, 64, 512]


def page_table(result, level):
    """One line a processor, number of threads and type: ratios to the peer, and what one row reads of the stream."""
    lines = ["| processor, 2 cores | threads | weights | " + " | ".join(f"{n} row{'s' * (n > 1)}" for n in PAGE_ROWS) + " | of the stream |",
             "|---|--:|---|" + "--:|" * (len(PAGE_ROWS) + 1)]
    for run in sorted((x for x in result["runs"] if level_of(x) == level), key=lambda x: (x["processor"], x["threads"], TYPES.index(x["type"]))):
        times = " | ".join(f"{middle(ratios(run, n)):.2f}" for n in PAGE_ROWS)
        read = middle([a / b for a, b in zip(run["gb_s"], run["stream_gb_s"])])
        lines.append(f"| {run['processor']} | {run['threads']} | {run['type']} | {times} | {read:.2f} |")
    return "\n".join(lines) + "\n"


def replace(page, level, text):
    begin, end = f"<!-- peers {level}:begin -->\n", f"<!-- peers {level}:end -->"
    if begin not in page or end not in page:
        raise Trouble(f"{PAGE}: the lines {begin.strip()} and {end} are missing")
    head, rest = page.split(begin, 1)
    return head + begin + text + end + rest.split(end, 1)[1]


def stored():
    if not RESULT.is_file():
        raise Trouble(f"{RESULT} is missing; peers.py run makes it")
    return json.loads(RESULT.read_text())


def write_page(check):
    result, old = stored(), PAGE.read_text()
    page = old
    for level in LEVELS:
        page = replace(page, level, page_table(result, level))
    if check and page != old:
        raise Trouble(f"{PAGE} does not show {RESULT}; peers.py page writes it")
    if not check:
        PAGE.write_text(page)


# ---- this script's own test

def self_test():
    rows, said = parse('{"version":"1","system":"s"}\n{"rows":1,"tok_s":2.5}\n{"rows":512,"tok_s":9}\n')
    assert rows[512]["tok_s"] == 9 and said["system"] == "s"
    fast = {str(n): [30.0 * n, 33.0 * n, 90.0 * n] for n in ROWS}
    slow = {str(n): [10.0 * n, 11.0 * n, 12.0 * n] for n in ROWS}
    best = {str(n): [15.0 * n if n > 16 else 1.0] * 3 for n in ROWS}
    run = {"type": "q8_0", "threads": 2, "rounds": 3, "tok_s": {"wager": fast, "packed": slow, "plain": best},
           "stream_gb_s": [40, 40, 20], "gb_s": [36, 30, 19], "version": "1", "processor": "P", "cores": 2}
    assert peer_of(run, 16) == slow["16"] and peer_of(run, 64) == best["64"]
    assert ratios(run, 1) == [3, 3, 7.5] and middle(ratios(run, 64)) == 2.2
    both = {"package": "p 1", "runs": [dict(run, level="avx2", tok_s=dict(run["tok_s"], wager=slow)), run]}
    text = text_of(both, "native")
    assert "| q8_0 wager | 33.0 | 132 | 264 | 528 | 1056 | 2112 | 16896 |" in text.splitlines(), text
    assert text_of(both, "avx2") != text and text_of({"runs": [run]}, "avx2").startswith("Not measured")
    assert page_table(both, "native").splitlines()[2] == "| P | 2 | q8_0 | 3.00 | 3.00 | 2.20 | 2.20 | 0.90 |", page_table(both, "native")
    page = "a\n<!-- peers avx2:begin -->\nold\n<!-- peers avx2:end -->\nb\n"
    assert replace(page, "avx2", "new\n") == page.replace("old", "new")
    try:
        replace(page, "native", "new")
        raise AssertionError("a page without the marks was taken")
    except Trouble:
        pass
    print("peers: self-test passed")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("what", nargs="?", choices=["build", "run", "table", "page"])
    ap.add_argument("--self-test", action="store_true")
    ap.add_argument("--check", action="store_true", help="with page: write nothing, fail if the page is not up to date")
    ap.add_argument("--server", action="store_true", help="with build: the peer's server too")
    home = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    ap.add_argument("--cache", type=Path, default=home / "wager-peers")
    ap.add_argument("--wager", type=Path, default=REPO / "build/release/wager", help="the program (build/release/wager)")
    ap.add_argument("--level", choices=list(LEVELS), default="native")
    ap.add_argument("--type", action="append", choices=TYPES, help="only this type; may be given again")
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--repeats", type=int, default=3, help="passes of a process, of which it tells the median")
    ap.add_argument("--quick", action="store_true", help="two rounds of one pass")
    ap.add_argument("--both", action="store_true", help="the peer with and without its repacking, for all types")
    o = ap.parse_args()
    if o.quick:
        o.rounds, o.repeats = 2, 1
    if o.self_test:
        return self_test()
    if o.what == "build":
        return (build_server if o.server else build)(o.cache, o.level)
    if o.what == "table":
        return print(text_of(stored(), o.level), end="")
    if o.what == "page":
        return write_page(o.check)
    if o.what != "run":
        ap.error("one of build, run, table, page is needed, or --self-test")
    if not (place(o.cache, o.level) / "llama_bench").is_file():
        raise Trouble(f"{place(o.cache, o.level)}: the peer is not there; peers.py build --level {o.level} makes it")
    if not o.wager.is_file():
        raise Trouble(f"{o.wager}: no program there; build it (cmake --preset release) or name it with --wager")
    machine = {"processor": processor(), "cores": len(os.sched_getaffinity(0))}
    for kind in o.type or TYPES:
        run = dict(measure(o, kind), **machine)
        keep(run)
        print("\n".join(speed_table([run])))
    return None


if __name__ == "__main__":
    try:
        main()
    except Trouble as why:
        sys.exit(f"peers: {why}")
