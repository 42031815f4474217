/* SPDX-License-Identifier: MIT
 * The scheduler over a table model: who runs and when, what a step reads, and failures. Texts of whole schedules are the law
 * test's (law_sched). */
#include "core/sched/sched_impl.h"
#include "tests/unit/engine/bench.h"

enum { ASKED = 6, MOST = 20000 };

/* The sizes of some tests are those of ordinary builds; a hard build has pages of two tokens and prefills of three rows. */
#ifdef WG_HARD
enum { HARD = 1 };
#else
enum { HARD = 0 };
#endif

/* ---- a bench with a scheduler, and requests that write down what they are told */

typedef struct world {
    bench b;
    wg_sched *s;
} world;

typedef struct told {
    int32_t token[CONTEXT];
    int n, rounds, preemptions, step, last_step, began; /* began: the step of its first round; last_step: that of its end */
    int started, ended, failed;
    wg_sched_end end;
    char why[128];
} told;

static double seconds;
static int steps;
static double now(void) { return seconds; }

static void on_event(void *user, const wg_sched_event *e)
{
    told *t = user;
    cr_assert(!t->ended && !t->failed && t->n + e->n <= CONTEXT);
    if (e->kind == WG_SCHED_STARTED) t->started++;
    if (e->kind == WG_SCHED_ROUND) {
        if (t->rounds++ == 0) t->began = steps;
        memcpy(t->token + t->n, e->token, (size_t)e->n * sizeof *e->token);
        t->n += e->n;
    }
    if (e->kind == WG_SCHED_ENDED) t->ended++;
    if (e->kind == WG_SCHED_FAILED) t->failed++, snprintf(t->why, sizeof t->why, "%.120s", e->why->text);
    t->end = e->end;
    t->preemptions = e->preemptions;
    t->last_step = steps;
}

static world open_world(setup s, wg_sched_options o)
{
    wg_error err = { 0 };
    world w = { 0 };
    seconds = steps = 0;
    o.now = now;
    if (s.opt.ride_rows == 0) s.opt.ride_rows = 16;
    w.b = start(s);
    cr_assert(wg_sched_open(&w.s, w.b.e, &o, &err) == WG_OK, "%s", err.text);
    return w;
}

static void close_world(world *w)
{
    wg_error err = { 0 };
    wg_sched_close(w->s);
    cr_assert(wg_kv_check(w->b.e->kv, &err) == WG_OK, "%s", err.text);
    cr_assert(wg_kv_pages_free(w->b.e->kv) == wg_kv_pages(w->b.e->kv), "pages are lost");
    bench_close(&w->b);
}

static wg_status try_ask(world *w, uint32_t number, int max_new, int priority, told *t, wg_error *err)
{
    int32_t prompt[16];
    *t = (told){ 0 };
    const wg_sched_request r = { .n = prompt_of(number, prompt),
                                 .token = prompt,
                                 .max_new = max_new,
                                 .seed = 123,
                                 .number = number,
                                 .priority = priority,
                                 .on_event = on_event,
                                 .user = t };
    return wg_sched_submit(w->s, &r, NULL, err);
}

static void ask(world *w, uint32_t number, int max_new, int priority, told *t)
{
    wg_error err = { 0 };
    cr_assert(try_ask(w, number, max_new, priority, t, &err) == WG_OK, "%s", err.text);
}

static int one_step(world *w)
{
    cr_assert(++steps < MOST, "it does not end");
    return wg_sched_step(w->s);
}

static void run_all(world *w)
{
    while (one_step(w)) continue;
}

/* The text is that of plain decoding of this request. */
static void expect_plain(const told *t, uint32_t number, int max_new, const char *what)
{
    const text want = plain(number, max_new, (wg_sampling)WG_SAMPLING(1, 0, 1, 0));
    int32_t prompt[16];
    const int n = prompt_of(number, prompt);
    cr_assert(t->ended == 1 && !t->failed && t->n == want.n - n && t->end == WG_SCHED_LENGTH, "%s", what);
    cr_assert(memcmp(t->token, want.token + n, (size_t)t->n * sizeof *t->token) == 0, "%s", what);
}

/* ---- who runs */

Test(sched, higher_priorities_come_first_then_earlier_requests)
{
    told t[3];
    world w = open_world((setup){ .opt = { .max_batch = 1 } }, (wg_sched_options){ .batch = 1 });
    ask(&w, 0, 5, 0, &t[0]);
    ask(&w, 1, 5, 0, &t[1]);
    ask(&w, 2, 5, 2, &t[2]);
    run_all(&w);
    cr_assert(t[2].began < t[0].began && t[0].last_step < t[1].began && t[2].last_step < t[0].began);
    for (uint32_t i = 0; i < 3; i++) expect_plain(&t[i], i, 5, "one after another");
    close_world(&w);
}

Test(sched, waiting_raises_a_request_so_none_starves)
{
    static told low, high[200];
    int asked = 0;
    world w = open_world((setup){ .opt = { .max_batch = 1 } }, (wg_sched_options){ .batch = 1, .aging = 10 });
    ask(&w, 0, 3, 0, &low);
    for (; !low.ended; one_step(&w)) { /* more than it can serve, all of them before it */
        cr_assert(asked < 200, "it starves");
        ask(&w, 1, 3, 3, &high[asked++]);
    }
    /* before it: those of its first 30 steps, after which a new one has its rank; each takes three */
    cr_assert(low.began > 60 && low.began < 120 && asked < 125, "step %d", low.began);
    run_all(&w);
    expect_plain(&low, 0, 3, "after waiting");
    close_world(&w);
}

Test(sched, a_higher_priority_takes_a_place_and_gives_it_back)
{
    told t[2];
    world w = open_world((setup){ .draft = { .length = 3 }, .opt = { .max_batch = 2, .step_batch = 1 } },
                         (wg_sched_options){ .batch = 1 });
    ask(&w, 2, 30, 0, &t[0]);
    for (int i = 0; i < 4; i++) one_step(&w);
    cr_assert(t[0].rounds > 0 && !t[0].ended);
    ask(&w, 3, 6, 1, &t[1]);
    run_all(&w);
    cr_assert(t[0].preemptions == 1 && t[1].preemptions == 0 && t[1].last_step < t[0].last_step);
    expect_plain(&t[0], 2, 30, "preempted");
    expect_plain(&t[1], 3, 6, "preempting");
    close_world(&w);
}

/* Three texts of up to 57 tokens in 5 pages of 16: the last one goes, and comes back. */
Test(sched, without_pages_the_last_request_waits, .disabled = HARD)
{
    told t[3];
    wg_sched_stats stats;
    world w = open_world((setup){ .draft = { .length = 3 }, .opt = { .max_batch = 6, .step_batch = 3, .pages = 5 } },
                         (wg_sched_options){ .prefill_rows = 2 });
    for (uint32_t i = 0; i < 3; i++) ask(&w, i, 48, 0, &t[i]);
    run_all(&w);
    wg_sched_stats_read(w.s, &stats);
    cr_assert(stats.preemptions > 0 && t[0].preemptions == 0 && t[2].preemptions > 0 &&
              stats.read_tokens > stats.prompt_tokens);
    for (uint32_t i = 0; i < 3; i++) expect_plain(&t[i], i, 48, "short of pages");
    close_world(&w);
}

Test(sched, a_text_ends_where_the_cache_does, .disabled = HARD)
{
    told t;
    world w = open_world((setup){ .draft = { .length = 40 }, .opt = { .max_batch = 2, .pages = 2 } }, (wg_sched_options){ 0 });
    const int slots = wg_kv_pages(w.b.e->kv) * wg_kv_page_slots(w.b.e->kv);
    ask(&w, 2, 80, 0, &t);
    run_all(&w);
    int32_t prompt[16];
    cr_assert(t.ended && t.end == WG_SCHED_LENGTH && t.n == slots - prompt_of(2, prompt), "%d tokens, %s", t.n, t.why);
    expect_plain(&t, 2, t.n, "in two pages");
    close_world(&w);
}

/* ---- when */

Test(sched, a_batch_runs_to_its_end)
{
    told t[ASKED];
    world w = open_world((setup){ .opt = { .max_batch = 2 } }, (wg_sched_options){ .mode = WG_SCHED_STATIC });
    ask(&w, 0, 9, 0, &t[0]);
    one_step(&w);
    ask(&w, 1, 3, 0, &t[1]);
    ask(&w, 2, 7, 0, &t[2]);
    ask(&w, 3, 3, 0, &t[3]);
    run_all(&w);
    cr_assert(t[1].began > t[0].last_step && abs(t[2].began - t[1].began) <= 4 && t[3].began > t[2].last_step);
    for (uint32_t i = 0; i < 4; i++) expect_plain(&t[i], i, i == 0 ? 9 : i == 2 ? 7 : 3, "static");
    close_world(&w);
}

Test(sched, a_batch_begins_when_it_is_full_or_late, .disabled = HARD)
{
    told t[4];
    world w = open_world((setup){ .opt = { .max_batch = 2 } }, (wg_sched_options){ .mode = WG_SCHED_DYNAMIC, .window = 1 });
    ask(&w, 0, 3, 0, &t[0]);
    cr_assert(one_step(&w) == 1 && !t[0].started && w.b.lm->lm.passes == 0);
    seconds = 0.5;
    cr_assert(one_step(&w) == 1 && !t[0].started);
    seconds = 1;
    one_step(&w);
    cr_assert(t[0].started);
    run_all(&w);
    ask(&w, 1, 3, 0, &t[1]);
    one_step(&w);
    cr_assert(!t[1].started);
    ask(&w, 2, 3, 0, &t[2]);
    ask(&w, 3, 3, 0, &t[3]);
    one_step(&w);
    cr_assert(t[1].started && !t[3].started, "full");
    while (!t[2].ended) one_step(&w);
    one_step(&w);
    cr_assert(!t[3].started);
    wg_sched_drain(w.s);
    run_all(&w);
    cr_assert(t[3].ended, "draining waits for no one");
    close_world(&w);
}

Test(sched, a_late_request_ends_with_what_it_has)
{
    told t;
    int32_t prompt[16];
    world w = open_world((setup){ 0 }, (wg_sched_options){ 0 });
    t = (told){ 0 };
    const wg_sched_request r = { .n = prompt_of(1, prompt),
                                 .token = prompt,
                                 .max_new = 60,
                                 .seed = 123,
                                 .number = 1,
                                 .deadline = 2,
                                 .on_event = on_event,
                                 .user = &t };
    cr_assert(wg_sched_submit(w.s, &r, NULL, NULL) == WG_OK);
    for (int i = 0; i < 10; i++) one_step(&w);
    cr_assert(t.n > 3 && !t.ended);
    seconds = 2;
    const int n = t.n;
    run_all(&w);
    cr_assert(t.ended && t.end == WG_SCHED_DEADLINE && t.n == n);
    close_world(&w);
}

/* A long prompt is read two tokens a step, and those that run go on in the same passes. */
Test(sched, a_long_prompt_stalls_no_one)
{
    told t[2];
    world w = open_world((setup){ .opt = { .max_batch = 2 } }, (wg_sched_options){ .prefill_rows = 2 });
    ask(&w, 0, 20, 0, &t[0]); /* a prompt of one token */
    one_step(&w);
    cr_assert(t[0].rounds == 1);
    ask(&w, 2, 5, 0, &t[1]); /* of 9 tokens: 8 are read */
    for (int i = 0; i < 4; i++) {
        const wg_lm before = w.b.lm->lm;
        cr_assert(t[1].rounds == 0);
        one_step(&w);
        cr_assert(t[0].rounds == 2 + i && w.b.lm->lm.passes == before.passes + 1 && w.b.lm->lm.rows == before.rows + 3);
    }
    cr_assert(t[1].started == 1);
    run_all(&w);
    expect_plain(&t[0], 0, 20, "beside a long prompt");
    expect_plain(&t[1], 2, 5, "read in parts");
    close_world(&w);
}

/* Prices of steps follow what is written down of each: a chunk that is alone, or beside a request that runs, is rows of a pass
 * that took time. Rows without their time would make passes look cheap. */
Test(sched, rows_of_a_prompt_are_timed_with_their_pass)
{
    told t[2];
    world w = open_world((setup){ .opt = { .max_batch = 2 } }, (wg_sched_options){ .prefill_rows = 2 });
    for (int i = 0; i < 2; i++) {
        ask(&w, 2, 20, 0, &t[i]); /* of 9 tokens: 8 are read */
        for (int k = 0; k < 4; k++) {
            one_step(&w);
            cr_assert(w.s->step.rows == 2 + i && w.s->step.pass > 0, "%d rows, %g s", w.s->step.rows, w.s->step.pass);
        }
    }
    run_all(&w);
    close_world(&w);
}

/* Under a rule that draws, planned lengths and so the text are those of the request by itself, whatever runs beside it. */
Test(sched, planned_lengths_do_not_depend_on_others_where_the_text_would)
{
    const wg_cost_prices costs = { .rows = 8, .pass = { 0, 1, 1.1, 1.2, 1.3, 2.4, 3.5, 4.6, 5.7 } };
    told alone, beside[4];
    for (int others = 0; others <= 3; others += 3) {
        world w = open_world((setup){ .draft.length = 3, .rule = &reject, .opt = { .max_batch = 4 } },
                             (wg_sched_options){ .costs = &costs, .live_costs = true });
        ask(&w, 1, 60, 0, others ? &beside[0] : &alone);
        for (int i = 1; i <= others; i++) ask(&w, (uint32_t)(i + 1), 60, 0, &beside[i]);
        run_all(&w);
        close_world(&w);
    }
    cr_assert(alone.n == beside[0].n && alone.rounds == beside[0].rounds && alone.rounds < alone.n);
    cr_assert(memcmp(alone.token, beside[0].token, (size_t)alone.n * sizeof *alone.token) == 0);
}

/* ---- the prefix cache */

static void ask_text(world *w, int32_t own, int max_new, told *t)
{
    wg_error err = { 0 };
    int32_t prompt[20];
    *t = (told){ 0 };
    for (int i = 0; i < 20; i++) prompt[i] = i < 12 ? own / V : (own + i) % V; /* the first 12 are those of a sixth of all */
    const wg_sched_request r = { .token = prompt, .n = 20, .max_new = max_new, .seed = 5, .on_event = on_event, .user = t };
    cr_assert(wg_sched_submit(w->s, &r, NULL, &err) == WG_OK, "%s", err.text);
}

/* Pages that two ended texts share are cached pages, beside a request that runs too; those that it shares with them are not. */
Test(sched, cached_pages_are_counted_while_requests_run)
{
    told t[4];
    wg_sched_stats now, idle;
    world w = open_world((setup){ .opt = { .max_batch = 2, .page_slots = 4 } }, (wg_sched_options){ .prefix_cache = true });
    for (int i = 0; i < 2; i++) {
        ask_text(&w, i, 6, &t[i]);
        run_all(&w);
    }
    wg_sched_stats_read(w.s, &idle);
    cr_assert(idle.hits == 1 && idle.pages_cached == idle.pages - idle.pages_free);
    ask_text(&w, 2 * V, 30, &t[2]); /* begins otherwise */
    for (int i = 0; i < 6; i++) one_step(&w);
    wg_sched_stats_read(w.s, &now);
    cr_assert(now.running == 1 && now.pages_cached == idle.pages_cached && now.pages - now.pages_free > now.pages_cached);
    ask_text(&w, 2, 30, &t[3]); /* begins as the first two */
    for (int i = 0; i < 6; i++) one_step(&w);
    wg_sched_stats_read(w.s, &now);
    const int shared = 12 / wg_kv_page_slots(w.b.e->kv);
    cr_assert(now.running == 2 && now.hits == 2 && now.pages_cached == idle.pages_cached - shared, "%d, %d", now.pages_cached,
              idle.pages_cached);
    run_all(&w);
    wg_sched_stats_read(w.s, &now);
    cr_assert(now.pages_cached == now.pages - now.pages_free);
    close_world(&w);
}

/* ---- steps of more rows than a pass of the target takes */

static const wg_lm_class *whole; /* the table model's */
static int largest, parts;
static wg_status count_rows(wg_lm *lm, const wg_batch *b, float *logits, wg_error *err)
{
    if (b->n > largest) largest = b->n;
    parts++;
    return whole->forward(lm, b, logits, err);
}

/* Four trees of five rows and chunks of prompts, in passes of at most 7 rows: of whole sequences, with the same texts. */
Test(sched, a_step_takes_the_passes_that_its_rows_need)
{
    told t[4];
    wg_sched_stats stats;
    world w = open_world((setup){ .draft = { .length = 4, .wide = 1 }, .opt = { .max_batch = 4 } },
                         (wg_sched_options){ .prefill_rows = 3 });
    wg_lm_class counting = *(whole = w.b.lm->lm.class);
    counting.forward = count_rows;
    w.b.lm->lm.class = &counting;
    w.b.lm->lm.most_rows = 7;
    largest = parts = 0;
    for (uint32_t i = 0; i < 4; i++) ask(&w, i, 24, 0, &t[i]);
    run_all(&w);
    wg_sched_stats_read(w.s, &stats);
    cr_assert(largest > 4 && largest <= 7 && parts > stats.steps + 10, "%d rows, %d passes", largest, parts);
    for (uint32_t i = 0; i < 4; i++) expect_plain(&t[i], i, 24, "in parts");
    w.b.lm->lm.class = whole;
    close_world(&w);
}

/* ---- failures */

Test(sched, a_pass_that_fails_costs_no_request)
{
    for (long at = 1; at < 40; at++) {
        told t[3];
        world w = open_world((setup){ .draft = { .length = 3, .wide = 1 }, .opt = { .max_batch = 3 } },
                             (wg_sched_options){ .prefill_rows = 3 });
        for (uint32_t i = 0; i < 3; i++) ask(&w, i, 12, 0, &t[i]);
        w.b.lm->fail_in = at;
        w.b.lm->lm.most_rows = at % 2 ? 7 : 0; /* in one pass, or in several of which any may fail */
        run_all(&w);
        for (uint32_t i = 0; i < 3; i++) expect_plain(&t[i], i, 12, "after a failure");
        close_world(&w);
    }
}

Test(sched, a_request_that_fails_alone_ends)
{
    told t[2];
    wg_sched_stats stats;
    world w = open_world((setup){ .draft = { .length = 3, .bug = FAILS } }, (wg_sched_options){ 0 });
    ask(&w, 0, 5, 0, &t[0]);
    ask(&w, 2, 5, 0, &t[1]);
    run_all(&w);
    for (int i = 0; i < 2; i++) cr_assert(t[i].failed == 1 && strstr(t[i].why, "the drafter fell over"), "%s", t[i].why);
    wg_sched_stats_read(w.s, &stats);
    cr_assert(stats.failed == 2 && stats.ended == 0 && stats.submitted == 2);
    close_world(&w);
}

/* Three requests, with the nth allocation failing (0: none): refused, failed, or whole. Returns the number of allocations. */
static uint64_t without_memory(uint64_t nth)
{
    told t[3];
    bool in[3];
    world w = open_world((setup){ .draft = { .length = 3 }, .opt = { .max_batch = 4, .step_batch = 2, .pages = 9 } },
                         (wg_sched_options){ .prefix_cache = true });
    const uint64_t before = wg_mem_read().calls;
    wg_mem_fail_at(nth, false);
    for (uint32_t i = 0; i < 3; i++) {
        wg_error err = { 0 };
        const wg_status status = try_ask(&w, i, 14, 0, &t[i], &err);
        in[i] = status == WG_OK;
        cr_assert(in[i] || status == WG_ENOMEM);
    }
    run_all(&w);
    wg_mem_fail_at(0, false);
    const uint64_t calls = wg_mem_read().calls - before;
    for (uint32_t i = 0; i < 3; i++) {
        if (!in[i]) cr_assert(!t[i].started && !t[i].failed);
        if (in[i] && t[i].failed) cr_assert(strstr(t[i].why, "out of memory") != NULL, "%s", t[i].why);
        if (in[i] && !t[i].failed) expect_plain(&t[i], i, 14, "beside a failed allocation");
    }
    close_world(&w);
    return calls;
}

Test(sched, any_allocation_may_fail, .disabled = HARD)
{
    const size_t blocks = wg_mem_read().live_blocks;
    const uint64_t all = without_memory(0);
    cr_assert(all > 20);
    for (uint64_t nth = 1; nth <= all; nth++) {
        without_memory(nth);
        cr_assert(wg_mem_read().live_blocks == blocks, "allocation %d leaks", (int)nth);
    }
}

Test(sched, options_and_requests_out_of_range, .disabled = HARD)
{
    wg_error err;
    wg_sched *s = NULL;
    told t;
    bench b = start((setup){ .opt = { .max_batch = 2, .ride_rows = 8 } });
    const struct {
        wg_sched_options o;
        const char *why;
    } bad[] = {
        { { .batch = 3 }, "a batch of 3 requests; expected 1..2" },
        { { .batch = -1 }, "a batch of -1 requests" },
        { { .queue = -1 }, "a queue of -1 requests" },
        { { .prefill_rows = 9 }, "prefill_rows 9; expected 1..8" },
        { { .aging = -1 }, "aging of -1 steps" },
        { { .window = -1 }, "a window of -1 seconds" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert(wg_sched_open(&s, b.e, &bad[i].o, &err) == WG_EINVAL && strstr(err.text, bad[i].why) && !s, "%s", err.text);
    bench_close(&b);
    world w = open_world((setup){ .opt = { .max_batch = 1, .pages = 1 } }, (wg_sched_options){ .queue = 1 });
    ask(&w, 0, 5, 0, &t);
    cr_assert(try_ask(&w, 1, 5, 0, &t, &err) == WG_EFULL && strstr(err.text, "1 requests wait, as many as the queue holds"));
    run_all(&w);
    int32_t prompt[40] = { 0 };
    const wg_sched_request r = { .n = 40, .token = prompt, .max_new = 1 };
    cr_assert(wg_sched_submit(w.s, &r, NULL, &err) == WG_ECONTEXT && strstr(err.text, "the pages of the cache") &&
              strstr(err.text, "or raise pages"));
    close_world(&w);
}
