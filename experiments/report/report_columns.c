/* SPDX-License-Identifier: MIT
 * Columns of a report's tables (columns.h): heads with links to their explanations, values with their intervals, and the
 * explanations. */
#include <string.h>

#include "experiments/report/html.h"
#include "experiments/report/report_parts.h"

enum { ON_PAGE = WG_IN_PAGE | WG_IN_NAMES | WG_IN_PHASES | WG_IN_USE | WG_IN_LOSSES | WG_IN_ROUNDS };

static bool has_word(const char *name)
{
    for (const wg_column *c = wg_columns; c->name; c++)
        if (!strcmp(c->name, name)) return c->shown & ON_PAGE;
    return false;
}

void wg_report_head(FILE *f, const wg_column *c)
{
    fprintf(f, "<th scope=\"col\"%s>", wg_column_is_words(c) ? " class=\"l\"" : "");
    if (has_word(c->name)) fprintf(f, "<a href=\"#w-%s\">%s</a></th>", c->name, c->head);
    else fprintf(f, "%s</th>", c->head);
}

void wg_report_value(FILE *f, const wg_column *c, const json_t *o)
{
    char text[WG_COLUMN_TEXT];
    wg_column_text(c, o, text, sizeof text);
    fputs(wg_column_is_words(c) ? "<td class=\"l\">" : "<td>", f);
    wg_html_puts(f, text);
    wg_column_brackets(c, o, text, sizeof text);
    if (*text) fprintf(f, " <small>%s</small>", text);
    fputs("</td>", f);
}

void wg_report_columns(FILE *f, const wg_run_reader *run, const json_t *cells, unsigned shown, const char *caption)
{
    wg_column_choice c;
    wg_columns_of(wg_columns, shown, &c);
    wg_html_table(f, caption);
    fputs("<thead><tr><th scope=\"col\">cell</th>", f);
    for (int k = 0; k < c.n; k++) wg_report_head(f, c.column[k]);
    fputs("</tr></thead>\n<tbody>\n", f);
    for (size_t i = 0; i < json_array_size(cells); i++) {
        fputs("<tr>", f);
        wg_report_row(f, run, i);
        for (int k = 0; k < c.n; k++) wg_report_value(f, c.column[k], json_array_get(cells, i));
        fputs("</tr>\n", f);
    }
    wg_html_table_end(f);
}

void wg_report_words(FILE *f)
{
    fputs("<h2>Words</h2>\n<dl>\n", f);
    for (const wg_column *c = wg_columns; c->name; c++) {
        if (!(c->shown & ON_PAGE)) continue;
        fprintf(f, "<dt id=\"w-%s\">%s</dt><dd>", c->name, c->head);
        wg_html_puts(f, c->doc);
        fputs("</dd>\n", f);
    }
    fputs("<dt>intervals</dt><dd>95 %, jackknife over prompts with Student's t, both sides of a pair together; none under five "
          "prompts</dd>\n</dl>\n",
          f);
}
