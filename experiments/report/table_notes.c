/* SPDX-License-Identifier: MIT
 * The sentences around a table (table_notes.h). */
#include "experiments/report/table_notes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/json_number.h"
#include "core/base/mem.h"
#include "core/base/number.h"
#include "experiments/base/once.h"
#include "experiments/base/stats.h"

enum { VALUE = 128, WORDS = 1024 };

static const char *text_of(const json_t *cell, const char *key) { return json_string_value(json_object_get(cell, key)); }

static bool of_draft(const char *key) { return !strncmp(key, "draft.", 6); }

void wg_table_swept(const json_t *cell, const char *key, char *b, size_t n)
{
    const json_t *v = json_object_get(json_object_get(cell, "cell"), key);
    char *text = v ? wg_json_canonical(v, false) : NULL;
    if (json_is_string(v)) snprintf(b, n, "%s", json_string_value(v));
    else if (json_is_real(v)) wg_number_text(json_real_value(v), b, n);
    else snprintf(b, n, "%s", text ? text : "-");
    wg_free(text);
}

void wg_table_failures(FILE *f, const json_t *cells)
{
    long failed = 0;
    const char *first = NULL;
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *c = json_array_get(cells, i);
        failed += json_integer_value(json_object_get(c, "failed"));
        if (!first) first = json_string_value(json_object_get(c, "first_failure"));
    }
    if (failed)
        fprintf(f, "%ld request%s failed and count%s on neither side; the first: %s\n", failed, failed == 1 ? "" : "s",
                failed == 1 ? "s" : "", first);
}

void wg_table_withdrawn(FILE *f, const json_t *cells)
{
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *c = json_array_get(cells, i), *why = json_object_get(c, "lossless_withdrawn");
        if (json_is_string(why))
            fprintf(f, "cell %zu, %s under %s: NOT lossless: %s\n", i, text_of(c, "drafter"), text_of(c, "rule"),
                    json_string_value(why));
    }
}

/* The drafter of a cell and its swept options as a text (wg_free). */
static char *draft_text(const json_t *cell)
{
    const char *key;
    json_t *v, *draft = json_object();
    json_object_set(draft, "", json_object_get(cell, "drafter"));
    json_object_foreach(json_object_get(cell, "cell"), key, v)
        if (of_draft(key)) json_object_set(draft, key, v);
    char *text = wg_json_canonical(draft, false);
    json_decref(draft);
    return text;
}

void wg_table_overlap(FILE *f, const json_t *cells, const char *before, const char *after)
{
    json_t *seen = json_object();
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *o = json_object_get(json_array_get(cells, i), "overlap");
        char *draft = o ? draft_text(json_array_get(cells, i)) : NULL;
        const bool first = draft && wg_once(seen, draft); /* one line per drafter: the texts of its other cells differ little */
        wg_free(draft);
        if (!first) continue;
        fprintf(f, "%s%s: the draft model has %.0f of the target's %.0f tokens (%.1f %%), which are %.1f %% of the text%s\n",
                before, text_of(json_array_get(cells, i), "drafter"), wg_json_real(o, "shared"), wg_json_real(o, "vocabulary"),
                100 * wg_json_real(o, "share"), 100 * wg_json_real(o, "text_share"), after);
    }
    json_decref(seen);
}

void wg_table_draft_contexts(FILE *f, const json_t *cells, const char *before, const char *after)
{
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *c = json_array_get(cells, i);
        const double ended = wg_json_real(json_object_get(c, "rounds_without_draft"), "draft_context");
        char positions[40] = "";
        if (!(ended > 0)) continue;
        if (wg_json_int(c, "draft_context"))
            snprintf(positions, sizeof positions, " of %.0f positions", wg_json_real(c, "draft_context"));
        fprintf(f, "%scell %zu, %s: %.0f of %.0f rounds had no draft: the draft's context%s had ended%s\n", before, i,
                text_of(c, "drafter"), ended, wg_json_real(c, "target_passes"), positions, after);
    }
}

void wg_table_intervals(FILE *f, const json_t *cells, const char *before, const char *after)
{
    const int n = (int)json_array_size(cells);
    int known = 0;
    for (int i = 0; i < n; i++) known += json_is_array(json_object_get(json_array_get(cells, (size_t)i), "speedup_ci"));
    if (known > 1)
        fprintf(f,
                "%s%d intervals at 95 %% each: about %.1f of them miss by chance alone; the best of %d cells looks better than "
                "it is.%s",
                before, known, 0.05 * known, n, after);
    if (known < n)
        fprintf(f, "%sNo interval for %d of %d cells: it takes %d prompts that ended well on both sides.%s", before, n - known,
                n, WG_INTERVAL_PROMPTS, after);
}

void wg_table_disturbed(FILE *f, const json_t *cells)
{
    double most = 0;
    int n = 0;
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *c = json_array_get(cells, i);
        if (!json_is_true(json_object_get(c, "disturbed"))) continue;
        most = fmax(most, wg_json_real(c, "baseline_spread"));
        n++;
    }
    if (!n) return;
    fprintf(f, "*: disturbed, %d of %zu cells: repeats of plain decoding", n, json_array_size(cells));
    fprintf(f, " differ by up to %.0f %%; run them again on a machine that does nothing else.\n", 100 * most);
}

/* "model, length 2, rule match, temperature 0" */
static void cell_words(const json_t *c, char *b, size_t n)
{
    char value[VALUE];
    const char *label = text_of(c, "label");
    snprintf(b, n, "%s", label ? label : text_of(c, "drafter"));
    static const char *const keys[] = { "draft.length", "draft.k", "draft.nodes" };
    static const char *const words[] = { ", length", ", k", ", nodes" };
    for (int i = 0; i < 3 && !label; i++) {
        wg_table_swept(c, keys[i], value, sizeof value);
        if (strcmp(value, "-") != 0) snprintf(b + strlen(b), n - strlen(b), "%s %s", words[i], value);
    }
    snprintf(b + strlen(b), n - strlen(b), ", rule %s, temperature %g", text_of(c, "rule"), wg_json_real(c, "temperature"));
}

void wg_table_undrafted(FILE *f, const json_t *cells)
{
    char words[WORDS];
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *c = json_array_get(cells, i), *why = json_object_get(c, "rounds_without_draft");
        if (json_integer_value(json_object_get(c, "drafted")) || !json_integer_value(json_object_get(why, "length_policy")))
            continue;
        cell_words(c, words, sizeof words);
        fprintf(f, "%s: no draft at all, since none was expected to pay; a drafter with a length drafts always.\n", words);
    }
}

/* Counts the cells with a speed-up, and those whose interval is above 1 and below 1. */
static void count_cells(const json_t *cells, int *n, int *faster, int *slower, const json_t **best)
{
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *c = json_array_get(cells, i), *ci = json_object_get(c, "speedup_ci");
        const double x = wg_json_measured(c, "speedup");
        if (isnan(x)) continue;
        ++*n;
        if (!*best || x > wg_json_real(*best, "speedup")) *best = c;
        *faster += json_is_array(ci) && json_number_value(json_array_get(ci, 0)) > 1;
        *slower += json_is_array(ci) && json_number_value(json_array_get(ci, 1)) < 1;
    }
}

void wg_table_learnt(FILE *f, const json_t *cells)
{
    int n = 0, faster = 0, slower = 0, autos = 0;
    double least = INFINITY, most = 0, share = INFINITY;
    const json_t *best = NULL;
    char words[WORDS];
    count_cells(cells, &n, &faster, &slower, &best);
    if (n < 2) return;
    cell_words(best, words, sizeof words);
    const double top = wg_json_real(best, "speedup");
    fprintf(f, "\nLearnt here: ");
    if (top > 1) fprintf(f, "the fastest is %s, at %.2f times plain decoding's speed;\n", words, top);
    else fprintf(f, "nothing is faster than plain decoding (the best is %s, at %.2fx);\n", words, top);
    if (json_is_array(json_object_get(best, "speedup_ci")))
        fprintf(f, "%d of %d cells are faster than it and %d slower, by their intervals.\n", faster, n, slower);
    else fputs("without intervals nothing is decided.\n", f);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *c = json_array_get(cells, i);
        const double x = wg_json_measured(c, "speedup"), of = wg_json_measured(json_object_get(c, "best_fixed"), "share");
        if (strncmp(text_of(c, "drafter"), "auto", 4) != 0 || isnan(x)) continue;
        autos++;
        least = fmin(least, x);
        most = fmax(most, x);
        if (!isnan(of)) share = fmin(share, of);
    }
    if (!autos) return;
    fprintf(f, "auto, which chooses drafter and length at each round, has %.2fx to %.2fx", least, most);
    if (isfinite(share)) fprintf(f, ", and at least %.2f of the fastest fixed setting beside it", share);
    fputs(".\n", f);
}
