/* SPDX-License-Identifier: MIT
 * A comparison as one page: the speed ratio, its breakdown, and the equality of texts. Every number comes from the JSON of
 * `wager compare --json`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "experiments/analysis/compare.h"
#include "experiments/report/forest_plot.h"
#include "experiments/report/html.h"
#include "experiments/report/report_parts.h"
#include "core/base/json_number.h"

enum { PAIRS = 60 }; /* pairs with details; the table has all pairs */

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

static void put_name(FILE *f, const json_t *p)
{
    char name[500];
    pair_name(name, sizeof name, p);
    wg_html_name(f, name);
}

/* Of a pair of numbers, the other run's above A's. */
static void put_two(FILE *f, const json_t *o, const char *key, const char *format, double scale)
{
    fputs("<td>", f);
    wg_report_put(f, format, wg_json_item(o, key, 1) * scale);
    fputs(" <small>A: ", f);
    wg_report_put(f, format, wg_json_item(o, key, 0) * scale);
    fputs("</small></td>", f);
}

static void put_interval(FILE *f, const json_t *o, const char *key, const char *interval)
{
    wg_report_put(f, "%.3fx", wg_json_measured(o, key));
    if (json_is_array(json_object_get(o, interval)))
        fprintf(f, " <small>[%.3f, %.3f]</small>", wg_json_item(o, interval, 0), wg_json_item(o, interval, 1));
}

static void put_ratio(FILE *f, const json_t *o, const char *key, const char *interval)
{
    fputs("<td>", f);
    put_interval(f, o, key, interval);
    fputs("</td>", f);
}

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static int of_verdict(const json_t *pairs, const char *verdict)
{
    int n = 0;
    for (size_t i = 0; i < json_array_size(pairs); i++)
        n += !strcmp(wg_json_word(json_array_get(pairs, i), "verdict"), verdict);
    return n;
}

static const char *verdict_of(const json_t *p)
{
    const char *v = wg_json_word(p, "verdict");
    return !*v || !strcmp(v, "unknown") ? "no verdict" : v;
}

/* What the comparison of A with run i found in common. */
static const json_t *with_run(const json_t *o, size_t i)
{
    size_t k;
    json_t *v;
    json_array_foreach(json_object_get(o, "prompts"), k, v)
        if (wg_json_int(v, "run") == (json_int_t)i) return v;
    return NULL;
}

static void answer(FILE *f, const json_t *o)
{
    const json_t *pairs = json_object_get(o, "pairs"), *first = json_array_get(pairs, 0);
    const int n = (int)json_array_size(pairs), faster = of_verdict(pairs, "faster"), slower = of_verdict(pairs, "slower");
    int equal = 0, of = 0;
    for (int i = 0; i < n; i++) {
        const json_t *same = json_object_get(json_array_get(pairs, (size_t)i), "same_texts");
        equal += (int)json_integer_value(json_object_get(same, "equal"));
        of += (int)json_integer_value(json_object_get(same, "of"));
    }
    fputs("<div class=\"answer\">\n<p><strong>Answer.</strong> ", f);
    if (n == 1) {
        fprintf(f, "The speed-up of %c is ", letter(json_object_get(first, "b")));
        put_interval(f, first, "speedup_ratio", "speedup_ratio_ci");
        fprintf(f, " that of A: %s.", verdict_of(first));
        if (json_is_integer(json_object_get(first, "prompts_needed")))
            fprintf(f, " At this rate about %.0f prompts would decide it.", wg_json_measured(first, "prompts_needed"));
    } else
        fprintf(f, "Beyond chance, %d of %d cells are faster than A's relative to plain decoding, %d slower; %d undecided.",
                faster, n, slower, n - faster - slower);
    if (of) fprintf(f, "</p>\n<p>Same texts: %d of %d requests.</p>\n</div>\n", equal, of);
    else fputs("</p>\n</div>\n", f);
    size_t i;
    json_t *warning;
    json_array_foreach(json_object_get(o, "warnings"), i, warning) {
        fputs("<p class=\"warn\">", f);
        wg_html_puts(f, json_string_value(warning));
        fputs("</p>\n", f);
    }
    if (json_array_size(json_object_get(o, "machine_diff")))
        fputs("<p class=\"warn\">More than the config differs (below), so a difference may not be the config's.</p>\n", f);
}

static void runs(FILE *f, const json_t *o)
{
    size_t i;
    json_t *r;
    wg_html_table(f, "The runs. A is the reference; only prompts that both have count.");
    fputs(
        "<thead><tr><th scope=\"col\">run</th><th scope=\"col\" class=\"l\">folder</th><th scope=\"col\" "
        "class=\"l\">started</th>"
        "<th scope=\"col\">cells</th><th scope=\"col\">requests</th><th scope=\"col\">failed</th><th scope=\"col\">prompts in "
        "common</th><th scope=\"col\">left out</th><th scope=\"col\" class=\"l\">state</th></tr></thead>\n<tbody>\n",
        f);
    json_array_foreach(json_object_get(o, "runs"), i, r) {
        const json_t *with_a = with_run(o, i);
        fprintf(f, "<tr><th scope=\"row\">%c</th><td class=\"w l\">", (char)('A' + i));
        wg_html_name(f, wg_json_word(r, "path"));
        fputs("</td><td class=\"l\">", f);
        wg_html_puts(f, wg_json_word(r, "started"));
        const bool published = json_is_true(json_object_get(r, "published")); /* its requests are not there */
        fprintf(f, "</td><td>%.0f</td><td>", wg_json_measured(r, "cells"));
        wg_report_put(f, "%.0f", published ? NAN : wg_json_measured(r, "requests"));
        fputs("</td><td>", f);
        wg_report_put(f, "%.0f", published ? NAN : wg_json_measured(r, "failed"));
        fputs("</td><td>", f);
        wg_report_put(f, "%.0f", wg_json_measured(with_a, "common"));
        fputs("</td><td>", f);
        wg_report_put(f, "%.0f", wg_json_measured(with_a, "only_a") + wg_json_measured(with_a, "only_b"));
        fprintf(f, "</td><td class=\"l\">%s%s</td></tr>\n",
                published                                      ? "published"
                : json_is_true(json_object_get(r, "complete")) ? "complete"
                                                               : "INCOMPLETE",
                json_is_true(json_object_get(r, "resumed")) ? ", resumed" : "");
    }
    wg_html_table_end(f);
}

/* ---- all pairs --------------------------------------------------------------------------------------------------- */

static void main_table(FILE *f, const json_t *pairs)
{
    wg_html_table(
        f,
        "Speed-up over A's: the ratio of the two speed-ups, each over the plain decoding of its own run; above 1 the other one "
        "is faster. In brackets 95 % intervals, jackknife over prompts, with the variance between runs. p: Holm's, of "
        "all cells together. Raw: decoding time per token of A over that of the other, of the cells and of plain "
        "decoding; what the machine did between the runs is in it.");
    fputs("<thead><tr><th scope=\"col\">cell</th><th scope=\"col\">prompts</th><th scope=\"col\">speed-up over A's</th><th "
          "scope=\"col\" class=\"l\">verdict</th><th scope=\"col\">p</th><th scope=\"col\">speed-up</th><th "
          "scope=\"col\">tau</th>"
          "<th scope=\"col\">tau ratio</th><th scope=\"col\">accepted</th><th scope=\"col\">raw TPOT, ms<small>p50</small></th>"
          "<th scope=\"col\">raw tok/s</th><th scope=\"col\">raw time</th><th scope=\"col\">raw plain time</th>"
          "<th scope=\"col\">same texts</th></tr></thead>\n<tbody>\n",
          f);
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        const json_t *p = json_array_get(pairs, i), *same = json_object_get(p, "same_texts");
        fputs("<tr><th scope=\"row\" class=\"w\">", f);
        put_name(f, p);
        fputs("</th><td>", f);
        wg_report_put(f, "%.0f", wg_json_measured(p, "prompts"));
        fputs("</td>", f);
        put_ratio(f, p, "speedup_ratio", "speedup_ratio_ci");
        fprintf(f, "<td class=\"l\">%s</td><td>", verdict_of(p));
        wg_report_put(f, "%.2g", wg_json_measured(p, "p_holm"));
        fputs("</td>", f);
        put_two(f, p, "speedup", "%.3fx", 1);
        put_two(f, p, "tau", "%.2f", 1);
        put_ratio(f, p, "tau_ratio", "tau_ratio_ci");
        put_two(f, p, "acceptance_rate", "%.1f %%", 100);
        put_two(f, p, "tpot_ms_p50", "%.2f", 1);
        put_two(f, p, "tok_s", "%.1f", 1);
        put_ratio(f, p, "faster", "faster_ci");
        put_ratio(f, p, "baseline_faster", "baseline_faster_ci");
        if (same)
            fprintf(f, "<td>%.0f of %.0f</td></tr>\n", json_number_value(json_object_get(same, "equal")),
                    json_number_value(json_object_get(same, "of")));
        else fputs("<td>-</td></tr>\n", f);
    }
    wg_html_table_end(f);
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

static void where_table(FILE *f, const json_t *p)
{
    char name[80];
    if (parts_of(p) == 0) return;
    wg_html_table(f, "By category, turn and length of the prompt.");
    fputs("<thead><tr><th scope=\"col\">prompts of</th><th scope=\"col\">prompts</th><th scope=\"col\">speed-up over A's</th>"
          "<th scope=\"col\">tok/s</th><th scope=\"col\">tau</th></tr></thead>\n<tbody>\n",
          f);
    for (int k = 0; k < PARTS; k++)
        for (size_t i = 0; i < json_array_size(json_object_get(p, part_lists[k])); i++) {
            const json_t *o = json_array_get(json_object_get(p, part_lists[k]), i);
            fputs("<tr><th scope=\"row\" class=\"w\">", f);
            wg_html_puts(f, part_name(name, sizeof name, o));
            fprintf(f, "</th><td>%.0f</td>", wg_json_measured(o, "prompts"));
            put_ratio(f, o, "speedup_ratio", "speedup_ratio_ci");
            put_two(f, o, "tok_s", "%.1f", 1);
            put_two(f, o, "tau", "%.2f", 1);
            fputs("</tr>\n", f);
        }
    wg_html_table_end(f);
}

static void regressions(FILE *f, const json_t *p)
{
    size_t i;
    json_t *r;
    if (json_array_size(json_object_get(p, "regressions")) == 0) return;
    wg_html_table(f, "The prompts that lost most against A.");
    fputs("<thead><tr><th scope=\"col\">prompt</th><th scope=\"col\" class=\"l\">category</th><th scope=\"col\">speed-up "
          "over A's</th>"
          "<th scope=\"col\">tok/s</th><th scope=\"col\">tokens</th></tr></thead>\n<tbody>\n",
          f);
    json_array_foreach(json_object_get(p, "regressions"), i, r) {
        fputs("<tr><th scope=\"row\" class=\"w\">", f);
        wg_html_puts(f, wg_json_word(r, "id"));
        fputs("</th><td class=\"l\">", f);
        wg_html_puts(f, wg_json_word(r, "category"));
        fprintf(f, "</td><td>%.3fx</td>", wg_json_measured(r, "speedup_ratio"));
        put_two(f, r, "tok_s", "%.1f", 1);
        put_two(f, r, "tokens", "%.0f", 1);
        fputs("</tr>\n", f);
    }
    wg_html_table_end(f);
}

static void divergence(FILE *f, const json_t *p)
{
    const json_t *d = json_object_get(json_object_get(p, "same_texts"), "first_divergence");
    if (!json_is_object(d)) return;
    fputs("<p>The texts differ first in prompt ", f);
    wg_html_puts(f, wg_json_word(d, "id"));
    if (json_array_size(json_object_get(p, "by_turn"))) fprintf(f, ", turn %.0f", wg_json_measured(d, "turn") + 1);
    fprintf(f, ", repeat %.0f, at token %.0f.</p>\n", wg_json_measured(d, "repeat"), wg_json_measured(d, "token"));
}

static void put_value(FILE *f, const json_t *v)
{
    char *text = json_is_string(v) ? wg_strdup(json_string_value(v)) : wg_json_canonical(v, false);
    fputs("<td class=\"w l mono\">", f);
    wg_html_puts(f, text);
    fputs("</td>", f);
    wg_free(text);
}

static void diff(FILE *f, const json_t *list, int runs, const char *caption)
{
    size_t i, k;
    json_t *row, *v;
    if (json_array_size(list) == 0) return;
    wg_html_table(f, caption);
    fputs("<thead><tr><th scope=\"col\">what</th>", f);
    for (int r = 0; r < runs; r++) fprintf(f, "<th scope=\"col\" class=\"l\">%c</th>", 'A' + r);
    fputs("</tr></thead>\n<tbody>\n", f);
    json_array_foreach((json_t *)(uintptr_t)list, i, row) {
        fputs("<tr><th scope=\"row\" class=\"w\">", f);
        wg_html_name(f, wg_json_word(row, "key"));
        fputs("</th>", f);
        json_array_foreach(json_object_get(row, "values"), k, v) put_value(f, v);
        fputs("</tr>\n", f);
    }
    wg_html_table_end(f);
}

static void one_pair(const wg_plot_out *to, const json_t *p, bool heading, bool drawn)
{
    FILE *f = to->f;
    if (heading) fputs("<h3>", f), put_name(f, p), fputs("</h3>\n", f);
    if (wg_json_measured(p, "requests") < 1) {
        fputs("<p>No request ended well in both.</p>\n", f);
        return;
    }
    const double failed = wg_json_measured(p, "failed"), alone = wg_json_measured(p, "in_one_only");
    if (failed > 0 || alone > 0)
        fprintf(f, "<p class=\"warn\">Left out: %.0f requests that failed, %.0f that only one run has.</p>\n", failed, alone);
    divergence(f, p);
    if (drawn) where_figure(to, p);
    where_table(f, p);
    regressions(f, p);
}

/* The title, from the runs' names. */
static void put_title(FILE *f, const json_t *o)
{
    size_t i;
    json_t *r;
    json_array_foreach(json_object_get(o, "runs"), i, r) {
        fputs(i == 0 ? "" : i + 1 < json_array_size(json_object_get(o, "runs")) ? ", " : " against ", f);
        wg_html_puts(f, *wg_json_word(r, "name") ? wg_json_word(r, "name") : wg_json_word(r, "path"));
    }
}

/* "A: PROCESSOR (LEVEL); MODEL; ... B: ...": what captions end with (free). */
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

void wg_compare_page(FILE *f, const json_t *o, bool drawings)
{
    char *about = about_runs(o);
    const wg_plot_out to = { .f = f, .about = about };
    const json_t *pairs = json_object_get(o, "pairs");
    const int n = (int)json_array_size(json_object_get(o, "runs"));
    const bool drawn = drawings && wg_plot_available(WG_PLOT_PAGE);
    wg_html_begin(f, "Comparison");
    fputs("<h1>Is it faster? ", f);
    put_title(f, o);
    fputs("</h1>\n", f);
    answer(f, o);
    runs(f, o);
    fputs("<h2>Numbers</h2>\n", f);
    main_table(f, pairs);
    if (drawn && json_array_size(pairs) > 1) pairs_figure(&to, pairs);
    if (drawings && !drawn)
        fputs("<p class=\"soft\">There is no gnuplot on the machine that wrote this page, so it has tables only.</p>\n", f);
    fputs("<h2>Where</h2>\n", f);
    for (size_t i = 0; i < json_array_size(pairs) && i < PAIRS; i++)
        one_pair(&to, json_array_get(pairs, i), json_array_size(pairs) > 1, drawn);
    if (json_array_size(pairs) > PAIRS)
        fprintf(f, "<p class=\"soft\">Details of the first %d cells; <code>wager compare --json</code> has all.</p>\n", PAIRS);
    fputs("<h2>What differs</h2>\n", f);
    if (json_array_size(json_object_get(o, "config_diff")) == 0) fputs("<p>Nothing in the config.</p>\n", f);
    diff(f, json_object_get(o, "config_diff"), n, "In the config.");
    diff(f, json_object_get(o, "machine_diff"), n, "Besides the config: program, machine, files.");
    if (drawn) wg_plot_script(f);
    wg_html_end(f);
    free(about);
}
