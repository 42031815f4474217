/* SPDX-License-Identifier: MIT
 * Tokenizers of tests/conformance/tokenizers, opened from their tokenizer.json. */
#ifndef WG_TESTS_UNIT_TEXT_HF_FIXTURE_H
#define WG_TESTS_UNIT_TEXT_HF_FIXTURE_H

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/file/hf.h"
#include "core/text/tokenizer.h"

static wg_error err;

/* A file of tests/conformance/tokenizers. */
static json_t *fixture(const char *name)
{
    char path[320];
    const char *root = getenv("WG_ROOT");
    snprintf(path, sizeof path, "%.128s/tests/conformance/tokenizers/%.32s.json", root ? root : ".", name);
    json_t *v = json_load_file(path, JSON_ALLOW_NUL, NULL);
    cr_assert(v, "%s", path);
    return v;
}

/* The tokenizer over an embedding of `vocab` rows, by way of a GGUF file without tensors. */
static wg_tokenizer *tokenizer_of(const json_t *tokenizer, const wg_hf_ids *ids, int vocab)
{
    char *text = json_dumps(tokenizer, JSON_COMPACT);
    void *head;
    size_t n, whole;
    wg_json *doc;
    wg_gguf_writer *g;
    wg_weights *w;
    wg_tokenizer *k;
    cr_assert_eq(wg_json_parse(&doc, "FILE", text, strlen(text), &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_gguf_writer_open(&g, NULL, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_hf_tokenizer(g, doc, ids, vocab, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_gguf_writer_head(g, &head, &n, &whole, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_weights_open_memory(&w, "FILE", head, n, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_tokenizer_open(&k, w, &err), WG_OK, "%s", err.text);
    wg_weights_close(w);
    wg_json_close(doc);
    wg_free(head);
    free(text);
    return k;
}

static inline wg_tokenizer *named(const char *name, const wg_hf_ids *ids, int vocab)
{
    json_t *v = fixture(name);
    wg_tokenizer *t = tokenizer_of(json_object_get(v, "tokenizer"), ids, vocab);
    json_decref(v);
    return t;
}

#endif
