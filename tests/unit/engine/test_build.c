/* SPDX-License-Identifier: MIT */
#include "core/engine/build.h"

#include <criterion/criterion.h>
#include <string.h>

static const wg_drafter_class ranked = { .name = "ranked", .laws = WG_LAW_FIXED };
static const wg_drafter_class sampled = { .name = "sampled", .laws = WG_LAW_IID };
static const wg_drafter_class both = { .name = "both", .laws = WG_LAW_FIXED | WG_LAW_IID };
static const wg_verifier_class all = { .name = "all", .laws = 7, .lossless = true },
                               fixed_only = { .name = "fixed_only", .laws = WG_LAW_FIXED, .lossless = true };
static const wg_drafter_class *const drafters[] = { &ranked, &sampled, &both, NULL };
static const wg_verifier_class *const rules[] = { &all, &fixed_only, NULL };
static const wg_plugins plugins = { drafters, rules };

Test(build, finds_by_name)
{
    const wg_drafter_class *d = NULL;
    const wg_verifier_class *v = NULL;
    wg_error err = { 0 };
    cr_assert(wg_find_drafter(&plugins, "sampled", &d, &err) == WG_OK && d == &sampled);
    cr_assert(wg_find_verifier(&plugins, "all", &v, &err) == WG_OK && v == &all && err.code == 0);
    cr_assert(wg_find_drafter(&plugins, "sampeld", &d, &err) == WG_EINVAL && d == &sampled);
    cr_assert(strstr(err.text, "\"sampeld\"") && strstr(err.text, "ranked, sampled, both"), "%s", err.text);
    cr_assert(strstr(err.text, "did you mean \"sampled\""), "%s", err.text);
    cr_assert(wg_find_verifier(&plugins, "zzzzzzzz", &v, &err) == WG_EINVAL);
    cr_assert(strstr(err.text, "verification rule") && strstr(err.text, "all, fixed_only"), "%s", err.text);
    cr_assert(!strstr(err.text, "did you mean"), "%s", err.text);
    const wg_plugins nothing = { 0 };
    cr_assert(wg_find_drafter(&nothing, "none", &d, &err) == WG_EINVAL);
}

Test(build, refuses_a_rule_that_would_be_biased)
{
    wg_error err = { 0 };
    for (int i = 0; drafters[i]; i++) cr_assert(wg_check_laws(drafters[i], drafters[i]->laws, &all, rules, &err) == WG_OK);
    cr_assert(wg_check_laws(&ranked, ranked.laws, &fixed_only, rules, &err) == WG_OK);
    cr_assert(wg_check_laws(&both, both.laws, &fixed_only, rules, &err) == WG_ELAW);
    cr_assert(strstr(err.text, "drafter both") && strstr(err.text, "fixed, iid"), "%s", err.text);
    cr_assert(strstr(err.text, "choose one of: all"), "%s", err.text);
    cr_assert(wg_check_laws(&sampled, sampled.laws, &fixed_only, NULL, &err) == WG_ELAW && !strstr(err.text, "choose"), "%s",
              err.text);
}
