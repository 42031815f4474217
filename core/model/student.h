/* SPDX-License-Identifier: MIT
 * A cut student: a draft model that is distilled from a target and stored without what it has from it, the embedding and most
 * rows of the head. It is a GGUF file with the keys below, and knows its target by the digest of some of its rows. */
#ifndef WG_CORE_MODEL_STUDENT_H
#define WG_CORE_MODEL_STUDENT_H

#include "core/base/hash.h"
#include "core/file/weights.h"

#define WG_STUDENT_TOKENS "wager.student.tokens"       /* of its head's rows */
#define WG_STUDENT_TOKENIZER "wager.student.tokenizer" /* digest of the target's tokenizer, whose ids these are */
#define WG_STUDENT_TARGET "wager.student.target"       /* the target's name */
#define WG_STUDENT_ROWS "wager.student.rows"           /* digest of rows of the target, below */

/* The rows of the target's head that the digest covers, as f32: those of WG_STUDENT_SAMPLE tokens of the list. */
enum { WG_STUDENT_SAMPLE = 64 };
static inline int wg_student_sample(int i, int kept) { return (int)((int64_t)i * kept / WG_STUDENT_SAMPLE); }

/* Writes the row of a token (dim). */
typedef void wg_student_row(const void *target, int32_t token, float *row);

/* Whether a target has the rows that the student in `w` was cut from, and its name in the student's file. rows, dim: of the
 * target's head. Errors: EMODEL: a token of the list is not below `rows`; ENOMEM. */
typedef struct wg_student_target {
    const void *target;
    wg_student_row *row;
    int rows, dim;
} wg_student_target;
wg_status wg_student_knows(const wg_weights *w, const wg_student_target *t, bool *own, wg_text *name, wg_error *err);

#endif
