/* SPDX-License-Identifier: MIT
 * A program of the first ABI: compiled against the header as it was then (wager_abi_1.h, never to be changed), run with the
 * library as it is now. It uses every function and every struct; what it expects was true of the first library. */
#include <stdio.h>
#include <string.h>

#include "tests/api/wager_abi_1.h"
#include "tests/bundled.h"

#define MODEL BUNDLED_DRAFT
#define CHECK(what)                                                                                                            \
    do {                                                                                                                       \
        if (!(what)) return fprintf(stderr, "abi_1.c:%d: %s (%s)\n", __LINE__, #what, err.text), 1;                            \
    } while (0)

static wg_error err;

static int score(void *user, const wg_score_rows *rows, int n, char *message, size_t room)
{
    (void)user, (void)message, (void)room;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < rows[k].n; i++)
            for (int x = 0; rows[k].logits[i] && x < 8; x++) rows[k].logits[i][x] = x == (rows[k].token[i] + 1) % 8 ? 1.f : 0.f;
    return 0;
}

static int accept(void *user, const wg_draft *d, int vocab, const double *p, const double *q, const wg_choice *c, int32_t *node,
                  int32_t *next)
{
    (void)user, (void)q;
    node[0] = 0; /* a rule that rejects all drafts is lossless; its first choice is of no consequence */
    if (d->n > 1) wg_choice_accept(c, 1, 1, 2);
    *next = wg_choice_token(c, 0, p, vocab);
    return 1;
}

static int sessions(void)
{
    wg_session *s = NULL;
    wg_sequence *q = NULL;
    wg_sequence_options opt = { sizeof opt, 7, 12 };
    wg_round r = { .size = sizeof r };
    wg_stats c = { .size = sizeof c };
    wg_session_about a = { .size = sizeof a };
    wg_seconds t = { .size = sizeof t };
    char *text = NULL;
    CHECK(wg_generate(MODEL, "Once", "{\"max_tokens\": 12}", &text, &err) == WG_OK && strlen(text) > 0);
    wg_text_free(text);
    CHECK(wg_session_open(&s, "{\"target\": {\"model\": \"" MODEL "\"}, \"draft\": {\"kind\": \"suffix\"}}", &err) == WG_OK);
    CHECK(wg_session_about_get(s, &a, &err) == WG_OK && a.batch == 1 && a.lossless == 1 && a.law_only == 0);
    CHECK(strcmp(a.drafter, "suffix") == 0);
    CHECK(wg_sequence_open(s, &q, "Once", 4, &opt, &err) == WG_OK);
    while (r.end == WG_END_NOT) CHECK(wg_sequence_next(q, &r, &err) == WG_OK && r.n > 0 && r.text[r.bytes] == 0);
    CHECK(wg_sequence_stats(q, &c, &err) == WG_OK && c.emitted == 12 && c.passes > 0 && c.passes <= 12 && c.lossless == 1);
    CHECK(wg_sequence_extend(q, " and", 4, 3, &err) == WG_OK && wg_session_round(s, &q, 1, &err) == WG_OK);
    CHECK(wg_sequence_last(q, &r, &err) == WG_OK && r.n > 0);
    CHECK(wg_session_seconds(s, &t, &err) == WG_OK && t.verify > 0);
    CHECK(wg_sequence_extend_tokens(q, (const int32_t[]){ 3 }, 1, 2, &err) == WG_EINVAL && err.code == 1001);
    wg_sequence_close(q);
    wg_session_close(s);
    return 0;
}

static int parts(void)
{
    const int32_t token[] = { 0, 1 }, parent[] = { -1, 0 }, qrow[] = { -1, 0 }, prompt[] = { 1, 2, 3, 1, 2 };
    const double p[] = { 0.5, 0.5, 0.25, 0.75 }, q[] = { 0.25, 0.75 }, u[] = { 0.5, 0.5 };
    const wg_draft d = { .size = sizeof d, .n = 2, .token = token, .parent = parent, .qrow = qrow, .q_rows = 1, .law = "iid" };
    const wg_verification v = {
        .size = sizeof v, .rule = "rejection", .vocab = 2, .p = p, .q = q, .uniform = u, .uniforms = 2
    };
    int32_t node[2];
    double row[8];
    wg_outcome o = { .size = sizeof o, .node = node };
    const wg_proof_options po = {
        .size = sizeof po, .vocab = 2, .depth = 1, .children = 1, .steps = 1, .law = "iid", .cases = 5, .seed = 1
    };
    const wg_rule_callback rule = { .size = sizeof rule, .name = "mine", .law = "iid", .accept = accept };
    const wg_scorer scorer = { .size = sizeof scorer, .name = "counting", .vocab = 8, .context = 32, .score = score };
    wg_proof proof = { .size = sizeof proof };
    wg_draft got = { .size = sizeof got };
    wg_round r = { .size = sizeof r };
    wg_session *s = NULL;
    wg_sequence *seq = NULL;
    char *text = NULL;
    CHECK(wg_verify_tree(&d, &v, &o, &err) == WG_OK && o.n == 2 && node[1] == 1 && o.next == 1 && o.used == 2);
    CHECK(wg_rule_prove("rejection", &po, &proof, &text, &err) == WG_OK && proof.lossless == 1 && text == NULL);
    CHECK(wg_rule_prove_callback(&rule, &po, &proof, &text, &err) == WG_OK && proof.lossless == 1 && proof.alpha == 0);
    CHECK(wg_session_open_scorer(&s, &scorer, "{\"max_tokens\": 3}", &err) == WG_OK);
    CHECK(wg_sequence_open_tokens(s, &seq, prompt, 5, NULL, &err) == WG_OK);
    CHECK(wg_sequence_next(seq, &r, &err) == WG_OK && r.n == 1 && r.token[0] == 3 && r.drafted[0] == 0 && r.nodes == 0);
    wg_session_close(s);
    CHECK(wg_session_open_drafter(&s, 8, 32, "{\"draft\": {\"kind\": \"ngram\", \"k\": 2}}", &err) == WG_OK);
    CHECK(wg_sequence_open_tokens(s, &seq, prompt, 5, NULL, &err) == WG_OK);
    CHECK(wg_sequence_propose(seq, &got, &err) == WG_OK && got.n == 3 && got.token[1] == 3 && strcmp(got.law, "fixed") == 0);
    CHECK(got.q_rows == 0 || wg_sequence_q(seq, 0, row, &err) == WG_OK);
    CHECK(wg_sequence_observe(seq, got.token + 1, 1, &err) == WG_OK);
    wg_session_close(s);
    return 0;
}

int main(void)
{
    if (wg_abi() < WG_ABI || !*wg_version()) return fprintf(stderr, "the library has ABI %d\n", wg_abi()), 1;
    return sessions() || parts();
}
