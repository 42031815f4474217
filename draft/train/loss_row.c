/* SPDX-License-Identifier: MIT
 * One row of the losses. Every term is a function of probabilities, L(q_1 .. q_n), so with h_k = q_k dL/dq_k the gradient of
 * the softmax is dL/ds_v = h_v - q_v sum_k h_k. The code computes h, which is finite where dL/dq is not. */
#include <float.h>
#include <math.h>

#include "draft/train/loss_impl.h"

static const double least = DBL_MIN; /* stands for a probability of 0 under a logarithm */

/* log sum exp of s; -inf where all are. */
static double log_sum(const double *s, int n)
{
    double most = -INFINITY, total = 0;
    for (int v = 0; v < n; v++) most = s[v] > most ? s[v] : most;
    for (int v = 0; v < n; v++)
        if (s[v] != -INFINITY) total += exp(s[v] - most);
    return total == 0 ? -INFINITY : most + log(total);
}

void wg_loss_fill(wg_loss *l, const wg_loss_target *t, const wg_loss_row *r)
{
    for (int v = 0; v < l->vocab; v++) {
        l->log_q[v] = l->s[v] - r->sum;
        l->log_p[v] = log(t->p[v]);
    }
}

static void overlap(const wg_loss *l, const wg_loss_target *t, wg_loss_row *r)
{
    const int n = l->vocab;
    double most = -INFINITY, sum = 0;
    r->kl = r->alpha = 0;
    for (int k = 0; k < n; k++) {
        const double p = t->p[k], log_p = l->log_p[k], log_q = l->log_q[k];
        const double less = log_q < log_p ? log_q : log_p;
        if (p > 0) r->kl += p * (log_p - (log_q > -INFINITY ? log_q : log(least)));
        r->alpha += exp(less);
        if (less > most) most = less;
    }
    for (int k = 0; k < n && most > -INFINITY; k++) sum += exp((l->log_q[k] < l->log_p[k] ? l->log_q[k] : l->log_p[k]) - most);
    r->log_alpha = most > -INFINITY ? most + log(sum) : -INFINITY;
}

void wg_loss_measure(wg_loss *l, const wg_loss_target *t, wg_loss_row *r)
{
    r->sum = log_sum(l->s, l->vocab);
    wg_loss_fill(l, t, r);
    overlap(l, t, r);
    if (t->text >= 0) {
        r->log_p_text = l->log_p[t->text];
        r->log_q_text = l->log_q[t->text];
    }
    if (!(fabs(r->sum) < INFINITY)) r->sum = r->kl = r->alpha = r->log_alpha = NAN; /* a NaN, +inf, or no token at all */
}

static void reverse_kl(wg_loss *l, double weight, double *value)
{
    const double log_floor = log(l->spec.floor);
    for (int k = 0; k < l->vocab; k++) {
        const double log_p = l->log_p[k] > log_floor ? l->log_p[k] : log_floor, log_q = l->log_q[k], q = exp(log_q);
        if (q == 0) continue;
        *value += q * (log_q - log_p);
        l->h[k] += weight * q * (log_q - log_p + 1);
    }
}

static void jsd(wg_loss *l, const wg_loss_target *t, double weight, double *value)
{
    const double b = l->spec.jsd_beta;
    for (int k = 0; k < l->vocab; k++) {
        const double p = t->p[k], q = exp(l->log_q[k]), log_m = log(b * p + (1 - b) * q);
        if (p > 0) *value += b * p * (l->log_p[k] - log_m);
        if (q == 0) continue;
        *value += (1 - b) * q * (l->log_q[k] - log_m);
        l->h[k] += weight * (1 - b) * q * (l->log_q[k] - log_m);
    }
}

void wg_loss_terms(const wg_loss_target *t, const wg_loss_row *r, double scale, double lk, const double value[2], double log_q,
                   double *term)
{
    const double tv = 1 - r->alpha;
    term[WG_LOSS_KL] += scale * r->kl;
    term[WG_LOSS_REVERSE_KL] += scale * value[0];
    term[WG_LOSS_JSD] += scale * value[1];
    term[WG_LOSS_TV] += scale * tv;
    term[WG_LOSS_NLA] -= scale * (r->log_alpha == -INFINITY ? log(least) : r->log_alpha);
    term[WG_LOSS_LK] += scale * (lk * r->kl + (1 - lk) * tv);
    if (t->text >= 0) term[WG_LOSS_CE] -= scale * (log_q == -INFINITY ? log(least) : log_q);
}

void wg_loss_distances(wg_loss *l, const wg_loss_target *t, const wg_loss_row *r, double scale, double lk, double *term)
{
    const double *w = l->spec.weight;
    const double of_kl = scale * (w[WG_LOSS_KL] + lk * w[WG_LOSS_LK]);
    const double of_tv = scale * (w[WG_LOSS_TV] + (1 - lk) * w[WG_LOSS_LK]), of_nla = scale * w[WG_LOSS_NLA];
    double value[2] = { 0, 0 };
    for (int k = 0; k < l->vocab; k++) {
        const double log_q = l->log_q[k];
        if (log_q > -INFINITY) l->h[k] -= of_kl * t->p[k];
        if (!(log_q < l->log_p[k]) || log_q == -INFINITY) continue;
        l->h[k] -= of_tv * exp(log_q) + of_nla * exp(log_q - r->log_alpha);
    }
    if (w[WG_LOSS_REVERSE_KL] > 0) reverse_kl(l, scale * w[WG_LOSS_REVERSE_KL], &value[0]);
    if (w[WG_LOSS_JSD] > 0) jsd(l, t, scale * w[WG_LOSS_JSD], &value[1]);
    wg_loss_terms(t, r, scale, lk, value, t->text >= 0 ? l->s[t->text] - r->sum : 0, term);
}

void wg_loss_spread(wg_loss *l, const wg_loss_target *t, double text)
{
    const bool lacks = t->text < 0 || l->s[t->text] == -INFINITY;
    double all = lacks ? 0 : text;
    for (int v = 0; v < l->vocab; v++) all += l->h[v];
    for (int v = 0; v < l->vocab; v++) l->s[v] = l->h[v] - exp(l->log_q[v]) * all;
    if (!lacks) l->s[t->text] += text;
}
