/* SPDX-License-Identifier: MIT
 * Checks that the GPU works: one kernel over a known array, whose result is compared bit by bit. gpu-check.sh runs it first,
 * and again after a section that exceeded its time.
 * usage: gpu_suite canary      exit 1 with the reason when there is no device, or the result is wrong */
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/gpu.h"
#include "tests/gpu/suite.h"

enum { N = 1 << 16 };

int wg_suite_canary(int argc, char **argv)
{
    static float x[N], y[N], got[N];
    char why[WG_GPU_WHY] = "this build knows no device";
    wg_gpu g;
    const wg_gpu_api *api = wg_gpu_cuda();
    (void)argv;
    if (argc > 1) return fprintf(stderr, "usage: gpu_suite canary\n"), 2;
    memset(&g, 0, sizeof g);
    if (!api || api->open(&g, 0, why)) return fprintf(stderr, "no device: %s\n", why), 1;
    for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = (float)(i % 7) * 0.5f;
    float *dx = api->alloc(&g, sizeof x), *dy = api->alloc(&g, sizeof y);
    if (!dx || !dy) return fprintf(stderr, "no memory on %s\n", g.card), 1;
    api->put(&g, dx, x, sizeof x);
    api->put(&g, dy, y, sizeof y);
    api->add(&g, dx, dy, N, 1);
    api->get(&g, got, dx, sizeof got);
    if (api->wait(&g, why)) return fprintf(stderr, "%s: %s\n", g.card, why), 1;
    for (int i = 0; i < N; i++)
        if (got[i] != x[i] + y[i]) return fprintf(stderr, "%s: sum %d is %g\n", g.card, i, (double)got[i]), 1;
    printf("{\"canary\": \"%s\", \"sm\": %d, \"multiprocessors\": %d, \"shared_bytes\": %zu, \"memory_bytes\": %zu}\n", g.card,
           g.sm, g.sms, g.shared, g.memory);
    api->free(&g, dx), api->free(&g, dy);
    api->close(&g);
    return 0;
}
