/* SPDX-License-Identifier: MIT
 * The step: its output, its end, its counts. */
#include <math.h>

#include "tests/unit/engine/bench.h"

/* ---- what it generates */

Test(engine, match_is_plain_decoding)
{
    static const wg_sampling samplings[] = { WG_SAMPLING(1, 0, 1, 0), WG_SAMPLING(0, 0, 1, 0), WG_SAMPLING(0.7, 4, 0.9, 0.05),
                                             PENALISED };
    for (int k = 0; k < 3; k++)
        for (int length = 0; length <= 12; length += 4)
            for (int wide = 0; wide <= 1; wide++) {
                text t;
                const text want = plain((uint32_t)length, 60, samplings[k]);
                generate((setup){ .draft = { .length = length, .wide = wide }, .opt = { .sampling = samplings[k] } },
                         (uint32_t)length, 1, 60, &t);
                expect_same(&want, &t, "match differs from plain decoding");
            }
}

/* Batch, page size, prefill chunk, threads: none of it may change a token, with any rule. */
Test(engine, text_depends_on_the_request_alone)
{
    const wg_verifier_class *const rules[] = { &match, &reject };
    static const struct {
        int batch, page, prefill, threads;
    } ways[] = { { 8, 0, 0, 0 }, { 8, 1, 1, 2 }, { 3, 5, 3, 3 }, { 1, 256, 2, 0 } };
    for (int r = 0; r < 2; r++)
        for (int wide = 0; wide <= 1; wide++) {
            text alone[SEQS], t[SEQS];
            const gambler_options draft = { .length = 5, .wide = wide };
            for (uint32_t i = 0; i < SEQS; i++)
                generate((setup){ .draft = draft, .rule = rules[r] }, i, 1, 30 + (int)i, &alone[i]);
            for (int w = 0; w < 4; w++)
                for (int i = 0; i < SEQS; i += ways[w].batch) {
                    const int n = SEQS - i < ways[w].batch ? SEQS - i : ways[w].batch;
                    bench b = start((setup){ .draft = draft,
                                             .rule = rules[r],
                                             .threads = ways[w].threads,
                                             .opt = { .page_slots = ways[w].page, .prefill_rows = ways[w].prefill } });
                    wg_seq *seq[SEQS];
                    for (int k = 0; k < n; k++)
                        seq[n - 1 - k] = open_seq(&b, (uint32_t)(i + k), 30 + i + k); /* in another order */
                    run(&b, seq, n);
                    for (int k = 0; k < n; k++) {
                        t[0] = text_of(seq[n - 1 - k]);
                        expect_same(&alone[i + k], &t[0], "the batch changed a text");
                        wg_seq_close(b.e, seq[n - 1 - k]);
                    }
                    bench_close(&b);
                }
        }
}

/* Probes cost rows and change nothing: not a token, not a count of drafts, with any rule and batch. */
Test(engine, probes_change_nothing)
{
    const wg_verifier_class *const rules[] = { &match, &reject };
    for (int r = 0; r < 2; r++)
        for (int length = 0; length <= 5; length += 5)
            for (int wide = 0; wide <= 1; wide++) {
                text without[SEQS], t;
                const gambler_options draft = { .length = length, .wide = wide },
                                      more = { .length = length, .wide = wide, .probes = 12 };
                generate((setup){ .draft = draft, .rule = rules[r] }, 0, SEQS, 40, without);
                for (int batch = 1; batch <= SEQS; batch += SEQS - 1) {
                    bench b = start((setup){ .draft = more, .rule = rules[r], .threads = batch > 1 ? 2 : 0 });
                    wg_seq *seq[SEQS];
                    for (int i = 0; i < batch; i++) seq[i] = open_seq(&b, (uint32_t)i, 40);
                    run(&b, seq, batch);
                    for (int i = 0; i < batch; i++) {
                        const wg_counts *c = &seq[i]->counts;
                        t = text_of(seq[i]);
                        expect_same(&without[i], &t, "probes changed a text");
                        cr_assert(c->drafted <= (long)length * c->passes && c->probes > c->passes, "%ld probes", c->probes);
                        wg_seq_close(b.e, seq[i]);
                    }
                    cr_assert(!((gambler *)b.e->drafter)->bad_target);
                    bench_close(&b);
                }
            }
}

Test(engine, speculation_saves_passes)
{
    bench b = start((setup){ .draft = { .length = 6 }, .rule = &reject, .opt = { .measure_alpha = true } });
    wg_seq *s = open_seq(&b, 1, 80);
    long nodes = 0;
    double independent = 0;
    while (s->finish == WG_RUNNING) {
        step(&b, &s, 1);
        const wg_tree *t = &b.e->tree[0];
        for (int i = 1; i < t->n; i++)
            independent +=
                fmin(1, wg_rows_prob(&b.e->p, t->row + i - 1, t->token[i]) / wg_rows_prob(&b.e->q, t->qrow[i], t->token[i]));
        nodes += s->path.n < s->last_nodes ? s->path.n : s->last_nodes - 1; /* with a child, on the path of a chain */
    }
    const wg_counts *c = &s->counts;
    cr_assert(c->emitted == 80 && c->passes < 60 && c->accepted == 80 - c->passes, "%ld passes", c->passes);
    cr_assert(c->alpha_n == nodes && c->alpha_sum > 0.3 * (double)nodes && c->alpha_sum < (double)nodes);
    /* On a chain the best rule of a node accepts sum min(p, q). */
    cr_assert(c->alpha_star_n == nodes && fabs(c->alpha_star_sum - c->alpha_sum) < 1e-9, "%g %g", c->alpha_star_sum,
              c->alpha_sum);
    cr_assert(c->independent_n == c->drafted && fabs(c->independent_sum - independent) < 1e-9, "%g %g", c->independent_sum,
              independent);
    cr_assert_gt(c->independent_n, nodes, "draft tokens behind rejected ones count too");
    long by_depth = 0;
    for (int d = 1; d < WG_TREE_MAX; d++) {
        by_depth += c->accepted_at[d];
        cr_assert(c->accepted_at[d] <= c->offered_at[d]);
    }
    cr_assert(by_depth == c->accepted);
    const int chunk = b.e->opt.prefill_rows;
    cr_assert(b.lm->lm.passes == c->passes + (s->prompt - 1 + chunk - 1) / chunk);
    const wg_phases *f = &b.e->phases;
    cr_assert(f->draft > 0 && f->verify > 0 && f->accept > 0 && f->kv > 0 && f->prefill > 0);
    int drafted = 0;
    for (int i = s->prompt; i < s->n; i++) drafted += s->drafted[i];
    cr_assert(drafted == c->accepted);
    const gambler *g = (const gambler *)b.e->drafter;
    cr_assert(g->observed == c->passes && !g->bad_target && g->forgotten == 0);
    wg_seq_close(b.e, s);
    cr_assert(g->forgotten == 1);
    bench_close(&b);
}

/* ---- conversations */

enum { TURNS = 3, ANSWER = 12 };

/* The question of a turn. */
static int question_of(int turn, int32_t *out)
{
    for (int i = 0; i < 2 + turn; i++) out[i] = (int32_t)((2 * turn + i) % V);
    return 2 + turn;
}

/* An extended sequence equals, at every turn, one that is opened with the conversation so far as its prompt: text and draws;
 * and only new tokens are fed. */
Test(engine, a_conversation_is_its_whole_text)
{
    static const int eog = 4;
    const wg_verifier_class *const rules[] = { &match, &reject };
    for (int r = 0; r < 2; r++)
        for (int length = 0; length <= 5; length += 5)
            for (int batch = 1; batch <= SEQS; batch += SEQS - 1) {
                const setup how = {
                    .draft = { .length = length }, .rule = rules[r], .eog = &eog, .opt = { .prefill_rows = 2 }
                };
                bench b = start(how), fresh = start(how);
                wg_seq *seq[SEQS];
                wg_error err = { 0 };
                int32_t asked[8];
                for (int i = 0; i < batch; i++) seq[i] = open_seq(&b, (uint32_t)i, ANSWER);
                for (int turn = 0; turn < TURNS; turn++) {
                    const int n = turn ? question_of(turn, asked) : 0;
                    for (int i = 0; i < batch && turn; i++) {
                        const int before = seq[i]->n;
                        const long rows = b.lm->lm.rows;
                        cr_assert_eq(wg_seq_extend(b.e, seq[i], asked, n, ANSWER, &err), WG_OK, "%s", err.text);
                        cr_assert(seq[i]->asked == before && seq[i]->prompt == before + n && seq[i]->finish == WG_RUNNING);
                        cr_assert_eq(wg_kv_len(seq[i]->kv), before - 1);
                        cr_assert_eq(wg_engine_prefill(b.e, seq[i], &err), WG_OK, "%s", err.text);
                        cr_assert_eq(b.lm->lm.rows - rows, n, "%ld rows for %d tokens", b.lm->lm.rows - rows, n);
                        check_between_steps(&b, seq[i]);
                    }
                    run(&b, seq, batch);
                    for (int i = 0; i < batch; i++) {
                        wg_seq *s = NULL;
                        cr_assert_eq(wg_seq_open(fresh.e, &s, (uint32_t)i, seq[i]->token, seq[i]->prompt, ANSWER, &err), WG_OK,
                                     "%s", err.text);
                        run(&fresh, &s, 1);
                        const text want = text_of(s), got = text_of(seq[i]);
                        expect_same(&want, &got, "a conversation went another way than its whole text");
                        cr_assert(s->counts.passes == seq[i]->counts.passes && s->counts.accepted == seq[i]->counts.accepted);
                        wg_seq_close(fresh.e, s);
                    }
                }
                for (int i = 0; i < batch; i++) wg_seq_close(b.e, seq[i]);
                bench_close(&b);
                bench_close(&fresh);
            }
}

/* An invalid extension changes nothing: a valid one can follow. */
Test(engine, a_question_that_cannot_be)
{
    static const int32_t good[] = { 1, 2 }, bad[] = { 1, V };
    int32_t many[CONTEXT] = { 0 };
    bench b = start((setup){ .draft = { .length = 3 } });
    wg_seq *s = open_seq(&b, 1, ANSWER);
    wg_error err = { 0 };
    cr_assert_eq(wg_seq_extend(b.e, s, good, 2, ANSWER, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "request 1 is running; it can be extended when it has finished");
    run(&b, &s, 1);
    const text before = text_of(s);
    const int left = CONTEXT - before.n;
    cr_assert_eq(wg_seq_extend(b.e, s, good, 0, ANSWER, &err), WG_EINVAL);
    cr_assert_eq(wg_seq_extend(b.e, s, good, 2, 0, &err), WG_EINVAL);
    cr_assert_eq(wg_seq_extend(b.e, s, bad, 2, ANSWER, &err), WG_EINVAL);
    cr_assert_eq(wg_seq_extend(b.e, s, many, left, ANSWER, &err), WG_ECONTEXT);
    cr_assert(strstr(err.text, "the conversation has 17 tokens and its next question 79, but only 96 fit"), "%s", err.text);
    for (uint64_t nth = 1; nth <= 2; nth++) {
        wg_mem_fail_at(nth, false);
        cr_assert_eq(wg_seq_extend(b.e, s, good, 2, ANSWER, &err), WG_ENOMEM);
        wg_mem_fail_at(0, false);
    }
    const text after = text_of(s);
    expect_same(&before, &after, "a question that was refused left something");
    cr_assert_eq(wg_seq_extend(b.e, s, many, left - 1, ANSWER, &err), WG_OK, "%s", err.text); /* one token fits */
    run(&b, &s, 1);
    cr_assert(s->n == CONTEXT && s->finish == WG_FINISH_LENGTH && s->counts.emitted == 1);
    cr_assert_eq(wg_seq_extend(b.e, s, good, 1, ANSWER, &err), WG_ECONTEXT);
    wg_seq_close(b.e, s);
    bench_close(&b);
}

/* ---- how it ends */

Test(engine, ends_at_the_end_of_generation)
{
    for (int eog = 0; eog < V; eog++)
        for (uint32_t request = 0; request < 4; request++) {
            text want = plain(request, 60, (wg_sampling)WG_SAMPLING(1, 0, 1, 0)), t;
            int32_t prompt[16];
            for (int i = prompt_of(request, prompt); i < want.n; i++)
                if (want.token[i] == eog) {
                    want.n = i + 1;
                    want.finish = WG_FINISH_EOS;
                }
            for (int length = 0; length <= 7; length += 7) {
                generate((setup){ .draft = { .length = length }, .eog = &eog }, request, 1, 60, &t);
                expect_same(&want, &t, "the end of generation");
            }
        }
}

Test(engine, ends_at_the_limit_and_at_the_end_of_the_context)
{
    for (int max_new = 1; max_new <= 9; max_new++) {
        text t;
        const text want = plain(5, max_new, (wg_sampling)WG_SAMPLING(1, 0, 1, 0));
        generate((setup){ .draft = { .length = 7, .wide = max_new % 2 } }, 5, 1, max_new, &t);
        expect_same(&want, &t, "the limit");
    }
    text t;
    const text want = plain(2, 1000, (wg_sampling)WG_SAMPLING(1, 0, 1, 0));
    generate((setup){ .draft = { .length = 7 } }, 2, 1, 1000, &t);
    expect_same(&want, &t, "the context");
    cr_assert(t.n == CONTEXT && t.finish == WG_FINISH_LENGTH);
    generate((setup){ .draft = { .length = 7 }, .opt = { .max_tokens = 40 } }, 2, 1, 2147483647, &t);
    cr_assert(t.n == 40 && memcmp(t.token, want.token, 40 * sizeof *t.token) == 0);
}

/* No row is spent on a node that cannot be emitted. */
Test(engine, drafts_are_cut_to_the_room)
{
    bench b = start((setup){ .draft = { .length = 7 }, .rule = &reject });
    wg_seq *s = open_seq(&b, 0, 3);
    while (s->finish == WG_RUNNING) {
        const int room = wg_seq_room(s);
        step(&b, &s, 1);
        cr_assert(s->last_height <= room && s->last_nodes == s->last_height + 1);
    }
    wg_seq_close(b.e, s);
    bench_close(&b);
}

/* Nor on a probe that is deeper, or that hangs behind nodes which were cut. */
Test(engine, probes_are_cut_to_the_room)
{
    for (int length = 0; length <= 2; length++) {
        bench b = start((setup){ .draft = { .length = length, .probes = 40 }, .rule = &match });
        wg_seq *s = open_seq(&b, 0, 8);
        long probes = 0;
        while (s->finish == WG_RUNNING) {
            const int room = wg_seq_room(s);
            step(&b, &s, 1);
            const wg_tree *t = &b.e->tree[0];
            for (int i = 0; i < wg_tree_rows(t); i++) cr_assert_leq(wg_tree_depth(t, i), room);
            cr_assert(s->last_probes == t->probes && (room >= length || t->probes == 0));
            probes += t->probes;
        }
        cr_assert(probes > 0 && probes == s->counts.probes);
        wg_seq_close(b.e, s);
        bench_close(&b);
    }
}
