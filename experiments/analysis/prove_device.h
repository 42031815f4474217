/* SPDX-License-Identifier: MIT
 * Rules of a device for the prover: the same enumeration, over the decisions that the blocks of kernels/cuda make. They run
 * on an emulated device (tests/simt), whose random numbers the prover answers, so every pass, sum, search and barrier of
 * the device's text takes part in the law that is compared. The few tokens of a proof are spread over a vocabulary that all
 * warps of a block share; those between have no mass. */
#ifndef WG_EXPERIMENTS_ANALYSIS_PROVE_DEVICE_H
#define WG_EXPERIMENTS_ANALYSIS_PROVE_DEVICE_H

#include "core/engine/verifier.h"

typedef struct wg_prove_device wg_prove_device;

/* A rule as the device decides: what wg_prove takes as the rule, and `of` as its options. */
typedef struct wg_prove_rule {
    wg_verifier_class class;
    struct {
        wg_prove_device *device;
        const void *options;
    } of;
} wg_prove_rule;

/* cuda:0, for proofs over so many tokens. EUNSUPPORTED: there is none, or it draws by itself. ENOMEM. */
wg_status wg_prove_device_open(wg_prove_device **d, int vocab, wg_error *err);
void wg_prove_device_close(wg_prove_device *d);

/* *out is valid until the next call; options are borrowed. One thread at a time. EUNSUPPORTED: no device has this rule. */
wg_status wg_prove_device_rule(wg_prove_device *d, const wg_verifier_class *rule, const void *options, wg_prove_rule *out,
                               wg_error *err);

#endif
