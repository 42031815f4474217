/* SPDX-License-Identifier: MIT
 * Opening a tokenizer.json (tokenizer_file.h). */
#include "core/file/tokenizer_file.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/file/format.h"
#include "core/file/hf.h"

/* The id of a token of the list of added ones or of the vocabulary; -1: there is none. */
static int64_t id_of(const json_t *root, const char *text)
{
    const json_t *added = json_object_get(root, "added_tokens"),
                 *vocab = json_object_get(json_object_get(root, "model"), "vocab");
    size_t i;
    const json_t *t;
    json_array_foreach(added, i, t) {
        const char *content = json_string_value(json_object_get(t, "content"));
        if (content && strcmp(content, text) == 0) return json_integer_value(json_object_get(t, "id"));
    }
    const json_t *id = json_object_get(vocab, text);
    return json_is_integer(id) ? json_integer_value(id) : -1;
}

/* One more than the highest id. */
static int64_t size_of(const json_t *root)
{
    const json_t *added = json_object_get(root, "added_tokens"),
                 *vocab = json_object_get(json_object_get(root, "model"), "vocab");
    int64_t n = (int64_t)json_array_size(vocab); /* of Unigram */
    const char *key;
    json_t *v;
    size_t i;
    json_object_foreach((json_t *)vocab, key, v) n = json_integer_value(v) >= n ? json_integer_value(v) + 1 : n;
    json_array_foreach(added, i, v) {
        const int64_t id = json_integer_value(json_object_get(v, "id"));
        if (id >= n) n = id + 1;
    }
    return n;
}

static wg_status read_json(wg_weights **out, const wg_json *doc, const char *path, wg_error *err)
{
    const json_t *root = wg_json_root(doc);
    const int64_t n = size_of(root), end = id_of(root, "</s>");
    const wg_hf_ids ids = { .bos = id_of(root, "<s>"), .end = { end >= 0 ? end : id_of(root, "<|endoftext|>"), -1, -1 } };
    wg_gguf_writer *g;
    if (n < 1 || n > 1 << 24)
        return wg_fail(err, WG_EMODEL, "%s: 'model.vocab' has %lld tokens: expected 1..%d; is it a tokenizer.json?", path,
                       (long long)n, 1 << 24);
    WG_TRY(wg_gguf_writer_open(&g, NULL, err));
    wg_gguf_set_string(g, "general.architecture", "llama", 5);
    const wg_status s = wg_hf_tokenizer(g, doc, &ids, (int)n, err);
    if (s == WG_OK) return wg_weights_open_made(out, path, g, &(wg_maker){ 0 }, err);
    wg_gguf_writer_abort(g);
    return s;
}

wg_status wg_tokenizer_file_open(wg_weights **out, const char *path, wg_error *err)
{
    const size_t n = strlen(path);
    wg_json *doc;
    if (n < 5 || strcmp(path + n - 5, ".json") != 0) return wg_weights_open(out, path, err);
    WG_TRY(wg_json_open_foreign(&doc, path, err));
    const wg_status s = read_json(out, doc, path, err);
    wg_json_close(doc);
    return s;
}
