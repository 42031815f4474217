/* SPDX-License-Identifier: MIT
 * What a card allows and what a library promises, asked of the card itself. `basics`: read-only bandwidth, the gap between
 * kernels, loops inside a graph, a barrier over all blocks. `kernels`: whether a row of a product keeps its bits when others
 * ride along (our tensor-core kernel; one fixed cuBLASLt algorithm), and what our products, attention and sampling take against
 * reading what they read. One JSON object a line to standard output, as soon as it is known; a question that failed says so in
 * its place. Timings are medians over REPEATS, each over enough work to be seen by the events.
 * usage: gpu_suite probe basics|kernels      exit 1 without a device, or when a question failed */
#include "tests/gpu/probe.h"

#include "tests/gpu/suite.h"

namespace probe
{
wg_gpu gpu;
cudaStream_t stream;
int failures;
} // namespace probe

using namespace probe;

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

enum { KERNELS = 500, NODES = 400, TURNS = 50 };

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
    const double launched = seconds([&] {
                                for (int i = 0; i < KERNELS; i++) nothing<<<1, 32, 0, stream>>>(x);
                            }) /
                            KERNELS;
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

/* ---- a loop as the engine makes one of a round: NODES kernels that may each begin before the one before has ended, recorded
 * from the stream, as a child of a WHILE node (recorded_loop of kernels/cuda/runtime.cu). The first counts the turns. */

static __global__ void count_turns(int32_t *again, unsigned *turns, unsigned last)
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
    if (threadIdx.x == 0) *again = ++*turns < last;
}

static void record_nodes(int32_t *again, unsigned *turns, unsigned last, unsigned *x)
{
    cudaLaunchAttribute early;
    cudaLaunchConfig_t how = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    how.gridDim = dim3(1), how.blockDim = dim3(32), how.stream = stream;
    how.attrs = &early, how.numAttrs = gpu.stream.early ? 1 : 0;
    must(cudaLaunchKernelEx(&how, count_turns, again, turns, last), "a node");
    for (int i = 1; i < NODES; i++) must(cudaLaunchKernelEx(&how, chained, x), "a node");
}

/* Seconds of a loop of so many turns; negative when it could not be made or went round another number of times. */
static double engine_loop(unsigned last, int32_t *again, unsigned *x)
{
    char why[WG_GPU_WHY] = "";
    unsigned *const turns = x + 1, went = 0;
    gpu.api->record(&gpu);
    record_nodes(again, turns, last, x);
    void *graph = gpu.api->recorded_loop(&gpu, again, why);
    if (!graph) return fprintf(stderr, "probe: a loop around %d kernels: %s\n", NODES, why), -1;
    const double s = seconds([&] {
        gpu.api->clear(&gpu, turns, sizeof *turns);
        gpu.api->replay(&gpu, graph);
    });
    gpu.api->get(&gpu, &went, turns, sizeof went);
    gpu.api->forget(&gpu, graph);
    if (gpu.api->wait(&gpu, why)) return fprintf(stderr, "probe: a loop around %d kernels: %s\n", NODES, why), -1;
    if (went != last) return fprintf(stderr, "probe: a loop of %u turns went round %u times\n", last, went), -1;
    return s;
}

static void engine_loop_cost()
{
    unsigned *x = (unsigned *)take(8);
    int32_t *again = (int32_t *)take(4);
    must(cudaMemsetAsync(x, 0, 8, stream), "memset");
    const double one = engine_loop(1, again, x), many = one < 0 ? -1 : engine_loop(1 + TURNS, again, x);
    if (many < 0) failures++, printf("{\"while_nodes\": %d, \"looped\": false}\n", NODES);
    else
        printf("{\"while_nodes\": %d, \"looped\": true, \"while_nodes_turn_us\": %.3f, \"while_nodes_launch_us\": %.3f}\n",
               NODES, (many - one) / TURNS * 1e6, one * 1e6);
    cudaFree(x), cudaFree(again);
}

extern "C" int wg_suite_probe(int argc, char **argv)
{
    char why[WG_GPU_WHY];
    cudaDeviceProp card;
    const char *what = argc == 2 ? argv[1] : "";
    if (strcmp(what, "basics") != 0 && strcmp(what, "kernels") != 0)
        return fprintf(stderr, "usage: gpu_suite probe basics|kernels\n"), 2;
    if (wg_gpu_cuda()->open(&gpu, 0, why)) return fprintf(stderr, "probe: %s\n", why), 1;
    stream = (cudaStream_t)gpu.stream.at;
    setvbuf(stdout, NULL, _IOLBF, 0);
    must(cudaGetDeviceProperties(&card, 0), "properties");
    int driver = 0;
    cudaDriverGetVersion(&driver);
    printf("{\"card\": \"%s\", \"sm\": %d, \"sms\": %d, \"memory_gib\": %.1f, \"l2_mib\": %.1f, \"driver\": %d}\n", gpu.card,
           gpu.sm, card.multiProcessorCount, (double)gpu.memory / (1 << 30), card.l2CacheSize / 1048576.0, driver);
    const double bytes_a_second = bandwidth(card);
    if (strcmp(what, "kernels") == 0) kernels(bytes_a_second);
    else graph_gap(card), loop_cost(), engine_loop_cost(), barrier_cost(card);
    if (gpu.api->wait(&gpu, why)) failures++, fprintf(stderr, "probe: %s\n", why);
    return failures != 0;
}
