/* SPDX-License-Identifier: MIT
 * Rows of probabilities in a JSON record, in three forms: a list of all probabilities; {"tokens": [...], "p": [...]}, with the
 * rest on the other tokens; a token that has all mass. */
#ifndef WG_LAB_AUDIT_AUDIT_ROWS_H
#define WG_LAB_AUDIT_AUDIT_ROWS_H

#include <jansson.h>

#include "core/dist/rows.h"

/* The tokens of rows in memory: the vocabulary, or the listed tokens, ascending, and one for all others. */
typedef struct wg_audit_tokens {
    int vocab; /* width of the rows in memory */
    bool dense;
    const int32_t *listed; /* (vocab - 1) if not dense */
} wg_audit_tokens;

/* The number of a token in the rows; -1: outside the vocabulary. */
int32_t wg_audit_token(const wg_audit_tokens *t, json_int_t token);

/* The tokens listed by rows. vocab: length of a list of probabilities, 0: another form. EFORMAT: not a row. */
typedef struct wg_audit_listed {
    int32_t *token;
    int n, room, vocab;
} wg_audit_listed;
wg_status wg_audit_list(wg_audit_listed *l, json_int_t token, wg_error *err);
wg_status wg_audit_list_row(wg_audit_listed *l, const json_t *row, wg_error *err);
void wg_audit_list_sort(wg_audit_listed *l); /* makes it ascending and unique */

/* Writes a row into row `row` of out; *rest: mass that the record does not assign. EFORMAT. */
wg_status wg_audit_row_read(const json_t *in, const wg_audit_tokens *t, wg_rows *out, int row, double *rest, wg_error *err);

#endif
