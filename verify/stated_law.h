/* SPDX-License-Identifier: MIT
 * Lossy rules whose law is stated: rejection in rounds (kernels/rule/rounds.h) against another row than p.
 *
 * At a node with children let v be the row that the class's law_row computes from p and the q that the children were drawn
 * from. The rounds use v in place of p. Theorem: given the text and that a draft was made for its next token, that token has
 * the law v, since the theorem of rounds.h holds for any distribution in place of p. A node without children has no q: its
 * token (the bonus token, and the tokens of steps without a draft) has the law p.
 *
 * Such a rule runs on the host: rows of p are copied from a device. */
#ifndef WG_VERIFY_STATED_LAW_H
#define WG_VERIFY_STATED_LAW_H

#include "verify/host_passes.h"
#include "kernels/rule/rounds.h"

static inline void wg_stated_law_accept(const wg_verifier_class *rule, const void *opt, const wg_tree *tree, wg_rows *p,
                                        wg_rows *q, const wg_chance *chance, wg_workspace *work, wg_path *out)
{
    wg_rule_state state;
    const wg_rule_block b = wg_host_block(tree, p, q, chance, work, &state, out);
    int32_t point = -1;
    int supported = -1;
    wg_lazy_row there = { .state = WG_ROW_THERE };
    wg_rows law = { .n = 1, .cap = 1, .vocab = p->vocab, .p = wg_work_row(work, WG_WORK_ORDER) };
    law.point = &point;
    law.supported = &supported;
    law.lazy = &there;
    wg_node_view v = wg_view(&b, 0, 0);
    int child;
    do {
        if (v.first < 0) child = wg_stop(&b, &v);
        else {
            rule->law_row(opt, wg_whole_p(&b, v.p), wg_whole_q(&b, wg_q(&b, v.first)), p->vocab, law.p);
            v.p = (wg_dist){ &law, 0 };
            child = wg_rounds_child(&b, &v, 1);
        }
    } while (wg_advance(&b, &v, child));
}

#endif
