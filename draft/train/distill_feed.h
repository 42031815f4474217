/* SPDX-License-Identifier: MIT
 * What students are trained on: passes of text, of the target's continuations, of the student's own (on-policy), and of rows
 * where a recorded draft was rejected, mixed by shares; and the target's rows of all of them. The source of a pass, its
 * sequence and every drawn token follow from seeds and numbers, so a run that goes on repeats them. */
#ifndef WG_DRAFT_TRAIN_DISTILL_FEED_H
#define WG_DRAFT_TRAIN_DISTILL_FEED_H

#include "core/model/model.h"
#include "draft/train/target_rows.h"
#include "draft/train/text_writer.h"
#include "draft/train/trainer.h"

typedef enum wg_text_source { WG_SOURCE_TEXT, WG_SOURCE_TARGET, WG_SOURCE_STUDENT, WG_SOURCE_TRACE, WG_SOURCES } wg_text_source;
typedef struct wg_source_options {
    double share[WG_SOURCES]; /* of the passes; their sum counts as 1 */
    int prompt;               /* tokens of the text before a continuation */
    int refresh;              /* steps between the weights that a student writes with */
} wg_source_options;

/* Everything is borrowed. */
typedef struct wg_distill_feed_parts {
    const wg_source_options *options;
    wg_target_rows *rows;
    wg_lm *target;
    const wg_ops *ops;
    const wg_device *device; /* where students write */
    const wg_tokenizer *tokenizer;
    const wg_weights *tokenizer_file;
    wg_net *const *student;
    int students, micro, length;
    double temperature, bos_share;
    uint64_t seed;
    const wg_tokens *text, *trace; /* trace NULL: none */
    const uint8_t *rejected;       /* of every token of the trace: a draft was rejected there */
    const char *folder;            /* for the file that a student is loaded from */
} wg_distill_feed_parts;

typedef struct wg_distill_feed wg_distill_feed;

/* Errors: EINVAL (a text or trace shorter than a sequence), ENOMEM, those of opening. */
wg_status wg_distill_feed_open(wg_distill_feed **out, const wg_distill_feed_parts *parts, wg_error *err);
void wg_distill_feed_close(wg_distill_feed *f);         /* NULL is fine */
wg_train_feed wg_distill_feed_plug(wg_distill_feed *f); /* borrows f */

/* The source of a pass. */
wg_text_source wg_distill_source(const wg_source_options *o, uint64_t seed, uint64_t pass);

#endif
