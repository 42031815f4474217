/* SPDX-License-Identifier: MIT
 * Names of the tensors of Hugging Face folders, and what they are called in GGUF files. Private to core/file. */
#ifndef WG_CORE_FILE_HF_NAMES_H
#define WG_CORE_FILE_HF_NAMES_H

#include "core/file/hf.h"

enum { WG_HF_NAME = 64, WG_HF_EMBEDDING_NAME = 0, WG_HF_HEAD_NAME = 2 }; /* bytes of a name; places in .head */

typedef struct wg_hf_name {
    const char *hf, *gguf; /* gguf NULL: a tensor that is not read */
    bool permuted;         /* rows of queries and keys, where the family's are */
    unsigned only;         /* of which models; 0: of all */
} wg_hf_name;

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

#endif
