/* SPDX-License-Identifier: MIT
 * Drafters and rules as specified on a command line: "ngram:k=8,n_max=4", "rejection". */
#ifndef WG_EXPERIMENTS_BASE_SPEC_H
#define WG_EXPERIMENTS_BASE_SPEC_H

#include "core/engine/build.h"

extern const wg_plugins wg_program_plugins; /* the tables of draft/ and verify/ */

/* A drafter specified by "KIND[:k=v,...]". `options` (owned; wg_free) holds its options, set and checked. */
typedef struct wg_drafter_choice {
    const wg_drafter_class *class;
    void *options; /* as wg_engine_parts.drafter_options; NULL when the drafter has none */
} wg_drafter_choice;
wg_status wg_choose_drafter(const char *spec, wg_drafter_choice *out, wg_error *err);
/* The drafter `model` with the draft model in `path`; other options at their defaults. */
wg_status wg_choose_draft_model(const char *path, wg_drafter_choice *out, wg_error *err);

/* A rule specified by "NAME[:k=v,...]". */
typedef struct wg_rule_choice {
    const wg_verifier_class *class;
    void *options; /* (owned) NULL when the rule has none */
} wg_rule_choice;
wg_status wg_choose_rule(const char *spec, wg_rule_choice *out, wg_error *err);
void wg_rule_choice_close(wg_rule_choice *c);

void wg_choice_close(wg_drafter_choice *c);

#endif
