/* SPDX-License-Identifier: MIT
 * The prices of the drafter `auto`: given, or those of the machine's profile (core/engine/profile.h). */
#include <string.h>

#include "draft/compose/auto_impl.h"

enum { READ = 4 }; /* rows of the draft pass that prices reading */
/* Of a draft model's pass: what one more row costs, where its level was given. */
static const double ONE_MORE = 0.35;

static wg_status given_levels(wg_auto_drafter *a, wg_error *err)
{
    int n;
    if (wg_length_numbers(a->opt.draft_costs, 0, a->price.level, a->of.n, &n) && n == a->of.n) return WG_OK;
    return wg_fail(err, WG_ECONFIG,
                   "drafter auto: draft_costs=%s: expected %d numbers such as 0.1/0, one for each drafter of `of`: a level of "
                   "its draft, in passes of the target over one row",
                   a->opt.draft_costs, a->of.n);
}

static wg_status take_level(wg_auto_drafter *a, wg_profile *from, int k, double one, wg_error *err)
{
    wg_prices p;
    wg_lm *lm = (wg_lm *)(uintptr_t)wg_drafter_lm(a->of.in[k].d); /* its counters are as before afterwards */
    WG_TRY(wg_profile_draft(from, lm, a->of.base.env->target, &p, err));
    a->price.level[k] = wg_prices_of(&p, 1) / one;
    if (p.n > 1) a->price.read[k] = (wg_prices_of(&p, READ) - wg_prices_of(&p, 1)) / (READ - 1) / one;
    return WG_OK;
}

static wg_status take_prices(wg_auto_drafter *a, wg_profile *from, wg_error *err)
{
    const wg_env *env = a->of.base.env;
    const bool named = !*a->opt.costs || !strcmp(a->opt.costs, "measured") || !strcmp(a->opt.costs, "nominal");
    wg_prices target = { 1, { 1 }, { 1 }, .nominal = true }, row;
    if (named) {
        WG_TRY(wg_profile_target(from, env->target, &target, err));
        for (int r = 1; r <= WG_TREE_MAX; r++) a->price.pass[r] = wg_prices_of(&target, r) / target.seconds[0];
        WG_TRY(wg_profile_row(from, env->target, env->sampling, env->ops, &row, err));
        a->price.row = row.seconds[0] / target.seconds[0];
    } else WG_TRY(wg_length_given_costs(a->price.pass, a->opt.costs, "auto", err));
    a->second = target.nominal ? 0 : target.seconds[0];
    if (*a->opt.draft_costs) WG_TRY(given_levels(a, err));
    for (int k = 0; k < a->of.n; k++) {
        if (wg_drafter_lm(a->of.in[k].d) && !*a->opt.draft_costs)
            WG_TRY(take_level(a, named ? from : NULL, k, target.seconds[0], err));
        if (!(a->price.read[k] > 0)) a->price.read[k] = ONE_MORE * a->price.level[k];
        if (a->part[k].shares) a->price.read[k] = 0;
    }
    a->price.flattery = 1;
    return WG_OK;
}

/* `measured`: by a profile of its own, which is kept nowhere. */
wg_status wg_auto_prices_open(wg_auto_drafter *a, wg_error *err)
{
    static const wg_profile_options measured = { .use = "new", .folder = "" };
    wg_profile *own = NULL;
    if (!strcmp(a->opt.costs, "measured")) WG_TRY(wg_profile_open(&own, &measured, err));
    const wg_status s = take_prices(a, own ? own : !strcmp(a->opt.costs, "nominal") ? NULL : a->of.base.env->profile, err);
    wg_profile_close(own);
    return s;
}
