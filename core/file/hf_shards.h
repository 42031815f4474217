/* SPDX-License-Identifier: MIT
 * The safetensors files of a folder. Private to core/file. */
#ifndef WG_CORE_FILE_HF_SHARDS_H
#define WG_CORE_FILE_HF_SHARDS_H

#include "core/file/safetensors.h"

typedef struct wg_hf_shard {
    char *path; /* owned */
    void *base; /* mapped */
    size_t bytes;
    wg_safetensors list;
} wg_hf_shard;

typedef struct wg_hf_shards {
    wg_hf_shard *at; /* (n) */
    size_t n, room;
    uint32_t aside; /* tensors that wg_hf_shards_unwrap has left out */
} wg_hf_shards;

/* Maps all files and checks them against the index. To be closed after a failure too. Errors: ENOENT, EIO, EFORMAT. */
wg_status wg_hf_shards_open(wg_hf_shards *out, const char *folder, wg_error *err);
void wg_hf_shards_close(wg_hf_shards *s);

/* Of a model with images: its text model's tensors get the names of a text model, those of the other parts are left out. */
void wg_hf_shards_unwrap(wg_hf_shards *s);

#endif
