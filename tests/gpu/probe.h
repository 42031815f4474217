/* SPDX-License-Identifier: MIT
 * Shared by the parts of the probe: the device, memory, medians of times, and work timed as one recorded graph. */
#ifndef WG_TESTS_GPU_PROBE_H
#define WG_TESTS_GPU_PROBE_H

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "kernels/cuda/gpu.h"

enum { REPEATS = 51 };

namespace probe
{

extern wg_gpu gpu;
extern cudaStream_t stream; /* gpu's */
extern int failures;        /* of questions */

/* The kernels of the engine, each beside the time of reading what it reads. */
void kernels(double bytes_a_second);

static inline void must(cudaError_t e, const char *what)
{
    if (e == cudaSuccess) return;
    fprintf(stderr, "probe: %s: %s\n", what, cudaGetErrorString(e));
    exit(1);
}

static inline void *take(size_t bytes)
{
    void *p = NULL;
    must(cudaMalloc(&p, bytes), "memory");
    return p;
}

/* Median seconds of one call of body. */
template <class F> static double seconds(F body)
{
    float ms[REPEATS];
    cudaEvent_t from, to;
    must(cudaEventCreate(&from), "event");
    must(cudaEventCreate(&to), "event");
    body();
    for (int i = 0; i < REPEATS; i++) {
        must(cudaEventRecord(from, stream), "event");
        body();
        must(cudaEventRecord(to, stream), "event");
        must(cudaEventSynchronize(to), "event");
        must(cudaEventElapsedTime(&ms[i], from, to), "event");
    }
    must(cudaGetLastError(), "a launch");
    std::sort(ms, ms + REPEATS);
    cudaEventDestroy(from);
    cudaEventDestroy(to);
    return ms[REPEATS / 2] * 1e-3;
}

/* The same of one replay of the launches that body makes, recorded as the engine records a pass: launched one by one, small
 * kernels would tell the time of the processor. Negative when they cannot be recorded, which is told. */
template <class F> static double replayed(F body)
{
    char why[WG_GPU_WHY];
    body(); /* sets attributes of kernels, which a recording must not */
    gpu.api->record(&gpu);
    body();
    void *graph = gpu.api->recorded(&gpu, why);
    if (!graph) {
        fprintf(stderr, "probe: launches could not be recorded: %s\n", why);
        failures++;
        return -1;
    }
    const double t = seconds([&] { gpu.api->replay(&gpu, graph); });
    gpu.api->forget(&gpu, graph);
    return t;
}

/* , "key": microseconds; null where there is none. */
static inline void print_us(const char *key, int number, double s)
{
    if (s < 0) printf(", \"%s_%d\": null", key, number);
    else printf(", \"%s_%d\": %.2f", key, number, s * 1e6);
}

} // namespace probe

#endif
