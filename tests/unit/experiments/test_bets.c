/* SPDX-License-Identifier: MIT
 * The audit's bets are fair: for every lossless rule, law of drafts and tree of the test, all outcomes of one round, drafts and
 * decisions, are enumerated with their probabilities, and no bet's capital grows in the mean. The rounds before it give the
 * learned bets something to have learned. And the law of a rule's decisions is that of an enumeration of all tokens. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/dist/race.h"
#include "lab/audit/auditor.h"
#include "lab/audit/rule_law.h"
#include "kernels/philox.h"
#include "tests/unit/verify/rule_options.h"

enum { V = 3, DEPTH = 2, BEFORE = 6, CONTEXTS = 1 + V + V * V };

typedef struct world {
    double p[CONTEXTS][V], q[CONTEXTS][V]; /* by text: number 0 is the empty one, text t and then x is V t + 1 + x */
} world;

typedef struct scene {
    world w;
    wg_rows p, q, raw;
    wg_audit_round round;
    int text[WG_TREE_MAX];
    const wg_verifier_class *rule;
    const void *options;
    wg_sibling_law law;
    int wide;
} scene;

static double uniform(uint32_t a, uint32_t b, uint32_t c)
{
    const wg_philox r = wg_philox_at(4711, a, b, c, 0);
    return wg_philox_double(r.v[0], r.v[1]);
}

static void make_world(world *w, uint32_t number)
{
    for (uint32_t t = 0; t < CONTEXTS; t++)
        for (uint32_t which = 0; which < 2; which++) {
            double *row = which ? w->q[t] : w->p[t], sum = 0;
            for (uint32_t x = 0; x < V; x++)
                sum += row[x] = pow(uniform(2 * number + which, t, x), 2) + (t % 3 == 0 && x == 1 && !which ? 0 : 1e-3);
            for (int x = 0; x < V; x++) row[x] /= sum;
        }
}

static int child_token(scene *s, int node, int k, const double *q, const wg_chance *c)
{
    const wg_tree *t = &s->round.tree;
    double left[V], sum = 0;
    memcpy(left, q, sizeof left);
    if (s->law == WG_LAW_IID) return wg_chance_pick(c, WG_DRAW_DRAFT, t->n, left, V);
    for (int i = node; (i = wg_tree_child(t, node, i)) >= 0;) left[t->token[i]] = 0;
    for (int x = 0; x < V; x++) sum += left[x];
    if (!(sum > 0)) return -1;
    if (s->law == WG_LAW_WITHOUT_REPLACEMENT) return wg_chance_pick(c, WG_DRAW_DRAFT, t->n, left, V);
    if (s->law == WG_LAW_COUPLED) {
        const wg_chance at = wg_chance_at(c, wg_tree_depth(t, node));
        return wg_chance_race(&at, WG_DRAW_COUPLED, wg_lists_dealt(k, s->wide, wg_verifier_races(s->rule, s->options)), NULL,
                              left, V);
    }
    int best = 0;
    for (int x = 1; x < V; x++) best = left[x] > left[best] ? x : best;
    return best;
}

/* A round: the draft, p and q at its nodes, the rule's decision. */
static void play(scene *s, const wg_chance *c, wg_workspace *work)
{
    wg_audit_round *r = &s->round;
    wg_tree *t = &r->tree;
    wg_rows_clear(&s->p);
    wg_rows_clear(&s->q);
    wg_rows_clear(&s->raw);
    *r = (wg_audit_round){
        .evidence = WG_EVIDENCE_ROUND, .p = &s->p, .q = &s->q, .raw = &s->raw, .bonus_row = -1, .dense = true
    };
    wg_tree_reset(t, 0, s->law);
    s->text[0] = 0;
    for (int node = 0; node < t->n; node++) {
        memcpy(wg_rows_at(&s->p, wg_rows_push(&s->p)), s->w.p[s->text[node]], sizeof s->w.p[0]);
        memcpy(wg_rows_at(&s->raw, wg_rows_push(&s->raw)), s->w.q[s->text[node]], sizeof s->w.q[0]);
        if (wg_tree_depth(t, node) == DEPTH || (wg_tree_depth(t, node) == 1 && s->wide > 1 && node > 1)) continue;
        const int row = wg_rows_push(&s->q), wide = node ? 1 : s->wide;
        memcpy(wg_rows_at(&s->q, row), s->w.q[s->text[node]], sizeof s->w.q[0]);
        wg_tree_group(t, node, wide);
        for (int k = 0; k < wide; k++) {
            const int x = child_token(s, node, k, wg_rows_at(&s->q, row), c);
            if (x < 0) break;
            const int child = wg_tree_push(t, node, x, row);
            s->text[child] = V * s->text[node] + 1 + x;
        }
    }
    s->rule->accept(s->options, t, &s->p, &s->q, c, work, &r->path);
}

/* The largest mean of a bet's factor over all outcomes of a round behind BEFORE others; `named`: the rule is known. */
static double most_of(scene *s, bool named, wg_bet *which, double *probability)
{
    static double mean[WG_BET_KINDS][WG_BET_SHARES];
    wg_error err;
    wg_auditor a;
    wg_chance_tree e;
    wg_workspace work;
    int stream;
    memset(mean, 0, sizeof mean);
    *probability = 0;
    cr_assert_eq(wg_workspace_open(&work, V, &err), WG_OK);
    cr_assert_eq(wg_auditor_open(&a, &err), WG_OK);
    cr_assert_eq(wg_auditor_stream(&a, "", "", &stream, &err), WG_OK);
    for (uint32_t i = 0; i < BEFORE; i++) {
        const wg_chance c = wg_chance_philox(99, i, 1);
        play(s, &c, &work);
        cr_assert_eq(wg_auditor_round(&a, stream, &s->round, &err), WG_OK);
    }
    if (named) a.stream[0].rule = (wg_rule_choice){ .class = s->rule, .options = (void *)s->options };
    const wg_bets was = a.stream[0].bets;
    cr_assert_eq(wg_chance_tree_open(&e, &err), WG_OK);
    do {
        const wg_chance c = wg_chance_tree_chance(&e, 1);
        play(s, &c, &work);
        const int n = a.before.n; /* rows behind the round are kept for the next: those before it come back */
        double rows[WG_TREE_MAX * V];
        memcpy(rows, a.before.p, (size_t)n * V * sizeof *rows);
        cr_assert_eq(wg_auditor_round(&a, stream, &s->round, &err), WG_OK);
        a.before.n = n;
        memcpy(a.before.p, rows, (size_t)n * V * sizeof *rows);
        *probability += wg_chance_tree_probability(&e);
        for (int i = 0; i < WG_BET_KINDS; i++)
            for (int k = 0; k < WG_BET_SHARES; k++)
                mean[i][k] += wg_chance_tree_probability(&e) * exp(a.stream[0].bets.capital[i][k] - was.capital[i][k]);
        a.stream[0].bets = was;
    } while (wg_chance_tree_next(&e));
    wg_chance_tree_close(&e);
    wg_workspace_close(&work);
    a.stream[0].rule = (wg_rule_choice){ 0 };
    wg_auditor_close(&a);
    double most = 0;
    for (int i = 0; i < WG_BET_KINDS; i++)
        for (int k = 0; k < WG_BET_SHARES; k++)
            if (mean[i][k] > most) {
                most = mean[i][k];
                *which = (wg_bet)i;
            }
    return most;
}

static void open_scene(scene *s)
{
    wg_error err;
    cr_assert_eq(wg_rows_open(&s->p, WG_TREE_MAX, V, &err), WG_OK);
    cr_assert_eq(wg_rows_open(&s->q, WG_TREE_MAX, V, &err), WG_OK);
    cr_assert_eq(wg_rows_open(&s->raw, WG_TREE_MAX, V, &err), WG_OK);
}

static void close_scene(scene *s)
{
    wg_rows_close(&s->p);
    wg_rows_close(&s->q);
    wg_rows_close(&s->raw);
}

static const wg_sibling_law laws[] = { WG_LAW_FIXED, WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT, WG_LAW_COUPLED };

/* Rules of drafts that share the rule's draws are known by their texts alone. */
static bool applies(const wg_verifier_class *rule, wg_sibling_law law, int wide, bool named)
{
    if (!rule->lossless || rule->zero_only || !(rule->laws & law) || (rule->chains && wide > 1)) return false;
    return !(named && law == WG_LAW_COUPLED);
}

Test(bets, are_fair_under_every_lossless_rule)
{
    static scene s;
    rule_setting setting[RULE_SETTINGS];
    int tests = 0;
    const int n = rule_settings(setting);
    open_scene(&s);
    for (int i = 0; i < n; i++)
        for (size_t l = 0; l < sizeof laws / sizeof *laws; l++)
            for (int wide = 1; wide <= 3; wide++)
                for (int named = 0; named < 2; named++) {
                    wg_bet which = 0;
                    double probability;
                    s.rule = setting[i].rule;
                    s.options = setting[i].options;
                    s.law = laws[l];
                    s.wide = wide;
                    if (!applies(s.rule, s.law, wide, named)) continue;
                    make_world(&s.w, (uint32_t)(tests++ % 5));
                    const double most = most_of(&s, named, &which, &probability);
                    cr_expect_float_eq(probability, 1, 1e-9);
                    cr_expect(most <= 1 + 1e-9, "%s %s, %s, %d wide, %s: bet '%s' has the mean %.12f", s.rule->name,
                              setting[i].text, wg_law_name(s.law), wide, named ? "rule known" : "text alone",
                              wg_bet_table[which].doc, most);
                }
    close_scene(&s);
    cr_assert(tests > 40, "%d", tests);
}

/* The probability of each recorded decision, token by token, against the enumeration of all of them. */
Test(bets, law_of_decisions_is_the_rules)
{
    static scene s;
    rule_setting setting[RULE_SETTINGS];
    const int n = rule_settings(setting);
    open_scene(&s);
    int seen = 0;
    for (int i = 0; i < n; i++)
        for (size_t l = 0; l < 3; l++) {
            wg_error err;
            wg_chance_tree e;
            wg_workspace work, mine;
            double next[V], of[WG_TREE_MAX][V] = { { 0 } };
            s.rule = setting[i].rule;
            s.options = setting[i].options;
            s.law = laws[l];
            s.wide = s.rule->chains ? 1 : 2;
            if (!(s.rule->laws & s.law) || (s.rule->laws & WG_LAW_COUPLED && s.rule->races)) continue;
            make_world(&s.w, 3);
            cr_assert_eq(wg_workspace_open(&work, V, &err), WG_OK);
            cr_assert_eq(wg_workspace_open(&mine, V, &err), WG_OK);
            const wg_chance draft = wg_chance_philox(5, 1, 1);
            play(&s, &draft, &work);
            cr_assert_eq(wg_chance_tree_open(&e, &err), WG_OK);
            do {
                const wg_chance c = wg_chance_tree_chance(&e, 1);
                wg_path path;
                s.rule->accept(s.options, &s.round.tree, &s.p, &s.q, &c, &work, &path);
                of[path.node[path.n - 1]][path.next] += wg_chance_tree_probability(&e);
            } while (wg_chance_tree_next(&e));
            wg_chance_tree_close(&e);
            for (int last = 0; last < s.round.tree.n; last++) {
                wg_rule_law law = { .next = next };
                cr_assert(wg_rule_law_of(s.rule, s.options, &s.round.tree, &s.p, &s.q, &mine, last, &law), "%s", s.rule->name);
                for (int x = 0; x < V; x++, seen++)
                    cr_expect_float_eq(law.stop > 0 ? law.stop * next[x] : 0, of[last][x], 1e-12,
                                       "%s, %s, node %d, token %d: %g and %g", s.rule->name, wg_law_name(s.law), last, x,
                                       law.stop * next[x], of[last][x]);
            }
            wg_workspace_close(&work);
            wg_workspace_close(&mine);
        }
    close_scene(&s);
    cr_assert(seen > 200, "%d", seen);
}

/* A bet over a row that is wrong by a total variation e loses at least what that can gain it. */
Test(bets, errors_of_rows_are_paid_for)
{
    static wg_bets b;
    const double e = 0.01, n[2] = { 0.3, 0.7 }, truth[2] = { 0.31, 0.69 }, a[2] = { 0.9, 0.1 };
    double mean[WG_BET_SHARES] = { 0 };
    for (int x = 0; x < 2; x++) {
        memset(&b, 0, sizeof b);
        wg_bet_on(&b, WG_BET_SHARP, a[x], n[x], e);
        for (int k = 0; k < WG_BET_SHARES; k++) mean[k] += truth[x] * exp(b.capital[WG_BET_SHARP][k]);
    }
    for (int k = 0; k < WG_BET_SHARES; k++) cr_expect(mean[k] <= 1, "%g", mean[k]);
}
