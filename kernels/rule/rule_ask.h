/* SPDX-License-Identifier: MIT
 * Enumerated decisions on an emulated device: instead of drawing by Philox a rule calls a prover, which chooses an outcome
 * with its probability and returns a number with that outcome. */
#ifndef WG_KERNELS_RULE_RULE_ASK_H
#define WG_KERNELS_RULE_RULE_ASK_H

#include <stdint.h>

typedef enum wg_ask_kind {
    WG_ASK_TEST,  /* u; true: u den < num */
    WG_ASK_BOUND, /* u; known to fail: u >= num */
    WG_ASK_PICK,  /* u; the first i whose weights up to it are more than u of all */
    WG_ASK_RACE,  /* the winning token of a race of the weights on `races` lists of times */
} wg_ask_kind;

typedef struct wg_rule_ask {
    wg_ask_kind kind;
    uint32_t purpose, position; /* the address, as in core/dist/chance.h */
    int32_t index, n, races;
    double num, den;
    const double *weight; /* (n) */
} wg_rule_ask;

typedef struct wg_rule_oracle {
    double (*answer)(void *state, const wg_rule_ask *ask);
    void *state;
} wg_rule_oracle;

#ifdef __cplusplus
extern "C" {
#endif
/* Rules on devices call the prover `o`, borrowed, from now on (NULL: they draw by Philox), one tree per launch. Returns 1 where
 * devices are emulated (tests/simt), else 0: then the call has no effect (kernels/rule_oracle.c). */
int wg_rule_oracle_set(const wg_rule_oracle *o);
#ifdef __cplusplus
}
#endif

#endif
