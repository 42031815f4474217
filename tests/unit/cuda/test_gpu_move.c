/* SPDX-License-Identifier: MIT
 * Slots moved within their pool, in place and in order, against memcpy: pieces of every width a page may have, one slot to as
 * many as a launch takes, paths that overlap their destinations. */
#include "tests/simt/simt_check.h"

enum { PIECES = 6, SLOTS = 130, ROOM = 1 << 18 };

static void check(size_t bytes, int n, int seed)
{
    static unsigned char start[ROOM], want[ROOM], got[ROOM];
    wg_gpu_moves m = { .n = n };
    const size_t stride = (SLOTS * bytes + 63) / 64 * 64, all = PIECES * stride;
    cr_assert(all <= ROOM && n <= WG_GPU_MOVES);
    int from = 1;
    for (int i = 0; i < n; i++) { /* slots 1, 2, ... become those of an ascending path */
        from += 1 + (int)(wg_philox_at(3, (uint32_t)i, (uint32_t)seed, 0, 0).v[0] % 3 == 0);
        m.to[i] = (size_t)(1 + i) * bytes;
        m.from[i] = (size_t)from * bytes;
    }
    for (size_t i = 0; i < all; i++) start[i] = want[i] = (unsigned char)(i * 2654435761u >> 24);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < PIECES; k++) memcpy(want + k * stride + m.to[i], want + k * stride + m.from[i], bytes);
    char *pool = to_device(start, all);
    gpu()->api->move(gpu(), &m, pool, bytes, stride, PIECES);
    from_device(got, pool, all);
    cr_assert_arr_eq(got, want, all, "%zu bytes, %d slots", bytes, n);
    device_free(pool);
}

Test(gpu_move, slots_in_place)
{
    static const size_t bytes[] = { 2, 4, 6, 16, 20, 26, 48, 256 };
    static const int n[] = { 1, 2, 3, 4, 5, 9, 63, WG_GPU_MOVES };
    IN_EVERY_ORDER
    {
        for (size_t b = 0; b < sizeof bytes / sizeof *bytes; b++)
            for (int i = 0; i < 8; i++) check(bytes[b], n[i], (int)b);
    }
}
