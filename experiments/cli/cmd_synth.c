/* SPDX-License-Identifier: MIT
 * wager synth: writes a random model of a known shape. */
#include <stdio.h>
#include <string.h>

#include "core/file/synth.h"
#include "experiments/cli/cli.h"
#include "kernels/types.h"

/* context 0: the shape's. */
static wg_status synth(const char *like, int type, uint64_t seed, int context, const char *out, wg_error *err)
{
    for (const wg_synth_shape *s = wg_synth_shapes(); s->name; s++) {
        if (strcmp(s->name, like) != 0) continue;
        wg_synth_shape shape = *s;
        if (context) shape.context = context;
        return wg_synth_write(&shape, type, seed, out, err);
    }
    return wg_synth(like, type, seed, out, err);
}

int wg_cmd_synth(int argc, char **argv)
{
    const char *like = NULL, *out = NULL, *type_name = "q8_0";
    long seed = 1, context = 0;
    const wg_flag flags[] = {
        { "like", 0, WG_FLAG_STRING, &like, "SHAPE",
          "llama-3.2-1b, qwen2.5-0.5b, qwen3-0.6b, tiny and others: a wrong name lists them", 0, 0 },
        { "type", 0, WG_FLAG_STRING, &type_name, "TYPE", WG_WRITABLE_TYPES, 0, 0 },
        { "seed", 0, WG_FLAG_INT, &seed, "N", "seed of the random weights", 0, 0 },
        { "context", 0, WG_FLAG_INT, &context, "N", "context length in tokens; 0: the shape's own", 0, 1 << 20 },
        { "out", 'o', WG_FLAG_STRING, &out, "FILE", "the GGUF file to write", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("synth", flags, argc, argv, NULL, 0, 0);
    if (done >= 0) return done;
    if (!like || !out) return wg_cli_refuse("synth", "--like SHAPE and --out FILE are needed");
    const int type = wg_cli_weight_type("synth", type_name);
    if (type < 0) return WG_EXIT_USAGE;
    wg_error err;
    if (synth(like, type, (uint64_t)seed, (int)context, out, &err)) return wg_cli_fail(&err);
    printf("wrote %s\n", out);
    return WG_EXIT_OK;
}
