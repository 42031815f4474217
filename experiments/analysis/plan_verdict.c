/* SPDX-License-Identifier: MIT
 * The verdict of a plan (plan_verdict.h). */
#include "experiments/analysis/plan_verdict.h"

#include <math.h>
#include <string.h>

enum { MOST = 64 };
/* The least lower bound of a faster draft, which prints as more than 1.00. */
static const double ABOVE_ONE = 1.005;

wg_plan_speed wg_plan_speed_of(const double *seconds, const double *tokens, const double *plain_seconds,
                               const double *plain_tokens, int n)
{
    const wg_ratio r = { .a = tokens, .b = seconds, .c = plain_tokens, .d = plain_seconds, .n = n };
    wg_plan_speed v = { .speedup = wg_ratio_value(&r), .lo = NAN, .hi = NAN };
    v.of =
        (wg_contrast){ .prompts = { log(v.speedup), NAN, NAN }, .between = { WG_RUN_ERROR * WG_RUN_ERROR, INFINITY }, .n = n };
    if (!wg_ratio_log(&r, NULL, &v.of.prompts)) return v;
    const double half = wg_contrast_half(&v.of);
    v.lo = exp(v.of.prompts.log - half);
    v.hi = exp(v.of.prompts.log + half);
    return v;
}

wg_plan_answer wg_plan_answer_of(wg_plan_speed *v, int n, int *best)
{
    wg_contrast of[MOST];
    int faster = -1;
    bool worthless = n > 0;
    *best = -1;
    if (n > MOST) n = MOST;
    for (int i = 0; i < n; i++) of[i] = v[i].of;
    wg_judge(of, n);
    for (int i = 0; i < n; i++) {
        v[i].of = of[i];
        if (isfinite(v[i].speedup) && (*best < 0 || v[i].speedup > v[*best].speedup)) *best = i;
        if (!strcmp(wg_contrast_verdict(&of[i]), "faster") && v[i].lo >= ABOVE_ONE &&
            (faster < 0 || v[i].speedup > v[faster].speedup))
            faster = i;
        worthless = worthless && v[i].hi < WG_PLAN_WORTH; /* false for NaN */
    }
    if (faster >= 0) {
        *best = faster;
        return WG_PLAN_SPECULATE;
    }
    return worthless ? WG_PLAN_PLAIN : WG_PLAN_UNDECIDED;
}
