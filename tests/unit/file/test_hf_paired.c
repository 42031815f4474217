/* SPDX-License-Identifier: MIT
 * Experts of gpt-oss's folders, whose gates and ups are one tensor (hf_paired.h), in MXFP4: their numbers, and folders that do
 * not fit together. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/file/safetensors.h"
#include "core/file/weights.h"
#include "tests/conformance/miniature.h"

static wg_error err;
static temp t;

static void must(wg_status s, const wg_error *e) { cr_assert(s == WG_OK, "%s", e->text); }

/* The message of a folder that is refused. */
static const char *refused(wg_status code)
{
    wg_weights *w = NULL;
    const size_t live = wg_mem_read().live_blocks;
    const wg_status s = wg_weights_open(&w, t.dir, &err);
    cr_assert(s == code && !w, "%s: %s", wg_status_name(s), s ? err.text : "opens");
    cr_assert_eq(wg_mem_read().live_blocks, live);
    return err.text;
}

static void unpack_mxfp4(void)
{
    const char *root = getenv("WG_ROOT");
    char command[600];
    temp_make(&t);
    snprintf(command, sizeof command, "tar -xzf '%.200s/tests/conformance/families/gpt-oss-mxfp4.tar.gz' -C '%s'",
             root ? root : ".", t.dir);
    cr_assert_eq(system(command), 0, "%s", command);
}

/* Writes `to` over each `from` of the same length in a file. */
static void overwrite(const char *file, const char *from, const char *to)
{
    char command[300];
    snprintf(command, sizeof command, "LC_ALL=C sed -i 's/%s/%s/' '%s'", from, to, temp_at(&t, file));
    cr_assert_eq(system(command), 0, "%s", command);
}

/* The numbers of MXFP4 from their two tensors: a low code first, rows of gate and up in turn. */
Test(hf_paired, experts_in_mxfp4)
{
    static const float value[] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };
    enum { RUN = 32, ROWS = 32, EXPERT = 2 };
    wg_weights *w;
    wg_safetensors list;
    char *bytes;
    size_t size;
    const wg_safetensor *blocks = NULL, *scales = NULL;
    unpack_mxfp4();
    must(wg_read_file(temp_at(&t, "model.safetensors"), 1 << 20, &bytes, &size, &err), &err);
    must(wg_safetensors_read(&list, "FILE", bytes, size, &err), &err);
    for (size_t i = 0; i < list.n; i++) {
        if (strcmp(list.tensor[i].name, "model.layers.0.mlp.experts.gate_up_proj_blocks") == 0) blocks = &list.tensor[i];
        if (strcmp(list.tensor[i].name, "model.layers.0.mlp.experts.gate_up_proj_scales") == 0) scales = &list.tensor[i];
    }
    cr_assert(blocks && scales && blocks->bytes == 3 * 2 * ROWS * RUN / 2);
    must(wg_weights_open(&w, t.dir, &err), &err);
    for (int up = 0; up < 2; up++) {
        const wg_tensor *x = wg_weights_find(w, up ? "blk.0.ffn_up_exps.weight" : "blk.0.ffn_gate_exps.weight");
        cr_assert(x && x->type == WG_MXFP4 && x->dim[0] == RUN && x->dim[1] == ROWS && x->dim[2] == 3);
        must(wg_weights_need(w, x, &err), &err);
        for (int r = 0; r < ROWS; r++) {
            float got[RUN];
            const size_t from = (size_t)(EXPERT * ROWS + r) * 2 + (size_t)up;
            wg_row_to_f32(WG_MXFP4, (const char *)x->data + (size_t)(EXPERT * ROWS + r) * (RUN / 2 + 1), got, RUN);
            for (int k = 0; k < RUN; k++) {
                const int code = blocks->data[from * RUN / 2 + (size_t)k / 2] >> 4 * (k % 2) & 15;
                const float want = ldexpf(code & 8 ? -value[code & 7] : value[code & 7], scales->data[from] - 127);
                cr_assert_eq(got[k], want, "row %d, element %d: %g, not %g", r, k, (double)got[k], (double)want);
            }
        }
    }
    wg_weights_close(w);
    wg_safetensors_free(&list);
    wg_free(bytes);
    temp_remove(&t);
}

Test(hf_paired, experts_in_mxfp4_that_do_not_belong_together)
{
    unpack_mxfp4();
    overwrite("config.json", "\"num_local_experts\": 3", "\"num_local_experts\": 5");
    cr_assert(strstr(refused(WG_EMODEL), "_proj_bias' has another shape: expected 5 x "), "%s", err.text);
    overwrite("config.json", "\"num_local_experts\": 5", "\"num_local_experts\": 3");
    overwrite("model.safetensors", "down_proj_scales", "down_proj_scalez");
    cr_assert(strstr(refused(WG_EMODEL),
                     "there is no tensor 'model.layers.0.mlp.experts.down_proj_scales' beside 'model.layers.0.mlp.experts."
                     "down_proj_blocks'; is the folder complete?"),
              "%s", err.text);
    overwrite("model.safetensors", "down_proj_scalez", "down_proj_scales");
    overwrite("model.safetensors", "\"U8\"", "\"I8\"");
    cr_assert(strstr(refused(WG_EUNSUPPORTED), "_blocks' has the dtype I8: expected U8"), "%s", err.text);
    temp_remove(&t);
}
