/* SPDX-License-Identifier: MIT
 * From names to engine parts: finds drafters and rules in the tables that the program passes, and sets their options. The
 * engine itself refers to no drafter and no rule by name. */
#ifndef WG_CORE_ENGINE_BUILD_H
#define WG_CORE_ENGINE_BUILD_H

#include "core/engine/engine.h"

/* NULL-terminated tables. */
typedef struct wg_plugins {
    const wg_drafter_class *const *drafters;
    const wg_verifier_class *const *verifiers;
} wg_plugins;

/* Finds a class by name. EINVAL: unknown; the message lists the known names and the nearest. */
wg_status wg_find_drafter(const wg_plugins *p, const char *name, const wg_drafter_class **out, wg_error *err);
wg_status wg_find_verifier(const wg_plugins *p, const char *name, const wg_verifier_class **out, wg_error *err);

/* Writes into buf, separated by commas, the names of the rules that check drafts of these laws. any false: only rules that take
 * siblings and do not weigh them jointly. */
const char *wg_rules_for(unsigned laws, bool any, const wg_verifier_class *const *rules, char *buf, int size);

/* ELAW unless the rule checks every one of the laws that the drafter draws by (wg_drafter_laws); names the rules that do. */
wg_status wg_check_laws(const wg_drafter_class *d, unsigned laws, const wg_verifier_class *v,
                        const wg_verifier_class *const *rules, wg_error *err);

/* Checks what a rule requires of a checked tree beside the law: no siblings, if it verifies chains; a q that could have drawn
 * the nodes; declared numbers of siblings, if it weighs them jointly. rules (may be NULL): those that a message may name.
 * massless (may be NULL): counts tokens without probability in their row of q. ELAW, EINVAL. */
wg_status wg_check_draws(const wg_verifier_class *rule, const wg_verifier_class *const *rules, const wg_tree *t, wg_rows *q,
                         long *massless, wg_error *err);

/* Checks the answer of a rule from outside the program: a path of the tree (wg_path_check) whose tokens may be emitted. p: the
 * target's rows, tree->row + node. EINVAL. */
wg_status wg_check_answer(const wg_verifier_class *rule, const wg_seq *s, const wg_tree *t, wg_rows *p, const wg_path *path,
                          wg_error *err);

#endif
