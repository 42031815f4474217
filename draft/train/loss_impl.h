/* SPDX-License-Identifier: MIT
 * What the parts of the losses share. Private to draft/train. */
#ifndef WG_DRAFT_TRAIN_LOSS_IMPL_H
#define WG_DRAFT_TRAIN_LOSS_IMPL_H

#include "draft/train/loss.h"
#include "draft/train/train_ops.h"

enum { WG_LOSS_RULES = 2 }; /* WG_LOSS_REJECTION, WG_LOSS_BLOCK */

/* One position under one rule. Logarithms of M and Q of the prefix before it, each over R; its addend of F, in two parts: where
 * the minimum is that of p, and that of q. */
typedef struct wg_loss_step {
    bool there; /* it belongs to a block that has not ended */
    bool of_q;  /* which is smaller at the text's token: M_{l-1} p or, here, the side of q */
    double m, q, by_p, by_q;
    double scale;   /* of the row's gradient */
    double at_text; /* d F / d log q(y) */
    double below;   /* rows in f32: the sum of q where it is the smaller side */
} wg_loss_step;

/* What the first pass finds out about a row. */
typedef struct wg_loss_row {
    double sum, rest;              /* log sum exp of all s, and of the tokens that are not listed */
    double log_p_text, log_q_text; /* of the class of the text's token */
    double kl, alpha, log_alpha;
    double position; /* weight of its place in the block */
    int depth;       /* place in its block, from 0; -1: the row is left out */
    int block;       /* rows of its block */
    bool narrow;     /* it is computed in f32: q stands where the gradient will be */
    wg_row_sums sums;
    wg_loss_step step[WG_LOSS_RULES];
} wg_loss_row;

struct wg_loss {
    wg_loss_spec spec;
    int rows, vocab;
    double inverse; /* 1 / temperature */
    double *s;      /* (vocab) logits of the row in work, over the temperature */
    double *log_q;  /* (vocab + 1) of its classes: listed tokens, then the rest */
    double *log_p;  /* (vocab + 1) */
    double apart;   /* sum of h of the tokens that are not listed, where they are no class (reverse KL) */
    double *h;      /* (vocab + 1) d loss / d log q of a class, as if classes were independent */
    wg_loss_row *row;
    double *wide; /* (vocab) p of a row in f32 that is computed in double */
};

/* The classes of a row: `listed` tokens, and behind them the rest if there is one. */
static inline int wg_loss_listed(const wg_loss *l, const wg_loss_target *t) { return t->token ? t->n : l->vocab; }
static inline int wg_loss_classes(const wg_loss *l, const wg_loss_target *t) { return t->token ? t->n + 1 : l->vocab; }
static inline double wg_loss_p(const wg_loss_target *t, int k) { return t->token && k == t->n ? t->tail : t->p[k]; }
static inline int32_t wg_loss_token(const wg_loss_target *t, int k) { return t->token ? t->token[k] : k; }
/* The class of a token. */
int wg_loss_class(const wg_loss *l, const wg_loss_target *t, int32_t token);

/* loss_row.c. measure: fills log_q and log_p, and what *r says of the row itself. classes: log_q and log_p again, for a row
 * that has been measured. spread: the gradient of s (in l->s, overwritten) from h; text: d loss / d log q of the text's token;
 * reverse: weight of the reverse KL of tokens that are not listed. */
void wg_loss_measure(wg_loss *l, const wg_loss_target *t, wg_loss_row *r);
void wg_loss_fill(wg_loss *l, const wg_loss_target *t, const wg_loss_row *r);
void wg_loss_distances(wg_loss *l, const wg_loss_target *t, const wg_loss_row *r, double scale, double lk, double *term);
void wg_loss_spread(wg_loss *l, const wg_loss_target *t, const wg_loss_row *r, double text, double reverse);

/* Adds a row's values; value: of reverse KL and of JSD; log_q: of the text's token. */
void wg_loss_terms(const wg_loss_target *t, const wg_loss_row *r, double scale, double lk, const double value[2], double log_q,
                   double *term);

/* loss_f32.c. measure: false, and nothing has changed but q, where the row needs double: a floor of reverse_kl below f32,
 * logits that are not finite, hardly any overlap. The addend of a rule; the gradient, over q. */
bool wg_loss_narrow_measure(const wg_loss *l, const wg_loss_target *t, const float *z, float *q, wg_loss_row *r);
void wg_loss_narrow_sums(const wg_loss_target *t, const wg_loss_row *r, const float *q, int vocab, wg_loss_step *s);
void wg_loss_narrow_gradient(const wg_loss *l, const wg_loss_target *t, const wg_loss_row *r, double lk, const float *z,
                             float *q, double *term);

/* loss_rule.c. A block in the first pass, row by row; then from its end; then a row's part of h. */
typedef struct wg_loss_chain {
    bool block, there;
    int prefix;
    double m, q; /* log (M / R), log (Q / R) */
} wg_loss_chain;
wg_loss_chain wg_loss_chain_begin(bool block, int prefix);
/* q: of a row in f32. */
void wg_loss_chain_step(wg_loss_chain *c, const wg_loss *l, const wg_loss_target *t, const wg_loss_row *r, const float *q,
                        wg_loss_step *out);
void wg_loss_chain_back(bool block, int prefix, wg_loss_row *row, int n, int rule);
void wg_loss_chain_row(wg_loss *l, const wg_loss_target *t, const wg_loss_step *step, double weight);

#endif
