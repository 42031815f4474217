/* SPDX-License-Identifier: MIT
 * The step and its construction under failures: the state is unchanged, nothing leaks, and the message says what to do. */
#include "tests/unit/engine/bench.h"

/* ---- what fails leaves no trace */

typedef struct snapshot {
    wg_seq s;
    text t;
    int len;
} snapshot;

static snapshot look(const wg_seq *s) { return (snapshot){ *s, text_of(s), wg_kv_len(s->kv) }; }

/* `filled`: the prompt may have gone into the cache meanwhile. */
static void expect_untouched(const wg_seq *s, const snapshot *before, bool filled)
{
    const snapshot now = look(s);
    expect_same(&before->t, &now.t, "a failed step changed the text");
    cr_assert(now.len == before->len || (filled && now.len == s->n - 1));
    cr_assert(wg_kv_tail(s->kv) == 0 && now.s.chance.position == before->s.chance.position);
    cr_assert(memcmp(&now.s.counts, &before->s.counts, sizeof now.s.counts) == 0);
}

Test(engine_fault, any_pass_may_fail)
{
    text want[3];
    const setup s = { .draft = { .length = 4, .wide = 1 }, .rule = &reject, .opt = { .prefill_rows = 3 } };
    generate(s, 2, 3, 12, want);
    bool failed = true;
    for (long at = 1; failed; at++) {
        bench b = start(s);
        wg_seq *seq[3];
        failed = false;
        for (uint32_t i = 0; i < 3; i++) seq[i] = open_seq(&b, 2 + i, 12);
        b.lm->fail_in = at;
        for (;;) {
            wg_seq *running[3];
            snapshot before[3];
            int k = 0;
            for (int i = 0; i < 3; i++)
                if (seq[i]->finish == WG_RUNNING) running[k++] = seq[i];
            if (k == 0) break;
            for (int i = 0; i < k; i++) before[i] = look(running[i]);
            wg_error err = { 0 };
            const wg_status status = wg_engine_step(b.e, running, k, &err);
            if (!status) continue;
            cr_assert(status == WG_EINTERRUPTED && !failed);
            failed = true;
            for (int i = 0; i < k; i++) expect_untouched(running[i], &before[i], true);
            cr_assert(wg_kv_check(b.e->kv, &err) == WG_OK, "%s", err.text);
        }
        for (int i = 0; i < 3; i++) {
            const text t = text_of(seq[i]);
            expect_same(&want[i], &t, "a retried step went another way");
            wg_seq_close(b.e, seq[i]);
        }
        bench_close(&b);
        cr_assert(at < 100);
        if (!failed) cr_assert(at > 8);
    }
}

Test(engine_fault, prefill_that_fails_leaves_the_cache_alone)
{
    bench b = start((setup){ .opt = { .prefill_rows = 2 } });
    wg_seq *s = open_seq(&b, 2, 4); /* 9 tokens: 4 passes */
    for (long at = 1; at <= 4; at++) {
        b.lm->fail_in = at;
        cr_assert(wg_engine_prefill(b.e, s, NULL) == WG_EINTERRUPTED && wg_kv_len(s->kv) == 0 && wg_kv_tail(s->kv) == 0);
    }
    cr_assert(wg_engine_prefill(b.e, s, NULL) == WG_OK && wg_kv_len(s->kv) == s->n - 1);
    const long passes = b.lm->lm.passes;
    cr_assert(wg_engine_prefill(b.e, s, NULL) == WG_OK && b.lm->lm.passes == passes); /* nothing to do */
    wg_seq_close(b.e, s);
    bench_close(&b);
}

Test(engine_fault, a_full_cache_refuses_the_step_and_nothing_else)
{
    text want[2];
    const setup s = { .draft = { .length = 4 },
                      .opt = { .page_slots = 2, .pages = 15 } }; /* 30 slots; each needs up to 5 + 17 */
    generate((setup){ .draft = { .length = 4 } }, 1, 2, 12, want);
    bench b = start(s);
    wg_seq *seq[2] = { open_seq(&b, 1, 12), open_seq(&b, 2, 12) };
    wg_error err = { 0 };
    snapshot before[2];
    wg_status status = WG_OK;
    while (!status) {
        for (int i = 0; i < 2; i++) before[i] = look(seq[i]);
        status = wg_engine_step(b.e, seq, 2, &err);
    }
    cr_assert(status == WG_EFULL && strstr(err.text, "pages"), "%s", err.text);
    for (int i = 0; i < 2; i++) {
        cr_assert(seq[i]->finish == WG_RUNNING);
        expect_untouched(seq[i], &before[i], true);
    }
    wg_seq_close(b.e, seq[0]); /* makes room */
    run(&b, &seq[1], 1);
    const text t = text_of(seq[1]);
    expect_same(&want[1], &t, "after the cache was full");
    wg_seq_close(b.e, seq[1]);
    bench_close(&b);
}

Test(engine_fault, a_drafter_with_a_bug_is_refused)
{
    static const char *const says[BUGS] = {
        [FAILS] = "fell over",
        [WRONG_ROOT] = "root is token",
        [TOKEN_RANGE] = "vocabulary is 0..5",
        [WRONG_LAW] = "law fixed",
        [NO_TREE] = "-3 nodes",
        [CYCLE] = "has parent 1",
        [LOST_ROW] = "names q row",
        [IMPOSSIBLE] = "gives that no probability",
        [NAN_ROW] = "gives that no probability",
    };
    for (int bug = FAILS; bug < BUGS; bug++) {
        bench b = start((setup){ .draft = { .length = 3 } });
        wg_seq *seq[2] = { open_seq(&b, 3, 20), open_seq(&b, 4, 20) };
        step(&b, seq, 2);
        ((gambler *)b.e->drafter)->opt.bug = bug;
        const snapshot before[2] = { look(seq[0]), look(seq[1]) };
        wg_error err = { 0 };
        cr_assert(wg_engine_step(b.e, seq, 2, &err) == (bug == FAILS ? WG_EIO : WG_EINVAL));
        cr_assert(strstr(err.text, says[bug]) && (bug == FAILS || strstr(err.text, "drafter gambler, request 4")), "%s",
                  err.text);
        for (int i = 0; i < 2; i++) expect_untouched(seq[i], &before[i], false);
        ((gambler *)b.e->drafter)->opt.bug = NO_BUG;
        run(&b, seq, 2);
        for (int i = 0; i < 2; i++) wg_seq_close(b.e, seq[i]);
        bench_close(&b);
    }
}

Test(engine_fault, refuses_steps_that_make_no_sense)
{
    bench b = start((setup){ .opt = { .max_batch = 3 } });
    wg_seq *a = open_seq(&b, 0, 1), *c = open_seq(&b, 1, 5), *twice[2] = { c, c }, *with_finished[2] = { c, a };
    wg_error err = { 0 };
    step(&b, &a, 1);
    cr_assert(a->finish == WG_FINISH_LENGTH);
    const snapshot before = look(c);
    cr_assert(wg_engine_step(b.e, twice, 2, &err) == WG_EINVAL && strstr(err.text, "twice"), "%s", err.text);
    cr_assert(wg_engine_step(b.e, with_finished, 2, &err) == WG_EINVAL && strstr(err.text, "request 0 is finished"), "%s",
              err.text);
    cr_assert(wg_engine_step(b.e, &c, 0, &err) == WG_EINVAL && wg_engine_step(b.e, &c, 4, &err) == WG_EINVAL);
    expect_untouched(c, &before, false);
    wg_seq_close(b.e, a);
    wg_seq_close(b.e, c);
    bench_close(&b);
}

/* ---- memory */

Test(engine_fault, steps_allocate_nothing_after_warm_up)
{
    for (int threads = 0; threads <= 2; threads += 2) {
        bench b = start(
            (setup){ .draft = { .length = 7, .wide = 1 }, .rule = &reject, .threads = threads, .opt = { .page_slots = 1 } });
        wg_seq *seq[SEQS];
        for (uint32_t i = 0; i < SEQS; i++) seq[i] = open_seq(&b, i, 60);
        step(&b, seq, SEQS);
        const uint64_t calls = wg_mem_read().calls;
        for (int i = 0; i < 8; i++) cr_assert(wg_engine_step(b.e, seq, SEQS, NULL) == WG_OK);
        cr_assert(wg_mem_read().calls == calls, "%d allocations", (int)(wg_mem_read().calls - calls));
        for (int i = 0; i < SEQS; i++) wg_seq_close(b.e, seq[i]);
        bench_close(&b);
    }
}

Test(engine_fault, every_allocation_may_fail)
{
    const setup s = { .rule = &match, .opt = { .max_batch = 2, .sampling = WG_SAMPLING(1, 0, 1, 0) } };
    const size_t before = wg_mem_read().live_blocks;
    wg_status status = WG_ENOMEM;
    int n = 0;
    while (status == WG_ENOMEM) {
        bench b;
        wg_seq *seq = NULL;
        wg_error err = { 0 };
        wg_mem_fail_at((uint64_t)++n, false);
        status = bench_open(&b, &s, &err);
        if (!status) status = wg_seq_open(b.e, &seq, 0, (int32_t[]){ 1, 2 }, 2, 5, &err);
        wg_mem_fail_at(0, false);
        cr_assert(status == WG_OK || strstr(err.text, "memory"), "%s", err.text);
        if (b.e) wg_seq_close(b.e, seq);
        bench_close(&b);
        cr_assert(wg_mem_read().live_blocks == before);
    }
    cr_assert(status == WG_OK && n > 15, "%d", n);
}

/* ---- opening */

Test(engine_fault, options_of_the_drafter_are_copied)
{
    bench b = start((setup){ .draft = { .length = 3, .note = "a note", .weight = 0.25 } });
    gambler *g = (gambler *)b.e->drafter;
    cr_assert(g->opt.length == 3 && strcmp(g->opt.note, "a note") == 0 && g->opt.weight == 0.25 && !g->opt.flag);
    wg_engine *e = NULL;
    const wg_engine_parts parts = {
        .target = &b.lm->lm, .ops = wg_ops_for(WG_CPU_REF), .drafter = &gambler_class, .verifier = &match
    };
    wg_engine_close(b.e);
    b.e = NULL;
    cr_assert(wg_engine_open(&e, &parts, &(wg_engine_options){ .max_batch = 1, .sampling.top_p = 1 }, NULL) == WG_OK);
    g = (gambler *)e->drafter;
    cr_assert(g->opt.length == 0 && strcmp(g->opt.note, "nothing") == 0 && g->opt.weight == 0.5 && g->opt.flag);
    wg_engine_close(e);
    bench_close(&b);
    wg_engine_close(NULL);
}

Test(engine_fault, open_refuses)
{
    static const struct {
        wg_engine_options o;
        const char *says;
    } bad[] = {
        { { .max_batch = -1 }, "max_batch" },
        { { .max_batch = 257 }, "max_batch" },
        { { .max_tokens = CONTEXT + 1 }, "max_tokens" },
        { { .max_tokens = 1 }, "max_tokens" },
        { { .page_slots = 257 }, "page_slots" },
        { { .prefill_rows = -1 }, "prefill_rows" },
        { { .pages = -1 }, "pages" },
        { { .sampling = WG_SAMPLING(-1, 0, 1, 0) }, "temperature" },
    };
    for (int i = 0; i < 8; i++) {
        bench b;
        wg_error err = { 0 };
        setup s = { .rule = &match, .opt = bad[i].o };
        if (s.opt.sampling.temperature == 0) s.opt.sampling.top_p = 1;
#ifdef WG_HARD
        if (strstr("page_slots prefill_rows", bad[i].says)) continue; /* a hard build sets them */
#endif
        cr_assert(bench_open(&b, &s, &err) == WG_EINVAL && strstr(err.text, bad[i].says), "%d: %s", i, err.text);
        bench_close(&b);
    }
    static const wg_verifier_class fixed_only = { .name = "fixed_only", .laws = WG_LAW_FIXED, .accept = match_accept };
    bench b;
    wg_error err = { 0 };
    cr_assert(bench_open(&b, &(setup){ .rule = &fixed_only, .opt.sampling.top_p = 1 }, &err) == WG_ELAW &&
                  strstr(err.text, "gambler"),
              "%s", err.text);
    bench_close(&b);
}

/* A rule for chains takes chains, and says what to do about a tree. */
Test(engine_fault, a_tree_for_a_rule_of_chains)
{
    static const wg_verifier_class chains = { .name = "chains", .laws = WG_LAWS, .chains = true, .accept = match_accept };
    bench b = start((setup){ .draft = { .length = 3 }, .rule = &chains });
    wg_seq *s = open_seq(&b, 3, 40);
    wg_error err = { 0 };
    for (int i = 0; i < 4; i++) step(&b, &s, 1);
    ((gambler *)b.e->drafter)->opt.wide = 1;
    ((gambler *)b.e->drafter)->opt.length = WG_TREE_MAX - 1;
    const snapshot before = look(s);
    cr_assert(wg_engine_step(b.e, &s, 1, &err) == WG_ELAW, "%s", err.text);
    cr_assert(strstr(err.text, "rule chains takes chains only") && strstr(err.text, "traversal"), "%s", err.text);
    expect_untouched(s, &before, false);
    wg_seq_close(b.e, s);
    bench_close(&b);
}

Test(engine_fault, prompts_that_do_not_fit)
{
    bench b = start((setup){ .opt = { .max_batch = 2, .max_tokens = 20 } });
    int32_t prompt[CONTEXT] = { 0 };
    wg_seq *s = NULL, *t = NULL, *u = NULL;
    wg_error err = { 0 };
    cr_assert(wg_seq_open(b.e, &s, 0, prompt, 0, 5, &err) == WG_EINVAL &&
              wg_seq_open(b.e, &s, 0, prompt, 3, 0, &err) == WG_EINVAL);
    cr_assert(wg_seq_open(b.e, &s, 0, prompt, 20, 5, &err) == WG_ECONTEXT && strstr(err.text, "20 tokens"), "%s", err.text);
    prompt[2] = V;
    cr_assert(wg_seq_open(b.e, &s, 0, prompt, 3, 5, &err) == WG_EINVAL && strstr(err.text, "prompt token 2 is 6"), "%s",
              err.text);
    prompt[2] = -1;
    cr_assert(wg_seq_open(b.e, &s, 0, prompt, 3, 5, &err) == WG_EINVAL && s == NULL);
    prompt[2] = 0;
    cr_assert(wg_seq_open(b.e, &s, 0, prompt, 19, 5, &err) == WG_OK && s->limit == 20 && s->slot == 0);
    cr_assert(wg_seq_open(b.e, &t, 1, prompt, 3, 5, &err) == WG_OK && t->limit == 8 && t->slot == 1);
    cr_assert(wg_seq_open(b.e, &u, 2, prompt, 3, 5, &err) == WG_EFULL && strstr(err.text, "2 places"), "%s", err.text);
    wg_seq_close(b.e, s);
    cr_assert(wg_seq_open(b.e, &u, 2, prompt, 3, 5, &err) == WG_OK && u->slot == 0);
    wg_seq_close(b.e, t);
    wg_seq_close(b.e, u);
    wg_seq_close(b.e, NULL);
    bench_close(&b);
}
