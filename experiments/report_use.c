/* SPDX-License-Identifier: MIT
 * Use and waste on a report's page: how well the passes used the machine, what was for nothing, when tokens came, joules
 * (efficiency.h; results/README.md has the definitions). */
#include "experiments/html.h"
#include "experiments/report_parts.h"

static const json_t *get(const json_t *o, const char *key) { return json_object_get(o, key); }

/* A column: where its number stands in a cell, how it is written. */
static const struct column {
    const char *title, *part, *key, *format;
    double times;
} columns[] = {
    { "MBU", "efficiency", "mbu", "%.0f %%", 100 },
    { "plain", "efficiency", "baseline_mbu", "%.0f %%", 100 },
    { "MFU", "efficiency", "mfu", "%.0f %%", 100 },
    { "plain", "efficiency", "baseline_mfu", "%.0f %%", 100 },
    { "FLOPs for rejected tokens", "rejected", "flop_share", "%.0f %%", 100 },
    { "bytes", "rejected", "byte_share", "%.2f %%", 100 },
    { "cache slots wasted", "kv_slots", "waste", "%.0f %%", 100 },
    { "ITL p50 (ms)", "itl_ms", "p50", "%.2f", 1 },
    { "p99", "itl_ms", "p99", "%.2f", 1 },
    { "per token p50", "itl_per_token_ms", "p50", "%.2f", 1 },
    { "J/token", "energy", "joules_per_token", "%.3g", 1 },
    { "plain", "energy", "baseline_joules_per_token", "%.3g", 1 },
};
enum { COLUMNS = sizeof columns / sizeof *columns };

void wg_report_use(FILE *f, const wg_folder *run, const json_t *cells)
{
    if (!get(json_array_get(cells, 0), "efficiency")) return; /* the summary is an older one */
    fputs("<h2>Use and waste</h2>\n", f);
    wg_html_table(f, "The target's passes: bytes and operations a second of what the machine gave at best in this run (MBU, "
                     "MFU); work on draft tokens that were rejected; slots of the cache's pages in nobody's use or rolled "
                     "back; time between events (the tokens of a step arrive together), and the same shared by their tokens.");
    fputs("<thead><tr><th scope=\"col\">cell</th>", f);
    for (int k = 0; k < COLUMNS; k++) fprintf(f, "<th scope=\"col\">%s</th>", columns[k].title);
    fputs("</tr></thead>\n<tbody>\n", f);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        fputs("<tr>", f);
        wg_report_row(f, run, i);
        for (int k = 0; k < COLUMNS; k++) {
            const json_t *part = get(json_array_get(cells, i), columns[k].part);
            wg_report_td(f, columns[k].format, columns[k].times * wg_report_number(part, columns[k].key));
        }
        fputs("</tr>\n", f);
    }
    wg_html_table_end(f);
    const char *why = json_string_value(get(run->summary, "energy_unknown"));
    if (!why) return;
    fputs("<p class=\"soft\">Energy is not readable here: ", f);
    wg_html_puts(f, why);
    fputs(".</p>\n", f);
}
