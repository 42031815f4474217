/* SPDX-License-Identifier: MIT
 * The prover accepts lossless rules and rejects others. The wrong rules below are mistakes of real systems (methods.md,
 * Arithmetic); each must be detected by a margin far above rounding. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/dist/race.h"
#include "verify/proof/prove.h"
#include "verify/proof/prove_device.h"
#include "tests/unit/verify/rule_options.h"

enum { ANY = WG_LAW_FIXED | WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT };

static wg_prove_result prove(const wg_verifier_class *rule, wg_prove_options o)
{
    wg_prove_result r = { 0 };
    wg_error err = { 0 };
    const wg_status s = wg_prove(rule, &o, &r, &err);
    cr_assert(s == WG_OK, "%s: %s", rule->name, err.text);
    cr_assert(r.cases == o.cases && r.runs >= o.cases);
    return r;
}

static bool fits(const wg_prove_options *o)
{
    int n = 1, level = 1;
    for (int d = 0; d < o->depth; d++) n += level *= o->width ? o->width[d] : o->children;
    return n <= WG_TREE_MAX;
}

static void expect_exact(const wg_verifier_class *rule, wg_prove_options o)
{
    if (!fits(&o)) return; /* a hard build has small trees */
    const wg_prove_result r = prove(rule, o);
    cr_expect(r.deviation <= 1e-12, "%s, vocabulary %d, depth %d, %d children of the root, law %s: deviation %g in case %d",
              rule->name, o.vocab, o.depth, o.width ? o.width[0] : o.children, wg_law_name(o.law), r.deviation, r.worst);
    cr_expect(r.reused == 0, "%s reuses %ld addresses", rule->name, r.reused);
    cr_expect(r.tau >= 1 - 1e-12 && r.tau <= o.depth + 1 + 1e-12);
    cr_expect(r.above <= 1e-10, "%s accepts %g more than the optimum", rule->name, r.above);
}

/* Every lossless rule on every law that it claims to check. Shapes: children by depth. */
typedef struct shape {
    int vocab, depth, width[3], cases, steps;
} shape;
static bool ragged, one_hot; /* of the shapes that follow */

static void expect_all_exact(const shape *s, int n)
{
    static const wg_sibling_law laws[] = { WG_LAW_FIXED, WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT, WG_LAW_COUPLED };
    for (int i = 0; wg_verifiers[i]; i++)
        for (int l = 0; l < 4; l++)
            for (int k = 0; k < n; k++) {
                bool siblings = false;
                for (int d = 0; d < s[k].depth; d++) siblings |= s[k].width[d] > 1;
                if (!wg_verifiers[i]->lossless || !(wg_verifiers[i]->laws & laws[l]) || (siblings && wg_verifiers[i]->chains))
                    continue;
                expect_exact(wg_verifiers[i], (wg_prove_options){ .vocab = s[k].vocab,
                                                                  .depth = s[k].depth,
                                                                  .width = s[k].width,
                                                                  .law = laws[l],
                                                                  .cases = s[k].cases,
                                                                  .steps = s[k].steps,
                                                                  .ragged = ragged,
                                                                  .one_hot = one_hot,
                                                                  .greedy = wg_verifiers[i]->zero_only,
                                                                  .seed = 5 });
            }
}

Test(prove, chains_are_exact)
{
    shape s[20];
    int n = 0;
    for (int vocab = 1; vocab <= 4; vocab++)
        for (int depth = 0; depth <= 3; depth++)
            s[n++] = (shape){ .vocab = vocab, .depth = depth, .width = { 1, 1, 1 }, .cases = 24, .steps = 1 };
    expect_all_exact(s, n);
}

/* Trees whose nodes have different numbers of children, equal siblings among them, and rows with all mass on one token beside
 * rows without. */
Test(prove, ragged_trees_and_one_hot_rows_are_exact)
{
    const shape s[] = {
        { 2, 2, { 3, 2 }, 24, 1 }, { 3, 2, { 2, 2 }, 24, 1 }, { 2, 3, { 2, 2, 1 }, 16, 1 }, { 2, 1, { 5 }, 48, 1 }
    };
    for (int kind = 1; kind < 4; kind++) {
        ragged = kind & 1;
        one_hot = kind & 2;
        expect_all_exact(s, 3 + (kind == 2));
    }
    ragged = one_hot = false;
}

/* The flags do something: other drafts than the whole tree's, and other rows. */
Test(prove, ragged_trees_and_one_hot_rows_are_others)
{
    wg_prove_options o = { .vocab = 3, .depth = 2, .children = 2, .law = WG_LAW_IID, .cases = 16, .seed = 5 };
    const wg_prove_result whole = prove(&wg_verifier_rejection, o);
    o.ragged = true;
    const wg_prove_result few = prove(&wg_verifier_rejection, o);
    o.ragged = false;
    o.one_hot = true;
    const wg_prove_result points = prove(&wg_verifier_rejection, o);
    cr_expect(few.runs < whole.runs / 2 && few.tau < whole.tau, "%ld and %ld runs", few.runs, whole.runs);
    cr_expect(points.runs < whole.runs / 2, "%ld and %ld runs", points.runs, whole.runs);
}

Test(prove, trees_are_exact)
{
    static const shape s[] = {
        { 2, 1, { 2 }, 24, 1 },       { 3, 1, { 2 }, 24, 1 },    { 3, 1, { 3 }, 24, 1 },    { 4, 1, { 3 }, 24, 1 },
        { 2, 2, { 2, 2 }, 24, 1 },    { 3, 2, { 2, 1 }, 16, 1 }, { 3, 2, { 1, 2 }, 16, 1 }, { 4, 2, { 2, 1 }, 8, 1 },
        { 2, 3, { 2, 1, 1 }, 16, 1 }, { 2, 1, { 4 }, 24, 1 }, /* more children than tokens: duplicates */
        { 3, 2, { 2, 2 }, 8, 1 },                             /* seven nodes */
    };
    expect_all_exact(s, sizeof s / sizeof *s);
}

/* A q that lives on a part of the vocabulary, as that of a pruned draft model or of one with another tokenizer: the rest of the
 * text can only come from the rule, and must. */
static void expect_exact_part(const wg_verifier_class *rule, wg_sibling_law law, const int *width, bool siblings, unsigned kept)
{
    enum { V = 4, DEPTH = 2, TEXTS = 1 + V + V * V };
    double p[TEXTS * V], q[TEXTS * V];
    wg_prove_options o = { .vocab = V, .depth = DEPTH, .width = width, .law = law, .greedy = rule->zero_only };
    wg_prove_result r = { 0 };
    wg_error err = { 0 };
    if ((siblings && rule->chains) || !fits(&o)) return;
    const int texts = wg_prove_texts(&o);
    cr_assert(texts > 0 && texts <= TEXTS);
    for (int t = 0; t < texts; t++) {
        double sum_p = 0, sum_q = 0;
        for (int x = 0; x < V; x++) {
            const int i = t * V + x;
            sum_p += p[i] = 1 + (i * 7 + (int)kept) % 11;
            sum_q += q[i] = kept >> x & 1 ? 1 + (i * 5 + 3) % 7 : 0;
        }
        for (int x = 0; x < V; x++) p[t * V + x] /= sum_p, q[t * V + x] /= sum_q;
    }
    const wg_prove_tables tables = { .p = p, .q = q, .fixed_rows = law == WG_LAW_FIXED };
    cr_assert_eq(wg_prove_case(rule, &o, &tables, &r, &err), WG_OK, "%s: %s", rule->name, err.text);
    cr_expect(r.deviation <= 1e-12, "%s, law %s, q on %x: deviation %g", rule->name, wg_law_name(law), kept, r.deviation);
    cr_expect_eq(r.reused, 0);
}

Test(prove, drafts_from_a_part_of_the_vocabulary)
{
    static const wg_sibling_law laws[] = { WG_LAW_FIXED, WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT, WG_LAW_COUPLED };
    static const int widths[][2] = { { 1, 1 }, { 2, 1 }, { 3, 1 } };
    static const unsigned kept[] = { 1, 5, 10, 14 };
    for (int i = 0; wg_verifiers[i]; i++)
        for (int l = 0; l < 4; l++)
            for (int w = 0; w < 3 && wg_verifiers[i]->lossless && (wg_verifiers[i]->laws & laws[l]); w++)
                for (int k = 0; k < 4; k++) expect_exact_part(wg_verifiers[i], laws[l], widths[w], w > 0, kept[k]);
}

/* Options that change how a rule decides, and not its law. */
Test(prove, options_are_exact)
{
    static const shape s[] = { { 3, 2, { 1, 1 }, 16, 1 },
                               { 3, 1, { 3 }, 24, 1 },
                               { 3, 2, { 2, 1 }, 16, 1 },
                               { 2, 2, { 2, 2 }, 24, 1 },
                               { 2, 1, { 2 }, 8, 2 } };
    static const wg_sibling_law laws[] = { WG_LAW_FIXED, WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT, WG_LAW_COUPLED };
    static rule_setting setting[RULE_SETTINGS];
    const int settings = rule_settings(setting);
    double whole[8];
    wg_error err;
    cr_assert(wg_option_set_list(wg_verifier_lenience.options, whole, sizeof whole, "factor=1", &err) == WG_OK);
    for (int k = 0; k < 5; k++) {
        wg_prove_options o = {
            .vocab = s[k].vocab, .depth = s[k].depth, .width = s[k].width, .cases = s[k].cases, .steps = s[k].steps, .seed = 5
        };
        bool siblings = false;
        for (int d = 0; d < s[k].depth; d++) siblings |= s[k].width[d] > 1;
        for (int i = 0; i < settings; i++)
            for (int l = 0; l < 4 && *setting[i].text; l++) { /* the defaults are proved above */
                const wg_verifier_class *rule = setting[i].rule;
                if (!rule->lossless || !(rule->laws & laws[l]) || (siblings && rule->chains)) continue;
                o.law = laws[l];
                o.greedy = rule->zero_only;
                o.rule_options = setting[i].options;
                expect_exact(rule, o);
            }
        o.law = WG_LAW_IID;
        o.greedy = false;
        o.rule_options = whole;
        expect_exact(&wg_verifier_lenience, o);
    }
}

/* Races over several lists, with drafts that race on the same times and with others. */
Test(prove, coupled_lists_are_exact)
{
    static const shape s[] = { { 4, 3, { 1, 1, 1 }, 16, 1 }, { 3, 1, { 3 }, 24, 1 },    { 3, 1, { 2 }, 24, 1 },
                               { 3, 2, { 2, 2 }, 16, 1 },    { 3, 2, { 3, 1 }, 16, 1 }, { 2, 3, { 2, 1, 2 }, 16, 1 },
                               { 2, 2, { 1, 1 }, 16, 2 },    { 2, 1, { 2 }, 16, 2 } };
    static const wg_sibling_law laws[] = { WG_LAW_COUPLED, WG_LAW_IID, WG_LAW_FIXED };
    for (int races = 1; races <= 3; races++)
        for (int k = 0; k < 8; k++)
            for (int l = 0; l < 3; l++)
                expect_exact(&wg_verifier_coupled, (wg_prove_options){ .vocab = s[k].vocab,
                                                                       .depth = s[k].depth,
                                                                       .width = s[k].width,
                                                                       .law = laws[l],
                                                                       .cases = s[k].cases,
                                                                       .steps = s[k].steps,
                                                                       .seed = 5,
                                                                       .rule_options = &races });
}

Test(prove, two_steps_are_exact_and_reuse_no_address)
{
    static const shape s[] = {
        { 2, 1, { 1 }, 16, 2 }, { 2, 2, { 1, 1 }, 16, 2 }, { 2, 1, { 2 }, 8, 2 }, { 3, 1, { 1 }, 16, 2 }
    };
    expect_all_exact(s, sizeof s / sizeof *s);
}

Test(prove, lossy_rules_are_convicted)
{
    int lossy = 0;
    for (int i = 0; wg_verifiers[i]; i++) {
        if (wg_verifiers[i]->lossless) continue;
        const wg_prove_options o = { .vocab = 3, .depth = 2, .children = 1, .law = WG_LAW_IID, .cases = 16, .seed = 5 };
        wg_verifier_class rule = *wg_verifiers[i];
        rule.law_row = NULL; /* held to the target's law */
        cr_expect(prove(&rule, o).deviation > 0.01, "%s", rule.name);
        lossy++;
    }
    cr_expect(lossy > 0);
}

/* ---- lossy rules that state their law */

static void law_of_p(const void *opt, const double *p, const double *q, int vocab, double *out)
{
    (void)opt, (void)q;
    memcpy(out, p, (size_t)vocab * sizeof *p);
}

static void law_of_half(const void *opt, const double *p, const double *q, int vocab, double *out)
{
    (void)opt;
    for (int x = 0; x < vocab; x++) out[x] = 0.5 * p[x] + 0.5 * q[x];
}

/* The rows of the target and of the stated law, read from the rule's own decisions, on every shape and law; and other rows than
 * those that are stated do not pass. */
Test(prove, stated_laws_are_exact)
{
    static const shape s[] = { { 3, 2, { 1, 1 }, 32, 1 },    { 4, 1, { 3 }, 32, 1 },    { 3, 2, { 2, 1 }, 32, 1 },
                               { 2, 3, { 1, 1, 1 }, 32, 1 }, { 2, 2, { 2, 2 }, 32, 1 }, { 2, 1, { 2 }, 16, 2 } };
    static const wg_sibling_law laws[] = { WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT };
    static rule_setting setting[RULE_SETTINGS];
    const int settings = rule_settings(setting);
    int stated = 0;
    for (int i = 0; i < settings; i++) {
        const wg_verifier_class *rule = setting[i].rule;
        if (!rule->law_row) continue;
        stated++;
        double off[2] = { 0 };
        for (int k = 0; k < 2 * 2 * 6; k++) {
            const shape *of = &s[k % 6];
            const wg_prove_options o = { .vocab = of->vocab,
                                         .depth = of->depth,
                                         .width = of->width,
                                         .cases = of->cases,
                                         .steps = of->steps,
                                         .law = laws[k / 6 % 2],
                                         .ragged = k >= 12,
                                         .one_hot = k >= 12,
                                         .seed = 5,
                                         .rule_options = setting[i].options };
            if (!fits(&o)) continue;
            const wg_prove_result r = prove(rule, o);
            cr_expect(r.deviation <= 1e-12 && r.reused == 0, "%s:%s, shape %d: deviation %g", rule->name, setting[i].text, k,
                      r.deviation);
            wg_verifier_class other = *rule;
            other.law_row = law_of_p;
            off[0] = fmax(off[0], prove(&other, o).deviation);
            other.law_row = law_of_half;
            off[1] = fmax(off[1], prove(&other, o).deviation);
        }
        cr_expect(off[0] > 0.05 && off[1] > 0.05, "%s:%s: other laws pass: %g %g", rule->name, setting[i].text, off[0], off[1]);
    }
    cr_expect(stated >= 6, "%d settings", stated);
}

Test(prove, greedy_is_exact_at_temperature_0_only)
{
    for (int children = 1; children <= 2; children++) {
        wg_prove_options o = { .vocab = 3, .depth = 2, .children = children, .law = WG_LAW_IID, .cases = 16, .greedy = true };
        expect_exact(&wg_verifier_greedy, o);
        expect_exact(&wg_verifier_match, o);
        expect_exact(&wg_verifier_rejection, o);
    }
    const wg_prove_options warm = { .vocab = 3, .depth = 2, .children = 1, .law = WG_LAW_IID, .cases = 16 };
    cr_expect(prove(&wg_verifier_greedy, warm).deviation > 0.01);
}

/* ---- tables with known answers */

/* Chains of depth 1 and 2 where p and q do not depend on the text: acceptance per token is a = sum min(p, q). */
Test(prove, tau_is_the_closed_form)
{
    enum { V = 3, TEXTS = 1 + 3 + 9 };
    const double p[V] = { 0.5, 0.3, 0.2 }, q[V] = { 0.2, 0.2, 0.6 }, a = 0.2 + 0.2 + 0.2;
    double pt[TEXTS * V], qt[TEXTS * V];
    for (int i = 0; i < TEXTS * V; i++) pt[i] = p[i % V], qt[i] = q[i % V];
    const wg_prove_tables t = { pt, qt, false };
    for (int depth = 1; depth <= 2; depth++) {
        const wg_prove_options o = { .vocab = V, .depth = depth, .children = 1, .law = WG_LAW_IID };
        wg_prove_result r = { 0 }, m = { 0 };
        cr_assert(wg_prove_case(&wg_verifier_rejection, &o, &t, &r, NULL) == WG_OK);
        cr_assert(wg_prove_case(&wg_verifier_match, &o, &t, &m, NULL) == WG_OK);
        const double equal = 0.5 * 0.2 + 0.3 * 0.2 + 0.2 * 0.6; /* sum p q: what `match` accepts */
        cr_expect(fabs(r.tau - (depth == 1 ? 1 + a : 1 + a + a * a)) < 1e-15, "%.17g", r.tau);
        cr_expect(fabs(m.tau - (depth == 1 ? 1 + equal : 1 + equal + equal * equal)) < 1e-15, "%.17g", m.tau);
        cr_expect(r.deviation < 1e-15 && m.deviation < 1e-15);
    }
    /* k siblings: 1 - prod (1 - sum min(p_i, q)) with p_{i+1} = norm((p_i - q)+) (methods.md, Rejection in rounds). */
    const wg_prove_options o = { .vocab = V, .depth = 1, .children = 3, .law = WG_LAW_IID };
    double r[V] = { 0.5, 0.3, 0.2 }, missed = 1;
    for (int k = 0; k < 3; k++) {
        double accept = 0, mass = 0;
        for (int x = 0; x < V; x++) accept += fmin(r[x], q[x]);
        for (int x = 0; x < V; x++) mass += r[x] = fmax(r[x] - q[x], 0);
        for (int x = 0; x < V; x++) r[x] /= mass;
        missed *= 1 - accept;
    }
    wg_prove_result many = { 0 };
    cr_assert(wg_prove_case(&wg_verifier_rejection, &o, &t, &many, NULL) == WG_OK);
    cr_expect(fabs(many.tau - (2 - missed)) < 1e-15, "%.17g", many.tau);
}

/* ---- wrong rules, all for chains */

typedef enum mistake {
    RIGHT,
    ZERO_ACCEPTED,
    NOT_CLAMPED,
    ROOT_Q,
    NEXT_FROM_P,
    Q_PLUS_EPSILON,
    SAME_ADDRESS,
    EAGER,
    BAD_PATH
} mistake;

static int residual(mistake m, wg_rows *p, int prow, wg_rows *q, int qrow, const wg_chance *c, wg_workspace *work)
{
    if (m == NEXT_FROM_P) return wg_rows_pick(p, prow, c, WG_DRAW_NEXT, 0);
    if (m != NOT_CLAMPED) return wg_rows_pick_residual(p, prow, q, qrow, c, WG_DRAW_NEXT, 0, work);
    double sum = 0, *rest = wg_work_row(work, WG_WORK_REST);
    for (int i = 0; i < p->vocab; i++) sum += rest[i] = fabs(wg_rows_prob(p, prow, i) - wg_rows_prob(q, qrow, i));
    return sum > 0 ? wg_chance_pick(c, WG_DRAW_NEXT, 0, rest, p->vocab) : wg_rows_pick(p, prow, c, WG_DRAW_NEXT, 0);
}

static bool keep(mistake m, const wg_chance *c, int node, double p, double q)
{
    const double zero[2] = { 0x1p-24, 1 - 0x1p-24 }; /* u <= p/q with a 24-bit u: 0 <= 0 once in 2^24 */
    if (m == ZERO_ACCEPTED && p == 0) return wg_chance_pick(c, WG_DRAW_ACCEPT, node, zero, 2) == 0;
    if (m == Q_PLUS_EPSILON) q += 1e-10;
    if (m == SAME_ADDRESS) node = 1;
    return wg_chance_ratio(c, WG_DRAW_ACCEPT, node, p, q);
}

static void wrong(const void *opt, const wg_tree *t, wg_rows *p, wg_rows *q, const wg_chance *c, wg_workspace *work,
                  wg_path *out)
{
    const mistake m = *(const mistake *)opt;
    bool kept[WG_TREE_MAX];
    out->n = 0;
    for (int i = 1; m == EAGER && i < t->n;
         i++) { /* decides for all nodes first, each at its own position: lossless, but ... */
        const wg_chance at = wg_chance_at(c, i - 1);
        kept[i] = wg_chance_ratio(&at, WG_DRAW_ACCEPT, 0, wg_rows_prob(p, i - 1, t->token[i]),
                                  wg_rows_prob(q, t->qrow[i], t->token[i]));
    }
    for (int i = 0; i < t->n; i++) {
        const wg_chance at = wg_chance_at(c, i);
        out->node[out->n++] = (int16_t)(m == BAD_PATH && i == 0 ? 1 : i);
        if (i + 1 == t->n) {
            out->next = wg_rows_pick(p, i, &at, WG_DRAW_NEXT, 0);
            return;
        }
        const int x = t->token[i + 1], qrow = t->qrow[m == ROOT_Q ? 1 : i + 1];
        if (m == EAGER ? kept[i + 1] : keep(m, c, i + 1, wg_rows_prob(p, i, x), wg_rows_prob(q, qrow, x))) continue;
        out->next = residual(m, p, i, q, qrow, &at, work);
        return;
    }
}

static const wg_verifier_class wrong_rule = { .name = "wrong", .size = sizeof(mistake), .laws = ANY, .accept = wrong };

static wg_prove_result prove_wrong(mistake m, wg_prove_options o)
{
    o.rule_options = &m;
    return prove(&wrong_rule, o);
}

Test(prove, convicts)
{
    static const struct {
        mistake mistake;
        double at_least;
    } wrongs[] = {
        { ZERO_ACCEPTED, 1e-9 }, { NOT_CLAMPED, 1e-3 }, { ROOT_Q, 1e-3 }, { NEXT_FROM_P, 1e-3 }, { Q_PLUS_EPSILON, 1e-11 },
    };
    const wg_prove_options o = { .vocab = 3, .depth = 2, .children = 1, .law = WG_LAW_IID, .cases = 16, .seed = 1 };
    cr_expect(prove_wrong(RIGHT, o).deviation <= 1e-12);
    for (int i = 0; i < 5; i++) {
        const wg_prove_result r = prove_wrong(wrongs[i].mistake, o);
        cr_expect(r.deviation > wrongs[i].at_least, "mistake %d passed with a deviation of %g", wrongs[i].mistake, r.deviation);
    }
}

Test(prove, sees_addresses_that_are_reused)
{
    wg_prove_options o = { .vocab = 2, .depth = 2, .children = 1, .law = WG_LAW_IID, .cases = 16, .seed = 1 };
    cr_expect(prove_wrong(SAME_ADDRESS, o).reused > 0);
    /* In one step each position is decided once; the next step decides the unused ones again, from the same bits. */
    cr_expect(prove_wrong(EAGER, o).reused == 0);
    o.steps = 2;
    cr_expect(prove_wrong(EAGER, o).reused > 0);
}

/* A ranked draft checked as if it had been drawn from the row that ranked it: the classic silent bias. The rule says IID; the
 * tree it sees is of a fixed law. */
static void fixed_as_drawn_accept(const void *opt, const wg_tree *t, wg_rows *p, wg_rows *q, const wg_chance *c,
                                  wg_workspace *work, wg_path *o)
{
    wg_tree lie = *t;
    lie.law = WG_LAW_IID;
    wg_verifier_rejection.accept(opt, &lie, p, q, c, work, o);
}
static const wg_verifier_class fixed_as_drawn = { .name = "fixed_as_drawn", .laws = ANY, .accept = fixed_as_drawn_accept };

Test(prove, convicts_fixed_drafts_checked_with_q)
{
    enum { V = 3, TEXTS = 4 };
    double p[TEXTS * V], q[TEXTS * V];
    const double pv[V] = { 0.5, 0.3, 0.2 }, qv[V] = { 0.4, 0.3, 0.3 };
    for (int i = 0; i < TEXTS * V; i++) p[i] = pv[i % V], q[i] = qv[i % V];
    const wg_prove_options o = { .vocab = V, .depth = 1, .children = 1, .law = WG_LAW_FIXED };
    const wg_prove_tables t = { p, q, true };
    wg_prove_result r = { 0 }, honest = { 0 };
    cr_assert(wg_prove_case(&fixed_as_drawn, &o, &t, &r, NULL) == WG_OK);
    cr_expect(r.deviation > 0.1); /* token 0 always */
    cr_assert(wg_prove_case(&wg_verifier_rejection, &o, &t, &honest, NULL) == WG_OK);
    cr_expect(honest.deviation < 1e-15);
}

/* ---- refusals */

static void refused(const wg_verifier_class *rule, const wg_prove_options *o, wg_status code, const char *says)
{
    wg_error err = { 0 };
    wg_prove_result r;
    cr_expect(wg_prove(rule, o, &r, &err) == code && strstr(err.text, says), "'%s' is not in: %s", says, err.text);
}

Test(prove, refuses)
{
    wg_prove_options o = { .vocab = 3, .depth = 1, .children = 2, .law = WG_LAW_WITHOUT_REPLACEMENT, .cases = 1 };
    refused(&wg_verifier_rejection, &o, WG_ELAW,
            "prove: rule rejection does not check drafts of law without_replacement; it checks: fixed, iid");
    o.law = WG_LAW_IID;
    refused(&wg_verifier_block, &o, WG_ELAW, "prove: rule block takes chains only, and here a node has several children");
    o.max_runs = 8;
    refused(
        &wg_verifier_rejection, &o, WG_EINVAL,
        "prove: 9 drafts of 2 nodes can be drawn from 3 tokens, and at most 8 combinations of outcomes are enumerated; lower");
    o.max_runs = 9;
    refused(&wg_verifier_rejection, &o, WG_EINVAL,
            "prove: more than 9 combinations of outcomes; lower the vocabulary, the depth or the children, or raise the limit");
    o.max_runs = 0;
    o.depth = 30;
    refused(&wg_verifier_rejection, &o, WG_EINVAL,
            "prove: vocabulary 3, depth 30, 2 children, 1 steps; expected 1 or more, trees of at most ");
    o.depth = 1;
    o.vocab = 0;
    refused(&wg_verifier_rejection, &o, WG_EINVAL, "prove: vocabulary 0, depth 1, 2 children, 1 steps; expected 1 or more");
    o.vocab = 2;
    o.rule_options = &(mistake){ BAD_PATH };
    refused(&wrong_rule, &o, WG_EINVAL, "prove: rule wrong returned a path that is none of the tree's");
    o = (wg_prove_options){ .vocab = WG_RACE_TOKENS + 1, .depth = 1, .children = 1, .law = WG_LAW_COUPLED, .cases = 1 };
    refused(&wg_verifier_coupled, &o, WG_EUNSUPPORTED,
            "prove: the joint law of races is known for at most 4 tokens and 9 pairs of token and list; lower");
}

Test(prove, survives_every_failed_allocation)
{
    const wg_prove_options o = { .vocab = 2, .depth = 1, .children = 1, .law = WG_LAW_IID, .cases = 1 };
    const size_t before = wg_mem_read().live_blocks;
    wg_status s = WG_ENOMEM;
    int n = 0;
    while (s == WG_ENOMEM) {
        wg_prove_result r;
        wg_mem_fail_at((uint64_t)++n, false);
        s = wg_prove(&wg_verifier_rejection, &o, &r, NULL);
        wg_mem_fail_at(0, false);
        cr_assert(wg_mem_read().live_blocks == before);
    }
    cr_expect(s == WG_OK && n > 8, "%d", n);
}

/* Where no device is emulated there is nothing to enumerate. */
Test(prove, refuses_devices_that_draw_by_themselves)
{
    wg_prove_device *d;
    wg_error err = { 0 };
    cr_assert(wg_prove_device_open(&d, 3, &err) == WG_EUNSUPPORTED && d == NULL);
    cr_assert(
        strstr(err.text,
               "the devices of this program draw by themselves, and their decisions cannot be enumerated; rules of devices "
               "are proved on emulated threads (wager_gpu of a build with tests)"),
        "%s", err.text);
}
