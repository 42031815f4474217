/* SPDX-License-Identifier: MIT
 * tokenizer.json written back (core/file/hf_write.h) from the keys of a GGUF file. */
#include "core/file/hf_write.h"

#include "tests/unit/text/hf_fixture.h"
#include "tests/temp.h"

typedef struct bytes {
    void *head;
    size_t n;
} bytes;

/* The head of the GGUF file of a tokenizer.json. */
static bytes head_of(const json_t *tokenizer, const wg_hf_ids *ids, int vocab)
{
    bytes b;
    size_t whole;
    wg_json *doc;
    wg_gguf_writer *g;
    char *text = json_dumps(tokenizer, JSON_COMPACT);
    cr_assert_eq(wg_json_parse(&doc, "FILE", text, strlen(text), &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_gguf_writer_open(&g, NULL, &err), WG_OK);
    cr_assert_eq(wg_hf_tokenizer(g, doc, ids, vocab, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_gguf_writer_head(g, &b.head, &b.n, &whole, &err), WG_OK);
    wg_json_close(doc);
    free(text);
    return b;
}

/* Every fixture: what is written leads to the same keys, byte for byte, with and without rows that pad the embedding. */
Test(hf_write, every_pipeline_comes_back)
{
    static const char *const names[] = {
        "gpt2",           "llama3",      "qwen2",  "qwen35",    "smollm",    "tekken",    "o200k",       "deepseek-llm",
        "deepseek-coder", "deepseek-v3", "falcon", "mpt",       "nfd",       "flags",     "behaviors",   "prefix",
        "words",          "llama2",      "gemma",  "mistral",   "metaspace", "no-prefix", "unigram",     "unigram-bytes",
        "nfkc",           "nfkd",        "folded", "lowercase", "nmt",       "replaced",  "precompiled", "xlm-r"
    };
    const wg_hf_ids ids[] = { { -1, { -1, -1, -1 } }, { 7, { 9, 11, -1 } } };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int k = 0; k < 2; k++) {
            json_t *v = fixture(names[i]), *again;
            const bytes a = head_of(json_object_get(v, "tokenizer"), &ids[k], 600 + 20 * k);
            wg_weights *w;
            cr_assert_eq(wg_weights_open_memory(&w, "FILE", a.head, a.n, &err), WG_OK);
            cr_assert_eq(wg_hf_tokenizer_json(w, &again, &err), WG_OK, "%s: %s", names[i], err.text);
            const bytes b = head_of(again, &ids[k], 600 + 20 * k);
            cr_expect(a.n == b.n && memcmp(a.head, b.head, a.n) == 0, "%s: other keys", names[i]);
            wg_weights_close(w);
            wg_free(a.head), wg_free(b.head);
            json_decref(v), json_decref(again);
        }
}

/* A vocabulary of scores becomes merges: the ids of difficult texts stay. */
Test(hf_write, scores_become_merges)
{
    json_t *texts = fixture("texts"), *text, *v = fixture("sp-bpe"), *again;
    size_t i, n[2], size = 0;
    char path[320];
    const char *root = getenv("WG_ROOT");
    snprintf(path, sizeof path, "%.128s/tests/conformance/tokenizers/sp-bpe.model", root ? root : ".");
    char *model = file_read(path, &size);
    const wg_hf_ids none = { -1, { -1, -1, -1 } };
    wg_gguf_writer *g;
    wg_weights *w;
    wg_tokenizer *t[2];
    bytes b;
    size_t whole;
    cr_assert_eq(wg_gguf_writer_open(&g, NULL, &err), WG_OK);
    cr_assert_eq(wg_sentencepiece_tokenizer(g, path, (wg_text){ model, size }, NULL, &none, 600, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_gguf_writer_head(g, &b.head, &b.n, &whole, &err), WG_OK);
    cr_assert_eq(wg_weights_open_memory(&w, "FILE", b.head, b.n, &err), WG_OK);
    cr_assert_eq(wg_tokenizer_open(&t[0], w, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_hf_tokenizer_json(w, &again, &err), WG_OK, "%s", err.text);
    t[1] = tokenizer_of(again, &none, 600);
    json_array_foreach(texts, i, text) {
        int32_t *id[2];
        for (int k = 0; k < 2; k++)
            cr_assert_eq(
                wg_tokenizer_encode(t[k], json_string_value(text), json_string_length(text), true, true, &id[k], &n[k], &err),
                WG_OK);
        cr_expect(n[0] == n[1] && memcmp(id[0], id[1], n[0] * sizeof **id) == 0, "text %zu: %s", i, json_string_value(text));
        wg_free(id[0]), wg_free(id[1]);
    }
    wg_tokenizer_close(t[0]), wg_tokenizer_close(t[1]);
    wg_weights_close(w);
    wg_free(b.head);
    free(model);
    json_decref(texts), json_decref(v), json_decref(again);
}
