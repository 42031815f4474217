/* SPDX-License-Identifier: MIT
 * wager datastore build: builds a datastore (draft/lookup/datastore.h) from texts, for the drafters retrieval, sam and
 * ngram_cache. Each file is one text; no match spans two texts. */
#include <stdio.h>
#include <string.h>

#include "core/base/read_file.h"
#include "core/base/mem.h"
#include "core/base/save.h"
#include "core/text/tokenizer.h"
#include "draft/lookup/datastore.h"
#include "experiments/cli/cli.h"

enum { FILES_MAX = 1024, TEXT_MAX = 256 << 20 };

typedef struct texts {
    int32_t *token;
    size_t n;
} texts;

/* Appends the tokens of a file, then -1. */
static wg_status add(texts *x, const wg_tokenizer *t, const char *path, wg_error *err)
{
    char *text;
    size_t bytes, n;
    int32_t *ids = NULL;
    WG_TRY(wg_read_file(path, TEXT_MAX, &text, &bytes, err));
    wg_status s = wg_tokenizer_encode(t, text, bytes, false, false, &ids, &n, err);
    wg_free(text);
    WG_TRY(s);
    int32_t *more = wg_realloc(x->token, x->n + n + 1, sizeof *more);
    if (more) {
        x->token = more;
        if (n) memcpy(more + x->n, ids, n * sizeof *ids);
        more[x->n + n] = -1;
        x->n += n + 1;
    } else s = wg_nomem(err, (x->n + n + 1) * sizeof *more, "the tokens of the texts");
    wg_free(ids);
    return s;
}

static wg_status build(const char *model, const char *out, const char *const *path, int files, size_t *n, wg_error *err)
{
    wg_weights *w = NULL;
    wg_tokenizer *t = NULL;
    texts x = { 0 };
    wg_status s = wg_weights_open(&w, model, err);
    if (!s) s = wg_tokenizer_open(&t, w, err);
    for (int i = 0; !s && i < files; i++) s = add(&x, t, path[i], err);
    if (!s) s = wg_datastore_write(out, t, x.token, x.n, err);
    *n = x.n - (size_t)files;
    wg_free(x.token);
    wg_tokenizer_close(t);
    wg_weights_close(w);
    return s;
}

int wg_cmd_datastore(int argc, char **argv)
{
    const char *word[1 + FILES_MAX] = { 0 }, *model = NULL, *out = NULL;
    const wg_flag flags[] = {
        WG_MODEL_ROW(WG_FLAG_MODEL, &model, "the target model, whose tokenizer makes the tokens"),
        { "out", 'o', WG_FLAG_STRING, &out, "FILE", "the datastore to write", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("datastore", flags, argc, argv, word, 1, 1 + FILES_MAX);
    if (done >= 0) return done;
    int files = 0;
    while (files < FILES_MAX && word[1 + files]) files++;
    if (!out) return wg_cli_refuse("datastore build", "--out FILE is missing: the datastore to write");
    if (files == 0) return wg_cli_refuse("datastore build", "TEXT... is missing: one file or more of plain text");
    if (wg_cli_is_input("datastore", "model", &model, 1, out) || wg_cli_is_input("datastore", "text", word + 1, files, out))
        return WG_EXIT_USAGE;
    size_t n;
    wg_error err;
    if (wg_save_check(out, &err)) return wg_cli_fail(&err);
    if (build(model, out, word + 1, files, &n, &err)) return wg_cli_fail(&err);
    printf("wrote %s: %zu tokens of %d text%s\n", out, n, files, files == 1 ? "" : "s");
    return WG_EXIT_OK;
}
