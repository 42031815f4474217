/* SPDX-License-Identifier: MIT
 * Format: https://huggingface.co/docs/safetensors. jansson builds the tree of the header; duplicate names are its errors. */
#include "core/file/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/save.h"

#define METADATA "__metadata__"
#define AGAIN "the file is damaged: download it again"

/* All dtypes of whole bytes; those that are not weights here are refused by name when a model needs the tensor. */
static const struct dtype {
    const char *name;
    int type;
    size_t bytes;
} dtypes[] = {
    { "F32", WG_F32, 4 }, { "F16", WG_F16, 2 },     { "BF16", WG_BF16, 2 },   { "F64", -1, 8 },     { "BOOL", -1, 1 },
    { "U8", -1, 1 },      { "I8", -1, 1 },          { "U16", -1, 2 },         { "I16", -1, 2 },     { "U32", -1, 4 },
    { "I32", -1, 4 },     { "U64", -1, 8 },         { "I64", -1, 8 },         { "F8_E4M3", -1, 1 }, { "F8_E5M2", -1, 1 },
    { "C64", -1, 8 },     { "F8_E4M3FNUZ", -1, 1 }, { "F8_E5M2FNUZ", -1, 1 }, { "F8_E8M0", -1, 1 },
};

typedef struct reader {
    const char *path;
    const uint8_t *data; /* the bytes behind the header */
    size_t data_bytes;
    wg_error *err;
} reader;

static const struct dtype *find_dtype(const char *name)
{
    for (size_t i = 0; name && i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(dtypes[i].name, name) == 0) return &dtypes[i];
    return NULL;
}

static wg_status read_shape(const reader *r, const json_t *shape, size_t size, wg_safetensor *t)
{
    const size_t n = json_array_size(shape);
    if (!json_is_array(shape) || n > WG_DIMS)
        return wg_fail(r->err, WG_EFORMAT, "%s: tensor '%.80s': its shape is no list of up to %d integers; " AGAIN, r->path,
                       t->name, WG_DIMS);
    t->n_dims = (int)n;
    t->bytes = size;
    for (size_t d = 0; d < WG_DIMS; d++) t->dim[d] = 1;
    for (size_t d = 0; d < n; d++) {
        const json_t *v = json_array_get(shape, d);
        t->dim[d] = json_integer_value(v);
        if (!json_is_integer(v) || t->dim[d] < 0 || !wg_size_mul(t->bytes, (size_t)t->dim[d], &t->bytes))
            return wg_fail(r->err, WG_EFORMAT,
                           "%s: tensor '%.80s': dimension %zu of its shape is no integer from 0 on, or its bytes cannot be "
                           "addressed; " AGAIN,
                           r->path, t->name, d);
    }
    return WG_OK;
}

static wg_status read_offsets(const reader *r, const json_t *offsets, wg_safetensor *t)
{
    const json_t *b = json_array_get(offsets, 0), *e = json_array_get(offsets, 1);
    const json_int_t begin = json_integer_value(b), end = json_integer_value(e);
    if (json_array_size(offsets) != 2 || !json_is_integer(b) || !json_is_integer(e) || begin < 0 || end < begin)
        return wg_fail(r->err, WG_EFORMAT, "%s: tensor '%.80s': data_offsets are no two integers, beginning and end; " AGAIN,
                       r->path, t->name);
    if ((uint64_t)end > r->data_bytes)
        return wg_fail(r->err, WG_EFORMAT,
                       "%s: tensor '%.80s' ends at byte %" JSON_INTEGER_FORMAT " of the data, which has %zu; the file is "
                       "truncated: download it again",
                       r->path, t->name, end, r->data_bytes);
    if ((uint64_t)(end - begin) != t->bytes)
        return wg_fail(r->err, WG_EFORMAT,
                       "%s: tensor '%.80s' has %" JSON_INTEGER_FORMAT
                       " bytes by its offsets, %zu by its shape and dtype; " AGAIN,
                       r->path, t->name, end - begin, t->bytes);
    t->data = r->data + begin;
    return WG_OK;
}

static wg_status read_tensor(const reader *r, const char *name, const json_t *v, wg_safetensor *t)
{
    const char *dtype = json_string_value(json_object_get(v, "dtype"));
    const struct dtype *kind = find_dtype(dtype);
    t->name = wg_strdup(name);
    if (!t->name) return wg_nomem(r->err, strlen(name), "a tensor name");
    if (!dtype)
        return wg_fail(r->err, WG_EFORMAT, "%s: tensor '%.80s' has no dtype, shape and data_offsets; " AGAIN, r->path, name);
    if (!kind)
        return wg_fail(r->err, WG_EUNSUPPORTED,
                       "%s: tensor '%.80s' has the dtype %.40s, which is not read; expected F32, F16 or BF16", r->path, name,
                       dtype);
    memcpy(t->dtype, kind->name, strlen(kind->name) + 1);
    t->type = kind->type;
    WG_TRY(read_shape(r, json_object_get(v, "shape"), kind->bytes, t));
    return read_offsets(r, json_object_get(v, "data_offsets"), t);
}

static int by_place(const void *a, const void *b)
{
    const wg_safetensor *x = a, *y = b;
    if (x->data != y->data) return x->data < y->data ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* empty tensors first */
}

/* Tensors stand one after another, from the first byte of the data to the last. */
static wg_status check_cover(const reader *r, const wg_safetensors *s)
{
    const uint8_t *at = r->data;
    for (size_t i = 0; i < s->n; at += s->tensor[i++].bytes)
        if (s->tensor[i].data != at)
            return wg_fail(r->err, WG_EFORMAT,
                           "%s: tensor '%.80s' begins at byte %zu of the data; expected %zu: tensors must "
                           "follow each other without %s; " AGAIN,
                           r->path, s->tensor[i].name, (size_t)(s->tensor[i].data - r->data), (size_t)(at - r->data),
                           s->tensor[i].data < at ? "overlapping" : "gaps");
    if (at != r->data + r->data_bytes)
        return wg_fail(r->err, WG_EFORMAT, "%s: %zu bytes behind the last tensor; " AGAIN, r->path,
                       (size_t)(r->data + r->data_bytes - at));
    return WG_OK;
}

static wg_status read_all(const reader *r, json_t *root, wg_safetensors *s)
{
    const char *name;
    json_t *v;
    if (!json_is_object(root)) return wg_fail(r->err, WG_EFORMAT, "%s: the header is no JSON object; " AGAIN, r->path);
    s->tensor = wg_calloc(json_object_size(root), sizeof *s->tensor);
    if (!s->tensor) return wg_nomem(r->err, json_object_size(root) * sizeof *s->tensor, "a list of tensors");
    json_object_foreach(root, name, v) {
        if (strcmp(name, METADATA) != 0) WG_TRY(read_tensor(r, name, v, &s->tensor[s->n++]));
    }
    if (s->n > 1) qsort(s->tensor, s->n, sizeof *s->tensor, by_place);
    return check_cover(r, s);
}

wg_status wg_safetensors_read(wg_safetensors *out, const char *path, const void *bytes, size_t n, wg_error *err)
{
    uint64_t header = 0;
    wg_json *doc;
    if (n >= sizeof header) memcpy(&header, bytes, sizeof header);
    if (n < sizeof header || header < 2 || header > n - sizeof header)
        return wg_fail(err, WG_EFORMAT,
                       "%s: a header of %" PRIu64
                       " bytes in a file of %zu: it is no safetensors file, or a damaged one: download it again",
                       path, header, n);
    if (header > WG_SAFETENSORS_HEADER)
        return wg_fail(err, WG_EFORMAT, "%s: a header of %" PRIu64 " bytes; at most %d are read", path, header,
                       WG_SAFETENSORS_HEADER);
    const char *text = (const char *)bytes + sizeof header;
    WG_TRY(wg_json_parse_foreign(&doc, path, text, (size_t)header, err));
    const reader r = { path, (const uint8_t *)text + header, n - sizeof header - (size_t)header, err };
    wg_safetensors s = { 0 };
    const wg_status status = read_all(&r, wg_json_root(doc), &s);
    wg_json_close(doc);
    if (status) wg_safetensors_free(&s);
    else *out = s;
    return status;
}

void wg_safetensors_free(wg_safetensors *s)
{
    for (size_t i = 0; i < s->n; i++) wg_free(s->tensor[i].name);
    wg_free(s->tensor);
    *s = (wg_safetensors){ 0 };
}

/* ---- writing: the header is padded with spaces, so that the data begin at a multiple of eight bytes */

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
    const struct dtype *kind = find_dtype(e->dtype);
    size_t bytes = kind ? kind->bytes : 0, sum = (size_t)begin;
    if (!e->name || !*e->name || strcmp(e->name, METADATA) == 0)
        return wg_fail(err, WG_EINVAL, "%s: '%s' cannot be the name of a tensor", w->path, e->name ? e->name : "");
    if (!kind)
        return wg_fail(err, WG_EINVAL, "%s: tensor '%.80s': there is no dtype '%.40s' in safetensors files", w->path, e->name,
                       e->dtype ? e->dtype : "");
    bool fits = e->n_dims >= 0 && e->n_dims <= WG_DIMS;
    for (int d = 0; fits && d < e->n_dims; d++) fits = e->dim[d] >= 0 && wg_size_mul(bytes, (size_t)e->dim[d], &bytes);
    if (!fits || !wg_size_add(sum, bytes, &sum) || sum > INT64_MAX)
        return wg_fail(err, WG_EINVAL,
                       "%s: tensor '%.80s' cannot be written with this shape: expected at most %d dimensions "
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
