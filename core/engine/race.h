/* SPDX-License-Identifier: MIT
 * The exact joint law of races on the same times (wg_chance_race in the enumerating form).
 *
 * Independent Exp(1) times divided by their sum are uniform on the simplex, and who wins a race depends on these ratios alone:
 * "w wins against x" is the half-space E_w weight_x <= E_x weight_w. So the probability that several races have given winners
 * is the volume of the simplex cut by half-spaces, which is computed by cutting simplices into simplices: no quadrature, no
 * series, only rounding. */
#ifndef WG_CORE_ENGINE_RACE_H
#define WG_CORE_ENGINE_RACE_H

enum { WG_RACE_TOKENS = 4, WG_RACES = 16 };

typedef struct wg_race {
    int n, winner;
    double weight[WG_RACE_TOKENS], chance[WG_RACE_TOKENS];
} wg_race;

/* chance[i] = probability that i wins a race with these weights (n <= WG_RACE_TOKENS) and that the k earlier ones had their
 * winners; up to a common factor. Only i with weight[i] > 0 can win. */
void wg_race_law(const wg_race *earlier, int k, const double *weight, int n, double *chance);

#endif
