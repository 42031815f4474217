/* SPDX-License-Identifier: MIT
 * Names of the tensors of Hugging Face folders, and what they are called in GGUF files. Private to core/file. */
#ifndef WG_CORE_FILE_HF_NAMES_H
#define WG_CORE_FILE_HF_NAMES_H

#include "core/file/hf.h"

enum { WG_HF_NAME = 64, WG_HF_EMBEDDING_NAME = 0, WG_HF_HEAD_NAME = 2 }; /* bytes of a name; places in .head */

/* Types with names of their own among those of the usual style. */
enum {
    WG_HF_NAMES_GLM = 256,
    WG_HF_NAMES_HUNYUAN = 512,
    WG_HF_NAMES_SEED = 1024,
    WG_HF_NAMES_STARCODER = 2048,
    WG_HF_NAMES_GRANITE = 4096,
    WG_HF_NAMES_OSS = 1 << 14
};

typedef struct wg_hf_name {
    const char *hf, *gguf; /* gguf NULL: a tensor that is not read */
    bool permuted;         /* rows of queries and keys, where the family's are */
    unsigned only;         /* of which models; 0: of all */
    const char *second;    /* of the second half of its rows; `gguf` is then that of the first */
} wg_hf_name;

/* The tensors of experts: one each here, one of all in GGUF files. */
enum { WG_HF_EXPERT_NAMES = 6, WG_HF_FULL_NAME = 128 };
#define WG_HF_EXPERT "model.layers.%d.%s.experts.%d.%s.weight"
typedef struct wg_hf_expert_name {
    const char *before, *after, *gguf;
    unsigned only;
} wg_hf_expert_name;
extern const wg_hf_expert_name wg_hf_expert_names[WG_HF_EXPERT_NAMES];

/* How the tensors of a model are called. */
typedef struct wg_hf_dialect {
    const char *before, *layer; /* in front of all names, where it stands; of the names of layers */
    const wg_hf_name *head, *in_layer;
    size_t heads, in_layers;
} wg_hf_dialect;
wg_hf_dialect wg_hf_dialect_of(const wg_hf_config *c);

/* The name without what may stand in front of it. */
const char *wg_hf_plain_name(const wg_hf_dialect *in, const char *name);

/* The name in GGUF files, in `to`; an empty one for a tensor that is not read. NULL: these families have no such tensor. */
const wg_hf_name *wg_hf_find_name(const wg_hf_config *c, const char *hf, char to[WG_HF_NAME]);

/* What else differs between the two: rows of queries and keys are permuted (of so many heads; 0: not), 1 is added, columns
 * become rows, rows of a fused projection stand by key head in the folder. */
typedef struct wg_hf_change {
    int heads;
    bool plus_one, turned, grouped;
} wg_hf_change;
wg_hf_change wg_hf_change_of(const wg_hf_config *c, const wg_hf_name *as, int n_dims);

/* The row in a folder of row r of a GGUF file, of heads of this width: neighbours there are pairs of both halves of a head. */
static inline int64_t wg_hf_row(int64_t r, int64_t width)
{
    const int64_t in = r % width;
    return r - in + in % 2 * (width / 2) + in / 2;
}

/* The same of a fused projection whose rows stand by key head in the folder (its queries, its key, its value); in a GGUF file
 * they are all queries, all keys, all values. */
int64_t wg_hf_grouped_row(const wg_hf_config *c, int64_t r);

/* The name in a folder of a tensor of a GGUF file, and that of one expert of a tensor of all. NULL, false: it has none. */
const wg_hf_name *wg_hf_name_of(const wg_hf_config *c, const char *gguf, char to[WG_HF_FULL_NAME]);
bool wg_hf_expert_of(const wg_hf_config *c, const char *gguf, int expert, char to[WG_HF_FULL_NAME]);

#endif
