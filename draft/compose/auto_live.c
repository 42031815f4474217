/* SPDX-License-Identifier: MIT
 * The drafter `auto` where prices follow the clock (auto_impl.h): what passes and drafts took, trials of what most rounds do
 * not do, and rounds that explore.
 *
 * The first passes after those of another kind are slow: the target's after a prompt, or after a draft model has read one; the
 * draft model's and the target's after plain decoding; plain decoding's after drafts; until weights have won back their places
 * in a cache (docs/performance.md). */
#include <math.h>

#include "draft/compose/auto_impl.h"

/* After other passes, and after a draft model has read READS tokens or more, SETTLES passes tell nothing of rows, nor drafts of
 * levels. DRAFTS: rounds of a trial of drafts. */
enum { SETTLES = 6, READS = 8, DRAFTS = 16 };
/* KEEP: of the share of rounds that draft, and of what they promise, at a round. HALF: of what a trial of drafts costs, what
 * counts, since a wrong price keeps them away. UNKNOWN: the most that the first draft of a drafter of unknown price
 * counts; it may have read the prompt. */
static const double KEEP = 0.9, HALF = 0.5, UNKNOWN = 0.25;

wg_status wg_auto_live_open(wg_auto_drafter *a, wg_error *err)
{
    a->now = &a->price;
    if (!a->live) return WG_OK;
    wg_row_trial_open(&a->trial);
    a->trial.draft_steps = DRAFTS;
    a->trial.saved += WG_AUTO_SETTLING;
    return wg_row_timing_open(&a->timing, &(wg_row_costs){ .pass = a->price.pass + 1, .rows = WG_TREE_MAX, .width = 1 }, err);
}

void wg_auto_live_close(wg_auto_drafter *a) { wg_row_timing_close(&a->timing); }

bool wg_auto_live_drafts(const wg_auto_drafter *a) { return a->drafts > 0.5; }

/* ---- what passes and drafts took */

/* Prices of what a pass is not move with the machine's speed. */
static void observe_pass(wg_auto_drafter *a, double took)
{
    wg_auto_prices *p = &a->price;
    const int drafted = a->due - a->sequences;
    const double before = a->timing.state[WG_ROW_COMMON];
    const wg_row_step step = {
        .rows = a->due, .prompt = a->settles > 0, .drafted = drafted, .depth = drafted > 0, .pass = took
    };
    wg_row_timing_add(&a->timing, &step);
    const double moved = exp(a->timing.state[WG_ROW_COMMON] - before);
    for (int k = 0; k < a->of.n; k++) p->level[k] *= moved, p->read[k] *= moved;
    p->row *= moved;
    for (int r = 1; r <= WG_TREE_MAX; r++) p->pass[r] = a->timing.live[r - 1];
    a->settles -= a->settles > 0;
    if (!a->trial.on) a->drafts = KEEP * a->drafts + (drafted > 0 ? 1 - KEEP : 0);
    p->flattery = wg_row_timing_bias(&a->timing, wg_auto_live_drafts(a));
}

void wg_auto_live_passes(wg_auto_drafter *a)
{
    const wg_lm *t = a->of.base.env->target;
    const double seconds = t->seconds - a->seconds;
    const bool ours = t->passes == a->passes + 1 && t->rows == a->rows + a->due;
    if (a->live && ours && seconds > 0 && a->due <= WG_TREE_MAX) {
        if (!(a->second > 0)) a->second = seconds / a->price.pass[a->due];
        observe_pass(a, seconds / a->second);
    }
    if (!ours) a->settles = SETTLES;
    a->passes = t->passes;
    a->rows = t->rows;
    a->seconds = t->seconds;
}

void wg_auto_live_draft(wg_auto_drafter *a, int k, const wg_lm *before, double seconds, int sequences, int lag)
{
    const wg_lm *lm = wg_drafter_lm(a->of.in[k].d);
    const long passes = lm ? lm->passes - before->passes : 1;
    double *level = &a->price.level[k], *read = &a->price.read[k];
    if (!a->live || passes < 1 || !(a->second > 0)) return;
    const double rows = lm ? (double)passes * sequences * a->price.row : 0; /* of q, which wg_auto_level adds */
    const double all = fmax(0, seconds / a->second - rows), each = all / (double)passes / sequences;
    if (lag >= READS) a->settles = SETTLES;
    if (!(*level > 0)) *level = fmin(each, UNKNOWN);
    else if (lag > 2 * sequences) *read = wg_auto_moved(*read, (all - (double)passes * sequences * *level) / lag);
    else if (a->settles == 0) *level = wg_auto_moved(*level, each);
}

/* ---- the coming round */

/* A text that begins where most rounds are plain drafts if it may well pay: sizes that only seem dear would never be seen. */
static void hope(wg_auto_drafter *a)
{
    wg_row_timing_hope(&a->timing);
    a->hope = a->price;
    for (int r = 1; r <= WG_TREE_MAX; r++) a->hope.pass[r] = fmin(a->price.pass[r], a->timing.hope[r - 1]);
    a->now = &a->hope;
}

wg_auto_round wg_auto_live_round(wg_auto_drafter *a, double beginning, bool text)
{
    a->now = &a->price;
    if (!a->live) return WG_AUTO_CHOOSES;
    const bool pays = wg_auto_live_drafts(a);
    const double loss = fabs(a->gain) + (pays ? WG_AUTO_SETTLING / WG_ROW_TRIAL_PLAIN : beginning / DRAFTS);
    const bool drafts = wg_row_trial_step(&a->trial, pays, pays ? loss : HALF * loss);
    if (a->trial.on) return drafts ? WG_AUTO_DRAFTS : WG_AUTO_PLAIN;
    if (text && !pays) hope(a);
    return pays && ++a->rounds % WG_AUTO_EXPLORED == 0 ? WG_AUTO_EXPLORES : WG_AUTO_CHOOSES;
}

void wg_auto_live_gain(wg_auto_drafter *a, double gain)
{
    if (gain > -INFINITY) a->gain += (1 - KEEP) * (gain - a->gain);
}
