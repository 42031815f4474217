/* SPDX-License-Identifier: MIT
 * Writes random models of odd shapes for the oracle: models DIR, then one line per file: "name tolerance"; or, models
 * --quantised DIR, those of tests/conformance/quantised.py: TYPE.gguf; or, models --miniature NAME OUT.gguf TYPE, a miniature
 * of tests/conformance. */
#include <stdio.h>
#include <string.h>

#include "core/file/convert.h"
#include "core/file/synth.h"
#include "kernels/types.h"
#include "tests/conformance/miniature.h"
#include "tests/conformance/quantised.h"

static int write_quantised(const char *folder)
{
    for (int i = 0; i < QUANTISED_TYPES; i++) {
        char path[4096];
        wg_error err;
        snprintf(path, sizeof path, "%s/%s.gguf", folder, wg_type_name(quantised_types[i]));
        if (quantised_write(quantised_types[i], path, &err)) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
    }
    return 0;
}

static int write_miniature(const char *name, const char *out, const char *type)
{
    miniature m;
    temp t;
    wg_error err;
    char folder[64];
    mini_open(&m, name);
    temp_make(&t);
    mini_write(&m, &t, 0);
    snprintf(folder, sizeof folder, "%s", t.dir);
    const wg_status s = wg_convert(folder, NULL, out, wg_type_parse(type), &err);
    if (s) fprintf(stderr, "%s\n", err.text);
    temp_remove(&t);
    mini_close(&m);
    return s != WG_OK;
}

int main(int argc, char **argv)
{
    enum { OTHERS = 6 }; /* families that are not made like Llama */
    /* clang-format off */
    static const wg_synth_shape shape[] = {
        { .name = "head32", .layers = 3, .dim = 96, .heads = 3, .kv_heads = 1, .head_dim = 32, .hidden = 160, .vocab = 1777,
          .context = 64 },
        { .name = "head80", .layers = 2, .dim = 160, .heads = 2, .head_dim = 80, .hidden = 224, .vocab = 300, .context = 64,
          .tied = true },
        { .name = "ten-on-two", .layers = 2, .dim = 320, .heads = 10, .kv_heads = 2, .head_dim = 32, .hidden = 288,
          .vocab = 1777, .context = 64, .rope_base = 500000 },
        { .name = "whole-blocks", .layers = 2, .dim = 256, .heads = 4, .kv_heads = 2, .head_dim = 64, .hidden = 384,
          .vocab = 300, .context = 64 }, /* of f8_e4m3 */
        { .name = "biased", .arch = "qwen2", .layers = 2, .dim = 96, .heads = 6, .kv_heads = 2, .hidden = 160, .vocab = 300,
          .context = 64, .rope_base = 1000000, .tied = true },
        { .name = "head-norms", .arch = "qwen3", .layers = 2, .dim = 96, .heads = 4, .kv_heads = 2, .head_dim = 40,
          .hidden = 160, .vocab = 300, .context = 64 },
        { .name = "learned", .arch = "gpt2", .layers = 2, .dim = 96, .heads = 4, .hidden = 160, .vocab = 300, .context = 64,
          .tied = true },
        { .name = "parallel", .arch = "gptneox", .layers = 2, .dim = 96, .heads = 3, .hidden = 160, .vocab = 300,
          .context = 64 },
        { .name = "one-norm", .arch = "falcon", .layers = 2, .dim = 96, .heads = 6, .kv_heads = 1, .hidden = 160, .vocab = 300,
          .context = 64, .tied = true },
        { .name = "alibi", .arch = "mpt", .layers = 2, .dim = 96, .heads = 6, .hidden = 160, .vocab = 300, .context = 64,
          .tied = true },
    };
    /* clang-format on */
    static const struct {
        int type;
        double tolerance;
    } type[] = {
        { WG_F32, 1e-3 }, { WG_F16, 1e-3 }, { WG_BF16, 1e-3 }, { WG_Q8_0, 3e-2 }, { WG_F8_E4M3, 1e-3 },
    };
    if (argc == 3 && strcmp(argv[1], "--quantised") == 0) return write_quantised(argv[2]);
    if (argc == 5 && strcmp(argv[1], "--miniature") == 0) return write_miniature(argv[2], argv[3], argv[4]);
    if (argc != 2) return 2;
    for (unsigned s = 0; s < sizeof shape / sizeof *shape; s++)
        for (unsigned t = 0; t < sizeof type / sizeof *type; t++) {
            if ((type[t].type == WG_F8_E4M3) != (shape[s].dim % WG_F8_RUN == 0)) continue;
            if (s >= OTHERS && (type[t].type == WG_F16 || type[t].type == WG_BF16)) continue; /* enough of these */
            char path[4096];
            wg_error err;
            snprintf(path, sizeof path, "%s/%s-%s.gguf", argv[1], shape[s].name, wg_type_name(type[t].type));
            if (wg_synth_write(&shape[s], type[t].type, 11 + s, path, &err)) {
                fprintf(stderr, "%s\n", err.text);
                return 1;
            }
            printf("%s %g\n", path, type[t].tolerance);
        }
    return 0;
}
