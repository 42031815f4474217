/* SPDX-License-Identifier: MIT
 * Drafters and rules as specified on a command line: "ngram:k=8,n_max=4", "rejection". */
#ifndef WG_CORE_SETUP_SPEC_H
#define WG_CORE_SETUP_SPEC_H

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

/* The drafter `auto` over the draft model in `path`, in chains of up to eight tokens: what `-d FILE` alone means. */
wg_status wg_choose_auto(const char *path, wg_drafter_choice *out, wg_error *err);
/* The only component of the drafter `auto` with these options; class NULL: there are several, or the drafter is not `auto`.
 * Errors: those of its options, ENOMEM. */
wg_status wg_choose_lone(const wg_drafter_class *class, const void *options, wg_drafter_choice *out, wg_error *err);

/* A rule specified by "NAME[:k=v,...]". */
typedef struct wg_rule_choice {
    const wg_verifier_class *class;
    void *options; /* (owned) NULL when the rule has none */
    void *object;  /* (owned) the shared object of an unproved rule; NULL: the rule is the program's */
} wg_rule_choice;
wg_status wg_choose_rule(const char *spec, wg_rule_choice *out, wg_error *err);

/* The same in two parts, for options that are set later. wg_name_rule also takes the name `plugin` (verify/rule_plugin.h).
 * wg_rule_load replaces a choice of that name by the rule of its object; other choices stay. */
wg_status wg_find_rule(const wg_plugins *plugins, const char *name, const wg_verifier_class **out, wg_error *err);
wg_status wg_name_rule(const char *spec, wg_rule_choice *out, wg_error *err);
wg_status wg_rule_load(wg_rule_choice *c, wg_error *err);

/* The unproved assumption of a lossless rule's law, in words: a true q, if the rule uses q of a drafter from outside; an exact
 * rule, if it is a plug-in. NULL: none, or the rule is not lossless. */
const char *wg_law_assumes(const wg_verifier_class *rule, bool plugin, double temperature, bool outside);
void wg_rule_choice_close(wg_rule_choice *c);

void wg_choice_close(wg_drafter_choice *c);

#endif
