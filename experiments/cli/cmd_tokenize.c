/* SPDX-License-Identifier: MIT
 * wager tokenize: the tokens of a text, and the text of tokens. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/mem.h"
#include "core/text/tokenizer.h"
#include "experiments/cli/cli.h"

static void print_tokens(const wg_tokenizer *t, const int32_t *ids, size_t n, bool json)
{
    for (size_t i = 0; i < n; i++) {
        const wg_text piece = wg_tokenizer_piece(t, ids[i]);
        if (!json) {
            printf("%6" PRId32 "  %.*s\n", ids[i], (int)piece.n, piece.s);
            continue;
        }
        wg_json_put_line(json_pack("{s:i, s:o}", "id", (int)ids[i], "piece", json_stringn_nocheck(piece.s, piece.n)), 0);
    }
    if (!json) printf("%zu tokens\n", n);
}

int wg_cmd_tokenize(int argc, char **argv)
{
    bool json = false, special = false, no_bos = false;
    const char *model = NULL, *text;
    const wg_flag flags[] = {
        WG_MODEL_ROW(WG_FLAG_MODEL, &model, "the model with the tokenizer"),
        { "special", 0, WG_FLAG_BOOL, &special, NULL, "texts of control tokens become these tokens", 0, 0 },
        { "no-bos", 0, WG_FLAG_BOOL, &no_bos, NULL, "do not add the begin-of-text token", 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &json, NULL, "one JSON object per token", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("tokenize", flags, argc, argv, &text, 1, 1);
    if (done >= 0) return done;
    wg_weights *w = NULL;
    wg_tokenizer *t = NULL;
    int32_t *ids = NULL;
    size_t n;
    wg_error err;
    wg_status s = wg_weights_open(&w, model, &err);
    if (!s) s = wg_tokenizer_open(&t, w, &err);
    if (!s) s = wg_tokenizer_encode(t, text, strlen(text), !no_bos, special, &ids, &n, &err);
    if (!s) print_tokens(t, ids, n, json);
    wg_free(ids);
    wg_tokenizer_close(t);
    wg_weights_close(w);
    return s ? wg_cli_fail(&err) : WG_EXIT_OK;
}
