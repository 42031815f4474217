#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A head that `wager distill` trained, in the speculators package: check_head.py WAGER. A development tool.

A head is trained for a few steps for a small random target in f32, and a run with the drafter `eagle`
records the rows of its drafts. Here transformers runs the target from its GGUF file, Eagle3DraftModel loads the head's folder as it is, and gives the
log-probabilities of every drafted row to 1e-4. Needs gguf, and what make_heads.py needs; exits 77 without them.
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
try:
    import gguf
    import make_heads as heads
    import numpy as np
    import torch
    import transformers
    from safetensors.torch import load_file
    from speculators.models.eagle3 import Eagle3DraftModel, Eagle3SpeculatorConfig
except ImportError as e:
    print(f"SKIPPED: {e}")
    sys.exit(77)
import read_trace

STEPS, TAPS, LENGTH, KEEP, BOUND = 3, [1, 2, 0], 4, 300, 1e-4
ROOT = os.path.dirname(os.path.dirname(HERE))


def call(*command):
    done = subprocess.run([str(c) for c in command], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def make(wager, base):
    """The folders of the target and of the head, and the trace."""
    at = lambda name: os.path.join(base, name)  # noqa: E731
    call(wager, "synth", "--like", "tiny", "--type", "f32", "--seed", 4, "--out", at("target.gguf"))
    with open(at("head.json"), "w") as f:
        json.dump(dict(target=dict(model=at("target.gguf")), data=dict(text=os.path.join(ROOT, "docs/methods.md"), held_out=0),
                       distill=dict(keep=KEEP, taps=TAPS, documents=0, predict=False), model=dict(kind="eagle3", steps=STEPS),
                       train=dict(steps=30, batch=4, micro=2, length=64), output=dict(name="head", type="f32")), f)
    call(wager, "distill", at("head.json"), "--out", at("run"))
    with open(at("prompts.jsonl"), "w") as f:
        for text in ("The first row of a draft", "Sums run in one order, and"):
            f.write(json.dumps(dict(prompt=text)) + "\n")
    with open(at("run.json"), "w") as f:
        json.dump(dict(name="head", seed=3, target=dict(model=at("target.gguf"), kv_type="f32"),
                       draft=dict(kind="eagle", model=at("run/head"), length=LENGTH, kv_type="f32"), verify=dict(rule="rejection"),
                       sampling=dict(temperature=1), prompts=dict(file=at("prompts.jsonl")), max_tokens=24, repeats=1, trace="probs",
                       trace_rows="exact"), f)
    call(wager, "run", at("run.json"), "--out", at("traced"))
    return at("target.gguf"), at("run/head"), at("traced/trace.wgt")


def load_target(path):
    """The model of a GGUF file of the family llama, whose rows of queries and keys are in pairs."""
    file = gguf.GGUFReader(path)
    key = lambda name: file.fields["llama." + name].contents()  # noqa: E731
    t = {x.name: torch.tensor(np.array(x.data, np.float32)) for x in file.tensors}
    dim, heads_, kv = key("embedding_length"), key("attention.head_count"), key("attention.head_count_kv")
    config = transformers.LlamaConfig(
        hidden_size=dim, intermediate_size=key("feed_forward_length"), num_hidden_layers=key("block_count"), num_attention_heads=heads_,
        num_key_value_heads=kv, vocab_size=len(t["token_embd.weight"]), rope_theta=key("rope.freq_base"),
        rms_norm_eps=key("attention.layer_norm_rms_epsilon"), tie_word_embeddings="output.weight" not in t)
    config._attn_implementation = "eager"
    m = transformers.LlamaForCausalLM(config).float().eval()
    apart = lambda w, n: w.reshape(n, -1, 2, w.shape[1]).transpose(1, 2).reshape(w.shape)  # noqa: E731
    m.model.embed_tokens.weight.copy_(t["token_embd.weight"])
    m.model.norm.weight.copy_(t["output_norm.weight"])
    for i, layer in enumerate(m.model.layers):
        of = lambda name: t[f"blk.{i}.{name}.weight"]  # noqa: B023, E731
        layer.self_attn.q_proj.weight.copy_(apart(of("attn_q"), heads_))
        layer.self_attn.k_proj.weight.copy_(apart(of("attn_k"), kv))
        layer.self_attn.v_proj.weight.copy_(of("attn_v"))
        layer.self_attn.o_proj.weight.copy_(of("attn_output"))
        layer.input_layernorm.weight.copy_(of("attn_norm"))
        layer.post_attention_layernorm.weight.copy_(of("ffn_norm"))
        layer.mlp.gate_proj.weight.copy_(of("ffn_gate"))
        layer.mlp.up_proj.weight.copy_(of("ffn_up"))
        layer.mlp.down_proj.weight.copy_(of("ffn_down"))
    return m


def load_head(folder, target):
    config = Eagle3SpeculatorConfig.from_pretrained(folder)
    config.transformer_layer_config._attn_implementation = "eager"
    head = Eagle3DraftModel(config).float().eval()
    tensors = load_file(os.path.join(folder, "model.safetensors"))
    missing, odd = head.load_state_dict({k: v.to(head.state_dict()[k].dtype) for k, v in tensors.items()}, strict=False)
    absent = [k for k in missing if not k.startswith("verifier_") and k != "embed_tokens.weight"]
    if absent or odd:
        sys.exit(f"FAILED: tensors {absent} are missing, {odd} are not known")
    with torch.no_grad():
        head.embed_tokens.weight.copy_(target.model.embed_tokens.weight)
    return head, tensors["d2t"] + torch.arange(len(tensors["d2t"]))


def states_of(target, text):
    """The states that enter each layer, and the one that leaves the last, before the final norm."""
    kept = []
    hooks = [module.register_forward_pre_hook(lambda _, args, kwargs: kept.append(args[0] if args else kwargs["hidden_states"]),
                                              with_kwargs=True) for module in [*target.model.layers, target.model.norm]]
    target(torch.tensor([text]))
    for hook in hooks:
        hook.remove()
    return [k[0] for k in kept]


class Rounds(read_trace.Check):
    """The rounds of a trace: each with its text so far, its drafted tokens, and their rows of q."""

    def __init__(self):
        super().__init__(None)
        self.text, self.found = {}, []

    def request(self, r, offset):
        words = read_trace.Reader(r.data)
        *_, n = words.take("Iiiiiii")
        self.text[offset] = words.list("<i4", n).tolist()
        super().request(r, offset)

    def round(self, r):
        words = read_trace.Reader(r.data)
        text = self.text[words.take("Q")]
        super().round(r)
        token, q, path, next_ = self.last
        self.found.append((list(text), token[1:].tolist(), q))
        text += [int(token[i]) for i in path[1:]] + [next_]

    def verify(self, request, position, tree, p, q):
        self.last = [tree["token"], [row for row, _, _ in q], None, None]
        path, token = super().verify(request, position, tree, p, q)
        self.last[2:] = path, token
        return path, token


def main():
    wager = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as base, torch.no_grad():
        file, where, trace = make(wager, base)
        target = load_target(file)
        head, ids = load_head(where, target)
        rounds = Rounds()
        read_trace.read(trace, rounds)
        worst, rows = 0.0, 0
        for text, drafts, q in rounds.found:
            if not drafts:
                continue
            taps = torch.stack([states_of(target, text)[k] for k in TAPS], dim=1)
            features = heads.read(head, taps)
            z = heads.drafted(head, list(features), text, drafts[:-1], range(len(drafts) - 1))[len(text) - 2:]
            want = torch.log_softmax(z.double(), dim=-1)
            for i in range(len(drafts)):
                got = torch.from_numpy(np.log(np.maximum(q[i][ids.numpy()], 1e-300)))
                worst = max(worst, float((got - want[i]).abs().max()))
                rows += 1
        print(f"{'ok    ' if rows and worst < BOUND else 'FAILED'} {rows} drafted rows, largest difference of a log-probability {worst:.1e}")
        sys.exit(0 if rows and worst < BOUND else 1)


if __name__ == "__main__":
    main()
