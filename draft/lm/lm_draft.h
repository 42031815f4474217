/* SPDX-License-Identifier: MIT
 * The common part of drafters that run a language model: the options that shape a draft, and drafting over any model that the
 * drafter opens. Such a drafter's struct begins with a wg_lm_drafter and its options with a wg_growth; its class uses the
 * functions below. draft/lm/lm_draft.c describes the laws and the passes. */
#ifndef WG_DRAFT_LM_LM_DRAFT_H
#define WG_DRAFT_LM_LM_DRAFT_H

#include "draft/lm/draft_vocab.h"
#include "draft/lm/grow.h"
#include "draft/length/length.h"
#include "draft/lm/retokenizer.h"
#include "draft/lm/text_words.h"

typedef struct wg_growth {
    char tree[WG_OPTION_STRING], accept[WG_OPTION_STRING];
    int grow, length, budget, width, siblings;
    double temperature, p_min, gain;
    bool truncate;
    wg_length_options length_policy;
} wg_growth;

extern const char *const wg_growth_shapes[], *const wg_growth_siblings[];
extern const wg_option wg_growth_option_rows[]; /* the rows of WG_GROWTH_OPTIONS, to recognise them in a drafter's table */

/* Rows for the option table of a drafter whose options begin with a wg_growth. */
/* clang-format off */
#define WG_GROWTH_OPTIONS                                                                                                      \
    WG_OPTION_INT(wg_growth, length, 4, 1, WG_DRAFT_MAX, "tokens of a chain (4: Chen et al. 2023)"),                           \
    WG_OPTION_ENUM(wg_growth, grow, 0, wg_growth_shapes,                                                                       \
                   "shape of the draft: a chain of `length` (or `tree`, when that is given); kary and file: see `tree`; "      \
                   "sequoia: the best tree for `accept`; best_first: the `budget` most probable nodes (EAGLE-2, OPT-Tree)"),   \
    WG_OPTION_NAME(wg_growth, tree, WG_NAMES_SHAPE, "",                                                                        \
                  "kary: children of a node by its depth, such as 3-2-1; file: a JSON list of parents or paths"),              \
    WG_OPTION_STR(wg_growth, accept, "0.6/0.15/0.06/0.03",                                                                     \
                  "sequoia: how often the 1st, 2nd, ... child is the accepted one"),                                           \
    WG_OPTION_INT(wg_growth, budget, 24, 1, WG_DRAFT_MAX,                                                                      \
                  "sequoia, best_first: draft tokens of a tree; `length` bounds its depth"),                                   \
    WG_OPTION_INT(wg_growth, width, 0, 0, WG_DRAFT_MAX,                                                                        \
                  "best_first: nodes of a level that get children, and children of a node; 0: the budget (OPT-Tree)"),         \
    WG_OPTION_FLOAT(wg_growth, gain, 0, 0, 64,                                                                                 \
                    "best_first: no deeper when a level added less than this to the expected tokens"),                         \
    WG_OPTION_ENUM(wg_growth, siblings, 0, wg_growth_siblings, "how children are drawn; coupled: for the rule of that name"),  \
    WG_OPTION_FLOAT(wg_growth, temperature, -1, -1, 100, "of q; negative: the target's; 0: the most probable tokens"),         \
    WG_OPTION_BOOL(wg_growth, truncate, 1, "draw inside the request's top_k, top_p and min_p, which apply to q, too"),         \
    WG_OPTION_FLOAT(wg_growth, p_min, 0, 0, 1, "a node whose most probable next token is below this gets no children"),        \
    WG_LENGTH_OPTIONS(wg_growth)
/* clang-format on */

typedef struct wg_logit_row {
    int seq, node, at;
} wg_logit_row; /* the node that a row of logits of the pass belongs to; the index of its row in the batch */

/* The model's view of a sequence: its tokens 0 .. n-1, the last of which is the root, and the cache that holds their keys and
 * values. */
typedef struct wg_reading {
    wg_kv_seq *kv;
    const int32_t *token;
    int n, base; /* token `base` has position 0 (wg_window_base) */
} wg_reading;

/* The token at which a model begins to read a text of n tokens: 0, or for a text longer than its context a multiple of half the
 * context, so that between half and one context of tokens is read. It is a function of n alone. */
static inline int wg_window_base(int n, int context)
{
    const int step = context / 2;
    return n <= context || step == 0 ? 0 : (n - context + step - 1) / step * step;
}

/* Rows of logits of all levels from one pass, of drafters that run no pass for a level's tokens. */
typedef struct wg_level_rows {
    /* Computes the rows of levels 0 .. height[i]-1 of seq[i], i < n. It reserves what it writes. */
    wg_status (*pass)(void *user, wg_seq *const *seq, const int *height, int n, wg_error *err);
    /* (outputs) of what follows a node of the tree of sequence i; the caller may change it. Valid until the next call. */
    float *(*row)(void *user, int i, const wg_tree *t, int node);
    /* An estimate that the path to the node and one token below it are accepted; NULL: there is none. */
    double (*survival)(void *user, int i, const wg_tree *t, int node);
    void *user;
    int levels; /* most that a pass gives */
} wg_level_rows;

typedef struct wg_lm_drafter {
    wg_drafter base;
    wg_growth opt;
    wg_lm *lm;                   /* borrowed */
    const wg_draft_vocab *words; /* tokens that it proposes; NULL: the target's, by its ids. Borrowed, set before open */
    wg_text_words *added;        /* tokens of texts beside `words`; NULL: none. Borrowed, set before open */
    wg_retokenizer *reader;      /* for a model with another tokenizer, else NULL. Borrowed, set before open */
    int outputs;                 /* width of a row of logits; 0: the model's vocabulary. Set before open */
    int begins;                  /* the first token that it reads, at position 0: 1 for heads. Set before open */
    int states;                  /* another space, whose tail has a slot for each node too; 0: none. Set before open */
    wg_level_rows rows;          /* a pass for all levels; .pass NULL: one for each. Set before open */
    wg_reading *text;            /* (max_batch) what the model reads in this draft */
    wg_length length;
    wg_sampler sampler;
    wg_batch batch;
    int vocab;                     /* the target's vocabulary: the width of a q row */
    int levels;                    /* depth of a full draft */
    wg_shape shape;                /* shape of a full draft; unused by best-first */
    int16_t (*place)[WG_TREE_MAX]; /* (max_batch) the node of the shape that each node of the tree is */
    wg_best *best;                 /* (max_batch) best-first; else NULL */
    wg_sibling_law law;
    wg_logit_row *logit_row; /* (batch.cap) */
    float *logits;           /* (most rows with logits in one pass, outputs) */
    float *row;              /* (vocab) logits at the target's width; NULL when the widths agree */
    double *weight;          /* (vocab) weights of p_min, policies at temperature 0, distinct siblings, best-first; else NULL */
    double inverse;          /* 1 / temperature of the weights of best-first; else 1 */
    int *height, *first;     /* (max_batch) depth of this draft; first node of the level being fed */
} wg_lm_drafter;

/* Most rows of one pass; more rows take several passes. Draft models are opened for as many. */
#ifdef WG_HARD
enum { WG_DRAFT_ROWS = 5 };
#else
enum { WG_DRAFT_ROWS = 256 };
#endif

/* The two halves of open. begin checks options without a model (base must be set; ECONFIG). open does the rest over an attached
 * model. On failure the caller closes the drafter. */
wg_status wg_lm_drafter_begin(wg_lm_drafter *m, const wg_growth *opt, const wg_env *env, wg_error *err);
wg_status wg_lm_drafter_open(wg_lm_drafter *m, wg_lm *lm, int rows, wg_error *err); /* rows: most rows of a pass of the model */
void wg_lm_drafter_close(wg_lm_drafter *m); /* half-open is fine; the owner closes the model */

/* Functions of the class, for a `d` that is a wg_lm_drafter and options that begin with a wg_growth. */
wg_status wg_lm_drafter_propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err);
void wg_lm_drafter_observe(wg_drafter *d, const wg_seq *seq, const wg_tree *tree, const wg_path *path, wg_rows *target);
void wg_lm_drafter_forget(wg_drafter *d, const wg_seq *seq);
const wg_lm *wg_lm_drafter_lm(const wg_drafter *d);
int wg_lm_drafter_context(const wg_drafter *d, bool *slides);
void wg_lm_drafter_extent(const wg_drafter *d, int depth, wg_draft_extent *out);
bool wg_lm_drafter_device_chain(const wg_drafter *d, wg_device_chain *out);
int wg_lm_drafter_policy(const wg_drafter *d, const wg_seq *seq, double *out, int most);
unsigned wg_growth_laws(const void *options, const wg_sampling *target);

/* Members that the classes of all such drafters share; `open` is the drafter's own. */
#define WG_LM_DRAFTER_MEMBERS                                                                                                  \
    .laws = WG_LAWS, .laws_for = wg_growth_laws, .open = open, .observe = wg_lm_drafter_observe,                               \
    .policy = wg_lm_drafter_policy, .forget = wg_lm_drafter_forget, .lm = wg_lm_drafter_lm, .context = wg_lm_drafter_context,  \
    .extent = wg_lm_drafter_extent

#endif
