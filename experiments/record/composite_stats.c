/* SPDX-License-Identifier: MIT
 * Statistics of composites (composite_stats.h). */
#include "experiments/record/composite_stats.h"

#include <stdio.h>
#include <string.h>

static int most(int a, int b) { return a > b ? a : b; }

/* The number of the first n tokens, accepted from one component's tree, that another component's tree also has. */
static int matched_by_others(const wg_composite_stats *a, int parts, int taken, int n)
{
    int matched = 0;
    for (int k = 0; k < parts; k++)
        if (k != taken && a[k].asked) matched = most(matched, a[k].matched);
    return matched < n ? matched : n;
}

wg_composite_step wg_composite_totals_add_step(wg_composite_totals *m, const wg_drafter *d, const wg_seq *s)
{
    wg_composite_stats a[WG_COMPOSITE_MOST];
    const int parts = d->class->composite_stats ? d->class->composite_stats(d, s, a, WG_COMPOSITE_MOST) : 0;
    wg_composite_step step = { .n = (int8_t)parts, .taken = -1 };
    bool all = true;
    int matched = 0, kept = 0;
    for (int i = s->n - s->last_emitted; i < s->n; i++) kept += s->drafted[i];
    m->n = step.n;
    for (int k = 0; k < step.n; k++) {
        wg_component_totals *p = &m->part[k];
        snprintf(p->kind, sizeof p->kind, "%s", a[k].kind);
        p->asked += a[k].asked;
        p->matched += a[k].matched;
        matched = most(matched, a[k].matched);
        all = all && a[k].asked;
        if (a[k].taken && a[k].drafted > 0) step.taken = (int8_t)k;
        step.matched[k] = (int16_t)(a[k].asked ? a[k].matched : -1);
    }
    m->matched += matched;
    if (step.taken < 0) return step;
    wg_component_totals *p = &m->part[step.taken];
    const int shared = matched_by_others(a, step.n, step.taken, kept);
    p->taken++;
    p->drafted += a[step.taken].drafted;
    p->accepted += kept;
    p->shared += shared;
    p->alone += all ? kept - shared : 0;
    return step;
}

/* The fields by name, for all functions that iterate over them. */
typedef struct field {
    const char *name;
    size_t at;
} field;
/* clang-format off */
#define FIELD(f) { #f, offsetof(wg_component_totals, f) }
/* clang-format on */
static const field fields[] = { FIELD(asked),  FIELD(taken), FIELD(drafted), FIELD(accepted),
                                FIELD(shared), FIELD(alone), FIELD(matched) };
enum { FIELDS = sizeof fields / sizeof *fields };

static long *at(wg_component_totals *p, int i) { return (long *)(void *)((char *)p + fields[i].at); }
static long value(const wg_component_totals *p, int i) { return *(const long *)(const void *)((const char *)p + fields[i].at); }

void wg_composite_totals_add(wg_composite_totals *to, const wg_composite_totals *from)
{
    to->n = most(to->n, from->n);
    to->matched += from->matched;
    for (int k = 0; k < from->n; k++) {
        memcpy(to->part[k].kind, from->part[k].kind, sizeof to->part[k].kind);
        for (int i = 0; i < FIELDS; i++) *at(&to->part[k], i) += value(&from->part[k], i);
    }
}

json_t *wg_composite_totals_json(const wg_composite_totals *m)
{
    json_t *list = m->n ? json_array() : NULL;
    for (int k = 0; k < m->n; k++) {
        json_t *v = json_pack("{s:i, s:s}", "part", k, "drafter", m->part[k].kind);
        for (int i = 0; i < FIELDS; i++) json_object_set_new(v, fields[i].name, json_integer(value(&m->part[k], i)));
        json_array_append_new(list, v);
    }
    return list;
}

void wg_composite_totals_read(wg_composite_totals *m, const json_t *v, long matched)
{
    *m = (wg_composite_totals){ .matched = matched };
    for (; m->n < WG_COMPOSITE_MOST && (size_t)m->n < json_array_size(v); m->n++) {
        const json_t *o = json_array_get(v, (size_t)m->n);
        const char *kind = json_string_value(json_object_get(o, "drafter"));
        wg_component_totals *p = &m->part[m->n];
        snprintf(p->kind, sizeof p->kind, "%s", kind ? kind : "");
        for (int i = 0; i < FIELDS; i++) *at(p, i) = (long)json_integer_value(json_object_get(o, fields[i].name));
    }
}
