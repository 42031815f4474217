/* SPDX-License-Identifier: MIT
 * The experts of gpt-oss in folders (hf_paired.h). */
#include "core/file/hf_paired.h"

#include <stdio.h>
#include <string.h>

#define LAYER "model.layers.%d.mlp.experts.%s_proj%s"

enum { RUN = 32, RUN_BYTES = RUN / 2 };

bool wg_hf_paired_find(const wg_hf_config *c, const char *hf, wg_hf_paired *out)
{
    static const char *const ends[] = { "", "_bias", "_blocks", "_scales" };
    char exact[WG_HF_FULL_NAME];
    int layer;
    if (!c->paired || sscanf(hf, "model.layers.%4d.", &layer) != 1 || layer < 0 || layer >= c->layers) return false;
    for (int i = 0; i < 8; i++) {
        const int end = i / 2;
        snprintf(exact, sizeof exact, LAYER, layer, i % 2 ? "down" : "gate_up", ends[end]);
        *out = (wg_hf_paired){ .layer = layer, .down = i % 2, .bias = end == 1, .blocks = end == 2, .scales = end == 3 };
        out->step = out->down ? 1 : 2;
        if (strcmp(hf, exact) == 0) return true;
    }
    return false;
}

void wg_hf_paired_scales(const wg_hf_paired *p, char to[WG_HF_FULL_NAME])
{
    snprintf(to, WG_HF_FULL_NAME, LAYER, p->layer, p->down ? "down" : "gate_up", "_scales");
}

wg_status wg_hf_paired_check(const wg_hf_config *c, const wg_hf_paired *p, const char *path, const wg_safetensor *t,
                             wg_error *err)
{
    const int64_t out = p->down ? c->dim : 2 * (int64_t)c->hidden, in = p->down ? c->hidden : c->dim;
    const bool bytes = p->blocks || p->scales;
    const int64_t want[WG_DIMS] = { c->experts, p->bias || bytes ? out : in,
                                    p->bias ? 1
                                    : bytes ? in / RUN
                                            : out,
                                    p->blocks ? RUN_BYTES : 1 };
    if (bytes ? strcmp(t->dtype, "U8") != 0 : t->type < 0)
        return wg_fail(err, WG_EUNSUPPORTED, "%s: tensor '%.120s' has the dtype %s: expected %s", path, t->name, t->dtype,
                       bytes ? "U8" : "F32, F16 or BF16");
    bool same = !bytes || in % RUN == 0;
    for (int d = 0; d < WG_DIMS; d++) same = same && t->dim[d] == want[d];
    if (same) return WG_OK;
    return wg_fail(err, WG_EMODEL, "%s: tensor '%.120s' has another shape: expected %lld x %lld x %lld x %lld", path, t->name,
                   (long long)want[0], (long long)want[1], (long long)want[2], (long long)want[3]);
}

int wg_hf_paired_tensors(const wg_hf_config *c, const wg_hf_paired *p, const wg_safetensor *t, wg_tensor to[2],
                         char name[2][WG_HF_NAME], wg_hf_paired out[2])
{
    const int64_t rows = p->down ? c->dim : c->hidden, columns = p->down ? c->hidden : c->dim;
    for (int i = 0; i < p->step; i++) {
        snprintf(name[i], WG_HF_NAME, "blk.%d.ffn_%s_exps.%s", p->layer,
                 p->down ? "down"
                 : i     ? "up"
                         : "gate",
                 p->bias ? "bias" : "weight");
        to[i] = (wg_tensor){ .name = name[i], .type = p->bias ? WG_F32 : p->blocks ? WG_MXFP4 : t->type };
        to[i].n_dims = p->bias ? 2 : 3;
        memcpy(to[i].dim, p->bias ? (int64_t[]){ rows, c->experts, 1, 1 } : (int64_t[]){ columns, rows, c->experts, 1 },
               sizeof to[i].dim);
        out[i] = *p;
        out[i].first = i;
    }
    return p->step;
}

size_t wg_hf_paired_at(const wg_hf_paired *p, const wg_tensor *from, int64_t row, int64_t column)
{
    const int64_t step = p->step, in = from->dim[0], out = from->dim[1];
    if (p->bias) return (size_t)((row * in + column) * step + p->first);
    return (size_t)(((row / out * in + column) * out + row % out) * step + p->first);
}

/* Neighbours become elements 16 apart, as a GGUF file has them. */
static void repack(const uint8_t *from, uint8_t *to)
{
    for (int i = 0; i < RUN_BYTES; i++) {
        const int low = from[i / 2] >> 4 * (i % 2) & 15, high = from[RUN_BYTES / 2 + i / 2] >> 4 * (i % 2) & 15;
        to[i] = (uint8_t)(low | high << 4);
    }
}

static void make_blocks(const wg_hf_paired *p, const wg_safetensor *t, const wg_safetensor *scales, const wg_tensor *to,
                        uint8_t *dst)
{
    const size_t runs = (size_t)to->dim[0] / RUN, rows = (size_t)(to->dim[1] * to->dim[2]);
    for (size_t r = 0; r < rows; r++) {
        const size_t at = (r * (size_t)p->step + (size_t)p->first) * runs;
        for (size_t b = 0; b < runs; b++, dst += RUN_BYTES + 1) {
            dst[0] = scales->data[at + b];
            repack(t->data + (at + b) * RUN_BYTES, dst + 1);
        }
    }
}

void wg_hf_paired_make(const wg_hf_paired *p, const wg_safetensor *t, const wg_safetensor *scales, const wg_tensor *to,
                       void *dst)
{
    const size_t from = wg_type_size(wg_type_get(t->type >= 0 ? t->type : WG_F32), 1);
    const int64_t rows = to->dim[1] * to->dim[2], columns = to->dim[0];
    char *at = dst;
    if (p->blocks) {
        make_blocks(p, t, scales, to, dst);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            const uint8_t *element = t->data + wg_hf_paired_at(p, to, r, c) * from;
            if (to->type == t->type) memcpy(at, element, from), at += from;
            else wg_row_to_f32(t->type, element, (float *)(void *)at, 1), at += sizeof(float);
        }
}

bool wg_hf_paired_name_of(const wg_hf_config *c, const char *gguf, wg_hf_paired *out, char to[WG_HF_FULL_NAME])
{
    static const char *const parts[] = { "gate", "up", "down" };
    int layer, n = 0;
    char exact[WG_HF_NAME];
    if (!c->paired || sscanf(gguf, "blk.%4d.%n", &layer, &n) != 1 || n == 0) return false;
    for (int i = 0; i < 6; i++) {
        const int part = i / 2;
        *out =
            (wg_hf_paired){ .layer = layer, .down = part == 2, .bias = i % 2, .first = part == 1, .step = part == 2 ? 1 : 2 };
        snprintf(exact, sizeof exact, "ffn_%s_exps.%s", parts[part], out->bias ? "bias" : "weight");
        snprintf(to, WG_HF_FULL_NAME, LAYER, layer, out->down ? "down" : "gate_up", out->bias ? "_bias" : "");
        if (strcmp(gguf + n, exact) == 0) return true;
    }
    return false;
}
