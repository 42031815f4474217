/* SPDX-License-Identifier: MIT
 * argmax as the reference has it, ties and NaN included; the greedy walk against a plain one. */
#include "tests/simt/check.h"

Test(gpu_pick, argmax)
{
    const int sizes[] = { 1, 2, 31, 257, 4099 };
    for (int i = 0; i < 5; i++) {
        const int n = sizes[i], rows = 5;
        float *x = random_floats((size_t)(n * rows), 2);
        for (int k = 0; k < n; k++) {
            x[n + k] = 0.5f;                                          /* all equal */
            x[2 * n + k] = NAN;                                       /* none */
            x[3 * n + k] = k == n / 2 || k == n - 1 ? -1 : -INFINITY; /* a tie far apart */
            if (k % 3 == 0) x[4 * n + k] = NAN;
        }
        int32_t got[5], *d = to_device(NULL, sizeof got);
        float *dx = to_device(x, (size_t)(n * rows) * 4);
        IN_EVERY_ORDER {
            gpu()->api->argmax(gpu(), dx, n, d, rows);
            from_device(got, d, sizeof got);
            for (int r = 0; r < rows; r++) cr_assert_eq(got[r], ref()->argmax(x + r * n, n), "%d of %d", r, n);
        }
        device_free(d), device_free(dx);
        free(x);
    }
}

enum { TREES = 40, NODES = 64, VOCAB = 4 };

typedef struct forest {
    int32_t at[TREES + 1], token[TREES * NODES], parent[TREES * NODES], pick[TREES * NODES];
    int32_t path[TREES * NODES], length[TREES], next[TREES];
} forest;

static void draw(forest *f)
{
    uint32_t draw = 0;
    f->at[0] = 0;
    for (int b = 0; b < TREES; b++) {
        const int n = b == 0 ? 1 : b == 1 ? NODES : 1 + (int)(wg_philox_at(5, (uint32_t)b, 0, 0, 0).v[0] % NODES);
        f->at[b + 1] = f->at[b] + n;
        for (int i = 0; i < n; i++) {
            const wg_philox r = wg_philox_at(6, draw++, 0, 0, 0);
            f->token[f->at[b] + i] = (int32_t)(r.v[0] % VOCAB);
            f->pick[f->at[b] + i] = (int32_t)(r.v[1] % VOCAB);
            f->parent[f->at[b] + i] = i ? (int32_t)(r.v[2] % (uint32_t)i) : -1;
            if (b % 2 && i) f->parent[f->at[b] + i] = i - 1 - (int)(r.v[2] % (i < 3 ? 1 : 3));
        }
    }
}

Test(gpu_pick, greedy_walk)
{
    static forest f, g;
    draw(&f);
    const size_t nodes = (size_t)f.at[TREES];
    int32_t *at = to_device(f.at, sizeof f.at), *token = to_device(f.token, nodes * 4),
            *parent = to_device(f.parent, nodes * 4), *pick = to_device(f.pick, nodes * 4),
            *path = to_device(NULL, nodes * 4),
            *length = to_device(NULL, TREES * 4),
            *next = to_device(NULL, TREES * 4);
    int longest = 0;
    IN_EVERY_ORDER {
        gpu()->api->verify_greedy(gpu(), at, token, parent, pick, TREES, path, length, next);
        from_device(g.path, path, nodes * 4);
        from_device(g.length, length, TREES * 4);
        from_device(g.next, next, TREES * 4);
        for (int b = 0; b < TREES; b++) {
            const int first = f.at[b], n = f.at[b + 1] - first;
            int node = 0, kept = 0;
            for (int child = 0; child >= 0;) {
                cr_assert_eq(g.path[first + kept], node);
                kept++;
                child = -1;
                for (int i = node + 1; i < n && child < 0; i++)
                    if (f.parent[first + i] == node && f.token[first + i] == f.pick[first + node]) child = i;
                if (child < 0) cr_assert_eq(g.next[b], f.pick[first + node]);
                else node = child;
            }
            cr_assert_eq(g.length[b], kept, "tree %d", b);
            longest = kept > longest ? kept : longest;
        }
    }
    cr_assert_geq(longest, 4); /* the walk has been somewhere */
    device_free(at), device_free(token), device_free(parent), device_free(pick), device_free(path), device_free(length);
    device_free(next);
}
