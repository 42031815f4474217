/* SPDX-License-Identifier: MIT
 * Finding engine parts by name (build.h). */
#include "core/engine/build.h"

#include <stdio.h>
#include <string.h>

enum { NAMES = 64 };

/* The message of every failure here: the known names and the nearest. */
static wg_status unknown(const char *what, const char *name, const char *const *names, wg_error *err)
{
    char list[1024] = "";
    int at = 0;
    for (int i = 0; names[i] && at < (int)sizeof list; i++)
        at += snprintf(list + at, sizeof list - (size_t)at, "%s%s", i ? ", " : "", names[i]);
    const char *near = wg_nearest(name, names);
    return wg_fail(err, WG_EINVAL, "unknown %s \"%s\"; expected one of: %s%s%s%s", what, name, list,
                   near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

wg_status wg_find_drafter(const wg_plugins *p, const char *name, const wg_drafter_class **out, wg_error *err)
{
    const char *names[NAMES + 1] = { NULL };
    for (int i = 0; p->drafters && p->drafters[i]; i++) {
        if (strcmp(p->drafters[i]->name, name) == 0) {
            *out = p->drafters[i];
            return WG_OK;
        }
        if (i < NAMES) names[i] = p->drafters[i]->name;
    }
    return unknown("drafter", name, names, err);
}

wg_status wg_find_verifier(const wg_plugins *p, const char *name, const wg_verifier_class **out, wg_error *err)
{
    const char *names[NAMES + 1] = { NULL };
    for (int i = 0; p->verifiers && p->verifiers[i]; i++) {
        if (strcmp(p->verifiers[i]->name, name) == 0) {
            *out = p->verifiers[i];
            return WG_OK;
        }
        if (i < NAMES) names[i] = p->verifiers[i]->name;
    }
    return unknown("verification rule", name, names, err);
}

const char *wg_rules_for(unsigned laws, bool any, const wg_verifier_class *const *rules, char *buf, int size)
{
    int at = 0;
    *buf = '\0';
    for (int i = 0; rules && rules[i] && at < size; i++)
        if (!(laws & ~rules[i]->laws) && (any || !(rules[i]->joint || rules[i]->chains)))
            at += snprintf(buf + at, (size_t)(size - at), "%s%s%s", at ? ", " : "", rules[i]->name,
                           !rules[i]->lossless   ? " (lossy)"
                           : rules[i]->zero_only ? " (at temperature 0)"
                                                 : "");
    return buf;
}

wg_status wg_check_laws(const wg_drafter_class *d, unsigned laws, const wg_verifier_class *v,
                        const wg_verifier_class *const *rules, wg_error *err)
{
    char draws[96], checks[96], legal[1024];
    if (!(laws & ~v->laws)) return WG_OK;
    wg_rules_for(laws, true, rules, legal, sizeof legal);
    return wg_fail(err, WG_ELAW, "drafter %s draws siblings by the laws: %s; rule %s checks only: %s, and would be biased%s%s",
                   d->name, wg_law_list(laws, draws, sizeof draws), v->name, wg_law_list(v->laws, checks, sizeof checks),
                   *legal ? "; choose one of: " : "", legal);
}
