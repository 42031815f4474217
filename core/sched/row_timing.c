/* SPDX-License-Identifier: MIT
 * See row_timing.h. */
#include "core/sched/row_timing.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"

/* Of logarithms of times: standard deviations of a step, of `common` from one step to the next and before any step, and of
 * own(r), whose correlation falls to 1/e over REACH knots and which is known no more after 1 / FADES steps without it; mean and
 * deviation of `after`, which falls to 1/e in LASTS steps. A step that is FARTHEST deviations or more from what is expected
 * counts as so far; what may well be is HOPES of them away. In the logs of servers that alternate, smaller DRIFT and FADES
 * predict the other kind of steps a little better still, from trials of it (docs/load.md); these also follow machines whose
 * speed jumps (test_row_policy). */
static const double NOISE = 0.1, DRIFT = 0.015, OPENED = 3, OWN = 0.25, REACH = 3, FADES = 1 / 8000.0;
static const double LEFT = 0.3, LEFT_SPREAD = 0.3, LASTS = 8, FARTHEST = 3, HOPES = 2;
/* Of drafts and of what is besides. KEEP: the share of a sum that is left after a step. FIRST: steps that given costs count as.
 * SPIKE: times its price that a step counts as at most. */
static const double KEEP = 0.98, FIRST = 4, SPIKE = 3;
/* Of biases. WITHIN: how much of it is what the last step took. STEPS: the first ones of a run that are compared, ENOUGH: at
 * least. FEW, MANY: runs that no bias before any counts as, and that are remembered. */
static const double WITHIN = 1 / 150.0, STEPS = 24, ENOUGH = 3, FEW = 3, MANY = 24;

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static void place_knots(wg_row_timing *t, int rows)
{
    for (int r = 1; t->knots < WG_ROW_KNOTS - 1 && r < rows; r += r < 8 ? 1 : r / 3 + 1) t->knot[t->knots++] = r;
    t->knot[t->knots++] = rows;
}

/* The covariance of two states before any step. */
static double prior(const wg_row_timing *t, int i, int j)
{
    const int apart = i < j ? j - i : i - j;
    return apart == 0 || (i >= WG_ROW_OWN && j >= WG_ROW_OWN) ? t->alike[apart] : 0;
}

static void open_filter(wg_row_timing *t)
{
    for (int i = 0; i < WG_ROW_KNOTS; i++) t->alike[i] = OWN * OWN * exp(-i / REACH);
    for (int i = 0; i < WG_ROW_OWN + t->knots; i++)
        for (int j = 0; j < WG_ROW_OWN + t->knots; j++) t->covariance[i][j] = prior(t, i, j);
    t->covariance[WG_ROW_COMMON][WG_ROW_COMMON] = OPENED * OPENED;
}

wg_status wg_row_timing_open(wg_row_timing *t, const wg_row_costs *costs, wg_error *err)
{
    const size_t rows = (size_t)costs->rows;
    *t = (wg_row_timing){ .costs = *costs, .level = costs->level, .token = costs->token, .read = costs->token };
    t->costs.pass = t->live = wg_calloc(rows, sizeof *t->live);
    t->table = wg_calloc(rows, sizeof *t->table);
    t->before_pass = wg_calloc(rows, sizeof *t->before_pass);
    t->hope = wg_calloc(rows, sizeof *t->hope);
    if (!t->live || !t->table || !t->before_pass || !t->hope) {
        wg_row_timing_close(t);
        return wg_nomem(err, 4 * rows * sizeof *t->table, "the costs of a scheduler's steps");
    }
    memcpy(t->table, costs->pass, rows * sizeof *t->table);
    memcpy(t->live, costs->pass, rows * sizeof *t->live);
    place_knots(t, costs->rows);
    open_filter(t);
    t->draft_spent = t->draft_tabled = FIRST * (t->level + t->token);
    t->read_spent = t->read_tabled = FIRST * t->token;
    t->rest_sum = FIRST * costs->rest;
    t->steps = FIRST;
    t->since_end = 2;
    t->bias[0] = t->bias[1] = (wg_row_bias){ 1, 1, FEW };
    t->run = -1;
    return WG_OK;
}

void wg_row_timing_close(wg_row_timing *t)
{
    wg_free(t->live);
    wg_free(t->table);
    wg_free(t->before_pass);
    wg_free(t->hope);
    *t = (wg_row_timing){ .table = NULL };
}

/* ---- passes: the filter ------------------------------------------------------------------------------------------ */

/* From one step to the next: `common` has moved, and the others are known less well. */
static void predict(wg_row_timing *t)
{
    const int n = WG_ROW_OWN + t->knots;
    t->covariance[WG_ROW_COMMON][WG_ROW_COMMON] += DRIFT * DRIFT;
    for (int i = WG_ROW_COMMON + 1; i < n; i++) {
        t->covariance[i][WG_ROW_COMMON] = t->covariance[WG_ROW_COMMON][i] *= 1 - FADES;
        for (int j = WG_ROW_COMMON + 1; j < n; j++) t->covariance[i][j] += 2 * FADES * (prior(t, i, j) - t->covariance[i][j]);
    }
}

/* What a state counts in the logarithm of a time, for the states that count. */
typedef struct share {
    int state;
    double weight;
} share;

enum { SHARES = 4, LONG_AGO = 1000 };

/* The share of `after` that is left. */
static double left_after(const wg_row_timing *t)
{
    return t->since_draft > 0 && t->since_draft < LONG_AGO ? exp(-(t->since_draft - 1) / LASTS) : 0;
}

/* The knot at or before r rows, and how far r is on the way to the next one: 0 behind the last. */
static int knot_of(const wg_row_timing *t, int rows, double *way)
{
    int k = 0;
    while (k + 1 < t->knots && t->knot[k + 1] <= rows) k++;
    *way = k + 1 < t->knots ? (double)(rows - t->knot[k]) / (t->knot[k + 1] - t->knot[k]) : 0;
    return k;
}

static int shares_of(const wg_row_timing *t, int rows, share *to)
{
    double way;
    int n = 0;
    const int k = knot_of(t, rows, &way);
    to[n++] = (share){ WG_ROW_COMMON, 1 };
    to[n++] = (share){ WG_ROW_OWN + k, 1 - way };
    if (way > 0) to[n++] = (share){ WG_ROW_OWN + k + 1, way };
    const double left = left_after(t);
    if (left > 0) to[n++] = (share){ WG_ROW_AFTER, left };
    return n;
}

/* What drafts leave behind is another thing each time. */
static void forget_after(wg_row_timing *t)
{
    for (int i = 0; i < WG_ROW_OWN + t->knots; i++) t->covariance[i][WG_ROW_AFTER] = t->covariance[WG_ROW_AFTER][i] = 0;
    t->covariance[WG_ROW_AFTER][WG_ROW_AFTER] = LEFT_SPREAD * LEFT_SPREAD;
    t->state[WG_ROW_AFTER] = LEFT;
}

/* A logarithm of a time, less the table's. */
static void update(wg_row_timing *t, const share *of, int n, double seen)
{
    double gain[WG_ROW_STATES] = { 0 }, variance = NOISE * NOISE;
    for (int i = 0; i < WG_ROW_OWN + t->knots; i++)
        for (int k = 0; k < n; k++) gain[i] += of[k].weight * t->covariance[of[k].state][i];
    for (int k = 0; k < n; k++) {
        variance += of[k].weight * gain[of[k].state];
        seen -= of[k].weight * t->state[of[k].state];
    }
    const double far = FARTHEST * sqrt(variance), by = fmax(-far, fmin(seen, far)) / variance;
    for (int i = 0; i < WG_ROW_OWN + t->knots; i++) {
        t->state[i] += gain[i] * by;
        for (int j = 0; j < WG_ROW_OWN + t->knots; j++) t->covariance[i][j] -= gain[i] * gain[j] / variance;
    }
}

/* Prices by the filter; less: what the logarithm of each knot's is taken lower. */
static void reprice(const wg_row_timing *t, const double *less, double *pass)
{
    double factor[WG_ROW_KNOTS];
    for (int k = 0; k < t->knots; k++) factor[k] = exp(t->state[WG_ROW_COMMON] + t->state[WG_ROW_OWN + k] - less[k]);
    for (int k = 0; k + 1 < t->knots; k++) {
        const double slope = (factor[k + 1] - factor[k]) / (t->knot[k + 1] - t->knot[k]);
        for (int r = t->knot[k]; r < t->knot[k + 1]; r++)
            pass[r - 1] = t->table[r - 1] * (factor[k] + slope * (r - t->knot[k]));
    }
    pass[t->costs.rows - 1] = t->table[t->costs.rows - 1] * factor[t->knots - 1];
}

void wg_row_timing_hope(wg_row_timing *t)
{
    double less[WG_ROW_KNOTS], least = INFINITY;
    for (int k = 0; k < t->knots; k++) {
        const int own = WG_ROW_OWN + k;
        less[k] = t->covariance[WG_ROW_COMMON][WG_ROW_COMMON] + t->covariance[own][own] + 2 * t->covariance[WG_ROW_COMMON][own];
        least = fmin(least, less[k]);
    }
    for (int k = 0; k < t->knots; k++) less[k] = HOPES * sqrt(less[k] - least);
    reprice(t, less, t->hope);
}

static void add_pass(wg_row_timing *t, const wg_row_step *s, bool told)
{
    const wg_row_costs tabled = { .pass = t->table, .rows = t->costs.rows };
    share of[SHARES];
    predict(t);
    if (t->since_draft == 1) forget_after(t);
    if (!told) return;
    update(t, of, shares_of(t, s->rows, of), log(s->pass / wg_row_costs_pass(&tabled, s->rows)));
    reprice(t, (const double[WG_ROW_KNOTS]){ 0 }, t->live);
}

/* ---- what a step takes besides ----------------------------------------------------------------------------------- */

static double bounded(double seconds, double price) { return price > 0 ? fmin(seconds, SPIKE * price) : seconds; }

static void add_draft(wg_row_timing *t, const wg_row_step *s)
{
    const double common = exp(t->state[WG_ROW_COMMON]);
    const double tabled = common * (s->depth * t->level + s->drafted * t->token), read = common * s->read * t->token;
    if (read > 0) {
        const double drafts = s->depth * t->costs.level + s->drafted * t->costs.token;
        t->read_spent = KEEP * t->read_spent + bounded(fmax(0, s->draft - drafts), s->read * t->read);
        t->read_tabled = KEEP * t->read_tabled + read;
    } else if (tabled > 0) {
        t->draft_spent = KEEP * t->draft_spent + bounded(s->draft, tabled * t->draft_spent / t->draft_tabled);
        t->draft_tabled = KEEP * t->draft_tabled + tabled;
    }
    const double factor = t->draft_tabled > 0 ? common * t->draft_spent / t->draft_tabled : common;
    t->costs.level = t->level * factor;
    t->costs.token = t->token * factor;
    t->read = t->read_tabled > 0 ? t->token * common * t->read_spent / t->read_tabled : t->token * common;
}

/* ---- how far prices are off -------------------------------------------------------------------------------------- */

static double price_of(const wg_row_costs *c, const wg_row_step *s)
{
    return wg_row_costs_pass(c, s->rows) + s->depth * c->level + s->drafted * c->token + c->rest;
}

/* The first steps of a run have been: their mean is one of many. */
static void count_run(wg_row_timing *t)
{
    wg_row_bias *b = &t->bias[t->run];
    if (t->first >= ENOUGH && t->due > 0) {
        b->runs = fmin(b->runs + 1, MANY);
        b->across += (t->took / t->due - b->across) / b->runs;
    }
    t->first = -1;
}

static void begin_run(wg_row_timing *t, int kind)
{
    if (t->run >= 0 && t->first >= 0) count_run(t);
    memcpy(t->before_pass, t->live, (size_t)t->costs.rows * sizeof *t->live);
    t->before = t->costs;
    t->before.pass = t->before_pass;
    t->took = t->due = 0;
    t->first = t->run < 0 ? -1 : 0; /* before all steps there are no prices to be judged */
    t->run = kind;
}

/* A step beside its prices. The first plain ones after drafts count by what drafts have left of them. */
static void compare(wg_row_timing *t, const wg_row_step *s)
{
    const int kind = s->drafted > 0;
    const double took = s->draft + s->pass + fmax(0, s->rest), counts = 1 - left_after(t);
    if (kind != t->run) begin_run(t, kind);
    if (s->read > 0) return;
    t->bias[kind].within += WITHIN * counts * (fmin(took / price_of(&t->costs, s), SPIKE) - t->bias[kind].within);
    if (t->first < 0) return;
    const double due = price_of(&t->before, s);
    t->took += counts * fmin(took, SPIKE * due);
    t->due += counts * due;
    t->first += counts;
    if (t->first >= STEPS) count_run(t);
}

double wg_row_timing_bias(const wg_row_timing *t, bool drafts)
{
    return drafts ? t->bias[0].across / t->bias[1].within : t->bias[0].within / t->bias[1].across;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* Whether a step tells of rows: one with a prompt does not, nor do two after a sequence has ended, while its client is told so
 * and asks again, perhaps on these processors. */
static bool tells(wg_row_timing *t, const wg_row_step *s)
{
    const int sequences = s->rows - s->drafted;
    if (s->prompt > 0) return false;
    t->since_end = sequences < t->sequences ? 0 : t->since_end + (t->since_end < 2);
    t->sequences = sequences;
    return t->since_end >= 2;
}

void wg_row_timing_add(wg_row_timing *t, const wg_row_step *s)
{
    if (s->rows < 1 || !(s->pass > 0)) return;
    const bool told = tells(t, s);
    t->since_draft = s->drafted > 0 ? 0 : t->since_draft < LONG_AGO ? t->since_draft + 1 : LONG_AGO;
    if (told) compare(t, s);
    add_pass(t, s, told);
    add_draft(t, s);
    const double rest = fmax(0, s->rest);
    t->rest_sum = KEEP * t->rest_sum + (t->steps > 2 * FIRST ? bounded(rest, t->costs.rest) : rest);
    t->steps = KEEP * t->steps + 1;
    t->costs.rest = t->rest_sum / t->steps;
}
