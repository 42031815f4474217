/* SPDX-License-Identifier: MIT
 * Traversal verification, for rules that fall back on it. */
#ifndef WG_VERIFY_TRAVERSAL_H
#define WG_VERIFY_TRAVERSAL_H

#include "verify/verify.h"

void wg_traversal_accept(const void *opt, const wg_tree *tree, const wg_rows *p, const wg_rows *q, const wg_chance *chance,
                         wg_path *out);

/* The same without looking whether the tree is a chain, for the test that it is `block` there. */
void wg_traversal_descend(const void *opt, const wg_tree *tree, const wg_rows *p, const wg_rows *q, const wg_chance *chance,
                          wg_path *out);

#endif
