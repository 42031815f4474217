/* SPDX-License-Identifier: MIT
 * The drafters there are. A new one is a file and a line here. */
#include "draft/draft.h"

const wg_drafter_class *const wg_drafters[] = {&wg_drafter_none, &wg_drafter_model, &wg_drafter_ngram, NULL};
