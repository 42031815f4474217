/* SPDX-License-Identifier: MIT
 * Vocabularies with gaps: ids beyond the embedding, bytes without a token; and the kind "gemma4" of GGUF files. */
#include "tests/temp.h"
#include "tests/unit/text/hf_fixture.h"

static wg_status open_text(const char *json, int vocab, const wg_hf_ids *ids)
{
    wg_json *doc;
    wg_gguf_writer *g;
    cr_assert_eq(wg_json_parse(&doc, "FILE", json, strlen(json), &err), WG_OK, "%s: %s", json, err.text);
    cr_assert_eq(wg_gguf_writer_open(&g, NULL, &err), WG_OK);
    const size_t live = wg_mem_read().live_blocks;
    const wg_status s = wg_hf_tokenizer(g, doc, ids, vocab, &err);
    if (s) cr_assert_eq(wg_mem_read().live_blocks, live);
    wg_gguf_writer_abort(g);
    wg_json_close(doc);
    return s;
}

#define SPACES "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}"
#define SPM_MODEL                                                                                                              \
    "\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"abab\":3},\"merges\":"

/* Tokens with ids beyond the embedding are known, so that a prompt which has one can be refused by its id. */
Test(hf_vocabulary, ids_beyond_the_embedding)
{
    static const char json[] = "{\"added_tokens\":[{\"id\":10,\"content\":\"<img>\",\"special\":true}],"
                               "\"decoder\":{\"type\":\"ByteLevel\"},"
                               "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
                               "\"model\":{\"type\":\"BPE\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,\"a\":1},\"merges\":[]}}";
    const wg_hf_ids none = { -1, { -1, -1, -1 } }, far = { -1, { 10, -1, -1 } };
    json_t *v = json_loads(json, 0, NULL);
    wg_tokenizer *t = tokenizer_of(v, &none, 8);
    int32_t *ids;
    size_t n;
    cr_assert_eq(wg_tokenizer_size(t), 11);
    cr_assert_eq(wg_tokenizer_encode(t, "a<img>a", 7, false, true, &ids, &n, &err), WG_OK);
    cr_assert(n == 3 && ids[0] == 1 && ids[1] == 10 && ids[2] == 1);
    wg_free(ids);
    wg_tokenizer_close(t);
    json_decref(v);
    cr_assert_eq(open_text(json, 8, &far), WG_EMODEL);
    cr_assert_str_eq(err.text, "FILE: the id of the last token is 10: expected one below 8, the rows of the embedding");
}

/* Falcon's published vocabulary has no token for 28 bytes, nor an unknown one: ids are those of the library `tokenizers`. */
Test(hf_vocabulary, bytes_without_a_token_are_dropped)
{
    static const char json[] = "{\"decoder\":{\"type\":\"ByteLevel\"},"
                               "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
                               "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\u00c3\":3},"
                               "\"merges\":[\"a b\"]}}";
    static const struct {
        const char *text;
        int n;
        int32_t id[3];
    } row[] = {
        { "ab", 1, { 2 } },
        { "a\xc3\xa9"
          "b",
          3,
          { 0, 3, 1 } },
        { "azb", 1, { 2 } },
        { "a b", 2, { 0, 1 } },
        { "zzz", 0, { 0 } },
        { "z zz a", 1, { 0 } },
    };
    const wg_hf_ids none = { -1, { -1, -1, -1 } };
    json_t *v = json_loads(json, 0, NULL);
    wg_tokenizer *t = tokenizer_of(v, &none, 4);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        int32_t *ids;
        size_t n;
        cr_assert_eq(wg_tokenizer_encode(t, row[i].text, strlen(row[i].text), false, false, &ids, &n, &err), WG_OK);
        cr_assert(n == (size_t)row[i].n && memcmp(ids, row[i].id, n * sizeof *ids) == 0, "%s: %zu", row[i].text, n);
        wg_free(ids);
    }
    wg_tokenizer_close(t);
    json_decref(v);
}

/* GGUF's kind "gemma4" is the pipeline of Gemma's tokenizer.json: spaces become U+2581, none is put in front, joins go by the
 * list of merges. A text begins with the first token although the file says add_bos_token false. */
Test(hf_vocabulary, gguf_of_gemma4)
{
    const wg_hf_ids none = { -1, { -1, -1, -1 } };
    json_t *v = fixture("gemma"), *texts = fixture("texts"), *text, *id;
    char *json = json_dumps(json_object_get(v, "tokenizer"), JSON_COMPACT);
    static const char *const kept[] = { "tokens", "token_type", "merges", "bos_token_id", "unknown_token_id" };
    static const float alike[600]; /* scores: not what joins go by */
    wg_json *doc;
    wg_gguf_writer *g, *as;
    wg_weights *from, *w;
    wg_tokenizer *t;
    void *head;
    size_t n, whole, i, k;
    int32_t *ids;
    cr_assert_eq(wg_json_parse(&doc, "FILE", json, strlen(json), &err), WG_OK);
    cr_assert_eq(wg_gguf_writer_open(&g, NULL, &err), WG_OK);
    cr_assert_eq(wg_hf_tokenizer(g, doc, &none, 600, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_gguf_writer_head(g, &head, &n, &whole, &err), WG_OK);
    cr_assert_eq(wg_weights_open_memory(&from, "FILE", head, n, &err), WG_OK);
    cr_assert_eq(wg_gguf_writer_open(&as, NULL, &err), WG_OK);
    wg_gguf_set_string(as, "tokenizer.ggml.model", "gemma4", 6);
    wg_gguf_set_bool(as, "tokenizer.ggml.add_bos_token", false);
    wg_gguf_set_f32s(as, "tokenizer.ggml.scores", alike, 600);
    for (int m = 0; m < wg_meta_count(from); m++)
        for (i = 0; i < sizeof kept / sizeof kept[0]; i++)
            if (strncmp(wg_meta_key(from, m), "tokenizer.ggml.", 15) == 0 && strcmp(wg_meta_key(from, m) + 15, kept[i]) == 0)
                wg_gguf_copy_meta(as, from, m);
    wg_weights_close(from);
    wg_free(head);
    cr_assert_eq(wg_gguf_writer_head(as, &head, &n, &whole, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_weights_open_memory(&w, "FILE", head, n, &err), WG_OK);
    cr_assert_eq(wg_tokenizer_open(&t, w, &err), WG_OK, "%s", err.text);
    cr_assert_str_eq(wg_tokenizer_kind(t), "llama");
    json_array_foreach(texts, i, text) {
        const json_t *want = json_array_get(json_object_get(v, "ids"), i);
        cr_assert_eq(wg_tokenizer_encode(t, json_string_value(text), json_string_length(text), true, true, &ids, &n, &err),
                     WG_OK);
        bool same = n == json_array_size(want);
        json_array_foreach((json_t *)(uintptr_t)want, k, id) same = same && ids[k] == (int32_t)json_integer_value(id);
        cr_expect(same, "text %zu: %s", i, json_string_value(text));
        wg_free(ids);
    }
    wg_tokenizer_close(t);
    wg_weights_close(w);
    wg_json_close(doc);
    wg_free(head);
    free(json);
    json_decref(v);
    json_decref(texts);
}

/* SPM-style vocabularies need a token for every byte, or an unknown token: there characters that are no tokens become bytes. */
Test(hf_vocabulary, spm_needs_all_bytes)
{
    static const char json[] = "{" SPACES "," SPM_MODEL "[[\"a\",\"b\"]]}}";
    const wg_hf_ids none = { -1, { -1, -1, -1 } };
    wg_json *doc;
    wg_gguf_writer *g;
    wg_weights *w;
    wg_tokenizer *t;
    void *head;
    size_t n, whole;
    cr_assert_eq(wg_json_parse(&doc, "FILE", json, sizeof json - 1, &err), WG_OK);
    cr_assert_eq(wg_gguf_writer_open(&g, NULL, &err), WG_OK);
    cr_assert_eq(wg_hf_tokenizer(g, doc, &none, 8, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_gguf_writer_head(g, &head, &n, &whole, &err), WG_OK);
    cr_assert_eq(wg_weights_open_memory(&w, "FILE", head, n, &err), WG_OK);
    cr_assert_eq(wg_tokenizer_open(&t, w, &err), WG_EMODEL);
    cr_assert_str_eq(
        err.text,
        "FILE: no token for byte 0x00 and no tokenizer.ggml.unknown_token_id; text with this byte could not be encoded");
    wg_weights_close(w);
    wg_json_close(doc);
    wg_free(head);
}

/* Opens a model of SentencePiece and what stands beside it, over an embedding of 600 rows. */
static wg_status open_beside(const wg_hf_added *added, const char *bytes, size_t n, wg_tokenizer **out)
{
    const wg_hf_ids none = { -1, { -1, -1, -1 } };
    void *head;
    size_t n_head, whole;
    wg_gguf_writer *g;
    wg_weights *w;
    cr_assert_eq(wg_gguf_writer_open(&g, NULL, &err), WG_OK);
    wg_status s = wg_sentencepiece_tokenizer(g, "FILE", (wg_text){ bytes, n }, added, &none, 600, &err);
    if (s) {
        wg_gguf_writer_abort(g);
        return s;
    }
    cr_assert_eq(wg_gguf_writer_head(g, &head, &n_head, &whole, &err), WG_OK);
    cr_assert_eq(wg_weights_open_memory(&w, "FILE", head, n_head, &err), WG_OK);
    s = wg_tokenizer_open(out, w, &err);
    wg_weights_close(w);
    wg_free(head);
    return s;
}

/* An eos_token beyond the embedding ends no text: it stays a token, which prompts are refused for, and the file's own one ends.
 * One that the tokenizer is to put behind texts is needed. */
Test(hf_vocabulary, an_end_beyond_the_embedding_is_dropped)
{
    wg_hf_token far = { .text = { "<far>", 5 }, .id = 600, .special = true };
    wg_hf_added added = { .token = &far, .n = 1, .eos = { "<far>", 5 }, .add_bos = -1, .add_eos = -1 };
    wg_tokenizer *t;
    int32_t *ids;
    size_t bytes, n;
    char path[320];
    const char *root = getenv("WG_ROOT");
    snprintf(path, sizeof path, "%.128s/tests/conformance/tokenizers/sp-bpe.model", root ? root : ".");
    char *file = file_read(path, &bytes);
    cr_assert(file, "%s", path);
    cr_assert_eq(open_beside(&added, file, bytes, &t), WG_OK, "%s", err.text);
    cr_assert_eq(wg_tokenizer_eos(t), 2);
    cr_assert_eq(wg_tokenizer_encode(t, "<far>", 5, false, true, &ids, &n, &err), WG_OK);
    cr_assert(n == 1 && ids[0] == 600, "%zu ids, %d", n, (int)ids[0]);
    wg_free(ids);
    wg_tokenizer_close(t);
    added.add_eos = 1;
    cr_assert_eq(open_beside(&added, file, bytes, &t), WG_EMODEL);
    cr_assert_str_eq(err.text, "FILE: the id of a special token is 600: expected one below 600, the rows of the embedding");
    free(file);
}
