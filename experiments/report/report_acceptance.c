/* SPDX-License-Identifier: MIT
 * Acceptance on a report's page: by its definitions (results/README.md), by depth, and the distribution of accepted tokens
 * per step. */
#include "experiments/report/html.h"
#include "experiments/report/report_parts.h"

enum { MOST = 16 };

/* Shares of the steps that drafted by their number of accepted draft tokens. */
static void histogram(FILE *f, const wg_run_reader *run, const json_t *cells)
{
    size_t most = 0;
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const size_t n =
            json_array_size(json_object_get(json_object_get(json_array_get(cells, i), "acceptance"), "acceptance_histogram"));
        most = n > most ? n : most;
    }
    if (most < 2) return; /* nothing was drafted, or the summary is of an older version */
    most = most > MOST ? MOST : most;
    wg_html_table(f, "Steps that drafted, by how many draft tokens they kept.");
    fputs("<thead><tr><th scope=\"col\">cell</th>", f);
    for (size_t d = 0; d < most; d++) fprintf(f, "<th scope=\"col\">%zu</th>", d);
    fputs("</tr></thead>\n<tbody>\n", f);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const json_t *c = json_array_get(cells, i);
        fputs("<tr>", f);
        wg_report_row(f, run, i);
        for (size_t d = 0; d < most; d++) {
            wg_report_td(f, "%.1f %%",
                         100 * wg_json_item(json_object_get(c, "acceptance"), "acceptance_histogram", d) /
                             wg_json_measured(c, "spec_decode_num_drafts"));
        }
        fputs("</tr>\n", f);
    }
    wg_html_table_end(f);
}

/* By depth, offered-corrected. */
static void positions(FILE *f, const wg_run_reader *run, const json_t *cells)
{
    size_t most = 0;
    for (size_t i = 0; i < json_array_size(cells); i++) {
        const size_t n = json_array_size(json_object_get(json_array_get(cells, i), "acceptance_by_position"));
        most = n > most ? n : most;
    }
    if (most == 0) return;
    most = most > MOST ? MOST : most;
    wg_html_table(f, "Acceptance by position: of the steps whose draft was that deep, the share that accepted so far.");
    fputs("<thead><tr><th scope=\"col\">cell</th>", f);
    for (size_t d = 1; d <= most; d++) fprintf(f, "<th scope=\"col\">%zu</th>", d);
    fputs("</tr></thead>\n<tbody>\n", f);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        fputs("<tr>", f);
        wg_report_row(f, run, i);
        for (size_t d = 0; d < most; d++) {
            wg_report_td(f, "%.2f", wg_json_item(json_array_get(cells, i), "acceptance_by_position", d));
        }
        fputs("</tr>\n", f);
    }
    wg_html_table_end(f);
}

void wg_report_acceptance(FILE *f, const wg_run_reader *run, const json_t *cells)
{
    positions(f, run, cells);
    histogram(f, run, cells);
    wg_report_columns(f, run, cells, WG_IN_ROUNDS, "Passes with a draft, and without one by reason.");
    wg_report_columns(f, run, cells, WG_IN_NAMES, "The same counts under the names that papers and programs give them.");
}
