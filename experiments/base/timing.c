/* SPDX-License-Identifier: MIT
 * Clocks and medians (timing.h). */
#include "experiments/base/timing.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "experiments/base/stats.h"

double wg_bench_clock(int threads) { return threads == 1 ? wg_clock_thread() : wg_clock_now(); }

double wg_bench_median(double *v, int n) { return wg_quantile(v, n, 0.5); }

wg_status wg_bench_numbers(const char *flag, const char *text, int min, int max, int *out, int *n, wg_error *err)
{
    for (*n = 0; *n < WG_BENCH_LIST;) {
        char *end;
        const long v = strtol(text, &end, 10);
        if (end == text || v < min || v > max || (*end && *end != ','))
            return wg_fail(err, WG_EINVAL, "--%s: expected numbers %d..%d with commas between, found '%s'", flag, min, max,
                           text);
        out[(*n)++] = (int)v;
        if (!*end) return WG_OK;
        text = end + 1;
    }
    return wg_fail(err, WG_EINVAL, "--%s: more than %d numbers", flag, WG_BENCH_LIST);
}
