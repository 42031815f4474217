/* SPDX-License-Identifier: MIT
 * What a card allows and what a library promises, asked of the card itself: read-only bandwidth, the gap between kernels of a
 * graph, a barrier over all blocks, whether a row of a product keeps its bits when other rows ride along (our tensor-core
 * kernel; one fixed cuBLASLt algorithm), and what our products and attention take against reading what they read. One JSON
 * object a line to standard output, as soon as it is known; a question that failed says so in its place. Timings are medians
 * over REPEATS, each over enough work to be seen by the events.
 *
 *     gpu_probe            exit 77 without a device */
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "kernels/cuda/gpu.h"

enum { REPEATS = 51 };

static wg_gpu gpu;
static cudaStream_t stream;

static void must(cudaError_t e, const char *what)
{
    if (e == cudaSuccess) return;
    fprintf(stderr, "gpu_probe: %s: %s\n", what, cudaGetErrorString(e));
    exit(1);
}

static void *take(size_t bytes)
{
    void *p = NULL;
    must(cudaMalloc(&p, bytes), "memory");
    return p;
}

/* Median seconds of one call of body. */
template <class F> static double seconds(F body)
{
    float ms[REPEATS];
    cudaEvent_t from, to;
    must(cudaEventCreate(&from), "event");
    must(cudaEventCreate(&to), "event");
    body();
    for (int i = 0; i < REPEATS; i++) {
        must(cudaEventRecord(from, stream), "event");
        body();
        must(cudaEventRecord(to, stream), "event");
        must(cudaEventSynchronize(to), "event");
        must(cudaEventElapsedTime(&ms[i], from, to), "event");
    }
    must(cudaGetLastError(), "a launch");
    std::sort(ms, ms + REPEATS);
    cudaEventDestroy(from);
    cudaEventDestroy(to);
    return ms[REPEATS / 2] * 1e-3;
}

/* ---- read-only bandwidth: 16 bytes a thread at a time, more than any cache holds, an answer that needs every byte */

static __global__ void read_all(const uint4 *x, size_t n, unsigned *out)
{
    unsigned sum = 0;
    const size_t step = (size_t)gridDim.x * blockDim.x;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + 3 * step < n; i += 4 * step) {
        const uint4 a = __ldcs(x + i), b = __ldcs(x + i + step), c = __ldcs(x + i + 2 * step), d = __ldcs(x + i + 3 * step);
        sum ^= a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w ^ c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;
    }
    for (; i < n; i += step) sum ^= x[i].x ^ x[i].y ^ x[i].z ^ x[i].w;
    if (sum == 0x12345678u) *out = sum;
}

static double bandwidth(const cudaDeviceProp &card) /* bytes a second */
{
    size_t room = 0, all = 0, bytes = (size_t)2 << 30;
    must(cudaMemGetInfo(&room, &all), "memory");
    while (bytes > room / 4) bytes /= 2;
    uint4 *x = (uint4 *)take(bytes);
    unsigned *out = (unsigned *)take(4);
    must(cudaMemsetAsync(x, 0x5a, bytes, stream), "memset");
    double best = 0;
    for (int per = 2; per <= 16; per *= 2)
        best = std::max(best, (double)bytes / seconds([&] {
            read_all<<<card.multiProcessorCount * per, 256, 0, stream>>>(x, bytes / 16, out);
        }));
    printf("{\"read_gb_s\": %.1f}\n", best * 1e-9);
    cudaFree(x);
    cudaFree(out);
    return best;
}

/* ---- kernels that do nothing, one after the other in a graph: what a boundary costs */

static __global__ void nothing(unsigned *x)
{
    if (threadIdx.x == 0 && *x == 1) *x = 2;
}

/* The same, each allowed to begin before the one before it has ended, and waiting for it (compute capability 9.0). */
static __global__ void chained(unsigned *x)
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
    if (threadIdx.x == 0 && *x == 1) *x = 2;
}

static void launch_chained(unsigned *x)
{
    cudaLaunchAttribute early;
    cudaLaunchConfig_t how = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    how.gridDim = dim3(1), how.blockDim = dim3(32), how.stream = stream;
    how.attrs = &early, how.numAttrs = 1;
    must(cudaLaunchKernelEx(&how, chained, x), "a chained launch");
}

enum { KERNELS = 500 };

/* Seconds a kernel of a graph of KERNELS. */
template <class F> static double in_graph(F launch)
{
    cudaGraph_t graph;
    cudaGraphExec_t run;
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    for (int i = 0; i < KERNELS; i++) launch();
    must(cudaStreamEndCapture(stream, &graph), "capture");
    must(cudaGraphInstantiate(&run, graph, 0), "graph");
    const double s = seconds([&] { cudaGraphLaunch(run, stream); }) / KERNELS;
    cudaGraphExecDestroy(run);
    cudaGraphDestroy(graph);
    return s;
}

static void graph_gap(const cudaDeviceProp &card)
{
    unsigned *x = (unsigned *)take(4);
    must(cudaMemsetAsync(x, 0, 4, stream), "memset");
    printf("{\"graph_gap_us\": %.3f}\n", in_graph([&] { nothing<<<1, 32, 0, stream>>>(x); }) * 1e6);
    if (card.major >= 9) printf("{\"graph_gap_pdl_us\": %.3f}\n", in_graph([&] { launch_chained(x); }) * 1e6);
    else printf("{\"graph_gap_pdl_us\": null}\n");
    const double launched = seconds([&] { for (int i = 0; i < KERNELS; i++) nothing<<<1, 32, 0, stream>>>(x); }) / KERNELS;
    printf("{\"launch_gap_us\": %.3f}\n", launched * 1e6);
    cudaFree(x);
}

/* ---- a loop that the device goes round by itself: what one more turn costs beside its one kernel */

#if CUDART_VERSION >= 12040
static __global__ void count_down(unsigned *left, cudaGraphConditionalHandle again)
{
    if (threadIdx.x == 0) cudaGraphSetConditional(again, --*left > 0);
}

static __global__ void set_to(unsigned *x, unsigned v) { *x = v; }

static cudaError_t add_loop(cudaGraph_t graph, cudaGraphNode_t after, cudaGraphNodeParams *loop)
{
    cudaGraphNode_t node;
#if CUDART_VERSION >= 13000
    return cudaGraphAddNode(&node, graph, &after, NULL, 1, loop);
#else
    return cudaGraphAddNode(&node, graph, &after, 1, loop);
#endif
}

static double loop_of(unsigned turns)
{
    cudaGraph_t graph, body;
    cudaGraphExec_t run;
    cudaGraphNode_t first;
    cudaGraphConditionalHandle again;
    cudaGraphNodeParams loop = {};
    cudaKernelNodeParams start = {};
    unsigned *left = (unsigned *)take(4);
    void *args[] = { &left, &turns };
    start.func = (void *)set_to, start.gridDim = dim3(1), start.blockDim = dim3(1), start.kernelParams = args;
    must(cudaGraphCreate(&graph, 0), "graph");
    must(cudaGraphAddKernelNode(&first, graph, NULL, 0, &start), "node");
    must(cudaGraphConditionalHandleCreate(&again, graph, 1, cudaGraphCondAssignDefault), "condition");
    loop.type = cudaGraphNodeTypeConditional;
    loop.conditional.handle = again;
    loop.conditional.type = cudaGraphCondTypeWhile;
    loop.conditional.size = 1;
    must(add_loop(graph, first, &loop), "loop");
    body = loop.conditional.phGraph_out[0];
    must(cudaStreamBeginCaptureToGraph(stream, body, NULL, NULL, 0, cudaStreamCaptureModeThreadLocal), "capture");
    count_down<<<1, 32, 0, stream>>>(left, again);
    must(cudaStreamEndCapture(stream, &body), "capture");
    must(cudaGraphInstantiate(&run, graph, 0), "graph");
    const double s = seconds([&] { cudaGraphLaunch(run, stream); });
    cudaGraphExecDestroy(run);
    cudaGraphDestroy(graph);
    cudaFree(left);
    return s;
}

static void loop_cost() { printf("{\"while_turn_us\": %.3f}\n", (loop_of(1001) - loop_of(1)) / 1000 * 1e6); }
#else
static void loop_cost() { printf("{\"while_turn_us\": null}\n"); }
#endif

/* ---- a barrier over all blocks: one counter, every block waits for the round to be full */

static __global__ void barriers(unsigned *counter, int rounds)
{
    for (int r = 1; r <= rounds; r++) {
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(counter, 1);
            while (*(volatile unsigned *)counter < (unsigned)r * gridDim.x) {}
            __threadfence();
        }
        __syncthreads();
    }
}

static void barrier_cost(const cudaDeviceProp &card)
{
    int rounds = 1000, *const r = &rounds;
    unsigned *counter = (unsigned *)take(4), **const c = &counter;
    void *args[] = { (void *)c, (void *)r };
    const double all = seconds([&] {
        cudaMemsetAsync(counter, 0, 4, stream);
        cudaLaunchCooperativeKernel((const void *)barriers, dim3((unsigned)card.multiProcessorCount), dim3(128), args, 0,
                                    stream);
    });
    printf("{\"grid_barrier_us\": %.3f}\n", all / rounds * 1e6);
    cudaFree(counter);
}

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
        const double t = seconds([&] {
            for (int c = 0; c < copies; c++) {
                const wg_matrix *const one = &m[c];
                gpu.api->matmul(&gpu, &one, &y, 1, 1, act, rows[i], WG_GPU_STORE);
            }
        }) / copies;
        printf(", \"us_%d\": %.2f", rows[i], t * 1e6);
    }
    const double t = seconds([&] { gpu.api->prepare(&gpu, type, 1, x, 1, k, act); });
    printf(", \"prepare_us\": %.2f}\n", t * 1e6);
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
    char why[WG_GPU_WHY];
    const wg_gpu_input in = { x, x, 1e-5f };
    gpu.api->record(&gpu);
    for (int c = 0; c < copies; c++) {
        const wg_matrix *const one = &m[c];
        if (!fused) gpu.api->norm_prepare(&gpu, one->type, WG_GPU_FRAGMENTS, x, x, in.eps, rows, one->k, act);
        if (fused) gpu.api->matmul_fused(&gpu, &one, &y, 1, &in, rows, WG_GPU_STORE, NULL, NULL);
        else gpu.api->matmul(&gpu, &one, &y, 1, 1, act, rows, WG_GPU_STORE);
    }
    void *graph = gpu.api->recorded(&gpu, why);
    if (!graph) return -1;
    const double t = seconds([&] { gpu.api->replay(&gpu, graph); }) / copies;
    gpu.api->forget(&gpu, graph);
    return t;
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
            printf(", \"steps_us_%d\": %.2f", rows, fused_or_not(m, copies, x, rows, false, act, y) * 1e6);
            if (!wg_gpu_fits(&gpu, type, 1, rows, k)) printf(", \"fused_us_%d\": null", rows);
            else printf(", \"fused_us_%d\": %.2f", rows, fused_or_not(m, copies, x, rows, true, act, y) * 1e6);
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
        const double t = seconds([&] {
            for (int l = 0; l < layers; l++) {
                const size_t stride = (size_t)PAGE * SLOT * 2 * 2;
                const wg_gpu_kv kv = { WG_BF16, PAGE, SLOT, tables, (char *)(pool + layer * (size_t)l), stride, stride / 2 };
                gpu.api->attention(&gpu, x, d_row, rows[i], context + rows[i], &kv, HEADS, KV_HEADS, HD, 1, scratch, arrived,
                                   out);
            }
        }) / layers;
        printf(", \"us_%d\": %.2f", rows[i], t * 1e6);
    }
    printf("}\n");
    fflush(stdout);
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
#define X(name) if (!(lt.name = (decltype(lt.name))dlsym(file, "cublasLt" #name))) return false;
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
    const double t = seconds([&] {
        lt.Matmul(handle, op, &one, w, a, x, b, &zero, all, c, all, c, &found.algo, NULL, 0, stream);
    });
    printf("{\"cublaslt_rows_independent\": %s, \"cublaslt_padded_rows_independent\": %s, \"cublaslt_4096_us\": %.2f}\n",
           !runs ? "null" : same ? "true" : "false", padded ? "true" : "false", t * 1e6);
}

int main()
{
    char why[WG_GPU_WHY];
    cudaDeviceProp card;
    const wg_gpu_api *api = wg_gpu_cuda();
    if (api->open(&gpu, 0, why)) {
        fprintf(stderr, "gpu_probe: %s\n", why);
        return 77;
    }
    stream = (cudaStream_t)gpu.stream.at;
    setvbuf(stdout, NULL, _IOLBF, 0);
    must(cudaGetDeviceProperties(&card, 0), "properties");
    int driver = 0;
    cudaDriverGetVersion(&driver);
    printf("{\"card\": \"%s\", \"sm\": %d, \"sms\": %d, \"memory_gib\": %.1f, \"l2_mib\": %.1f, \"driver\": %d}\n", gpu.card,
           gpu.sm, card.multiProcessorCount, (double)gpu.memory / (1 << 30), card.l2CacheSize / 1048576.0, driver);
    const double bytes_a_second = bandwidth(card);
    graph_gap(card);
    loop_cost();
    barrier_cost(card);
    float *x = (float *)take((size_t)ROWS * WIDEST * 4), *wf = (float *)take((size_t)N * K * 4);
    __nv_bfloat16 *xh = (__nv_bfloat16 *)take((size_t)ROWS * K * 2), *w = (__nv_bfloat16 *)take((size_t)N * K * 2);
    api->fill_random(&gpu, 1, 1, 1.0f, x, (size_t)ROWS * WIDEST);
    api->fill_random(&gpu, 1, 2, 0.02f, wf, (size_t)N * K);
    to_bf16<<<ROWS * K / 256, 256, 0, stream>>>(x, xh, (size_t)ROWS * K);
    to_bf16<<<N * K / 256, 256, 0, stream>>>(wf, w, (size_t)N * K);
    our_rows(x, w);
    library_rows(xh, w);
    products(x, bytes_a_second);
    fusing(x);
    for (int context : { 1024, 4096, 32768 }) time_attention(context, x, bytes_a_second);
    const bool failed = api->wait(&gpu, why) != 0;
    if (failed) fprintf(stderr, "gpu_probe: %s\n", why);
    return failed;
}
