/* SPDX-License-Identifier: MIT
 * The verification rules of this folder: one line each here, in the order in which they are listed, and one NULL-terminated
 * table. */
#ifndef WG_VERIFY_VERIFY_H
#define WG_VERIFY_VERIFY_H

#include "core/engine/verifier.h"

/* clang-format off */
#define WG_VERIFIERS(X) \
    X(greedy) \
    X(match) \
    X(rejection) \
    X(without_replacement) \
    X(topk) \
    X(kseq) \
    X(block) \
    X(traversal) \
    X(multipath) \
    X(optimal) \
    X(coupled) \
    X(typical) \
    X(lenience) \
    X(relaxed)
/* clang-format on */

#define WG_VERIFIER_DECLARE(name) extern const wg_verifier_class wg_verifier_##name;
WG_VERIFIERS(WG_VERIFIER_DECLARE)
#undef WG_VERIFIER_DECLARE

extern const wg_verifier_class *const wg_verifiers[];

#endif
