# SPDX-License-Identifier: MIT
"""check_signatures.py FOLDER [--update]: the signatures that the shims rely on, read from the sources of the engines below
FOLDER without importing them, compared with signatures.json (--update writes it). A development check:

  pip download --no-deps -d FOLDER vllm sglang arctic-inference llama-cpp-python    then unpack the archives in FOLDER
  of TensorRT-LLM, whose wheel takes gigabytes, the file tensorrt_llm/_torch/speculative/drafter.py of its repository"""

import ast
import json
import sys
from pathlib import Path

FIXTURE = Path(__file__).with_name("signatures.json")
# name of the fixture: (file below FOLDER, the function's path; for "call:" the arguments of a call of that name)
WANTED = {
    "vllm.Proposer.propose": ("vllm/v1/worker/gpu_model_runner.py", "call:propose"),
    "vllm.Proposer.__init__": ("vllm/v1/spec_decode/custom_class_proposer.py", "create_custom_proposer"),
    "sglang.register_algorithm": ("sglang/srt/speculative/spec_registry.py", "register_algorithm"),
    "sglang.NGRAMWorker.__init__": ("sglang/srt/speculative/ngram_worker.py", "NGRAMWorker.__init__"),
    "sglang.NgramCorpus.batch_get": ("sglang/srt/speculative/cpp_ngram/ngram_corpus.py", "NgramCorpus.batch_get"),
    "sglang.NgramCorpus.batch_put": ("sglang/srt/speculative/cpp_ngram/ngram_corpus.py", "NgramCorpus.batch_put"),
    "sglang.NgramCorpus.erase_match_state": (
        "sglang/srt/speculative/cpp_ngram/ngram_corpus.py",
        "NgramCorpus.erase_match_state",
    ),
    "tensorrt_llm.Drafter.prepare_draft_tokens": (
        "tensorrt_llm/_torch/speculative/drafter.py",
        "Drafter.prepare_draft_tokens",
    ),
    "llama_cpp.LlamaDraftModel.__call__": ("llama_cpp/llama_speculative.py", "LlamaDraftModel.__call__"),
    **{
        f"arctic.SuffixDecodingCache.{name}": ("arctic_inference/suffix_decoding/cache.py", f"SuffixDecodingCache.{name}")
        for name in ("start_request", "stop_request", "add_active_response", "evict_cached_response", "speculate")
    },
}


def find(tree, path):
    for name in path.split("."):
        kinds = (ast.FunctionDef, ast.ClassDef)
        tree = next(node for node in ast.walk(tree) if isinstance(node, kinds) and node.name == name)
    return tree


def parameters(function):
    a = function.args
    names = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    more = [f"{star}{p.arg}" for star, p in (("*", a.vararg), ("**", a.kwarg)) if p]
    return [n for n in names if n != "self"] + more


def call_of_custom_class(tree):
    """The arguments of vLLM's call of a custom proposer, named as its other proposers name them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "propose":
            if isinstance(node.func.value, ast.Call) and ast.unparse(node.func.value.func) == "cast":
                given = [ast.unparse(a).rsplit(".", 1)[-1] for a in node.args]
                return given + [k.arg for k in node.keywords]
    raise StopIteration


def read(folder):
    found = {}
    for name, (file, path) in WANTED.items():
        sources = sorted(folder.rglob(file))
        if not sources:
            print(f"{name}: no {file} below {folder}")
            continue
        tree = ast.parse(sources[0].read_text())
        taken = call_of_custom_class(tree) if path == "call:propose" else parameters(find(tree, path))
        found[name] = {"file": file, "parameters": taken}
    return found


def main():
    folder, update = Path(sys.argv[1]), "--update" in sys.argv
    found = read(folder)
    if update:
        versions = json.loads(FIXTURE.read_text())["versions"]  # set by hand
        FIXTURE.write_text(json.dumps({"versions": versions, "signatures": found}, indent=1, sort_keys=True) + "\n")
    wanted = json.loads(FIXTURE.read_text())["signatures"]
    moved = [n for n in found if found[n]["parameters"] != wanted.get(n, {}).get("parameters")]
    for name in moved:
        print(f"{name}: {found[name]['parameters']}; the shims were written for {wanted.get(name, {}).get('parameters')}")
    print(f"{len(found)} of {len(WANTED)} signatures found, {len(moved)} moved")
    sys.exit(1 if moved or not found else 0)


main()
