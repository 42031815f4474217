/* SPDX-License-Identifier: MIT */
#include "core/dist/tree.h"

#include <criterion/criterion.h>
#include <string.h>

/* root 9 -> {1, 2}; 1 -> {3}; 3 -> {4}; 2 -> {1} */
static wg_tree sample(wg_sibling_law law)
{
    wg_tree t;
    wg_tree_reset(&t, 9, law);
    cr_assert(wg_tree_push(&t, 0, 1, 0) == 1);
    cr_assert(wg_tree_push(&t, 0, 2, 0) == 2);
    cr_assert(wg_tree_push(&t, 1, 3, 1) == 3);
    cr_assert(wg_tree_push(&t, 3, 4, 2) == 4);
    cr_assert(wg_tree_push(&t, 2, 1, 2) == 5);
    return t;
}

Test(tree, shape)
{
    wg_tree t;
    wg_tree_reset(&t, 9, WG_LAW_IID);
    cr_assert(t.n == 1 && t.token[0] == 9 && t.parent[0] == -1 && wg_tree_height(&t) == 0 && wg_tree_child(&t, 0, 0) == -1);
    t = sample(WG_LAW_IID);
    const int depth[] = { 0, 1, 1, 2, 3, 2 };
    for (int i = 0; i < t.n; i++) cr_assert(wg_tree_depth(&t, i) == depth[i]);
    cr_assert(wg_tree_height(&t) == 3);
    cr_assert(t.anc[4].w[0] == (1 | 2 | 8 | 16) && t.anc[5].w[0] == (1 | 4 | 32));
    cr_assert(wg_tree_child(&t, 0, 0) == 1 && wg_tree_child(&t, 0, 1) == 2 && wg_tree_child(&t, 0, 2) == -1);
    cr_assert(wg_tree_child(&t, 2, 2) == 5 && wg_tree_child(&t, 5, 5) == -1);
    cr_assert(wg_tree_find(&t, 0, 2) == 2 && wg_tree_find(&t, 2, 1) == 5 && wg_tree_find(&t, 0, 3) == -1);
}

Test(tree, takes_no_more_than_it_holds)
{
    wg_tree t;
    wg_tree_reset(&t, 0, WG_LAW_FIXED);
    for (int i = 1; i < WG_TREE_MAX; i++) cr_assert(wg_tree_push(&t, i - 1, 0, -1) == i);
    cr_assert(wg_tree_push(&t, 0, 0, -1) == -1 && t.n == WG_TREE_MAX);
    cr_assert(wg_tree_height(&t) == WG_TREE_MAX - 1 && wg_tree_check(&t, 1, 0, NULL) == WG_OK);
    wg_tree_reset(&t, 0, WG_LAW_FIXED);
    cr_assert(wg_tree_push(&t, 1, 0, -1) == -1 && wg_tree_push(&t, -1, 0, -1) == -1 && t.n == 1);
}

Test(tree, keeps_some_nodes)
{
    wg_tree t = sample(WG_LAW_IID);
    const bool keep[] = { true, false, true, false, false, true };
    int16_t from[WG_TREE_MAX];
    wg_tree_group(&t, 2, 1);
    wg_tree_probe(&t, 5, 7);
    cr_assert(t.group[0] == -1 && t.group[2] == 1 && t.probes == 1);
    cr_assert(wg_tree_keep(&t, keep, from) == 3 && t.n == 3 && t.probes == 0);
    cr_assert(from[0] == 0 && from[1] == 2 && from[2] == 5);
    cr_assert(t.token[1] == 2 && t.parent[1] == 0 && t.qrow[1] == 0 && t.group[1] == 1);
    cr_assert(t.token[2] == 1 && t.parent[2] == 1 && t.qrow[2] == 2 && t.group[2] == -1 && wg_tree_depth(&t, 2) == 2);
    cr_assert(wg_tree_check(&t, 10, 3, NULL) == WG_OK);
}

Test(tree, law_names)
{
    char buf[64];
    cr_assert_str_eq(wg_law_name(WG_LAW_WITHOUT_REPLACEMENT), "without_replacement");
    cr_assert_str_eq(wg_law_name((wg_sibling_law)64), "unknown law");
    cr_assert_str_eq(wg_law_list(WG_LAW_FIXED | WG_LAW_IID, buf, sizeof buf), "fixed, iid");
    cr_assert_str_eq(wg_law_list(0, buf, sizeof buf), "");
    cr_assert_str_eq(wg_law_list(7, buf, 10), "fixed, ii");
}

static void expect_bad(const wg_tree *t, const char *what)
{
    wg_error err = { 0 };
    cr_assert(wg_tree_check(t, 10, 3, &err) == WG_EINVAL, "expected: %s", what);
    cr_assert(strstr(err.text, what), "%s\nhas no: %s", err.text, what);
}

Test(tree, check_names_the_node)
{
    wg_tree t = sample(WG_LAW_IID);
    cr_assert(wg_tree_check(&t, 10, 3, NULL) == WG_OK);
    t.n = 0, expect_bad(&t, "0 nodes");
    t.n = WG_TREE_MAX + 1, expect_bad(&t, "nodes; expected 1..");
    t = sample((wg_sibling_law)3), expect_bad(&t, "not a sibling law");
    t = sample(WG_LAW_IID), t.token[3] = 10, expect_bad(&t, "node 3 is token 10; the vocabulary is 0..9");
    t = sample(WG_LAW_IID), t.token[0] = -1, expect_bad(&t, "node 0 is token -1");
    t = sample(WG_LAW_IID), t.parent[0] = 0, expect_bad(&t, "not a root");
    t = sample(WG_LAW_IID), t.parent[2] = 2, expect_bad(&t, "node 2 has parent 2");
    t = sample(WG_LAW_IID), t.parent[2] = -1, expect_bad(&t, "node 2 has parent -1");
    t = sample(WG_LAW_IID), t.anc[4].w[0] ^= 4, expect_bad(&t, "ancestor bits of node 4");
    t = sample(WG_LAW_IID), t.anc[4].w[WG_MASK_WORDS - 1] ^= 1ull << 63, expect_bad(&t, "ancestor bits of node 4");
    t = sample(WG_LAW_IID), t.anc[0].w[WG_MASK_WORDS - 1] ^= 1ull << 63, expect_bad(&t, "not a root");
    t = sample(WG_LAW_IID), t.qrow[4] = 3, expect_bad(&t, "node 4 names q row 3, but the drafter pushed 3");
    t = sample(WG_LAW_IID), t.qrow[4] = -2, expect_bad(&t, "node 4 names q row -2");
    t = sample(WG_LAW_IID), t.qrow[4] = -1, expect_bad(&t, "node 4 of a tree with law iid has no q row");
    t = sample(WG_LAW_FIXED), t.qrow[4] = -1;
    cr_assert(wg_tree_check(&t, 10, 3, NULL) == WG_OK);
    t = sample(WG_LAW_WITHOUT_REPLACEMENT);
    cr_assert(wg_tree_check(&t, 10, 3, NULL) == WG_OK);
    t.token[2] = 1, expect_bad(&t, "siblings 1 and 2 are both token 1");
    const int row = t.qrow[2] == 0 ? 1 : 0; /* siblings of one draw come from one row */
    t = sample(WG_LAW_WITHOUT_REPLACEMENT), t.qrow[2] = (int16_t)row, expect_bad(&t, "siblings 1 and 2 name q rows");
    t = sample(WG_LAW_IID), t.qrow[2] = (int16_t)row, expect_bad(&t, "siblings 1 and 2 name q rows");
    t = sample(WG_LAW_FIXED), t.qrow[2] = (int16_t)row;
    cr_assert(wg_tree_check(&t, 10, 3, NULL) == WG_OK);
    t = sample(WG_LAW_COUPLED), t.qrow[4] = -1; /* rules that compare need no q */
    cr_assert(wg_tree_check(&t, 10, 3, NULL) == WG_OK);
}

Test(tree, probes_hang_behind_the_nodes)
{
    wg_tree t = sample(WG_LAW_IID);
    cr_assert(wg_tree_probe(&t, 4, 7) == 6 && t.n == 6 && t.probes == 1 && wg_tree_rows(&t) == 7);
    cr_assert(wg_tree_probe(&t, 6, 8) == 7 && wg_tree_depth(&t, 7) == 5);                     /* below a probe */
    cr_assert(wg_tree_probe(&t, 4, 7) == 6 && wg_tree_probe(&t, 0, 2) == 2 && t.probes == 2); /* one is there already */
    cr_assert(wg_tree_scored(&t, 4, 7) == 6 && wg_tree_scored(&t, 0, 1) == 1 && wg_tree_scored(&t, 4, 8) == -1);
    cr_assert(wg_tree_check(&t, 10, 3, NULL) == WG_OK);
    cr_assert(wg_tree_probe(&t, 8, 0) == -1 && wg_tree_probe(&t, -1, 9) == -1 && wg_tree_scored(&t, -1, 9) == -1);
    cr_assert(wg_tree_push(&t, 0, 5, 0) == -1); /* nodes come first */
    cr_assert(wg_tree_find(&t, 4, 7) == -1 && wg_tree_child(&t, 4, 4) == -1 && wg_tree_height(&t) == 3);
    for (int i = 0; i < WG_TREE_MAX; i++) wg_tree_probe(&t, wg_tree_rows(&t) - 1, 3);
    cr_assert(wg_tree_rows(&t) == WG_TREE_MAX && wg_tree_probe(&t, 0, 9) == -1 && wg_tree_probe(&t, 0, 1) == 1);
    cr_assert(wg_tree_check(&t, 10, 3, NULL) == WG_OK);
    const wg_tree full = t;
    t.probes++, expect_bad(&t, "probes behind 6 nodes; expected 0..");
    t = full, t.probes = -1, expect_bad(&t, "-1 probes behind 6 nodes");
    t = full, t.token[7] = 10, expect_bad(&t, "node 7 is token 10");
    t = full, t.parent[7] = 7, expect_bad(&t, "node 7 has parent 7");
    t = full, t.anc[7].w[0] ^= 4, expect_bad(&t, "ancestor bits of node 7");
    t = full, t.qrow[6] = 1, expect_bad(&t, "probe 6 names q row 1; a probe is not drawn");
    wg_tree_reset(&t, 9, WG_LAW_IID);
    cr_assert(t.probes == 0);
}

/* What the engine relies on when it cuts a tree. */
Test(tree, its_first_nodes_are_a_tree)
{
    wg_tree t = sample(WG_LAW_IID);
    for (; t.n >= 1; t.n--) cr_assert(wg_tree_check(&t, 10, 3, NULL) == WG_OK);
}

Test(tree, numbers_of_children_as_declared)
{
    wg_tree t;
    int children = 0;
    wg_tree_reset(&t, 1, WG_LAW_IID);
    cr_assert_eq(wg_tree_undeclared(&t, &children), -1);
    wg_tree_push(&t, 0, 2, 0);
    cr_assert_eq(wg_tree_undeclared(&t, &children), -1, "a single child");
    wg_tree_push(&t, 0, 3, 0);
    cr_assert(wg_tree_undeclared(&t, &children) == 0 && children == 2);
    wg_tree_group(&t, 0, 2);
    cr_assert_eq(wg_tree_undeclared(&t, &children), -1);
    wg_tree_group(&t, 2, 1);
    cr_assert(wg_tree_undeclared(&t, &children) == 2 && children == 0, "it was to have one");
    t.law = WG_LAW_WITHOUT_REPLACEMENT;
    cr_assert(wg_tree_undeclared(&t, &children) == 2 && children == 0, "of distinct siblings too");
    for (int law = WG_LAW_FIXED; law <= WG_LAW_COUPLED; law += WG_LAW_COUPLED - WG_LAW_FIXED) {
        t.law = (wg_sibling_law)law;
        cr_assert_eq(wg_tree_undeclared(&t, &children), -1, "of siblings that are drawn from q only");
    }
}
