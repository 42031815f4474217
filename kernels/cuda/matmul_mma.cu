/* SPDX-License-Identifier: MIT
 * Products y = x W^T of f16 and bf16 weights on tensor cores. The weights are the 16-row operand and lie in fragment order, so
 * a lane takes its four registers of a 16 x 16 tile with one 16-byte load and a warp streams whole lines; the rows of x are the
 * 8-wide side, so few rows waste little. A warp owns 16 outputs and all of K, ascending, in steps of 16, for each step first
 * the product with the rounded inputs, then that with what rounding left (quant.cu). Columns of an mma do not interact: a
 * row's bits do not depend on the rows beside it, nor on TILES (held to it by tests here; a probe asks the same of a device).
 *
 * Inputs come in steps of WG_GPU_K through two buffers of shared memory by cp.async and reach their registers by ldmatrix;
 * lines of 144 bytes keep the eight rows of a matrix in different banks.
 *
 * Bytes: the weights once for every 64 rows. */
#include "kernels/cuda/launch.h"

enum { THREADS = 128, WARPS = THREADS / WG_WARP, LINE = WG_GPU_K + 8, TERMS = 2 };

struct mma_job {
    const uint4 *weights;    /* (stripes, k / 16, 32 lanes) */
    const uint16_t *act;     /* (2, rows, k) */
    const float *scale;      /* (rows) */
    int n, k, rows;          /* k padded */
    float *y;
};

/* One step of inputs of `count` rows into a buffer, both terms; rows past the last are zeros. */
template <int TILES> WG_DEVICE void fetch(const mma_job &j, uint16_t *to, int first, int k0)
{
    const int pieces = WG_GPU_K / 8; /* of 16 bytes */
    for (int i = (int)threadIdx.x; i < TERMS * TILES * 8 * pieces; i += THREADS) {
        const int piece = i % pieces, row = i / pieces % (TILES * 8), term = i / (pieces * TILES * 8);
        const bool valid = first + row < j.rows;
        const size_t from = ((size_t)term * j.rows + (valid ? first + row : 0)) * j.k + k0 + piece * 8;
        wg_copy_async16(to + (term * TILES * 8 + row) * LINE + piece * 8, j.act + from, valid);
    }
    wg_copy_commit();
}

template <int TYPE, int TILES> WG_KERNEL WG_LAUNCH_BOUNDS(THREADS, 2) matmul_fragments(mma_job j)
{
    WG_SHARED(uint16_t, buffer, 2 * TERMS * TILES * 8 * LINE);
    const int t = (int)threadIdx.x, lane = t % WG_WARP, stripe = (int)blockIdx.x * WARPS + t / WG_WARP;
    const int first = (int)blockIdx.y * TILES * 8, size = TERMS * TILES * 8 * LINE;
    const bool mine = stripe * 16 < j.n;
    const uint4 *weights = j.weights + (size_t)(mine ? stripe : 0) * (j.k / 16) * WG_WARP + lane;
    float acc[TILES][4];
    WG_UNROLL for (int i = 0; i < TILES; i++) acc[i][0] = acc[i][1] = acc[i][2] = acc[i][3] = 0;
    fetch<TILES>(j, buffer, first, 0);
    for (int k0 = 0, half = 0; k0 < j.k; k0 += WG_GPU_K, half ^= 1) {
        uint4 a[WG_GPU_K / 16];
        WG_UNROLL for (int s = 0; s < WG_GPU_K / 16; s++) a[s] = weights[(k0 / 16 + s) * WG_WARP];
        if (k0 + WG_GPU_K < j.k) {
            fetch<TILES>(j, buffer + (half ^ 1) * size, first, k0 + WG_GPU_K);
            wg_copy_wait(1);
        } else {
            wg_copy_wait(0);
        }
        __syncthreads();
        const uint16_t *x = buffer + half * size;
        WG_UNROLL for (int s = 0; s < WG_GPU_K / 16; s++)
            WG_UNROLL for (int i = 0; i < TILES; i++) {
                /* Matrices of a load: k 0..7 and 8..15 of the step, of the first term, then of the second. */
                uint32_t b[4];
                wg_ldmatrix_x4(b, x + ((lane / 16 * TILES + i) * 8 + lane % 8) * LINE + s * 16 + lane / 8 % 2 * 8);
                const uint32_t w[4] = { a[s].x, a[s].y, a[s].z, a[s].w };
                if (TYPE == WG_F16) {
                    wg_mma_f16(acc[i], w, b);
                    wg_mma_f16(acc[i], w, b + 2);
                } else {
                    wg_mma_bf16(acc[i], w, b);
                    wg_mma_bf16(acc[i], w, b + 2);
                }
            }
        __syncthreads(); /* the next fetch writes where this step has read */
    }
    if (!mine) return;
    WG_UNROLL for (int i = 0; i < TILES; i++)
        WG_UNROLL for (int e = 0; e < 4; e++) {
            const int n = stripe * 16 + lane / 4 + e / 2 * 8, row = first + i * 8 + lane % 4 * 2 + e % 2;
            if (n < j.n && row < j.rows) j.y[(size_t)row * j.n + n] = acc[i][e] * j.scale[row];
        }
}

typedef void mma_kernel(mma_job);

template <int TYPE> static mma_kernel *kernel_for(int tiles)
{
    return tiles == 1 ? matmul_fragments<TYPE, 1> : tiles == 2 ? matmul_fragments<TYPE, 2> : tiles <= 4
           ? matmul_fragments<TYPE, 4> : matmul_fragments<TYPE, 8>;
}

extern "C" void WG_GPU(matmul_mma)(wg_gpu *g, const wg_matrix *w, const void *act, int rows, float *y)
{
    const int k = (int)wg_gpu_k_padded(w->k), needed = (rows + 7) / 8;
    const int tiles = needed <= 2 ? needed : needed <= 4 ? 4 : 8;
    const uint16_t *x = (const uint16_t *)act;
    const mma_job j = { (const uint4 *)w->data, x, (const float *)(x + 2 * (size_t)rows * k), w->n, k, rows, y };
    mma_kernel *kernel = w->type == WG_F16 ? kernel_for<WG_F16>(tiles) : kernel_for<WG_BF16>(tiles);
    const dim3 grid(wg_blocks_for((size_t)w->n, WARPS * 16), wg_blocks_for((size_t)rows, (unsigned)tiles * 8));
    WG_LAUNCH(kernel, grid, THREADS, 0, g->stream, j);
}
