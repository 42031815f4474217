/* SPDX-License-Identifier: MIT
 * A language model without weights: the logits after a token are Philox words of the last `order` tokens. It serves tests of
 * everything above the model: it obeys the Prefix Law, is cheap, and stores its tokens and positions as keys and values in a
 * real space, so a wrong commit, rollback or ancestor set gives other logits or an error. */
#ifndef WG_CORE_MODEL_LM_TABLE_H
#define WG_CORE_MODEL_LM_TABLE_H

#include "core/model/lm.h"

enum { WG_LM_TABLE_ORDER = 8 };

typedef struct wg_lm_table {
    wg_lm lm;  /* first: its seam */
    int order; /* 0: the same logits everywhere .. WG_LM_TABLE_ORDER */
    uint64_t seed;
    double sharpness; /* logits are uniform on [-sharpness, sharpness) */
    long fail_in;     /* the pass that fails with EINTERRUPTED, counted from now (1: the next); 0: none */
} wg_lm_table;

/* vocab: 1 .. 2^24. EINVAL, ENOMEM. */
wg_status wg_lm_table_open(wg_lm_table **out, int vocab, int order, uint64_t seed, double sharpness, int context,
                           wg_error *err);
void wg_lm_table_close(wg_lm_table *t); /* NULL is fine */

#endif
