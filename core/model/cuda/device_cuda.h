/* SPDX-License-Identifier: MIT
 * A CUDA device: the struct that device_cuda.c (the stages), pass.c (a pass from its first copy to its wait) and memory.c
 * (buffers, matrices, pages) share. It uses a wg_gpu_api only, so tests run these files over emulated threads.
 *
 * All memory is allocated when a model attaches: rows and tables of the largest pass, partial sums of split attention, and
 * logits for a bounded number of rows. Larger passes run in groups of rows with the same results, because every kernel
 * computes each row independently.
 *
 * The device is shared by its owner, the models on it and the caches with pages on it; the last owner to release it closes
 * it. */
#ifndef WG_CORE_MODEL_CUDA_DEVICE_CUDA_H
#define WG_CORE_MODEL_CUDA_DEVICE_CUDA_H

#include "core/model/cuda/graphs.h"
#include "core/model/cuda/verify_buffers.h"

typedef struct wg_cuda_staging { /* of one pass: [rows][within][from][tables], sent as one piece */
    char *host, *device;         /* pinned; device */
    int rows, tables;            /* room */
} wg_cuda_staging;

/* What a pass waits for. */
typedef enum wg_cuda_stage_mode {
    WG_CUDA_LAUNCH,
    WG_CUDA_RECORD,
    WG_CUDA_RECORDING,
    WG_CUDA_REPLAY,
    WG_CUDA_DONE
} wg_cuda_stage_mode;

typedef struct wg_cuda {
    wg_gpu gpu;
    int owners;
    unsigned mode; /* WG_CUDA_ */
    wg_device_class class;
    char name[32];
    wg_kv_memory memory;

    wg_cuda_staging pass;
    wg_gpu_row *narrowed; /* (2, pass.rows) rows with logits; as layers with a window see them */
    float *partial, *logits;
    size_t partial_bytes, logits_bytes;
    wg_gpu_best *best; /* (WG_GPU_FUSED_ROWS, WG_GPU_BESTS) largest logits, where the head wrote them */
    uint32_t *arrived; /* zeros: counters of attention */
    size_t arrived_bytes;
    wg_verify_buffers verify;

    wg_graphs graphs;
    wg_passes_made made;

    /* the pass that has begun */
    wg_pass now;
    int all, asked;               /* rows, and rows with logits; rounded up */
    int rows;                     /* of the next stage: one or the other */
    const wg_gpu_row *row;        /* device: theirs */
    const wg_gpu_row *within;     /* device: as layers with a window see them; NULL: as the others */
    const int32_t *from, *tables; /* device */
    int most;                     /* keys of the row that sees the most; rounded up */
    bool small;                   /* its logits stay in `logits` until it is finished */
    bool kept;                    /* and are there */
    wg_cuda_stage_mode stage_mode;
    bool first; /* no pass with its key came before */
    wg_graph *graph;
    const void *input; /* of the products to come: prepared, or the rows themselves */
} wg_cuda;

static inline wg_cuda *wg_cuda_of(const wg_device *d) { return d->state; }
static inline bool wg_cuda_exact(const wg_cuda *s) { return s->mode & WG_CUDA_EXACT; }
static inline wg_gpu_layout wg_cuda_layout(const wg_cuda *s, int type)
{
    if (wg_cuda_exact(s) || !wg_gpu_has_fragments(type)) return WG_GPU_PANELS;
    return s->mode & WG_CUDA_FAST && wg_gpu_is_half(type) ? WG_GPU_ROWS : WG_GPU_FRAGMENTS;
}

/* Offsets in a staging of so many descriptors of rows, so many rows of them with logits. */
static inline size_t wg_cuda_from_at(int rows) { return (size_t)rows * sizeof(wg_gpu_row); }
static inline size_t wg_cuda_tables_at(int rows, int asked) { return wg_cuda_from_at(rows) + (size_t)asked * sizeof(int32_t); }

/* memory.c. bytes_free also drops all recorded passes, because the memory may be an argument of one; NULL is fine. no_memory:
 * the error of a failed allocation of `what`, with the option that the user can lower. */
void *wg_cuda_bytes_alloc(wg_cuda *s, size_t bytes);
void wg_cuda_bytes_free(wg_cuda *s, void *p);
wg_status wg_cuda_no_memory(wg_cuda *s, size_t bytes, const char *what, const char *remedy, wg_error *err);
wg_kv_memory wg_cuda_kv_memory(wg_cuda *s);

/* Entries of wg_device_class in memory.c. */
wg_buf wg_cuda_alloc(wg_device *d, size_t floats);
void wg_cuda_free(wg_device *d, wg_buf b);
void wg_cuda_upload(wg_device *d, wg_buf to, const float *from, size_t floats);
wg_status wg_cuda_download(wg_device *d, float *to, const float *from, size_t floats, wg_error *err);
void wg_cuda_copy(wg_device *d, wg_buf to, const float *from, size_t floats);
size_t wg_cuda_matrix_bytes(const wg_device *d, int type, int n, int k);
wg_status wg_cuda_matrix(wg_device *d, int type, int n, int k, const void *rows, wg_matrix *out, wg_error *err);
bool wg_cuda_draws(const wg_device *d, int type);
wg_status wg_cuda_matrix_random(wg_device *d, int type, int n, int k, uint64_t seed, uint32_t stream, wg_matrix *out,
                                wg_error *err);
void wg_cuda_matrix_free(wg_device *d, wg_matrix *m);
wg_status wg_cuda_attach(wg_device *d, const wg_kv *kv, const wg_pass_shape *shape, wg_error *err);
void wg_cuda_retain(wg_device *d);
void wg_cuda_close(wg_device *d);

/* Entries of wg_device_class in pass.c. use_logits: the logits of rows first .. first + n-1, of the rows with logits, are
 * computed: copies them to the host, or computes rows of p from them. */
void wg_cuda_begin(wg_device *d, const wg_pass *pass);
bool wg_cuda_again(wg_device *d);
void wg_cuda_keep_logit_rows(wg_device *d);
wg_status wg_cuda_verify_open(wg_device *d, wg_rule_kind rule, int vocab, int trees, int *rows, wg_error *err);
void wg_cuda_use_logits(wg_cuda *s, int first, int n);
wg_status wg_cuda_finish(wg_device *d, wg_error *err);
wg_passes_made wg_cuda_made(const wg_device *d);

#endif
