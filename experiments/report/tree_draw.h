/* SPDX-License-Identifier: MIT
 * Drawings of draft tree shapes as lines of text. */
#ifndef WG_EXPERIMENTS_REPORT_TREE_DRAW_H
#define WG_EXPERIMENTS_REPORT_TREE_DRAW_H

#include <stdio.h>

#include "draft/lm/grow.h"

/* One line per node, in depth-first order: its path of ranks (first child: 1) and its value, the probability that it is
 * accepted. */
void wg_tree_draw_text(FILE *out, const wg_shape *s, const double value[WG_TREE_MAX]);

#endif
