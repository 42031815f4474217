/* SPDX-License-Identifier: MIT
 * Rows of one sequence in an engine: its text beside others, what leaves a draft, log-probabilities, refusals. Their law is
 * enumerated in tests/law/law_rows.c. */
#include "core/engine/seq_rows.h"
#include "tests/unit/engine/bench.h"

static void sample(const bench *b, wg_seq *s, const wg_seq_sampling *how)
{
    wg_error err = { 0 };
    cr_assert(wg_seq_sample(b->e, s, how, &err) == WG_OK, "%s", err.text);
}

/* A sequence with the engine's chain as its own, or one that differs, gives the text of an engine opened with that chain; its
 * neighbours keep theirs. Lazy rows, rows of several threads, and rows computed at once. */
Test(seq_rows, a_sequence_has_the_text_of_an_engine_of_its_own)
{
    static const wg_sampling chains[] = { WG_SAMPLING(1, 0, 1, 0), WG_SAMPLING(0, 0, 1, 0), WG_SAMPLING(0.7, 4, 0.9, 0.05),
                                          PENALISED };
    for (int threads = 0; threads <= 3; threads += 3)
        for (int length = 0; length <= 12; length += 6) {
            bench b = start((setup){ .draft = { .length = length, .wide = 1 }, .threads = threads });
            wg_seq *seq[4];
            for (int i = 0; i < 4; i++) {
                seq[i] = open_seq(&b, (uint32_t)i, 40);
                if (i != 2) sample(&b, seq[i], &(wg_seq_sampling){ .sampling = &chains[i] });
            }
            run(&b, seq, 4);
            for (uint32_t i = 0; i < 4; i++) {
                const text want = plain(i, 40, i == 2 ? chains[0] : chains[i]), got = text_of(seq[i]);
                expect_same(&want, &got, "not the text of its own chain");
                wg_seq_close(b.e, seq[i]);
            }
            bench_close(&b);
        }
}

/* Under match and rejection: no other token is emitted. A drawn draft keeps its wrong tokens, and nothing behind them. */
Test(seq_rows, other_tokens_are_neither_emitted_nor_drafted_behind)
{
    static const int32_t some[] = { 1, 4, 5 };
    const wg_verifier_class *const rules[] = { &match, &reject };
    for (int r = 0; r < 2; r++) {
        bench b = start((setup){ .draft = { .length = 9, .wide = 1 }, .rule = rules[r] });
        wg_seq *s = open_seq(&b, 3, 60);
        long wrong = 0;
        sample(&b, s, &(wg_seq_sampling){ .allowed = some, .n_allowed = 3 });
        while (s->finish == WG_RUNNING) {
            step(&b, &s, 1);
            const wg_tree *t = &b.e->tree[0];
            for (int i = 1; i < t->n; i++) {
                const int32_t before = t->token[t->parent[i]];
                wrong += t->token[i] != 1 && t->token[i] < 4;
                cr_assert(t->parent[i] == 0 || before == 1 || before >= 4, "drafted behind token %d", before);
            }
        }
        for (int i = s->prompt; i < s->n; i++) cr_assert(s->token[i] == 1 || s->token[i] >= 4);
        cr_assert(wrong > 0 && s->counts.accepted > 0);
        wg_seq_close(b.e, s);
        bench_close(&b);
    }
}

/* A set of tokens whose logits are -inf or NaN is not left: its first token has all the mass. */
Test(seq_rows, a_row_stays_inside_its_set)
{
    const wg_sampling chains[] = { WG_SAMPLING(1, 0, 1, 0),
                                   WG_SAMPLING(0, 0, 1, 0),
                                   { .temperature = 1, .top_p = 0.5, .order = "top_p,temperature,top_k,min_p,penalties" } };
    wg_rows r;
    cr_assert(!wg_rows_open(&r, 1, 130, NULL));
    wg_rows_push(&r);
    for (int c = 0; c < 3; c++)
        for (int bad = 0; bad < 2; bad++) {
            wg_sampler s;
            uint64_t allowed[3] = { 0 };
            float x[130];
            for (int i = 0; i < 130; i++) x[i] = (float)i / 130;
            wg_token_add(allowed, 65), wg_token_add(allowed, 129);
            x[65] = x[129] = bad ? NAN : -INFINITY;
            cr_assert(!wg_sampler_open(&s, &chains[c], wg_ops_for(WG_CPU_REF), 130, NULL));
            wg_sampler_row_after(&s, x, &(wg_prefix){ .allowed = allowed }, &r, 0);
            cr_assert(wg_rows_prob(&r, 0, 65) == 1 && x[0] == 0 && (bad ? isnan(x[65]) : isinf(x[65])));
            x[129] = -7;
            wg_sampler_row_after(&s, x, &(wg_prefix){ .allowed = allowed }, &r, 0);
            cr_assert(wg_rows_prob(&r, 0, 129) == 1);
            wg_sampler_close(&s);
        }
    wg_rows_close(&r);
}

/* Ties have the lowest ids first; NaN has no probability, +inf has it all; a short vocabulary leaves places empty. */
Test(seq_rows, logprobs_of_odd_rows)
{
    const wg_ops *ops = wg_ops_for(WG_CPU_REF);
    double w[5];
    wg_logprob l[7];
    wg_logprobs(ops, (const float[]){ 1, 3, NAN, 3, -INFINITY }, 5, 2, 6, w, l);
    cr_assert(l[0].token == 2 && isinf(l[0].logprob) && l[0].logprob < 0);
    cr_assert(l[1].token == 1 && l[2].token == 3 && l[3].token == 0 && l[4].token == 4 && l[5].token == -1);
    cr_assert(fabs(l[1].logprob + log(2 + exp(-2))) < 1e-15 && l[1].logprob == l[2].logprob && isinf(l[4].logprob));
    wg_logprobs(ops, (const float[]){ 1, INFINITY, 0, 0, 0 }, 5, 0, 1, w, l);
    cr_assert(isinf(l[0].logprob) && l[1].token == 1 && l[1].logprob == 0);
    wg_logprobs(ops, (const float[]){ 0, 0, 0, 0, 0 }, 5, 4, 0, w, l);
    cr_assert(fabs(l[0].logprob + log(5)) < 1e-15);
}

static void refuse(const bench *b, wg_seq *s, wg_seq_sampling how, wg_status code, const char *says)
{
    wg_error err = { 0 };
    const wg_status status = wg_seq_sample(b->e, s, &how, &err);
    cr_assert(status == code && strstr(err.text, says), "%s: %s", wg_status_name(status), err.text);
}

Test(seq_rows, refusals_change_nothing)
{
    static wg_verifier_class cold;
    bench b = start((setup){ .opt = { .sampling = WG_SAMPLING(0, 0, 1, 0) } });
    wg_seq *s = open_seq(&b, 3, 20);
    const wg_sampling hot = WG_SAMPLING(0.8, 0, 1, 0), bad = WG_SAMPLING(-1, 0, 1, 0);
    sample(&b, s, &(wg_seq_sampling){ .logprobs = true, .top = 2 });
    const struct wg_seq_rows *rows = s->rows;
    refuse(&b, s, (wg_seq_sampling){ .bias = &(wg_logit_bias){ V, 1 }, .biases = 1 }, WG_EINVAL,
           "logit_bias: token 6; the vocabulary is 0..5");
    refuse(&b, s, (wg_seq_sampling){ .bias = &(wg_logit_bias){ 2, INFINITY }, .biases = 1 }, WG_EINVAL,
           "logit_bias: token 2 has the bias inf; expected a finite number");
    refuse(&b, s, (wg_seq_sampling){ .allowed = &(int32_t){ -1 }, .n_allowed = 1 }, WG_EINVAL,
           "allowed tokens: token -1; the vocabulary is 0..5");
    refuse(&b, s, (wg_seq_sampling){ .logprobs = true, .top = 33 }, WG_EINVAL, "log-probabilities of 33 tokens; expected");
    refuse(&b, s, (wg_seq_sampling){ .sampling = &bad }, WG_EINVAL, "sampling: temperature -1");
    cold = match;
    cold.zero_only = true;
    b.e->verifier = &cold;
    refuse(&b, s, (wg_seq_sampling){ .sampling = &hot }, WG_ELAW,
           "request 3: temperature 0.8, but rule match verifies greedy decoding alone; set 0, or open the engine");
    cr_assert(s->rows == rows);
    run(&b, &s, 1);
    wg_seq_close(b.e, s);
    bench_close(&b);
}

/* ---- grammars; their law is enumerated in tests/law/law_grammar.c */

static const char bad_grammar[] =
    "root ::= x x x x x x\nx ::= y y y y y | \"\"\ny ::= [ab] y [ab] | [ab]? | \"a\" x \"b\" | \"ab\" x y";

typedef struct grammar {
    wg_token_trie *trie;
    wg_bnf *bnf;
    wg_acceptor *acceptor;
} grammar;

static grammar open_grammar(const char *text, int vocab)
{
    static const wg_text tokens[V] = { { "a", 1 }, { "b", 1 }, { "ab", 2 }, { "ba", 2 }, { "c", 1 }, { "", 0 } };
    grammar g;
    wg_error err = { 0 };
    cr_assert(!wg_token_trie_open(&g.trie, tokens, vocab, &err) && !wg_bnf_open(&g.bnf, "g", text, strlen(text), &err));
    cr_assert(wg_acceptor_open(&g.acceptor, g.bnf, g.trie, &err) == WG_OK, "%s", err.text);
    return g;
}

static void close_grammar(grammar *g)
{
    wg_acceptor_close(g->acceptor);
    wg_bnf_close(g->bnf);
    wg_token_trie_close(g->trie);
}

Test(seq_rows, grammars_that_cannot_be)
{
    const int end = 5;
    bench b = start((setup){ .eog = &end }), endless = start((setup){ .opt = { .seed = 1 } });
    wg_seq *s = open_seq(&b, 3, 20), *without = open_seq(&endless, 3, 20);
    grammar g = open_grammar("root ::= [ab]{3}", V), small = open_grammar("root ::= [ab]{3}", V - 1);
    grammar hostile = open_grammar(bad_grammar, V);
    wg_error err = { 0 };
    refuse(&b, s, (wg_seq_sampling){ .acceptor = small.acceptor }, WG_EINVAL,
           "request 3 has a grammar over 5 tokens; the vocabulary has 6");
    refuse(&endless, without, (wg_seq_sampling){ .acceptor = g.acceptor }, WG_EUNSUPPORTED,
           "request 3 has a grammar, but no token of this model ends a text");
    sample(&b, s, &(wg_seq_sampling){ .acceptor = g.acceptor, .from = 1 });
    cr_assert(wg_engine_step(b.e, &s, 1, &err) == WG_EINVAL &&
                  strstr(err.text, "request 3: the text from token 1 on is not the beginning of one of its grammar"),
              "%s", err.text);
    sample(&b, s, &(wg_seq_sampling){ .acceptor = hostile.acceptor });
    wg_status status = WG_OK;
    while (!status && s->finish == WG_RUNNING) status = wg_engine_step(b.e, &s, 1, &err);
    cr_assert(!status || strstr(err.text, "its grammar has too many ways to read the text"), "%s", err.text);
    wg_seq_close(b.e, s), wg_seq_close(endless.e, without);
    close_grammar(&g), close_grammar(&small), close_grammar(&hostile);
    bench_close(&b), bench_close(&endless);
}

/* A turn of a conversation begins the grammar again; a failed step leaves it where it stood; several sequences share one. */
Test(seq_rows, a_grammar_goes_on_after_failures_and_begins_with_a_turn)
{
    const int end = 5;
    const int32_t question[] = { 1, 0 };
    bench b = start((setup){ .eog = &end, .draft = { .length = 6, .wide = 1 } });
    grammar g = open_grammar("root ::= [ab]{9} \"c\"", V);
    wg_seq *seq[2] = { open_seq(&b, 3, 30), open_seq(&b, 4, 30) };
    wg_error err = { 0 };
    for (int i = 0; i < 2; i++) sample(&b, seq[i], &(wg_seq_sampling){ .acceptor = g.acceptor, .forced = true });
    cr_assert(!wg_seq_is_whole(seq[0]));
    step(&b, seq, 2);
    b.lm->fail_in = 1;
    cr_assert(wg_engine_step(b.e, seq, 2, &err) == WG_EINTERRUPTED);
    b.lm->fail_in = 0;
    run(&b, seq, 2);
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 2; i++) {
            int bytes = 0;
            for (int k = seq[i]->prompt; k < seq[i]->n - 1; k++)
                bytes += seq[i]->token[k] == 2 || seq[i]->token[k] == 3 ? 2 : 1;
            cr_assert(bytes == 10 && seq[i]->token[seq[i]->n - 2] == 4 && seq[i]->finish == WG_FINISH_EOS &&
                      wg_seq_is_whole(seq[i]));
            if (turn == 0) cr_assert(wg_seq_extend(b.e, seq[i], question, 2, 30, &err) == WG_OK, "%s", err.text);
        }
        if (turn == 0) run(&b, seq, 2);
    }
    for (int i = 0; i < 2; i++) wg_seq_close(b.e, seq[i]);
    close_grammar(&g);
    bench_close(&b);
}
