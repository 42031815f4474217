/* SPDX-License-Identifier: MIT
 * Makes static shapes from parents, lengths and widths. */
#include "draft/lm/grow.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/number.h"

wg_status wg_shape_set(wg_shape *s, const int *parent, int n, const char *name, wg_error *err)
{
    if (n < 2 || n > WG_TREE_MAX)
        return wg_fail(err, WG_ECONFIG, "%s: a tree of %d draft tokens; expected 1..%d", name, n - 1, WG_TREE_MAX - 1);
    if (parent[0] != -1) return wg_fail(err, WG_ECONFIG, "%s: node 0 is the root; expected parent -1, not %d", name, parent[0]);
    for (int i = 1; i < n; i++)
        if (parent[i] < 0 || parent[i] >= i)
            return wg_fail(err, WG_ECONFIG, "%s: node %d has parent %d; expected an earlier node, 0..%d", name, i, parent[i],
                           i - 1);
    int old[WG_TREE_MAX] = { 0 }; /* the list's number of each node */
    memset(s, 0, sizeof *s);
    s->parent[0] = -1;
    s->n = 1;
    for (int i = 0; i < s->n; i++) {
        s->first[i] = (int16_t)s->n;
        for (int k = old[i] + 1; k < n; k++) {
            if (parent[k] != old[i]) continue;
            old[s->n] = k;
            s->parent[s->n] = (int16_t)i;
            s->depth[s->n] = (int16_t)(s->depth[i] + 1);
            s->children[i]++;
            s->n++;
        }
    }
    s->levels = s->depth[s->n - 1];
    for (int i = 0; i < s->n; i++) s->above[s->depth[i] + 1] = (int16_t)(i + 1);
    return WG_OK;
}

wg_status wg_shape_chain(wg_shape *s, int length, wg_error *err)
{
    int parent[WG_TREE_MAX];
    for (int i = 0; i < WG_TREE_MAX; i++) parent[i] = i - 1;
    return wg_shape_set(s, parent, length < WG_TREE_MAX ? length + 1 : WG_TREE_MAX, "chain", err);
}

static wg_status bad_kary(const char *text, wg_error *err)
{
    return wg_fail(err, WG_ECONFIG,
                   "tree=%s: expected children per depth, such as 3-2-1 (each 1..%d), with at most %d nodes "
                   "below the root in all",
                   text, WG_TREE_MAX - 1, WG_TREE_MAX - 1);
}

wg_status wg_shape_kary(wg_shape *s, const char *text, wg_error *err)
{
    int parent[WG_TREE_MAX] = { -1 }, n = 1, first = 0; /* first node of the deepest level so far */
    if (!*text) return bad_kary(text, err);
    for (const char *at = text; *at;) {
        char *end;
        if (*at < '0' || *at > '9') return bad_kary(text, err);
        const long k = strtol(at, &end, 10);
        if (k < 1 || k >= WG_TREE_MAX || (*end && (*end != '-' || !end[1]))) return bad_kary(text, err);
        const int last = n;
        if (n + (last - first) * k > WG_TREE_MAX) return bad_kary(text, err);
        for (int i = first; i < last; i++)
            for (long c = 0; c < k; c++) parent[n++] = i;
        first = last;
        at = *end ? end + 1 : end;
    }
    return wg_shape_set(s, parent, n, "tree", err);
}

wg_status wg_accept_parse(const char *text, double accept[WG_ACCEPT_MAX], int *n, wg_error *err)
{
    double sum = 0;
    *n = wg_number_list(text, "/", 0, 1, accept, WG_ACCEPT_MAX);
    if (*n < 0)
        return wg_fail(err, WG_ECONFIG,
                       "acceptances \"%s\": expected 1..%d numbers in 0..1 such as 0.7/0.15/0.05: how often the "
                       "first, second, ... child of a node is the accepted one",
                       text, WG_ACCEPT_MAX);
    for (int i = 0; i < *n; i++) sum += accept[i];
    if (sum <= 1 + 1e-9) return WG_OK;
    return wg_fail(err, WG_ECONFIG,
                   "acceptances %s: their sum is %g; at most one child of a node is accepted, so "
                   "expected at most 1",
                   text, sum);
}

double wg_shape_expected(const wg_shape *s, const double *accept, int n)
{
    double value[WG_TREE_MAX] = { 1 }, sum = 1;
    for (int i = 1; i < s->n; i++) {
        const int rank = i - s->first[s->parent[i]];
        sum += value[i] = rank < n ? value[s->parent[i]] * accept[rank] : 0;
    }
    return sum;
}
