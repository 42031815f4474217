/* SPDX-License-Identifier: MIT
 * A transformer: weights bound to layers and placed on a device, and its wg_lm. */
#ifndef WG_CORE_MODEL_MODEL_H
#define WG_CORE_MODEL_MODEL_H

#include "core/model/arch.h"
#include "core/model/device.h"
#include "core/model/lm.h"

typedef struct wg_model wg_model;

enum { WG_MODEL_ROWS = 512 }; /* of one pass, by default */

typedef struct wg_model_options {
    int kv_type;         /* WG_F32, WG_F16, WG_BF16 or WG_KV_Q8 */
    int max_rows;        /* rows of one pass; larger batches are refused. 0: WG_MODEL_ROWS */
    int context;         /* 0: the file's */
    bool allow_nan;      /* accept NaN and infinities in weights */
    const int32_t *head; /* of the output head only these rows are kept and computed, in this order: logits are n_head wide */
    int n_head;          /* NULL, 0: all rows */
} wg_model_options;

/* Loads from an open file (which may be closed afterwards). `device` is copied and retained until the model is closed, its
 * pool borrowed. Errors: EMODEL (missing tensor, wrong shape, NaN: each named, with what was expected), EUNSUPPORTED (type or
 * family), ENOMEM. */
wg_status wg_model_open(wg_model **out, const wg_weights *w, const wg_device *device, const wg_model_options *opt,
                        wg_error *err);
void wg_model_close(wg_model *m); /* NULL is fine */

/* What wg_model_open refuses before it reads weights: hyper-parameters, options, tensors that are missing, too many, or of a
 * wrong shape or type. Sets *out. */
wg_status wg_model_check(const wg_weights *w, const wg_model_options *opt, wg_arch *out, wg_error *err);

const wg_arch *wg_model_arch(const wg_model *m);
wg_lm *wg_model_lm(wg_model *m);           /* owned by the model */
int wg_model_head_rows(const wg_model *m); /* width of a row of logits: the vocabulary, or n_head */
size_t wg_model_bytes(const wg_model *m);  /* weights in memory */
/* Of them, bytes that a pass reads: layers and head, not a separate embedding; of each layer's experts so many. */
size_t wg_model_read_bytes(const wg_model *m, double experts);
/* Experts of a layer that so many rows are expected to use when they choose each with the same probability; 0 without. */
double wg_model_experts_expected(const wg_model *m, int rows);
/* wg_model_read_bytes with these. */
size_t wg_model_pass_bytes(const wg_model *m, int rows);
/* Experts whose weights all passes so far have read, a layer (their mean); 0 without, and on a device that does not count. */
double wg_model_experts_read(const wg_model *m);

#endif
