/* SPDX-License-Identifier: MIT
 * Writing Hugging Face folders: the inverse of hf_config.c, hf_tokenizer.c, hf_chat.c and hf_folder.c, with their tables.
 * core/model/export.h is the entry. */
#ifndef WG_CORE_FILE_HF_WRITE_H
#define WG_CORE_FILE_HF_WRITE_H

#include "core/file/hf.h"

/* *out: config.json of what `c` says, by the first model type of its family that can say it. type: of the matrices, for
 * torch_dtype. Sets what tensors are called by (c->fused and such). EUNSUPPORTED: no type can, or a rotary scaling that
 * cannot be told from its divisors. */
wg_status wg_hf_config_json(wg_hf_config *c, const char *path, int type, json_t **out, wg_error *err);

/* The number with the fewest digits that `as` (NULL: itself) makes the same f32 of as of v. */
double wg_hf_shortest(double v, double (*as)(double v, double with), double with);

/* *out: tokenizer.json of the keys tokenizer.* of w; NULL where it has no tokenizer. EUNSUPPORTED: what has no place in a
 * tokenizer.json that is read here, by its name. */
wg_status wg_hf_tokenizer_json(const wg_weights *w, json_t **out, wg_error *err);

/* Ids of the tokens that begin and end a text, as get_ids of hf_config.c reads them: of generation_config.json. */
json_t *wg_hf_ids_json(const wg_weights *w);
/* tokenizer_config.json: class, special tokens, chat templates. */
json_t *wg_hf_tokenizer_config_json(const wg_weights *w, int context);

enum { WG_HF_SHARD_BYTES = 5 }; /* GB of a shard, where nothing else is said */

/* Writes the folder `out`, which must not exist, or be empty: files go to a folder beside it, which gets the name when it is
 * whole. type: of the matrices, WG_F32, WG_F16 or WG_BF16, or -1: floats stay, others become f32; vectors stay, or become f32.
 * `check` checks the whole folder before it is renamed. Errors: EIO (the folder is there, a full disk), those of reading the
 * weights, and EUNSUPPORTED for a tensor that such folders have no name for. */
typedef wg_status wg_hf_check_fn(void *user, const char *folder, wg_error *err);
typedef struct wg_hf_write_options {
    int type;
    size_t shard_bytes; /* 0: WG_HF_SHARD_BYTES GB */
    wg_hf_check_fn *check;
    void *user;
} wg_hf_write_options;
wg_status wg_hf_write(const wg_weights *w, wg_hf_config *c, const char *out, const wg_hf_write_options *opt, wg_error *err);

#endif
