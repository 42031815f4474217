/* SPDX-License-Identifier: MIT
 * What the two halves of the stub runtime (runtime_api.cpp, stream.cpp) and the table of the emulated device (runtime.cpp)
 * share. */
#ifndef WG_TESTS_SIMT_RUNTIME_API_H
#define WG_TESTS_SIMT_RUNTIME_API_H

#include <cuda_runtime.h> /* tests/simt/stub */

#include "tests/simt/simt.h"

/* Of runtime_api.cpp. */
cudaError_t simt_asked(const char *call);  /* what a call by this name is to fail with, or cudaSuccess */
cudaError_t simt_said(cudaError_t e);      /* the last error, if it is one */
size_t simt_allowed(const void *function); /* bytes of dynamic shared memory that it may be launched with */
bool simt_carved(const void *function);    /* its share of a multiprocessor's memory has been stated */
bool simt_lenient();                       /* simt_capture_answers */
void simt_next_is_weights();               /* the next cudaMalloc is of memory for matrices (alloc_weights of gpu.h) */

/* A call of the API: what it returns is the last error, when it is one. */
template <class F> static inline cudaError_t simt_answer(const char *call, F what)
{
    const cudaError_t e = simt_asked(call);
    return simt_said(e == cudaSuccess ? what() : e);
}

/* Of stream.cpp. illegal: a call that no capture allows; it stops the test, or does what the toolkit does (simt_lenient). do:
 * run(arg), `bytes` of it copied, when the stream comes to it. */
bool simt_capturing();
cudaError_t simt_illegal(const char *what);
cudaError_t simt_do(simt_stream *s, simt_fn *run, const void *arg, size_t bytes);
bool simt_stream_captures(const simt_stream *s);
void simt_finish(simt_stream *s);
void simt_finish_all();
bool simt_pinned_holds(const void *p);

/* The same of a closure over plain values. */
template <class F> static inline cudaError_t simt_do(simt_stream *s, const F &what)
{
    return simt_do(
        s,
        [](void *arg) {
            const simt_access was = simt_memory_access(SIMT_EVERYTHING);
            (*(const F *)arg)();
            simt_memory_access(was);
        },
        &what, sizeof what);
}

#endif
