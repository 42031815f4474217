/* SPDX-License-Identifier: MIT
 * A trained vocabulary as tokenizer.json of the library `tokenizers`, or as the GGUF file without tensors that it would be.
 * The steps of the pre-tokeniser are written from the same words (core/file/pretok_rows.h) that the trainer cut by. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/save.h"
#include "core/file/hf.h"
#include "core/text/bpe_train.h"

/* A step of words from `at` on; *at behind them. */
static json_t *step_of(const char *const *word, size_t *at)
{
    static const char *const behaviors[][2] = {
        { "isolated", "Isolated" },
        { "removed", "Removed" },
        { "contiguous", "Contiguous" },
        { "merged_with_previous", "MergedWithPrevious" },
        { "merged_with_next", "MergedWithNext" },
    };
    const char *name = word[(*at)++], *behavior = "";
    if (!strcmp(name, "bytes"))
        return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 0);
    const char *how = word[(*at)++];
    if (!strcmp(name, "digits")) return json_pack("{s:s, s:b}", "type", "Digits", "individual_digits", !strcmp(how, "each"));
    for (size_t i = 0; i < sizeof behaviors / sizeof *behaviors; i++)
        if (!strcmp(how, behaviors[i][0])) behavior = behaviors[i][1];
    if (!strcmp(name, "punctuation")) return json_pack("{s:s, s:s}", "type", "Punctuation", "behavior", behavior);
    return json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", !strcmp(name, "text") ? "String" : "Regex",
                     word[(*at)++], "behavior", behavior, "invert", !strcmp(name, "split_not"));
}

static json_t *pre_tokenizer(const wg_pretok_row *row)
{
    static const char *const bytes[] = { "bytes", NULL };
    json_t *steps = json_array();
    bool as_bytes = false;
    for (size_t i = 0; row->words[i];) {
        as_bytes = as_bytes || !strcmp(row->words[i], bytes[0]);
        json_array_append_new(steps, step_of(row->words, &i));
    }
    if (!as_bytes) json_array_append_new(steps, step_of(bytes, &(size_t){ 0 }));
    return json_pack("{s:s, s:o}", "type", "Sequence", "pretokenizers", steps);
}

static json_t *text_of(const wg_bpe_trainer *t, size_t id)
{
    const wg_text s = wg_byte_string_at(&t->token, id);
    return json_stringn(s.s, s.n);
}

static json_t *added_tokens(const wg_bpe_trainer *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->specials; i++)
        json_array_append_new(list,
                              json_pack("{s:I, s:o, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)i, "content", text_of(t, i),
                                        "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1));
    return list;
}

static json_t *model(const wg_bpe_trainer *t)
{
    json_t *vocab = json_object(), *merges = json_array();
    for (size_t i = 0; i < t->token.n; i++) {
        const wg_text s = wg_byte_string_at(&t->token, i);
        json_object_setn_new(vocab, s.s, s.n, json_integer((json_int_t)i));
    }
    for (size_t i = 0; i < t->merges; i++) {
        json_array_append_new(merges,
                              json_pack("[o, o]", text_of(t, (size_t)t->merge[i].left), text_of(t, (size_t)t->merge[i].right)));
    }
    return json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:o}", "type", "BPE", "dropout", "unk_token",
                     "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0, "ignore_merges",
                     t->row->whole_words, "vocab", vocab, "merges", merges);
}

typedef struct sink {
    wg_save *save;
    wg_status status;
    wg_error *err;
} sink;

static int write_part(const char *s, size_t n, void *user)
{
    sink *k = user;
    if (!k->status) k->status = wg_save_write(k->save, s, n, k->err);
    return k->status ? -1 : 0;
}

static wg_status save_json(const wg_bpe_trainer *t, const json_t *root, const char *path, wg_error *err)
{
    sink k = { .err = err };
    WG_TRY(wg_save_open(&k.save, path, err));
    const int done = json_dump_callback(root, write_part, &k, JSON_INDENT(1));
    if (!k.status && done) k.status = wg_nomem(err, t->token.n_bytes, "a tokenizer.json");
    if (!k.status) return wg_save_commit(k.save, err);
    wg_save_abort(k.save);
    return k.status;
}

/* The keys of a GGUF file, by way of the reader of tokenizer.json. */
static wg_status save_gguf(const wg_bpe_trainer *t, const json_t *root, const char *path, wg_error *err)
{
    const wg_hf_ids ids = { .bos = -1, .end = { t->specials > 0 ? 0 : -1, -1, -1 } };
    char *text = json_dumps(root, JSON_COMPACT);
    wg_json *doc = NULL;
    wg_gguf_writer *g = NULL;
    wg_status s = text ? wg_json_parse(&doc, path, text, strlen(text), err) : wg_nomem(err, t->token.n_bytes, "a tokenizer");
    if (!s) s = wg_gguf_writer_open(&g, path, err);
    if (!s) s = wg_hf_tokenizer(g, doc, &ids, (int)t->token.n, err);
    if (!s) s = wg_gguf_writer_finish(g, err);
    else wg_gguf_writer_abort(g);
    wg_json_close(doc);
    free(text);
    return s;
}

wg_status wg_bpe_trainer_save(const wg_bpe_trainer *t, const char *path, wg_error *err)
{
    const size_t n = strlen(path);
    const bool gguf = n > 5 && strcmp(path + n - 5, ".gguf") == 0;
    json_t *root =
        json_pack("{s:s, s:n, s:n, s:o, s:n, s:o, s:n, s:{s:s, s:b, s:b, s:b}, s:o}", "version", "1.0", "truncation", "padding",
                  "added_tokens", added_tokens(t), "normalizer", "pre_tokenizer", pre_tokenizer(t->row), "post_processor",
                  "decoder", "type", "ByteLevel", "add_prefix_space", 1, "trim_offsets", 1, "use_regex", 1, "model", model(t));
    if (!root) return wg_nomem(err, t->token.n_bytes, "a tokenizer.json");
    const wg_status s = (gguf ? save_gguf : save_json)(t, root, path, err);
    json_decref(root);
    return s;
}
