/* SPDX-License-Identifier: MIT
 * Where texts of a drawing are, and whether one lies on its dashed line. */
#ifndef WG_TESTS_DASHED_LINE_H
#define WG_TESTS_DASHED_LINE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* Whether a text of the drawing covers a point: 6 pixels a character, 10 above its baseline, 3 below. */
static inline const char *text_at(const char *svg, double x, double y)
{
    double left, base;
    for (const char *t = svg; (t = strstr(t, "<g transform=\"translate(")); t++) {
        int n = 0;
        if (sscanf(t, "<g transform=\"translate(%lf,%lf)\"%n", &left, &base, &n) != 2 || n == 0) continue; /* it is turned */
        const char *anchor = strstr(t, "text-anchor=\""), *text = strstr(t, "<text");
        if (!anchor || !text) continue;
        while (*text == '<') text = strchr(text, '>') + 1; /* <text>, and in it <tspan> */
        const double wide = 6. * (double)strcspn(text, "<");
        left -= anchor[13] == 'e' ? wide : anchor[13] == 'm' ? wide / 2 : 0;
        if (x > left && x < left + wide && y > base - 10 && y < base + 3) return text;
    }
    return NULL;
}

/* No text lies on the dashed line at 1: on no point of its pieces, of which there are at least so many. path: for messages. */
static inline void no_text_on_the_line(const char *path, const char *svg, int least)
{
    int pieces = 0;
    for (const char *p = svg; (p = strstr(p, "stroke-dasharray='")); p++) {
        double x[2], y[2];
        const char *end = strchr(p, '>'), *grid = strstr(p, "class=\"gridline\""), *at = strstr(p, " d='M");
        if (!at || at > end || (grid && grid < end)) continue;
        cr_assert_eq(sscanf(at, " d='M%lf,%lf", &x[0], &y[0]), 2);
        for (at += 5; (at = strpbrk(at, "ML>")) && *at != '>'; at++) {
            const bool drawn = *at == 'L';
            if (sscanf(at + 1, "%lf,%lf", &x[1], &y[1]) != 2) continue;
            pieces += drawn;
            for (int k = 0; drawn && k <= 20; k++) {
                const char *text = text_at(svg, x[0] + (x[1] - x[0]) * k / 20, y[0] + (y[1] - y[0]) * k / 20);
                cr_assert_null(text, "%s: '%.*s' is on the line from %g,%g to %g,%g", path, (int)strcspn(text ? text : "", "<"),
                               text, x[0], y[0], x[1], y[1]);
            }
            x[0] = x[1], y[0] = y[1];
        }
    }
    cr_assert_geq(pieces, least, "%s: %d pieces of the dashed line", path, pieces);
}

#endif
