/* SPDX-License-Identifier: MIT
 * The rules, in the order in which they are listed. */
#include "verify/verify.h"

#include <stddef.h>

const wg_verifier_class *const wg_verifiers[] = {
    &wg_verifier_greedy,
    &wg_verifier_match,
    &wg_verifier_rejection,
    NULL,
};
