/* SPDX-License-Identifier: MIT
 * The table of the drafters that draft.h lists. */
#include "draft/draft.h"

#define WG_DRAFTER_ROW(name) &wg_drafter_##name,
const wg_drafter_class *const wg_drafters[] = { WG_DRAFTERS(WG_DRAFTER_ROW) NULL };
