/* SPDX-License-Identifier: MIT
 * The verification rules of this folder, as one NULL-terminated table. */
#ifndef WG_VERIFY_VERIFY_H
#define WG_VERIFY_VERIFY_H

#include "core/engine/verifier.h"

extern const wg_verifier_class *const wg_verifiers[];

extern const wg_verifier_class wg_verifier_greedy, wg_verifier_match, wg_verifier_rejection;

#endif
