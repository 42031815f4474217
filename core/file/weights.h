/* SPDX-License-Identifier: MIT
 * A weights file as the rest of the program reads it: metadata and tensors by name, read-only, the same for every format
 * (GGUF v2/v3, llama2.c v0, Hugging Face folders with safetensors). Every count, length and offset is checked against the file
 * before it is used, and no memory is allocated for a size that the file claims but does not have. */
#ifndef WG_CORE_FILE_WEIGHTS_H
#define WG_CORE_FILE_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/error.h"
#include "kernels/types.h"

enum { WG_DIMS = 4 };

typedef struct wg_tensor {
    const char *name;
    int type; /* wg_type */
    int n_dims;
    int64_t dim[WG_DIMS]; /* dim[0] is contiguous; unused dims are 1. A linear layer is {n_in, n_out} */
    size_t bytes;
    const void *data; /* into the mapping: see wg_weights_need. NULL in a file opened for its header alone */
} wg_tensor;

typedef struct wg_weights wg_weights; /* read-only after open; may be shared between threads */

/* Opens a file of any known format, a Hugging Face folder, or by name a model without a file (core/file/synth.h). Errors:
 * ENOENT, EIO, EFORMAT (what, where in the file, what was expected). */
wg_status wg_weights_open(wg_weights **out, const char *path, wg_error *err);
/* The same over bytes in memory, which are borrowed until close (fuzzing, tests); `name` stands for the path. */
wg_status wg_weights_open_memory(wg_weights **out, const char *name, const void *bytes, size_t n, wg_error *err);
void wg_weights_close(wg_weights *w); /* NULL is fine */

const char *wg_weights_path(const wg_weights *w);
const char *wg_weights_format(const wg_weights *w); /* "GGUF v3" */
bool wg_weights_is_folder(const wg_weights *w);     /* of Hugging Face: its keys are made of the files in it */
size_t wg_weights_file_bytes(const wg_weights *w);

int wg_weights_count(const wg_weights *w);
const wg_tensor *wg_weights_at(const wg_weights *w, int i);              /* in file order */
const wg_tensor *wg_weights_find(const wg_weights *w, const char *name); /* hashed; NULL if absent */

/* Must be called before the bytes of a tensor are read: it makes those that no file holds in this form (ENOMEM). */
wg_status wg_weights_need(const wg_weights *w, const wg_tensor *t, wg_error *err);
bool wg_weights_made(const wg_weights *w,
                     uint64_t *seed); /* true for a model without a file; *seed: its seed (seed may be NULL) */

/* Tells the system that the bytes of this tensor will be needed soon: it reads them from the disk in the meantime. */
void wg_weights_ahead(const wg_weights *w, const wg_tensor *t);
/* Tells the system that the pages of this tensor will not be read again (after repacking). */
void wg_weights_release(const wg_weights *w, const wg_tensor *t);

/* ---- metadata. Getters return false when the key is absent or of another kind; *out is then untouched. */
typedef enum wg_meta_kind { WG_META_INT, WG_META_FLOAT, WG_META_BOOL, WG_META_STRING, WG_META_ARRAY } wg_meta_kind;
typedef struct wg_text {
    const char *s;
    size_t n;
} wg_text; /* bytes, not NUL-terminated, may hold NUL */
/* By their bytes, a beginning of another first: < 0, 0, > 0. */
static inline int wg_text_order(wg_text a, wg_text b)
{
    const int order = memcmp(a.s, b.s, a.n < b.n ? a.n : b.n);
    return order ? order : (a.n > b.n) - (a.n < b.n);
}
static inline bool wg_text_is(wg_text t, const char *s) { return t.n == strlen(s) && memcmp(t.s, s, t.n) == 0; }

bool wg_meta_int(const wg_weights *w, const char *key, int64_t *out);  /* any integer type */
bool wg_meta_float(const wg_weights *w, const char *key, double *out); /* any number */
bool wg_meta_bool(const wg_weights *w, const char *key, bool *out);
bool wg_meta_string(const wg_weights *w, const char *key, wg_text *out);
/* An array's length, or -1; `kind` of its elements. Elements by index (arrays are indexed at open: each is O(1)). */
int64_t wg_meta_array(const wg_weights *w, const char *key, wg_meta_kind *kind);
bool wg_meta_array_int(const wg_weights *w, const char *key, int64_t i, int64_t *out); /* of bools: 0 and 1 */
bool wg_meta_array_float(const wg_weights *w, const char *key, int64_t i, double *out);
bool wg_meta_array_string(const wg_weights *w, const char *key, int64_t i, wg_text *out);

/* Walking all keys in file order (inspect, convert). */
int wg_meta_count(const wg_weights *w);
const char *wg_meta_key(const wg_weights *w, int i);
wg_meta_kind wg_meta_kind_of(const wg_weights *w, int i);

#endif
