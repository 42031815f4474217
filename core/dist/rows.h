/* SPDX-License-Identifier: MIT
 * A set of probability distributions over the vocabulary, after the sampler chain, on the host. The same type holds the
 * target's p and the drafter's q.
 *
 * Row source. A row may be lazy (sampler.h): it is computed when it is read, because a rule that rejects a node never reads
 * the rows behind it. Some reads need less than the row: the probability of one token is resolved from its logit, the end of
 * the nucleus and its mass. The contract:
 *   - A read returns the value of the complete row to the bit, whatever was read before it and in which order.
 *   - A read may change the row's storage, its one-hot token, its support and its state, and the working memory of the row's
 *     sampler. So reading functions take a set that is not const, and rows that are never read cost nothing.
 *   - Threads may read one set at the same time if no two of them read the same lazy row, or lazy rows of one sampler. Any
 *     number of threads may read materialised rows; wg_rows_pick and wg_rows_set of one set are for one thread at a time.
 *   - The logits of a lazy row are borrowed until the row is materialised, pushed or set anew. */
#ifndef WG_CORE_DIST_ROWS_H
#define WG_CORE_DIST_ROWS_H

#include <stdint.h>

#include "core/base/error.h"
#include "core/dist/chance.h"
#include "core/dist/workspace.h"

struct wg_sampler;
typedef enum wg_row_state { WG_ROW_THERE, WG_ROW_LAZY, WG_ROW_RESOLVED } wg_row_state;

/* The inputs of a lazy row. Resolved: token x has exp((logits[x] - max) / T) * scale if it is not behind the token `last` of
 * logit `edge` and its weight is at least `lightest`, else 0; the row's storage is still undefined, its support is the whole
 * vocabulary. */
typedef struct wg_lazy_row {
    wg_row_state state;
    int32_t last;
    float max, edge;
    double lightest, scale;
    int32_t best;        /* argmax of the logits; -1: not computed yet */
    double least;        /* when not 0: least mass of the nucleus, which is most of the vocabulary (wg_rows_bound) */
    const float *logits; /* (vocab) */
    struct wg_sampler *sampler;
} wg_lazy_row;

typedef struct wg_rows {
    int n, cap, vocab;
    double *p;         /* (cap, vocab); a row sums to 1 (to rounding). Undefined where point >= 0 */
    int32_t *point;    /* (cap): the token that has all the mass (temperature 0, a fixed proposal), or -1 */
    int room;          /* most tokens of a known support */
    int32_t *support;  /* (cap, room): the tokens that have mass, ascending, of a truncated row */
    int *supported;    /* (cap) their number; other tokens' storage is 0. -1: unknown, any token may have mass */
    double *packed;    /* (room) scratch of wg_rows_pick */
    wg_lazy_row *lazy; /* (cap) */
} wg_rows;

wg_status wg_rows_open(wg_rows *r, int cap, int vocab, wg_error *err);
void wg_rows_close(wg_rows *r);
static inline void wg_rows_clear(wg_rows *r) { r->n = 0; }
WG_PLUGIN_API int wg_rows_push(wg_rows *r); /* a new row, contents undefined; -1 when full */

/* Sets the row to zero except for n <= room tokens, ascending. Time: that of these tokens and of the row's old support. */
WG_PLUGIN_API void wg_rows_set(wg_rows *r, int row, const int32_t *token, const double *mass, int n);

/* Functions of lazy rows. resolve: computes whether the row is one-hot, and its support. materialise: computes the row.
 * lazy_prob: the probability of one token. */
WG_PLUGIN_API void wg_rows_resolve(wg_rows *r, int row);
WG_PLUGIN_API void wg_rows_materialise(wg_rows *r, int row);
WG_PLUGIN_API double wg_rows_lazy_prob(wg_rows *r, int row, int32_t token);

/* An upper bound of the token's probability, seldom much larger; for a lazy row whose nucleus is most of the vocabulary, in a
 * fourth of the time. */
WG_PLUGIN_API double wg_rows_bound(wg_rows *r, int row, int32_t token);

/* The token that has all the mass, or -1. */
static inline int32_t wg_rows_one_hot(wg_rows *r, int row)
{
    if (r->lazy[row].state == WG_ROW_LAZY) wg_rows_resolve(r, row);
    return r->point[row];
}
static inline double *wg_rows_at(wg_rows *r, int row)
{
    if (r->lazy[row].state != WG_ROW_THERE) wg_rows_materialise(r, row);
    return r->p + (long)row * r->vocab;
}
static inline double wg_rows_prob(wg_rows *r, int row, int32_t token)
{
    if (r->lazy[row].state != WG_ROW_THERE) return wg_rows_lazy_prob(r, row, token);
    return r->point[row] >= 0 ? (double)(r->point[row] == token) : wg_rows_at(r, row)[token];
}

/* The tokens that may have mass: token wg_support_at(s, k) for k < s.n, ascending; of a one-hot row the whole vocabulary. A
 * loop over them that sums p, or terms that are 0 where p is, has the bits of the loop over the vocabulary: adding 0 changes
 * nothing. */
typedef struct wg_support {
    const int32_t *token;
    int n;
} wg_support; /* token NULL: all of the vocabulary */
static inline wg_support wg_rows_support(wg_rows *r, int row)
{
    if (wg_rows_one_hot(r, row) >= 0 || r->supported[row] < 0) return (wg_support){ 0, r->vocab };
    return (wg_support){ r->support + (long)row * r->room, r->supported[row] };
}
static inline int32_t wg_support_at(const wg_support *s, int k) { return s->token ? s->token[k] : k; }

WG_PLUGIN_API int32_t wg_rows_argmax(wg_rows *r, int row); /* lowest id on ties */

/* The row as `vocab` doubles: its own storage, or out[], filled, for a one-hot row. */
WG_PLUGIN_API const double *wg_rows_dense(wg_rows *r, int row, double *out);

/* Checks a row that other code wrote: the token of a one-hot row and a known support are in the vocabulary, the support is
 * ascending, and every probability is in 0..1 (audit.h checks the sum). EINVAL names the first violation. A lazy row is a
 * sampler's and is not computed. */
wg_status wg_rows_check(const wg_rows *r, int row, wg_error *err);

/* Draws from the row. (Weights of a support are put side by side in memory of r: one thread at a time.) */
WG_PLUGIN_API int32_t wg_rows_pick(wg_rows *r, int row, const wg_chance *c, wg_purpose purpose, int index);

/* The winner of a race of the row's tokens. */
WG_PLUGIN_API int32_t wg_rows_race(wg_rows *r, int row, const wg_chance *c, wg_purpose purpose, wg_lists lists,
                                   wg_workspace *w);

/* A draw from weights (vocab) that are 0 outside the support of row `row` (any row when that is not known). */
WG_PLUGIN_API int32_t wg_rows_pick_of(wg_rows *r, int row, const double *weight, const wg_chance *c, wg_purpose purpose,
                                      int index, wg_workspace *w);

/* The sum (mass_weights.h) of weights (vocab) that are 0 outside the support of row `row`. */
WG_PLUGIN_API double wg_rows_sum(wg_rows *r, int row, const double *weight, wg_workspace *w);

/* Draws from norm((p - q)+), or from p if that has no mass (p == q to rounding). qrow < 0: q = 0, a draw from p. */
WG_PLUGIN_API int32_t wg_rows_pick_residual(wg_rows *p, int prow, wg_rows *q, int qrow, const wg_chance *c, wg_purpose purpose,
                                            int index, wg_workspace *w);

/* Writes (r p - q)+ into out (vocab; NULL: nowhere) where p may have mass; returns its mass (kernels/mass.h). */
WG_PLUGIN_API double wg_rows_excess(wg_rows *p, int prow, double r, wg_rows *q, int qrow, double *out, wg_workspace *w);

/* sum_x min(p(x), q(x)): the acceptance a token-wise rule can have at this node (methods.md, Acceptance rates, alpha). */
WG_PLUGIN_API double wg_rows_overlap(wg_rows *p, int prow, wg_rows *q, int qrow);

#endif
