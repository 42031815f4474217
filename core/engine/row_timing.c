/* SPDX-License-Identifier: MIT
 * See row_timing.h. */
#include "core/engine/row_timing.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"

/* KEEP: the share of the sums that is left after a step, so that they tell of the last 1 / (1 - KEEP); OWN_KEEP: of a row
 * count's own, after each of its steps; FORGET: after every step. FIRST, OWN_WEIGHT: steps that the table and g count as. */
static const double KEEP = 0.98, OWN_KEEP = 0.98, FORGET = 0.9995, FIRST = 4, OWN_WEIGHT = 16, SPIKE = 3;

wg_status wg_row_timing_open(wg_row_timing *t, const wg_row_costs *costs, wg_error *err)
{
    const size_t rows = (size_t)costs->rows;
    *t = (wg_row_timing){ .costs = *costs, .level = costs->level, .token = costs->token };
    t->costs.pass = t->live = wg_calloc(rows, sizeof *t->live);
    t->table = wg_calloc(rows, sizeof *t->table);
    t->ratio = wg_calloc(rows, sizeof *t->ratio);
    t->seen = wg_calloc(rows, sizeof *t->seen);
    if (!t->live || !t->table || !t->ratio || !t->seen) {
        wg_row_timing_close(t);
        return wg_nomem(err, 4 * rows * sizeof *t->table, "the costs of a scheduler's steps");
    }
    memcpy(t->table, costs->pass, rows * sizeof *t->table);
    memcpy(t->live, costs->pass, rows * sizeof *t->live);
    t->pass_spent = t->pass_tabled = FIRST * t->table[0];
    t->draft_spent = t->draft_tabled = FIRST * (t->level + t->token);
    t->rest_sum = FIRST * costs->rest;
    t->steps = FIRST;
    return WG_OK;
}

void wg_row_timing_close(wg_row_timing *t)
{
    wg_free(t->live);
    wg_free(t->table);
    wg_free(t->ratio);
    wg_free(t->seen);
    *t = (wg_row_timing){ .table = NULL };
}

static double bounded(double seconds, double price) { return price > 0 ? fmin(seconds, SPIKE * price) : seconds; }

static void add_pass(wg_row_timing *t, const wg_row_step *s)
{
    const wg_row_costs tabled = { .pass = t->table, .rows = t->costs.rows };
    const double plain = wg_row_costs_pass(&tabled, s->rows), seconds = bounded(s->pass, wg_row_costs_pass(&t->costs, s->rows));
    const int r = (s->rows < t->costs.rows ? s->rows : t->costs.rows) - 1;
    t->pass_spent = KEEP * t->pass_spent + seconds;
    t->pass_tabled = KEEP * t->pass_tabled + plain;
    const double g = t->pass_spent / t->pass_tabled;
    t->ratio[r] = OWN_KEEP * t->ratio[r] + seconds / (g * plain);
    t->seen[r] = OWN_KEEP * t->seen[r] + 1;
    for (int i = 0; i < t->costs.rows; i++) {
        t->ratio[i] *= FORGET;
        t->seen[i] *= FORGET;
        t->live[i] = t->table[i] * g * (t->ratio[i] + OWN_WEIGHT) / (t->seen[i] + OWN_WEIGHT);
    }
}

static void add_draft(wg_row_timing *t, const wg_row_step *s)
{
    const double tabled = s->depth * t->level + (s->drafted + s->read) * t->token;
    if (tabled <= 0) return;
    t->draft_spent = KEEP * t->draft_spent + bounded(s->draft, tabled * t->draft_spent / t->draft_tabled);
    t->draft_tabled = KEEP * t->draft_tabled + tabled;
    t->costs.level = t->level * t->draft_spent / t->draft_tabled;
    t->costs.token = t->token * t->draft_spent / t->draft_tabled;
}

void wg_row_timing_add(wg_row_timing *t, const wg_row_step *s)
{
    if (s->rows < 1 || !(s->pass > 0)) return;
    add_pass(t, s);
    add_draft(t, s);
    const double rest = fmax(0, s->rest);
    t->rest_sum = KEEP * t->rest_sum + (t->steps > 2 * FIRST ? bounded(rest, t->costs.rest) : rest);
    t->steps = KEEP * t->steps + 1;
    t->costs.rest = t->rest_sum / t->steps;
}
