/* SPDX-License-Identifier: MIT
 * Parsing of drafter and rule specifications into classes and their options. */
#include "core/setup/spec.h"

#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "draft/draft.h"
#include "draft/open.h"
#include "verify/rule_plugin.h"
#include "verify/verify.h"

const wg_plugins wg_program_plugins = { wg_drafters, wg_verifiers };

static wg_status choose(const char *kind, wg_drafter_choice *out, wg_error *err)
{
    *out = (wg_drafter_choice){ 0 };
    WG_TRY(wg_find_drafter(&wg_program_plugins, kind, &out->class, err));
    if (!out->class->options) return WG_OK;
    const size_t size = out->class->size + 1; /* as in a cell */
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

wg_status wg_choose_auto(const char *path, wg_drafter_choice *out, wg_error *err)
{
    enum { LONGEST = 8 };
    char of[WG_OPTION_STRING + 64];
    snprintf(of, sizeof of, "model:model={%s};length=%d", path, LONGEST);
    WG_TRY(choose("auto", out, err));
    const wg_status s = wg_option_set(out->class->options, out->options, "of", of, err);
    if (s) wg_choice_close(out);
    return s;
}

wg_status wg_choose_lone(const wg_drafter_class *class, const void *options, wg_drafter_choice *out, wg_error *err)
{
    const wg_option *row = wg_option_find(class->options, "of");
    char spec[WG_OPTION_STRING];
    *out = (wg_drafter_choice){ 0 };
    if (!row || strcmp(class->name, "auto") != 0) return WG_OK;
    const char *of = (const char *)options + row->at;
    const int n = wg_spec_item(of, '|');
    if (n < 1 || of[n]) return WG_OK;
    WG_TRY(wg_spec_copy(spec, sizeof spec, of, n, err));
    char *list = strchr(spec, ':');
    if (list) *list++ = '\0';
    WG_TRY(choose(spec, out, err));
    const wg_status s = wg_drafter_set(out->class, out->options, list, err);
    if (s) wg_choice_close(out);
    return s;
}

void wg_choice_close(wg_drafter_choice *c)
{
    wg_free(c->options);
    c->options = NULL;
}

wg_status wg_find_rule(const wg_plugins *plugins, const char *name, const wg_verifier_class **out, wg_error *err)
{
    if (strcmp(name, wg_plugin_rule.name) != 0) return wg_find_verifier(plugins, name, out, err);
    *out = &wg_plugin_rule;
    return WG_OK;
}

wg_status wg_rule_load(wg_rule_choice *c, wg_error *err)
{
    wg_rule_choice loaded;
    if (c->class != &wg_plugin_rule) return WG_OK;
    WG_TRY(wg_verifier_plugin_open(c->options, &loaded.class, &loaded.options, &loaded.object, err));
    wg_rule_choice_close(c);
    *c = loaded;
    return WG_OK;
}

wg_status wg_name_rule(const char *spec, wg_rule_choice *out, wg_error *err)
{
    char name[64];
    const size_t n = strcspn(spec, ":");
    *out = (wg_rule_choice){ 0 };
    snprintf(name, sizeof name, "%.*s", (int)(n < 63 ? n : 63), spec);
    WG_TRY(wg_find_rule(&wg_program_plugins, name, &out->class, err));
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

wg_status wg_choose_rule(const char *spec, wg_rule_choice *out, wg_error *err)
{
    WG_TRY(wg_name_rule(spec, out, err));
    const wg_status s = wg_rule_load(out, err);
    if (s) wg_rule_choice_close(out);
    return s;
}

const char *wg_law_assumes(const wg_verifier_class *rule, bool plugin, double temperature, bool outside)
{
    const bool q = outside && wg_verifier_needs_q(rule, temperature);
    if (!wg_verifier_lossless(rule, temperature)) return NULL;
    return q && plugin ? "q is true and the plug-in rule exact" : q ? "q is true" : plugin ? "the plug-in rule is exact" : NULL;
}

void wg_rule_choice_close(wg_rule_choice *c)
{
    wg_free(c->options);
    wg_verifier_unload(c->object);
    c->options = c->object = NULL;
}
