/* SPDX-License-Identifier: MIT
 * summary.json as a table for people. */
#ifndef WG_EXPERIMENTS_TABLE_H
#define WG_EXPERIMENTS_TABLE_H

#include <jansson.h>
#include <stdio.h>

/* One row a cell: what it is, tau, acceptance, speed of both sides, speed-up with its interval, whether the output is plain
 * decoding's. Two lines of legend. Says which requests failed, and whether the run was cut short. */
void wg_table_print(FILE *f, const json_t *summary);

/* What draft models' vocabularies have of the target's, a line for each that does not have all of it. */
void wg_table_overlap(FILE *f, const json_t *cells, const char *before, const char *after);

/* "-6 % draft": how far a cell's prediction was off, and the part that did most of it; "-" without one. */
void wg_table_residual(const json_t *cell, char *buf, size_t size);

/* One JSON object a line, a line a cell. */
void wg_table_print_json(FILE *f, const json_t *summary);

/* The same as a Markdown table for a paper or a README: tau, acceptance by position, the cost ratio c, speed-up with interval. */
void wg_table_print_markdown(FILE *f, const json_t *summary);

/* All single numbers of all cells with a line of names: swept options first; intervals as _lo and _hi. */
void wg_table_print_csv(FILE *f, const json_t *summary);

#endif
