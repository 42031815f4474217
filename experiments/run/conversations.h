/* SPDX-License-Identifier: MIT
 * Conversations that a target writes for training (docs/distillation.md). The question is one of a file of prompts, or the
 * target writes it too: its own chat template up to where a question stands is the prompt (Magpie, Xu et al. 2024, 2406.08464).
 * All that is drawn for conversation number n follows from seed and n, so a file that is continued is the one written at
 * once. */
#ifndef WG_EXPERIMENTS_RUN_CONVERSATIONS_H
#define WG_EXPERIMENTS_RUN_CONVERSATIONS_H

#include <signal.h>

#include "core/setup/target.h"
#include "experiments/config/distill_config.h"

typedef struct wg_conversations_job {
    const wg_conversations_options *options;
    const char *path; /* the file (data.conversations) */
    wg_target *target;
    const wg_setup_target *how;        /* its section of the config; NULL: the defaults */
    const volatile sig_atomic_t *stop; /* nonzero: end; may be NULL */
    bool progress;                     /* a line on stderr that is updated; else some lines */
} wg_conversations_job;

/* What a file has. */
typedef struct wg_conversations_count {
    long lines;                 /* behind the first: a conversation each, or a number that came to nothing */
    long conversations, tokens; /* tokens: of answers */
} wg_conversations_count;

/* Continues the file, in whole lines, until its answers have options->tokens tokens; a half line at its end is cut off. Errors:
 * EINVAL (written with other settings, or by another process now; a template in which the target cannot write a question),
 * EINTERRUPTED (call it again to go on), EIO, EFORMAT, EMODEL, those of the prompts and of the engine. */
wg_status wg_conversations_write(const wg_conversations_job *job, wg_conversations_count *out, wg_error *err);

#endif
