/* SPDX-License-Identifier: MIT
 * The CUDA runtime behind kernels/cuda/gpu.h: a device, one stream, plain allocations. Statically linked, so that a program
 * built with CUDA starts on a machine without a driver, where open() says what is missing. Errors of launches and copies stick
 * until wait() tells the first of them: each is what the call itself returned. The runtime's own last error is never read: it
 * may be another device's, or what a call that may fail has left; check() and those calls clear it. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cublas.h"
#include "kernels/cuda/cublaslt.h"
#include "kernels/cuda/curand.h"
#include "kernels/cuda/launch.h"

enum {
    OLDEST = 80, /* compute capability 8.0: cp.async, bf16 on tensor cores */
    EARLY = 90   /* 9.0: programmatic dependent launch */
};

enum { KERNELS = 1024 }; /* a power of two, several times as many as there are */

/* What a device knows of its launches. */
struct wg_gpu_launches {
    int shared;             /* bytes that a block may take */
    cudaError_t failed;     /* the first failure that wait() has not returned yet, */
    const char *name;       /* and whose it was */
    cudaError_t unrecorded; /* why record() could not begin */
    int n;
    const void *kernel[KERNELS]; /* ready to be launched: hashed, the next free place */
};

static void check(wg_gpu *g, cudaError_t e, const char *what)
{
    if (e == cudaSuccess) return;
    cudaGetLastError();
    if (!g->failed[0]) snprintf(g->failed, sizeof g->failed, "%s: %s (%s)", what, cudaGetErrorString(e), cudaGetErrorName(e));
}

/* The stream, its device being made the thread's: every pass and every copy begins here, so launches find the right one. */
static cudaStream_t stream_of(wg_gpu *g)
{
    check(g, cudaSetDevice(g->ordinal), "choosing the device");
    return (cudaStream_t)g->stream.at;
}

/* ---- launches */

/* All the dynamic shared memory that the card has beside the kernel's own, whatever a launch takes of it; and the largest share
 * of a multiprocessor's memory, the same for all kernels: one that wants another share waits until the one before has left. */
static cudaError_t allow_shared(const void *kernel, int shared)
{
    cudaFuncAttributes has;
    cudaError_t e = cudaFuncGetAttributes(&has, kernel);
    if (e == cudaSuccess)
        e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared - (int)has.sharedSizeBytes);
    if (e != cudaSuccess) return e;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
}

extern "C" void WG_GPU(after_launch)(const wg_gpu_stream *stream, const char *name, cudaError_t e)
{
    wg_gpu_launches *l = stream->launches;
    if (e == cudaSuccess) return;
    cudaGetLastError();
    if (l->failed == cudaSuccess) l->failed = e, l->name = name;
}

extern "C" void WG_GPU(before_launch)(const wg_gpu_stream *stream, const char *name, const void *kernel)
{
    wg_gpu_launches *l = stream->launches;
    size_t at = (size_t)((uintptr_t)kernel / 16 * 0x9E3779B97F4A7C15u >> 40) % KERNELS;
#ifndef __CUDACC__
    simt_launch_name = name;
#endif
    for (; l->kernel[at]; at = (at + 1) % KERNELS)
        if (l->kernel[at] == kernel) return;
    WG_GPU(after_launch)(stream, name, allow_shared(kernel, l->shared));
    if (l->n == KERNELS - 1) return; /* full: made ready at each launch, to the same */
    l->kernel[at] = kernel;
    l->n++;
}

/* Why there is no device at all. */
static int explain(cudaError_t e, char *why)
{
    int driver = 0;
    cudaDriverGetVersion(&driver);
    cudaGetLastError();
    if (driver == 0) snprintf(why, WG_GPU_WHY, "no NVIDIA driver is installed here");
    else if (e == cudaErrorInsufficientDriver)
        snprintf(why, WG_GPU_WHY, "the NVIDIA driver is for CUDA %d.%d, this build needs %d.%d or newer: update the driver",
                 driver / 1000, driver % 1000 / 10, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    else if (e == cudaErrorNoDevice) snprintf(why, WG_GPU_WHY, "the NVIDIA driver finds no device");
    else snprintf(why, WG_GPU_WHY, "%s (%s)", cudaGetErrorString(e), cudaGetErrorName(e));
    return -1;
}

static int gpu_open(wg_gpu *g, int ordinal, char why[WG_GPU_WHY])
{
    int count = 0;
    cudaDeviceProp card;
    cudaStream_t stream;
    cudaError_t e = cudaGetDeviceCount(&count);
    if (e != cudaSuccess || count == 0) return explain(e == cudaSuccess ? cudaErrorNoDevice : e, why);
    if (ordinal < 0 || ordinal >= count) {
        snprintf(why, WG_GPU_WHY, "there is no device %d; there %s %d, numbered from 0", ordinal, count == 1 ? "is" : "are",
                 count);
        return -1;
    }
    if ((e = cudaGetDeviceProperties(&card, ordinal)) != cudaSuccess || (e = cudaSetDevice(ordinal)) != cudaSuccess)
        return explain(e, why);
    const int sm = card.major * 10 + card.minor;
    if (sm < OLDEST) {
        snprintf(why, WG_GPU_WHY, "%s has compute capability %d.%d; expected %d.%d or newer", card.name, card.major, card.minor,
                 OLDEST / 10, OLDEST % 10);
        return -1;
    }
    if ((e = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) != cudaSuccess) return explain(e, why);
    memset(g, 0, sizeof *g);
    if (!(g->stream.launches = (wg_gpu_launches *)calloc(1, sizeof *g->stream.launches))) {
        cudaStreamDestroy(stream);
        snprintf(why, WG_GPU_WHY, "the host is out of memory");
        return -1;
    }
    g->stream.launches->shared = (int)card.sharedMemPerBlockOptin;
    g->api = wg_gpu_cuda();
    g->stream.at = stream;
    g->stream.early = sm >= EARLY;
    g->ordinal = ordinal;
    g->sm = sm;
    g->sms = card.multiProcessorCount;
    g->shared = card.sharedMemPerBlockOptin;
    g->memory = card.totalGlobalMem;
    snprintf(g->card, sizeof g->card, "%.127s", card.name);
    return 0;
}

static void gpu_close(wg_gpu *g)
{
    stream_of(g);
    wg_curand_close(g);
    wg_cublaslt_close(g);
    wg_cublas_close(g);
    cudaStreamDestroy(stream_of(g));
    cudaGetLastError(); /* there is no caller left to report to */
    free(g->stream.launches);
}

static void *gpu_alloc(wg_gpu *g, size_t bytes)
{
    void *p = NULL;
    stream_of(g);
    const cudaError_t e = cudaMalloc(&p, bytes ? bytes : 1);
    if (e == cudaSuccess) return p;
    cudaGetLastError(); /* the caller says what there was no memory for */
    if (e != cudaErrorMemoryAllocation) check(g, e, "allocation");
    return NULL;
}

/* cudaFree waits for the device, so what still runs may use p. */
static void gpu_free(wg_gpu *g, void *p)
{
    if (p) check(g, cudaFree(p), "freeing memory");
}

static void *gpu_pin(wg_gpu *g, size_t bytes)
{
    void *p = NULL;
    stream_of(g);
    if (cudaMallocHost(&p, bytes ? bytes : 1) == cudaSuccess) return p;
    cudaGetLastError();
    return NULL;
}

static void gpu_unpin(wg_gpu *g, void *p) { check(g, cudaFreeHost(p), "freeing pinned memory"); }

static void *gpu_map(wg_gpu *g, size_t bytes, void **device)
{
    void *p = NULL;
    stream_of(g);
    if (cudaHostAlloc(&p, bytes ? bytes : 1, cudaHostAllocMapped) == cudaSuccess) {
        memset(p, 0, bytes);
        if (cudaHostGetDevicePointer(device, p, 0) == cudaSuccess) return p;
        cudaFreeHost(p);
    }
    cudaGetLastError();
    return NULL;
}

static size_t gpu_room(wg_gpu *g)
{
    size_t room = 0, all;
    stream_of(g);
    check(g, cudaMemGetInfo(&room, &all), "asking for free memory");
    return room;
}

static void gpu_put(wg_gpu *g, void *device, const void *host, size_t bytes)
{
    check(g, cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_of(g)), "copying to the device");
}

static void gpu_get(wg_gpu *g, void *host, const void *device, size_t bytes)
{
    check(g, cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_of(g)), "copying from the device");
    check(g, cudaStreamSynchronize(stream_of(g)), "waiting for the device");
}

static void gpu_copy(wg_gpu *g, void *to, const void *from, size_t bytes)
{
    check(g, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_of(g)), "copying within the device");
}

static void gpu_clear(wg_gpu *g, void *device, size_t bytes)
{
    check(g, cudaMemsetAsync(device, 0, bytes, stream_of(g)), "clearing memory");
}

static int gpu_words(wg_gpu *g, uint64_t seed, void *to, size_t n)
{
    stream_of(g);
    return wg_curand_words(g, seed, to, n);
}

static int gpu_library(wg_gpu *g, char why[WG_GPU_WHY])
{
    stream_of(g);
    return wg_cublaslt_open(g, why);
}

static void gpu_product(wg_gpu *g, const wg_matrix *w, const void *act, int rows, int add, float *y)
{
    const int status = wg_cublaslt_product(g, w, act, rows, add, y);
    if (status && !g->failed[0])
        snprintf(g->failed, sizeof g->failed,
                 "cuBLASLt's product of %d rows with %d x %d %s: status %d; take the device "
                 "without /fast",
                 rows, w->n, w->k, w->type == WG_F16 ? "f16" : "bf16", status);
}

static int gpu_blas(wg_gpu *g, char why[WG_GPU_WHY])
{
    stream_of(g);
    return wg_cublas_open(g, why);
}

static void gpu_gemm(wg_gpu *g, const wg_gemm *of, const wg_gpu_batch *batch)
{
    const int status = wg_cublas_gemm(g, of, batch);
    if (status && !g->failed[0])
        snprintf(g->failed, sizeof g->failed, "cuBLAS's product of %d x %d by %d x %d: status %d", of->m, of->k, of->k, of->n,
                 status);
}

static int gpu_wait(wg_gpu *g, char why[WG_GPU_WHY])
{
    wg_gpu_launches *l = g->stream.launches;
    char what[160];
    snprintf(what, sizeof what, "launching %s", l->name ? l->name : "");
    check(g, l->failed, what);
    l->failed = cudaSuccess;
    check(g, cudaStreamSynchronize(stream_of(g)), "running a kernel");
    if (!g->failed[0]) return 0;
    memcpy(why, g->failed, WG_GPU_WHY);
    g->failed[0] = '\0';
    return -1;
}

static int gpu_idle(wg_gpu *g)
{
    const cudaError_t e = cudaStreamQuery(stream_of(g));
    if (e == cudaErrorNotReady) {
        cudaGetLastError(); /* an answer, and yet the last error from then on */
        return 0;
    }
    check(g, e, "running a kernel"); /* wait() tells it */
    return 1;
}

/* ---- graphs */

/* Where it cannot begin, what was to be kept is launched, and recorded() says so. */
static void gpu_record(wg_gpu *g)
{
    g->stream.launches->unrecorded = cudaStreamBeginCapture(stream_of(g), cudaStreamCaptureModeThreadLocal);
    cudaGetLastError();
}

static cudaError_t end_capture(wg_gpu *g, cudaGraph_t *graph)
{
    const cudaError_t e = g->stream.launches->unrecorded;
    return e == cudaSuccess ? cudaStreamEndCapture(stream_of(g), graph) : e;
}

/* The graph made ready, if nothing has failed on the way to it; it is given up either way. */
static void *ready_of(cudaGraph_t graph, cudaError_t e, char *why)
{
    cudaGraphExec_t ready = NULL;
    if (e == cudaSuccess) e = cudaGraphInstantiate(&ready, graph, 0);
    if (graph) cudaGraphDestroy(graph);
    if (e == cudaSuccess) return ready;
    cudaGetLastError(); /* the caller handles it */
    snprintf(why, WG_GPU_WHY, "%s (%s)", cudaGetErrorString(e), cudaGetErrorName(e));
    return NULL;
}

static void *gpu_recorded(wg_gpu *g, char why[WG_GPU_WHY])
{
    cudaGraph_t graph = NULL;
    const cudaError_t e = end_capture(g, &graph);
    return ready_of(graph, e, why);
}

#if CUDART_VERSION >= 12040
static __global__ void go_on(const int32_t *again, cudaGraphConditionalHandle condition)
{
    cudaGraphSetConditional(condition, *again != 0);
}

static cudaError_t add_while(cudaGraph_t graph, cudaGraphNodeParams *params)
{
    cudaGraphNode_t node;
#if CUDART_VERSION >= 13000
    return cudaGraphAddNode(&node, graph, NULL, NULL, 0, params);
#else
    return cudaGraphAddNode(&node, graph, NULL, 0, params);
#endif
}

/* A WHILE node around what was recorded and the kernel that looks whether it goes on. */
static cudaError_t loop_around(cudaGraph_t once, const int32_t *again, cudaGraph_t *graph)
{
    cudaGraphConditionalHandle condition;
    cudaGraphNode_t first, last;
    cudaGraphNodeParams loop = {};
    cudaKernelNodeParams end = {};
    void *args[] = { &again, &condition };
    cudaError_t e = cudaGraphCreate(graph, 0);
    if (e == cudaSuccess) e = cudaGraphConditionalHandleCreate(&condition, *graph, 1, cudaGraphCondAssignDefault);
    if (e != cudaSuccess) return e;
    loop.type = cudaGraphNodeTypeConditional;
    loop.conditional.handle = condition;
    loop.conditional.type = cudaGraphCondTypeWhile;
    loop.conditional.size = 1;
    if ((e = add_while(*graph, &loop)) != cudaSuccess) return e;
    const cudaGraph_t body = loop.conditional.phGraph_out[0];
    end.func = (void *)go_on, end.gridDim = dim3(1), end.blockDim = dim3(1), end.kernelParams = args;
    e = cudaGraphAddChildGraphNode(&first, body, NULL, 0, once);
    return e == cudaSuccess ? cudaGraphAddKernelNode(&last, body, &first, 1, &end) : e;
}
#endif

static void *gpu_recorded_loop(wg_gpu *g, const int32_t *again, char why[WG_GPU_WHY])
{
    cudaGraph_t once = NULL, graph = NULL;
    cudaError_t e = end_capture(g, &once);
#if CUDART_VERSION >= 12040
    if (e == cudaSuccess) e = loop_around(once, again, &graph);
#else
    (void)again;
    if (e == cudaSuccess) e = cudaErrorNotSupported;
#endif
    if (once) cudaGraphDestroy(once);
    return ready_of(graph, e, why);
}

static void gpu_replay(wg_gpu *g, void *graph)
{
    check(g, cudaGraphLaunch((cudaGraphExec_t)graph, stream_of(g)), "launching a graph");
}

static void gpu_forget(wg_gpu *g, void *graph)
{
    if (graph) check(g, cudaGraphExecDestroy((cudaGraphExec_t)graph), "freeing a graph");
}

static wg_gpu_api make_api()
{
    wg_gpu_api api;
    memset(&api, 0, sizeof api);
#define X(name, args) api.name = WG_GPU(name);
    WG_GPU_KERNELS(X)
#undef X
    api.name = "cuda";
    api.open = gpu_open;
    api.close = gpu_close;
    api.alloc = gpu_alloc;
    api.alloc_weights = gpu_alloc;
    api.free = gpu_free;
    api.pin = gpu_pin;
    api.unpin = gpu_unpin;
    api.map = gpu_map;
    api.unmap = gpu_unpin;
    api.room = gpu_room;
    api.put = gpu_put;
    api.get = gpu_get;
    api.copy = gpu_copy;
    api.clear = gpu_clear;
    api.words = gpu_words;
    api.library = gpu_library;
    api.product = gpu_product;
    api.blas = gpu_blas;
    api.gemm = gpu_gemm;
    api.wait = gpu_wait;
    api.idle = gpu_idle;
    api.record = gpu_record;
    api.recorded = gpu_recorded;
    api.recorded_loop = gpu_recorded_loop;
    api.replay = gpu_replay;
    api.forget = gpu_forget;
    return api;
}

extern "C" const wg_gpu_api *wg_gpu_cuda(void)
{
    static const wg_gpu_api api = make_api();
    return &api;
}
