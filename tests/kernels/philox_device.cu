/* SPDX-License-Identifier: MIT
 * kernels/philox.h is one text for host and device: the same addresses must give the same bits on both. Exits 77 (skipped)
 * without a GPU. */
#include <cstdio>
#include <cuda_runtime.h>

#include "kernels/philox.h"

enum { DRAWS = 4096 };

__global__ void draw(uint64_t key, wg_philox *out)
{
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < DRAWS) out[i] = wg_philox_at(key, i, i ^ 0x5bd1e995u, i * 2654435761u, ~i);
}

int main()
{
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        puts("SKIPPED: no CUDA device");
        return 77;
    }
    const uint64_t key = 0x0123456789abcdefull;
    wg_philox *device = nullptr, host[DRAWS];
    if (cudaMalloc(&device, sizeof host) != cudaSuccess) return 1;
    draw<<<DRAWS / 256, 256>>>(key, device);
    if (cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
    cudaFree(device);
    int bad = 0;
    for (uint32_t i = 0; i < DRAWS; i++) {
        const wg_philox want = wg_philox_at(key, i, i ^ 0x5bd1e995u, i * 2654435761u, ~i);
        for (int w = 0; w < 4; w++) bad += host[i].v[w] != want.v[w];
    }
    printf("philox: %d draws on the device, %d words differ from the host\n", (int)DRAWS, bad);
    return bad != 0;
}
