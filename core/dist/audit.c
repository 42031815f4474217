/* SPDX-License-Identifier: MIT
 * The audit of drafts (audit.h). */
#include "core/dist/audit.h"

#include <math.h>
#include <stdio.h>

#include "kernels/exp.h"
#include "kernels/ln.h"

static const double share[WG_AUDIT_SHARES] = { 0.75, 0.2, 0.04 };
static const double threshold = 3;      /* log10 of an e-value that counts as evidence */
static const double most = 1e12;        /* largest ratio; a cut only lowers the mean of a factor */
static const double little = 1e-6;      /* smallest rest of a row to divide by */
static const double tolerance = 1e-4;   /* allowed error of a row's sum */
static const double alpha_error = 1e-9; /* error of alpha* */

void wg_audit_add(wg_audit *to, const wg_audit *from)
{
    to->draws += from->draws;
    to->massless += from->massless;
    to->unscaled += from->unscaled;
    for (int i = 0; i < WG_AUDIT_BETS; i++) to->bet[i] += from->bet[i];
    to->roots += from->roots;
    for (int i = 0; i < WG_AUDIT_SHARES; i++) to->kept[i] += from->kept[i];
    to->undeclared += from->undeclared;
}

/* Bets on an event with `ratio` times its probability under the hypothesis; NaN: unknown, no bet. */
static void bet(double *log_capital, double ratio)
{
    if (!(ratio >= 0)) return;
    const double r = ratio < most ? ratio : most;
    for (int s = 0; s < WG_AUDIT_SHARES; s++) log_capital[s] += wg_log64_of(1 + share[s] * (r - 1));
}

/* ---- draws */

enum { SQUARE, ROOT, BEST, TARGET };
_Static_assert(TARGET + 1 == WG_AUDIT_LAWS, "a law of bets each");

/* A row of q, and the sums of its alternatives. */
typedef struct declared {
    double sum, square, root;
    int32_t best;
} declared;

static declared sums_of(wg_rows *q, int row)
{
    const double *d = wg_rows_at(q, row);
    const wg_support s = wg_rows_support(q, row);
    declared v = { .best = 0 };
    for (int k = 0; k < s.n; k++) {
        const int32_t token = wg_support_at(&s, k);
        const double x = d[token];
        if (x == 0) continue; /* most tokens of a truncated row whose support is not known */
        if (!(x > 0)) return (declared){ .sum = NAN };
        v.sum += x;
        v.square += x * x;
        v.root += sqrt(x);
        if (x > d[v.best]) v.best = token;
    }
    return v;
}

/* The weight of a token under each alternative. */
static void weights_of(const declared *v, int32_t x, double qx, double px, double w[WG_AUDIT_LAWS])
{
    w[SQUARE] = qx * qx;
    w[ROOT] = sqrt(qx);
    w[BEST] = x == v->best;
    w[TARGET] = px;
}

/* The children of a node. Under law WITHOUT_REPLACEMENT q and every alternative lose the tokens that have been drawn. */
static void audit_children(wg_audit *a, const wg_tree *t, int node, wg_rows *p, wg_rows *q)
{
    const int first = wg_tree_child(t, node, node), row = t->qrow[first];
    if (wg_rows_one_hot(q, row) >= 0) {
        for (int child = first; child >= 0; child = wg_tree_child(t, node, child)) a->draws++;
        return;
    }
    const declared v = sums_of(q, row);
    if (!(fabs(v.sum - 1) <= tolerance)) {
        a->unscaled++;
        return;
    }
    double left = v.sum, rest[WG_AUDIT_LAWS] = { v.square, v.root, 1, 1 };
    for (int child = first; child >= 0 && left > little; child = wg_tree_child(t, node, child)) {
        const int32_t x = t->token[child];
        const double qx = wg_rows_prob(q, row, x);
        double w[WG_AUDIT_LAWS];
        weights_of(&v, x, qx, wg_rows_prob(p, t->row + node, x), w);
        if (!(qx > 0)) return; /* the engine refuses and counts it */
        a->draws++;
        for (int i = 0; i < WG_AUDIT_LAWS; i++) {
            if (rest[i] > little) bet(a->bet + i * WG_AUDIT_SHARES, w[i] / rest[i] * (left / qx));
            if (t->law == WG_LAW_WITHOUT_REPLACEMENT) rest[i] -= w[i];
        }
        if (t->law == WG_LAW_WITHOUT_REPLACEMENT) left -= qx;
    }
}

void wg_audit_draws(wg_audit *a, const wg_tree *t, wg_rows *p, wg_rows *q)
{
    if (!(t->law & (WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT))) return;
    for (int node = 0; node < t->n; node++)
        if (wg_tree_child(t, node, node) >= 0) audit_children(a, t, node, p, q);
}

/* ---- kept */

void wg_audit_kept(wg_audit *a, const wg_tree *t, double alpha_star, bool kept)
{
    if (!(alpha_star >= 0) || t->law == WG_LAW_COUPLED) return;
    const int first = wg_tree_child(t, 0, 0);
    if (t->law != WG_LAW_FIXED && t->group[0] < 0 && wg_tree_child(t, 0, first) >= 0) {
        a->undeclared++;
        return;
    }
    const double bound = alpha_star + alpha_error;
    a->roots++;
    if (bound < 1) bet(a->kept, kept ? 1 / bound : 0);
}

/* ---- the verdict */

/* log10 of the mean of exp(log[i]). */
static double log10_mean(const double *log, int n)
{
    double largest = log[0], sum = 0;
    for (int i = 1; i < n; i++) largest = log[i] > largest ? log[i] : largest;
    for (int i = 0; i < n; i++) sum += wg_exp64_of(log[i] - largest);
    return (largest + wg_log64_of(sum / n)) / 0x1.26bb1bbb55516p+1; /* ln 10 */
}

double wg_audit_draws_log10(const wg_audit *a) { return log10_mean(a->bet, WG_AUDIT_BETS); }
double wg_audit_kept_log10(const wg_audit *a) { return a->undeclared ? 0 : log10_mean(a->kept, WG_AUDIT_SHARES); }

const char *wg_audit_draws_found(const wg_audit *a, char *buf, size_t size)
{
    const double e = wg_audit_draws_log10(a);
    if (a->massless) snprintf(buf, size, "a drafted token has no probability in its row of q (%ld requests)", a->massless);
    else if (a->unscaled) snprintf(buf, size, "%ld rows of q have a negative probability or do not sum to 1", a->unscaled);
    else if (e >= threshold)
        snprintf(buf, size, "drafts were not drawn from the declared rows of q (e-value 1e%.0f after %ld tokens)", floor(e),
                 a->draws);
    else return NULL;
    return buf;
}

const char *wg_audit_kept_found(const wg_audit *a, char *buf, size_t size)
{
    const double e = wg_audit_kept_log10(a);
    if (e < threshold) return NULL;
    snprintf(buf, size, "more drafts were kept than alpha* allows (e-value 1e%.0f after %ld steps)", floor(e), a->roots);
    return buf;
}
