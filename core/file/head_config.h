/* SPDX-License-Identifier: MIT
 * The keys of a head's config.json. Private to core/file. */
#ifndef WG_CORE_FILE_HEAD_CONFIG_H
#define WG_CORE_FILE_HEAD_CONFIG_H

#include "core/file/head_file.h"
#include "core/file/hf_keys.h"

/* Reads the keys of `o`; `path` stands in messages. What only tensors say (layers, draft_vocab) stays 0. Errors: EMODEL,
 * EUNSUPPORTED, as wg_head_file_open. */
wg_status wg_head_config_read(wg_head_spec *s, const json_t *o, const char *path, wg_error *err);

/* Adds a key that is absent, and the value taken. */
void wg_head_assume(wg_head_spec *s, const char *key, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The name in GGUF files of a tensor that folders call `name`: `to`, or the same. */
enum { WG_HEAD_NAME = 96 };
const char *wg_head_gguf_name(const wg_head_spec *s, const char *name, char to[WG_HEAD_NAME]);

/* The same of an open GGUF file, and its tensors under the names of folders, borrowed from it. The list is to be freed after a
 * failure too. */
wg_status wg_head_gguf_read(wg_head_spec *s, wg_safetensors *list, const wg_weights *w, wg_error *err);

#endif
