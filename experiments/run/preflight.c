/* SPDX-License-Identifier: MIT
 * Findings before a run (preflight.h). */
#include "experiments/run/preflight.h"

#include <stdarg.h>
#include <string.h>

#include "core/model/device.h"
#include "draft/draft.h"

/* Writes "cells 0, 3-5: ", or "" for a finding of the config. */
static const char *cells_of(const wg_preflight_line *l, char *buf, size_t size)
{
    char list[160];
    size_t n = 0;
    int count = 0;
    list[0] = buf[0] = '\0';
    for (int i = 0; i < WG_CELLS_MAX && n + 24 < sizeof list; i++) {
        int last = i;
        if (!l->cell[i]) continue;
        while (last + 1 < WG_CELLS_MAX && l->cell[last + 1]) last++;
        n += (size_t)snprintf(list + n, sizeof list - n, n ? ", %d" : "%d", i);
        if (last > i) n += (size_t)snprintf(list + n, sizeof list - n, "-%d", last);
        count += last - i + 1;
        i = last;
    }
    if (n) snprintf(buf, size, "cell%s %s: ", count > 1 ? "s" : "", list);
    return buf;
}

static void add(wg_preflight *p, int cell, wg_status s, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static void add(wg_preflight *p, int cell, wg_status s, const char *fmt, ...)
{
    char text[WG_PREFLIGHT_TEXT];
    int i = 0;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    while (i < p->n && (strcmp(p->line[i].text, text) != 0 || p->line[i].status != s)) i++;
    if (i == WG_PREFLIGHT_MOST) return;
    wg_preflight_line *l = &p->line[i];
    if (i == p->n) {
        *l = (wg_preflight_line){ .status = s };
        memcpy(l->text, text, sizeof text);
        p->n++;
    }
    if (cell >= 0) l->cell[cell] = true;
}

void wg_preflight_refuse(wg_preflight *p, int cell, wg_status s, const wg_error *why) { add(p, cell, s, "%s", why->text); }

wg_status wg_preflight_status(const wg_preflight *p, wg_error *err)
{
    wg_error all = { 0 };
    size_t n = 0;
    wg_status s = WG_OK;
    for (int i = 0; i < p->n; i++) {
        const wg_preflight_line *l = &p->line[i];
        char cells[200];
        if (l->status == WG_OK || n >= sizeof all.text) continue;
        n += (size_t)snprintf(all.text + n, sizeof all.text - n, "%s%s%s", s ? "\n" : "", cells_of(l, cells, sizeof cells),
                              l->text);
        if (!s) s = l->status;
    }
    return s ? wg_fail(err, s, "%s", all.text) : WG_OK;
}

/* ---- warnings ---------------------------------------------------------------------------------------------------- */

static bool can_forget(const wg_setup *s)
{
    const wg_option *memory = wg_option_find(s->drafter->options, "memory_mb");
    return memory && memory->min == 0;
}

/* Whether a look-up of the cell keeps texts of earlier requests: in a repeat of a prompt it then knows the answer. */
static bool knows_answers(const wg_setup *s)
{
    const wg_option *memory = wg_option_find(s->drafter->options, "memory_mb");
    const bool keeps = !can_forget(s) || *(const int *)((const char *)s->draft + memory->at) > 0;
    return s->top.repeats > 1 && s->drafter->cross_request && s->drafter->stands_alone && keeps;
}

void wg_preflight_config(wg_preflight *p, const wg_config *c)
{
    bool drafts = false;
    if (wg_config_fast(c)) add(p, -1, WG_OK, "%s " WG_DEVICE_FAST_SAYS, wg_config_fast(c));
    for (int i = 0; i < c->n; i++) {
        const wg_cell *cell = &c->cell[i];
        const wg_sampling *s = &cell->setup.sampling;
        drafts = drafts || cell->setup.drafter != &wg_drafter_none;
        if (s->temperature == 0 && (s->top_k || s->top_p < 1 || s->min_p > 0))
            add(p, i, WG_OK, "%s%s%s%s%s: no effect at temperature 0, where the most probable token is taken",
                s->top_k ? "top_k" : "", s->top_k && (s->top_p < 1 || s->min_p > 0) ? ", " : "", s->top_p < 1 ? "top_p" : "",
                s->top_p < 1 && s->min_p > 0 ? ", " : "", s->min_p > 0 ? "min_p" : "");
    }
    for (int i = 0; i < c->n; i++)
        if (knows_answers(&c->cell[i].setup))
            add(p, i, WG_OK,
                "repeats %d: %s remembers the answers of earlier repeats, so its drafts are better than on new prompts; use "
                "\"repeats\": 1%s",
                c->cell[i].setup.top.repeats, c->cell[i].setup.drafter->name,
                can_forget(&c->cell[i].setup) ? ", or memory_mb 0" : "");
    if (c->n > 1 && !drafts)
        add(p, -1, WG_OK, "the sweep has no draft: every cell is plain decoding, as its baseline (\"draft\" is missing)");
}

/* The number of prompts that do not fit `context` tokens with all turns and max_tokens in every answer. */
static int too_long(const wg_group *g, int context)
{
    int n = 0;
    for (int i = 0; i < g->dataset->n; i++) {
        const wg_prompt *asked = &g->dataset->prompt[i];
        n += wg_conversation_most(&g->prompts.question[asked->before], asked->turns, g->like->setup.top.max_tokens) > context;
    }
    return n;
}

void wg_preflight_group(wg_preflight *p, const wg_group *g)
{
    const int context = g->target->lm->context, n = too_long(g, context), max = g->like->setup.top.max_tokens;
    for (int k = 1; k < g->arms; k++) {
        const wg_arm *a = &g->arm[k];
        bool slides = false;
        const int own = a->engine ? wg_drafter_context(wg_engine_drafter(a->engine), &slides) : 0;
        const int late = own && own < context ? too_long(g, own) : 0;
        if (n)
            add(p, a->cell, WG_OK,
                "max_tokens %d is beyond the context: %d of %d texts may end at it before (prompt and answers; context %d)",
                max, n, g->dataset->n, context);
        if (late && slides)
            add(p, a->cell, WG_OK,
                "the draft model's context is shorter: %d of %d texts may be longer than its %d tokens; it then reads the last "
                "%d to %d of them",
                late, g->dataset->n, own, own - own / 2 + 1, own);
        else if (late)
            add(p, a->cell, WG_OK,
                "the draft model's context is shorter: %d of %d texts may be longer than its %d tokens, and later rounds have "
                "no draft",
                late, g->dataset->n, own);
    }
}

void wg_preflight_print(FILE *f, const wg_preflight *p, const char *before)
{
    for (int i = 0; i < p->n; i++) {
        const wg_preflight_line *l = &p->line[i];
        char cells[200];
        if (l->status == WG_OK) fprintf(f, "%s%s%s\n", before, cells_of(l, cells, sizeof cells), l->text);
    }
}
