/* SPDX-License-Identifier: MIT
 * The sentences around a table (table.h): what its cells lack, what its intervals mean, and what was learnt. `cells` are those
 * of a summary; nothing is printed where there is nothing to say. */
#ifndef WG_EXPERIMENTS_REPORT_TABLE_NOTES_H
#define WG_EXPERIMENTS_REPORT_TABLE_NOTES_H

#include <jansson.h>
#include <stdio.h>

/* The swept value of a cell as a text; "-" when the key is not one of its options. b: (n) bytes. */
void wg_table_swept(const json_t *cell, const char *key, char *b, size_t n);

/* Prints the share of the target's vocabulary that a draft model covers, a line for each draft model that lacks tokens. */
void wg_table_overlap(FILE *f, const json_t *cells, const char *before, const char *after);

/* Prints a line for each cell whose texts went beyond the draft model's context: the number of rounds without a draft. */
void wg_table_draft_contexts(FILE *f, const json_t *cells, const char *before, const char *after);
/* Explains the mark * of a speed-up, if a cell has it. */
void wg_table_disturbed(FILE *f, const json_t *cells);
/* Prints how many intervals miss by chance, and how many cells have no interval and why; each sentence between `before` and
 * `after`. */
void wg_table_intervals(FILE *f, const json_t *cells, const char *before, const char *after);

/* Prints two sentences: which cell is fastest and how many are faster and slower than plain decoding; and the result of
 * `auto`. */
void wg_table_learnt(FILE *f, const json_t *cells);

/* Prints the number of requests that failed, and the first failure. */
void wg_table_failures(FILE *f, const json_t *cells);
/* Prints the cells whose drafter failed its audit. */
void wg_table_withdrawn(FILE *f, const json_t *cells);
/* Prints the cells that drafted nothing because no draft was expected to pay. */
void wg_table_undrafted(FILE *f, const json_t *cells);

#endif
