/* SPDX-License-Identifier: MIT
 * What `wager quantize --calibrate` and `--bits` do: matrices of a view of quantised weights made by GPTQ (draft/train/gptq.h)
 * over a text, or rounded to fewer codes than their type has. */
#ifndef WG_EXPERIMENTS_RUN_CALIBRATED_QUANTIZE_H
#define WG_EXPERIMENTS_RUN_CALIBRATED_QUANTIZE_H

#include "core/file/quantize.h"
#include "draft/train/gptq.h"

typedef struct wg_calibrated_options {
    const char *text;    /* a text file, a folder of them or a token file (docs/training.md); NULL: plain rounding */
    const char *scratch; /* path of a token file that is made of the text, and removed again */
    int windows;         /* of the text, each of the model's context, up to 512 tokens */
    int bits;            /* 0: those of the type */
    double damp;
    wg_prune prune; /* of the matrices of layers */
} wg_calibrated_options;

typedef struct wg_calibrated wg_calibrated;

/* With a text: loads the model for training (families of wg_net_check), runs the text. w is borrowed until close, as is the
 * pool. type: that most matrices get. Errors: EINVAL (a type or bits that cannot be had, a text that is too short),
 * EUNSUPPORTED, EMODEL, those of files, ENOMEM. */
wg_status wg_calibrated_open(wg_calibrated **out, const wg_weights *w, int type, const wg_calibrated_options *o, wg_pool *pool,
                             wg_error *err);
void wg_calibrated_close(wg_calibrated *c); /* NULL is fine */

/* The view's maker (wg_quantize.by), with the wg_calibrated as `user`: matrices of that type; others are left to the view. */
wg_quantize_maker wg_calibrated_make;

#endif
