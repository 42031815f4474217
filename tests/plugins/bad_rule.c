/* SPDX-License-Identifier: MIT
 * A rule whose answers are no paths: it accepts nothing, not even the root. */
#include "verify/rule_plugin.h"

static void accept(const void *opt, const wg_tree *tree, wg_rows *p, wg_rows *q, const wg_chance *chance, wg_workspace *work,
                   wg_path *out)
{
    (void)opt, (void)tree, (void)p, (void)q, (void)chance, (void)work;
    out->n = 0;
}

static const wg_verifier_class empty = { .name = "empty", .laws = WG_LAW_IID, .lossless = true, .accept = accept };

WG_VERIFIER_PLUGIN(empty);
