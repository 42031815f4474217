/* SPDX-License-Identifier: MIT
 * See auto_plan.h. */
#include "draft/compose/auto_plan.h"

#include <math.h>

enum { HORIZON = 64 };  /* tokens over which reading the text is spread */
enum { ROWS_MADE = 4 }; /* of p, at most, in a step of one sequence; the others are lazy (core/engine/engine.c) */
static const double WEIGHT = 4, TOP_WEIGHT = 12; /* trials that a prior is worth: at a depth; of a value of q */
/* Slope of survival by q's best probability. A rule that compares keeps a token about as often as q is sure of it (0.65 at
 * temperature 0, 0.9 at 0.8); rejection keeps it with 1 - TV(p, q), which hardly depends on that (0.24; the bundled pair). */
static const double TILT[] = { [false] = 0.2, [true] = 0.65 };
/* Live prices of drafts: part of a logarithmic difference; the most that counts. */
static const double FORWARD = 0.2, CLIP = 0.5;

/* ---- prices */

static double pass_of(const wg_auto_prices *p, int rows)
{
    if (rows <= WG_TREE_MAX) return p->pass[rows];
    return p->pass[WG_TREE_MAX] +
           (rows - WG_TREE_MAX) * fmax(0, p->pass[WG_TREE_MAX] - p->pass[WG_TREE_MAX / 2]) / (WG_TREE_MAX - WG_TREE_MAX / 2);
}

double wg_auto_pass(const wg_auto_prices *p, int rows, int sequences)
{
    return pass_of(p, rows * sequences) / sequences + p->row * (rows < ROWS_MADE ? rows : ROWS_MADE);
}

double wg_auto_level(const wg_auto_prices *p, int candidate)
{
    return p->level[candidate] > 0 ? p->level[candidate] + p->row : 0;
}

double wg_auto_moved(double price, double seen)
{
    if (!(price > 0) || !(seen > 0)) return price;
    return price * exp(FORWARD * fmax(-CLIP, fmin(CLIP, log(seen / price))));
}

/* ---- survival */

static double clamp01(double x) { return fmin(1, fmax(0, x)); }
static int top_bin(double top) { return (int)(clamp01(top) * (WG_AUTO_TOPS - 1e-9)); }
static int place(int depth) { return depth < WG_AUTO_DEPTH ? depth - 1 : WG_AUTO_DEPTH - 1; }

int wg_auto_class(double score) { return score <= 0 ? 0 : score < 1.5 ? 1 : score < 3.5 ? 2 : 3; }

static void count(double *hits, double *trials, bool hit, double keep)
{
    *hits = keep * *hits + hit;
    *trials = keep * *trials + 1;
}

void wg_auto_learn(wg_auto_survival *s, int class, int depth, bool hit, double keep)
{
    count(&s->hit[class][place(depth)], &s->trial[class][place(depth)], hit, keep);
}

void wg_auto_learn_top(wg_auto_survival *s, double top, bool hit, double keep)
{
    count(&s->top_hit[top_bin(top)], &s->top_trial[top_bin(top)], hit, keep);
    s->top_sum = keep * s->top_sum + clamp01(top);
    s->top_count = keep * s->top_count + 1;
}

void wg_auto_learn_rows(wg_auto_survival *s, int depth, int rows)
{
    if (depth > WG_AUTO_DEPTH) return;
    s->rows[depth] = s->rows[depth] > 0 ? 0.8 * s->rows[depth] + 0.2 * rows : rows;
}

static void fade(double *hit, double *trial, double most)
{
    if (*trial <= most) return;
    *hit *= most / *trial;
    *trial = most;
}

void wg_auto_fade(wg_auto_survival *s, double most)
{
    for (int c = 0; c < WG_AUTO_CLASSES; c++)
        for (int d = 0; d < WG_AUTO_DEPTH; d++) fade(&s->hit[c][d], &s->trial[c][d], most);
    for (int b = 0; b < WG_AUTO_TOPS; b++) fade(&s->top_hit[b], &s->top_trial[b], most);
}

/* At a depth, given what is estimated one level above. */
static double survive_below(const wg_auto_survival *s, int class, int depth, double above)
{
    return (s->hit[class][place(depth)] + WEIGHT * above) / (s->trial[class][place(depth)] + WEIGHT);
}

double wg_auto_survive(const wg_auto_survival *s, int class, int depth, double prior)
{
    double a = prior;
    for (int d = 1; d <= place(depth) + 1; d++) a = survive_below(s, class, d, a);
    return a;
}

double wg_auto_survive_top(const wg_auto_survival *s, int depth, double top, double prior, bool compares)
{
    const int b = top_bin(top);
    const double mean = s->top_count > 0 ? s->top_sum / s->top_count : clamp01(top);
    const double expected = clamp01(wg_auto_survive(s, 0, depth, prior) + TILT[compares] * (clamp01(top) - mean));
    return (s->top_hit[b] + TOP_WEIGHT * expected) / (s->top_trial[b] + TOP_WEIGHT);
}

/* ---- decisions */

/* The best depth of one candidate, without what reading costs it. Its height is at least 1. */
static wg_auto_choice best_depth(const wg_auto_prices *p, const wg_auto_survival *s, const wg_auto_offer *o, int k,
                                 int sequences)
{
    wg_auto_choice best = { .candidate = -1 };
    double reach = 1, tokens = 1, survives = o->prior;
    for (int d = 1; d <= o->height && d <= WG_AUTO_DEPTH; d++) {
        survives = survive_below(s, o->class, d, survives);
        reach *= survives;
        tokens += reach;
        const double cost = wg_auto_pass(p, o->rows[d], sequences) + d * wg_auto_level(p, k);
        if (d == 1 || tokens * best.cost > best.tokens * cost * (1 + 1e-9)) best = (wg_auto_choice){ k, d, tokens, cost };
    }
    return best;
}

wg_auto_choice wg_auto_choose(const wg_auto_prices *p, const wg_auto_survival *s, const wg_auto_offer *offer, int n,
                              int sequences, int left, double least, double *gain)
{
    const wg_auto_choice none = { .candidate = -1, .tokens = 1, .cost = wg_auto_pass(p, 1, sequences) };
    const double span = left < 1 ? 1 : left < HORIZON ? left : HORIZON;
    wg_auto_choice best = none;
    double cheapest = INFINITY; /* per token, reading included */
    for (int k = 0; k < n; k++) {
        if (offer[k].height < 1) continue;
        const wg_auto_choice c = best_depth(p, &s[k], &offer[k], k, sequences);
        const double each = c.cost / c.tokens + p->read[k] * offer[k].lag / span;
        if (each * (1 + 1e-9) >= cheapest) continue;
        cheapest = each;
        best = c;
    }
    *gain = best.candidate < 0 ? -INFINITY : none.cost * p->flattery / cheapest - 1;
    return *gain > least ? best : none;
}

int wg_auto_pace(const wg_auto_prices *p, const wg_auto_survival *s, const wg_auto_chain *c, int sequences, double prior)
{
    const double pass = wg_auto_pass(p, c->depth + 1, sequences), level = wg_auto_level(p, c->candidate);
    double reach = c->reach * c->next, tokens = 0, first = 0, more = -INFINITY;
    for (int j = 1; j <= c->left && c->depth + j <= WG_AUTO_DEPTH; j++) {
        if (j > 1) reach *= wg_auto_survive(s, 0, c->depth + j, prior);
        tokens += reach;
        const double gain = tokens - c->rate * (wg_auto_pass(p, c->depth + j + 1, sequences) - pass + (j - 1) * level);
        if (j == 1) first = gain;
        else more = fmax(more, gain);
    }
    return more > fmax(first, 0) ? WG_AUTO_GOES_ON : first > 0 ? WG_AUTO_LAST : WG_AUTO_ENDS;
}
