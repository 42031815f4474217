/* SPDX-License-Identifier: MIT
 * Writing heads that were trained (net.h) as folders that the drafter `eagle` reads (core/file/head_file.h). */
#ifndef WG_DRAFT_TRAIN_HEAD_WRITE_H
#define WG_DRAFT_TRAIN_HEAD_WRITE_H

#include "draft/train/net.h"

/* Everything is borrowed. */
typedef struct wg_head_write_options {
    const char *folder, *target; /* target: its name in config.json */
    const int *tap;              /* (n_taps) as for wg_target_rows_open */
    int n_taps;
    const int32_t *token; /* (outputs) ascending: the target's ids of the rows of logits; NULL: all */
    int type;             /* of matrices: WG_F32 or WG_F16 */
} wg_head_write_options;

/* Writes config.json and model.safetensors of the weights in host memory; makes the folder. A file that is there is replaced.
 * EIO, ENOMEM. */
wg_status wg_net_write_head(wg_net *n, const wg_head_write_options *o, wg_error *err);

#endif
