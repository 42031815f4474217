/* SPDX-License-Identifier: MIT
 * The CPU operations of a transformer, as a table of function pointers. The scalar functions in ref/ are the specification,
 * bit for bit: a variant that differs in one bit is wrong (kernelcheck compares with memcmp). Determinism class of every
 * op: fixed-order. An output depends on its inputs only, never on how many rows ride along, on tiles or on threads.
 * The same bits are promised for finite inputs of any size, denormals included; which NaN comes out of an overflow is not.
 *
 * Conventions. All floats are IEEE f32, fused multiply-adds are explicit (fma), nothing else is contracted. "lanes16" means:
 * sixteen partial results that start at +0, element i goes to lane i % 16 in ascending order (a lane without elements stays
 * +0), then lanes are folded l += l+8, l+4, l+2, l+1. max is (a > b ? a : b); its order shows in no result.
 * Threads are the caller's business: every op works on a range ([r0,r1) of rows or [p0,p1) of panels) and ranges are disjoint.
 * No op allocates. Pointers to rows are 64-byte aligned only where it says so; K and N may be any positive size. */
#ifndef WG_KERNELS_OPS_H
#define WG_KERNELS_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/mask.h"
#include "kernels/mass.h"
#include "kernels/types.h"

enum {
    WG_PANEL = 32,        /* output rows of a weight panel */
    WG_CHUNK_KEYS = 64,   /* keys per attention chunk, at absolute positions 64c .. 64c+63 */
    WG_MAX_HEAD = 256,    /* widest attention head */
    WG_KV_Q8 = WG_I8,     /* type of a cache of 8-bit codes: elements are code * scale, */
    WG_KV_BLOCK = 64,     /* with a scale for every so many elements of a head (its last block may be shorter) */
};

/* ---- packed weights: panels of WG_PANEL output rows, padded with zeros when N % 32 (layouts of docs/kernels.md).
 *   f32, f16, bf16: [panel][k][32 rows], element type as in the file (products are exact conversions to f32)
 *   f8_e4m3: [panel][block of 128 k]{ f32 scale of each row, [128][32 rows] codes }, K % 128 == 0
 *   q8_0 q4_0 q4_1 q5_0 q5_1 iq4_nl q4_k q5_k q6_k: [panel][block of 32 k]{ scales, codes }, K % 32 == 0 (K types: % 256)  */
typedef struct wg_matrix {
    int type;             /* wg_type: f32, f16, bf16, f8_e4m3 or one of the quantised types above */
    int n, k;             /* outputs (rows of the file's matrix), inputs */
    const void *data;     /* packed, 64-byte aligned */
} wg_matrix;

/* The elements of a row with low <= x_i <= high, ascending: n of them, listed when n + 16 <= room (behind the list anything may
 * be written, up to room); and the mass of p_i over x_i > high. */
typedef struct wg_band {
    float low, high;
    int room, n;
    int32_t *id; /* (room) */
    float *x;    /* (room) */
    wg_mass above;
} wg_band;

/* A page-resident view of one layer's keys and values of one sequence. Slot s lives in page page[s / page_slots] at offset
 * s % page_slots; its key vector of all kv heads is kv_dim consecutive elements. Pages are `stride` bytes apart in pool.
 * WG_KV_Q8: f32 scales stand scale_at bytes behind the page's keys, (wg_kv_scales, page_slots): block by block of head by head,
 * in each the slots. Those of the values scale_at bytes behind the values. All these distances are multiples of 4 then. */
typedef struct wg_kv_view {
    int type;                  /* WG_F32, WG_F16, WG_BF16 or WG_KV_Q8 */
    int page_slots, kv_dim;
    const int32_t *page;       /* the sequence's page table */
    char *pool;                /* start of page 0's bytes of this layer */
    size_t stride;             /* bytes between pages */
    size_t value_at;           /* bytes from the keys of a page to its values */
    int head_dim;              /* WG_KV_Q8: of kv_dim, a multiple of it */
    size_t scale_at;           /* WG_KV_Q8 */
} wg_kv_view;

/* Bytes of one slot's key (or value), without its scales; blocks of a head, and scales of a slot's key. */
static inline size_t wg_kv_row_bytes(int type, int kv_dim)
{
    return (size_t)kv_dim * (type == WG_F32 ? 4 : type == WG_KV_Q8 ? 1 : 2);
}
static inline int wg_kv_blocks(int head_dim) { return (head_dim + WG_KV_BLOCK - 1) / WG_KV_BLOCK; }
static inline int wg_kv_scales(const wg_kv_view *kv)
{
    return kv->type == WG_KV_Q8 ? kv->kv_dim / kv->head_dim * wg_kv_blocks(kv->head_dim) : 0;
}

/* The keys one row sees, in position order: slots 0..prefix-1, then slots tail + b for the set bits b of anc, ascending.
 * The row's own slot is the last of them. A key's position is its index in this list. A sparse view leaves the slots
 * sinks..sinks+gap-1 out, 0 <= sinks, sinks + gap <= prefix; with gap 0 there is none. */
typedef struct wg_row_keys {
    const wg_kv_view *kv;
    int32_t prefix, tail;
    wg_mask anc;
    int32_t sinks, gap;
} wg_row_keys;

typedef struct wg_ops {
    const char *name;

    /* Bytes of a packed (n,k) matrix of this type; 0 when the type is not computable or k does not fit its block. */
    size_t (*matrix_bytes)(int type, int n, int k);
    /* Packs rows of the file (row-major, each k elements of `type`) into panels [p0,p1). rows: all n file rows. */
    void (*matrix_pack)(int type, int n, int k, const void *rows, void *packed, int p0, int p1);
    /* Row i of a packed matrix as f32 (token embeddings): every element as wg_row_to_f32 gives it. */
    void (*matrix_row)(const wg_matrix *w, int i, float *dst);

    /* Activations are prepared once per input and shared by all matrices of the same type class. For float weights the
     * prepared form is the f32 rows themselves, k floats apart (so x itself serves as act when ldx == k); the quantised types
     * share one form: per row and 32-block, with x first clamped to +-2^110,
     *   da = max|x| / 127 rounded up to 16 significant bits; q = rint(x * (1/da)), da < 1e-30 counts as zero (then q = 0).
     * act_bytes(type, rows, k): size of the prepared form of `rows` rows (64-byte aligned by the caller).
     * act_prepare: rows [r0,r1) of x (row r at x + r*ldx). Layout within act is the implementation's, the same for all levels;
     * it depends on `rows`: matmul must be told the same number. */
    size_t (*act_bytes)(int type, int rows, int k);
    void (*act_prepare)(int type, const float *x, size_t ldx, int rows, int k, void *act, int r0, int r1);

    /* y[m*ldy + n] = sum_k w[n][k] * x[m][k] for m < rows and the outputs of panels [p0,p1) (outputs >= N are not written).
     *   float types: acc = 0; for k ascending: acc = fma(w, x, acc)
     *   f8_e4m3: acc = 0; for blocks of 128 ascending: s = 0; for k ascending in the block: s = fma(value of the code, x, s);
     *   acc = fma(scale, s, acc). A block with a NaN code has the scale NaN, by packing
     *   quantised types, element = value * scale + min: acc = 0; for blocks of 32 ascending (q6_k: halves of 16, which have
     *   their own scales): i = exact integer dot of values and q; t = (float)i * da; acc = fma(t, scale, acc); types with
     *   minima then acc = fma(da * (float)sum(q), min, acc). scale = d, or d * small scale; min = m, or -(dmin * small min):
     *   exact in f32 */
    void (*matmul)(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1);

    /* RMSNorm of rows [r0,r1): s = lanes16 sum of fma(x,x,.); r = 1 / sqrt(s/dim + eps); y = (x * r) * weight. y may be x.
     * All divisions and the root are the correctly rounded ones of f32. */
    void (*rmsnorm)(const float *x, size_t ldx, const float *weight, int dim, float eps, float *y, size_t ldy, int r0, int r1);

    /* Rotary embedding in place on `heads` heads of width hd in row x. cs: (hd/2) pairs cos,sin of the row's position, only
     * the first n_rot/2 are used. adjacent: pairs (2i, 2i+1), else (i, i + n_rot/2). Elements from n_rot on are left alone.
     *   a' = fma(a, c, -(b*s)); b' = fma(a, s, b*c) */
    void (*rope)(float *x, int heads, int hd, int n_rot, const float *cs, int adjacent);

    /* Stores one row's key and value (kv_dim f32 each) at `slot` (rounded to the cache type, nearest even; WG_KV_Q8: scale and
     * codes of a block as act_prepare makes them of 32 inputs). */
    void (*kv_store)(const wg_kv_view *kv, int32_t slot, const float *k, const float *v);

    /* Attention of one row for heads [h0,h1) of `heads` query heads over kv_heads kv heads (head h reads kv head
     * h * kv_heads / heads). q, out: heads*hd floats, hd <= WG_MAX_HEAD; out may not overlap q. At least one key.
     * For chunks of 64 keys at absolute positions, ascending:
     *   s_j = lanes16 sum over d of fma(q,k,.) * scale; m' = max(m, max_j s_j); c = exp(m - m') (0 for the first chunk);
     *   w_j = exp(s_j - m'); l = fma(l, c, lanes16 sum of w_j, lane = position % 16); o = o * c, then
     *   o = fma(w_j, v_j, o), j ascending.
     * m = -inf, l = 0, o = 0 at the start; out = o / l.
     * WG_KV_Q8: q is made into codes and scales like a key. s_j = 0; for the blocks of the head ascending: i = exact integer
     * dot of the codes; s_j = fma((float)i * (q's scale * scale), the key's scale, s_j); o = fma(w_j * the value's scale,
     * (float)code, o).
     * Each call reads the whole cache of its heads: with many rows and a long context, call it for all rows of one kv head's
     * query heads before going to the next, so that the cache comes from L2. A short context (a cache that fits L2 whole) is
     * faster with all heads in one call. */
    void (*attention)(const float *q, const wg_row_keys *keys, int heads, int kv_heads, int hd, float scale, float *out, int h0,
                      int h1);

    /* y = silu(gate) * up over n elements, as (g / (1 + exp32(-g))) * u. y may be gate. */
    void (*swiglu)(const float *gate, const float *up, float *y, int n);

    void (*add)(float *x, const float *y, int n); /* x += y */

    /* y[i] = exp(x[i]), our own: kernels/exp.h is its definition; relative error < 2e-7; 0 below -87.3, inf above 88.7.
     * y may be x. */
    void (*exp32)(const float *x, float *y, int n);

    /* ---- rows of probabilities (double). exp is ours (kernels/exp.h; relative error < 1e-15; 0 below -708).
     * softmax: m = max x (x must be finite or -inf, and one of them finite); p_i = exp64(((double)x_i - (double)m) * inv_temp);
     * returns the lanes16 sum of p in double; p is left unnormalised. */
    double (*softmax64)(const float *x, int n, double inv_temp, double *p);
    int (*argmax)(const float *x, int n); /* lowest index on ties; NaN never wins; -1 if all are NaN */
    /* Splits a row at a bound: the indices of the elements >= bound go to id, ascending and no more than `room` of them;
     * *count is how many there are. Returns the lanes16 sum, in double, of exp32((x_i - max) * scale), in float, over the
     * elements below the bound. NaN belong to neither part. */
    double (*split)(const float *x, int n, float bound, float max, float scale, int32_t *id, int room, int *count);
    /* softmax of a row whose largest element is known: p as above, but 0 for NaN, is stored unless it is NULL. Returns the mass
     * (mass.h), and a band of the row on the way. */
    wg_mass (*weigh64)(const float *x, int n, float max, double inv_temp, double *p, wg_band *band);
    /* A prefix of the order (x descending, index ascending) that ends with element `last` of value `edge`, without what is
     * lighter than `lightest`: its mass and how many it has; and the row made of it, times scale, and 0 elsewhere. */
    wg_mass (*kept64)(const float *x, const double *p, int n, float edge, int last, double lightest, int *count);
    void (*keep64)(const float *x, double *p, int n, float edge, int last, double lightest, double scale);
} wg_ops;

#endif
