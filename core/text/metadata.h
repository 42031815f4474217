/* SPDX-License-Identifier: MIT
 * Typed access to the tokenizer's metadata, with messages that name the value found instead. */
#ifndef WG_CORE_TEXT_METADATA_H
#define WG_CORE_TEXT_METADATA_H

#include "core/base/error.h"
#include "core/file/weights.h"

#define WG_KEY(name) "tokenizer.ggml." name

/* Required keys. Errors: EMODEL "FILE: KEY is missing (or: an integer, ...), expected an array of strings; ...". */
wg_status wg_key_string(const wg_weights *w, const char *key, wg_text *out, wg_error *err);
wg_status wg_key_array(const wg_weights *w, const char *key, wg_meta_kind of, int64_t *n, wg_error *err);

bool wg_key_present(const wg_weights *w, const char *key);

/* Optional keys: *out is untouched when the key is absent; a value of another kind is EMODEL. */
wg_status wg_key_bool(const wg_weights *w, const char *key, bool *out, wg_error *err);
/* A list of strings, in one block that is to be freed with wg_free; NULL and 0 when the key is absent. ENOMEM too. */
wg_status wg_key_words(const wg_weights *w, const char *key, wg_text **out, size_t *n, wg_error *err);
/* Token ids in 0..n-1, at most `most` (EUNSUPPORTED: more); *n_out 0 when the key is absent. */
wg_status wg_key_ids(const wg_weights *w, const char *key, int n, int32_t *out, int most, int *n_out, wg_error *err);
/* A token id in 0..n-1. */
wg_status wg_key_id(const wg_weights *w, const char *key, int n, int32_t *out, wg_error *err);

#endif
