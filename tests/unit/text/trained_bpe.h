/* SPDX-License-Identifier: MIT
 * Vocabularies trained by the library `tokenizers`, by their digests (tests/conformance/trained_bpe.json, made by
 * make_trained_bpe.py), against ours on the same texts. */
#ifndef WG_TESTS_UNIT_TEXT_TRAINED_BPE_H
#define WG_TESTS_UNIT_TEXT_TRAINED_BPE_H

#include "core/base/hash.h"
#include "core/text/bpe_train.h"
#include "tests/temp.h"
#include "tests/unit/text/hf_fixture.h"

typedef struct text {
    char *s;
    size_t n;
} text;

static inline const wg_pretok_row *row_named(const char *name) { return wg_pretok_row_named(name, strlen(name)); }

/* The digest of "left right" lines; lines: how many. */
static inline void digest_merges(const wg_bpe_trainer *t, char hex[WG_SHA256_HEX], size_t *lines)
{
    wg_sha256_state state;
    wg_sha256_begin(&state);
    *lines = 0;
    for (size_t i = 0; i < t->merges; i++) {
        const wg_text a = wg_byte_string_at(&t->token, (size_t)t->merge[i].left);
        const wg_text b = wg_byte_string_at(&t->token, (size_t)t->merge[i].right);
        wg_sha256_add(&state, a.s, a.n);
        wg_sha256_add(&state, " ", 1);
        wg_sha256_add(&state, b.s, b.n);
        wg_sha256_add(&state, "\n", 1);
        ++*lines;
    }
    wg_sha256_end(&state, hex);
}

/* What was written is read, and encodes the beginning of the text with the library's ids. */
static inline void check_file(const wg_bpe_trainer *t, const text *x, const char *want)
{
    char hex[WG_SHA256_HEX], line[16];
    temp folder;
    int32_t *ids;
    size_t n;
    wg_sha256_state state;
    temp_make(&folder);
    const char *path = temp_at(&folder, "tokenizer.json");
    cr_assert_eq(wg_bpe_trainer_save(t, path, &err), WG_OK, "%s", err.text);
    json_t *v = json_load_file(path, 0, NULL), *added = json_object_get(v, "added_tokens");
    cr_assert(v);
    for (size_t i = 0; i < t->specials; i++) cr_assert(json_is_true(json_object_get(json_array_get(added, i), "special")));
    cr_assert_eq(json_is_true(json_object_get(json_object_get(v, "model"), "ignore_merges")), t->row->whole_words);
    wg_tokenizer *k = tokenizer_of(v, &(wg_hf_ids){ -1, { -1, -1, -1 } }, (int)t->token.n);
    size_t part = 0;
    for (int c = 0; c < 20001 && part < x->n; part++) c += ((unsigned char)x->s[part] & 0xc0) != 0x80;
    part -= part < x->n; /* the library counts characters: 20000 */
    cr_assert_eq(wg_tokenizer_encode(k, x->s, part, false, true, &ids, &n, &err), WG_OK, "%s", err.text);
    wg_sha256_begin(&state);
    for (size_t i = 0; i < n; i++) wg_sha256_add(&state, line, (size_t)snprintf(line, sizeof line, "%d\n", (int)ids[i]));
    wg_sha256_end(&state, hex);
    cr_assert_str_eq(hex, want, "%zu ids of %zu bytes", n, part);
    wg_free(ids);
    wg_tokenizer_close(k);
    json_decref(v);
    temp_remove(&folder);
}

static inline void check_case(const json_t *one, const text *x)
{
    wg_bpe_trainer t;
    wg_text special[8];
    char hex[WG_SHA256_HEX];
    size_t lines;
    const json_t *names = json_object_get(one, "special");
    const size_t specials = json_array_size(names);
    for (size_t i = 0; i < specials; i++) {
        const char *s = json_string_value(json_array_get(names, i));
        special[i] = (wg_text){ s, strlen(s) };
    }
#define NUMBER(key) json_integer_value(json_object_get(one, key))
    cr_assert_eq(wg_bpe_trainer_open(&t, row_named(json_string_value(json_object_get(one, "pre"))), &err), WG_OK);
    cr_assert_eq(wg_bpe_trainer_add(&t, "TEXT", x->s, x->n, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_bpe_trainer_run(&t, (size_t)NUMBER("vocab"), NUMBER("least"), special, specials, &err), WG_OK, "%s",
                 err.text);
    digest_merges(&t, hex, &lines);
    cr_assert_eq((json_int_t)t.token.n, NUMBER("tokens"), "%zu tokens", t.token.n);
    cr_assert_eq((json_int_t)lines, NUMBER("merges"), "%zu merges", lines);
    cr_assert_str_eq(hex, json_string_value(json_object_get(one, "merges_sha256")));
    check_file(&t, x, json_string_value(json_object_get(one, "ids_sha256")));
    wg_bpe_trainer_close(&t);
}

/* All cases with the text of that name; returns how many. */
static inline int check_cases(const char *name, const text *x)
{
    json_t *file = fixture("../trained_bpe"), *one;
    size_t i;
    int checked = 0;
    json_array_foreach(file, i, one) {
        if (strcmp(json_string_value(json_object_get(one, "text")), name) != 0) continue;
        check_case(one, x);
        checked++;
    }
    json_decref(file);
    return checked;
}

#endif
