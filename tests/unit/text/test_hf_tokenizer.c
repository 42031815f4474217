/* SPDX-License-Identifier: MIT
 * tokenizer.json of every known pipeline (tests/conformance/tokenizers) against the ids of the library `tokenizers`. */
#include <math.h>

#include "core/text/unicode.h"
#include "tests/temp.h"
#include "tests/unit/text/hf_fixture.h"
#include "tests/unit/text/tiny.h"

/* What the library decodes the ids of text i to. */
static const json_t *decoded(const json_t *v, size_t i, const json_t *text)
{
    size_t k;
    json_t *pair;
    json_array_foreach(json_object_get(v, "decoded"), k, pair)
        if ((size_t)json_integer_value(json_array_get(pair, 0)) == i) return json_array_get(pair, 1);
    return text;
}

/* A U+FFFD of the library stands for each byte that is no character; here the byte returns. */
static bool same_text(const char *got, size_t n, const json_t *want)
{
    const char *w = json_string_value(want);
    size_t at = 0, k = 0, step;
    for (uint32_t cp; at < n && k < json_string_length(want); at += step) {
        step = wg_utf8_decode(got + at, n - at, &cp);
        if (cp == WG_UTF8_BAD && memcmp(w + k, "\xef\xbf\xbd", 3) == 0) k += 3;
        else if (memcmp(got + at, w + k, step) == 0) k += step;
        else return false;
    }
    return at == n && k == json_string_length(want);
}

static void agrees(const char *name)
{
    size_t i, k, n, n_back;
    json_t *text, *id, *v = fixture(name), *texts = fixture("texts");
    const json_t *lists = json_object_get(v, "ids");
    const wg_hf_ids none = { -1, { -1, -1, -1 } };
    wg_tokenizer *t = tokenizer_of(json_object_get(v, "tokenizer"), &none, 600);
    int32_t *ids;
    char *back;
    cr_assert(json_array_size(texts) >= 80 && json_array_size(lists) == json_array_size(texts));
    json_array_foreach(texts, i, text) {
        const json_t *want = json_array_get(lists, i);
        const char *s = json_string_value(text);
        const size_t bytes = json_string_length(text);
        cr_assert_eq(wg_tokenizer_encode(t, s, bytes, true, true, &ids, &n, &err), WG_OK);
        bool same = n == json_array_size(want);
        json_array_foreach((json_t *)(uintptr_t)want, k, id) same = same && ids[k] == (int32_t)json_integer_value(id);
        char *got = calloc(8, n + 1), *expected = json_dumps(want, JSON_COMPACT);
        for (size_t j = 0; j < n; j++) sprintf(got + strlen(got), "%d,", ids[j]);
        cr_expect(same, "%s, text %zu (%s): got %s expected %s", name, i, s, got, expected);
        free(got), free(expected);
        wg_free(ids);
        cr_assert_eq(wg_tokenizer_encode(t, s, bytes, false, true, &ids, &n, &err), WG_OK);
        cr_assert_eq(wg_tokenizer_decode(t, ids, n, true, &back, &n_back, &err), WG_OK);
        cr_expect(same_text(back, n_back, decoded(v, i, text)), "%s, text %zu (%s): decodes to \"%s\", expected \"%s\"", name,
                  i, s, back, json_string_value(decoded(v, i, text)));
        wg_free(ids);
        wg_free(back);
    }
    wg_tokenizer_close(t);
    json_decref(v);
    json_decref(texts);
}

Test(hf_tokenizer, byte_level)
{
    static const char *const names[] = { "gpt2",  "llama3",       "qwen2",          "qwen35",      "smollm", "tekken",
                                         "o200k", "deepseek-llm", "deepseek-coder", "deepseek-v3", "falcon", "mpt",
                                         "nfd",   "flags",        "behaviors",      "prefix",      "words" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) agrees(names[i]);
}

Test(hf_tokenizer, normalisers)
{
    static const char *const names[] = { "nfkc", "nfkd", "folded", "lowercase", "nmt", "replaced", "precompiled", "xlm-r" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) agrees(names[i]);
}

Test(hf_tokenizer, in_characters)
{
    static const char *const names[] = { "llama2", "gemma", "mistral", "metaspace", "no-prefix" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) agrees(names[i]);
}

Test(hf_tokenizer, unigram)
{
    agrees("unigram");
    agrees("unigram-bytes");
}

/* Files of published pipelines get the name that other readers know; no name of ours hides what they would read otherwise. */
Test(hf_tokenizer, names_of_pre_tokenisers)
{
    static const char *const names[][2] = { { "gpt2", "gpt-2" },
                                            { "llama3", "llama-bpe" },
                                            { "qwen2", "qwen2" },
                                            { "qwen35", "qwen35" },
                                            { "smollm", "starcoder" },
                                            { "tekken", "tekken" },
                                            { "o200k", "gpt-4o" },
                                            { "deepseek-llm", "deepseek-llm" },
                                            { "deepseek-coder", "deepseek-coder" },
                                            { "deepseek-v3", "deepseek-v3" },
                                            { "falcon", "falcon" },
                                            { "mpt", "gpt-2" },
                                            { "behaviors", "wager" } };
    const wg_hf_ids none = { -1, { -1, -1, -1 } };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *v = fixture(names[i][0]);
        char *text = json_dumps(json_object_get(v, "tokenizer"), JSON_COMPACT);
        void *head;
        size_t n, whole;
        wg_json *doc;
        wg_gguf_writer *g;
        wg_weights *w;
        wg_text pre;
        cr_assert_eq(wg_json_parse(&doc, "FILE", text, strlen(text), &err), WG_OK);
        cr_assert_eq(wg_gguf_writer_open(&g, NULL, &err), WG_OK);
        cr_assert_eq(wg_hf_tokenizer(g, doc, &none, 600, &err), WG_OK);
        cr_assert_eq(wg_gguf_writer_head(g, &head, &n, &whole, &err), WG_OK);
        cr_assert_eq(wg_weights_open_memory(&w, "FILE", head, n, &err), WG_OK);
        cr_assert(wg_meta_string(w, "tokenizer.ggml.pre", &pre));
        cr_expect(pre.n == strlen(names[i][1]) && memcmp(pre.s, names[i][1], pre.n) == 0, "%s is %.*s", names[i][0], (int)pre.n,
                  pre.s);
        wg_weights_close(w);
        wg_json_close(doc);
        wg_free(head);
        free(text);
        json_decref(v);
    }
}

Test(hf_tokenizer, special_tokens)
{
    const wg_hf_ids ids = { 7, { 420, 9, 421 } };
    wg_tokenizer *t = named("qwen2", &ids, 620);
    cr_assert(wg_tokenizer_bos(t) == 7 && !wg_tokenizer_add_bos(t) && wg_tokenizer_eos(t) == 420);
    cr_assert(wg_tokenizer_is_eog(t, 420) && wg_tokenizer_is_eog(t, 9) && wg_tokenizer_is_eog(t, 421));
    cr_assert(wg_tokenizer_is_control(t, 420) && !wg_tokenizer_is_control(t, 422) && !wg_tokenizer_is_eog(t, 422));
    cr_assert_str_eq(wg_tokenizer_kind(t), "gpt2");
    const wg_text padding = wg_tokenizer_piece(t, 610);
    cr_assert(padding.n == 8 && memcmp(padding.s, "[PAD610]", 8) == 0);
    wg_tokenizer_close(t);
    t = named("llama3", &ids, 604); /* the template's first token wins */
    cr_assert(wg_tokenizer_add_bos(t) && wg_tokenizer_bos(t) == 420);
    wg_tokenizer_close(t);
    t = named("llama2", &ids, 700);
    cr_assert(wg_tokenizer_add_bos(t) && wg_tokenizer_bos(t) == 1 && wg_tokenizer_is_unknown(t, 0));
    cr_assert_str_eq(wg_tokenizer_kind(t), "llama");
    wg_tokenizer_close(t);
    t = named("unigram", &ids, 700);
    cr_assert_str_eq(wg_tokenizer_kind(t), "t5");
    wg_tokenizer_close(t);
}

/* A text can be cut also where a normaliser stands before the words: what is before a cut keeps its ids whatever follows. */
static int cuts_of(const wg_tokenizer *t, uint64_t seed)
{
    static const char *const parts[] = { " ",
                                         " a",
                                         "e",
                                         "\xcc\x81",
                                         "\xcc\xa3",
                                         "\xe1\x84\x80",
                                         "\xe1\x85\xa1",
                                         "\xe1\x86\xa8",
                                         "\xea\xb0\x80",
                                         "\xc3\xa9",
                                         "x",
                                         "1",
                                         "\xe6\x88\x91",
                                         "\xe2\x84\xa6",
                                         " the",
                                         "!",
                                         "\xcc",
                                         "\xe0\xad\x87",
                                         "\xe0\xac\xbe" };
    char text[200];
    size_t n = 0, n_whole, n_front, n_back;
    int32_t *whole, *front, *back;
    while (n < 180) {
        const char *part = parts[tiny_random(&seed) % (sizeof parts / sizeof *parts)];
        for (uint32_t k = tiny_random(&seed) % 3; k < 3; k++) memcpy(text + n, part, strlen(part)), n += strlen(part);
    }
    int cuts = 0;
    for (size_t shown = 1; shown < n; shown++) { /* a cut is found in what is shown, and must hold for all of it */
        const size_t cut = wg_tokenizer_cut(t, text, shown);
        if (cut == 0) continue;
        cuts++;
        cr_assert(cut < shown);
        cr_assert_eq(wg_tokenizer_encode(t, text, n, false, false, &whole, &n_whole, &err), WG_OK);
        cr_assert_eq(wg_tokenizer_encode(t, text, cut, false, false, &front, &n_front, &err), WG_OK);
        cr_assert_eq(wg_tokenizer_encode(t, text + cut, n - cut, false, false, &back, &n_back, &err), WG_OK);
        const bool same = n_front + n_back == n_whole && memcmp(whole, front, n_front * sizeof *whole) == 0 &&
                          memcmp(whole + n_front, back, n_back * sizeof *whole) == 0;
        cr_assert(same, "cut at %zu of %zu bytes, %zu shown: %.*s", cut, n, shown, (int)n, text);
        wg_free(whole), wg_free(front), wg_free(back);
    }
    return cuts;
}

Test(hf_tokenizer, cuts)
{
    static const char *const names[] = { "qwen2", "mpt", "nfd", "deepseek-v3" };
    const wg_hf_ids none = { -1, { -1, -1, -1 } };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int cuts = 0;
        wg_tokenizer *t = named(names[i], &none, 600);
        for (uint64_t seed = 1; seed <= 15; seed++) cuts += cuts_of(t, seed * 31);
        cr_assert_gt(cuts, 40, "%s: %d", names[i], cuts);
        wg_tokenizer_close(t);
    }
}

/* ---- tokenizer.model */

/* Opens a model of SentencePiece over an embedding of `vocab` rows. */
static wg_status open_model(const char *bytes, size_t n, int vocab, wg_tokenizer **out)
{
    const wg_hf_ids none = { -1, { -1, -1, -1 } };
    void *head;
    size_t n_head, whole;
    wg_gguf_writer *g;
    wg_weights *w;
    cr_assert_eq(wg_gguf_writer_open(&g, NULL, &err), WG_OK);
    wg_status s = wg_sentencepiece_tokenizer(g, "FILE", (wg_text){ bytes, n }, NULL, &none, vocab, &err);
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

static char *model_bytes(const char *name, size_t *n)
{
    char path[320];
    const char *root = getenv("WG_ROOT");
    snprintf(path, sizeof path, "%.128s/tests/conformance/tokenizers/%.32s.model", root ? root : ".", name);
    char *bytes = file_read(path, n);
    cr_assert(bytes, "%s", path);
    return bytes;
}

Test(sentencepiece, agrees)
{
    static const char *const names[] = { "sp-bpe", "sp-unigram", "sp-unigram-bytes" };
    json_t *texts = fixture("texts"), *text, *id;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        size_t i, j, n, bytes;
        json_t *v = fixture(names[k]);
        char *file = model_bytes(names[k], &bytes);
        wg_tokenizer *t;
        int32_t *ids;
        cr_assert_eq(open_model(file, bytes, 600, &t), WG_OK, "%s", err.text);
        json_array_foreach(texts, i, text) {
            const json_t *want = json_array_get(json_object_get(v, "ids"), i);
            cr_assert_eq(
                wg_tokenizer_encode(t, json_string_value(text), json_string_length(text), false, false, &ids, &n, &err), WG_OK);
            bool same = n == json_array_size(want);
            json_array_foreach((json_t *)(uintptr_t)want, j, id) same = same && ids[j] == (int32_t)json_integer_value(id);
            char *got = calloc(8, n + 1), *expected = json_dumps(want, JSON_COMPACT);
            for (j = 0; j < n; j++) sprintf(got + strlen(got), "%d,", ids[j]);
            cr_expect(same, "%s, text %zu (%s): got %s expected %s", names[k], i, json_string_value(text), got, expected);
            free(got), free(expected);
            wg_free(ids);
        }
        wg_tokenizer_close(t);
        free(file);
        json_decref(v);
    }
    json_decref(texts);
}

/* Models of SentencePiece, byte by byte: a piece is 0A length 0A length text 15 score 18 type. */
Test(sentencepiece, refusals)
{
#define PIECE                                                                                                                  \
    "\x0a\x03\x0a\x01"                                                                                                         \
    "a"
    static const struct {
        const char *bytes;
        size_t n;
        const char *text;
    } row[] = {
        { "", 0, "FILE: byte 0: expected a field of a SentencePiece model; download the file again" },
        { "\x0a\x7f", 2, "FILE: byte 2: expected a field of a SentencePiece model; download the file again" },
        { "\x0a\x02\x0a\x05", 4, "FILE: byte 4: expected a field of a SentencePiece model; download the file again" },
        { PIECE "\x12\x01\x18", 8, "FILE: byte 8: expected a field of a SentencePiece model; download the file again" },
        { PIECE "\x1a\x01\x18", 8, "FILE: byte 8: expected a field of a SentencePiece model; download the file again" },
        { PIECE "\x0b", 6, "FILE: byte 6: expected a field of a SentencePiece model; download the file again" },
        { "\x0a\x02\x18\x01", 4, "FILE: token 0 is empty, or its type is none of 1..6; download the file again" },
        { "\x0a\x05\x0a\x01"
          "a\x18\x07",
          7, "FILE: token 0 is empty, or its type is none of 1..6; download the file again" },
        { PIECE "\x12\x02\x18\x03", 9,
          "FILE: a SentencePiece model of words or characters is not implemented; there are Unigram and BPE, with spaces as "
          "U+2581 in front of words" },
        { PIECE "\x1a\x02\x28\x00", 9,
          "FILE: white space behind words, or kept as it is, is not implemented; there are Unigram and BPE, with spaces as "
          "U+2581 in front of words" },
        { PIECE "\x12\x03\xc8\x02\x04", 10,
          "FILE: the id of a special token is 4: expected one below 4, the rows of the embedding" },
        { PIECE "\x1a\x06\x12\x04"
                "abcd",
          13, "FILE: the map of characters of the normaliser is broken; convert the model again" },
    };
    wg_tokenizer *t;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        cr_expect_neq(open_model(row[i].bytes, row[i].n, 4, &t), WG_OK, "%zu", i);
        cr_expect_str_eq(err.text, row[i].text);
        cr_assert_eq(wg_mem_read().live_blocks, 0);
    }
    char many[(4 + WG_HF_BEYOND + 1) * 5];
    for (size_t i = 0; i < sizeof many; i += 5) memcpy(many + i, PIECE, 5);
    cr_assert_neq(open_model(many, sizeof many, 4, &t), WG_OK);
    cr_assert_str_eq(err.text, "FILE: there are more tokens than the 4 rows of the embedding; do the files belong together?");
}

/* ---- what is refused */

#define BYTES "\"decoder\":{\"type\":\"ByteLevel\"},\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"
#define MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}"
#define SPACES "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}"
#define SPM_MODEL                                                                                                              \
    "\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"abab\":3},\"merges\":"
#define PRE(steps)                                                                                                             \
    "{" MODEL ",\"decoder\":{\"type\":\"ByteLevel\"},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" steps "]}}"
#define KNOWN "; docs/models.md lists the steps of a tokenizer.json that are"

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

Test(hf_tokenizer, refusals)
{
    const wg_hf_ids none = { -1, { -1, -1, -1 } };
    static const struct {
        const char *json, *text;
    } row[] = {
        { "{}", "FILE: this model type is not implemented: none" KNOWN },
        { "{\"model\":{\"type\":\"WordPiece\"}}", "FILE: this model type is not implemented: \"WordPiece\"" KNOWN },
        { "{" SPACES ",\"model\":{\"type\":\"Unigram\",\"vocab\":{}}}",
          "FILE: 'model.vocab': expected a list of tokens and scores; download the file again" },
        { "{" SPACES ",\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",\"b\"]]}}",
          "FILE: 'model.vocab': expected a list of tokens and scores; download the file again" },
        { "{" SPACES ",\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0.5]],\"unk_id\":1}}",
          "FILE: 'model.unk_id': expected the id of a token; download the file again" },
        { "{" BYTES ",\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}",
          "FILE: Unigram over bytes is not implemented: {\"add_prefix_space\":false,\"type\":\"ByteLevel\"}" KNOWN },
        { "{\"model\":{\"type\":\"BPE\",\"dropout\":0.1}}", "FILE: dropout is not implemented: 0.1" KNOWN },
        { "{\"model\":{\"type\":\"BPE\",\"end_of_word_suffix\":\"</w>\"}}",
          "FILE: end_of_word_suffix is not implemented: \"</w>\"" KNOWN },
        { "{" MODEL ",\"normalizer\":{\"type\":\"BertNormalizer\"}}",
          "FILE: this normalizer is not implemented: {\"type\":\"BertNormalizer\"}" KNOWN },
        { "{" MODEL ",\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"BAA\"}}",
          "FILE: this normalizer is not implemented: {\"precompiled_charsmap\":\"BAA\",\"type\":\"Precompiled\"}" KNOWN },
        { "{" MODEL
          ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Precompiled\",\"precompiled_charsmap\":"
          "\"BAAA\"},{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"\"}]}}",
          "FILE: this normalizer is not implemented: {\"precompiled_charsmap\":\"\",\"type\":\"Precompiled\"}" KNOWN },
        { "{" MODEL ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"\"},\"content\":\"\"}}",
          "FILE: this normalizer is not implemented: "
          "{\"content\":\"\",\"pattern\":{\"Regex\":\"\"},\"type\":\"Replace\"}" KNOWN },
        { "{" MODEL
          ",\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},\"decoder\":{\"type\":\"WordPiece\"}}",
          "FILE: this decoder is not implemented: {\"type\":\"WordPiece\"}" KNOWN },
        { "{" MODEL ",\"decoder\":{\"type\":\"ByteLevel\"}}", "FILE: this pre_tokenizer is not implemented: none" KNOWN },
        { PRE("{\"type\":\"UnicodeScripts\"},{\"type\":\"ByteLevel\"}"),
          "FILE: this pre_tokenizer is not implemented: {\"type\":\"UnicodeScripts\"}" KNOWN },
        { PRE("{\"type\":\"Digits\"},{\"type\":\"ByteLevel\"}"),
          "FILE: this pre_tokenizer is not implemented: {\"type\":\"ByteLevel\"}" KNOWN },
        { PRE("{\"type\":\"Split\",\"behavior\":\"Other\",\"pattern\":{\"Regex\":\"a\"}},{\"type\":\"ByteLevel\"}"),
          "FILE: this pre_tokenizer is not implemented: "
          "{\"behavior\":\"Other\",\"pattern\":{\"Regex\":\"a\"},\"type\":\"Split\"}" KNOWN },
        { "{" SPACES ",\"decoder\":{\"type\":\"CTC\"}," SPM_MODEL "[]}}",
          "FILE: this decoder is not implemented: {\"type\":\"CTC\"}" KNOWN },
        { "{" SPACES ",\"decoder\":{\"type\":\"Metaspace\"}," SPM_MODEL "[]}}",
          "FILE: a decoder that does not take off the space put before a text, or takes off another, is not implemented: "
          "{\"type\":\"Metaspace\"}" KNOWN },
        { "{" SPACES ",\"model\":{\"type\":\"BPE\",\"ignore_merges\":true,\"vocab\":{},\"merges\":[]}}",
          "FILE: ignore_merges of characters is not implemented: true" KNOWN },
        { "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\xe2\x96\x81\"},{"
          "\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},"
          "\"content\":\"\xe2\x96\x81\"}]},\"added_tokens\":[{\"id\":5,\"content\":\"<m>\",\"normalized\":true}]," SPM_MODEL
          "[]}}",
          "FILE: normalized is not implemented: {\"content\":\"<m>\",\"id\":5,\"normalized\":true}" KNOWN },
        { "{" MODEL "," BYTES ",\"post_processor\":{\"type\":\"BertProcessing\"}}",
          "FILE: this post_processor is not implemented: {\"type\":\"BertProcessing\"}" KNOWN },
        { "{" MODEL "," BYTES ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\"}},"
          "{\"SpecialToken\":{\"id\":\"b\"}}],\"special_tokens\":{}}}",
          "FILE: this post_processor is not implemented: "
          "[{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"b\"}}]" KNOWN },
        { "{" MODEL "," BYTES ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\"}},"
          "{\"SpecialToken\":{\"id\":\"b\"}}],\"special_tokens\":{\"b\":{\"ids\":[9]}}}}",
          "FILE: the id of the last token is 9: expected one below 8, the rows of the embedding" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\",\"vocab\":[],\"merges\":[]}}",
          "FILE: 'model.vocab': expected an object: token and id; download the file again" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1032},\"merges\":[]}}",
          "FILE: token 'a' has no id below 8, the rows of the embedding; do the files belong together?" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"\":1},\"merges\":[]}}",
          "FILE: token 1 is empty: expected at least one byte; download the file again" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1,\"b\":1},\"merges\":[]}}",
          "FILE: tokens 'a' and 'b' have the same id 1; download the file again" },
        { "{" MODEL "," BYTES ",\"added_tokens\":{}}", "FILE: 'added_tokens': expected a list; download the file again" },
        { "{" MODEL "," BYTES ",\"added_tokens\":[{\"id\":5}]}",
          "FILE: an added token without 'content': expected a text; download the file again" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":{}}}",
          "FILE: 'model.merges': expected a list of pairs of tokens; download the file again" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[\"ab\"]}}",
          "FILE: 'model.merges': expected pairs of tokens without spaces; download the file again" },
        { "{" SPACES "," SPM_MODEL "[[\"a\"]]}}", "FILE: 'model.merges': expected pairs of tokens; download the file again" },
        { "{" SPACES "," SPM_MODEL "[[\"b\",\"a\"]]}}",
          "FILE: 'model.merges': expected pairs that make a token; download the file again" },
        { "{" SPM_MODEL "[]}}", "FILE: this normalizer is not implemented: none" KNOWN },
        { "{" SPACES ",\"pre_tokenizer\":{\"type\":\"Metaspace\"}," SPM_MODEL "[]}}",
          "FILE: this pre_tokenizer is not implemented: {\"type\":\"Metaspace\"}" KNOWN },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        cr_assert_neq(open_text(row[i].json, 8, &none), WG_OK, "%s", row[i].json);
        cr_expect_str_eq(err.text, row[i].text);
    }
    cr_assert_eq(open_text("{" MODEL "," BYTES "}", 8, &none), WG_OK, "%s", err.text);
    cr_assert_eq(open_text("{" SPACES "," SPM_MODEL "[[\"a\",\"b\"]]}}", 8, &none), WG_OK, "%s", err.text);
    const wg_hf_ids far = { -1, { 8, -1, -1 } };
    cr_assert_eq(open_text("{" MODEL "," BYTES "}", 8, &far), WG_EMODEL);
    cr_assert_str_eq(err.text, "FILE: the id of the last token is 8: expected one below 8, the rows of the embedding");
}

/* Allocations by what is read: each may fail, and nothing leaks. */
Test(hf_tokenizer, any_allocation_may_fail)
{
    const wg_hf_ids none = { -1, { -1, -1, -1 } };
    for (uint64_t nth = 1;; nth++) {
        wg_json *doc;
        wg_gguf_writer *g;
        const char *json = "{" MODEL "," BYTES "}";
        cr_assert_eq(wg_json_parse(&doc, "FILE", json, strlen(json), &err), WG_OK);
        cr_assert_eq(wg_gguf_writer_open(&g, NULL, &err), WG_OK);
        wg_mem_fail_at(nth, false);
        wg_status s = wg_hf_tokenizer(g, doc, &none, 8, &err);
        void *head = NULL;
        size_t n, whole;
        if (s) wg_gguf_writer_abort(g);
        else s = wg_gguf_writer_head(g, &head, &n, &whole, &err);
        wg_mem_fail_at(0, false);
        wg_json_close(doc);
        if (s == WG_OK) {
            wg_free(head);
            break;
        }
        cr_assert(s == WG_ENOMEM && nth < 40, "%s", err.text);
    }
    cr_assert_eq(wg_mem_read().live_blocks, 0);
}

/* ---- keys of ours that a file may have wrong */

enum { WORDS = 4 };

static wg_status open_with(const char *model, const char *key, const char *const *words, const int32_t *numbers, size_t n)
{
    static const wg_text tokens[] = { { "a", 1 }, { "b", 1 }, { "ab", 2 }, { "<u>", 3 } };
    static const int32_t types[] = { 1, 1, 1, 2 };
    static const float scores[] = { 0, 0, 0, 0 };
    static const double nan_scores[] = { 0, 0, INFINITY, 0 };
    wg_text list[WORDS];
    void *head;
    size_t bytes, whole;
    wg_gguf_writer *g;
    wg_weights *w;
    wg_tokenizer *t;
    cr_assert_eq(wg_gguf_writer_open(&g, NULL, &err), WG_OK);
    wg_gguf_set_string(g, "tokenizer.ggml.model", model, strlen(model));
    wg_gguf_set_strings(g, "tokenizer.ggml.tokens", tokens, 4);
    wg_gguf_set_i32s(g, "tokenizer.ggml.token_type", types, 4);
    wg_gguf_set_f32s(g, "tokenizer.ggml.scores", scores, 4);
    if (strcmp(key, "tokenizer.ggml.unknown_token_id") != 0) wg_gguf_set_u32(g, "tokenizer.ggml.unknown_token_id", 3);
    for (size_t i = 0; words && i < n; i++) list[i] = (wg_text){ words[i], strlen(words[i]) };
    if (words && n == 1 && strstr(key, "metaspace")) wg_gguf_set_string(g, key, words[0], strlen(words[0]));
    else if (words) wg_gguf_set_strings(g, key, list, n);
    else if (numbers) wg_gguf_set_i32s(g, key, numbers, n);
    else if (strstr(key, "scores")) wg_gguf_set_f64s(g, key, nan_scores, n);
    else if (!strstr(key, "unknown")) wg_gguf_set_bool(g, key, true);
    cr_assert_eq(wg_gguf_writer_head(g, &head, &bytes, &whole, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_weights_open_memory(&w, "FILE", head, bytes, &err), WG_OK);
    const wg_status s = wg_tokenizer_open(&t, w, &err);
    if (s == WG_OK) wg_tokenizer_close(t);
    wg_weights_close(w);
    wg_free(head);
    cr_assert_eq(wg_mem_read().live_blocks, 0);
    return s;
}

Test(hf_tokenizer, wrong_keys)
{
    static const int32_t far[] = { 0, 4 }, many[9] = { 0 };
    static const char *const sort[] = { "sort" }, *const replace[] = { "replace", "", "a" }, *const last[] = { "last" },
                             *const behind[] = { "replace_regex", "a(?=b)", "" },
                             *const nothing[] = { "replace_regex", "a*", "" }, *const map[] = { "precompiled", "abcdefgh" };
    static const struct {
        const char *model, *key;
        const char *const *words;
        const int32_t *numbers;
        size_t n;
        wg_status s;
        const char *text;
    } row[] = {
        { "llama", "tokenizer.wager.normalizer", sort, NULL, 1, WG_EMODEL,
          "FILE: tokenizer.wager.normalizer[0] is \"sort\": expected at most 16 steps (nfc, nfd, nfkc, nfkd, lowercase, "
          "strip_accents, nmt, "
          "replace, replace_regex, prepend, strip, charsmap, precompiled, squeeze) with their words; convert the model again" },
        { "llama", "tokenizer.wager.normalizer", replace, NULL, 3, WG_EMODEL,
          "FILE: tokenizer.wager.normalizer[0] is \"replace\": expected at most 16 steps (nfc, nfd, nfkc, nfkd, lowercase, "
          "strip_accents, nmt, "
          "replace, replace_regex, prepend, strip, charsmap, precompiled, squeeze) with their words; convert the model again" },
        { "llama", "tokenizer.wager.normalizer", behind, NULL, 3, WG_EUNSUPPORTED,
          "FILE: tokenizer.wager.normalizer: the expression \"a(?=b)\" has at byte 3 this kind of group, which is not "
          "implemented" },
        { "llama", "tokenizer.wager.normalizer", nothing, NULL, 3, WG_EUNSUPPORTED,
          "FILE: tokenizer.wager.normalizer: the expression \"a*\" has at byte 2 a match of no characters, which is not "
          "implemented" },
        { "llama", "tokenizer.wager.normalizer", map, NULL, 2, WG_EMODEL,
          "FILE: the map of characters of the normaliser is broken; convert the model again" },
        { "llama", "tokenizer.wager.metaspace", last, NULL, 1, WG_EMODEL,
          "FILE: tokenizer.wager.metaspace is \"last\", expected \"first\" or \"always\"; convert the model again" },
        { "llama", "tokenizer.wager.after", NULL, far, 2, WG_EMODEL,
          "FILE: tokenizer.wager.after[1] is 4, expected the id of a token, 0..3; correct the key" },
        { "llama", "tokenizer.wager.before", NULL, many, 9, WG_EUNSUPPORTED,
          "FILE: tokenizer.wager.before has 9 tokens, at most 8 are implemented" },
        { "llama", "tokenizer.wager.added", NULL, far, 2, WG_EMODEL,
          "FILE: tokenizer.wager.added has 2 entries, expected 4, one for each token; convert the model again" },
        { "llama", "tokenizer.ggml.add_eos_token", NULL, NULL, 0, WG_EMODEL,
          "FILE: tokenizer.ggml.add_eos_token is true, but tokenizer.ggml.eos_token_id is missing; add the id or clear the "
          "flag" },
        { "llama", "tokenizer.wager.pair_merges", NULL, NULL, 0, WG_EMODEL,
          "FILE: tokenizer.ggml.merges is missing, expected an array of strings; convert the model again, with its tokenizer" },
        { "t5", "tokenizer.wager.scores", NULL, NULL, 3, WG_EMODEL,
          "FILE: tokenizer.wager.scores has 3 entries, expected 4, one for each token; convert the model again" },
        { "t5", "tokenizer.wager.scores", NULL, NULL, 4, WG_EMODEL,
          "FILE: tokenizer.wager.scores[2] is not a finite number; convert the model again" },
        { "t5", "tokenizer.ggml.unknown_token_id", NULL, NULL, 0, WG_EMODEL,
          "FILE: tokenizer.ggml.unknown_token_id is missing, which every Unigram model needs; convert the model again" },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        cr_expect_eq(open_with(row[i].model, row[i].key, row[i].words, row[i].numbers, row[i].n), row[i].s, "%zu: %s", i,
                     err.text);
        cr_expect_str_eq(err.text, row[i].text);
    }
}

/* An added token that is found in normalised text, in which it cannot occur. */
Test(hf_tokenizer, added_token_without_a_normal_form)
{
    const wg_hf_ids none = { -1, { -1, -1, -1 } };
    const char *json =
        "{" MODEL "," BYTES
        ",\"normalizer\":{\"type\":\"NFC\"},\"added_tokens\":[{\"id\":5,\"content\":\"e\xcc\x81\",\"normalized\":true}]}";
    wg_json *doc;
    wg_gguf_writer *g;
    wg_weights *w;
    wg_tokenizer *t;
    void *head;
    size_t n, whole;
    cr_assert_eq(wg_json_parse(&doc, "FILE", json, strlen(json), &err), WG_OK);
    cr_assert_eq(wg_gguf_writer_open(&g, NULL, &err), WG_OK);
    cr_assert_eq(wg_hf_tokenizer(g, doc, &none, 8, &err), WG_OK, "%s", err.text);
    wg_gguf_set_u32(g, "tokenizer.ggml.unknown_token_id", 0);
    cr_assert_eq(wg_gguf_writer_head(g, &head, &n, &whole, &err), WG_OK);
    cr_assert_eq(wg_weights_open_memory(&w, "FILE", head, n, &err), WG_OK);
    cr_assert_eq(wg_tokenizer_open(&t, w, &err), WG_EUNSUPPORTED);
    cr_assert_str_eq(err.text, "FILE: the added token \"e\xcc\x81\" is to be found in normalised text, but is not normalised "
                               "itself, which is not implemented");
    wg_weights_close(w);
    wg_json_close(doc);
    wg_free(head);
    cr_assert_eq(wg_mem_read().live_blocks, 0);
}
