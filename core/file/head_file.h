/* SPDX-License-Identifier: MIT
 * The folder of a head: a small network that drafts from hidden states of its target (methods.md, Heads): EAGLE-3 (Li et al.
 * 2025), DFlash (Chen et al. 2026), or a layer for multi-token prediction (MTP). config.json and model.safetensors in one of
 * these dialects, told apart by their keys:
 *   speculators   the layer's keys in transformer_layer_config, with speculators_model_type (speculators 0.1 for EAGLE-1, 0.9)
 *   z-lab         keys of a Qwen3 config, with dflash_config or target_layer_ids (z-lab, DeepSpec, SpecForge's blocks)
 *   SafeAILab     keys of a Llama config (SafeAILab, SpecForge, SGLang): of EAGLE-3 where it has a key that EAGLE-1 lacks
 *   llama.cpp     a GGUF file of the architecture eagle3 or dflash
 *   MiMo, DeepSeek, Qwen3.5   the folder of a whole model with an MTP layer of one of these forms, which is one of Llama's,
 *                 Qwen2's or Qwen3's; the rest is left aside
 * All give the same wg_head_spec, and tensors by the names of speculators. Sizes are those of the tensors; keys must agree. A
 * key or a tensor that is not known here is refused by name, since it may change what the head computes. */
#ifndef WG_CORE_FILE_HEAD_FILE_H
#define WG_CORE_FILE_HEAD_FILE_H

#include "core/file/safetensors.h"

enum { WG_HEAD_TAPS = 8, WG_HEAD_LAYERS = 16, WG_HEAD_ASSUMED = 16, WG_HEAD_PAIRS = 128 };

/* A key that config.json lacks, and the value that it has then. */
typedef struct wg_head_assumed {
    const char *key;
    char value[40];
} wg_head_assumed;

typedef enum wg_head_kind {
    WG_HEAD_EAGLE3,
    WG_HEAD_DFLASH,
    WG_HEAD_MTP,
    WG_HEAD_EAGLE, /* EAGLE-1; EAGLE-2 has the same files */
    WG_HEAD_DSPARK,
    WG_HEAD_DFLASH2,
    WG_HEAD_PEAGLE, /* EAGLE-3 whose later tokens have a learned state in the place of their own */
    WG_HEAD_KINDS
} wg_head_kind;
typedef enum wg_head_markov {
    WG_MARKOV_NONE,
    WG_MARKOV_VANILLA,
    WG_MARKOV_GATED,
    WG_MARKOV_RNN,
    WG_MARKOV_SELECTOR
} wg_head_markov;
const char *wg_head_kind_name(wg_head_kind kind); /* for messages: "a DFlash" */

typedef struct wg_head_spec {
    wg_head_kind kind;
    const char *dialect;
    int layers, dim, target_dim; /* target_dim: of the target's hidden states */
    int heads, kv_heads, head_dim, hidden;
    int vocab, draft_vocab;             /* of the target; tokens that the head proposes */
    int said_layers, said_types;        /* what config.json says of layers, and entries of its layer_types; 0: nothing */
    int said_drafts;                    /* the same of draft_vocab */
    int n_taps, tap[WG_HEAD_TAPS];      /* the target's layers before whose input it reads: taps of core/model/taps.h. named: */
    bool taps_named;                    /* else the file leaves them to the target's number of layers */
    double eps, rope_base, rope_factor; /* rope_factor: of linear scaling; 1: none */
    bool adjacent;                      /* rotary pairs are neighbours */
    bool ids;                           /* d2t holds ids, else offsets */
    int divisors;                       /* of rotary frequencies (llama3): head_dim / 2, or 0 */
    float divisor[WG_HEAD_PAIRS];
    bool norm_before_residual;   /* the residual stream begins with the normed feature */
    bool norm_before_fc;         /* all taps are normed as one row before fc, by input_norm, */
    bool fc_norm;                /* or each tap by its own norm */
    bool norm_output;            /* the feature of the next step is the normed state */
    bool first_norm, last_norm;  /* there is a norm before the first layer; before lm_head */
    bool head_norm;              /* heads of queries and keys are normed (Qwen3) */
    bool biased, out_biased;     /* queries, keys and values have biases; and what attention gives */
    bool embed_norm, state_norm; /* of MTP and EAGLE-1: there are norms of the embedding and of the state before fc */
    int fc_bias;                 /* fc has a bias: 1; none: 0; -1 until the tensors are read: as they have it */
    char own[40];                /* what names of the MTP layer's tensors begin with */
    bool whole;                  /* tensors with other names are those of a whole model, and left aside */
    bool hidden_first;           /* fc reads [state; embedding], else [embedding; state] */
    bool zero_first;             /* the embedding at position 0 is zero */
    bool after_norm;             /* the target's state is that behind its last norm, else before it */
    int block, mask_token;       /* of blocks: rows of a pass; the token of all but the first, which P-EAGLE has, too */
    bool from_anchor;            /* row i of a block gives the token i + 1 behind the text; else the token i, and row 0 none */
    unsigned causal;             /* layers by bits in which a row of a block sees no later one */
    int window;                  /* of layers with a bit in `windowed`; 0: none */
    unsigned windowed;
    int taps, group, top;                     /* of DFlash 2: rows and channels of a convolution's kernel, candidates */
    wg_head_markov markov;                    /* how a row's logits depend on the tokens before it, */
    int markov_rank;                          /* the width of those tokens' embeddings, */
    bool confidence;                          /* whether it estimates the acceptance of a row's token, */
    bool confidence_markov;                   /* and whether that reads the token before, too */
    wg_head_assumed assumed[WG_HEAD_ASSUMED]; /* (n_assumed) for wager inspect */
    int n_assumed;
} wg_head_spec;

/* Whether a pass drafts a block over features alone, it has the rows of EAGLE-3, and fc joins an embedding and a state. */
static inline bool wg_head_is_block(const wg_head_spec *s)
{
    return s->kind == WG_HEAD_DFLASH || s->kind == WG_HEAD_DSPARK || s->kind == WG_HEAD_DFLASH2;
}
static inline bool wg_head_is_eagle3(const wg_head_spec *s) { return s->kind == WG_HEAD_EAGLE3 || s->kind == WG_HEAD_PEAGLE; }
static inline bool wg_head_joins(const wg_head_spec *s) { return s->kind == WG_HEAD_MTP || s->kind == WG_HEAD_EAGLE; }

typedef struct wg_head_file wg_head_file;

/* Opens and checks the folder, or a GGUF file. Errors: ENOENT, EIO, EFORMAT; EMODEL (a key or a tensor is missing or wrong:
 * what was expected); EUNSUPPORTED (a key, value or tensor that is not implemented, by name). */
wg_status wg_head_file_open(wg_head_file **out, const char *folder, wg_error *err);
/* The same of a folder in memory, which is borrowed: its config.json as parsed, and the n bytes of its model.safetensors. NULL:
 * the bytes are those of a GGUF file. */
wg_status wg_head_file_read(wg_head_file **out, const char *name, const json_t *config, const void *bytes, size_t n,
                            wg_error *err);
void wg_head_file_close(wg_head_file *f); /* NULL is fine */

const char *wg_head_file_path(const wg_head_file *f);
const wg_head_spec *wg_head_file_spec(const wg_head_file *f);
/* A tensor by its name in speculators' files, of the checked shape and of type F32, F16 or BF16, or in a GGUF file of any type
 * of weights; NULL: the head has none. */
const wg_safetensor *wg_head_file_find(const wg_head_file *f, const char *name);

/* The taps for a target of this many layers, in the head's order. EMODEL: it has not so many layers. */
wg_status wg_head_file_taps(const wg_head_file *f, int layers, int tap[WG_HEAD_TAPS], wg_error *err);
/* The target's ids of the tokens that the head proposes, ascending: token[i] of its row i. (draft_vocab). EMODEL: the map is
 * not one of offsets, or in a GGUF file of ids. */
wg_status wg_head_file_tokens(const wg_head_file *f, int32_t *token, wg_error *err);

#endif
