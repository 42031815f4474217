/* SPDX-License-Identifier: MIT
 * The document of a comparison's page: the object of `wager compare --json`, and its drawings. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "experiments/analysis/compare.h"
#include "core/base/json_number.h"
#include "experiments/report/charts.h"

enum { DRAWN = 60 }; /* pairs that have a drawing and details on the page */

static char letter(const json_t *side) { return (char)('A' + (int)json_integer_value(json_object_get(side, "run"))); }

/* "B:3 length=4, rule=match"; the reference is named where it is another cell. */
static void pair_name(char *to, size_t n, const json_t *p)
{
    const json_t *a = json_object_get(p, "a"), *b = json_object_get(p, "b");
    const bool same = !strcmp(wg_json_word(a, "name"), wg_json_word(b, "name"));
    int at = snprintf(to, n, "%c:%d %.200s", letter(b), (int)json_integer_value(json_object_get(b, "cell")),
                      wg_json_word(b, "name"));
    if (!same && at > 0 && (size_t)at < n)
        snprintf(to + at, n - (size_t)at, " against A:%d %.200s", (int)json_integer_value(json_object_get(a, "cell")),
                 wg_json_word(a, "name"));
}

static wg_estimate_ci speedup(const json_t *o)
{
    return (wg_estimate_ci){ wg_json_measured(o, "speedup_ratio"), wg_json_item(o, "speedup_ratio_ci", 0),
                             wg_json_item(o, "speedup_ratio_ci", 1) };
}

static const wg_estimate_ci none = { NAN, NAN, NAN };

static void pairs_figure(const wg_plot_out *to, const json_t *pairs)
{
    const size_t n = json_array_size(pairs);
    wg_forest_plot_row *row = wg_calloc(n, sizeof *row);
    for (size_t i = 0; row && i < n; i++) {
        char name[500];
        pair_name(name, sizeof name, json_array_get(pairs, i));
        row[i] = (wg_forest_plot_row){ wg_strdup(name), false, { speedup(json_array_get(pairs, i)), none } };
    }
    const wg_forest_plot o = { .title = "Speed-up over A's, by cell",
                               .caption = "Each cell's speed-up over A's, with 95 % intervals. On the dashed line they "
                                          "are equal; right of it the other run is faster.",
                               .axis = "speed-up over A's (equal: 1)",
                               .digits = 3,
                               .row = row,
                               .n = row ? (int)n : 0 };
    wg_forest_plot_figure(to, &o);
    for (size_t i = 0; row && i < n; i++) wg_free(row[i].name);
    wg_free(row);
}

/* ---- one pair ---------------------------------------------------------------------------------------------------- */

/* Subsets of the prompts: the lists of a pair, and the names of their items. */
static const char *const part_lists[] = { "by_category", "by_turn", "by_prompt_length" };
enum { PARTS = sizeof part_lists / sizeof *part_lists };

static size_t parts_of(const json_t *p)
{
    size_t n = 0;
    for (int k = 0; k < PARTS; k++) n += json_array_size(json_object_get(p, part_lists[k]));
    return n;
}

static const char *part_name(char *to, size_t n, const json_t *o)
{
    if (json_object_get(o, "prompt_tokens"))
        snprintf(to, n, "%.0f-%.0f tokens", wg_json_item(o, "prompt_tokens", 0), wg_json_item(o, "prompt_tokens", 1));
    else if (json_object_get(o, "turn")) snprintf(to, n, "turn %.0f", wg_json_measured(o, "turn") + 1);
    else snprintf(to, n, "%.70s", *wg_json_word(o, "category") ? wg_json_word(o, "category") : "(none)");
    return to;
}

static void where_figure(const wg_plot_out *to, const json_t *p)
{
    const size_t n = parts_of(p);
    char name[80];
    wg_forest_plot_row *row = n ? wg_calloc(n + 1, sizeof *row) : NULL;
    int at = 0;
    if (row) row[at++] = (wg_forest_plot_row){ wg_strdup("all prompts"), true, { speedup(p), none } };
    for (int k = 0; row && k < PARTS; k++)
        for (size_t i = 0; i < json_array_size(json_object_get(p, part_lists[k])); i++) {
            const json_t *o = json_array_get(json_object_get(p, part_lists[k]), i);
            row[at++] = (wg_forest_plot_row){ wg_strdup(part_name(name, sizeof name, o)), true, { speedup(o), none } };
        }
    const wg_forest_plot o = { .title = "Speed-up over A's, by parts of the prompts",
                               .caption = "Speed-up over A's, by category, turn and length of the prompt, with 95 % intervals.",
                               .axis = "speed-up over A's (equal: 1)",
                               .digits = 3,
                               .row = row,
                               .n = at };
    if (row) wg_forest_plot_figure(to, &o);
    for (int i = 0; i < at; i++) wg_free(row[i].name);
    wg_free(row);
}

/* The last sentence of captions, "A: PROCESSOR (LEVEL); MODEL; ... B: ..." (free). */
static char *about_runs(const json_t *o)
{
    char *text = NULL;
    size_t n = 0, i;
    json_t *r;
    FILE *f = open_memstream(&text, &n);
    if (!f) return NULL;
    json_array_foreach(json_object_get(o, "runs"), i, r)
        fprintf(f, "%s%c: %s", i ? " " : "", (char)('A' + i), wg_json_word(r, "about"));
    return fclose(f) == 0 ? text : (free(text), NULL);
}

/* The values of differences as texts, so that no reader of JSON rounds a large number. */
static json_t *texts_of(const json_t *differences)
{
    json_t *all = json_deep_copy(differences), *row, *v;
    size_t i, k;
    json_array_foreach(all, i, row)
        json_array_foreach(json_object_get(row, "values"), k, v) {
            char *text = json_is_string(v) ? wg_strdup(json_string_value(v)) : wg_json_canonical(v, false);
            json_array_set_new(json_object_get(row, "values"), k, wg_json_text(text));
            wg_free(text);
        }
    return all ? all : json_array();
}

static json_t *drawings_of(const json_t *o)
{
    char *about = about_runs(o), name[20];
    const json_t *pairs = json_object_get(o, "pairs");
    const wg_plot_out to = { .about = about, .page = json_array() };
    const size_t several = json_array_size(pairs) > 1;
    if (several) pairs_figure(&to, pairs);
    json_object_set_new(json_array_get(to.page, 0), "name", json_string("pairs"));
    for (size_t i = 0; i < json_array_size(pairs) && i < DRAWN; i++) {
        const size_t before = json_array_size(to.page);
        where_figure(&to, json_array_get(pairs, i));
        snprintf(name, sizeof name, "pair %zu", i);
        json_object_set_new(json_array_get(to.page, before), "name", json_string(name));
    }
    free(about);
    return to.page;
}

json_t *wg_compare_document(const json_t *comparison, bool drawings)
{
    const bool drawn = drawings && wg_plot_available(WG_PLOT_PAGE);
    json_t *o = json_copy((json_t *)(uintptr_t)comparison);
    json_object_set_new(o, "config_diff", texts_of(json_object_get(o, "config_diff")));
    json_object_set_new(o, "machine_diff", texts_of(json_object_get(o, "machine_diff")));
    return json_pack("{s:s, s:o, s:b, s:o}", "kind", "compare", "comparison", o, "no_gnuplot", drawings && !drawn, "figures",
                     drawn ? drawings_of(comparison) : json_array());
}
