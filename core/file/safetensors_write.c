/* SPDX-License-Identifier: MIT
 * Format: https://huggingface.co/docs/safetensors. The header is padded with spaces, so that the data begin at a multiple of
 * eight bytes. */
#include "core/file/safetensors_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/save.h"
#include "core/file/safetensors.h"

#define METADATA "__metadata__"

typedef struct extent {
    char *name;
    uint64_t end; /* in the data */
} extent;

struct wg_safetensors_writer {
    wg_save *file;
    char *path;
    extent *tensor; /* (n) in the order of the data */
    int n;
    uint64_t all, written; /* bytes of the data */
};

/* Checks a row of the list as the reader would, and sets the end of its bytes. */
static wg_status place(wg_safetensors_writer *w, const wg_safetensors_entry *e, uint64_t begin, uint64_t *end, wg_error *err)
{
    size_t bytes = wg_safetensors_dtype_bytes(e->dtype), sum = (size_t)begin;
    if (!e->name || !*e->name || strcmp(e->name, METADATA) == 0)
        return wg_fail(err, WG_EINVAL, "%s: '%s' cannot be the name of a tensor", w->path, e->name ? e->name : "");
    if (bytes == 0)
        return wg_fail(err, WG_EINVAL, "%s: tensor '%.80s': there is no dtype '%.40s' in safetensors files", w->path, e->name,
                       e->dtype ? e->dtype : "");
    bool fits = e->n_dims >= 0 && e->n_dims <= WG_DIMS;
    for (int d = 0; fits && d < e->n_dims; d++) fits = e->dim[d] >= 0 && wg_size_mul(bytes, (size_t)e->dim[d], &bytes);
    if (!fits || !wg_size_add(sum, bytes, &sum) || sum > INT64_MAX)
        return wg_fail(err, WG_EINVAL, "%s: tensor '%.80s' cannot be written with this shape: expected at most %d dimensions "
                                       "from 0 on, and bytes that can be addressed",
                       w->path, e->name, WG_DIMS);
    *end = sum;
    return WG_OK;
}

/* The header's entry of a tensor; NULL: out of memory. */
static json_t *describe(const wg_safetensors_entry *e, uint64_t begin, uint64_t end)
{
    json_t *shape = json_array();
    for (int d = 0; d < e->n_dims; d++)
        if (json_array_append_new(shape, json_integer(e->dim[d]))) {
            json_decref(shape);
            return NULL;
        }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", e->dtype, "shape", shape, "data_offsets", (json_int_t)begin,
                     (json_int_t)end);
}

static wg_status check_metadata(const wg_safetensors_writer *w, const json_t *metadata, wg_error *err)
{
    const char *key;
    json_t *v;
    bool strings = json_is_object(metadata);
    json_object_foreach((json_t *)(uintptr_t)metadata, key, v) strings = strings && json_is_string(v);
    if (strings) return WG_OK;
    return wg_fail(err, WG_EINVAL, "%s: metadata of a safetensors file must be an object of strings", w->path);
}

static wg_status list_tensors(wg_safetensors_writer *w, const wg_safetensors_entry *entry, json_t *header, wg_error *err)
{
    for (int i = 0; i < w->n; i++) {
        uint64_t end = 0;
        WG_TRY(place(w, &entry[i], w->all, &end, err));
        if (json_object_get(header, entry[i].name))
            return wg_fail(err, WG_EINVAL, "%s: tensor '%.80s' is listed twice", w->path, entry[i].name);
        w->tensor[i] = (extent){ wg_strdup(entry[i].name), end };
        if (!w->tensor[i].name) return wg_nomem(err, strlen(entry[i].name), "a tensor name");
        json_t *row = describe(&entry[i], w->all, end);
        if (!row) return wg_nomem(err, 256, "the header of a safetensors file");
        if (json_object_set_new(header, entry[i].name, row))
            return wg_fail(err, WG_EINVAL, "%s: the name of tensor %d of %d is not UTF-8", w->path, i + 1, w->n);
        w->all = end;
    }
    return WG_OK;
}

static wg_status write_header(wg_safetensors_writer *w, const json_t *header, wg_error *err)
{
    static const char spaces[8] = "        ";
    char *text = json_dumps(header, JSON_COMPACT);
    if (!text) return wg_nomem(err, (size_t)w->n * 64, "the header of a safetensors file");
    const size_t n = strlen(text), padding = (8 - n % 8) % 8;
    const uint64_t length = n + padding;
    wg_status s = WG_OK;
    if (length > WG_SAFETENSORS_HEADER)
        s = wg_fail(err, WG_EINVAL, "%s: a header of %" PRIu64 " bytes for %d tensors; at most %d are read", w->path, length,
                    w->n, WG_SAFETENSORS_HEADER);
    if (s == WG_OK) s = wg_save_open(&w->file, w->path, err);
    if (s == WG_OK) s = wg_save_write(w->file, &length, sizeof length, err);
    if (s == WG_OK) s = wg_save_write(w->file, text, n, err);
    if (s == WG_OK) s = wg_save_write(w->file, spaces, padding, err);
    free(text);
    return s;
}

static wg_status begin(wg_safetensors_writer *w, const wg_safetensors_entry *entry, const json_t *metadata, wg_error *err)
{
    json_t *header = json_object();
    wg_status s = header ? WG_OK : wg_nomem(err, 1, "the header of a safetensors file");
    if (s == WG_OK && metadata) s = check_metadata(w, metadata, err);
    if (s == WG_OK && metadata && json_object_set(header, METADATA, (json_t *)(uintptr_t)metadata))
        s = wg_nomem(err, 1, "the header of a safetensors file");
    if (s == WG_OK) s = list_tensors(w, entry, header, err);
    if (s == WG_OK) s = write_header(w, header, err);
    json_decref(header);
    return s;
}

wg_safetensors_writer *wg_safetensors_create(const char *path, const wg_safetensors_entry *entry, int n, const json_t *metadata,
                                             wg_error *err)
{
    wg_safetensors_writer *w = wg_calloc(1, sizeof *w);
    if (w) {
        w->n = n;
        w->path = wg_strdup(path);
        w->tensor = wg_calloc((size_t)n, sizeof *w->tensor);
    }
    const wg_status s = w && w->path && w->tensor ? begin(w, entry, metadata, err)
                                                  : wg_nomem(err, (size_t)n * sizeof *w->tensor, "a list of tensors");
    if (s == WG_OK) return w;
    wg_safetensors_abandon(w);
    return NULL;
}

wg_status wg_safetensors_write(wg_safetensors_writer *w, const void *data, size_t size, wg_error *err)
{
    if (size > w->all - w->written)
        return wg_fail(err, WG_EINVAL, "%s: %" PRIu64 " bytes of data, and %zu more, are too many: its tensors have %" PRIu64,
                       w->path, w->written, size, w->all);
    WG_TRY(wg_save_write(w->file, data, size, err));
    w->written += size;
    return WG_OK;
}

wg_status wg_safetensors_finish(wg_safetensors_writer *w, wg_error *err)
{
    wg_status s = WG_OK;
    for (int i = 0; i < w->n && s == WG_OK; i++)
        if (w->written < w->tensor[i].end)
            s = wg_fail(err, WG_EINVAL, "%s: tensor '%.80s' was not written whole: %" PRIu64 " bytes of its data are missing",
                        w->path, w->tensor[i].name, w->tensor[i].end - w->written);
    if (s == WG_OK) {
        s = wg_save_commit(w->file, err);
        w->file = NULL;
    }
    wg_safetensors_abandon(w);
    return s;
}

void wg_safetensors_abandon(wg_safetensors_writer *w)
{
    if (!w) return;
    wg_save_abort(w->file);
    for (int i = 0; w->tensor && i < w->n; i++) wg_free(w->tensor[i].name);
    wg_free(w->tensor);
    wg_free(w->path);
    wg_free(w);
}
