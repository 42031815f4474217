/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "draft/draft.h"

Test(none, proposes_the_root_alone)
{
    wg_error err;
    int32_t a[] = { 5, 6, 7 }, b[] = { 9 };
    wg_seq s[2] = { { .token = a, .n = 3, .limit = 10 }, { .token = b, .n = 1, .limit = 10 } };
    wg_seq *const seq[2] = { &s[0], &s[1] };
    wg_tree out[2];
    wg_rows q;
    cr_assert_eq(wg_rows_open(&q, 4, 10, &err), WG_OK);
    wg_drafter d = { .class = &wg_drafter_none };
    cr_assert_eq(wg_drafter_none.propose(&d, seq, 2, out, &q, &err), WG_OK);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(wg_tree_check(&out[i], 10, q.n, &err), WG_OK, "%s", err.text);
        cr_assert_eq(out[i].n, 1);
        cr_assert_eq(out[i].token[0], s[i].token[s[i].n - 1]);
    }
    cr_assert_eq(q.n, 0);
    wg_rows_close(&q);
}

Test(registry, names_are_distinct_and_options_have_defaults)
{
    int n = 0;
    for (const wg_drafter_class *const *c = wg_drafters; *c; c++, n++) {
        cr_assert((*c)->name && (*c)->doc && (*c)->propose && (*c)->size >= sizeof(wg_drafter));
        for (const wg_drafter_class *const *d = wg_drafters; d != c; d++) cr_assert_str_neq((*c)->name, (*d)->name);
        if (!(*c)->options) continue;
        char *o = calloc(1, (*c)->size);
        wg_option_defaults((*c)->options, o + (*c)->options_at);
        for (const wg_option *r = (*c)->options; r->name; r++) {
            char text[WG_OPTION_STRING];
            wg_error err;
            cr_assert_lt(r->at + (*c)->options_at, (*c)->size);
            wg_option_value(r, o + (*c)->options_at, text, sizeof text); /* every default is a legal value */
            cr_assert_eq(wg_option_set((*c)->options, o + (*c)->options_at, r->name, text, &err), WG_OK, "%s", err.text);
        }
        free(o);
    }
    cr_assert_geq(n, 9);
}

/* The law tests run what a class says it is tested with; a drafter that says nothing would be in none of them. */
Test(registry, every_drafter_has_test_options)
{
    for (const wg_drafter_class *const *c = wg_drafters; *c; c++) {
        wg_error err;
        const wg_drafter_test *t = (*c)->test_options;
        cr_assert(t && t->options, "drafter %s: its class has no test_options", (*c)->name);
        void *o = calloc(1, (*c)->size);
        for (; t->options; t++) {
            cr_assert(!*t->options || (*c)->options, "drafter %s has no options", (*c)->name);
            if (!*t->options) continue;
            wg_option_defaults((*c)->options, o);
            cr_assert_eq(wg_option_set_list((*c)->options, o, (*c)->size - (*c)->options_at, t->options, &err), WG_OK, "%s: %s",
                         (*c)->name, err.text);
            cr_assert(t->keeps >= 0 && t->keeps <= 1);
            cr_assert(!t->own_request || (*c)->cross_request || (*c)->laws & WG_LAW_COUPLED, "%s: it is so anyway", (*c)->name);
        }
        free(o);
    }
}
