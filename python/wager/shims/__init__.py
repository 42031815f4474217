# SPDX-License-Identifier: MIT
"""wager inside other engines, a module each, imported by its name: `wager.shims.transformers`, `arctic`, `llama_cpp`, `vllm`,
`sglang`, `tensorrt_llm`. Each says at its top what it needs and where its limits are (docs/python-engines.md)."""
