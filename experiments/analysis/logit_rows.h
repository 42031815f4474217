/* SPDX-License-Identifier: MIT
 * Whether two files are the same model: their logits over the same tokens in the same engine (CPU, cache in f32), so that what
 * differs is what the files hold. */
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
void wg_logit_rows_free(wg_logit_rows *r); /* of a zeroed one: nothing */

typedef struct wg_logit_difference {
    double largest;  /* |a - b| of a logit; NaN where one is infinite or no number */
    double relative; /* the largest of a row's norm of a - b over its norm of b */
    int other_best;  /* rows whose best tokens differ */
} wg_logit_difference;

/* Of rows of one shape. */
wg_logit_difference wg_logit_rows_difference(const wg_logit_rows *a, const wg_logit_rows *b);

/* EMODEL where shapes differ, or a logit of `written` is more than `most` away from that of `source` (or no number): where, by
 * how much. path: of what was written, for the message. */
wg_status wg_logit_rows_agree(const wg_logit_rows *source, const wg_logit_rows *written, double most, const char *path,
                              wg_error *err);

#endif
