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

/* ---- readers of keys, for head_config.c and head_config_block.c */

/* Which object has a key: the head's own, where there is one (eagle_config, dflash_config), or the top. */
const wg_hf_keys *wg_head_where(const wg_hf_keys *top, const wg_hf_keys *own, const char *key);
/* A flag, or a size, and what is taken where the key is absent. absent 0: a size is required. */
wg_status wg_head_flag(const wg_hf_keys *r, wg_head_spec *s, const char *key, bool absent, bool *out);
wg_status wg_head_size(const wg_hf_keys *r, wg_head_spec *s, const char *key, int absent, int max, int *out);
/* A name among those of a list of n; 0, the first, where the key is absent. */
wg_status wg_head_name_of(const wg_hf_keys *r, const char *key, const char *const *names, int n, const char *expected,
                          int *out);
/* A list of layers. shift: id + shift is the tap of the state that id stands for: 0, that which enters the layer; 1, which
 * leaves it. */
wg_status wg_head_read_taps(const wg_hf_keys *r, const char *key, int shift, wg_head_spec *s);
/* The token of rows whose own token is not known. */
wg_status wg_head_read_mask(const wg_hf_keys *r, wg_head_spec *s);
/* The keys of a block. own: NULL in speculators' files; in z-lab's the object dflash_config, or the top again. */
wg_status wg_head_read_block(const wg_hf_keys *top, const wg_hf_keys *own, wg_head_spec *s);

/* The name in GGUF files of a tensor that folders call `name`: `to`, or the same. */
enum { WG_HEAD_NAME = 96 };
const char *wg_head_gguf_name(const wg_head_spec *s, const char *name, char to[WG_HEAD_NAME]);

/* The same of an open GGUF file, and its tensors under the names of folders, borrowed from it. The list is to be freed after a
 * failure too. */
wg_status wg_head_gguf_read(wg_head_spec *s, wg_safetensors *list, const wg_weights *w, wg_error *err);

#endif
