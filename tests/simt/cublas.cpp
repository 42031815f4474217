/* SPDX-License-Identifier: MIT
 * cuBLAS as kernels/cuda/cublas.h uses it, over the stub runtime: columns first, as the library has it, products in the order
 * of the stream, k ascending in fused multiply-adds. WG_SIMT_CUBLAS names a function that the library lacks ("all": there is
 * none), WG_SIMT_FAIL one that fails, as for the runtime. */
#include <stdlib.h>
#include <string.h>

#include "tests/simt/runtime_api.h"

namespace
{
struct handle {
    simt_stream *stream;
};

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13 }; /* cublasStatus_t */

int answer(const char *name, int status) { return simt_asked(name) == cudaSuccess ? status : EXECUTION_FAILED; }

int create(void **h)
{
    *h = new handle();
    return answer("cublasCreate_v2", SUCCESS);
}
int destroy(void *h)
{
    delete (handle *)h;
    return SUCCESS;
}
int set_stream(void *h, simt_stream *stream)
{
    ((handle *)h)->stream = stream;
    return SUCCESS;
}
int set_workspace(void *, void *room, size_t bytes) { return simt_memory_holds(room) && bytes ? SUCCESS : INVALID_VALUE; }
int set_math(void *, int mode) { return mode == 0 ? SUCCESS : INVALID_VALUE; }

/* As the toolkit's: leading dimensions shorter than a column are refused. */
int sgemm(void *h, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda, long long sa,
          const float *b, int ldb, long long sb, const float *beta, float *c, int ldc, long long sc, int batch)
{
    if (!((handle *)h)->stream) return NOT_INITIALIZED;
    if (m < 0 || n < 0 || k < 0 || batch < 0 || lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m) return INVALID_VALUE;
    const float times = *alpha, kept = *beta;
    simt_do(((handle *)h)->stream, [=] {
        for (int i = 0; i < batch; i++) {
            const float *x = a + i * sa, *y = b + i * sb;
            for (int column = 0; column < n; column++)
                for (int row = 0; row < m; row++) {
                    float sum = 0, *to = c + i * sc + (size_t)column * (size_t)ldc + row;
                    for (int l = 0; l < k; l++)
                        sum = fmaf(x[ta ? (size_t)row * (size_t)lda + l : (size_t)l * (size_t)lda + row],
                                   y[tb ? (size_t)l * (size_t)ldb + column : (size_t)column * (size_t)ldb + l], sum);
                    *to = kept == 0 ? times * sum : times * sum + kept * *to;
                }
        }
    });
    return answer("cublasSgemmStridedBatched", SUCCESS);
}
} // namespace

void *simt_cublas(const char *name)
{
    static const struct {
        const char *name;
        void *at;
    } row[] = {
        { "cublasCreate_v2", (void *)create },        { "cublasDestroy_v2", (void *)destroy },
        { "cublasSetStream_v2", (void *)set_stream }, { "cublasSetWorkspace_v2", (void *)set_workspace },
        { "cublasSetMathMode", (void *)set_math },    { "cublasSgemmStridedBatched", (void *)sgemm },
    };
    const char *lacks = getenv("WG_SIMT_CUBLAS");
    if (lacks && (strcmp(lacks, "all") == 0 || strcmp(lacks, name) == 0)) return NULL;
    if (!*name) return (void *)create;
    for (const auto &r : row)
        if (strcmp(r.name, name) == 0) return r.at;
    return NULL;
}
