/* SPDX-License-Identifier: MIT
 * Drawings by gnuplot, a program that may or may not be there when a report is written. */
#ifndef WG_EXPERIMENTS_PLOT_H
#define WG_EXPERIMENTS_PLOT_H

#include <stdbool.h>

/* Is there a gnuplot that runs? */
bool wg_plot_available(void);

/* Runs a gnuplot script (after "set terminal svg size width,height"); the SVG as "data:image/svg+xml;base64,..." (wg_free), or
 * NULL. */
char *wg_plot_svg(const char *script, int width, int height);

#endif
