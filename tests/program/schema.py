#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`wager list --schema` by the package jsonschema: it is a schema, every experiment of configs/ is valid under it, and changed ones
are not. usage: tests/program/schema.py WAGER. Exits 77 (skipped) without jsonschema."""

import copy
import json
import subprocess
import sys
from pathlib import Path

try:
    import jsonschema
except ImportError:
    print("SKIPPED: needs the package jsonschema (WG_PYTHON: a Python that has it)")
    sys.exit(77)

schema = json.loads(subprocess.run([sys.argv[1], "list", "--schema"], capture_output=True, check=True, text=True).stdout)
jsonschema.Draft202012Validator.check_schema(schema)
judge = jsonschema.Draft202012Validator(schema)


def without_comments(value):
    if isinstance(value, dict):
        return {k: without_comments(v) for k, v in value.items() if not k.startswith("//")}
    return [without_comments(v) for v in value] if isinstance(value, list) else value


wrong = n = 0
for path in sorted(Path("configs/experiments").glob("*.json")):
    config = without_comments(json.loads(path.read_text(encoding="utf-8")))
    n += 1
    for problem in judge.iter_errors(config):
        wrong += 1
        print(f"{path}: {problem.json_path}: {problem.message[:200]}")
base = {"name": "t", "target": {"model": "t.gguf"}, "prompts": {"file": "p.jsonl"}, "draft": {"kind": "ngram", "k": 4, "label": "x"}}
for keys, value, valid in (
    (["draft", "k"], 5, True),
    (["draft", "k"], "5", False),
    (["draft", "label"], 5, False),
    (["draft", "lable"], "x", False),
    (["draft", "kind"], "ngrma", False),
    (["verify"], {"rule": "match", "label": "x"}, False),
    (["sweep"], {"draft": [{"kind": "recycle", "nodes": 4, "label": "y"}], "sampling.temperature": [0, 0.8]}, True),
    (["sweep"], {"draft.label": [3]}, False),
    (["tarqet"], {}, False),
):
    config = copy.deepcopy(base)
    at = config
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    if judge.is_valid(config) != valid:
        wrong += 1
        print(f"{'.'.join(keys)} = {value!r}: expected {'valid' if valid else 'invalid'}")
print(f"{n} experiments, {wrong} wrong")
sys.exit(1 if wrong or n < 5 else 0)
