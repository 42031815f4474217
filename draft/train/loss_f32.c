/* SPDX-License-Identifier: MIT
 * Rows of the losses in f32: p is given in f32, q is computed by the vector operations of train_ops.h, and a few sums of each
 * row are in double. A token costs one exponential, and a logarithm for each of reverse_kl and jsd. With k = [q < p] and a
 * text's token y the gradient of the logits is
 *     dz = (q (k a + [c q < p] b - H) - p kl + [v = y] t) / T,   H = a below + b below_c - kl sum p + t
 * where a has the weights of tv, nla, lk and rejection, b that of block with c = Q/M, and t those of the text. reverse_kl and
 * jsd add q u to dz and sum q u to H: u = log(q/max(p, floor)) for the one, (1 - b) log(q/m) for the other. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "draft/train/loss_impl.h"

static const double hardly = 1e-30, most = 1e30; /* overlap below which f32 does not suffice; largest Q/M */

/* Q/M of the prefix, bounded. */
static double factor(const wg_loss_step *s)
{
    const double c = exp(s->q - s->m);
    return c < most ? c : most;
}

bool wg_loss_narrow_measure(const wg_loss *l, const wg_loss_target *t, const float *z, float *q, wg_loss_row *r)
{
    wg_row_sums *s = &r->sums;
    if (l->spec.weight[WG_LOSS_REVERSE_KL] > 0 && l->spec.floor < (double)FLT_MIN) return false;
    wg_ops_f32()->row_measure(z, t->narrow, q, l->vocab, l->inverse, s);
    if (!isfinite(s->sum) || !isfinite(s->dot) || !(s->overlap > hardly)) return false;
    const double log_sum = log(s->sum);
    r->sum = s->top * l->inverse + log_sum;
    r->kl = log_sum * s->mass - s->dot - t->entropy;
    r->alpha = s->overlap;
    r->log_alpha = log(s->overlap);
    if (t->text >= 0) {
        r->log_p_text = log((double)t->narrow[t->text]);
        r->log_q_text = (double)z[t->text] * l->inverse - r->sum;
    }
    return true;
}

void wg_loss_narrow_sums(const wg_loss_target *t, const wg_loss_row *r, const float *q, int vocab, wg_loss_step *s)
{
    double side[2] = { r->sums.below, r->sums.overlap - r->sums.below };
    if (s->q != s->m) wg_ops_f32()->row_scaled(t->narrow, q, vocab, factor(s), side);
    s->below = side[0];
    s->by_q = exp(s->q) * side[0];
    s->by_p = exp(s->m) * side[1];
}

/* Computes reverse_kl and jsd: fills more (vocab) with the factors of q in the gradient, adds to H, and sets the values. */
static void ratios(const wg_loss *l, const wg_loss_target *t, const wg_loss_row *r, const float *z, const float *q, float *more,
                   double value[2], double *all)
{
    const double *w = l->spec.weight, b = l->spec.jsd_beta;
    wg_row_ratio of = {
        .z = z, .p = t->narrow, .q = q, .more = more, .n = l->vocab, .inverse = l->inverse, .top = r->sums.top
    };
    of.log_sum = r->sum - r->sums.top * l->inverse;
    memset(more, 0, (size_t)l->vocab * sizeof *more);
    if (w[WG_LOSS_REVERSE_KL] > 0) {
        const double weight = r->position * w[WG_LOSS_REVERSE_KL];
        of.of_p = 1, of.of_q = 0, of.least = l->spec.floor, of.weight = weight * l->inverse;
        wg_ops_f32()->row_ratio(&of);
        value[0] = of.by_q;
        *all += weight * of.by_q;
    }
    if (w[WG_LOSS_JSD] > 0) {
        const double weight = r->position * w[WG_LOSS_JSD] * (1 - b);
        of.of_p = b, of.of_q = 1 - b, of.least = (double)FLT_MIN, of.weight = weight * l->inverse;
        wg_ops_f32()->row_ratio(&of);
        value[1] = (1 - b) * of.by_q - b * (t->entropy + of.by_p);
        *all += weight * of.by_q;
    }
}

void wg_loss_narrow_gradient(const wg_loss *l, const wg_loss_target *t, const wg_loss_row *r, double lk, const float *z,
                             float *q, double *term)
{
    double value[2] = { 0, 0 };
    const double *w = l->spec.weight, scale = r->position;
    const double of_kl = scale * (w[WG_LOSS_KL] + lk * w[WG_LOSS_LK]);
    double of_q = -scale * (w[WG_LOSS_TV] + (1 - lk) * w[WG_LOSS_LK] + w[WG_LOSS_NLA] / r->alpha), of_cq = 0, c = 1;
    double of_text = t->text >= 0 ? -scale * w[WG_LOSS_CE] : 0, all = 0;
    for (int k = 0; k < WG_LOSS_RULES; k++) {
        const wg_loss_step *s = &r->step[k];
        const double weight = -w[WG_LOSS_REJECTION + k] * r->block;
        if (weight == 0 || !s->there) continue;
        const double by_q = weight * s->scale * exp(s->q);
        if (s->q == s->m) of_q += by_q;
        else {
            of_cq = by_q;
            c = factor(s);
            all += by_q * s->below;
        }
        if (t->text >= 0) of_text += weight * s->at_text;
    }
    /* l->s is unused by f32 rows */
    float *more = w[WG_LOSS_REVERSE_KL] > 0 || w[WG_LOSS_JSD] > 0 ? (float *)(void *)l->s : NULL;
    if (more) ratios(l, t, r, z, q, more, value, &all);
    wg_loss_terms(t, r, scale, lk, value, r->log_q_text, term);
    all += of_q * r->sums.below - of_kl * r->sums.mass + of_text;
    const wg_row_gradient g = { .p = t->narrow,
                                .more = more,
                                .q = q,
                                .n = l->vocab,
                                .all = -all * l->inverse,
                                .of_p = -of_kl * l->inverse,
                                .of_q = of_q * l->inverse,
                                .of_cq = of_cq * l->inverse,
                                .c = c };
    wg_ops_f32()->row_gradient(&g);
    if (t->text >= 0) q[t->text] += (float)(of_text * l->inverse);
}
