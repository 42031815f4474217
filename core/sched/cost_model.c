/* SPDX-License-Identifier: MIT
 * See cost_model.h. */
#include "core/sched/cost_model.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/base/number.h"

enum { ROWS_MADE = 4 }; /* of p in a round of a sequence, at most: the engine leaves the others lazy (core/engine/engine.c) */

/* ---- prices */

/* Sizes of one row count each below 8, then each a quarter larger than the one before; the last has no end. */
static int size_of(int rows)
{
    int size = rows < 8 ? rows - 1 : 7, from = 8;
    for (; rows >= 8 && from + from / 4 <= rows && size + 1 < WG_COST_SIZES; size++) from += from / 4;
    return size;
}

/* A size that was never timed is off its table as the nearest smaller one that was. */
static double factor_of(const wg_cost_prices *p, int rows)
{
    for (int size = size_of(rows); size >= 0; size--)
        if (p->seen[size] > 0) return p->factor[size];
    return 1;
}

double wg_cost_of_pass(const wg_cost_prices *p, int rows)
{
    return (rows <= p->rows ? p->pass[rows] : p->pass[p->rows] * rows / p->rows) * factor_of(p, rows);
}

double wg_cost_each(const wg_cost_prices *p, int rows, int sequences)
{
    return wg_cost_of_pass(p, rows * sequences) / sequences + p->row * (rows < ROWS_MADE ? rows : ROWS_MADE);
}

double wg_cost_level(const wg_cost_prices *p, int member) { return p->level[member] > 0 ? p->level[member] + p->row : 0; }

static double news(double seen, double expected) { return fmax(-WG_COST_CLIP, fmin(WG_COST_CLIP, log(seen / expected))); }

void wg_cost_saw_pass(wg_cost_prices *p, int rows, double seconds)
{
    if (rows < 1 || !(seconds > 0)) return;
    const double price = wg_cost_of_pass(p, rows);
    const int size = size_of(rows);
    if (!(p->unit > 0)) p->unit = seconds / price;
    const double off = news(seconds, p->unit * price), rate = fmax(WG_COST_RATE, 1.0 / (p->seen[size] + 2));
    p->factor[size] = factor_of(p, rows) * exp(rate * off);
    p->seen[size] += p->seen[size] < 1000;
    p->unit *= exp(WG_COST_RATE * off);
}

void wg_cost_saw_draft(wg_cost_prices *p, int member, int levels, int tokens, int read, double seconds)
{
    double *level = &p->level[member];
    if (levels < 1 || !(p->unit > 0) || !(seconds > 0)) return;
    const double took = seconds / p->unit, price = levels * wg_cost_level(p, member) + tokens * p->token;
    if (!(price > 0)) {
        *level = took / levels;
    } else if (read >= WG_COST_EVERY && p->read[member] > 0) {
        if (took > price) p->read[member] *= exp(WG_COST_RATE * news(took - price, read * p->read[member]));
    } else {
        const double by = exp(WG_COST_RATE * news(took, price));
        *level *= by;
        p->token *= by;
    }
}

void wg_cost_saw_rest(wg_cost_prices *p, double seconds)
{
    if (p->unit > 0) p->rest += WG_COST_RATE * (fmax(0, fmin(seconds / p->unit, wg_cost_of_pass(p, 1))) - p->rest);
}

/* ---- survival */

int wg_cost_class(double score) { return score <= 0 ? 0 : score < 1.5 ? 1 : score < 3.5 ? 2 : 3; }

void wg_cost_learn(wg_cost_survival *s, int class, int tried, int kept, double keep)
{
    for (int d = 0; d < WG_COST_DEPTH; d++) {
        s->hit[class][d] = keep * s->hit[class][d] + (d < kept);
        s->trial[class][d] = keep * s->trial[class][d] + (d < tried);
    }
}

void wg_cost_learn_width(wg_cost_survival *s, int nodes, int levels, double keep)
{
    s->nodes = keep * s->nodes + nodes;
    s->levels = keep * s->levels + levels;
}

void wg_cost_carry(wg_cost_survival *s, const wg_cost_survival *from)
{
    *s = *from;
    for (int c = 0; c < WG_COST_SCORES; c++)
        for (int d = 0; d < WG_COST_DEPTH; d++) {
            const double part = fmin(1, WG_COST_RUN / fmax(1, s->trial[c][d]));
            s->hit[c][d] *= part;
            s->trial[c][d] *= part;
        }
}

double wg_cost_survive(const wg_cost_survival *s, int class, int depth, double above)
{
    return (s->hit[class][depth - 1] + WG_COST_PRIOR * above) / (s->trial[class][depth - 1] + WG_COST_PRIOR);
}

int wg_cost_width(const wg_cost_survival *s, int levels)
{
    return s->nodes > s->levels ? (int)ceil(levels * s->nodes / s->levels - 1e-9) : levels;
}

/* ---- decisions */

wg_cost_choice wg_cost_best(const wg_cost_prices *p, const wg_cost_survival *s, const wg_cost_offer *offer, int n,
                            int sequences, int left)
{
    const double memory = 1 / (1 - WG_COST_KEEP), span = fmax(1, fmin(left, memory));
    wg_cost_choice best = { .member = -1, .tokens = 1, .cost = wg_cost_each(p, 1, sequences) };
    for (int k = 0; k < n; k++) {
        double reach = 1, tokens = 1, survives = offer[k].prior;
        for (int d = 1; d <= offer[k].height; d++) {
            survives = wg_cost_survive(&s[k], offer[k].class, d, survives);
            tokens += reach *= survives;
            const double read = tokens * p->read[k] * offer[k].lag / span;
            const double cost = wg_cost_each(p, offer[k].rows[d], sequences) + d * wg_cost_level(p, k) + read;
            if (best.member >= 0 && tokens * best.cost <= best.tokens * cost * (1 + 1e-9)) continue;
            best = (wg_cost_choice){ k, d, tokens, cost };
        }
    }
    return best;
}

double wg_cost_gain(const wg_cost_prices *p, const wg_cost_choice *c, int sequences)
{
    return c->member < 0 ? -INFINITY : c->tokens / c->cost * wg_cost_each(p, 1, sequences) - 1;
}

/* Prices are no surer than WG_COST_SWITCH, so a trial counts at least as much. A quarter of the rounds is of trials at most. */
bool wg_cost_trial_step(wg_cost_trial *t, bool pays, double loss)
{
    const double cost = WG_COST_RUN * fmax(loss, WG_COST_SWITCH - 1);
    t->saved += WG_COST_SHARE;
    t->steps++;
    if (t->on && (t->steps > WG_COST_RUN || t->drafts == pays)) *t = (wg_cost_trial){ .on = false };
    else if (!t->on && t->steps > 3 * WG_COST_RUN && cost <= t->saved) *t = (wg_cost_trial){ true, !pays, 1, 0 };
    return t->on ? t->drafts : pays;
}

int wg_cost_explore(unsigned round, int best, int most)
{
    const int by = round / WG_COST_EVERY % 2 ? 1 : -1;
    return round % WG_COST_EVERY || best == 0 || best + by < 1 || best + by > most ? best : best + by;
}

bool wg_cost_numbers(const char *text, double least, double *out, int most, int *n)
{
    *n = 0;
    for (const char *at = text;; at++) {
        char one[64];
        double v;
        const size_t len = strcspn(at, "/");
        if (len >= sizeof one) return false;
        memcpy(one, at, len);
        one[len] = '\0';
        if (!wg_number_parse(one, &v) || !(v >= least && v < 1e12)) return false;
        if (*n < most) out[(*n)++] = v;
        at += len;
        if (!*at) return true;
    }
}

wg_status wg_cost_open(wg_cost_prices *p, const char *given, const char *drafter, wg_profile *from, wg_lm *target,
                       wg_error *err)
{
    int n = 0;
    wg_prices passes;
    p->rows = WG_COST_ROWS;
    if (*given && !wg_cost_numbers(given, DBL_MIN, p->pass + 1, p->rows, &n))
        return wg_fail(err, WG_ECONFIG,
                       "drafter %s: costs=%s: expected positive numbers such as 1/1.02/1.1, for target passes "
                       "over 1, 2, ... rows",
                       drafter, given);
    if (!*given) WG_TRY(wg_profile_target(from, target, &passes, err));
    for (int r = n + 1; r <= p->rows; r++) p->pass[r] = *given ? p->pass[n] : wg_prices_of(&passes, r);
    for (int r = p->rows; r >= 1; r--) p->pass[r] /= p->pass[1];
    return WG_OK;
}

wg_status wg_cost_open_draft(wg_cost_prices *p, int member, wg_profile *from, wg_lm *draft, wg_lm *target, wg_error *err)
{
    wg_prices passes, of;
    WG_TRY(wg_profile_target(from, target, &passes, err));
    WG_TRY(wg_profile_draft(from, draft, target, &of, err));
    p->level[member] = wg_prices_of(&of, 1) / passes.seconds[0];
    p->read[member] = (wg_prices_of(&of, 4) - wg_prices_of(&of, 1)) / 3 / passes.seconds[0];
    return WG_OK;
}
