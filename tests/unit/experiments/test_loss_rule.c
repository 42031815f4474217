/* SPDX-License-Identifier: MIT
 * The losses for a rule against the rule's own code: minus their mean over texts is the expected number of tokens that the
 * prover counts by enumeration, and the mean of their gradients is its finite difference. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "draft/train/loss.h"
#include "verify/proof/prove.h"
#include "kernels/philox.h"
#include "verify/verify.h"

enum { V = 3, K = 3, TEXTS = 1 + V + V * V + V * V * V, BLOCKS = V * V * V };

/* Tables by text: number 0 is the empty one, text t and then x is V t + 1 + x. */
typedef struct tables {
    double p[TEXTS * V], q[TEXTS * V], z[TEXTS * V];
} tables;

static wg_error err;

static double uniform(int c, int at, int x, int which)
{
    const wg_philox r = wg_philox_at(5, (uint32_t)c, (uint32_t)at, (uint32_t)x, (uint32_t)which);
    return wg_philox_double(r.v[0], r.v[1]);
}

static void soften(tables *t)
{
    for (int at = 0; at < TEXTS; at++) {
        double sum = 0;
        for (int x = 0; x < V; x++) sum += t->q[at * V + x] = exp(t->z[at * V + x]);
        for (int x = 0; x < V; x++) t->q[at * V + x] /= sum;
    }
}

/* Every third case has rows of p with a zero. */
static void make(tables *t, int c)
{
    for (int at = 0; at < TEXTS; at++) {
        double sum = 0;
        for (int x = 0; x < V; x++) {
            t->z[at * V + x] = 3 * uniform(c, at, x, 0);
            sum += t->p[at * V + x] = c % 3 == 2 && x == at % V ? 0 : pow(uniform(c, at, x, 1), 1 + c % 3) + 1e-2;
        }
        for (int x = 0; x < V; x++) t->p[at * V + x] /= sum;
    }
    soften(t);
}

static double tau_of(const wg_verifier_class *rule, const tables *t)
{
    const wg_prove_options o = { .vocab = V, .depth = K, .children = 1, .law = WG_LAW_IID };
    wg_prove_result out = { 0 };
    cr_assert_eq(wg_prove_texts(&o), TEXTS);
    cr_assert_eq(wg_prove_case(rule, &o, &(wg_prove_tables){ .p = t->p, .q = t->q }, &out, &err), WG_OK, "%s", err.text);
    return out.tau / (out.cases > 0 ? out.cases : 1);
}

/* The probability with which a prefix's next token is y: under p, q, or the law of accepted tokens. */
static double chance(const tables *t, int at, int y, int prefix, bool block, double *ratio)
{
    const double *p = t->p + at * V, *q = t->q + at * V;
    if (prefix != WG_LOSS_ANY) return prefix == WG_LOSS_TARGET ? p[y] : q[y];
    double sum = 0;
    for (int x = 0; x < V; x++) sum += fmin(*ratio * p[x], q[x]);
    const double own = fmin(*ratio * p[y], q[y]) / sum;
    if (block) *ratio = fmin(1, *ratio * p[y] / q[y]);
    return own;
}

/* The mean of minus the loss over all texts of K tokens, and of its gradient by the table's logits. */
static double mean_of(const char *rule, int prefix, const tables *t, double gradient[TEXTS * V])
{
    wg_loss *l;
    wg_loss_value out;
    wg_loss_spec spec;
    double mean = 0;
    const bool block = strcmp(rule, "block") == 0;
    wg_option_defaults(wg_loss_options, &spec);
    spec.weight[block ? WG_LOSS_BLOCK : WG_LOSS_REJECTION] = 1;
    spec.length = K;
    spec.prefix = prefix;
    cr_assert_eq(wg_loss_open(&l, &spec, 1, K, V, &err), WG_OK);
    memset(gradient, 0, TEXTS * V * sizeof *gradient);
    for (int y = 0; y < BLOCKS; y++) {
        wg_loss_target target[K];
        double z[K * V], weight = 1, ratio = 1;
        int at[K], text = 0;
        for (int i = 0, left = y; i < K; i++, left /= V) {
            at[i] = text;
            target[i] = (wg_loss_target){ .p = t->p + text * V, .text = left % V };
            memcpy(z + i * V, t->z + text * V, V * sizeof *z);
            weight *= chance(t, text, left % V, prefix, block, &ratio);
            text = text * V + 1 + left % V;
        }
        wg_loss_rows_double(l, target, K, z, z, &out);
        if (!(weight > 0)) continue; /* no such text */
        mean -= weight * out.loss / K;
        for (int i = 0; i < K; i++)
            for (int x = 0; x < V; x++) gradient[at[i] * V + x] -= weight * z[i * V + x] / K;
    }
    wg_loss_close(l);
    return mean;
}

static void compare(const char *name, const wg_verifier_class *rule, int prefix, int c)
{
    static tables t;
    static double gradient[TEXTS * V];
    make(&t, c);
    const double mean = mean_of(name, prefix, &t, gradient), tau = tau_of(rule, &t);
    cr_assert_float_eq(mean, tau, 1e-12, "%s, prefix %d, case %d: %.15g, enumerated %.15g", name, prefix, c, mean, tau);
    if (prefix == WG_LOSS_ANY) return; /* its gradient is biased, as stated */
    for (int k = 0; k < (1 + V + V * V) * V; k += 1 + c % 3) {
        const double z = t.z[k], step = 1e-5;
        t.z[k] = z + step, soften(&t);
        const double up = tau_of(rule, &t);
        t.z[k] = z - step, soften(&t);
        const double down = tau_of(rule, &t), want = (up - down) / (2 * step);
        t.z[k] = z, soften(&t);
        cr_assert_float_eq(gradient[k], want, 1e-9, "%s, prefix %d, case %d, text %d: %.12g, differences %.12g", name, prefix,
                           c, k / V, gradient[k], want);
    }
}

Test(loss_rule, is_the_expected_number_of_tokens)
{
    for (int c = 0; c < 6; c++)
        for (int prefix = WG_LOSS_TARGET; prefix <= WG_LOSS_ANY; prefix++) {
            compare("rejection", &wg_verifier_rejection, prefix, c);
            compare("block", &wg_verifier_block, prefix, c);
        }
}
