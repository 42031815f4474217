/* SPDX-License-Identifier: MIT
 * A CUDA device: the stages of the forward pass as launches of kernels/cuda, all in order on one stream. It knows a wg_gpu_api
 * and no more, so that tests run this very file over emulated threads.
 *
 * A pass begins with one copy: what its rows see, which of them asked for logits, and the page tables of their sequences.
 * Stages only launch; the pass ends with a wait. What fails on the way (a launch, memory that went away) is told there, and no
 * slot then counts as written.
 *
 * Passes of up to WG_GRAPH_ROWS rows are rounded up (rows that fill up store nothing and see nothing), so that passes alike are
 * launched alike, recorded when they come again and replayed from then on (graphs.h). Larger ones are launched as they are.
 *
 * All memory is taken when a model attaches: rows and tables of the largest pass, partial sums of split attention for as many
 * rows at a time as PARTIAL holds, logits for as many as LOGITS holds. Larger passes go through these in groups of rows, which
 * shows in no result: every kernel treats a row by itself.
 *
 * The device is shared by its owner, the models on it and the caches with pages on it; the last to let go closes it. */
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/log.h"
#include "core/model/graphs.h"
#include "core/model/settle_cuda.h"

enum { NAME = 32 };
static const size_t PARTIAL = (size_t)64 << 20, LOGITS = (size_t)64 << 20; /* bytes; at least one row */

typedef struct staging {                 /* of one pass: [rows][from][tables], sent as one piece */
    char *host, *device;                 /* pinned; device */
    int rows, tables;                    /* room */
} staging;

typedef enum turn { LAUNCH, RECORD, RECORDING, REPLAY, DONE } turn; /* what the pass waits for */

typedef struct cuda_state {
    wg_gpu gpu;
    int owners;
    unsigned mode;                       /* WG_CUDA_ */
    char name[NAME];
    wg_kv_home home;

    staging pass;
    wg_gpu_row *narrowed;                /* (pass.rows) rows that asked for logits */
    float *partial, *logits;
    size_t partial_bytes, logits_bytes;
    wg_settle_room settle;

    wg_graphs graphs;

    /* the pass that has begun */
    wg_pass now;
    int all, asked;                      /* rows, and those that asked for logits; rounded up */
    int rows;                            /* of the next stage: one or the other */
    const wg_gpu_row *row;               /* device: theirs */
    const int32_t *from, *tables;        /* device */
    int most;                            /* keys of the row that sees the most; rounded up */
    bool small;                          /* its logits stay in `logits` until it is finished */
    bool kept;                           /* and are there */
    turn turn;
    wg_graph *graph;
    const void *input;                   /* of the products to come: prepared, or the rows themselves */
} cuda_state;

static cuda_state *state_of(const wg_device *d) { return d->state; }

static bool exact(const cuda_state *s) { return s->mode & WG_CUDA_EXACT; }
static bool fragments_of(const cuda_state *s, int type) { return !exact(s) && wg_gpu_is_half(type); }

/* ---- memory */

static void *take(cuda_state *s, size_t bytes) { return s->gpu.api->alloc(&s->gpu, bytes); }

/* What goes may be an argument of a recorded launch. */
static void give(cuda_state *s, void *p)
{
    if (!p) return;
    wg_graphs_clear(&s->graphs);
    s->gpu.api->free(&s->gpu, p);
}

static wg_status no_memory(cuda_state *s, size_t bytes, const char *what, const char *remedy, wg_error *err)
{
    return wg_fail(err, WG_ENOMEM, "out of memory on %s (%s): %zu bytes for %s, %zu are free; %s", s->name, s->gpu.card, bytes,
                   what, s->gpu.api->room(&s->gpu), remedy);
}

static wg_buf cuda_alloc(wg_device *d, size_t floats)
{
    size_t bytes;
    return wg_size_mul(floats, sizeof(float), &bytes) ? take(state_of(d), bytes) : NULL;
}

static void cuda_free(wg_device *d, wg_buf b) { give(state_of(d), b); }

static void cuda_upload(wg_device *d, wg_buf to, const float *from, size_t floats)
{
    cuda_state *s = state_of(d);
    s->gpu.api->put(&s->gpu, to, from, floats * sizeof *from);
}

static void drop(cuda_state *s)
{
    if (--s->owners > 0) return;
    if (s->pass.host) s->gpu.api->unpin(&s->gpu, s->pass.host);
    give(s, s->pass.device);
    give(s, s->narrowed);
    give(s, s->partial);
    give(s, s->logits);
    wg_settle_room_close(&s->settle, &s->gpu);
    s->gpu.api->close(&s->gpu);
    wg_free(s);
}

static void cuda_hold(wg_device *d) { state_of(d)->owners++; }
static void cuda_close(wg_device *d) { drop(state_of(d)); }

static char *home_alloc(void *user, size_t bytes)
{
    cuda_state *s = user;
    char *pool = take(s, bytes);
    if (!pool) return NULL;
    s->gpu.api->clear(&s->gpu, pool, bytes);
    s->owners++;
    return pool;
}

static void home_free(void *user, char *pool)
{
    give(user, pool);
    drop(user);
}

static void home_copy(void *user, char *to, const char *from, size_t bytes)
{
    cuda_state *s = user;
    s->gpu.api->copy(&s->gpu, to, from, bytes);
}

_Static_assert((int)WG_GPU_MOVES == (int)WG_KV_MOVES, "what a commit moves at once is one launch");

static void home_move(void *user, char *pool, const wg_kv_moves *m)
{
    cuda_state *s = user;
    wg_gpu_moves moves = { .n = m->n };
    memcpy(moves.to, m->to, sizeof moves.to);
    memcpy(moves.from, m->from, sizeof moves.from);
    s->gpu.api->move(&s->gpu, &moves, pool, m->bytes, m->stride, m->count);
}

/* ---- matrices */

typedef struct pack_job {
    const wg_matrix *w;
    const void *rows;
    void *packed;
    bool fragments;
} pack_job;

static void pack_part(void *arg, int thread, int threads)
{
    const pack_job *j = arg;
    int lo, hi;
    wg_pool_share(wg_gpu_units(j->w->type, j->fragments, j->w->n), 1, thread, threads, &lo, &hi);
    if (lo < hi) wg_gpu_pack(j->w, j->fragments, j->rows, j->packed, lo, hi);
}

static size_t cuda_matrix_bytes(const wg_device *d, int type, int n, int k)
{
    return wg_gpu_matrix_bytes(type, fragments_of(state_of(d), type), n, k);
}

static wg_status cuda_matrix(wg_device *d, int type, int n, int k, const void *rows, wg_matrix *out, wg_error *err)
{
    cuda_state *s = state_of(d);
    const size_t bytes = cuda_matrix_bytes(d, type, n, k);
    if (bytes == 0)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "a %s matrix of %d rows of %d cannot be computed with: expected " WG_COMPUTABLE_TYPES
                       ", with rows of whole blocks",
                       wg_type_name(type), n, k);
    wg_matrix m = { .type = type, .n = n, .k = k };
    void *packed = wg_alloc(bytes, 1);
    if (!packed) return wg_nomem(err, bytes, "packing a weight matrix");
    void *device = take(s, bytes);
    if (device) {
        wg_pool_run(d->pool, pack_part, &(pack_job){ &m, rows, packed, fragments_of(s, type) });
        s->gpu.api->put(&s->gpu, device, packed, bytes);
        m.data = device;
        *out = m;
    }
    wg_free(packed);
    return device ? WG_OK
                  : no_memory(s, bytes, "a weight matrix", "take a smaller model or a smaller type, or device cpu", err);
}

static void cuda_matrix_free(wg_device *d, wg_matrix *m)
{
    give(state_of(d), (void *)(uintptr_t)m->data);
    *m = (wg_matrix){ 0 };
}

/* ---- passes */

static size_t from_at(int rows) { return (size_t)rows * sizeof(wg_gpu_row); }
static size_t tables_at(int rows, int asked) { return from_at(rows) + (size_t)asked * sizeof(int32_t); }
static size_t staging_bytes(const staging *p) { return tables_at(p->rows, p->rows) + (size_t)p->tables * sizeof(int32_t); }

static wg_status grow_staging(cuda_state *s, int rows, int tables, wg_error *err)
{
    if (rows <= s->pass.rows && tables <= s->pass.tables) return WG_OK;
    staging p = { .rows = rows > s->pass.rows ? rows : s->pass.rows,
                  .tables = tables > s->pass.tables ? tables : s->pass.tables };
    const size_t bytes = staging_bytes(&p);
    wg_gpu_row *narrowed = NULL;
    p.host = s->gpu.api->pin(&s->gpu, bytes);
    if (p.host) p.device = take(s, bytes);
    if (p.device) narrowed = take(s, (size_t)p.rows * sizeof *narrowed);
    if (!narrowed) {
        give(s, p.device);
        if (p.host) s->gpu.api->unpin(&s->gpu, p.host);
        return no_memory(s, bytes, "the rows and page tables of a pass", "lower max_rows, or max_tokens", err);
    }
    if (s->pass.host) s->gpu.api->unpin(&s->gpu, s->pass.host);
    give(s, s->pass.device);
    give(s, s->narrowed);
    s->pass = p;
    s->narrowed = narrowed;
    return WG_OK;
}

/* Room for as many rows of `each` bytes as `most` holds, at least one. */
static wg_status grow(cuda_state *s, float **room, size_t *have, int rows, size_t each, size_t most, const char *what,
                      wg_error *err)
{
    size_t bytes = (size_t)rows * each;
    if (bytes > most) bytes = each > most ? each : most;
    if (bytes <= *have) return WG_OK;
    float *p = take(s, bytes);
    if (!p) return no_memory(s, bytes, what, "lower max_tokens or pages, or take a smaller model", err);
    give(s, *room);
    *room = p;
    *have = bytes;
    return WG_OK;
}

static wg_status cuda_attach(wg_device *d, const wg_kv *kv, const wg_pass_shape *shape, wg_error *err)
{
    cuda_state *s = state_of(d);
    size_t tables;
    if (shape->kv_type != WG_F32 && !wg_gpu_is_half(shape->kv_type))
        return wg_fail(err, WG_EUNSUPPORTED, "%s keeps no cache of type %s; expected f32, f16 or bf16", s->name,
                       wg_kv_type_name(shape->kv_type));
    const int longest = wg_kv_pages_most(kv) * wg_kv_page_slots(kv); /* keys of a row, rounded up */
    if (!wg_size_mul((size_t)shape->max_rows, (size_t)wg_kv_pages_most(kv), &tables) || tables > 1u << 28)
        return wg_fail(err, WG_EINVAL, "%d rows of sequences of %d pages: too many page tables for one pass; lower max_rows",
                       shape->max_rows, wg_kv_pages_most(kv));
    WG_TRY(grow_staging(s, shape->max_rows, (int)tables, err));
    if (!exact(s))
        WG_TRY(grow(s, &s->partial, &s->partial_bytes, shape->max_rows,
                    wg_gpu_attention_bytes(1, shape->heads, shape->head_dim, longest), PARTIAL, "partial sums of attention",
                    err));
    return grow(s, &s->logits, &s->logits_bytes, shape->max_rows, (size_t)shape->vocab * sizeof(float), LOGITS, "logits", err);
}

/* Where the table of a row's sequence begins; the tables of new sequences are appended. */
static int table_of(const wg_row *row, int i, int space, const wg_gpu_row *done, int32_t *tables, int *used)
{
    for (int k = i - 1; k >= 0; k--)
        if (row[k].kv == row[i].kv) return done[k].table;
    const wg_kv_view view = wg_kv_view_of(row[i].kv, space, 0);
    const int slots = wg_kv_len(row[i].kv) + wg_kv_tail(row[i].kv), n = (slots + view.page_slots - 1) / view.page_slots;
    memcpy(tables + *used, view.page, (size_t)n * sizeof *tables);
    *used += n;
    return *used - n;
}

/* Rounds the pass up, where it is one to be recorded. */
static void round_up(cuda_state *s, const wg_pass *pass)
{
    const int room = pass->max_rows, rows = wg_graph_rows(pass->rows), asked = wg_graph_rows(pass->asked);
    s->all = pass->rows, s->asked = pass->asked;
    if (s->mode & WG_CUDA_EAGER || pass->rows > WG_GRAPH_ROWS) return;
    s->all = rows < room ? rows : room;
    if (pass->asked == pass->rows) s->asked = s->all;
    else if (pass->asked > 0) s->asked = asked < s->all ? asked : s->all;
}

/* The next stage is the first one. */
static void from_the_start(cuda_state *s)
{
    s->rows = s->all;
    s->row = (const wg_gpu_row *)(const void *)s->pass.device;
    s->kept = false;
}

/* Whether a pass like this one has been recorded, or is to be. */
static void find_graph(cuda_state *s)
{
    const wg_pass *p = &s->now;
    wg_graph_key key;
    bool first;
    s->turn = LAUNCH;
    memset(&key, 0, sizeof key);
    if (s->mode & WG_CUDA_EAGER || p->rows > WG_GRAPH_ROWS || !s->small || !wg_graph_plan(&key, p->plan)) return;
    s->most = wg_graph_spans(s->most) * WG_GPU_SPAN;
    key.model = p->model;
    key.pool = wg_kv_view_of(p->row[0].kv, p->space, 0).pool;
    key.rows = s->all;
    key.asked = p->asked == p->rows ? -1 : s->asked;
    key.spans = exact(s) ? 0 : wg_gpu_spans(s->most);
    s->graph = wg_graphs_find(&s->graphs, &key, &first);
    if (!first) s->turn = s->graph->ready ? REPLAY : RECORD;
}

/* Descriptors, the numbers of rows that asked, page tables, in one piece. */
static void cuda_begin(wg_device *d, const wg_pass *pass)
{
    cuda_state *s = state_of(d);
    const staging *p = &s->pass;
    round_up(s, pass);
    wg_gpu_row *to = (wg_gpu_row *)(void *)p->host;
    int32_t *from = (int32_t *)(void *)(p->host + from_at(s->all)), *tables = from + s->asked;
    int used = 0, asked = 0;
    wg_assert(s->all <= p->rows);
    s->now = *pass;
    s->most = 0;
    for (int i = 0; i < pass->rows; i++) {
        const wg_row *r = &pass->row[i];
        const int keys = r->prefix - r->gap + wg_mask_count(&r->anc);
        to[i] = (wg_gpu_row){ .token = r->token, .position = r->position, .slot = r->slot, .prefix = r->prefix, .tail = r->tail,
                              .sinks = r->sinks, .gap = r->gap, .keys = keys };
        memcpy(to[i].anc, r->anc.w, sizeof to[i].anc);
        to[i].table = table_of(pass->row, i, pass->space, to, tables, &used);
        s->most = keys > s->most ? keys : s->most;
        if (r->logits >= 0) from[asked++] = i;
    }
    for (int i = pass->rows; i < s->all; i++) to[i] = (wg_gpu_row){ .slot = -1 };
    while (asked < s->asked) from[asked++] = -1;
    wg_assert(used <= p->tables);
    s->from = (const int32_t *)(const void *)(p->device + from_at(s->all));
    s->tables = s->from + s->asked;
    s->small = (size_t)s->asked * (size_t)pass->width * sizeof(float) <= s->logits_bytes;
    s->gpu.api->put(&s->gpu, p->device, p->host, tables_at(s->all, s->asked) + (size_t)used * sizeof *tables);
    if (pass->settling) wg_settle_send(&s->settle, &s->gpu, pass->width, pass->settling);
    from_the_start(s);
    find_graph(s);
}

static bool cuda_again(wg_device *d)
{
    cuda_state *s = state_of(d);
    const turn turn = s->turn;
    char why[WG_GPU_WHY];
    s->turn = DONE;
    if (turn == LAUNCH) return true;
    if (turn == RECORD) {
        s->gpu.api->record(&s->gpu);
        s->turn = RECORDING;
        return true;
    }
    if (turn == RECORDING && !(s->graph->ready = s->gpu.api->recorded(&s->gpu, why))) {
        wg_log(WG_LOG_INFO, "%s (%s): a pass could not be recorded, launches are made one by one: %s", s->name, s->gpu.card,
               why);
        s->mode |= WG_CUDA_EAGER;
        from_the_start(s);
        return true;
    }
    if (turn == DONE) return false;
    s->gpu.api->replay(&s->gpu, s->graph->ready);
    s->kept = s->now.asked > 0;
    return false;
}

static void cuda_narrow(wg_device *d)
{
    cuda_state *s = state_of(d);
    s->rows = s->asked;
    if (s->rows == 0) return;
    s->gpu.api->gather_rows(&s->gpu, s->row, s->from, s->narrowed, s->rows);
    s->row = s->narrowed;
}

static wg_status cuda_settle_open(wg_device *d, int vocab, int trees, int *rows, wg_error *err)
{
    cuda_state *s = state_of(d);
    return wg_settle_room_open(&s->settle, &s->gpu, vocab, trees, rows, err);
}

/* The logits of rows first .. first + n-1 of those that asked are there: to the host, or to rows of p. */
static void use_logits(cuda_state *s, int first, int n)
{
    const wg_pass *p = &s->now;
    const size_t width = (size_t)p->width;
    if (p->settling) wg_settle_sample(&s->settle, &s->gpu, p->width, p->settling, s->logits, first, n);
    else s->gpu.api->get(&s->gpu, p->logits + (size_t)first * width, s->logits, (size_t)n * width * sizeof(float));
}

static wg_status cuda_finish(wg_device *d, wg_error *err)
{
    cuda_state *s = state_of(d);
    char why[WG_GPU_WHY];
    if (s->kept) use_logits(s, 0, s->now.asked);
    if (s->now.settling) wg_settle_finish(&s->settle, &s->gpu, s->now.width, s->now.settling);
    s->kept = false;
    if (s->gpu.api->wait(&s->gpu, why) == 0) return WG_OK;
    return wg_fail(err, WG_EIO, "%s (%s): %s", s->name, s->gpu.card, why);
}

static wg_gpu_kv pages_of(const cuda_state *s, int space, int layer)
{
    const wg_kv_view v = wg_kv_view_of(s->now.row[0].kv, space, layer); /* all sequences have the cache's layout */
    return (wg_gpu_kv){ .type = v.type, .page_slots = v.page_slots, .kv_dim = v.kv_dim, .pool = v.pool, .stride = v.stride,
                        .value_at = v.value_at, .tables = s->tables };
}

/* ---- stages. `row` and `from` were sent by begin, and `rows` are s->rows of them: rounded up. */

static void cuda_embed(wg_device *d, const wg_matrix *table, const wg_row *row, int rows, float *x, int dim)
{
    cuda_state *s = state_of(d);
    (void)row, (void)rows, (void)dim;
    s->gpu.api->embed(&s->gpu, table, fragments_of(s, table->type), s->row, s->rows, x);
}

static void cuda_rmsnorm(wg_device *d, const float *x, const float *weight, int dim, float eps, float *y, int rows)
{
    cuda_state *s = state_of(d);
    (void)rows;
    s->gpu.api->rmsnorm(&s->gpu, x, weight, dim, eps, y, s->rows);
}

static size_t cuda_act_bytes(const wg_device *d, int type, int rows, int k)
{
    return wg_gpu_act_bytes(type, fragments_of(state_of(d), type), rows, k);
}

static int cuda_prepared(const wg_device *d, int type)
{
    const cuda_state *s = state_of(d);
    if (wg_type_get(type)->block > 1) return 1;
    return fragments_of(s, type) ? 2 + (type == WG_F16) : 0;
}

static void prepare_rows(wg_device *d, int type, const float *x, int rows, int k, void *act)
{
    cuda_state *s = state_of(d);
    s->input = cuda_prepared(d, type) == 0 ? x : act;
    s->gpu.api->prepare(&s->gpu, type, fragments_of(s, type), x, rows, k, act);
}

static void cuda_prepare(wg_device *d, int type, const float *x, int rows, int k, void *act)
{
    (void)rows;
    prepare_rows(d, type, x, state_of(d)->rows, k, act);
}

static void product(cuda_state *s, const wg_matrix *const *w, float *const *y, int n, int rows, int then)
{
    s->gpu.api->matmul(&s->gpu, w, y, n, fragments_of(s, w[0]->type), s->input, rows, then);
}

/* Matrices of one type go together. */
static void cuda_matmul(wg_device *d, const wg_matrix *const *w, float *const *y, int n_matrices, const void *act, int rows)
{
    cuda_state *s = state_of(d);
    (void)act, (void)rows;
    for (int i = 0, n; i < n_matrices; i += n) {
        for (n = 1; i + n < n_matrices && n < WG_GPU_MATRICES && w[i + n]->type == w[i]->type; n++) {}
        product(s, w + i, y + i, n, s->rows, WG_GPU_STORE);
    }
}

static void cuda_norm_prepare(wg_device *d, int type, const float *x, const float *weight, int dim, float eps, float *h,
                              void *act, int rows)
{
    cuda_state *s = state_of(d);
    const bool as_is = cuda_prepared(d, type) == 0;
    (void)rows;
    s->input = as_is ? h : act;
    if (as_is) s->gpu.api->rmsnorm(&s->gpu, x, weight, dim, eps, h, s->rows);
    else s->gpu.api->norm_prepare(&s->gpu, type, x, weight, eps, s->rows, dim, act);
}

static void cuda_matmul_add(wg_device *d, const wg_matrix *w, const void *act, int rows, float *x)
{
    cuda_state *s = state_of(d);
    (void)act, (void)rows;
    product(s, &w, &x, 1, s->rows, WG_GPU_ADD);
}

static void cuda_matmul_swiglu(wg_device *d, const wg_matrix *gate, const wg_matrix *up, const void *act, int rows, float *y)
{
    cuda_state *s = state_of(d);
    (void)act, (void)rows;
    product(s, (const wg_matrix *const[]){ gate, up }, &y, 2, s->rows, WG_GPU_SWIGLU);
}

static void cuda_head(wg_device *d, const wg_matrix *w, const float *x, int rows, void *act, float *y)
{
    cuda_state *s = state_of(d);
    (void)y; /* that of the pass */
    const size_t width = (size_t)w->n;
    const int room = s->small ? s->rows : (int)(s->logits_bytes / (width * sizeof(float)));
    if (s->small) rows = s->rows;
    for (int first = 0; first < rows; first += room) {
        const int n = rows - first < room ? rows - first : room;
        prepare_rows(d, w->type, x + (size_t)first * (size_t)w->k, n, w->k, act);
        product(s, &w, &s->logits, 1, n, WG_GPU_STORE);
        if (!s->small) use_logits(s, first, n);
    }
    s->kept = s->small;
}

static void cuda_rope_store(wg_device *d, const wg_rope *rope, float *q, float *k, const float *v, const wg_row *row, int rows,
                            int space, int layer, int heads, int kv_heads, int hd)
{
    cuda_state *s = state_of(d);
    const wg_gpu_kv kv = pages_of(s, space, layer);
    (void)row, (void)rows;
    s->gpu.api->rope_store(&s->gpu, rope->cs, rope->n_rot, rope->adjacent, q, k, v, s->row, s->rows, &kv, heads, kv_heads, hd);
}

static void cuda_attention(wg_device *d, const float *q, const wg_row *row, int rows, int space, int layer, int heads,
                           int kv_heads, int hd, float *out)
{
    cuda_state *s = state_of(d);
    const wg_gpu_kv kv = pages_of(s, space, layer);
    const size_t one = (size_t)heads * (size_t)hd, span = wg_gpu_attention_bytes(1, heads, hd, WG_GPU_SPAN);
    const size_t fit = s->partial_bytes / span; /* spans of a row: as many as a row has, if not as many as rounded up */
    const int spans = exact(s) || (size_t)wg_gpu_spans(s->most) < fit ? wg_gpu_spans(s->most) : (int)fit;
    const int room = exact(s) || fit / (size_t)spans > (size_t)s->rows ? s->rows : (int)(fit / (size_t)spans);
    (void)row, (void)rows;
    for (int first = 0; first < s->rows; first += room) {
        const int n = s->rows - first < room ? s->rows - first : room;
        s->gpu.api->attention(&s->gpu, q + (size_t)first * one, s->row + first, n, spans * WG_GPU_SPAN, &kv, heads, kv_heads,
                              hd, !exact(s), s->partial, out + (size_t)first * one);
    }
}

static void cuda_swiglu(wg_device *d, const float *gate, const float *up, float *y, int n, int rows)
{
    cuda_state *s = state_of(d);
    (void)rows;
    s->gpu.api->swiglu(&s->gpu, gate, up, y, n, s->rows);
}

static void cuda_add(wg_device *d, float *x, const float *y, int n, int rows)
{
    cuda_state *s = state_of(d);
    (void)rows;
    s->gpu.api->add(&s->gpu, x, y, n, s->rows);
}

static void cuda_gather(wg_device *d, const float *x, const int32_t *from, int n, float *y, int rows)
{
    cuda_state *s = state_of(d);
    (void)from, (void)rows;
    if (s->rows > 0) s->gpu.api->gather(&s->gpu, x, s->from, n, y, s->rows);
}

static const wg_device_class cuda_class = {
    .name = "cuda",
    .matrix_bytes = cuda_matrix_bytes,
    .act_bytes = cuda_act_bytes,
    .prepared = cuda_prepared,
    .matrix = cuda_matrix,
    .matrix_free = cuda_matrix_free,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .upload = cuda_upload,
    .attach = cuda_attach,
    .begin = cuda_begin,
    .again = cuda_again,
    .narrow = cuda_narrow,
    .finish = cuda_finish,
    .settle_open = cuda_settle_open,
    .hold = cuda_hold,
    .close = cuda_close,
    .embed = cuda_embed,
    .rmsnorm = cuda_rmsnorm,
    .prepare = cuda_prepare,
    .matmul = cuda_matmul,
    .rope_store = cuda_rope_store,
    .attention = cuda_attention,
    .swiglu = cuda_swiglu,
    .add = cuda_add,
    .norm_prepare = cuda_norm_prepare,
    .matmul_add = cuda_matmul_add,
    .matmul_swiglu = cuda_matmul_swiglu,
    .head = cuda_head,
    .gather = cuda_gather,
};

wg_status wg_device_cuda(wg_device *out, const wg_gpu_api *api, int ordinal, unsigned mode, wg_pool *pool, wg_error *err)
{
    char why[WG_GPU_WHY];
    WG_TRY(wg_device_cpu(out, pool, err));
    cuda_state *s = wg_calloc(1, sizeof *s);
    if (!s) return wg_nomem(err, sizeof *s, "a device");
    s->owners = 1;
    s->mode = mode;
    s->graphs.gpu = &s->gpu;
    snprintf(s->name, sizeof s->name, "cuda:%d", ordinal);
    if (api->open(&s->gpu, ordinal, why)) {
        wg_free(s);
        return wg_fail(err, WG_EUNSUPPORTED, "device cuda:%d: %s; or take device cpu, or auto", ordinal, why);
    }
    s->gpu.api = api;
    s->home = (wg_kv_home){ .name = s->name, .user = s, .alloc = home_alloc, .free = home_free, .copy = home_copy,
                            .move = home_move };
    out->class = &cuda_class;
    out->state = s;
    out->home = &s->home;
    return WG_OK;
}
