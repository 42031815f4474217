/* SPDX-License-Identifier: MIT
 * wager vocab prune: the most frequent tokens of some texts, for the option `prune` of the drafter model
 * (draft/lm/vocabulary_subset.h). wager vocab overlap: the intersection of two models' vocabularies, by ids and by a text's
 * tokens: the tokens that drafting across vocabularies can propose (core/text/vocab_map.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/read_file.h"
#include "core/base/mem.h"
#include "core/base/save.h"
#include "core/text/vocab_map.h"
#include "draft/lm/vocabulary_subset.h"
#include "experiments/cli/cli.h"

enum { FILES_MAX = 1024, TEXT_MAX = 256 << 20 };

typedef struct arguments {
    const char *model, *draft, *out;
    const char *const *text;
    int texts;
    long keep;
    bool json;
} arguments;

static wg_status open_tokenizer(wg_tokenizer **t, const char *path, wg_error *err)
{
    wg_weights *w;
    WG_TRY(wg_weights_open(&w, path, err));
    const wg_status s = wg_tokenizer_open(t, w, err);
    wg_weights_close(w);
    return s;
}

/* Counts the tokens of a file: count[id] each (count NULL: not), *n in total. */
static wg_status count_tokens(const wg_tokenizer *t, const char *path, long *count, long *n, wg_error *err)
{
    char *text;
    size_t bytes, ids_n;
    int32_t *ids = NULL;
    WG_TRY(wg_read_file(path, TEXT_MAX, &text, &bytes, err));
    const wg_status s = wg_tokenizer_encode(t, text, bytes, false, false, &ids, &ids_n, err);
    wg_free(text);
    if (s) return s;
    for (size_t i = 0; count && i < ids_n; i++) count[ids[i]]++;
    *n += (long)ids_n;
    wg_free(ids);
    return WG_OK;
}

static double percent(long part, long whole) { return whole ? 100.0 * (double)part / (double)whole : 0; }

/* ---- prune */

static wg_status prune(const arguments *a, wg_error *err)
{
    wg_tokenizer *t = NULL;
    WG_TRY(open_tokenizer(&t, a->model, err));
    const int vocab = wg_tokenizer_size(t), n = (int)a->keep;
    long *count = wg_calloc((size_t)vocab, sizeof *count), all = 0, kept = 0;
    int32_t *token = wg_calloc((size_t)vocab, sizeof *token);
    wg_status s = count && token ? WG_OK : wg_nomem(err, (size_t)vocab * 12, "counting tokens");
    if (!s && n > vocab) s = wg_fail(err, WG_ECONFIG, "--keep %d: %s has %d tokens; keep fewer", n, a->model, vocab);
    for (int i = 0; !s && i < a->texts; i++) s = count_tokens(t, a->text[i], count, &all, err);
    if (!s && all == 0) s = wg_fail(err, WG_EINVAL, "the texts have no tokens, so none is frequent; give other texts");
    if (!s) s = wg_vocabulary_frequent(t, count, n, token, err);
    if (!s) {
        for (int i = 0; i < n; i++) kept += count[token[i]];
        s = wg_vocabulary_subset_write(a->out, t, token, n, err);
    }
    if (!s && a->json) printf("{\"kept\":%d,\"vocabulary\":%d,\"text_tokens\":%ld,\"text_kept\":%ld}\n", n, vocab, all, kept);
    else if (!s)
        printf("wrote %s: %d of %d tokens (%.1f %%), which are %.2f %% of the %ld tokens of %d text%s\n", a->out, n, vocab,
               percent(n, vocab), percent(kept, all), all, a->texts, a->texts == 1 ? "" : "s");
    wg_free(count);
    wg_free(token);
    wg_tokenizer_close(t);
    return s;
}

/* ---- overlap */

static wg_status report(const arguments *a, const wg_tokenizer *t, const wg_tokenizer *d, const wg_vocab_map *m, long *count,
                        wg_error *err)
{
    long all = 0, own = 0, common = 0;
    for (int i = 0; i < a->texts; i++) WG_TRY(count_tokens(t, a->text[i], count, &all, err));
    for (int i = 0; i < a->texts; i++) WG_TRY(count_tokens(d, a->text[i], NULL, &own, err));
    for (int i = 0; i < m->a; i++) common += m->to_b[i] >= 0 ? count[i] : 0;
    if (a->json) {
        printf("{\"target_vocabulary\":%d,\"draft_vocabulary\":%d,\"shared\":%d,\"text_tokens\":%ld,\"text_shared\":%ld,"
               "\"draft_text_tokens\":%ld}\n",
               m->a, m->b, m->shared, all, common, own);
        return WG_OK;
    }
    printf("target  %s (%s), %d tokens\n", a->model, wg_tokenizer_kind(t), m->a);
    printf("draft   %s (%s), %d tokens\n", a->draft, wg_tokenizer_kind(d), m->b);
    printf("shared  %d tokens: %.1f %% of the target's, %.1f %% of the draft's\n", m->shared, percent(m->shared, m->a),
           percent(m->shared, m->b));
    if (a->texts)
        printf("text    %.1f %% of its %ld target tokens are shared; the draft model reads it in %ld tokens\n",
               percent(common, all), all, own);
    return WG_OK;
}

static wg_status overlap(const arguments *a, wg_error *err)
{
    wg_tokenizer *t = NULL, *d = NULL;
    wg_vocab_map m = { 0 };
    long *count = NULL;
    wg_status s = open_tokenizer(&t, a->model, err);
    if (!s) s = open_tokenizer(&d, a->draft, err);
    if (!s) s = wg_vocab_map_open(&m, t, d, err);
    if (!s && !(count = wg_calloc((size_t)m.a, sizeof *count)))
        s = wg_nomem(err, (size_t)m.a * sizeof *count, "counting tokens");
    if (!s) s = report(a, t, d, &m, count, err);
    wg_free(count);
    wg_vocab_map_close(&m);
    wg_tokenizer_close(t);
    wg_tokenizer_close(d);
    return s;
}

/* ---- the command */

int wg_cmd_vocab(int argc, char **argv)
{
    const char *word[1 + FILES_MAX] = { 0 };
    arguments a = { .text = word + 1 };
    const wg_flag flags[] = {
        WG_MODEL_ROW(WG_FLAG_MODEL, &a.model, "the target model"),
        { "draft-model", 'd', WG_FLAG_STRING, &a.draft, "FILE", "overlap: the draft model's file", 0, 0 },
        { "keep", 0, WG_FLAG_INT, &a.keep, "N", "prune: number of most frequent tokens to keep", 1, 1 << 24 },
        { "out", 'o', WG_FLAG_STRING, &a.out, "FILE", "prune: the list to write", 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &a.json, NULL, "print the numbers as one JSON object", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("vocab", flags, argc, argv, word, 1, 1 + FILES_MAX);
    if (done >= 0) return done;
    while (a.texts < FILES_MAX && a.text[a.texts]) a.texts++;
    const bool prunes = !strcmp(word[0], "prune");
    if (!prunes && !a.draft) return wg_cli_refuse("vocab overlap", "-d FILE is missing: the draft model");
    if (prunes && a.keep < 1) return wg_cli_refuse("vocab prune", "--keep N is missing: how many tokens a draft may have");
    if (prunes && !a.out) return wg_cli_refuse("vocab prune", "--out FILE is missing: the list to write");
    if (prunes && !a.texts) return wg_cli_refuse("vocab prune", "TEXT... is missing: one file or more of plain text");
    if (prunes &&
        (wg_cli_is_input("vocab", "model", &a.model, 1, a.out) || wg_cli_is_input("vocab", "text", a.text, a.texts, a.out)))
        return WG_EXIT_USAGE;
    wg_error err;
    if (prunes && wg_save_check(a.out, &err)) return wg_cli_fail(&err);
    return (prunes ? prune : overlap)(&a, &err) ? wg_cli_fail(&err) : WG_EXIT_OK;
}
