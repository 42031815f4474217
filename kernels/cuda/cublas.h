/* SPDX-License-Identifier: MIT
 * Products of training by cuBLAS, loaded when a device is first asked for it. Its few functions are declared here, so that this
 * text is compiled where its header is not, and tests run it over a stub of the library (tests/simt/cublas.cpp).
 *
 * Numbers are f32 throughout: the math mode is the default one, which takes TF32 or emulated products for no call that does not
 * ask for them. NVIDIA promises the same bits in every run on one kind of card with one version of the library, as long as one
 * stream uses the handle, and its workspace is the caller's: so it is. Private to runtime.cu. */
#ifndef WG_KERNELS_CUDA_CUBLAS_H
#define WG_KERNELS_CUDA_CUBLAS_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/gpu.h"

#ifndef __CUDACC__
void *simt_cublas(const char *name); /* a function of the stub; NULL: there is none */
#endif

enum { WG_CUBLAS_PLAIN = 0, WG_CUBLAS_TRANSPOSED = 1, WG_CUBLAS_DEFAULT_MATH = 0 }; /* cublasOperation_t, cublasMath_t */

typedef struct wg_cublas {
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, cudaStream_t stream);
    int (*set_workspace)(void *handle, void *room, size_t bytes);
    int (*set_math)(void *handle, int mode);
    int (*sgemm)(void *handle, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda, long long sa,
                 const float *b, int ldb, long long sb, const float *beta, float *c, int ldc, long long sc, int batch);
    void *handle, *room;
} wg_cublas;

static const size_t WG_CUBLAS_ROOM = (size_t)32 << 20; /* bytes to work in, as NVIDIA advises from 9.0 on */

/* WG_CUBLAS names another file of the library. */
static const char *wg_cublas_file(char *room, size_t bytes)
{
    const char *named = getenv("WG_CUBLAS");
    snprintf(room, bytes, "libcublas.so.%d", CUDART_VERSION / 1000);
    return named ? named : room;
}

/* The name of a function that is missing, the empty string where there is no library; NULL: all are there. */
static const char *wg_cublas_find(wg_cublas *c)
{
    struct {
        const char *name;
        void *at;
    } const row[] = {
        { "cublasCreate_v2", &c->create },        { "cublasDestroy_v2", &c->destroy },
        { "cublasSetStream_v2", &c->set_stream }, { "cublasSetWorkspace_v2", &c->set_workspace },
        { "cublasSetMathMode", &c->set_math },    { "cublasSgemmStridedBatched", &c->sgemm },
    };
#ifdef __CUDACC__
    char file[32];
    void *library = dlopen(wg_cublas_file(file, sizeof file), RTLD_NOW | RTLD_LOCAL); /* stays open */
    if (!library) return "";
#else
    if (!simt_cublas("")) return "";
#endif
    for (const auto &r : row) {
#ifdef __CUDACC__
        void *const found = dlsym(library, r.name);
#else
        void *const found = simt_cublas(r.name);
#endif
        if (!found) return r.name;
        memcpy(r.at, &found, sizeof found); /* POSIX gives functions as object pointers */
    }
    return NULL;
}

static void wg_cublas_close(wg_gpu *g)
{
    wg_cublas *c = (wg_cublas *)g->blas;
    if (!c) return;
    if (c->handle) c->destroy(c->handle);
    cudaFree(c->room);
    free(c);
    g->blas = NULL;
}

static bool wg_cublas_made(wg_cublas *c, cudaStream_t stream)
{
    return cudaMalloc(&c->room, WG_CUBLAS_ROOM) == cudaSuccess && c->create(&c->handle) == 0 &&
           c->set_stream(c->handle, stream) == 0 && /* it takes the handle's own workspace again: first */
           c->set_workspace(c->handle, c->room, WG_CUBLAS_ROOM) == 0 && c->set_math(c->handle, WG_CUBLAS_DEFAULT_MATH) == 0;
}

static int wg_cublas_open(wg_gpu *g, char *why)
{
    char room[32];
    if (g->blas) return 0;
    wg_cublas *c = (wg_cublas *)calloc(1, sizeof *c);
    if (!c) {
        snprintf(why, WG_GPU_WHY, "the host is out of memory");
        return -1;
    }
    const char *missing = wg_cublas_find(c), *file = wg_cublas_file(room, sizeof room);
    g->blas = c;
    if (!missing && wg_cublas_made(c, (cudaStream_t)g->stream.at)) return 0;
    if (!missing)
        snprintf(why, WG_GPU_WHY,
                 "cuBLAS does not start: it needs %zu MiB and some more of the device's memory; free some of it",
                 WG_CUBLAS_ROOM >> 20);
    else if (*missing)
        snprintf(why, WG_GPU_WHY, "%s lacks %s; install the toolkit's libraries, or name another file in WG_CUBLAS", file,
                 missing);
    else
        snprintf(why, WG_GPU_WHY,
                 "its products need cuBLAS, and %s is not found; install the toolkit's libraries, set LD_LIBRARY_PATH, or name "
                 "the file in WG_CUBLAS",
                 file);
    cudaGetLastError();
    wg_cublas_close(g);
    return -1;
}

/* 0, or the library's status. It counts columns first, so it sees the transpose of every matrix: c^T = op(b)^T op(a)^T. */
static int wg_cublas_gemm(wg_gpu *g, const wg_gemm *of, const wg_gpu_batch *batch)
{
    const wg_cublas *c = (const wg_cublas *)g->blas;
    const wg_gpu_batch one = { 1, 0, 0, 0 }, by = batch ? *batch : one;
    const float alpha = (float)of->alpha, beta = (float)of->beta;
    return c->sgemm(c->handle, of->tb ? WG_CUBLAS_TRANSPOSED : WG_CUBLAS_PLAIN, of->ta ? WG_CUBLAS_TRANSPOSED : WG_CUBLAS_PLAIN,
                    of->n, of->m, of->k, &alpha, (const float *)of->b, of->ldb, (long long)by.b, (const float *)of->a, of->lda,
                    (long long)by.a, &beta, (float *)of->c, of->ldc, (long long)by.c, by.n);
}

#endif
