/* SPDX-License-Identifier: MIT
 * Rules that draw a token from p and go to the child with that token; without such a child the token is `next`. The draft
 * does not influence the draw, so the text is that of plain decoding by the same draw, for any drafter, tree and length:
 *   greedy   the most probable token (Stern et al. 2018, blockwise decoding)
 *   match    a draw at the token's own address (methods.md, Sample and match)
 *   coupled  the winner of a race on `races` lists of times (methods.md, Coupled races)
 * verify/<rule>.c states the guarantee of each. */
#ifndef WG_KERNELS_RULE_SAMPLED_H
#define WG_KERNELS_RULE_SAMPLED_H

#include "kernels/rule/rule_passes.h"

WG_RULE void wg_verify_greedy(const wg_rule_block *b)
{
    wg_node_view v = wg_view(b, 0, 0);
    do v.next = wg_argmax(b, v.p);
    while (wg_advance(b, &v, wg_child_of_token(b, v.node, v.next)));
}

WG_RULE void wg_verify_match(const wg_rule_block *b)
{
    wg_node_view v = wg_view(b, 0, 0);
    do v.next = wg_next_p(b, v.p, v.depth);
    while (wg_advance(b, &v, wg_child_of_token(b, v.node, v.next)));
}

WG_RULE void wg_verify_coupled(const wg_rule_block *b, int races)
{
    wg_node_view v = wg_view(b, 0, 0);
    do v.next = wg_race(b, v.p, v.depth, races);
    while (wg_advance(b, &v, wg_child_of_token(b, v.node, v.next)));
}

#endif
