/* SPDX-License-Identifier: MIT
 * The sections of a report from a trace of probabilities: losses of drafter and rule, and calibration of confidences. */
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "experiments/report/bar_chart.h"
#include "experiments/report/html.h"
#include "experiments/report/report_parts.h"

static const char *const signals[] = { "q", "top", "entropy", "path" };
enum { SIGNALS = 4 };

static const json_t *attribution(const json_t *cells, size_t i)
{
    return json_object_get(json_array_get(cells, i), "attribution");
}

/* NULL also for results of versions that counted acceptance under the cell's rule as the event, and named none. */
static const json_t *calibration(const json_t *cells, size_t i)
{
    const json_t *c = json_object_get(attribution(cells, i), "calibration");
    return json_object_get(c, "event") ? c : NULL;
}

void wg_report_plot_losses(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells)
{
    static char *const series[] = { "loss of the drafter", "loss of the rule" };
    enum { CELLS = 12, PARTS = 2 };
    size_t chosen[CELLS];
    char *group[CELLS];
    wg_estimate_ci value[CELLS * PARTS];
    int n = 0;
    const int all = wg_report_fastest(cells, chosen, CELLS, NULL, 0);
    for (int k = 0; k < all; k++) {
        const json_t *o = attribution(cells, chosen[k]);
        if (!json_is_object(o) || !(group[n] = wg_report_numbered(run, chosen[k]))) continue;
        value[PARTS * n] = wg_report_estimate(o, "drafter_loss", "drafter_loss_ci");
        value[PARTS * n++ + 1] = wg_report_estimate(o, "rule_loss", "rule_loss_ci");
    }
    const wg_bar_chart o = { .title = "Losses of drafter and rule",
                             .caption =
                                 (int)json_array_size(cells) > CELLS
                                     ? "Shares of the reached nodes with a draft that a better drafter (1 - alpha*) and a "
                                       "better rule (alpha* - kept) would keep, with 95 % intervals over prompts: the "
                                       "twelve fastest cells."
                                     : "Shares of the reached nodes with a draft that a better drafter (1 - alpha*) and a "
                                       "better rule (alpha* - kept) would keep, with 95 % intervals over prompts.",
                             .y = "share of nodes",
                             .group = group,
                             .series = series,
                             .value = value,
                             .groups = n,
                             .n = PARTS,
                             .line = NAN };
    wg_bar_chart_figure(to, &o);
    for (int k = 0; k < n; k++) wg_free(group[k]);
}

static void losses(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells, bool drawings)
{
    FILE *f = to->f;
    fputs("<h2>Who loses what</h2>\n", f);
    if (drawings) wg_report_plot_losses(to, run, cells);
    wg_report_columns(
        f, run, cells, WG_IN_LOSSES,
        "Of the nodes that were reached and had a draft: the share kept, the most that any lossless rule could have "
        "kept (alpha*), and the two parts of what is missing.");
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const char *why = json_string_value(json_object_get(attribution(cells, i), "rule_loss_unknown"));
        if (!why) continue;
        fprintf(f, "<p>Cell %zu has no loss of its rule: ", i);
        wg_html_puts(f, why);
        fputs(".</p>\n", f);
    }
}

static void areas(FILE *f, const wg_run_reader *run, const json_t *cells)
{
    fputs("<h3>Do confidences mean what they say?</h3>\n", f);
    wg_html_table(
        f, "Against p, the probability with which the target takes the token (acceptance would depend on the rule). ECE: mean "
           "distance of a confidence from p. AUC: of two drafts of which the target takes one, how often that one had the "
           "higher confidence; by depth. Signals: q of the drafted token, the largest q, exp(-entropy of q), which is no "
           "probability, and the product of q along the path, against that of p.");
    fputs("<thead><tr><th scope=\"col\">cell</th><th scope=\"col\" class=\"l\">signal</th><th scope=\"col\">drafts</th>"
          "<th scope=\"col\">ECE</th><th scope=\"col\">AUC</th><th scope=\"col\">1</th><th scope=\"col\">2</th>"
          "<th scope=\"col\">3</th><th scope=\"col\">4</th></tr></thead>\n<tbody>\n",
          f);
    for (size_t i = 0; i < json_array_size(cells); i++)
        for (int k = 0; k < SIGNALS; k++) {
            const json_t *c = json_object_get(calibration(cells, i), signals[k]);
            if (!json_is_object(c)) continue;
            fputs("<tr>", f);
            wg_report_row(f, run, i);
            fprintf(f, "<td class=\"l\">%s</td>", signals[k]);
            wg_report_td(f, "%.0f", wg_json_measured(c, "n"));
            wg_report_td(f, "%.3f", wg_json_measured(c, "ece"));
            wg_report_td(f, "%.3f", wg_json_measured(c, "auc"));
            for (size_t d = 0; d < 4; d++) wg_report_td(f, "%.2f", wg_json_item(c, "auc_by_depth", d));
            fputs("</tr>\n", f);
        }
    wg_html_table_end(f);
}

static void reliability(FILE *f, const wg_run_reader *run, const json_t *cells)
{
    wg_html_table(f, "Reliability of q: the mean p of drafted tokens whose q was about that much.");
    fputs("<thead><tr><th scope=\"col\">cell</th>", f);
    for (int b = 0; b < 10; b++) fprintf(f, "<th scope=\"col\">.%d-%s%d</th>", b, b == 9 ? "1." : ".", (b + 1) % 10);
    fputs("</tr></thead>\n<tbody>\n", f);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *bins = json_object_get(json_object_get(calibration(cells, i), "q"), "bins");
        if (!json_is_array(bins)) continue;
        fputs("<tr>", f);
        wg_report_row(f, run, i);
        for (size_t b = 0; b < 10; b++) wg_report_td(f, "%.2f", wg_json_measured(json_array_get(bins, b), "p"));
        fputs("</tr>\n", f);
    }
    wg_html_table_end(f);
}

void wg_report_confidence(const wg_plot_out *to, const wg_run_reader *run, const json_t *cells, bool drawings)
{
    FILE *f = to->f;
    bool lost = false, calibrated = false;
    for (size_t i = 0; i < json_array_size(cells); i++) {
        lost = lost || json_is_object(attribution(cells, i));
        calibrated = calibrated || calibration(cells, i);
    }
    if (lost) losses(to, run, cells, drawings);
    if (!calibrated) return;
    areas(f, run, cells);
    reliability(f, run, cells);
}
