/* SPDX-License-Identifier: MIT
 * A tokenizer.json without a model, opened as a weights file with metadata and no tensors, so that the same code reads both. */
#ifndef WG_CORE_FILE_TOKENIZER_FILE_H
#define WG_CORE_FILE_TOKENIZER_FILE_H

#include "core/file/weights.h"

/* A *.json: a tokenizer. The file does not say which tokens begin and end a text: they are <s> and </s>, else <|endoftext|>
 * ends one, where there are such tokens. Any other path: wg_weights_open. Errors: ENOENT, EIO, EFORMAT, EMODEL, EUNSUPPORTED.
 * */
wg_status wg_tokenizer_file_open(wg_weights **out, const char *path, wg_error *err);

#endif
