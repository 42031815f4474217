/* SPDX-License-Identifier: MIT
 * The audit of a drafter at run time: anytime-valid evidence against its declared laws.
 *
 * The hypotheses. Draws: each drafted token of law IID or WITHOUT_REPLACEMENT is drawn from its declared row of q, without the
 * earlier siblings under the second law. Kept: the root keeps a child with probability alpha* (optimal_acceptance.h) at most,
 * which holds for every lossless rule whose drafts do not depend on its own draws (methods.md, L2).
 *
 * The evidence. A bet multiplies its capital by 1 + share (r(x) / q(x) - 1) for a drawn token x, where r is a law that was
 * fixed before the draw: the mean of the factor under q is 1, whatever was drawn before, so the capital is a test martingale.
 * The laws r: q^2 and sqrt(q), normalised (q was sharpened or flattened); the most probable token of q; p, the target's row
 * (draws that use more of the target than q raise acceptance). Each has three shares. A bet against "kept" multiplies by 1 +
 * share (kept / alpha* - 1), of mean 1 at most. The mean of the bets' capitals is an e-value: by Ville's inequality the
 * probability that it ever reaches 1000, at any of the times it is looked at, is at most 1/1000 for a drafter that draws as
 * declared (Ville 1939; Shafer 2021; Vovk and Wang 2021; Ramdas, Grunwald, Vovk and Shafer 2023).
 *
 * All bets are fixed in advance, so logs of capitals of requests, shards and sessions add up in any order. A token without
 * probability in its row, and a row that is not a distribution, are not due to chance and are counted. */
#ifndef WG_CORE_DIST_AUDIT_H
#define WG_CORE_DIST_AUDIT_H

#include <stddef.h>

#include "core/dist/rows.h"
#include "core/dist/tree.h"

enum { WG_AUDIT_LAWS = 4, WG_AUDIT_SHARES = 3, WG_AUDIT_BETS = WG_AUDIT_LAWS * WG_AUDIT_SHARES };

typedef struct wg_audit {
    long draws;                /* tested tokens */
    long massless;             /* requests that ended because a row of q gave a drafted token no probability */
    long unscaled;             /* rows of q with a negative entry, or whose sum is not 1 to 1e-4: their tokens are not tested */
    double bet[WG_AUDIT_BETS]; /* natural logs of capital */
    long roots;                /* steps whose root had children of a number fixed before the draws */
    double kept[WG_AUDIT_SHARES];
    long undeclared; /* steps whose root had several drawn children of undeclared number, which may depend on the draws; if
                      * there is one, "kept" is not tested */
} wg_audit;

static inline bool wg_audit_is_empty(const wg_audit *a) { return !(a->draws || a->massless || a->unscaled || a->roots); }
void wg_audit_add(wg_audit *to, const wg_audit *from);

/* Tests the draws of a tree. p: row tree->row + i follows node i; q: rows by the tree's qrow. Costs passes over the support of
 * each row of q. */
void wg_audit_draws(wg_audit *a, const wg_tree *t, wg_rows *p, wg_rows *q);

/* Tests whether a child of the root was kept. alpha_star: the optimum there (wg_optimal_alpha; negative or NaN: unknown). */
void wg_audit_kept(wg_audit *a, const wg_tree *t, double alpha_star, bool kept);

/* log10 of the e-values; 0 without evidence. */
double wg_audit_draws_log10(const wg_audit *a);
double wg_audit_kept_log10(const wg_audit *a);

/* The evidence against the drafter, in words, in buf: an e-value of 1000 or more, or a count. NULL: none. */
const char *wg_audit_draws_found(const wg_audit *a, char *buf, size_t size);
const char *wg_audit_kept_found(const wg_audit *a, char *buf, size_t size);

#endif
