/* SPDX-License-Identifier: MIT
 * Contrast of the page's colours, light and dark (WCAG 2.2, AA): 4.5 to 1 for text, 3 to 1 for what is drawn. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "experiments/report/plot.h"
#include "experiments/report/report_page.h"

static double channel(unsigned v)
{
    const double c = v / 255.;
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

/* The luminance of a style sheet's colour from `sheet` on. */
static double luminance(const char *sheet, const char *name)
{
    char key[24];
    unsigned v = 0;
    snprintf(key, sizeof key, "--%s:#", name);
    const char *at = strstr(sheet, key);
    cr_assert(at && sscanf(at + strlen(key), "%6x", &v) == 1, "%s", key);
    return 0.2126 * channel(v >> 16) + 0.7152 * channel(v >> 8 & 255) + 0.0722 * channel(v & 255);
}

static void contrast(const char *sheet, const char *front, const char *back, double least)
{
    const double a = luminance(sheet, front), b = luminance(sheet, back);
    const double ratio = (fmax(a, b) + 0.05) / (fmin(a, b) + 0.05);
    cr_assert_geq(ratio, least, "%s on %s: %.2f", front, back, ratio);
}

Test(report_colours, can_be_told_apart)
{
    static const char *const words[] = { "ink", "soft", "link", "good", "bad" },
                             *const backs[] = { "back", "band", "best", "warn" }, *const tints[] = { "a", "c", "b" };
    const char *sheets[2] = { wg_report_page, strstr(wg_report_page, "(prefers-color-scheme:dark)") };
    cr_assert(sheets[1]);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 5; i++) contrast(sheets[k], words[i], "back", 4.5);
        for (int i = 0; i < 4; i++) contrast(sheets[k], "ink", backs[i], 4.5);
        for (int i = 0; i < 4; i++) contrast(sheets[k], "soft", backs[i], 4.5);
        for (int i = 0; i < 3; i++) contrast(sheets[k], "ink", tints[i], 4.5);
        for (int i = 0; i < WG_PLOT_SERIES; i++) contrast(sheets[k], (char[]){ 's', (char)('0' + i), 0 }, "back", 3);
    }
}
