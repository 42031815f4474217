/* SPDX-License-Identifier: MIT
 * A set of probability distributions over the vocabulary, after the sampler chain. The same type holds the target's p and the
 * drafter's q. Rows answer a few questions, so that they may later live on a device; now they are host memory.
 *
 * A row may be promised (sampler.h): it is made when a question needs it, because a rule that rejects a node never asks for
 * the rows behind it. Some questions need less than the row: what one token has is known from its logit once the end of the
 * nucleus and its mass are. The answers are those of the row to the bit, so nobody can tell. */
#ifndef WG_CORE_DIST_ROWS_H
#define WG_CORE_DIST_ROWS_H

#include <stdint.h>

#include "core/base/error.h"
#include "core/dist/chance.h"

enum { WG_SCRATCH_ROWS = 6 };

struct wg_sampler;
typedef enum wg_row_state { WG_ROW_MADE, WG_ROW_PROMISED, WG_ROW_KNOWN } wg_row_state;

/* What becomes of a promised row. Known: token x has exp((logits[x] - max) / T) * scale if it is not behind the token `last`
 * of logit `edge` and not lighter than `lightest`, else 0; its storage is still undefined, its support is all of the
 * vocabulary. */
typedef struct wg_promise {
    wg_row_state state;
    int32_t last;
    float max, edge;
    double lightest, scale;
    int32_t best;        /* argmax of the logits; -1: not looked for yet */
    double least;        /* what is kept has at least this mass, and is most of the vocabulary, when not 0 (wg_rows_most) */
    const float *logits; /* (vocab) borrowed until the row is made or forgotten */
    struct wg_sampler *sampler;
} wg_promise;

typedef struct wg_rows {
    int n, cap, vocab;
    double *p;        /* (cap, vocab); a row sums to 1 (to rounding). Undefined where point >= 0 */
    int32_t *point;   /* (cap): the token that has all the mass (temperature 0, a fixed proposal), or -1 */
    double *scratch;  /* (WG_SCRATCH_ROWS, vocab): working rows for rules. The functions below use the first two */
    int room;         /* most tokens of a known support */
    int32_t *support; /* (cap, room): the tokens that have mass, ascending, of a row that was truncated */
    int *supported;   /* (cap): how many they are; all other tokens' storage is 0. -1: not known, any token may have mass */
    double *packed;   /* (room): a sum or a draw over a support */
    wg_promise *promise; /* (cap) */
} wg_rows;

wg_status wg_rows_open(wg_rows *r, int cap, int vocab, wg_error *err);
void wg_rows_close(wg_rows *r);
static inline void wg_rows_clear(wg_rows *r) { r->n = 0; }
int wg_rows_push(wg_rows *r); /* a new row, contents undefined; -1 when full */

/* Makes the row zero but for n <= room tokens, ascending. Costs what they and the row's old support cost. */
void wg_rows_set(wg_rows *r, int row, const int32_t *token, const double *mass, int n);

/* Keeping promises: whether the row is a point and its support are known; all of it is there; what one token has. */
WG_PLUGIN_API void wg_rows_know(const wg_rows *r, int row);
WG_PLUGIN_API void wg_rows_make(const wg_rows *r, int row);
WG_PLUGIN_API double wg_rows_promised(const wg_rows *r, int row, int32_t token);

/* At least what the token has, and seldom much more: of a promised row that most of the vocabulary is in, in a fourth of the
 * time. */
WG_PLUGIN_API double wg_rows_most(const wg_rows *r, int row, int32_t token);

/* The token that has all the mass, or -1. */
static inline int32_t wg_rows_point(const wg_rows *r, int row)
{
    if (r->promise[row].state == WG_ROW_PROMISED) wg_rows_know(r, row);
    return r->point[row];
}
static inline double *wg_rows_at(const wg_rows *r, int row)
{
    if (r->promise[row].state != WG_ROW_MADE) wg_rows_make(r, row);
    return r->p + (long)row * r->vocab;
}
static inline double wg_rows_prob(const wg_rows *r, int row, int32_t token)
{
    if (r->promise[row].state != WG_ROW_MADE) return wg_rows_promised(r, row, token);
    return r->point[row] >= 0 ? (double)(r->point[row] == token) : wg_rows_at(r, row)[token];
}

/* The tokens that may have mass: token wg_support_at(s, k) for k < s.n, ascending; of a point row all of the vocabulary. A loop
 * over them that adds up p, or what is 0 where p is, has the bits of the loop over the vocabulary: adding 0 changes nothing. */
typedef struct wg_support { const int32_t *token; int n; } wg_support; /* token NULL: all of the vocabulary */
static inline wg_support wg_rows_support(const wg_rows *r, int row)
{
    if (wg_rows_point(r, row) >= 0 || r->supported[row] < 0) return (wg_support){ 0, r->vocab };
    return (wg_support){ r->support + (long)row * r->room, r->supported[row] };
}
static inline int32_t wg_support_at(const wg_support *s, int k) { return s->token ? s->token[k] : k; }

WG_PLUGIN_API int32_t wg_rows_argmax(const wg_rows *r, int row); /* lowest id on ties */

/* The row as `vocab` doubles: its own storage, or out[] filled for a point row. */
WG_PLUGIN_API const double *wg_rows_dense(const wg_rows *r, int row, double *out);

/* Draws from the row. */
WG_PLUGIN_API int32_t wg_rows_pick(const wg_rows *r, int row, const wg_chance *c, wg_purpose purpose, int index);

/* The winner of a race of the row's tokens. */
WG_PLUGIN_API int32_t wg_rows_race(const wg_rows *r, int row, const wg_chance *c, wg_purpose purpose, wg_lists lists);

/* A draw from weights (vocab) that are 0 outside the support of row `row` (any row when that is not known). */
WG_PLUGIN_API int32_t wg_rows_pick_of(const wg_rows *r, int row, const double *weight, const wg_chance *c, wg_purpose purpose,
                                      int index);

/* The sum (weights.h) of weights (vocab) that are 0 outside the support of row `row`. */
WG_PLUGIN_API double wg_rows_sum(const wg_rows *r, int row, const double *weight);

/* Draws from norm((p - q)+); from p when that has no mass (p == q to rounding; METHODS B15-1). qrow < 0: q = 0, that is from
 * p. */
WG_PLUGIN_API int32_t wg_rows_pick_residual(const wg_rows *p, int prow, const wg_rows *q, int qrow, const wg_chance *c,
                                            wg_purpose purpose, int index);

/* (r p - q)+ into out (vocab; NULL: nowhere) where p may have mass; its mass (kernels/mass.h). Uses p's second scratch row. */
WG_PLUGIN_API double wg_rows_excess(const wg_rows *p, int prow, double r, const wg_rows *q, int qrow, double *out);

/* -sum p log p, in nats: a mass of weights (kernels/mass.h). */
WG_PLUGIN_API double wg_rows_entropy(const wg_rows *r, int row);

/* sum_x min(p(x), q(x)): the acceptance a token-wise rule can have at this node (METHODS D1, alpha). */
WG_PLUGIN_API double wg_rows_overlap(const wg_rows *p, int prow, const wg_rows *q, int qrow);

#endif
