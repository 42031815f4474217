/* SPDX-License-Identifier: MIT
 * The model drafter's chains against a direct use of the same model (model_bench.h), its passes and batches, the ends of
 * drafts, and refused options. Trees: test_model_trees.c. */
#include "draft/lm/lm_draft.h"
#include "tests/unit/draft/model_bench.h"

TestSuite(model, .init = write_models, .fini = remove_models);

Test(model, chains_are_draws_from_the_models_rows)
{
    follow("", warm, 1, 8);
    follow("length=1", warm, 2, 8);
    follow("length=6", nucleus, BATCH, 6);
    follow("length=5", penalised, 2, 6);
}
static void a_batch_alone(bench *b, bench *alone)
{
    wg_tree t[BATCH], one;
    for (int i = 0; i < BATCH; i++) bench_sequence(b, i, 1 + 13 * i, SLOTS), bench_sequence(alone, i, 1 + 13 * i, SLOTS);
    propose(b, 0, BATCH, t);
    for (int i = BATCH - 1; i >= 0; i--) {
        propose(alone, i, 1, &one);
        cr_assert_eq(one.n, t[i].n);
        cr_assert(!memcmp(one.token, t[i].token, (size_t)one.n * sizeof *one.token));
    }
    bench_close(b);
    bench_close(alone);
}

Test(model, a_batch_is_each_sequence_alone)
{
    bench b, alone;
    bench_open(&b, "tree=2-2", nucleus);
    bench_open(&alone, "tree=2-2", nucleus);
    a_batch_alone(&b, &alone);
    bench_open(&b, "grow=best_first,budget=7,length=5", nucleus);
    bench_open(&alone, "grow=best_first,budget=7,length=5", nucleus);
    a_batch_alone(&b, &alone);
}

#ifndef WG_HARD /* it splits its passes */
Test(model, a_level_is_one_pass_and_leaves_are_not_fed)
{
    bench b;
    wg_tree t[BATCH];
    bench_open(&b, "tree=2-2", warm);
    for (int i = 0; i < BATCH; i++) bench_sequence(&b, i, 20, SLOTS);
    propose(&b, 0, BATCH, t);
    const wg_lm *lm = wg_drafter_lm(b.d);
    cr_assert_eq(lm->passes, 2);
    cr_assert_eq(lm->rows, BATCH * (20 + 2));
    cr_assert_gt(lm->seconds, 0);
    const wg_drafter plain = { .class = &wg_drafter_none };
    cr_assert_null(wg_drafter_lm(&plain));
    bench_close(&b);
}
#endif

Test(model, a_long_prompt_is_caught_up_in_several_passes)
{
    bench b;
    plain p;
    bench_open(&b, "length=2", warm); /* 4 x 90 rows are more than one pass takes */
    plain_open(&p, warm);
    wg_tree t[BATCH];
    for (int i = 0; i < BATCH; i++) bench_sequence(&b, i, 90 - i, SLOTS);
    propose(&b, 0, BATCH, t);
    cr_assert_gt(wg_drafter_lm(b.d)->passes, 2);
    for (int i = 0; i < BATCH; i++) cr_assert_eq(check_sampled(&b, &b.seq[i], &t[i], &p), 2);
    plain_close(&p);
    bench_close(&b);
}

Test(model, drafts_no_deeper_than_the_limit_and_the_context)
{
    for (int left = 1; left < 8; left++) { /* places left in the sequence */
        bench b;
        wg_tree t;
        bench_open(&b, "length=5", warm);
        bench_sequence(&b, 0, 10, 10 + left);
        propose(&b, 0, 1, &t);
        cr_assert_eq(wg_tree_height(&t), left - 1 < 5 ? left - 1 : 5);
        bench_close(&b);
    }
    for (int n = CONTEXT - 6; n < CONTEXT + 3; n++) { /* tokens, the root included */
        bench b;
        wg_tree t;
        bench_open(&b, "length=5", warm);
        bench_sequence(&b, 0, n, SLOTS);
        propose(&b, 0, 1, &t);
        const int room = CONTEXT - (n - wg_window_base(n, CONTEXT)) + 1, want = room > 5 ? 5 : room;
        cr_assert_gt(want, 0);
        cr_assert_eq(wg_tree_height(&t), want, "%d tokens: height %d, not %d", n, wg_tree_height(&t), want);
        bench_close(&b);
    }
}

static bool ends(const void *user, int32_t token) { return token == *(const int32_t *)user; }

Test(model, nothing_follows_the_end_of_a_text)
{
    bench b;
    wg_tree t, u;
    bench_open(&b, "length=5", warm);
    bench_sequence(&b, 0, 20, SLOTS);
    propose(&b, 0, 1, &t);
    cr_assert_eq(t.n, 6);
    b.env.is_eog = ends;
    b.env.is_eog_user = &t.token[3];
    propose(&b, 0, 1, &u);
    int first = 1;
    while (t.token[first] != t.token[3]) first++;
    cr_assert_eq(u.n, first + 1);
    cr_assert(!memcmp(u.token, t.token, (size_t)u.n * sizeof *u.token));
    bench_close(&b);
}

Test(model, p_min_stops_before_drawing)
{
    const wg_sampling *const all[] = { &warm, &nucleus, &greedy };
    for (int s = 0; s < 3; s++) {
        bench b, sure;
        wg_tree t, u;
        bench_open(&b, "length=6", *all[s]);
        bench_sequence(&b, 0, 17, SLOTS);
        propose(&b, 0, 1, &t);
        cr_assert_eq(t.n, 7);
        plain p;
        plain_open(&p, s == 2 ? (wg_sampling)WG_SAMPLING(1, 0, 1, 0) : *all[s]);
        /* the least confidence of the first nodes: a threshold just above it stops there, one just below does not */
        double least = 1;
        int at = 0;
        for (int node = 0; node < 5; node++) {
            int32_t text[SLOTS];
            memcpy(text, b.seq[0].token, 17 * sizeof *text);
            for (int i = 1; i <= node; i++) text[16 + i] = t.token[i];
            plain_row(&p, text, 17 + node, 17);
            const double sureness = wg_rows_prob(&p.row, 0, wg_rows_argmax(&p.row, 0));
            if (node > 0 && sureness < least) least = sureness, at = node;
            if (node == 0) least = sureness;
        }
        for (int above = 0; above < 2; above++) {
            char options[64];
            snprintf(options, sizeof options, "length=6,p_min=%.17g", least * (above ? 1 + 1e-9 : 1 - 1e-9));
            bench_open(&sure, options, *all[s]);
            bench_sequence(&sure, 0, 17, SLOTS);
            propose(&sure, 0, 1, &u);
            if (above) cr_assert_eq(u.n, at + 1, "the draft stops at node %d, not %d", u.n - 1, at);
            else cr_assert_gt(u.n, at + 1, "the draft stops at node %d", u.n - 1);
            cr_assert(!memcmp(u.token, t.token, (size_t)u.n * sizeof *u.token)); /* what is drawn does not change */
            bench_close(&sure);
        }
        plain_close(&p);
        bench_close(&b);
    }
}

Test(model, no_pages_no_draft_and_no_damage)
{
    bench b;
    char all[300];
    snprintf(all, sizeof all, "model=%s,length=5", path);
    cr_assert_eq(bench_try(&b, all, warm, VOCAB, 3), WG_OK, "%s", b.err.text); /* three pages of four slots */
    cr_assert_eq(wg_rows_open(&b.q, BATCH * WG_TREE_MAX, VOCAB, &b.err), WG_OK);
    bench_sequence(&b, 0, 9, SLOTS);
    wg_seq *const seq = &b.seq[0];
    wg_tree t;
    cr_assert_eq(wg_drafter_model.propose(b.d, &seq, 1, &t, &b.q, &b.err), WG_EFULL);
    wg_kv_rollback(seq->kv);
    cr_assert_eq(wg_kv_check(b.kv, &b.err), WG_OK, "%s", b.err.text);
    cr_assert_eq(wg_kv_len(seq->kv), 8);
    seq->limit = 12; /* two drafted tokens fit */
    propose(&b, 0, 1, &t);
    cr_assert_eq(t.n, 3);
    bench_close(&b);
}

Test(model, vocabularies_must_agree)
{
    bench b;
    char all[300];
    wg_error err;
    snprintf(all, sizeof all, "model=%s", other);
    cr_assert_eq(bench_try(&b, all, warm, VOCAB, 50), WG_EVOCAB); /* no tokenizer here: sizes */
    cr_assert(
        strstr(b.err.text, "has a vocabulary of 312 tokens, target one of 300: a draft model needs the target's tokenizer"),
        "%s", b.err.text);
    bench_close(&b);

    /* The same tokenizer and a target with padded rows at the end: they are never drawn. */
    wg_weights *w;
    wg_tokenizer *tok;
    cr_assert_eq(wg_weights_open(&w, path, &err), WG_OK);
    cr_assert_eq(wg_tokenizer_open(&tok, w, &err), WG_OK, "%s", err.text);
    wg_weights_close(w);
    b = (bench){ .sampling = warm, .target = { .vocab = VOCAB + 12, .context = SLOTS } };
    cr_assert_eq(wg_kv_open(&b.kv, 4, 50, SLOTS + WG_TREE_MAX, &err), WG_OK);
    b.env = (wg_env){ .target = &b.target,
                      .kv = b.kv,
                      .ops = wg_ops_for(wg_cpu_chosen()),
                      .sampling = &b.sampling,
                      .max_batch = BATCH,
                      .tokenizer = tok };
    b.d = wg_calloc(1, wg_drafter_model.size);
    b.d->class = &wg_drafter_model;
    b.d->env = &b.env;
    char *o = (char *)b.d + wg_drafter_model.options_at;
    wg_option_defaults(wg_drafter_model.options, o);
    cr_assert_eq(wg_option_set(wg_drafter_model.options, o, "model", path, &err), WG_OK);
    cr_assert_eq(wg_drafter_model.open(b.d, &b.env, &err), WG_OK, "%s", err.text);
    wg_tree t;
    cr_assert_eq(wg_rows_open(&b.q, BATCH * WG_TREE_MAX, VOCAB + 12, &err), WG_OK);
    bench_sequence(&b, 0, 9, SLOTS);
    wg_seq *const seq = &b.seq[0];
    cr_assert_eq(wg_drafter_model.propose(b.d, &seq, 1, &t, &b.q, &err), WG_OK, "%s", err.text);
    cr_assert_gt(t.n, 1);
    for (int r = 0; r < b.q.n; r++)
        for (int i = VOCAB; i < VOCAB + 12; i++) cr_assert_eq(wg_rows_prob(&b.q, r, i), 0);
    seq->token[4] = VOCAB + 5; /* a token the draft model cannot be fed: it has nothing to say */
    wg_kv_rollback(seq->kv);
    wg_kv_truncate(seq->kv, 4);
    cr_assert_eq(wg_kv_reserve(seq->kv, 4, &err), WG_OK);
    wg_kv_commit_chain(seq->kv, 4);
    cr_assert_eq(wg_drafter_model.propose(b.d, &seq, 1, &t, &b.q, &err), WG_OK, "%s", err.text);
    cr_assert_eq(t.n, 1);
    bench_close(&b);
    wg_tokenizer_close(tok);
}

Test(model, refuses_what_it_cannot_use)
{
    const struct {
        const char *options;
        wg_status code;
        const char *says;
    } bad[] = {
        { "", WG_ECONFIG, "model=FILE" },
        { "model=/nonexistent/x.gguf", WG_ENOENT, "/nonexistent/x.gguf" },
        { "model=x,tree=2-", WG_ECONFIG, "tree=2-" },
        { "model=x,tree=0-1", WG_ECONFIG, "tree=0-1" },
        { "model=x,tree=two", WG_ECONFIG, "tree=two" },
        { "model=x,tree=31-33", WG_ECONFIG, "nodes below the root" },
        { "model=x,tree=999999999999999999999", WG_ECONFIG, "tree=" },
        { "model=x,length=1024", WG_EINVAL, "length" },
        { "model=x,kv_type=q4", WG_EINVAL, "kv_type" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bench b;
        cr_assert_eq(bench_try(&b, bad[i].options, warm, VOCAB, 50), bad[i].code, "%s", bad[i].options);
        cr_assert(strstr(b.err.text, bad[i].says), "%s: %s", bad[i].options, b.err.text);
        bench_close(&b);
    }
}

Test(model, allocates_nothing_after_warm_up)
{
    bench b;
    wg_tree t[BATCH];
    bench_open(&b, "tree=2-2", nucleus);
    for (int i = 0; i < BATCH; i++) bench_sequence(&b, i, 20 + i, SLOTS);
    uint64_t calls = 0;
    for (int step = 0; step < 6; step++) {
        if (step == 2) calls = wg_mem_read().calls;
        propose(&b, 0, BATCH, t);
        for (int i = 0; i < BATCH; i++) keep(&b, i, &t[i], (const int16_t[]){ 0, 1 }, 2, 7);
    }
    cr_assert_eq(wg_mem_read().calls, calls);
    bench_close(&b);
}

Test(model, open_survives_every_failing_allocation)
{
    char all[300];
    snprintf(all, sizeof all, "model=%s,tree=2-1,temperature=0,p_min=0.1", path);
    wg_status s = WG_ENOMEM;
    const size_t before = wg_mem_read().live_bytes;
    for (fail_nth = 1; s != WG_OK; fail_nth++) {
        bench b;
        s = bench_try(&b, all, warm, VOCAB, 50);
        cr_assert(s == WG_OK || s == WG_ENOMEM, "allocation %d: %s", (int)fail_nth, b.err.text);
        bench_close(&b);
        cr_assert_eq(wg_mem_read().live_bytes, before, "allocation %d leaks", (int)fail_nth);
        cr_assert_lt(fail_nth, 10000);
    }
    cr_assert_gt(fail_nth, 10);
}
