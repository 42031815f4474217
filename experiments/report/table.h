/* SPDX-License-Identifier: MIT
 * summary.json as a terminal table, and as files for other programs; columns.h has the columns. */
#ifndef WG_EXPERIMENTS_REPORT_TABLE_H
#define WG_EXPERIMENTS_REPORT_TABLE_H

#include <jansson.h>
#include <stdio.h>

#include "experiments/report/columns.h"

/* One row per cell: its name and the chosen columns (NULL: those of WG_IN_TABLE, with a short legend). Prints the requests
 * that failed, and whether the run is incomplete. width: columns of the terminal; a wider table is folded into blocks, each
 * with the columns that identify a cell, and longer lines are broken. 0: nothing is folded. */
void wg_table_print(FILE *f, const json_t *summary, const wg_column_choice *chosen, int width);

/* One JSON object per line, a line per cell. */
void wg_table_print_json(FILE *f, const json_t *summary);

/* wg_table_print_markdown prints a Markdown table for a paper or a README (NULL: WG_IN_MARKDOWN), with all intervals.
 * wg_table_put_markdown writes the text of one table cell, escaped. */
void wg_table_print_markdown(FILE *f, const json_t *summary, const wg_column_choice *chosen);
void wg_table_put_markdown(FILE *f, const char *s);

/* The same table (NULL: WG_IN_PAPER) as LaTeX with the rules of booktabs, with a label by `name` and a caption; every text is
 * escaped. Where it would be wider than 5.5 inches, the columns of the draft are folded into the first one, whose text wraps.
 * wg_table_put_latex writes an escaped text, wg_table_put_label a name without the characters that a \label cannot have. */
void wg_table_print_latex(FILE *f, const json_t *summary, const wg_column_choice *chosen, const char *name,
                          const char *caption);
void wg_table_put_latex(FILE *f, const char *s);
void wg_table_put_label(FILE *f, const char *name);

/* The rows of a CSV file: cells, or draft positions, categories, turns or parts of cells. */
typedef enum wg_csv_rows { WG_CSV_CELLS, WG_CSV_POSITIONS, WG_CSV_CATEGORIES, WG_CSV_TURNS, WG_CSV_PARTS } wg_csv_rows;

/* RFC 4180 with a line of names: the number of the cell, swept options, then the columns (of cells those chosen, NULL: all).
 * Numbers have all their digits; an interval is NAME_lo and NAME_hi, a list NAME_1, NAME_2 ...; an unknown value is empty. */
void wg_table_print_csv(FILE *f, const json_t *summary, wg_csv_rows rows, const wg_column_choice *chosen);

#endif
