/* SPDX-License-Identifier: MIT
 * The random numbers of a rule on a device: Philox at the addresses of core/dist/chance.h. In the emulated build a prover may
 * replace them (rule_ask.h): it gets the purpose of a number, chooses an outcome with its probability, and returns a number
 * with that outcome. So all code that turns numbers into decisions runs in the prover too. Private to kernels/cuda. */
#ifndef WG_KERNELS_CUDA_RULE_CHANCE_H
#define WG_KERNELS_CUDA_RULE_CHANCE_H

#include "kernels/cuda/cuda.h"
#include "kernels/philox.h"
#include "kernels/purpose.h"
#include "kernels/rule/rule_ask.h"
#include "kernels/rule/rule_kinds.h"

WG_DEVICE wg_philox wg_rule_philox(const wg_rule_tree *t, uint32_t purpose, uint32_t index, int depth)
{
    return wg_philox_at(t->seed, index, purpose, t->position + (uint32_t)depth, t->request);
}
WG_DEVICE double wg_rule_uniform(const wg_rule_tree *t, uint32_t purpose, int index, int depth)
{
    const wg_philox r = wg_rule_philox(t, purpose, (uint32_t)index, depth);
    return wg_philox_double(r.v[0], r.v[1]);
}

#ifndef __CUDACC__

extern bool simt_asks; /* whether a prover is set */
/* Every thread of a block makes the same request, and gets the answer of the first one's. */
double simt_answer(const wg_rule_ask &ask);

WG_DEVICE wg_rule_ask simt_ask_at(const wg_rule_tree *t, wg_ask_kind kind, uint32_t purpose, int index, int depth)
{
    wg_rule_ask ask = {};
    ask.kind = kind;
    ask.purpose = purpose;
    ask.index = index;
    ask.position = t->position + (uint32_t)depth;
    return ask;
}

#endif

/* For the test of an index, true below num / den. */
WG_DEVICE double wg_test_uniform(const wg_rule_tree *t, int index, double num, double den)
{
#ifndef __CUDACC__
    if (simt_asks) {
        wg_rule_ask ask = simt_ask_at(t, WG_ASK_TEST, WG_DRAW_ACCEPT, index, 0);
        ask.num = num, ask.den = den;
        return simt_answer(ask);
    }
#endif
    return num >= den ? 0 : wg_rule_uniform(t, WG_DRAW_ACCEPT, index, 0);
}

/* For the question whether the test of an index, of probability at most `most`, is known to fail. */
WG_DEVICE double wg_bound_uniform(const wg_rule_tree *t, int index, double most)
{
#ifndef __CUDACC__
    if (simt_asks) {
        wg_rule_ask ask = simt_ask_at(t, WG_ASK_BOUND, WG_DRAW_ACCEPT, index, 0);
        ask.num = most;
        return simt_answer(ask);
    }
#endif
    (void)most;
    return wg_rule_uniform(t, WG_DRAW_ACCEPT, index, 0);
}

/* For a draw from weights (n). */
WG_DEVICE double wg_pick_uniform(const wg_rule_tree *t, uint32_t purpose, int index, int depth, const double *weight, int n)
{
#ifndef __CUDACC__
    if (simt_asks) {
        wg_rule_ask ask = simt_ask_at(t, WG_ASK_PICK, purpose, index, depth);
        ask.weight = weight, ask.n = n;
        return simt_answer(ask);
    }
#endif
    (void)weight, (void)n;
    return wg_rule_uniform(t, purpose, index, depth);
}

/* For a race of the tokens of a row on the times that lie at a depth. */
struct wg_race_times {
    const wg_rule_tree *t;
    int depth, winner; /* winner: known beforehand, or -1 */
    WG_DEVICE_MEMBER double at(int x, int list) const
    {
        if (winner >= 0) return x == winner ? 0 : 1 - 0x1p-53; /* at once; after 36.7 */
        const wg_philox r = wg_rule_philox(t, wg_purpose_of_list(WG_DRAW_COUPLED, list), (uint32_t)x >> 1, depth);
        return x & 1 ? wg_philox_double(r.v[2], r.v[3]) : wg_philox_double(r.v[0], r.v[1]);
    }
};
WG_DEVICE wg_race_times wg_race_uniforms(const wg_rule_tree *t, int depth, int races, const double *weight, int n)
{
    int winner = -1;
#ifndef __CUDACC__
    if (simt_asks) {
        wg_rule_ask ask = simt_ask_at(t, WG_ASK_RACE, WG_DRAW_COUPLED, 0, depth);
        ask.weight = weight, ask.n = n, ask.races = races;
        winner = (int)simt_answer(ask);
    }
#endif
    (void)races, (void)weight, (void)n;
    return wg_race_times{ t, depth, winner };
}

#endif
