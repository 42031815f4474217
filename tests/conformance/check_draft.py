#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An exported student in the engines it is for, beside wager: check_draft.py WAGER [--llama BIN] [--out FILE.json] [--repeats N] [--quick]

`wager export` writes the bundled pair; transformers loads both folders, its logits are compared with wager's, and it drafts with the
student (`assistant_model`); llama.cpp does the same with the GGUF files where --llama names a folder with llama-debug and
llama-speculative-simple. Greedy texts must be equal. Accepted / drafted tokens are counted by each engine on the same prompts; intervals
of 95 % are jackknife ones of log(accepted / drafted) over prompts with Student's t, n - 1 degrees of freedom.

The committed result is draft.json, which docs/students.md quotes. Where torch or transformers are missing, it stands in for them: the
exported student must draft the same numbers of tokens, greedily, of which the same are accepted. --quick: six prompts, short texts, no
sampling."""
import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    import transformers
    from transformers.generation import candidate_generator
    missing = None
except ImportError as e:
    missing = e

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET, STUDENT = "models/story-target-q8_0.gguf", "models/story-draft-q8_0.gguf"
PROMPTS = ROOT / "configs/prompts/quickstart.jsonl"
TOKENS, DRAFTS, BOUND = 64, 4, 1e-3
failures = 0


def say(fine, text):
    global failures
    failures += not fine
    print(("ok     " if fine else "FAILED ") + text, flush=True)


def call(*command, cwd=ROOT):
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr


# ---- intervals

def student_t(freedom):
    """The t beyond which lies 0.05 of the distribution, by bisection of its integral."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    lo, hi = 0.0, 100.0
    for _ in range(60):
        t = (lo + hi) / 2
        x = np.linspace(0, t, 20001)
        inside = 2 * np.trapezoid(scale * (1 + x * x / freedom) ** (-(freedom + 1) / 2), x)
        lo, hi = (t, hi) if inside < 0.95 else (lo, t)
    return t


def ratio(a, b):
    """(value, lower, upper) of sum a / sum b over prompts."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    n, whole = len(a), math.log(a.sum() / b.sum())
    pseudo = n * whole - (n - 1) * np.log((a.sum() - a) / (b.sum() - b))
    half = student_t(n - 1) * pseudo.std(ddof=1) / math.sqrt(n)
    return [round(math.exp(v), 4) for v in (whole, whole - half, whole + half)]


def counted(rows):
    """rows: (drafted, accepted, tokens, passes) of each prompt, all repeats."""
    d, a, n, m = np.array(rows).T
    return dict(acceptance=ratio(a, d), tau=ratio(n, m), drafted=int(d.sum()), accepted=int(a.sum()), tokens=int(n.sum()),
                passes=int(m.sum()))


# ---- wager

def logits(wager, model, tokens, folder):
    out = folder / "rows.f32"
    call(wager, "logits", model, "--tokens", ",".join(map(str, tokens)), "--kv-type", "f32", "--out", out)
    return np.fromfile(out, np.float32).reshape(len(tokens), -1)


def run(wager, folder, name, temperature, repeats, prompts, draft=None):
    config = folder / f"{name}.json"
    config.write_text(json.dumps(dict(
        name=name, seed=5, repeats=repeats, target=dict(model=str(folder / "target"), kv_type="f32"),
        draft=dict(kind="model", model=str(folder / "student"), length=DRAFTS, kv_type="f32", **(draft or {})), verify=dict(rule="rejection"),
        sampling=dict(temperature=temperature), prompts=dict(file=str(prompts)), max_tokens=TOKENS)))
    call(wager, "run", config, "--out", folder / name)
    requests = [json.loads(line) for line in (folder / name / "requests.jsonl").read_text().splitlines()]
    requests = [r for r in requests if r["arm"] != "baseline"]
    rows = {}  # of each prompt: drafted, accepted, tokens, passes; sum and number of overlaps
    for r in requests:
        s = r["speculative_decoding"]
        now = (s["num_draft_tokens"], s["num_accepted_draft_tokens"], len(r["ids"]), r["load"]["passes"], s["teacher_forced_alpha_sum"],
               s["teacher_forced_alpha_n"])
        rows[r["id"]] = [a + b for a, b in zip(rows.get(r["id"], [0] * 6), now)]
    return list(rows.values()), [r["ids"] for r in requests]


def measured(rows, temperature):
    alpha = ratio([r[4] for r in rows], [r[5] for r in rows])
    return dict(counted([r[:4] for r in rows]), engine="wager", temperature=temperature, alpha=alpha)


# ---- transformers

def assisted(target, draft, prompts, temperature, repeats):
    """Counts of each prompt, and the texts of the first repeat."""
    plain = candidate_generator.AssistedCandidateGenerator
    propose, update, now = plain.get_candidates, plain.update_candidate_strategy, np.zeros(4)

    def get_candidates(self, input_ids, **kwargs):
        ids, scores = propose(self, input_ids, **kwargs)
        now[0] += ids.shape[1] - input_ids.shape[1]
        now[3] += 1
        return ids, scores

    def update_candidate_strategy(self, input_ids, scores, matches):
        now[1] += int(matches)
        return update(self, input_ids, scores, matches)

    plain.get_candidates, plain.update_candidate_strategy = get_candidates, update_candidate_strategy
    draft.generation_config.num_assistant_tokens = DRAFTS
    draft.generation_config.num_assistant_tokens_schedule = "constant"
    draft.generation_config.assistant_confidence_threshold = 0.0
    how = dict(do_sample=True, temperature=temperature, top_k=0, top_p=1.0) if temperature else dict(do_sample=False)
    rows, texts = [], []
    for number, tokens in enumerate(prompts):
        now[:] = 0
        for repeat in range(repeats):
            torch.manual_seed(1000 * repeat + number)
            out = target.generate(torch.tensor([tokens]), attention_mask=torch.ones(1, len(tokens)), assistant_model=draft,
                                  max_new_tokens=TOKENS, pad_token_id=1, **how)[0].tolist()[len(tokens):]
            now[2] += len(out)
            if repeat == 0:
                texts.append(out)
        rows.append(now.copy())
    plain.get_candidates, plain.update_candidate_strategy = propose, update
    return dict(counted(rows), engine="transformers", temperature=temperature), texts, rows


def check_fixture(o, folder, prompts_file):
    known = json.loads((pathlib.Path(__file__).resolve().parent / "draft.json").read_text())
    theirs = next(d for d in known["drafting"] if d["engine"] == "transformers" and d["temperature"] == 0)
    rows, _ = run(o.wager, folder, "greedy", 0.0, 1, prompts_file)
    mine = [sum(r[k] for r in rows) for k in range(3)]
    say(mine == [theirs[k] for k in ("drafted", "accepted", "tokens")],
        f"greedy, against draft.json: {mine[1]} of {mine[0]} drafted tokens accepted, transformers {theirs['accepted']} of {theirs['drafted']}"
        + ("" if mine[1] == theirs["accepted"] else "; after a change of the bundled models: models/update.sh"))
    print(f"       transformers itself: not run ({missing})", flush=True)


def check_transformers(o, folder, prompts_file, texts, result):
    load = lambda name: transformers.AutoModelForCausalLM.from_pretrained(folder / name, dtype=torch.float32,
                                                                          attn_implementation="eager").eval()
    target, draft = load("target"), load("student")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "student")
    prompts = [tokenizer(t)["input_ids"] for t in texts]
    ours = [[json.loads(line)["id"] for line in call(o.wager, "tokenize", folder / "student", t, "--json").splitlines()] for t in texts]
    say(prompts == ours, f"AutoTokenizer: {sum(a == b for a, b in zip(prompts, ours))} of {len(ours)} prompts have wager's tokens")
    for name, model in (("target", target), ("student", draft)):
        tokens = [t for p in prompts for t in p][:64]
        with torch.no_grad():
            theirs = model(torch.tensor([tokens])).logits[0].numpy()
        d = float(np.abs(theirs - logits(o.wager, folder / name, tokens, folder)).max())
        result["logits"].append(dict(engine="transformers", model=name, rows=len(tokens), largest_difference=float(f"{d:.2g}"),
                                     bound=BOUND))
        say(d <= BOUND, f"transformers, {name}: {len(tokens)} rows of logits, at most {d:.1e} away")
    conditions = [(0.0, 1, {})] + ([] if o.quick else [(1.0, o.repeats, {}), (0.8, o.repeats, {}), (0.8, o.repeats, {"temperature": 0.64})])
    theirs = {}
    for temperature, repeats, draft_options in conditions:
        my_rows, my_texts = run(o.wager, folder, f"t{temperature}{len(draft_options)}", temperature, repeats, prompts_file,
                                draft_options)
        mine = measured(my_rows, temperature)
        if draft_options:
            mine["draft_temperature"] = draft_options["temperature"]
        if temperature not in theirs:
            theirs[temperature], their_texts, their_rows = assisted(target, draft, prompts, temperature, repeats)
            result["drafting"].append(theirs[temperature])
        result["drafting"].append(mine)
        a, b = mine["acceptance"], theirs[temperature]["acceptance"]
        print(f"       temperature {temperature} {draft_options or ''}: wager {a}, transformers {b}; alpha {mine['alpha']}", flush=True)
        if temperature == 0:
            same = sum(x == y for x, y in zip(my_texts, their_texts))
            say(same == len(texts), f"greedy texts: {same} of {len(texts)} equal")
            equal = sum(list(x[:3]) == list(y[:3]) for x, y in zip(my_rows, their_rows))
            greedy = [tokenizer.decode(t, skip_special_tokens=True) for t in my_texts]
            result["greedy"] = dict(engine="transformers", prompts=len(texts), same_text=same, same_counts=equal)
            print(f"       of {len(texts)} texts, {equal} with equal counts of drafted and accepted tokens", flush=True)
        elif temperature == 1.0 or draft_options:  # elsewhere the temperature is applied twice
            say(a[1] <= b[2] and b[1] <= a[2], "the intervals overlap")
    return greedy


# ---- llama.cpp

def check_llama(o, folder, texts, greedy, result):
    """greedy: wager's continuations of the texts."""
    bin_ = pathlib.Path(o.llama).resolve()
    common = ["-t", "1", "-c", "512", "-ctk", "f32", "-ctv", "f32", "-fa", "off"]
    model = lambda name: folder / f"{name}-f32" / f"{name}.gguf"
    for name in ("target", "student"):
        worst = 0.0
        for i, text in enumerate(texts[:8]):
            tokens = [json.loads(line)["id"] for line in call(o.wager, "tokenize", model(name), text, "--json").splitlines()]
            work = folder / f"debug-{name}-{i}"
            work.mkdir()
            call(bin_ / "llama-debug", "-m", model(name), "-p", text, "--save-logits", "--no-warmup", *common, cwd=work)
            theirs = np.fromfile(work / f"data/llamacpp-{name}.bin", np.float32)
            worst = max(worst, float(np.abs(theirs - logits(o.wager, model(name), tokens, folder)[-1]).max()))
        result["logits"].append(dict(engine="llama.cpp", model=name, rows=8, largest_difference=float(f"{worst:.2g}"), bound=BOUND))
        say(worst <= BOUND, f"llama.cpp, {name}: the last rows of 8 prompts, at most {worst:.1e} away")
    rows, same = [], 0
    for text, ours in zip(texts, greedy):
        command = [bin_ / "llama-speculative-simple", "-m", model("target"), "-md", model("student"), "--spec-type", "draft-simple",
                   "--spec-draft-n-max", DRAFTS, "-n", TOKENS, "--temp", 0, "-p", text, "-lv", 4, *common]
        for _ in range(3):  # its last lines are lost at times
            done = subprocess.run([str(c) for c in command], cwd=folder, capture_output=True, text=True)
            found = dict(re.findall(r"(n_\w+)\s*=\s*(\d+)", done.stdout + done.stderr))
            if {"n_drafted", "n_accept", "n_predict"} <= set(found):
                break
        number = lambda key: int(found[key])
        rows.append((number("n_drafted"), number("n_accept"), number("n_predict"), number("n_predict") - number("n_accept")))
        same += ours in done.stdout
    result["drafting"].append(dict(counted(rows), engine="llama.cpp", temperature=0.0, same_text=same))
    say(same == len(texts), f"llama.cpp -md: {same} of {len(texts)} greedy texts equal")
    a, b = result["drafting"][-1]["acceptance"], next(d for d in result["drafting"] if d["engine"] == "wager")["acceptance"]
    say(a[1] <= b[2] and b[1] <= a[2], f"llama.cpp -md: accepted {a}, wager {b}: the intervals overlap")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("wager", type=lambda s: pathlib.Path(s).resolve())
    p.add_argument("--llama")
    p.add_argument("--out")
    p.add_argument("--quick", action="store_true")
    p.add_argument("--repeats", type=int, default=4, help="of the sampled texts")
    o = p.parse_args()
    o.quick = o.quick and not missing  # draft.json has all prompts
    if not missing:
        torch.set_num_threads(1)
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
    lines = PROMPTS.read_text().splitlines()
    if o.quick:
        global TOKENS
        lines, TOKENS = lines[::4], 24
    result = dict(prompts=len(lines), tokens=TOKENS, draft_length=DRAFTS, repeats=o.repeats, logits=[], drafting=[])
    with tempfile.TemporaryDirectory() as base:
        folder = pathlib.Path(base)
        prompts = folder / "prompts.jsonl"
        prompts.write_text("\n".join(lines) + "\n")
        texts = [json.loads(line)["prompt"] for line in lines]
        for name, model in (("target", TARGET), ("student", STUDENT)):
            call(o.wager, "export", model, "--to", folder / name, "--name", name, "--for", TARGET)
            call(o.wager, "export", model, "--to", folder / f"{name}-f32", "--name", name, "--format", "gguf", "--type", "f32")
        if missing:
            check_fixture(o, folder, prompts)
            sys.exit(1 if failures else 0)
        result["versions"] = dict(transformers=transformers.__version__, torch=torch.__version__.split("+")[0])
        greedy = check_transformers(o, folder, prompts, texts, result)
        if o.llama:
            check_llama(o, folder, texts, greedy, result)
        else:
            print("       llama.cpp: not checked (no --llama)", flush=True)
    if o.out:
        pathlib.Path(o.out).write_text(json.dumps(result, indent=1) + "\n")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
