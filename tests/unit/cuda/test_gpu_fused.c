/* SPDX-License-Identifier: MIT
 * Products that norm and prepare their rows in the same kernel: for every type, the bytes of the separate steps, for every
 * output of the sums, in every order of threads and blocks; and the number of kernels of a model's layer. */
#include "tests/unit/cuda/passes.h"

#include "tests/kernels/blocks.h"

enum { N_MOST = 96, K_MOST = 1184 };

static const int all_types[] = { WG_HALF_TYPES(WG_TYPE_ID) WG_SCALED_FLOAT_TYPES(WG_TYPE_ID)
                                     WG_DEVICE_QUANT_TYPES(WG_TYPE_ID) };
enum { TYPES = sizeof all_types / sizeof *all_types };

static wg_matrix matrix_new(int type, int n, int k, uint32_t seed)
{
    const size_t row = wg_type_size(wg_type_get(type), (size_t)k), packed = wg_gpu_matrix_bytes(type, 1, n, k);
    char *file = aligned(row * (size_t)n), *units = aligned(packed);
    float *x = aligned((size_t)k * 4);
    for (int r = 0; r < n; r++) {
        fill(x, (size_t)k, seed * 1000 + (uint32_t)r);
        if (wg_row_from_f32(type, x, file + row * (size_t)r, (size_t)k))
            random_blocks(type, seed * 1000 + (uint64_t)r, 0.5f, file + row * (size_t)r, (size_t)k);
    }
    wg_matrix m = { type, n, k, NULL };
    wg_gpu_pack(&m, 1, file, units, 0, wg_gpu_units(type, 1, n));
    m.data = weights_to_device(units, packed);
    free(file), free(units), free(x);
    return m;
}

static void matrix_free(wg_matrix *m) { device_free((void *)(uintptr_t)m->data); }

/* Rows and the weight of a norm; with an outlier, a row of zeros, one that f16 must scale. */
typedef struct inputs {
    int rows, k;
    float *x, *weight;
    void *act;
} inputs;

static inputs inputs_new(int rows, int k)
{
    float *x = random_floats((size_t)rows * (size_t)k, 7), *weight = random_floats((size_t)k, 8);
    x[1] = 500;
    for (int i = 0; i < k && rows > 2; i++) x[k + i] = 0, x[2 * k + i] *= 1e-7f;
    const inputs in = { .rows = rows,
                        .k = k,
                        .x = to_device(x, (size_t)rows * (size_t)k * 4),
                        .weight = to_device(weight, (size_t)k * 4),
                        .act = to_device(NULL, wg_gpu_act_bytes(WG_BF16, 1, rows, k)) }; /* enough for any type */
    free(x), free(weight);
    return in;
}

static void inputs_free(const inputs *in) { device_free(in->x), device_free(in->weight), device_free(in->act); }

static void in_steps(const inputs *in, int normed, const wg_matrix *const *w, int n, float *const *y, int then)
{
    const wg_gpu_api *api = gpu()->api;
    const int type = w[0]->type;
    const wg_gpu_input x = { in->x, in->weight, 1e-5f };
    if (normed) api->norm_prepare(gpu(), type, WG_GPU_FRAGMENTS, &x, in->rows, in->k, in->act);
    else api->prepare(gpu(), type, 1, in->x, in->rows, in->k, in->act);
    api->matmul(gpu(), w, y, n, 1, in->act, in->rows, then);
}

static void in_one(const inputs *in, int normed, const wg_matrix *const *w, int n, float *const *y, int then,
                   const wg_gpu_rotary *rotary)
{
    const wg_gpu_input as_is = { in->x, normed ? in->weight : NULL, 1e-5f };
    cr_assert(wg_gpu_fits(gpu(), w[0]->type, 1, in->rows, in->k));
    gpu()->api->matmul_fused(gpu(), w, y, n, &as_is, in->rows, &(wg_gpu_output){ .then = then, .rotary = rotary });
}

/* Three matrices; sums added; gate and up: y (rows, N_MOST) each. */
static void endings(int type, int rows, int k, int normed)
{
    enum { BYTES = WG_GPU_FUSED_ROWS * N_MOST * 4 };
    static float want[BYTES / 4], got[BYTES / 4], before[BYTES / 4];
    const int n[4] = { 40, 5, N_MOST, 40 };
    const inputs in = inputs_new(rows, k);
    wg_matrix m[4];
    for (int i = 0; i < 4; i++) m[i] = matrix_new(type, n[i], k, 1 + (uint32_t)i);
    const wg_matrix *const three[] = { &m[0], &m[1], &m[2] }, *const pair[] = { &m[0], &m[3] };
    float *y[3], *z[3];
    fill(before, BYTES / 4, 3);
    for (int then = WG_GPU_STORE; then <= WG_GPU_SWIGLU; then++) {
        const int count = then == WG_GPU_STORE ? 3 : then == WG_GPU_ADD ? 1 : 2;
        const wg_matrix *const *w = then == WG_GPU_SWIGLU ? pair : three;
        for (int i = 0; i < 3; i++) y[i] = to_device(before, BYTES), z[i] = to_device(before, BYTES);
        in_steps(&in, normed, w, count, y, then);
        in_one(&in, normed, w, count, z, then, NULL);
        for (int i = 0; i < 3; i++) {
            from_device(want, y[i], BYTES), from_device(got, z[i], BYTES);
            cr_assert_arr_eq(got, want, BYTES, "%s, %d rows of %d, normed %d, then %d, matrix %d", wg_type_name(type), rows, k,
                             normed, then, i);
            device_free(y[i]), device_free(z[i]);
        }
    }
    for (int i = 0; i < 4; i++) matrix_free(&m[i]);
    inputs_free(&in);
}

Test(gpu_fused, every_type_and_ending_has_the_bits_of_the_steps)
{
    static const int rows[] = { 1, 3, 8 };
    for (int i = 0; i < TYPES * 3; i++) {
        const int type = all_types[i / 3], k = wg_type_get(type)->block > 32 ? 512 : 288;
        simt_order_set((simt_order)(i % SIMT_ORDERS));
        endings(type, rows[i % 3], k, i % 2);
    }
}

/* More steps than stages; fewer inputs than a step; in every order. */
Test(gpu_fused, long_and_short_rows)
{
    static const struct {
        int type, k, least;
    } row[] = {
        { WG_F16, 1180, 32 },    { WG_BF16, 1180, 32 },     { WG_Q8_0, K_MOST, 32 },
        { WG_Q4_0, K_MOST, 32 }, { WG_F8_E4M3, 1152, 128 },
    };
    for (int i = 0; i < 5; i++) {
        int normed = 0;
        IN_EVERY_ORDER endings(row[i].type, 2, row[i].k, normed++ % 2);
        endings(row[i].type, 5, row[i].least, 1);
    }
}

/* A row of NaN and infinities spoils no other, and is what it is in steps. */
Test(gpu_fused, nan_stays_in_its_row)
{
    enum { N = 32, K = 128, ROWS_ = 3 };
    static const int types[] = { WG_F16, WG_BF16, WG_Q4_0, WG_F8_E4M3 };
    for (int i = 0; i < 4; i++) {
        float want[ROWS_ * N], got[ROWS_ * N], *x = random_floats(ROWS_ * K, 4);
        x[5] = NAN, x[K + 9] = INFINITY;
        inputs in = inputs_new(ROWS_, K);
        gpu()->api->put(gpu(), in.x, x, ROWS_ * K * 4);
        wg_matrix m = matrix_new(types[i], N, K, 1), *const w = &m;
        float *y = to_device(NULL, sizeof want), *z = to_device(NULL, sizeof got);
        in_steps(&in, 0, (const wg_matrix *const[]){ w }, 1, &y, WG_GPU_STORE);
        in_one(&in, 0, (const wg_matrix *const[]){ w }, 1, &z, WG_GPU_STORE, NULL);
        from_device(want, y, sizeof want), from_device(got, z, sizeof got);
        for (int e = 0; e < ROWS_ * N; e++)
            cr_assert(memcmp(&got[e], &want[e], 4) == 0 || (isnan(got[e]) && isnan(want[e])), "%s", wg_type_name(types[i]));
        cr_assert(isfinite(got[2 * N]));
        device_free(y), device_free(z), matrix_free(&m), inputs_free(&in);
        free(x);
    }
}

/* The largest output of each row, from pieces: the host's, among equals, NaN, rows that are all NaN; and the sampler goes by
 * them. */
Test(gpu_fused, a_product_tells_the_largest_of_its_outputs)
{
    enum { N = 90, K = 64, COUNT = WG_GPU_FUSED_ROWS };
    static const int types[] = { WG_F16, WG_BF16, WG_Q8_0, WG_Q6_K, WG_F8_E4M3 };
    static wg_gpu_best piece[COUNT * WG_GPU_BESTS];
    for (int i = 0; i < 5; i++) {
        const int k = wg_type_get(types[i])->block > K ? 256 : K, rows = i % 2 ? 5 : COUNT;
        float y[COUNT * N];
        int32_t point[COUNT];
        const inputs in = inputs_new(rows, k); /* the second row is zeros: all outputs are equal */
        float *x = random_floats((size_t)k, 31), *dy = to_device(NULL, sizeof y);
        for (int e = 0; e < k; e++) x[e] = NAN;
        if (!i) gpu()->api->put(gpu(), in.x + 3 * k, x, (size_t)k * 4);
        wg_matrix m = matrix_new(types[i], N, k, 9);
        const wg_matrix *const w = &m;
        wg_gpu_best *best = to_device(NULL, sizeof piece);
        const wg_gpu_input as_is = { in.x, NULL, 0 };
        simt_order_set((simt_order)(i % SIMT_ORDERS));
        memset(piece, 0x11, sizeof piece);
        gpu()->api->put(gpu(), best, piece, sizeof piece);
        gpu()->api->matmul_fused(gpu(), &w, &dy, 1, &as_is, rows, &(wg_gpu_output){ .then = WG_GPU_STORE, .best = best });
        from_device(y, dy, (size_t)rows * N * 4), from_device(piece, best, sizeof piece);
        for (int r = 0; r < rows; r++) {
            const float *row = y + r * N;
            wg_gpu_best want = { 0, -1 }, got = { 0, -1 };
            for (int n = 0; n < N; n++)
                if (row[n] == row[n] && (want.at < 0 || row[n] > want.value)) want = (wg_gpu_best){ row[n], n };
            for (int b = 0; b < WG_GPU_BESTS; b++) {
                const wg_gpu_best one = piece[r * WG_GPU_BESTS + b];
                cr_assert(one.at >= -1 && one.at < N && (one.at < 0 || one.value == row[one.at]));
                if (one.at < 0) continue;
                if (got.at < 0 || one.value > got.value || (one.value == got.value && one.at < got.at)) got = one;
            }
            cr_assert_eq(got.at, want.at, "%s, row %d: %d, not %d", wg_type_name(types[i]), r, got.at, want.at);
            cr_assert(r != 1 || want.at == 0);
            cr_assert(i || r != 3 || want.at == -1);
        }
        /* Told otherwise, the sampler believes it: it does not look. */
        const wg_gpu_chain greedy = { .temperature = 0, .top_p = 1, .best = best };
        double *p = to_device(NULL, sizeof(double) * COUNT * N);
        int32_t *dp = to_device(NULL, sizeof point);
        uint64_t *keys = to_device(NULL, COUNT * wg_gpu_sample_bytes(N));
        for (int r = 0; r < rows; r++) piece[r * WG_GPU_BESTS] = (wg_gpu_best){ 1e30f, N - 1 - r };
        gpu()->api->put(gpu(), best, piece, sizeof piece);
        gpu()->api->sample(gpu(), dy, N, &greedy, p, dp, keys, rows);
        from_device(point, dp, sizeof point);
        for (int r = 0; r < rows; r++) cr_assert_eq(point[r], !i && r == 3 ? 0 : N - 1 - r, "row %d: %d", r, point[r]);
        device_free(dy), device_free(best), device_free(p), device_free(dp), device_free(keys);
        matrix_free(&m), inputs_free(&in);
        free(x);
    }
}

/* ---- queries, keys, values: turned, and into pages */

enum { HEADS = 3, KV_HEADS = 2, SLOTS = 3, PAGES = 9, POSITIONS = 40 };

typedef struct shape {
    int hd, n_rot, adjacent;
} shape;

/* first: whether queries, keys and values go together, or values on their own. */
static void turned(int type, int kv_type, int rows, shape s, bool apart)
{
    static const int32_t tables[] = { 4, 1, 7, 0, 8, 3 };
    const int k = 256, q_dim = HEADS * s.hd, kv_dim = KV_HEADS * s.hd;
    const size_t row = (size_t)kv_dim * (kv_type == WG_F32 ? 4 : 2), value_at = (row * SLOTS + 63) / 64 * 64;
    const size_t pool = PAGES * 2 * value_at, q_bytes = (size_t)rows * (size_t)q_dim * 4;
    char *want = aligned(pool), *got = aligned(pool);
    float *want_q = aligned(q_bytes), *got_q = aligned(q_bytes), *cs = random_floats((size_t)POSITIONS * (size_t)s.n_rot, 5);
    wg_gpu_row rows_of[WG_GPU_FUSED_ROWS];
    for (int i = 0; i < rows; i++) rows_of[i] = (wg_gpu_row){ .position = 5 * i, .slot = i, .table = i % 2 * 3 };
    if (rows > 1) rows_of[rows - 1].slot = -1; /* fills up */
    const inputs in = inputs_new(rows, k);
    wg_matrix m[3] = { matrix_new(type, q_dim, k, 1), matrix_new(type, kv_dim, k, 2), matrix_new(type, kv_dim, k, 3) };
    const wg_matrix *const w[3] = { &m[0], &m[1], &m[2] };
    memset(want, 0x5a, pool);
    float *dc = to_device(cs, (size_t)POSITIONS * (size_t)s.n_rot * 4), *y[3];
    y[0] = to_device(NULL, q_bytes);
    for (int i = 1; i < 3; i++) y[i] = to_device(NULL, (size_t)rows * (size_t)kv_dim * 4);
    wg_gpu_row *dr = to_device(rows_of, (size_t)rows * sizeof *dr);
    wg_gpu_kv kv = { .type = kv_type,
                     .page_slots = SLOTS,
                     .kv_dim = kv_dim,
                     .tables = to_device(tables, sizeof tables),
                     .pool = to_device(want, pool),
                     .stride = 2 * value_at,
                     .value_at = value_at };

    in_steps(&in, 1, w, 3, y, WG_GPU_STORE);
    wg_gpu_rotary to = { .cs = dc, .n_rot = s.n_rot, .adjacent = s.adjacent, .hd = s.hd, .row = dr, .kv = kv };
    gpu()->api->rope_store(gpu(), &to, y[0], y[1], y[2], rows, HEADS, KV_HEADS);
    from_device(want_q, y[0], q_bytes);
    memset(got, 0x5a, pool);
    from_device(want, kv.pool, pool);
    gpu()->api->put(gpu(), kv.pool, got, pool);

    cr_assert(wg_gpu_turns(s.hd, s.n_rot, s.adjacent));
    in_one(&in, 1, w, apart ? 2 : 3, (float *const[]){ y[0], NULL, NULL }, WG_GPU_ROTARY, &to);
    to.first = 2;
    if (apart) in_one(&in, 1, w + 2, 1, (float *const[]){ NULL }, WG_GPU_ROTARY, &to);
    from_device(got_q, y[0], q_bytes), from_device(got, kv.pool, pool);
    cr_assert_arr_eq(got_q, want_q, q_bytes, "%s, heads of %d, %d turned, adjacent %d: queries", wg_type_name(type), s.hd,
                     s.n_rot, s.adjacent);
    cr_assert_arr_eq(got, want, pool, "%s, heads of %d, %d turned, adjacent %d: pages of %s", wg_type_name(type), s.hd, s.n_rot,
                     s.adjacent, wg_type_name(kv_type));
    for (int i = 0; i < 3; i++) matrix_free(&m[i]), device_free(y[i]);
    device_free(dc), device_free(dr), device_free((void *)(uintptr_t)kv.tables), device_free(kv.pool);
    inputs_free(&in);
    free(want), free(got), free(want_q), free(got_q), free(cs);
}

/* Pairs side by side, in one stripe, in two; heads of an odd number of stripes; what is not turned; a row that fills up. */
Test(gpu_fused, queries_keys_and_values_have_the_bits_of_the_steps)
{
    static const shape shapes[] = { { 10, 6, 1 },  { 16, 16, 0 }, { 32, 32, 0 }, { 48, 32, 0 },
                                    { 64, 64, 0 }, { 32, 16, 0 }, { 64, 32, 1 } };
    static const int types[] = { WG_F16, WG_BF16, WG_F8_E4M3, WG_Q8_0, WG_Q4_0, WG_Q4_K, WG_Q6_K };
    static const int kv[] = { WG_F16, WG_F32, WG_BF16 }, rows[] = { 1, 4, 8 };
    for (int i = 0; i < 7; i++)
        for (int t = 0; t < 7; t++) {
            simt_order_set((simt_order)((i + t) % SIMT_ORDERS));
            turned(types[t], kv[(i + t) % 3], rows[(i + t / 2) % 3], shapes[i], (i + t) % 2);
        }
}

Test(gpu_fused, what_does_not_fit_is_refused)
{
    wg_gpu g = { .shared = 99 << 10 };
    cr_assert(wg_gpu_fits(&g, WG_F16, 1, 1, 8192) && wg_gpu_fits(&g, WG_Q4_0, 0, 2, 4096));
    cr_assert(!wg_gpu_fits(&g, WG_F16, 1, 3, 4096) && !wg_gpu_fits(&g, WG_Q4_0, 0, 1, 14336));
    g.shared = 227 << 10;
    cr_assert(wg_gpu_fits(&g, WG_F16, 1, 8, 4096) && wg_gpu_fits(&g, WG_Q4_0, 0, 3, 14336));
    cr_assert(!wg_gpu_fits(&g, WG_F16, 1, 9, 64) && !wg_gpu_fits(&g, WG_Q4_0, 0, 4, 14336));
    cr_assert(!wg_gpu_fits(&g, WG_F16, 0, 1, 64) && !wg_gpu_fits(&g, WG_F32, 0, 1, 64) && !wg_gpu_fits(&g, WG_F16, 1, 1, 7));
    cr_assert(wg_gpu_turns(64, 64, 0) && wg_gpu_turns(10, 6, 1) && wg_gpu_turns(80, 32, 0) && wg_gpu_turns(16, 16, 0));
    cr_assert(!wg_gpu_turns(20, 16, 0) && !wg_gpu_turns(80, 80, 0) && !wg_gpu_turns(16, 8, 0) && !wg_gpu_turns(32, 24, 0));
}

/* One row of ordinary models always, more of them the shorter they are; the rows of a product that tells its largest outputs
 * are worth more. Whatever is prepared alike pays alike. */
Test(gpu_fused, what_does_not_pay_is_known)
{
    static const struct {
        int type, k, normed, tells, most;
    } cases[] = {
        { WG_BF16, 2048, 1, 0, 3 }, { WG_BF16, 4096, 1, 0, 1 },    { WG_F16, 4096, 0, 0, 1 },   { WG_F8_E4M3, 4096, 1, 1, 3 },
        { WG_BF16, 768, 1, 0, 8 },  { WG_F8_E4M3, 8192, 0, 0, 1 }, { WG_F16, 14336, 0, 0, 0 },  { WG_Q4_0, 2048, 1, 0, 7 },
        { WG_Q4_0, 4096, 1, 0, 5 }, { WG_Q6_K, 4096, 0, 0, 1 },    { WG_Q8_0, 14336, 0, 0, 0 }, { WG_Q8_0, 4096, 1, 1, 7 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int rows = 1; rows <= WG_GPU_FUSED_ROWS; rows++)
            cr_assert_eq(wg_gpu_pays(cases[i].type, rows, cases[i].k, cases[i].normed, cases[i].tells), rows <= cases[i].most,
                         "%s, %d rows of %d", wg_type_name(cases[i].type), rows, cases[i].k);
}

/* ---- a pass of a model: its launches */

static wg_weights *weights_of(int type, int hidden)
{
    static tiny shape = { .layers = LAYERS,
                          .dim = 64,
                          .heads = 4,
                          .kv_heads = 2,
                          .head_dim = 16,
                          .hidden = 96,
                          .vocab = VOCAB,
                          .context = CONTEXT,
                          .norm_type = WG_F32,
                          .seed = 5 };
    wg_weights *w;
    char path[64];
    for (int i = 0; i < 4; i++) shape.type[i] = type;
    shape.hidden = hidden;
    cr_assert_eq(tiny_open(&shape, &w, path, &err), WG_OK, "%s", err.text);
    return w;
}

/* A layer is five kernels: q, k, v into the pages; attention, of one span or of two; o; gate and up; down. Before them the
 * embedding, behind them the head. More rows go through the single steps, with the same logits; so do those of a product whose
 * rows are too long for each block to prepare them: of one type down, which is then two kernels. */
Test(gpu_fused, a_layer_of_few_rows_is_five_kernels)
{
    static const int types[] = { WG_F16, WG_BF16, WG_Q8_0, WG_Q4_0 }, rows[] = { WG_GPU_FUSED_ROWS + 1, 1, 4, 8 };
    const bool counted = gpu()->api == wg_gpu_simt(); /* a card's launches nobody counts */
    for (int i = 0; i < 4; i++) {
        float all[(WG_GPU_FUSED_ROWS + 1) * VOCAB], got[WG_GPU_FUSED_ROWS * VOCAB];
        wg_weights *w = weights_of(types[i], i == 1 ? 1024 : 96);
        wg_device d;
        setup s;
        cr_assert_eq(wg_device_cuda(&d, gpu()->api, 0, WG_CUDA_EAGER, NULL, &err), WG_OK, "%s", err.text);
        cr_assert_eq(setup_open(&s, &d, w), WG_OK, "%s", err.text);
        if (i == 0) {
            cr_assert_eq(pass(&s, WG_GPU_SPAN, 0, NULL), WG_OK, "%s", err.text);
            wg_kv_commit_chain(s.seq, WG_GPU_SPAN);
        }
        for (int n = 0; n < 4; n++) {
            const long before = simt_stats_read().launches;
            cr_assert_eq(pass(&s, rows[n], rows[n], n ? got : all), WG_OK, "%s", err.text);
            const long launches = simt_stats_read().launches - before;
            wg_kv_rollback(s.seq);
            if (n > 0) cr_assert_arr_eq(got, all, (size_t)rows[n] * VOCAB * 4, "%s, %d rows", wg_type_name(types[i]), rows[n]);
            if (counted)
                cr_assert(n ? launches == 1 + (5 + (i == 1 && rows[n] == 8)) * LAYERS + 1 : launches > 9 * LAYERS,
                          "%s, %d rows: %ld launches", wg_type_name(types[i]), rows[n], launches);
        }
        setup_close(&s);
        wg_device_close(&d);
        wg_weights_close(w);
    }
}
