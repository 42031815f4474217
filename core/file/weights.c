/* SPDX-License-Identifier: MIT
 * Opening a weights file of any format, finding tensors and metadata in it. */
#include "core/file/weights.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/file/dialect.h"
#include "core/file/format.h"
#include "core/file/gguf_write.h"
#include "core/file/hf.h"
#include "core/file/model_name.h"
#include "core/file/synth.h"

const uint8_t wg_gguf_value_size[GGUF_VALUES] = {
    [GGUF_U8] = 1,  [GGUF_I8] = 1,   [GGUF_U16] = 2, [GGUF_I16] = 2, [GGUF_U32] = 4, [GGUF_I32] = 4,
    [GGUF_F32] = 4, [GGUF_BOOL] = 1, [GGUF_U64] = 8, [GGUF_I64] = 8, [GGUF_F64] = 8,
};

/* ---- names ------------------------------------------------------------------------------------------------------- */

static const char *name_at(const void *rows, size_t stride, int i)
{
    return *(const char *const *)((const char *)rows + stride * (size_t)i);
}

static int names_find(const wg_names *t, const void *rows, size_t stride, const char *name)
{
    if (!t->slot) return -1;
    for (size_t h = wg_hash64(WG_HASH_START, name, strlen(name));; h++) {
        const int i = t->slot[h & t->mask];
        if (i < 0 || strcmp(name_at(rows, stride, i), name) == 0) return i;
    }
}

/* A table at most half full. *twice: the first row whose name an earlier row has, or -1. */
static bool names_build(wg_names *t, const void *rows, size_t stride, int n, int *twice)
{
    wg_free(t->slot);
    size_t size = 8;
    while (size < 2 * (size_t)n) size *= 2;
    *twice = -1;
    t->mask = size - 1;
    t->slot = wg_alloc(size, sizeof *t->slot);
    if (!t->slot) return false;
    memset(t->slot, 0xFF, size * sizeof *t->slot);
    for (int i = 0; i < n && *twice < 0; i++) {
        const char *name = name_at(rows, stride, i);
        size_t h = wg_hash64(WG_HASH_START, name, strlen(name));
        for (; t->slot[h & t->mask] >= 0; h++)
            if (strcmp(name_at(rows, stride, t->slot[h & t->mask]), name) == 0) *twice = i;
        t->slot[h & t->mask] = i;
    }
    return true;
}

wg_status wg_weights_index(wg_weights *w, wg_error *err)
{
    int twice;
    if (!names_build(&w->meta_names, w->meta, sizeof *w->meta, w->n_meta, &twice))
        return wg_nomem(err, (size_t)w->n_meta * sizeof(int32_t), "the index of metadata keys");
    if (twice >= 0)
        return wg_fail(err, WG_EFORMAT,
                       "%s: %s metadata: key '%.80s' occurs twice (entry %d of %d repeats it); the file is damaged or "
                       "was written by a faulty tool: convert or download it again",
                       w->path, w->format, w->meta[twice].key, twice + 1, w->n_meta);
    if (!names_build(&w->tensor_names, w->tensor, sizeof *w->tensor, w->n_tensors, &twice))
        return wg_nomem(err, (size_t)w->n_tensors * sizeof(int32_t), "the index of tensor names");
    if (twice >= 0)
        return wg_fail(err, WG_EFORMAT,
                       "%s: %s tensor list: tensor '%s' occurs twice (entry %d of %d repeats it); the file is "
                       "damaged or was written by a faulty tool: convert or download it again",
                       w->path, w->format, w->tensor[twice].name, twice + 1, w->n_tensors);
    return WG_OK;
}

/* ---- growing tables: by the bytes read, never by a count in the file ----------------------------------------------- */

/* Room for one more row; takes `name` where there is none. */
static bool more_rows(void **rows, size_t *room, int n, size_t stride, char *name)
{
    const bool fine = name && n < INT32_MAX / 4 && wg_grow(rows, room, (size_t)n + 1, stride, "rows", NULL) == WG_OK;
    if (!fine) wg_free(name);
    return fine;
}

wg_meta *wg_weights_add_meta(wg_weights *w, char *name)
{
    if (!more_rows((void **)&w->meta, &w->room_meta, w->n_meta, sizeof *w->meta, name)) return NULL;
    wg_meta *m = &w->meta[w->n_meta++];
    *m = (wg_meta){ .key = name, .element = -1, .count = 1 };
    return m;
}

wg_tensor *wg_weights_add_tensor(wg_weights *w, char *name)
{
    if (!more_rows((void **)&w->tensor, &w->room_tensors, w->n_tensors, sizeof *w->tensor, name)) return NULL;
    wg_tensor *t = &w->tensor[w->n_tensors++];
    *t = (wg_tensor){ .name = name, .dim = { 1, 1, 1, 1 } };
    return t;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

static wg_status refuse_unknown(const wg_weights *w, wg_error *err)
{
    char hex[3 * 16 + 1] = "";
    for (size_t i = 0; i < 16 && i < w->bytes; i++) snprintf(hex + 3 * i, 4, " %02x", w->base[i]);
    return wg_fail(err, WG_EFORMAT,
                   "%s: not a weights file I know (%zu bytes, beginning%s); tried GGUF (begins \"GGUF\"), llama2.c v0 "
                   "(size must follow from its seven header numbers), folders with config.json and safetensors, torch "
                   "archives; convert the model to GGUF",
                   w->path, w->bytes, w->bytes ? hex : " with nothing");
}

/* A graph without a magic number: by its name, and a first field that is its version. */
static bool is_onnx(const wg_weights *w)
{
    const size_t n = strlen(w->path);
    return n > 5 && strcmp(w->path + n - 5, ".onnx") == 0 && w->bytes >= 2 && w->base[0] == 0x08;
}

/* The first bytes determine the format. Formats that are known but not supported are refused by name. */
static wg_status read_format(wg_weights *w, wg_error *err)
{
    const uint8_t *b = w->base;
    if (w->bytes >= 4 && memcmp(b, "GGUF", 4) == 0) return wg_gguf_read(w, err);
    if (w->bytes >= 4 && memcmp(b, "24ka", 4) == 0)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "%s: a llama2.c file of version 1 or 2; only version 0 is read: export with --version 0, "
                       "or convert to GGUF",
                       w->path);
    uint64_t n = 0;
    if (w->bytes >= 9) memcpy(&n, b, sizeof n);
    if (w->bytes >= 9 && n >= 2 && n <= 100000000 && n < w->bytes - 8 && b[8] == '{')
        return wg_fail(err, WG_EUNSUPPORTED,
                       "%s: a safetensors file, which holds weights alone: give its folder, with config.json", w->path);
    if (w->bytes >= 4 && memcmp(b, "PK\x03\x04", 4) == 0)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "%s: a torch archive (.bin, .pt, .pth), which is a program as much as data; " WG_SAVE_SAFETENSORS,
                       w->path);
    if (w->bytes >= 2 && b[0] == 0x80 && b[1] >= 2 && b[1] <= 5)
        return wg_fail(err, WG_EUNSUPPORTED, "%s: a pickle, which is a program as much as data; " WG_SAVE_SAFETENSORS, w->path);
    if (is_onnx(w))
        return wg_fail(err, WG_EUNSUPPORTED,
                       "%s: an ONNX graph, which is not read: give the folder that it was exported from, with config.json and "
                       "safetensors, or a GGUF file",
                       w->path);
    if (wg_llama2c_fits(b, w->bytes)) return wg_llama2c_read(w, err);
    return refuse_unknown(w, err);
}

static wg_status open_bytes(wg_weights **out, wg_weights *w, wg_error *err)
{
    wg_status s = read_format(w, err);
    if (s == WG_OK) s = wg_weights_index(w, err);
    if (s != WG_OK) {
        wg_weights_close(w);
        return s;
    }
    *out = w;
    return WG_OK;
}

static wg_weights *weights_new(const char *path)
{
    wg_weights *w = wg_calloc(1, sizeof *w);
    if (w) w->path = wg_strdup(path);
    if (w && w->path) return w;
    wg_free(w);
    return NULL;
}

static wg_status map(wg_weights *w, int fd, wg_error *err)
{
    struct stat sb;
    if (fstat(fd, &sb) != 0) return wg_fail(err, WG_EIO, "%s: cannot read: %s", w->path, strerror(errno));
    if (!S_ISREG(sb.st_mode))
        return wg_fail(err, WG_EIO, "%s: is not a regular file; weights are mapped into memory, so save them to disk first",
                       w->path);
    if (sb.st_size == 0) return wg_fail(err, WG_EFORMAT, "%s: the file is empty; download or convert it again", w->path);
    void *p = mmap(NULL, (size_t)sb.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) return wg_fail(err, WG_EIO, "%s: cannot map into memory: %s", w->path, strerror(errno));
    w->base = p;
    w->bytes = (size_t)sb.st_size;
    w->mapped = true;
    return WG_OK;
}

static wg_status open_path(wg_weights **out, const char *path, wg_error *err)
{
    struct stat st;
    wg_weights *w;
    char found[PATH_MAX], near[WG_MODEL_NEAR];
    if (wg_is_model_name(path)) {
        WG_TRY(wg_model_path(path, found, err));
        path = found;
    }
    if (strncmp(path, WG_SYNTH_NAME, strlen(WG_SYNTH_NAME)) == 0) return wg_synth_open(out, path, err);
    const int missing = stat(path, &st);
    if (missing && errno == ENOENT)
        return wg_fail(err, WG_ENOENT, "%s: there is no such file%s", path, wg_model_near(path, near));
    if (!missing && S_ISDIR(st.st_mode)) return wg_hf_open(out, path, err);
    WG_TRY(wg_weights_open_file(&w, path, err));
    return wg_gguf_join(out, w, path, err);
}

wg_status wg_weights_open_file(wg_weights **out, const char *path, wg_error *err)
{
    /* A pipe is refused, not waited for. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) return wg_fail(err, WG_ENOENT, "%s: there is no such file", path);
    if (fd < 0) return wg_fail(err, WG_EIO, "%s: cannot open: %s", path, strerror(errno));
    wg_weights *w = weights_new(path);
    const wg_status s = w ? map(w, fd, err) : wg_nomem(err, sizeof *w, "a weights file");
    close(fd);
    if (s != WG_OK) {
        wg_weights_close(w);
        return s;
    }
    return open_bytes(out, w, err);
}

wg_status wg_weights_open(wg_weights **out, const char *path, wg_error *err)
{
    const wg_status s = open_path(out, path, err);
    return s == WG_OK ? WG_OK : wg_dialect_refuse(path, s, err);
}

wg_status wg_weights_open_memory(wg_weights **out, const char *name, const void *bytes, size_t n, wg_error *err)
{
    wg_weights *w = weights_new(name);
    if (!w) return wg_nomem(err, sizeof *w, "a weights file");
    w->base = bytes;
    w->bytes = n;
    WG_TRY(open_bytes(&w, w, err));
    if (wg_gguf_split_count(w) > 1) {
        wg_fail(err, WG_EUNSUPPORTED, "%s: one of %lld files of a model, which are opened by their names alone", name,
                (long long)wg_gguf_split_count(w));
        wg_weights_close(w);
        return WG_EUNSUPPORTED;
    }
    *out = w;
    return WG_OK;
}

/* The n bytes of a head, in `whole` bytes of untouched memory. */
static wg_status open_head(wg_weights **out, const char *name, const void *head, size_t n, size_t whole, const wg_maker *maker,
                           wg_error *err)
{
    wg_weights *w = weights_new(name);
    void *p = w ? mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) : MAP_FAILED;
    if (p == MAP_FAILED) {
        if (maker->close) maker->close(maker->user);
        wg_weights_close(w);
        return wg_nomem(err, whole, "the addresses of a model");
    }
    memcpy(p, head, n);
    w->base = p;
    w->bytes = whole;
    w->mapped = true;
    w->maker = *maker;
    return open_bytes(out, w, err);
}

wg_status wg_weights_open_made(wg_weights **out, const char *name, wg_gguf_writer *g, const wg_maker *maker, wg_error *err)
{
    void *head;
    size_t n, whole;
    wg_status s = wg_gguf_writer_head(g, &head, &n, &whole, err);
    if (s) {
        if (maker->close) maker->close(maker->user);
        return s;
    }
    s = open_head(out, name, head, n, whole, maker, err);
    wg_free(head);
    return s;
}

void wg_weights_close(wg_weights *w)
{
    if (!w) return;
    for (int i = 0; i < w->n_meta; i++) {
        wg_free((char *)w->meta[i].key);
        wg_free(w->meta[i].start);
    }
    for (int i = 0; i < w->n_tensors; i++) wg_free((char *)w->tensor[i].name);
    wg_free(w->meta);
    wg_free(w->tensor);
    wg_free(w->meta_names.slot);
    wg_free(w->tensor_names.slot);
    wg_free(w->blob);
    for (int i = 0; i < w->n_parts; i++) wg_weights_close(w->part[i]);
    wg_free(w->part);
    if (w->maker.close) w->maker.close(w->maker.user);
    if (w->mapped) munmap((void *)w->base, w->bytes);
    wg_free(w->path);
    wg_free(w);
}

const char *wg_weights_path(const wg_weights *w) { return w->path; }
const char *wg_weights_format(const wg_weights *w) { return w->format; }
bool wg_weights_is_folder(const wg_weights *w) { return strncmp(w->format, "safetensors", strlen("safetensors")) == 0; }
size_t wg_weights_file_bytes(const wg_weights *w)
{
    size_t all = w->bytes;
    for (int i = 0; i < w->n_parts; i++) all += w->part[i]->bytes;
    return all;
}

int wg_weights_count(const wg_weights *w) { return w->n_tensors; }
const wg_tensor *wg_weights_at(const wg_weights *w, int i) { return i >= 0 && i < w->n_tensors ? &w->tensor[i] : NULL; }

const wg_tensor *wg_weights_find(const wg_weights *w, const char *name)
{
    const int i = names_find(&w->tensor_names, w->tensor, sizeof *w->tensor, name);
    return i < 0 ? NULL : &w->tensor[i];
}

wg_status wg_weights_need(const wg_weights *w, const wg_tensor *t, wg_error *err)
{
    return w->maker.make ? w->maker.make(w->maker.user, t, (void *)(uintptr_t)t->data, err) : WG_OK;
}

bool wg_weights_made(const wg_weights *w, uint64_t *seed)
{
    if (w->maker.random && seed) *seed = w->maker.seed;
    return w->maker.random;
}

void wg_weights_ahead(const wg_weights *w, const wg_tensor *t)
{
    if (w->maker.ahead) w->maker.ahead(w->maker.user, t);
    else if (w->mapped && !w->maker.make) wg_pages_ahead(t->data, t->bytes);
}

void wg_weights_release(const wg_weights *w, const wg_tensor *t)
{
    if (w->mapped) wg_pages_release(t->data, t->bytes);
}

/* In pieces, because Linux answers one advice with no more than its window of reading ahead, commonly 128 KB. */
void wg_pages_ahead(const void *at, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), piece = 128 << 10, end = (uintptr_t)at + bytes;
    for (uintptr_t p = (uintptr_t)at & ~(page - 1); p < end; p += piece) /* advice: a failure changes nothing */
        (void)madvise((void *)p, end - p < piece ? end - p : piece, MADV_WILLNEED);
}

void wg_pages_release(const void *at, size_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t lo = ((uintptr_t)at + page - 1) & ~(page - 1), hi = ((uintptr_t)at + bytes) & ~(page - 1);
    if (lo < hi) (void)madvise((void *)lo, hi - lo, MADV_DONTNEED); /* advice: a failure changes nothing */
}

/* ---- metadata ---------------------------------------------------------------------------------------------------- */

const wg_meta *wg_weights_meta(const wg_weights *w, const char *key)
{
    const int i = names_find(&w->meta_names, w->meta, sizeof *w->meta, key);
    return i < 0 ? NULL : &w->meta[i];
}

static bool value_int(int type, const uint8_t *p, int64_t *out)
{
    union {
        uint64_t u;
        int64_t i;
    } v = { 0 };
    if (type < 0 || type >= GGUF_VALUES) return false;
    memcpy(&v, p, wg_gguf_value_size[type]);
    switch (type) {
    case GGUF_U8:
    case GGUF_U16:
    case GGUF_U32:
    case GGUF_I64: break;
    case GGUF_I8: v.i = (int8_t)v.u; break;
    case GGUF_I16: v.i = (int16_t)v.u; break;
    case GGUF_I32: v.i = (int32_t)v.u; break;
    case GGUF_U64:
        if (v.i < 0) return false;
        break;
    default: return false;
    }
    *out = v.i;
    return true;
}

static bool value_float(int type, const uint8_t *p, double *out)
{
    float f;
    int64_t i;
    if (type == GGUF_F64) return memcpy(out, p, sizeof *out), true;
    if (type == GGUF_F32) return memcpy(&f, p, sizeof f), *out = f, true;
    if (!value_int(type, p, &i)) return false;
    *out = (double)i;
    return true;
}

bool wg_meta_int(const wg_weights *w, const char *key, int64_t *out)
{
    const wg_meta *m = wg_weights_meta(w, key);
    return m && value_int(m->type, m->value, out);
}

bool wg_meta_float(const wg_weights *w, const char *key, double *out)
{
    const wg_meta *m = wg_weights_meta(w, key);
    return m && value_float(m->type, m->value, out);
}

bool wg_meta_bool(const wg_weights *w, const char *key, bool *out)
{
    const wg_meta *m = wg_weights_meta(w, key);
    if (!m || m->type != GGUF_BOOL) return false;
    *out = *m->value != 0;
    return true;
}

bool wg_meta_string(const wg_weights *w, const char *key, wg_text *out)
{
    const wg_meta *m = wg_weights_meta(w, key);
    if (!m || m->type != GGUF_STRING) return false;
    *out = (wg_text){ (const char *)m->value, m->bytes };
    return true;
}

static wg_meta_kind kind_of(int type)
{
    switch (type) {
    case GGUF_F32:
    case GGUF_F64: return WG_META_FLOAT;
    case GGUF_BOOL: return WG_META_BOOL;
    case GGUF_STRING: return WG_META_STRING;
    case GGUF_ARRAY: return WG_META_ARRAY;
    default: return WG_META_INT;
    }
}

int64_t wg_meta_array(const wg_weights *w, const char *key, wg_meta_kind *kind)
{
    const wg_meta *m = wg_weights_meta(w, key);
    if (!m || m->type != GGUF_ARRAY) return -1;
    if (kind) *kind = kind_of(m->element);
    return (int64_t)m->count;
}

/* Element i of an array of fixed-size values, or NULL. */
static const uint8_t *element_at(const wg_meta *m, int64_t i)
{
    if (!m || m->type != GGUF_ARRAY || i < 0 || (uint64_t)i >= m->count) return NULL;
    return m->value + (size_t)i * wg_gguf_value_size[m->element];
}

bool wg_meta_array_int(const wg_weights *w, const char *key, int64_t i, int64_t *out)
{
    const wg_meta *m = wg_weights_meta(w, key);
    const uint8_t *p = element_at(m, i);
    if (p && m->element == GGUF_BOOL) return *out = *p != 0, true;
    return p && value_int(m->element, p, out);
}

bool wg_meta_array_float(const wg_weights *w, const char *key, int64_t i, double *out)
{
    const wg_meta *m = wg_weights_meta(w, key);
    const uint8_t *p = element_at(m, i);
    return p && value_float(m->element, p, out);
}

bool wg_meta_array_string(const wg_weights *w, const char *key, int64_t i, wg_text *out)
{
    const wg_meta *m = wg_weights_meta(w, key);
    if (!element_at(m, i) || m->element != GGUF_STRING) return false;
    uint64_t n;
    const uint8_t *p = m->value + m->start[i];
    memcpy(&n, p, sizeof n);
    *out = (wg_text){ (const char *)p + sizeof n, (size_t)n };
    return true;
}

int wg_meta_count(const wg_weights *w) { return w->n_meta; }
const char *wg_meta_key(const wg_weights *w, int i) { return w->meta[i].key; }
wg_meta_kind wg_meta_kind_of(const wg_weights *w, int i) { return kind_of(w->meta[i].type); }
