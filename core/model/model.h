/* SPDX-License-Identifier: MIT
 * A transformer: weights bound to layers and placed on a device, and its wg_lm. */
#ifndef WG_CORE_MODEL_MODEL_H
#define WG_CORE_MODEL_MODEL_H

#include "core/comm/comm.h"
#include "core/model/arch.h"
#include "core/model/device.h"
#include "core/model/lm.h"

typedef struct wg_model wg_model;

enum { WG_MODEL_ROWS = 512 }; /* of one pass, by default */

/* The ranks that compute a model together (ranks.h), and its number among theirs. */
typedef struct wg_model_ranks {
    wg_comm *comm; /* borrowed until the model is closed; NULL: this process alone */
    uint32_t number;
    int pipeline; /* stages of layers; 0, 1: all ranks have all layers */
} wg_model_ranks;

typedef struct wg_model_options {
    int kv_type;         /* WG_F32, WG_F16, WG_BF16 or WG_KV_Q8 */
    int max_rows;        /* rows of one pass; larger batches are refused. 0: WG_MODEL_ROWS */
    int context;         /* 0: the file's */
    bool allow_nan;      /* accept NaN and infinities in weights */
    const int32_t *head; /* of the output head only these rows are kept and computed, in this order: logits are n_head wide */
    int n_head;          /* NULL, 0: all rows */
    const wg_matrix *embedding; /* of the target of a cut student (arch.h), borrowed until the model is closed; else NULL */
    wg_model_ranks ranks;
} wg_model_options;

/* Loads from an open file (which may be closed afterwards). `device` is copied and retained until the model is closed, its
 * pool borrowed. Errors: EMODEL (missing tensor, wrong shape, NaN: each named, with what was expected), EUNSUPPORTED (type or
 * family), ENOMEM. */
wg_status wg_model_open(wg_model **out, const wg_weights *w, const wg_device *device, const wg_model_options *opt,
                        wg_error *err);
void wg_model_close(wg_model *m); /* NULL is fine */

/* Checks what wg_model_open checks before it reads weights: hyper-parameters, options, and missing, surplus or wrong tensors.
 * Sets *out. */
wg_status wg_model_check(const wg_weights *w, const wg_model_options *opt, wg_arch *out, wg_error *err);
/* EUNSUPPORTED: the file is a student without the embedding of its target (arch.h), and cannot run without that. */
wg_status wg_model_check_alone(const wg_weights *w, wg_error *err);

const wg_arch *wg_model_arch(const wg_model *m);
wg_lm *wg_model_lm(wg_model *m);                        /* owned by the model */
int wg_model_head_rows(const wg_model *m);              /* width of a row of logits: the vocabulary, or n_head */
size_t wg_model_bytes(const wg_model *m);               /* weights in memory, of this rank */
const wg_matrix *wg_model_embedding(const wg_model *m); /* (vocab, dim), unscaled; NULL: not in this rank's memory */
const wg_matrix *wg_model_output(const wg_model *m);    /* (vocab, dim) of the logits, the embedding of a tied model; NULL: the
                                                         * same, or not all of it */
/* Bytes of weights that a pass reads: layers with `experts` experts each, and head; not a separate embedding. */
size_t wg_model_read_bytes(const wg_model *m, double experts);
/* The expected number of a layer's experts that `rows` rows use if they choose each with equal probability; 0: no experts. */
double wg_model_experts_expected(const wg_model *m, int rows);
/* wg_model_read_bytes with this number. */
size_t wg_model_pass_bytes(const wg_model *m, int rows);
/* Experts per layer whose weights all passes so far have read, a mean; 0: no experts, or a device that does not count them. */
double wg_model_experts_read(const wg_model *m);

#endif
