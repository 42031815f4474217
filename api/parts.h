/* SPDX-License-Identifier: MIT
 * What the parts of tier 3 share: trees and rows of the caller's as the library's own. */
#ifndef WG_API_PARTS_H
#define WG_API_PARTS_H

#include "api/api_impl.h"

/* EINVAL names what is legal. */
wg_status wg_law_in(const char *name, wg_sibling_law *out, wg_error *err);
/* Checked; every node declares the children that it has. */
wg_status wg_tree_in(const wg_draft *d, int vocab, wg_tree *out, wg_error *err);
/* Appends n rows (vocab) of distributions to a set with room for them. EINVAL: a row that is none. */
wg_status wg_rows_in(const double *from, int n, int vocab, const char *name, wg_rows *out, wg_error *err);
/* Whether n nodes are a path of the tree from its root down, and `next` is a token. */
bool wg_is_path(const wg_tree *t, int vocab, const int32_t *node, int n, int32_t next);

#endif
