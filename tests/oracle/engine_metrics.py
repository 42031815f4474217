#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Acceptance metrics of other engines from the steps of a run, by the engines' own formulas: engine_metrics.py WAGER DIR. Reads
DIR/steps.jsonl, whose drafts are chains or trees with all children at every level, and compares every number with `wager columns
--as ENGINE --json DIR`. Nothing is read from summary.json, and no formula from the program."""
import json
import math
import subprocess
import sys


def steps_by_cell(folder):
    cells = {}
    with open(folder + "/steps.jsonl") as f:
        for line in f:
            v = json.loads(line)
            if v["cell"] is not None:
                cells.setdefault(v["cell"], []).append(v)
    return cells


def ratio(a, b):
    return a / b if b else None


def vllm(steps):
    """An observation per request and scheduler step that had draft tokens."""
    drafts = draft_tokens = accepted = 0
    per_pos = []
    for s in steps:
        if s["nodes"] == 1:
            continue
        drafts += 1
        draft_tokens += s["nodes"] - 1
        accepted += s["accepted"]
        per_pos += [0] * (s["height"] - len(per_pos))
        for i in range(s["accepted"]):
            per_pos[i] += 1
    return {"spec_decode_num_drafts": drafts, "spec_decode_num_draft_tokens": draft_tokens,
            "spec_decode_num_accepted_tokens": accepted, "spec_decode_num_accepted_tokens_per_pos": per_pos,
            "mean_acceptance_length": 1 + accepted / drafts if drafts else None,
            "draft_acceptance_rate": ratio(accepted, draft_tokens),
            "per_position_acceptance_rate": [n / drafts for n in per_pos]}


def sglang(steps):
    tokens = sum(s["emitted"] for s in steps)
    verify = len(steps)
    correct = sum(s["accepted"] for s in steps)
    proposed = sum(s["nodes"] - 1 for s in steps)
    return {"completion_tokens": tokens, "spec_verify_ct": verify, "spec_num_correct_drafts": correct,
            "spec_num_proposed_drafts": proposed, "spec_accept_length": ratio(tokens, verify),
            "spec_accept_rate": ratio(correct, proposed), "accept len": ratio(correct + verify, verify)}


def tensorrt(steps):
    with_draft = [s for s in steps if s["nodes"] > 1]
    drafted = sum(s["nodes"] - 1 for s in with_draft)
    accepted = sum(s["accepted"] for s in with_draft)
    return {"numDraftTokens": drafted, "numAcceptedTokens": accepted, "numRequestsWithDraftTokens": len(with_draft),
            "acceptanceLength": ratio(accepted + len(with_draft), len(with_draft)), "totalDraftTokens": drafted,
            "totalAcceptedDraftTokens": accepted, "acceptanceRate": ratio(accepted, drafted)}


def eagle(steps):
    """alpha[i] of alpha_num[i]: position i was reached and the draft had a token there. A text that ended with the last accepted
    token (emitted == accepted) had no further position."""
    alpha, alpha_num = [], []
    for s in steps:
        for i in range(s["height"]):
            if len(alpha) == i:
                alpha.append(0)
                alpha_num.append(0)
            alpha[i] += i < s["accepted"]
            alpha_num[i] += i < s["accepted"] or (i == s["accepted"] and s["emitted"] > s["accepted"])
    rounds = [s["accepted"] + 1 for s in steps]
    return {"new_tokens": sum(s["emitted"] for s in steps), "tau": ratio(sum(rounds), len(rounds)),
            "n-alpha": [ratio(a, n) for a, n in zip(alpha, alpha_num)]}


def spec_bench(steps):
    lengths = [s["accepted"] + 1 for s in steps]
    return {"new_tokens": sum(s["emitted"] for s in steps), "Mean accepted tokens": ratio(sum(lengths), len(lengths))}


def llama_cpp(steps):
    n_drafted = n_accept = n_predict = 0
    for s in steps:
        n_drafted += s["nodes"] - 1
        n_accept += s["accepted"]
        n_predict += s["emitted"]
    return {"n_predict": n_predict, "n_drafted": n_drafted, "n_accept": n_accept,
            "accept": 100 * n_accept / n_drafted if n_drafted else None, "draft acceptance rate": ratio(n_accept, n_drafted)}


ENGINES = {"vllm": vllm, "sglang": sglang, "tensorrt-llm": tensorrt, "eagle": eagle, "spec-bench": spec_bench,
           "llama.cpp": llama_cpp}


def same(a, b):
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if a is None or b is None:
        return a is None and b is None
    return isinstance(b, (int, float)) and math.isclose(a, b, rel_tol=1e-12)


def main(program, folder):
    cells, bad, checks = steps_by_cell(folder), 0, 0
    listed = subprocess.run([program, "columns", "--json"], check=True, capture_output=True, text=True).stdout
    names = {}
    for line in listed.splitlines():
        v = json.loads(line)
        names.setdefault(v["engine"], set()).add(v["name"])
    if set(names) != set(ENGINES):
        sys.exit("FAILED: the engines are %s, and here %s" % (sorted(names), sorted(ENGINES)))
    for engine, formulas in ENGINES.items():
        out = json.loads(subprocess.run([program, "columns", "--as", engine, "--json", folder], check=True, capture_output=True,
                                        text=True).stdout)
        for cell in out["cells"]:
            want, got = formulas(cells[cell["cell"]]), cell["metrics"]
            if set(want) != set(got) or set(want) != names[engine]:
                sys.exit("FAILED %s: the names are %s, and here %s" % (engine, sorted(got), sorted(want)))
            for name in want:
                checks += 1
                if not same(want[name], got[name]):
                    bad += 1
                    print("FAILED %s, cell %d: %s is %s, by the steps %s" % (engine, cell["cell"], name, got[name], want[name]))
    print("engine metrics: %d numbers of %d cells, %d wrong" % (checks, len(cells), bad))
    return bad > 0 or checks == 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
