/* SPDX-License-Identifier: MIT
 * Products of the fast mode by cuBLASLt: f16 or bf16 rows times rows, f32 sums and results. The library is looked for when a
 * device is opened so. For each shape, and rows rounded up to a power of two, its heuristic names one algorithm, once: when a
 * pass of that kind is first launched, which comes before one like it is recorded, or while a loop is recorded (it launches
 * nothing). Room to work in is taken when the device is opened, and a product takes none. Private to runtime.cu. */
#ifndef WG_KERNELS_CUDA_CUBLASLT_H
#define WG_KERNELS_CUDA_CUBLASLT_H

#include <stdio.h>

#include "kernels/cuda/gpu.h"

#if defined(__CUDACC__) && defined(__has_include) && __has_include(<cublasLt.h>)
#include <cublasLt.h>
#include <dlfcn.h>

/* clang-format off */
#define WG_CUBLASLT(X) \
    X(Create) X(Destroy) X(Matmul) X(MatmulDescCreate) X(MatmulDescDestroy) X(MatmulDescSetAttribute) \
    X(MatmulPreferenceCreate) X(MatmulPreferenceDestroy) X(MatmulPreferenceSetAttribute) X(MatmulAlgoGetHeuristic) \
    X(MatrixLayoutInit_internal) /* of cublasLtMatrixLayoutInit, which is inline */
/* clang-format on */

typedef struct wg_cublaslt {
#define X(name) decltype(&cublasLt##name) name;
    WG_CUBLASLT(X)
#undef X
    bool there;
} wg_cublaslt;

static wg_cublaslt wg_cublaslt_find()
{
    wg_cublaslt c = {};
    char file[32];
    snprintf(file, sizeof file, "libcublasLt.so.%d", CUBLAS_VER_MAJOR);
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL); /* stays open */
    if (!library) return c;
    c.there = true;
#define X(name) c.there = (c.name = (decltype(c.name))dlsym(library, "cublasLt" #name)) && c.there;
    WG_CUBLASLT(X)
#undef X
    return c;
}

static const wg_cublaslt &wg_cublaslt_there()
{
    static const wg_cublaslt c = wg_cublaslt_find();
    return c;
}

/* ---- what a device has of it */

enum { WG_CUBLASLT_CHOICES = 256 }; /* of a dozen shapes, ten numbers of rows each; past that the oldest goes */
static const size_t WG_CUBLASLT_ROOM = (size_t)32 << 20; /* bytes to work in, as NVIDIA advises from 9.0 on */

typedef struct wg_cublaslt_choice {
    int type, n, k, rows;
    cublasLtMatmulAlgo_t algorithm;
} wg_cublaslt_choice;

typedef struct wg_cublaslt_state {
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t how;
    cublasLtMatmulPreference_t wanted;
    void *room;
    long chosen;
    wg_cublaslt_choice choice[WG_CUBLASLT_CHOICES];
} wg_cublaslt_state;

static void wg_cublaslt_close(wg_gpu *g)
{
    wg_cublaslt_state *s = (wg_cublaslt_state *)g->products;
    const wg_cublaslt &c = wg_cublaslt_there();
    if (!s) return;
    if (s->wanted) c.MatmulPreferenceDestroy(s->wanted);
    if (s->how) c.MatmulDescDestroy(s->how);
    if (s->handle) c.Destroy(s->handle);
    cudaFree(s->room);
    cudaFreeHost(s);
    g->products = NULL;
}

static bool wg_cublaslt_made(wg_cublaslt_state *s)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
    };
    const wg_cublaslt &c = wg_cublaslt_there();
    const cublasOperation_t turned = CUBLAS_OP_T;
    const uint32_t aligned = 16;
    if (c.Create(&s->handle) || c.MatmulDescCreate(&s->how, CUBLAS_COMPUTE_32F, CUDA_R_32F) ||
        c.MatmulDescSetAttribute(s->how, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned) ||
        c.MatmulPreferenceCreate(&s->wanted) ||
        c.MatmulPreferenceSetAttribute(s->wanted, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &WG_CUBLASLT_ROOM,
                                       sizeof WG_CUBLASLT_ROOM))
        return false;
    for (const auto a : alignments)
        if (c.MatmulPreferenceSetAttribute(s->wanted, a, &aligned, sizeof aligned)) return false;
    return true;
}

static int wg_cublaslt_open(wg_gpu *g, char *why)
{
    void *s = NULL;
    if (g->products) return 0;
    if (!wg_cublaslt_there().there) {
        snprintf(why, WG_GPU_WHY,
                 "no cuBLASLt, the library of its products: libcublasLt.so.%d is not found; install the "
                 "toolkit's libraries, or set LD_LIBRARY_PATH",
                 CUBLAS_VER_MAJOR);
        return -1;
    }
    if (cudaMallocHost(&s, sizeof(wg_cublaslt_state)) == cudaSuccess) {
        g->products = memset(s, 0, sizeof(wg_cublaslt_state));
        if (cudaMalloc(&((wg_cublaslt_state *)s)->room, WG_CUBLASLT_ROOM) == cudaSuccess &&
            wg_cublaslt_made((wg_cublaslt_state *)s))
            return 0;
        wg_cublaslt_close(g);
    }
    cudaGetLastError();
    snprintf(why, WG_GPU_WHY, "cuBLASLt does not start: it needs %zu MiB and some more of the device's memory",
             WG_CUBLASLT_ROOM >> 20);
    return -1;
}

/* ---- a product */

typedef struct wg_cublaslt_shapes {
    cublasLtMatrixLayoutOpaque_t w, x, y;
} wg_cublaslt_shapes;

/* The library counts columns first: y (n, rows) = w (k, n) turned, times x (k, rows). */
static cublasStatus_t wg_cublaslt_shape(const wg_matrix *w, int rows, wg_cublaslt_shapes *of)
{
    const auto init = wg_cublaslt_there().MatrixLayoutInit_internal;
    const cudaDataType type = w->type == WG_F16 ? CUDA_R_16F : CUDA_R_16BF;
    const uint64_t n = (uint64_t)w->n, k = wg_gpu_k_padded(w->k), r = (uint64_t)rows;
    cublasStatus_t s = init(&of->w, sizeof of->w, type, k, n, (int64_t)k);
    if (s == CUBLAS_STATUS_SUCCESS) s = init(&of->x, sizeof of->x, type, k, r, (int64_t)k);
    return s == CUBLAS_STATUS_SUCCESS ? init(&of->y, sizeof of->y, CUDA_R_32F, n, r, (int64_t)n) : s;
}

/* The algorithm for so many rows; NULL: the library knows none. */
static const cublasLtMatmulAlgo_t *wg_cublaslt_choose(wg_cublaslt_state *s, const wg_matrix *w, int rows)
{
    int up = 1, found = 0;
    while (up < rows) up *= 2;
    for (long i = 0; i < s->chosen && i < WG_CUBLASLT_CHOICES; i++) {
        const wg_cublaslt_choice *c = &s->choice[i];
        if (c->type == w->type && c->n == w->n && c->k == w->k && c->rows == up) return &c->algorithm;
    }
    wg_cublaslt_shapes of;
    cublasLtMatmulHeuristicResult_t best;
    if (wg_cublaslt_shape(w, up, &of) ||
        wg_cublaslt_there().MatmulAlgoGetHeuristic(s->handle, s->how, &of.w, &of.x, &of.y, &of.y, s->wanted, 1, &best,
                                                   &found) ||
        found == 0)
        return NULL;
    wg_cublaslt_choice *c = &s->choice[s->chosen++ % WG_CUBLASLT_CHOICES];
    *c = wg_cublaslt_choice{ w->type, w->n, w->k, up, best.algo };
    return &c->algorithm;
}

/* 0, or the library's status. */
static int wg_cublaslt_product(wg_gpu *g, const wg_matrix *w, const void *act, int rows, int add, float *y)
{
    wg_cublaslt_state *s = (wg_cublaslt_state *)g->products;
    wg_cublaslt_shapes of;
    const float one = 1, kept = add ? 1 : 0;
    const cublasLtMatmulAlgo_t *algorithm = wg_cublaslt_choose(s, w, rows);
    if (!algorithm) return CUBLAS_STATUS_NOT_SUPPORTED;
    const cublasStatus_t status = wg_cublaslt_shape(w, rows, &of);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    return wg_cublaslt_there().Matmul(s->handle, s->how, &one, w->data, &of.w, act, &of.x, &kept, y, &of.y, y, &of.y, algorithm,
                                      s->room, WG_CUBLASLT_ROOM, (cudaStream_t)g->stream.at);
}
#else
static int wg_cublaslt_open(wg_gpu *, char *why)
{
    snprintf(why, WG_GPU_WHY,
             "this build has no cuBLASLt, the library of its products: build it where the toolkit has "
             "cublasLt.h");
    return -1;
}
static int wg_cublaslt_product(wg_gpu *, const wg_matrix *, const void *, int, int, float *) { return -1; }
static void wg_cublaslt_close(wg_gpu *) {}
#endif

#endif
