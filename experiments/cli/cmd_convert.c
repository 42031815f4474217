/* SPDX-License-Identifier: MIT
 * wager convert: any model to GGUF, or to a Hugging Face folder, optionally in another weight type. */
#include <stdio.h>
#include <string.h>

#include "core/file/convert.h"
#include "core/model/export.h"
#include "core/setup/target.h"
#include "experiments/cli/cli.h"

/* Checks that the written model could run. */
static wg_status check(const char *in, bool tokenizer, wg_error *err)
{
    wg_weights *w;
    WG_TRY(wg_weights_open(&w, in, err));
    const wg_status s = wg_target_check(w, tokenizer, err);
    wg_weights_close(w);
    return s;
}

static wg_status to_folder(const char *in, const char *out, int type, double shard_gb, wg_error *err)
{
    wg_weights *w;
    WG_TRY(wg_weights_open(&w, in, err));
    const wg_status s = wg_export(w, out, type, (size_t)(shard_gb * 1e9), err);
    wg_weights_close(w);
    return s;
}

static bool ends_in_gguf(const char *name)
{
    const size_t n = strlen(name);
    return n >= 5 && strcmp(name + n - 5, ".gguf") == 0;
}

int wg_cmd_convert(int argc, char **argv)
{
    const char *in = NULL, *word = NULL, *tokenizer = NULL, *out = NULL, *type_name = NULL;
    double shard_gb = 5;
    const wg_flag flags[] = {
        WG_MODEL_ROW(WG_FLAG_MODEL, &in, "the model to convert, a file or a folder"),
        { "tokenizer", 0, WG_FLAG_STRING, &tokenizer, "FILE", "tokenizer.bin that belongs to a llama2.c model", 0, 0 },
        { "out", 'o', WG_FLAG_STRING, &out, "FILE", "the GGUF file to write, whatever its name", 0, 0 },
        { "type", 0, WG_FLAG_STRING, &type_name, "TYPE",
          WG_WRITABLE_TYPES " for all matrices; kept when left out. Folders: f32, f16 or bf16; others become f32 when left out",
          0, 0 },
        { "shard-gb", 0, WG_FLAG_FLOAT, &shard_gb, "GB", "with a folder: largest file of weights, in GB", 1e-6, 1e6 },
        { 0 },
    };
    const int done = wg_cli_parse("convert", flags, argc, argv, &word, 0, 1);
    if (done >= 0) return done;
    if (!out == !word)
        return wg_cli_refuse("convert", "expected one name of what is written: OUT.gguf, a folder, or --out FILE");
    const int type = type_name ? wg_cli_weight_type("convert", type_name) : -1;
    if (type_name && type < 0) return WG_EXIT_USAGE;
    const bool folder = !out && !ends_in_gguf(word);
    if (!out) out = word;
    if (wg_cli_is_input("convert", "model", &in, 1, out)) return WG_EXIT_USAGE;
    if (folder && tokenizer)
        return wg_cli_refuse("convert", "--tokenizer is for GGUF files: write one first, then a folder of it");
    wg_error err;
    if (check(in, tokenizer == NULL, &err)) return wg_cli_fail(&err);
    if (folder ? to_folder(in, out, type, shard_gb, &err) : wg_convert(in, tokenizer, out, type, &err))
        return wg_cli_fail(&err);
    printf("wrote %s\n", out);
    return WG_EXIT_OK;
}
