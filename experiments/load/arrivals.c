/* SPDX-License-Identifier: MIT
 * Arrival times (arrivals.h). */
#include "experiments/load/arrivals.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/number.h"
#include "core/base/read_file.h"
#include "experiments/base/stats.h"
#include "kernels/philox.h"

enum { GAPS = 0x61727276, FILE_MOST = 256 << 20 }; /* GAPS: the purpose of these draws */

/* Gamma with this shape and mean 1 (Marsaglia and Tsang 2000): each try of draw `index` has numbers of its own. */
static double gamma_draw(uint64_t seed, uint32_t index, double shape)
{
    const double more = shape < 1 ? shape + 1 : shape, d = more - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (uint32_t attempt = 0;; attempt++) {
        const wg_philox a = wg_philox_at(seed, GAPS, index, attempt, 0), b = wg_philox_at(seed, GAPS, index, attempt, 1);
        const double u = wg_philox_double(a.v[0], a.v[1]), w = 1 - wg_philox_double(a.v[2], a.v[3]);
        const double x = wg_normal_quantile(u > 0 ? u : 0x1p-54), v = pow(1 + c * x, 3);
        if (!(1 + c * x > 0) || log(w) >= 0.5 * x * x + d - d * v + d * log(v)) continue;
        const double less = 1 - wg_philox_double(b.v[0], b.v[1]); /* from shape + 1 to shape: times U^(1 / shape) */
        return d * v * (shape < 1 ? pow(less, 1 / shape) : 1) / shape;
    }
}

void wg_arrivals_gamma(double *at, int n, double rate, double burstiness, uint64_t seed)
{
    double sum = 0;
    for (int i = 0; i < n; i++) at[i] = sum += gamma_draw(seed, (uint32_t)i, burstiness);
    for (int i = 0; i < n; i++) at[i] *= n / rate / sum;
}

/* A line without its end: a number, or an object with `timestamp`. */
static bool read_time(const char *line, size_t n, double *out)
{
    char number[64];
    if (*line == '{') {
        json_t *o = wg_json_load_foreign(line, n, 0, NULL);
        const json_t *v = json_object_get(o, "timestamp");
        const bool is = json_is_number(v);
        *out = json_number_value(v);
        json_decref(o);
        return is && *out >= 0;
    }
    if (n >= sizeof number) return false;
    memcpy(number, line, n);
    number[n] = '\0';
    return wg_number_parse(number, out) && *out >= 0;
}

static wg_status read_times(double *at, int *n, int most, const char *path, const char *text, size_t bytes, wg_error *err)
{
    int line = 1;
    *n = 0;
    for (const char *p = text, *all = text + bytes; p < all && *n < most; line++) {
        const char *stop = memchr(p, '\n', (size_t)(all - p)), *next = stop ? stop + 1 : all;
        if (!stop) stop = all;
        while (stop > p && strchr(" \t\r", stop[-1])) stop--;
        while (p < stop && strchr(" \t", *p)) p++;
        if (p < stop && (!read_time(p, (size_t)(stop - p), &at[*n]) || (*n && at[*n] < at[*n - 1])))
            return wg_fail(err, WG_EFORMAT,
                           "%s:%d: expected seconds from the start, no smaller than those before: a number, or an object with "
                           "\"timestamp\"",
                           path, line);
        *n += p < stop;
        p = next;
    }
    return *n ? WG_OK : wg_fail(err, WG_EFORMAT, "%s: no arrival times; expected one a line", path);
}

wg_status wg_arrivals_read(double **at, int *n, int most, const char *path, wg_error *err)
{
    char *text;
    size_t bytes, lines = 1;
    WG_TRY(wg_read_file(path, FILE_MOST, &text, &bytes, err));
    for (size_t i = 0; i < bytes; i++) lines += text[i] == '\n';
    if (lines > (size_t)most) lines = (size_t)most;
    *at = wg_calloc(lines, sizeof **at);
    wg_status s = *at ? read_times(*at, n, (int)lines, path, text, bytes, err) : wg_nomem(err, lines * 8, "arrival times");
    wg_free(text);
    if (s) wg_free(*at), *at = NULL;
    return s;
}
