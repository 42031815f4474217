#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes real/NAME.json and real/NAME-WINDOW.rows: what others compute with a published model (check_real.py compares). A development
tool: it needs torch, transformers, tokenizers, gguf and sentencepiece, the file of `wager pull NAME`, and `peers.py build`.

  make_real.py WAGER NAME [--part logits|greedy|tokens]... [--again] [--texts FOLDER] [--cache FOLDER]

The truth is transformers in f32 over the dequantised file, and the tokenizers that the models were published with: sentencepiece
for Gemma, `tokenizers` for SmolLM2. llama.cpp reads the same file in its most exact way (f32 cache, no flash attention).

logits  2,000 positions in WINDOWS, of which those are skipped that are there. `kl`: mean divergence from the truth in nats. `digest`:
        SHA-256 of our rows, f32. NAME-WINDOW.rows: at every 16th position the 16 most probable tokens of the truth, ids (i32) and
        log-probabilities (f32), little-endian; `kept`: there llama.cpp's divergence over these tokens and the rest.
greedy  of each prompt of real/prompts.jsonl the truth's own text, and its places with logits less than NEAR below the first:
        [place, their ids...]. `digest`: SHA-256 of our texts.
tokens  of each file of FOLDER (the texts of development, not in the repository) number and SHA-256 of the truth's ids, i32."""
import argparse
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers
from gguf import GGUFReader
from gguf.quants import dequantize

HERE = pathlib.Path(__file__).resolve().parent
REAL, ROOT = HERE / 'real', HERE.parents[1]
sys.path.insert(0, str(HERE))
import check_real  # noqa: E402
import llama_cpp  # noqa: E402

EVERY, KEPT = check_real.EVERY, check_real.KEPT
NEAR = 1.0


def read(path, tensors=True):
    """(metadata, {name: f32 tensor})"""
    r = GGUFReader(path)
    meta = {k: f.contents() for k, f in r.fields.items()}
    return meta, {t.name: torch.from_numpy(np.array(dequantize(t.data, t.tensor_type), np.float32)) for t in r.tensors} if tensors else {}


def llama(meta, t):
    key = lambda name: meta['llama.' + name]
    heads, kv_heads = key('attention.head_count'), key('attention.head_count_kv')
    config = transformers.LlamaConfig(
        vocab_size=len(meta['tokenizer.ggml.tokens']), hidden_size=key('embedding_length'), intermediate_size=key('feed_forward_length'),
        num_hidden_layers=key('block_count'), num_attention_heads=heads, num_key_value_heads=kv_heads,
        rms_norm_eps=key('attention.layer_norm_rms_epsilon'), rope_theta=key('rope.freq_base'),
        max_position_embeddings=key('context_length'), tie_word_embeddings=True)

    def halves(w, n):
        """Rows of each head from adjacent pairs (GGUF) to halves (transformers)."""
        return w.reshape(n, w.shape[0] // n // 2, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)

    for name in list(t):
        if name.endswith(('attn_q.weight', 'attn_k.weight')):
            t[name] = halves(t[name], heads if 'attn_q' in name else kv_heads)
    return transformers.LlamaForCausalLM(config), dict(ffn_norm='post_attention_layernorm')


def gemma3(meta, t):
    key = lambda name: meta['gemma3.' + name]
    n = key('block_count')
    config = transformers.Gemma3TextConfig(
        vocab_size=len(meta['tokenizer.ggml.tokens']), hidden_size=key('embedding_length'), intermediate_size=key('feed_forward_length'),
        num_hidden_layers=n, num_attention_heads=key('attention.head_count'), num_key_value_heads=key('attention.head_count_kv'),
        head_dim=key('attention.key_length'), rms_norm_eps=key('attention.layer_norm_rms_epsilon'),
        max_position_embeddings=key('context_length'), sliding_window=key('attention.sliding_window'),
        query_pre_attn_scalar=key('attention.key_length'), tie_word_embeddings=True,
        layer_types=['full_attention' if i % 6 == 5 else 'sliding_attention' for i in range(n)],
        rope_parameters=dict(full_attention=dict(rope_type='default', rope_theta=key('rope.freq_base')),
                             sliding_attention=dict(rope_type='default', rope_theta=10000.0)))
    for name in t:
        if 'norm' in name:
            t[name] = t[name] - 1  # a GGUF file has 1 + w
    return transformers.Gemma3ForCausalLM(config), dict(
        post_attention_norm='post_attention_layernorm', ffn_norm='pre_feedforward_layernorm', post_ffw_norm='post_feedforward_layernorm',
        attn_q_norm='self_attn.q_norm', attn_k_norm='self_attn.k_norm')


def model_of(meta, t):
    made, names = dict(llama=llama, gemma3=gemma3)[meta['general.architecture']](meta, t)
    names = dict(attn_q='self_attn.q_proj', attn_k='self_attn.k_proj', attn_v='self_attn.v_proj', attn_output='self_attn.o_proj',
                 ffn_gate='mlp.gate_proj', ffn_up='mlp.up_proj', ffn_down='mlp.down_proj', attn_norm='input_layernorm', **names)
    state = {'model.embed_tokens.weight': t['token_embd.weight'], 'lm_head.weight': t['token_embd.weight'],
             'model.norm.weight': t['output_norm.weight']}
    for name, w in t.items():
        if name.startswith('blk.'):
            _, layer, what, _ = name.split('.')
            state[f'model.layers.{layer}.{names[what]}.weight'] = w
    made.load_state_dict(state)
    return made.eval()


def sentencepiece_of(meta):
    """encode(text), by sentencepiece over the pieces of the file."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2 as proto
    m = proto.ModelProto()
    m.trainer_spec.model_type = proto.TrainerSpec.BPE
    m.trainer_spec.byte_fallback = True
    m.trainer_spec.unk_id, m.trainer_spec.bos_id, m.trainer_spec.eos_id, m.trainer_spec.pad_id = 3, 2, 1, 0
    m.normalizer_spec.name = 'identity'
    m.normalizer_spec.add_dummy_prefix = m.normalizer_spec.remove_extra_whitespaces = False
    for piece, score, kind in zip(*(meta['tokenizer.ggml.' + k] for k in ('tokens', 'scores', 'token_type'))):
        # (user-defined pieces, 4, are stored unescaped)
        m.pieces.add(piece=piece.replace(' ', '\u2581') if kind == 4 else piece, score=score, type=kind)
    p = sentencepiece.SentencePieceProcessor(model_proto=m.SerializeToString())
    return lambda text: [2] + p.encode(text)


def byte_bpe_of(meta):
    """encode(text), by `tokenizers`: digits one by one, then GPT-2's split (the tokenizer.json of SmolLM2)."""
    import tokenizers
    from tokenizers import pre_tokenizers
    pieces, kinds = (meta['tokenizer.ggml.' + k] for k in ('tokens', 'token_type'))
    merges = [tuple(m.split(' ')) for m in meta['tokenizer.ggml.merges']]
    t = tokenizers.Tokenizer(tokenizers.models.BPE({p: i for i, p in enumerate(pieces)}, merges))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                               pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    special = [p for p, kind in zip(pieces, kinds) if kind == 3]
    t.add_special_tokens(special)
    return lambda text: t.encode(text, add_special_tokens=False).ids


def tokenizer_of(meta):
    return byte_bpe_of(meta) if meta['tokenizer.ggml.model'] == 'gpt2' else sentencepiece_of(meta)


def digest(ids):
    return hashlib.sha256(np.asarray(ids, '<i4').tobytes()).hexdigest()


def divergence(truth, other):
    """KL(truth || other) of each row, in nats."""
    out = []
    for first in range(0, len(truth), 50):
        p, q = (torch.log_softmax(torch.from_numpy(x[first:first + 50]), 1) for x in (truth, other))
        out.append((p.exp() * (p - q)).sum(1, dtype=torch.float64))
    return torch.cat(out).numpy()


def window_of(o, made, encode, path, window, folder):
    """The entry of a window, and its NAME-WINDOW.rows."""
    (name, text, n), vocab = window, made.config.vocab_size
    ids = encode(text)[:n]
    assert len(ids) == n, (name, len(ids))
    with torch.no_grad():
        truth = made(torch.tensor([ids])).logits[0].numpy()
    ours = check_real.rows_of(o.wager, path, ids, folder)
    entry = dict(positions=n, tokens=digest(ids), digest=hashlib.sha256(ours.read_bytes()).hexdigest(), kl={}, worst={}, top1_differs={})
    peer = llama_cpp.logits(llama_cpp.build(o.cache, 'native'), path, vocab, ids, folder)[0]
    for who, rows in (('wager', np.fromfile(ours, '<f4').reshape(n, vocab)), ('llama.cpp', peer)):
        d, best = divergence(truth, rows), rows.argmax(1)
        gap = truth.max(1) - truth[np.arange(n), best]
        entry['kl'][who], entry['worst'][who] = round(float(d.mean()), 6), round(float(d.max()), 4)
        entry['top1_differs'][who] = int((truth.argmax(1) != best).sum())
        print(f'{name:8} {who:9} KL mean {d.mean():.5f} worst {d.max():.4f} at {d.argmax()}; top 1 differs {entry["top1_differs"][who]} of '
              f'{n}, at most {gap.max():.3f} below', flush=True)
    kept, entry['kept'] = [], []
    known, theirs = (torch.log_softmax(torch.from_numpy(x[EVERY - 1::EVERY]).double(), 1).numpy() for x in (truth, peer))
    for row, their in zip(known, theirs):
        top = np.argsort(-row, kind='stable')[:KEPT]
        kept += [top.astype('<i4').tobytes(), row[top].astype('<f4').tobytes()]
        entry['kept'].append(round(check_real.coarse(their[top].tolist(), row[top].tolist()), 7))
    (REAL / f'{o.name}-{name}.rows').write_bytes(b''.join(kept))
    return entry


def logits(o, meta, made, encode, path):
    out = {} if o.again else stored(o).get('logits', {})
    for window in check_real.windows():
        if window[0] not in out:
            with tempfile.TemporaryDirectory() as folder:
                out[window[0]] = window_of(o, made, encode, path, window, folder)
            keep(o, 'logits', out)
    return out


def rendered(meta, prompts):
    """The prompts in the file's chat template, if it has one."""
    template = meta.get('tokenizer.chat_template')
    if not template:
        return prompts
    from transformers.utils.chat_template_utils import render_jinja_template
    pieces = meta['tokenizer.ggml.tokens']
    return render_jinja_template([[dict(role='user', content=p)] for p in prompts], chat_template=template, add_generation_prompt=True,
                                 **{f'{x}_token': pieces[meta[f'tokenizer.ggml.{x}_token_id']] for x in ('bos', 'eos')})[0]


def greedy(o, meta, made, encode, path):
    """The truth's texts, batches of prompts side by side."""
    end = meta['tokenizer.ggml.eos_token_id']
    prompts = rendered(meta, [json.loads(line)['prompt'] for line in (REAL / 'prompts.jsonl').read_text().splitlines()])
    ids, texts, near = [encode(p) for p in prompts], [], []
    for first in range(0, len(ids), 10):
        some = ids[first:first + 10]
        width = max(map(len, some))
        pad = torch.tensor([[0] * (width - len(x)) + x for x in some])
        mask = torch.tensor([[0] * (width - len(x)) + [1] * len(x) for x in some])
        out = made.generate(pad, attention_mask=mask, do_sample=False, max_new_tokens=check_real.TOKENS, eos_token_id=end, pad_token_id=0,
                            output_logits=True, return_dict_in_generate=True)
        rows = torch.stack(out.logits, 1)
        for text, x in zip(out.sequences[:, width:].tolist(), rows):
            text = text[:text.index(end) + 1] if end in text else text
            texts.append(text)
            best = torch.topk(x[:len(text)], KEPT)
            close = [b[(v > v[0] - NEAR)].tolist()[1:] for v, b in zip(best.values, best.indices)]
            near.append([[i, *b] for i, b in enumerate(close) if b])
        print(f'greedy: {len(texts)} of {len(ids)}', flush=True)
    ours = check_real.texts_of(o.wager, path, 'tokenizer.chat_template' in meta)
    return dict(prompts=[digest(x) for x in ids], texts=texts, near=near, digest=hashlib.sha256(json.dumps(ours).encode()).hexdigest())


def tokens(o, encode):
    out = {}
    for path in check_real.text_files(o.texts):
        ids = encode(path.read_bytes().decode())
        out[str(path.relative_to(o.texts))] = [len(ids), digest(ids)[:16]]
        print(path.name, len(ids), flush=True)
    return out


def stored(o):
    fixture = REAL / f'{o.name}.json'
    return json.loads(fixture.read_text()) if fixture.is_file() else {}


def keep(o, part, got):
    """Into the fixture, beside its other parts."""
    result = dict(stored(o), **{part: got}, versions=dict(transformers=transformers.__version__, torch=torch.__version__.split('+')[0]))
    text = json.dumps(result, separators=(',', ':'), sort_keys=True)
    (REAL / f'{o.name}.json').write_text(text.replace('],"', '],\n"').replace('},"', '},\n"') + '\n')


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('wager', type=pathlib.Path)
    ap.add_argument('name', choices=check_real.FILES)
    ap.add_argument('--part', action='append', choices=['logits', 'greedy', 'tokens'])
    ap.add_argument('--again', action='store_true', help='windows that are there too')
    ap.add_argument('--texts', type=pathlib.Path, default=ROOT / '../shared/data/text')
    ap.add_argument('--cache', type=pathlib.Path, default=pathlib.Path.home() / '.cache/wager-peers')
    o = ap.parse_args()
    o.wager = o.wager.resolve()
    path = check_real.model_file(o.name) or sys.exit(f'{o.name} is not there; wager pull {o.name}')
    torch.set_num_threads(1)
    parts = o.part or ['tokens', 'logits', 'greedy']
    meta, tensors = read(path, parts != ['tokens'])
    encode = tokenizer_of(meta)
    made = model_of(meta, tensors) if parts != ['tokens'] else None
    for part in parts:
        keep(o, part, tokens(o, encode) if part == 'tokens' else globals()[part](o, meta, made, encode, path))


if __name__ == '__main__':
    main()
