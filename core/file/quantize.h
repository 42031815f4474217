/* SPDX-License-Identifier: MIT
 * Quantisation, and other changes of element types: a view over open weights whose matrices are converted when their bytes are
 * needed. Writing a file in another type and loading a model in another type use the same view, so their bits are the same. */
#ifndef WG_CORE_FILE_QUANTIZE_H
#define WG_CORE_FILE_QUANTIZE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"
#include "core/base/pool.h"
#include "core/file/weights.h"

/* ---- pruning of weights by magnitude, within each row: the share that is smallest, or all but the N largest of every M
 * consecutive ones (Mishra et al. 2021, "Accelerating Sparse Deep Neural Networks"). Pruned weights are +0. */

enum { WG_PRUNE_OF = 32 };

/* {0}: nothing is pruned. */
typedef struct wg_prune {
    int keep, of; /* N and M of N:M; of 0: by share */
    double share; /* of a row's weights, below 1 */
} wg_prune;

#define WG_PRUNE_DOC                                                                                                           \
    "N:M (N of every M consecutive weights stay, such as 2:4), or a share of each row from 0 to 0.99, such as 0.5"

static inline bool wg_prune_any(const wg_prune *p) { return p->of > 0 || p->share > 0; }

/* Parses n bytes. EINVAL: what was expected. */
wg_status wg_prune_parse(wg_prune *out, const char *text, size_t n, wg_error *err);

/* Prunes k weights in place; of equal magnitudes the later ones go. NaN counts as the largest. k that is no multiple of M: what
 * is left over stays. room: (k) scratch. */
void wg_prune_row(const wg_prune *p, float *row, size_t k, float *room);

/* ---- types */

enum { WG_QUANTIZE_KEEPS = 32, WG_QUANTIZE_PATTERN = 64 };

/* The conversion of a tensor: the root mean square of its elements and of their errors. */
typedef struct wg_quantize_result {
    const char *name;
    int from, to;
    int64_t elements;
    double rms, error; /* 0 where the tensor stayed */
    bool stayed;
    double lost, lost_rounded; /* share of the outputs lost, by the maker and by plain rounding; 0: the maker knows no inputs */
} wg_quantize_result;

/* Makes the bytes of a matrix in place of rounding its rows one by one; sets *made, and lost of r, or leaves it to the view. */
typedef wg_status wg_quantize_maker(void *user, const wg_tensor *from, const wg_tensor *to, void *dst, wg_quantize_result *r,
                                    bool *made, wg_error *err);

/* Which type a matrix gets: that of the first pattern (of fnmatch) that its name matches, else `type`. Norms, biases,
 * learned positions and routers keep theirs. `mixed`: where `type` has fewer than six bits, the output head (the embedding
 * where it is the head) is q6_k, or q8_0 where its rows are no multiple of 256. With q8_2of4 embedding and head are q8_0. Rows
 * that are no multiple of the type's block: q8_0 instead of a K type if they are one of 32; else a float type stays, and
 * another becomes f16. */
typedef struct wg_quantize {
    int type; /* of WG_WRITABLE_TYPES */
    bool mixed;
    wg_prune prune;        /* of the matrices of layers, before they are converted; embedding and head stay whole */
    wg_quantize_maker *by; /* called for each matrix; NULL: none */
    void *user;            /* of by; both as long as the view */
    int keeps;
    struct {
        char pattern[WG_QUANTIZE_PATTERN];
        int type;
    } keep[WG_QUANTIZE_KEEPS];
} wg_quantize;

#define WG_QUANTIZE_DOC                                                                                                        \
    "weights are converted when they are loaded: TYPE[,PATTERN=TYPE]..., such as q8_0 or q4_k,output.weight=f16; prune=2:4 "   \
    "or "                                                                                                                      \
    "prune=0.5 among them prunes the layers before"

/* " (did you mean 'q4_k'?)" of the type that a name of n bytes nearly is, or "". */
enum { WG_QUANTIZE_HINT = 40 };
const char *wg_quantize_near(const char *name, size_t n, char hint[WG_QUANTIZE_HINT]);

/* Parses TYPE[,PATTERN=TYPE]...[,prune=SPEC]; mixed is set. EINVAL: what is wrong, and what was expected. */
wg_status wg_quantize_parse(wg_quantize *out, const char *text, wg_error *err);
/* Adds one PATTERN=TYPE. */
wg_status wg_quantize_keep(wg_quantize *q, const char *text, wg_error *err);

/* Called for each tensor. */
typedef void wg_quantize_report_fn(void *user, const wg_quantize_result *r);

/* The view. It takes `in` over, also on failure; the pool is borrowed until close and may be NULL. At most the converted
 * bytes of one tensor and a row for each thread are in memory, if the reader releases what it has read. Tensors that keep
 * their type are not copied. Errors here: EINVAL (a pattern that no matrix matches), EUNSUPPORTED (a tensor without a
 * converter, by name), ENOMEM. wg_weights_need of the view: EMODEL (NaN, infinity, or a number too large for the type, by
 * row and column). */
wg_status wg_quantize_open(wg_weights **out, wg_weights *in, const wg_quantize *q, wg_pool *pool, wg_error *err);

/* Opens the file or folder at `path`, as such a view where `quantize` says so (the text of wg_quantize_parse; NULL, "": as it
 * is). Errors: those of wg_weights_open; EINVAL. */
wg_status wg_quantize_open_file(wg_weights **out, const char *path, const char *quantize, wg_pool *pool, wg_error *err);

/* From now on each converted tensor is read back and reported when it has been needed. Of such a view alone. */
void wg_quantize_report(wg_weights *view, wg_quantize_report_fn *report, void *user);

#endif
