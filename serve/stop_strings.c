/* SPDX-License-Identifier: MIT
 * The search for stop strings at the end of a text. */
#include "serve/stop_strings.h"

#include <string.h>

/* The length of the longest stop string with which text[settled..end) ends, or 0. */
static size_t ends_with(const wgs_stops *stops, const char *text, size_t settled, size_t end)
{
    size_t longest = 0;
    for (int i = 0; i < stops->n; i++) {
        const wgs_stop *s = &stops->at[i];
        if (s->n > longest && s->n <= end - settled && !memcmp(text + end - s->n, s->s, s->n)) longest = s->n;
    }
    return longest;
}

/* Whether a stop string begins with text[from..n). */
static int may_begin(const wgs_stops *stops, const char *text, size_t from, size_t n)
{
    for (int i = 0; i < stops->n; i++)
        if (stops->at[i].n > n - from && !memcmp(text + from, stops->at[i].s, n - from)) return 1;
    return 0;
}

size_t wgs_stops_settle(const wgs_stops *stops, const char *text, size_t settled, size_t n, size_t *found)
{
    *found = 0;
    if (!stops->n) return n;
    for (size_t end = settled + 1; end <= n; end++)
        if ((*found = ends_with(stops, text, settled, end))) return end - *found;
    while (settled < n && !may_begin(stops, text, settled, n)) settled++;
    return settled;
}
