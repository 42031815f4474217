/* SPDX-License-Identifier: MIT
 * Loading OpenBLAS by name, so that a program that does not train runs without it. OPENBLAS_NUM_THREADS is set during loading,
 * when the library would otherwise start a thread for every core. */
#include "draft/train/train_ops.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 }; /* constants of the C interface to BLAS */

typedef void sgemm_fn(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                      int ldb, float beta, float *c, int ldc);
typedef void dgemm_fn(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda, const double *b,
                      int ldb, double beta, double *c, int ldc);

static struct {
    sgemm_fn *sgemm;
    dgemm_fn *dgemm;
    char about[96];
} blas;

/* Finds a function; POSIX returns it as an object pointer. */
static bool find(void *lib, const char *name, void *fn)
{
    void *at = dlsym(lib, name);
    memcpy(fn, &at, sizeof at);
    return at != NULL;
}

static void *load(void)
{
    static const char key[] = "OPENBLAS_NUM_THREADS";
    const char *names[] = { getenv("WG_OPENBLAS"), "libopenblas.so.0", "libopenblas.so" };
    char *before = getenv(key) ? wg_strdup(getenv(key)) : NULL;
    void *lib = NULL;
    setenv(key, "1", 1);
    for (int i = names[0] ? 0 : 1; i < 3 && !lib; i++) {
        lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (i == 0) break; /* a file that the user names is the only candidate */
    }
    if (before) setenv(key, before, 1);
    else unsetenv(key);
    wg_free(before);
    return lib;
}

wg_status wg_blas_open(wg_error *err)
{
    void (*threads)(int) = NULL;
    char *(*config)(void) = NULL, *(*core)(void) = NULL;
    if (blas.dgemm) return WG_OK;
    void *lib = load();
    if (!lib)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "training needs OpenBLAS, and no library libopenblas.so.0 was found; install the package "
                       "libopenblas0-pthread (Debian, Ubuntu), or name the file in WG_OPENBLAS");
    sgemm_fn *sgemm = NULL;
    dgemm_fn *dgemm = NULL;
    const bool all =
        find(lib, "cblas_sgemm", &sgemm) && find(lib, "cblas_dgemm", &dgemm) && find(lib, "openblas_set_num_threads", &threads);
    if (!all) {
        dlclose(lib);
        return wg_fail(err, WG_EUNSUPPORTED,
                       "libopenblas.so.0 lacks cblas_sgemm, cblas_dgemm or openblas_set_num_threads; install the package "
                       "libopenblas0-pthread (Debian, Ubuntu), or name another file in WG_OPENBLAS");
    }
    threads(1);
    if (find(lib, "openblas_get_config", &config)) snprintf(blas.about, sizeof blas.about, "%.60s", config());
    if (strchr(blas.about, ' ')) { /* "OpenBLAS 0.3.21 DYNAMIC_ARCH ...": keep two words and add the core */
        char *second = strchr(blas.about, ' ') + 1;
        second[strcspn(second, " ")] = '\0';
        const size_t at = strlen(blas.about);
        if (find(lib, "openblas_get_corename", &core)) snprintf(blas.about + at, sizeof blas.about - at, " %.24s", core());
    }
    blas.sgemm = sgemm;
    blas.dgemm = dgemm;
    return WG_OK;
}

const char *wg_blas_about(void) { return blas.about; }

void wg_gemm_f32(const wg_gemm *g)
{
    blas.sgemm(ROW_MAJOR, g->ta ? TRANSPOSED : PLAIN, g->tb ? TRANSPOSED : PLAIN, g->m, g->n, g->k, (float)g->alpha, g->a,
               g->lda, g->b, g->ldb, (float)g->beta, g->c, g->ldc);
}

void wg_gemm_f64(const wg_gemm *g)
{
    blas.dgemm(ROW_MAJOR, g->ta ? TRANSPOSED : PLAIN, g->tb ? TRANSPOSED : PLAIN, g->m, g->n, g->k, g->alpha, g->a, g->lda,
               g->b, g->ldb, g->beta, g->c, g->ldc);
}
