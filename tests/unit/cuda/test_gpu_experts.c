/* SPDX-License-Identifier: MIT
 * Experts on the device: rows grouped by expert, and products by groups with the bits of the products one expert at a time. */
#include "tests/simt/simt_check.h"
#include "tests/kernels/blocks.h"

enum { ROWS = 13, USED = 2, EXPERTS = 5, N = 40, SLOTS_MOST = 96 };

/* Expert 3 has no row, expert 0 more than a run; ids of a row ascend. */
static void choose(int32_t *id, float *weight)
{
    for (int r = 0; r < ROWS; r++) {
        id[r * USED] = r < 10 ? 0 : 1;
        id[r * USED + 1] = r % 3 ? 2 : 4;
        weight[r * USED] = 0.25f + (float)r / 16, weight[r * USED + 1] = 0.75f;
    }
}

Test(gpu_experts, groups)
{
    int32_t id[ROWS * USED], got[2 * SLOTS_MOST + ROWS * USED];
    float weight[ROWS * USED];
    const int slots = wg_gpu_slots(ROWS, USED, EXPERTS), runs = slots / WG_GPU_RUN;
    cr_assert(slots == 64 && wg_gpu_slots(1, 8, 128) == 64 && wg_gpu_slots(100, 8, 1) == 808);
    choose(id, weight);
    int32_t *di = to_device(id, sizeof id), *room = to_device(NULL, sizeof got);
    const wg_gpu_groups by = { room, room + slots, room + 2 * slots, slots };
    IN_EVERY_ORDER
    {
        gpu()->api->group(gpu(), &(wg_gpu_chosen){ di, NULL, USED }, EXPERTS, &by, ROWS);
        from_device(got, room, (size_t)slots * 4);
        from_device(got + slots, room + slots, (size_t)runs * 4);
        from_device(got + 2 * slots, room + 2 * slots, sizeof id);
        int at = 0;
        for (int e = 0; e < EXPERTS; e++) {
            for (int i = 0; i < ROWS * USED; i++)
                if (id[i] == e) {
                    cr_assert(got[at] == i / USED && got[2 * slots + i] == at, "expert %d, row %d", e, i / USED);
                    cr_assert_eq(got[slots + at++ / WG_GPU_RUN], e);
                }
            for (; at % WG_GPU_RUN; at++) cr_assert_eq(got[at], -1);
        }
        for (int i = at; i < slots; i++) cr_assert(got[i] == -1 && got[slots + i / WG_GPU_RUN] == -1);
    }
    device_free(di), device_free(room);
}

/* A packed matrix with random weights, on the device. */
static wg_matrix matrix_new(int type, int layout, int k, uint32_t seed)
{
    const size_t row = wg_type_size(wg_type_get(type), (size_t)k), bytes = wg_gpu_matrix_bytes(type, layout, N, k);
    char *file = aligned(row * N), *units = aligned(bytes);
    float *x = random_floats((size_t)k, 1);
    for (int r = 0; r < N; r++) {
        fill(x, (size_t)k, seed + (uint32_t)r);
        if (wg_row_from_f32(type, x, file + row * (size_t)r, (size_t)k))
            random_blocks(type, seed + (uint64_t)r, 0.5f, file + row * (size_t)r, (size_t)k);
    }
    const wg_matrix host = { type, N, k, file };
    wg_gpu_pack(&host, layout, file, units, 0, wg_gpu_units(type, layout, N));
    const wg_matrix m = { type, N, k, weights_to_device(units, bytes) };
    free(file), free(units), free(x);
    return m;
}

/* y of all slots, then x += what add_experts makes of it. */
static void by_groups(const wg_matrix *gate, const wg_matrix *up, int layout, const float *dh, const wg_gpu_chosen *of,
                      int then, float *y, float *x)
{
    const int k = gate->k, type = gate->type, slots = wg_gpu_slots(ROWS, USED, EXPERTS);
    const void *data[2][EXPERTS];
    for (int e = 0; e < EXPERTS; e++) data[0][e] = gate[e].data, data[1][e] = up[e].data;
    const void **table = to_device(data, sizeof data);
    int32_t *room = to_device(NULL, (size_t)(2 * slots + ROWS * USED) * 4);
    const wg_gpu_groups by = { room, room + slots, room + 2 * slots, slots };
    const size_t bytes = (size_t)slots * N * 4;
    float *picked = to_device(NULL, (size_t)slots * (size_t)k * 4), *dy = to_device(y, bytes), *dx = to_device(x, ROWS * N * 4);
    void *act = to_device(NULL, wg_gpu_act_bytes(type, layout, slots, k));
    gpu()->api->group(gpu(), of, EXPERTS, &by, ROWS);
    gpu()->api->gather(gpu(), dh, by.row, k, picked, slots);
    gpu()->api->prepare(gpu(), type, layout, picked, slots, k, act);
    gpu()->api->matmul_experts(gpu(), (const wg_gpu_stack[]){ { gate, table }, { up, table + EXPERTS } },
                               (float *const[]){ dy, dy }, then == WG_GPU_SWIGLU ? 2 : 1, layout,
                               wg_gpu_in_panels(type, layout) ? (void *)picked : act, &by, then);
    gpu()->api->add_experts(gpu(), dx, dy, of, by.slot, N, ROWS);
    from_device(y, dy, bytes);
    from_device(x, dx, ROWS * N * 4);
    device_free(table), device_free(room), device_free(picked), device_free(dy), device_free(dx), device_free(act);
}

/* One expert after another, over all rows. */
static void one_by_one(const wg_matrix *gate, const wg_matrix *up, int layout, const float *dh, const wg_gpu_chosen *of,
                       int then, float *x)
{
    const int k = gate->k, type = gate->type;
    float *dy = to_device(NULL, ROWS * N * 4), *dx = to_device(x, ROWS * N * 4);
    void *act = to_device(NULL, wg_gpu_act_bytes(type, layout, ROWS, k));
    for (int e = 0; e < EXPERTS; e++) {
        gpu()->api->prepare(gpu(), type, layout, dh, ROWS, k, act);
        gpu()->api->matmul(gpu(), (const wg_matrix *const[]){ &gate[e], &up[e] }, (float *const[]){ dy, dy },
                           then == WG_GPU_SWIGLU ? 2 : 1, layout, wg_gpu_in_panels(type, layout) ? (const void *)dh : act, ROWS,
                           then);
        gpu()->api->add_expert(gpu(), dx, dy, of, e, N, ROWS);
    }
    from_device(x, dx, ROWS * N * 4);
    device_free(dy), device_free(dx), device_free(act);
}

/* Runs of no expert stay as they were. */
Test(gpu_experts, products_by_groups_have_the_bits_of_products_one_by_one)
{
    static const struct {
        int type, layout, k;
    } kind[] = {
        { WG_F32, WG_GPU_PANELS, 40 },     { WG_F16, WG_GPU_PANELS, 72 },         { WG_F16, WG_GPU_FRAGMENTS, 200 },
        { WG_BF16, WG_GPU_FRAGMENTS, 96 }, { WG_F8_E4M3, WG_GPU_FRAGMENTS, 256 }, { WG_F8_E4M3, WG_GPU_PANELS, 128 },
        { WG_Q8_0, WG_GPU_PANELS, 160 },   { WG_Q4_0, WG_GPU_PANELS, 96 },        { WG_Q5_1, WG_GPU_PANELS, 64 },
        { WG_Q4_K, WG_GPU_PANELS, 256 },   { WG_Q6_K, WG_GPU_PANELS, 256 },
    };
    int32_t id[ROWS * USED];
    float weight[ROWS * USED];
    choose(id, weight);
    int32_t *di = to_device(id, sizeof id);
    float *dw = to_device(weight, sizeof weight);
    const wg_gpu_chosen of = { di, dw, USED };
    const int slots = wg_gpu_slots(ROWS, USED, EXPERTS);
    for (size_t i = 0; i < sizeof kind / sizeof kind[0]; i++) {
        const int k = kind[i].k, layout = kind[i].layout;
        wg_matrix gate[EXPERTS], up[EXPERTS];
        float *h = random_floats((size_t)(ROWS * k), 5), *dh = to_device(h, (size_t)(ROWS * k) * 4);
        for (int e = 0; e < EXPERTS; e++) {
            gate[e] = matrix_new(kind[i].type, layout, k, 1000 * (uint32_t)e);
            up[e] = matrix_new(kind[i].type, layout, k, 1000 * (uint32_t)e + 500);
        }
        for (int then = 0; then < 2; then++) {
            float want[ROWS * N], got[ROWS * N], y[SLOTS_MOST * N];
            fill(want, ROWS * N, 6);
            one_by_one(gate, up, layout, dh, &of, then ? WG_GPU_SWIGLU : WG_GPU_STORE, want);
            IN_EVERY_ORDER
            {
                fill(got, ROWS * N, 6);
                for (int s = 0; s < slots * N; s++) y[s] = 7;
                by_groups(gate, up, layout, dh, &of, then ? WG_GPU_SWIGLU : WG_GPU_STORE, y, got);
                cr_assert_arr_eq(got, want, sizeof got, "%s in layout %d, then %d, order %d", wg_type_name(kind[i].type),
                                 layout, then, order_);
                for (int s = (slots - WG_GPU_RUN) * N; s < slots * N; s++) cr_assert_eq(y[s], 7.0f);
            }
        }
        for (int e = 0; e < EXPERTS; e++) {
            device_free((void *)(uintptr_t)gate[e].data);
            device_free((void *)(uintptr_t)up[e].data);
        }
        device_free(dh);
        free(h);
    }
    device_free(di), device_free(dw);
}
