/* SPDX-License-Identifier: MIT
 * Reading and writing a pruned vocabulary (vocabulary_subset.h). */
#include "draft/lm/vocabulary_subset.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"

enum { SCHEMA = 1, VOCAB_MAX = 1 << 24 };
static const char again[] = "make it again with: wager vocab prune --model MODEL --keep N --out FILE TEXT...";

static wg_status bad(const wg_json *doc, const char *member, const char *expected, wg_error *err)
{
    int line = 1, column = 1;
    wg_json_where(doc, member, false, &line, &column);
    return wg_fail(err, WG_EFORMAT, "%s:%d:%d: %s: expected %s; %s", wg_json_name(doc), line, column, member, expected, again);
}

static wg_status read_tokens(wg_vocabulary_subset *out, const wg_json *doc, const json_t *list, bool *seen, wg_error *err)
{
    for (int i = 0; i < out->n; i++) {
        const json_t *v = json_array_get(list, (size_t)i);
        const json_int_t id = json_is_integer(v) ? json_integer_value(v) : -1;
        char member[32];
        snprintf(member, sizeof member, "tokens[%d]", i);
        if (id < 0 || id >= out->vocab) return bad(doc, member, "an id in 0 .. vocabulary - 1", err);
        if (seen[id]) return bad(doc, member, "an id that did not come before", err);
        seen[id] = true;
        out->token[i] = (int32_t)id;
    }
    return WG_OK;
}

wg_status wg_vocabulary_subset_read(wg_vocabulary_subset *out, const wg_json *doc, wg_error *err)
{
    const json_t *root = wg_json_root(doc), *tokens = json_object_get(root, "tokens");
    const char *digest = json_string_value(json_object_get(root, "tokenizer"));
    const json_int_t vocab = json_integer_value(json_object_get(root, "vocabulary"));
    *out = (wg_vocabulary_subset){ 0 };
    if (json_integer_value(json_object_get(root, "schema")) != SCHEMA)
        return bad(doc, "schema", "1, the form of a pruned vocabulary that this program reads", err);
    if (!digest || strspn(digest, "0123456789abcdef") != 64 || digest[64])
        return bad(doc, "tokenizer", "the digest of a tokenizer, 64 hex digits", err);
    if (vocab < 1 || vocab > VOCAB_MAX) return bad(doc, "vocabulary", "a number of tokens, at least 1", err);
    if (!json_is_array(tokens) || json_array_size(tokens) < 1 || json_array_size(tokens) > (size_t)vocab)
        return bad(doc, "tokens", "a list of ids, at least one and at most as many as the vocabulary has", err);
    out->vocab = (int)vocab;
    out->n = (int)json_array_size(tokens);
    memcpy(out->digest, digest, sizeof out->digest);
    out->token = wg_alloc((size_t)out->n, sizeof *out->token);
    bool *seen = wg_calloc((size_t)vocab, sizeof *seen);
    wg_status s = out->token && seen ? WG_OK : wg_nomem(err, (size_t)vocab, "a pruned vocabulary");
    if (!s) s = read_tokens(out, doc, tokens, seen, err);
    wg_free(seen);
    if (s) wg_vocabulary_subset_close(out);
    return s;
}

wg_status wg_vocabulary_subset_open(wg_vocabulary_subset *out, const char *path, const wg_tokenizer *t, const char *target,
                                    wg_error *err)
{
    char digest[WG_SHA256_HEX];
    wg_json *doc;
    WG_TRY(wg_json_open(&doc, path, err));
    const wg_status s = wg_vocabulary_subset_read(out, doc, err);
    wg_json_close(doc);
    if (s) return s;
    wg_tokenizer_digest(t, digest);
    if (!strcmp(digest, out->digest) && out->vocab == wg_tokenizer_size(t)) return WG_OK;
    wg_status refused = wg_fail(err, WG_EVOCAB,
                                "%s was made for another tokenizer (digest %.12s, %d tokens; that of %s is %.12s, %d tokens), "
                                "so its ids mean other texts; %s",
                                path, out->digest, out->vocab, target, digest, wg_tokenizer_size(t), again);
    wg_vocabulary_subset_close(out);
    return refused;
}

void wg_vocabulary_subset_close(wg_vocabulary_subset *p)
{
    wg_free(p->token);
    *p = (wg_vocabulary_subset){ 0 };
}

typedef struct ranked {
    long count;
    int32_t id;
    bool ends; /* a text */
} ranked;

static int by_count(const void *pa, const void *pb)
{
    const ranked *a = pa, *b = pb;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

wg_status wg_vocabulary_frequent(const wg_tokenizer *t, const long *count, int n, int32_t *token, wg_error *err)
{
    const int vocab = wg_tokenizer_size(t);
    int ends = 0, kept = 0;
    ranked *order = wg_calloc((size_t)vocab, sizeof *order);
    if (!order) return wg_nomem(err, (size_t)vocab * sizeof *order, "counting tokens");
    for (int i = 0; i < vocab; i++) {
        order[i] = (ranked){ count[i], i, wg_tokenizer_is_eog(t, i) };
        ends += order[i].ends;
    }
    qsort(order, (size_t)vocab, sizeof *order, by_count);
    const bool fits = n > 0 && n >= ends && n <= vocab;
    for (int i = 0, left = ends; fits && kept < n; i++) {
        if (!order[i].ends && kept + left == n) continue; /* the rest is for those that end a text */
        left -= order[i].ends;
        token[kept++] = order[i].id;
    }
    wg_free(order);
    if (fits) return WG_OK;
    return wg_fail(err, WG_EINVAL, "%d tokens of %d were to be kept, among them the %d that end a text", n, vocab, ends);
}

wg_status wg_vocabulary_subset_write(const char *path, const wg_tokenizer *t, const int32_t *token, int n, wg_error *err)
{
    char digest[WG_SHA256_HEX];
    wg_tokenizer_digest(t, digest);
    json_t *list = json_array();
    for (int i = 0; list && i < n; i++) json_array_append_new(list, json_integer(token[i]));
    json_t *v = json_pack("{s:i, s:s, s:i, s:o}", "schema", (int)SCHEMA, "tokenizer", digest, "vocabulary",
                          wg_tokenizer_size(t), "tokens", list);
    const wg_status s = v ? wg_json_save(v, path, err) : wg_nomem(err, (size_t)n * 16, "a pruned vocabulary");
    json_decref(v);
    return s;
}
