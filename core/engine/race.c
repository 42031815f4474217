/* SPDX-License-Identifier: MIT
 * Volumes of simplices cut by half-spaces: an edge that crosses the plane is split there, which splits the simplex into two
 * whose shares of the volume are the edge's. The recursion ends when no edge crosses. */
#include "core/engine/race.h"

#include <stdbool.h>

enum { T = WG_RACE_TOKENS };

typedef struct simplex { double corner[T][T]; } simplex; /* n corners, each n times */

/* "winner before other" in a race: E_other a - E_winner b >= 0. */
typedef struct plane { int winner, other; double a, b; } plane;

static double side(const plane *h, const double *corner)
{
    const double s = corner[h->other] * h->a - corner[h->winner] * h->b, scale = h->a + h->b;
    return s > scale * 1e-15 || s < scale * -1e-15 ? s : 0; /* a corner that was cut out of this plane is on it */
}

static double volume(const simplex *s, int n, double size, const plane *h, int planes)
{
    for (; planes > 0; h++, planes--) {
        int in = -1, out = -1;
        double at[T];
        for (int i = 0; i < n; i++) {
            at[i] = side(h, s->corner[i]);
            if (at[i] > 0) in = i;
            if (at[i] < 0) out = i;
        }
        if (out < 0) continue;
        if (in < 0) return 0;
        const double t = at[in] / (at[in] - at[out]); /* of the way from in to out */
        simplex near = *s, far = *s;                  /* the part with corner `in`, the part with corner `out` */
        for (int x = 0; x < n; x++)
            near.corner[out][x] = far.corner[in][x] = s->corner[in][x] + t * (s->corner[out][x] - s->corner[in][x]);
        return volume(&near, n, size * t, h, planes) + volume(&far, n, size * (1 - t), h, planes);
    }
    return size;
}

/* Appends that `winner` is first; false when it cannot be. */
static bool add(plane *h, int *planes, const double *weight, int n, int winner)
{
    if (!(weight[winner] > 0)) return false;
    for (int x = 0; x < n; x++)
        if (x != winner && weight[x] > 0) h[(*planes)++] = (plane){ winner, x, weight[winner], weight[x] };
    return true;
}

void wg_race_law(const wg_race *earlier, int k, const double *weight, int n, double *chance)
{
    plane h[(WG_RACES + 1) * T];
    simplex whole = { { { 0 } } };
    int planes = 0;
    for (int i = 0; i < n; i++) whole.corner[i][i] = 1;
    for (int i = 0; i < k; i++) add(h, &planes, earlier[i].weight, n, earlier[i].winner);
    for (int i = 0; i < n; i++) {
        int all = planes;
        chance[i] = add(h, &all, weight, n, i) ? volume(&whole, n, 1, h, all) : 0;
    }
}
