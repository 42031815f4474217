/* SPDX-License-Identifier: MIT
 * Calls a rule with a workspace that holds NaN, so that a read of memory that was not written shows. */
#ifndef WG_TESTS_ACCEPT_H
#define WG_TESTS_ACCEPT_H

#include <criterion/criterion.h>
#include <string.h>

#include "core/engine/verifier.h"

/* A workspace of NaN, until the next call; the same memory while the vocabulary is the same. */
static inline wg_workspace *work_for(int vocab)
{
    static wg_workspace work;
    if (work.vocab != vocab) {
        wg_workspace_close(&work);
        cr_assert(wg_workspace_open(&work, vocab, NULL) == WG_OK);
    }
    memset(work.row, 0xff, (size_t)WG_WORK_ROWS * (size_t)vocab * sizeof *work.row);
    return &work;
}

static inline void accept_alone(const wg_verifier_class *rule, const void *opt, const wg_tree *t, wg_rows *p, wg_rows *q,
                                const wg_chance *c, wg_path *out)
{
    rule->accept(opt, t, p, q, c, work_for(p->vocab), out);
}

#endif
