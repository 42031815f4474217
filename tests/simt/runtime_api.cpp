/* SPDX-License-Identifier: MIT
 * The stub runtime (stub/cuda_runtime.h): errors, the device, its memory on memory.cpp's stretch of addresses, copies, and
 * attributes of functions. One device, one thread of the host. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/simt/runtime_api.h"

enum { FUNCTIONS = 4096, DEFAULT_SHARED = 48 << 10 };

struct function {
    const void *at;
    int allowed, carveout;
};

static struct runtime {
    cudaError_t last, broken;
    const char *fail_call;
    int fail_nth;
    cudaError_t fail_with;
    bool lenient, weights;
    int functions;
    function of[FUNCTIONS];
} T;

/* ---- errors */

static const struct {
    cudaError_t e;
    const char *name, *says;
} errors[] = {
    { cudaSuccess, "cudaSuccess", "no error" },
    { cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument" },
    { cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory" },
    { cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument" },
    { cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
      "CUDA driver version is insufficient for CUDA runtime version" },
    { cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected" },
    { cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal" },
    { cudaErrorIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state" },
    { cudaErrorNotReady, "cudaErrorNotReady", "device not ready" },
    { cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered" },
    { cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported" },
    { cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
      "operation not permitted when stream is capturing" },
    { cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
      "operation failed due to a previous error during capture" },
};
enum { ERRORS = sizeof errors / sizeof *errors };

const char *cudaGetErrorName(cudaError_t e)
{
    for (int i = 0; i < ERRORS; i++)
        if (errors[i].e == e) return errors[i].name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t e)
{
    for (int i = 0; i < ERRORS; i++)
        if (errors[i].e == e) return errors[i].says;
    return "unrecognized error code";
}

cudaError_t simt_asked(const char *call)
{
    static const char *const never = getenv("WG_SIMT_FAIL");
    if (T.broken != cudaSuccess) return T.broken;
    if (never && strcmp(call, never) == 0) return cudaErrorNotSupported;
    if (!T.fail_call || strcmp(call, T.fail_call) != 0 || --T.fail_nth != 0) return cudaSuccess;
    T.fail_call = NULL;
    return T.fail_with;
}

cudaError_t simt_said(cudaError_t e)
{
    if (e != cudaSuccess) T.last = e;
    return e;
}

cudaError_t cudaGetLastError()
{
    const cudaError_t e = T.last;
    T.last = T.broken;
    return e;
}

void simt_cuda_fail(const char *call, int nth, int error)
{
    T.fail_call = call, T.fail_nth = nth, T.fail_with = (cudaError_t)error;
}
void simt_cuda_break(int error) { T.broken = T.last = (cudaError_t)error; }
void simt_capture_answers(bool answers) { T.lenient = answers; }
bool simt_lenient() { return T.lenient; }

/* ---- the device */

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    return simt_answer(__func__, [=] {
        *count = 1;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *of, int device)
{
    return simt_answer(__func__, [=] {
        if (device != 0) return cudaErrorInvalidDevice;
        const simt_card card = simt_card_read();
        *of = cudaDeviceProp{};
        snprintf(of->name, sizeof of->name, "emulated");
        of->major = 9;
        of->multiProcessorCount = card.sms;
        of->sharedMemPerBlockOptin = card.shared;
        of->totalGlobalMem = (size_t)1 << 30;
        return cudaSuccess;
    });
}

cudaError_t cudaSetDevice(int device)
{
    return simt_answer(__func__, [=] { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; });
}

/* ---- memory */

void simt_next_is_weights() { T.weights = true; }

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    return simt_answer(__func__, [=] {
        if (simt_capturing()) return simt_illegal("an allocation");
        *p = T.weights ? simt_memory_take_weights(bytes) : simt_memory_take(bytes);
        T.weights = false;
        return *p ? cudaSuccess : cudaErrorMemoryAllocation;
    });
}

cudaError_t cudaFree(void *p)
{
    return simt_answer(__func__, [=] {
        if (simt_capturing()) return simt_illegal("freeing memory");
        simt_finish_all();
        simt_memory_give(p);
        return cudaSuccess;
    });
}

static cudaError_t host_alloc(void **p, size_t bytes, bool mapped)
{
    if (simt_capturing()) return simt_illegal("an allocation");
    *p = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (!*p) return cudaErrorMemoryAllocation;
    memset(*p, 0xff, bytes);
    simt_pinned(*p, bytes + 1);
    if (mapped) simt_mapped(*p, bytes + 1);
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **p, size_t bytes)
{
    return simt_answer(__func__, [=] { return host_alloc(p, bytes, false); });
}

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned flags)
{
    return simt_answer(__func__, [=] { return host_alloc(p, bytes, (flags & cudaHostAllocMapped) != 0); });
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned)
{
    return simt_answer(__func__, [=] {
        if (!simt_mapped_holds(host)) return cudaErrorInvalidValue;
        *device = host;
        return cudaSuccess;
    });
}

cudaError_t cudaFreeHost(void *p)
{
    return simt_answer(__func__, [=] {
        if (simt_capturing()) return simt_illegal("freeing memory");
        simt_finish_all();
        simt_pinned(p, 0);
        if (simt_mapped_holds(p)) simt_mapped(p, 0);
        free(p);
        return cudaSuccess;
    });
}

cudaError_t cudaMemGetInfo(size_t *room, size_t *all)
{
    return simt_answer(__func__, [=] {
        *all = (size_t)1 << 30;
        *room = *all - simt_stats_read().live;
        return cudaSuccess;
    });
}

static void copy_now(void *to, const void *from, size_t bytes)
{
    const simt_access was = simt_memory_access(SIMT_EVERYTHING);
    memcpy(to, from, bytes);
    simt_memory_access(was);
}

/* Pageable memory is read, or written, before the call returns. */
static cudaError_t copy_pageable(void *to, const void *from, size_t bytes, cudaStream_t stream)
{
    if (simt_stream_captures(stream)) return simt_illegal("a copy from or to pageable memory");
    simt_finish(stream);
    copy_now(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
    return simt_answer(__func__, [=] {
        const void *host = kind == cudaMemcpyHostToDevice ? from : kind == cudaMemcpyDeviceToHost ? to : NULL;
        if ((kind != cudaMemcpyHostToDevice && !simt_memory_holds(from)) ||
            (kind != cudaMemcpyDeviceToHost && !simt_memory_holds(to)) || (host && simt_memory_holds(host)))
            return cudaErrorInvalidValue;
        if (host && !simt_pinned_holds(host)) return copy_pageable(to, from, bytes, stream);
        return simt_do(stream, [=] { memcpy(to, from, bytes); });
    });
}

cudaError_t cudaMemsetAsync(void *p, int byte, size_t bytes, cudaStream_t stream)
{
    return simt_answer(__func__, [=] {
        if (!simt_memory_holds(p)) return cudaErrorInvalidValue;
        return simt_do(stream, [=] { memset(p, byte, bytes); });
    });
}

/* ---- functions */

static function *function_of(const void *at)
{
    for (int i = 0; i < T.functions; i++)
        if (T.of[i].at == at) return &T.of[i];
    if (T.functions == FUNCTIONS) abort(); /* too many */
    T.of[T.functions] = function{ at, DEFAULT_SHARED, -1 };
    return &T.of[T.functions++];
}

size_t simt_allowed(const void *at) { return (size_t)function_of(at)->allowed; }
bool simt_carved(const void *at) { return function_of(at)->carveout >= 0; }

/* What a kernel declares in shared memory is known when it runs (simt_launch holds it to the card), not before. */
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *of, const void *at)
{
    return simt_answer(__func__, [=] {
        const function *f = function_of(at);
        *of = cudaFuncAttributes{ 0, f->allowed, f->carveout };
        return cudaSuccess;
    });
}

cudaError_t cudaFuncSetAttribute(const void *at, cudaFuncAttribute what, int value)
{
    return simt_answer(__func__, [=] {
        function *f = function_of(at);
        if (what == cudaFuncAttributeMaxDynamicSharedMemorySize) {
            if (value < 0 || (size_t)value > simt_card_read().shared) return cudaErrorInvalidValue;
            f->allowed = value;
            return cudaSuccess;
        }
        if (value < -1 || value > 100) return cudaErrorInvalidValue;
        f->carveout = value;
        return cudaSuccess;
    });
}
