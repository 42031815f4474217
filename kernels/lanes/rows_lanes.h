/* SPDX-License-Identifier: MIT
 * The ops on single rows, for every instruction set. A level's file includes its registers (kernels/x86/avx2.h ...), defines
 *     LEVEL(op)     wg_<op>_<level>
 *     AT_ONCE       groups of sixteen logits whose exponentials are computed together
 * and then includes this file. Element i is in lane i % 16, as the specification has it; lanes behind the end of a row are
 * loaded as values that change no result (zeros, or NaN where elements are compared). */
#include <string.h>

#include "kernels/lanes/act_lanes.h"
#include "kernels/lanes/codes_lanes.h"
#include "kernels/key_walk.h"
#include "kernels/layout.h"
#include "kernels/variants.h"

/* ---- activations of quantised products */
INLINE void quantise_block(const float *x, wg_q8_act *act, int b)
{
    int half[2];
    const float da = codes_of(x, WG_QUANT_BLOCK, 1, act->q + b * WG_QUANT_BLOCK, half);
    const int sum = half[0] + half[1];
    act->ini[b] = WG_MAGIC_BITS - 128 * sum;
    act->da[b] = da;
    act->mda[b] = da * WG_MAGIC;
    act->das[b] = da * (float)sum;
    act->sum[b] = sum;
    act->low[b] = half[0];
}

void LEVEL(act_prepare)(int type, const float *x, size_t ldx, int rows, int k, void *act, int r0, int r1)
{
    if (!wg_is_quantised(type)) {
        wg_act_prepare_ref(type, x, ldx, rows, k, act, r0, r1);
        return;
    }
    for (int m = r0; m < r1; m++) {
        const float *row = x + (size_t)m * ldx;
        wg_q8_act *to = (wg_q8_act *)act + wg_q8_act_at(m, wg_chunks(k));
        for (int b = 0; b < wg_blocks(k); b++)
            quantise_block(row + b * WG_QUANT_BLOCK, to + (size_t)(b / WG_ACT_BLOCKS) * (size_t)wg_group_rows(rows, m),
                           b % WG_ACT_BLOCKS);
    }
}

void LEVEL(rmsnorm)(const float *x, size_t ldx, const float *weight, int dim, float eps, float *y, size_t ldy, int rows)
{
    for (int m = 0; m < rows; m++) {
        const float *from = x + (size_t)m * ldx;
        float *to = y + (size_t)m * ldy;
        lanes16 sum = all16(0), end = sum;
        int i = 0;
        for (; i + 16 <= dim; i += 16) {
            const lanes16 v = load16(16, from + i);
            sum = fma16(v, v, sum);
        }
        if (i < dim) end = load16(dim - i, from + i);
        sum = fma16(end, end, sum); /* an empty lane adds +0 to a sum that is never -0 */
        const float r = 1.0f / sqrtf(fold16(sum) / (float)dim + eps);
        for (i = 0; i + 16 <= dim; i += 16)
            store16(to + i, 16, mul16(scale16(load16(16, from + i), r), load16(16, weight + i)));
        if (i < dim) store16(to + i, dim - i, mul16(scale16(end, r), load16(dim - i, weight + i)));
    }
}

/* Lanes behind the end of a row hold zeros, whose differences to the mean must not count. */
INLINE lanes16 less_mean(const float *x, const int n, float mean)
{
    lanes16 d = load16_or(n, x, mean);
    EACH d.v[i] = d.v[i] - v_all(mean);
    return d;
}

INLINE void layernorm_some(const float *x, const float *weight, const float *bias, float *y, const int n, float mean, float r)
{
    store16(y, n, fma16(scale16(less_mean(x, n, mean), r), load16(n, weight), load16(n, bias)));
}

void LEVEL(layernorm)(const float *x, const float *weight, const float *bias, int dim, float eps, float *y, int rows)
{
    for (int m = 0; m < rows; m++) {
        const float *from = x + (size_t)m * (size_t)dim;
        float *to = y + (size_t)m * (size_t)dim;
        lanes16 sum = all16(0), squares = all16(0), d;
        int i = 0;
        for (; i + 16 <= dim; i += 16) sum = add16(sum, load16(16, from + i));
        if (i < dim) sum = add16(sum, load16(dim - i, from + i));
        const float mean = fold16(sum) / (float)dim;
        for (i = 0; i + 16 <= dim; i += 16) {
            d = less_mean(from + i, 16, mean);
            squares = fma16(d, d, squares);
        }
        if (i < dim) {
            d = less_mean(from + i, dim - i, mean);
            squares = fma16(d, d, squares);
        }
        const float r = 1.0f / sqrtf(fold16(squares) / (float)dim + eps);
        for (i = 0; i + 16 <= dim; i += 16) layernorm_some(from + i, weight + i, bias + i, to + i, 16, mean, r);
        if (i < dim) layernorm_some(from + i, weight + i, bias + i, to + i, dim - i, mean, r);
    }
}

/* ---- rotary: a register of elements, or of pairs, at a time, the first n of it */
INLINE vec some(const int whole, int n, const float *p) { return whole ? v_load(WG_F32, p) : v_load_first(WG_F32, n, p); }
INLINE void put(const int whole, int n, float *p, vec x)
{
    if (whole) v_store(p, x);
    else v_store_first(p, n, x);
}

INLINE void turn_adjacent(const int whole, float *x, int n, const float *cs)
{
    put(whole, n, x, v_turn(some(whole, n, x), some(whole, n, cs)));
}

INLINE void turn_halves(const int whole, float *x, int half, int n, const float *cs)
{
    const vec a = some(whole, n, x), b = some(whole, n, x + half);
    vec c, s;
    v_deal(some(whole, 2 * n, cs), some(whole, 2 * n - LANES, cs + LANES), &c, &s);
    put(whole, n, x, v_fms(a, c, b * s));
    put(whole, n, x + half, v_fma(a, s, b * c));
}

void LEVEL(rope)(float *x, int heads, int hd, int n_rot, const float *cs, int adjacent)
{
    const int half = n_rot / 2;
    for (int h = 0; h < heads; h++, x += hd) {
        int i = 0;
        if (adjacent) {
            for (; i + LANES <= 2 * half; i += LANES) turn_adjacent(1, x + i, LANES, cs + i);
            if (i < 2 * half) turn_adjacent(0, x + i, 2 * half - i, cs + i);
        } else {
            for (; i + LANES <= half; i += LANES) turn_halves(1, x + i, half, LANES, cs + 2 * i);
            if (i < half) turn_halves(0, x + i, half, half - i, cs + 2 * i);
        }
    }
}

/* ---- keys and values into pages */
INLINE void store_floats(const int type, char *to, const float *from, int n)
{
    const int size = type == WG_F32 ? 4 : 2;
    int d = 0;
    for (; d + LANES <= n; d += LANES) v_store_as(type, to + d * size, LANES, v_load(WG_F32, from + d));
    if (d < n) v_store_as(type, to + d * size, n - d, v_load_first(WG_F32, n - d, from + d));
}

static void store_codes(const wg_kv_view *kv, int8_t *to, float *scale, const float *from)
{
    for (int at = 0; at < kv->kv_dim; at += kv->head_dim)
        for (int d = 0; d < kv->head_dim; d += WG_KV_BLOCK, scale += kv->page_slots) {
            const int n = kv->head_dim - d < WG_KV_BLOCK ? kv->head_dim - d : WG_KV_BLOCK;
            int8_t code[WG_KV_BLOCK];
            int sum[2];
            if (n == WG_KV_BLOCK) {
                *scale = codes_of(from + at + d, WG_KV_BLOCK, 2, to + at + d, sum);
                continue;
            }
            *scale = codes_of(from + at + d, n, 2, code, sum);
            memcpy(to + at + d, code, (size_t)n);
        }
}

INLINE void store_pair(const int type, const wg_kv_view *kv, char *key, const float *k, const float *v)
{
    store_floats(type, key, k, kv->kv_dim);
    store_floats(type, key + kv->value_at, v, kv->kv_dim);
}

void LEVEL(kv_store)(const wg_kv_view *kv, int32_t slot, const float *k, const float *v)
{
    char *key = kv->pool + (wg_slot_at(kv, slot) - kv->pool);
    switch (kv->type) {
    case WG_F32: store_pair(WG_F32, kv, key, k, v); return;
    case WG_F16: store_pair(WG_F16, kv, key, k, v); return;
    case WG_BF16: store_pair(WG_BF16, kv, key, k, v); return;
    default: break;
    }
    float *scale = (float *)(void *)(kv->pool + ((const char *)wg_scales_at(kv, slot) - kv->pool));
    store_codes(kv, (int8_t *)key, scale, k);
    store_codes(kv, (int8_t *)key + kv->value_at, scale + kv->value_at / sizeof *scale, v);
}

/* ---- element-wise */
INLINE void swiglu(const float *gate, const float *up, float *y, const int n)
{
    lanes16 g = load16(n, gate), e = g;
    EACH e.v[i] = -g.v[i];
    e = exp16(e);
    EACH g.v[i] = g.v[i] / (v_all(1.0f) + e.v[i]);
    store16(y, n, mul16(g, load16(n, up)));
}

void LEVEL(swiglu)(const float *gate, const float *up, float *y, int n)
{
    int i = 0;
    for (; i + 16 <= n; i += 16) swiglu(gate + i, up + i, y + i, 16);
    if (i < n) swiglu(gate + i, up + i, y + i, n - i);
}

INLINE void geglu(const float *gate, const float *up, float *y, const int n)
{
    store16(y, n, mul16(gelu16(load16(n, gate)), load16(n, up)));
}

void LEVEL(geglu)(const float *gate, const float *up, float *y, int n)
{
    int i = 0;
    for (; i + 16 <= n; i += 16) geglu(gate + i, up + i, y + i, 16);
    if (i < n) geglu(gate + i, up + i, y + i, n - i);
}

INLINE void clamped_swiglu(const float *gate, const float *up, float *y, const int n)
{
    store16(y, n, clamped_swiglu16(load16(n, gate), load16(n, up)));
}

void LEVEL(clamped_swiglu)(const float *gate, const float *up, float *y, int n)
{
    int i = 0;
    for (; i + 16 <= n; i += 16) clamped_swiglu(gate + i, up + i, y + i, 16);
    if (i < n) clamped_swiglu(gate + i, up + i, y + i, n - i);
}

void LEVEL(gelu)(const float *x, float *y, int n)
{
    int i = 0;
    for (; i + 16 <= n; i += 16) store16(y + i, 16, gelu16(load16(16, x + i)));
    if (i < n) store16(y + i, n - i, gelu16(load16(n - i, x + i)));
}

void LEVEL(gelu_erf)(const float *x, float *y, int n)
{
    int i = 0;
    for (; i + 16 <= n; i += 16) store16(y + i, 16, gelu_erf16(load16(16, x + i)));
    if (i < n) store16(y + i, n - i, gelu_erf16(load16(n - i, x + i)));
}

void LEVEL(relu2)(const float *x, float *y, int n)
{
    int i = 0;
    for (; i + 16 <= n; i += 16) store16(y + i, 16, relu2_16(load16(16, x + i)));
    if (i < n) store16(y + i, n - i, relu2_16(load16(n - i, x + i)));
}

void LEVEL(clamp)(float *x, float limit, int n)
{
    int i = 0;
    for (; i + 16 <= n; i += 16) store16(x + i, 16, clamp16(load16(16, x + i), v_all(limit)));
    if (i < n) store16(x + i, n - i, clamp16(load16(n - i, x + i), v_all(limit)));
}

INLINE void softcap(float *x, const int n, float cap)
{
    lanes16 v = load16(n, x);
    v_softcap(v.v, PARTS, v_all(cap));
    store16(x, n, v);
}

void LEVEL(softcap)(float *x, float cap, int n)
{
    int i = 0;
    for (; i + 16 <= n; i += 16) softcap(x + i, 16, cap);
    if (i < n) softcap(x + i, n - i, cap);
}

void LEVEL(add_scaled)(float *x, float by, const float *y, int n)
{
    int i = 0;
    for (; i + 16 <= n; i += 16) store16(x + i, 16, fma16(all16(by), load16(16, y + i), load16(16, x + i)));
    if (i < n) store16(x + i, n - i, fma16(all16(by), load16(n - i, y + i), load16(n - i, x + i)));
}

void LEVEL(scale)(float *x, float by, int n)
{
    int i = 0;
    for (; i + 16 <= n; i += 16) store16(x + i, 16, scale16(load16(16, x + i), by));
    if (i < n) store16(x + i, n - i, scale16(load16(n - i, x + i), by));
}

void LEVEL(add)(float *x, const float *y, int n)
{
    int i = 0;
    for (; i + 16 <= n; i += 16) store16(x + i, 16, add16(load16(16, x + i), load16(16, y + i)));
    if (i < n) store16(x + i, n - i, add16(load16(n - i, x + i), load16(n - i, y + i)));
}

void LEVEL(exp32)(const float *x, float *y, int n)
{
    int i = 0;
    for (; i + 16 <= n; i += 16) store16(y + i, 16, exp16(load16(16, x + i)));
    if (i < n) store16(y + i, n - i, exp16(load16(n - i, x + i)));
}

/* ---- rows of logits */

/* The largest element that is not NaN; -inf when there is none. */
static float largest(const float *x, int n)
{
    enum { CHAINS = 4 };
    lanes16 max[CHAINS];
    int i = 0;
    UNROLL_FOR(int e = 0; e < CHAINS; e++) max[e] = all16(-INFINITY);
    for (; i + 16 * CHAINS <= n; i += 16 * CHAINS)
        UNROLL_FOR(int e = 0; e < CHAINS; e++) max[e] = larger16(load16(16, x + i + 16 * e), max[e]);
    for (; i + 16 <= n; i += 16) max[0] = larger16(load16(16, x + i), max[0]);
    if (i < n) max[0] = larger16(load16_or(n - i, x + i, -INFINITY), max[0]);
    return largest16(larger16(larger16(max[0], max[1]), larger16(max[2], max[3])));
}

INLINE void soften(const float *x, const int n, double max, double inv_temp, double *p, doubles16 *sum)
{
    doubles16 e = widen16(load16_or(n, x, -INFINITY));
    EACH_DOUBLE e.v[i] = (e.v[i] - d_all(max)) * d_all(inv_temp);
    exp64_low(e.v, 2 * PARTS, 1);
    EACH_DOUBLE
    {
        store_doubles(p, n, i, e.v[i]);
        sum->v[i] = sum->v[i] + e.v[i];
    }
}

double LEVEL(softmax64)(const float *x, int n, double inv_temp, double *p)
{
    const double max = (double)largest(x, n);
    doubles16 sum = zero_doubles();
    int i = 0;
    for (; i + 16 <= n; i += 16) soften(x + i, 16, max, inv_temp, p + i, &sum);
    if (i < n) soften(x + i, n - i, max, inv_temp, p + i, &sum);
    return fold16_double(sum);
}

/* The chunk with the largest element is found in the one pass over memory; the element, in the nearest cache. */
int LEVEL(argmax)(const float *x, int n)
{
    enum { CHUNK = 2048 };
    float best = -INFINITY;
    int from = 0;
    for (int i = 0; i < n; i += CHUNK) {
        const float here = largest(x + i, n - i < CHUNK ? n - i : CHUNK);
        if (here > best) {
            best = here;
            from = i;
        }
    }
    for (int i = from; i < n; i += 16) {
        const lanes16 v = n - i >= 16 ? load16(16, x + i) : load16_or(n - i, x + i, NAN);
        mask16 hit;
        EACH hit.m[i] = v_equal(v.v[i], v_all(best));
        const unsigned bits = bits16(hit);
        if (bits) return i + __builtin_ctz(bits);
    }
    return -1;
}

/* The elements of n that reach the bound; the others are added to the sum. NaN is in neither. */
INLINE uint64_t split(const float *x, const int n, float bound, float max, float scale, doubles16 *sum)
{
    uint64_t found = 0;
    lanes16 v[AT_ONCE], e[AT_ONCE];
    UNROLL_FOR(int k = 0; k < AT_ONCE; k++) {
        v[k] = load16_or(n - 16 * k, x + 16 * k, NAN);
        EACH e[k].v[i] = (v[k].v[i] - v_all(max)) * v_all(scale);
    }
    exp32_low(e[0].v, AT_ONCE * PARTS);
    UNROLL_FOR(int k = 0; k < AT_ONCE; k++) {
        mask16 reach;
        EACH
        {
            const mask below = v_below(v[k].v[i], v_all(bound));
            UNROLL_FOR(int h = 0; h < 2; h++) sum->v[2 * i + h] = d_add_where(sum->v[2 * i + h], below, e[k].v[i], h);
            reach.m[i] = v_atleast(v[k].v[i], v_all(bound));
        }
        found |= (uint64_t)bits16(reach) << 16 * k;
    }
    return found;
}

double LEVEL(split)(const float *x, int n, float bound, float max, float scale, int32_t *id, int room, int *count)
{
    enum { WIDE = 16 * AT_ONCE };
    doubles16 sum = zero_doubles();
    int found = 0;
    for (int i = 0; i < n; i += WIDE) {
        uint64_t hit =
            n - i >= WIDE ? split(x + i, WIDE, bound, max, scale, &sum) : split(x + i, n - i, bound, max, scale, &sum);
        for (; hit; hit &= hit - 1, found++)
            if (found < room) id[found] = i + __builtin_ctzll(hit);
    }
    *count = found;
    return fold16_double(sum);
}

/* ---- masses of weights: exact, so the lanes of a sum are as the registers have them */

/* The mass of LANES / 2 lanes of steps, which become 0. */
INLINE wg_mass take_steps(svec *sum)
{
    uint64_t lane[LANES / 2];
    s_store(lane, *sum);
    *sum = s_zero();
    return wg_mass_fold(lane, LANES / 2);
}
enum { PIECE = LANES / 2 * WG_MASS_PIECE }; /* the number of weights whose sum fits */

/* Appends the elements i .. of the row that are in the band to its list. */
INLINE void into_band(wg_band *b, mask16 in, int at, lanes16 v, const float *x)
{
#ifdef LANES_PACK /* without a branch on `in`, which would be mispredicted */
    (void)x;
    EACH
    {
        const int n = b->n;
        b->n += __builtin_popcount(m_bits(in.m[i]));
        if (n + 16 <= b->room) v_pack(in.m[i], v.v[i], at + LANES * i, b->id + n, b->x + n);
    }
#else
    (void)v;
    for (unsigned bits = bits16(in); bits; bits &= bits - 1) {
        const int k = __builtin_ctz(bits);
        if (b->n++ + 16 > b->room) continue;
        b->id[b->n - 1] = at + k;
        b->x[b->n - 1] = x[k];
    }
#endif
}

/* The parameters of a row, and the partial masses: of all elements, and of those above the band. */
typedef struct weighing {
    const float *x;
    double *p, max, inv_temp;
    vec low, high;
    svec sum, above;
} weighing;

/* Weighs the elements at .. at + n - 1. */
INLINE void weigh(weighing *w, int at, const int n, wg_band *band)
{
    lanes16 v[AT_ONCE];
    doubles16 e[AT_ONCE];
    UNROLL_FOR(int k = 0; k < AT_ONCE; k++) {
        v[k] = load16_or(n - 16 * k, w->x + at + 16 * k, NAN);
        e[k] = widen16(v[k]);
        EACH_DOUBLE e[k].v[i] = (e[k].v[i] - d_all(w->max)) * d_all(w->inv_temp);
    }
    exp64_low(e[0].v, AT_ONCE * 2 * PARTS, 0);
    UNROLL_FOR(int k = 0; k < AT_ONCE; k++) {
        mask16 in;
        EACH
        {
            const mask over = v_above(v[k].v[i], w->high);
            in.m[i] = m_without(v_atleast(v[k].v[i], w->low), over);
            UNROLL_FOR(int h = 0; h < 2; h++) {
                const dvec one = e[k].v[2 * i + h];
                const svec steps = steps_of(one);
                if (w->p) store_doubles(w->p + at + 16 * k, n - 16 * k, 2 * i + h, one);
                w->sum = s_add(w->sum, steps);
                w->above = s_add_where(w->above, d_half_mask(over, h), steps);
            }
        }
        into_band(band, in, at + 16 * k, v[k], w->x + at + 16 * k);
    }
}

INLINE wg_mass weigh_row(weighing w, int n, wg_band *band)
{
    enum { WIDE = 16 * AT_ONCE };
    wg_mass mass = 0;
    band->n = 0;
    band->above = 0;
    for (int i = 0; i < n;) {
        const int end = n - i < PIECE ? n : i + PIECE;
        for (; i + WIDE <= end; i += WIDE) weigh(&w, i, WIDE, band);
        if (i < end) weigh(&w, i, end - i, band);
        i = end;
        mass += take_steps(&w.sum);
        band->above += take_steps(&w.above);
    }
    return mass;
}

wg_mass LEVEL(weigh64)(const float *x, int n, float max, double inv_temp, double *p, wg_band *band)
{
    weighing w = { .x = x,
                   .max = (double)max,
                   .inv_temp = inv_temp,
                   .low = v_all(band->low),
                   .high = v_all(band->high),
                   .sum = s_zero(),
                   .above = s_zero() };
    if (!p) return weigh_row(w, n, band); /* two loops: one without stores */
    w.p = p;
    return weigh_row(w, n, band);
}

/* The elements of n, from index `at` on, that are in the prefix, disregarding `lightest`. */
INLINE mask16 prefix16(const float *x, const int n, int at, float edge, int last)
{
    const lanes16 v = load16_or(n, x, NAN);
    mask16 in;
    EACH in.m[i] = m_or(v_above(v.v[i], v_all(edge)), m_and(v_equal(v.v[i], v_all(edge)), v_first(last - at - LANES * i + 1)));
    return in;
}

typedef struct kept {
    svec sum;
    tally count;
} kept;

INLINE void add_kept(kept *to, const float *x, const double *p, const int n, int at, float edge, int last, double lightest)
{
    const mask16 prefix = prefix16(x, n, at, edge, last);
    EACH_DOUBLE
    {
        const dvec w = load_doubles(n, p, i);
        const dmask in = d_also_atleast(d_half_mask(prefix.m[i / 2], i % 2), w, d_all(lightest));
        to->sum = s_add_where(to->sum, in, steps_of(w));
        to->count = tally_add(to->count, in);
    }
}

wg_mass LEVEL(kept64)(const float *x, const double *p, int n, float edge, int last, double lightest, int *count)
{
    kept to = { s_zero(), tally_none() };
    wg_mass mass = 0;
    for (int i = 0; i < n;) {
        const int end = n - i < PIECE ? n : i + PIECE;
        for (; i + 16 <= end; i += 16) add_kept(&to, x + i, p + i, 16, i, edge, last, lightest);
        if (i < end) add_kept(&to, x + i, p + i, end - i, i, edge, last, lightest);
        i = end;
        mass += take_steps(&to.sum);
    }
    *count = tally_sum(to.count);
    return mass;
}

INLINE void keep(const float *x, double *p, const int n, int at, float edge, int last, double lightest, double scale)
{
    const mask16 prefix = prefix16(x, n, at, edge, last);
    EACH_DOUBLE
    {
        const dvec w = load_doubles(n, p, i);
        const dmask in = d_also_atleast(d_half_mask(prefix.m[i / 2], i % 2), w, d_all(lightest));
        store_doubles(p, n, i, d_keep(in, w * d_all(scale)));
    }
}

void LEVEL(keep64)(const float *x, double *p, int n, float edge, int last, double lightest, double scale)
{
    int i = 0;
    for (; i + 16 <= n; i += 16) keep(x + i, p + i, 16, i, edge, last, lightest, scale);
    if (i < n) keep(x + i, p + i, n - i, i, edge, last, lightest, scale);
}
