/* SPDX-License-Identifier: MIT
 * GGUF files of drafters: reading one as a model names what it is (core/file/dialect.h). */
#include <criterion/criterion.h>

#include "core/file/gguf_write.h"
#include "core/model/arch.h"
#include "tests/temp.h"

static wg_error err;
static temp folder;

static wg_status zeros(void *user, const wg_tensor *t, void *dst, wg_error *e)
{
    (void)user, (void)e;
    memset(dst, 0, t->bytes);
    return WG_OK;
}

Test(drafter_files, are_named)
{
    static const struct {
        const char *family, *names[4], *says;
    } row[] = {
        { "eagle3", { "fc.weight", "blk.0.attn_norm_2.weight", "d2t" }, "by its tensors: eagle-3 (" },
        { "dflash", { "fc.weight", "enc.output_norm.weight", "blk.0.attn_q.weight" }, "by its tensors: dflash (" },
        { "dflash", { "fc.weight", "markov_w1.weight", "enc.output_norm.weight" }, "by its tensors: dspark (" },
        { "qwen3",
          { "blk.0.nextn.eh_proj.weight", "token_embd.weight", "blk.0.attn_norm.weight" },
          "it cannot be a target, and no drafter of this program runs it yet" },
        { "mamba", { "token_embd.weight" }, "model family 'mamba' is not supported" },
    };
    temp_make(&folder);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        wg_gguf_writer *g;
        wg_weights *w;
        wg_arch a;
        cr_assert_eq(wg_gguf_writer_open(&g, temp_at(&folder, "made.gguf"), &err), WG_OK);
        wg_gguf_set_string(g, "general.architecture", row[i].family, strlen(row[i].family));
        for (int k = 0; k < 4 && row[i].names[k]; k++)
            wg_gguf_add(g, &(wg_tensor){ .name = row[i].names[k], .type = WG_F32, .n_dims = 1, .dim = { 4, 1, 1, 1 } }, zeros,
                        NULL);
        cr_assert_eq(wg_gguf_writer_finish(g, &err), WG_OK, "%s", err.text);
        cr_assert_eq(wg_weights_open(&w, folder.path, &err), WG_OK, "%s", err.text);
        cr_assert_eq(wg_arch_read(w, &a, &err), WG_EUNSUPPORTED);
        cr_assert(strstr(err.text, row[i].says), "%s", err.text);
        wg_weights_close(w);
    }
    temp_remove(&folder);
}
