/* SPDX-License-Identifier: MIT
 * Exact tau: the closed forms against an enumeration of the rules' own code, text by text; the chain against counting by hand;
 * and on the bundled pair against simulation. */
#include <math.h>

#include "core/base/mem.h"
#include "core/dist/race.h"
#include "experiments/run/exact_run.h"
#include "experiments/run/runner.h"
#include "kernels/philox.h"
#include "scene.h"
#include "tests/accept.h"
#include "tests/bundled.h"
#include "verify/verify.h"

enum { V = 3, DEPTH = 2, TEXTS = 1 + V + V * V };

/* Tables by text: number 0 is the empty one, text t and then x is V t + 1 + x. */
typedef struct tables {
    double p[TEXTS][V], q[TEXTS][V];
} tables;

static double uniform(int c, int at, int x, int which)
{
    const wg_philox r = wg_philox_at(77, (uint32_t)c, (uint32_t)at, (uint32_t)x, (uint32_t)which);
    return wg_philox_double(r.v[0], r.v[1]);
}

static void make_tables(tables *t, int c)
{
    for (int at = 0; at < TEXTS; at++)
        for (int which = 0; which < 2; which++) {
            double *row = which ? t->q[at] : t->p[at], sum = 0;
            for (int x = 0; x < V; x++)
                sum += row[x] = pow(uniform(c, at, x, which), 1 + c % 3) + (c % 5 == 0 && x == 1 ? 0 : 1e-3);
            for (int x = 0; x < V; x++) row[x] /= sum;
        }
}

/* The kth child of a node by the law of the form; -1: there is none. */
static int child_of(wg_exact_form form, const wg_tree *t, int node, int k, const double *q, const wg_chance *c)
{
    double left[V], sum = 0;
    const char *law = wg_exact_rules[form].law;
    if (!strcmp(law, "iid")) return wg_chance_pick(c, WG_DRAW_DRAFT, t->n, q, V);
    memcpy(left, q, sizeof left);
    if (!strcmp(law, "coupled")) {
        const wg_chance at = wg_chance_at(c, wg_tree_depth(t, node));
        return wg_chance_race(&at, WG_DRAW_COUPLED, wg_list_0, NULL, left, V);
    }
    for (int i = node; (i = wg_tree_child(t, node, i)) >= 0;) left[t->token[i]] = 0;
    for (int x = 0; x < V; x++) sum += left[x];
    if (!(sum > 0)) return -1;
    if (!strcmp(law, "without_replacement")) return wg_chance_pick(c, WG_DRAW_DRAFT, t->n, left, V);
    int best = 0;
    for (int x = 1; x < V; x++)
        if (left[x] > left[best]) best = x;
    (void)k;
    return best;
}

static wg_sibling_law law_of(wg_exact_form form)
{
    const char *law = wg_exact_rules[form].law;
    return !strcmp(law, "iid")       ? WG_LAW_IID
           : !strcmp(law, "fixed")   ? WG_LAW_FIXED
           : !strcmp(law, "coupled") ? WG_LAW_COUPLED
                                     : WG_LAW_WITHOUT_REPLACEMENT;
}

static const wg_verifier_class *rule_of(wg_exact_form form)
{
    for (int i = 0; wg_verifiers[i]; i++)
        if (!strcmp(wg_verifiers[i]->name, wg_exact_rules[form].rule)) return wg_verifiers[i];
    return NULL;
}

/* survived[t]: the probability that the text t, of l tokens, was accepted token by token (and perhaps more). */
static void enumerate(wg_exact_form form, const int *width, const tables *tb, double survived[TEXTS])
{
    wg_error err;
    wg_rows p, q;
    wg_chance_tree all;
    int text[WG_TREE_MAX];
    _Alignas(16) char options[4096] = { 0 };
    cr_assert_leq(rule_of(form)->size, sizeof options);
    wg_option_defaults(rule_of(form)->options, options);
    cr_assert_eq(wg_rows_open(&p, WG_TREE_MAX, V, &err), WG_OK);
    cr_assert_eq(wg_rows_open(&q, WG_TREE_MAX, V, &err), WG_OK);
    cr_assert_eq(wg_chance_tree_open(&all, &err), WG_OK);
    memset(survived, 0, TEXTS * sizeof *survived);
    do {
        const wg_chance c = wg_chance_tree_chance(&all, 1);
        wg_tree t;
        wg_path path;
        wg_rows_clear(&p);
        wg_rows_clear(&q);
        wg_tree_reset(&t, 0, law_of(form));
        text[0] = 0;
        for (int node = 0; node < t.n; node++) {
            memcpy(wg_rows_at(&p, wg_rows_push(&p)), tb->p[text[node]], sizeof *tb->p);
            const int depth = wg_tree_depth(&t, node);
            if (depth == DEPTH) continue;
            const int row = wg_rows_push(&q);
            memcpy(wg_rows_at(&q, row), tb->q[text[node]], sizeof *tb->q);
            for (int k = 0; k < width[depth]; k++) {
                const int x = child_of(form, &t, node, k, tb->q[text[node]], &c);
                if (x < 0) break;
                text[wg_tree_push(&t, node, x, row)] = text[node] * V + 1 + x;
            }
        }
        accept_alone(rule_of(form), options, &t, &p, &q, &c, &path);
        for (int i = 1; i < path.n; i++) survived[text[path.node[i]]] += wg_chance_tree_probability(&all);
    } while (wg_chance_tree_next(&all));
    cr_assert_not(all.failed || all.beyond);
    wg_chance_tree_close(&all);
    wg_rows_close(&p);
    wg_rows_close(&q);
}

static double closed(wg_exact_form form, int k, const tables *tb, int text, int y)
{
    wg_error err;
    wg_rows p, q;
    cr_assert_eq(wg_rows_open(&p, 1, V, &err), WG_OK);
    cr_assert_eq(wg_rows_open(&q, 1, V, &err), WG_OK);
    memcpy(wg_rows_at(&p, wg_rows_push(&p)), tb->p[text], sizeof *tb->p);
    memcpy(wg_rows_at(&q, wg_rows_push(&q)), tb->q[text], sizeof *tb->q);
    const double a = wg_exact_accept(form, k, &p, 0, &q, 0, y, work_for(p.vocab));
    wg_rows_close(&p);
    wg_rows_close(&q);
    return a;
}

/* What survives depth 1 and 2 of each text, by enumeration and by the forms. */
static void compare(wg_exact_form form, int first, int second, int c)
{
    tables tb;
    double survived[TEXTS];
    const int width[DEPTH] = { first, second };
    make_tables(&tb, c);
    enumerate(form, width, &tb, survived);
    for (int y = 0; y < V; y++) {
        const double py = tb.p[0][y], a = closed(form, first, &tb, 0, y);
        const bool block = form == WG_EXACT_BLOCK;
        const double r1 = a > 0 ? fmin(1, 1 / a) : 0, s1 = block ? r1 * a : a;
        cr_assert_float_eq(survived[1 + y], s1 * py, 1e-12, "%s %d-%d, case %d, token %d: %.15g, form %.15g",
                           wg_exact_rules[form].rule, first, second, c, y, survived[1 + y] / py, s1);
        for (int z = 0; z < V; z++) {
            const int at = (1 + y) * V + 1 + z;
            const double pz = tb.p[1 + y][z], b = closed(form, second, &tb, 1 + y, z);
            const double s2 = block ? (b > 0 ? fmin(1, r1 / b) : 0) * a * b : a * b;
            cr_assert_float_eq(survived[at], s2 * py * pz, 1e-12, "%s %d-%d, case %d, text %d %d: %.15g, form %.15g",
                               wg_exact_rules[form].rule, first, second, c, y, z, survived[at] / py / pz, s2);
        }
    }
}

Test(exact, forms_are_the_rules, .timeout = 120)
{
    for (int c = 0; c < 12; c++)
        for (int f = 0; f < WG_EXACT_FORMS; f++) {
            compare((wg_exact_form)f, 1, 1, c);
            if (wg_exact_rules[f].most == 1) continue;
            compare((wg_exact_form)f, 2, 1, c);
            if (c < 3) compare((wg_exact_form)f, 1, 2, c);
        }
    for (int c = 0; c < 3; c++)
        for (int f = 0; f < WG_EXACT_FORMS; f++)
            if (!wg_exact_rules[f].most) compare((wg_exact_form)f, 3, 1, c);
}

/* Every outcome of every position, by hand: a text of four tokens, chains of two. */
Test(exact, chain_counts_rounds)
{
    const double a[4] = { 0.5, 0.25, 0.8, 0.1 }, *of[2] = { a, a };
    double rounds[5], want[6] = { 0 };
    for (int s = 3; s >= 0; s--) {
        const int room = 3 - s; /* what is left after next */
        const double s1 = room >= 1 ? a[s] : 0, s2 = room >= 2 ? a[s] * a[s + 1] : 0;
        want[s] = 1 + (1 - s1) * want[s + 1] + (s1 - s2) * (s + 2 <= 4 ? want[s + 2] : 0) + s2 * (s + 3 <= 4 ? want[s + 3] : 0);
    }
    cr_assert_float_eq(wg_exact_rounds(false, of, 2, 4, rounds), want[0], 1e-15);
    const double sure[4] = { 1, 1, 1, 1 }, never[4] = { 0 }, *ones[2] = { sure, sure }, *zeros[2] = { never, never };
    cr_assert_float_eq(wg_exact_rounds(false, ones, 2, 4, rounds), 2, 0);
    cr_assert_float_eq(wg_exact_rounds(true, ones, 2, 4, rounds), 2, 0);
    cr_assert_float_eq(wg_exact_rounds(false, zeros, 2, 4, rounds), 4, 0);
    const int kept[4] = { 2, 0, 0, 0 };
    cr_assert_float_eq(wg_exact_rounds_fixed(kept, 2, 4, rounds), 2, 0);
    cr_assert_float_eq(wg_exact_rounds_fixed(kept, 1, 4, rounds), 3, 0);
}

#if !defined(WG_HARD) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static double exact_tau(const wg_exact_run *x, const char *rule, const char *shape)
{
    for (int i = 0; i < x->n; i++) {
        const wg_exact_result *r = &x->result[i];
        double tokens = 0, rounds = 0;
        for (int k = 0; k < r->prompts; k++) tokens += r->tokens[k], rounds += r->rounds[k];
        if (!strcmp(r->rule, rule) && !strcmp(r->shape->name, shape)) return tokens / rounds;
    }
    cr_assert_fail("no row of %s on %s", rule, shape);
    return NAN;
}

/* Simulated tau and its standard error, prompts as the unit. */
static void simulated(const wg_run *r, int cell, double *tau, double *error)
{
    const wg_pairs *p = &r->result[cell].pairs;
    double tokens = 0, passes = 0, square = 0;
    for (int i = 0; i < p->n; i++) tokens += p->tokens[i], passes += p->passes[i];
    *tau = tokens / passes;
    for (int i = 0; i < p->n; i++) square += pow(p->tokens[i] - *tau * p->passes[i], 2);
    *error = sqrt(square * p->n / (p->n - 1)) / passes;
}

/* The rules on the bundled pair: what many runs give is what the forms say, within four standard errors of both texts. With
 * WG_THIN: fewer and shorter texts. */
Test(exact, agrees_with_simulation, .timeout = 240)
{
    static const char *const rules[] = { "rejection", "match", "block", "rejection", "kseq", "optimal" };
    const char *root = getenv("WG_ROOT"), *some = getenv("WG_THIN") ? "12}, \"max_tokens\": 32" : "20}, \"max_tokens\": 40";
    char text[2048];
    wg_error err;
    scene s;
    scene_make(&s);
    snprintf(text, sizeof text,
             "{\"name\": \"t\", \"seed\": 3, \"target\": {\"model\": \"%s/" BUNDLED_TARGET "\", \"threads\": 1, "
             "\"kv_type\": \"q8\"},"
             "\"prompts\": {\"file\": \"%s/configs/prompts/quickstart.jsonl\", \"limit\": %s, "
             "\"repeats\": 3, \"alpha\": false,"
             "\"sampling\": {\"temperature\": 0.8}, \"sweep\": {\"verify.rule\": [\"rejection\", \"match\", \"block\"]},"
             "\"draft\": {\"kind\": \"model\", \"model\": \"%s/" BUNDLED_DRAFT "\", \"length\": 4}}",
             root, root, some, root);
    for (int trees = 0; trees < 2; trees++) {
        if (trees) {
            char *sweep = strstr(text, "\"rejection\", \"match\", \"block\""), *length = strstr(text, "\"length\": 4}");
            memcpy(sweep, "\"rejection\", \"kseq\",\"optimal\"", 30 - 1);
            strcpy(length, "\"tree\": \"2-1\"}}");
        }
        wg_config *c = config_of(text);
        const wg_run_options o = { .out = trees ? "trees" : "chains" };
        wg_run r;
        char *path = NULL;
        cr_assert_eq(wg_run_config(c, &o, &r, &path, &err), WG_OK, "%s", err.text);
        wg_free(path);
        wg_config_close(c);
        strstr(text, "\"seed\": 3")[8] = '4'; /* other texts */
        c = config_of(text);
        wg_exact_shape shape;
        wg_exact_run x;
        cr_assert_eq(wg_exact_shape_read(&shape, trees ? "2-1" : "4", trees, &err), WG_OK);
        cr_assert_eq(wg_exact_cell(c, 0, &shape, 1, NULL, 0, &x, &err), WG_OK, "%s", err.text);
        for (int cell = 0; cell < 3; cell++) {
            double tau, error;
            r.config = c;
            simulated(&r, cell, &tau, &error);
            const double exact = exact_tau(&x, rules[3 * trees + cell], shape.name);
            cr_assert_lt(error, 0.1);
            cr_assert_lt(fabs(tau - exact), 4 * 1.4142 * error, "%s on %s: simulated %.4f +- %.4f, exact %.4f",
                         rules[3 * trees + cell], shape.name, tau, error, exact);
        }
        wg_exact_run_free(&x);
        wg_run_free(&r);
        wg_config_close(c);
        strstr(text, "\"seed\": 4")[8] = '3';
    }
    scene_remove(&s);
}
#endif

/* alpha of a drafter on the texts of a run's config, and how many positions it counts. */
static double exact_alpha(const char *text, long *drafted, long *tokens, int *texts)
{
    wg_exact_shape shape;
    wg_exact_run x;
    wg_error err;
    wg_config *c = config_of(text);
    cr_assert_eq(wg_exact_shape_read(&shape, "3", false, &err), WG_OK);
    cr_assert_eq(wg_exact_cell(c, 0, &shape, 1, NULL, 0, &x, &err), WG_OK, "%s", err.text);
    const double alpha = x.alpha;
    *drafted = x.drafted;
    *tokens = x.tokens;
    *texts = x.texts;
    wg_exact_run_free(&x);
    wg_config_close(c);
    return alpha;
}

/* alpha counts the positions at which a token can be drafted, which the last one of a text is not: a draft equal to the target
 * has alpha 1. It is sum min(p, q): on texts of two tokens, what the engine measures at the first one of each. */
Test(exact, alpha_of_drafted_positions, .timeout = 60)
{
    static const char *const form =
        "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"prompts\": {\"file\": "
        "\"prompts.jsonl\"}, \"max_tokens\": %d, \"repeats\": 4, \"sampling\": {\"temperature\": %s}, \"draft\": {\"kind\": "
        "\"model\", \"model\": \"%s\", \"length\": 1%s}}";
    static const char *const policies[] = { "", ", \"policy\": \"entropy\"" };
    char text[1000];
    long drafted, tokens;
    int texts;
    scene s;
    scene_make(&s);
    snprintf(text, sizeof text, form, 8, "1", "target.gguf", "");
    cr_assert_float_eq(exact_alpha(text, &drafted, &tokens, &texts), 1, 1e-12);
    cr_assert(drafted < tokens && drafted >= tokens - texts, "%ld of %ld", drafted, tokens);
    for (int i = 0; i < 2; i++) { /* a policy that would stop before the draft has no part in it */
        const wg_run_options o = { .out = i ? "b" : "a" };
        wg_error err;
        wg_run r;
        char *path = NULL;
        snprintf(text, sizeof text, form, 2, "1", "draft.gguf", policies[i]);
        const double alpha = exact_alpha(text, &drafted, &tokens, &texts);
        snprintf(text, sizeof text, form, 2, "1", "draft.gguf", "");
        wg_config *c = config_of(text);
        cr_assert_eq(wg_run_config(c, &o, &r, &path, &err), WG_OK, "%s", err.text);
        const wg_counts *n = &r.result[0].counts;
        cr_assert_eq(n->alpha_n, drafted);
        cr_assert(alpha > 0.01 && alpha < 0.99 && fabs(alpha - n->alpha_sum / (double)n->alpha_n) < 1e-12, "%g", alpha);
        wg_free(path);
        wg_run_free(&r);
        wg_config_close(c);
    }
    snprintf(text, sizeof text, form, 8, "0", "target.gguf", "");
    cr_assert_float_eq(exact_alpha(text, &drafted, &tokens, &texts), 1, 0, "greedy: the target's own tokens");
    scene_remove(&s);
}
