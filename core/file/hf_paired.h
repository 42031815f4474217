/* SPDX-License-Identifier: MIT
 * The experts of gpt-oss in folders. The experts of a layer are one tensor; rows of gate and up take turns in another. Floats
 * stand by inputs (experts, inputs, outputs). MXFP4 stands by outputs, in two tensors of bytes: blocks (experts, outputs,
 * inputs / 32, 16), of which a byte has two neighbours, the first one low, and scales (experts, outputs, inputs / 32). Private
 * to core/file. */
#ifndef WG_CORE_FILE_HF_PAIRED_H
#define WG_CORE_FILE_HF_PAIRED_H

#include "core/file/hf_names.h"
#include "core/file/safetensors.h"

/* One tensor of a folder: what it holds, or of a tensor of a GGUF file that is made of it, which of its outputs. */
typedef struct wg_hf_paired {
    int layer;
    bool down, bias; /* else gate and up, their matrices */
    bool blocks;     /* MXFP4; */
    bool scales;     /* of blocks elsewhere */
    int first, step; /* outputs first, first + step ...; step 0: no such tensor */
} wg_hf_paired;

/* Whether a name is one of these. */
bool wg_hf_paired_find(const wg_hf_config *c, const char *hf, wg_hf_paired *out);

/* The name of the scales of these blocks. */
void wg_hf_paired_scales(const wg_hf_paired *p, char to[WG_HF_FULL_NAME]);

/* EMODEL: another shape. EUNSUPPORTED: another dtype. */
wg_status wg_hf_paired_check(const wg_hf_config *c, const wg_hf_paired *p, const char *path, const wg_safetensor *t,
                             wg_error *err);

/* The tensors of a GGUF file that are made of this one: their number, 1 or 2, their names, shapes and outputs. */
int wg_hf_paired_tensors(const wg_hf_config *c, const wg_hf_paired *p, const wg_safetensor *t, wg_tensor to[2],
                         char name[2][WG_HF_NAME], wg_hf_paired out[2]);

/* The bytes of one. scales: NULL where there are no blocks. */
void wg_hf_paired_make(const wg_hf_paired *p, const wg_safetensor *t, const wg_safetensor *scales, const wg_tensor *to,
                       void *dst);

/* The other way round: the tensor of a folder that a tensor of a GGUF file goes to, and which of its outputs it has; false: it
 * is none of these. */
bool wg_hf_paired_name_of(const wg_hf_config *c, const char *gguf, wg_hf_paired *out, char to[WG_HF_FULL_NAME]);

/* Where element `column` of row `row` (of all experts, one behind the other) of the tensor `from` stands in the folder's. */
size_t wg_hf_paired_at(const wg_hf_paired *p, const wg_tensor *from, int64_t row, int64_t column);

#endif
