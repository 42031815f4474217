/* SPDX-License-Identifier: MIT
 * The breakdown of a cell (breakdown.h); methods.md, Acceptance rates, has the definitions. */
#include "experiments/run/breakdown.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "experiments/base/stats.h"
#include "core/base/json_number.h"

/* ---- categories -------------------------------------------------------------------------------------------------- */

/* The pairs of one category or turn, packed; for turns after the first, together with the same prompts' first turns. */
enum { SECONDS, TOKENS, PASSES, BASE_SECONDS, BASE_TOKENS, DRAFTED, ACCEPTED, FIRST_TOKENS, FIRST_PASSES, SERIES };
typedef struct part {
    double *v[SERIES];
    int n;
    double total[SERIES];
} part;

static bool open_part(part *s, int n)
{
    double *room = wg_alloc((size_t)n * SERIES, sizeof *room);
    *s = (part){ .n = 0 };
    for (int k = 0; room && k < SERIES; k++) s->v[k] = room + (size_t)k * (size_t)n;
    return room;
}

static void empty(part *s)
{
    s->n = 0;
    memset(s->total, 0, sizeof s->total);
}

/* Packs the pair at i; first: index of the conversation's first turn. A pair without tokens is skipped. */
static void pack(part *s, const wg_pairs *p, int i, int first)
{
    if (p->tokens[i] == 0 || p->tokens[first] == 0) return;
    const double v[SERIES] = { p->seconds[i], p->tokens[i],   p->passes[i],     p->base_seconds[i], p->base_tokens[i],
                               p->drafted[i], p->accepted[i], p->tokens[first], p->passes[first] };
    for (int k = 0; k < SERIES; k++) {
        s->v[k][s->n] = v[k];
        s->total[k] += v[k];
    }
    s->n++;
}

/* The object of a part. name: category or turn, whose reference is taken. */
static json_t *part_json(const part *s, const char *of, json_t *name, const wg_between_runs *between)
{
    const wg_ratio tau = { .a = s->v[TOKENS], .b = s->v[PASSES], .n = s->n };
    const wg_ratio speedup = {
        .a = s->v[BASE_SECONDS], .b = s->v[BASE_TOKENS], .c = s->v[SECONDS], .d = s->v[TOKENS], .n = s->n
    };
    json_t *o = json_object();
    json_object_set_new(o, of, name);
    json_object_set_new(o, "prompts", json_integer(s->n));
    json_object_set_new(o, "tokens", wg_json_number(s->total[TOKENS]));
    wg_ratio_set_json(o, "tau", &tau);
    wg_ratio_set_run_json(o, "speedup", &speedup, between);
    json_object_set_new(o, "acceptance_rate", wg_json_ratio(s->total[ACCEPTED], s->total[DRAFTED]));
    return o;
}

static bool is_first(const wg_dataset *prompts, int i)
{
    for (int k = 0; k < i; k++)
        if (!strcmp(prompts->prompt[k].category, prompts->prompt[i].category)) return false;
    return true;
}

static double mean_of(const json_t *list, const char *key)
{
    double sum = 0;
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)list, i, v) sum += json_number_value(json_object_get(v, key));
    return i ? sum / (double)i : NAN;
}

static double mean_of_prompts(const wg_pairs *p)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < p->n; i++) {
        const double r = p->base_seconds[i] / p->base_tokens[i] / (p->seconds[i] / p->tokens[i]);
        if (isfinite(r)) sum += r, n++;
    }
    return n ? sum / n : NAN;
}

enum { MOST_CATEGORIES = 64 };

void wg_add_categories(json_t *cell, const wg_dataset *prompts, const wg_pairs *p, const wg_between_runs *between)
{
    part s;
    json_t *list = json_array();
    const bool room = open_part(&s, p->n);
    int seen = 0;
    for (int i = 0; room && i < p->n && seen < MOST_CATEGORIES; i++) {
        const char *category = prompts->prompt[i].category;
        if (!is_first(prompts, i)) continue;
        seen++;
        empty(&s);
        for (int k = i; k < p->n; k++)
            if (!strcmp(prompts->prompt[k].category, category)) pack(&s, p, k, k);
        if (s.n) json_array_append_new(list, part_json(&s, "category", json_string(category), between));
    }
    wg_free(s.v[0]);
    json_object_set_new(cell, "tau_macro", wg_json_number(mean_of(list, "tau")));
    json_object_set_new(cell, "speedup_macro", wg_json_number(mean_of(list, "speedup")));
    json_object_set_new(cell, "speedup_mean_of_prompts", wg_json_number(mean_of_prompts(p)));
    if (json_array_size(list) < 2) json_array_clear(list);
    json_object_set_new(cell, "categories", list);
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

enum { MOST_TURNS = 64 };

void wg_add_turns(json_t *cell, const wg_dataset *prompts, const wg_pairs *questions, const wg_between_runs *between)
{
    part s = { .n = 0 };
    json_t *list = json_array();
    const bool room = questions->n && open_part(&s, prompts->n);
    for (int turn = 0; room && turn < prompts->turns && turn < MOST_TURNS; turn++) {
        empty(&s);
        for (int i = 0; i < prompts->n; i++) {
            const wg_prompt *p = &prompts->prompt[i];
            if (turn < p->turns) pack(&s, questions, p->before + turn, p->before);
        }
        if (!s.n) continue;
        json_t *o = part_json(&s, "turn", json_integer(turn), between);
        const wg_ratio tau = { .a = s.v[TOKENS], .b = s.v[PASSES], .c = s.v[FIRST_TOKENS], .d = s.v[FIRST_PASSES], .n = s.n };
        if (turn) wg_ratio_set_json(o, "tau_over_first", &tau);
        json_array_append_new(list, o);
    }
    wg_free(s.v[0]);
    json_object_set_new(cell, "turns", list);
}
