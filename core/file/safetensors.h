/* SPDX-License-Identifier: MIT
 * The header of a safetensors file: 8 bytes with its length, that many bytes of JSON (name -> dtype, shape, data_offsets), then
 * the data. hf_folder.c reads whole models; safetensors_write.h writes. */
#ifndef WG_CORE_FILE_SAFETENSORS_H
#define WG_CORE_FILE_SAFETENSORS_H

#include "core/file/weights.h"

enum { WG_SAFETENSORS_HEADER = 16 << 20 }; /* longest header: some hundred thousand tensors */

typedef struct wg_safetensor {
    char *name;           /* owned */
    char dtype[12];       /* "BF16" */
    int type;             /* wg_type; -1: of a dtype that weights do not have here */
    int n_dims;           /* at most WG_DIMS */
    int64_t dim[WG_DIMS]; /* the last is contiguous; unused dims are 1 */
    const uint8_t *data;  /* into the file, at any alignment */
    size_t bytes;
} wg_safetensor;

typedef struct wg_safetensors {
    wg_safetensor *tensor;
    size_t n;
} wg_safetensors;

/* Reads the header of n bytes in memory, which are borrowed; `path` stands in messages. EFORMAT: lengths, shapes and offsets
 * are checked, tensors must cover the data without gaps and overlaps. Allocates by the bytes read, never by a number in them.
 * */
wg_status wg_safetensors_read(wg_safetensors *out, const char *path, const void *bytes, size_t n, wg_error *err);
void wg_safetensors_free(wg_safetensors *s); /* of a zeroed one: nothing */

size_t wg_safetensors_dtype_bytes(const char *dtype); /* of an element; 0: there is no such dtype, or NULL */

#endif
