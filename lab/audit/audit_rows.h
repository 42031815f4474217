/* SPDX-License-Identifier: MIT
 * Rows of probabilities in a JSON record, in three forms: a list of probabilities, the vocabulary's; {"tokens": [...],
 * "p": [...]}, whose other tokens have the rest; a token that has all the mass. */
#ifndef WG_LAB_AUDIT_AUDIT_ROWS_H
#define WG_LAB_AUDIT_AUDIT_ROWS_H

#include <jansson.h>

#include "core/dist/rows.h"

/* The tokens that rows are read over: the vocabulary, or those that are listed, ascending, and one for all others. */
typedef struct wg_audit_tokens {
    int vocab; /* of the rows that are read */
    bool dense;
    const int32_t *listed; /* (vocab - 1) where not dense */
} wg_audit_tokens;

/* The number of a token in the rows; -1: outside the vocabulary. */
int32_t wg_audit_token(const wg_audit_tokens *t, json_int_t token);

/* Adds the tokens that a row lists; *vocab: length of a list of probabilities, 0: another form. EFORMAT: it is no row. */
typedef struct wg_audit_listed {
    int32_t *token;
    int n, room, vocab;
} wg_audit_listed;
wg_status wg_audit_list(wg_audit_listed *l, json_int_t token, wg_error *err);
wg_status wg_audit_list_row(wg_audit_listed *l, const json_t *row, wg_error *err);
void wg_audit_list_sort(wg_audit_listed *l); /* ascending, each once */

/* Writes a row that was listed into row `row` of out; *rest: mass that the record does not place. EFORMAT. */
wg_status wg_audit_row_read(const json_t *in, const wg_audit_tokens *t, wg_rows *out, int row, double *rest, wg_error *err);

#endif
