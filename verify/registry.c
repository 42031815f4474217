/* SPDX-License-Identifier: MIT
 * The table of the rules that verify.h lists. */
#include "verify/verify.h"

#include <stddef.h>

#define WG_VERIFIER_ROW(name) &wg_verifier_##name,
const wg_verifier_class *const wg_verifiers[] = { WG_VERIFIERS(WG_VERIFIER_ROW) NULL };
