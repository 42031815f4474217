/* SPDX-License-Identifier: MIT
 * wager tokenizer train: a vocabulary of byte-level BPE from texts (core/text/bpe_train.h), written as a tokenizer.json or
 * a GGUF file without tensors. */
#include <stdio.h>
#include <string.h>

#include "core/base/save.h"
#include "core/text/bpe_train.h"
#include "core/text/unicode.h"
#include "core/text/vocab.h"
#include "experiments/cli/cli.h"

enum { FILES_MAX = 1024 };

typedef struct arguments {
    const char *const *text;
    int texts;
    long vocab, least;
    const char *pre, *out;
    wg_flag_list special;
} arguments;

static bool is_text(wg_text s)
{
    uint32_t cp = s.n > 0 ? 0 : WG_UTF8_BAD;
    for (size_t i = 0; i < s.n && cp != WG_UTF8_BAD;) i += wg_utf8_decode(s.s + i, s.n - i, &cp);
    return cp != WG_UTF8_BAD;
}

static wg_status train(const arguments *a, wg_bpe_trainer *t, wg_error *err)
{
    char list[1024];
    wg_text special[WG_FLAG_LIST_MAX];
    const wg_pretok_row *row = wg_pretok_row_named(a->pre, strlen(a->pre));
    if (!row)
        return wg_fail(err, WG_EINVAL, "--pre %s: there is no such pre-tokeniser; there are: %s", a->pre,
                       wg_pretok_list(list, sizeof list));
    for (int i = 0; i < a->special.n; i++) {
        special[i] = (wg_text){ a->special.item[i], strlen(a->special.item[i]) };
        if (!is_text(special[i]))
            return wg_fail(err, WG_EINVAL, "--special: expected the text of a token in UTF-8, not an empty one");
    }
    WG_TRY(wg_bpe_trainer_open(t, row, err));
    for (int i = 0; i < a->texts; i++) WG_TRY(wg_bpe_trainer_read(t, a->text[i], err));
    WG_TRY(wg_bpe_trainer_run(t, (size_t)a->vocab, a->least, special, (size_t)a->special.n, err));
    return wg_bpe_trainer_save(t, a->out, err);
}

int wg_cmd_tokenizer(int argc, char **argv)
{
    const char *word[1 + FILES_MAX] = { 0 };
    arguments a = { .text = word + 1, .least = 2, .pre = "gpt-2" };
    const wg_flag flags[] = {
        { "vocab", 0, WG_FLAG_INT, &a.vocab, "N", "number of tokens of the vocabulary", 1, WG_VOCAB_MAX },
        { "out", 'o', WG_FLAG_STRING, &a.out, "FILE", "the tokenizer.json, or NAME.gguf, to write", 0, 0 },
        { "special", 0, WG_FLAG_LIST, &a.special, "TEXT", "a special token; may be repeated, and these get the first ids", 0,
          0 },
        { "pre", 0, WG_FLAG_STRING, &a.pre, "NAME", "pre-tokeniser, which cuts text into words: gpt-2, llama-bpe, qwen2 ...", 0,
          0 },
        { "min-frequency", 0, WG_FLAG_INT, &a.least, "N", "merge pairs that occur at least N times in the texts", 1, 1 << 30 },
        { 0 },
    };
    const int done = wg_cli_parse("tokenizer", flags, argc, argv, word, 1, 1 + FILES_MAX);
    if (done >= 0) return done;
    while (a.texts < FILES_MAX && a.text[a.texts]) a.texts++;
    if (a.texts == 0) return wg_cli_refuse("tokenizer train", "TEXT... is missing: one file or more of plain text");
    if (a.vocab < 1) return wg_cli_refuse("tokenizer train", "--vocab N is missing: how many tokens the vocabulary is to have");
    if (!a.out) return wg_cli_refuse("tokenizer train", "--out FILE is missing: the tokenizer.json to write");
    wg_error err;
    wg_bpe_trainer t = { 0 };
    wg_status s = wg_save_check(a.out, &err); /* before texts are read for minutes */
    if (!s) s = train(&a, &t, &err);
    if (!s) {
        printf("wrote %s: %zu tokens (%zu special, 256 bytes), %zu merges, of %zu different words in %llu bytes of text\n",
               a.out, t.token.n, t.specials, t.merges, t.words.n, (unsigned long long)t.bytes);
        if (t.token.n < (size_t)a.vocab)
            printf("fewer than %ld tokens: no other pair stands in the texts %ld times\n", a.vocab, a.least);
    }
    wg_bpe_trainer_close(&t);
    return s ? wg_cli_fail(&err) : WG_EXIT_OK;
}
