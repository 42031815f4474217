/* SPDX-License-Identifier: MIT
 * See plan_try.h. */
#include "experiments/cli/plan_try.h"

#include <limits.h>

#include "core/base/clock.h"
#include "experiments/base/spec.h"

static const char *rule_of(const wg_sampling *s) { return s->temperature > 0 ? "rejection" : "match"; }

static wg_status open_trial(wg_trial *trial, const wg_try *on, wg_error *err)
{
    wg_engine_parts parts = wg_target_engine_parts(on->target);
    const wg_engine_options o = { .max_batch = 1, .seed = on->seed, .sampling = *on->sampling };
    wg_drafter_choice draft = { 0 };
    WG_TRY(wg_find_verifier(&wg_program_plugins, rule_of(on->sampling), &parts.verifier, err));
    WG_TRY(wg_choose_drafter(trial->spec, &draft, err));
    parts.drafter = draft.class;
    parts.drafter_options = draft.options;
    const wg_status s = wg_engine_open(&trial->engine, &parts, &o, err);
    wg_choice_close(&draft);
    return s;
}

static wg_status decode(wg_trial *trial, uint32_t request, const wg_tried_prompt *p, int max_new, wg_error *err)
{
    wg_seq *s;
    WG_TRY(wg_seq_open(trial->engine, &s, request, p->token, p->n, max_new, err));
    wg_status status = wg_engine_prefill(trial->engine, s, err);
    const double start = wg_clock_now();
    if (!status) status = wg_engine_rounds(trial->engine, &s, 1, INT_MAX, NULL, NULL, err);
    trial->seconds += wg_clock_now() - start;
    trial->tokens += s->n - s->prompt;
    trial->passes += (double)s->counts.passes;
    wg_seq_close(trial->engine, s);
    return status;
}

wg_status wg_plan_try(wg_trial *trial, int n, const wg_try *on, wg_error *err)
{
    wg_status s = WG_OK;
    for (int k = 0; k < n && !s; k++) s = open_trial(&trial[k], on, err);
    for (int k = 0; k < n && !s && on->prompts; k++) { /* warms caches and clocks; what it learns is of the first prompt only */
        s = decode(&trial[k], 0, &on->prompt[0], on->max_new < 16 ? on->max_new : 16, err);
        trial[k].seconds = trial[k].tokens = trial[k].passes = 0;
    }
    for (int i = 0; i < on->prompts && !s; i++)
        for (int k = 0; k < n && !s; k++) s = decode(&trial[(k + i) % n], (uint32_t)i, &on->prompt[i], on->max_new, err);
    for (int k = 0; k < n; k++) {
        wg_engine_close(trial[k].engine);
        trial[k].engine = NULL;
    }
    return s;
}
