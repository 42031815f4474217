/* SPDX-License-Identifier: MIT
 * Measurements of a plan (plan.h). */
#include "experiments/cli/plan.h"

#include <limits.h>
#include <stdio.h>

#include "core/base/clock.h"
#include "core/setup/spec.h"

/* SLICE: tokens that an arm decodes in its turn. WARM: tokens of the warm-up. */
enum { SLICE = 16, WARM = 8 };

const char *wg_plan_rule(const wg_sampling *s) { return s->temperature > 0 ? "rejection" : "match"; }

static wg_status open_engine(wg_engine **out, const char *spec, const wg_plan_stage *on, wg_error *err)
{
    wg_engine_parts parts = wg_target_engine_parts(on->target);
    const int longest = on->longest + on->most, context = on->target->lm->context;
    const wg_engine_options o = {
        .max_batch = 1, .max_tokens = longest < context ? longest : context, .seed = on->seed, .sampling = *on->sampling
    };
    wg_drafter_choice draft = { 0 };
    WG_TRY(wg_find_verifier(&wg_program_plugins, wg_plan_rule(on->sampling), &parts.verifier, err));
    WG_TRY(wg_choose_drafter(spec, &draft, err));
    parts.drafter = draft.class;
    parts.drafter_options = draft.options;
    const wg_status s = wg_engine_open(out, &parts, &o, err);
    wg_choice_close(&draft);
    return s;
}

wg_status wg_plan_can_run(const char *spec, const wg_plan_stage *on, wg_error *err)
{
    wg_engine *e = NULL;
    const wg_status s = open_engine(&e, spec, on, err);
    wg_engine_close(e);
    return s;
}

static bool go_on(void *until, const wg_seq *s, const wg_tree *verified)
{
    (void)verified;
    return s->n < *(const int *)until;
}

/* Decodes up to `tokens` more tokens and adds the time to *seconds. */
static wg_status slice(wg_plan_arm *a, wg_seq *s, int tokens, double *seconds, wg_error *err)
{
    int until = s->n + tokens;
    const double start = wg_clock_now();
    const wg_status status = wg_engine_rounds(a->engine, &s, 1, INT_MAX, go_on, &until, err);
    *seconds += wg_clock_now() - start;
    return status;
}

static wg_status warm_up(wg_plan_arm *a, const wg_plan_stage *on, wg_error *err)
{
    wg_seq *s;
    double seconds = 0;
    WG_TRY(open_engine(&a->engine, a->spec, on, err));
    const double start = wg_clock_now();
    WG_TRY(wg_seq_open(a->engine, &s, UINT32_MAX, on->warm->token, on->warm->n, WARM, err));
    wg_status status = wg_engine_prefill(a->engine, s, err);
    a->prompt_seconds = wg_clock_now() - start;
    if (!status) status = slice(a, s, WARM, &seconds, err);
    a->token_seconds = s->n > s->prompt ? seconds / (s->n - s->prompt) : 0;
    wg_seq_close(a->engine, s);
    return status;
}

/* Warms all arms up. Arms that cannot run, and those after `ready` except the first draft, are left out. */
static wg_status warm_all(wg_plan_arm *arm, int n, const wg_plan_stage *on, wg_error *err)
{
    for (int k = 0; k < n; k++) {
        wg_plan_arm *a = &arm[k];
        a->state = k > 1 && wg_clock_now() > on->ready ? WG_PLAN_LATE : WG_PLAN_RAN;
        if (a->state == WG_PLAN_LATE) continue;
        const wg_status s = warm_up(a, on, err);
        if (!s) continue;
        if (!k || a->asked) return s;
        a->state = WG_PLAN_REFUSED;
        snprintf(a->why, sizeof a->why, "%.299s", err->text);
    }
    return WG_OK;
}

/* The expected seconds of one text of `tokens` tokens for all arms, from the warm-up. */
static double expected(const wg_plan_arm *arm, int n, int tokens)
{
    double all = 0;
    for (int k = 0; k < n; k++)
        if (arm[k].state == WG_PLAN_RAN) all += arm[k].prompt_seconds + tokens * arm[k].token_seconds;
    return all;
}

/* Leaves out last arms until the time suffices for one text by all; plain decoding and the first draft stay. */
static void leave_out(wg_plan_arm *arm, int n, const wg_plan_stage *on)
{
    const double left = on->until - wg_clock_now();
    for (int k = n - 1, ran = 0; k > 0; k--) {
        for (int i = ran = 0; i < k; i++) ran += arm[i].state == WG_PLAN_RAN;
        if (arm[k].state == WG_PLAN_RAN && ran > 1 && expected(arm, n, on->least) > left) arm[k].state = WG_PLAN_LATE;
    }
}

/* The number of tokens to add to each text so that the time suffices for all texts, if possible. */
static int tokens_of(const wg_plan_arm *arm, int n, const wg_plan_stage *on)
{
    const double each = (on->until - wg_clock_now()) / on->texts;
    int tokens = on->most;
    while (tokens > on->least && expected(arm, n, tokens) > each) tokens--;
    return tokens;
}

/* Decodes text i by all arms in turn; the first arm rotates by text and slice. */
static wg_status decode_text(wg_plan_arm *arm, int n, const wg_plan_stage *on, int i, int tokens, wg_error *err)
{
    wg_seq *seq[WG_PLAN_ARMS] = { NULL };
    wg_status s = WG_OK;
    for (int k = 0; k < n && !s; k++) {
        arm[k].seconds[i] = arm[k].tokens[i] = arm[k].passes[i] = 0;
        if (arm[k].state != WG_PLAN_RAN) continue;
        s = wg_seq_open(arm[k].engine, &seq[k], (uint32_t)i, on->text[i].token, on->text[i].n, tokens, err);
        if (!s) s = wg_engine_prefill(arm[k].engine, seq[k], err);
    }
    for (int turn = 0, running = 1; running && !s; turn++) {
        running = 0;
        for (int k = 0; k < n && !s; k++) {
            const int at = (k + turn + i) % n;
            if (!seq[at] || seq[at]->finish != WG_RUNNING) continue;
            s = slice(&arm[at], seq[at], SLICE, &arm[at].seconds[i], err);
            running = 1;
        }
    }
    for (int k = 0; k < n; k++) {
        if (!seq[k]) continue;
        arm[k].tokens[i] = seq[k]->n - seq[k]->prompt;
        arm[k].passes[i] = (double)seq[k]->counts.passes;
        wg_seq_close(arm[k].engine, seq[k]);
    }
    return s;
}

wg_status wg_plan_measure(wg_plan_arm *arm, int n, const wg_plan_stage *on, int *done, wg_error *err)
{
    *done = 0;
    wg_status s = warm_all(arm, n, on, err);
    if (!s) leave_out(arm, n, on);
    const int tokens = s ? 0 : tokens_of(arm, n, on);
    double each = s ? 0 : expected(arm, n, tokens);
    while (*done < on->texts && !s && wg_clock_now() + each < (*done ? on->until : on->end)) {
        const double start = wg_clock_now();
        s = decode_text(arm, n, on, *done, tokens, err);
        each = wg_clock_now() - start;
        *done += !s;
    }
    for (int k = 0; k < n; k++) {
        wg_engine_close(arm[k].engine);
        arm[k].engine = NULL;
    }
    return s;
}
