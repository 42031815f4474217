/* SPDX-License-Identifier: MIT
 * Drawings of draft tree shapes: as lines of text and as an SVG picture. */
#ifndef WG_EXPERIMENTS_REPORT_TREE_DRAW_H
#define WG_EXPERIMENTS_REPORT_TREE_DRAW_H

#include <stdio.h>

#include "draft/lm/grow.h"

/* One line per node, in depth-first order: its path of ranks (first child: 1) and its value, the probability that it is
 * accepted. */
void wg_tree_draw_text(FILE *out, const wg_shape *s, const double value[WG_TREE_MAX]);

/* A picture with the root at the top; the area of a node is its value. Errors as for core/base/save.h. */
wg_status wg_tree_draw_svg(const char *path, const wg_shape *s, const double value[WG_TREE_MAX], const char *title,
                           wg_error *err);

#endif
