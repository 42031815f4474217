/* SPDX-License-Identifier: MIT
 * Opening: every key damaged in every way, with the exact message; then flags, pair check, and failing allocations. */
#include <criterion/criterion.h>

#include "tests/unit/text/tiny.h"

static tiny file;

static wg_tokenizer *opened(int kind, tiny variant)
{
    wg_tokenizer *t = NULL;
    wg_error err = { 0 };
    file = variant;
    (kind ? tiny_bpe : tiny_spm)(&file);
    cr_assert_eq(tiny_open(&file, &t, &err), WG_OK, "%s", err.text);
    return t;
}

#define AGAIN "; convert the model again, with its tokenizer"

#define X8 "xxxxxxxx"
#define X64 X8 X8 X8 X8 X8 X8 X8 X8

Test(tokenizer, spoiled_files)
{
    static const struct {
        int kind;
        tiny how;
        wg_status status;
        const char *text;
    } cases[] = {
        { 0, { .skip = "model" }, WG_EMODEL, "tokenizer.ggml.model is missing, expected a string" AGAIN },
        { 0, { .skip = "tokens" }, WG_EMODEL, "tokenizer.ggml.tokens is missing, expected an array of strings" AGAIN },
        { 0, { .skip = "scores" }, WG_EMODEL, "tokenizer.ggml.scores is missing, expected an array of floats" AGAIN },
        { 0, { .skip = "token_type" }, WG_EMODEL, "tokenizer.ggml.token_type is missing, expected an array of integers" AGAIN },
        { 0,
          { .skip = "bos_token_id" },
          WG_EMODEL,
          "tokenizer.ggml.add_bos_token is true, but tokenizer.ggml.bos_token_id is missing; add the id or clear the flag" },
        { 0, { .skip = "eos_token_id" }, WG_OK, NULL },
        { 0, { .skip = "add_bos_token" }, WG_OK, NULL },
        { 0, { .skip = "unknown_token_id" }, WG_OK, NULL },
        { 1, { .skip = "pre" }, WG_EMODEL, "tokenizer.ggml.pre is missing, expected a string" AGAIN },
        { 1, { .skip = "merges" }, WG_EMODEL, "tokenizer.ggml.merges is missing, expected an array of strings" AGAIN },
        { 1, { .skip = "token_type" }, WG_OK, NULL },

        { 0, { .retype = "model" }, WG_EMODEL, "tokenizer.ggml.model is an integer, expected a string" AGAIN },
        { 0, { .retype = "tokens" }, WG_EMODEL, "tokenizer.ggml.tokens is a string, expected an array of strings" AGAIN },
        { 0, { .retype = "scores" }, WG_EMODEL, "tokenizer.ggml.scores is a string, expected an array of floats" AGAIN },
        { 0,
          { .retype = "token_type" },
          WG_EMODEL,
          "tokenizer.ggml.token_type is a string, expected an array of integers" AGAIN },
        { 0, { .retype = "bos_token_id" }, WG_EMODEL, "tokenizer.ggml.bos_token_id is a string, expected an integer" AGAIN },
        { 0, { .retype = "eos_token_id" }, WG_EMODEL, "tokenizer.ggml.eos_token_id is a string, expected an integer" AGAIN },
        { 0,
          { .retype = "unknown_token_id" },
          WG_EMODEL,
          "tokenizer.ggml.unknown_token_id is a string, expected an integer" AGAIN },
        { 0, { .retype = "add_bos_token" }, WG_EMODEL, "tokenizer.ggml.add_bos_token is a string, expected a bool" AGAIN },
        { 0,
          { .with_prefix_key = true, .retype = "add_space_prefix" },
          WG_EMODEL,
          "tokenizer.ggml.add_space_prefix is a string, expected a bool" AGAIN },
        { 1, { .retype = "pre" }, WG_EMODEL, "tokenizer.ggml.pre is an integer, expected a string" AGAIN },
        { 1, { .retype = "merges" }, WG_EMODEL, "tokenizer.ggml.merges is a string, expected an array of strings" AGAIN },
        { 1,
          { .retype = "token_type" },
          WG_EMODEL,
          "tokenizer.ggml.token_type is a string, expected an array of integers" AGAIN },

        { 0,
          { .shorten = "tokens" },
          WG_EMODEL,
          "tokenizer.ggml.token_type has 290 entries, expected 289, one for each token; convert the model again" },
        { 0,
          { .shorten = "scores" },
          WG_EMODEL,
          "tokenizer.ggml.scores has 289 entries, expected 290, one for each token; convert the model again" },
        { 0,
          { .shorten = "token_type" },
          WG_EMODEL,
          "tokenizer.ggml.token_type has 289 entries, expected 290, one for each token; convert the model again" },
        { 1,
          { .shorten = "token_type" },
          WG_EMODEL,
          "tokenizer.ggml.token_type has 276 entries, expected 277, one for each token; convert the model again" },
        { 1, { .shorten = "merges" }, WG_OK, NULL },

        { 0,
          { .eos = 290 },
          WG_EMODEL,
          "tokenizer.ggml.eos_token_id is 290, expected the id of a token, 0..289; correct the key" },
        { 0,
          { .eos = 0xffffffff },
          WG_EMODEL,
          "tokenizer.ggml.eos_token_id is 4294967295, expected the id of a token, 0..289; correct the key" },
        { 0,
          { .bad_type_at = 5 },
          WG_EMODEL,
          "tokenizer.ggml.token_type[5] is 9, expected 1..6 (normal, unknown, control, user-defined, unused, byte)" },
        { 0, { .huge_types = true }, WG_EMODEL, "token 0 cannot be read; convert the model again" },
        { 0, { .no_score_at = 7 }, WG_EMODEL, "tokenizer.ggml.scores[7] is not a number; convert the model again" },
        { 0,
          { .drop_byte = 0x41 },
          WG_EMODEL,
          "token 68 is of type byte but reads \"<41>\", expected \"<0xNN>\"; convert the model again" },
        { 1,
          { .merge = "he zz" },
          WG_EMODEL,
          "tokenizer.ggml.merges[18] is \"he zz\", but \"zz\" is not in the vocabulary; convert the model again" },
        { 1,
          { .merge = "zz he" },
          WG_EMODEL,
          "tokenizer.ggml.merges[18] is \"zz he\", but \"zz\" is not in the vocabulary; convert the model again" },
        { 1,
          { .merge = "he he" },
          WG_EMODEL,
          "tokenizer.ggml.merges[18] is \"he he\", but \"hehe\" is not in the vocabulary; convert the model again" },
        { 1,
          { .merge = "hehe" },
          WG_EMODEL,
          "tokenizer.ggml.merges[18] is \"hehe\", expected two tokens with a space between them; convert the model again" },
        { 1,
          { .merge = "" },
          WG_EMODEL,
          "tokenizer.ggml.merges[18] is \"\", expected two tokens with a space between them; convert the model again" },
        { 1,
          { .merge = "he " },
          WG_EMODEL,
          "tokenizer.ggml.merges[18] is \"he \", expected two tokens with a space between them; convert the model again" },
        { 1,
          { .merge = " he" },
          WG_EMODEL,
          "tokenizer.ggml.merges[18] is \" he\", expected two tokens with a space between them; convert the model again" },
        { 1, { .merge = "h e" }, WG_OK, NULL }, /* twice: the first counts */

        { 0,
          { .model = "bert" },
          WG_EUNSUPPORTED,
          "tokenizer.ggml.model is \"bert\", which is not implemented; there are: llama and gemma4 (SPM-style BPE), "
          "gpt2 (byte-level BPE), t5 (Unigram)" },
        { 1,
          { .pre = "bloom" },
          WG_EUNSUPPORTED,
          "tokenizer.ggml.pre is \"bloom\", a pre-tokeniser that is not implemented; there are: gpt-2, gpt2, phi-2, mpt, "
          "olmo, jais, gpt-neox, trillion, granite-docling, exaone4, llama-bpe, llama3, llama-v3, falcon3, falcon-h1, pixtral, "
          "midm-2.0, lfm2, "
          "dbrx, smaug-bpe, chatglm-bpe, glm4, qwen2, deepseek-r1-qwen, stablelm2, hunyuan, megrez, seed-coder, qwen35, "
          "starcoder, smollm, "
          "refact, "
          "command-r, codeshell, exaone, minerva-7b, tekken, gpt-4o, llama4, deepseek-llm, deepseek-coder, deepseek-v3, "
          "hunyuan-dense, "
          "falcon" },
        { 1, { .pre = "default" }, WG_EUNSUPPORTED, NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wg_tokenizer *t = NULL;
        wg_error err = { 0 };
        file = cases[i].how;
        (cases[i].kind ? tiny_bpe : tiny_spm)(&file);
        const wg_status s = tiny_open(&file, &t, &err);
        cr_expect_eq(s, cases[i].status, "case %zu: %s %s", i, wg_status_name(s), err.text);
        cr_expect((s == WG_OK) == (t != NULL), "case %zu", i);
        if (cases[i].text) {
            char want[WG_ERROR_TEXT];
            snprintf(want, sizeof want, "tiny.gguf: %s", cases[i].text);
            cr_expect_str_eq(err.text, want, "case %zu:\n got      %s\n expected %s", i, err.text, want);
        }
        wg_tokenizer_close(t);
        cr_expect_eq(wg_mem_read().live_blocks, 0, "case %zu leaks", i);
    }
}

Test(tokenizer, answers)
{
    wg_tokenizer *t = opened(0, (tiny){ .more = 2 });
    const int n = wg_tokenizer_size(t), end = n - 3, tool = n - 5;
    cr_expect_str_eq(wg_tokenizer_kind(t), "llama");
    cr_expect(n == 292 && wg_tokenizer_bos(t) == 1 && wg_tokenizer_eos(t) == 2 && wg_tokenizer_add_bos(t));
    cr_expect(wg_tokenizer_is_eog(t, 2) && wg_tokenizer_is_eog(t, end) && !wg_tokenizer_is_eog(t, 1) &&
              !wg_tokenizer_is_eog(t, tool));
    cr_expect(wg_tokenizer_is_control(t, 0) && wg_tokenizer_is_control(t, 1) && wg_tokenizer_is_control(t, end));
    cr_expect(!wg_tokenizer_is_control(t, 3) && !wg_tokenizer_is_control(t, tool) && !wg_tokenizer_is_control(t, n - 1));
    for (int32_t id = -2; id < n + 2; id++) {
        char out[8] = "";
        const wg_text p = wg_tokenizer_piece(t, id);
        cr_expect((id >= 0 && id < n) == (p.n > 0), "id %d", id);
        const size_t len = wg_tokenizer_decode_one(t, id, false, true, out, 2),
                     full = wg_tokenizer_decode_one(t, id, false, true, NULL, 0);
        cr_expect(len == full && out[2] == '\0', "id %d: writes past the size or measures wrongly", id);
    }
    wg_tokenizer_close(t);
    wg_tokenizer_close(NULL);

    t = opened(1, (tiny){ .skip = "add_bos_token" });
    cr_expect_str_eq(wg_tokenizer_kind(t), "gpt2");
    cr_expect(!wg_tokenizer_add_bos(t) && wg_tokenizer_bos(t) == wg_tokenizer_eos(t) &&
              wg_tokenizer_is_eog(t, wg_tokenizer_eos(t)));
    const wg_text space = wg_tokenizer_piece(t, ' ');
    cr_expect(space.n == 2 && memcmp(space.s, GS, 2) == 0, "pieces are as stored");
    wg_tokenizer_close(t);

    t = opened(1, (tiny){ .skip = "add_bos_token", .pre = "llama3" });
    cr_expect(wg_tokenizer_add_bos(t), "Llama-3 files mean it when they say nothing");
    wg_tokenizer_close(t);
}

Test(tokenizer, too_long_a_text)
{
    wg_tokenizer *t = opened(0, (tiny){ 0 });
    int32_t *ids = NULL;
    size_t n = 7;
    wg_error err;
    cr_expect_eq(wg_tokenizer_encode(t, "x", ((size_t)256 << 20) + 1, false, false, &ids, &n, &err), WG_EINVAL);
    cr_expect_str_eq(err.text, "a text of 268435457 bytes cannot be encoded, at most 268435456 are; cut it into parts");
    cr_expect(ids == NULL && n == 7);
    cr_expect_eq(wg_tokenizer_encode(t, NULL, 0, false, false, &ids, &n, &err), WG_OK);
    cr_expect(ids != NULL && n == 0);
    wg_free(ids);
    wg_tokenizer_close(t);
}

Test(tokenizer, pairs)
{
    wg_error err = { 0 };
    wg_tokenizer *a = opened(0, (tiny){ 0 }), *same = opened(0, (tiny){ 0 }), *padded = opened(0, (tiny){ .more = 3 });
    wg_tokenizer *one = opened(0, (tiny){ .with_inner_space = true }), *ends = opened(0, (tiny){ .eos = 1 }),
                 *other = opened(1, (tiny){ 0 });
    cr_expect_eq(wg_tokenizer_same(a, same, "a", "b", &err), WG_OK);
    cr_expect_eq(wg_tokenizer_same(padded, a, "a", "b", &err), WG_OK, "%s", err.text);
    cr_expect_eq(err.code, 0);

    cr_expect_eq(wg_tokenizer_same(a, padded, "big.gguf", "small.gguf", &err), WG_EVOCAB);
    cr_expect_str_eq(
        err.text,
        "target big.gguf (llama, 290 tokens, bos 1, eos 2) and draft small.gguf (llama, 293 tokens, bos 1, eos 2) do not "
        "share a vocabulary, 3 texts differ; take a draft that was trained with the target's tokenizer, or draft across "
        "vocabularies: model with vocabulary=intersection, or slem\n"
        "  id 290: target none, draft \"[PAD290]\"\n  id 291: target none, draft \"[PAD291]\"\n"
        "  id 292: target none, draft \"[PAD292]\"");
    cr_expect_eq(wg_tokenizer_same(one, a, "t", "d", &err), WG_EVOCAB);
    cr_expect(strstr(err.text, "1 texts differ") && strstr(err.text, "id 290: target \"h" SP "\", draft none"), "%s", err.text);
    cr_expect_eq(wg_tokenizer_same(a, ends, "t", "d", &err), WG_EVOCAB);
    cr_expect(strstr(err.text, "eos 1) do not share a vocabulary, 0 texts differ; take"), "%s", err.text);
    cr_expect_eq(wg_tokenizer_same(a, other, "t", "d", &err), WG_EVOCAB);
    cr_expect(strstr(err.text, "(the first 10 are shown)") && strstr(err.text, "id 9: target \"<0x06>\", draft \""), "%s",
              err.text);
    cr_expect(!strstr(err.text, "id 10:"), "%s", err.text);

    wg_tokenizer *all[] = { a, same, padded, one, ends, other };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) wg_tokenizer_close(all[i]);
    cr_expect_eq(wg_mem_read().live_blocks, 0);
}

/* The nth allocation fails, for every n: a clean error, nothing held, outputs untouched. */
Test(tokenizer, every_allocation_may_fail)
{
    static const char text[] =
        "hello world, <tool> hello \xff world; a word that is long enough to make the symbols grow once more, "
        "withoutanyspaceinitwithoutanyspaceinitwithoutanyspaceinitwithoutanyspaceinitwithoutanyspaceinit";
    for (int kind = 0; kind < 2; kind++) {
        wg_error err;
        file = (tiny){ 0 };
        (kind ? tiny_bpe : tiny_spm)(&file);
        wg_weights *w = NULL;
        cr_assert_eq(wg_weights_open_memory(&w, "tiny.gguf", file.b, file.n, &err), WG_OK);
        const size_t before = wg_mem_read().live_blocks;
        wg_tokenizer *t = NULL;
        int failed = 0;
        for (uint64_t nth = 1;; nth++) {
            wg_mem_fail_at(nth, false);
            const wg_status s = wg_tokenizer_open(&t, w, &err);
            wg_mem_fail_at(0, false);
            if (s == WG_OK) break;
            cr_assert(s == WG_ENOMEM && t == NULL && wg_mem_read().live_blocks == before, "open, allocation %d", (int)nth);
            failed++;
        }
        cr_expect_eq(failed, kind ? 3 : 1, "a block, and for byte-level BPE the pre-tokeniser and room for a merge");
        wg_weights_close(w);

        failed = 0;
        for (uint64_t nth = 1;; nth++) {
            int32_t *ids = NULL;
            size_t n = 99;
            const size_t held = wg_mem_read().live_blocks;
            wg_mem_fail_at(nth, nth & 1);
            const wg_status s = wg_tokenizer_encode(t, text, sizeof text - 1, true, true, &ids, &n, &err);
            wg_mem_fail_at(0, false);
            if (s == WG_OK) {
                wg_free(ids);
                break;
            }
            cr_assert(s == WG_ENOMEM && !ids && n == 99 && wg_mem_read().live_blocks == held, "encode, allocation %d",
                      (int)nth);
            failed++;
        }
        cr_expect_geq(failed, 4);

        char *out = NULL;
        size_t n = 99;
        wg_mem_fail_at(1, false);
        cr_expect_eq(wg_tokenizer_decode(t, (int32_t[]){ 5, 6 }, 2, false, &out, &n, &err), WG_ENOMEM);
        wg_mem_fail_at(0, false);
        cr_expect(out == NULL && n == 99);
        wg_tokenizer_close(t);
        cr_expect_eq(wg_mem_read().live_blocks, 0);
    }
}
