/* SPDX-License-Identifier: MIT
 * Gumbel-max coupling: draft and target race on shared exponentials (Daliri et al. 2025, "Coupling without Communication";
 * with several races the Gumbel-max list sampling, GLS, of Rowan, Phan and Khisti 2025, arXiv 2506.05632). The
 * address (t, COUPLED) has K = `races` lists of independent Exp(1) times. The token at position t is the winner argmin_x
 * (min_k E_x^k) / p(x); go to the child that is it; where there is none, it is `next`.
 *
 * Theorem. The least of K times is an Exp(1) time divided by K, for all tokens alike, and the times at t are independent of
 * the text before t. So the winner is a draw from p: the text has the law of p, and it is one text for a seed and a K, for
 * every drafter (none included), tree and length, because no draft takes part in it. It is `match` with another draw, and
 * like `match` it needs none of L1 to L3.
 *
 * What it gains: a drafter that races q on the same times (drafter `model`, siblings=coupled).
 * One child has the same winner with probability sum_x 1 / sum_y max(p(y)/p(x), q(y)/q(x)) >= (1 - TV)/(1 + TV), for every
 * K, where independent draws agree with sum p q only. With K children, one for each list, some child is the winner with
 * probability at least sum_x K / (sum_y max(p(y)/p(x), q(y)/q(x)) + (K - 1)/p(x)) (the list matching lemma). With fewer
 * lists than children the later ones are runners-up. What is proved: the law of the text, for any drafter and K; and the
 * acceptance of racing drafters, from the exact joint law of the races (core/dist/race.h). */
#include "verify/host_passes.h"
#include "kernels/rule/sampled.h"
#include "verify/verify.h"

typedef struct coupled_options {
    int races;
} coupled_options;

static const wg_option options[] = {
    WG_OPTION_INT(coupled_options, races, 1, 1, WG_LISTS,
                  "lists of times that the target races on, dealt out to siblings; another number is another text"),
    WG_OPTION_END,
};

static int races(const void *opt) { return ((const coupled_options *)opt)->races; }

static WG_HOST_ACCEPT(accept, wg_verify_coupled(&b, races(opt)));

const wg_verifier_class wg_verifier_coupled = {
    .name = "coupled",
    .doc = "the winner of a race on times shared with the drafter: the same text for every drafter, none included",
    .guarantee = "one text for one seed and `races`, whatever is drafted",
    .optimal_among = "rules without communication, to 2 TV",
    .paper = "Daliri et al. 2025; `races=K`: Rowan et al. 2025 (GLS)",
    .size = sizeof(coupled_options),
    .options = options,
    .test_options = (const char *const[]){ "", "races=3", NULL },
    .laws = WG_LAW_FIXED | WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT | WG_LAW_COUPLED,
    .lossless = true,
    .accept = accept,
    .races = races,
    .device = WG_RULE_COUPLED,
};
