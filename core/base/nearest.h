/* SPDX-License-Identifier: MIT
 * The nearest spelling of a word among known ones. It is a header alone, so that the server, which links only libwager, can use
 * it. */
#ifndef WG_CORE_BASE_NEAREST_H
#define WG_CORE_BASE_NEAREST_H

#include <stddef.h>
#include <string.h>

enum { WG_NEAREST_WORD = 63 }; /* longer words count as far from all others */

/* Edit distance with swaps of neighbours as one edit (optimal string alignment). */
static inline int wg_nearest_distance(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    if (n > WG_NEAREST_WORD || m > WG_NEAREST_WORD) return WG_NEAREST_WORD;
    int row[3][WG_NEAREST_WORD + 1];
    for (size_t j = 0; j <= m; j++) row[0][j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int *now = row[i % 3];
        const int *up = row[(i + 2) % 3], *up2 = row[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int d = up[j - 1] + (a[i - 1] != b[j - 1]);
            if (up[j] + 1 < d) d = up[j] + 1;
            if (now[j - 1] + 1 < d) d = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && up2[j - 2] + 1 < d) d = up2[j - 2] + 1;
            now[j] = d;
        }
    }
    return row[n % 3][m];
}

/* The candidate closest to `word` by edit distance (at most 1/3 of its length, at least 1 and at most 3 edits); else the first
 * that has `word` as a prefix or is a prefix of it (three letters or more); else NULL. */
static inline const char *wg_nearest(const char *word, const char *const *candidates)
{
    const int third = (int)(strlen(word) / 3);
    int best = (third < 1 ? 1 : third > 3 ? 3 : third) + 1;
    const char *found = NULL, *begins = NULL;
    for (; candidates && *candidates; candidates++) {
        const int d = wg_nearest_distance(word, *candidates);
        const size_t n = strlen(word), m = strlen(*candidates), both = n < m ? n : m;
        if (!begins && both >= 3 && !strncmp(word, *candidates, both)) begins = *candidates;
        if (d >= best) continue;
        best = d;
        found = *candidates;
    }
    return found ? found : begins;
}

#endif
