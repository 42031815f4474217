/* SPDX-License-Identifier: MIT
 * Pass statistics and events (pass_stats.h). */
#include "experiments/record/pass_stats.h"

#include <math.h>

#include "core/base/mem.h"
#include "core/base/json_number.h"

/* ---- passes ------------------------------------------------------------------------------------------------------ */

void wg_pass_stats_step(wg_pass_stats *l, const wg_seq *s, const wg_tree *t, int k, int page_slots)
{
    const int before = s->n - s->last_emitted - 1, rows = wg_tree_rows(t); /* the root is one of the rows */
    const int pages = (before + rows + page_slots - 1) / page_slots;
    double rejected = 0;
    for (int i = 0; i < rows; i++) {
        const int seen = before + wg_mask_count(&t->anc[i]);
        l->seen += seen;
        if (i > 0 && i < t->n) rejected += seen;
    }
    for (int i = s->n - s->last_emitted, depth = 1; i < s->n; i++)
        if (s->drafted[i]) rejected -= before + ++depth; /* the path's nodes, one a level */
    l->passes += 1.0 / k;
    l->rows += rows;
    l->cached += before;
    l->seen_rejected += rejected;
    l->held += (double)pages * page_slots;
    l->unused += (double)pages * page_slots - before - rows;
    l->dropped += rows - s->path.n;
}

/* The fields by name, for all functions that iterate over them. */
typedef struct field {
    const char *name;
    size_t at;
} field;
/* clang-format off */
#define FIELD(f) { #f, offsetof(wg_pass_stats, f) }
/* clang-format on */
static const field fields[] = { FIELD(passes),        FIELD(rows), FIELD(cached), FIELD(seen),
                                FIELD(seen_rejected), FIELD(held), FIELD(unused), FIELD(dropped) };
enum { FIELDS = sizeof fields / sizeof *fields };

static double *at(wg_pass_stats *l, int i) { return (double *)(void *)((char *)l + fields[i].at); }
static double value(const wg_pass_stats *l, int i) { return *(const double *)(const void *)((const char *)l + fields[i].at); }

void wg_pass_stats_add(wg_pass_stats *to, const wg_pass_stats *from)
{
    for (int i = 0; i < FIELDS; i++) *at(to, i) += value(from, i);
}

json_t *wg_pass_stats_json(const wg_pass_stats *l)
{
    json_t *v = json_object();
    for (int i = 0; i < FIELDS; i++) {
        const double x = value(l, i);
        json_object_set_new(v, fields[i].name, x == floor(x) && fabs(x) < 1e15 ? json_integer((json_int_t)x) : json_real(x));
    }
    return v;
}

void wg_pass_stats_read(wg_pass_stats *l, const json_t *v)
{
    for (int i = 0; i < FIELDS; i++) *at(l, i) = json_number_value(json_object_get(v, fields[i].name));
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

wg_status wg_events_open(wg_events *e, int cap, wg_error *err)
{
    *e = (wg_events){ .cap = cap };
    e->gap = wg_calloc((size_t)cap, sizeof *e->gap);
    e->tokens = wg_calloc((size_t)cap, sizeof *e->tokens);
    return e->gap && e->tokens ? WG_OK : wg_nomem(err, (size_t)cap * 12, "the moments of tokens");
}

void wg_events_close(wg_events *e)
{
    wg_free(e->gap);
    wg_free(e->tokens);
}

void wg_event_add(wg_events *e, double gap, int tokens)
{
    if (e->n == e->cap) return;
    e->gap[e->n] = gap;
    e->tokens[e->n++] = tokens;
}

json_t *wg_events_gaps(const wg_events *e)
{
    json_t *list = json_array();
    for (int i = 0; i < e->n; i++) json_array_append_new(list, wg_json_ms(e->gap[i]));
    return list;
}

json_t *wg_events_tokens(const wg_events *e)
{
    json_t *list = json_array();
    for (int i = 0; i < e->n; i++) json_array_append_new(list, json_integer(e->tokens[i]));
    return list;
}

void wg_events_read(wg_events *e, const json_t *v)
{
    const json_t *gaps = json_object_get(v, "itl_ms"), *tokens = json_object_get(v, "itl_tokens");
    e->n = 0;
    for (size_t i = 0; i < json_array_size(gaps) && i < json_array_size(tokens); i++)
        wg_event_add(e, json_number_value(json_array_get(gaps, i)) / 1e3, (int)json_integer_value(json_array_get(tokens, i)));
}

static bool grow(wg_series *s, int more)
{
    if (more <= s->cap - s->n) return true;
    const size_t cap = 2 * ((size_t)s->n + (size_t)more);
    double *v = cap > INT32_MAX ? NULL : wg_realloc(s->v, cap, sizeof *v);
    if (!v) return false;
    s->v = v;
    s->cap = (int)cap;
    return true;
}

wg_status wg_events_spread(const wg_events *e, wg_series *per_event, wg_series *per_token, wg_error *err)
{
    int tokens = 0;
    for (int i = 0; i < e->n; i++) tokens += e->tokens[i];
    if (!grow(per_event, e->n) || !grow(per_token, tokens))
        return wg_nomem(err, ((size_t)e->n + (size_t)tokens) * sizeof(double), "the moments of tokens");
    for (int i = 0; i < e->n; i++) {
        per_event->v[per_event->n++] = e->gap[i];
        for (int k = 0; k < e->tokens[i]; k++) per_token->v[per_token->n++] = e->gap[i] / e->tokens[i];
    }
    return WG_OK;
}
