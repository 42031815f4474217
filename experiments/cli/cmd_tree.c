/* SPDX-License-Identifier: MIT
 * wager tree: the shapes of draft trees. Prints a shape with its expected tokens per step, and draws it. */
#include <jansson.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "experiments/cli/cli.h"
#include "experiments/report/tree_draw.h"

typedef struct tree {
    const char *tree, *accept;
    long length, budget;
    bool json;
} tree;

static wg_status make(const tree *g, const char *kind, const double *accept, int n, wg_shape *s, wg_error *err)
{
    if (!strcmp(kind, "chain")) return wg_shape_chain(s, (int)g->length, err);
    if (!strcmp(kind, "kary")) return wg_shape_kary(s, g->tree, err);
    if (!strcmp(kind, "sequoia")) return wg_shape_sequoia(s, accept, n, (int)g->budget, (int)g->length, err);
    return wg_shape_file(s, g->tree, err);
}

static void print_json(const wg_shape *s, const double *value, double expected)
{
    json_t *parents = json_array(), *values = json_array();
    for (int i = 0; i < s->n; i++) {
        json_array_append_new(parents, json_integer(s->parent[i]));
        json_array_append_new(values, json_real(value[i]));
    }
    json_t *all = json_pack("{s:o, s:o, s:f, s:i, s:i}", "parents", parents, "values", values, "expected_tokens", expected,
                            "draft_tokens", s->n - 1, "draft_passes", s->levels);
    wg_json_put_line(all, 0);
}

static wg_status show(const tree *g, const char *kind, wg_error *err)
{
    double accept[WG_ACCEPT_MAX], value[WG_TREE_MAX] = { 1 };
    int n;
    wg_shape s;
    WG_TRY(wg_accept_parse(g->accept, accept, &n, err));
    WG_TRY(make(g, kind, accept, n, &s, err));
    for (int i = 1; i < s.n; i++) {
        const int rank = i - s.first[s.parent[i]];
        value[i] = rank < n ? value[s.parent[i]] * accept[rank] : 0;
    }
    const double expected = wg_shape_expected(&s, accept, n);
    if (g->json) print_json(&s, value, expected);
    else {
        wg_tree_draw_text(stdout, &s, value);
        printf("%d draft tokens in %d draft passes; with acceptances %s a step yields %.4f tokens\n", s.n - 1, s.levels,
               g->accept, expected);
    }
    return WG_OK;
}

int wg_cmd_tree(int argc, char **argv)
{
    tree g = { .tree = "3-2-1", .accept = "0.6/0.15/0.06/0.03", .length = 4, .budget = WG_TREE_MAX > 24 ? 24 : 7 };
    const char *kind = "chain";
    const wg_flag flags[] = {
        { "tree", 't', WG_FLAG_STRING, &g.tree, "3-2-1|FILE",
          "kary: children of a node by depth; file: parents or paths in JSON", 0, 0 },
        { "length", 'l', WG_FLAG_INT, &g.length, "N", "length of a chain; largest depth of a sequoia tree", 1,
          WG_TREE_MAX - 1 },
        { "budget", 'b', WG_FLAG_INT, &g.budget, "N", "number of draft tokens of a sequoia tree", 1, WG_TREE_MAX - 1 },
        { "accept", 'a', WG_FLAG_STRING, &g.accept, "P/P/...", "probability that the 1st, 2nd, ... child of a node is accepted",
          0, 0 },
        { "json", 0, WG_FLAG_BOOL, &g.json, NULL, "print parents and values as one JSON object", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("tree", flags, argc, argv, &kind, 0, 1);
    if (done >= 0) return done;
    wg_error err;
    return show(&g, kind, &err) ? wg_cli_fail(&err) : WG_EXIT_OK;
}
