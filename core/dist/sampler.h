/* SPDX-License-Identifier: MIT
 * The sampler chain: logits -> a row of p or q (methods.md, Sampler chain). Default order: penalties, temperature, top-k,
 * top-p, min-p. The same code computes p and q. Softmax is in double with wager's own exp and sums in a fixed order, so every
 * machine takes the same decisions from the same logits.
 *
 * Penalties make a row a function of the text before it, drafted tokens included (methods.md, Sampler chain). No state is kept
 * between rows: the tokens of the window are counted for each row, along the path of a draft tree, so no step, rejection or
 * preemption can leave a wrong count.
 *
 * Before the stages a sampler adds logit biases and removes the tokens that may not follow the prefix (wg_prefix.allowed); both
 * happen in a copy, so the logits stay as the model gave them. */
#ifndef WG_CORE_DIST_SAMPLER_H
#define WG_CORE_DIST_SAMPLER_H

#include "core/base/option.h"
#include "core/dist/rows.h"
#include "core/dist/tree.h"
#include "kernels/ops.h"

typedef struct wg_sampling {
    double temperature;           /* 0: greedy, a one-hot row at the argmax */
    int top_k;                    /* 0: all */
    double top_p;                 /* 1: all. Keeps the smallest set of most probable tokens whose mass reaches top_p */
    double min_p;                 /* 0: all. Drops tokens below min_p times the largest probability */
    double repetition_penalty;    /* divides the positive and multiplies the negative logits of tokens seen; 1 (or 0): none */
    double frequency_penalty;     /* subtracted from the logit of a token for each time it was seen in the output */
    double presence_penalty;      /* subtracted once from the logits of all tokens seen in the output */
    int penalty_window;           /* number of last tokens, prompt and drafted path included, that count as seen; 0: all */
    bool penalise_prompt;         /* the prompt counts as output, as in some engines */
    char order[WG_OPTION_STRING]; /* stages by name, comma between, each once; empty: WG_SAMPLING_ORDER */
} wg_sampling;
/* An initialiser for chains without penalties. */
/* clang-format off */
#define WG_SAMPLING(T, k, p, m) { .temperature = (T), .top_k = (k), .top_p = (p), .min_p = (m) }
/* clang-format on */
#define WG_SAMPLING_ORDER "penalties,temperature,top_k,top_p,min_p"
extern const wg_option wg_sampling_options[];

typedef enum wg_stage {
    WG_STAGE_PENALTIES,
    WG_STAGE_TEMPERATURE,
    WG_STAGE_TOP_K,
    WG_STAGE_TOP_P,
    WG_STAGE_MIN_P,
    WG_STAGES
} wg_stage;

/* The text before a row: n tokens, then the path to `node` of a tree whose root is the last of them (NULL: no tree). The first
 * `prompt` tokens are the prompt; the others and the path are the output. */
typedef struct wg_prefix {
    const int32_t *token;
    int n, prompt;
    const wg_tree *tree;
    int node;
    const uint64_t *allowed; /* tokens that may follow: bit x % 64 of word x / 64, at least one set. NULL: all */
} wg_prefix;

static inline size_t wg_token_words(int vocab) { return ((size_t)vocab + 63) / 64; }
static inline bool wg_token_in(const uint64_t *set, int32_t x) { return set[x / 64] >> x % 64 & 1; }
static inline void wg_token_add(uint64_t *set, int32_t x) { set[x / 64] |= 1ull << x % 64; }

/* Added to the logit of a token before all stages. */
typedef struct wg_logit_bias {
    int32_t token;
    float bias; /* finite */
} wg_logit_bias;

typedef struct wg_sampler {
    wg_sampling sampling;
    const wg_ops *ops;
    int vocab;
    int32_t *order; /* (vocab) scratch for top-k, top-p, min-p */
    int room;       /* most candidates of a row that is computed without its tail */
    int32_t *id;    /* (room) candidates, ascending; their logits; their weights */
    float *near;
    double *weight;
    double *whole;         /* (vocab) weights of a row that is being resolved, where needed */
    float *clean;          /* (vocab) working logits of a chain in another order */
    bool usual, penalises; /* the stages are in the usual order; penalties are on */
    wg_stage stage[WG_STAGES];
    const wg_logit_bias *bias; /* (n_bias) different tokens; borrowed */
    int n_bias;
    int32_t *count, *seen; /* (vocab) counts in the window (penalty.c), 0 between calls; (vocab) its different tokens */
    float *before;         /* (vocab) their logits before the penalties */
    int n_seen;
} wg_sampler;

/* Whether a sampler can be opened with these options. EINVAL. Any thread. */
wg_status wg_sampling_check(const wg_sampling *sampling, wg_error *err);
wg_status wg_sampler_open(wg_sampler *s, const wg_sampling *sampling, const wg_ops *ops, int vocab, wg_error *err);
void wg_sampler_close(wg_sampler *s);

/* Another chain over the working memory of `memory`, which is borrowed: nothing is allocated, and *out is not closed. One of
 * the samplers of one memory may be in use at a time. EINVAL: an option out of range. */
wg_status wg_sampler_share(wg_sampler *out, const wg_sampler *memory, const wg_sampling *sampling, wg_error *err);
/* The chain and the biases of one sampler over the working memory of another. */
wg_sampler wg_sampler_over(const wg_sampler *chain, const wg_sampler *memory);

/* logits (vocab) -> row `row` of out. Ties keep the lowest ids. NaN logits count as -inf; +inf, or no finite logit at all,
 * gives the one-hot row at the lowest such id (0). */
void wg_sampler_row(wg_sampler *s, const float *logits, wg_rows *out, int row);

/* Whether a row of this chain may be lazy: it depends on its logits alone, and its stages are in the usual order. */
static inline bool wg_sampler_may_wait(const wg_sampler *s) { return s->usual && !s->penalises && s->n_bias == 0; }

/* Makes row `row` of out lazy: the same row, computed by this sampler when it is read (rows.h has the contract). Chains with
 * penalties or in another order compute the row at once. */
void wg_sampler_lazy(wg_sampler *s, const float *logits, wg_rows *out, int row);

/* The same after a prefix: with penalties for its tokens, biases, and only the tokens that may follow. If none of these has a
 * finite logit, the row is one-hot at the first of them. The logits change during the call and are restored. */
void wg_sampler_row_after(wg_sampler *s, float *logits, const wg_prefix *prefix, wg_rows *out, int row);

/* The two halves of wg_sampler_row_after, for callers that rank tokens: apply the penalties in place; restore the logits. */
void wg_sampler_penalise(wg_sampler *s, float *logits, const wg_prefix *prefix);
void wg_sampler_restore(wg_sampler *s, float *logits);

#endif
