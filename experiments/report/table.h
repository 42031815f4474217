/* SPDX-License-Identifier: MIT
 * summary.json as a table for people, and as a file for other programs; columns.h has what can be shown. */
#ifndef WG_EXPERIMENTS_REPORT_TABLE_H
#define WG_EXPERIMENTS_REPORT_TABLE_H

#include <jansson.h>
#include <stdio.h>

#include "experiments/report/columns.h"

/* One row a cell: what it is, and the columns chosen (NULL: those of WG_IN_TABLE, with a short legend). Says which requests
 * failed, and whether the run was cut short. */
void wg_table_print(FILE *f, const json_t *summary, const wg_column_choice *chosen);

/* What draft models' vocabularies have of the target's, a line for each that does not have all of it. */
void wg_table_overlap(FILE *f, const json_t *cells, const char *before, const char *after);

/* One JSON object a line, a line a cell. */
void wg_table_print_json(FILE *f, const json_t *summary);

/* The same as a Markdown table for a paper or a README (NULL: WG_IN_MARKDOWN), with all intervals. And one of its cells. */
void wg_table_print_markdown(FILE *f, const json_t *summary, const wg_column_choice *chosen);
void wg_table_put_markdown(FILE *f, const char *s);

/* What a CSV file has a row for: a cell; one of its draft positions, categories or parts. */
typedef enum wg_csv_rows { WG_CSV_CELLS, WG_CSV_POSITIONS, WG_CSV_CATEGORIES, WG_CSV_TURNS, WG_CSV_PARTS } wg_csv_rows;

/* RFC 4180 with a line of names: the number of the cell, swept options, then the columns (of cells those chosen, NULL: all).
 * Numbers have all their digits; an interval is NAME_lo and NAME_hi, a list NAME_1, NAME_2 ...; unknown is empty. */
void wg_table_print_csv(FILE *f, const json_t *summary, wg_csv_rows rows, const wg_column_choice *chosen);

#endif
