/* SPDX-License-Identifier: MIT
 * What kernels/cuda uses of the CUDA runtime, for a plain C++ compiler: names, types and meanings are the toolkit's, the work
 * is done by tests/simt (runtime_api.cpp, stream.cpp). So runtime.cu and launch.h are compiled for the emulation as they are.
 * Functions have C++ linkage: a program may hold the toolkit's own beside these. What is kept as the toolkit keeps it:
 *
 *   last error   every call that does not return cudaSuccess sets it, cudaErrorNotReady included; only cudaGetLastError clears
 *                it. A device that is broken (simt_cuda_break) answers every call with its error, and nothing clears that one
 *   streams      work is queued and done when the stream is queried, synchronised, or memory is freed. A query does one piece
 *                of it (up to the end of one turn of a WHILE node) and says cudaErrorNotReady as long as there was something
 *   copies       from pinned memory read it when the stream comes to them; pageable memory is read at the call
 *   capture      an illegal call (allocating, freeing, waiting, querying, copying from or to pageable memory) fails with
 *                cudaErrorStreamCaptureUnsupported and invalidates the capture; its end then gives an error and no graph
 *   functions    dynamic shared memory above 48 KB, or above what cudaFuncSetAttribute has allowed the function by then, fails
 *                the launch, and the launch of a graph that holds one
 */
#ifndef WG_TESTS_SIMT_STUB_CUDA_RUNTIME_H
#define WG_TESTS_SIMT_STUB_CUDA_RUNTIME_H

#include "tests/simt/cuda_emulated.h"

#define CUDART_VERSION 13000
#define __global__
#define __device__

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorIllegalState = 401,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorNotSupported = 801,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
};

struct simt_stream;
struct simt_graph;
struct simt_exec;
struct simt_node;
typedef simt_stream *cudaStream_t;
typedef simt_graph *cudaGraph_t;
typedef simt_exec *cudaGraphExec_t;
typedef simt_node *cudaGraphNode_t;
typedef unsigned long long cudaGraphConditionalHandle;

struct cudaDeviceProp {
    char name[256];
    int major, minor, multiProcessorCount;
    size_t sharedMemPerBlockOptin, totalGlobalMem;
};
struct cudaFuncAttributes {
    size_t sharedSizeBytes;
    int maxDynamicSharedSizeBytes, preferredShmemCarveout;
};

enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout = 9 };
enum { cudaSharedmemCarveoutMaxShared = 100 };
enum { cudaStreamNonBlocking = 1, cudaHostAllocMapped = 2 };
enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    struct {
        int programmaticStreamSerializationAllowed;
    } val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned numAttrs;
};

enum cudaGraphNodeType { cudaGraphNodeTypeKernel, cudaGraphNodeTypeConditional = 13 };
enum cudaGraphConditionalNodeType { cudaGraphCondTypeIf, cudaGraphCondTypeWhile };
enum { cudaGraphCondAssignDefault = 1 };
struct cudaConditionalNodeParams {
    cudaGraphConditionalHandle handle;
    cudaGraphConditionalNodeType type;
    unsigned size;
    cudaGraph_t *phGraph_out;
};
struct cudaGraphNodeParams {
    cudaGraphNodeType type;
    cudaConditionalNodeParams conditional;
};
struct cudaKernelNodeParams {
    void *func;
    dim3 gridDim, blockDim;
    unsigned sharedMemBytes;
    void **kernelParams, **extra;
};
struct cudaGraphEdgeData;

cudaError_t cudaGetLastError();
const char *cudaGetErrorName(cudaError_t e);
const char *cudaGetErrorString(cudaError_t e);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *of, int device);
cudaError_t cudaSetDevice(int device);

cudaError_t cudaMalloc(void **p, size_t bytes);
cudaError_t cudaFree(void *p);
cudaError_t cudaMallocHost(void **p, size_t bytes);
cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned flags);
cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaMemGetInfo(size_t *room, size_t *all);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *p, int byte, size_t bytes, cudaStream_t stream);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *of, const void *function);
cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute what, int value);

/* A kernel that is added by hand takes (const int32_t *, cudaGraphConditionalHandle), runs as one thread, and is called as an
 * ordinary function: there is one, runtime.cu's go_on. */
cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph, unsigned first,
                                             unsigned flags);
cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before,
                             const cudaGraphEdgeData *edges, size_t n, cudaGraphNodeParams *params);
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t n,
                                       cudaGraph_t child);
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before, size_t n,
                                   const cudaKernelNodeParams *params);
void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value); /* of kernels */
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);

/* Whether it may be launched; then what is launched next by simt_start goes to its stream. */
cudaError_t simt_launch_to(const cudaLaunchConfig_t *how, const void *function);
cudaError_t simt_launched();

template <class... P, class... A>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *how, void (*kernel)(P...), A &&...a)
{
    const cudaError_t e = simt_launch_to(how, (const void *)kernel);
    if (e != cudaSuccess) return e;
    simt_start(kernel, simt_launch_name, how->gridDim, how->blockDim, how->dynamicSmemBytes, a...);
    return simt_launched();
}

#endif
