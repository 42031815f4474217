/* SPDX-License-Identifier: MIT
 * Engines from texts (engine_text.h). */
#include "core/setup/engine_text.h"

#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/setup/setup_check.h"

/* Keys of the top level, and of the section `prompts`. `name` and `question` are for the reader. */
static const char *const top[] = { "name",  "question", "seed",     "max_tokens", "batch",   "target",
                                   "draft", "verify",   "sampling", "prompts",    "profile", NULL };
static const char *const prompts[] = { "chat", "system", "date", NULL };

static bool is_one_of(const char *key, const char *const *names)
{
    while (*names && strcmp(*names, key) != 0) names++;
    return *names != NULL;
}

/* Reports known keys of measurements; unknown keys are reported where values are read. */
static void check_keys(wg_checker *c, const json_t *object, const char *section, const char *const *names)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)object, key, v) {
        char path[256];
        const wg_setup_section *s = wg_setup_sections;
        while (s->name && strcmp(s->name, section) != 0) s++;
        snprintf(path, sizeof path, "%s%s%s", section, *section ? "." : "", key);
        const bool known = (s->name && wg_option_find(s->table, key)) || !strcmp(path, "sweep");
        if (known && !is_one_of(key, names))
            wg_problem(c, path, true,
                       "\"%s\" is a key of experiments (wager run); an engine alone has no use for it, leave it out", path);
    }
}

static bool put_model(json_t *root, const char *model)
{
    json_t *target = json_object_get(root, "target");
    if (!target && json_object_set_new(root, "target", target = json_object())) return false;
    return !json_is_object(target) || json_object_get(target, "model") ||
           !json_object_set_new(target, "model", json_string(model));
}

/* Opens what "//from" of a config says: the option of a program that a path's value came from, {"draft": "--draft sufix"}. */
static wg_status open_origins(wg_checker *c, const json_t *root, wg_override **all, wg_error *err)
{
    json_t *from = json_object_get(root, "//from"), *text;
    const char *path;
    if (!json_is_object(from)) return WG_OK;
    c->set = *all = wg_calloc(json_object_size(from) + 1, sizeof **all);
    if (!*all) return wg_nomem(err, sizeof **all, "the options of a config");
    json_object_foreach(from, path, text) {
        wg_override *o = &(*all)[c->n_set];
        if (!json_is_string(text)) continue;
        *o = (wg_override){ .text = wg_strdup(path), .option = true };
        if (!(o->path = o->text)) return wg_nomem(err, strlen(path), "the options of a config");
        c->n_set++;
        WG_TRY(wg_json_parse(&o->doc, json_string_value(text), "{}", 2, err));
    }
    return WG_OK;
}

static wg_status check(wg_checker *c, const wg_engine_text *text, json_t *root, wg_setup *setup, wg_error *err)
{
    WG_TRY(wg_parts_put(c, root, err));
    if (text->model && !put_model(root, text->model)) return wg_fail(err, WG_EINVAL, "the model's path is not text in UTF-8");
    check_keys(c, root, "", top);
    check_keys(c, json_object_get(root, "prompts"), "prompts", prompts);
    if (!text->target && json_object_get(root, "target"))
        wg_problem(c, "target", true, "target: this engine's target is the caller's; leave the section out");
    c->is_whole = true;
    wg_check_values(c, root, "sweep", setup);
    wg_check_engine(c, setup, text->target);
    if (text->target) wg_check_chat(c, setup, false);
    const wg_status s = wg_problems_report(c, err);
    if (s == WG_ECONFIG && c->missing == c->n_found) return err->code = WG_ENOENT;
    return s;
}

wg_status wg_engine_text_open(wg_setup *out, const wg_engine_text *text, const wg_plugins *plugins, wg_error *err)
{
    wg_json *doc;
    wg_error e;
    wg_setup setup = { 0 };
    const wg_status parsed = wg_json_parse(&doc, text->name, text->json, strlen(text->json), &e);
    if (parsed) return wg_fail(err, parsed == WG_ENOMEM ? parsed : WG_ECONFIG, "%s", e.text);
    json_t *root = json_deep_copy(wg_json_root(doc));
    wg_checker c = { .doc = doc, .plugins = plugins };
    wg_override *from = NULL;
    wg_status s = open_origins(&c, root, &from, err);
    if (!s && !json_is_object(root))
        s = wg_fail(err, WG_ECONFIG, "%s: expected an object: {\"target\": ..., \"draft\": ...}", text->name);
    wg_setup_uncomment(root);
    if (!s) s = check(&c, text, root, &setup, err);
    wg_checker_close(&c);
    for (int i = 0; i < c.n_set; i++) {
        wg_json_close(from[i].doc);
        wg_free(from[i].text);
    }
    wg_free(from);
    json_decref(root);
    wg_json_close(doc);
    if (s) wg_setup_close(&setup);
    else *out = setup;
    return s;
}
