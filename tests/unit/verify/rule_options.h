/* SPDX-License-Identifier: MIT
 * Every rule of the registry with each of its test options. */
#ifndef WG_TESTS_VERIFY_RULE_OPTIONS_H
#define WG_TESTS_VERIFY_RULE_OPTIONS_H

#include <criterion/criterion.h>

#include "core/base/option.h"
#include "verify/verify.h"

typedef struct rule_setting {
    const wg_verifier_class *rule;
    const char *text; /* of its options */
    char options[64] __attribute__((aligned(16)));
} rule_setting;

enum { RULE_SETTINGS = 64 };

/* Fails when a rule has no test options, or one that is not legal. Returns how many settings there are. */
static inline int rule_settings(rule_setting out[RULE_SETTINGS])
{
    int n = 0;
    for (const wg_verifier_class *const *v = wg_verifiers; *v; v++) {
        const char *const *t = (*v)->test_options;
        cr_assert(t && *t, "rule %s: its class has no test_options", (*v)->name);
        for (; *t; t++, n++) {
            wg_error err;
            cr_assert(n < RULE_SETTINGS && (*v)->size <= sizeof out[n].options);
            out[n] = (rule_setting){ .rule = *v, .text = *t };
            wg_option_defaults((*v)->options, out[n].options);
            if (**t)
                cr_assert_eq(wg_option_set_list((*v)->options, out[n].options, (*v)->size, *t, &err), WG_OK, "rule %s: %s",
                             (*v)->name, err.text);
        }
    }
    return n;
}

#endif
