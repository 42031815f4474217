/* SPDX-License-Identifier: MIT
 * tokenizer.json of every known pipeline (tests/conformance/tokenizers) against the ids of the library `tokenizers`. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>

#include "core/base/mem.h"
#include "core/file/hf.h"
#include "core/text/tokenizer.h"
#include "tests/temp.h"

static wg_error err;

/* The tokenizer of a folder here, over an embedding of `vocab` rows, by way of a GGUF file without tensors. */
static wg_tokenizer *tokenizer_of(const char *name, const wg_hf_ids *ids, int vocab)
{
    char path[320];
    const char *root = getenv("WG_ROOT");
    temp t;
    wg_json *doc;
    wg_gguf_writer *g;
    wg_weights *w;
    wg_tokenizer *k;
    temp_make(&t);
    snprintf(path, sizeof path, "%.128s/tests/conformance/tokenizers/%.32s/tokenizer.json", root ? root : ".", name);
    cr_assert_eq(wg_json_open(&doc, path, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_gguf_writer_open(&g, temp_at(&t, "t.gguf"), &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_hf_tokenizer(g, doc, ids, vocab, &err), WG_OK, "%s", err.text);
    wg_json_close(doc);
    cr_assert_eq(wg_gguf_writer_finish(g, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_weights_open(&w, temp_at(&t, "t.gguf"), &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_tokenizer_open(&k, w, &err), WG_OK, "%s", err.text);
    wg_weights_close(w);
    temp_remove(&t);
    return k;
}

static void agrees(const char *name)
{
    char path[320];
    const char *root = getenv("WG_ROOT");
    size_t i, k;
    json_t *v, *id;
    const wg_hf_ids none = { -1, { -1, -1, -1 } };
    snprintf(path, sizeof path, "%.128s/tests/conformance/tokenizers/%.32s/cases.json", root ? root : ".", name);
    json_t *cases = json_load_file(path, 0, NULL);
    cr_assert(cases, "%s", path);
    const int size = (int)json_integer_value(json_object_get(cases, "size"));
    wg_tokenizer *t = tokenizer_of(name, &none, size + 5);
    cr_assert_eq(wg_tokenizer_size(t), size + 5);
    cr_assert(json_array_size(json_object_get(cases, "cases")) >= 20);
    json_array_foreach(json_object_get(cases, "cases"), i, v) {
        const json_t *text = json_object_get(v, "text"), *want = json_object_get(v, "ids");
        int32_t *ids;
        size_t n;
        cr_assert_eq(wg_tokenizer_encode(t, json_string_value(text), json_string_length(text), true, true, &ids, &n, &err),
                     WG_OK);
        bool same = n == json_array_size(want);
        json_array_foreach((json_t *)(uintptr_t)want, k, id) same = same && ids[k] == (int32_t)json_integer_value(id);
        char *got = calloc(8, n + 1), *expected = json_dumps(want, JSON_COMPACT);
        for (size_t j = 0; j < n; j++) sprintf(got + strlen(got), "%d,", ids[j]);
        cr_expect(same, "%s, text %zu (%s): got %s expected %s", name, i, json_string_value(text), got, expected);
        free(got), free(expected);
        wg_free(ids);
    }
    wg_tokenizer_close(t);
    json_decref(cases);
}

Test(hf_tokenizer, gpt2) { agrees("gpt2"); }
Test(hf_tokenizer, llama3) { agrees("llama3"); }
Test(hf_tokenizer, qwen2) { agrees("qwen2"); }
Test(hf_tokenizer, smollm) { agrees("smollm"); }
Test(hf_tokenizer, spm) { agrees("spm"); }

Test(hf_tokenizer, special_tokens)
{
    const wg_hf_ids ids = { 7, { 600, 9, 601 } };
    wg_tokenizer *t = tokenizer_of("qwen2", &ids, 620);
    cr_assert(wg_tokenizer_bos(t) == 7 && !wg_tokenizer_add_bos(t) && wg_tokenizer_eos(t) == 600);
    cr_assert(wg_tokenizer_is_eog(t, 600) && wg_tokenizer_is_eog(t, 9) && wg_tokenizer_is_eog(t, 601));
    cr_assert(wg_tokenizer_is_control(t, 600) && !wg_tokenizer_is_control(t, 603) && !wg_tokenizer_is_eog(t, 603));
    cr_assert_str_eq(wg_tokenizer_kind(t), "gpt2");
    const wg_text padding = wg_tokenizer_piece(t, 610);
    cr_assert(padding.n == 8 && memcmp(padding.s, "[PAD610]", 8) == 0);
    wg_tokenizer_close(t);
    t = tokenizer_of("llama3", &ids, 604); /* the template's first token wins */
    cr_assert(wg_tokenizer_add_bos(t) && wg_tokenizer_bos(t) == 601);
    wg_tokenizer_close(t);
    t = tokenizer_of("spm", &ids, 700);
    cr_assert(wg_tokenizer_add_bos(t) && wg_tokenizer_bos(t) == 1 && wg_tokenizer_is_unknown(t, 0));
    cr_assert_str_eq(wg_tokenizer_kind(t), "llama");
    wg_tokenizer_close(t);
}

/* ---- what is refused */

#define BYTES "\"decoder\":{\"type\":\"ByteLevel\"},\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"
#define MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}"
#define SPACES "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}"
#define SPM_MODEL                                                                                                              \
    "\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"abab\":3},\"merges\":"
#define KNOWN                                                                                                                  \
    "; known are byte-level BPE with the patterns of gpt-2, llama-3, qwen2 and smollm, and SPM-style BPE with byte fallback"

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
        { "{\"model\":{\"type\":\"Unigram\"}}", "FILE: this model type is not implemented: \"Unigram\"" KNOWN },
        { "{\"model\":{\"type\":\"BPE\",\"dropout\":0.1}}", "FILE: dropout is not implemented: 0.1" KNOWN },
        { "{\"model\":{\"type\":\"BPE\",\"end_of_word_suffix\":\"</w>\"}}",
          "FILE: end_of_word_suffix is not implemented: \"</w>\"" KNOWN },
        { "{" MODEL ",\"normalizer\":{\"type\":\"NFKC\"}}",
          "FILE: this normalizer is not implemented: {\"type\":\"NFKC\"}" KNOWN },
        { "{" MODEL ",\"decoder\":{\"type\":\"WordPiece\"}}",
          "FILE: this decoder is not implemented: {\"type\":\"WordPiece\"}" KNOWN },
        { "{" MODEL ",\"decoder\":{\"type\":\"ByteLevel\"}}", "FILE: this pre_tokenizer is not implemented: none" KNOWN },
        { "{" MODEL
          ",\"decoder\":{\"type\":\"ByteLevel\"},\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true}}",
          "FILE: this pre_tokenizer is not implemented: {\"add_prefix_space\":true,\"type\":\"ByteLevel\"}" KNOWN },
        { "{" MODEL ",\"decoder\":{\"type\":\"ByteLevel\"},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{"
          "\"type\":\"Split\","
          "\"pattern\":{\"Regex\":\"\\\\d+\"},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\",\"add_prefix_"
          "space\":false,"
          "\"use_regex\":false}]}}",
          "FILE: this pre_tokenizer is not implemented: "
          "{\"pretokenizers\":[{\"behavior\":\"Isolated\",\"invert\":false,\"pattern\":{\"Regex\":"
          "\"\\\\d+\"},\"type\":\"Split\"},{\"add_prefix_space\":false,\"type\":\"ByteLevel\",\"use_regex\":false}],\"type\":"
          "\"Sequence\"}" KNOWN },
        { "{" MODEL "," BYTES ",\"post_processor\":{\"type\":\"BertProcessing\"}}",
          "FILE: this post_processor is not implemented: {\"type\":\"BertProcessing\"}" KNOWN },
        { "{" MODEL "," BYTES ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\"}},"
          "{\"SpecialToken\":{\"id\":\"b\"}}],\"special_tokens\":{\"b\":{\"ids\":[1]}}}}",
          "FILE: this post_processor is not implemented: "
          "[{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"b\"}}]" KNOWN },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\",\"vocab\":[],\"merges\":[]}}",
          "FILE: 'model.vocab': expected an object: token and id; download the file again" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":8},\"merges\":[]}}",
          "FILE: token 'a' has no id below 8, the rows of the embedding; do the files belong together?" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"\":1},\"merges\":[]}}",
          "FILE: token 1 is 0 bytes long: expected 1..4096" },
        { "{" BYTES ",\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1,\"b\":1},\"merges\":[]}}",
          "FILE: tokens 'a' and 'b' have the same id 1; download the file again" },
        { "{" MODEL "," BYTES ",\"added_tokens\":{}}", "FILE: 'added_tokens': expected a list; download the file again" },
        { "{" MODEL "," BYTES ",\"added_tokens\":[{\"id\":5}]}",
          "FILE: an added token without 'content': expected a text; download the file again" },
        { "{" MODEL "," BYTES ",\"added_tokens\":[{\"id\":5,\"content\":\"<m>\",\"lstrip\":true}]}",
          "FILE: lstrip is not implemented: {\"content\":\"<m>\",\"id\":5,\"lstrip\":true}" KNOWN },
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
        { "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\",\"split\":false,\"prepend_scheme\":"
          "\"first\"}," SPM_MODEL "[]}}",
          "FILE: this pre_tokenizer is not implemented: "
          "{\"prepend_scheme\":\"first\",\"replacement\":\"\xe2\x96\x81\",\"split\":false,\"type\":\"Metaspace\"}" KNOWN },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        cr_assert_neq(open_text(row[i].json, 8, &none), WG_OK, "%s", row[i].json);
        cr_expect_str_eq(err.text, row[i].text);
    }
    char longer[6000];
    snprintf(longer, sizeof longer,
             "{" SPACES
             ",\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"a\":0},\"merges\":[[\"%05000d\",\"a\"]]}}",
             0);
    cr_assert_eq(open_text(longer, 8, &none), WG_EMODEL);
    cr_assert_str_eq(err.text, "FILE: 'model.merges': expected shorter tokens; download the file again");
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
