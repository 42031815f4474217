/* SPDX-License-Identifier: MIT
 * A GPU as the layers above see it: memory, copies and kernels behind one table. There are two: wg_gpu_cuda (the toolkit's
 * runtime) and, in tests, wg_gpu_simt (the same kernels on emulated threads). Everything is ordered by one stream per wg_gpu;
 * only wait() and get() block. Nothing throws; failures of launches and copies are kept and reported by wait().
 *
 * Ways of computing, chosen by the caller per matrix (wg_gpu_layout) and per attention:
 *   exact   the very bits of kernels/ref: all products of all types and, with split == 0, attention too
 *   strict  f16, bf16 and f8 products on tensor cores from matrices in fragment order (below), attention split over blocks of
 *           WG_GPU_SPAN keys at absolute positions that are merged in order. Quantised products are on tensor cores and the
 *           exact ones in both (stripe.h), f32 products the exact ones
 *   fast    f16 and bf16 products by a library (product() below) from plain rows, its inputs rounded to the matrix's type
 * In the first two an output depends on the row's own inputs only, bit for bit: never on rows beside it, pages, trees or launch
 * shapes. A library promises no such thing.
 *
 * Fragment order of an (n, k) matrix of 16-bit elements: n padded to 16, k to WG_GPU_K (zeros); [n / 16][k / 16] tiles of 512
 * bytes: lane 4 r + t holds the 16 bytes {row r: k = 2t, 2t+1; row r + 8: the same; row r: k + 8; row r + 8: k + 8}. That is
 * the A operand of mma.m16n8k16, one 16-byte load a lane. Of f8_e4m3: [n / 16][k / WG_GPU_K] records of WG_GPU_F8_RECORD bytes,
 * four tiles of 16 x 16 codes, 256 bytes each, and f32 scale[8], times 2^8: a code is taken as the half of value * 2^-8. Lane
 * 4 r + t holds two words, word j of inputs 8 j + 2t, 2t+1: bytes 1 and 3 of row r, bytes 0 and 2 of row r + 8. Of the two
 * records of a block the first has the scales of rows 0..7. */
#ifndef WG_KERNELS_CUDA_GPU_H
#define WG_KERNELS_CUDA_GPU_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/cuda/decode.h"
#include "kernels/rule/rule_kinds.h"
#include "kernels/hd.h"
#include "kernels/ops.h"
#include "kernels/train.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    WG_GPU_K = 64, /* inputs of a step of the tensor-core product; fragment matrices are padded to it */
    WG_GPU_F8_RECORD = 16 * WG_GPU_K + 8 * 4,
    WG_GPU_SPAN = 256,              /* keys of one block of split attention, at absolute positions: 4 chunks of WG_CHUNK_KEYS */
    WG_GPU_OWN = 1 + WG_MASK_WORDS, /* the most chunks of a row that are not in its prefix whole */
    WG_GPU_WHY = 512,               /* room for a message */
    WG_GPU_MATRICES = 3,            /* of one product: queries, keys, values */
    WG_GPU_BESTS = 512,             /* pieces in which a product may tell the largest output of a row */
};

/* How a matrix of f16, bf16 or f8_e4m3 lies; others have one layout each and take any. Rows: of f16 and bf16, k padded to
 * WG_GPU_K with zeros. */
typedef enum wg_gpu_layout { WG_GPU_PANELS, WG_GPU_FRAGMENTS, WG_GPU_ROWS } wg_gpu_layout;

/* What is done with a product's sums: y = sum; y += sum; of two matrices, y[0] = silu(sum of the first) * sum of the second;
 * or, of queries, keys and values, what rope_store does. With the bits of the single steps. */
typedef enum wg_gpu_then { WG_GPU_STORE, WG_GPU_ADD, WG_GPU_SWIGLU, WG_GPU_ROTARY } wg_gpu_then;

/* Rows (rows, k) that a product, or norm_prepare, norms (weight: (k) of an RMSNorm; NULL: not) and prepares by itself. */
typedef struct wg_gpu_input {
    const float *x, *weight;
    float eps;
} wg_gpu_input;

/* One row of a batch, on the device; fields as in wg_row of core/kv/batch.h. */
typedef struct wg_gpu_row {
    int32_t token, position;
    int32_t slot; /* of its key and value; -1: a row that fills a batch up, it stores nothing and sees nothing */
    int32_t prefix, tail, sinks, gap;
    int32_t keys;  /* how many it sees */
    int32_t table; /* where its sequence's page table begins among the tables */
    uint64_t anc[WG_MASK_WORDS];
} wg_gpu_row;

/* One layer's pages; as wg_kv_view, the page tables being those of all sequences in a line. */
typedef struct wg_gpu_kv {
    int type, page_slots, kv_dim;
    const int32_t *tables;
    char *pool;
    size_t stride, value_at;
} wg_gpu_kv;

/* Where queries, keys and values go. cs: (positions, n_rot / 2) pairs cos, sin; row: (rows). The first matrix of a product
 * gives queries (0), keys (1) or values (2), the ones behind it what follows; queries go to y, the others to the pages only;
 * rope_store does not read `first`. */
typedef struct wg_gpu_rotary {
    const float *cs;
    int n_rot, adjacent, hd, first;
    const wg_gpu_row *row;
    wg_gpu_kv kv;
} wg_gpu_rotary;

/* Attention of rows. q, out: (rows, heads, hd); scale, cap, slope, sink: of scores, as in wg_heads of kernels/ops.h; most: the
 * most keys of any row; split 0: the bits of kernels/ref; scratch: wg_gpu_attention_bytes; arrived: (rows, heads) zeros, which
 * it leaves as zeros. */
typedef struct wg_gpu_attention {
    const float *q;
    const wg_gpu_row *row;
    wg_gpu_kv kv;
    int rows, most, heads, kv_heads, hd, split;
    float scale, cap;
    const float *slope, *sink;
    float *scratch;
    uint32_t *arrived;
    float *out;
} wg_gpu_attention;

/* Rows of the law of the target (p) and of the draft (q), as sample makes them: (rows, vocab), or the token that has all the
 * mass (-1: none, the row holds). */
typedef struct wg_gpu_laws {
    const double *p, *q;
    const int32_t *p_one_hot, *q_one_hot;
} wg_gpu_laws;

/* Slots to be moved within a pool: where their first piece lies and where it goes, bytes from the pool's begin. No slot is read
 * after it was written. */
enum { WG_GPU_MOVES = 64 };
typedef struct wg_gpu_moves {
    int n;
    size_t to[WG_GPU_MOVES], from[WG_GPU_MOVES];
} wg_gpu_moves;

/* The largest of some outputs of a row, NaN apart, and which it is (the first of equals); at -1: there is none. */
typedef struct wg_gpu_best {
    float value;
    int32_t at;
} wg_gpu_best;

/* What matmul_fused makes of its sums. then: wg_gpu_then; rotary: of WG_GPU_ROTARY, else NULL; best: (rows, WG_GPU_BESTS) of
 * the outputs of one matrix, or NULL. */
typedef struct wg_gpu_output {
    int then;
    const wg_gpu_rotary *rotary;
    wg_gpu_best *best;
} wg_gpu_output;

/* The sampler chain in its usual order, penalties apart: fields as in wg_sampling of core/dist/sampler.h. best: (rows,
 * WG_GPU_BESTS), device memory, of the very logits; NULL: sample looks for itself. */
typedef struct wg_gpu_chain {
    double temperature, top_p, min_p;
    int top_k;
    const wg_gpu_best *best;
} wg_gpu_chain;

/* The experts of rows: (rows, k) which, and their weights. */
typedef struct wg_gpu_chosen {
    const int32_t *id;
    const float *weight;
    int k;
} wg_gpu_chosen;

/* Rows grouped by expert, for a product each: slots in runs of WG_GPU_RUN, each of one expert, experts and rows ascending.
 * row: (slots) the row that stands there, -1: none. expert: (slots / WG_GPU_RUN) of a run, -1: none. slot: (rows, k) where a
 * row stands for each of its experts. */
enum { WG_GPU_RUN = 8 };
typedef struct wg_gpu_groups {
    int32_t *row, *expert, *slot;
    int slots;
} wg_gpu_groups;

/* How many slots are enough for k of n experts each. */
static inline int wg_gpu_slots(int rows, int k, int n)
{
    const int pairs = rows * k, some = pairs < n ? pairs : n;
    return (pairs + some * (WG_GPU_RUN - 1) + WG_GPU_RUN - 1) / WG_GPU_RUN * WG_GPU_RUN;
}

/* Matrices of experts, alike: one of them, and the addresses of the data of all, in device memory. */
typedef struct wg_gpu_stack {
    const wg_matrix *one;
    const void *const *data;
} wg_gpu_stack;

/* Several products of one shape: the next one's matrices lie so many elements behind. */
typedef struct wg_gpu_batch {
    int n;
    size_t a, b, c;
} wg_gpu_batch;

typedef struct wg_gpu wg_gpu;

/* What launches go to. early: a kernel may begin before the one before it has ended, and waits for it by itself (wg_depend of
 * cuda.h); where a device cannot do that, it is 0. */
typedef struct wg_gpu_stream {
    void *at; /* the runtime's */
    int early;
    struct wg_gpu_launches *launches; /* the runtime's: kernels that have been made ready, the first failure */
} wg_gpu_stream;

/* Every kernel: name and arguments. All pointers are device memory; shapes as in kernels/ops.h, `rows` rows each, dense.
 *   train        all items of a job of training (kernels/train.h), in f32; blas() was called before
 *   fill_random  n f32 uniform on [-scale, scale): Philox of (seed; index / 4, 0, stream, 0), word index % 4
 *   draw         random weights of deviation 1/sqrt(k) into a packed matrix of a type that wg_gpu_draws, which is written to:
 *                finite everywhere, never all zeros. drawn: random words lie there already; else Philox of (seed; line of 16
 *                bytes, stream)
 *   gather, gather_rows  from -1: zeros; a row that fills up
 *   tap          row i of y, whose rows lie `stride` floats apart, is row i of x (n)
 *   act_bytes is the room for prepared activations: wg_gpu_act_bytes below
 *   rmsnorm, layernorm  y may be x
 *   positions    x += the row of table of each row's position; gelu, gelu_erf, relu2, clamp: in place
 *   scale_positions  x *= the number of table for each row's position
 *   bias         every row of y += b
 *   route        as in kernels/op_list.h, n <= WG_MAX_EXPERTS; id, weight: (rows, k)
 *   add_expert   x += weight * y of the rows (n floats) that have this expert among their k
 *   group        the groups of rows by `experts` experts; to->slots: wg_gpu_slots
 *   matmul_experts  as matmul, each run of slots with its expert's matrices; act and y have a row for each slot. Runs without
 *                an expert are left out; not of matrices in rows
 *   bias_experts  each slot's row of y (n) += the row of b, (experts, n), of its run's expert
 *   add_experts  x += weight * y of its slot, for each of a row's experts ascending
 *   norm_prepare rmsnorm, then prepare, of what is not in panels
 *   matmul       up to WG_GPU_MATRICES matrices of one type and one k, not in rows, over one prepared input; then: wg_gpu_then
 *   matmul_fused norm_prepare (or prepare), then matmul, of rows that fit (wg_gpu_fits)
 *   move         `count` pieces of `bytes` a slot, `stride` apart; all at multiples of 16 when bytes is one, else of 4 or 2
 *   sample       rows of n logits through the chain: p (rows, n) and the token that has all the mass, or -1 (then p is the row;
 *                else it is undefined), with the bits of core/dist/sampler.c. scratch: wg_gpu_sample_bytes(n) a row
 *   verify       trees by a rule: path[i] is what core/engine's accept of the same name gives for tree[i], p and q (rows, vocab
 *                doubles and points, as sample makes them), decision by decision. scratch: wg_gpu_verify_cells a tree
 *   loop_feed    begins a round (depth 0) and makes the draft model's rows of a depth: two a sequence, then one
 *   loop_draw    the next node of each chain whose last one was fed, from a row of logits, or of q, as decode.h numbers them;
 *                best: as of a chain, of these logits
 *   loop_lookup  begins a round and drafts by looking up the text
 *   loop_nodes   makes the target's rows, length + 1 a sequence; begins the round where nothing is drafted
 *   loop_end     takes the paths into the texts, tells the host, decides whether there is another round */
#define WG_GPU_KERNELS(X)                                                                                                      \
    X(embed, (wg_gpu * g, const wg_matrix *table, int layout, const wg_gpu_row *row, int rows, float *x))                      \
    X(gather, (wg_gpu * g, const float *x, const int32_t *from, int n, float *y, int rows))                                    \
    X(gather_rows, (wg_gpu * g, const wg_gpu_row *x, const int32_t *from, wg_gpu_row *y, int rows))                            \
    X(tap, (wg_gpu * g, const float *x, int n, float *y, int stride, int rows))                                                \
    X(rmsnorm, (wg_gpu * g, const float *x, const float *weight, int dim, float eps, float *y, int rows))                      \
    X(add, (wg_gpu * g, float *x, const float *y, int n, int rows))                                                            \
    X(bias, (wg_gpu * g, float *y, const float *b, int n, int rows))                                                           \
    X(swiglu, (wg_gpu * g, const float *gate, const float *up, float *y, int n, int rows))                                     \
    X(geglu, (wg_gpu * g, const float *gate, const float *up, float *y, int n, int rows))                                      \
    X(clamped_swiglu, (wg_gpu * g, const float *gate, const float *up, float *y, int n, int rows))                             \
    X(softcap, (wg_gpu * g, float *x, float cap, int n, int rows))                                                             \
    X(scale, (wg_gpu * g, float *x, float by, int n, int rows))                                                                \
    X(layernorm, (wg_gpu * g, const float *x, const float *weight, const float *bias, int dim, float eps, float *y, int rows)) \
    X(gelu, (wg_gpu * g, float *x, int n, int rows))                                                                           \
    X(gelu_erf, (wg_gpu * g, float *x, int n, int rows))                                                                       \
    X(relu2, (wg_gpu * g, float *x, int n, int rows))                                                                          \
    X(clamp, (wg_gpu * g, float *x, float limit, int n, int rows))                                                             \
    X(scale_positions, (wg_gpu * g, const float *table, const wg_gpu_row *row, int dim, float *x, int rows))                   \
    X(positions, (wg_gpu * g, const float *table, const wg_gpu_row *row, int dim, float *x, int rows))                         \
    X(route, (wg_gpu * g, const float *x, int n, int k, int norm, int32_t *id, float *weight, int rows))                       \
    X(add_expert, (wg_gpu * g, float *x, const float *y, const wg_gpu_chosen *of, int expert, int n, int rows))                \
    X(group, (wg_gpu * g, const wg_gpu_chosen *of, int experts, const wg_gpu_groups *to, int rows))                            \
    X(matmul_experts, (wg_gpu * g, const wg_gpu_stack *w, float *const *y, int matrices, int layout, const void *act,          \
                       const wg_gpu_groups *by, int then))                                                                     \
    X(bias_experts, (wg_gpu * g, float *y, const float *b, const wg_gpu_groups *by, int n))                                    \
    X(add_experts, (wg_gpu * g, float *x, const float *y, const wg_gpu_chosen *of, const int32_t *slot, int n, int rows))      \
    X(prepare, (wg_gpu * g, int type, int layout, const float *x, int rows, int k, void *act))                                 \
    X(norm_prepare, (wg_gpu * g, int type, int layout, const wg_gpu_input *in, int rows, int k, void *act))                    \
    X(matmul,                                                                                                                  \
      (wg_gpu * g, const wg_matrix *const *w, float *const *y, int matrices, int layout, const void *act, int rows, int then)) \
    X(matmul_fused, (wg_gpu * g, const wg_matrix *const *w, float *const *y, int matrices, const wg_gpu_input *in, int rows,   \
                     const wg_gpu_output *out))                                                                                \
    X(rope_store,                                                                                                              \
      (wg_gpu * g, const wg_gpu_rotary *to, float *q, float *k, const float *v, int rows, int heads, int kv_heads))            \
    X(attention, (wg_gpu * g, const wg_gpu_attention *of))                                                                     \
    X(move, (wg_gpu * g, const wg_gpu_moves *moves, char *pool, size_t bytes, size_t stride, int count))                       \
    X(sample,                                                                                                                  \
      (wg_gpu * g, const float *x, int n, const wg_gpu_chain *chain, double *p, int32_t *point, uint64_t *scratch, int rows))  \
    X(verify, (wg_gpu * g, const wg_rule *rule, const wg_rule_tree *tree, int trees, int vocab, const wg_gpu_laws *laws,       \
               double *scratch, wg_rule_path *path))                                                                           \
    X(loop_feed, (wg_gpu * g, const wg_gpu_decode_loop *loop, int depth, wg_gpu_row *row))                                     \
    X(loop_draw, (wg_gpu * g, const wg_gpu_decode_loop *loop, int depth, int vocab, const float *logits,                       \
                  const wg_gpu_best *best, const double *q, const int32_t *q_one_hot))                                         \
    X(loop_lookup, (wg_gpu * g, const wg_gpu_decode_loop *loop))                                                               \
    X(loop_nodes, (wg_gpu * g, const wg_gpu_decode_loop *loop, wg_gpu_row *row))                                               \
    X(loop_end, (wg_gpu * g, const wg_gpu_decode_loop *loop))                                                                  \
    X(train, (wg_gpu * g, wg_train_part which, const void *job))                                                               \
    X(draw, (wg_gpu * g, const wg_matrix *w, int layout, uint64_t seed, uint32_t stream, int drawn))                           \
    X(fill_random, (wg_gpu * g, uint64_t seed, uint32_t stream, float scale, float *x, size_t n))

typedef struct wg_gpu_api {
    const char *name;
    /* Device `ordinal`. 0, or -1 and why (no driver, too old, no such device, out of its memory ...). */
    int (*open)(wg_gpu *g, int ordinal, char why[WG_GPU_WHY]);
    void (*close)(wg_gpu *g);
    void *(*alloc)(wg_gpu *g, size_t bytes); /* NULL when out of memory; contents undefined */
    /* The same, for matrices, which kernels read before wg_depend(): between one that writes such memory and the next that
     * reads it lies a copy or wait(). */
    void *(*alloc_weights)(wg_gpu *g, size_t bytes);
    void (*free)(wg_gpu *g, void *p);      /* NULL is fine */
    void *(*pin)(wg_gpu *g, size_t bytes); /* host memory that copies reach directly */
    void (*unpin)(wg_gpu *g, void *p);
    /* Zeroed host memory that kernels write while the host reads it: *device is where it lies for them. */
    void *(*map)(wg_gpu *g, size_t bytes, void **device);
    void (*unmap)(wg_gpu *g, void *p);
    size_t (*room)(wg_gpu *g);                                            /* bytes of device memory that are free now */
    void (*put)(wg_gpu *g, void *device, const void *host, size_t bytes); /* pinned: unchanged until wait() */
    void (*get)(wg_gpu *g, void *host, const void *device, size_t bytes); /* blocks */
    void (*copy)(wg_gpu *g, void *to, const void *from, size_t bytes);    /* within the device; no overlap */
    int (*words)(wg_gpu *g, uint64_t seed, void *to, size_t n); /* random, 32 bits each, by a library. -1: there is none */
    /* Products by a library: library() makes it ready, 0, or -1 and why there is none; product() is y = x w^T, or with add
     * y += x w^T, of w in rows and prepared x. The order of its sums may be another for another number of rows. */
    int (*library)(wg_gpu *g, char why[WG_GPU_WHY]);
    void (*product)(wg_gpu *g, const wg_matrix *w, const void *act, int rows, int add, float *y);
    /* Products of training by cuBLAS, in f32 without TF32: blas() looks for the library, 0, or -1 and why there is none; gemm()
     * does one product, or with `batch` several. The same bits in every run on one kind of card with one library. */
    int (*blas)(wg_gpu *g, char why[WG_GPU_WHY]);
    void (*gemm)(wg_gpu *g, const wg_gemm *of, const wg_gpu_batch *batch);
    void (*clear)(wg_gpu *g, void *device, size_t bytes); /* to zeros */
    int (*wait)(wg_gpu *g, char why[WG_GPU_WHY]);         /* all done? 0, or -1 and the first failure since the last wait */
    int (*idle)(wg_gpu *g);                               /* whether wait() would not block */

    /* Graphs: what is called between record() and recorded() (kernels, product, copy, clear; nothing else) does not run but is
     * kept, its arguments by value, to be replayed as one piece. So what may differ between replays lies in device memory.
     * recorded() gives NULL and why when nothing could be kept; recorded_loop() makes of the same a piece that runs again as
     * long as it leaves the word at `again` (device memory) not zero. */
    void (*record)(wg_gpu *g);
    void *(*recorded)(wg_gpu *g, char why[WG_GPU_WHY]);
    void *(*recorded_loop)(wg_gpu *g, const int32_t *again, char why[WG_GPU_WHY]);
    void (*replay)(wg_gpu *g, void *graph);
    void (*forget)(wg_gpu *g, void *graph); /* NULL is fine; not while it runs */
#define X(name, args) void(*name) args;
    WG_GPU_KERNELS(X)
#undef X
} wg_gpu_api;

struct wg_gpu {
    const wg_gpu_api *api;
    wg_gpu_stream stream;
    int ordinal, sm; /* sm: 90 for compute capability 9.0 */
    int sms;         /* multiprocessors */
    size_t shared;   /* bytes of shared memory that one block may take */
    size_t memory;   /* bytes in all */
    void *random;    /* the library's generator behind words(), made on first use */
    void *products;  /* what library() made */
    void *blas;      /* what blas() made */
    char card[128];
    char failed[WG_GPU_WHY]; /* the first failure that wait() has not returned yet; empty: none */
};

/* The toolkit's runtime; NULL in a build without it (kernels/cuda.c or kernels/cuda/runtime.cu). */
const wg_gpu_api *wg_gpu_cuda(void);

#ifdef __cplusplus
}
#endif

/* ---- sizes */

WG_HD static inline int wg_gpu_is_half(int type) { return type == WG_F16 || type == WG_BF16; }
static inline int wg_gpu_has_fragments(int type) { return wg_gpu_is_half(type) || type == WG_F8_E4M3; }
WG_HD static inline size_t wg_gpu_k_padded(int k) { return ((size_t)k + WG_GPU_K - 1) / WG_GPU_K * WG_GPU_K; }

/* Where a stripe of f8_e4m3 holds the code of row r, input k, and the scale of row r, block b. */
WG_HD static inline int wg_gpu_f8_at(int r, int k)
{
    const int lane = r % 8 * 4 + k % 8 / 2;
    return k / WG_GPU_K * WG_GPU_F8_RECORD + k % WG_GPU_K / 16 * 256 + lane * 8 + k % 16 / 8 * 4 + k % 2 * 2 + (r < 8);
}
WG_HD static inline int wg_gpu_f8_scale_at(int r, int b)
{
    return (b * (WG_F8_RUN / WG_GPU_K) + r / 8) * WG_GPU_F8_RECORD + 16 * WG_GPU_K + r % 8 * 4;
}
WG_HD static inline size_t wg_gpu_f8_stripe(int k) { return (size_t)(k / WG_GPU_K) * WG_GPU_F8_RECORD; }

/* A packed matrix: panels of 32 outputs (f32; others by wg_gpu_layout), stripes of 16, or rows; units u0 .. u1-1 of it from
 * the rows of a file (kernels/cuda_pack.c). 0 bytes: cannot be computed with. */
static inline int wg_gpu_in_panels(int type, int layout)
{
    return type == WG_F32 || (wg_gpu_has_fragments(type) && layout == WG_GPU_PANELS);
}
static inline int wg_gpu_in_rows(int type, int layout) { return wg_gpu_is_half(type) && layout == WG_GPU_ROWS; }
static inline int wg_gpu_draws(int type)
{
    return type == WG_F32 || wg_gpu_is_half(type) || (type >= WG_Q4_0 && type <= WG_Q8_0) ||
           (type >= WG_Q4_K && type <= WG_Q6_K) || type == WG_IQ4_NL;
}
static inline int wg_gpu_units(int type, int layout, int n)
{
    const int each = wg_gpu_in_panels(type, layout) ? WG_PANEL : wg_gpu_in_rows(type, layout) ? 1 : 16;
    return (n + each - 1) / each;
}
#ifdef __cplusplus
extern "C" {
#endif
size_t wg_gpu_matrix_bytes(int type, int layout, int n, int k);
void wg_gpu_pack(const wg_matrix *w, int layout, const void *rows, void *packed, int u0, int u1);
#ifdef __cplusplus
}
#endif

/* Prepared activations of `rows` rows:
 *   float types in panels: none, the rows themselves are taken
 *   in fragments: each input as the sum of two 16-bit numbers (its rounding, and the rounding of what is left): two
 *     bf16 for bf16 weights, two f16 for f16 and f8_e4m3, after rows were scaled by a power of
 *     two: [2][rows][k padded] elements, then [rows] f32 to multiply results with
 *   in rows: each input's nearest number of the matrix's type, [rows][k padded] elements
 *   quantised: [rows][k] s8, then [rows][blocks] f32 da, then as many f32 das, s32 sum, s32 low, as in kernels/layout.h;
 *     blocks: of 32 inputs, rounded up to 4 */
WG_HD static inline size_t wg_gpu_act_blocks(int k) { return ((size_t)k / 32 + 3) / 4 * 4; }
static inline size_t wg_gpu_act_bytes(int type, int layout, int rows, int k)
{
    const size_t r = (size_t)rows;
    if (wg_gpu_in_panels(type, layout)) return r * (size_t)k * 4;
    if (wg_gpu_in_rows(type, layout)) return r * wg_gpu_k_padded(k) * 2;
    if (wg_gpu_has_fragments(type)) return (2 * r * wg_gpu_k_padded(k) * 2 + r * 4 + 255) / 256 * 256;
    return r * (size_t)k + r * wg_gpu_act_blocks(k) * 16;
}

/* Which rows a product prepares by itself, each block all of them, in its shared memory: few, and where they fit beside the
 * weights on their way. A row takes as much as its f32 numbers, whatever it becomes. */
enum { WG_GPU_FUSED_ROWS = 8, WG_GPU_FUSED_RING = 52 << 10 };
WG_HD static inline int wg_gpu_line_bytes(int k) { return (k + 127) / 128 * 512 + 16; }
static inline int wg_gpu_fits(const wg_gpu *g, int type, int layout, int rows, int k)
{
    return !wg_gpu_in_panels(type, layout) && !wg_gpu_in_rows(type, layout) && rows <= WG_GPU_FUSED_ROWS && k % 4 == 0 &&
           WG_GPU_FUSED_RING + (size_t)rows * (size_t)wg_gpu_line_bytes(k) <= g->shared;
}

/* Whether that is quicker than a kernel of its own in front of the product. Every block prepares rows * k numbers, the other
 * kernel a row a block, beside the end of a launch that is waited for. The bytes of the weights stand on neither side: either
 * way the rings fill while rows are prepared. Nanoseconds, of a launch or for 1024 numbers: arithmetic, by counting
 * instructions (docs/gpu.md), not measured on a card; to be replaced by what `gpu_suite probe kernels` measures. The chain of a
 * norm's sum is as long on both sides. tells: the sampler is spared a kernel too. */
enum {
    WG_GPU_LAUNCH_NS = 2000,
    WG_GPU_LOOK_NS = 2500,
    WG_GPU_HALVE_NS = 350,
    WG_GPU_QUANTISE_NS = 260,
    WG_GPU_HALVE_ROW_NS = 150,
    WG_GPU_QUANTISE_ROW_NS = 900
};
static inline int wg_gpu_pays(int type, int rows, int k, int normed, int tells)
{
    const int halves = wg_gpu_has_fragments(type), one_row = halves ? WG_GPU_HALVE_ROW_NS : normed ? WG_GPU_QUANTISE_ROW_NS : 0;
    const int64_t here = (int64_t)rows * k * (halves ? WG_GPU_HALVE_NS : WG_GPU_QUANTISE_NS);
    return here <= (int64_t)k * one_row + 1024 * (int64_t)(WG_GPU_LAUNCH_NS + (tells ? WG_GPU_LOOK_NS : 0));
}

/* Whether such a product can turn heads: both numbers of a pair must come out of one stripe of 16, or of two that differ by
 * whole stripes. */
static inline int wg_gpu_turns(int hd, int n_rot, int adjacent)
{
    return adjacent ? hd % 2 == 0 : hd % 16 == 0 && (n_rot % 32 == 0 || n_rot == 16);
}

/* Partial results of split attention: per row, head, and span (or chunk that no other row sees) hd outputs, the sum of weights
 * and the maximum, in a multiple of 16 bytes where hd is one of 4. */
WG_HD static inline int wg_gpu_spans(int keys) { return (keys + WG_GPU_SPAN - 1) / WG_GPU_SPAN; }
static inline size_t wg_gpu_attention_bytes(int rows, int heads, int hd, int most)
{
    return (size_t)rows * (size_t)heads * ((size_t)wg_gpu_spans(most) + WG_GPU_OWN) * ((size_t)hd + 4) * 4;
}

/* Room to sort n in: a power of two. */
WG_HD static inline size_t wg_gpu_sorted(int n)
{
    size_t room = 1;
    while (room < (size_t)n) room *= 2;
    return room;
}

/* Of a row that is sampled: what its blocks tell each other, and keys of a sort of n tokens. */
enum { WG_GPU_SAMPLE_STATE = 21 << 10 };
static inline size_t wg_gpu_sample_bytes(int n)
{
    return WG_GPU_SAMPLE_STATE + (wg_gpu_sorted(n) * sizeof(uint64_t) + 15) / 16 * 16;
}

/* Doubles that a rule works in, a tree: two rows; or a row, bets to sort and the blocks of their scores. */
WG_HD static inline size_t wg_gpu_verify_cells(wg_rule_kind rule, int vocab)
{
    const size_t V = (size_t)vocab;
    return rule == WG_RULE_MULTIPATH || rule == WG_RULE_OPTIMAL ? V + 2 * wg_gpu_sorted(vocab) + 2 * V : 2 * V;
}

#endif
