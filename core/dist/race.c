/* SPDX-License-Identifier: MIT
 * Volumes of simplices cut by half-spaces: an edge that crosses the plane is split there, which splits the simplex into two
 * whose shares of the volume are the edge's. The recursion ends when no edge crosses. The race over most lists comes first:
 * its planes reduce the whole simplex to one simplex, and those of races over few lists then cut few of its corners. */
#include "core/dist/race.h"

#include <stdint.h>

enum { R = WG_RACE_RUNNERS };

typedef struct simplex {
    double corner[R][R];
} simplex; /* n corners, each n times */

/* The half-space "winner before other" in a race: E_other a - E_winner b >= 0. */
typedef struct plane {
    int winner, other;
    double a, b;
} plane;

/* All races at one address. Runner g n + x is token x on the lists of group g: lists that the same races use. */
typedef struct field {
    const wg_race *race[WG_RACES + 1];
    int races, n, groups;
    uint32_t users[WG_LISTS]; /* of a group: bit r for race r */
    int size[WG_LISTS];       /* its lists */
    plane plane[(WG_RACES + 1) * R];
} field;

static double side(const plane *h, const double *corner)
{
    const double s = corner[h->other] * h->a - corner[h->winner] * h->b, scale = h->a + h->b;
    return s > scale * 1e-15 || s < scale * -1e-15 ? s : 0; /* a corner that lies on this plane by construction */
}

static double volume(const simplex *s, int n, double size, const plane *h, int planes)
{
    for (; planes > 0; h++, planes--) {
        int in = -1, out = -1;
        double at[R];
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

static int lists_of(const wg_race *r) { return (r->lists.end - r->lists.first + r->lists.step - 1) / r->lists.step; }

static void find_groups(field *f)
{
    for (int list = 0; list < WG_LISTS; list++) {
        uint32_t users = 0;
        int g = 0;
        for (int r = 0; r < f->races; r++) {
            const wg_lists l = f->race[r]->lists;
            if (list >= l.first && list < l.end && (list - l.first) % l.step == 0) users |= 1u << r;
        }
        if (!users) continue;
        while (g < f->groups && f->users[g] != users) g++;
        if (g == f->groups) f->users[f->groups++] = users;
        f->size[g]++;
    }
}

/* Appends that group g's runner for token x is the first of race r. Returns the new number of planes. */
static int add(field *f, int planes, int r, int g, int x)
{
    const double *weight = f->race[r]->weight;
    for (int h = 0; h < f->groups; h++)
        for (int y = 0; y < f->n; y++)
            if (f->users[h] >> r & 1 && weight[y] > 0 && (h != g || y != x))
                f->plane[planes++] = (plane){ g * f->n + x, h * f->n + y, weight[x] * f->size[g], weight[y] * f->size[h] };
    return planes;
}

/* The probability that race r and those after it have their winners; that of race `now` is x. */
static double together(field *f, int r, int planes, int now, int x)
{
    if (r == f->races) {
        simplex whole = { { { 0 } } };
        const int n = f->groups * f->n;
        for (int i = 0; i < n; i++) whole.corner[i][i] = 1;
        return volume(&whole, n, 1, f->plane, planes);
    }
    const int winner = r == now ? x : f->race[r]->winner;
    double sum = 0;
    for (int g = 0; g < f->groups && f->race[r]->weight[winner] > 0; g++)
        if (f->users[g] >> r & 1) sum += together(f, r + 1, add(f, planes, r, g, winner), now, x);
    return sum;
}

bool wg_race_law(const wg_race *earlier, int k, wg_race *now)
{
    field f = { .races = k + 1, .n = now->n };
    int at = 0;
    for (int r = 0; r <= k; r++) { /* insertion: more lists first */
        const wg_race *race = r < k ? &earlier[r] : now;
        int to = r;
        for (; to > 0 && lists_of(f.race[to - 1]) < lists_of(race); to--) f.race[to] = f.race[to - 1];
        f.race[at = to] = race;
    }
    find_groups(&f);
    if (f.groups * f.n > R) return false;
    for (int x = 0; x < f.n; x++) now->chance[x] = together(&f, 0, 0, at, x);
    return true;
}
