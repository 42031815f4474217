/* SPDX-License-Identifier: MIT
 * What a folder without tokenizer.json says about its tokens beside tokenizer.model: added_tokens_decoder of
 * tokenizer_config.json, or, where there is none, added_tokens.json, whose tokens are special if a key of
 * tokenizer_config.json or special_tokens_map.json names them; and which tokens stand around a text. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/file/hf_tokenizer_impl.h"

enum { PATH = 4096 };

/* A token is a text, or an object whose `content` is the text. */
static const json_t *content_of(const json_t *v) { return json_is_object(v) ? json_object_get(v, "content") : v; }

wg_text wg_hf_token_text(const json_t *v)
{
    v = content_of(v);
    return (wg_text){ json_string_value(v), json_string_length(v) };
}

wg_status wg_hf_open_json(wg_json **out, const char *folder, const char *name, wg_error *err)
{
    char path[PATH];
    *out = NULL;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0 ? wg_json_open_foreign(out, path, err) : WG_OK;
}

static const json_t *root_of(const wg_json *doc) { return doc ? wg_json_root(doc) : NULL; }

/* Whether a key of the file names the text, as a token or in a list of them. */
static bool names(const json_t *root, const char *text)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)root, key, v) {
        const char *is = strstr(key, "_token") ? json_string_value(content_of(v)) : NULL;
        bool found = is && strcmp(is, text) == 0;
        for (size_t i = 0; strstr(key, "special_tokens") && i < json_array_size(v) && !found; i++) {
            is = json_string_value(content_of(json_array_get(v, i)));
            found = is && strcmp(is, text) == 0;
        }
        if (found) return true;
    }
    return false;
}

static wg_status read_decoder(wg_hf_added *a, const json_t *decoder, wg_error *err)
{
    static const char *const flag[] = { "lstrip", "rstrip", "single_word" };
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)decoder, key, v) {
        char *end;
        errno = 0;
        wg_hf_token *t = &a->token[a->n++];
        *t = (wg_hf_token){ .text = wg_hf_token_text(v),
                            .id = strtol(key, &end, 10),
                            .special = json_is_true(wg_hf_member(v, "special")) };
        for (int k = 0; k < 3; k++) t->flags |= json_is_true(wg_hf_member(v, flag[k])) << k;
        if (errno || *end || end == key || t->id < 0 || t->text.n == 0)
            return wg_fail(err, WG_EMODEL,
                           "%s: added_tokens_decoder: '%.40s': expected the id of a token and an object with its content",
                           wg_json_name(a->config), key);
    }
    return WG_OK;
}

static wg_status read_list(wg_hf_added *a, const wg_json *special, wg_error *err)
{
    const char *key;
    json_t *v;
    json_object_foreach(wg_json_root(a->list), key, v) {
        if (!json_is_integer(v) || json_integer_value(v) < 0 || !*key)
            return wg_fail(err, WG_EMODEL, "%s: '%.60s': expected a token and its id", wg_json_name(a->list), key);
        a->token[a->n++] = (wg_hf_token){ .text = { key, strlen(key) },
                                          .id = json_integer_value(v),
                                          .special = names(root_of(a->config), key) || names(root_of(special), key) };
    }
    return WG_OK;
}

static wg_status read_tokens(wg_hf_added *a, const wg_json *special, wg_error *err)
{
    const json_t *decoder = wg_hf_member(root_of(a->config), "added_tokens_decoder");
    if (decoder && !json_is_object(decoder))
        return wg_fail(err, WG_EMODEL, "%s: added_tokens_decoder: expected an object of ids and tokens",
                       wg_json_name(a->config));
    if (!decoder && a->list && !json_is_object(wg_json_root(a->list)))
        return wg_fail(err, WG_EMODEL, "%s: expected an object of tokens and ids", wg_json_name(a->list));
    const size_t n = json_object_size(decoder ? decoder : root_of(a->list));
    if (n == 0) return WG_OK;
    a->token = wg_calloc(n, sizeof *a->token);
    if (!a->token) return wg_nomem(err, n * sizeof *a->token, "a list of tokens");
    return decoder ? read_decoder(a, decoder, err) : read_list(a, special, err);
}

static wg_status read_flag(const wg_hf_added *a, const char *key, int *out, wg_error *err)
{
    const json_t *v = wg_hf_member(root_of(a->config), key);
    *out = v ? json_is_true(v) : -1;
    if (!v || json_is_boolean(v)) return WG_OK;
    return wg_fail(err, WG_EMODEL, "%s: key '%s': expected true or false", wg_json_name(a->config), key);
}

/* LlamaTokenizer of transformers puts a space before a text alone, or, with `legacy`, before each part between added tokens;
 * never where there is one. SentencePiece puts one before each part. */
static const char *metaspace_of(const json_t *root)
{
    const char *class = json_string_value(wg_hf_member(root, "tokenizer_class"));
    const json_t *legacy = wg_hf_member(root, "legacy");
    if (!json_is_boolean(legacy) && !(class && strstr(class, "LlamaTokenizer"))) return NULL;
    return json_is_true(legacy) ? "always" : "first";
}

wg_status wg_hf_added_read(wg_hf_added *a, const char *folder, wg_error *err)
{
    wg_json *special = NULL;
    *a = (wg_hf_added){ .add_bos = -1, .add_eos = -1 };
    wg_status s = wg_hf_open_json(&a->config, folder, "tokenizer_config.json", err);
    if (!s) s = wg_hf_open_json(&a->list, folder, "added_tokens.json", err);
    if (!s) s = wg_hf_open_json(&special, folder, "special_tokens_map.json", err);
    if (!s) s = read_tokens(a, special, err);
    if (!s) s = read_flag(a, "add_bos_token", &a->add_bos, err);
    if (!s) s = read_flag(a, "add_eos_token", &a->add_eos, err);
    a->metaspace = metaspace_of(root_of(a->config));
    a->bos = wg_hf_token_text(wg_hf_member(root_of(a->config), "bos_token"));
    a->eos = wg_hf_token_text(wg_hf_member(root_of(a->config), "eos_token"));
    wg_json_close(special);
    if (s) wg_hf_added_close(a);
    return s;
}

void wg_hf_added_close(wg_hf_added *a)
{
    wg_json_close(a->config);
    wg_json_close(a->list);
    wg_free(a->token);
    *a = (wg_hf_added){ 0 };
}
