/* SPDX-License-Identifier: MIT */
#include "core/base/pool.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "core/base/mem.h"

typedef struct job {
    atomic_int calls[256];
    long sum[256];
    int threads, round;
} job;

static void work(void *arg, int thread, int threads)
{
    job *j = arg;
    atomic_fetch_add(&j->calls[thread], 1);
    if (thread == 0) j->threads = threads;
    j->sum[thread] += j->round; /* plain data: visible to the caller after the join */
}

static void nap(long us) { nanosleep(&(struct timespec){ 0, us * 1000 }, NULL); }

static void check(int threads, int rounds, long pause_us)
{
    wg_pool *p;
    job j = { 0 };
    cr_assert_eq(wg_pool_open(&p, threads, NULL), WG_OK);
    cr_assert_eq(wg_pool_threads(p), threads);
    long want = 0;
    for (int i = 1; i <= rounds; i++) {
        j.round = i;
        want += i;
        wg_pool_run(p, work, &j);
        for (int t = 0; t < 256; t++) {
            cr_assert_eq(atomic_load(&j.calls[t]), t < threads ? i : 0, "thread %d of %d, round %d", t, threads, i);
            cr_assert_eq(j.sum[t], t < threads ? want : 0);
        }
        if (pause_us) nap(pause_us);
    }
    cr_assert_eq(j.threads, threads);
    wg_pool_close(p);
}

Test(pool, every_part_runs_once_a_job)
{
    const size_t live = wg_mem_read().live_blocks;
    check(1, 100, 0);
    check(2, 3000, 0);
    check(3, 300, 0); /* more threads than processors: none spins */
    check(17, 50, 0);
    cr_assert_eq(wg_mem_read().live_blocks, live);
}

Test(pool, sleepers_wake)
{
    check(2, 60, 45);  /* about the spin time: both ways of waiting race */
    check(2, 20, 500); /* longer: everybody sleeps */
    check(4, 20, 300);
}

typedef struct meeting {
    atomic_int begun, done;
    pthread_t by[2];
} meeting;

/* Part 0 ends when part 1 has begun, so a worker must have begun it; that one takes its time. */
static void slow_worker(void *arg, int thread, int threads)
{
    meeting *m = arg;
    (void)threads;
    m->by[thread] = pthread_self();
    if (thread == 1) {
        atomic_store(&m->begun, 1);
        nap(2000);
    }
    for (int i = 0; thread == 0 && !atomic_load(&m->begun) && i < 100000; i++) nap(50);
    atomic_fetch_add(&m->done, 1);
}

Test(pool, the_caller_waits_for_a_slow_worker)
{
    wg_pool *p;
    meeting m = { 0 };
    cr_assert_eq(wg_pool_open(&p, 2, NULL), WG_OK);
    for (int i = 1; i <= 10; i++) {
        atomic_store(&m.begun, 0);
        wg_pool_run(p, slow_worker, &m);
        cr_assert_eq(atomic_load(&m.done), 2 * i);
        cr_assert(pthread_equal(m.by[0], pthread_self()) && !pthread_equal(m.by[1], pthread_self()));
    }
    wg_pool_close(p);
}

enum { ITEMS = 1000 };
typedef struct items {
    int n, grain, calls[ITEMS + 1]; /* of each item: plain data, visible to the caller after the join */
    atomic_int done;                /* items */
    pthread_t caller;
    bool caller_waits;
    atomic_bool alone; /* one that waited was left alone */
} items;

static void count_items(void *arg, int lo, int hi)
{
    items *j = arg;
    cr_assert(0 <= lo && lo < hi && hi <= j->n && lo % j->grain == 0 && (hi % j->grain == 0 || hi == j->n), "%d .. %d", lo, hi);
    for (int i = lo; i < hi; i++) j->calls[i]++;
}

Test(pool, each_item_is_run_once)
{
    static const int sizes[] = { 0, 1, 2, 7, 16, 64, 999, ITEMS }, grains[] = { 1, 16, 5000 };
    for (int threads = 1; threads <= 5; threads += 2) {
        wg_pool *p;
        cr_assert_eq(wg_pool_open(&p, threads, NULL), WG_OK);
        for (int k = 0; k < 8; k++)
            for (int g = 0; g < 3; g++)
                for (int again = 0; again < 40; again++) {
                    items j = { .n = sizes[k], .grain = grains[g] };
                    wg_pool_each(again % 8 ? p : NULL, j.n, j.grain, count_items, &j);
                    for (int i = 0; i <= ITEMS; i++)
                        cr_assert_eq(j.calls[i], i < j.n, "item %d of %d, %d threads", i, j.n, threads);
                }
        wg_pool_close(p);
    }
}

/* One of the two threads stays in its first run until the other has run all other items. */
static void wait_for_others(void *arg, int lo, int hi)
{
    items *j = arg;
    const bool waits = (pthread_equal(pthread_self(), j->caller) != 0) == j->caller_waits;
    for (int i = 0; waits && atomic_load(&j->done) < j->n - (hi - lo); i++) {
        nap(50);
        if (i == 40000) atomic_store(&j->alone, true);
        if (i == 40000) break;
    }
    atomic_fetch_add(&j->done, hi - lo);
}

Test(pool, a_thread_takes_what_another_has_not_begun)
{
    wg_pool *p;
    cr_assert_eq(wg_pool_open(&p, 2, NULL), WG_OK);
    for (int i = 0; i < 20; i++) {
        items j = { .n = 64, .grain = 1, .caller = pthread_self(), .caller_waits = i % 2 };
        wg_pool_each(p, j.n, j.grain, wait_for_others, &j);
        cr_assert_eq(atomic_load(&j.done), j.n);
        cr_assert_not(atomic_load(&j.alone), "round %d: the %s waited in vain", i, i % 2 ? "caller" : "worker");
    }
    wg_pool_close(p);
}

typedef struct who {
    pthread_t caller;
    atomic_int by_caller, calls;
} who;

static void count_caller(void *arg, int thread, int threads)
{
    who *w = arg;
    (void)threads;
    if (thread > 0 && pthread_equal(w->caller, pthread_self())) atomic_fetch_add(&w->by_caller, 1);
    atomic_fetch_add(&w->calls, 1);
}

/* Nothing to do and many workers: some are too late, and the caller does not wait for them. */
Test(pool, the_caller_runs_what_nobody_began)
{
    wg_pool *p;
    who w = { .caller = pthread_self() };
    cr_assert_eq(wg_pool_open(&p, 16, NULL), WG_OK);
    for (int i = 1; i <= 500; i++) {
        wg_pool_run(p, count_caller, &w);
        cr_assert_eq(atomic_load(&w.calls), 16 * i);
    }
    cr_assert_gt(atomic_load(&w.by_caller), 0);
    wg_pool_close(p);
}

static void doze(void *arg, int thread, int threads)
{
    count_caller(arg, thread, threads);
    nap(3000);
}

/* A worker that came too late is left asleep for 2 ms at most, not for as long as jobs follow each other closely. */
Test(pool, a_late_worker_is_woken_again)
{
    wg_pool *p;
    who w = { .caller = pthread_self() };
    cr_assert_eq(wg_pool_open(&p, 2, NULL), WG_OK);
    for (int i = 0; i < 8; i++) {
        nap(3000);
        wg_pool_run(p, count_caller, &w); /* over before the worker is awake */
    }
    nap(500); /* it sleeps again, and is not to be woken yet */
    bool helped = false;
    for (int i = 0; i < 50 && !helped; i++) {
        const int before = atomic_load(&w.by_caller);
        wg_pool_run(p, doze, &w);
        helped = atomic_load(&w.by_caller) == before;
    }
    cr_assert(helped, "50 jobs of 6 ms, and the worker began no part");
    wg_pool_close(p);
}

Test(pool, no_pool_is_one_thread)
{
    job j = { 0 };
    wg_pool_run(NULL, work, &j);
    cr_assert(atomic_load(&j.calls[0]) == 1 && j.threads == 1);
    cr_assert_eq(wg_pool_threads(NULL), 1);
    wg_pool_close(NULL);
}

typedef struct places {
    atomic_int begun[8];
    cpu_set_t may[8];
} places;

/* Part 0 waits for the others, so that workers run them and not the caller. */
static void note_place(void *arg, int thread, int threads)
{
    places *w = arg;
    cr_assert_eq(sched_getaffinity(0, sizeof w->may[thread], &w->may[thread]), 0);
    atomic_store(&w->begun[thread], 1);
    for (int t = 1; thread == 0 && t < threads; t++)
        while (!atomic_load(&w->begun[t])) nap(50);
}

Test(pool, pinned_workers_stay_apart)
{
    wg_pool *p;
    wg_error err;
    cpu_set_t all;
    cr_assert_eq(sched_getaffinity(0, sizeof all, &all), 0);
    const int cpus = CPU_COUNT(&all), threads = cpus < 8 ? cpus : 8;
    cr_assert_eq(wg_pool_pin(NULL, &err), WG_OK);
    cr_assert_eq(wg_pool_open(&p, threads, &err), WG_OK);
    cr_assert_eq(wg_pool_pin(p, &err), WG_OK, "%s", err.text);
    places w = { 0 };
    wg_pool_run(p, note_place, &w);
    cr_assert(CPU_EQUAL(&w.may[0], &all), "the caller was bound");
    for (int t = 1; t < threads; t++) {
        cr_assert_eq(CPU_COUNT(&w.may[t]), 1, "thread %d may run on %d processors", t, CPU_COUNT(&w.may[t]));
        for (int c = 0, nth = 0; c < CPU_SETSIZE; c++)
            if (CPU_ISSET(c, &all) && nth++ == t) cr_assert(CPU_ISSET(c, &w.may[t]), "thread %d is not on processor %d", t, c);
    }
    wg_pool_close(p);

    char text[160];
    if (cpus >= 256) return; /* no pool is larger than that */
    snprintf(text, sizeof text, "pin: %d threads, but this process may run on %d processors; use at most %d threads", cpus + 1,
             cpus, cpus);
    cr_assert_eq(wg_pool_open(&p, cpus + 1, &err), WG_OK);
    cr_assert_eq(wg_pool_pin(p, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, text);
    wg_pool_close(p);
}

Test(pool, open_fails_cleanly)
{
    wg_pool *p = NULL;
    wg_error err;
    cr_assert_eq(wg_pool_open(&p, 257, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "threads = 257: expected 1..256, or 0 for one per processor");
    cr_assert_eq(wg_pool_open(&p, -1, &err), WG_EINVAL);
    const size_t live = wg_mem_read().live_blocks;
    for (uint64_t n = 1;; n++) {
        wg_mem_fail_at(n, false);
        const wg_status s = wg_pool_open(&p, 2, &err);
        wg_mem_fail_at(0, false);
        if (s == WG_OK) break;
        cr_assert_eq(s, WG_ENOMEM);
        cr_assert_eq(wg_mem_read().live_blocks, live);
    }
    wg_pool_close(p);
    cr_assert_eq(wg_pool_open(&p, 0, &err), WG_OK);
    cr_assert(wg_pool_threads(p) >= 1);
    wg_pool_close(p);
}

/* Shares cover 0..n in order, without gaps, in whole grains except for the end. */
Test(pool, shares)
{
    for (int n = 0; n < 200; n += 7)
        for (int grain = 1; grain < 40; grain += 3)
            for (int threads = 1; threads < 12; threads++) {
                int at = 0;
                for (int t = 0; t < threads; t++) {
                    int lo, hi;
                    wg_pool_share(n, grain, t, threads, &lo, &hi);
                    cr_assert(lo == at && hi >= lo, "n %d grain %d thread %d of %d: [%d, %d)", n, grain, t, threads, lo, hi);
                    cr_assert(t == threads - 1 || hi % grain == 0);
                    at = hi;
                }
                cr_assert_eq(at, n);
            }
    int lo, hi;
    wg_pool_share(2147483647, 32, 255, 256, &lo, &hi);
    cr_assert_eq(hi, 2147483647);
    cr_assert(hi - lo < 2147483647 / 200);
}
