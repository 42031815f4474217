/* SPDX-License-Identifier: MIT
 * Decimal text and doubles. The C library's conversions follow the locale of the embedding program, hence the detour
 * through an explicit "C" locale. */
#include "core/base/number.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls f under the "C" locale. newlocale("C") is a static object in glibc and musl: nothing to free, nothing that fails. */
static locale_t c_locale(void) { return newlocale(LC_ALL_MASK, "C", (locale_t)0); }

const char *wg_number_text(double v, char *buf, size_t size)
{
    const locale_t c = c_locale();
    const locale_t old = uselocale(c);
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buf, size, "%.*g", digits, v);
        if (isnan(v) || strtod(buf, NULL) == v) break;
    }
    uselocale(old);
    freelocale(c);
    return buf;
}

bool wg_number_parse(const char *text, double *out)
{
    const size_t n = strlen(text);
    if (n == 0 || strspn(text, "0123456789+-.eE") != n) return false;
    const locale_t c = c_locale();
    const locale_t old = uselocale(c);
    char *end;
    const double v = strtod(text, &end);
    uselocale(old);
    freelocale(c);
    if (*end != '\0' || end == text || !isfinite(v)) return false;
    *out = v;
    return true;
}

int wg_number_list(const char *text, const char *between, double lo, double hi, double *out, int most)
{
    for (int n = 0; n < most;) {
        char one[64];
        const size_t len = strcspn(text, between);
        if (len >= sizeof one) return -1;
        memcpy(one, text, len);
        one[len] = '\0';
        if (!wg_number_parse(one, &out[n]) || !(out[n] >= lo && out[n] <= hi)) return -1;
        n++;
        if (!text[len]) return n;
        text += len + 1;
    }
    return -1;
}
