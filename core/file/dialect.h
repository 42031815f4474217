/* SPDX-License-Identifier: MIT
 * Files that draft for another model (EAGLE, Medusa, layers for multi-token prediction, ...), recognised by their tensors:
 * their config files often name the class of an ordinary model, or another drafter's. */
#ifndef WG_CORE_FILE_DIALECT_H
#define WG_CORE_FILE_DIALECT_H

#include "core/file/weights.h"

/* A tensor as a file lists it; dim[0] is the slowest in safetensors, the contiguous one in GGUF files. */
typedef struct wg_listed_tensor {
    char *name, *type; /* "F16" as in safetensors, "f16" of GGUF files */
    int n_dims;
    int64_t dim[WG_DIMS];
    size_t bytes;
} wg_listed_tensor;

typedef struct wg_tensor_list {
    wg_listed_tensor *tensor;
    size_t n, room, files;
    size_t bytes; /* of the files */
} wg_tensor_list;

typedef struct wg_dialect {
    const char *name; /* "eagle-3" */
    const char *doc;
    const char *drafter; /* that runs some folders of it (head_file.h says which); NULL: there is none */
    bool gguf;           /* and GGUF files of it */
} wg_dialect;

/* The tensors of a safetensors file, or of all such files of a folder; only headers are read. Errors: ENOENT (none there),
 * EIO, EFORMAT, ENOMEM. */
wg_status wg_tensor_list_read(wg_tensor_list *out, const char *path, wg_error *err);
/* Lists the tensors of an open file. ENOMEM. */
wg_status wg_tensor_list_of(wg_tensor_list *out, const wg_weights *w, wg_error *err);
void wg_tensor_list_free(wg_tensor_list *list); /* a zeroed one is fine */

/* The dialect of a drafter with these tensors; NULL: none. *whole: they are extra layers of a complete model, which drafts for
 * itself. */
const wg_dialect *wg_dialect_of(const wg_tensor_list *list, bool *whole);
/* All dialects, ending with a row whose name is NULL. */
const wg_dialect *wg_dialects(void);

/* The error for a file or folder that could not be opened or read as a model: `status` with `err`, or EUNSUPPORTED, which names
 * the kind of drafter that it is. */
wg_status wg_dialect_refuse(const char *path, wg_status status, wg_error *err);
wg_status wg_dialect_refuse_open(const wg_weights *w, wg_status status, wg_error *err);

#endif
