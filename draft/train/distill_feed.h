/* SPDX-License-Identifier: MIT
 * The passes that students are trained on, with the target's rows of each. A pass is text, continuations by the target,
 * continuations by the student (on-policy), or recorded rounds in which a draft was rejected; shares set the mixture. The
 * source of a pass, its sequences and every drawn token follow from seeds and numbers, so a resumed run repeats them. */
#ifndef WG_DRAFT_TRAIN_DISTILL_FEED_H
#define WG_DRAFT_TRAIN_DISTILL_FEED_H

#include "core/model/model.h"
#include "draft/train/kept_rows.h"
#include "draft/train/text_writer.h"
#include "draft/train/trainer.h"

typedef enum wg_text_source { WG_SOURCE_TEXT, WG_SOURCE_TARGET, WG_SOURCE_STUDENT, WG_SOURCE_TRACE, WG_SOURCES } wg_text_source;
typedef struct wg_source_options {
    double share[WG_SOURCES]; /* weight of each source among the passes; normalised */
    int prompt;               /* tokens of text before a continuation */
    int refresh;              /* steps between updates of the weights that a student writes with */
} wg_source_options;

/* Everything is borrowed. */
typedef struct wg_distill_feed_parts {
    const wg_source_options *options;
    wg_target_rows *rows;
    wg_kept_rows *kept; /* of the text; NULL: rows are computed for each pass */
    wg_lm *target;
    const wg_ops *ops;
    const wg_device *device; /* the device on which students write */
    const wg_tokenizer *tokenizer;
    const wg_weights *tokenizer_file;
    wg_net *const *student;
    int students, micro, length;
    double temperature, bos_share;
    uint64_t seed;
    const wg_tokens *text, *trace; /* trace: recorded texts, NULL: none */
    const uint8_t *rejected;       /* (tokens of the trace) a draft was rejected at this token */
    const char *folder;            /* folder of the temporary file that a student is loaded from */
} wg_distill_feed_parts;

typedef struct wg_distill_feed wg_distill_feed;

/* Errors: EINVAL (a text or trace shorter than a sequence), ENOMEM, those of opening. */
wg_status wg_distill_feed_open(wg_distill_feed **out, const wg_distill_feed_parts *parts, wg_error *err);
void wg_distill_feed_close(wg_distill_feed *f);         /* NULL is fine */
wg_train_feed wg_distill_feed_plug(wg_distill_feed *f); /* borrows f */

/* The source of pass number `pass`. */
wg_text_source wg_distill_source(const wg_source_options *o, uint64_t seed, uint64_t pass);

#endif
