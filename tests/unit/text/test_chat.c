/* SPDX-License-Identifier: MIT
 * Chat templates against the renderings by their publishers: the ids must be those of the rendered text with its control
 * tokens. User text never becomes a control token. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "core/text/chat.h"
#include "tests/unit/text/tiny.h"

static tiny file;

static const char *const controls[] = {
    "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|im_start|>", "<|im_end|>",
    "<|user|>",          "<|system|>",          "<|assistant|>",     NULL
};

static wg_tokenizer *opened(bool bpe, const char *const *names)
{
    wg_tokenizer *t = NULL;
    wg_error err = { 0 };
    file = (tiny){ .controls = names };
    (bpe ? tiny_bpe : tiny_spm)(&file);
    cr_assert_eq(tiny_open(&file, &t, &err), WG_OK, "%s", err.text);
    return t;
}

static int turns(const char *const *texts, wg_text *out)
{
    int n = 0;
    for (; n < 8 && texts[n]; n++) out[n] = (wg_text){ texts[n], strlen(texts[n]) };
    return n;
}

/* The conversation's ids are those of `want`, in which control tokens are written out. */
static void same(const wg_tokenizer *t, const wg_chat *chat, const char *const *texts, const char *want)
{
    wg_text turn[8];
    wg_error err = { 0 };
    int32_t *a, *b;
    size_t na, nb;
    const int n = turns(texts, turn);
    cr_assert_eq(wg_chat_encode(t, chat, turn, n, &a, &na, &err), WG_OK, "%s", err.text);
    char *text = NULL;
    cr_assert_eq(wg_tokenizer_decode(t, a, na, true, &text, &nb, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_tokenizer_encode(t, want, strlen(want), false, true, &b, &nb, &err), WG_OK, "%s", err.text);
    cr_expect(na == nb && memcmp(a, b, na * sizeof *a) == 0, "%s: %zu ids, expected %zu:\n%s\ninstead of\n%s",
              wg_chat_names[chat->family], na, nb, text, want);
    wg_free(text);
    wg_free(a);
    wg_free(b);
}

#define LONG "A chat between a curious user and an artificial intelligence assistant."

/* BOS and EOS of the tiny "llama" vocabulary are <s> and </s>; of the "gpt2" one both are <|endoftext|>. */
static const struct {
    int family;
    bool bpe;
    const char *system, *turn[6], *want;
} published[] = {
    { WG_CHAT_NONE, false, "", { " hello [/INST]" }, "<s> hello [/INST]" },
    { WG_CHAT_LLAMA_2, false, "", { "hello world" }, "<s>[INST] hello world [/INST]" },
    { WG_CHAT_LLAMA_2, false, "", { "  hello\n" }, "<s>[INST] hello [/INST]" },
    { WG_CHAT_LLAMA_2, false, "Be brief.", { "hello " }, "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nhello [/INST]" },
    { WG_CHAT_LLAMA_2,
      false,
      "Be brief.",
      { "one", " two ", "three", "four", "five" },
      "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\none [/INST] two </s><s>[INST] three [/INST] four </s><s>[INST] five [/INST]" },
    { WG_CHAT_LLAMA_3,
      true,
      "",
      { " hello\n" },
      "<|endoftext|><|start_header_id|>user<|end_header_id|>\n\nhello<|eot_id|>"
      "<|start_header_id|>assistant<|end_header_id|>\n\n" },
    { WG_CHAT_LLAMA_3,
      true,
      "Be brief.",
      { "one", "two", "three" },
      "<|endoftext|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
      "<|start_header_id|>user<|end_header_id|>\n\none<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\ntwo<|eot_id|>"
      "<|start_header_id|>user<|end_header_id|>\n\nthree<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n" },
    { WG_CHAT_CHATML, true, "", { "hello " }, "<|endoftext|><|im_start|>user\nhello <|im_end|>\n<|im_start|>assistant\n" },
    { WG_CHAT_CHATML,
      true,
      "Be brief.",
      { "one", "two", "three" },
      "<|endoftext|><|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\none<|im_end|>\n"
      "<|im_start|>assistant\ntwo<|im_end|>\n<|im_start|>user\nthree<|im_end|>\n<|im_start|>assistant\n" },
    { WG_CHAT_ZEPHYR, false, "", { "hello" }, "<s><|user|>\nhello</s>\n<|assistant|>\n" },
    { WG_CHAT_ZEPHYR,
      false,
      "Be brief.",
      { "one", "two", "three" },
      "<s><|system|>\nBe brief.</s>\n<|user|>\none</s>\n<|assistant|>\ntwo</s>\n<|user|>\nthree</s>\n<|assistant|>\n" },
    { WG_CHAT_VICUNA, false, "", { "hello world" }, "<s>USER: hello world ASSISTANT:" },
    { WG_CHAT_VICUNA,
      false,
      LONG,
      { "Hello!", "Hi!", "How are you?" },
      "<s>" LONG " USER: Hello! ASSISTANT: Hi!</s>USER: How are you? ASSISTANT:" },
};

Test(chat, as_published)
{
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        for (int names = 0; names < 2; names++) { /* zephyr's roles are tokens in some vocabularies, and words in others */
            const int family = published[i].family;
            if (!names && (family == WG_CHAT_LLAMA_3 || family == WG_CHAT_CHATML)) continue;
            wg_tokenizer *t = opened(published[i].bpe, names ? controls : NULL);
            const wg_chat chat = { .family = family, .system = published[i].system };
            same(t, &chat, published[i].turn, published[i].want);
            wg_tokenizer_close(t);
        }
}

/* What follows an answer, whether or not it said its end itself, is what stands behind it in the whole conversation. */
Test(chat, goes_on_behind_an_answer)
{
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        wg_text turn[8];
        wg_error err = { 0 };
        int32_t *all, *ids;
        size_t n_all, n, closed;
        const int asked = turns(published[i].turn, turn);
        if (asked < 3) continue;
        wg_tokenizer *t = opened(published[i].bpe, controls);
        const wg_chat chat = { .family = published[i].family, .system = published[i].system };
        const char *name = wg_chat_names[chat.family];
        cr_assert_eq(wg_chat_encode(t, &chat, turn, asked, &all, &n_all, &err), WG_OK, "%s", err.text);
        cr_assert_eq(wg_chat_encode_next(t, &chat, &turn[asked - 1], 1, &ids, &n, &closed, &err), WG_OK, "%s", err.text);
        cr_assert(closed >= 1 && closed < n && wg_tokenizer_is_eog(t, ids[closed - 1]), "%s: %zu of %zu", name, closed, n);
        cr_assert_geq(n_all, n - closed + 1);
        cr_expect_arr_eq(all + n_all - (n - closed + 1), ids + closed - 1, (n - closed + 1) * sizeof *ids, "%s", name);
        wg_free(all);
        wg_free(ids);
        wg_tokenizer_close(t);
    }
}

/* Without a template the text is unchanged: no beginning, no end, no additional space. */
Test(chat, goes_on_as_it_is)
{
    for (int bpe = 0; bpe < 2; bpe++) {
        wg_tokenizer *t = opened(bpe, controls);
        static const char text[] = "hello</s> world";
        wg_error err = { 0 };
        int32_t *ids;
        size_t n, closed;
        const wg_text next = { text, strlen(text) };
        cr_assert_eq(
            wg_chat_encode_next(t, &(wg_chat){ .family = WG_CHAT_NONE, .system = NULL }, &next, 1, &ids, &n, &closed, &err),
            WG_OK, "%s", err.text);
        cr_assert_eq(closed, 0);
        for (size_t i = 0; i < n; i++) cr_assert(!wg_tokenizer_is_control(t, ids[i]));
        char out[64];
        size_t at = 0;
        for (size_t i = 0; i < n; i++) at += wg_tokenizer_decode_one(t, ids[i], false, true, out + at, sizeof out - at);
        cr_expect(at == next.n && !memcmp(out, text, at), "%.*s", (int)at, out);
        wg_free(ids);
        wg_tokenizer_close(t);
    }
}

/* A text that spells control tokens has the ids of its letters, whatever the family. */
Test(chat, a_user_writes_text)
{
    static const char *const texts[] = { "</s><s><|im_end|><|eot_id|><|endoftext|><|user|><|start_header_id|>", NULL };
    for (int family = WG_CHAT_NONE; family < WG_CHAT_MODEL; family++)
        for (int bpe = 0; bpe < 2; bpe++) {
            wg_tokenizer *t = opened(bpe, controls);
            const wg_chat with = { .family = family, .system = family ? texts[0] : "" },
                          without = { .family = family, .system = family ? "x" : "" };
            static const char *const plain[] = { "x", NULL };
            wg_error err = { 0 };
            long counted[2] = { 0 };
            for (int k = 0; k < 2; k++) {
                wg_text turn[8];
                int32_t *ids;
                size_t n;
                const int asked = turns(k ? plain : texts, turn);
                cr_assert_eq(wg_chat_encode(t, k ? &without : &with, turn, asked, &ids, &n, &err), WG_OK, "%s", err.text);
                for (size_t i = 0; i < n; i++) counted[k] += wg_tokenizer_is_control(t, ids[i]);
                wg_free(ids);
            }
            cr_expect_eq(counted[0], counted[1], "%s: %ld control tokens, the template has %ld", wg_chat_names[family],
                         counted[0], counted[1]);
            cr_expect(family == WG_CHAT_NONE || counted[1] > 0);
            wg_tokenizer_close(t);
        }
}

Test(chat, refusals)
{
    static const char *const some[] = { "<|im_start|>", NULL };
    const wg_text turn[3] = { { "a", 1 }, { "b", 1 }, { "c", 1 } };
    wg_tokenizer *t = opened(true, some);
    wg_error err = { 0 };
    int32_t *ids;
    size_t n;
    cr_assert_eq(wg_chat_check(t, &(wg_chat){ .family = WG_CHAT_CHATML, .system = NULL }, true, &err), WG_EMODEL);
    cr_assert_str_eq(err.text, "the chat template chatml needs the token <|im_end|>, which the vocabulary does not have; "
                               "choose the template that the model was trained with, or none");
    cr_assert_eq(wg_chat_check(t, &(wg_chat){ .family = WG_CHAT_LLAMA_3, .system = NULL }, true, &err), WG_EMODEL);
    cr_assert_eq(wg_chat_check(t, &(wg_chat){ .family = WG_CHAT_VICUNA, .system = NULL }, true, &err), WG_OK);
    cr_assert_eq(wg_chat_check(t, &(wg_chat){ .family = WG_CHAT_NONE, .system = NULL }, true, &err), WG_OK);
    cr_assert_eq(wg_chat_encode(t, &(wg_chat){ .family = WG_CHAT_VICUNA, .system = NULL }, turn, 2, &ids, &n, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "a conversation of 2 texts with the chat template vicuna: expected an odd number, questions and "
                               "answers in turn");
    cr_assert_eq(wg_chat_encode(t, &(wg_chat){ .family = WG_CHAT_NONE, .system = NULL }, turn, 3, &ids, &n, &err), WG_EINVAL);
    const wg_text endless = { "a", ((size_t)256 << 20) + 1 };
    cr_assert_eq(wg_chat_encode(t, &(wg_chat){ .family = WG_CHAT_VICUNA, .system = NULL }, &endless, 1, &ids, &n, &err),
                 WG_EINVAL);
    cr_assert_str_eq(err.text, "a conversation of more than 268435456 bytes cannot be encoded; shorten its texts");
    wg_tokenizer_close(t);
}

/* The bound that memory is planned with holds. */
Test(chat, adds_no_more_tokens_than_said)
{
    for (int family = WG_CHAT_NONE; family < WG_CHAT_MODEL; family++)
        for (int bpe = 0; bpe < 2; bpe++) {
            wg_tokenizer *t = opened(bpe, controls);
            const wg_chat chat = { .family = family, .system = family ? "Be brief." : NULL };
            const wg_text turn = { "x", 1 };
            wg_error err = { 0 };
            int32_t *ids;
            size_t n;
            cr_assert_eq(wg_chat_encode(t, &chat, &turn, 1, &ids, &n, &err), WG_OK, "%s", err.text);
            cr_expect_leq(n, 1 + 1 + wg_chat_bytes(&chat) + 1, "%s: %zu tokens", wg_chat_names[family], n);
            wg_free(ids);
            size_t closed;
            cr_assert_eq(wg_chat_encode_next(t, &chat, &turn, 1, &ids, &n, &closed, &err), WG_OK, "%s", err.text);
            cr_expect_leq(n, 1 + wg_chat_bytes(&chat), "%s: %zu tokens behind an answer", wg_chat_names[family], n);
            wg_free(ids);
            wg_tokenizer_close(t);
        }
}

Test(chat, survives_failing_allocations)
{
    wg_tokenizer *t = opened(true, controls);
    const wg_chat chat = { .family = WG_CHAT_CHATML, .system = "Be brief." };
    const wg_text turn = { "hello world", 11 };
    wg_status status = WG_ENOMEM;
    for (uint64_t nth = 1; status != WG_OK && nth < 500; nth++) {
        const size_t before = wg_mem_read().live_blocks;
        wg_error err;
        int32_t *ids = NULL;
        size_t n;
        wg_mem_fail_at(nth, false);
        size_t closed;
        int32_t *next = NULL;
        status = wg_chat_encode(t, &chat, &turn, 1, &ids, &n, &err);
        if (!status) status = wg_chat_encode_next(t, &chat, &turn, 1, &next, &n, &closed, &err);
        wg_mem_fail_at(0, false);
        wg_free(next);
        wg_free(ids);
        cr_assert_eq(wg_mem_read().live_blocks, before, "allocation %d", (int)nth);
    }
    cr_assert_eq(status, WG_OK);
    wg_tokenizer_close(t);
}
