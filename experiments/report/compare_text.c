/* SPDX-License-Identifier: MIT
 * A comparison as text: differences of the configs, then results, then breakdowns. */
#include <math.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "experiments/analysis/compare.h"
#include "core/base/json_number.h"
#include "experiments/base/stats.h"

typedef struct printer {
    FILE *f;
    bool md;
} printer;

static double at(const json_t *o, const char *key, size_t i)
{
    return json_number_value(json_array_get(json_object_get(o, key), i));
}
static bool has(const json_t *o, const char *key, size_t i)
{
    return json_is_number(json_array_get(json_object_get(o, key), i));
}

static char letter(const json_t *side) { return (char)('A' + (int)wg_json_int(side, "run")); }

static void heading(const printer *p, const char *text) { fprintf(p->f, p->md ? "\n## %s\n\n" : "\n%s\n", text); }

/* One row of a table; the first row of Markdown is its head. */
static void cells(const printer *p, bool head, int n, const char *const *cell, const int *width)
{
    for (int i = 0; i < n; i++) {
        if (p->md) fprintf(p->f, "| %s ", cell[i]);
        else fprintf(p->f, "  %-*s", i == n - 1 ? 0 : width[i], cell[i]);
    }
    fputs(p->md ? "|\n" : "\n", p->f);
    for (int i = 0; head && p->md && i < n; i++) fputs(i == n - 1 ? "|---|\n" : "|---", p->f);
}

static void value(const json_t *v, char *b, size_t n)
{
    char *s = json_is_string(v) ? wg_strdup(json_string_value(v)) : wg_json_canonical(v ? v : json_null(), false);
    if (s && json_is_string(v) && strlen(s) == 64 && strspn(s, "0123456789abcdef") == 64) snprintf(b, n, "%.12s...", s);
    else snprintf(b, n, "%.60s%s", s ? s : "?", s && strlen(s) > 60 ? "..." : "");
    wg_free(s);
}

static void diff(const printer *p, const json_t *list)
{
    size_t i, k;
    json_t *row, *v;
    json_array_foreach((json_t *)list, i, row) {
        fprintf(p->f, p->md ? "* `%s`: " : "  %s: ", wg_json_word(row, "key"));
        json_array_foreach(json_object_get(row, "values"), k, v) {
            char b[80];
            value(v, b, sizeof b);
            fprintf(p->f, "%s%s", k ? " | " : "", b);
        }
        fputc('\n', p->f);
    }
    if (json_array_size(list) == 0) fprintf(p->f, "%snothing\n", p->md ? "* " : "  ");
}

static void runs(const printer *p, const json_t *o)
{
    size_t i;
    json_t *r;
    heading(p, "Runs (the first one is the reference)");
    json_array_foreach(json_object_get(o, "runs"), i, r) {
        char requests[40];
        snprintf(requests, sizeof requests, "%d requests", (int)wg_json_real(r, "requests"));
        fprintf(p->f, "%s%c: %s, %s, %d cell%s, %s%s", p->md ? "* " : "  ", (char)('A' + i), wg_json_word(r, "path"),
                wg_json_word(r, "started"), (int)wg_json_real(r, "cells"), wg_json_real(r, "cells") == 1 ? "" : "s",
                json_is_true(json_object_get(r, "published")) ? "published" : requests,
                json_is_true(json_object_get(r, "resumed")) ? ", resumed" : "");
        if (wg_json_real(r, "failed") > 0) fprintf(p->f, ", %d failed", (int)wg_json_real(r, "failed"));
        if (wg_json_int(r, "sample") != (json_int_t)i) fprintf(p->f, ", %c again", (char)('A' + wg_json_int(r, "sample")));
        fputs(json_is_true(json_object_get(r, "complete")) ? "\n" : " (INCOMPLETE: only what had finished is compared)\n",
              p->f);
    }
    json_array_foreach(json_object_get(o, "cells"), i, r)
        if (wg_json_real(r, "only_a") > 0 || wg_json_real(r, "only_b") > 0)
            fprintf(p->f, "%sA and %c have %d cells in common; %d are only in A, %d only in %c, and are not compared\n",
                    p->md ? "* " : "  ", letter(r), (int)wg_json_real(r, "common"), (int)wg_json_real(r, "only_a"),
                    (int)wg_json_real(r, "only_b"), letter(r));
    json_array_foreach(json_object_get(o, "prompts"), i, r)
        if (wg_json_real(r, "only_a") > 0 || wg_json_real(r, "only_b") > 0)
            fprintf(p->f, "%sA and %c share %d prompts; %d are only in A, %d only in %c, and do not count\n",
                    p->md ? "* " : "  ", letter(r), (int)wg_json_real(r, "common"), (int)wg_json_real(r, "only_a"),
                    (int)wg_json_real(r, "only_b"), letter(r));
    json_array_foreach(json_object_get(o, "warnings"), i, r)
        fprintf(p->f, "%sWARNING: %s\n", p->md ? "* " : "  ", json_string_value(r));
}

static void ratio(const json_t *o, const char *name, char *b, size_t n)
{
    char ci[64];
    snprintf(ci, sizeof ci, "%s_ci", name);
    if (!json_is_number(json_object_get(o, name))) snprintf(b, n, "-");
    else if (!json_is_array(json_object_get(o, ci))) snprintf(b, n, "%.3fx", wg_json_real(o, name));
    else snprintf(b, n, "%.3fx [%.3f, %.3f]", wg_json_real(o, name), at(o, ci, 0), at(o, ci, 1));
}

static void both(const json_t *o, const char *name, const char *format, double scale, char *b, size_t n)
{
    char x[32] = "-", y[32] = "-";
    if (has(o, name, 0)) snprintf(x, sizeof x, format, at(o, name, 0) * scale);
    if (has(o, name, 1)) snprintf(y, sizeof y, format, at(o, name, 1) * scale);
    snprintf(b, n, "%s | %s", x, y);
}

static void fact(const printer *p, const char *name, const char *text)
{
    if (p->md) fprintf(p->f, "* %s: %s\n", name, text);
    else fprintf(p->f, "  %-22s %s\n", name, text);
}

static void table(const printer *p, const json_t *list, const char *title, const char *ratio_name)
{
    static const int width[] = { 22, 8, 26, 18, 14 };
    size_t i;
    json_t *r;
    if (json_array_size(list) == 0) return;
    const char *const first[5] = { title, "prompts", ratio_name, "tok/s A, other", "tau A, other" };
    fputc('\n', p->f);
    cells(p, true, 5, first, width);
    json_array_foreach((json_t *)list, i, r) {
        char b[5][80];
        if (json_object_get(r, "prompt_tokens"))
            snprintf(b[0], 80, "%.0f to %.0f", at(r, "prompt_tokens", 0), at(r, "prompt_tokens", 1));
        else if (json_object_get(r, "turn")) snprintf(b[0], 80, "%.0f", wg_json_real(r, "turn") + 1);
        else snprintf(b[0], 80, "%.70s", *wg_json_word(r, "category") ? wg_json_word(r, "category") : "(none)");
        snprintf(b[1], 80, "%d", (int)wg_json_real(r, "prompts"));
        ratio(r, "speedup_ratio", b[2], 80);
        snprintf(b[3], 80, "%.1f, %.1f", at(r, "tok_s", 0), at(r, "tok_s", 1));
        snprintf(b[4], 80, "%.3f, %.3f", at(r, "tau", 0), at(r, "tau", 1));
        cells(p, false, 5, (const char *const[]){ b[0], b[1], b[2], b[3], b[4] }, width);
    }
}

static void worst(const printer *p, const json_t *list)
{
    static const int width[] = { 22, 14, 9, 20, 12 };
    size_t i;
    json_t *r;
    if (json_array_size(list) == 0) return;
    fputc('\n', p->f);
    cells(p, true, 5, (const char *const[]){ "slowest against A", "category", "ratio", "tok/s A, other", "tokens A, other" },
          width);
    json_array_foreach((json_t *)list, i, r) {
        char b[5][80];
        snprintf(b[0], 80, "%.70s", wg_json_word(r, "id"));
        snprintf(b[1], 80, "%.70s", wg_json_word(r, "category"));
        snprintf(b[2], 80, "%.3fx", wg_json_real(r, "speedup_ratio"));
        snprintf(b[3], 80, "%.1f, %.1f", at(r, "tok_s", 0), at(r, "tok_s", 1));
        snprintf(b[4], 80, "%.0f, %.0f", at(r, "tokens", 0), at(r, "tokens", 1));
        cells(p, false, 5, (const char *const[]){ b[0], b[1], b[2], b[3], b[4] }, width);
    }
}

static void texts(const printer *p, const json_t *pair)
{
    char b[400], turn[40] = "";
    const json_t *same = json_object_get(pair, "same_texts"), *d = json_object_get(same, "first_divergence");
    if (json_array_size(json_object_get(pair, "by_turn")))
        snprintf(turn, sizeof turn, ", turn %.0f", wg_json_real(d, "turn") + 1);
    size_t n = (size_t)snprintf(b, sizeof b, "%d of %d equal", (int)wg_json_real(same, "equal"), (int)wg_json_real(same, "of"));
    if (json_is_object(d)) {
        char x[40], y[40];
        value(json_object_get(d, "a"), x, sizeof x);
        value(json_object_get(d, "b"), y, sizeof y);
        snprintf(b + n, sizeof b - n, "; first difference: prompt %.60s%s, repeat %d, token %d (%s | %s)",
                 wg_json_word(d, "id"), turn, (int)wg_json_real(d, "repeat"), (int)wg_json_real(d, "token"),
                 json_is_null(json_object_get(d, "a")) ? "ended" : x, json_is_null(json_object_get(d, "b")) ? "ended" : y);
    }
    fact(p, "same texts", b);
}

static void verdict(const printer *p, const json_t *o, char b_name, const char *ratio_name)
{
    char r[80], b[300];
    const char *v = wg_json_word(o, "verdict");
    const bool decided = !strcmp(v, "faster") || !strcmp(v, "slower");
    ratio(o, "speedup_ratio", r, sizeof r);
    if (!json_is_number(json_object_get(o, "p")))
        snprintf(b, sizeof b, "%s: no verdict; it needs %d prompts in both, with their baselines", r, WG_INTERVAL_PROMPTS);
    else if (decided) snprintf(b, sizeof b, "%s: %c is %s (p %.2g)", r, b_name, v, wg_json_real(o, "p_holm"));
    else if (json_is_integer(json_object_get(o, "prompts_needed")))
        snprintf(b, sizeof b, "%s: undecided (p %.2g); about %.0f prompts would decide it", r, wg_json_real(o, "p_holm"),
                 wg_json_real(o, "prompts_needed"));
    else if (json_is_true(json_object_get(o, "totals")))
        snprintf(b, sizeof b, "%s: undecided (p %.2g)", r, wg_json_real(o, "p_holm"));
    else
        snprintf(b, sizeof b, "%s: undecided (p %.2g); more prompts would not decide it, several runs of both might", r,
                 wg_json_real(o, "p_holm"));
    fact(p, ratio_name, b);
    both(o, "speedup", "%.3fx", 1, b, sizeof b);
    fact(p, "speed-ups", b);
}

static void one_pair(const printer *p, const json_t *o, bool with_config)
{
    char title[600], b[200];
    const json_t *a = json_object_get(o, "a"), *other = json_object_get(o, "b");
    const char name = letter(other);
    snprintf(title, sizeof title, "A:%d %.200s  against  %c:%d %.200s", (int)wg_json_real(a, "cell"), wg_json_word(a, "name"),
             name, (int)wg_json_real(other, "cell"), wg_json_word(other, "name"));
    heading(p, title);
    if (with_config && json_array_size(json_object_get(o, "config_diff"))) diff(p, json_object_get(o, "config_diff"));
    const int unpaired = (int)wg_json_real(o, "in_one_only"), failed = (int)wg_json_real(o, "failed");
    const bool totals = json_is_true(json_object_get(o, "totals")); /* a published run has no requests */
    if (totals) snprintf(b, sizeof b, "not known; %d in A", (int)wg_json_int(o, "requests"));
    else snprintf(b, sizeof b, "%d, of %d prompts", (int)wg_json_real(o, "requests"), (int)wg_json_real(o, "prompts"));
    if (failed || unpaired)
        snprintf(b + strlen(b), sizeof b - strlen(b), "; left out: %d failed, %d in one run only", failed, unpaired);
    fact(p, "requests in both", b);
    if (wg_json_real(o, "requests") < 1) return;
    char ratio_name[20];
    snprintf(ratio_name, sizeof ratio_name, "speed-up, %c/A", name);
    verdict(p, o, name, ratio_name);
    if (json_object_get(o, "same_texts")) texts(p, o);
    else fact(p, "same texts", "not known; the digests of all outputs differ");
    both(o, "tau", "%.3f", 1, b, sizeof b);
    char r[80];
    ratio(o, "tau_ratio", r, sizeof r);
    snprintf(b + strlen(b), sizeof b - strlen(b), "   (B/A %s)", r);
    fact(p, "tau", b);
    both(o, "acceptance_rate", "%.1f %%", 100, b, sizeof b);
    fact(p, "accepted / drafted", b);
    const double mean = wg_json_measured(o, "speedup_ratio_mean_of_prompts");
    snprintf(b, sizeof b, isnan(mean) ? "-" : "%.3fx", mean);
    if (!totals) fact(p, "mean of prompts", b);
    both(o, "tok_s", "%.1f", 1, b, sizeof b);
    fact(p, "raw tok/s", b);
    ratio(o, "faster", b, sizeof b);
    fact(p, "raw time, A/B", b);
    ratio(o, "baseline_faster", b, sizeof b);
    fact(p, "raw plain time, A/B", b);
    both(o, "ttft_ms_p50", "%.1f ms", 1, b, sizeof b);
    fact(p, "raw TTFT, median", b);
    both(o, "tpot_ms_p50", "%.2f ms", 1, b, sizeof b);
    fact(p, "raw TPOT, median", b);
    table(p, json_object_get(o, "by_category"), "category", ratio_name);
    table(p, json_object_get(o, "by_turn"), "turn", ratio_name);
    table(p, json_object_get(o, "by_prompt_length"), "prompt tokens", ratio_name);
    worst(p, json_object_get(o, "regressions"));
}

static bool only_config_differs(const json_t *o) { return json_array_size(json_object_get(o, "machine_diff")) == 0; }

void wg_compare_print(FILE *f, const json_t *o, bool markdown)
{
    const printer p = { f, markdown };
    size_t i;
    json_t *pair;
    if (markdown) fputs("# Comparison\n", f);
    runs(&p, o);
    heading(&p, "What differs in the config");
    diff(&p, json_object_get(o, "config_diff"));
    if (!only_config_differs(o)) {
        heading(&p, "WARNING: more than the config differs, so a difference below may not be the config's");
        diff(&p, json_object_get(o, "machine_diff"));
    }
    json_array_foreach(json_object_get(o, "pairs"), i, pair)
        one_pair(&p, pair, json_array_size(json_object_get(o, "pairs")) > 1);
    const int n = (int)wg_json_int(o, "family");
    fprintf(
        f,
        "\nspeed-up: over the plain decoding of the same run; above 1, a ratio favours the other run. Intervals: 95 %% each, "
        "jackknife\n"
        "over prompts, with the variance between runs. p: Holm's, of %d comparison%s together; at most 5 %% of such "
        "families have\n"
        "a wrong verdict. raw: decoding time per token of A over that of the other; what the machine did between the "
        "runs is in it.\n",
        n, n == 1 ? "" : "s");
}
