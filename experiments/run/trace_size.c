/* SPDX-License-Identifier: MIT
 * Bytes of rows by kind (core/trace/trace_rows.c), for the settings of a cell. */
#include "experiments/run/trace_size.h"

#include <math.h>
#include <string.h>

#include "core/trace/trace.h"
#include "draft/lm/grow.h"

enum { HEAD = 16 + 8 }; /* of a row: kind, count, error; an overlap */

static bool cuts(const wg_setup_top *top, int vocab)
{
    return top->trace_rows == WG_TRACE_TOP || (top->trace_rows == WG_TRACE_AUTO && vocab >= WG_TRACE_WIDE);
}

/* Most nonzero tokens of a row that is stored exactly where rows are cut. */
static int list_of(const wg_setup_top *top) { return top->trace_rows == WG_TRACE_AUTO ? WG_TRACE_LIST : top->trace_top; }

double wg_trace_row_most(const wg_cell *cell, int vocab, bool of_p)
{
    const wg_setup_top *top = &cell->setup.top;
    const wg_sampling *o = &cell->setup.sampling;
    const int tokens = o->top_k && o->top_k < vocab ? o->top_k : vocab;
    const double all = vocab, list = fmin(12.0 * tokens, 8 * all);
    if (top->trace_rows == WG_TRACE_LOGITS && of_p) return HEAD + 4 * all;
    if (o->temperature == 0 && of_p) return HEAD;
    if (top->trace_rows == WG_TRACE_F16) return HEAD + fmin(list, 2 * all);
    if (!cuts(top, vocab)) return HEAD + (of_p ? fmin(list, 4 * all) : list);
    const int listed = list_of(top), cut = top->trace_top + WG_TRACE_NODES + 1;
    const bool short_ones = tokens <= listed || o->top_p < 1 || o->min_p > 0;
    return HEAD + fmax(short_ones ? 12.0 * fmin(tokens, listed) : 0, tokens > listed ? 24.0 * fmin(cut, vocab) + 12 : 0);
}

/* Draft tokens of a round. */
static int drafted(const wg_cell *cell)
{
    const wg_option *tree = wg_option_find(cell->setup.drafter->options, "tree");
    const wg_option *length = wg_option_find(cell->setup.drafter->options, "length");
    const char *text = tree && tree->type == WG_OPT_STRING ? (const char *)cell->setup.draft + tree->at : "";
    wg_shape shape;
    wg_error ignored;
    if (!strcmp(cell->setup.drafter->name, "none")) return 0;
    if (*text && !wg_shape_kary(&shape, text, &ignored)) return shape.n - 1;
    int n = WG_TRACE_NODES;
    if (length && length->type == WG_OPT_INT) memcpy(&n, (const char *)cell->setup.draft + length->at, sizeof n);
    return n;
}

double wg_trace_round_most(const wg_cell *cell, int vocab)
{
    const int n = drafted(cell);
    const unsigned laws = wg_drafter_laws(cell->setup.drafter, cell->setup.draft, &cell->setup.sampling);
    const double q = laws & ~(unsigned)WG_LAW_FIXED ? wg_trace_row_most(cell, vocab, false) : 0;
    return (n + 1) * wg_trace_row_most(cell, vocab, true) + n * q;
}

wg_status wg_trace_check_rule(const wg_cell *cell, int number, int vocab, wg_error *err)
{
    const wg_setup *s = &cell->setup;
    const wg_sampling *o = &s->sampling;
    const bool truncated = (o->top_k && o->top_k <= list_of(&s->top)) || o->top_p < 1 || o->min_p > 0;
    const bool some = o->temperature == 0 || truncated || *s->top.grammar || *s->top.json_schema;
    if (s->top.trace != WG_TRACE_PROBS || s->verifier->cut || some || !cuts(&s->top, vocab) || vocab <= list_of(&s->top))
        return WG_OK;
    wg_cell whole = *cell;
    whole.setup.top.trace_rows = WG_TRACE_EXACT;
    return wg_fail(
        err, WG_EUNSUPPORTED,
        "cell %d: the trace cuts rows of %d tokens to their most probable ones, and rule %s cannot be verified again "
        "from these; use \"trace_rows\": \"exact\" (up to %.0f kB a round; cut rows: %.0f kB), sampling.top_k of "
        "at most %d, or \"trace\": \"steps\"",
        number, vocab, s->verifier->name, wg_trace_round_most(&whole, vocab) / 1e3, wg_trace_round_most(cell, vocab) / 1e3,
        list_of(&s->top));
}
