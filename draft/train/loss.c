/* SPDX-License-Identifier: MIT
 * The losses of a call, in three passes: one measures every row, one goes over blocks from their ends, one computes
 * gradients. */
#include "draft/train/loss.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "draft/train/loss_impl.h"

const char *const wg_loss_names[WG_LOSS_TERMS] = { "kl", "reverse_kl", "jsd", "tv", "nla", "lk", "ce", "rejection", "block" };

/* clang-format off */
#define WEIGHT(name, term, doc) { name, doc, WG_OPT_FLOAT, offsetof(wg_loss_spec, weight[term]), 0, 0, 1e6, NULL, NULL }
static const char *const positions[] = { "uniform", "decay", "dpace", NULL };
static const char *const prefixes[] = { "target", "draft", "any", NULL };
const wg_option wg_loss_options[] = {
    WEIGHT("kl", WG_LOSS_KL, "weight of the forward KL divergence, sum p log(p/q)"),
    WEIGHT("reverse_kl", WG_LOSS_REVERSE_KL, "weight of the reverse KL divergence, sum q log(q/p)"),
    WEIGHT("jsd", WG_LOSS_JSD, "weight of the Jensen-Shannon divergence"),
    WEIGHT("tv", WG_LOSS_TV, "weight of the total variation distance, 1 - alpha"),
    WEIGHT("nla", WG_LOSS_NLA, "weight of -log alpha"),
    WEIGHT("lk", WG_LOSS_LK, "weight of w KL + (1 - w) TV, w = exp(-lk_decay alpha)"),
    WEIGHT("ce", WG_LOSS_CE, "weight of the cross-entropy on the text"),
    WEIGHT("rejection", WG_LOSS_REJECTION, "weight of minus the expected tokens of a step under the rule rejection"),
    WEIGHT("block", WG_LOSS_BLOCK, "weight of minus the expected tokens of a step under the rule block"),
    WG_OPTION_INT(wg_loss_spec, length, 4, 1, 1024, "rows of a block: the length of a draft"),
    WG_OPTION_ENUM(wg_loss_spec, positions, WG_LOSS_UNIFORM, positions,
                   "weights of the rows of a block, for all terms but rejection and block"),
    WG_OPTION_FLOAT(wg_loss_spec, decay, 4, 1e-3, 1e6, "positions decay: row i of a block weighs exp(-(i-1)/decay)"),
    WG_OPTION_FLOAT(wg_loss_spec, dpace_least, 0.5, 0, 1, "positions dpace: the least that a row counts for those behind it"),
    WG_OPTION_ENUM(wg_loss_spec, prefix, WG_LOSS_TARGET, prefixes, "who wrote the text, for rejection and block"),
    WG_OPTION_FLOAT(wg_loss_spec, jsd_beta, 0.5, 0.01, 0.99, "share of p in the mixture of jsd"),
    WG_OPTION_FLOAT(wg_loss_spec, lk_decay, 3, 0, 1e3, "how fast lk turns from KL to TV with alpha"),
    WG_OPTION_BOOL(wg_loss_spec, lk_mean, false, "lk: alpha is the mean over all rows of a call"),
    WG_OPTION_FLOAT(wg_loss_spec, floor, 1e-8, 1e-300, 1e-2, "least p under the logarithm of reverse_kl"),
    WG_OPTION_END
};
/* clang-format on */

wg_status wg_loss_read(wg_loss_spec *out, const json_t *object, wg_error *err)
{
    const char *name;
    json_t *v;
    double any = 0;
    wg_option_defaults(wg_loss_options, out);
    if (!json_is_object(object))
        return wg_fail(err, WG_EINVAL,
                       "loss: expected an object of terms and weights, such as {\"kl\": 1} or {\"tv\": 0.5, "
                       "\"kl\": 0.5}");
    json_object_foreach((json_t *)(uintptr_t)object, name, v) {
        wg_status s;
        if (json_is_number(v))
            s = wg_option_set_number(wg_loss_options, out, name, json_number_value(v), json_is_integer(v), err);
        else
            s = wg_option_set(wg_loss_options, out, name,
                              json_is_boolean(v)  ? json_is_true(v) ? "true" : "false"
                              : json_is_string(v) ? json_string_value(v)
                                                  : "",
                              err);
        if (s) return wg_fail_in(err, s, "loss");
    }
    for (int i = 0; i < WG_LOSS_TERMS; i++) any += out->weight[i];
    if (any > 0) return WG_OK;
    return wg_fail(err, WG_EINVAL,
                   "loss: no term has a weight: expected one or more of kl, reverse_kl, jsd, tv, nla, lk, ce, "
                   "rejection, block above 0");
}

wg_status wg_loss_open(wg_loss **out, const wg_loss_spec *spec, double temperature, int rows, int vocab, wg_error *err)
{
    if (!(temperature >= 0 && temperature < INFINITY) || rows < 1 || vocab < 1)
        return wg_fail(err, WG_EINVAL,
                       "loss: temperature %g, %d rows of %d tokens: expected a temperature >= 0, one row and one "
                       "token or more",
                       temperature, rows, vocab);
    const size_t n = (size_t)vocab, width = 5 * n;
    wg_loss *l = wg_calloc(1, sizeof *l);
    if (!l) return wg_nomem(err, sizeof *l, "a loss");
    *l = (wg_loss){ .spec = *spec, .rows = rows, .vocab = vocab, .inverse = temperature > 0 ? 1 / temperature : 1 };
    l->s = wg_calloc(width, sizeof *l->s);
    l->row = wg_calloc((size_t)rows, sizeof *l->row);
    if (!l->s || !l->row) {
        wg_loss_close(l);
        return wg_nomem(err, width * sizeof *l->s + (size_t)rows * sizeof *l->row, "a loss");
    }
    l->log_q = l->s + n;
    l->log_p = l->log_q + n;
    l->h = l->log_p + n;
    l->wide = l->h + n;
    *out = l;
    return WG_OK;
}

void wg_loss_close(wg_loss *l)
{
    if (!l) return;
    wg_free(l->s);
    wg_free(l->row);
    wg_free(l);
}

/* ---- a call */

/* Logits and gradients of either element type. */
typedef struct logits {
    const float *z;
    float *dz;
    const double *z64;
    double *dz64;
} logits;

static void load(wg_loss *l, const logits *x, int i)
{
    const size_t at = (size_t)i * (size_t)l->vocab;
    for (int v = 0; v < l->vocab; v++) l->s[v] = (x->z ? (double)x->z[at + (size_t)v] : x->z64[at + (size_t)v]) * l->inverse;
}

static void store(const wg_loss *l, const logits *x, int i)
{
    const size_t at = (size_t)i * (size_t)l->vocab;
    for (int v = 0; v < l->vocab; v++) {
        const double d = l->s[v] * l->inverse;
        if (x->z) x->dz[at + (size_t)v] = (float)d;
        else x->dz64[at + (size_t)v] = d;
    }
}

/* Converts a row in f32 to double. */
static wg_loss_target widened(wg_loss *l, const wg_loss_target *t)
{
    wg_loss_target w = *t;
    if (!t->narrow) return w;
    for (int v = 0; v < l->vocab; v++) l->wide[v] = (double)t->narrow[v];
    w.p = l->wide;
    return w;
}

/* The place of q of row i, if it is computed in f32. */
static float *narrow_q(const wg_loss *l, const logits *x, int i) { return x->dz ? x->dz + (size_t)i * (size_t)l->vocab : NULL; }

static void measure_row(wg_loss *l, const wg_loss_target *t, int i, const logits *x, wg_loss_row *r)
{
    const float *z = x->z ? x->z + (size_t)i * (size_t)l->vocab : NULL;
    wg_assert(!t->narrow || !z || z != narrow_q(l, x, i));
    r->narrow = t->narrow && z && wg_loss_narrow_measure(l, t, z, narrow_q(l, x, i), r);
    if (r->narrow) return;
    const wg_loss_target wide = widened(l, t);
    load(l, x, i);
    wg_loss_measure(l, &wide, r);
}

static void measure(wg_loss *l, const wg_loss_target *t, int rows, const logits *x, wg_loss_value *out)
{
    wg_loss_chain chain[WG_LOSS_RULES];
    double alpha = 0;
    int depth = -1; /* depth of the row before; -1: a block begins */
    for (int i = 0; i < rows; i++) {
        wg_loss_row *r = &l->row[i];
        r->depth = -1;
        if (t[i].left_out || t[i].begins || depth == l->spec.length - 1) depth = -1;
        if (t[i].left_out) continue;
        measure_row(l, &t[i], i, x, r);
        r->depth = ++depth;
        for (int k = 0; k < WG_LOSS_RULES; k++) {
            if (l->spec.weight[WG_LOSS_REJECTION + k] == 0) continue;
            if (depth == 0) chain[k] = wg_loss_chain_begin(k == 1, l->spec.prefix);
            wg_loss_chain_step(&chain[k], l, &t[i], r, narrow_q(l, x, i), &r->step[k]);
        }
        out->rows++;
        out->blocks += depth == 0;
        alpha += r->alpha;
        if (t[i].text < 0) depth = -1;
    }
    out->alpha = alpha;
}

/* D-PACE: w_i = sum_{j >= i} prod_{m <= j} ((1 - a) q_m + a), a = dpace_least. A row without a text token counts with its
 * alpha. */
static void weigh_positions(const wg_loss *l, const wg_loss_target *t, wg_loss_row *r, int n)
{
    const double a = l->spec.dpace_least;
    double product = 1;
    for (int i = 0; i < n; i++) {
        const double q = t[i].text >= 0 ? exp(r[i].log_q_text) : r[i].alpha;
        product *= (1 - a) * q + a;
        r[i].position = l->spec.positions == WG_LOSS_DPACE   ? product
                        : l->spec.positions == WG_LOSS_DECAY ? exp(-i / l->spec.decay)
                                                             : 1;
    }
    for (int i = n - 2; i >= 0 && l->spec.positions == WG_LOSS_DPACE; i--) r[i].position += r[i + 1].position;
}

static void finish_blocks(wg_loss *l, const wg_loss_target *t, int rows, wg_loss_value *out)
{
    for (int i = 0, n; i < rows; i += n) {
        n = 1;
        if (l->row[i].depth < 0) continue;
        while (i + n < rows && l->row[i + n].depth > 0) n++;
        weigh_positions(l, t + i, l->row + i, n);
        for (int k = 0; k < WG_LOSS_RULES; k++) {
            if (l->spec.weight[WG_LOSS_REJECTION + k] == 0) continue;
            double tokens = 1;
            wg_loss_chain_back(k == 1, l->spec.prefix, l->row + i, n, k);
            for (int j = 0; j < n; j++) tokens += l->row[i + j].step[k].by_p + l->row[i + j].step[k].by_q;
            out->term[WG_LOSS_REJECTION + k] -= n * tokens;
        }
        for (int j = 0; j < n; j++) l->row[i + j].block = n;
    }
}

static void make_gradient(wg_loss *l, const wg_loss_target *t, const wg_loss_row *r, double lk, wg_loss_value *out)
{
    const double *w = l->spec.weight, scale = r->position;
    wg_loss_fill(l, t, r);
    memset(l->h, 0, (size_t)l->vocab * sizeof *l->h);
    wg_loss_distances(l, t, r, scale, lk, out->term);
    for (int k = 0; k < WG_LOSS_RULES; k++) {
        const double weight = w[WG_LOSS_REJECTION + k];
        if (weight > 0) wg_loss_chain_row(l, t, &r->step[k], -weight * r->block);
    }
    wg_loss_spread(l, t, t->text >= 0 ? -scale * w[WG_LOSS_CE] : 0);
}

static void run(wg_loss *l, const wg_loss_target *t, int rows, const logits *x, wg_loss_value *out)
{
    wg_assert(rows <= l->rows);
    *out = (wg_loss_value){ 0 };
    measure(l, t, rows, x, out);
    finish_blocks(l, t, rows, out);
    for (int i = 0; i < rows; i++) {
        const wg_loss_row *r = &l->row[i];
        const double lk = exp(-l->spec.lk_decay * (l->spec.lk_mean ? out->alpha / out->rows : r->alpha));
        if (t[i].left_out) memset(l->s, 0, (size_t)l->vocab * sizeof *l->s);
        else if (r->narrow) {
            const float *z = x->z + (size_t)i * (size_t)l->vocab;
            wg_loss_narrow_gradient(l, &t[i], r, lk, z, narrow_q(l, x, i), out->term);
            continue;
        } else {
            const wg_loss_target wide = widened(l, &t[i]);
            load(l, x, i);
            make_gradient(l, &wide, r, lk, out);
        }
        store(l, x, i);
    }
    for (int k = 0; k < WG_LOSS_TERMS; k++) {
        if (l->spec.weight[k] == 0) out->term[k] = 0;
        else out->loss += l->spec.weight[k] * out->term[k];
    }
}

void wg_loss_rows(wg_loss *l, const wg_loss_target *target, int rows, const float *z, float *dz, wg_loss_value *out)
{
    run(l, target, rows, &(logits){ .z = z, .dz = dz }, out);
}

void wg_loss_rows_double(wg_loss *l, const wg_loss_target *target, int rows, const double *z, double *dz, wg_loss_value *out)
{
    run(l, target, rows, &(logits){ .z64 = z, .dz64 = dz }, out);
}
