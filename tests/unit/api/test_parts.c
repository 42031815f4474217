/* SPDX-License-Identifier: MIT
 * The parts of libwager through the public header alone: verification, proofs, a target of the caller's, a drafter alone. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bundled.h"
#include "wager.h"

#define MODEL BUNDLED_DRAFT
#define SAYS(err, part) cr_assert(strstr((err).text, part), "'%s' does not say '%s'", (err).text, part)

/* ---- verification ---------------------------------------------------------------------------------------------------- */

static const double p_rows[] = { 0.5, 0.25, 0.25, 0.1, 0.2, 0.7 }, q_row[] = { 0.25, 0.5, 0.25 };
static const int32_t tokens[] = { 0, 1 }, parents[] = { -1, 0 }, qrows[] = { -1, 0 };
static const wg_draft one = {
    .size = sizeof one, .n = 2, .token = tokens, .parent = parents, .qrow = qrows, .q_rows = 1, .law = "iid"
};
static const wg_verification how = { .size = sizeof how, .rule = "rejection", .vocab = 3, .p = p_rows, .q = q_row };

Test(verify, uniforms_decide_in_their_order)
{
    wg_error err;
    int32_t node[2];
    wg_outcome out = { .size = sizeof out, .node = node };
    wg_verification v = how;
    v.uniform = (const double[]){ 0.4, 0.9 }; /* 0.4 < p/q = 0.5; 0.9 is in the last third of 0.1 0.2 0.7 */
    v.uniforms = 2;
    cr_assert(wg_verify_tree(&one, &v, &out, &err) == WG_OK, "%s", err.text);
    cr_assert(out.n == 2 && node[0] == 0 && node[1] == 1 && out.next == 2 && out.used == 2);
    v.uniform = (const double[]){ 0.6, 0.9 }; /* rejected: the residual (p - q)+ is on token 0 */
    cr_assert(wg_verify_tree(&one, &v, &out, &err) == WG_OK);
    cr_assert(out.n == 1 && out.next == 0);
    v.uniforms = 1;
    cr_assert(wg_verify_tree(&one, &v, &out, &err) == WG_EINVAL);
    SAYS(err, "rule rejection needs more than 1 uniforms for this tree; one for each node and one more are enough");
    v.uniform = (const double[]){ 1.0 };
    cr_assert(wg_verify_tree(&one, &v, &out, &err) == WG_EINVAL);
    SAYS(err, "uniform 0 is 1; expected [0, 1)");
    v.rule = "coupled";
    cr_assert(wg_verify_tree(&one, &v, &out, &err) == WG_EUNSUPPORTED);
    SAYS(err, "rule coupled draws at addresses (position and token), not in an order; give a seed instead of uniforms");
}

/* By addresses: the frequency of acceptance is p/q, and the same address decides the same. */
Test(verify, a_seed_decides_by_address)
{
    enum { TRIES = 4000 };
    wg_error err;
    int32_t node[2];
    int kept = 0;
    wg_verification v = how;
    for (uint32_t i = 0; i < TRIES; i++) {
        wg_outcome out = { .size = sizeof out, .node = node };
        v.request = i;
        cr_assert(wg_verify_tree(&one, &v, &out, &err) == WG_OK, "%s", err.text);
        const int n = out.n, next = out.next;
        wg_verify_tree(&one, &v, &out, &err);
        cr_assert(out.n == n && out.next == next);
        kept += n == 2;
    }
    cr_assert(fabs((double)kept / TRIES - 0.5) < 0.04, "%d of %d", kept, TRIES);
}

static void refused(const wg_draft *d, const wg_verification *v, wg_status code, const char *part)
{
    wg_error err = { .text = "" };
    int32_t node[8];
    wg_outcome out = { .size = sizeof out, .node = node, .next = -7 };
    const wg_status s = wg_verify_tree(d, v, &out, &err);
    cr_assert(s == code, "%d, not %d: %s", (int)s, (int)code, err.text);
    SAYS(err, part);
    cr_assert(out.next == -7, "nothing was written");
}

Test(verify, bad_trees_and_rows_are_named)
{
    wg_draft d = one;
    wg_verification v = how;
    d.parent = (const int32_t[]){ -1, 1 };
    refused(&d, &v, WG_EINVAL, "the parent of node 1 is 1; expected 0..0");
    d = one, d.token = (const int32_t[]){ 0, 3 };
    refused(&d, &v, WG_EINVAL, "node 1");
    d = one, d.qrow = (const int32_t[]){ -1, 1 };
    refused(&d, &v, WG_EINVAL, "the q row of node 1 is 1; there are 1 rows");
    d = one, d.law = "drawn";
    refused(&d, &v, WG_EINVAL, "law \"drawn\"; expected one of: fixed, iid, without_replacement, coupled");
    d = one, d.n = 5000;
    refused(&d, &v, WG_EINVAL, "draft tree: 5000 nodes");
    d = one, d.law = "coupled";
    refused(&d, &v, WG_ELAW, "rule rejection does not check drafts of law coupled");
    v.q = (const double[]){ 0.5, 0, 0.5 };
    refused(&one, &v, WG_EINVAL, "its q row 0 gives that no probability");
    v = how, v.p = (const double[]){ 0.5, 0.5, 0.5, 0.1, 0.2, 0.7 };
    refused(&one, &v, WG_EINVAL, "row 0 of p sums to 1.5; expected 1");
    v.p = (const double[]){ 0.5, 0.25, 0.25, 0.1, NAN, 0.7 };
    refused(&one, &v, WG_EINVAL, "row 1 of p: token 1 has probability nan");
    v = how, v.rule = "rejektion";
    refused(&one, &v, WG_EINVAL, "did you mean \"rejection\"?");
    v = how, v.q = NULL;
    refused(&one, &v, WG_EINVAL, "wg_verification: q is NULL");
    v = how, v.vocab = 0;
    refused(&one, &v, WG_EINVAL, "a vocabulary of 0 and 1 rows of q; expected 1..16777216 and 0..32767");
}

/* ---- proofs ---------------------------------------------------------------------------------------------------------- */

static const wg_proof_options chains = { .size = sizeof chains, .vocab = 3, .depth = 2, .children = 1, .cases = 20, .seed = 1 };

Test(prove, built_in_rules)
{
    wg_error err;
    wg_proof r = { .size = sizeof r };
    char *text = NULL;
    cr_assert(wg_rule_prove("rejection", &chains, &r, &text, &err) == WG_OK, "%s", err.text);
    cr_assert(r.lossless && r.deviation <= 1e-12 && r.cases == 20 && r.tau > 1 && r.alpha <= r.alpha_star + 1e-9 && !text);
    cr_assert(wg_rule_prove("lenience:factor=0.5", &chains, &r, &text, &err) == WG_OK || strstr(err.text, "factor"), "%s",
              err.text);
    cr_assert(wg_rule_prove("typical", &chains, &r, NULL, &err) == WG_OK, "%s", err.text);
    wg_text_free(text);
    wg_proof_options bad = chains;
    bad.law = "coupled";
    cr_assert(wg_rule_prove("rejection", &bad, &r, NULL, &err) == WG_ELAW);
    SAYS(err, "prove: rule rejection does not check drafts of law coupled");
    bad = chains, bad.cases = 0;
    cr_assert(wg_rule_prove("rejection", &bad, &r, NULL, &err) == WG_EINVAL);
    SAYS(err, "prove: 0 cases; expected at least 1");
}

/* Speculative sampling on chains, written by a user; `greedy`: a mistake that is often made, drafts are kept without a test. */
typedef struct user_rule {
    int keeps_all, answers_nonsense, asked_after_it;
} user_rule;

static int accept_chain(void *user, const wg_draft *d, int vocab, const double *p, const double *q, const wg_choice *c,
                        int32_t *node, int32_t *next)
{
    user_rule *how = user;
    double rest[8], left = 0;
    int n = 1;
    node[0] = 0;
    how->asked_after_it += how->answers_nonsense > 1;
    for (; n < d->n; n++) {
        const int32_t x = d->token[n];
        const double *row = q + d->qrow[n] * vocab;
        if (how->keeps_all) p[(n - 1) * vocab + x] > 0 ? (void)(node[n] = n) : (void)0;
        else if (!wg_choice_accept(c, n, p[(n - 1) * vocab + x], row[x])) {
            for (int i = 0; i < vocab; i++) left += rest[i] = fmax(p[(n - 1) * vocab + i] - row[i], 0);
            *next = wg_choice_token(c, n - 1, left > 0 ? rest : p + (n - 1) * vocab, vocab);
            return n;
        }
        node[n] = n;
    }
    how->answers_nonsense *= 2;
    *next = how->answers_nonsense ? vocab : wg_choice_token(c, n - 1, p + (n - 1) * vocab, vocab);
    return n;
}

Test(prove, a_rule_of_the_callers)
{
    wg_error err;
    wg_proof r = { .size = sizeof r };
    char *text = NULL;
    user_rule mine = { 0 };
    const wg_rule_callback rule = {
        .size = sizeof rule, .name = "mine", .law = "iid", .chains = 1, .accept = accept_chain, .user = &mine
    };
    cr_assert(wg_rule_prove_callback(&rule, &chains, &r, &text, &err) == WG_OK, "%s", err.text);
    cr_assert(r.lossless && !text && r.reused == 0, "deviation %g", r.deviation);
    wg_proof built_in = { .size = sizeof built_in };
    wg_rule_prove("rejection", &chains, &built_in, NULL, &err);
    cr_assert(fabs(r.tau - built_in.tau) < 1e-12 && fabs(r.alpha - built_in.alpha) < 1e-12, "the same rule");

    mine.keeps_all = 1;
    cr_assert(wg_rule_prove_callback(&rule, &chains, &r, &text, &err) == WG_OK, "%s", err.text);
    cr_assert(!r.lossless && r.deviation > 0.01 && text);
    cr_assert(strstr(text, "smallest counterexample of mine: siblings iid, tree 1, "), "%s", text);
    wg_text_free(text);

    mine = (user_rule){ .answers_nonsense = 1 };
    cr_assert(wg_rule_prove_callback(&rule, &chains, &r, NULL, &err) == WG_EINVAL);
    SAYS(err,
         "rule mine returned no path of the tree: 3 nodes from 0 on and the token 3; expected node 0, then a child of the node "
         "before each, and a token of the vocabulary");
    cr_assert(mine.asked_after_it == 0, "the proof ends at once");
}

/* ---- a target of the caller's ------------------------------------------------------------------------------------------ */

enum { VOCAB = 24, CONTEXT = 96 };

typedef struct toy {
    long calls, rows;
    int fail_at; /* the call that fails; 0: none */
    int end;     /* the token that ends a text; -1: none */
} toy;

/* Logits of the last two tokens: a path that is described wrongly gives other ones. */
static int score(void *user, const wg_score_rows *r, int n, char *message, size_t room)
{
    toy *t = user;
    if (++t->calls == t->fail_at) return snprintf(message, room, "out of luck"), 42;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < r[k].n; i++, t->rows++) {
            if (!r[k].logits[i]) continue;
            const int up = r[k].parent[i];
            cr_assert(up < i && up >= -1 && r[k].prefix_n + r[k].n < 2 * CONTEXT);
            const int32_t last = r[k].token[i], before = up >= 0         ? r[k].token[up]
                                                         : r[k].prefix_n ? r[k].prefix[r[k].prefix_n - 1]
                                                                         : 0;
            for (int x = 0; x < VOCAB; x++)
                r[k].logits[i][x] = (float)((last * 7 + before * 3 + x * 11) % 13) + (x == (last + 1) % 5 ? 4.f : 0.f);
        }
    return 0;
}

static int is_end(void *user, int32_t token) { return token == ((toy *)user)->end; }

static int decode(toy *t, const char *config, int32_t *out, wg_stats *stats)
{
    static const int32_t prompt[] = { 1, 2, 3, 1, 2 };
    const wg_scorer target = {
        .size = sizeof target, .name = "toy", .vocab = VOCAB, .context = CONTEXT, .score = score, .is_end = is_end, .user = t
    };
    wg_error err;
    wg_session *s = NULL;
    wg_sequence *q = NULL;
    wg_round r = { .size = sizeof r };
    int n = 0;
    cr_assert(wg_session_open_scorer(&s, &target, config, &err) == WG_OK, "%s", err.text);
    cr_assert(wg_sequence_open_tokens(s, &q, prompt, 5, NULL, &err) == WG_OK, "%s", err.text);
    while (r.end == WG_END_NOT) {
        const wg_status status = wg_sequence_next(q, &r, &err);
        if (status) {
            cr_assert(status == WG_EIO && t->fail_at);
            cr_assert_str_eq(err.text, "target toy: its callback failed with 42: out of luck");
            continue; /* nothing has changed: the next call goes on */
        }
        for (int i = 0; i < r.n; i++) out[n++] = r.token[i];
        cr_assert_str_eq(r.text, "");
    }
    wg_session_about a = { .size = sizeof a };
    wg_session_about_get(s, &a, NULL);
    cr_assert(a.law_only && a.vocab == VOCAB && a.context == CONTEXT);
    stats->size = sizeof *stats;
    wg_sequence_stats(q, stats, NULL);
    wg_session_close(s);
    return n;
}

#define SAMPLED "\"sampling\": {\"temperature\": 0.7}, \"verify\": {\"rule\": \"match\"}, \"max_tokens\": 60"
#define NGRAM "\"draft\": {\"kind\": \"ngram\", \"k\": 5}"

Test(scorer, speculation_gives_the_text_of_plain_decoding)
{
    static const char *const drafted[] = { "{" NGRAM ", " SAMPLED "}", "{\"draft\": {\"kind\": \"recycle\"}, " SAMPLED "}",
                                           "{\"draft\": {\"kind\": \"suffix\"}, " SAMPLED "}", NULL };
    int32_t plain[CONTEXT], text[CONTEXT];
    wg_stats c;
    toy t = { .end = -1 };
    const int n = decode(&t, "{" SAMPLED "}", plain, &c);
    cr_assert(n == 60 && c.passes == 60 && t.calls > 60 && t.calls < 63, "a prefill and a call per token");
    for (int i = 0; drafted[i]; i++) {
        t = (toy){ .end = -1 };
        const int m = decode(&t, drafted[i], text, &c);
        cr_assert(m == n && !memcmp(plain, text, sizeof *plain * (size_t)n), "%s", drafted[i]);
        cr_assert(c.passes < 60 && c.accepted > 0, "%s: %ld passes", drafted[i], (long)c.passes);
    }
    t = (toy){ .fail_at = 7, .end = -1 };
    cr_assert(decode(&t, drafted[0], text, &c) == n && !memcmp(plain, text, sizeof *plain * (size_t)n), "after a failed call");
    t = (toy){ .end = plain[20] };
    cr_assert(decode(&t, drafted[0], text, &c) <= 21 && text[c.emitted - 1] == plain[20], "it ends with the text");
}

Test(scorer, what_is_refused)
{
    wg_error err;
    wg_session *s = NULL;
    wg_sequence *q = NULL;
    toy t = { 0 };
    wg_scorer target = { .size = sizeof target, .name = "toy", .vocab = VOCAB, .context = 1, .score = score, .user = &t };
    cr_assert(wg_session_open_scorer(&s, &target, NULL, &err) == WG_EINVAL);
    SAYS(err, "toy: a vocabulary of 24 and a context of 1 tokens");
    target.context = CONTEXT, target.score = NULL;
    cr_assert(wg_session_open_scorer(&s, &target, NULL, &err) == WG_EINVAL);
    target.score = score;
    cr_assert(wg_session_open_scorer(&s, &target, "{\"target\": {}}", &err) == WG_ECONFIG);
    SAYS(err, "target: this engine's target is the caller's");
    cr_assert(wg_session_open_scorer(&s, &target, "{\"draft\": {\"kind\": \"early_exit\"}}", &err) != WG_OK);
    cr_assert(wg_session_open_scorer(&s, &target, NULL, &err) == WG_OK, "%s", err.text);
    cr_assert(wg_sequence_open(s, &q, "text", 4, NULL, &err) == WG_EUNSUPPORTED);
    SAYS(err, "wg_sequence_open: this session has no tokenizer, because its target is not a file; use tokens");
    cr_assert(wg_sequence_open_tokens(s, &q, (const int32_t[]){ VOCAB }, 1, NULL, &err) == WG_EINVAL);
    SAYS(err, "prompt token 0 is 24");
    cr_assert(wg_sequence_open_tokens(s, &q, NULL, 0, NULL, &err) == WG_EINVAL && !q);
    wg_session_close(s);
}

/* ---- a drafter alone --------------------------------------------------------------------------------------------------- */

static void expect_draft(wg_sequence *q, const int32_t *want, int n)
{
    wg_error err;
    wg_draft d = { .size = sizeof d };
    cr_assert(wg_sequence_propose(q, &d, &err) == WG_OK, "%s", err.text);
    cr_assert(d.n >= n && d.chain == 1, "%d nodes, not %d", d.n, n);
    for (int i = 0; i < n; i++)
        cr_assert(d.token[i] == want[i] && d.parent[i] == i - 1 && (d.qrow[i] == i - 1 || d.q_rows == 0), "node %d is %d", i,
                  (int)d.token[i]);
}

Test(drafter, proposes_observes_forgets)
{
    static const int32_t prompt[] = { 5, 6, 7, 8, 9, 5, 6, 7 };
    wg_error err;
    wg_session *s = NULL;
    wg_sequence *q = NULL, *other = NULL;
    cr_assert(wg_session_open_drafter(&s, 32, 64, "{\"draft\": {\"kind\": \"ngram\", \"k\": 4}, \"batch\": 2}", &err) == WG_OK,
              "%s", err.text);
    cr_assert(wg_sequence_open_tokens(s, &q, prompt, 8, NULL, &err) == WG_OK, "%s", err.text);
    expect_draft(q, (const int32_t[]){ 7, 8, 9, 5, 6 }, 5);
    cr_assert(wg_sequence_observe(q, (const int32_t[]){ 8, 9, 1 }, 3, &err) == WG_OK, "two drafted tokens and another one");
    wg_stats c = { .size = sizeof c };
    cr_assert(wg_sequence_stats(q, &c, &err) == WG_OK && c.passes == 1 && c.drafted == 4 && c.accepted == 2 && c.emitted == 3);
    cr_assert(wg_sequence_open_tokens(s, &other, (const int32_t[]){ 1, 2, 1 }, 3, NULL, &err) == WG_OK);
    expect_draft(other, (const int32_t[]){ 1, 2 }, 2);
    cr_assert(wg_sequence_observe(q, (const int32_t[]){ 5, 6, 7 }, 3, &err) == WG_OK, "without a draft");
    expect_draft(q, (const int32_t[]){ 7, 8, 9 }, 3);
    cr_assert(wg_sequence_observe(other, (const int32_t[]){ 2, 1 }, 2, &err) == WG_OK, "its draft was dropped");
    expect_draft(other, (const int32_t[]){ 1, 2, 1 }, 3);
    wg_sequence_close(other);

    wg_round r = { .size = sizeof r };
    cr_assert(wg_sequence_next(q, &r, &err) == WG_EUNSUPPORTED);
    SAYS(err, "this session is a drafter alone and has no target");
    cr_assert(wg_sequence_observe(q, (const int32_t[]){ 32 }, 1, &err) == WG_EINVAL);
    SAYS(err, "token 0 is 32; the vocabulary is 0..31");
    cr_assert(wg_sequence_observe(q, prompt, 0, &err) == WG_EINVAL);
    for (int i = 0; i < 6; i++) cr_assert(wg_sequence_observe(q, prompt, 8, &err) == WG_OK, "%s", err.text);
    cr_assert(wg_sequence_observe(q, prompt, 8, &err) == WG_ECONTEXT);
    SAYS(err, "request 0 has 62 tokens and room for 2, but 8 are to be observed");
    cr_assert(wg_sequence_observe(q, prompt, 2, &err) == WG_OK);
    cr_assert(wg_sequence_propose(q, &(wg_draft){ .size = sizeof(wg_draft) }, &err) == WG_ECONTEXT);
    wg_session_close(s);
    s = NULL;
    cr_assert(wg_session_open_drafter(&s, 32, 64, "{\"draft\": {\"kind\": \"recycle\"}}", &err) == WG_EUNSUPPORTED && !s);
    SAYS(err, "drafter recycle learns from the target's rows");
}

/* 2 is followed by 3 and by 4: siblings, which the draft says. */
Test(drafter, says_whether_a_draft_is_a_chain)
{
    wg_error err;
    wg_session *s = NULL;
    wg_sequence *q = NULL;
    wg_draft d = { .size = sizeof d };
    cr_assert(wg_session_open_drafter(&s, 8, 64, "{\"draft\": {\"kind\": \"suffix\", \"tree\": true}}", &err) == WG_OK, "%s",
              err.text);
    cr_assert(wg_sequence_open_tokens(s, &q, (const int32_t[]){ 1, 2, 3, 1, 2, 4, 1, 2 }, 8, NULL, &err) == WG_OK);
    cr_assert(wg_sequence_propose(q, &d, &err) == WG_OK, "%s", err.text);
    int siblings = 0;
    for (int i = 1; i < d.n; i++) siblings += d.parent[i] != i - 1;
    cr_assert(siblings > 0 && d.chain == 0, "%d nodes", d.n);
    wg_session_close(s);
}

/* One call a round, and what a complete text leaves to the next one. */
Test(drafter, advances_and_learns_from_finished_texts)
{
    wg_error err;
    for (int complete = 0; complete < 2; complete++) {
        wg_session *s = NULL;
        wg_sequence *q = NULL;
        wg_draft d = { .size = sizeof d };
        cr_assert(wg_session_open_drafter(&s, 32, 64, "{\"draft\": {\"kind\": \"suffix\", \"factor\": 2}}", &err) == WG_OK,
                  "%s", err.text);
        cr_assert(wg_sequence_open_tokens(s, &q, (const int32_t[]){ 1, 2 }, 2, NULL, &err) == WG_OK, "%s", err.text);
        cr_assert(wg_sequence_advance(q, NULL, 0, &d, &err) == WG_OK && d.n == 1 && d.score == 0, "nothing to observe");
        cr_assert(wg_sequence_advance(q, (const int32_t[]){ 3, 9, 8, 7, 9 }, 5, &d, &err) == WG_OK, "%s", err.text);
        cr_assert(d.n == 3 && d.token[1] == 8 && d.token[2] == 7 && d.score > 1.9, "%d nodes, score %g", d.n, d.score);
        cr_assert(wg_sequence_advance(q, (const int32_t[]){ 32 }, 1, &d, &err) == WG_EINVAL);
        if (complete) wg_sequence_finish(q);
        else wg_sequence_close(q);
        wg_sequence_finish(NULL);
        cr_assert(wg_sequence_open_tokens(s, &q, (const int32_t[]){ 5, 9 }, 2, NULL, &err) == WG_OK, "%s", err.text);
        cr_assert(wg_sequence_propose(q, &d, &err) == WG_OK && d.n == (complete ? 3 : 1), "%d nodes", d.n);
        wg_session_close(s);
    }
}

/* A draft model alone drafts what it writes itself, and its rows of q are distributions. */
Test(drafter, a_model_drafts_its_own_text)
{
    wg_error err;
    wg_session *whole = NULL, *alone = NULL;
    wg_sequence *text = NULL, *q = NULL;
    wg_session_about a = { .size = sizeof a };
    static const int32_t prompt[] = { 1, 300, 301, 302 };
    int32_t want[5];
    cr_assert(wg_session_open(&whole, "{\"target\": {\"model\": \"" MODEL "\"}}", &err) == WG_OK, "%s", err.text);
    wg_session_about_get(whole, &a, NULL);
    cr_assert(wg_sequence_open_tokens(whole, &text, prompt, 4, NULL, &err) == WG_OK, "%s", err.text);
    want[0] = prompt[3];
    for (int i = 1; i < 5; i++) {
        wg_round r = { .size = sizeof r };
        cr_assert(wg_sequence_next(text, &r, &err) == WG_OK && r.n == 1);
        want[i] = r.token[0];
    }
    cr_assert(wg_session_open_drafter(&alone, a.vocab, 128,
                                      "{\"draft\": {\"kind\": \"model\", \"model\": \"" MODEL "\", \"length\": 4}}",
                                      &err) == WG_OK,
              "%s", err.text);
    cr_assert(wg_sequence_open_tokens(alone, &q, prompt, 4, NULL, &err) == WG_OK, "%s", err.text);
    expect_draft(q, want, 5);
    double *row = malloc(sizeof *row * (size_t)a.vocab), sum = 0;
    cr_assert(wg_sequence_q(q, 0, row, &err) == WG_OK, "%s", err.text);
    for (int i = 0; i < a.vocab; i++) sum += row[i];
    cr_assert(fabs(sum - 1) < 1e-12 && row[want[1]] == 1, "greedy");
    cr_assert(wg_sequence_q(q, 4, row, &err) == WG_EINVAL);
    SAYS(err, "row 4 of q; the last draft has 4 rows");
    cr_assert(wg_sequence_observe(q, want + 1, 3, &err) == WG_OK, "%s", err.text);
    expect_draft(q, want + 3, 2);
    free(row);
    wg_session_close(alone);
    wg_session_close(whole);
}

/* ---- lives ------------------------------------------------------------------------------------------------------------- */

Test(lives, ten_thousand_sessions_leak_nothing)
{
    wg_error err;
    toy t = { .end = -1 };
    const wg_scorer target = { .size = sizeof target, .name = "toy", .vocab = 8, .context = 16, .score = score, .user = &t };
    for (int i = 0; i < 10000; i++) {
        wg_session *s = NULL;
        wg_sequence *q = NULL;
        cr_assert((i % 2 ? wg_session_open_scorer(&s, &target, "{" NGRAM "}", &err)
                         : wg_session_open_drafter(&s, 8, 16, "{" NGRAM "}", &err)) == WG_OK,
                  "%s", err.text);
        cr_assert(wg_sequence_open_tokens(s, &q, (const int32_t[]){ 1, 2, 1 }, 3, NULL, &err) == WG_OK, "%s", err.text);
        if (i % 4 == 0) wg_sequence_propose(q, &(wg_draft){ .size = sizeof(wg_draft) }, &err);
        if (i % 3 == 0) wg_sequence_close(q);
        wg_session_close(s);
    }
}
