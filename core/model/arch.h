/* SPDX-License-Identifier: MIT
 * A model family as data: hyper-parameters of a model and the tensors a family has. A new family is rows in arch.c. */
#ifndef WG_CORE_MODEL_ARCH_H
#define WG_CORE_MODEL_ARCH_H

#include "core/file/weights.h"

enum { WG_LAYERS_MAX = 4096 };

/* Features of a model's layers beyond the tensors of every family. */
typedef enum wg_trait {
    WG_TRAIT_QKV_BIAS = 1,     /* queries, keys and values are products plus a bias */
    WG_TRAIT_OUTPUT_BIAS = 2,  /* so is the output of attention */
    WG_TRAIT_HEAD_NORM = 4,    /* RMSNorm of each head of queries and keys, before they are turned */
    WG_TRAIT_POST_NORM = 8,    /* RMSNorm of what attention and MLP give, before it is added to the residual stream */
    WG_TRAIT_FUSED_QKV = 16,   /* queries, keys and values are the rows of one tensor, in this order */
    WG_TRAIT_FUSED_GATE = 32,  /* so are gate and up */
    WG_TRAIT_LAYER_NORM = 128, /* norms are LayerNorm (Ba et al. 2016), not RMSNorm, */
    WG_TRAIT_NORM_BIAS = 1024, /* with biases */
    WG_TRAIT_POSITIONS = 256,  /* learned positions are added to embeddings; nothing is rotated */
    WG_TRAIT_UNGATED = 512,    /* the MLP is W_down f(W_up n), */
    WG_TRAIT_MLP_BIAS = 2048,  /* with biases of all products, as the gated one may have */
    WG_TRAIT_EXPERTS = 64,     /* the MLP is a mixture of experts (Shazeer et al. 2017) */
    WG_TRAIT_PARALLEL = 4096,  /* attention and MLP read the same x, and both are added to it (Wang and Komatsuzaki 2021) */
    WG_TRAIT_ONE_NORM = 8192,  /* the MLP's norm is the tensor attn_norm, */
    WG_TRAIT_OWN_NORM = 16384, /* and attention's is attn_norm_2 */
    WG_TRAIT_NO_PRE_NORM = 1 << 15, /* attention and MLP read the residual stream itself, and their outputs are normed */
    WG_TRAIT_ROW_NORM = 1 << 16,    /* HEAD_NORM is over all heads of queries at once, and over all of keys */
    WG_TRAIT_LATE_NORM = 1 << 17,   /* HEAD_NORM comes after they are turned */
    WG_TRAIT_POST_NAME = 1 << 18,   /* the MLP's norm is called post_attention_norm */
    WG_TRAIT_SINKS = 1 << 19,       /* each head of queries has a sink: a score beside those of keys, without a value */
    WG_TRAIT_EXPERT_BIAS = 1 << 20, /* products of the router and of experts have biases */
} wg_trait;

/* The gate of an MLP: gate = f(W_gate n) * W_up n; without a gate f(W_up n). f: silu, gelu by tanh, exact gelu, squared ReLU
 * (So et al. 2021); or clamped_swiglu of both products (kernels/act.h). */
typedef enum wg_activation { WG_SWIGLU, WG_GEGLU, WG_GELU_ERF, WG_RELU2, WG_CLAMPED_SWIGLU } wg_activation;

typedef struct wg_arch {
    char family[32]; /* general.architecture */
    char name[96];   /* general.name or the file's name */
    int layers, dim, heads, kv_heads, head_dim, hidden, vocab, context;
    int n_rot;                    /* rotated elements of a head */
    bool rope_adjacent;           /* pairs (2i, 2i+1), else (i, i + n_rot/2) */
    double rope_base, rope_scale; /* frequency i: base^(-2i/n_rot) / scale (linear scaling, or YaRN's for the slow ones) */
    double window_rope_base;      /* of layers with a window, which are not scaled; 0: as all */
    double rope_magnitude;        /* cos and sin are multiplied by it, and by YaRN's own factor */
    bool yarn;                    /* Peng et al. 2023: pairs with more than yarn_fast turns in the original context keep */
    bool yarn_exact;              /* the ramp's ends are not rounded to whole pairs */
    double yarn_fast, yarn_slow;  /* their frequency, those with fewer than yarn_slow are scaled; a ramp lies between */
    int original_context;         /* of YaRN and longrope; 0: neither */
    float eps;
    bool tied;       /* the head is the embedding */
    int kept;        /* rows of the head of a cut student, which has no embedding: it reads its target's. 0: a whole model */
    unsigned traits; /* wg_trait */
    wg_activation activation;
    int experts, experts_used;             /* experts of a layer, each of width `hidden`; used by a row. 0: one MLP */
    bool experts_normed;                   /* a row's weights of experts sum to 1 */
    float embedding_scale;                 /* embeddings are multiplied by it */
    float residual_scale;                  /* what attention and MLP give, before it is added */
    float logit_scale;                     /* logits are multiplied by it; */
    bool logit_divisor;                    /* or divided */
    float query_growth;                    /* queries at position p, by 1 + query_growth ln(1 + p / original_context), the */
                                           /* quotient rounded down; 0: not */
    float attention_scale;                 /* of scores q k */
    float attention_cap, logit_cap;        /* soft caps of scores and of logits (kernels/act.h); 0: none */
    float qkv_limit;                       /* queries, keys and values are limited to +- it; 0: not */
    double alibi;                          /* the exponent of ALiBi's slopes (Press et al. 2022); 0: there are none */
    bool alibi_scaled;                     /* slopes are multiplied by attention_scale */
    int window;                            /* a token attends to this many, itself included; 0: to all */
    bool window_unknown;                   /* some layers have a window, but which is unknown */
    uint64_t windowed[WG_LAYERS_MAX / 64]; /* layers with the window: a bit each, as those whose queries and keys are */
    uint64_t unturned[WG_LAYERS_MAX / 64]; /* not rotated */
} wg_arch;

static inline bool wg_arch_windowed(const wg_arch *a, int layer) { return a->windowed[layer / 64] >> (layer & 63) & 1; }
static inline bool wg_arch_unturned(const wg_arch *a, int layer) { return a->unturned[layer / 64] >> (layer & 63) & 1; }

/* Reads and checks the hyper-parameters. EMODEL names the key, its value and what was expected; EUNSUPPORTED lists the
 * families there are. */
wg_status wg_arch_read(const wg_weights *w, wg_arch *out, wg_error *err);

/* The ALiBi slopes of all heads: 2^(-alibi (h+1) / n) for the first n heads, n the largest power of two not above their number;
 * 2^(-alibi (2 (h-n) + 1) / 2n), the slopes between, for the others. */
void wg_arch_slopes(const wg_arch *a, float *slope);

/* Number of weights: layers, embedding, head unless tied, norms, biases. */
int64_t wg_arch_parameters(const wg_arch *a);

/* Multiply-adds of a row of a forward pass (of experts those that a row uses), without those of keys and values: of layers and
 * head; of one layer's attention block; of its MLP; of the head. */
int64_t wg_arch_macs(const wg_arch *a);
int64_t wg_arch_attention_macs(const wg_arch *a);
int64_t wg_arch_mlp_macs(const wg_arch *a);
int64_t wg_arch_head_macs(const wg_arch *a);

#endif
