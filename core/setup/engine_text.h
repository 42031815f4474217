/* SPDX-License-Identifier: MIT
 * Reads from a text in memory the part of an experiment that opens an engine: target, drafter, rule, sampling, seed,
 * max_tokens, batch, and the chat template of `prompts`. Keys, checks, defaults and messages are an experiment's; keys of
 * measurements (sweep, repeats, trace ...) are refused. */
#ifndef WG_CORE_SETUP_ENGINE_TEXT_H
#define WG_CORE_SETUP_ENGINE_TEXT_H

#include "core/setup/setup.h"

typedef struct wg_engine_text {
    const char *name; /* stands for the path in messages */
    const char *json;
    const char *model; /* the target's file if the text names none; may be NULL */
    bool target;       /* false: the target is not a file; a section `target` is refused, and no drafter is wrapped in
                        * `auto`, which times the target */
} wg_engine_text;

/* Fills *out. ECONFIG reports all problems at once. ENOMEM. */
wg_status wg_engine_text_open(wg_setup *out, const wg_engine_text *text, const wg_plugins *plugins, wg_error *err);

#endif
