/* SPDX-License-Identifier: MIT
 * The evaluation of students on held-out documents: losses and alpha on the documents' text; alpha and exact rounds on
 * continuations that the target writes from the documents' beginnings, the kind of text that drafts meet. Sums are kept by
 * document, for intervals. */
#ifndef WG_EXPERIMENTS_RUN_DISTILL_EVAL_H
#define WG_EXPERIMENTS_RUN_DISTILL_EVAL_H

#include "draft/train/loss.h"
#include "draft/train/target_rows.h"
#include "draft/train/text_writer.h"

enum { WG_TAU_LENGTHS = 8 }; /* longest draft, in tokens */

/* Sums of one student over one document. */
typedef struct wg_held_sums {
    double rows, alpha, term[WG_LOSS_TERMS]; /* on the document's text; terms kl, reverse_kl, jsd, tv, nla and ce are set */
    double tokens, written_alpha;            /* on the target's continuation */
    double rounds[WG_TAU_LENGTHS];           /* expected rounds of the rule `rejection` with chains of 1, 2, ... tokens
                                              * (exact.h) */
} wg_held_sums;

/* Everything is borrowed. */
typedef struct wg_distill_eval_parts {
    wg_net *const *student; /* opened for writer.sequences of writer.length */
    int students;
    wg_target_rows *rows;
    wg_pool *pool;
    const wg_tokens *held;
    int documents, prompt;         /* most documents; tokens before a continuation */
    wg_text_writer_options writer; /* options of the target's writer */
} wg_distill_eval_parts;

/* The number of documents long enough for a continuation, at most parts->documents. */
int wg_distill_eval_documents(const wg_distill_eval_parts *p);

/* out: (students, wg_distill_eval_documents). Errors: those of the target, ENOMEM. */
wg_status wg_distill_evaluate(const wg_distill_eval_parts *p, wg_held_sums *out, wg_error *err);

#endif
