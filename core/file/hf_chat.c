/* SPDX-License-Identifier: MIT
 * The chat templates of a Hugging Face folder, as the keys that GGUF files have for them: chat_template.jinja and the named
 * ones of additional_chat_templates, else the key chat_template of tokenizer_config.json, which is a text or a list of named
 * ones, else that of chat_template.json. The texts of bos_token and eos_token, which templates print, are keys of our own: they
 * may differ from the ids in config.json. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/file/hf.h"

#define KEY "tokenizer.chat_template"
enum { TEMPLATE_MOST = 1 << 20, PATH = 4096 };

static void set_token(wg_gguf_writer *g, const char *key, const json_t *v)
{
    const wg_text text = wg_hf_token_text(v);
    if (text.s) wg_gguf_set_string(g, key, text.s, text.n);
}

/* What a folder has so far: a template that is used without a name, and any. */
typedef struct templates {
    bool usual, any;
} templates;

/* Those of a list; where there are others already, only the usual one. */
static wg_status set_named(wg_gguf_writer *g, const json_t *list, const char *path, templates *t, wg_error *err)
{
    const bool others = t->any;
    for (size_t i = 0; i < json_array_size(list); i++) {
        char key[160];
        const json_t *one = json_array_get(list, i), *text = json_object_get(one, "template");
        const char *name = json_string_value(json_object_get(one, "name"));
        if (!name || !*name || strlen(name) > 100 || !json_is_string(text))
            return wg_fail(err, WG_EMODEL,
                           "%s: element %zu of chat_template: expected an object with the texts name and template", path, i);
        const bool plain = !strcmp(name, "default");
        if (plain ? t->usual : others) continue;
        t->usual = t->usual || plain, t->any = true;
        snprintf(key, sizeof key, KEY "%s%s", plain ? "" : ".", plain ? "" : name);
        wg_gguf_set_string(g, key, json_string_value(text), json_string_length(text));
    }
    return WG_OK;
}

static wg_status set_templates(wg_gguf_writer *g, const json_t *v, const char *path, templates *t, wg_error *err)
{
    if (json_is_array(v)) return set_named(g, v, path, t, err);
    if (json_is_string(v)) {
        wg_gguf_set_string(g, KEY, json_string_value(v), json_string_length(v));
        t->usual = t->any = true;
    } else if (v && !json_is_null(v))
        return wg_fail(err, WG_EMODEL, "%s: chat_template: expected a text or a list of named ones", path);
    return WG_OK;
}

/* The templates of a file of the folder if they are `wanted`; with `tokens` its special tokens. */
static wg_status read_json(wg_gguf_writer *g, const char *folder, const char *name, bool tokens, bool wanted, templates *t,
                           wg_error *err)
{
    wg_json *doc;
    WG_TRY(wg_hf_open_json(&doc, folder, name, err));
    if (!doc) return WG_OK;
    const json_t *root = wg_json_root(doc);
    if (tokens) {
        wg_gguf_set_bool(g, "wager.special_tokens", true);
        set_token(g, "wager.bos_token", json_object_get(root, "bos_token"));
        set_token(g, "wager.eos_token", json_object_get(root, "eos_token"));
    }
    const wg_status s = wanted ? set_templates(g, json_object_get(root, "chat_template"), wg_json_name(doc), t, err) : WG_OK;
    wg_json_close(doc);
    return s;
}

static wg_status set_file(wg_gguf_writer *g, const char *key, const char *path, wg_error *err)
{
    char *text;
    size_t n;
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return wg_fail(err, WG_EFORMAT, "%s: is not a regular file; download it again", path);
    WG_TRY(wg_read_file(path, TEMPLATE_MOST, &text, &n, err));
    wg_gguf_set_string(g, key, text, n);
    wg_free(text);
    return WG_OK;
}

static int is_template(const struct dirent *e)
{
    const size_t n = strlen(e->d_name), end = strlen(".jinja");
    return n > end && strcmp(e->d_name + n - end, ".jinja") == 0;
}

/* NAME.jinja of additional_chat_templates, in the order of their names. */
static wg_status read_additional(wg_gguf_writer *g, const char *folder, templates *t, wg_error *err)
{
    char path[PATH];
    struct dirent **file;
    wg_status s = WG_OK;
    snprintf(path, sizeof path, "%s/additional_chat_templates", folder);
    const int n = scandir(path, &file, is_template, alphasort);
    for (int i = 0; i < n; i++) {
        char key[sizeof KEY + NAME_MAX + 2];
        const char *name = file[i]->d_name;
        snprintf(path, sizeof path, "%s/additional_chat_templates/%s", folder, name);
        const bool plain = !strcmp(name, "default.jinja");
        snprintf(key, sizeof key, KEY "%s%.*s", plain ? "" : ".", plain ? 0 : (int)(strlen(name) - strlen(".jinja")), name);
        if (s == WG_OK && !(plain && t->usual)) s = set_file(g, key, path, err);
        t->usual = t->usual || plain;
        free(file[i]);
    }
    if (n >= 0) free(file);
    t->any = t->any || n > 0;
    return s;
}

wg_status wg_hf_chat(wg_gguf_writer *g, const char *folder, wg_error *err)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/chat_template.jinja", folder);
    templates t = { .usual = access(path, F_OK) == 0 };
    if (t.usual) WG_TRY(set_file(g, KEY, path, err));
    t.any = t.usual;
    WG_TRY(read_additional(g, folder, &t, err));
    WG_TRY(read_json(g, folder, "tokenizer_config.json", true, !t.any, &t, err));
    return t.usual ? WG_OK : read_json(g, folder, "chat_template.json", false, true, &t, err);
}
