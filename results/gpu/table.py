#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a card took, beside its floors: from the JSON that gpu-check.sh writes.

    table.py [FILE...]          the table of WANTED.md, of each result.json a column; without one the newest of every card
    table.py --short FILE       the same of one run, as text
    table.py --page [FILE...]   writes the table into WANTED.md
    table.py --check            is the table in WANTED.md the one of these files?
    table.py --self-test

A floor is the bytes that a pass must read (weights, head, keys and values) at the read-only bandwidth that the probe of the
same run measured. What was not run, failed, or was cut off says `unknown`; nothing is filled in from elsewhere. The column of
what is expected is arithmetic (WANTED.md says from what), for an H200."""
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE / "WANTED.md"
BEGIN, END = "<!-- table.py: begin -->", "<!-- table.py: end -->"
NONE = "unknown"
EMULATED = "emulated"  # such runs test the script; their times mean nothing


class Run:
    def __init__(self, data):
        self.data = data

    def lines(self, key):
        """Of a section that passed: half a section is no measurement."""
        passed = self.data.get("sections", {}).get(key, {}).get("result") == "passed"
        return self.data.get(key, []) if passed else []

    def probes(self):
        """Questions of the probe; each was answered by itself, so one that was asked counts even if the last one was not."""
        return self.data.get("basics", []) + self.data.get("kernels", [])

    def probe(self, key):
        return next((line[key] for line in self.probes() if line.get(key) is not None), None)

    def product(self, kind, n, k):
        return next((x for x in self.probes() if (x.get("product"), x.get("n"), x.get("k")) == (kind, n, k)), {})

    def sample(self, kind):
        return next((x for x in self.probes() if x.get("sample") == kind), {})

    def forward(self, key, rows, context=None):
        """A pass of a section, or {}."""
        return next((x for x in self.lines(key) if x.get("rows") == rows and context in (None, x.get("context"))), {})

    def arm(self, key, name):
        return next((x for x in self.lines(key) if x.get("arm") == name), {})


def over(a, b):
    return a / b if a is not None and b else None


def floor_ratio(run, key, rows=1):
    """Time over floor: the bandwidth of the probe over that of the pass, whose bytes are the floor's."""
    return over(run.probe("read_gb_s"), run.forward(key, rows).get("gb_s"))


def growth(run, key, rows):
    return over(run.forward(key, rows).get("ms"), run.forward(key, 1).get("ms"))


def per_round(run, key, arm):
    """A round beside the passes it is made of, in microseconds: all but drafting and the target's pass over the draft."""
    a, verify = run.arm(key, arm), run.forward(key, 5).get("ms")
    return (a["round_ms"] - a["draft_ms"] - verify) * 1e3 if a and verify else None


def beside_pass(run, key):
    """Plain decoding, in microseconds: a round beside its one pass."""
    a, one = run.arm(key, "plain"), run.forward(key, 1).get("ms")
    return (a["round_ms"] - one) * 1e3 if a and one else None


def round_ratio(run, a, b, arm):
    return over(run.arm(a, arm).get("round_ms"), run.arm(b, arm).get("round_ms"))


def expected_tau(rate, length):
    return (1 - rate ** (length + 1)) / (1 - rate)


def against_formula(run, key):
    """Tokens a second over what the formula makes of the parts: tau of the rate by a pass over 5 rows, and free drafts."""
    a, verify = run.arm(key, "synthetic"), run.forward(key, 5).get("ms")
    return a["tok_s"] * verify / 1e3 / expected_tau(0.8, 4) if a and verify else None


def attention(run):
    """The keys and values of three quarters of the longer context: what reading them took over their floor."""
    long, short, read = run.forward("far_8b_bf16", 1), run.forward("forward_8b_bf16", 1), run.probe("read_gb_s")
    if not long or not short or not read:
        return None
    more = long["gb_s"] * long["ms"] - short["gb_s"] * short["ms"]  # megabytes
    return (long["ms"] - short["ms"]) / (more / read) if more > 0 else None


def sampled(run):
    """What sampling adds to a round of plain decoding, in microseconds."""
    hot, cold = run.arm("sampled_8b_bf16", "plain"), run.arm("oracle_8b_bf16", "plain")
    return (hot["round_ms"] - cold["round_ms"]) * 1e3 if hot and cold else None


def peer(run, what, ours):
    theirs = next((x for x in run.lines("peer") if x.get("peer") == "transformers" and x.get("what") == what), {})
    mine = run.arm("drafted_1b_bf16", ours)
    if not theirs or not mine:
        return None
    return f"{mine['tok_s']:.0f} / {theirs['tok_s']:.0f} = {mine['tok_s'] / theirs['tok_s']:.2f}"


def ms(run, key, rows=1):
    return run.forward(key, rows).get("ms")


# What, how it is found, how it is written, what is wanted (and the goal).
ROWS = [
    ("read-only bandwidth, GB/s", lambda r: r.probe("read_gb_s"), "{:.0f}", ""),
    ("8 B bf16, decode: ms", lambda r: ms(r, "forward_8b_bf16"), "{:.3f}", ""),
    ("8 B bf16, decode: time / floor", lambda r: floor_ratio(r, "forward_8b_bf16"), "{:.2f}", "1.25 (1.12)"),
    ("1 B bf16, decode: time / floor", lambda r: floor_ratio(r, "forward_1b_bf16"), "{:.2f}", "1.50 (1.25)"),
    ("8 B q4_0, decode: time / floor", lambda r: floor_ratio(r, "forward_8b_q4_0"), "{:.2f}", "1.45 (1.25)"),
    ("8 B q4_k, decode: time / floor", lambda r: floor_ratio(r, "forward_8b_q4_k"), "{:.2f}", "1.45 (1.25)"),
    ("8 B q8_0, decode: time / floor", lambda r: floor_ratio(r, "forward_8b_q8_0"), "{:.2f}", ""),
    ("8 B fp8, decode: time / floor", lambda r: floor_ratio(r, "forward_8b_f8"), "{:.2f}", ""),
    ("124 M bf16, a draft step: time / floor", lambda r: floor_ratio(r, "forward_124m_bf16"), "{:.2f}", "2.50 (2.00)"),
    ("v(8), 8 B bf16", lambda r: growth(r, "forward_8b_bf16", 8), "{:.2f}", "1.08"),
    ("v(16)", lambda r: growth(r, "forward_8b_bf16", 16), "{:.2f}", "1.12"),
    ("v(32)", lambda r: growth(r, "forward_8b_bf16", 32), "{:.2f}", ""),
    ("v(64)", lambda r: growth(r, "forward_8b_bf16", 64), "{:.2f}", "1.30"),
    ("v(64), q4_0", lambda r: growth(r, "forward_8b_q4_0", 64), "{:.2f}", ""),
    ("attention to 3072 more keys, 8 B: time / floor", attention, "{:.2f}", "1.43"),
    ("a round beside its passes, 8 B: us", lambda r: per_round(r, "oracle_8b_bf16", "synthetic"), "{:.0f}", "40 (20)"),
    ("a round beside its passes, 1 B: us", lambda r: per_round(r, "oracle_1b_bf16", "synthetic"), "{:.0f}", "40 (20)"),
    ("the same of plain decoding in one graph, 1 B: us", lambda r: beside_pass(r, "drafted_1b_bf16"), "{:.0f}", "40 (20)"),
    ("a sampled round beside a greedy one, 8 B, plain: us", sampled, "{:.0f}", ""),
    ("rounds by the host / in one graph, 1 B, plain", lambda r: round_ratio(r, "steps_1b_bf16", "drafted_1b_bf16", "plain"),
     "{:.2f}", ""),
    ("the same with a 124 M draft", lambda r: round_ratio(r, "steps_1b_bf16", "drafted_1b_bf16", "model"), "{:.2f}", ""),
    ("acceptance 0.8 by construction, 8 B: tokens/s over the formula's", lambda r: against_formula(r, "oracle_8b_bf16"),
     "{:.2f}", "at least 0.95"),
    ("the same, 1 B", lambda r: against_formula(r, "oracle_1b_bf16"), "{:.2f}", "at least 0.95"),
    ("strict / fast, 8 B bf16, decode", lambda r: over(ms(r, "forward_8b_bf16"), ms(r, "fast_8b_bf16")), "{:.2f}",
     "1.05 (1.03)"),
    ("strict / fast, 64 rows", lambda r: over(ms(r, "forward_8b_bf16", 64), ms(r, "fast_8b_bf16", 64)), "{:.2f}", ""),
    ("launched / recorded, 1 B bf16, decode", lambda r: over(ms(r, "eager_1b_bf16"), ms(r, "forward_1b_bf16")), "{:.2f}", ""),
    ("product of 28672 x 4096, bf16: time / floor", lambda r: product_ratio(r, "bf16", 28672, 4096), "{:.2f}", "1.15 (1.08)"),
    ("product of 2048 x 2048, bf16: time / floor", lambda r: product_ratio(r, "bf16", 2048, 2048), "{:.2f}", "1.35 (1.20)"),
    ("product of 28672 x 4096, q4_0: time / floor", lambda r: product_ratio(r, "q4_0", 28672, 4096), "{:.2f}", "1.35 (1.20)"),
    ("kernel after kernel in a graph: us", lambda r: r.probe("graph_gap_us"), "{:.2f}", ""),
    ("the same, one launched early: us", lambda r: r.probe("graph_gap_pdl_us"), "{:.2f}", ""),
    ("one more turn of a loop in a graph: us", lambda r: r.probe("while_turn_us"), "{:.2f}", "3"),
    ("one more turn of a loop of 400 kernels, as a round's: us", lambda r: r.probe("while_nodes_turn_us"), "{:.0f}", ""),
    ("a row of p from 128 K logits: us", lambda r: r.sample("plain").get("us_1"), "{:.0f}", ""),
    ("plain decoding, 1 B: ours / transformers, tokens/s", lambda r: peer(r, "plain", "plain"), "{}", ""),
    ("with a 124 M draft: ours / transformers, tokens/s", lambda r: peer(r, "assisted", "model"), "{}", ""),
]


# What arithmetic expects of an H200 behind 1024 tokens, of the kernels as they were when it was made.
EXPECTED = {
    "8 B bf16, decode: ms": "4.1", "8 B bf16, decode: time / floor": "1.16", "8 B q8_0, decode: time / floor": "1.6",
    "8 B q4_0, decode: time / floor": "2.8", "v(8), 8 B bf16": "1.17", "v(64)": "2.2",
    "a sampled round beside a greedy one, 8 B, plain: us": "400 to 600",
}
assert set(EXPECTED) <= {row[0] for row in ROWS}


def product_ratio(run, kind, n, k):
    p = run.product(kind, n, k)
    return over(p.get("us_1"), p.get("floor_us"))


def cell(run, row):
    value = row[1](run)
    return NONE if value is None else row[2].format(value)


def title(run):
    name = f": {run.data.get('card', '?')}, {str(run.data.get('date', '?'))[:10]}" if run.data else ""
    return "measured on a card" + name


def markdown(runs):
    runs = runs or [Run({})]
    out = ["| | wanted (goal) | arithmetic | " + " | ".join(title(r) for r in runs) + " |",
           "|---|---|---|" + "---|" * len(runs)]
    for row in ROWS:
        cells = [row[0], row[3] or "-", EXPECTED.get(row[0], "-")] + [cell(r, row) for r in runs]
        out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out) + "\n"


def short(run):
    """At most 22 lines: what was measured, and how many rows were not."""
    known = [(row, cell(run, row)) for row in ROWS if cell(run, row) != NONE]
    out = [f"  {row[0]:<66} {value:>10}  {row[3] and 'wanted ' + row[3]}".rstrip() for row, value in known]
    missing = len(ROWS) - len(known)
    if len(out) > 21:
        missing += len(out) - 21
        out = out[:21]
    return "\n".join(out + ([f"  {missing} more rows in the table, or {NONE}"] if missing else [])) + "\n"


def newest(folder):
    """The last run of every card; of emulated ones none."""
    cards = {}
    for path in sorted(folder.glob("*/result.json")):
        data = json.loads(path.read_text())
        if data.get("card") != EMULATED:
            cards[data.get("card")] = data
    return [Run(data) for data in cards.values()]


def page_with(page, runs):
    head, rest = page.split(BEGIN)
    return head + BEGIN + "\n" + markdown(runs) + END + rest.split(END)[1]


def self_test():
    """Every row of a made-up run, computed here by hand; and of one where nothing passed."""
    def fwd(rows, time, gb_s=4000.0, context=1024):
        return {"rows": rows, "ms": time, "gb_s": gb_s, "context": context}

    def rounds(tok_s, round_ms):
        return {"arm": "synthetic", "tok_s": tok_s, "round_ms": round_ms, "draft_ms": 0.01}

    names = ["forward_8b_bf16", "forward_1b_bf16", "forward_8b_q4_0", "forward_8b_q4_k", "forward_8b_q8_0", "forward_8b_f8",
             "forward_124m_bf16", "oracle_8b_bf16", "oracle_1b_bf16", "fast_8b_bf16", "eager_1b_bf16", "far_8b_bf16", "peer",
             "drafted_1b_bf16", "steps_1b_bf16", "sampled_8b_bf16"]
    data = {
        "card": "Made Up", "date": "2000-01-01T00:00:00Z", "sections": {n: {"result": "passed"} for n in names},
        "basics": [{"read_gb_s": 4400.0}, {"graph_gap_us": 1.25}, {"graph_gap_pdl_us": 0.75}, {"while_turn_us": None},
                   {"while_nodes": 400, "looped": True, "while_nodes_turn_us": 456.4}],
        "kernels": [{"product": "bf16", "n": 28672, "k": 4096, "floor_us": 50.0, "us_1": 60.0},
                    {"product": "q4_0", "n": 28672, "k": 4096, "floor_us": 16.0, "us_1": 20.0},
                    {"sample": "greedy", "us_1": 1.0}, {"sample": "plain", "us_1": 44.4}],
        "forward_8b_bf16": [fwd(1, 4.0), fwd(8, 4.2), fwd(16, 4.4), fwd(32, 4.6), fwd(64, 5.0)],
        "forward_1b_bf16": [fwd(1, 0.8, 3520.0)], "forward_8b_q4_0": [fwd(1, 1.5, 3200.0), fwd(64, 3.0)],
        "forward_8b_q4_k": [fwd(1, 1.5, 3300.0)], "forward_8b_q8_0": [fwd(1, 2.2, 3900.0)],
        "forward_8b_f8": [fwd(1, 2.0, 4000.0)], "forward_124m_bf16": [fwd(1, 0.2, 2200.0)],
        "oracle_8b_bf16": [fwd(1, 4.0), fwd(5, 4.1), {"arm": "plain", "tok_s": 240.0, "round_ms": 4.0},
                           rounds(800.0, 4.14)],
        "sampled_8b_bf16": [{"arm": "plain", "round_ms": 4.5}],
        "oracle_1b_bf16": [fwd(1, 0.8), fwd(5, 0.84), rounds(3800.0, 0.9)],
        "fast_8b_bf16": [fwd(1, 3.9), fwd(64, 4.8)], "eager_1b_bf16": [fwd(1, 1.2)],
        "far_8b_bf16": [fwd(1, 4.2, 4000.0, 4096)],
        "peer": [{"peer": "transformers", "what": "plain", "tok_s": 50.0},
                 {"peer": "transformers", "what": "assisted", "tok_s": 20.0}],
        "drafted_1b_bf16": [fwd(1, 0.8), {"arm": "plain", "tok_s": 600.0, "round_ms": 0.815},
                            {"arm": "model", "tok_s": 250.0, "round_ms": 2.0}],
        "steps_1b_bf16": [{"arm": "plain", "round_ms": 0.978}, {"arm": "model", "round_ms": 2.5}],
    }
    tau = (1 - 0.8 ** 5) / 0.2
    want = ["4400", "4.000", "1.10", "1.25", "1.38", "1.33", "1.13", "1.10", "2.00", "1.05", "1.10", "1.15", "1.25", "2.00",
            "1.10", "30", "50", "15", "500", "1.20", "1.25", f"{800 * 4.1e-3 / tau:.2f}", f"{3800 * 0.84e-3 / tau:.2f}", "1.03",
            "1.04", "1.50", "1.20", NONE, "1.25", "1.25", "0.75", NONE, "456", "44", "600 / 50 = 12.00", "250 / 20 = 12.50"]
    run = Run(data)
    got = [cell(run, row) for row in ROWS]
    assert got == want, [(r[0], g, w) for r, g, w in zip(ROWS, got, want) if g != w]
    assert all(cell(Run({}), row) == NONE for row in ROWS)
    failed = Run({**data, "sections": {n: {"result": "failed"} for n in names}})
    probed = [i for i, row in enumerate(ROWS) if cell(failed, row) != NONE]
    assert probed == [0, 26, 28, 29, 30, 32, 33], "half a section is no measurement"
    assert markdown([run]).count("\n") == len(ROWS) + 2 and "Made Up, 2000-01-01" in markdown([run])
    assert markdown([]).count(NONE) == len(ROWS)
    assert short(run).count("\n") <= 22 and len(short(Run({})).splitlines()) == 1
    with tempfile.TemporaryDirectory() as folder:
        for name, card in [("1-a", "a"), ("2-a", "a"), ("3-b", "b"), ("4-e", EMULATED)]:
            (Path(folder) / name).mkdir()
            (Path(folder) / name / "result.json").write_text(json.dumps({**data, "card": card, "date": name}))
        assert [r.data["date"] for r in newest(Path(folder))] == ["2-a", "3-b"]
    page = f"a\n{BEGIN}\nold\n{END}\nb\n"
    assert page_with(page, [run]) == f"a\n{BEGIN}\n{markdown([run])}{END}\nb\n"
    print("table.py: self-test passed")


def main(args):
    word = args[0] if args and args[0].startswith("--") else ""
    files = args[1:] if word else args
    if word == "--self-test":
        return self_test()
    runs = [Run(json.loads(Path(f).read_text())) for f in files] or newest(HERE)
    if word == "--short" and len(files) == 1:
        print(short(runs[0]), end="")
    elif word == "--page":
        PAGE.write_text(page_with(PAGE.read_text(), runs))
    elif word == "--check":
        page = PAGE.read_text()
        if page != page_with(page, runs):
            sys.exit("results/gpu/WANTED.md has another table: run results/gpu/table.py --page")
    elif not word:
        print(markdown(runs), end="")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
