/* SPDX-License-Identifier: MIT
 * tokenizer.json of the library `tokenizers`, as the keys of a GGUF file: tokens, added tokens, merges, scores. Its pipeline is
 * read in hf_pipeline.c; what GGUF has no key for is written to tokenizer.wager.* (docs/models.md).
 *
 * SPM-style BPE is written twice: its merges, by which core/text joins, and scores for other readers, minus the rank of the
 * first merge that makes the token. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/file/hf_tokenizer_impl.h"
#include "core/file/pretok_rows.h"

enum {
    NORMAL = WG_HF_NORMAL,
    UNKNOWN = WG_HF_UNKNOWN,
    CONTROL = WG_HF_CONTROL,
    USER = WG_HF_USER,
    UNUSED = WG_HF_UNUSED,
    BYTE = WG_HF_BYTE
};
enum { PAD_TEXT = 20 };

#define get wg_hf_member
#define malformed wg_hf_malformed

typedef wg_hf_tokenizer_reader reader;

static bool is_list(const json_t *v, size_t n) { return json_is_array(v) && json_array_size(v) == n; }

/* ---- tokens */

static wg_status add_token(reader *r, wg_text text, const json_t *id, int32_t type)
{
    const json_int_t i = json_integer_value(id);
    if (!json_is_integer(id) || i < 0 || i >= r->n)
        return wg_fail(r->err, WG_EMODEL,
                       "%s: token '%.80s' has no id below %d, the rows of the embedding; do the files belong together?",
                       r->path, text.s, r->rows);
    if (text.n == 0)
        return wg_fail(r->err, WG_EMODEL, "%s: token %d is empty: expected at least one byte; download the file again", r->path,
                       (int)i);
    if (r->text[i].s && (r->text[i].n != text.n || memcmp(r->text[i].s, text.s, text.n) != 0))
        return wg_fail(r->err, WG_EMODEL, "%s: tokens '%.60s' and '%.60s' have the same id %d; download the file again",
                       r->path, r->text[i].s, text.s, (int)i);
    r->text[i] = text;
    r->type[i] = type;
    return WG_OK;
}

static bool is_byte_token(const char *s)
{
    return strlen(s) == 6 && strncmp(s, "<0x", 3) == 0 && s[5] == '>' && strspn(s + 3, "0123456789ABCDEF") == 2;
}

/* What an added token takes with it and where it is found (core/text/vocab.h). One that is found in normalised text must be the
 * same there, where spaces are U+2581 and a text begins with one. */
static wg_status read_flags(reader *r, const json_t *v, int32_t *flags)
{
    static const char *const names[] = { "lstrip", "rstrip", "single_word", "normalized" };
    const char *text = json_string_value(get(v, "content"));
    *flags = 0;
    for (int k = 0; k < 4; k++) *flags |= json_is_true(get(v, names[k])) << k;
    const bool changes = r->prepends || strchr(text, ' ') || strstr(text, WG_HF_SPACE);
    if (*flags & 8 && (r->spm || r->unigram) && r->replaces && !r->metaspace && changes)
        return wg_hf_refuse_step(r, "normalized", v);
    return WG_OK;
}

/* Added tokens are cut out of a text before all else. */
static wg_status read_added(reader *r)
{
    const json_t *list = get(r->root, "added_tokens");
    if (list && !json_is_array(list)) return malformed(r, "'added_tokens'", "a list");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i), *content = get(v, "content");
        int32_t flags;
        if (!json_is_string(content)) return malformed(r, "an added token without 'content'", "a text");
        WG_TRY(read_flags(r, v, &flags));
        const wg_text text = { json_string_value(content), json_string_length(content) };
        WG_TRY(add_token(r, text, get(v, "id"), json_is_true(get(v, "special")) ? CONTROL : USER));
        r->flags[json_integer_value(get(v, "id"))] = flags;
    }
    return WG_OK;
}

/* The tokens of Unigram: a list of texts and scores. */
static wg_status read_scored(reader *r)
{
    const json_t *unknown = get(r->model, "unk_id");
    const bool bytes = json_is_true(get(r->model, "byte_fallback"));
    if (!json_is_array(r->vocab)) return malformed(r, "'model.vocab'", "a list of tokens and scores");
    for (size_t i = 0; i < json_array_size(r->vocab); i++) {
        const json_t *v = json_array_get(r->vocab, i), *text = json_array_get(v, 0), *score = json_array_get(v, 1);
        if (!is_list(v, 2) || !json_is_string(text) || !json_is_number(score))
            return malformed(r, "'model.vocab'", "a list of tokens and scores");
        json_t *id = json_integer((json_int_t)i);
        const wg_status s = add_token(r, (wg_text){ json_string_value(text), json_string_length(text) }, id,
                                      bytes && is_byte_token(json_string_value(text)) ? BYTE : NORMAL);
        json_decref(id);
        WG_TRY(s);
        r->log[i] = json_number_value(score);
        r->score[i] = (float)r->log[i];
    }
    if (!json_is_integer(unknown) || json_integer_value(unknown) < 0 ||
        (size_t)json_integer_value(unknown) >= json_array_size(r->vocab))
        return malformed(r, "'model.unk_id'", "the id of a token");
    WG_TRY(read_added(r));
    r->type[json_integer_value(unknown)] = UNKNOWN;
    return WG_OK;
}

static wg_status read_tokens(reader *r)
{
    const char *text, *unknown = json_string_value(get(r->model, "unk_token"));
    const bool bytes = r->spm && json_is_true(get(r->model, "byte_fallback"));
    json_t *id;
    if (!json_is_object(r->vocab)) return malformed(r, "'model.vocab'", "an object: token and id");
    json_object_foreach((json_t *)(uintptr_t)r->vocab, text, id) {
        WG_TRY(add_token(r, (wg_text){ text, strlen(text) }, id, bytes && is_byte_token(text) ? BYTE : NORMAL));
    }
    WG_TRY(read_added(r));
    id = unknown ? json_object_get(r->vocab, unknown) : NULL;
    if (id) r->type[json_integer_value(id)] = UNKNOWN;
    return WG_OK;
}

/* ---- merges */

/* The halves of a merge, "left right" or ["left", "right"]. */
static bool halves(const json_t *v, wg_text half[2])
{
    const char *s = json_string_value(v), *gap = s && *s ? strchr(s + 1, ' ') : NULL;
    if (gap) {
        half[0] = (wg_text){ s, (size_t)(gap - s) };
        half[1] = (wg_text){ gap + 1, strlen(gap + 1) };
        return half[1].n > 0;
    }
    for (size_t i = 0; i < 2 && is_list(v, 2); i++) {
        const json_t *part = json_array_get(v, i);
        half[i] = (wg_text){ json_string_value(part), json_string_length(part) };
    }
    return is_list(v, 2) && half[0].n > 0 && half[1].n > 0;
}

/* A score for the token that each merge makes: the first counts. Tokens of several characters that no merge makes cannot come
 * from a text. `joined` has room for every pair. */
static wg_status score_tokens(reader *r, const json_t *list, char *joined)
{
    wg_text half[2];
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!halves(json_array_get(list, i), half)) return malformed(r, "'model.merges'", "pairs of tokens");
        memcpy(joined, half[0].s, half[0].n);
        memcpy(joined + half[0].n, half[1].s, half[1].n);
        joined[half[0].n + half[1].n] = '\0';
        const json_t *id = json_object_get(r->vocab, joined);
        if (!id) return malformed(r, "'model.merges'", "pairs that make a token");
        float *score = &r->score[json_integer_value(id)];
        if (*score > 0) *score = -(float)i;
    }
    for (int t = 0; t < r->n; t++) {
        const wg_text s = r->text[t];
        size_t first = 1;
        while (s.s && first < s.n && ((unsigned char)s.s[first] & 0xC0) == 0x80) first++;
        if (r->score[t] > 0 && r->type[t] == NORMAL && s.s && first < s.n) r->type[t] = UNUSED;
        if (r->score[t] > 0) r->score[t] = 0;
    }
    return WG_OK;
}

/* "left right" of every merge, written one behind the other to r->bytes from *at on. */
static wg_status list_merges(reader *r, const json_t *list, size_t *at)
{
    wg_text half[2];
    for (size_t i = 0; i < json_array_size(list); i++) {
        char *to = r->bytes + *at;
        if (!halves(json_array_get(list, i), half) || memchr(half[0].s, ' ', half[0].n))
            return malformed(r, "'model.merges'", "pairs of tokens without spaces");
        memcpy(to, half[0].s, half[0].n);
        to[half[0].n] = ' ';
        memcpy(to + half[0].n + 1, half[1].s, half[1].n);
        r->merge[i] = (wg_text){ to, half[0].n + half[1].n + 1 };
        *at += r->merge[i].n;
    }
    return WG_OK;
}

static size_t merge_bytes(const json_t *list)
{
    size_t n = 0;
    wg_text half[2];
    for (size_t i = 0; i < json_array_size(list); i++)
        if (halves(json_array_get(list, i), half)) n += half[0].n + half[1].n + 1;
    return n;
}

/* ---- all of it */

/* Everything that the pipeline needs besides the usual keys. */
static void write_pipeline(const reader *r, wg_gguf_writer *g)
{
    const bool whole = json_is_true(get(r->model, "ignore_merges"));
    if (r->normal.n > 0) wg_gguf_set_strings(g, "tokenizer.wager.normalizer", r->normal.word, r->normal.n);
    if (!r->spm && !r->unigram) {
        const wg_pretok_row *row = wg_pretok_row_of(r->pre.word, r->pre.n, whole);
        if (row) wg_gguf_set_string(g, "tokenizer.ggml.pre", row->names, wg_pretok_row_name(row));
        else {
            wg_gguf_set_string(g, "tokenizer.ggml.pre", "wager", 5); /* no reader without these keys may guess */
            wg_gguf_set_strings(g, WG_PRETOK_KEY, r->pre.word, r->pre.n);
            wg_gguf_set_bool(g, "tokenizer.wager.ignore_merges", whole);
        }
        return;
    }
    wg_gguf_set_bool(g, "tokenizer.ggml.add_space_prefix", r->prefix_space);
    if (r->metaspace) wg_gguf_set_string(g, "tokenizer.wager.metaspace", r->metaspace, strlen(r->metaspace));
    if (r->split_spaces) wg_gguf_set_bool(g, "tokenizer.wager.split_spaces", true);
    if (r->spm) wg_gguf_set_bool(g, "tokenizer.wager.pair_merges", true);
    if (r->spm && json_is_true(get(r->model, "fuse_unk"))) wg_gguf_set_bool(g, "tokenizer.wager.fuse_unk", true);
}

/* Tokens around a text: GGUF's flags where they can say it. */
static void write_template(const reader *r, const wg_hf_ids *ids, wg_gguf_writer *g)
{
    const int64_t bos = r->befores > 0 ? r->before[0] : ids->bos;
    if (bos >= 0) wg_gguf_set_u32(g, "tokenizer.ggml.bos_token_id", (uint32_t)bos);
    wg_gguf_set_bool(g, "tokenizer.ggml.add_bos_token", r->befores > 0);
    if (r->befores > 1) wg_gguf_set_i32s(g, "tokenizer.wager.before", r->before, r->befores);
    if (r->afters == 1 && r->after[0] == ids->end[0]) wg_gguf_set_bool(g, "tokenizer.ggml.add_eos_token", true);
    else if (r->afters > 0) wg_gguf_set_i32s(g, "tokenizer.wager.after", r->after, r->afters);
}

const char *const wg_hf_end_keys[WG_HF_ENDS] = { "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                                 "tokenizer.ggml.eom_token_id" };

static void write(const reader *r, const wg_hf_ids *ids, wg_gguf_writer *g)
{
    const char *model = r->unigram ? "t5" : r->spm ? "llama" : "gpt2";
    bool flags = false;
    wg_gguf_set_string(g, "tokenizer.ggml.model", model, strlen(model));
    write_pipeline(r, g);
    wg_gguf_set_strings(g, "tokenizer.ggml.tokens", r->text, (size_t)r->n);
    wg_gguf_set_i32s(g, "tokenizer.ggml.token_type", r->type, (size_t)r->n);
    if (r->spm || r->unigram) wg_gguf_set_f32s(g, "tokenizer.ggml.scores", r->score, (size_t)r->n);
    if (r->unigram) wg_gguf_set_f64s(g, "tokenizer.wager.scores", r->log, (size_t)r->n);
    else wg_gguf_set_strings(g, "tokenizer.ggml.merges", r->merge, r->merges);
    write_template(r, ids, g);
    for (int i = 0; i < WG_HF_ENDS; i++)
        if (ids->end[i] >= 0) wg_gguf_set_u32(g, wg_hf_end_keys[i], (uint32_t)ids->end[i]);
    for (int i = 0; i < r->n; i++) {
        if (r->type[i] == UNKNOWN) wg_gguf_set_u32(g, "tokenizer.ggml.unknown_token_id", (uint32_t)i);
        flags = flags || r->flags[i];
    }
    if (flags) wg_gguf_set_i32s(g, "tokenizer.wager.added", r->flags, (size_t)r->n);
}

/* Ids without a token: rows that pad the embedding. */
static void name_unused(reader *r, size_t at)
{
    for (int i = 0; i < r->n; i++) {
        if (r->text[i].s) continue;
        char *to = r->bytes + at;
        r->text[i] = (wg_text){ to, (size_t)snprintf(to, PAD_TEXT, WG_HF_PAD, i) };
        r->type[i] = UNUSED;
        at += PAD_TEXT;
    }
}

static wg_status read_all(reader *r)
{
    const json_t *list = r->unigram ? NULL : get(r->model, "merges");
    size_t at = 0, holes = 0, unused;
    for (int i = 0; i < r->n; i++) {
        r->score[i] = r->unigram ? 0 : 1; /* none */
        r->log[i] = NAN;
    }
    WG_TRY(r->unigram ? read_scored(r) : read_tokens(r));
    while (r->n > r->rows && !r->text[r->n - 1].s) r->n--;
    if (!r->unigram && !json_is_array(list)) return malformed(r, "'model.merges'", "a list of pairs of tokens");
    r->merges = json_array_size(list);
    for (int i = 0; i < r->n; i++) holes += !r->text[i].s;
    unused = merge_bytes(list);
    const size_t bytes = unused + holes * PAD_TEXT + 1;
    r->bytes = wg_alloc(bytes, 1);
    r->merge = wg_alloc(r->merges, sizeof *r->merge);
    if (!r->bytes || !r->merge) return wg_nomem(r->err, bytes + r->merges * sizeof *r->merge, "a vocabulary");
    if (r->spm) WG_TRY(score_tokens(r, list, r->bytes));
    WG_TRY(list_merges(r, list, &at));
    name_unused(r, at);
    return WG_OK;
}

static wg_status check_id(const reader *r, const char *what, int64_t id)
{
    if (id < r->rows) return WG_OK;
    return wg_fail(r->err, WG_EMODEL, "%s: the id of the %s token is %lld: expected one below %d, the rows of the embedding",
                   r->path, what, (long long)id, r->rows);
}

static wg_status check_ids(const reader *r, const wg_hf_ids *ids)
{
    WG_TRY(check_id(r, "first", ids->bos));
    for (int i = 0; i < WG_HF_ENDS; i++) WG_TRY(check_id(r, "last", ids->end[i]));
    for (size_t i = 0; i < r->befores; i++) WG_TRY(check_id(r, "first", r->before[i]));
    for (size_t i = 0; i < r->afters; i++) WG_TRY(check_id(r, "last", r->after[i]));
    return WG_OK;
}

/* Reads all tokens and writes the keys. */
static wg_status convert(reader *r, const wg_hf_ids *ids, wg_gguf_writer *g)
{
    const size_t n = (size_t)r->n;
    r->text = wg_calloc(n, sizeof *r->text);
    r->type = wg_calloc(n, sizeof *r->type);
    r->flags = wg_calloc(n, sizeof *r->flags);
    r->score = wg_calloc(n, sizeof *r->score);
    r->log = wg_calloc(n, sizeof *r->log);
    const bool ok = r->text && r->type && r->flags && r->score && r->log;
    wg_status s = ok ? read_all(r) : wg_nomem(r->err, n * sizeof *r->text, "a vocabulary");
    if (s == WG_OK) write(r, ids, g);
    wg_free(r->text);
    wg_free(r->type);
    wg_free(r->flags);
    wg_free(r->score);
    wg_free(r->log);
    wg_free(r->bytes);
    wg_free(r->merge);
    return s;
}

wg_status wg_hf_tokenizer(wg_gguf_writer *g, const wg_json *tokenizer, const wg_hf_ids *ids, int vocab, wg_error *err)
{
    const json_t *root = wg_json_root(tokenizer), *model = get(root, "model");
    reader r = { .root = root,
                 .model = model,
                 .vocab = get(model, "vocab"),
                 .path = wg_json_name(tokenizer),
                 .rows = vocab,
                 .n = vocab + WG_HF_BEYOND,
                 .err = err };
    wg_status s = wg_hf_pipeline(&r);
    if (s == WG_OK) s = check_ids(&r, ids);
    if (s == WG_OK) s = convert(&r, ids, g);
    wg_free((void *)(uintptr_t)r.map.s);
    return s;
}
