/* SPDX-License-Identifier: MIT
 * Block verification of a chain, for the rules that are the same on one: traversal, multipath. */
#ifndef WG_VERIFY_BLOCK_H
#define WG_VERIFY_BLOCK_H

#include "core/engine/verifier.h"

void wg_block_accept(const void *opt, const wg_tree *tree, const wg_rows *p, const wg_rows *q, const wg_chance *chance,
                     wg_path *out);

#endif
