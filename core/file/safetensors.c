/* SPDX-License-Identifier: MIT
 * Format: https://huggingface.co/docs/safetensors. jansson builds the tree of the header; duplicate names are its errors. */
#include "core/file/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"

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

size_t wg_safetensors_dtype_bytes(const char *dtype)
{
    const struct dtype *kind = find_dtype(dtype);
    return kind ? kind->bytes : 0;
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
        if (strcmp(name, "__metadata__") != 0) WG_TRY(read_tensor(r, name, v, &s->tensor[s->n++]));
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
