#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the heads of this folder, or those named: make_heads.py [NAME ...]. A development tool; tests read what it wrote.

Each head is a class of the speculators package over a miniature of make_miniatures.py, run here in float32. heads/NAME has
config.json as the package saves it (or, of the layout of SafeAILab, as SpecForge's checkpoints have it), case.json and rows.f32.
Weights are not stored: head_folder.h draws the same ones by make_miniatures.py's rule; `of` is the name they are drawn by. Row i of
a head of n rows is token i V / n of the target's V.

case.json: the target; tensors; tokens: how many of the target's the text has; rows: positions of tokens whose draft logits are in
rows.f32, and behind them those of the nodes of a draft tree below the last token, with the tree's tokens and parents; chains: the most
probable four drafts behind some numbers of tokens. Of a block head, rows are positions of the last tokens of texts, and rows.f32 has the
logits of all slots of each one's block; of DSpark those that give a token, where the tokens of `path` follow the anchor, and `confidence`
has the chances that the head gives each of them.

Needs torch, transformers and speculators: V/bin/pip install torch transformers pydantic-settings loguru datasets openai;
V/bin/pip install --no-deps speculators==0.9.0 hs-connectors==0.9.0
"""
import json
import math
import os
import sys

import torch
import transformers
from make_miniatures import HERE, MODELS, TOKENS, draw, fnv, mix, save
from speculators import SpeculatorsConfig, VerifierConfig
from speculators.models.dflash import DFlashSpeculatorConfig, core
from speculators.models.dflash2 import DFlash2DraftModel, DFlash2SpeculatorConfig
from speculators.models.dspark import DSparkDraftModel, DSparkSpeculatorConfig
from speculators.models.eagle3 import Eagle3DraftModel, Eagle3SpeculatorConfig
from speculators.models.peagle import PEagleDraftModel, PEagleSpeculatorConfig
from speculators.models.mtp import MTPDraftModel, MTPSpeculatorConfig
from speculators.proposals.greedy import GreedyTokenProposalConfig

TARGET = "llama-scaled"
TEXT, ROWS, CHAINS, DRAFTS = 24, [1, 2, 9, 23], [3, 10, 24], 60
TREE = dict(parents=[0, 0, 1, 2, 3], tokens=[10, 160, 63, 63, 120])  # of nodes 1 .. 5; node 0 is the last token
LLAMA = dict(model_type="llama", hidden_size=64, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4,
             num_key_value_heads=2, head_dim=16, vocab_size=200, rms_norm_eps=1e-5, rope_theta=500000.0)
FLAGS = dict(norm_before_residual=False, norm_before_fc=False, fc_norm=False, norm_output=False)
BIASED = LLAMA | dict(attention_bias=True, rope_scaling=MODELS[TARGET]["rope_scaling"])
# layer: keys of the layer; embeds: whether the file has its own embedding; safeailab: the layout of that name
HEADS = {
    "plain": dict(layer=LLAMA, flags=FLAGS, dtype="F32", embeds=False),
    "eagle-3.1": dict(layer=LLAMA, dtype="BF16", embeds=True,
                      flags=FLAGS | dict(norm_before_residual=True, norm_before_fc=True, norm_output=True)),
    "qwen3-layers": dict(layer=LLAMA | dict(model_type="qwen3", num_hidden_layers=2, sliding_window=7, use_sliding_window=True,
                                            layer_types=["sliding_attention", "full_attention"]), dtype="F16", embeds=True,
                         flags=FLAGS | dict(fc_norm=True, norm_output=True)),
    "biased": dict(layer=BIASED, flags=FLAGS, dtype="F32", embeds=False),
    "safeailab": dict(layer=BIASED, flags=FLAGS, dtype="F32", embeds=False, safeailab=True),
    "p-eagle": dict(layer=LLAMA | dict(num_hidden_layers=2), dtype="BF16", embeds=True, parallel=True,
                    flags=FLAGS | dict(norm_before_fc=True)),
    "p-eagle-norms": dict(layer=LLAMA | dict(model_type="qwen3"), dtype="F32", embeds=True, parallel=True,
                          flags=FLAGS | dict(fc_norm=True, norm_before_residual=True)),
}

QWEN = dict(LLAMA, model_type="qwen3", num_hidden_layers=2, attention_bias=False, max_window_layers=2)
SLIDES = QWEN | dict(sliding_window=7, use_sliding_window=True, layer_types=["sliding_attention", "full_attention"])
BLOCK, MASK, ANCHORS = 4, 7, [0, 1, 9, 23]
# words: tokens that it proposes, 200: all, by the target's lm_head; zlab: the layout of z-lab
BLOCKS = {
    "dflash": dict(layer=QWEN, dtype="F32", words=DRAFTS, flags={}),
    "dflash-window": dict(layer=SLIDES, dtype="BF16", words=DRAFTS, flags=dict(sample_from_anchor=True)),
    "dflash-both-ways": dict(layer=SLIDES | dict(attention_bias=True), dtype="F16", words=200,
                             flags=dict(sliding_window_non_causal=True)),
    "dflash-all": dict(layer=SLIDES, dtype="F32", words=200, flags={}),
    "dflash-z-lab": dict(layer=SLIDES, dtype="F32", words=200, flags={}, zlab=True),
}

# spark: the Markov and confidence heads; flat: the layout of DeepSpec, with the target's embedding and head
MARKOV, PATH = dict(markov_rank=6, enable_confidence_head=True, confidence_head_with_markov=True), [10, 160, 63]
BLOCKS |= {
    "dspark": dict(layer=QWEN, dtype="F32", words=DRAFTS, flags={}, spark=MARKOV | dict(markov_head_type="vanilla")),
    "dspark-gated": dict(layer=SLIDES, dtype="BF16", words=200, flags=dict(sample_from_anchor=False),
                         spark=MARKOV | dict(markov_head_type="gated", confidence_head_with_markov=False)),
    "dspark-rnn": dict(layer=QWEN, dtype="F32", words=200, flags={}, spark=MARKOV | dict(markov_head_type="rnn")),
    "dspark-rnn-later": dict(layer=QWEN, dtype="F16", words=DRAFTS, flags=dict(sample_from_anchor=False),
                             spark=MARKOV | dict(markov_head_type="rnn", enable_confidence_head=False)),
    "dspark-deepspec": dict(layer=QWEN, dtype="F32", words=200, flags={}, flat=True, spark=MARKOV | dict(markov_head_type="rnn")),
}

# second: the convolutions and the selector of DFlash 2; zlab: as above. Logits of tokens that are no candidates are written as OUT
SECOND, OUT = dict(conv_kernel_size=3, conv_group_size=16, selector_rank=6, selector_top_k=8), 0
BLOCKS |= {
    "dflash-2": dict(layer=SLIDES, dtype="F32", words=200, flags={}, second=SECOND),
    "dflash-2-z-lab": dict(layer=QWEN, dtype="F32", words=200, flags={}, second=SECOND, zlab=True),
    "dflash-2-full": dict(layer=QWEN, dtype="F32", words=200, flags={}, second=SECOND),
}

# EAGLE-1 as its authors' cnets1.py computes it; norms: those of speculators' `layernorms`; safeailab: the layout of that name
FIRST = {
    "eagle-1": dict(layer=LLAMA, dtype="F32", bias=True, norms=False, safeailab=True),
    "eagle-1-speculators": dict(layer=LLAMA, dtype="F32", bias=True, norms=False),
    "eagle-1-norms": dict(layer=LLAMA | dict(rope_theta=10000.0), dtype="BF16", bias=False, norms=True),
}

# whole: the folder of a whole model with an MTP layer of this form, joined as in vLLM: by mimo_mtp.py [hidden; embedding], the latter
# zero at position 0; by deepseek_mtp.py [embedding; hidden], with that zero; by qwen3_next_mtp.py [embedding; hidden]. The state is the
# target's behind its last norm.
MTPS = {
    "mtp": dict(layer=QWEN | dict(num_hidden_layers=1), dtype="BF16"),
    "mimo": dict(layer=LLAMA | dict(model_type="mimo", attention_bias=True, num_hidden_layers=2), dtype="F32", whole="mimo"),
    "mtp-deepseek": dict(layer=LLAMA | dict(num_hidden_layers=2), dtype="F32", whole="deepseek"),
    "mtp-qwen3.5": dict(layer=QWEN, dtype="BF16", whole="qwen"),
}
FORMS = {
    "mimo": dict(hidden_first=True, zero=True, own="model.mtp_layers.0.", key="num_nextn_predict_layers", names={}),
    "deepseek": dict(hidden_first=False, zero=True, own="model.layers.2.", key="num_nextn_predict_layers", names=dict(
        input_proj="eh_proj", token_layernorm="enorm", hidden_layernorm="hnorm", final_layernorm="shared_head.norm")),
    "qwen": dict(hidden_first=False, zero=False, own="mtp.", key="mtp_num_hidden_layers", names=dict(
        input_proj="fc", token_layernorm="pre_fc_norm_embedding", hidden_layernorm="pre_fc_norm_hidden", final_layernorm="norm")),
}


def tensor(name, shape):
    return torch.tensor(list(draw(name, shape)), dtype=torch.float64).reshape(shape).float()


def target():
    """The miniature, its text, and the states that enter its layers and leave the last one: (tokens, 3, width)."""
    m = transformers.AutoModelForCausalLM.from_config(
        transformers.AutoConfig.from_pretrained(os.path.join(HERE, TARGET), attn_implementation="eager"), dtype=torch.float32).eval()
    with torch.no_grad():
        for key, p in m.named_parameters():
            p.copy_(tensor(key, p.shape))
    tokens = [mix(fnv(TARGET) + i) % 200 for i in range(TOKENS)][:TEXT]
    kept = []
    hooks = [module.register_forward_pre_hook(lambda _, args, kwargs: kept.append(args[0] if args else kwargs["hidden_states"]),
                                              with_kwargs=True) for module in [*m.model.layers, m.model.norm]]
    with torch.no_grad():
        m(torch.tensor([tokens]))
    for hook in hooks:
        hook.remove()
    return m, tokens, torch.stack([k[0] for k in kept], dim=1)


def build(case, m):
    kind = transformers.LlamaConfig if case["layer"]["model_type"] == "llama" else transformers.Qwen3Config
    layer = kind(**case["layer"])
    layer._attn_implementation = "eager"
    parallel = case.get("parallel")
    config = (PEagleSpeculatorConfig if parallel else Eagle3SpeculatorConfig)(
        **(dict(mask_token_id=MASK) if parallel else {}), transformer_layer_config=layer, draft_vocab_size=DRAFTS, eagle_aux_hidden_state_layer_ids=[0, 1, 2], **case["flags"],
        speculators_config=SpeculatorsConfig(
            algorithm="peagle" if parallel else "eagle3", proposal_methods=[GreedyTokenProposalConfig(speculative_tokens=3)], default_proposal_method="greedy",
            verifier=VerifierConfig(name_or_path=TARGET, architectures=["LlamaForCausalLM"])))
    head = (PEagleDraftModel if parallel else Eagle3DraftModel)(config).float().eval()
    ids = [i * 200 // DRAFTS for i in range(DRAFTS)]
    tensors = []
    with torch.no_grad():
        for key, p in head.named_parameters():
            if key.startswith("verifier_"):
                continue
            if key == "embed_tokens.weight" and not case["embeds"]:
                p.copy_(m.model.embed_tokens.weight)
                continue
            p.copy_(tensor(key, p.shape))
            tensors.append(dict(name=key, dtype=case["dtype"], shape=list(p.shape)))
        head.d2t.copy_(torch.tensor([t - i for i, t in enumerate(ids)]))
        head.t2d.copy_(torch.tensor([t in ids for t in range(200)]))
    tensors += [dict(name="d2t", dtype="I64", shape=[DRAFTS]), dict(name="t2d", dtype="BOOL", shape=[200])]
    return head, tensors, ids


def passes(head, features, tokens, parents):
    """The logits of all rows, and their recurrent features. Row i reads features[i] and tokens[i]; parents[i] is the row before it."""
    n, depth, sees = len(tokens), [], torch.zeros(len(tokens), len(tokens), dtype=torch.bool)
    for i, above in enumerate(parents):
        depth.append(depth[above] + 1 if above >= 0 else 0)
        if above >= 0:
            sees[i] = sees[above]
        sees[i, i] = True
    where = torch.tensor(depth)
    x = torch.cat([head.embed_tokens(torch.tensor([tokens])), torch.stack(features)[None]], dim=-1)
    turns = head.rotary_emb(x, where[None])
    for l, layer in enumerate(head.layers):
        near = where[:, None] - where[None, :] < (head.sliding_window if l in head.sliding_window_indices else n + 1)
        mask = torch.zeros(n, n).masked_fill(~(sees & near), -math.inf)[None, None]
        x = layer(x, attention_mask=mask, position_ids=where[None], position_embeddings=turns)
    normed = head.norm(x)
    return head.lm_head(normed)[0], (normed if head.config.norm_output else x)[0]


def read(head, taps):
    c = taps.reshape(len(taps), -1)
    if head.input_norm is not None:
        c = head.input_norm(c)
    if head.fc_norm is not None:
        c = torch.cat([norm(part) for norm, part in zip(head.fc_norm, c.chunk(3, dim=-1), strict=True)], dim=-1)
    return head.fc(c)


def drafted(head, features, tokens, nodes, parents, passes=passes):
    """Logits of the text's rows and of a tree below its last token, level by level: a node reads the feature of its parent's row."""
    n = len(tokens) - 1
    rows, above = [features[i] for i in range(n)], list(range(-1, n - 1))
    text = tokens[1:]
    for node, parent in zip(nodes, parents, strict=True):
        if getattr(head, "mask_hidden", None) is not None:
            rows.append(read(head, head.mask_hidden[0])[0])
        else:
            rows.append(passes(head, rows, text, above)[1][n - 1 + parent])
        text, above = [*text, node], [*above, n - 1 + parent]
    return passes(head, rows, text, above)[0]


def flat(case):
    layer = {k: v for k, v in case["layer"].items() if k != "num_hidden_layers"}
    return layer | dict(architectures=["LlamaForCausalLM"], num_hidden_layers=32, draft_vocab_size=DRAFTS, hidden_act="silu",
                        eagle_config=dict(eagle_aux_hidden_state_layer_ids=[0, 1, 2], use_aux_hidden_state=True), torch_dtype="float32")


def write(name, case, m, tokens, taps):
    folder = os.path.join(HERE, "heads", name)
    os.makedirs(folder, exist_ok=True)
    head, tensors, ids = build(case, m)
    masks = [MASK] * 3
    tree = dict(parents=[0, 1, 2], tokens=masks) if case.get("parallel") else TREE
    with torch.no_grad():
        features = read(head, taps)
        logits = drafted(head, features, tokens, tree["tokens"], tree["parents"])
        chains = []
        for n in CHAINS:
            chain = []
            for k in range(4):
                before = masks[:k] if case.get("parallel") else chain
                out = drafted(head, features, tokens[:n], before, range(len(before)))
                chain.append(ids[int(out[-1].argmax())])
            chains.append(dict(tokens=n, drafts=chain))
    kept = [p - 1 for p in ROWS] + list(range(TEXT - 1, len(logits)))
    logits[kept].numpy().astype("<f4").tofile(os.path.join(folder, "rows.f32"))
    if case.get("safeailab"):
        save(os.path.join(folder, "config.json"), flat(case))
        for t in tensors:
            if t["name"].startswith("layers.0."):
                t["of"], t["name"] = t["name"], "midlayer." + t["name"][9:]
    else:
        head.config.save_pretrained(folder)
        os.remove(os.path.join(folder, "config.py"))  # a copy of the package's class
    with open(os.path.join(folder, "case.json"), "w") as f:
        f.write(json.dumps(dict(target=TARGET, tensors=tensors, tokens=TEXT, rows=ROWS, tree=tree, chains=chains)) + "\n")
    print(f"{name}: {len(tensors)} tensors, logits of rms {logits.square().mean().sqrt():.3f}, {chains}")


class Whole(torch.nn.Module):
    """The MTP layer of a whole model, by the names of MiMo's files."""

    def __init__(self, case):
        super().__init__()
        self.form, keys, models = FORMS[case["whole"]], case["layer"], transformers.models
        module, kind = dict(mimo=(models.qwen2.modeling_qwen2, "Qwen2"), deepseek=(models.llama.modeling_llama, "Llama"),
                            qwen=(models.qwen3.modeling_qwen3, "Qwen3"))[case["whole"]]
        keys = {k: v for k, v in keys.items() if k != "model_type" and (k != "attention_bias" or kind == "Qwen3")}
        config = getattr(transformers, kind + "Config")(**keys)
        config._attn_implementation = "eager"
        d, eps = config.hidden_size, config.rms_norm_eps
        self.layer = getattr(module, kind + "DecoderLayer")(config, 0)
        for name in ("hidden_layernorm", "token_layernorm", "final_layernorm"):
            setattr(self.layer, name, getattr(module, kind + "RMSNorm")(d, eps=eps))
        self.layer.input_proj = torch.nn.Linear(2 * d, d, bias=False)
        self.rotary_emb = getattr(module, kind + "RotaryEmbedding")(config)
        self.mtp_layers = [self.step]

    def step(self, hidden_states, token_embeddings, attention_mask, position_ids, position_embeddings):
        l, e = self.layer, token_embeddings
        if self.form["zero"]:
            e = e * (position_ids > 0)[..., None]
        both = [l.token_layernorm(e), l.hidden_layernorm(hidden_states)]
        x = l.input_proj(torch.cat(both[::-1] if self.form["hidden_first"] else both, dim=-1))
        x = l(x, attention_mask=attention_mask, position_ids=position_ids, position_embeddings=position_embeddings)
        return l.final_layernorm(x[0] if isinstance(x, tuple) else x)


def whole_name(form, name):
    """The name of a tensor of the layer in the files of a form."""
    part, _, rest = name.partition(".")
    layer = "layers.0." if form["own"] == "mtp." else ""
    return form["own"] + (form["names"][part] + "." + rest if part in form["names"] else layer + name)


class FirstEagle(torch.nn.Module):
    """A head of EAGLE-1: one Llama layer over fc of [embedding; state]."""

    def __init__(self, case):
        super().__init__()
        llama = transformers.models.llama.modeling_llama
        config = transformers.LlamaConfig(**case["layer"])
        config._attn_implementation = "eager"
        d = config.hidden_size
        norm = (lambda: llama.LlamaRMSNorm(d, eps=config.rms_norm_eps)) if case["norms"] else torch.nn.Identity
        self.layers = torch.nn.ModuleList([llama.LlamaDecoderLayer(config, 0)])
        if not case["norms"]:
            self.layers[0].input_layernorm = torch.nn.Identity()
        self.embedding_layernorm, self.pre_lm_head_layernorm = norm(), norm()
        self.fc = torch.nn.Linear(2 * d, d, bias=case["bias"])
        self.rotary_emb = llama.LlamaRotaryEmbedding(config)
        self.mtp_layers = [self.step]

    def step(self, hidden_states, token_embeddings, attention_mask, position_ids, position_embeddings):
        x = self.fc(torch.cat([self.embedding_layernorm(token_embeddings), hidden_states], dim=-1))
        x = self.layers[0](x, attention_mask=attention_mask, position_ids=position_ids, position_embeddings=position_embeddings)
        return self.pre_lm_head_layernorm(x[0] if isinstance(x, tuple) else x)


def build_first(case, m):
    head = FirstEagle(case).float().eval()
    tensors = []
    with torch.no_grad():
        for key, p in head.named_parameters():
            p.copy_(tensor(key, p.shape))
            name = key if case.get("safeailab") else key.replace("layers.0.", "transformer.").replace("fc.", "fusion_fc.")
            tensors.append(dict(name=name, dtype=case["dtype"], shape=list(p.shape), of=key))
    head.embed_tokens, head.lm_head = m.model.embed_tokens, m.lm_head
    return head, tensors


FIRST_SPECULATORS = "0.1.%d" % 0  # its release, not that of this project, which tests/version.sh looks for


def first_config(case):
    if case.get("safeailab"):
        return case["layer"] | dict(architectures=["LlamaForCausalLM"], hidden_act="silu", bias=case["bias"], torch_dtype="float16")
    return dict(architectures=["EagleSpeculator", "LlamaDecoderLayer"], speculators_model_type="eagle", speculators_version=FIRST_SPECULATORS,
                transformer_layer_architecture="LlamaDecoderLayer", layernorms=case["norms"], fusion_bias=case["bias"],
                transformer_layer_config={k: v for k, v in case["layer"].items() if v != getattr(transformers.LlamaConfig(), k, None)},
                torch_dtype="float32")


def build_mtp(case, m):
    if case.get("whole"):
        head, own = Whole(case).float().eval(), "layer."
    else:
        layer = transformers.Qwen3Config(**case["layer"])
        layer._attn_implementation = "eager"
        config = MTPSpeculatorConfig(
            transformer_layer_config=layer, speculators_config=SpeculatorsConfig(
                algorithm="mtp", proposal_methods=[GreedyTokenProposalConfig(speculative_tokens=3)], default_proposal_method="greedy",
                verifier=VerifierConfig(name_or_path=TARGET, architectures=["LlamaForCausalLM"])))
        head, own = MTPDraftModel(config).float().eval(), "mtp_layers.0."
    tensors = []
    with torch.no_grad():
        for key, p in head.named_parameters():
            if not key.startswith(own):
                continue
            of = "mtp_layers.0." + key[len(own):]
            p.copy_(tensor(of, p.shape))
            tensors.append(dict(name=of, dtype=case["dtype"], shape=list(p.shape)))
    head.embed_tokens, head.lm_head = m.model.embed_tokens, m.lm_head
    return head, tensors


def mtp_passes(head, states, tokens, parents):
    """Logits and states of all rows: row i reads states[i] and tokens[i]; parents[i] is the row before it."""
    n, depth, sees = len(tokens), [], torch.zeros(len(tokens), len(tokens), dtype=torch.bool)
    for i, above in enumerate(parents):
        depth.append(depth[above] + 1 if above >= 0 else 0)
        if above >= 0:
            sees[i] = sees[above]
        sees[i, i] = True
    where, hidden = torch.tensor([depth]), torch.stack(states)[None]
    mask = torch.zeros(n, n).masked_fill(~sees, -math.inf)[None, None]
    out = head.mtp_layers[0](hidden_states=hidden, token_embeddings=head.embed_tokens(torch.tensor([tokens])), attention_mask=mask,
                             position_ids=where, position_embeddings=head.rotary_emb(hidden, where))
    return head.lm_head(out)[0], out[0]


def write_mtp(name, case, m, tokens, taps):
    folder = os.path.join(HERE, "heads", name)
    os.makedirs(folder, exist_ok=True)
    first = name in FIRST
    head, tensors = build_first(case, m) if first else build_mtp(case, m)
    with torch.no_grad():
        states = m.model.norm(taps[:, 2]) if first or case.get("whole") else taps[:, 2]
        logits = drafted(head, states, tokens, TREE["tokens"], TREE["parents"], mtp_passes)
        chains = []
        for n in CHAINS:
            chain = []
            for _ in range(4):
                chain.append(int(drafted(head, states, tokens[:n], chain, range(len(chain)), mtp_passes)[-1].argmax()))
            chains.append(dict(tokens=n, drafts=chain))
    kept = [p - 1 for p in ROWS] + list(range(TEXT - 1, TEXT + 4))
    logits[kept].numpy().astype("<f4").tofile(os.path.join(folder, "rows.f32"))
    if first:
        save(os.path.join(folder, "config.json"), first_config(case))
    elif case.get("whole"):
        form = FORMS[case["whole"]]
        save(os.path.join(folder, "config.json"), case["layer"] | {form["key"]: 1} | dict(
            architectures=["MiMoForCausalLM" if case["whole"] == "mimo" else "CausalLM"], hidden_act="silu", use_sliding_window=False,
            torch_dtype="float32"))
        for t in tensors:
            t["of"], t["name"] = t["name"], whole_name(form, t["name"].removeprefix("mtp_layers.0."))
        tensors.append(dict(name="model.norm.weight", dtype="F32", shape=[64]))  # one of the model's own
    else:
        head.config.save_pretrained(folder)
        os.remove(os.path.join(folder, "config.py"))
    with open(os.path.join(folder, "case.json"), "w") as f:
        f.write(json.dumps(dict(target=TARGET, tensors=tensors, tokens=TEXT, rows=ROWS, tree=TREE, chains=chains)) + "\n")
    print(f"{name}: {len(tensors)} tensors, logits of rms {logits.square().mean().sqrt():.3f}, {chains}")


def build_block(case, m):
    layer = transformers.Qwen3Config(**case["layer"])
    layer._attn_implementation = "eager"
    spark = case.get("spark", {}) | case.get("second", {})
    kind = "dflash2" if case.get("second") else "dspark" if spark else "dflash"
    configs = dict(dflash=DFlashSpeculatorConfig, dflash2=DFlash2SpeculatorConfig, dspark=DSparkSpeculatorConfig)
    heads = dict(dflash=core.DFlashDraftModel, dflash2=DFlash2DraftModel, dspark=DSparkDraftModel)
    config = configs[kind](
        transformer_layer_config=layer, draft_vocab_size=case["words"], aux_hidden_state_layer_ids=[1, 2], block_size=BLOCK,
        mask_token_id=MASK, **case["flags"], **spark,
        speculators_config=SpeculatorsConfig(
            algorithm=kind, proposal_methods=[GreedyTokenProposalConfig(speculative_tokens=3)],
            default_proposal_method="greedy",
            verifier=VerifierConfig(name_or_path=TARGET, architectures=["LlamaForCausalLM"])))
    head = heads[kind](config).float().eval()
    ids = [i * 200 // case["words"] for i in range(case["words"])]
    tensors = []
    with torch.no_grad():
        for key, p in head.named_parameters():
            if key.startswith("verifier_"):
                continue
            if key == "embed_tokens.weight" or (key == "lm_head.weight" and case["words"] == 200):  # the target's, which is one matrix
                p.copy_(m.model.embed_tokens.weight)
                if case.get("flat"):
                    tensors.append(dict(name=key, dtype="F32", shape=list(p.shape), of="model.embed_tokens.weight"))
            else:
                p.copy_(tensor(key, p.shape))
                tensors.append(dict(name=key, dtype=case["dtype"], shape=list(p.shape)))
    if case["words"] < 200:
        tensors += [dict(name="d2t", dtype="I64", shape=[case["words"]]), dict(name="t2d", dtype="BOOL", shape=[200])]
    return head, tensors, ids


def block(head, taps, tokens, n):
    """States and logits of the slots of the block behind the first n tokens, (BLOCK, words): the last of them is the anchor."""
    core.select_anchors = lambda *_: (torch.tensor([n - 1]), torch.tensor([True]))
    room = n + BLOCK
    hidden = torch.zeros(room, 2, taps.shape[-1])
    hidden[: n - 1] = taps[: n - 1, [1, 2]]
    ids = torch.tensor([tokens[:n] + [0] * BLOCK])
    return head._backbone_forward(hidden.reshape(1, room, -1), ids, torch.ones(1, room), hidden[:, 0][None],
                                  torch.zeros(1, room, dtype=torch.long), max_anchors=1)[:2]


def follow(head, out, path):
    """The logits and confidences of the slots that give a token, where the tokens of path follow the first of them, the anchor."""
    hidden, logits = out
    if not hasattr(head, "markov_head") and not hasattr(head, "candidate_selector"):
        return logits[0], None
    first = 0 if head.config.sample_from_anchor else 1
    before = torch.tensor([([path[0]] * first + path + [0] * BLOCK)[:BLOCK]])
    if hasattr(head, "candidate_selector"):
        ids, scores = head.candidate_selector.select(logits, hidden, before)
        return torch.full_like(logits, OUT).scatter(-1, ids, scores)[0, first:], None
    bias = head.markov_head.block_bias(prev_token_ids=before, hidden_states=hidden)
    features = torch.cat([hidden, head.markov_head.prev_embeddings(before)], dim=-1) if head.config.confidence_head_with_markov else hidden
    chances = head.confidence_head(features)[0, first:].sigmoid().tolist() if head.confidence_head else None
    return (logits + bias)[0, first:], chances


def chain(head, out, anchor, ids):
    if not hasattr(head, "markov_head") and not hasattr(head, "candidate_selector"):
        return [ids[int(i)] for i in out[1][0].argmax(dim=-1)[0 if head.config.sample_from_anchor else 1:]]
    path = [anchor]
    for k in range(len(follow(head, out, path)[0])):
        path.append(ids[int(follow(head, out, path)[0][k].argmax())])
    return path[1:]


def deepspec(case):
    return case["layer"] | case["spark"] | dict(
        architectures=["Qwen3DSparkModel"], block_size=BLOCK, num_target_layers=2, hidden_act="silu", dtype="float32", num_anchors=512,
        mask_token_id=MASK, target_layer_ids=[0, 1], tie_word_embeddings=False)


def write_block(name, case, m, tokens, taps):
    folder = os.path.join(HERE, "heads", name)
    os.makedirs(folder, exist_ok=True)
    head, tensors, ids = build_block(case, m)
    with torch.no_grad():
        rows = [follow(head, block(head, taps, tokens, p + 1), [tokens[p], *PATH]) for p in ANCHORS]
        chains = [dict(tokens=n, drafts=chain(head, block(head, taps, tokens, n), tokens[n - 1], ids)) for n in CHAINS]
    logits = torch.cat([r[0] for r in rows])
    logits.numpy().astype("<f4").tofile(os.path.join(folder, "rows.f32"))
    spark = dict(path=PATH, confidence=[r[1] for r in rows if r[1]]) if case.get("spark") or case.get("second") else {}
    if case.get("flat"):
        save(os.path.join(folder, "config.json"), deepspec(case))
    elif case.get("zlab"):
        save(os.path.join(folder, "config.json"), case["layer"] | dict(
            architectures=["DFlash2DraftModel" if case.get("second") else "DFlashDraftModel"], block_size=BLOCK, num_target_layers=2,
            hidden_act="silu", dtype="float32",
            dflash_config=dict(mask_token_id=MASK, target_layer_ids=[0, 1]) | case.get("second", {})))
    else:
        head.config.save_pretrained(folder)
        os.remove(os.path.join(folder, "config.py"))
    with open(os.path.join(folder, "case.json"), "w") as f:
        f.write(json.dumps(dict(target=TARGET, tensors=tensors, tokens=TEXT, rows=ANCHORS, chains=chains) | spark) + "\n")
    print(f"{name}: {len(tensors)} tensors, logits of rms {logits.square().mean().sqrt():.3f}, {chains}")


def main():
    m, tokens, taps = target()
    wanted = sys.argv[1:]
    for cases, make in ((MTPS | FIRST, write_mtp), (BLOCKS, write_block), (HEADS, write)):
        for name, case in cases.items():
            if not wanted or name in wanted:
                make(name, case, m, tokens, taps)


if __name__ == "__main__":
    main()
