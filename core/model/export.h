/* SPDX-License-Identifier: MIT
 * Writing a model as a Hugging Face folder. */
#ifndef WG_CORE_MODEL_EXPORT_H
#define WG_CORE_MODEL_EXPORT_H

#include "core/model/arch.h"

/* Writes config.json, generation_config.json, tokenizer.json, tokenizer_config.json and model.safetensors (or shards of
 * shard_bytes; 0: 5 GB) to the folder `out`, which must not exist, or be empty. type: of the matrices, WG_F32, WG_F16 or
 * WG_BF16, or -1: floats stay, other types become f32, exactly. The folder is read back before it gets its name: hyper-
 * parameters and tokens must be those of w. Errors: those of wg_hf_write; EUNSUPPORTED: what such a folder cannot say. */
wg_status wg_export(const wg_weights *w, const char *out, int type, size_t shard_bytes, wg_error *err);

#endif
