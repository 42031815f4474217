/* SPDX-License-Identifier: MIT
 * Fork-join in well under a microsecond. A job is announced by a generation number; a worker that reads a new one runs the
 * job and answers by storing the same number in its own cache line.
 *
 * Parts are claimed: a worker moves its `claim` from the last generation to this one before it runs its part, and so does
 * the caller, when its own part is done, with every part that no worker has begun. So a worker that sleeps, or waits for the
 * processor behind another program, delays no job, and with busy processors a pool is never slower than one thread except
 * for parts that were begun and then interrupted. The assignment of parts to threads does not change a result. Workers that
 * were woken too late for any part are left asleep for a while, 50 us first, then twice as long each time, at most 2 ms,
 * because waking costs the caller microseconds.
 *
 * Waiting, on both sides, is first a spin of about 50 us (jobs of a forward pass follow each other faster than that), then
 * sleep on a condition variable. After 8 us of a spin, more than lies between the jobs of a pass, threads that wait for this
 * processor have turns: those of a server, which send what the step has made. Sleepers raise a flag *before* they read the
 * number a last time, and the other side moves the number *before* it reads the flag (all four sequentially consistent), so no
 * wake-up is lost. No thread spins when there are more threads than processors to run them.
 *
 * Invariants: fn and arg are written only while every worker's done equals the generation; a worker reads them only after it
 * claimed the new generation. A claim moves by one, from a generation whose parts are all done, so it succeeds for one side
 * only and never for a generation that is over. */
#include "core/base/pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/mem.h"

enum { POOL_MAX = 256, SPIN_BATCH = 64, KEEP_BATCHES = 8 };
#define SPIN_SECONDS 50e-6
#define QUIET_LEAST 50e-6
#define QUIET_MOST 2e-3

typedef struct worker {
    _Alignas(WG_ALIGN) atomic_uint done; /* last generation whose part is finished, by either side */
    atomic_uint claim;                   /* last generation whose part was begun */
    wg_pool *pool;
    int index;
    pthread_t thread;
} worker;

/* The rest of a thread's share of a job: its first grain in the high half, its end in the low one. */
typedef struct share {
    _Alignas(WG_ALIGN) atomic_uint_least64_t left;
} share;

struct wg_pool {
    _Alignas(WG_ALIGN) atomic_uint generation;
    wg_pool_fn *fn; /* NULL: the worker exits */
    void *arg;
    _Alignas(WG_ALIGN) atomic_int sleepers; /* workers asleep, or about to be */
    atomic_bool caller_sleeps;
    pthread_mutex_t lock;
    pthread_cond_t job, done;
    int threads, started;
    bool spin;
    double quiet, quiet_until; /* the caller's: seconds between wake-ups while no worker comes in time; the time of the next
                                * one */
    bool woke;                 /* the caller's: this job woke sleepers */
    worker *workers;           /* (threads - 1): threads 1, 2, ... */
    share *shares;             /* (threads) */
};

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Spins until *a equals (want_equal) or differs from `value`; false when the time is over. */
static bool spin_until(const wg_pool *p, atomic_uint *a, unsigned value, bool want_equal)
{
    if ((atomic_load_explicit(a, memory_order_acquire) == value) == want_equal) return true;
    if (!p->spin) return false;
    const double end = wg_clock_now() + SPIN_SECONDS;
    int batches = 0;
    do {
        if (++batches > KEEP_BATCHES) sched_yield();
        for (int i = 0; i < SPIN_BATCH; i++) {
            if ((atomic_load_explicit(a, memory_order_acquire) == value) == want_equal) return true;
            relax();
        }
    } while (wg_clock_now() < end);
    return false;
}

static void wait_for_job(wg_pool *p, unsigned seen)
{
    if (spin_until(p, &p->generation, seen, false)) return;
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->sleepers, 1);
    while (atomic_load(&p->generation) == seen) pthread_cond_wait(&p->job, &p->lock);
    atomic_fetch_sub(&p->sleepers, 1);
    pthread_mutex_unlock(&p->lock);
}

static bool claim(worker *w, unsigned generation)
{
    unsigned last = generation - 1;
    return atomic_compare_exchange_strong(&w->claim, &last, generation);
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    wg_pool *p = w->pool;
    for (unsigned seen = 0;;) {
        wait_for_job(p, seen);
        seen = atomic_load_explicit(&p->generation, memory_order_acquire);
        if (!claim(w, seen)) continue; /* the caller was faster */
        if (!p->fn) return NULL;
        p->fn(p->arg, w->index, p->threads);
        atomic_store(&w->done, seen);
        if (atomic_load(&p->caller_sleeps)) {
            pthread_mutex_lock(&p->lock);
            pthread_cond_signal(&p->done);
            pthread_mutex_unlock(&p->lock);
        }
    }
}

/* Whether waking sleepers pays now. */
static bool may_wake(const wg_pool *p) { return p->quiet == 0 || wg_clock_now() >= p->quiet_until; }

/* Records the number of a job's parts that workers began: 0 makes the next wake-ups rarer. Only called for a job that woke
 * workers: otherwise a job that merely lasted until the next wake-up was due would postpone it, and so would every job after
 * it. */
static void note_helpers(wg_pool *p, int helpers)
{
    if (helpers > 0) {
        p->quiet = 0;
        return;
    }
    if (!p->woke) return;
    p->quiet = p->quiet == 0 ? QUIET_LEAST : p->quiet * 2 < QUIET_MOST ? p->quiet * 2 : QUIET_MOST;
    p->quiet_until = wg_clock_now() + p->quiet;
}

/* Returns the generation. fn NULL makes all workers exit. */
static unsigned announce(wg_pool *p, wg_pool_fn *fn, void *arg)
{
    p->fn = fn;
    p->arg = arg;
    const unsigned g = atomic_load_explicit(&p->generation, memory_order_relaxed) + 1;
    atomic_store(&p->generation, g);
    p->woke = atomic_load(&p->sleepers) > 0 && (!fn || may_wake(p));
    if (p->woke) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_broadcast(&p->job);
        pthread_mutex_unlock(&p->lock);
    }
    return g;
}

static void wait_for_worker(wg_pool *p, worker *w, unsigned g)
{
    if (spin_until(p, &w->done, g, true)) return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->caller_sleeps, true);
    while (atomic_load(&w->done) != g) pthread_cond_wait(&p->done, &p->lock);
    atomic_store(&p->caller_sleeps, false);
    pthread_mutex_unlock(&p->lock);
}

void wg_pool_run(wg_pool *p, wg_pool_fn *fn, void *arg)
{
    if (!p || p->threads == 1) {
        fn(arg, 0, 1);
        return;
    }
    wg_assert(fn != NULL);
    const unsigned g = announce(p, fn, arg);
    fn(arg, 0, p->threads);
    int helpers = 0;
    for (int i = 0; i < p->threads - 1; i++) {
        worker *w = &p->workers[i];
        if (!claim(w, g)) {
            helpers++;
            continue;
        }
        fn(arg, w->index, p->threads);
        atomic_store_explicit(&w->done, g, memory_order_relaxed);
    }
    note_helpers(p, helpers);
    for (int i = 0; i < p->threads - 1; i++) wait_for_worker(p, &p->workers[i], g);
}

/* ---- items: a share is one word, so a run is taken from either end of it with one exchange. Shares are written before the job
 * is announced and are empty when it ends, and what runs write is published by the end of their part: the exchanges order
 * nothing else. */

typedef struct each_job {
    share *shares;
    wg_pool_each_fn *fn;
    void *arg;
    int n, grain;
} each_job;

static uint64_t packed(int first, int end) { return (uint64_t)first << 32 | (uint32_t)end; }

/* Takes half of what is left of a share, from its end or from its front; false when nothing is left. */
static bool take(share *s, bool from_end, int *lo, int *hi)
{
    uint64_t seen = atomic_load_explicit(&s->left, memory_order_relaxed), after;
    do {
        const int first = (int)(seen >> 32), end = (int)(uint32_t)seen, half = (end - first + 1) / 2;
        if (half == 0) return false;
        *lo = from_end ? end - half : first;
        *hi = *lo + half;
        after = from_end ? packed(first, *lo) : packed(*hi, end);
    } while (!atomic_compare_exchange_weak_explicit(&s->left, &seen, after, memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void each_part(void *arg, int thread, int threads)
{
    const each_job *j = arg;
    for (int i = 0, lo, hi; i < threads; i++)
        while (take(&j->shares[(thread + i) % threads], i > 0, &lo, &hi)) {
            const int64_t end = (int64_t)hi * j->grain;
            j->fn(j->arg, lo * j->grain, end < j->n ? (int)end : j->n);
        }
}

void wg_pool_each(wg_pool *p, int n, int grain, wg_pool_each_fn *fn, void *arg)
{
    wg_assert(n >= 0 && grain >= 1);
    if (n == 0) return;
    if (!p || p->threads == 1 || n <= grain) {
        fn(arg, 0, n);
        return;
    }
    const int grains = n / grain + (n % grain > 0);
    for (int i = 0, lo, hi; i < p->threads; i++) {
        wg_pool_share(grains, 1, i, p->threads, &lo, &hi);
        atomic_store_explicit(&p->shares[i].left, packed(lo, hi), memory_order_relaxed);
    }
    wg_pool_run(p, each_part, &(each_job){ .shares = p->shares, .fn = fn, .arg = arg, .n = n, .grain = grain });
}

/* ---- opening */

static int processors(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

/* Workers take no signals: those belong to the program's own threads. */
static int start_workers(wg_pool *p)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = 0;
    for (; p->started < p->threads - 1; p->started++) {
        worker *w = &p->workers[p->started];
        w->pool = p;
        w->index = p->started + 1;
        if ((rc = pthread_create(&w->thread, NULL, worker_main, w)) != 0) break;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

wg_status wg_pool_open(wg_pool **out, int threads, wg_error *err)
{
    const int cpus = processors();
    if (threads == 0) threads = cpus < POOL_MAX ? cpus : POOL_MAX;
    if (threads < 1 || threads > POOL_MAX)
        return wg_fail(err, WG_EINVAL, "threads = %d: expected 1..%d, or 0 for one per processor", threads, POOL_MAX);
    wg_pool *p = wg_calloc(1, sizeof *p);
    if (!p) return wg_nomem(err, sizeof *p, "a thread pool");
    p->threads = threads;
    p->spin = threads <= cpus;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->job, NULL);
    pthread_cond_init(&p->done, NULL);
    p->workers = wg_calloc((size_t)threads, sizeof *p->workers);
    p->shares = wg_calloc((size_t)threads, sizeof *p->shares);
    if (!p->workers || !p->shares) {
        wg_pool_close(p);
        return wg_nomem(err, (size_t)threads * (sizeof *p->workers + sizeof *p->shares), "the threads of a pool");
    }
    const int rc = start_workers(p);
    if (rc != 0) {
        const int n = p->started + 1;
        wg_pool_close(p);
        return wg_fail(err, WG_ENOMEM, "cannot start thread %d of %d: %s; use fewer threads", n + 1, threads, strerror(rc));
    }
    *out = p;
    return WG_OK;
}

wg_status wg_pool_pin(wg_pool *p, wg_error *err)
{
    const int cpus = processors();
    if (!p || p->threads == 1) return WG_OK;
    if (p->threads > cpus)
        return wg_fail(err, WG_EINVAL, "pin: %d threads, but this process may run on %d processors; use at most %d threads",
                       p->threads, cpus, cpus);
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return wg_fail(err, WG_EINVAL, "pin: the system does not say which processors this process may run on: %s",
                       strerror(errno));
    for (int i = 0, cpu = -1; i < p->threads; i++) {
        cpu_set_t one;
        do cpu++;
        while (!CPU_ISSET(cpu, &set));
        if (i == 0) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        const int rc = pthread_setaffinity_np(p->workers[i - 1].thread, sizeof one, &one);
        if (rc) return wg_fail(err, WG_EINVAL, "pin: thread %d cannot be bound to processor %d: %s", i, cpu, strerror(rc));
    }
    return WG_OK;
}

void wg_pool_close(wg_pool *p)
{
    if (!p) return;
    if (p->started > 0) announce(p, NULL, NULL);
    for (int i = 0; i < p->started; i++) pthread_join(p->workers[i].thread, NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->job);
    pthread_mutex_destroy(&p->lock);
    wg_free(p->workers);
    wg_free(p->shares);
    wg_free(p);
}

int wg_pool_threads(const wg_pool *p) { return p ? p->threads : 1; }

void wg_pool_share(int n, int grain, int thread, int threads, int *lo, int *hi)
{
    wg_assert(n >= 0 && grain >= 1 && thread >= 0 && thread < threads);
    const int64_t grains = n / grain; /* whole grains; the remainder goes to the last thread */
    *lo = (int)(grains * thread / threads) * grain;
    *hi = thread == threads - 1 ? n : (int)(grains * (thread + 1) / threads) * grain;
}
