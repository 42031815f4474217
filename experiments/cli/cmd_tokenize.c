/* SPDX-License-Identifier: MIT
 * wager tokenize: the tokens of a text, and the text of tokens. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/base/save.h"
#include "core/text/tokenizer.h"
#include "experiments/cli/cli.h"

enum { TEXT_MOST = 256 << 20 };

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
    const char *model = NULL, *text = NULL, *file = NULL, *out = NULL;
    const wg_flag flags[] = {
        WG_MODEL_ROW(WG_FLAG_MODEL, &model, "the model with the tokenizer"),
        { "file", 'f', WG_FLAG_STRING, &file, "FILE", "the text is that of FILE", 0, 0 },
        { "special", 0, WG_FLAG_BOOL, &special, NULL, "texts of control tokens become these tokens", 0, 0 },
        { "no-bos", 0, WG_FLAG_BOOL, &no_bos, NULL, "do not add the begin-of-text token", 0, 0 },
        { "out", 'o', WG_FLAG_STRING, &out, "FILE", "write the ids to FILE, 32 bits each, little-endian", 0, 0 },
        { "json", 0, WG_FLAG_BOOL, &json, NULL, "one JSON object per token", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("tokenize", flags, argc, argv, &text, 0, 1);
    if (done >= 0) return done;
    if (!text && !file) return wg_cli_refuse("tokenize", "TEXT or the model is missing; --file FILE stands for TEXT");
    if (text && file) return wg_cli_refuse("tokenize", "a TEXT and --file FILE are two texts; give one of them");
    if (out && json)
        return wg_cli_refuse("tokenize",
                             "--json is a form of what is printed, and --out FILE prints nothing; give one of them");
    if (out &&
        (wg_cli_is_input("tokenize", "model", &model, 1, out) || wg_cli_is_input("tokenize", "text", &file, file != NULL, out)))
        return WG_EXIT_USAGE;
    wg_weights *w = NULL;
    wg_tokenizer *t = NULL;
    char *bytes = NULL;
    int32_t *ids = NULL;
    size_t n, n_text = text ? strlen(text) : 0;
    wg_error err;
    wg_status s = wg_weights_open(&w, model, &err);
    if (!s) s = wg_tokenizer_open(&t, w, &err);
    if (!s && file) s = wg_read_file(file, TEXT_MOST, &bytes, &n_text, &err);
    if (!s) s = wg_tokenizer_encode(t, file ? bytes : text, n_text, !no_bos, special, &ids, &n, &err);
    if (!s && out) s = wg_save_all(out, ids, n * sizeof *ids, &err);
    else if (!s) print_tokens(t, ids, n, json);
    wg_free(ids);
    wg_free(bytes);
    wg_tokenizer_close(t);
    wg_weights_close(w);
    return s ? wg_cli_fail(&err) : WG_EXIT_OK;
}
