/* SPDX-License-Identifier: MIT
 * Slots of pages moved to where a commit wants them: all layers' keys and values of all slots of a path in one launch. A thread
 * owns one element of one piece and takes the slots in order, a few at a time: reads, then writes. A path's destinations are
 * at or before its sources and no slot is read after it was written, so this is safe in place.
 *
 * Bytes: what is moved, read and written once. */
#include "kernels/cuda/launch.h"

enum { THREADS = 128, AHEAD = 4 };

struct move_job {
    char *pool;
    size_t elements, stride; /* of a piece; from piece to piece */
    wg_gpu_moves moves;
};

template <class T> WG_KERNEL WG_LAUNCH_BOUNDS(THREADS, 1) move_slots(const WG_GRID_CONSTANT move_job j)
{
    wg_depend();
    const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= j.elements) return;
    char *at = j.pool + blockIdx.y * j.stride + i * sizeof(T);
    for (int first = 0; first < j.moves.n; first += AHEAD) {
        T v[AHEAD];
        WG_UNROLL_FOR(int k = 0; k < AHEAD; k++)
            if (first + k < j.moves.n) v[k] = *(const T *)(at + j.moves.from[first + k]);
        WG_UNROLL_FOR(int k = 0; k < AHEAD; k++)
            if (first + k < j.moves.n) *(T *)(at + j.moves.to[first + k]) = v[k];
    }
}

template <class T> static void start(wg_gpu *g, const wg_gpu_moves *moves, char *pool, size_t bytes, size_t stride, int count)
{
    const move_job j = { pool, bytes / sizeof(T), stride, *moves };
    WG_LAUNCH(move_slots<T>, dim3(wg_blocks_for(j.elements, THREADS), (unsigned)count), THREADS, 0, g->stream, j);
}

extern "C" void WG_GPU(move)(wg_gpu *g, const wg_gpu_moves *moves, char *pool, size_t bytes, size_t stride, int count)
{
    if (bytes % 16 == 0) start<uint4>(g, moves, pool, bytes, stride, count);
    else if (bytes % 4 == 0) start<uint32_t>(g, moves, pool, bytes, stride, count);
    else start<uint16_t>(g, moves, pool, bytes, stride, count);
}
