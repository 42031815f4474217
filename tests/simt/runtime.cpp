/* SPDX-License-Identifier: MIT
 * The emulated device behind kernels/cuda/gpu.h: what the CUDA runtime does, on memory.cpp's stretch of addresses. Everything
 * is done when the call returns; pinned memory is ordinary memory. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cuda/kernel_table.h"
#include "tests/simt/runtime.h"
#include "tests/simt/simt.h"

static int gpu_open(wg_gpu *g, int ordinal, char why[WG_GPU_WHY])
{
    if (ordinal != 0) {
        snprintf(why, WG_GPU_WHY, "there is no device %d; there is 1, numbered from 0", ordinal);
        return -1;
    }
    g->api = wg_gpu_simt();
    g->ordinal = 0;
    g->sm = 0;
    g->sms = 1;                  /* so that a block has many turns */
    g->shared = (size_t)99 << 10; /* the least of any card */
    g->stream.early = 1;
    g->memory = (size_t)1 << 30;
    snprintf(g->card, sizeof g->card, "emulated");
    const char *bytes = getenv("WG_SIMT_MEMORY"); /* a smaller device, for tests of what happens when it is full */
    if (bytes) simt_memory_limit(strtoul(bytes, NULL, 10));
    return 0;
}

static void gpu_close(wg_gpu *) {}

static void *gpu_alloc(wg_gpu *, size_t bytes)
{
    simt_record_refuse("an allocation");
    return simt_memory_take(bytes);
}

static void *gpu_alloc_weights(wg_gpu *, size_t bytes)
{
    simt_record_refuse("an allocation");
    return simt_memory_take_weights(bytes);
}

static void gpu_free(wg_gpu *, void *p)
{
    simt_record_refuse("freeing memory");
    simt_memory_give(p);
}

static void *gpu_pin(wg_gpu *, size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (p) simt_pinned(p, bytes + 1);
    return p;
}

static void gpu_unpin(wg_gpu *, void *p)
{
    simt_pinned(p, 0);
    free(p);
}

static void *gpu_map(wg_gpu *, size_t bytes, void **device)
{
    void *p = calloc((bytes + 63) / 64, 64);
    if (p) simt_mapped(p, bytes + 1);
    *device = p;
    return p;
}

static void gpu_unmap(wg_gpu *, void *p)
{
    simt_mapped(p, 0);
    free(p);
}

static size_t gpu_room(wg_gpu *g) { return g->memory - simt_stats_read().live; }

static void gpu_put(wg_gpu *, void *device, const void *host, size_t bytes)
{
    simt_record_refuse("a copy from the host");
    const simt_access was = simt_memory_access(SIMT_EVERYTHING);
    memcpy(device, host, bytes);
    simt_memory_access(was);
}

static void gpu_get(wg_gpu *, void *host, const void *device, size_t bytes)
{
    simt_record_refuse("a copy to the host");
    const simt_access was = simt_memory_access(SIMT_EVERYTHING);
    memcpy(host, device, bytes);
    simt_memory_access(was);
}

/* Done now, or when what is being recorded is replayed. */
template <class F> static void in_order(F what)
{
    simt_fn *const run = [](void *arg) {
        const simt_access was = simt_memory_access(SIMT_EVERYTHING);
        (*(F *)arg)();
        simt_memory_access(was);
    };
    if (simt_recording()) simt_record(simt_step{ dim3(), dim3(), 0, NULL, run, &what, sizeof what });
    else run(&what);
}

static void gpu_copy(wg_gpu *, void *to, const void *from, size_t bytes)
{
    in_order([=] { memcpy(to, from, bytes); });
}

static void gpu_clear(wg_gpu *, void *device, size_t bytes)
{
    in_order([=] { memset(device, 0, bytes); });
}

static int gpu_words(wg_gpu *, uint64_t, void *, size_t) { return -1; }

static int gpu_library(wg_gpu *, char *) { return 0; }

/* A plain loop whose sums come in another order for another number of rows, as a library's may. */
static void gpu_product(wg_gpu *, const wg_matrix *w, const void *act, int rows, int add, float *y)
{
    const wg_matrix m = *w;
    const auto value = [m](uint16_t h) { return m.type == WG_F16 ? wg_f16_value(h) : wg_bf16_value(h); };
    in_order([=] {
        const size_t padded = wg_gpu_k_padded(m.k);
        const int parts = 1 + rows % 3, each = (m.k + parts - 1) / parts;
        for (int row = 0; row < rows; row++)
            for (int n = 0; n < m.n; n++) {
                const uint16_t *x = (const uint16_t *)act + (size_t)row * padded;
                const uint16_t *v = (const uint16_t *)m.data + (size_t)n * padded;
                float *to = y + (size_t)row * (size_t)m.n + n, all = 0;
                for (int from = 0; from < m.k; from += each) {
                    float sum = 0;
                    for (int k = from; k < from + each && k < m.k; k++) sum += value(x[k]) * value(v[k]);
                    all += sum;
                }
                *to = add ? *to + all : all;
            }
    });
}

static int gpu_wait(wg_gpu *, char *)
{
    simt_record_refuse("waiting");
    return 0;
}

static int gpu_idle(wg_gpu *) { return 1; }

static void gpu_record(wg_gpu *) { simt_record_begin(); }
static void *gpu_recorded(wg_gpu *, char *) { return simt_record_end(); }
static void *gpu_recorded_loop(wg_gpu *, const int32_t *again, char *) { return simt_record_end(again); }
static void gpu_replay(wg_gpu *, void *graph) { simt_replay((const simt_graph *)graph); }
static void gpu_forget(wg_gpu *, void *graph) { simt_forget((simt_graph *)graph); }

const wg_gpu_api *wg_gpu_simt(void)
{
    static wg_gpu_api api;
    if (!api.name) {
        wg_gpu_kernels_into(&api);
        api.open = gpu_open;
        api.close = gpu_close;
        api.alloc = gpu_alloc;
        api.alloc_weights = gpu_alloc_weights;
        api.free = gpu_free;
        api.pin = gpu_pin;
        api.unpin = gpu_unpin;
        api.map = gpu_map;
        api.unmap = gpu_unmap;
        api.room = gpu_room;
        api.put = gpu_put;
        api.get = gpu_get;
        api.copy = gpu_copy;
        api.clear = gpu_clear;
        api.words = gpu_words;
        api.library = gpu_library;
        api.product = gpu_product;
        api.wait = gpu_wait;
        api.idle = gpu_idle;
        api.record = gpu_record;
        api.recorded = gpu_recorded;
        api.recorded_loop = gpu_recorded_loop;
        api.replay = gpu_replay;
        api.forget = gpu_forget;
        api.name = "simt";
    }
    return &api;
}
