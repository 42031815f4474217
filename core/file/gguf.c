/* SPDX-License-Identifier: MIT
 * Reading GGUF (v2 and v3): header, metadata, tensor list, padding, tensor data.
 *
 * Rules, in the order they are checked. A length is compared with the bytes left before anything is read or allocated, and
 * tables grow by what was read, so a lying count costs nothing. Keys: ASCII, 1..65535 bytes, unique. Values: known types,
 * bools 0 or 1, no arrays in arrays. general.alignment: u32, a power of two >= 8. Tensors: unique names of 1..63 bytes,
 * at most 4 dims, all >= 1, dims[0] whole blocks, a type this program can size. Offsets: each tensor begins where the one
 * before it ends, padded to the alignment; the last one ends within the file. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/file/format.h"

enum { KEY_MAX = 65535, NAME_MAX_BYTES = 63 };

#define AGAIN "download or copy the file again"

typedef struct reader {
    wg_weights *w;
    const char *section; /* "header", "metadata", "tensor list", "tensor data" */
    size_t at;
    uint32_t version;
    uint64_t n_tensors, n_meta;
    wg_error *err;
} reader;

/* "path: GGUF section, byte N: what" */
__attribute__((format(printf, 4, 5))) static wg_status refuse(const reader *r, wg_status code, size_t at, const char *fmt, ...)
{
    char what[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return wg_fail(r->err, code, "%s: GGUF %s, byte %zu: %s", r->w->path, r->section, at, what);
}

static size_t left(const reader *r) { return r->w->bytes - r->at; }

static wg_status truncated(const reader *r, const char *what, uint64_t need)
{
    refuse(r, WG_EFORMAT, r->at, "%s needs %" PRIu64 " bytes, but the file ends after %zu; it is truncated or damaged: " AGAIN,
           what, need, left(r));
    return WG_EFORMAT; /* plain to the optimiser: what was to be read is not */
}

/* Copies n bytes of the file to dst. */
static wg_status take(reader *r, const char *what, void *dst, size_t n)
{
    if (n > left(r)) return truncated(r, what, n);
    memcpy(dst, r->w->base + r->at, n);
    r->at += n;
    return WG_OK;
}

/* A string's bytes, in place; r->at moves behind it. */
static wg_status take_string(reader *r, const char *what, const uint8_t **s, uint64_t *n)
{
    WG_TRY(take(r, what, n, sizeof *n));
    if (*n > left(r)) return truncated(r, what, *n);
    *s = r->w->base + r->at;
    r->at += (size_t)*n;
    return WG_OK;
}

/* ---- header ------------------------------------------------------------------------------------------------------ */

static wg_status read_header(reader *r)
{
    uint8_t magic[4];
    r->section = "header";
    WG_TRY(take(r, "the magic", magic, sizeof magic));
    WG_TRY(take(r, "the version", &r->version, sizeof r->version));
    if (r->version != 0 && (r->version & 0xFFFF) == 0)
        return refuse(r, WG_EUNSUPPORTED, 4,
                      "version 0x%08" PRIx32 ": the file is big-endian; convert it to little-endian "
                      "(gguf_convert_endian.py)",
                      r->version);
    if (r->version != 2 && r->version != 3)
        return refuse(r, WG_EUNSUPPORTED, 4,
                      "version %" PRIu32 "; versions 2 and 3 are read: convert the model again with a current tool",
                      r->version);
    WG_TRY(take(r, "the tensor count", &r->n_tensors, sizeof r->n_tensors));
    WG_TRY(take(r, "the metadata count", &r->n_meta, sizeof r->n_meta));
    /* the smallest entry: key length, key of one byte, type, one byte; name length, one byte, dims, type, offset */
    if (r->n_meta > left(r) / (8 + 1 + 4 + 1))
        return refuse(r, WG_EFORMAT, 16,
                      "%" PRIu64 " metadata entries cannot fit into the %zu bytes that follow; the file is truncated or "
                      "damaged: " AGAIN,
                      r->n_meta, left(r));
    if (r->n_tensors > left(r) / (8 + 1 + 4 + 4 + 8))
        return refuse(r, WG_EFORMAT, 8,
                      "%" PRIu64 " tensors cannot fit into the %zu bytes that follow; the file is truncated or damaged: " AGAIN,
                      r->n_tensors, left(r));
    snprintf(r->w->format, sizeof r->w->format, "GGUF v%" PRIu32, r->version);
    return WG_OK;
}

/* ---- metadata ---------------------------------------------------------------------------------------------------- */

static wg_status read_key(reader *r, uint64_t i, char **key)
{
    const size_t at = r->at;
    const uint8_t *s;
    uint64_t n;
    char what[64];
    snprintf(what, sizeof what, "key %" PRIu64 " of %" PRIu64, i + 1, r->n_meta);
    WG_TRY(take_string(r, what, &s, &n));
    if (n == 0 || n > KEY_MAX)
        return refuse(r, WG_EFORMAT, at, "%s is %" PRIu64 " bytes long; expected 1..%d; the file is damaged: " AGAIN, what, n,
                      KEY_MAX);
    for (uint64_t j = 0; j < n; j++)
        if (s[j] < 0x20 || s[j] > 0x7E)
            return refuse(r, WG_EFORMAT, at + 8 + (size_t)j,
                          "%s holds the byte 0x%02x; keys are printable ASCII; the file is damaged: " AGAIN, what, s[j]);
    *key = wg_strndup((const char *)s, (size_t)n);
    return *key ? WG_OK : wg_nomem(r->err, (size_t)n, "a metadata key");
}

static wg_status check_bools(reader *r, const wg_meta *m)
{
    for (size_t i = 0; i < m->bytes; i++)
        if (m->value[i] > 1)
            return refuse(r, WG_EFORMAT, (size_t)(m->value - r->w->base) + i,
                          "key '%.80s' is a bool with the value %d; expected 0 or 1; the file is damaged: " AGAIN, m->key,
                          m->value[i]);
    return WG_OK;
}

/* Scans the strings once to check them, then allocates the index for their number. */
static wg_status read_strings(reader *r, wg_meta *m)
{
    const size_t begin = r->at;
    const uint8_t *s;
    uint64_t n;
    char what[160];
    for (uint64_t i = 0; i < m->count; i++) {
        snprintf(what, sizeof what, "string %" PRIu64 " of %" PRIu64 " of key '%.80s'", i + 1, m->count, m->key);
        WG_TRY(take_string(r, what, &s, &n));
    }
    m->bytes = r->at - begin;
    m->start = wg_alloc((size_t)m->count, sizeof *m->start);
    if (!m->start) return wg_nomem(r->err, (size_t)m->count * sizeof *m->start, "the index of an array of strings");
    r->at = begin;
    for (uint64_t i = 0; i < m->count; i++) {
        m->start[i] = r->at - begin;
        WG_TRY(take_string(r, what, &s, &n));
    }
    return WG_OK;
}

static wg_status read_array(reader *r, wg_meta *m)
{
    const size_t at = r->at;
    uint32_t element;
    char what[128];
    snprintf(what, sizeof what, "the array of key '%.80s'", m->key);
    WG_TRY(take(r, what, &element, sizeof element));
    if (element == GGUF_ARRAY)
        return refuse(r, WG_EUNSUPPORTED, at, "key '%.80s' is an array of arrays, which no reader accepts; remove the key",
                      m->key);
    if (element >= GGUF_VALUES)
        return refuse(r, WG_EFORMAT, at,
                      "key '%.80s' is an array of type %" PRIu32 "; expected 0..%d; the file is damaged or newer than this "
                      "program: " AGAIN ", or update",
                      m->key, element, GGUF_VALUES - 1);
    WG_TRY(take(r, what, &m->count, sizeof m->count));
    m->element = (int)element;
    m->value = r->w->base + r->at;
    const size_t least = element == GGUF_STRING ? 8 : wg_gguf_value_size[element];
    if (m->count > left(r) / least)
        return refuse(r, WG_EFORMAT, r->at - 8,
                      "key '%.80s' claims %" PRIu64 " elements of at least %zu bytes, but the file ends after %zu bytes; it "
                      "is truncated or damaged: " AGAIN,
                      m->key, m->count, least, left(r));
    if (element == GGUF_STRING) return read_strings(r, m);
    m->bytes = (size_t)m->count * least;
    r->at += m->bytes;
    return element == GGUF_BOOL ? check_bools(r, m) : WG_OK;
}

static wg_status read_value(reader *r, wg_meta *m)
{
    const size_t at = r->at;
    uint32_t type;
    char what[128];
    snprintf(what, sizeof what, "the value of key '%.80s'", m->key);
    WG_TRY(take(r, what, &type, sizeof type));
    if (type >= GGUF_VALUES)
        return refuse(r, WG_EFORMAT, at,
                      "key '%.80s' has the value type %" PRIu32 "; expected 0..%d; the file is damaged or newer than this "
                      "program: " AGAIN ", or update",
                      m->key, type, GGUF_VALUES - 1);
    m->type = (int)type;
    if (type == GGUF_ARRAY) return read_array(r, m);
    if (type == GGUF_STRING) {
        uint64_t n;
        WG_TRY(take_string(r, what, &m->value, &n));
        m->bytes = (size_t)n;
        return WG_OK;
    }
    m->bytes = wg_gguf_value_size[type];
    if (m->bytes > left(r)) return truncated(r, what, m->bytes);
    m->value = r->w->base + r->at;
    r->at += m->bytes;
    return type == GGUF_BOOL ? check_bools(r, m) : WG_OK;
}

static wg_status read_metadata(reader *r)
{
    r->section = "metadata";
    for (uint64_t i = 0; i < r->n_meta; i++) {
        char *key;
        WG_TRY(read_key(r, i, &key));
        wg_meta *m = wg_weights_add_meta(r->w, key);
        if (!m) return wg_nomem(r->err, sizeof *m, "metadata");
        WG_TRY(read_value(r, m));
    }
    return WG_OK;
}

static wg_status read_alignment(reader *r, size_t *alignment)
{
    *alignment = 32;
    for (int i = 0; i < r->w->n_meta; i++) {
        const wg_meta *m = &r->w->meta[i];
        if (strcmp(m->key, "general.alignment") != 0) continue;
        const size_t at = (size_t)(m->value - r->w->base);
        uint32_t a;
        if (m->type != GGUF_U32)
            return refuse(r, WG_EFORMAT, at,
                          "general.alignment has the value type %d; expected 4 (u32); convert the model again", m->type);
        memcpy(&a, m->value, sizeof a);
        if (a < 8 || (a & (a - 1)) != 0)
            return refuse(r, WG_EFORMAT, at,
                          "general.alignment is %" PRIu32 "; expected a power of two, 8 or more; convert the model again", a);
        *alignment = a;
    }
    return WG_OK;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static wg_status read_name(reader *r, uint64_t i, char **name)
{
    const size_t at = r->at;
    const uint8_t *s;
    uint64_t n;
    char what[80];
    snprintf(what, sizeof what, "the name of tensor %" PRIu64 " of %" PRIu64, i + 1, r->n_tensors);
    WG_TRY(take_string(r, what, &s, &n));
    if (n == 0 || n > NAME_MAX_BYTES)
        return refuse(r, WG_EFORMAT, at, "%s is %" PRIu64 " bytes long; expected 1..%d; the file is damaged: " AGAIN, what, n,
                      NAME_MAX_BYTES);
    for (uint64_t j = 0; j < n; j++)
        if (s[j] < 0x20 || s[j] == 0x7F)
            return refuse(r, WG_EFORMAT, at + 8 + (size_t)j, "%s holds the control byte 0x%02x; the file is damaged: " AGAIN,
                          what, s[j]);
    *name = wg_strndup((const char *)s, (size_t)n);
    return *name ? WG_OK : wg_nomem(r->err, (size_t)n, "a tensor name");
}

static wg_status read_dims(reader *r, wg_tensor *t, size_t *elements)
{
    const size_t at = r->at;
    uint32_t n_dims;
    WG_TRY(take(r, "a dimension count", &n_dims, sizeof n_dims));
    if (n_dims > WG_DIMS)
        return refuse(r, WG_EFORMAT, at,
                      "tensor '%s' has %" PRIu32 " dimensions; expected at most %d; the file is damaged: " AGAIN, t->name,
                      n_dims, WG_DIMS);
    t->n_dims = (int)n_dims;
    *elements = 1;
    for (uint32_t d = 0; d < n_dims; d++) {
        const size_t dim_at = r->at;
        uint64_t n;
        WG_TRY(take(r, "a dimension", &n, sizeof n));
        if (n == 0 || n > INT64_MAX || !wg_size_mul(*elements, (size_t)n, elements) || *elements > INT64_MAX)
            return refuse(r, WG_EFORMAT, dim_at,
                          "tensor '%s': dimension %" PRIu32 " is %" PRIu64 "; expected 1 or more, and fewer than 2^63 "
                          "elements in all; the file is damaged: " AGAIN,
                          t->name, d, n);
        t->dim[d] = (int64_t)n;
    }
    return WG_OK;
}

static wg_status read_type(reader *r, wg_tensor *t, size_t elements)
{
    const size_t at = r->at;
    uint32_t type;
    WG_TRY(take(r, "a tensor type", &type, sizeof type));
    const int id = type > INT32_MAX ? -1 : (int)type;
    const wg_type_info *info = wg_type_get(id);
    if (!info)
        return refuse(r, WG_EUNSUPPORTED, at,
                      "tensor '%s' has type %" PRIu32 " (%s), which is not read; expected " WG_COMPUTABLE_TYPES
                      ": use a file of one of these types",
                      t->name, type, wg_type_name(id));
    if (t->dim[0] % info->block != 0)
        return refuse(r, WG_EFORMAT, at,
                      "tensor '%s' has rows of %" PRId64 " elements; type %s needs a multiple of %d; convert the model again",
                      t->name, t->dim[0], info->name, info->block);
    if (!wg_size_mul(elements / (size_t)info->block, (size_t)info->bytes, &t->bytes))
        return refuse(r, WG_EFORMAT, at, "tensor '%s' has %zu elements of type %s, more bytes than can be addressed", t->name,
                      elements, info->name);
    t->type = id;
    return WG_OK;
}

/* The offset must be `expect`, the end of the tensor before; moves `expect` to the padded end of this one. */
static wg_status read_offset(reader *r, wg_tensor *t, size_t alignment, size_t *expect)
{
    const size_t at = r->at;
    uint64_t offset;
    WG_TRY(take(r, "a tensor offset", &offset, sizeof offset));
    if (offset != *expect)
        return refuse(r, WG_EFORMAT, at,
                      "tensor '%s' is at offset %" PRIu64 "; expected %zu, the end of the tensor before it (alignment %zu): "
                      "tensors must follow each other without %s; convert the model again",
                      t->name, offset, *expect, alignment, offset < *expect ? "overlapping" : "gaps");
    size_t end;
    if (!wg_size_add(*expect, t->bytes, &end) || !wg_size_add(end, alignment - 1, &end))
        return refuse(r, WG_EFORMAT, at, "tensor '%s' ends beyond what can be addressed", t->name);
    t->data = (const void *)(uintptr_t)*expect; /* becomes a pointer once the data section's start is known */
    *expect = end & ~(alignment - 1);
    return WG_OK;
}

static wg_status read_tensors(reader *r, size_t alignment)
{
    size_t expect = 0;
    r->section = "tensor list";
    for (uint64_t i = 0; i < r->n_tensors; i++) {
        char *name;
        size_t elements;
        WG_TRY(read_name(r, i, &name));
        wg_tensor *t = wg_weights_add_tensor(r->w, name);
        if (!t) return wg_nomem(r->err, sizeof *t, "the tensor list");
        WG_TRY(read_dims(r, t, &elements));
        WG_TRY(read_type(r, t, elements));
        WG_TRY(read_offset(r, t, alignment, &expect));
    }
    return WG_OK;
}

static wg_status place_data(reader *r, size_t alignment)
{
    r->section = "tensor data";
    size_t start;
    if (!wg_size_add(r->at, alignment - 1, &start))
        return refuse(r, WG_EFORMAT, r->at, "the data begins beyond what can be addressed");
    start &= ~(alignment - 1);
    for (int i = 0; i < r->w->n_tensors; i++) {
        wg_tensor *t = &r->w->tensor[i];
        const size_t offset = (size_t)(uintptr_t)t->data;
        size_t end;
        if (!wg_size_add(start, offset, &end) || !wg_size_add(end, t->bytes, &end) || end > r->w->bytes)
            return refuse(r, WG_EFORMAT, start + offset,
                          "tensor '%s' (%d of %d, %s) needs %zu bytes here, but the file ends at byte %zu; it is "
                          "truncated: " AGAIN,
                          t->name, i + 1, r->w->n_tensors, wg_type_name(t->type), t->bytes, r->w->bytes);
        t->data = r->w->base + start + offset;
    }
    return WG_OK;
}

wg_status wg_gguf_read(wg_weights *w, wg_error *err)
{
    reader r = { .w = w, .err = err };
    size_t alignment;
    WG_TRY(read_header(&r));
    WG_TRY(read_metadata(&r));
    WG_TRY(read_alignment(&r, &alignment));
    WG_TRY(read_tensors(&r, alignment));
    return place_data(&r, alignment);
}
