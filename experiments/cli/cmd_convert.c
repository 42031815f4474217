/* SPDX-License-Identifier: MIT
 * wager convert: any model file to GGUF, optionally in another weight type. */
#include <stdio.h>

#include "core/file/convert.h"
#include "experiments/base/target.h"
#include "experiments/cli/cli.h"
#include "experiments/cli/commands.h"
#include "kernels/types.h"

/* Nothing is written that could not run. */
static wg_status check(const char *in, bool tokenizer, wg_error *err)
{
    wg_weights *w;
    WG_TRY(wg_weights_open(&w, in, err));
    const wg_status s = wg_target_check(w, tokenizer, err);
    wg_weights_close(w);
    return s;
}

int wg_cmd_convert(int argc, char **argv)
{
    const char *in, *tokenizer = NULL, *out = NULL, *type_name = NULL;
    const wg_flag flags[] = {
        { "tokenizer", 0, WG_FLAG_STRING, &tokenizer, "FILE", "tokenizer.bin that belongs to a llama2.c model", 0, 0 },
        { "out", 'o', WG_FLAG_STRING, &out, "FILE", "the GGUF file to write", 0, 0 },
        { "type", 0, WG_FLAG_STRING, &type_name, "TYPE", WG_WRITABLE_TYPES " for all matrices; kept when left out", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("convert", flags, argc, argv, &in, 1, 1);
    if (done >= 0) return done;
    if (!out) {
        fputs("wager convert: --out FILE is missing\n", stderr);
        return WG_EXIT_USAGE;
    }
    const int type = type_name ? wg_cli_weight_type("convert", type_name) : -1;
    if (type_name && type < 0) return WG_EXIT_USAGE;
    wg_error err;
    if (check(in, tokenizer == NULL, &err)) return wg_cli_fail(&err);
    if (wg_convert(in, tokenizer, out, type, &err)) return wg_cli_fail(&err);
    printf("wrote %s\n", out);
    return WG_EXIT_OK;
}
