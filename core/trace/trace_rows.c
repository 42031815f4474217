/* SPDX-License-Identifier: MIT
 * Reading stored rows of a trace. All values are copied unaligned from the file. */
#include <math.h>
#include <string.h>

#include "core/trace/trace.h"
#include "kernels/mass.h"
#include "kernels/types.h"

size_t wg_trace_row_bytes(int kind, uint32_t count, int vocab)
{
    switch (kind) {
    case WG_ROW_DENSE: return (size_t)vocab * 8;
    case WG_ROW_LIST: return (size_t)count * 12;
    case WG_ROW_LOGITS: return (size_t)vocab * 4;
    case WG_ROW_F16: return (size_t)vocab * 2;
    case WG_ROW_TOP: return (size_t)count * 8 + 8;
    case WG_ROW_CUT: return (size_t)count * 24 + 12;
    default: return 0;
    }
}

static int32_t token_at(const unsigned char *p, size_t i)
{
    int32_t x;
    memcpy(&x, p + 4 * i, 4);
    return x;
}

static double real(const unsigned char *p)
{
    double x;
    memcpy(&x, p, 8);
    return x;
}

static wg_status no_row(const char *why, wg_error *err)
{
    return wg_fail(err, WG_EFORMAT, "a row is no distribution: %s", why);
}

/* Whether tokens are strictly ascending and inside the vocabulary. */
static bool ascending(const wg_trace_row *in, int vocab)
{
    for (uint32_t i = 0; i < in->count; i++) {
        const int32_t x = token_at(in->data, i);
        if (x < 0 || x >= vocab || (i && x <= token_at(in->data, i - 1))) return false;
    }
    return true;
}

/* Checks that no mass is negative and the sum is positive. Exact rows sum to 1 within rounding; compact ones are normalised. */
static wg_status check(double *p, int n, bool exact, wg_error *err)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        if (!(p[i] >= 0 && p[i] <= 1 + 1e-6)) return no_row("a probability is outside 0..1", err);
        sum += p[i];
    }
    if (exact) return fabs(sum - 1) < 1e-6 ? WG_OK : no_row("the probabilities do not sum to 1", err);
    if (!(sum > 0)) return no_row("all probabilities are 0", err);
    for (int i = 0; i < n; i++) p[i] /= sum;
    return WG_OK;
}

static wg_status read_list(const wg_trace_row *in, wg_rows *out, int row, wg_error *err)
{
    double *p = wg_rows_at(out, row), sum = 0;
    const unsigned char *mass = in->data + 4 * (size_t)in->count;
    if (!ascending(in, out->vocab)) return no_row("its tokens are not ascending in the vocabulary", err);
    if (in->count <= (uint32_t)out->room) { /* keeps the recorded support */
        wg_rows_set(out, row, NULL, NULL, 0);
        int32_t *support = out->support + (size_t)row * (size_t)out->room;
        for (uint32_t i = 0; i < in->count; i++) p[support[i] = token_at(in->data, i)] = real(mass + 8 * i);
        out->supported[row] = (int)in->count;
    } else {
        memset(p, 0, (size_t)out->vocab * sizeof *p);
        for (uint32_t i = 0; i < in->count; i++) p[token_at(in->data, i)] = real(mass + 8 * i);
    }
    for (uint32_t i = 0; i < in->count; i++) {
        const double v = real(mass + 8 * i);
        if (!(v >= 0 && v <= 1 + 1e-6)) return no_row("a probability is outside 0..1", err);
        sum += v;
    }
    return fabs(sum - 1) < 1e-6 ? WG_OK : no_row("the probabilities do not sum to 1", err);
}

/* Reads a TOP row; the remaining mass is distributed evenly over the tokens not listed. */
static wg_status read_top(const wg_trace_row *in, wg_rows *out, int row, wg_error *err)
{
    double *p = wg_rows_at(out, row);
    const unsigned char *mass = in->data + 4 * (size_t)in->count;
    const double rest = real(mass + 4 * (size_t)in->count);
    const int others = out->vocab - (int)in->count;
    if (!ascending(in, out->vocab)) return no_row("its tokens are not ascending in the vocabulary", err);
    if (!(rest >= 0 && rest <= 1 + 1e-6)) return no_row("the mass of the rest is outside 0..1", err);
    for (int i = 0; i < out->vocab; i++) p[i] = others > 0 ? rest / others : 0;
    for (uint32_t i = 0; i < in->count; i++) {
        float v;
        memcpy(&v, mass + 4 * (size_t)i, 4);
        p[token_at(in->data, i)] = (double)v;
    }
    return check(p, out->vocab, false, err);
}

/* Reads a gap into the `tokens` doubles at p: the mass in steps of each token, and how many of the first have one more.
 * largest: the row's largest listed probability. */
static wg_status read_gap(const unsigned char *gap, double *p, int tokens, double largest, double *sum, wg_error *err)
{
    const double step = 0x1p-52 / wg_scale_of(largest);
    uint64_t each;
    uint32_t more;
    memcpy(&each, gap, 8);
    memcpy(&more, gap + 8, 4);
    if (each > (uint64_t)WG_MASS_ONE || (tokens ? more >= (uint32_t)tokens : each || more))
        return no_row("a gap has more mass than its tokens can have", err);
    for (int k = 0; k < tokens; k++) {
        const double v = (double)(each + ((uint32_t)k < more)) * step;
        *sum += p[k] = v < largest ? v : largest; /* (the largest one's steps may have been rounded up) */
    }
    return WG_OK;
}

/* Reads a CUT row; the mass of a gap is distributed evenly over its tokens, in whole steps. */
static wg_status read_cut(const wg_trace_row *in, wg_rows *out, int row, wg_error *err)
{
    const int n = (int)in->count;
    const unsigned char *mass = in->data + 4 * (size_t)n, *gap = mass + 8 * (size_t)n;
    double *p = wg_rows_at(out, row), sum = 0, largest = 0;
    int32_t after = 0; /* the first token behind the last listed one */
    if (n == 0 || !ascending(in, out->vocab)) return no_row("its tokens are not ascending in the vocabulary", err);
    for (int i = 0; i < n; i++) {
        const double v = real(mass + 8 * (size_t)i);
        if (!(v >= 0 && v <= 1 + 1e-6)) return no_row("a probability is outside 0..1", err);
        largest = v > largest ? v : largest;
    }
    for (int i = 0; i <= n; i++) {
        const int32_t token = i < n ? token_at(in->data, (size_t)i) : out->vocab;
        WG_TRY(read_gap(gap + 12 * (size_t)i, p + after, token - after, largest, &sum, err));
        if (i < n) sum += p[token] = real(mass + 8 * (size_t)i);
        after = token + 1;
    }
    return fabs(sum - 1) < 1e-6 ? WG_OK : no_row("the probabilities do not sum to 1", err);
}

bool wg_trace_row_lists(const wg_trace_row *in, int32_t token)
{
    uint32_t lo = 0, hi = in->count;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (token_at(in->data, mid) < token) lo = mid + 1;
        else hi = mid;
    }
    return lo < in->count && token_at(in->data, lo) == token;
}

wg_status wg_trace_row_read(const wg_trace_row *in, wg_rows *out, int row, wg_error *err)
{
    const int V = out->vocab;
    out->point[row] = -1;
    if (in->kind == WG_ROW_ONE_HOT) {
        if (in->count >= (uint32_t)V) return no_row("its token is outside the vocabulary", err);
        out->point[row] = (int32_t)in->count;
        return WG_OK;
    }
    if (in->kind == WG_ROW_LIST) {
        if (in->count > (uint32_t)out->room) out->supported[row] = -1;
        return read_list(in, out, row, err);
    }
    double *p = wg_rows_at(out, row);
    out->supported[row] = -1;
    switch (in->kind) {
    case WG_ROW_DENSE: memcpy(p, in->data, (size_t)V * 8); return check(p, V, true, err);
    case WG_ROW_F16:
        for (int i = 0; i < V; i++) {
            uint16_t h;
            memcpy(&h, in->data + 2 * (size_t)i, 2);
            p[i] = (double)wg_f16_to_f32(h);
        }
        return check(p, V, false, err);
    case WG_ROW_TOP: return read_top(in, out, row, err);
    case WG_ROW_CUT: return read_cut(in, out, row, err);
    default: return no_row("it is of a kind that is not known", err);
    }
}

void wg_trace_row_logits(const wg_trace_row *in, float *logits, int vocab) { memcpy(logits, in->data, (size_t)vocab * 4); }
