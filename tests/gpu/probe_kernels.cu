/* SPDX-License-Identifier: MIT
 * The engine's kernels on a card (probe.cu). */
#include <cublasLt.h>
#include <dlfcn.h>

#include "tests/gpu/probe.h"

using namespace probe;

/* ---- row independence */

enum { N = 4096, K = 4096, ROWS = 64, WIDEST = 14336 };

static __global__ void to_bf16(const float *x, __nv_bfloat16 *y, size_t n)
{
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __float2bfloat16(x[i]);
}

/* Rows 0..m-1 of y against those of all. */
static bool same_rows(const float *y, const float *all, int m)
{
    static float a[ROWS * N], b[ROWS * N];
    must(cudaMemcpyAsync(a, y, (size_t)m * N * 4, cudaMemcpyDeviceToHost, stream), "copy");
    must(cudaMemcpyAsync(b, all, (size_t)m * N * 4, cudaMemcpyDeviceToHost, stream), "copy");
    must(cudaStreamSynchronize(stream), "wait");
    return memcmp(a, b, (size_t)m * N * 4) == 0;
}

/* Weights are taken as they come: random bits of a bf16 matrix in fragment order are another random matrix. */
static void our_rows(const float *x, const __nv_bfloat16 *w)
{
    const wg_matrix m = { WG_BF16, N, K, w }, *const one = &m;
    void *act = take(wg_gpu_act_bytes(WG_BF16, 1, ROWS, K));
    float *all = (float *)take((size_t)ROWS * N * 4), *y = (float *)take((size_t)ROWS * N * 4);
    bool same = true;
    gpu.api->prepare(&gpu, WG_BF16, 1, x, ROWS, K, act);
    gpu.api->matmul(&gpu, &one, &all, 1, 1, act, ROWS, WG_GPU_STORE);
    for (int rows = 1; rows < ROWS; rows += rows < 9 ? 1 : 11) {
        gpu.api->prepare(&gpu, WG_BF16, 1, x, rows, K, act);
        gpu.api->matmul(&gpu, &one, &y, 1, 1, act, rows, WG_GPU_STORE);
        same = same && same_rows(y, all, rows);
    }
    printf("{\"mma_rows_independent\": %s}\n", same ? "true" : "false");
    failures += !same;
    cudaFree(act), cudaFree(all), cudaFree(y);
}

/* ---- products against the time of reading their weights. Copies of the weights take turns, so that none stays in the L2. */

static void time_product(int type, int n, int k, const float *x, double bytes_a_second)
{
    enum { MOST = 64 };
    static const int rows[] = { 1, 8, 16, 32, 64 };
    const size_t bytes = wg_gpu_matrix_bytes(type, 1, n, k);
    const int copies = (int)std::min<size_t>(MOST, ((size_t)512 << 20) / bytes + 1);
    wg_matrix m[MOST];
    void *act = take(wg_gpu_act_bytes(type, 1, ROWS, k));
    float *y = (float *)take((size_t)ROWS * (size_t)n * 4);
    for (int i = 0; i < copies; i++) {
        m[i] = wg_matrix{ type, n, k, take(bytes) };
        gpu.api->draw(&gpu, &m[i], 1, 2, (uint32_t)i, 0);
    }
    printf("{\"product\": \"%s\", \"n\": %d, \"k\": %d, \"floor_us\": %.2f", wg_type_name(type), n, k,
           (double)bytes / bytes_a_second * 1e6);
    for (int i = 0; i < 5; i++) {
        gpu.api->prepare(&gpu, type, 1, x, rows[i], k, act);
        const double t = replayed([&] {
                             for (int c = 0; c < copies; c++) {
                                 const wg_matrix *const one = &m[c];
                                 gpu.api->matmul(&gpu, &one, &y, 1, 1, act, rows[i], WG_GPU_STORE);
                             }
                         }) /
                         copies;
        print_us("us", rows[i], t);
    }
    print_us("prepare_us", 1, replayed([&] {
                                  for (int c = 0; c < MOST; c++) gpu.api->prepare(&gpu, type, 1, x, 1, k, act);
                              }) / MOST);
    puts("}");
    for (int i = 0; i < copies; i++) cudaFree((void *)(uintptr_t)m[i].data);
    cudaFree(act), cudaFree(y);
}

/* The matrices of an 8 B and of a 1 B model. */
static void products(const float *x, double bytes_a_second)
{
    static const int types[] = { WG_BF16, WG_F16, WG_F8_E4M3, WG_Q8_0, WG_Q4_0, WG_Q4_K, WG_Q6_K };
    static const int shapes[][2] = { { 4096, 4096 }, { 28672, 4096 }, { 4096, 14336 }, { 2048, 2048 } };
    for (int i = 0; i < 7 * 4; i++) time_product(types[i / 4], shapes[i % 4][0], shapes[i % 4][1], x, bytes_a_second);
}

/* A normed product of few rows: norm_prepare and matmul against matmul_fused, one after the other in a graph. */

static double fused_or_not(const wg_matrix *m, int copies, const float *x, int rows, bool fused, void *act, float *y)
{
    const wg_gpu_input in = { x, x, 1e-5f };
    const wg_gpu_output out = { WG_GPU_STORE, NULL, NULL };
    return replayed([&] {
               for (int c = 0; c < copies; c++) {
                   const wg_matrix *const one = &m[c];
                   if (!fused) gpu.api->norm_prepare(&gpu, one->type, WG_GPU_FRAGMENTS, &in, rows, one->k, act);
                   if (fused) gpu.api->matmul_fused(&gpu, &one, &y, 1, &in, rows, &out);
                   else gpu.api->matmul(&gpu, &one, &y, 1, 1, act, rows, WG_GPU_STORE);
               }
           }) /
           copies;
}

static void fusing(const float *x)
{
    enum { MOST = 64 };
    static const int types[] = { WG_BF16, WG_Q8_0, WG_Q4_0 };
    static const int shapes[][2] = { { 4096, 4096 }, { 28672, 4096 }, { 4096, 14336 }, { 2048, 2048 } };
    for (int i = 0; i < 3 * 4; i++) {
        const int type = types[i / 4], n = shapes[i % 4][0], k = shapes[i % 4][1];
        const size_t bytes = wg_gpu_matrix_bytes(type, 1, n, k);
        const int copies = (int)std::min<size_t>(MOST, ((size_t)256 << 20) / bytes + 1);
        wg_matrix m[MOST];
        for (int c = 0; c < copies; c++) {
            m[c] = wg_matrix{ type, n, k, take(bytes) };
            gpu.api->draw(&gpu, &m[c], 1, 2, (uint32_t)c, 0);
        }
        void *act = take(wg_gpu_act_bytes(type, 1, WG_GPU_FUSED_ROWS, k));
        float *y = (float *)take((size_t)WG_GPU_FUSED_ROWS * (size_t)n * 4);
        printf("{\"fused\": \"%s\", \"n\": %d, \"k\": %d", wg_type_name(type), n, k);
        for (int rows = 1; rows <= WG_GPU_FUSED_ROWS; rows *= 2) {
            const bool fits = wg_gpu_fits(&gpu, type, 1, rows, k);
            print_us("steps_us", rows, fused_or_not(m, copies, x, rows, false, act, y));
            print_us("fused_us", rows, fits ? fused_or_not(m, copies, x, rows, true, act, y) : -1);
        }
        puts("}");
        for (int c = 0; c < copies; c++) cudaFree((void *)(uintptr_t)m[c].data);
        cudaFree(act), cudaFree(y);
    }
}

/* Attention of a chain behind a context, in the shape of an 8 B model (32 heads on 8 of keys and values, 128 wide, pages of 16
 * slots in bf16), against the time of reading the context. Layers take turns, so that none stays in the L2. */
static void time_attention(int context, const float *x, double bytes_a_second)
{
    enum { HEADS = 32, KV_HEADS = 8, HD = 128, PAGE = 16, SLOT = KV_HEADS * HD, PIECE = ROWS * WIDEST };
    static const int rows[] = { 1, 4, 8, 16, 32, 64 };
    const int pages = (context + ROWS) / PAGE;
    const size_t layer = (size_t)pages * PAGE * SLOT * 2 /* elements */, read = (size_t)context * SLOT * 2 * 2 /* bytes */;
    const int layers = (int)(((size_t)512 << 20) / (layer * 2) + 1);
    const size_t all = layer * (size_t)layers, room = wg_gpu_attention_bytes(ROWS, HEADS, HD, context + ROWS);
    __nv_bfloat16 *pool = (__nv_bfloat16 *)take(all * 2);
    float *scratch = (float *)take(room), *out = (float *)take((size_t)ROWS * HEADS * HD * 4);
    uint32_t *arrived = (uint32_t *)take(ROWS * HEADS * 4);
    int32_t *table = (int32_t *)malloc((size_t)pages * 4), *tables = (int32_t *)take((size_t)pages * 4);
    wg_gpu_row row[ROWS] = {}, *d_row = (wg_gpu_row *)take(sizeof row);
    for (size_t at = 0; at < all; at += PIECE)
        to_bf16<<<PIECE / 256, 256, 0, stream>>>(x, pool + at, std::min<size_t>(PIECE, all - at));
    for (int i = 0; i < pages; i++) table[i] = (int32_t)((size_t)i * 7919 % (size_t)pages);
    for (int i = 0; i < ROWS; i++) {
        row[i].prefix = row[i].tail = context;
        row[i].anc[0] = ~(uint64_t)0 >> (63 - i);
        row[i].keys = context + i + 1;
    }
    gpu.api->clear(&gpu, arrived, ROWS * HEADS * 4);
    gpu.api->put(&gpu, tables, table, (size_t)pages * 4);
    gpu.api->put(&gpu, d_row, row, sizeof row);
    printf("{\"attention\": \"bf16\", \"context\": %d, \"floor_us\": %.2f", context, (double)read / bytes_a_second * 1e6);
    for (int i = 0; i < 6; i++) {
        const double t = replayed([&] {
                             for (int l = 0; l < layers; l++) {
                                 const size_t stride = (size_t)PAGE * SLOT * 2 * 2;
                                 wg_gpu_attention of = wg_gpu_attention();
                                 of.kv.type = WG_BF16, of.kv.page_slots = PAGE, of.kv.kv_dim = SLOT;
                                 of.kv.tables = tables, of.kv.pool = (char *)(pool + layer * (size_t)l);
                                 of.kv.stride = stride, of.kv.value_at = stride / 2;
                                 of.q = x, of.out = out, of.row = d_row;
                                 of.rows = rows[i], of.most = context + rows[i];
                                 of.heads = HEADS, of.kv_heads = KV_HEADS, of.hd = HD, of.split = 1;
                                 of.scale = 0.125f, of.scratch = scratch, of.arrived = arrived;
                                 gpu.api->attention(&gpu, &of);
                             }
                         }) /
                         layers;
        print_us("us", rows[i], t);
    }
    puts("}");
    cudaFree(pool), cudaFree(scratch), cudaFree(out), cudaFree(arrived), cudaFree(tables), cudaFree(d_row);
    free(table);
}

/* cuBLASLt where it is: a probe carried to a machine without it asks everything else. */
/* clang-format off */
#define LIBRARY(X) \
    X(Create) X(Matmul) X(MatmulDescCreate) X(MatmulDescSetAttribute) X(MatrixLayoutCreate) X(MatrixLayoutDestroy) \
    X(MatmulPreferenceCreate) X(MatmulPreferenceSetAttribute) X(MatmulAlgoGetHeuristic)
/* clang-format on */
static struct library {
#define X(name) decltype(&cublasLt##name) name;
    LIBRARY(X)
#undef X
} lt;

static bool find_library()
{
    char name[32];
    snprintf(name, sizeof name, "libcublasLt.so.%d", CUBLAS_VER_MAJOR);
    void *const file = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!file) return false;
#define X(name)                                                                                                                \
    if (!(lt.name = (decltype(lt.name))dlsym(file, "cublasLt" #name))) return false;
    LIBRARY(X)
#undef X
    return true;
}

/* The first algorithm the heuristic names for 64 rows, used for every number of rows: padded to 64, and not. */
static void library_rows(const __nv_bfloat16 *x, const __nv_bfloat16 *w)
{
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulPreference_t want;
    cublasLtMatmulHeuristicResult_t found;
    const cublasOperation_t turned = CUBLAS_OP_T;
    const float one = 1, zero = 0;
    const uint32_t plain = CUBLASLT_REDUCTION_SCHEME_NONE;
    size_t workspace = 0;
    int n = 0;
    float *all = (float *)take((size_t)ROWS * N * 4), *y = (float *)take((size_t)ROWS * N * 4);
    if (!find_library() || lt.Create(&handle) || lt.MatmulDescCreate(&op, CUBLAS_COMPUTE_32F, CUDA_R_32F) ||
        lt.MatmulDescSetAttribute(op, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned) ||
        lt.MatrixLayoutCreate(&a, CUDA_R_16BF, K, N, K) || lt.MatmulPreferenceCreate(&want) ||
        lt.MatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace) ||
        lt.MatmulPreferenceSetAttribute(want, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &plain, sizeof plain) ||
        lt.MatrixLayoutCreate(&b, CUDA_R_16BF, K, ROWS, K) || lt.MatrixLayoutCreate(&c, CUDA_R_32F, N, ROWS, N) ||
        lt.MatmulAlgoGetHeuristic(handle, op, a, b, c, c, want, 1, &found, &n) || n == 0) {
        printf("{\"cublaslt_rows_independent\": null}\n");
        return;
    }
    bool same = true, padded = true, runs = true;
    lt.Matmul(handle, op, &one, w, a, x, b, &zero, all, c, all, c, &found.algo, NULL, 0, stream);
    for (int rows = 1; rows < ROWS && runs; rows += rows < 9 ? 1 : 11) {
        cublasLtMatrixLayout_t few, out;
        lt.MatrixLayoutCreate(&few, CUDA_R_16BF, K, (uint64_t)rows, K);
        lt.MatrixLayoutCreate(&out, CUDA_R_32F, N, (uint64_t)rows, N);
        runs = !lt.Matmul(handle, op, &one, w, a, x, few, &zero, y, out, y, out, &found.algo, NULL, 0, stream);
        same = runs && same && same_rows(y, all, rows);
        /* padded: the same call as for 64 rows, the others being zeros */
        __nv_bfloat16 *pad = (__nv_bfloat16 *)take((size_t)ROWS * K * 2);
        cudaMemsetAsync(pad, 0, (size_t)ROWS * K * 2, stream);
        cudaMemcpyAsync(pad, x, (size_t)rows * K * 2, cudaMemcpyDeviceToDevice, stream);
        lt.Matmul(handle, op, &one, w, a, pad, b, &zero, y, c, y, c, &found.algo, NULL, 0, stream);
        padded = padded && same_rows(y, all, rows);
        cudaFree(pad);
        lt.MatrixLayoutDestroy(few);
        lt.MatrixLayoutDestroy(out);
    }
    const double t =
        replayed([&] { lt.Matmul(handle, op, &one, w, a, x, b, &zero, all, c, all, c, &found.algo, NULL, 0, stream); });
    printf("{\"cublaslt_rows_independent\": %s, \"cublaslt_padded_rows_independent\": %s, \"cublaslt_4096_us\": %.2f}\n",
           !runs  ? "null"
           : same ? "true"
                  : "false",
           padded ? "true" : "false", t * 1e6);
}

/* Rows of p of a vocabulary from random logits, by the chains that rounds are timed with and by a nucleus; the floor is reading
 * the logits and writing the row. */
static void time_sampling(const float *logits, double bytes_a_second)
{
    enum { VOCAB = 128256, MOST = 5, TIMES = 16 };
    static const struct {
        const char *name;
        wg_gpu_chain chain;
    } kinds[] = {
        { "greedy", { 0, 1, 0, 0, NULL } },
        { "plain", { 1, 1, 0, 0, NULL } },
        { "top_p", { 0.8, 0.95, 0, 0, NULL } },
        { "top_k", { 0.8, 1, 0, 50, NULL } },
    };
    double *p = (double *)take((size_t)MOST * VOCAB * sizeof *p);
    int32_t *point = (int32_t *)take(MOST * sizeof *point);
    uint64_t *scratch = (uint64_t *)take(MOST * wg_gpu_sample_bytes(VOCAB));
    for (const auto &kind : kinds) {
        printf("{\"sample\": \"%s\", \"vocab\": %d, \"floor_us\": %.2f", kind.name, VOCAB, VOCAB * 12.0 / bytes_a_second * 1e6);
        for (int rows = 1; rows <= MOST; rows += MOST - 1)
            print_us("us", rows, replayed([&] {
                                     for (int i = 0; i < TIMES; i++)
                                         gpu.api->sample(&gpu, logits, VOCAB, &kind.chain, p, point, scratch, rows);
                                 }) / TIMES);
        puts("}");
    }
    cudaFree(p), cudaFree(point), cudaFree(scratch);
}

void probe::kernels(double bytes_a_second)
{
    float *x = (float *)take((size_t)ROWS * WIDEST * 4), *wf = (float *)take((size_t)N * K * 4);
    __nv_bfloat16 *xh = (__nv_bfloat16 *)take((size_t)ROWS * K * 2), *w = (__nv_bfloat16 *)take((size_t)N * K * 2);
    gpu.api->fill_random(&gpu, 1, 1, 1.0f, x, (size_t)ROWS * WIDEST);
    gpu.api->fill_random(&gpu, 1, 2, 0.02f, wf, (size_t)N * K);
    to_bf16<<<ROWS * K / 256, 256, 0, stream>>>(x, xh, (size_t)ROWS * K);
    to_bf16<<<N * K / 256, 256, 0, stream>>>(wf, w, (size_t)N * K);
    our_rows(x, w);
    products(x, bytes_a_second);
    for (int context : { 1024, 4096, 32768 }) time_attention(context, x, bytes_a_second);
    time_sampling(x, bytes_a_second);
    fusing(x);
    library_rows(xh, w); /* last: not ours */
}
