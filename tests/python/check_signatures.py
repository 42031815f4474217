# SPDX-License-Identifier: MIT
"""check_signatures.py [FOLDER] [--update]: what the shims rely on of other engines, signatures and names, read from the sources
of the engines below FOLDER (or WG_ENGINE_SOURCES) without importing them, compared with signatures.json (--update writes what was
found into it). Exits 77 (skipped) without any of them. A development check:

  pip download --no-deps -d FOLDER vllm sglang arctic-inference llama-cpp-python    then unpack the archives in FOLDER
  of TensorRT-LLM, which PyPI has no wheel of, drafter.py and ngram.py of its repository as FOLDER/tensorrt_llm/_torch/speculative/..."""

import ast
import json
import os
import sys
from pathlib import Path

FIXTURE = Path(__file__).with_name("signatures.json")
# name of the fixture: (file below FOLDER, the function's path; for "call:" the arguments of a call of that name; for "of:" what is
# taken of a member of self; for "names:" those of these names that it has)
WANTED = {
    "vllm.Proposer.propose": ("vllm/v1/worker/gpu_model_runner.py", "call:propose"),
    "vllm.Proposer.__init__": ("vllm/v1/spec_decode/custom_class_proposer.py", "create_custom_proposer"),
    "vllm.LLM.__init__": ("vllm/entrypoints/llm.py", "LLM.__init__"),  # of examples/vllm-target, as the next two
    "vllm.LLM.generate": ("vllm/entrypoints/llm.py", "LLM.generate"),
    "vllm.FlatLogprobs has": ("vllm/logprobs.py", "names:start_indices end_indices token_ids logprobs"),
    "vllm.ModelConfig.get_vocab_size": ("vllm/config/model.py", "ModelConfig.get_vocab_size"),
    "vllm.Proposer reads": (
        "vllm/v1/spec_decode/ngram_proposer.py",
        "names:speculative_config model_config scheduler_config num_speculative_tokens max_model_len max_num_seqs",
    ),
    "sglang.register_algorithm": ("sglang/srt/speculative/spec_registry.py", "register_algorithm"),
    "sglang.NGRAMWorker.__init__": ("sglang/srt/speculative/ngram_worker.py", "NGRAMWorker.__init__"),
    "sglang.NGRAMWorker of its corpus": ("sglang/srt/speculative/ngram_worker.py", "of:ngram_corpus"),
    "sglang.NGRAMWorker has": ("sglang/srt/speculative/ngram_worker.py", "names:draft_token_num model_runner ngram_corpus"),
    "sglang.CustomSpecAlgo.is_ngram": ("sglang/srt/speculative/spec_registry.py", "CustomSpecAlgo.is_ngram"),
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
    "tensorrt_llm.Drafter reads": (
        "tensorrt_llm/_torch/speculative/ngram.py",
        "names:generation_requests request_id get_tokens py_orig_prompt_len py_max_new_tokens py_draft_tokens max_draft_len",
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


def taken_of(tree, member):
    """The names that are taken of self.MEMBER, sorted."""
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return sorted({node.attr for node in attributes if ast.unparse(node.value) == f"self.{member}"})


def read_one(tree, path):
    kind, _, rest = path.rpartition(":")
    if kind == "call":
        return call_of_custom_class(tree)
    if kind == "of":
        return taken_of(tree, rest)
    if kind == "names":
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        return [name for name in rest.split() if name in used]
    return parameters(find(tree, path))


def read(folder):
    found, absent = {}, []
    for name, (file, path) in WANTED.items():
        sources = sorted(folder.rglob(file))
        if sources:
            try:
                found[name] = {"file": file, "parameters": read_one(ast.parse(sources[0].read_text()), path)}
            except StopIteration:
                found[name] = {"file": file, "parameters": None}  # it is gone
        else:
            absent.append(f"SKIPPED: {name}: no {file} below {folder}")
    return found, absent


def main():
    folders, update = [a for a in sys.argv[1:] if a != "--update"], "--update" in sys.argv
    folder = folders[0] if folders else os.environ.get("WG_ENGINE_SOURCES")
    if not folder:
        print("SKIPPED: needs the sources of the engines (WG_ENGINE_SOURCES=FOLDER; the head of this file says how)")
        sys.exit(77)
    found, absent = read(Path(folder))
    for line in absent:
        print(line)
    fixture = json.loads(FIXTURE.read_text())
    if update:  # the versions are set by hand
        fixture["signatures"].update(found)
        FIXTURE.write_text(json.dumps(fixture, indent=1, sort_keys=True) + "\n")
    wanted = fixture["signatures"]
    moved = [n for n in found if found[n]["parameters"] != wanted.get(n, {}).get("parameters")]
    for name in moved:
        print(f"{name}: {found[name]['parameters']}; the shims were written for {wanted.get(name, {}).get('parameters')}")
    print(f"{len(found)} of {len(WANTED)} signatures found, {len(moved)} moved")
    sys.exit(1 if moved else 0 if found else 77)


main()
