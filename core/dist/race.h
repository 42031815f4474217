/* SPDX-License-Identifier: MIT
 * The exact joint law of races on the same times (wg_chance_race in the enumerating form).
 *
 * Independent Exp(1) times divided by their sum are uniform on the simplex, and who wins a race depends on these ratios alone:
 * "w wins against x" is the half-space E_w weight_x <= E_x weight_w. So the probability that several races have given winners
 * is the volume of the simplex cut by half-spaces, which is computed by cutting simplices into simplices: no quadrature, no
 * series, only rounding.
 *
 * A race over several lists is a race of one runner per list and token, and its winner is the first runner's token: a sum of
 * volumes, one for each list. Lists that the same races use are one: the least of m times is Exp(m), one time divided by m. */
#ifndef WG_CORE_DIST_RACE_H
#define WG_CORE_DIST_RACE_H

#include <stdbool.h>

#include "core/dist/chance.h"

enum { WG_RACE_TOKENS = 4, WG_RACE_RUNNERS = 9, WG_RACES = 16 };

typedef struct wg_race {
    int n, winner; /* n <= WG_RACE_TOKENS tokens */
    wg_lists lists;
    double weight[WG_RACE_TOKENS], chance[WG_RACE_TOKENS];
} wg_race;

/* now->chance[i] = probability that i wins the race `now` (n, lists and weights of it) and that the k <= WG_RACES earlier ones,
 * of as many tokens, had their winners; up to a common factor. Only i with weight[i] > 0 can win. False, and no chances: there
 * are more than WG_RACE_RUNNERS runners. */
bool wg_race_law(const wg_race *earlier, int k, wg_race *now);

#endif
