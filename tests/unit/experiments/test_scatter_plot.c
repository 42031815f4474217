/* SPDX-License-Identifier: MIT
 * Numbers of points near the line y = x, and the names of lines, lie beside it. */
#include "experiments/report/scatter_plot.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "dashed_line.h"

static char *drawing(double x, double y)
{
    static const double slope[] = { 0.5, 1, 2 };
    char *svg = NULL;
    size_t n = 0;
    const wg_scatter_point point[] = {
        { .name = (char *)"a", .number = 17, .x = x, .y = { y, NAN, NAN }, .front = true },
        { .name = (char *)"b", .number = 3, .x = 3, .y = { 3.4, NAN, NAN }, .front = true },
    };
    const wg_scatter_plot o = {
        .title = "t", .caption = "c", .x = "x", .y = "y", .point = point, .n = 2, .slope = slope, .slopes = 3
    };
    const wg_plot_out to = { .f = open_memstream(&svg, &n), .form = WG_PLOT_SVG };
    wg_scatter_plot_figure(&to, &o);
    fclose(to.f);
    return svg;
}

Test(scatter_plot, no_text_on_the_dashed_line)
{
    if (!wg_plot_available(WG_PLOT_SVG)) cr_skip("needs gnuplot");
    for (int i = -10; i <= 10; i++) {
        char path[32], *svg = drawing(2, 2 + 0.02 * i);
        snprintf(path, sizeof path, "point at 2, %g", 2 + 0.02 * i);
        cr_assert(strstr(svg, ">17<") && strstr(svg, ">1x<"), "%s: the number or the name is missing", path);
        no_text_on_the_line(path, svg, 1);
        free(svg);
    }
}
