/* SPDX-License-Identifier: MIT
 * The mistakes of real systems (methods.md, Coupled races, Sampler chain, Arithmetic), each reproduced, and the check that
 * detects it:
 *     LAW        the exact law of the text is not the target's
 *     ADDRESS    a random address was used twice (methods.md, L2)
 *     PATH       the rule returned no path or no token
 *     REFUSED    the pairing of drafter and rule is an error before anything runs
 * A check that no mutant fails would be no check; a mutant that no check catches would be a hole. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/engine/build.h"
#include "verify/proof/prove.h"
#include "tests/accept.h"
#include "verify/verify.h"

typedef enum check { NOTHING, LAW, ADDRESS, PATH, REFUSED } check;
static const char *const check_names[] = { "nothing", "LAW", "ADDRESS", "PATH", "REFUSED" };

/* ---- a chain, verified token by token, with mistakes */

typedef enum mistake {
    NONE,
    SHARED_NOISE,      /* the corrected token races on the times that chose the draft (vLLM #54282) */
    SHARED_ADDRESS,    /* the accept decision sits on the draft's own address */
    RAW_Q,             /* q from before the sampler chain: flatter than what was drawn from (HF #47932) */
    GREEDY_AS_SAMPLED, /* a ranked draft judged by its q row (HF #32867) */
    LESS_OR_EQUAL,     /* u <= p/q with a 24-bit u that can be 0 */
    NAN_RESIDUAL,      /* divides by the residual's mass, and finds no token (Sequoia) */
    NEXT_FROM_P,       /* the corrected token from p */
    CLAMPED_Q,         /* q + 1e-10 against division by zero (DeepSpec) */
    ACCEPT_BY_ARGMAX,  /* keeps what p likes best (ssd on a cache miss) */
} mistake;

/* The row of q that the mistake believes in: the drawn one, flattened. */
static double believed(mistake m, wg_rows *q, int row, int32_t x)
{
    double sum = 0;
    if (m == CLAMPED_Q) return wg_rows_prob(q, row, x) + 1e-10;
    if (m != RAW_Q) return wg_rows_prob(q, row, x);
    for (int i = 0; i < q->vocab; i++) sum += sqrt(wg_rows_prob(q, row, i));
    return sqrt(wg_rows_prob(q, row, x)) / sum;
}

static int32_t correct(mistake m, wg_rows *p, int prow, wg_rows *q, int qrow, const wg_chance *at)
{
    double rest[8], mass = 0;
    for (int x = 0; x < p->vocab; x++) mass += rest[x] = fmax(wg_rows_prob(p, prow, x) - believed(m, q, qrow, x), 0);
    if (m == NEXT_FROM_P) return wg_rows_pick(p, prow, at, WG_DRAW_NEXT, 0);
    if (m == SHARED_NOISE) return wg_chance_race(at, WG_DRAW_COUPLED, wg_list_0, NULL, rest, p->vocab);
    if (m == NAN_RESIDUAL) {
        const double one = rest[0] / mass;
        if (isnan(one)) return -1;
    }
    return mass > 0 ? wg_chance_pick(at, WG_DRAW_NEXT, 0, rest, p->vocab) : wg_rows_pick(p, prow, at, WG_DRAW_NEXT, 0);
}

static bool keep(mistake m, const wg_chance *c, int node, double p, double q)
{
    const double zero[2] = { 0x1p-24, 1 - 0x1p-24 };
    if (m == LESS_OR_EQUAL && p == 0) return wg_chance_pick(c, WG_DRAW_ACCEPT, node, zero, 2) == 0;
    return wg_chance_ratio(c, m == SHARED_ADDRESS ? WG_DRAW_DRAFT : WG_DRAW_ACCEPT, node, p, q);
}

static void token_wise(const void *opt, const wg_tree *t, wg_rows *p, wg_rows *q, const wg_chance *c, wg_workspace *work,
                       wg_path *out)
{
    (void)work;
    const mistake m = *(const mistake *)opt;
    out->n = 0;
    for (int i = 0;; i++) {
        const wg_chance at = wg_chance_at(c, i);
        out->node[out->n++] = (int16_t)i;
        if (i + 1 == t->n) {
            out->next = wg_rows_pick(p, i, &at, WG_DRAW_NEXT, 0);
            return;
        }
        const int32_t x = t->token[i + 1];
        const bool liked = x == wg_rows_argmax(p, i);
        if (m == ACCEPT_BY_ARGMAX ? liked : keep(m, c, i + 1, wg_rows_prob(p, i, x), believed(m, q, t->qrow[i + 1], x)))
            continue;
        out->next = correct(m, p, i, q, t->qrow[i + 1], &at);
        return;
    }
}

/* ---- block verification with mistakes */

typedef enum block_mistake {
    BLOCK_RIGHT,
    STOPS_AT_FIRST_FAILURE,
    TOKEN_WISE_RESIDUAL,
    TOKEN_WISE_TEST,
    LAST_IS_NOT_SPECIAL
} block_mistake;

static double excess(wg_rows *p, wg_rows *q, int i, int qrow, double r, double *out)
{
    double mass = 0;
    for (int x = 0; x < p->vocab; x++) mass += out[x] = fmax(r * wg_rows_prob(p, i, x) - wg_rows_prob(q, qrow, x), 0);
    return mass;
}

static void block(const void *opt, const wg_tree *t, wg_rows *p, wg_rows *q, const wg_chance *c, wg_workspace *work,
                  wg_path *out)
{
    (void)work;
    const block_mistake m = *(const block_mistake *)opt;
    const int n = t->n - 1;
    double r[WG_TREE_MAX] = { 1 }, rest[8];
    int k = 0;
    for (int i = 1; i <= n; i++) {
        const double px = wg_rows_prob(p, i - 1, t->token[i]), qx = wg_rows_prob(q, t->qrow[i], t->token[i]);
        r[i] = fmin(1, r[i - 1] * px / qx);
        double num = r[i], den = 1;
        if (i < n || m == LAST_IS_NOT_SPECIAL)
            num = excess(p, q, i, t->qrow[i < n ? i + 1 : n], r[i], rest), den = num + 1 - r[i];
        if (m == TOKEN_WISE_TEST) num = px, den = qx;
        if (den <= 0 || wg_chance_ratio(c, WG_DRAW_ACCEPT, i, num, den)) k = i;
        else if (m == STOPS_AT_FIRST_FAILURE) break;
    }
    for (int i = 0; i <= k; i++) out->node[i] = (int16_t)i;
    out->n = k + 1;
    const wg_chance at = wg_chance_at(c, k);
    const double mass = k < n ? excess(p, q, k, t->qrow[k + 1], m == TOKEN_WISE_RESIDUAL ? 1 : r[k], rest) : 0;
    out->next = mass > 0 ? wg_chance_pick(&at, WG_DRAW_NEXT, 0, rest, p->vocab) : wg_rows_pick(p, k, &at, WG_DRAW_NEXT, 0);
}

/* ---- siblings with mistakes */

typedef enum sibling_mistake { SIBLINGS_RIGHT, DUPLICATES_COUNT_TWICE, REST_NOT_EXCLUDED } sibling_mistake;

/* topk's rule at the root alone. */
static void set(const void *opt, const wg_tree *t, wg_rows *p, wg_rows *q, const wg_chance *c, wg_workspace *work, wg_path *out)
{
    (void)work;
    const sibling_mistake m = *(const sibling_mistake *)opt;
    double weight[WG_TREE_MAX], rest[8], left = 1;
    (void)q;
    memcpy(rest, wg_rows_at(p, 0), (size_t)p->vocab * sizeof *rest);
    for (int i = 1; i < t->n; i++) {
        weight[i - 1] =
            m == DUPLICATES_COUNT_TWICE || wg_tree_find(t, 0, t->token[i]) == i ? wg_rows_prob(p, 0, t->token[i]) : 0;
        left -= weight[i - 1];
        if (m != REST_NOT_EXCLUDED) rest[t->token[i]] = 0;
    }
    double mass = 0;
    for (int x = 0; x < p->vocab; x++) mass += rest[x];
    weight[t->n - 1] = mass > 0 ? fmax(left, 0) : 0;
    const int kept = wg_chance_pick(c, WG_DRAW_ACCEPT, 0, weight, t->n);
    const wg_chance at = wg_chance_at(c, kept + 1 < t->n);
    out->node[0] = 0;
    out->node[1] = (int16_t)(kept + 1);
    out->n = kept + 1 < t->n ? 2 : 1;
    if (out->n == 2) out->next = wg_rows_pick(p, kept + 1, &at, WG_DRAW_NEXT, 0);
    else out->next = mass > 0 ? wg_chance_pick(&at, WG_DRAW_NEXT, 0, rest, p->vocab) : wg_rows_pick(p, 0, &at, WG_DRAW_NEXT, 0);
}

/* A rule of the house under a law that it does not check: the tree says another one. */
static const wg_verifier_class *lied_to;
static wg_sibling_law lie;
static void deceived(const void *opt, const wg_tree *t, wg_rows *p, wg_rows *q, const wg_chance *c, wg_workspace *work,
                     wg_path *out)
{
    wg_tree other = *t;
    other.law = lie;
    lied_to->accept(opt, &other, p, q, c, work, out);
}

/* A drafter that draws no sibling after the first that is token 0, however many it was to draw: the rule is shown the others
 * only (methods.md, L4). */
static void stopped(const void *opt, const wg_tree *t, wg_rows *p, wg_rows *q, const wg_chance *c, wg_workspace *work,
                    wg_path *out)
{
    wg_tree shown = *t;
    bool keep[WG_TREE_MAX] = { true };
    int16_t from[WG_TREE_MAX];
    for (int i = 1, drawing = 1; i < t->n; i++) { /* children of the root, and nothing below them */
        keep[i] = drawing;
        drawing &= t->token[i] != 0;
    }
    wg_tree_keep(&shown, keep, from);
    lied_to->accept(opt, &shown, p, q, c, work, out);
}

/* Keeps what the target would say, wherever a pass has scored it: also the rows that only the drafter is to see. Its law is the
 * target's; what breaks is the engine's word that a probe is neither kept nor counted. */
static void keeps_probes(const void *opt, const wg_tree *t, wg_rows *p, wg_rows *q, const wg_chance *c, wg_workspace *work,
                         wg_path *out)
{
    (void)work;
    const bool mutated = *(const int *)opt;
    (void)q;
    out->n = 0;
    for (int node = 0; node >= 0;) {
        const wg_chance at = wg_chance_at(c, out->n);
        out->node[out->n++] = (int16_t)node;
        out->next = wg_rows_pick(p, t->row + node, &at, WG_DRAW_NEXT, 0);
        node = mutated ? wg_tree_scored(t, node, out->next) : wg_tree_find(t, node, out->next);
    }
}

/* Spreads its choice over the rows of the whole pass: reads rows that belong to no node. */
static void reads_probes(const void *opt, const wg_tree *t, wg_rows *p, wg_rows *q, const wg_chance *c, wg_workspace *work,
                         wg_path *out)
{
    (void)work;
    double mean[8] = { 0 };
    (void)opt, (void)q;
    for (int i = 0; i < wg_tree_rows(t); i++)
        for (int x = 0; x < p->vocab; x++) mean[x] += wg_rows_prob(p, t->row + i, x);
    out->n = 1;
    out->node[0] = 0;
    out->next = wg_chance_pick(c, WG_DRAW_NEXT, 0, mean, p->vocab);
}

/* Penalties counted once per step (SGLang #33643): every node is tested as if no token had been drafted before it. Where the
 * base model has no memory but for its penalties, that is the root's row at every node. */
static void penalties_once(const void *opt, const wg_tree *t, wg_rows *p, wg_rows *q, const wg_chance *c, wg_workspace *work,
                           wg_path *out)
{
    double stale[WG_TREE_MAX * 8];
    int32_t point[WG_TREE_MAX];
    int supported[WG_TREE_MAX];
    wg_rows all = *p;
    for (int i = 0; i < t->n; i++) {
        memcpy(stale + i * p->vocab, wg_rows_at(p, 0), (size_t)p->vocab * sizeof *stale);
        point[i] = supported[i] = -1;
    }
    all.p = stale;
    all.point = point;
    all.supported = supported;
    token_wise(opt, t, &all, q, c, work, out);
}

/* A lossy rule that says it is not. */
static void typical(const void *opt, const wg_tree *t, wg_rows *p, wg_rows *q, const wg_chance *c, wg_workspace *work,
                    wg_path *out)
{
    double defaults[8];
    (void)opt;
    wg_option_defaults(wg_verifier_typical.options, defaults);
    wg_verifier_typical.accept(defaults, t, p, q, c, work, out);
}

/* ---- the checks */

typedef void accept_fn(const void *, const wg_tree *, wg_rows *, wg_rows *, const wg_chance *, wg_workspace *, wg_path *);

static double deviation; /* of the last mutant */

static check caught(accept_fn *accept, int mistake_number, wg_prove_options o, const wg_prove_tables *t)
{
    const wg_verifier_class rule = {
        .name = "mutant", .size = sizeof(int), .laws = WG_LAWS, .lossless = true, .accept = accept
    };
    wg_prove_result r = { 0 };
    wg_error err = { 0 };
    o.rule_options = &mistake_number;
    const wg_status s = t ? wg_prove_case(&rule, &o, t, &r, &err) : wg_prove(&rule, &o, &r, &err);
    deviation = r.deviation;
    if (s == WG_EINVAL && strstr(err.text, "path")) return PATH;
    cr_assert(s == WG_OK, "%s", err.text);
    return r.deviation > 1e-12 ? LAW : r.reused ? ADDRESS : NOTHING;
}

static void expect(const char *name, check got, check want)
{
    cr_expect(got == want, "%s: caught by %s, not by %s", name, check_names[got], check_names[want]);
    cr_log_info("%-28s caught by %s (deviation %.2g)", name, check_names[got], deviation);
}

static const wg_prove_options chain = { .vocab = 3, .depth = 2, .children = 1, .law = WG_LAW_IID, .cases = 24, .seed = 3 };
static const wg_prove_options siblings = { .vocab = 3, .depth = 1, .children = 3, .law = WG_LAW_FIXED, .cases = 24, .seed = 3 };

Test(mutations, token_by_token)
{
    static const struct {
        const char *name;
        mistake m;
        check by;
    } mutants[] = {
        { "unmutated", NONE, NOTHING },
        { "accept on the draft's address", SHARED_ADDRESS, ADDRESS },
        { "q before the sampler chain", RAW_Q, LAW },
        { "u <= p/q", LESS_OR_EQUAL, LAW },
        { "corrected token from p", NEXT_FROM_P, LAW },
        { "q + 1e-10", CLAMPED_Q, LAW },
        { "accepts by argmax", ACCEPT_BY_ARGMAX, LAW },
    };
    for (size_t i = 0; i < sizeof mutants / sizeof *mutants; i++)
        expect(mutants[i].name, caught(token_wise, mutants[i].m, chain, NULL), mutants[i].by);
}

/* The draft raced on these times; the residual must not. Its exact joint law needs the races' (core/dist/race.h). And outside
 * the prover the pairing is refused, because such a draft has a law of its own. */
Test(mutations, noise_shared_by_draft_and_recovery)
{
    wg_prove_options o = chain;
    o.law = WG_LAW_COUPLED;
    expect("unmutated, one step", caught(token_wise, NONE, o, NULL), NOTHING);
    expect("draft and recovery share noise", caught(token_wise, SHARED_NOISE, o, NULL), LAW);
    cr_expect(deviation > 0.01, "%g", deviation);
    /* Two steps: rules that look past the accepted prefix have seen times that the next draft races on. */
    o.steps = 2;
    o.vocab = 2;
    expect("block on a coupled draft", caught(block, BLOCK_RIGHT, o, NULL), LAW);
    const wg_drafter_class racer = { .name = "racer", .laws = WG_LAW_COUPLED };
    const wg_verifier_class *const rules[] = { &wg_verifier_greedy, &wg_verifier_match, &wg_verifier_block,
                                               &wg_verifier_coupled, NULL };
    wg_error err = { 0 };
    const bool refused = wg_check_laws(&racer, racer.laws, &wg_verifier_rejection, rules, &err) == WG_ELAW;
    expect("rejection on a coupled draft", refused ? REFUSED : NOTHING, REFUSED);
    cr_expect(strstr(err.text, "choose one of: greedy (at temperature 0), match, coupled"), "%s", err.text);
}

Test(mutations, greedy_draft_taken_for_sampled)
{
    enum { V = 3, TEXTS = 4 };
    double p[TEXTS * V], q[TEXTS * V];
    const double pv[V] = { 0.5, 0.3, 0.2 }, qv[V] = { 0.4, 0.3, 0.3 };
    for (int i = 0; i < TEXTS * V; i++) p[i] = pv[i % V], q[i] = qv[i % V];
    const wg_prove_tables t = { p, q, true }; /* the nodes name the row that ranked them */
    const wg_prove_options o = { .vocab = V, .depth = 1, .children = 1, .law = WG_LAW_FIXED };
    expect("greedy draft as sampled", caught(token_wise, GREEDY_AS_SAMPLED, o, &t), LAW);
    cr_expect(deviation > 0.1);
    const wg_drafter_class ranked = { .name = "ranked", .laws = WG_LAW_FIXED };
    const wg_verifier_class only_iid = { .name = "only_iid", .laws = WG_LAW_IID };
    const bool refused = wg_check_laws(&ranked, ranked.laws, &only_iid, wg_verifiers, NULL) == WG_ELAW;
    expect("the same, declared", refused ? REFUSED : NOTHING, REFUSED);
}

/* p is q but for one unit in the last place: the draft may be rejected, and then nothing is left of p. */
Test(mutations, nan_residual_ends_generation)
{
    enum { V = 2, TEXTS = 3 };
    double p[TEXTS * V], q[TEXTS * V];
    for (int i = 0; i < TEXTS; i++) {
        q[i * V] = q[i * V + 1] = p[i * V + 1] = 0.5;
        p[i * V] = nextafter(0.5, 0);
    }
    const wg_prove_tables t = { p, q, false };
    const wg_prove_options o = { .vocab = V, .depth = 1, .children = 1, .law = WG_LAW_IID };
    expect("unmutated", caught(token_wise, NONE, o, &t), NOTHING);
    expect("NaN residual", caught(token_wise, NAN_RESIDUAL, o, &t), PATH);
    for (int i = 0; wg_verifiers[i]; i++) { /* no rule of the house stops there */
        wg_prove_result r = { 0 };
        if (wg_verifiers[i]->laws & WG_LAW_IID) cr_expect(wg_prove_case(wg_verifiers[i], &o, &t, &r, NULL) == WG_OK);
    }
}

/* p after a text: weights 3, 2, 2, halved for each earlier occurrence. */
Test(mutations, penalties_counted_once_per_step)
{
    enum { V = 3, TEXTS = 1 + 3 + 9 };
    double p[TEXTS * V], q[TEXTS * V];
    for (int text = 0; text < TEXTS; text++) {
        double weight[V] = { 3, 2, 2 }, sum = 0;
        for (int rest = text; rest > 0; rest = (rest - 1) / V) weight[(rest - 1) % V] /= 2;
        for (int x = 0; x < V; x++) sum += weight[x];
        for (int x = 0; x < V; x++) p[text * V + x] = weight[x] / sum, q[text * V + x] = 1.0 / V;
    }
    const wg_prove_tables t = { p, q, false };
    expect("unmutated", caught(token_wise, NONE, chain, &t), NOTHING);
    expect("penalties once per step", caught(penalties_once, NONE, chain, &t), LAW);
    cr_expect(deviation > 0.01, "%g", deviation);
}

Test(mutations, of_block_verification)
{
    static const struct {
        const char *name;
        block_mistake m;
        check by;
    } mutants[] = {
        { "unmutated", BLOCK_RIGHT, NOTHING },
        { "stops at the first failure", STOPS_AT_FIRST_FAILURE, LAW },
        { "token-wise residual", TOKEN_WISE_RESIDUAL, LAW }, /* vLLM-Ascend #7807 */
        { "token-wise test", TOKEN_WISE_TEST, LAW },
        { "last token not special", LAST_IS_NOT_SPECIAL, LAW },
    };
    for (size_t i = 0; i < sizeof mutants / sizeof *mutants; i++)
        expect(mutants[i].name, caught(block, mutants[i].m, chain, NULL), mutants[i].by);
}

Test(mutations, of_rules_that_see_probes)
{
    expect("unmutated", caught(keeps_probes, 0, chain, NULL), NOTHING);
    expect("keeps a probe", caught(keeps_probes, 1, chain, NULL), PATH);
    expect("keeps a probe below a sibling", caught(keeps_probes, 1, siblings, NULL), PATH);
    wg_prove_options nothing = chain;
    nothing.depth = 0; /* nothing is drafted: the root's row is p */
    expect("reads the rows of probes", caught(reads_probes, 0, nothing, NULL), LAW);
}

Test(mutations, of_siblings)
{
    wg_prove_options o = siblings;
    expect("unmutated", caught(set, SIBLINGS_RIGHT, o, NULL), NOTHING);
    expect("rest not excluded", caught(set, REST_NOT_EXCLUDED, (o.children = 2, o), NULL), LAW);
    o.law = WG_LAW_IID; /* drawn with replacement: duplicates */
    expect("unmutated, with duplicates", caught(set, SIBLINGS_RIGHT, o, NULL), NOTHING);
    expect("duplicates count twice", caught(set, DUPLICATES_COUNT_TWICE, o, NULL), LAW);
    o.law = WG_LAW_WITHOUT_REPLACEMENT;
    lied_to = &wg_verifier_rejection;
    lie = WG_LAW_IID;
    expect("q not renormalised", caught(deceived, 0, o, NULL), LAW);
    lied_to = &wg_verifier_optimal;
    expect("distinct draws as independent", caught(deceived, 0, o, NULL), LAW);
    o.law = WG_LAW_IID;
    lied_to = &wg_verifier_without_replacement;
    lie = WG_LAW_WITHOUT_REPLACEMENT;
    expect("independent draws as distinct", caught(deceived, 0, o, NULL), LAW);
    expect("lossy, and silent about it", caught(typical, 0, chain, NULL), LAW);
}

/* Rules that weigh siblings jointly take their number for a constant. Where draws decide it, their laws are off; rules that go
 * from sibling to sibling stay exact. The engine refuses the drafter (law_controls). */
Test(mutations, siblings_stop_at_a_token)
{
    enum { V = 3, TEXTS = 4 };
    static const struct {
        const wg_verifier_class *rule;
        wg_sibling_law law;
        double off;
    } rules[] = {
        { &wg_verifier_optimal, WG_LAW_IID, 0.105 },
        { &wg_verifier_multipath, WG_LAW_IID, 0.105 },
        { &wg_verifier_kseq, WG_LAW_IID, 0.0140253328241 },
        { &wg_verifier_rejection, WG_LAW_IID, 0 },
        { &wg_verifier_traversal, WG_LAW_IID, 0 },
        { &wg_verifier_topk, WG_LAW_IID, 0 },
        { &wg_verifier_paired, WG_LAW_WITHOUT_REPLACEMENT, 0.190977443609 },
        { &wg_verifier_without_replacement, WG_LAW_WITHOUT_REPLACEMENT, 0 },
        { &wg_verifier_traversal, WG_LAW_WITHOUT_REPLACEMENT, 0 },
    };
    double p[TEXTS * V], q[TEXTS * V];
    for (int i = 0; i < TEXTS * V; i++) { /* the second token is 0: a text's law is that of the first */
        p[i] = i < V ? (const double[]){ 0.3, 0.7, 0 }[i] : i % V == 0;
        q[i] = (const double[]){ 0.3, 0.65, 0.05 }[i % V];
    }
    const wg_prove_tables t = { p, q, false };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const wg_prove_options o = { .vocab = V, .depth = 1, .children = 2, .law = rules[i].law };
        lied_to = rules[i].rule;
        expect(rules[i].rule->name, caught(stopped, 0, o, &t), rules[i].off > 0 ? LAW : NOTHING);
        cr_expect(fabs(deviation - rules[i].off) < 1e-9, "%s: off by %.12g", rules[i].rule->name, deviation);
        cr_expect(rules[i].rule->joint == (rules[i].off > 0), "%s", rules[i].rule->name);
    }
}

/* methods.md, L3, the example of DSpark's appendix: p = (0.7, 0.3), q = (0.5, 0.5). A policy that looks at x_1 and verifies it
 * only when it is token 0 turns p into 0.5 + 0.5 * 0.7 = 0.85; one that decides without looking keeps p. `match` is immune. */
static double law_of_0(const wg_verifier_class *rule, bool looks)
{
    const double p[2] = { 0.7, 0.3 }, q[2] = { 0.5, 0.5 };
    double law = 0;
    wg_rows pr, qr;
    wg_chance_tree e;
    cr_assert(wg_rows_open(&pr, 2, 2, NULL) == WG_OK && wg_rows_open(&qr, 1, 2, NULL) == WG_OK);
    for (int i = 0; i < 2; i++) memcpy(wg_rows_at(&pr, wg_rows_push(&pr)), p, sizeof p);
    memcpy(wg_rows_at(&qr, wg_rows_push(&qr)), q, sizeof q);
    cr_assert(wg_chance_tree_open(&e, NULL) == WG_OK);
    do {
        const wg_chance c = wg_chance_tree_chance(&e, 0);
        wg_tree t;
        wg_path path;
        wg_tree_reset(&t, 0, WG_LAW_IID);
        const int x = wg_rows_pick(&qr, 0, &c, WG_DRAW_DRAFT, 1);
        const bool verify = looks ? x == 0 : wg_chance_ratio(&c, WG_DRAW_SHAPE, 0, 1, 2);
        if (verify) wg_tree_push(&t, 0, x, 0);
        double options[8];
        wg_option_defaults(rule->options, options);
        accept_alone(rule, options, &t, &pr, &qr, &c, &path);
        if ((path.n > 1 ? t.token[path.node[1]] : path.next) == 0) law += wg_chance_tree_probability(&e);
    } while (wg_chance_tree_next(&e));
    wg_chance_tree_close(&e);
    wg_rows_close(&pr);
    wg_rows_close(&qr);
    return law;
}

Test(mutations, length_chosen_after_seeing_the_token)
{
    cr_expect(fabs(law_of_0(&wg_verifier_rejection, true) - 0.85) < 1e-15);
    cr_expect(fabs(law_of_0(&wg_verifier_rejection, false) - 0.7) < 1e-15);
    cr_expect(fabs(law_of_0(&wg_verifier_match, true) - 0.7) < 1e-15);
    cr_expect(fabs(law_of_0(&wg_verifier_coupled, true) - 0.7) < 1e-15);
    deviation = law_of_0(&wg_verifier_rejection, true) - 0.7;
    expect("length after the token", deviation > 1e-12 ? LAW : NOTHING, LAW);
}
