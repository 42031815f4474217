/* SPDX-License-Identifier: MIT
 * Device rules in the prover: the same enumeration over the decisions of the blocks in kernels/cuda. They run on an emulated
 * device (tests/simt) whose random numbers the prover supplies, so every pass, sum, search and barrier of the device code is
 * part of the compared law. The few tokens of a proof are spread over a vocabulary that spans all warps of a block; tokens
 * between them have no mass. */
#ifndef WG_VERIFY_PROOF_PROVE_DEVICE_H
#define WG_VERIFY_PROOF_PROVE_DEVICE_H

#include "core/engine/verifier.h"

typedef struct wg_prove_device wg_prove_device;

/* A device rule: `class` is the rule for wg_prove, `of` its options. */
typedef struct wg_prove_rule {
    wg_verifier_class class;
    struct {
        wg_prove_device *device;
        const void *options;
    } of;
} wg_prove_rule;

/* Opens cuda:0 for proofs over `vocab` tokens. EUNSUPPORTED: there is no device, or it is not emulated. ENOMEM. */
wg_status wg_prove_device_open(wg_prove_device **d, int vocab, wg_error *err);
void wg_prove_device_close(wg_prove_device *d);

/* *out is valid until the next call; options are borrowed. One thread at a time. EUNSUPPORTED: no device has this rule. */
wg_status wg_prove_device_rule(wg_prove_device *d, const wg_verifier_class *rule, const void *options, wg_prove_rule *out,
                               wg_error *err);

#endif
