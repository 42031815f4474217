/* SPDX-License-Identifier: MIT
 * Embedding, norm, activation, residual, gathering, rotary and the append to pages: the bits of the reference, in every order
 * of threads and blocks, on odd sizes. */
#include "tests/simt/simt_check.h"
#include "tests/kernels/blocks.h"

static const int all_types[] = { WG_FLOAT_TYPES(WG_TYPE_ID) WG_DEVICE_QUANT_TYPES(WG_TYPE_ID)
                                     WG_SCALED_FLOAT_TYPES(WG_TYPE_ID) };

Test(gpu_rows, norm_swiglu_add)
{
    const int dims[] = { 1, 5, 64, 288, 2049 };
    for (int i = 0; i < 5; i++) {
        const int dim = dims[i], rows = 3;
        const size_t n = (size_t)dim * rows, bytes = n * 4;
        float *x = random_floats(n, 1), *weight = random_floats((size_t)dim, 2), *want = aligned(bytes), *got = aligned(bytes);
        float *dx = to_device(x, bytes), *dw = to_device(weight, (size_t)dim * 4), *dy = to_device(NULL, bytes);
        IN_EVERY_ORDER
        {
            ref()->rmsnorm(x, (size_t)dim, weight, dim, 1e-5f, want, (size_t)dim, rows);
            gpu()->api->rmsnorm(gpu(), dx, dw, dim, 1e-5f, dy, rows);
            from_device(got, dy, bytes);
            cr_assert_arr_eq(got, want, bytes, "norm of %d", dim);

            ref()->swiglu(x, want, want, (int)n);
            gpu()->api->swiglu(gpu(), dx, dy, dy, dim, rows);
            from_device(got, dy, bytes);
            cr_assert_arr_eq(got, want, bytes, "swiglu of %d", dim);

            ref()->add(want, x, (int)n);
            gpu()->api->add(gpu(), dy, dx, dim, rows);
            from_device(got, dy, bytes);
            cr_assert_arr_eq(got, want, bytes, "add of %d", dim);

            for (int r = 0; r < rows; r++) ref()->add(want + (size_t)r * (size_t)dim, weight, dim);
            gpu()->api->bias(gpu(), dy, dw, dim, rows);
            from_device(got, dy, bytes);
            cr_assert_arr_eq(got, want, bytes, "bias of %d", dim);

            ref()->layernorm(want, weight, x, dim, 1e-5f, want, rows);
            gpu()->api->layernorm(gpu(), dy, dw, dx, dim, 1e-5f, dy, rows);
            ref()->gelu(want, want, (int)n);
            gpu()->api->gelu(gpu(), dy, dim, rows);
            from_device(got, dy, bytes);
            cr_assert_arr_eq(got, want, bytes, "LayerNorm and gelu of %d", dim);

            ref()->gelu_erf(x, want, (int)n);
            ref()->clamp(want, 0.5f, (int)n);
            gpu()->api->copy(gpu(), dy, dx, bytes);
            gpu()->api->gelu_erf(gpu(), dy, dim, rows);
            gpu()->api->clamp(gpu(), dy, 0.5f, dim, rows);
            from_device(got, dy, bytes);
            cr_assert_arr_eq(got, want, bytes, "exact gelu, clamp of %d", dim);

            ref()->relu2(x, want, (int)n);
            gpu()->api->copy(gpu(), dy, dx, bytes);
            gpu()->api->relu2(gpu(), dy, dim, rows);
            from_device(got, dy, bytes);
            cr_assert_arr_eq(got, want, bytes, "squared ReLU of %d", dim);

            ref()->geglu(x, want, want, (int)n);
            gpu()->api->geglu(gpu(), dx, dy, dy, dim, rows);
            ref()->scale(want, 0.3f, (int)n);
            gpu()->api->scale(gpu(), dy, 0.3f, dim, rows);
            ref()->softcap(want, 0.75f, (int)n);
            gpu()->api->softcap(gpu(), dy, 0.75f, dim, rows);
            from_device(got, dy, bytes);
            cr_assert_arr_eq(got, want, bytes, "geglu, scale, softcap of %d", dim);

            ref()->clamped_swiglu(x, want, want, (int)n);
            gpu()->api->clamped_swiglu(gpu(), dx, dy, dy, dim, rows);
            from_device(got, dy, bytes);
            cr_assert_arr_eq(got, want, bytes, "clamped SwiGLU of %d", dim);

            ref()->rmsnorm(want, (size_t)dim, weight, dim, 1e-5f, want, (size_t)dim, rows);
            gpu()->api->rmsnorm(gpu(), dy, dw, dim, 1e-5f, dy, rows);
            from_device(got, dy, bytes);
            cr_assert_arr_eq(got, want, bytes, "norm of %d in place", dim);
        }
        device_free(dx), device_free(dw), device_free(dy);
        free(x), free(weight), free(want), free(got);
    }
}

/* Factors by position, of rows in any order. */
Test(gpu_rows, scale_positions)
{
    enum { ROWS = 3, DIM = 70, POSITIONS = 6 };
    float *x = random_floats(ROWS * DIM, 51), *table = random_floats(POSITIONS, 52), *want = aligned(ROWS * DIM * 4),
          *got = aligned(ROWS * DIM * 4);
    wg_gpu_row row[ROWS] = { { .position = 5 }, { .position = 0 }, { .position = 2 } };
    float *dx = to_device(x, ROWS * DIM * 4), *dt = to_device(table, POSITIONS * 4);
    wg_gpu_row *dr = to_device(row, sizeof row);
    memcpy(want, x, ROWS * DIM * 4);
    for (int r = 0; r < ROWS; r++) ref()->scale(want + r * DIM, table[row[r].position], DIM);
    IN_EVERY_ORDER
    {
        float *dy = to_device(x, ROWS * DIM * 4);
        gpu()->api->scale_positions(gpu(), dt, dr, DIM, dy, ROWS);
        from_device(got, dy, ROWS * DIM * 4);
        cr_assert_arr_eq(got, want, ROWS * DIM * 4);
        device_free(dy);
    }
    device_free(dx), device_free(dt), device_free(dr);
    free(x), free(table), free(want), free(got);
}

/* Ties among the logits; each row's experts, and the rows that have one. */
Test(gpu_rows, experts)
{
    enum { ROWS = 5, DIM = 70, MOST = 130 };
    const int of[][2] = { { 1, 1 }, { 4, 2 }, { 9, 3 }, { 130, 8 } };
    for (int i = 0; i < 4; i++) {
        const int n = of[i][0], k = of[i][1];
        float *x = random_floats(ROWS * MOST, 31), *y = random_floats(ROWS * DIM, 32), *z = random_floats(ROWS * DIM, 33);
        float weight[ROWS * 8], got_weight[ROWS * 8], *got = aligned(ROWS * DIM * 4);
        int32_t id[ROWS * 8], got_id[ROWS * 8];
        for (int e = 0; e < ROWS * n; e++) x[e] = rintf(x[e] * 4) / 4;
        float *dx = to_device(x, ROWS * MOST * 4), *dy = to_device(y, ROWS * DIM * 4), *dz = to_device(NULL, ROWS * DIM * 4);
        float *dw = to_device(NULL, sizeof weight);
        int32_t *di = to_device(NULL, sizeof id);
        for (int r = 0; r < ROWS; r++) ref()->route(x + r * n, n, k, i % 2, id + r * k, weight + r * k);
        for (int r = 0; r < ROWS; r++)
            for (int j = 0; j < k; j++)
                if (id[r * k + j] == id[0]) ref()->add_scaled(z + r * DIM, weight[r * k + j], y + r * DIM, DIM);
        float *before = random_floats(ROWS * DIM, 33);
        IN_EVERY_ORDER
        {
            gpu()->api->route(gpu(), dx, n, k, i % 2, di, dw, ROWS);
            from_device(got_id, di, (size_t)(ROWS * k) * 4);
            from_device(got_weight, dw, (size_t)(ROWS * k) * 4);
            cr_assert_arr_eq(got_id, id, (size_t)(ROWS * k) * 4, "%d of %d experts", k, n);
            cr_assert_arr_eq(got_weight, weight, (size_t)(ROWS * k) * 4, "weights of %d of %d experts", k, n);
            gpu()->api->put(gpu(), dz, before, ROWS * DIM * 4);
            gpu()->api->add_expert(gpu(), dz, dy, &(wg_gpu_chosen){ di, dw, k }, id[0], DIM, ROWS);
            from_device(got, dz, ROWS * DIM * 4);
            cr_assert_arr_eq(got, z, ROWS * DIM * 4, "the rows of an expert of %d", n);
        }
        device_free(dx), device_free(dy), device_free(dz), device_free(dw), device_free(di);
        free(x), free(y), free(z), free(got), free(before);
    }
}

/* Limits of exp, denormals, infinities. */
/* In one kernel, the bytes of the two; several tiles of the norm, zeros, and a k that is no whole step. */
Test(gpu_rows, norm_and_preparation_in_one)
{
    const int types[] = { WG_F16, WG_BF16, WG_Q8_0 }, dims[] = { 32, 288, 2080 };
    for (int i = 0; i < 9; i++) {
        const int type = types[i % 3], dim = dims[i / 3], rows = 3, half = wg_gpu_is_half(type);
        const size_t bytes = wg_gpu_act_bytes(type, half, rows, dim), floats = (size_t)rows * (size_t)dim;
        float *x = random_floats(floats, 21), *weight = random_floats((size_t)dim, 22);
        char *want = aligned(bytes), *got = aligned(bytes);
        memset(x + dim, 0, (size_t)dim * 4);
        float *dx = to_device(x, floats * 4), *dw = to_device(weight, (size_t)dim * 4), *dy = to_device(NULL, floats * 4);
        void *act = to_device(NULL, bytes);
        gpu()->api->rmsnorm(gpu(), dx, dw, dim, 1e-5f, dy, rows);
        gpu()->api->clear(gpu(), act, bytes);
        gpu()->api->prepare(gpu(), type, half, dy, rows, dim, act);
        from_device(want, act, bytes);
        IN_EVERY_ORDER
        {
            gpu()->api->clear(gpu(), act, bytes);
            gpu()->api->norm_prepare(gpu(), type, WG_GPU_FRAGMENTS, &(wg_gpu_input){ dx, dw, 1e-5f }, rows, dim, act);
            from_device(got, act, bytes);
            cr_assert_arr_eq(got, want, bytes, "%s, %d", wg_type_name(type), dim);
        }
        device_free(dx), device_free(dw), device_free(dy), device_free(act);
        free(x), free(weight), free(want), free(got);
    }
}

Test(gpu_rows, swiglu_at_the_limits)
{
    const float gate[] = { 0, -0.0f, 87.3f, -87.3f, 88.8f, -88.8f, 1e-40f, -1e-40f, 3e38f, -3e38f, INFINITY, -INFINITY };
    enum { N = sizeof gate / sizeof gate[0] };
    float up[N], want[N], got[N];
    for (int i = 0; i < N; i++) up[i] = 1 + (float)i;
    float *dg = to_device(gate, sizeof gate), *du = to_device(up, sizeof up), *dy = to_device(NULL, sizeof got);
    ref()->swiglu(gate, up, want, N);
    gpu()->api->swiglu(gpu(), dg, du, dy, N, 1);
    from_device(got, dy, sizeof got);
    for (int i = 0; i < N; i++)
        cr_assert(memcmp(&got[i], &want[i], 4) == 0 || (isnan(got[i]) && isnan(want[i])), "gate %g", (double)gate[i]);
    device_free(dg), device_free(du), device_free(dy);
}

Test(gpu_rows, embedding_of_every_type)
{
    for (int i = 0; i < 2 * (int)(sizeof all_types / sizeof *all_types); i++) {
        const int type = all_types[i / 2], block = wg_type_get(type)->block, n = 70, fragments = i % 2;
        const int k = block > 32 ? 512 : block == 32 ? 96 : 37;
        if (fragments && !wg_gpu_has_fragments(type)) continue;
        const size_t row = wg_type_size(wg_type_get(type), (size_t)k), bytes = ref()->matrix_bytes(type, n, k);
        char *file = aligned(row * (size_t)n);
        const size_t there = wg_gpu_matrix_bytes(type, fragments, n, k);
        void *packed = aligned(bytes), *units = aligned(there);
        float *x = random_floats((size_t)k, 3), *want = aligned((size_t)k * 4), *got = aligned((size_t)k * 12);
        for (int r = 0; r < n; r++) {
            fill(x, (size_t)k, 100 + (uint32_t)r);
            if (wg_row_from_f32(type, x, file + row * (size_t)r, (size_t)k))
                random_blocks(type, (uint64_t)r, 0.5f, file + row * (size_t)r, (size_t)k);
        }
        ref()->matrix_pack(type, n, k, file, packed, 0, (n + WG_PANEL - 1) / WG_PANEL);
        const wg_gpu_row rows[3] = { { .token = 69 }, { .token = 0 }, { .token = 33 } };
        const wg_matrix host = { type, n, k, packed };
        wg_gpu_pack(&host, fragments, file, units, 0, wg_gpu_units(type, fragments, n));
        const wg_matrix device = { type, n, k, weights_to_device(units, there) };
        wg_gpu_row *dr = to_device(rows, sizeof rows);
        float *dx = to_device(NULL, (size_t)k * 12);
        gpu()->api->embed(gpu(), &device, fragments, dr, 3, dx);
        from_device(got, dx, (size_t)k * 12);
        for (int r = 0; r < 3; r++) {
            ref()->matrix_row(&host, rows[r].token, want);
            cr_assert_arr_eq(got + r * k, want, (size_t)k * 4, "%s, row %d", wg_type_name(type), r);
        }
        device_free((void *)(uintptr_t)device.data), device_free(dr), device_free(dx);
        free(file), free(packed), free(units), free(x), free(want), free(got);
    }
}

Test(gpu_rows, gather)
{
    enum { N = 37 };
    float *x = random_floats(5 * N, 4), got[3 * N];
    const int32_t from[3] = { 4, 0, 2 };
    wg_gpu_row rows[5], some[3];
    for (int i = 0; i < 5; i++) rows[i] = (wg_gpu_row){ .token = i, .keys = 7 * i };
    float *dx = to_device(x, 5 * N * 4), *dy = to_device(NULL, sizeof got);
    int32_t *df = to_device(from, sizeof from);
    wg_gpu_row *dr = to_device(rows, sizeof rows), *ds = to_device(NULL, sizeof some);
    gpu()->api->gather(gpu(), dx, df, N, dy, 3);
    gpu()->api->gather_rows(gpu(), dr, df, ds, 3);
    from_device(got, dy, sizeof got);
    from_device(some, ds, sizeof some);
    for (int i = 0; i < 3; i++) {
        cr_assert_arr_eq(got + i * N, x + from[i] * N, N * 4);
        cr_assert(some[i].token == from[i] && some[i].keys == 7 * from[i]);
    }
    device_free(dx), device_free(dy), device_free(df), device_free(dr), device_free(ds);
    free(x);
}

/* Rows of two sequences with tables of their own; every page type, adjacent pairs and halves, part of a head turned. */
Test(gpu_rows, rotary_and_pages)
{
    enum { ROWS = 4, HEADS = 6, KV_HEADS = 2, HD = 10, SLOTS = 3, PAGES = 9, ROT = 6, Q = HEADS * HD, K = KV_HEADS * HD };
    const int types[] = { WG_F32, WG_F16, WG_BF16 };
    const int32_t tables[] = { 4, 1, 7, 0, 8, 3 }; /* of two sequences, three pages each */
    wg_gpu_row rows[ROWS];
    for (int i = 0; i < ROWS; i++) rows[i] = (wg_gpu_row){ .position = 5 * i, .slot = 2 * i + 1, .table = i % 2 * 3 };
    float *cs = random_floats(16 * ROT, 5), *q = random_floats(ROWS * Q, 6), *k = random_floats(ROWS * K, 7),
          *v = random_floats(ROWS * K, 8);
    for (int i = 0; i < 6; i++) {
        const int type = types[i / 2], adjacent = i % 2;
        const size_t row = (size_t)K * (type == WG_F32 ? 4 : 2), value_at = (row * SLOTS + 63) / 64 * 64, page = 2 * value_at;
        char *want = aligned(page * PAGES), *got = aligned(page * PAGES);
        float *wq = aligned(ROWS * Q * 4), *wk = aligned(ROWS * K * 4), gq[ROWS * Q];
        IN_EVERY_ORDER
        {
            memset(want, 0, page * PAGES);
            memcpy(wq, q, ROWS * Q * 4);
            memcpy(wk, k, ROWS * K * 4);
            float *dc = to_device(cs, 16 * ROT * 4), *dq = to_device(q, ROWS * Q * 4), *dk = to_device(k, ROWS * K * 4),
                  *dv = to_device(v, ROWS * K * 4);
            int32_t *dt = to_device(tables, sizeof tables);
            wg_gpu_row *dr = to_device(rows, sizeof rows);
            char *pool = to_device(want, page * PAGES);
            const wg_gpu_kv kv = {
                .type = type, .page_slots = SLOTS, .kv_dim = K, .tables = dt, .pool = pool, .stride = page, .value_at = value_at
            };
            const wg_gpu_rotary to = { .cs = dc, .n_rot = ROT, .adjacent = adjacent, .hd = HD, .row = dr, .kv = kv };
            gpu()->api->rope_store(gpu(), &to, dq, dk, dv, ROWS, HEADS, KV_HEADS);
            from_device(got, pool, page * PAGES);
            from_device(gq, dq, sizeof gq);
            for (int r = 0; r < ROWS; r++) {
                const wg_kv_view view = { .type = type,
                                          .page_slots = SLOTS,
                                          .kv_dim = K,
                                          .page = tables + rows[r].table,
                                          .pool = want,
                                          .stride = page,
                                          .value_at = value_at };
                ref()->rope(wq + r * Q, HEADS, HD, ROT, cs + rows[r].position * ROT, adjacent);
                ref()->rope(wk + r * K, KV_HEADS, HD, ROT, cs + rows[r].position * ROT, adjacent);
                ref()->kv_store(&view, rows[r].slot, wk + r * K, v + r * K);
            }
            cr_assert_arr_eq(got, want, page * PAGES, "%s, adjacent %d", wg_type_name(type), adjacent);
            cr_assert_arr_eq(gq, wq, sizeof gq);
            device_free(dc), device_free(dq), device_free(dk), device_free(dv), device_free(dt), device_free(dr);
            device_free(pool);
        }
        free(want), free(got), free(wq), free(wk);
    }
    free(cs), free(q), free(k), free(v);
}

Test(gpu_rows, random_numbers_have_addresses)
{
    float got[1001];
    float *dx = to_device(NULL, sizeof got);
    IN_EVERY_ORDER
    {
        gpu()->api->fill_random(gpu(), 99, 3, 0.5f, dx, 1001);
        from_device(got, dx, sizeof got);
        for (uint32_t i = 0; i < 1001; i++)
            cr_assert_eq(got[i], (wg_philox_float(wg_philox_at(99, i / 4, 0, 3, 0).v[i % 4]) * 2 - 1) * 0.5f);
    }
    device_free(dx);
}
