/* SPDX-License-Identifier: MIT
 * The quantisation of `wager quantize --calibrate` and `--bits`: matrices of a view of quantised weights, made by GPTQ
 * (draft/train/gptq.h) over a text, or rounded to fewer codes than their type has. */
#ifndef WG_EXPERIMENTS_RUN_CALIBRATED_QUANTIZE_H
#define WG_EXPERIMENTS_RUN_CALIBRATED_QUANTIZE_H

#include "core/file/quantize.h"
#include "draft/train/gptq.h"

typedef struct wg_calibrated_options {
    const char *text;    /* a text file, a folder of them or a token file (docs/training.md); NULL: plain rounding */
    const char *scratch; /* path of a temporary token file of the text */
    int windows;         /* windows of the text, each as long as the context, at most 512 tokens */
    int bits;            /* of a weight; 0: the type's */
    double damp;
    wg_prune prune; /* of layers' matrices */
} wg_calibrated_options;

typedef struct wg_calibrated wg_calibrated;

/* Opens the maker; with a text it loads the model for training (families of wg_net_check) and runs the text. w and pool are
 * borrowed until close. type: that of most matrices. Errors: EINVAL (a type or bits that cannot be had, a text that is too
 * short), EUNSUPPORTED, EMODEL, those of files, ENOMEM. */
wg_status wg_calibrated_open(wg_calibrated **out, const wg_weights *w, int type, const wg_calibrated_options *o, wg_pool *pool,
                             wg_error *err);
void wg_calibrated_close(wg_calibrated *c); /* NULL is fine */
long wg_calibrated_tokens(const wg_calibrated *c);

/* The view's maker (wg_quantize.by), with the wg_calibrated as `user`. It makes matrices of that type; the view makes the
 * others. */
wg_quantize_maker wg_calibrated_make;

#endif
