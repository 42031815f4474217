/* SPDX-License-Identifier: MIT
 * Converts any weights file to GGUF, on request with a tokenizer that the file lacks and in another element type. One tensor
 * is in memory at a time. */
#ifndef WG_CORE_FILE_CONVERT_H
#define WG_CORE_FILE_CONVERT_H

#include "core/file/weights.h"

/* in: any format of wg_weights_open. tokenizer: a llama2.c tokenizer.bin that replaces that of `in`, or NULL. type: of all
 * weight matrices (WG_WRITABLE_TYPES; core/file/quantize.h says which tensors and rows keep theirs), or -1 to keep theirs.
 * Errors: those of opening and writing; EINVAL, EUNSUPPORTED (a type without a converter, naming the tensor); EFORMAT
 * (tokenizer, with the byte). */
wg_status wg_convert(const char *in, const char *tokenizer, const char *out, int type, wg_error *err);

/* The same for open weights, in their types. */
wg_status wg_convert_weights(const wg_weights *in, const char *tokenizer, const char *out, wg_error *err);

#endif
