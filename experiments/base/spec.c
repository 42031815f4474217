/* SPDX-License-Identifier: MIT
 * Parsing of drafter and rule specifications into classes and their options. */
#include "experiments/base/spec.h"

#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "draft/draft.h"
#include "verify/verify.h"

const wg_plugins wg_program_plugins = { wg_drafters, wg_verifiers };

static wg_status choose(const char *kind, wg_drafter_choice *out, wg_error *err)
{
    *out = (wg_drafter_choice){ 0 };
    WG_TRY(wg_find_drafter(&wg_program_plugins, kind, &out->class, err));
    if (!out->class->options) return WG_OK;
    const size_t size = out->class->size - out->class->options_at;
    if (!(out->options = wg_calloc(1, size))) return wg_nomem(err, size, "drafter options");
    wg_option_defaults(out->class->options, out->options);
    return WG_OK;
}

wg_status wg_choose_drafter(const char *spec, wg_drafter_choice *out, wg_error *err)
{
    const char *colon = strchr(spec, ':');
    char *kind = colon ? wg_strndup(spec, (size_t)(colon - spec)) : wg_strdup(spec);
    if (!kind) return wg_nomem(err, strlen(spec), "a drafter's name");
    wg_status s = choose(kind, out, err);
    if (!s && colon && colon[1]) {
        if (!out->options)
            s = wg_fail(err, WG_EINVAL, "--draft %s: the drafter '%s' has no options; write --draft %s", spec, kind, kind);
        else
            s = wg_option_set_list(out->class->options, out->options, out->class->size - out->class->options_at, colon + 1,
                                   err);
    }
    wg_free(kind);
    if (s) wg_choice_close(out);
    return s;
}

wg_status wg_choose_draft_model(const char *path, wg_drafter_choice *out, wg_error *err)
{
    wg_status s = choose("model", out, err);
    if (!s) s = wg_option_set(out->class->options, out->options, "model", path, err);
    if (s) wg_choice_close(out);
    return s;
}

void wg_choice_close(wg_drafter_choice *c)
{
    wg_free(c->options);
    c->options = NULL;
}

wg_status wg_choose_rule(const char *spec, wg_rule_choice *out, wg_error *err)
{
    char name[64];
    const size_t n = strcspn(spec, ":");
    *out = (wg_rule_choice){ 0 };
    snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), spec);
    WG_TRY(wg_find_verifier(&wg_program_plugins, name, &out->class, err));
    if (out->class->size) {
        if (!(out->options = wg_calloc(1, out->class->size))) return wg_nomem(err, out->class->size, "a rule's options");
        wg_option_defaults(out->class->options, out->options);
    }
    if (!spec[n] || !spec[n + 1]) return WG_OK;
    const wg_status s = !out->options
                            ? wg_fail(err, WG_EINVAL, "--rule %s: the rule '%s' has no options", spec, name)
                            : wg_option_set_list(out->class->options, out->options, out->class->size, spec + n + 1, err);
    if (s) wg_rule_choice_close(out);
    return s;
}

void wg_rule_choice_close(wg_rule_choice *c)
{
    wg_free(c->options);
    c->options = NULL;
}
