/* SPDX-License-Identifier: MIT
 * A device: memory and the operations of forward.c on whole batches. One table of functions per kind of device; forward.c is
 * written once over it. The CPU device splits each operation over its pool and calls kernels/ops.h; sums are never split. */
#ifndef WG_CORE_MODEL_DEVICE_H
#define WG_CORE_MODEL_DEVICE_H

#include "core/base/pool.h"
#include "core/kv/batch.h"
#include "core/model/arch.h"
#include "kernels/rule/rule_kinds.h"
#include "kernels/ops.h"

typedef struct wg_device wg_device;

/* A buffer of floats and a packed matrix in device memory. On the CPU they are plain pointers. */
typedef float *wg_buf;

/* Rotary angles of every position: cos, sin pairs; (positions, n_rot/2, 2). */
typedef struct wg_rope {
    int n_rot;
    bool adjacent;
    const float *cs;
} wg_rope;

/* RMSNorm of rows of `dim` floats, or with a bias, be it zeros, LayerNorm, which fused stages do not have (kernels/ops.h). */
typedef struct wg_norm {
    const float *weight, *bias; /* (dim) */
    int dim;
    float eps;
} wg_norm;

/* The rows of one layer's attention, and where their keys and values are: `space` of the rows' caches, `layer` in it. Queries
 * are (rows, heads, hd), keys and values (rows, kv_heads, hd). */
typedef struct wg_attention_rows {
    const wg_row *row;
    bool windowed; /* these are the rows `within` of the pass */
    int rows, space, layer, heads, kv_heads, hd;
    float scale, cap;   /* of scores (wg_heads of kernels/ops.h), as: */
    const float *slope; /* (heads) in device memory, or NULL, as: */
    const float *sink;
    wg_buf room; /* attention_floats of the device */
} wg_attention_rows;

/* The experts of a layer, and room for a pass. Their prepared inputs lie in act, of gate and up, and hidden_act, of down. */
typedef struct wg_experts {
    const wg_matrix *gate, *up, *down; /* (n) each: (hidden, dim), (hidden, dim), (dim, hidden) */
    int n, used, dim, hidden;
    wg_activation activation;                     /* of the gate; with biases of its products, in device memory, or NULL: */
    const float *gate_bias, *up_bias, *down_bias; /* (n, hidden), (n, hidden), (n, dim) */
    bool normed;                                  /* weights of a row sum to 1 */
    const float *logits;                          /* (rows, n) of the router */
    int32_t *id;                                  /* (rows, used) room, as these: */
    float *weight;                                /* (rows, used) */
    float *picked, *y;                            /* (slots, dim), slots as expert_slots says, or rows */
    float *g, *u;                                 /* (slots, hidden) */
    void *act, *hidden_act;
    const void *const *gates, *const *ups, *const *downs; /* (n) addresses of the matrices' data, in device memory */
    int32_t *grouped;                                     /* (2 slots + rows used) room of a device that has expert_slots */
    int64_t *read;                                        /* counts those whose weights are read; a device may leave it */
    int first, end;                                       /* experts whose matrices are here; those of other ranks come from */
    const float *(*give)(void *user, int i, const float *y, int rows); /* (rows, dim) of expert i; NULL: all are here */
    void *user;
} wg_experts;

/* Sizes of a model's passes. */
typedef struct wg_pass_shape {
    int max_rows, heads, head_dim, vocab, kv_type;
} wg_pass_shape;

/* Device verification of a pass: the sampler chain (wg_sampling of core/dist/sampler.h, in its default order and without
 * penalties) over the pass's rows of logits, then a rule over trees of these rows. All pointers are borrowed until the pass
 * has ended. */
typedef struct wg_verify_spec {
    double temperature, top_p, min_p;
    int top_k;
    wg_rule rule;
    const wg_rule_tree *tree; /* (trees) whose rows are among the pass's rows of logits */
    int trees, q_rows;
    const double *const *q;   /* (q_rows) each (vocab), in host memory; NULL: one-hot, or a row that no node was drawn from */
    const int32_t *q_one_hot; /* (q_rows) the token that has all the mass, or -1 */
    wg_rule_path *path;       /* (trees) out, in host memory */
} wg_verify_spec;

/* One pass: `rows` rows, of which `asked` have logits, under a layer plan of a model opened for max_rows rows. */
struct wg_layer_plan;
typedef struct wg_pass {
    const void *model;
    const struct wg_layer_plan *plan;
    const wg_row *row;
    const wg_row *within; /* the same rows as layers with a window see them; NULL: all layers see `row` */
    int rows, asked, max_rows, space;
    float *logits; /* (asked, width) in host memory, as the stage `head` has it; NULL: logits stay on the device */
    int width;
    const wg_verify_spec *verify; /* verification on the device, instead of logits; NULL: none */
    const struct wg_taps *taps;   /* where its hidden states go (taps.h); NULL: nowhere */
} wg_pass;

/* Numbers of passes, by the way a device with its own memory ran them, since it was opened. */
typedef struct wg_passes_made {
    long replayed; /* replays of a recorded pass */
    long first;    /* launched kernel by kernel: the first pass with its key */
    long launched; /* launched kernel by kernel for another reason: too many rows, /eager, or not recordable */
    long looped;   /* rounds that the device ran without the host (decode_loop.h) */
} wg_passes_made;

typedef struct wg_device_class {
    const char *name;
    size_t (*matrix_bytes)(const wg_device *d, int type, int n, int k); /* packed; 0: cannot be computed with */
    size_t (*act_bytes)(const wg_device *d, int type, int rows, int k); /* what prepare writes */
    /* Matrices whose types have the same number here share a prepared input. */
    int (*prepared)(const wg_device *d, int type);
    /* Packs rows of the file, in parallel. */
    wg_status (*matrix)(wg_device *d, int type, int n, int k, const void *rows, wg_matrix *out, wg_error *err);
    /* Random weights (wg_weights_made) of deviation 1/sqrt(k), drawn in device memory, without a copy; the values differ from
     * those that the host would draw. `draws`: whether a type is supported. NULL: all weights come from the host. */
    bool (*draws)(const wg_device *d, int type);
    wg_status (*matrix_random)(wg_device *d, int type, int n, int k, uint64_t seed, uint32_t stream, wg_matrix *out,
                               wg_error *err);
    void (*matrix_free)(wg_device *d, wg_matrix *m);
    wg_buf (*alloc)(wg_device *d, size_t floats); /* NULL when out of memory */
    void (*free)(wg_device *d, wg_buf b);
    void (*upload)(wg_device *d, wg_buf to, const float *from, size_t floats);
    /* To host memory, after what was launched before; EIO: the device failed. copy: within device memory, no overlap, in order
     * with passes. */
    wg_status (*download)(wg_device *d, float *to, const float *from, size_t floats, wg_error *err);
    void (*copy)(wg_device *d, wg_buf to, const float *from, size_t floats);

    /* Devices with their own memory; NULL for the CPU.
     * attach: allocates for passes of up to max_rows rows over this cache (heads of hd, logits of up to `vocab`).
     * begin: starts the pass that the stages below belong to, until finish. keep_logit_rows: later stages run over the rows
     * with logits only. again: while it returns true the caller calls the stages once more, to launch or to record them; it
     * returns false at once when a recorded pass was replayed. A caller that does not use again calls the stages once. finish:
     * waits for the pass; returns the failure of any stage. */
    wg_status (*attach)(wg_device *d, const wg_kv *kv, const wg_pass_shape *shape, wg_error *err);
    void (*begin)(wg_device *d, const wg_pass *pass);
    bool (*again)(wg_device *d);
    void (*keep_logit_rows)(wg_device *d);
    wg_status (*finish)(wg_device *d, wg_error *err);
    wg_passes_made (*made)(const wg_device *d);
    /* Allocates for device verification by this rule: `trees` trees, *rows rows of p and as many of q. Sets *rows to the number
     * that fits: steps with more rows are verified by the host. NULL: no device verification. */
    wg_status (*verify_open)(wg_device *d, wg_rule_kind rule, int vocab, int trees, int *rows, wg_error *err);
    struct wg_cuda *(*cuda)(const wg_device *d); /* the CUDA device behind it (core/model/cuda/); NULL: of another kind */
    void (*retain)(wg_device *d);                /* one owner more; wg_device_close: one less */
    void (*close)(wg_device *d);

    /* Stages of the forward pass; shapes as in kernels/ops.h, `rows` rows each. They cannot fail. */
    void (*embed)(wg_device *d, const wg_matrix *table, const wg_row *row, int rows, float *x, int dim);
    void (*rmsnorm)(wg_device *d, const float *x, const wg_norm *norm, float *y, int rows);
    void (*prepare)(wg_device *d, int type, const float *x, int rows, int k, void *act);
    /* Several matrices, one prepared input. */
    void (*matmul)(wg_device *d, const wg_matrix *const *w, float *const *y, int n_matrices, const void *act, int rows);
    void (*rope_store)(wg_device *d, const wg_rope *rope, float *q, float *k, const float *v, const wg_attention_rows *at);
    void (*attention)(wg_device *d, const float *q, const wg_attention_rows *at, float *out);
    size_t (*attention_floats)(const wg_device *d, int heads); /* floats that `attention` needs as room; NULL: none */
    void (*swiglu)(wg_device *d, const float *gate, const float *up, float *y, int n, int rows);
    void (*geglu)(wg_device *d, const float *gate, const float *up, float *y, int n, int rows);
    void (*clamped_swiglu)(wg_device *d, const float *gate, const float *up, float *y, int n, int rows);
    void (*add)(wg_device *d, float *x, const float *y, int n, int rows);
    /* Of layers that have them (wg_trait). bias: every row of y (n) += b. norm_heads: rmsnorm in place of the `heads` heads of
     * every row, each norm->dim wide. */
    void (*bias)(wg_device *d, float *y, const float *b, int n, int rows);
    void (*norm_heads)(wg_device *d, float *x, const wg_norm *norm, int heads, int rows);
    void (*scale)(wg_device *d, float *x, float by, int n, int rows); /* x *= by */
    /* x += the row of `table` (positions, dim) of each row's position. */
    void (*positions)(wg_device *d, const float *table, const wg_row *row, int rows, float *x, int dim);
    /* Each row of x (n) is multiplied by the number that `table` (positions) has for its position. */
    void (*scale_positions)(wg_device *d, const float *table, const wg_row *row, int rows, float *x, int n);
    void (*gelu)(wg_device *d, float *x, int n, int rows); /* in place, as these: */
    void (*gelu_erf)(wg_device *d, float *x, int n, int rows);
    void (*relu2)(wg_device *d, float *x, int n, int rows);
    void (*clamp)(wg_device *d, float *x, float limit, int n, int rows);
    /* x += weight * (W_down f(W_gate h + b, W_up h + b) + b), f the gated activation, for each expert of a row (route of
     * kernels/op_list.h), in ascending order of experts. */
    void (*experts)(wg_device *d, const wg_experts *e, const float *h, int rows, float *x);
    int (*expert_slots)(int rows, int used, int n); /* inputs of experts that lie beside each other at most. NULL: rows */
    /* Fused stages, with the bits of the single stages; NULL where a device has only those.
     * norm_prepare: rmsnorm into h, then prepare (h may stay unwritten). matmul_add: x += a product. matmul_swiglu: y =
     * silu(product with gate) * product with up, of one type. */
    void (*norm_prepare)(wg_device *d, int type, const float *x, const wg_norm *norm, float *h, void *act, int rows);
    void (*matmul_add)(wg_device *d, const wg_matrix *w, const void *act, int rows, float *x);
    void (*matmul_swiglu)(wg_device *d, const wg_matrix *gate, const wg_matrix *up, const void *act, int rows, float *y);
    /* Fused stages of few rows, from unprepared rows. false: not supported for so many rows or these types, and nothing was
     * done. NULL: never supported.
     * norm_qkv: norm_prepare, matmul with w (q, k, v), rope_store (only q and the pages are written). norm_swiglu:
     * norm_prepare, matmul_swiglu. prepare_add: prepare, matmul_add. norm_head: rmsnorm, head. */
    bool (*norm_qkv)(wg_device *d, const wg_matrix *const *w, const float *x, const wg_norm *norm, const wg_rope *rope,
                     const wg_attention_rows *at, float *q);
    bool (*norm_swiglu)(wg_device *d, const wg_matrix *gate, const wg_matrix *up, const float *x, const wg_norm *norm, int rows,
                        float *y);
    bool (*prepare_add)(wg_device *d, const wg_matrix *w, const float *y, int rows, float *x);
    bool (*norm_head)(wg_device *d, const wg_matrix *w, const float *x, const wg_norm *norm, int rows);
    /* The last product, y = x w^T (rows, w->n), with its soft cap (0: none), into host memory; act is room for the prepared x.
     * */
    void (*head)(wg_device *d, const wg_matrix *w, const float *x, int rows, void *act, float cap, float *y);
    /* Row i of y is row from[i] of x. */
    void (*gather)(wg_device *d, const float *x, const int32_t *from, int n, float *y, int rows);
    /* Row i of y, whose rows lie `stride` floats apart, is row i of x (n). */
    void (*tap)(wg_device *d, const float *x, int n, float *y, int stride, int rows);
} wg_device_class;

struct wg_device {
    const wg_device_class *class;
    const wg_ops *ops;          /* of the CPU, on every device: sampling and loading run on the CPU */
    wg_pool *pool;              /* borrowed */
    void *state;                /* private to its kind */
    const wg_kv_memory *memory; /* of pages; NULL: host memory */
    double small;               /* stages with fewer multiply-adds run on the calling thread, without a fork-join */
};

/* EINVAL where the environment variable WG_CPU is set to something that is no level: names the levels. Opening a CPU device or
 * an engine checks it. */
wg_status wg_cpu_check(wg_error *err);

/* The CPU device at the level the processor (and WG_CPU) allow; `pool` is borrowed and may be NULL (one thread). EINVAL as
 * wg_cpu_check. */
wg_status wg_device_cpu(wg_device *out, wg_pool *pool, wg_error *err);

/* Opens a device by name. Close it after the models and caches that use it (a model retains it):
 *   cpu            the CPU device
 *   cuda:N         CUDA device N. f16 and bf16 products on tensor cores, attention split over the context
 *   cuda:N/exact   the same device with the bits of the CPU: slower, for comparing
 *   cuda:N/fast    the same device, f16 and bf16 products by cuBLASLt, inputs rounded to 16 bits. The Prefix Law is not kept: a
 *                  row's logits depend on the number of rows of the pass, so drafted texts may differ from plain decoding
 *   .../eager      any of these, every launch made anew instead of passes recorded and replayed: the same bits, for comparing
 *   .../serial     any of these, each kernel beginning when the one before it has ended: the same bits, for comparing
 *   auto           cuda:0, or where that cannot be opened (no driver, too old, no device) the CPU
 * EINVAL: no such name. EUNSUPPORTED: this build, driver or machine has none; the message says which, and what to do. */
wg_status wg_device_open(wg_device *out, const char *name, wg_pool *pool, wg_error *err);
wg_status wg_device_name_check(const char *name, wg_error *err); /* the name alone */
bool wg_device_is_fast(const char *name); /* a legal name of a device that does not keep the Prefix Law */
size_t wg_device_attention_floats(const wg_device *d, int heads);
void wg_device_retain(wg_device *d);
void wg_device_close(wg_device *d); /* of a zeroed one: nothing */

#define WG_DEVICE_NAMES "cpu, cuda:0 (1, ...), cuda:0/exact or /fast, any with /eager, /serial or both behind it, or auto"

#define WG_DEVICE_FAST_SAYS                                                                                                    \
    "does not keep the Prefix Law: texts may differ from plain decoding's, and nothing counts as lossless"

/* Device `ordinal` of a runtime (kernels/cuda/gpu.h): device_cuda.c. */
struct wg_gpu_api;
enum { WG_CUDA_EXACT = 1, WG_CUDA_EAGER = 2, WG_CUDA_SERIAL = 4, WG_CUDA_FAST = 8 };
wg_status wg_device_cuda(wg_device *out, const struct wg_gpu_api *api, int ordinal, unsigned mode, wg_pool *pool,
                         wg_error *err);

#endif
