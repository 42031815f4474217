/* SPDX-License-Identifier: MIT
 * Trees and rows of the caller's as the library's own. */
#include "api/api_impl.h"

#include <math.h>
#include <string.h>

wg_status wg_law_in(const char *name, wg_sibling_law *out, wg_error *err)
{
    char laws[96];
    const int law = name ? wg_law_named(name) : 0;
    if (!law)
        return wg_fail(err, WG_EINVAL, "law %s%s%s; expected one of: %s", name ? "\"" : "", name ? name : "NULL",
                       name ? "\"" : "", wg_law_list(WG_LAWS, laws, sizeof laws));
    *out = (wg_sibling_law)law;
    return WG_OK;
}

wg_status wg_tree_in(const wg_draft *d, int vocab, wg_tree *out, wg_error *err)
{
    wg_sibling_law law = 0;
    if (!d->token || !d->parent) return wg_missing("wg_draft", d->token ? "parent" : "token", err);
    if (d->n < 1 || d->n > WG_TREE_MAX)
        return wg_fail(err, WG_EINVAL, "draft tree: %d nodes; expected 1..%d", d->n, (int)WG_TREE_MAX);
    WG_TRY(wg_law_in(d->law, &law, err));
    wg_tree_reset(out, d->token[0], law);
    out->score = d->score;
    for (int i = 1; i < d->n; i++) {
        const int qrow = d->qrow ? d->qrow[i] : -1;
        if (d->parent[i] < 0 || d->parent[i] >= i)
            return wg_fail(err, WG_EINVAL, "draft tree: the parent of node %d is %d; expected 0..%d", i, (int)d->parent[i],
                           i - 1);
        if (qrow < -1 || qrow >= d->q_rows)
            return wg_fail(err, WG_EINVAL, "draft tree: the q row of node %d is %d; there are %d rows", i, qrow, d->q_rows);
        wg_tree_push(out, d->parent[i], d->token[i], qrow);
    }
    for (int i = 0; i < out->n; i++) { /* the caller's word for it: the numbers were declared before the draws */
        int children = 0;
        for (int k = i + 1; k < out->n; k++) children += out->parent[k] == i;
        wg_tree_group(out, i, children);
    }
    return wg_tree_check(out, vocab, d->q_rows, err);
}

wg_status wg_rows_in(const double *from, int n, int vocab, const char *name, wg_rows *out, wg_error *err)
{
    static const double SLACK = 1e-3; /* rows of float32, summed by the caller */
    for (int r = 0; r < n; r++) {
        const double *row = from + (size_t)r * (size_t)vocab;
        double sum = 0;
        for (int i = 0; i < vocab; i++) {
            if (!(row[i] >= 0) || !isfinite(row[i]))
                return wg_fail(err, WG_EINVAL, "row %d of %s: token %d has probability %g", r, name, i, row[i]);
            sum += row[i];
        }
        if (!(fabs(sum - 1) <= SLACK)) return wg_fail(err, WG_EINVAL, "row %d of %s sums to %.9g; expected 1", r, name, sum);
        memcpy(wg_rows_at(out, wg_rows_push(out)), row, (size_t)vocab * sizeof *row);
    }
    return WG_OK;
}

bool wg_is_path(const wg_tree *t, int vocab, const int32_t *node, int n, int32_t next)
{
    if (n < 1 || n > t->n || node[0] != 0 || next < 0 || next >= vocab) return false;
    for (int i = 1; i < n; i++)
        if (node[i] <= 0 || node[i] >= t->n || t->parent[node[i]] != node[i - 1]) return false;
    return true;
}
