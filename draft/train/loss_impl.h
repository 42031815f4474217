/* SPDX-License-Identifier: MIT
 * The types that the files of the losses share, private to draft/train. */
#ifndef WG_DRAFT_TRAIN_LOSS_IMPL_H
#define WG_DRAFT_TRAIN_LOSS_IMPL_H

#include "draft/train/loss.h"
#include "draft/train/train_ops.h"

enum { WG_LOSS_RULES = 2 }; /* WG_LOSS_REJECTION, WG_LOSS_BLOCK */

/* One position under one rule. m, q: log (M / R) and log (Q / R) of the prefix before it. by_p, by_q: its addend of F, split by
 * the side that is the minimum. */
typedef struct wg_loss_step {
    bool there; /* the position belongs to a block that has not ended */
    bool of_q;  /* at the text's token the side of q is smaller than M_{l-1} p */
    double m, q, by_p, by_q;
    double scale;   /* factor of the row's gradient */
    double at_text; /* d F / d log q(y) */
    double below;   /* in f32 rows: the sum of q where its side is smaller */
} wg_loss_step;

/* The measurements of a row by the first pass. */
typedef struct wg_loss_row {
    double sum;                    /* log sum exp of s */
    double log_p_text, log_q_text; /* log p and log q of the text's token */
    double kl, alpha, log_alpha;
    double position; /* weight of the row's place in its block */
    int depth;       /* place in the block, from 0; -1: the row is left out */
    int block;       /* rows of its block */
    bool narrow;     /* computed in f32: q stands where the gradient will be */
    wg_row_sums sums;
    wg_loss_step step[WG_LOSS_RULES];
} wg_loss_row;

struct wg_loss {
    wg_loss_spec spec;
    int rows, vocab;
    double inverse; /* 1 / temperature */
    double *s;      /* (vocab) logits of the present row, over the temperature */
    double *log_q;  /* (vocab) */
    double *log_p;  /* (vocab) */
    double *h;      /* (vocab) d loss / d log q, as if the probabilities were independent */
    wg_loss_row *row;
    double *wide; /* (vocab) p in double of an f32 row that needs double */
};

/* loss_row.c. measure fills log_q, log_p and the measurements *r. fill: fills log_q and log_p again for a measured row. spread
 * computes the gradient of s (in l->s, overwritten) from h; text: d loss / d log q of the text's token. */
void wg_loss_measure(wg_loss *l, const wg_loss_target *t, wg_loss_row *r);
void wg_loss_fill(wg_loss *l, const wg_loss_target *t, const wg_loss_row *r);
void wg_loss_distances(wg_loss *l, const wg_loss_target *t, const wg_loss_row *r, double scale, double lk, double *term);
void wg_loss_spread(wg_loss *l, const wg_loss_target *t, double text);

/* Adds a row's values to term. value: of reverse KL and JSD; log_q: of the text's token. */
void wg_loss_terms(const wg_loss_target *t, const wg_loss_row *r, double scale, double lk, const double value[2], double log_q,
                   double *term);

/* loss_f32.c. measure returns false, having changed only q, when the row needs double: a floor of reverse_kl below f32's range,
 * logits that are not finite, or almost no overlap. sums computes the addend of a rule; gradient replaces q by the gradient. */
bool wg_loss_narrow_measure(const wg_loss *l, const wg_loss_target *t, const float *z, float *q, wg_loss_row *r);
void wg_loss_narrow_sums(const wg_loss_target *t, const wg_loss_row *r, const float *q, int vocab, wg_loss_step *s);
void wg_loss_narrow_gradient(const wg_loss *l, const wg_loss_target *t, const wg_loss_row *r, double lk, const float *z,
                             float *q, double *term);

/* loss_rule.c. The recursion along a block: wg_loss_chain_step row by row in the first pass, wg_loss_chain_back from the
 * block's end, wg_loss_chain_row for a row's part of h. */
typedef struct wg_loss_chain {
    bool block, there;
    int prefix;
    double m, q; /* log (M / R), log (Q / R) */
} wg_loss_chain;
wg_loss_chain wg_loss_chain_begin(bool block, int prefix);
/* q: the row's, for rows in f32. */
void wg_loss_chain_step(wg_loss_chain *c, const wg_loss *l, const wg_loss_target *t, const wg_loss_row *r, const float *q,
                        wg_loss_step *out);
void wg_loss_chain_back(bool block, int prefix, wg_loss_row *row, int n, int rule);
void wg_loss_chain_row(wg_loss *l, const wg_loss_target *t, const wg_loss_step *step, double weight);

#endif
