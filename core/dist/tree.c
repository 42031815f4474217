/* SPDX-License-Identifier: MIT
 * The draft tree. The ancestor bits answer the frequent questions: a node's depth is the number of bits below its own.
 * Invariant of a checked tree: parent[i] < i, so the first k nodes of a tree are a tree. */
#include "core/dist/tree.h"

#include <stdio.h>
#include <string.h>

static const struct {
    wg_sibling_law law;
    const char *name;
} laws[] = {
    { WG_LAW_FIXED, "fixed" },
    { WG_LAW_IID, "iid" },
    { WG_LAW_WITHOUT_REPLACEMENT, "without_replacement" },
    { WG_LAW_COUPLED, "coupled" },
};
enum { LAWS = sizeof laws / sizeof *laws };

const char *wg_law_name(wg_sibling_law law)
{
    for (int i = 0; i < LAWS; i++)
        if (laws[i].law == law) return laws[i].name;
    return "unknown law";
}

int wg_law_named(const char *name)
{
    for (int i = 0; i < LAWS; i++)
        if (!strcmp(laws[i].name, name)) return laws[i].law;
    return 0;
}

const char *wg_law_list(unsigned set, char *buf, int size)
{
    int at = 0;
    if (size > 0) buf[0] = '\0';
    for (int i = 0; i < LAWS; i++)
        if (set & laws[i].law && at < size) at += snprintf(buf + at, (size_t)(size - at), "%s%s", at ? ", " : "", laws[i].name);
    return buf;
}

void wg_tree_reset(wg_tree *t, int32_t root, wg_sibling_law law)
{
    t->n = 1;
    t->probes = t->row = 0;
    t->law = law;
    t->no_draft = WG_NO_DRAFT_NOTHING;
    t->score = 0;
    t->token[0] = root;
    t->parent[0] = t->qrow[0] = t->group[0] = -1;
    t->anc[0] = wg_mask_bit(0);
}

static int put(wg_tree *t, int i, int parent, int32_t token, int qrow)
{
    t->token[i] = token;
    t->parent[i] = (int16_t)parent;
    t->qrow[i] = (int16_t)qrow;
    t->group[i] = -1;
    t->anc[i] = wg_mask_with(t->anc[parent], i);
    return i;
}

int wg_tree_push(wg_tree *t, int parent, int32_t token, int qrow)
{
    if (t->n >= WG_TREE_MAX || t->probes || parent < 0 || parent >= t->n) return -1;
    return put(t, t->n++, parent, token, qrow);
}

int wg_tree_undeclared(const wg_tree *t, int *children)
{
    for (int node = 0; node < t->n && t->law & (WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT); node++) {
        *children = 0;
        for (int i = node; (i = wg_tree_child(t, node, i)) >= 0;) ++*children;
        if (*children != t->group[node] && (*children > 1 || t->group[node] >= 0)) return node;
    }
    return -1;
}

int wg_tree_keep(wg_tree *t, const bool *keep, int16_t from[WG_TREE_MAX])
{
    int16_t now[WG_TREE_MAX] = { 0 };
    int n = 1;
    from[0] = 0;
    for (int i = 1; i < t->n; i++) {
        const int group = t->group[i];
        if (!keep[i]) continue;
        from[n] = (int16_t)i;
        now[i] = (int16_t)put(t, n, now[t->parent[i]], t->token[i], t->qrow[i]);
        t->group[n++] = (int16_t)group;
    }
    t->n = n;
    t->probes = 0;
    return n;
}

int wg_tree_scored(const wg_tree *t, int parent, int32_t token)
{
    for (int i = parent + 1; parent >= 0 && i < wg_tree_rows(t); i++)
        if (t->parent[i] == parent && t->token[i] == token) return i;
    return -1;
}

int wg_tree_probe(wg_tree *t, int parent, int32_t token)
{
    const int there = wg_tree_scored(t, parent, token), n = wg_tree_rows(t);
    if (there >= 0 || n >= WG_TREE_MAX || parent < 0 || parent >= n) return there;
    t->probes++;
    return put(t, n, parent, token, -1);
}

int wg_tree_depth(const wg_tree *t, int node) { return wg_mask_count(&t->anc[node]) - 1; }

int wg_tree_height(const wg_tree *t)
{
    int height = 0;
    for (int i = 1; i < t->n; i++)
        if (wg_tree_depth(t, i) > height) height = wg_tree_depth(t, i);
    return height;
}

int wg_tree_child(const wg_tree *t, int node, int after)
{
    for (int i = after + 1; i < t->n; i++)
        if (t->parent[i] == node) return i;
    return -1;
}

int wg_tree_find(const wg_tree *t, int node, int32_t token)
{
    for (int i = node + 1; i < t->n; i++)
        if (t->parent[i] == node && t->token[i] == token) return i;
    return -1;
}

/* Checks the parent of node or probe i > 0; the earlier ones are valid. */
static wg_status check_place(const wg_tree *t, int i, wg_error *err)
{
    if (t->parent[i] < 0 || t->parent[i] >= i)
        return wg_fail(err, WG_EINVAL, "draft tree: node %d has parent %d; expected an earlier node, 0..%d", i, t->parent[i],
                       i - 1);
    const wg_mask path = wg_mask_with(t->anc[t->parent[i]], i);
    if (!wg_mask_same(&t->anc[i], &path))
        return wg_fail(err, WG_EINVAL,
                       "draft tree: the ancestor bits of node %d are not those of its parent %d and itself; "
                       "build trees with wg_tree_push",
                       i, t->parent[i]);
    if (i >= t->n && t->qrow[i] != -1)
        return wg_fail(err, WG_EINVAL, "draft tree: probe %d names q row %d; a probe is not drawn, give it -1", i, t->qrow[i]);
    return WG_OK;
}

static wg_status check_node(const wg_tree *t, int i, int q_rows, wg_error *err)
{
    if (t->qrow[i] < -1 || t->qrow[i] >= q_rows)
        return wg_fail(err, WG_EINVAL, "draft tree: node %d names q row %d, but the drafter pushed %d", i, t->qrow[i], q_rows);
    if (t->law & (WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT) && t->qrow[i] < 0)
        return wg_fail(err, WG_EINVAL, "draft tree: node %d of a tree with law %s has no q row; give the row it was drawn from",
                       i, wg_law_name(t->law));
    for (int j = 1; t->law & (WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT) && j < i; j++) {
        if (t->parent[j] != t->parent[i]) continue;
        if (t->qrow[j] != t->qrow[i])
            return wg_fail(err, WG_EINVAL,
                           "draft tree: siblings %d and %d name q rows %d and %d; with law %s they are drawn from "
                           "one row",
                           j, i, t->qrow[j], t->qrow[i], wg_law_name(t->law));
        if (t->law == WG_LAW_WITHOUT_REPLACEMENT && t->token[j] == t->token[i])
            return wg_fail(err, WG_EINVAL,
                           "draft tree: siblings %d and %d are both token %d; the law without_replacement "
                           "has distinct siblings",
                           j, i, (int)t->token[i]);
    }
    return WG_OK;
}

wg_status wg_tree_check(const wg_tree *t, int vocab, int q_rows, wg_error *err)
{
    if (t->n < 1 || t->n > WG_TREE_MAX)
        return wg_fail(err, WG_EINVAL, "draft tree: %d nodes; expected 1..%d", t->n, (int)WG_TREE_MAX);
    if (t->probes < 0 || t->probes > WG_TREE_MAX - t->n)
        return wg_fail(err, WG_EINVAL, "draft tree: %d probes behind %d nodes; expected 0..%d", t->probes, t->n,
                       WG_TREE_MAX - t->n);
    if (t->law <= 0 || t->law & ~WG_LAWS || t->law & (t->law - 1))
        return wg_fail(err, WG_EINVAL, "draft tree: %d is not a sibling law", (int)t->law);
    for (int i = 0; i < wg_tree_rows(t); i++)
        if (t->token[i] < 0 || t->token[i] >= vocab)
            return wg_fail(err, WG_EINVAL, "draft tree: node %d is token %d; the vocabulary is 0..%d", i, (int)t->token[i],
                           vocab - 1);
    const wg_mask root = wg_mask_bit(0);
    if (t->parent[0] != -1 || !wg_mask_same(&t->anc[0], &root) || t->qrow[0] != -1)
        return wg_fail(err, WG_EINVAL, "draft tree: node 0 is not a root; start trees with wg_tree_reset");
    for (int i = 1; i < wg_tree_rows(t); i++) {
        WG_TRY(check_place(t, i, err));
        if (i < t->n) WG_TRY(check_node(t, i, q_rows, err));
    }
    return WG_OK;
}

wg_status wg_path_check(const wg_path *path, const wg_tree *t, int vocab, wg_error *err)
{
    if (path->n < 1 || path->n > t->n)
        return wg_fail(err, WG_EINVAL, "a path of %d nodes in a tree of %d; expected the root and the accepted nodes", path->n,
                       t->n);
    if (path->node[0] != 0)
        return wg_fail(err, WG_EINVAL, "a path that begins at node %d; expected the root, node 0", path->node[0]);
    for (int i = 1; i < path->n; i++) {
        const int node = path->node[i], before = path->node[i - 1];
        if (node < 0 || node >= t->n)
            return wg_fail(err, WG_EINVAL, "a path with node %d behind node %d; the tree has nodes 0..%d", node, before,
                           t->n - 1);
        if (t->parent[node] != before)
            return wg_fail(err, WG_EINVAL, "a path with node %d behind node %d; expected a child of it", node, before);
    }
    if (path->next < 0 || path->next >= vocab)
        return wg_fail(err, WG_EINVAL, "the next token %d; the vocabulary is 0..%d", (int)path->next, vocab - 1);
    return WG_OK;
}
