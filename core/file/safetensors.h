/* SPDX-License-Identifier: MIT
 * The header of a safetensors file: 8 bytes with its length, that many bytes of JSON (name -> dtype, shape, data_offsets), then
 * the data. hf_folder.c reads whole models. */
#ifndef WG_CORE_FILE_SAFETENSORS_H
#define WG_CORE_FILE_SAFETENSORS_H

#include <jansson.h>

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

/* ---- writing: the header from a list of names, dtypes and shapes, then the bytes of the tensors in that order, in pieces of
 * any size. Memory holds the header, never a tensor. The file appears under its name when it is whole. */

typedef struct wg_safetensors_entry {
    const char *name;     /* UTF-8, not empty */
    const char *dtype;    /* "F32", "BF16", "I64", ...: those that are read */
    int n_dims;           /* 0..WG_DIMS */
    int64_t dim[WG_DIMS]; /* the last is contiguous, as in the file; those behind n_dims are not read */
} wg_safetensors_entry;

typedef struct wg_safetensors_writer wg_safetensors_writer;

/* Begins the file at `path` with its header. entry: (n), copied. metadata: an object of strings (the file's __metadata__),
 * borrowed; NULL: none. NULL on failure: EINVAL (a name, dtype or shape that a reader would refuse; a header longer than
 * WG_SAFETENSORS_HEADER), EIO, ENOENT, ENOMEM. */
wg_safetensors_writer *wg_safetensors_create(const char *path, const wg_safetensors_entry *entry, int n, const json_t *metadata,
                                             wg_error *err);

/* Appends `size` bytes of the data: of the first tensor, then of the second ... After a failure (EIO, or EINVAL: more bytes
 * than the tensors have) only abandon may follow. */
wg_status wg_safetensors_write(wg_safetensors_writer *w, const void *data, size_t size, wg_error *err);

/* Puts the file in place (core/base/save.h). Frees w, also on failure: EINVAL where bytes of a tensor are missing (nothing is
 * written then), EIO. */
wg_status wg_safetensors_finish(wg_safetensors_writer *w, wg_error *err);
void wg_safetensors_abandon(wg_safetensors_writer *w); /* leaves no file, or the old one; NULL is fine */

#endif
