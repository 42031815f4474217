/* SPDX-License-Identifier: MIT
 * What students are worth on held-out documents: losses and alpha on the documents' own text; alpha and exact rounds on texts
 * that the target writes from the documents' beginnings, which is what a draft meets. Sums stay apart by document, for
 * intervals. */
#ifndef WG_EXPERIMENTS_RUN_DISTILL_EVAL_H
#define WG_EXPERIMENTS_RUN_DISTILL_EVAL_H

#include "draft/train/loss.h"
#include "draft/train/target_rows.h"
#include "draft/train/text_writer.h"

enum { WG_TAU_LENGTHS = 8 }; /* drafts of 1 .. tokens */

/* Of one student and document. */
typedef struct wg_held_sums {
    double rows, alpha, term[WG_LOSS_TERMS]; /* of the document's text: kl, reverse_kl, jsd, tv, nla and ce are set */
    double tokens, written_alpha;            /* of the target's continuation */
    double rounds[WG_TAU_LENGTHS];           /* expected, of the rule `rejection` with chains of 1 .. tokens (exact.h) */
} wg_held_sums;

/* Everything is borrowed. */
typedef struct wg_distill_eval_parts {
    wg_net *const *student; /* opened for writer.sequences of writer.length */
    int students;
    wg_target_rows *rows;
    wg_pool *pool;
    const wg_tokens *held;
    int documents, prompt;         /* the most documents; tokens before a continuation */
    wg_text_writer_options writer; /* of the target */
} wg_distill_eval_parts;

/* How many documents are long enough for a continuation, at most parts->documents. */
int wg_distill_eval_documents(const wg_distill_eval_parts *p);

/* out: (students, wg_distill_eval_documents). Errors: those of the target, ENOMEM. */
wg_status wg_distill_evaluate(const wg_distill_eval_parts *p, wg_held_sums *out, wg_error *err);

#endif
