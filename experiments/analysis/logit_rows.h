/* SPDX-License-Identifier: MIT
 * Whether two files hold the same model: compares their logits over the same tokens in the same engine (CPU, cache in f32), so
 * that differences come from the files. */
#ifndef WG_EXPERIMENTS_ANALYSIS_LOGIT_ROWS_H
#define WG_EXPERIMENTS_ANALYSIS_LOGIT_ROWS_H

#include "core/setup/target.h"

enum { WG_LOGIT_ROWS = 64 };

/* Logits (n, vocab) of a chain of n tokens: WG_LOGIT_ROWS, or the context if it is shorter. The tokens depend on the vocabulary
 * alone. */
typedef struct wg_logit_rows {
    int n, vocab;
    float *z;
} wg_logit_rows;

/* quantize: as in core/file/quantize.h, NULL: as the file stores them. Errors: those of opening and of a pass; ENOMEM. */
wg_status wg_logit_rows_read(wg_logit_rows *out, const char *path, const char *quantize, int threads, wg_error *err);
void wg_logit_rows_free(wg_logit_rows *r); /* a zeroed one is fine */

typedef struct wg_logit_difference {
    double largest;  /* |a - b| of a logit; NaN: one is not finite */
    double relative; /* largest quotient, over rows, of the norms of a - b and of b */
    int other_best;  /* rows with different best tokens */
} wg_logit_difference;

/* Compares rows of the same shape. */
wg_logit_difference wg_logit_rows_difference(const wg_logit_rows *a, const wg_logit_rows *b);

/* Checks that rows agree. EMODEL: shapes differ, or a logit of `written` differs from that of `source` by more than `most` (or
 * is NaN); says where and by how much. path: the written file's, for the message. */
wg_status wg_logit_rows_agree(const wg_logit_rows *source, const wg_logit_rows *written, double most, const char *path,
                              wg_error *err);

#endif
