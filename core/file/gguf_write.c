/* SPDX-License-Identifier: MIT
 * Writing GGUF v3. Metadata is encoded as it is set; the tensor list and the data follow in finish, one tensor in memory
 * at a time. Alignment is 32, also behind the last tensor. */
#include "core/file/gguf_write.h"

#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/save.h"
#include "core/file/format.h"

enum { ALIGNMENT = 32, NAME_BYTES = 64, KEY_BYTES = 65535 };

typedef struct entry {
    char name[NAME_BYTES];
    wg_tensor t;
    wg_gguf_fill_fn *fill;
    void *user;
} entry;

typedef struct bytes {
    uint8_t *p;
    size_t n, room;
} bytes;

struct wg_gguf_writer {
    wg_save *file;
    char *path;
    bytes meta, keys; /* encoded entries; the keys, NUL-terminated, one after the other */
    uint64_t n_meta;
    entry *tensor;
    size_t n_tensors, room_tensors;
    wg_error first; /* the failure finish will return; code 0: none */
};

/* ---- growing bytes ------------------------------------------------------------------------------------------------ */

static bool failed(const wg_gguf_writer *g) { return g->first.code != WG_OK; }

static void put(wg_gguf_writer *g, bytes *b, const void *p, size_t n)
{
    if (failed(g) || n == 0) return;
    if (wg_grow((void **)&b->p, &b->room, b->n + n, 1, "GGUF metadata", &g->first)) return;
    memcpy(b->p + b->n, p, n);
    b->n += n;
}

static void put_u32(wg_gguf_writer *g, bytes *b, uint32_t v) { put(g, b, &v, sizeof v); }
static void put_u64(wg_gguf_writer *g, bytes *b, uint64_t v) { put(g, b, &v, sizeof v); }

static void put_string(wg_gguf_writer *g, bytes *b, const char *s, size_t n)
{
    put_u64(g, b, n);
    put(g, b, s, n);
}

/* ---- metadata ---------------------------------------------------------------------------------------------------- */

/* Starts an entry; false when it must not be written. */
static bool begin(wg_gguf_writer *g, const char *key, int type)
{
    if (failed(g)) return false;
    const size_t n = strlen(key);
    bool ok = n > 0 && n <= KEY_BYTES;
    for (size_t i = 0; i < n && ok; i++) ok = key[i] >= 0x20 && key[i] <= 0x7E;
    if (!ok) {
        wg_fail(&g->first, WG_EINVAL, "%s: '%s' cannot be a metadata key: expected 1..%d printable ASCII characters", g->path,
                key, KEY_BYTES);
        return false;
    }
    for (size_t at = 0; at < g->keys.n; at += strlen((char *)g->keys.p + at) + 1) {
        if (strcmp((char *)g->keys.p + at, key) != 0) continue;
        wg_fail(&g->first, WG_EINVAL, "%s: metadata key '%s' is set twice", g->path, key);
        return false;
    }
    put(g, &g->keys, key, n + 1);
    put_string(g, &g->meta, key, n);
    put_u32(g, &g->meta, (uint32_t)type);
    g->n_meta++;
    return true;
}

static void begin_array(wg_gguf_writer *g, int element, size_t n)
{
    put_u32(g, &g->meta, (uint32_t)element);
    put_u64(g, &g->meta, n);
}

void wg_gguf_set_u32(wg_gguf_writer *g, const char *key, uint32_t v)
{
    if (begin(g, key, GGUF_U32)) put_u32(g, &g->meta, v);
}

void wg_gguf_set_f32(wg_gguf_writer *g, const char *key, float v)
{
    if (begin(g, key, GGUF_F32)) put(g, &g->meta, &v, sizeof v);
}

void wg_gguf_set_bool(wg_gguf_writer *g, const char *key, bool v)
{
    const uint8_t byte = v;
    if (begin(g, key, GGUF_BOOL)) put(g, &g->meta, &byte, 1);
}

void wg_gguf_set_string(wg_gguf_writer *g, const char *key, const char *s, size_t n)
{
    if (begin(g, key, GGUF_STRING)) put_string(g, &g->meta, s, n);
}

void wg_gguf_set_strings(wg_gguf_writer *g, const char *key, const wg_text *s, size_t n)
{
    if (!begin(g, key, GGUF_ARRAY)) return;
    begin_array(g, GGUF_STRING, n);
    for (size_t i = 0; i < n; i++) put_string(g, &g->meta, s[i].s, s[i].n);
}

void wg_gguf_set_f32s(wg_gguf_writer *g, const char *key, const float *v, size_t n)
{
    if (!begin(g, key, GGUF_ARRAY)) return;
    begin_array(g, GGUF_F32, n);
    put(g, &g->meta, v, n * sizeof *v);
}

void wg_gguf_set_f64s(wg_gguf_writer *g, const char *key, const double *v, size_t n)
{
    if (!begin(g, key, GGUF_ARRAY)) return;
    begin_array(g, GGUF_F64, n);
    put(g, &g->meta, v, n * sizeof *v);
}

void wg_gguf_set_i32s(wg_gguf_writer *g, const char *key, const int32_t *v, size_t n)
{
    if (!begin(g, key, GGUF_ARRAY)) return;
    begin_array(g, GGUF_I32, n);
    put(g, &g->meta, v, n * sizeof *v);
}

void wg_gguf_set_bools(wg_gguf_writer *g, const char *key, const bool *v, size_t n)
{
    if (!begin(g, key, GGUF_ARRAY)) return;
    begin_array(g, GGUF_BOOL, n);
    for (size_t i = 0; i < n; i++) put(g, &g->meta, &(uint8_t){ v[i] }, 1);
}

void wg_gguf_copy_meta(wg_gguf_writer *g, const wg_weights *from, int i)
{
    const wg_meta *m = &from->meta[i];
    if (strcmp(m->key, "general.alignment") == 0) return; /* the writer has its own */
    if (!begin(g, m->key, m->type)) return;
    if (m->type == GGUF_ARRAY) begin_array(g, m->element, (size_t)m->count);
    if (m->type == GGUF_STRING) put_u64(g, &g->meta, m->bytes);
    put(g, &g->meta, m->value, m->bytes);
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* The checks of the reader, so that every written file can be read. */
static wg_status check_tensor(wg_gguf_writer *g, const wg_tensor *t, size_t *size)
{
    const wg_type_info *info = wg_type_get(t->type);
    const size_t n = strlen(t->name);
    size_t elements = 1;
    if (n == 0 || n >= NAME_BYTES)
        return wg_fail(&g->first, WG_EINVAL, "%s: tensor name '%s' is %zu bytes long; expected 1..%d", g->path, t->name, n,
                       NAME_BYTES - 1);
    for (size_t i = 0; i < g->n_tensors; i++)
        if (strcmp(g->tensor[i].name, t->name) == 0)
            return wg_fail(&g->first, WG_EINVAL, "%s: tensor '%s' is added twice", g->path, t->name);
    if (!info || t->n_dims < 0 || t->n_dims > WG_DIMS || (t->n_dims > 0 && t->dim[0] % info->block != 0))
        return wg_fail(&g->first, WG_EINVAL,
                       "%s: tensor '%s': %d dimensions of type %s, rows of %lld elements: cannot be written", g->path, t->name,
                       t->n_dims, wg_type_name(t->type), (long long)t->dim[0]);
    for (int d = 0; d < t->n_dims; d++)
        if (t->dim[d] < 1 || !wg_size_mul(elements, (size_t)t->dim[d], &elements))
            return wg_fail(&g->first, WG_EINVAL, "%s: tensor '%s': dimension %d is %lld", g->path, t->name, d,
                           (long long)t->dim[d]);
    if (!wg_size_mul(elements / (size_t)info->block, (size_t)info->bytes, size) || *size > SIZE_MAX / 2)
        return wg_fail(&g->first, WG_EINVAL, "%s: tensor '%s' is too large", g->path, t->name);
    return WG_OK;
}

void wg_gguf_add(wg_gguf_writer *g, const wg_tensor *t, wg_gguf_fill_fn *fill, void *user)
{
    size_t size;
    if (failed(g) || check_tensor(g, t, &size) != WG_OK) return;
    if (wg_grow((void **)&g->tensor, &g->room_tensors, g->n_tensors + 1, sizeof *g->tensor, "the tensor list", &g->first))
        return;
    entry *e = &g->tensor[g->n_tensors++];
    *e = (entry){ .t = *t, .fill = fill, .user = user };
    memcpy(e->name, t->name, strlen(t->name) + 1);
    e->t.bytes = size;
    e->t.data = NULL;
}

uint32_t wg_gguf_file_type(int type)
{
    switch (type) {
    case WG_F16: return 1;
    case WG_Q4_0: return 2;
    case WG_Q4_1: return 3;
    case WG_Q8_0: return 7;
    case WG_Q5_0: return 8;
    case WG_Q5_1: return 9;
    case WG_Q4_K: return 14; /* "small": no mixture */
    case WG_Q6_K: return 18;
    case WG_BF16: return 32;
    case WG_F8_E4M3: /* GGUF has no numbers for these */
    case WG_Q8_2OF4: return (uint32_t)type;
    default: return 0;
    }
}

/* ---- the file ----------------------------------------------------------------------------------------------------- */

wg_status wg_gguf_writer_open(wg_gguf_writer **out, const char *path, wg_error *err)
{
    wg_gguf_writer *g = wg_calloc(1, sizeof *g);
    if (!g) return wg_nomem(err, sizeof *g, "a GGUF writer");
    g->path = wg_strdup(path ? path : "a model without a file");
    wg_status s = g->path ? WG_OK : wg_nomem(err, 1, "a file name");
    if (s == WG_OK && path) s = wg_save_open(&g->file, path, err);
    if (s != WG_OK) {
        wg_gguf_writer_abort(g);
        return s;
    }
    *out = g;
    return WG_OK;
}

static size_t padding(uint64_t n) { return (size_t)(-n & (ALIGNMENT - 1)); }

/* The bytes before the first tensor (the caller's to free), and how many follow them. */
static wg_status make_head(wg_gguf_writer *g, bytes *head, uint64_t *data, wg_error *err)
{
    uint64_t offset = 0;
    *head = (bytes){ 0 };
    put(g, head, "GGUF", 4);
    put_u32(g, head, 3);
    put_u64(g, head, g->n_tensors);
    put_u64(g, head, g->n_meta);
    put(g, head, g->meta.p, g->meta.n);
    for (size_t i = 0; i < g->n_tensors; i++) {
        const entry *e = &g->tensor[i];
        put_string(g, head, e->name, strlen(e->name));
        put_u32(g, head, (uint32_t)e->t.n_dims);
        for (int d = 0; d < e->t.n_dims; d++) put_u64(g, head, (uint64_t)e->t.dim[d]);
        put_u32(g, head, (uint32_t)e->t.type);
        put_u64(g, head, offset);
        offset += e->t.bytes + padding(e->t.bytes);
    }
    static const uint8_t zero[ALIGNMENT];
    put(g, head, zero, padding(head->n));
    *data = offset;
    return failed(g) ? wg_fail(err, g->first.code, "%s", g->first.text) : WG_OK;
}

static wg_status write_head(wg_gguf_writer *g, wg_error *err)
{
    bytes head;
    uint64_t data;
    wg_status s = make_head(g, &head, &data, err);
    if (s == WG_OK) s = wg_save_write(g->file, head.p, head.n, err);
    wg_free(head.p);
    return s;
}

static wg_status write_tensors(wg_gguf_writer *g, wg_error *err)
{
    size_t most = 0;
    for (size_t i = 0; i < g->n_tensors; i++)
        if (g->tensor[i].t.bytes > most) most = g->tensor[i].t.bytes;
    uint8_t *data = wg_calloc(most + ALIGNMENT, 1);
    if (!data) return wg_nomem(err, most + ALIGNMENT, "the largest tensor");
    wg_status s = WG_OK;
    for (size_t i = 0; i < g->n_tensors && s == WG_OK; i++) {
        entry *e = &g->tensor[i];
        e->t.name = e->name;
        s = e->fill(e->user, &e->t, data, err);
        memset(data + e->t.bytes, 0, ALIGNMENT);
        if (s == WG_OK) s = wg_save_write(g->file, data, e->t.bytes + padding(e->t.bytes), err);
    }
    wg_free(data);
    return s;
}

wg_status wg_gguf_writer_finish(wg_gguf_writer *g, wg_error *err)
{
    wg_status s = write_head(g, err);
    if (s == WG_OK) s = write_tensors(g, err);
    if (s == WG_OK) {
        s = wg_save_commit(g->file, err);
        g->file = NULL;
    }
    wg_gguf_writer_abort(g);
    return s;
}

wg_status wg_gguf_writer_head(wg_gguf_writer *g, void **head, size_t *n, size_t *whole, wg_error *err)
{
    bytes b;
    uint64_t data;
    wg_status s = make_head(g, &b, &data, err);
    if (s == WG_OK && !wg_size_add(b.n, (size_t)data, whole))
        s = wg_fail(err, WG_EINVAL, "%s: %zu bytes of metadata and the tensors are more than can be addressed", g->path, b.n);
    if (s != WG_OK) wg_free(b.p);
    else *head = b.p, *n = b.n;
    wg_gguf_writer_abort(g);
    return s;
}

void wg_gguf_writer_abort(wg_gguf_writer *g)
{
    if (!g) return;
    wg_save_abort(g->file);
    wg_free(g->meta.p);
    wg_free(g->keys.p);
    wg_free(g->tensor);
    wg_free(g->path);
    wg_free(g);
}
