/* SPDX-License-Identifier: MIT
 * The operations of training on a device: the elements of kernels/train_elements.h, one thread each, and sums of rows by
 * half-warps, whose sixteen lanes are those of the host. All sums have one order, and none an atomic. What differs from the
 * host's bits: the sum over rows of a norm's weight, the length of Muon's matrix, and products (cuBLAS). */
#include "kernels/cuda/launch.h"
#include "kernels/exp.h"

#define REAL float
#define SQRT sqrtf
#define FMA fmaf
#define EXP wg_exp32_of
#include "kernels/train_elements.h"

enum { THREADS = 128, EACH = 4 * THREADS, HALVES = THREADS / LANES }; /* elements, and half-warps, of a block */

/* The half-warp of this thread, counted over the grid, and its lane. */
WG_DEVICE int half_warp() { return (int)blockIdx.x * HALVES + (int)threadIdx.x / LANES; }
WG_DEVICE int half_lane() { return (int)threadIdx.x % LANES; }

/* The body runs for every element i of n that is this thread's. */
#define WG_ELEMENTS(n)                                                                                                         \
    WG_UNROLL_FOR(int step_ = 0; step_ < 4; step_++)                                                                           \
        for (size_t i = (size_t)blockIdx.x * EACH + (size_t)(step_ * THREADS) + threadIdx.x; i < (n); i = (n))

/* ---- embedding */

WG_KERNEL train_embed(const wg_embed_job j)
{
    wg_depend();
    const float *from = (const float *)j.w + (size_t)j.token[blockIdx.x] * j.dim;
    float *to = (float *)j.x + (size_t)blockIdx.x * j.dim;
    for (int i = (int)threadIdx.x; i < j.dim; i += THREADS) to[i] = from[i];
}

/* The block of a token's first row adds all of its rows, in their order. */
WG_KERNEL train_embed_back(const wg_embed_job j)
{
    wg_depend();
    const int row = (int)blockIdx.x, token = j.token[row];
    bool first = true;
    for (int r = (int)threadIdx.x % WG_WARP; r < row / WG_WARP * WG_WARP + WG_WARP && first; r += WG_WARP)
        first = !__any_sync(0xffffffffu, r < row && j.token[r] == token);
    if (!first) return;
    float *to = (float *)j.dw + (size_t)token * j.dim;
    for (int i = (int)threadIdx.x; i < j.dim; i += THREADS) {
        float sum = to[i];
        for (int r = row; r < j.rows; r++)
            if (j.token[r] == token) sum += ((const float *)j.dx)[(size_t)r * j.dim + i];
        to[i] = sum;
    }
}

/* ---- RMSNorm: a half-warp a row */

WG_KERNEL train_norm(const wg_norm_job j)
{
    wg_depend();
    const int row = half_warp(), m = row < j.rows ? row : j.rows - 1, lane = half_lane();
    const float *x = (const float *)j.x + (size_t)m * j.dim, *w = (const float *)j.w;
    float *y = (float *)j.y + (size_t)m * j.dim, sum = 0;
    for (int i = lane; i < j.dim; i += LANES) sum = fmaf(x[i], x[i], sum);
    const float r = norm_factor(wg_warp_fold16(sum), j.dim, (float)j.eps);
    if (row >= j.rows) return;
    if (lane == 0) ((float *)j.r)[m] = r;
    for (int i = lane; i < j.dim; i += LANES) y[i] = x[i] * r * w[i];
}

WG_KERNEL train_norm_back(const wg_norm_job j)
{
    wg_depend();
    const int row = half_warp(), m = row < j.rows ? row : j.rows - 1, lane = half_lane();
    const size_t at = (size_t)m * j.dim;
    const float *x = (const float *)j.x + at, *dy = (const float *)j.dy + at, *w = (const float *)j.w;
    float *dx = (float *)j.dx + at, sum = 0;
    for (int i = lane; i < j.dim; i += LANES) sum = fmaf(w[i] * dy[i], x[i], sum);
    const float r = ((const float *)j.r)[m], c = norm_pull(wg_warp_fold16(sum), r, j.dim);
    for (int i = lane; i < j.dim && row < j.rows; i += LANES) dx[i] += norm_back_of(x[i], w[i], dy[i], r, c);
}

/* A block takes 32 columns; a warp every WARPS-th row, ascending; then warps are added in their order. */
enum { WARPS = 16 };
WG_KERNEL WG_LAUNCH_BOUNDS(WARPS *WG_WARP, 1) train_norm_weight_back(const wg_norm_job j)
{
    wg_depend();
    WG_SHARED(float, part, WARPS *WG_WARP);
    const int column = (int)blockIdx.x * WG_WARP + (int)threadIdx.x % WG_WARP, warp = (int)threadIdx.x / WG_WARP;
    const float *x = (const float *)j.x, *dy = (const float *)j.dy, *r = (const float *)j.r;
    float sum = 0;
    for (int m = warp; m < j.rows && column < j.dim; m += WARPS) {
        const size_t at = (size_t)m * j.dim + column;
        sum = fmaf(dy[at] * x[at], r[m], sum);
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    if (warp > 0 || column >= j.dim) return;
    for (int w = 1; w < WARPS; w++) sum += part[w * WG_WARP + (int)threadIdx.x];
    ((float *)j.dw)[column] += sum;
}

/* ---- RoPE, SwiGLU */

WG_KERNEL train_turn(const wg_turn_job j)
{
    wg_depend();
    const int half = j.n_rot / 2;
    const float sign = j.back ? -1.0f : 1.0f, *cs = (const float *)j.cs + (size_t)j.position[blockIdx.x] * j.n_rot;
    for (int p = (int)threadIdx.x; p < j.heads * half; p += THREADS) {
        const int h = p / half, i = p % half;
        float *x = (float *)j.x + ((size_t)blockIdx.x * j.heads + h) * j.hd, *a = j.adjacent ? x + 2 * i : x + i;
        turn_pair(a, j.adjacent ? a + 1 : a + half, cs[2 * i], sign * cs[2 * i + 1]);
    }
}

WG_KERNEL train_gate(const wg_gate_job j)
{
    wg_depend();
    WG_ELEMENTS(j.n)((float *)j.y)[i] = gated(((const float *)j.gate)[i], ((const float *)j.up)[i]);
}

WG_KERNEL train_gate_back(const wg_gate_job j)
{
    wg_depend();
    WG_ELEMENTS(j.n)
    gated_back(((const float *)j.gate)[i], ((const float *)j.up)[i], ((const float *)j.dy)[i], (float *)j.dgate + i,
               (float *)j.dup + i);
}

/* ---- cross-entropy: a block a row */

enum { TILE = 2048 };
WG_KERNEL WG_LAUNCH_BOUNDS(THREADS, 1) train_cross_entropy(const wg_entropy_job j)
{
    wg_depend();
    WG_SHARED(float, tile, TILE);
    WG_SHARED(float, all, THREADS / WG_WARP);
    const int t = (int)threadIdx.x, target = j.target[blockIdx.x];
    const float *z = (const float *)j.z + (size_t)blockIdx.x * j.vocab;
    float *dz = (float *)j.dz + (size_t)blockIdx.x * j.vocab, *loss = (float *)j.loss + blockIdx.x;
    float top = z[0], sum = 0;
    if (target < 0) { /* of the whole block */
        for (int i = t; i < j.vocab; i += THREADS) dz[i] = 0;
        if (t == 0) *loss = 0;
        return;
    }
    for (int i = t; i < j.vocab; i += THREADS) top = z[i] > top ? z[i] : top;
    top = wg_warp_max(top);
    if (t % WG_WARP == 0) all[t / WG_WARP] = top;
    __syncthreads();
    for (int w = 0; w < THREADS / WG_WARP; w++) top = all[w] > top ? all[w] : top;
    for (int first = 0; first < j.vocab; first += TILE) {
        const int n = j.vocab - first < TILE
        ? j.vocab - first : (int)TILE;
        for (int i = t; i < n; i += THREADS) tile[i] = wg_exp32_of(z[first + i] - top);
        __syncthreads();
        for (int i = t; i < n && t < LANES; i += LANES) sum += tile[i];
        __syncthreads();
    }
    if (t < WG_WARP) {
        sum = wg_warp_fold16(sum);
        if (t == 0) {
            all[0] = top + (float)log((double)sum);
            *loss = all[0] - z[target];
        }
    }
    __syncthreads();
    const float c = all[0];
    for (int i = t; i < j.vocab; i += THREADS) {
        const float p = wg_exp32_of(z[i] - c);
        dz[i] = i == target ? p - 1.0f : p;
    }
}

/* ---- optimisers */

WG_KERNEL train_keep(const wg_keep_job j)
{
    wg_depend();
    WG_ELEMENTS(j.n)((float *)j.x)[i] = j.kept[i] ? ((const float *)j.x)[i] : 0.0f;
}

/* A half-warp a span. */
WG_KERNEL train_square(const wg_square_job j)
{
    wg_depend();
    WG_SHARED(double, lane, THREADS);
    const size_t span = (size_t)half_warp(), begin = span * WG_SPAN;
    const size_t end = begin + WG_SPAN < j.n ? begin + WG_SPAN : j.n;
    const float *x = (const float *)j.x;
    double sum = 0;
    for (size_t i = begin + (size_t)half_lane(); i < end; i += LANES) sum += (double)x[i] * (double)x[i];
    lane[threadIdx.x] = sum;
    __syncthreads();
    if (half_lane() != 0 || begin >= j.n) return;
    double all = 0;
    for (int l = 0; l < LANES; l++) all += lane[(int)threadIdx.x + l];
    j.sum[span] = all;
}

WG_KERNEL train_adamw(const wg_adamw_job j, const adamw_step s)
{
    wg_depend();
    WG_ELEMENTS(j.n) adamw_of(s, ((const float *)j.g)[i], (float *)j.w + i, (float *)j.m + i, (float *)j.v + i);
}

WG_KERNEL train_momentum(const wg_momentum_job j)
{
    wg_depend();
    WG_ELEMENTS(j.n)
    momentum_of((float)j.mu, (float)j.clip, ((const float *)j.g)[i], (float *)j.m + i, (float *)j.u + i);
}

/* The sum of spans, ascending; one thread. */
WG_KERNEL train_total(double *square, int spans)
{
    wg_depend();
    double sum = 0;
    if (threadIdx.x > 0) return;
    for (int i = 0; i < spans; i++) sum += square[1 + i];
    square[0] = sum;
}

/* Where element i of the matrix lies in x. */
WG_DEVICE size_t muon_place(const wg_muon_job &j, size_t i)
{
    return j.turned ? i % (size_t)j.columns * (size_t)j.rows + i / (size_t)j.columns : i;
}

WG_KERNEL train_direction(const wg_muon_job j)
{
    wg_depend();
    const double sum = *j.square;
    const float scale = sum > 0 ? (float)(1 / sqrt(sum)) : 0.0f;
    WG_ELEMENTS((size_t)j.rows * (size_t)j.columns)((float *)j.x)[muon_place(j, i)] = ((const float *)j.u)[i] * scale;
}

WG_KERNEL train_descent(const wg_muon_job j)
{
    wg_depend();
    float *w = (float *)j.w;
    if (!(*j.square > 0)) return;
    WG_ELEMENTS((size_t)j.rows * (size_t)j.columns)
    w[i] = w[i] * (float)j.keep - (float)j.step * ((const float *)j.x)[muon_place(j, i)];
}

/* ---- attention: products by the library, for blocks of query rows; rows of scores by half-warps */

/* Query rows [i0, i1) of member g of every group of heads, of all sequences. */
typedef struct wg_attend {
    wg_attention_job j;
    int g, i0, i1;
} wg_attend;

/* One row of scores: where it lies, and whose it is. */
typedef struct wg_attend_row {
    float *s, *dp;
    size_t row; /* of all */
    int head, from, to, keys;
    bool there;
} wg_attend_row;

WG_DEVICE wg_attend_row attend_row(const wg_attend &a)
{
    const wg_attention_job &j = a.j;
    const int m = a.i1 - a.i0, all = j.sequences * j.kv_heads * m, n = half_warp(), at = n < all ? n : all - 1;
    const int pair = at / m, i = a.i0 + at % m;
    wg_attend_row r;
    r.s = (float *)j.work + (size_t)pair * wg_attention_work(j.length) + (size_t)(at % m) * (size_t)j.length;
    r.dp = r.s + (size_t)WG_ATTENTION_BLOCK * (size_t)j.length;
    r.row = (size_t)(pair / j.kv_heads) * (size_t)j.length + (size_t)i;
    r.head = pair % j.kv_heads * (j.heads / j.kv_heads) + a.g;
    r.from = j.start[r.row], r.to = i + 1, r.keys = a.i1;
    r.there = n < all;
    return r;
}

WG_DEVICE float *attend_lse(const wg_attention_job &j, const wg_attend_row &r)
{
    return (float *)j.lse + (size_t)r.head * (size_t)j.sequences * (size_t)j.length + r.row;
}

WG_KERNEL train_attend(const wg_attend a)
{
    wg_depend();
    const wg_attend_row r = attend_row(a);
    const int lane = half_lane();
    float top = r.s[r.from], sum = 0;
    for (int t = r.from + lane; t < r.to; t += LANES) top = r.s[t] > top ? r.s[t] : top;
    for (int with = LANES / 2; with; with >>= 1) {
        const float other = __shfl_xor_sync(0xffffffffu, top, with);
        top = other > top ? other : top;
    }
    for (int t = r.from + lane; t < r.to; t += LANES) sum += wg_exp32_of(r.s[t] - top);
    const float c = top + (float)log((double)wg_warp_fold16(sum));
    if (!r.there) return;
    if (lane == 0) *attend_lse(a.j, r) = c;
    for (int t = lane; t < r.keys; t += LANES) r.s[t] = t < r.from || t >= r.to ? 0.0f : wg_exp32_of(r.s[t] - c);
}

/* s becomes the probabilities, dp the gradient of scores. */
WG_KERNEL train_attend_back(const wg_attend a)
{
    wg_depend();
    const wg_attend_row r = attend_row(a);
    const wg_attention_job &j = a.j;
    const int lane = half_lane();
    const size_t at = (r.row * (size_t)j.heads + (size_t)r.head) * (size_t)j.hd;
    const float *dy = (const float *)j.dy + at, *y = (const float *)j.y + at, c = *attend_lse(j, r);
    float sum = 0;
    for (int i = lane; i < j.hd; i += LANES) sum = fmaf(dy[i], y[i], sum);
    sum = wg_warp_fold16(sum);
    for (int t = lane; t < r.keys && r.there; t += LANES) {
        const float p = t < r.from || t >= r.to ? 0.0f : wg_exp32_of(r.s[t] - c);
        r.s[t] = p;
        r.dp[t] = p * (r.dp[t] - sum);
    }
}

/* A matrix of every pair of sequence and key head: the first, how far its rows lie apart, the next head, the next sequence. */
typedef struct wg_operand {
    float *p;
    int ld;
    size_t head, sequence;
} wg_operand;

/* Of queries (or y), from row i0 on; of keys (or v), from the beginning; of scores. */
static wg_operand query(const wg_attend *a, const void *q)
{
    const wg_attention_job *j = &a->j;
    const int ld = j->heads * j->hd;
    return wg_operand{ (float *)q + (size_t)a->i0 * (size_t)ld + (size_t)(a->g * j->hd), ld,
                       (size_t)(j->heads / j->kv_heads * j->hd), (size_t)j->length * (size_t)ld };
}
static wg_operand key(const wg_attend *a, const void *k)
{
    const wg_attention_job *j = &a->j;
    const int ld = j->kv_heads * j->hd;
    return wg_operand{ (float *)k, ld, (size_t)j->hd, (size_t)j->length * (size_t)ld };
}
static wg_operand score(const wg_attend *a, bool back)
{
    const size_t pair = wg_attention_work(a->j.length);
    return wg_operand{ (float *)a->j.work + (back ? pair / 2 : 0), a->j.length, pair, (size_t)a->j.kv_heads * pair };
}

static void products(wg_gpu *g, const wg_attend *a, wg_gemm of, wg_operand x, wg_operand y, wg_operand z)
{
    const wg_gpu_batch heads = { a->j.kv_heads, x.head, y.head, z.head };
    of.lda = x.ld, of.ldb = y.ld, of.ldc = z.ld;
    for (size_t s = 0; s < (size_t)a->j.sequences; s++) {
        of.a = x.p + s * x.sequence, of.b = y.p + s * y.sequence, of.c = z.p + s * z.sequence;
        g->api->gemm(g, &of, &heads);
    }
}

static wg_gemm shape(int m, int n, int k, double alpha)
{
    wg_gemm of = {};
    of.m = m, of.n = n, of.k = k, of.alpha = alpha;
    return of;
}

static void forward_block(wg_gpu *g, const wg_attend *a)
{
    const wg_attention_job *j = &a->j;
    const int m = a->i1 - a->i0, keys = a->i1, rows = j->sequences * j->kv_heads * m;
    wg_gemm scores = shape(m, keys, j->hd, j->scale), out = shape(m, j->hd, keys, 1);
    scores.tb = true;
    products(g, a, scores, query(a, j->q), key(a, j->k), score(a, false));
    WG_LAUNCH(train_attend, wg_blocks_for((size_t)rows, HALVES), THREADS, 0, g->stream, *a);
    products(g, a, out, score(a, false), key(a, j->v), query(a, j->y));
}

static void backward_block(wg_gpu *g, const wg_attend *a)
{
    const wg_attention_job *j = &a->j;
    const int m = a->i1 - a->i0, keys = a->i1, rows = j->sequences * j->kv_heads * m;
    wg_gemm scores = shape(m, keys, j->hd, j->scale), dp = shape(m, keys, j->hd, 1), dq = shape(m, j->hd, keys, j->scale);
    wg_gemm dk = shape(keys, j->hd, m, j->scale), dv = shape(keys, j->hd, m, 1);
    scores.tb = dp.tb = dk.ta = dv.ta = true;
    dk.beta = dv.beta = 1;
    products(g, a, scores, query(a, j->q), key(a, j->k), score(a, false));
    products(g, a, dp, query(a, j->dy), key(a, j->v), score(a, true));
    WG_LAUNCH(train_attend_back, wg_blocks_for((size_t)rows, HALVES), THREADS, 0, g->stream, *a);
    products(g, a, dq, score(a, true), key(a, j->k), query(a, j->dq));
    products(g, a, dk, score(a, true), query(a, j->q), key(a, j->dk));
    products(g, a, dv, score(a, false), query(a, j->dy), key(a, j->dv));
}

static void attention(wg_gpu *g, const wg_attention_job *j, bool back)
{
    const size_t keys = (size_t)j->sequences * (size_t)j->length * (size_t)(j->kv_heads * j->hd) * sizeof(float);
    if (back) g->api->clear(g, j->dk, keys), g->api->clear(g, j->dv, keys);
    for (int member = 0; member < j->heads / j->kv_heads; member++)
        for (int i0 = 0; i0 < j->length; i0 += WG_ATTENTION_BLOCK) {
            const int i1 = i0 + WG_ATTENTION_BLOCK < j->length ? i0 + WG_ATTENTION_BLOCK : j->length;
            const wg_attend a = { *j, member, i0, i1 };
            if (back) backward_block(g, &a);
            else forward_block(g, &a);
        }
}

/* ---- by name */

static void direction(wg_gpu *g, const wg_muon_job *j)
{
    const size_t n = (size_t)j->rows * (size_t)j->columns;
    const wg_square_job parts = { j->u, j->square + 1, n };
    WG_LAUNCH(train_square, wg_blocks_for((size_t)wg_spans(n), HALVES), THREADS, 0, g->stream, parts);
    WG_LAUNCH(train_total, 1, WG_WARP, 0, g->stream, j->square, wg_spans(n));
    WG_LAUNCH(train_direction, wg_blocks_for(n, EACH), THREADS, 0, g->stream, *j);
}

#define WG_JOB(type) (*(const type *)job)
#define WG_BY_ROW(kernel, type) WG_LAUNCH(kernel, WG_JOB(type).rows, THREADS, 0, g->stream, WG_JOB(type))
#define WG_BY_HALF(kernel, type, n) WG_LAUNCH(kernel, wg_blocks_for((size_t)(n), HALVES), THREADS, 0, g->stream, WG_JOB(type))
#define WG_BY_ELEMENT(kernel, type) WG_LAUNCH(kernel, wg_blocks_for(WG_JOB(type).n, EACH), THREADS, 0, g->stream, WG_JOB(type))

extern "C" void WG_GPU(train)(wg_gpu *g, wg_train_part which, const void *job)
{
    switch (which) {
    case WG_OP_EMBED: WG_BY_ROW(train_embed, wg_embed_job); break;
    case WG_OP_EMBED_BACK: WG_BY_ROW(train_embed_back, wg_embed_job); break;
    case WG_OP_NORM: WG_BY_HALF(train_norm, wg_norm_job, WG_JOB(wg_norm_job).rows); break;
    case WG_OP_NORM_BACK: WG_BY_HALF(train_norm_back, wg_norm_job, WG_JOB(wg_norm_job).rows); break;
    case WG_OP_NORM_WEIGHT_BACK:
        WG_LAUNCH(train_norm_weight_back, wg_blocks_for((size_t)WG_JOB(wg_norm_job).dim, WG_WARP), WARPS * WG_WARP, 0,
                  g->stream, WG_JOB(wg_norm_job));
        break;
    case WG_OP_TURN: WG_BY_ROW(train_turn, wg_turn_job); break;
    case WG_OP_ATTENTION: attention(g, &WG_JOB(wg_attention_job), false); break;
    case WG_OP_ATTENTION_BACK: attention(g, &WG_JOB(wg_attention_job), true); break;
    case WG_OP_GATE: WG_BY_ELEMENT(train_gate, wg_gate_job); break;
    case WG_OP_GATE_BACK: WG_BY_ELEMENT(train_gate_back, wg_gate_job); break;
    case WG_OP_CROSS_ENTROPY: WG_BY_ROW(train_cross_entropy, wg_entropy_job); break;
    case WG_OP_KEEP: WG_BY_ELEMENT(train_keep, wg_keep_job); break;
    case WG_OP_SQUARE: WG_BY_HALF(train_square, wg_square_job, wg_spans(WG_JOB(wg_square_job).n)); break;
    case WG_OP_ADAMW:
        WG_LAUNCH(train_adamw, wg_blocks_for(WG_JOB(wg_adamw_job).n, EACH), THREADS, 0, g->stream, WG_JOB(wg_adamw_job),
                  adamw_step_of(&WG_JOB(wg_adamw_job)));
        break;
    case WG_OP_MOMENTUM: WG_BY_ELEMENT(train_momentum, wg_momentum_job); break;
    case WG_OP_DIRECTION: direction(g, &WG_JOB(wg_muon_job)); break;
    case WG_OP_DESCENT:
        WG_LAUNCH(train_descent, wg_blocks_for((size_t)WG_JOB(wg_muon_job).rows * (size_t)WG_JOB(wg_muon_job).columns, EACH),
                  THREADS, 0, g->stream, WG_JOB(wg_muon_job));
        break;
    case WG_OP_PATH:
    case WG_OP_PATH_BACK:
    case WG_OP_ADD: /* of heads, which train on the host */
    case WG_TRAIN_PARTS: break;
    }
}
