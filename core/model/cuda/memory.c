/* SPDX-License-Identifier: MIT
 * Memory of a CUDA device: buffers, packed matrices, pages, and the buffers of passes, which grow when a model attaches. */
#include <string.h>

#include "core/base/mem.h"
#include "core/model/cuda/device_cuda.h"

static const size_t PARTIAL = (size_t)64 << 20, LOGITS = (size_t)64 << 20; /* bytes; at least one row */

void *wg_cuda_bytes_alloc(wg_cuda *s, size_t bytes) { return s->gpu.api->alloc(&s->gpu, bytes); }

/* What goes may be an argument of a recorded launch. */
void wg_cuda_bytes_free(wg_cuda *s, void *p)
{
    if (!p) return;
    wg_graphs_clear(&s->graphs);
    s->gpu.api->free(&s->gpu, p);
}

wg_status wg_cuda_no_memory(wg_cuda *s, size_t bytes, const char *what, const char *remedy, wg_error *err)
{
    return wg_fail(err, WG_ENOMEM, "out of memory on %s (%s): %zu bytes for %s, %zu are free; %s", s->name, s->gpu.card, bytes,
                   what, s->gpu.api->room(&s->gpu), remedy);
}

wg_buf wg_cuda_alloc(wg_device *d, size_t floats)
{
    size_t bytes;
    return wg_size_mul(floats, sizeof(float), &bytes) ? wg_cuda_bytes_alloc(wg_cuda_of(d), bytes) : NULL;
}

void wg_cuda_free(wg_device *d, wg_buf b) { wg_cuda_bytes_free(wg_cuda_of(d), b); }

void wg_cuda_upload(wg_device *d, wg_buf to, const float *from, size_t floats)
{
    wg_cuda *s = wg_cuda_of(d);
    s->gpu.api->put(&s->gpu, to, from, floats * sizeof *from);
}

wg_status wg_cuda_download(wg_device *d, float *to, const float *from, size_t floats, wg_error *err)
{
    wg_cuda *s = wg_cuda_of(d);
    char why[WG_GPU_WHY];
    s->gpu.api->get(&s->gpu, to, from, floats * sizeof *to);
    if (s->gpu.api->wait(&s->gpu, why) == 0) return WG_OK;
    return wg_fail(err, WG_EIO, "%s (%s): %s", s->name, s->gpu.card, why);
}

void wg_cuda_copy(wg_device *d, wg_buf to, const float *from, size_t floats)
{
    wg_cuda *s = wg_cuda_of(d);
    s->gpu.api->copy(&s->gpu, to, from, floats * sizeof *to);
}

static void drop(wg_cuda *s)
{
    if (--s->owners > 0) return;
    if (s->pass.host) s->gpu.api->unpin(&s->gpu, s->pass.host);
    wg_cuda_bytes_free(s, s->pass.device);
    wg_cuda_bytes_free(s, s->narrowed);
    wg_cuda_bytes_free(s, s->partial);
    wg_cuda_bytes_free(s, s->arrived);
    wg_cuda_bytes_free(s, s->logits);
    wg_cuda_bytes_free(s, s->best);
    wg_verify_buffers_close(&s->verify, &s->gpu);
    s->gpu.api->close(&s->gpu);
    wg_free(s);
}

void wg_cuda_retain(wg_device *d) { wg_cuda_of(d)->owners++; }
void wg_cuda_close(wg_device *d) { drop(wg_cuda_of(d)); }

static char *home_alloc(void *user, size_t bytes)
{
    wg_cuda *s = user;
    char *pool = wg_cuda_bytes_alloc(s, bytes);
    if (!pool) return NULL;
    s->gpu.api->clear(&s->gpu, pool, bytes);
    s->owners++;
    return pool;
}

static void home_free(void *user, char *pool)
{
    wg_cuda_bytes_free(user, pool);
    drop(user);
}

static void home_copy(void *user, char *to, const char *from, size_t bytes)
{
    wg_cuda *s = user;
    s->gpu.api->copy(&s->gpu, to, from, bytes);
}

_Static_assert((int)WG_GPU_MOVES == (int)WG_KV_MOVES, "what a commit moves at once is one launch");

static void home_move(void *user, char *pool, const wg_kv_moves *m)
{
    wg_cuda *s = user;
    wg_gpu_moves moves = { .n = m->n };
    memcpy(moves.to, m->to, sizeof moves.to);
    memcpy(moves.from, m->from, sizeof moves.from);
    s->gpu.api->move(&s->gpu, &moves, pool, m->bytes, m->stride, m->count);
}

wg_kv_memory wg_cuda_kv_memory(wg_cuda *s)
{
    return (wg_kv_memory){
        .name = s->name, .user = s, .alloc = home_alloc, .free = home_free, .copy = home_copy, .move = home_move
    };
}

/* ---- matrices */

typedef struct pack_job {
    const wg_matrix *w;
    const void *rows;
    void *packed;
    wg_gpu_layout layout;
} pack_job;

static void pack_part(void *arg, int thread, int threads)
{
    const pack_job *j = arg;
    int lo, hi;
    wg_pool_share(wg_gpu_units(j->w->type, j->layout, j->w->n), 1, thread, threads, &lo, &hi);
    if (lo < hi) wg_gpu_pack(j->w, j->layout, j->rows, j->packed, lo, hi);
}

size_t wg_cuda_matrix_bytes(const wg_device *d, int type, int n, int k)
{
    return wg_gpu_matrix_bytes(type, wg_cuda_layout(wg_cuda_of(d), type), n, k);
}

/* Room for a matrix of so many bytes. */
static wg_status place(wg_device *d, int type, int n, int k, wg_matrix *m, size_t *bytes, wg_error *err)
{
    wg_cuda *s = wg_cuda_of(d);
    const wg_type_info *t = wg_type_get(type);
    *bytes = wg_cuda_matrix_bytes(d, type, n, k);
    if (*bytes == 0 && t && t->computable && n > 0 && k > 0 && k % t->block == 0)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "weights of type %s are not computed with on a CUDA device: take device cpu, or convert them when they "
                       "are loaded (--quantize q4_k)",
                       t->name);
    if (*bytes == 0)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "a %s matrix of %d rows of %d cannot be computed with: expected " WG_COMPUTABLE_TYPES
                       ", with rows of whole blocks",
                       wg_type_name(type), n, k);
    *m = (wg_matrix){ .type = type, .n = n, .k = k, .data = s->gpu.api->alloc_weights(&s->gpu, *bytes) };
    if (m->data) return WG_OK;
    return wg_cuda_no_memory(s, *bytes, "a weight matrix", "take a smaller model or a smaller type, or device cpu", err);
}

wg_status wg_cuda_matrix(wg_device *d, int type, int n, int k, const void *rows, wg_matrix *out, wg_error *err)
{
    wg_cuda *s = wg_cuda_of(d);
    wg_matrix m;
    size_t bytes;
    WG_TRY(place(d, type, n, k, &m, &bytes, err));
    void *packed = wg_alloc(bytes, 1);
    if (!packed) {
        wg_cuda_matrix_free(d, &m);
        return wg_nomem(err, bytes, "packing a weight matrix");
    }
    wg_pool_run(d->pool, pack_part, &(pack_job){ &m, rows, packed, wg_cuda_layout(s, type) });
    s->gpu.api->put(&s->gpu, (void *)(uintptr_t)m.data, packed, bytes);
    wg_free(packed);
    *out = m;
    return WG_OK;
}

bool wg_cuda_draws(const wg_device *d, int type)
{
    (void)d;
    return wg_gpu_draws(type);
}

wg_status wg_cuda_matrix_random(wg_device *d, int type, int n, int k, uint64_t seed, uint32_t stream, wg_matrix *out,
                                wg_error *err)
{
    wg_cuda *s = wg_cuda_of(d);
    size_t bytes;
    WG_TRY(place(d, type, n, k, out, &bytes, err));
    const bool drawn = s->gpu.api->words(&s->gpu, seed << 32 ^ stream, (void *)(uintptr_t)out->data, bytes / 4) == 0;
    s->gpu.api->draw(&s->gpu, out, wg_cuda_layout(s, type), seed, stream, drawn);
    return WG_OK;
}

void wg_cuda_matrix_free(wg_device *d, wg_matrix *m)
{
    wg_cuda_bytes_free(wg_cuda_of(d), (void *)(uintptr_t)m->data);
    *m = (wg_matrix){ 0 };
}

/* ---- room for passes */

static size_t staging_bytes(const wg_cuda_staging *p)
{
    return wg_cuda_tables_at(2 * p->rows, p->rows) + (size_t)p->tables * sizeof(int32_t);
}

static wg_status grow_staging(wg_cuda *s, int rows, int tables, wg_error *err)
{
    if (rows <= s->pass.rows && tables <= s->pass.tables) return WG_OK;
    wg_cuda_staging p = { .rows = rows > s->pass.rows ? rows : s->pass.rows,
                          .tables = tables > s->pass.tables ? tables : s->pass.tables };
    const size_t bytes = staging_bytes(&p);
    wg_gpu_row *narrowed = NULL;
    p.host = s->gpu.api->pin(&s->gpu, bytes);
    if (p.host) p.device = wg_cuda_bytes_alloc(s, bytes);
    if (p.device) narrowed = wg_cuda_bytes_alloc(s, 2 * (size_t)p.rows * sizeof *narrowed);
    if (!narrowed) {
        wg_cuda_bytes_free(s, p.device);
        if (p.host) s->gpu.api->unpin(&s->gpu, p.host);
        return wg_cuda_no_memory(s, bytes, "the rows and page tables of a pass", "lower max_rows, or max_tokens", err);
    }
    if (s->pass.host) s->gpu.api->unpin(&s->gpu, s->pass.host);
    wg_cuda_bytes_free(s, s->pass.device);
    wg_cuda_bytes_free(s, s->narrowed);
    s->pass = p;
    s->narrowed = narrowed;
    return WG_OK;
}

/* Room for as many rows of `each` bytes as `most` holds, at least one. */
static wg_status grow(wg_cuda *s, float **room, size_t *have, int rows, size_t each, size_t most, const char *what,
                      wg_error *err)
{
    size_t bytes = (size_t)rows * each;
    if (bytes > most) bytes = each > most ? each : most;
    if (bytes <= *have) return WG_OK;
    float *p = wg_cuda_bytes_alloc(s, bytes);
    if (!p) return wg_cuda_no_memory(s, bytes, what, "lower max_tokens or pages, or take a smaller model", err);
    wg_cuda_bytes_free(s, *room);
    *room = p;
    *have = bytes;
    return WG_OK;
}

static wg_status grow_arrived(wg_cuda *s, int rows, int heads, wg_error *err)
{
    const size_t bytes = (size_t)rows * (size_t)heads * sizeof *s->arrived;
    if (bytes <= s->arrived_bytes) return WG_OK;
    uint32_t *p = wg_cuda_bytes_alloc(s, bytes);
    if (!p) return wg_cuda_no_memory(s, bytes, "counters of attention", "lower max_rows", err);
    s->gpu.api->clear(&s->gpu, p, bytes);
    wg_cuda_bytes_free(s, s->arrived);
    s->arrived = p;
    s->arrived_bytes = bytes;
    return WG_OK;
}

wg_status wg_cuda_attach(wg_device *d, const wg_kv *kv, const wg_pass_shape *shape, wg_error *err)
{
    wg_cuda *s = wg_cuda_of(d);
    size_t tables;
    if (shape->kv_type != WG_F32 && !wg_gpu_is_half(shape->kv_type))
        return wg_fail(err, WG_EUNSUPPORTED, "%s keeps no cache of type %s; expected f32, f16 or bf16", s->name,
                       wg_kv_type_name(shape->kv_type));
    const int longest = wg_kv_pages_most(kv) * wg_kv_page_slots(kv); /* keys of a row, rounded up */
    if (!wg_size_mul((size_t)shape->max_rows, (size_t)wg_kv_pages_most(kv), &tables) || tables > 1u << 28)
        return wg_fail(err, WG_EINVAL, "%d rows of sequences of %d pages: too many page tables for one pass; lower max_rows",
                       shape->max_rows, wg_kv_pages_most(kv));
    WG_TRY(grow_staging(s, shape->max_rows, (int)tables, err));
    if (!wg_cuda_exact(s)) {
        WG_TRY(grow_arrived(s, shape->max_rows, shape->heads, err));
        WG_TRY(grow(s, &s->partial, &s->partial_bytes, shape->max_rows,
                    wg_gpu_attention_bytes(1, shape->heads, shape->head_dim, longest), PARTIAL, "partial sums of attention",
                    err));
    }
    const size_t pieces = sizeof *s->best * WG_GPU_FUSED_ROWS * WG_GPU_BESTS;
    if (!s->best && !(s->best = wg_cuda_bytes_alloc(s, pieces)))
        return wg_cuda_no_memory(s, pieces, "the largest logits", "take a smaller model", err);
    return grow(s, &s->logits, &s->logits_bytes, shape->max_rows, (size_t)shape->vocab * sizeof(float), LOGITS, "logits", err);
}
