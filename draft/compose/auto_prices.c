/* SPDX-License-Identifier: MIT
 * The prices of the drafter `auto`: given, measured, or nominal (auto_impl.h). */
#include <math.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/dist/chance.h"
#include "core/model/model.h"
#include "draft/compose/auto_impl.h"

enum { MEASURED = 9, READ = 4 }; /* rows of the largest target pass, and draft pass, that are timed */
enum { ROWS_TIMED = 4 };         /* times that a row of p is made and drawn from */
/* Of a draft model's pass: what one more row costs, where it was not measured. */
static const double ONE_MORE = 0.35;
/* Bytes of weights that a processor's last cache is taken to hold. */
static const double CACHED = 32e6;

/* Passes past the timed ones go on with the last slope. */
static void extend(double *pass, int n)
{
    const double slope = n > 1 ? fmax(0, pass[n] - pass[n - 1]) : 0;
    for (int r = n + 1; r <= WG_TREE_MAX; r++) pass[r] = pass[r - 1] + slope;
}

static double weight_bytes(const wg_lm *lm)
{
    const wg_model *m = lm ? wg_lm_transformer(lm) : NULL;
    return m ? (double)wg_model_pass_bytes(m, 1) : 0;
}

/* A model whose weights stay in a cache is bound by arithmetic, which every row pays for; of a larger one the stream of weights
 * pays for two rows, and each one more for itself. Constants of the model, not of a machine. */
static void nominal_passes(double *pass, double weights)
{
    const bool cached = weights > 0 && weights < CACHED;
    for (int r = 1; r <= WG_TREE_MAX; r++)
        pass[r] = cached ? 1 + 0.62 * (r - 1) : r == 1 ? 1 : r == 2 ? 1.08 : 1.3 + 0.4 * (r - 3);
}

/* By the weights that a pass reads; a model without a file is taken for a tenth of the target. */
static double nominal_level(const wg_lm *lm, const wg_lm *target)
{
    const double draft = weight_bytes(lm), all = weight_bytes(target);
    return draft > 0 && all > 0 ? fmin(1, 0.01 + 1.1 * draft / all) : 0.1;
}

static wg_status given_levels(wg_auto_drafter *a, wg_error *err)
{
    int n;
    if (wg_length_numbers(a->opt.draft_costs, 0, a->price.level, a->of.n, &n) && n == a->of.n) return WG_OK;
    return wg_fail(err, WG_ECONFIG,
                   "drafter auto: draft_costs=%s: expected %d numbers such as 0.1/0, one for each drafter of `of`: a level of "
                   "its draft, in passes of the target over one row",
                   a->opt.draft_costs, a->of.n);
}

static wg_status measure_level(wg_auto_drafter *a, int k, double one, wg_error *err)
{
    double level, token;
    wg_lm *lm = (wg_lm *)(uintptr_t)wg_drafter_lm(a->of.in[k].d); /* its counters are as before afterwards */
    WG_TRY(wg_length_measure_draft(lm, a->of.base.env->target, READ, &level, &token, err));
    a->price.level[k] = level / one;
    a->price.read[k] = token / one;
    return WG_OK;
}

/* The least of some times of a row of p, drawn from. */
static double time_row(wg_sampler *sampler, wg_rows *row, const float *logits)
{
    double least = INFINITY;
    const wg_chance chance = wg_chance_philox(0, 0, 0);
    for (int k = 0; k < ROWS_TIMED; k++) {
        const double start = wg_clock_now();
        wg_sampler_row(sampler, logits, row, 0);
        if (wg_rows_one_hot(row, 0) < 0) wg_rows_pick(row, 0, &chance, WG_DRAW_NEXT, 0);
        least = fmin(least, wg_clock_now() - start);
    }
    return least;
}

/* Logits of a harmonic row (Zipf's law), its tokens in no order. */
static wg_status measure_row(wg_auto_drafter *a, double one, wg_error *err)
{
    const wg_env *env = a->of.base.env;
    const int vocab = env->target->vocab;
    wg_sampler sampler = { 0 };
    wg_rows row = { 0 };
    float *logits = wg_alloc((size_t)vocab, sizeof *logits);
    wg_status s = logits ? WG_OK : wg_nomem(err, (size_t)vocab * sizeof *logits, "measuring a row");
    for (int i = 0; !s && i < vocab; i++) logits[i] = -logf(1 + (float)(i * 37L % vocab));
    if (!s) s = wg_sampler_open(&sampler, env->sampling, env->ops, vocab, err);
    if (!s) s = wg_rows_open(&row, 1, vocab, err);
    if (!s && wg_rows_push(&row) == 0) a->price.row = time_row(&sampler, &row, logits) / one;
    wg_rows_close(&row);
    wg_sampler_close(&sampler);
    wg_free(logits);
    return s;
}

wg_status wg_auto_prices_open(wg_auto_drafter *a, wg_error *err)
{
    const wg_env *env = a->of.base.env;
    const char *costs = a->opt.costs;
    const bool nominal = !strcmp(costs, "nominal") || (!*costs && !a->independent);
    const bool measured = !strcmp(costs, "measured") || (!*costs && a->independent);
    const int most = WG_TREE_MAX, timed = MEASURED < most ? MEASURED : most;
    double one = 1;
    if (measured) {
        WG_TRY(wg_length_measure(env->target, timed, a->price.pass, err));
        one = a->price.pass[1];
        for (int r = 1; r <= timed; r++) a->price.pass[r] /= one;
        extend(a->price.pass, timed);
        WG_TRY(measure_row(a, one, err));
    } else if (nominal) nominal_passes(a->price.pass, weight_bytes(env->target));
    else WG_TRY(wg_length_given_costs(a->price.pass, costs, "auto", err));
    a->second = measured ? one : 0;
    if (*a->opt.draft_costs) WG_TRY(given_levels(a, err));
    for (int k = 0; k < a->of.n; k++) {
        const wg_lm *lm = wg_drafter_lm(a->of.in[k].d);
        if (lm && !*a->opt.draft_costs) {
            a->price.level[k] = nominal_level(lm, env->target);
            if (measured) WG_TRY(measure_level(a, k, one, err));
        }
        if (!(a->price.read[k] > 0)) a->price.read[k] = ONE_MORE * a->price.level[k];
        if (a->part[k].shares) a->price.read[k] = 0;
    }
    a->price.flattery = 1;
    return WG_OK;
}
