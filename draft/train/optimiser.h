/* SPDX-License-Identifier: MIT
 * Optimisers and schedules. AdamW (Loshchilov and Hutter 2019) for all weights, or Muon (Jordan et al. 2024) for the matrices
 * of layers and AdamW for embedding, head and norms. Gradients are clipped by their norm over all weights. */
#ifndef WG_DRAFT_TRAIN_OPTIMISER_H
#define WG_DRAFT_TRAIN_OPTIMISER_H

#include "core/base/option.h"
#include "draft/train/net.h"

typedef enum wg_optimiser_kind { WG_MUON, WG_ADAMW } wg_optimiser_kind;
typedef struct wg_optimiser_options {
    int kind;
    double lr, lr_embedding, beta1, beta2, eps, decay, momentum, clip;
} wg_optimiser_options;
extern const wg_option wg_optimiser_table[];

typedef enum wg_schedule_kind { WG_COSINE, WG_WSD, WG_CONSTANT } wg_schedule_kind;
typedef struct wg_schedule_options {
    int kind;
    double warmup, decay, floor;
} wg_schedule_options;
extern const wg_option wg_schedule_table[];

/* The factor of the learning rates at step 0 .. steps - 1. Warm-up is linear; then cosine to the floor, or constant and at the
 * end linear to the floor (warm-up, stable, decay: Hu et al. 2024). */
double wg_schedule_at(const wg_schedule_options *o, long step, long steps);

typedef struct wg_optimiser wg_optimiser;

/* net and pool are borrowed; f32 networks only. The state lies in the memory of the network's table. ENOMEM: how much was
 * needed. */
wg_status wg_optimiser_open(wg_optimiser **out, wg_net *net, const wg_optimiser_options *o, wg_pool *pool, wg_error *err);
void wg_optimiser_close(wg_optimiser *o); /* NULL is fine */

/* The norm over all gradients. */
double wg_optimiser_norm(wg_optimiser *o);
/* Makes one update. step: from 0; rate: factor of the learning rates; norm: of the gradients, which are overwritten. */
void wg_optimiser_step(wg_optimiser *o, long step, double rate, double norm);

/* The state, for checkpoints: array i of n floats, from 0 on; false behind the last. It is in host memory, with fetch and send
 * as of wg_net_weights. */
bool wg_optimiser_state(wg_optimiser *o, int i, float **state, size_t *n);
void wg_optimiser_fetch(wg_optimiser *o);
void wg_optimiser_send(wg_optimiser *o);

#endif
