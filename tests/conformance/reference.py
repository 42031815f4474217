#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes reference.json: what transformers (a development tool, not needed to test) computes with the bundled pair's weights in
f32. Rows of logits, greedy texts, and the tokens per target pass of its assisted generation at temperatures 1 and 0.8.

  reference.py WAGER OUT.json     (minutes to an hour of one core; needs torch, transformers, numpy)

Stock assisted generation applies the temperature twice to its assistant: the candidate generator gives the assistant's own
generate() both the target's logits processors and a configuration with the temperature, so its q is softmax(z / T^2). The text
is still the target's, but fewer tokens are accepted below T = 1. "once" is the same program with the processors taken away."""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers
from transformers.generation import candidate_generator

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests/oracle'))
from forward_oracle import Gguf  # noqa: E402

PAIR = 'models/story-target-q8_0.gguf', 'models/story-draft-q8_0.gguf'
PROMPTS = 'configs/prompts/quickstart.jsonl'
GREEDY, TOKENS, DRAFTS, REPEATS = 32, 64, 4, 16
IDS = 48  # logits kept of a row: the largest 16, and 32 spread over the vocabulary


def load(path):
    """A GGUF llama model as transformers' LlamaForCausalLM in f32."""
    g = Gguf(path)
    key = lambda name: g.meta['llama.' + name]
    width, heads, kv_heads = key('embedding_length'), key('attention.head_count'), key('attention.head_count_kv')
    vocab = g.tensor('token_embd.weight').shape[0]
    config = transformers.LlamaConfig(
        vocab_size=vocab, hidden_size=width, intermediate_size=key('feed_forward_length'), num_hidden_layers=key('block_count'),
        num_attention_heads=heads, num_key_value_heads=kv_heads,
        rms_norm_eps=key('attention.layer_norm_rms_epsilon'),
        rope_theta=g.meta.get('llama.rope.freq_base', 10000.0), max_position_embeddings=key('context_length'),
        tie_word_embeddings='output.weight' not in g.place, bos_token_id=0, eos_token_id=1, attn_implementation='eager')

    def halves(w, n):
        """Rows of each head from adjacent pairs (GGUF) to halves (transformers)."""
        return w.reshape(n, w.shape[0] // n // 2, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)

    state = {'model.embed_tokens.weight': g.tensor('token_embd.weight'),
             'model.norm.weight': g.tensor('output_norm.weight')}
    if 'output.weight' in g.place:
        state['lm_head.weight'] = g.tensor('output.weight')
    else:
        state['lm_head.weight'] = state['model.embed_tokens.weight']
    names = dict(attn_q='self_attn.q_proj', attn_k='self_attn.k_proj', attn_v='self_attn.v_proj',
                 attn_output='self_attn.o_proj', ffn_gate='mlp.gate_proj', ffn_up='mlp.up_proj', ffn_down='mlp.down_proj', attn_norm='input_layernorm',
                 ffn_norm='post_attention_layernorm')
    for layer in range(key('block_count')):
        for ours, theirs in names.items():
            w = g.tensor(f'blk.{layer}.{ours}.weight')
            if ours in ('attn_q', 'attn_k'):
                w = halves(w, heads if ours == 'attn_q' else kv_heads)
            state[f'model.layers.{layer}.{theirs}.weight'] = w
    model = transformers.LlamaForCausalLM(config)
    model.load_state_dict({k: torch.tensor(np.ascontiguousarray(v), dtype=torch.float32) for k, v in state.items()})
    return model.eval()


def tokens_of(wager, text):
    out = subprocess.run([wager, 'tokenize', ROOT / PAIR[0], text, '--json'], capture_output=True, check=True, text=True).stdout
    return [json.loads(line)['id'] for line in out.splitlines()]


def logits_of(model, path, tokens):
    with torch.no_grad():
        rows = model(torch.tensor([tokens])).logits[0].numpy()
    out = []
    for row in rows:
        ids = sorted({*np.argsort(-row)[:16].tolist(), *range(0, len(row), len(row) // (IDS - 16))})
        out.append([[i, float(f'{row[i]:.9g}')] for i in ids])
    return dict(model=path, tokens=tokens, rows=out)


def assisted(target, draft, prompts, temperature, once):
    """[(tokens, target passes)] of each text."""
    init, passes = candidate_generator.AssistedCandidateGenerator.__init__, [0]

    def without_processors(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self.logits_processor = transformers.LogitsProcessorList()

    if once:
        candidate_generator.AssistedCandidateGenerator.__init__ = without_processors
    count = target.register_forward_pre_hook(lambda *_: passes.__setitem__(0, passes[0] + 1))
    draft.generation_config.num_assistant_tokens = DRAFTS
    draft.generation_config.num_assistant_tokens_schedule = 'constant'
    draft.generation_config.assistant_confidence_threshold = 0.0
    texts = []
    for repeat in range(REPEATS):
        for number, tokens in enumerate(prompts):
            torch.manual_seed(1000 * repeat + number)
            passes[0] = 0
            out = target.generate(torch.tensor([tokens]), attention_mask=torch.ones(1, len(tokens)), assistant_model=draft,
                                  do_sample=True, temperature=temperature, top_k=0, top_p=1.0, max_new_tokens=TOKENS,
                                  pad_token_id=1)
            texts.append((out.shape[1] - len(tokens), passes[0]))
    count.remove()
    candidate_generator.AssistedCandidateGenerator.__init__ = init
    n, m = np.array(texts, float).T
    tau = n.sum() / m.sum()
    error = np.sqrt(np.sum((n - tau * m) ** 2)) / m.sum()
    entry = dict(temperature=temperature, q='once' if once else 'twice', tau=float(tau), standard_error=float(error),
                 passes=int(m.sum()), tokens=int(n.sum()))
    print(entry, flush=True)
    return entry


def main():
    wager, out = sys.argv[1:]
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    target, draft = (load(str(ROOT / name)) for name in PAIR)
    texts = [json.loads(line)['prompt'] for line in (ROOT / PROMPTS).read_text().splitlines()]
    prompts = [tokens_of(wager, text) for text in texts]
    result = dict(versions=dict(transformers=transformers.__version__, torch=torch.__version__.split('+')[0]), drafts=DRAFTS,
                  max_tokens=TOKENS, prompts=PROMPTS, logits=[logits_of(target, PAIR[0], prompts[0][:8]),
                                                              logits_of(draft, PAIR[1], prompts[1][:8])], greedy=[], tau=[])
    for tokens in prompts:
        ids = target.generate(torch.tensor([tokens]), attention_mask=torch.ones(1, len(tokens)), do_sample=False,
                              max_new_tokens=GREEDY, pad_token_id=1)[0].tolist()
        result['greedy'].append(ids[len(tokens):])
    for temperature, once in ((1.0, True), (0.8, True), (0.8, False)):
        result['tau'].append(assisted(target, draft, prompts, temperature, once))
        pathlib.Path(out).write_text(json.dumps(result, separators=(',', ':')) + '\n')


if __name__ == '__main__':
    main()
