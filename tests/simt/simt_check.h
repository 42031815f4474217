/* SPDX-License-Identifier: MIT
 * What the tests of GPU kernels share: the device under test (emulated, or with WG_GPU=cuda the first CUDA device; with
 * WG_GPU_SERIAL set no kernel of it begins early), buffers on it, and the three orders of threads and blocks. */
#ifndef WG_TESTS_SIMT_SIMT_CHECK_H
#define WG_TESTS_SIMT_SIMT_CHECK_H

#include <criterion/criterion.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/ops.h"
#include "kernels/philox.h"
#include "tests/simt/runtime.h"
#include "tests/simt/simt.h"

static wg_gpu check_gpu;

/* Opens it on first use. */
static inline wg_gpu *gpu(void)
{
    char why[WG_GPU_WHY] = "";
    const char *which = getenv("WG_GPU");
    const wg_gpu_api *api = which && strcmp(which, "cuda") == 0 ? wg_gpu_cuda() : wg_gpu_simt();
    if (check_gpu.api) return &check_gpu;
    if (!api || api->open(&check_gpu, 0, why)) {
        cr_log_error("WG_GPU=cuda: %s", api ? why : "this build has no CUDA");
        cr_assert_fail();
    }
    if (getenv("WG_GPU_SERIAL")) check_gpu.stream.early = 0;
    return &check_gpu;
}

static inline const wg_ops *ref(void) { return wg_ops_for(WG_CPU_REF); }

static inline void *to_device(const void *host, size_t bytes)
{
    void *p = gpu()->api->alloc(gpu(), bytes);
    cr_assert_not_null(p);
    if (host) gpu()->api->put(gpu(), p, host, bytes);
    return p;
}

static inline void *weights_to_device(const void *host, size_t bytes)
{
    void *p = gpu()->api->alloc_weights(gpu(), bytes);
    cr_assert_not_null(p);
    gpu()->api->put(gpu(), p, host, bytes);
    return p;
}

static inline void from_device(void *host, const void *device, size_t bytes)
{
    char why[WG_GPU_WHY];
    gpu()->api->get(gpu(), host, device, bytes);
    cr_assert_eq(gpu()->api->wait(gpu(), why), 0, "%s", why);
}

static inline void device_free(void *p) { gpu()->api->free(gpu(), p); }

static inline void fill(float *x, size_t n, uint32_t stream)
{
    for (size_t i = 0; i < n; i++) x[i] = wg_philox_float(wg_philox_at(17, (uint32_t)i, stream, 0, 0).v[0]) * 2 - 1;
}

static inline void *aligned(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    cr_assert_not_null(p);
    return p;
}

static inline float *random_floats(size_t n, uint32_t stream)
{
    float *x = aligned(n * sizeof *x);
    fill(x, n, stream);
    return x;
}

/* The body runs once for each order of threads and blocks; once on a device, which has its own. */
#define IN_EVERY_ORDER                                                                                                         \
    for (int order_ = 0; simt_order_set((simt_order)(order_ % SIMT_ORDERS)), order_ < check_orders(); order_++)
static inline int check_orders(void) { return gpu()->api == wg_gpu_simt() ? SIMT_ORDERS : 1; }

/* The largest difference, relative to the largest number of the reference. */
static inline double distance(const float *got, const float *want, size_t n)
{
    double worst = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)got[i] - (double)want[i]), m = fabs((double)want[i]);
        if (!(d <= worst)) worst = d; /* NaN too */
        most = m > most ? m : most;
    }
    return most > 0 ? worst / most : worst;
}

#endif
