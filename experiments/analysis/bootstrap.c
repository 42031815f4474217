/* SPDX-License-Identifier: MIT
 * The bootstrap over documents (bootstrap.h). */
#include "experiments/analysis/bootstrap.h"

#include <math.h>

#include "core/base/mem.h"
#include "experiments/base/stats.h"
#include "kernels/philox.h"

wg_status wg_bootstrap_open(wg_bootstrap *b, int documents, uint64_t seed, wg_error *err)
{
    const size_t n = (size_t)documents;
    *b = (wg_bootstrap){ .documents = documents };
    b->times = wg_calloc(WG_BOOTSTRAP_DRAWS * n, sizeof *b->times);
    if (!b->times) return wg_nomem(err, WG_BOOTSTRAP_DRAWS * n * sizeof *b->times, "a bootstrap");
    for (uint32_t draw = 0; draw < WG_BOOTSTRAP_DRAWS; draw++)
        for (uint32_t i = 0; i < (uint32_t)documents; i++) {
            const wg_philox p = wg_philox_at(seed, i, draw, 0, 0);
            b->times[draw * n + (size_t)(wg_philox_double(p.v[0], p.v[1]) * (double)n)]++;
        }
    return WG_OK;
}

void wg_bootstrap_close(wg_bootstrap *b)
{
    wg_free(b->times);
    *b = (wg_bootstrap){ 0 };
}

/* The mean ratio of one draw; times NULL: of every document once. */
static double mean_ratio(const wg_boot_ratio *r, int documents, const uint16_t *times)
{
    double mean = 0;
    for (int k = 0; k < r->n; k++) {
        double a = 0, c = 0;
        for (int i = 0; i < documents; i++) {
            const double weight = times ? times[i] : 1;
            a += weight * r->a[k][(size_t)i * r->stride];
            c += weight * r->c[k][(size_t)i * r->stride];
        }
        mean += a / c;
    }
    return mean / r->n;
}

wg_boot_value wg_bootstrap_ratio(const wg_bootstrap *b, const wg_boot_ratio *x, const wg_boot_ratio *y)
{
    double drawn[WG_BOOTSTRAP_DRAWS];
    int n = 0;
    wg_boot_value v = { mean_ratio(x, b->documents, NULL) - (y ? mean_ratio(y, b->documents, NULL) : 0), NAN, NAN };
    if (b->documents < WG_BOOTSTRAP_FEWEST) return v;
    for (size_t d = 0; d < WG_BOOTSTRAP_DRAWS; d++) {
        const uint16_t *times = b->times + d * (size_t)b->documents;
        const double one = mean_ratio(x, b->documents, times) - (y ? mean_ratio(y, b->documents, times) : 0);
        if (isfinite(one)) drawn[n++] = one;
    }
    v.lo = wg_quantile(drawn, n, 0.025);
    v.hi = wg_quantile(drawn, n, 0.975);
    return v;
}
