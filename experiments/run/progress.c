/* SPDX-License-Identifier: MIT
 * The progress line (progress.h). */
#include "experiments/run/progress.h"

#include <stdio.h>

#include "core/base/clock.h"

void wg_progress_open(wg_progress *p, bool on, long requests, int groups, int repeats)
{
    *p = (wg_progress){ .on = on, .groups = groups, .repeats = repeats, .requests = requests, .start = wg_clock_now() };
}

void wg_progress_add(wg_progress *p, const wg_request *q)
{
    p->done++;
    if (q->status) return;
    p->seconds[q->cell < 0] += q->decode;
    p->tokens[q->cell < 0] += q->n;
    if (q->cell >= 0) p->passes += (double)q->counts.passes;
}

static double speed(const wg_progress *p, int arm) { return p->seconds[arm] > 0 ? p->tokens[arm] / p->seconds[arm] : 0; }

void wg_progress_show(wg_progress *p, int group, int prompt, int prompts, int repeat)
{
    const double now = wg_clock_now();
    if (!p->on || now - p->shown < 0.2) return;
    p->shown = now;
    const double left = p->done ? (now - p->start) * (double)(p->requests - p->done) / (double)p->done : 0;
    fprintf(stderr,
            "\r\x1b[Kgroup %d/%d, repeat %d/%d, prompt %d/%d: %.0f tok/s (plain %.0f), %.2f tokens a pass; %ld %% done, "
            "%d:%02d left",
            group + 1, p->groups, repeat + 1, p->repeats, prompt, prompts, speed(p, 0), speed(p, 1),
            p->passes > 0 ? p->tokens[0] / p->passes : 0, 100 * p->done / p->requests, (int)left / 60, (int)left % 60);
    fflush(stderr);
}

void wg_progress_close(wg_progress *p)
{
    if (p->on) fputs("\r\x1b[K", stderr);
}
