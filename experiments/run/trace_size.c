/* SPDX-License-Identifier: MIT
 * Bytes of rows by kind (core/trace/trace_rows.c), for the settings of a cell. */
#include "experiments/run/trace_size.h"

#include <math.h>
#include <string.h>

#include "core/trace/trace.h"
#include "draft/lm/grow.h"

enum { HEAD = 16 + 8 }; /* of a row: kind, count, error; an overlap */

/* Most nonzero tokens of a row that is stored whole. */
static int whole_of(const wg_setup_top *top, int vocab) { return wg_trace_whole(top->trace_rows, top->trace_top, vocab); }

double wg_trace_row_most(const wg_cell *cell, int vocab, bool of_p)
{
    const wg_setup_top *top = &cell->setup.top;
    const wg_sampling *o = &cell->setup.sampling;
    const int tokens = o->top_k && o->top_k < vocab ? o->top_k : vocab;
    const double all = vocab, list = fmin(12.0 * tokens, 8 * all);
    if (top->trace_rows == WG_TRACE_LOGITS && of_p) return HEAD + 4 * all;
    if (o->temperature == 0 && of_p) return HEAD;
    if (top->trace_rows == WG_TRACE_F16) return HEAD + fmin(list, 2 * all);
    const int listed = whole_of(top, vocab);
    if (listed == vocab) return HEAD + (of_p ? fmin(list, 4 * all) : list);
    const int cut = top->trace_top + WG_TRACE_NODES + 1;
    const bool short_ones = tokens <= listed || o->top_p < 1 || o->min_p > 0;
    return HEAD + fmax(short_ones ? 12.0 * fmin(tokens, listed) : 0, tokens > listed ? 24.0 * fmin(cut, vocab) + 12 : 0);
}

/* The option of the drafter with this name and type, in its struct; NULL: it has none. */
static const void *option_of(const wg_cell *cell, const char *name, int type)
{
    const wg_option *o = wg_option_find(cell->setup.drafter->options, name);
    return o && (int)o->type == type ? (const char *)cell->setup.draft + o->at : NULL;
}

enum { CHAIN, KARY, OF_FILE }; /* the first values of the option `grow`; later ones have at most `budget` draft tokens */

/* The option `grow`, and the shape if its tree is k-ary (else its n is 0). */
static int shape_of(const wg_cell *cell, wg_shape *shape)
{
    const int *grow = option_of(cell, "grow", WG_OPT_ENUM);
    const char *tree = option_of(cell, "tree", WG_OPT_STRING);
    wg_error ignored;
    const int how = grow ? *grow : CHAIN;
    if (!tree || how > KARY || wg_shape_kary(shape, tree, &ignored)) shape->n = 0;
    return how;
}

/* Most draft tokens of a round. */
static int drafted(const wg_cell *cell)
{
    static const char *const names[] = { "nodes", "length", "k" };
    wg_shape shape;
    const int how = shape_of(cell, &shape), *n = how > OF_FILE ? option_of(cell, "budget", WG_OPT_INT) : NULL;
    if (!strcmp(cell->setup.drafter->name, "none")) return 0;
    if (how == OF_FILE) return WG_TREE_MAX - 1;
    if (shape.n) return shape.n - 1;
    for (int i = 0; !n && i < 3; i++) n = option_of(cell, names[i], WG_OPT_INT);
    return n ? *n : WG_TRACE_NODES;
}

double wg_trace_round_most(const wg_cell *cell, int vocab)
{
    const int n = drafted(cell);
    const unsigned laws = wg_drafter_laws(cell->setup.drafter, cell->setup.draft, &cell->setup.sampling);
    const double q = laws & ~(unsigned)WG_LAW_FIXED ? wg_trace_row_most(cell, vocab, false) : 0;
    return (n + 1) * wg_trace_row_most(cell, vocab, true) + n * q;
}

/* Whether the options of the drafter make trees with siblings; false for composites, whose trees only their parts know. */
static bool branches(const wg_cell *cell)
{
    const wg_drafter_test *test = cell->setup.drafter->test_options;
    const bool *tree = option_of(cell, "tree", WG_OPT_BOOL);
    wg_shape shape;
    const int how = shape_of(cell, &shape);
    if (tree) return *tree;
    if (shape.n) return shape.levels < shape.n - 1;
    if (option_of(cell, "grow", WG_OPT_ENUM)) return how > KARY;
    bool all = test && test->options;
    for (; all && test->options; test++) all = test->siblings;
    return all;
}

wg_status wg_trace_check_rule(const wg_cell *cell, int number, int vocab, wg_error *err)
{
    const wg_setup *s = &cell->setup;
    const wg_sampling *o = &s->sampling;
    const int whole_ones = whole_of(&s->top, vocab);
    const bool truncated = (o->top_k && o->top_k <= whole_ones) || o->top_p < 1 || o->min_p > 0;
    const bool some = o->temperature == 0 || truncated || *s->top.grammar || *s->top.json_schema;
    const bool suffices = s->verifier->cut == WG_CUT_TREES || (s->verifier->cut == WG_CUT_CHAINS && !branches(cell));
    if (s->top.trace != WG_TRACE_PROBS || suffices || some || whole_ones == vocab) return WG_OK;
    wg_cell whole = *cell;
    whole.setup.top.trace_rows = WG_TRACE_EXACT;
    return wg_fail(
        err, WG_EUNSUPPORTED,
        "cell %d: the trace cuts rows of %d tokens to their most probable ones, and rule %s%s cannot be verified again "
        "from these; use \"trace_rows\": \"exact\" (up to %.0f kB a round; cut rows: %.0f kB), sampling.top_k of "
        "at most %d, or \"trace\": \"steps\"",
        number, vocab, s->verifier->name, s->verifier->cut ? " over trees" : "", wg_trace_round_most(&whole, vocab) / 1e3,
        wg_trace_round_most(cell, vocab) / 1e3, whole_ones);
}
