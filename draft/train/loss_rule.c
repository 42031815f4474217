/* SPDX-License-Identifier: MIT
 * The loss for the rule along a block (loss.h has the derivation). With m = log(M/R) and q = log(Q/R) of the prefix, a row adds
 * to F the sum over v of min(e^m p(v), e^q q(v)); for rejection sampling Q stands for M. The way back carries dF/dm and dF/dq
 * from the last row to the first. */
#include <math.h>

#include "draft/train/loss_impl.h"

wg_loss_chain wg_loss_chain_begin(bool block, int prefix)
{
    return (wg_loss_chain){ .block = block, .there = true, .prefix = prefix };
}

static void add_sides(const wg_loss *l, wg_loss_step *out)
{
    for (int k = 0; k < l->vocab; k++) {
        const double by_p = out->m + l->log_p[k], by_q = out->q + l->log_q[k];
        if (by_q < by_p) out->by_q += exp(by_q);
        else out->by_p += exp(by_p);
    }
}

void wg_loss_chain_step(wg_loss_chain *c, const wg_loss *l, const wg_loss_target *t, const wg_loss_row *r,
                        const float *narrow_q, wg_loss_step *out)
{
    *out = (wg_loss_step){ .there = c->there, .m = c->m, .q = c->q };
    if (!c->there) return;
    if (r->narrow) wg_loss_narrow_sums(t, r, narrow_q, l->vocab, out);
    else add_sides(l, out);
    if (isnan(r->sum)) out->by_q = NAN;
    const double f = out->by_p + out->by_q, p = r->log_p_text, q = r->log_q_text;
    c->there = t->text >= 0 && p > -INFINITY && q > -INFINITY && f > 0;
    if (!c->there) return;
    const double by_p = c->m + p, by_q = c->q + q; /* both divided by R of the prefix */
    out->of_q = by_q < by_p;
    c->m = out->of_q ? by_q : by_p;
    c->q = c->block ? by_q : c->m;
    const double drawn = c->prefix == WG_LOSS_TARGET ? p : c->prefix == WG_LOSS_DRAFT ? q : c->m - log(f);
    c->m -= drawn;
    c->q -= drawn;
}

void wg_loss_chain_back(bool block, int prefix, wg_loss_row *row, int n, int rule)
{
    double m = 0, q = 0, deeper = 0; /* dF/dm and dF/dq after the row; sum of the addends from here on */
    for (int i = n - 1; i >= 0; i--) {
        wg_loss_step *s = &row[i].step[rule];
        if (!s->there) continue;
        const double f = s->by_p + s->by_q;
        if (block) {
            if (s->of_q) q += m, m = 0;
            s->at_text = q;
        } else s->at_text = s->of_q ? m : 0;
        deeper += f;
        s->scale = prefix != WG_LOSS_ANY ? 1 : f > 0 ? deeper / f : 0;
        if (prefix != WG_LOSS_ANY) m += block ? s->by_p : f;
        else if (block) m -= s->scale * s->by_q; /* F depends on q - m alone */
        if (block) q += s->scale * s->by_q;
    }
}

void wg_loss_chain_row(wg_loss *l, const wg_loss_target *t, const wg_loss_step *s, double weight)
{
    if (!s->there) return;
    for (int k = 0; k < l->vocab; k++) {
        const double by_q = s->q + l->log_q[k];
        if (by_q < s->m + l->log_p[k]) l->h[k] += weight * s->scale * exp(by_q);
    }
    if (t->text >= 0) l->h[t->text] += weight * s->at_text;
}
