/* SPDX-License-Identifier: MIT
 * The list of all ops: return type, name, arguments and definition of each; kernels/ops.h has the conventions. Include it
 * after defining two macros, which it undefines at its end:
 *     OP(returns, name, arguments)         an op with a variant for each level (kernels/cpu.h)
 *     OP_ONCE(returns, name, arguments)    an op with the reference alone; defaults to OP */
#ifndef OP_ONCE
#define OP_ONCE OP
#endif

/* Bytes of a packed (n,k) matrix of this type; 0 when the type is not computable or k does not fit its block. */
OP_ONCE(size_t, matrix_bytes, (int type, int n, int k))
/* Packs rows of the file (row-major, each k elements of `type`) into panels [p0,p1). rows: all n file rows. */
OP_ONCE(void, matrix_pack, (int type, int n, int k, const void *rows, void *packed, int p0, int p1))
/* Row i of a packed matrix as f32 (token embeddings): every element as wg_row_to_f32 gives it. */
OP_ONCE(void, matrix_row, (const wg_matrix *w, int i, float *dst))

/* Activations are prepared once per input and shared by all matrices of the same type class. For float weights the
 * prepared form is the f32 rows themselves, k floats apart (so x itself serves as act when ldx == k); the quantised types
 * share one form: per row and 32-block, with x first clamped to +-2^110,
 *   da = max|x| / 127 rounded up to 16 significant bits; q = rint(x * (1/da)), da < 1e-30 counts as zero (then q = 0).
 * act_bytes(type, rows, k): size of the prepared form of `rows` rows (64-byte aligned by the caller).
 * act_prepare: rows [r0,r1) of x (row r at x + r*ldx). Layout within act is the implementation's, the same for all levels;
 * it depends on `rows`: matmul must get the same number. */
OP_ONCE(size_t, act_bytes, (int type, int rows, int k))
OP(void, act_prepare, (int type, const float *x, size_t ldx, int rows, int k, void *act, int r0, int r1))

/* y[m*ldy + n] = sum_k w[n][k] * x[m][k] for m < rows and the outputs of panels [p0,p1) (outputs >= N are not written).
 *   float types: acc = 0; for k ascending: acc = fma(w, x, acc)
 *   f8_e4m3: acc = 0; for blocks of 128 ascending: s = 0; for k ascending in the block: s = fma(value of the code, x, s);
 *   acc = fma(scale, s, acc). A block with a NaN code has the scale NaN, by packing
 *   quantised types, element = value * scale + min: acc = 0; for blocks of 32 ascending: for its parts (one; q2_k, q3_k
 *   and q6_k: two halves of 16, which have their own scales) i = exact integer dot of values and q; t = (float)i * da;
 *   acc = fma(t, scale, acc); types with minima then for its parts acc = fma(da * (float)sum(q), min, acc). scale = d, or
 *   d * small scale; min = m, or -(dmin * small min): exact in f32 */
OP(void, matmul, (const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1))

/* RMSNorm of rows: s = lanes16 sum of fma(x,x,.); r = 1 / sqrt(s/dim + eps); y = (x * r) * weight. y may be x.
 * All divisions and the root are the correctly rounded ones of f32. */
OP(void, rmsnorm, (const float *x, size_t ldx, const float *weight, int dim, float eps, float *y, size_t ldy, int rows))

/* LayerNorm of rows, dim floats apart: mean = lanes16 sum of x / dim; v = lanes16 sum of fma(d,d,.), d = x - mean; r = 1 /
 * sqrt(v/dim + eps); y = fma(d * r, weight, bias). y may be x. */
OP(void, layernorm, (const float *x, const float *weight, const float *bias, int dim, float eps, float *y, int rows))

/* Rotary embedding in place on `heads` heads of width hd in row x. cs: (hd/2) pairs cos,sin of the row's position, only
 * the first n_rot/2 are used. adjacent: pairs (2i, 2i+1), else (i, i + n_rot/2). Elements from n_rot on are left alone.
 *   a' = fma(a, c, -(b*s)); b' = fma(a, s, b*c) */
OP(void, rope, (float *x, int heads, int hd, int n_rot, const float *cs, int adjacent))

/* Stores one row's key and value (kv_dim f32 each) at `slot` (rounded to the cache type, nearest even; WG_KV_Q8: scale and
 * codes of a block as act_prepare makes them of 32 inputs). */
OP(void, kv_store, (const wg_kv_view *kv, int32_t slot, const float *k, const float *v))

/* Attention of one row for the query heads [h0,h1): the definition. q, out: heads*hd floats; out may not overlap q. At least
 * one key. For chunks of 64 keys at absolute positions, ascending:
 *   s_j = lanes16 sum over d of fma(q,k,.) * scale, then with a cap softcap (kernels/act.h), then with slopes (ALiBi; Press et
 *   al. 2022) s_j = fma(slope, distance, s_j), the distance that of wg_key_distance; m' = max(m, max_j s_j); c = exp(m - m') (0
 *   for the first chunk); w_j = exp(s_j - m'); l = fma(l, c, lanes16 sum of w_j, lane = position % 16); o = o * c, then
 *   o = fma(w_j, v_j, o), j ascending.
 * m = -inf, l = 0, o = 0 at the start, or with sinks m = sink, l = 1 (and c = exp(m - m') for the first chunk too); out =
 * o / l.
 * WG_KV_Q8: q is made into codes and scales like a key. s_j = 0; for the blocks of the head ascending: i = exact integer
 * dot of the codes; s_j = fma((float)i * (q's scale * scale), the key's scale, s_j); o = fma(w_j * the value's scale,
 * (float)code, o). */
OP_ONCE(void, attention, (const float *q, const wg_row_keys *keys, const wg_heads *of, float *out, int h0, int h1))

/* The same bits for rows together, a span of chunks at a time, spans ascending (wg_attention of ops.h). Each stage has items
 * that do not depend on each other, so threads may share them in any way; a stage begins when the one before it has ended.
 *   scores   (kv head, chunk, slot): s_j. Products of different chunks do not depend on each other
 *   weights  slot: m, l, c and w_j, the span's chunks ascending
 *   values   (kv head, slice of WG_SLICE elements, slot): o; after the last chunk out = o / l
 * The items are numbered with the slot fastest and the kv head slowest. A range of many slots and adjacent columns shares
 * the loads of keys and values. */
OP(void, attention_scores, (const wg_attention *a, int i0, int i1))
OP(void, attention_weights, (const wg_attention *a, int s0, int s1))
OP(void, attention_values, (const wg_attention *a, int i0, int i1))

/* y = silu(gate) * up over n elements, as (g / (1 + exp32(-g))) * u. y may be gate. */
OP(void, swiglu, (const float *gate, const float *up, float *y, int n))

/* kernels/act.h has the formulas. geglu: y = gelu(gate) * up; clamped_swiglu; gelu, gelu_erf: y = gelu(x); relu2. y may be
 * gate, or x. softcap, and clamp to [-limit, limit]: in place. */
OP(void, geglu, (const float *gate, const float *up, float *y, int n))
OP(void, clamped_swiglu, (const float *gate, const float *up, float *y, int n))
OP(void, gelu, (const float *x, float *y, int n))
OP(void, gelu_erf, (const float *x, float *y, int n))
OP(void, relu2, (const float *x, float *y, int n))
OP(void, clamp, (float *x, float limit, int n))
OP(void, softcap, (float *x, float cap, int n))

OP(void, add, (float *x, const float *y, int n))                  /* x += y */
OP(void, add_scaled, (float *x, float by, const float *y, int n)) /* x = fma(by, y, x) */
OP(void, scale, (float *x, float by, int n))                      /* x *= by */

/* Routing of a row over n experts (Shazeer et al. 2017): e_i = exp32(x_i - max x); p_i = e_i / lanes16 sum of e. The k with the
 * largest x, of equal ones the lower index first, in ascending order of their indices: id, and weight = p, or with `norm`
 * p / s, s the sum of the k p_i, ascending index. With NaN in x: any k of them. */
OP_ONCE(void, route, (const float *x, int n, int k, int norm, int32_t *id, float *weight))

/* y[i] = exp(x[i]), our own: kernels/exp.h is its definition; relative error < 2e-7; 0 below -87.3, inf above 88.7.
 * y may be x. */
OP(void, exp32, (const float *x, float *y, int n))

/* ---- rows of probabilities (double). exp is ours (kernels/exp.h; relative error < 1e-15; 0 below -708).
 * softmax: m = max x (x must be finite or -inf, and one of them finite); p_i = exp64(((double)x_i - (double)m) * inv_temp);
 * returns the lanes16 sum of p in double; p is left unnormalised. */
OP(double, softmax64, (const float *x, int n, double inv_temp, double *p))
OP(int, argmax, (const float *x, int n)) /* lowest index on ties; NaN never wins; -1 if all are NaN */
/* Splits a row at a bound: the indices of the elements >= bound go to id, ascending and no more than `room` of them;
 * *count is how many there are. Returns the lanes16 sum, in double, of exp32((x_i - max) * scale), in float, over the
 * elements below the bound. NaN belong to neither part. */
OP(double, split, (const float *x, int n, float bound, float max, float scale, int32_t *id, int room, int *count))
/* softmax of a row whose largest element is known: p as above, but 0 for NaN, is stored unless it is NULL. Returns the mass
 * (mass.h), and a band of the row on the way. */
OP(wg_mass, weigh64, (const float *x, int n, float max, double inv_temp, double *p, wg_band *band))
/* A prefix of the order (x descending, index ascending) that ends with element `last` of value `edge`, without what is
 * lighter than `lightest`: its mass and how many it has; and the row made of it, times scale, and 0 elsewhere. */
OP(wg_mass, kept64, (const float *x, const double *p, int n, float edge, int last, double lightest, int *count))
OP(void, keep64, (const float *x, double *p, int n, float edge, int last, double lightest, double scale))

#undef OP
#undef OP_ONCE
