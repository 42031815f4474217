/* SPDX-License-Identifier: MIT
 * Records of requests (load_record.h). */
#include "experiments/load/load_record.h"

#include <math.h>

#include "core/base/mem.h"

const char *const wg_load_outcome_names[WG_LOAD_KINDS] = {
#define X(name, word, doc) [WG_LOAD_##name] = word,
    WG_LOAD_OUTCOMES(X)
#undef X
};

bool wg_load_record_event(wg_load_record *r, double at, int tokens)
{
    if (r->events == 0) {
        r->first = r->last = at;
        r->first_tokens = tokens;
        r->events = 1;
        return true;
    }
    const int n = r->events - 1;
    if (n == r->room) {
        const size_t more = r->room ? 2 * (size_t)r->room : 64;
        double *gap = wg_realloc(r->gap, more, sizeof *gap);
        if (gap) r->gap = gap;
        int *of = wg_realloc(r->gap_tokens, more, sizeof *of);
        if (of) r->gap_tokens = of;
        if (!gap || !of) return false;
        r->room = (int)more;
    }
    r->gap[n] = at - r->last;
    r->gap_tokens[n] = tokens;
    r->last = at;
    r->events++;
    return true;
}

void wg_load_record_close(wg_load_record *r)
{
    wg_free(r->gap);
    wg_free(r->gap_tokens);
    wg_free(r->text);
    r->gap = NULL;
    r->gap_tokens = NULL;
    r->text = NULL;
}

double wg_load_record_tpot(const wg_load_record *r)
{
    return r->events > 1 && r->tokens > 1 ? (r->last - r->first) / (r->tokens - 1) : NAN;
}
