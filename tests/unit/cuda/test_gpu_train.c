/* SPDX-License-Identifier: MIT
 * Operations of training on a device against the host's: bit for bit, but where an order of sums differs, which is said there.
 * Whole runs: tests/simt/train.sh. */
#include "draft/train/train_ops.h"
#include "tests/simt/simt_check.h"

/* The device's table; on WG_GPU=cuda that of the card. */
static const wg_train_ops *ops_there(void)
{
    static wg_train_ops op;
    char why[WG_GPU_WHY] = "";
    if (!op.gpu) {
        cr_assert_eq(gpu()->api->blas(gpu(), why), 0, "%s", why);
        op = (wg_train_ops){ .name = "there", .size = sizeof(float), .gpu = gpu() };
    }
    return &op;
}

/* ---- operations: arrays that a job points to, on the host and there */

enum { ARRAYS = 12 };
typedef struct arrays {
    void *host[ARRAYS], *device[ARRAYS], *got[ARRAYS];
    size_t bytes[ARRAYS];
    int n;
} arrays;

static int array_of(arrays *a, const void *from, size_t bytes)
{
    a->host[a->n] = aligned(bytes), a->got[a->n] = aligned(bytes), a->bytes[a->n] = bytes;
    memcpy(a->host[a->n], from, bytes);
    a->device[a->n] = to_device(from, bytes);
    return a->n++;
}

static int floats_of(arrays *a, size_t n, uint32_t stream)
{
    float *x = random_floats(n, stream);
    const int i = array_of(a, x, n * sizeof *x);
    free(x);
    return i;
}

static void arrays_close(arrays *a)
{
    for (int i = 0; i < a->n; i++) free(a->host[i]), free(a->got[i]), device_free(a->device[i]);
    a->n = 0;
}

static const float *got(const arrays *a, int i)
{
    from_device(a->got[i], a->device[i], a->bytes[i]);
    return a->got[i];
}

static void same_bits(const arrays *a, int i, const char *what)
{
    cr_assert(memcmp(got(a, i), a->host[i], a->bytes[i]) == 0, "%s: other bits than the host's", what);
}

/* The same, where a logarithm is the device's own: the emulation's is the host's. */
static void same_log(const arrays *a, int i, const char *what)
{
    const double off = distance(got(a, i), a->host[i], a->bytes[i] / sizeof(float));
    cr_assert(off <= (gpu()->api == wg_gpu_simt() ? 0 : 1e-6), "%s: off by %g", what, off);
}

static void near(const arrays *a, int i, double most, const char *what)
{
    const double off = distance(got(a, i), a->host[i], a->bytes[i] / sizeof(float));
    cr_assert(off <= most, "%s: off by %g", what, off);
}

static void on_host(wg_train_part which, const void *job, int items) { wg_ops_run(NULL, wg_ops_f32(), which, job, items, 1); }
static void there(wg_train_part which, const void *job) { wg_ops_run(NULL, ops_there(), which, job, 0, 1); }

Test(gpu_train, embedding)
{
    enum { ROWS = 137, DIM = 150, VOCAB = 40 };
    IN_EVERY_ORDER
    {
        arrays a = { .n = 0 };
        int32_t token[ROWS];
        for (int i = 0; i < ROWS; i++) token[i] = (int32_t)(wg_philox_at(3, (uint32_t)i, 0, 0, 0).v[0] % 25 + 3);
        const int t = array_of(&a, token, sizeof token), w = floats_of(&a, VOCAB * DIM, 1), x = floats_of(&a, ROWS * DIM, 2);
        const int dx = floats_of(&a, ROWS * DIM, 3), dw = floats_of(&a, VOCAB * DIM, 4);
        for (int d = 0; d < 2; d++) {
            void *const *p = d ? a.device : a.host;
            const wg_embed_job j = { .token = p[t], .w = p[w], .x = p[x], .dw = p[dw], .dx = p[dx], .rows = ROWS, .dim = DIM };
            if (d) there(WG_OP_EMBED, &j), there(WG_OP_EMBED_BACK, &j);
            else on_host(WG_OP_EMBED, &j, ROWS), on_host(WG_OP_EMBED_BACK, &j, DIM);
        }
        same_bits(&a, x, "rows");
        same_bits(&a, dw, "gradient");
        arrays_close(&a);
    }
}

/* The sum over rows of the weight's gradient has another order. */
Test(gpu_train, norms)
{
    enum { ROWS = 43, DIM = 75 };
    IN_EVERY_ORDER
    {
        arrays a = { .n = 0 };
        const int x = floats_of(&a, ROWS * DIM, 1), w = floats_of(&a, DIM, 2), dy = floats_of(&a, ROWS * DIM, 3);
        const int y = floats_of(&a, ROWS * DIM, 4), r = floats_of(&a, ROWS, 5), dx = floats_of(&a, ROWS * DIM, 6);
        const int dw = floats_of(&a, DIM, 7);
        for (int d = 0; d < 2; d++) {
            void *const *p = d ? a.device : a.host;
            const wg_norm_job j = { .x = p[x],
                                    .w = p[w],
                                    .dy = p[dy],
                                    .y = p[y],
                                    .r = p[r],
                                    .dx = p[dx],
                                    .dw = p[dw],
                                    .rows = ROWS,
                                    .dim = DIM,
                                    .eps = 1e-5 };
            if (d) there(WG_OP_NORM, &j), there(WG_OP_NORM_BACK, &j), there(WG_OP_NORM_WEIGHT_BACK, &j);
            else on_host(WG_OP_NORM, &j, ROWS), on_host(WG_OP_NORM_BACK, &j, ROWS), on_host(WG_OP_NORM_WEIGHT_BACK, &j, DIM);
        }
        same_bits(&a, y, "rows");
        same_bits(&a, r, "factors");
        same_bits(&a, dx, "gradient");
        near(&a, dw, 1e-6, "gradient of the weight");
        arrays_close(&a);
    }
}

Test(gpu_train, turns_and_gates)
{
    enum { ROWS = 5, HEADS = 3, HD = 10, ROT = 6, PLACES = 9, N = 1030 };
    static const int32_t position[ROWS] = { 0, 8, 3, 3, 1 };
    IN_EVERY_ORDER
    {
        arrays a = { .n = 0 };
        const int at = array_of(&a, position, sizeof position), cs = floats_of(&a, PLACES * ROT, 1);
        const int x = floats_of(&a, ROWS * HEADS * HD, 2), gate = floats_of(&a, N, 3), up = floats_of(&a, N, 4);
        const int dy = floats_of(&a, N, 5), y = floats_of(&a, N, 6);
        for (int d = 0; d < 2; d++) {
            void *const *p = d ? a.device : a.host;
            wg_turn_job t = { .x = p[x], .cs = p[cs], .position = p[at], .rows = ROWS, .heads = HEADS, .hd = HD, .n_rot = ROT };
            const wg_gate_job g = {
                .gate = p[gate], .up = p[up], .dy = p[dy], .y = p[y], .dgate = p[gate], .dup = p[up], .n = N
            };
            for (int k = 0; k < 3; k++) {
                t.adjacent = k & 1, t.back = k & 2;
                if (d) there(WG_OP_TURN, &t);
                else on_host(WG_OP_TURN, &t, ROWS);
            }
            if (d) there(WG_OP_GATE, &g), there(WG_OP_GATE_BACK, &g);
            else on_host(WG_OP_GATE, &g, wg_spans(N)), on_host(WG_OP_GATE_BACK, &g, wg_spans(N));
        }
        same_bits(&a, x, "turned heads");
        same_bits(&a, y, "gated");
        same_bits(&a, gate, "gradient of the gate");
        same_bits(&a, up, "gradient of up");
        arrays_close(&a);
    }
}

/* One row of one head, by the formula in double: what test_train_ops holds the host's attention to. dq, dk, dv are added to. */
static void attend(const wg_attention_job *j, int row, int head)
{
    enum { MOST = 128 };
    const int first = row / j->length * j->length, from = first + j->start[row], kv = head / (j->heads / j->kv_heads);
    const size_t at = (size_t)((row * j->heads + head) * j->hd);
    double p[MOST], dp[MOST], sum = 0, pull = 0;
    for (int t = from; t <= row; t++) {
        double score = 0;
        for (int i = 0; i < j->hd; i++)
            score += (double)((const float *)j->q)[at + i] * (double)((const float *)j->k)[(t * j->kv_heads + kv) * j->hd + i];
        sum += p[t - first] = exp(j->scale * score);
    }
    ((float *)j->lse)[head * j->sequences * j->length + row] = (float)log(sum);
    for (int i = 0; i < j->hd; i++) {
        double y = 0;
        for (int t = from; t <= row; t++)
            y += p[t - first] / sum * (double)((const float *)j->v)[(t * j->kv_heads + kv) * j->hd + i];
        ((float *)j->y)[at + i] = (float)y;
        pull += y * (double)((const float *)j->dy)[at + i];
    }
    for (int t = from; t <= row; t++) {
        const size_t key = (size_t)((t * j->kv_heads + kv) * j->hd);
        dp[t - first] = 0, p[t - first] /= sum;
        for (int i = 0; i < j->hd; i++)
            dp[t - first] += (double)((const float *)j->dy)[at + i] * (double)((const float *)j->v)[key + i];
        for (int i = 0; i < j->hd; i++) {
            const double ds = j->scale * p[t - first] * (dp[t - first] - pull);
            ((float *)j->dq)[at + i] += (float)(ds * (double)((const float *)j->k)[key + i]);
            ((float *)j->dk)[key + i] += (float)(ds * (double)((const float *)j->q)[at + i]);
            ((float *)j->dv)[key + i] += (float)(p[t - first] * (double)((const float *)j->dy)[at + i]);
        }
    }
}

/* Documents that begin within blocks of queries, groups of heads. */
Test(gpu_train, attention)
{
    enum { SEQUENCES = 2, LENGTH = 70, HEADS = 4, KV = 2, HD = 6, ROWS = SEQUENCES * LENGTH, Q = ROWS * HEADS * HD };
    int32_t start[ROWS];
    for (int i = 0; i < ROWS; i++) start[i] = i % LENGTH < 5 ? 0 : i % LENGTH < 67 ? 5 : 67;
    IN_EVERY_ORDER
    {
        arrays a = { .n = 0 };
        const size_t work = wg_attention_work(LENGTH), k = Q / HEADS * KV;
        const int s = array_of(&a, start, sizeof start), q = floats_of(&a, Q, 1), key = floats_of(&a, k, 2);
        const int v = floats_of(&a, k, 3), dy = floats_of(&a, Q, 4), y = floats_of(&a, Q, 5),
                  lse = floats_of(&a, HEADS * ROWS, 6);
        const int dq = floats_of(&a, Q, 7), dk = floats_of(&a, k, 8), dv = floats_of(&a, k, 9);
        const int room = floats_of(&a, work * SEQUENCES * KV, 10), overwritten[] = { dq, dk, dv };
        for (int i = 0; i < 3; i++) memset(a.host[overwritten[i]], 0, a.bytes[overwritten[i]]);
        for (int d = 0; d < 2; d++) {
            void *const *p = d ? a.device : a.host;
            const wg_attention_job j = { .q = p[q],
                                         .k = p[key],
                                         .v = p[v],
                                         .dy = p[dy],
                                         .y = p[y],
                                         .lse = p[lse],
                                         .dq = p[dq],
                                         .dk = p[dk],
                                         .dv = p[dv],
                                         .start = p[s],
                                         .work = p[room],
                                         .sequences = SEQUENCES,
                                         .length = LENGTH,
                                         .heads = HEADS,
                                         .kv_heads = KV,
                                         .hd = HD,
                                         .scale = 2 };
            if (d) there(WG_OP_ATTENTION, &j), there(WG_OP_ATTENTION_BACK, &j);
            for (int i = 0; i < ROWS * HEADS && !d; i++) attend(&j, i / HEADS, i % HEADS);
        }
        near(&a, y, 1e-5, "attention"), near(&a, lse, 1e-5, "logs of sums"), near(&a, dq, 1e-5, "gradient of queries");
        near(&a, dk, 1e-5, "gradient of keys"), near(&a, dv, 1e-5, "gradient of values");
        arrays_close(&a);
    }
}

Test(gpu_train, cross_entropy)
{
    enum { ROWS = 4, VOCAB = 2500 };
    static const int32_t target[ROWS] = { 7, -1, 2499, 0 };
    IN_EVERY_ORDER
    {
        arrays a = { .n = 0 };
        const int t = array_of(&a, target, sizeof target), z = floats_of(&a, ROWS * VOCAB, 1),
                  dz = floats_of(&a, ROWS * VOCAB, 2);
        const int loss = floats_of(&a, ROWS, 3);
        for (int d = 0; d < 2; d++) {
            void *const *p = d ? a.device : a.host;
            const wg_entropy_job apart = {
                .target = p[t], .z = p[z], .dz = p[dz], .loss = p[loss], .rows = ROWS, .vocab = VOCAB
            };
            wg_entropy_job in_place = apart;
            in_place.dz = p[z];
            if (d) there(WG_OP_CROSS_ENTROPY, &apart), there(WG_OP_CROSS_ENTROPY, &in_place);
            else on_host(WG_OP_CROSS_ENTROPY, &apart, ROWS), on_host(WG_OP_CROSS_ENTROPY, &in_place, ROWS);
        }
        same_log(&a, dz, "gradient");
        same_log(&a, z, "gradient in place");
        same_log(&a, loss, "losses");
        arrays_close(&a);
    }
}

/* The length of Muon's matrix is a sum in another order. */
Test(gpu_train, updates)
{
    enum { ROWS = 130, COLUMNS = 70, N = ROWS * COLUMNS, SPANS = (N + WG_SPAN - 1) / WG_SPAN };
    IN_EVERY_ORDER
    {
        arrays a = { .n = 0 };
        uint8_t kept[N];
        const double zeros[1 + SPANS] = { 0 };
        for (int i = 0; i < N; i++) kept[i] = i % 3 != 0;
        const int k = array_of(&a, kept, sizeof kept), g = floats_of(&a, N, 1), w = floats_of(&a, N, 2),
                  m = floats_of(&a, N, 3);
        const int v = floats_of(&a, N, 4), x = floats_of(&a, N, 5), sums = array_of(&a, zeros, sizeof zeros);
        const int square = array_of(&a, zeros, sizeof zeros), still = floats_of(&a, N, 6), none = floats_of(&a, N, 7);
        for (int d = 0; d < 2; d++) {
            void *const *p = d ? a.device : a.host;
            const wg_square_job s = { p[g], p[sums], N };
            const wg_keep_job keep = { p[v], p[k], N };
            const wg_adamw_job adam = { .w = p[w],
                                        .m = p[m],
                                        .v = p[v],
                                        .g = p[g],
                                        .n = N,
                                        .lr = 0.1,
                                        .beta1 = 0.9,
                                        .beta2 = 0.99,
                                        .eps = 1e-8,
                                        .decay = 0.1,
                                        .clip = 0.5,
                                        .correct1 = 0.1,
                                        .correct2 = 0.01 };
            const wg_momentum_job mom = { .m = p[m], .u = p[g], .g = p[g], .n = N, .mu = 0.95, .clip = 0.5 };
            wg_muon_job muon = { .u = p[g], .w = p[w], .x = p[x], .square = p[square], .rows = ROWS, .columns = COLUMNS };
            muon.turned = true, muon.keep = 0.9, muon.step = 0.5;
            wg_muon_job nothing = muon;
            nothing.u = p[none], nothing.w = p[still];
            if (d) {
                gpu()->api->clear(gpu(), p[none], N * sizeof(float));
                there(WG_OP_SQUARE, &s), there(WG_OP_KEEP, &keep), there(WG_OP_ADAMW, &adam), there(WG_OP_MOMENTUM, &mom);
                there(WG_OP_DIRECTION, &nothing), there(WG_OP_DESCENT, &nothing);
                there(WG_OP_DIRECTION, &muon), there(WG_OP_DESCENT, &muon);
            } else {
                memset(p[none], 0, N * sizeof(float));
                on_host(WG_OP_SQUARE, &s, SPANS), on_host(WG_OP_KEEP, &keep, SPANS), on_host(WG_OP_ADAMW, &adam, SPANS);
                on_host(WG_OP_MOMENTUM, &mom, SPANS);
                on_host(WG_OP_DIRECTION, &nothing, 1), on_host(WG_OP_DESCENT, &nothing, ROWS);
                on_host(WG_OP_DIRECTION, &muon, 1), on_host(WG_OP_DESCENT, &muon, ROWS);
            }
        }
        same_bits(&a, sums, "sums of squares");
        same_bits(&a, v, "squares, pruned");
        same_bits(&a, m, "momentum");
        same_bits(&a, g, "Nesterov's momentum");
        same_bits(&a, still, "a matrix without a gradient");
        near(&a, x, 1e-6, "direction");
        near(&a, w, 1e-6, "weights");
        arrays_close(&a);
    }
}

/* Every way of transposing, rows with gaps, several at once. */
Test(gpu_train, products)
{
    enum { M = 7, N = 5, K = 9, GAP = 3, BATCH = 2, ROOM = 20 * 20 };
    for (int way = 0; way < 8; way++) {
        arrays a = { .n = 0 };
        const bool ta = way & 1, tb = way & 2, add = way & 4;
        const int x = floats_of(&a, BATCH * ROOM, 1), y = floats_of(&a, BATCH * ROOM, 2), z = floats_of(&a, BATCH * ROOM, 3);
        wg_gemm g = { .ta = ta, .tb = tb, .m = M, .n = N, .k = K, .alpha = 1.5, .beta = add ? 0.5 : 0 };
        g.lda = (ta ? M : K) + GAP, g.ldb = (tb ? K : N) + GAP, g.ldc = N + GAP;
        g.a = a.device[x], g.b = a.device[y], g.c = a.device[z];
        gpu()->api->blas(gpu(), (char[WG_GPU_WHY]){ "" });
        gpu()->api->gemm(gpu(), &g, &(wg_gpu_batch){ BATCH, ROOM, ROOM, ROOM });
        for (int b = 0; b < BATCH; b++)
            for (int i = 0; i < M * N; i++) {
                const float *from[2] = { (float *)a.host[x] + b * ROOM, (float *)a.host[y] + b * ROOM };
                const int m = i / N, n = i % N;
                float *to = (float *)a.host[z] + b * ROOM + m * g.ldc + n;
                double sum = 0;
                for (int k = 0; k < K; k++)
                    sum += (double)from[0][ta ? k * g.lda + m : m * g.lda + k] *
                           (double)from[1][tb ? n * g.ldb + k : k * g.ldb + n];
                *to = (float)(g.alpha * sum + g.beta * (double)*to);
            }
        near(&a, z, 1e-6, "a product");
        arrays_close(&a);
    }
}
