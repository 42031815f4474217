/* SPDX-License-Identifier: MIT
 * The chat templates of a Hugging Face folder, as the keys that GGUF files have for them: chat_template.jinja, else the key
 * chat_template of tokenizer_config.json, which is a text or a list of named ones. The texts of bos_token and eos_token, which
 * templates print, are keys of our own: they may differ from the ids in config.json. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/file/hf.h"

#define KEY "tokenizer.chat_template"
enum { TEMPLATE_MOST = 1 << 20, PATH = 4096 };

/* A special token is a text, or an object whose `content` is the text. */
static void set_token(wg_gguf_writer *g, const char *key, const json_t *v)
{
    if (json_is_object(v)) v = json_object_get(v, "content");
    if (json_is_string(v)) wg_gguf_set_string(g, key, json_string_value(v), json_string_length(v));
}

static wg_status set_named(wg_gguf_writer *g, const json_t *list, const char *path, wg_error *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        char key[160];
        const json_t *one = json_array_get(list, i), *text = json_object_get(one, "template");
        const char *name = json_string_value(json_object_get(one, "name"));
        if (!name || !*name || strlen(name) > 100 || !json_is_string(text))
            return wg_fail(err, WG_EMODEL,
                           "%s: element %zu of chat_template: expected an object with the texts name and template", path, i);
        const bool plain = !strcmp(name, "default");
        snprintf(key, sizeof key, KEY "%s%s", plain ? "" : ".", plain ? "" : name);
        wg_gguf_set_string(g, key, json_string_value(text), json_string_length(text));
    }
    return WG_OK;
}

static wg_status read_config(wg_gguf_writer *g, const char *path, bool templates, wg_error *err)
{
    wg_json *doc;
    WG_TRY(wg_json_open_foreign(&doc, path, err));
    const json_t *root = wg_json_root(doc), *v = json_object_get(root, "chat_template");
    wg_status s = WG_OK;
    wg_gguf_set_bool(g, "wager.special_tokens", true);
    set_token(g, "wager.bos_token", json_object_get(root, "bos_token"));
    set_token(g, "wager.eos_token", json_object_get(root, "eos_token"));
    if (templates && json_is_string(v)) wg_gguf_set_string(g, KEY, json_string_value(v), json_string_length(v));
    else if (templates && json_is_array(v)) s = set_named(g, v, path, err);
    else if (templates && v && !json_is_null(v))
        s = wg_fail(err, WG_EMODEL, "%s: chat_template: expected a text or a list of named ones", path);
    wg_json_close(doc);
    return s;
}

wg_status wg_hf_chat(wg_gguf_writer *g, const char *folder, wg_error *err)
{
    char path[PATH], *text;
    size_t n;
    snprintf(path, sizeof path, "%s/chat_template.jinja", folder);
    const bool alone = access(path, F_OK) == 0;
    if (alone) {
        WG_TRY(wg_read_file(path, TEMPLATE_MOST, &text, &n, err));
        wg_gguf_set_string(g, KEY, text, n);
        wg_free(text);
    }
    snprintf(path, sizeof path, "%s/tokenizer_config.json", folder);
    return access(path, F_OK) == 0 ? read_config(g, path, !alone, err) : WG_OK;
}
