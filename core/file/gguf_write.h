/* SPDX-License-Identifier: MIT
 * Writing GGUF v3: metadata first, then tensor headers, then data in the same order. The file appears under its name only
 * when it is complete (core/base/save.h). */
#ifndef WG_CORE_FILE_GGUF_WRITE_H
#define WG_CORE_FILE_GGUF_WRITE_H

#include "core/file/weights.h"

typedef struct wg_gguf_writer wg_gguf_writer;

/* Setters never fail at once: the first failure (out of memory, bad name, duplicate key) is kept and returned by finish.
 * Without a path there is no file, only a head. */
wg_status wg_gguf_writer_open(wg_gguf_writer **out, const char *path, wg_error *err);
void wg_gguf_set_u32(wg_gguf_writer *g, const char *key, uint32_t v);
void wg_gguf_set_f32(wg_gguf_writer *g, const char *key, float v);
void wg_gguf_set_bool(wg_gguf_writer *g, const char *key, bool v);
void wg_gguf_set_string(wg_gguf_writer *g, const char *key, const char *s, size_t n);
void wg_gguf_set_strings(wg_gguf_writer *g, const char *key, const wg_text *s, size_t n);
void wg_gguf_set_f32s(wg_gguf_writer *g, const char *key, const float *v, size_t n);
void wg_gguf_set_f64s(wg_gguf_writer *g, const char *key, const double *v, size_t n);
void wg_gguf_set_i32s(wg_gguf_writer *g, const char *key, const int32_t *v, size_t n);
void wg_gguf_set_bools(wg_gguf_writer *g, const char *key, const bool *v, size_t n);
/* Copies one key of another file unchanged, of any type. */
void wg_gguf_copy_meta(wg_gguf_writer *g, const wg_weights *from, int i);

/* Produces the bytes of a tensor when its turn comes: fills dst with t->bytes bytes. t->data is NULL. */
typedef wg_status wg_gguf_fill_fn(void *user, const wg_tensor *t, void *dst, wg_error *err);
/* Declares a tensor; name, type and dims of *t are copied, bytes are computed. The fill function is called in finish. */
void wg_gguf_add(wg_gguf_writer *g, const wg_tensor *t, wg_gguf_fill_fn *fill, void *user);

/* The value of general.file_type for a file whose matrices have this type (informative). */
uint32_t wg_gguf_file_type(int type);

/* Writes everything and closes the writer, also on failure (then nothing is left behind, not even the temporary file). */
wg_status wg_gguf_writer_finish(wg_gguf_writer *g, wg_error *err);
/* The n bytes of the file before its first tensor (the caller's to free), and how many there are in all. Closes the writer,
 * also on failure; no fill function is called. */
wg_status wg_gguf_writer_head(wg_gguf_writer *g, void **head, size_t *n, size_t *whole, wg_error *err);
void wg_gguf_writer_abort(wg_gguf_writer *g); /* NULL is fine */

#endif
