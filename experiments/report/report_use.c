/* SPDX-License-Identifier: MIT
 * Use and waste on a report's page: utilisation of the machine, wasted work, times of tokens, energy (efficiency.h;
 * results/README.md has the definitions). */
#include "experiments/report/html.h"
#include "experiments/report/report_parts.h"

void wg_report_use(FILE *f, const wg_run_reader *run, const json_t *cells)
{
    if (!json_object_get(json_array_get(cells, 0), "efficiency")) return; /* the summary is of an older version */
    fputs("<h2>Use and waste</h2>\n", f);
    wg_report_columns(f, run, cells, WG_IN_USE,
                      "The target's passes: bytes and operations a second, as a share of the machine's best in this run (MBU, "
                      "MFU); work on draft tokens that were rejected; slots of the cache's pages that are unused or rolled "
                      "back; time between events (the tokens of a step arrive together), and the same shared by their tokens.");
    const char *why = json_string_value(json_object_get(run->summary, "energy_unknown"));
    if (!why) return;
    fputs("<p class=\"soft\">Energy is not readable here: ", f);
    wg_html_puts(f, why);
    fputs(".</p>\n", f);
}
