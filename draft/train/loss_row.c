/* SPDX-License-Identifier: MIT
 * One row of the losses. Every term is a function of the probabilities of classes, L(q_1 .. q_n), so with h_k = q_k dL/dq_k the
 * gradient of the softmax is dL/ds_v = h(v) - q_v sum_k h_k. The code computes h, which is finite where dL/dq is not. A class
 * of several tokens divides its h among them in proportion to q. */
#include <float.h>
#include <math.h>

#include "draft/train/loss_impl.h"

static const double least = DBL_MIN; /* stands for a probability of 0 under a logarithm */

int wg_loss_class(const wg_loss *l, const wg_loss_target *t, int32_t token)
{
    int lo = 0, hi = wg_loss_listed(l, t);
    if (!t->token) return token;
    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        if (t->token[mid] < token) lo = mid + 1;
        else hi = mid;
    }
    return lo < t->n && t->token[lo] == token ? lo : t->n;
}

/* log(exp(a) + exp(b)) */
static double log_add(double a, double b)
{
    const double most = a > b ? a : b;
    return most > -INFINITY ? most + log(exp(a - most) + exp(b - most)) : a + b;
}

/* Sets sum[] to log sum exp of the listed tokens, and of the others. */
static void sums(const wg_loss *l, const wg_loss_target *t, double sum[2])
{
    double most[2] = { -INFINITY, -INFINITY }, total[2] = { 0, 0 };
    for (int pass = 0; pass < 2; pass++)
        for (int v = 0, k = 0; v < l->vocab; v++) {
            const double s = l->s[v];
            const bool other = t->token && !(k < t->n && t->token[k] == v);
            if (!other) k++;
            if (pass == 0) most[other] = s > most[other] ? s : most[other];
            else if (s != -INFINITY) total[other] += exp(s - most[other]);
        }
    for (int i = 0; i < 2; i++) sum[i] = total[i] == 0 ? -INFINITY : most[i] + log(total[i]);
}

void wg_loss_fill(wg_loss *l, const wg_loss_target *t, const wg_loss_row *r)
{
    const int n = wg_loss_listed(l, t);
    for (int k = 0; k < n; k++) l->log_q[k] = l->s[wg_loss_token(t, k)] - r->sum;
    if (t->token) l->log_q[n] = r->rest - r->sum;
    for (int k = 0; k < wg_loss_classes(l, t); k++) l->log_p[k] = log(wg_loss_p(t, k));
}

static void overlap(const wg_loss *l, const wg_loss_target *t, wg_loss_row *r)
{
    const int n = wg_loss_classes(l, t);
    double most = -INFINITY, sum = 0;
    r->kl = r->alpha = 0;
    for (int k = 0; k < n; k++) {
        const double p = wg_loss_p(t, k), log_p = l->log_p[k], log_q = l->log_q[k];
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
    double sum[2];
    sums(l, t, sum);
    r->rest = sum[1];
    r->sum = log_add(sum[0], sum[1]);
    wg_loss_fill(l, t, r);
    overlap(l, t, r);
    if (t->text >= 0) {
        const int k = wg_loss_class(l, t, t->text);
        r->log_p_text = l->log_p[k];
        r->log_q_text = l->log_q[k];
    }
    if (!(fabs(r->sum) < INFINITY)) r->sum = r->kl = r->alpha = r->log_alpha = NAN; /* a NaN, +inf, or no token at all */
}

/* The reverse KL of tokens with p = 0 that are not listed: value and h of each depend on its own q. */
static double apart(const wg_loss *l, const wg_loss_target *t, const wg_loss_row *r, double *h)
{
    const double log_floor = log(l->spec.floor);
    double value = 0;
    *h = 0;
    for (int v = 0, k = 0; v < l->vocab; v++) {
        if (k < t->n && t->token[k] == v) {
            k++;
            continue;
        }
        const double log_q = l->s[v] - r->sum, q = exp(log_q);
        if (q == 0) continue;
        value += q * (log_q - log_floor);
        *h += q * (log_q - log_floor + 1);
    }
    return value;
}

static void reverse_kl(wg_loss *l, const wg_loss_target *t, const wg_loss_row *r, double weight, double *value)
{
    const double log_floor = log(l->spec.floor);
    const bool rest = t->token && t->tail == 0;
    const int n = rest ? t->n : wg_loss_classes(l, t);
    for (int k = 0; k < n; k++) {
        const double log_p = l->log_p[k] > log_floor ? l->log_p[k] : log_floor, log_q = l->log_q[k], q = exp(log_q);
        if (q == 0) continue;
        *value += q * (log_q - log_p);
        l->h[k] += weight * q * (log_q - log_p + 1);
    }
    if (!rest) return;
    double h;
    *value += apart(l, t, r, &h);
    l->apart = weight * h;
}

static void jsd(wg_loss *l, const wg_loss_target *t, double weight, double *value)
{
    const double b = l->spec.jsd_beta;
    for (int k = 0; k < wg_loss_classes(l, t); k++) {
        const double p = wg_loss_p(t, k), q = exp(l->log_q[k]), log_m = log(b * p + (1 - b) * q);
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
    for (int k = 0; k < wg_loss_classes(l, t); k++) {
        const double log_q = l->log_q[k];
        if (log_q > -INFINITY) l->h[k] -= of_kl * wg_loss_p(t, k);
        if (!(log_q < l->log_p[k]) || log_q == -INFINITY) continue;
        l->h[k] -= of_tv * exp(log_q) + of_nla * exp(log_q - r->log_alpha);
    }
    l->apart = 0;
    if (w[WG_LOSS_REVERSE_KL] > 0) reverse_kl(l, t, r, scale * w[WG_LOSS_REVERSE_KL], &value[0]);
    if (w[WG_LOSS_JSD] > 0) jsd(l, t, scale * w[WG_LOSS_JSD], &value[1]);
    wg_loss_terms(t, r, scale, lk, value, t->text >= 0 ? l->s[t->text] - r->sum : 0, term);
}

void wg_loss_spread(wg_loss *l, const wg_loss_target *t, const wg_loss_row *r, double text, double reverse)
{
    const double log_floor = log(l->spec.floor);
    const bool apart = reverse > 0 && t->token && t->tail == 0;
    const bool lacks = t->text < 0 || l->s[t->text] == -INFINITY;
    double all = l->apart + (lacks ? 0 : text);
    for (int k = 0; k < wg_loss_classes(l, t); k++) all += l->h[k];
    for (int v = 0, k = 0; v < l->vocab; v++) {
        const double s = l->s[v], log_q = s - r->sum, q = exp(log_q);
        double h = 0;
        if (!t->token || (k < t->n && t->token[k] == v)) h = l->h[k++];
        else if (s != -INFINITY) {
            h = l->h[t->n] * exp(s - r->rest);
            if (apart && q > 0) h += reverse * q * (log_q - log_floor + 1);
        }
        l->s[v] = h - q * all;
    }
    if (!lacks) l->s[t->text] += text;
}
