/* SPDX-License-Identifier: MIT
 * The CPU operations of a transformer, as a table of function pointers; kernels/op_list.h defines each operation. The scalar
 * functions in ref/ are the specification, bit for bit: a variant that differs in one bit is wrong (kernelcheck compares
 * with memcmp). Determinism class of every op: fixed order. An output depends on its inputs only, not on the other rows of
 * the call, on tiles or on threads. The bits are specified for finite inputs of any size, denormals included; the payload of
 * a NaN after an overflow is not.
 *
 * Conventions. All floats are IEEE f32, fused multiply-adds are explicit (fma), nothing else is contracted. "lanes16" means:
 * sixteen partial results that start at +0, element i goes to lane i % 16 in ascending order (a lane without elements stays
 * +0), then lanes are folded l += l+8, l+4, l+2, l+1. max is (a > b ? a : b); its order does not change a result. The caller
 * distributes work over threads: every op works on a part (rows, heads [h0,h1) or panels [p0,p1)), and parts are disjoint.
 * No op allocates. Pointers to rows are 64-byte aligned only where stated; K and N may be any positive size. */
#ifndef WG_KERNELS_OPS_H
#define WG_KERNELS_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/mask.h"
#include "kernels/mass.h"
#include "kernels/types.h"

enum {
    WG_PANEL = 32,      /* output rows of a weight panel */
    WG_CHUNK_KEYS = 64, /* keys per attention chunk, at absolute positions 64c .. 64c+63 */
    WG_MAX_HEAD = 256,  /* widest attention head */
    WG_MAX_EXPERTS = 512,
    WG_KV_Q8 = WG_I8, /* type of a cache of 8-bit codes: elements are code * scale, */
    WG_SLICE = 32,    /* elements of a head whose values are summed together */
    WG_KV_BLOCK = 64, /* with a scale for each WG_KV_BLOCK elements of a head (its last block may be shorter) */
};

/* ---- packed weights: panels of WG_PANEL output rows, padded with zeros when N % 32 (layouts of docs/kernels.md).
 *   f32, f16, bf16: [panel][k][32 rows], element type as in the file (products are exact conversions to f32)
 *   f8_e4m3: [panel][block of 128 k]{ f32 scale of each row, [128][32 rows] codes }, K % 128 == 0
 *   quantised types: [panel][block of 32 k]{ scales, codes }, K % 32 == 0 (K types: % 256)  */
typedef struct wg_matrix {
    int type;         /* wg_type: f32, f16, bf16, f8_e4m3 or one of the quantised types above */
    int n, k;         /* outputs (rows of the file's matrix), inputs */
    const void *data; /* packed, 64-byte aligned */
} wg_matrix;

/* The elements of a row with low <= x_i <= high, ascending: n of them, listed when n + 16 <= room (elements after the list
 * may be overwritten, up to room); and the mass of p_i over x_i > high. */
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
    int type; /* WG_F32, WG_F16, WG_BF16 or WG_KV_Q8 */
    int page_slots, kv_dim;
    const int32_t *page; /* the sequence's page table */
    char *pool;          /* start of page 0's bytes of this layer */
    size_t stride;       /* bytes between pages */
    size_t value_at;     /* bytes from the keys of a page to its values */
    int head_dim;        /* WG_KV_Q8: of kv_dim, a multiple of it */
    size_t scale_at;     /* WG_KV_Q8 */
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

/* The heads of an attention layer: query head h reads the keys and values of head h * kv_heads / heads. */
typedef struct wg_heads {
    int heads, kv_heads; /* of queries; of keys and values */
    int hd;              /* elements of a head, <= WG_MAX_HEAD */
    float scale;         /* of scores: 1 / sqrt(hd) in most families */
    float cap;           /* scores are limited to it by softcap (kernels/act.h); 0: not */
    const float *slope;  /* (heads) a key's score is lower by so much for each position that it is further back; NULL: not */
    const float *sink;   /* (heads) the score of a key before all others, whose value is zero (Xiao et al. 2023); NULL: none */
} wg_heads;

/* The keys one row sees, in position order: slots 0..prefix-1, then slots tail + b for the set bits b of anc, ascending.
 * The row's own slot is the last of them. A key's position is its index in this list. A sparse view leaves the slots
 * sinks..sinks+gap-1 out, 0 <= sinks, sinks + gap <= prefix; with gap 0 there is none. */
typedef struct wg_row_keys {
    const wg_kv_view *kv;
    int32_t prefix, tail;
    wg_mask anc;
    int32_t sinks, gap;
} wg_row_keys;

static inline int wg_keys_seen(const wg_row_keys *k) { return k->prefix - k->gap + wg_mask_count(&k->anc); }

/* From the row to key i of the `seen`, in positions: 0 of the last, which is the row's own, else negative. */
static inline int wg_key_distance(const wg_row_keys *k, int seen, int i)
{
    return i - (seen - 1) - (i < k->sinks ? k->gap : 0);
}

/* Attention of rows, one span of chunks: its operands and what stages of op_list.h hand on. A slot is a row and a query head:
 * slot (k * rows + r) * group + g is head k * group + g of row r, group = heads / kv_heads, a whole number. Slots of a kv head
 * whose rows see the same keys in a chunk read them once. */
typedef struct wg_attention {
    const float *q;          /* row r at q + r * heads*hd */
    float *out;              /* the same; may not overlap q */
    const wg_row_keys *keys; /* (rows), each at least one key */
    const wg_heads *of;
    int rows;
    int first, chunks, all; /* the span: chunks first .. first + chunks-1 of `all`, those of the row with the most keys */
    float (*score)[WG_CHUNK_KEYS]; /* (chunks, slots) scores, then weights */
    float *c;                      /* (chunks, slots) what the outputs are multiplied by before a chunk */
    float *m, *l;                  /* (slots) largest score and sum of the weights; kept from span to span */
} wg_attention;

static inline int wg_key_chunks(int keys) { return (keys + WG_CHUNK_KEYS - 1) / WG_CHUNK_KEYS; }
static inline int wg_slices(int hd) { return (hd + WG_SLICE - 1) / WG_SLICE; }

/* Slots of a kv head; items of the stages. */
static inline int wg_attention_shared(const wg_attention *a) { return a->rows * (a->of->heads / a->of->kv_heads); }
static inline int wg_attention_slots(const wg_attention *a) { return a->rows * a->of->heads; }
/* The query head of a slot. */
static inline int wg_attention_head(const wg_attention *a, int slot)
{
    const int group = a->of->heads / a->of->kv_heads;
    return slot / wg_attention_shared(a) * group + slot % group;
}
static inline int wg_score_items(const wg_attention *a) { return wg_attention_slots(a) * a->chunks; }
static inline int wg_value_items(const wg_attention *a) { return wg_attention_slots(a) * wg_slices(a->of->hd); }

/* Keys of row r in chunk `chunk`: 0 when the row has fewer chunks. */
static inline int wg_chunk_size(const wg_row_keys *k, int chunk)
{
    const int left = wg_keys_seen(k) - chunk * WG_CHUNK_KEYS;
    return left < 0 ? 0 : left < WG_CHUNK_KEYS ? left : WG_CHUNK_KEYS;
}

/* The table of a level. */
typedef struct wg_ops {
    const char *name;
#define OP(returns, op, arguments) returns(*op) arguments;
#include "kernels/op_list.h"
} wg_ops;

#endif
