/* SPDX-License-Identifier: MIT
 * The scheduler: its opening, its queue and its loop. The functions that any thread may call are here, with the lock: they
 * reach the queue of requests submitted since the last step, the marks of cancelled ones, and the statistics of the last
 * step. */
#include "core/sched/sched_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/mem.h"

/* ---- opening and closing */

static wg_status check_options(wg_sched *s, const wg_sched_options *opt, wg_error *err)
{
    const wg_engine_options *e = wg_engine_options_of(s->engine);
    const int most = wg_engine_carries(s->engine) && e->ride_rows < e->prefill_rows ? e->ride_rows : e->prefill_rows;
    wg_sched_options *o = &s->opt;
    *o = *opt;
    if (o->batch == 0) o->batch = e->step_batch;
    if (o->queue == 0) o->queue = WG_SCHED_QUEUE;
    if (o->prefill_rows == 0) o->prefill_rows = most;
    if (o->aging == 0) o->aging = WG_SCHED_AGING;
    if (o->depth == 0) o->depth = WG_SCHED_DEPTH;
    if (!o->now) o->now = wg_clock_now;
    if (o->batch < 1 || o->batch > e->step_batch)
        return wg_fail(err, WG_EINVAL, "scheduler: a batch of %d requests; expected 1..%d", o->batch, e->step_batch);
    if (o->queue < 1 || o->queue > 1 << 20)
        return wg_fail(err, WG_EINVAL, "scheduler: a queue of %d requests; expected 1..%d", o->queue, 1 << 20);
    if (o->prefill_rows < 1 || o->prefill_rows > most)
        return wg_fail(err, WG_EINVAL, "scheduler: prefill_rows %d; expected 1..%d", o->prefill_rows, most);
    if (o->aging < 1) return wg_fail(err, WG_EINVAL, "scheduler: aging of %d steps; expected 1 or more", o->aging);
    if (o->depth < 1 || o->depth >= WG_TREE_MAX)
        return wg_fail(err, WG_EINVAL, "scheduler: drafts of depth %d; expected 1..%d", o->depth, WG_TREE_MAX - 1);
    if (!(o->window >= 0)) return wg_fail(err, WG_EINVAL, "scheduler: a window of %g seconds; expected 0 or more", o->window);
    if (o->prefix_cache && wg_engine_target(s->engine)->class->law_only)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "scheduler: no prefix cache for a target that another engine computes, which has its own; turn it off");
    return WG_OK;
}

static wg_status open_lock(wg_sched *s, wg_error *err)
{
    pthread_condattr_t monotonic;
    int bad = pthread_condattr_init(&monotonic);
    if (!bad) bad = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    if (!bad) bad = pthread_mutex_init(&s->lock, NULL);
    if (!bad && (bad = pthread_cond_init(&s->woken, &monotonic))) pthread_mutex_destroy(&s->lock);
    if (bad) return wg_fail(err, WG_ENOMEM, "a scheduler's lock: %s", strerror(bad));
    pthread_condattr_destroy(&monotonic);
    s->open = true;
    return WG_OK;
}

static void take_incoming(wg_sched *s);
static void sweep(wg_sched *s);
static void count_now(wg_sched *s);

static wg_status open_sched(wg_sched *s, const wg_sched_options *opt, wg_error *err)
{
    const wg_engine_options *e = wg_engine_options_of(s->engine);
    WG_TRY(check_options(s, opt, err));
    WG_TRY(open_lock(s, err));
    s->places = e->max_batch;
    s->room = s->opt.queue + s->places;
    s->live = wg_calloc((size_t)s->room, sizeof *s->live);
    s->incoming = wg_calloc((size_t)s->opt.queue, sizeof *s->incoming);
    s->running = wg_calloc((size_t)s->places, sizeof *s->running);
    s->runner = wg_calloc((size_t)s->places, sizeof *s->runner);
    s->chunk = wg_calloc((size_t)s->places, sizeof *s->chunk);
    s->reader = wg_calloc((size_t)s->places, sizeof *s->reader);
    s->place = wg_calloc((size_t)s->places, sizeof *s->place);
    s->weight = wg_calloc((size_t)wg_engine_target(s->engine)->vocab, sizeof *s->weight);
    if (!s->live || !s->incoming || !s->running || !s->runner || !s->chunk || !s->reader || !s->weight || !s->place)
        return wg_nomem(err, (size_t)s->room * sizeof *s->live, "a scheduler");
    if (s->opt.prefix_cache) WG_TRY(wg_prefix_cache_open(&s->cache, WG_SCHED_TEXTS, err));
    if (s->opt.costs) WG_TRY(wg_batch_lengths_open(&s->policy, s->places, s->opt.depth, s->opt.costs, err));
    count_now(s);
    return WG_OK;
}

wg_status wg_sched_open(wg_sched **out, wg_engine *e, const wg_sched_options *opt, wg_error *err)
{
    wg_sched *s = wg_calloc(1, sizeof *s);
    if (!s) return wg_nomem(err, sizeof *s, "a scheduler");
    s->engine = e;
    const wg_status status = open_sched(s, opt, err);
    if (status) wg_sched_close(s);
    else *out = s;
    return status;
}

void wg_sched_close(wg_sched *s)
{
    if (!s) return;
    if (s->open) {
        wg_sched_drain(s);
        take_incoming(s);
        for (int i = 0; i < s->n; i++) wg_served_end(s, s->live[i], WG_SCHED_CANCELLED);
        sweep(s);
        pthread_cond_destroy(&s->woken);
        pthread_mutex_destroy(&s->lock);
    }
    wg_prefix_cache_close(&s->cache);
    wg_free(s->live);
    wg_free(s->incoming);
    wg_free(s->running);
    wg_free(s->runner);
    wg_free(s->chunk);
    wg_free(s->reader);
    wg_free(s->weight);
    wg_free(s->place);
    wg_free(s->policy);
    wg_free(s);
}

const wg_sched_options *wg_sched_options_of(wg_sched *s) { return &s->opt; }

/* ---- any thread */

static wg_status check_request(const wg_sched *s, const wg_sched_request *r, wg_error *err)
{
    const wg_engine_options *e = wg_engine_options_of(s->engine);
    const int vocab = wg_engine_target(s->engine)->vocab, slots = e->pages * wg_kv_page_slots(wg_engine_kv(s->engine));
    const int most = e->max_tokens < slots ? e->max_tokens : slots;
    if (r->n < 1)
        return wg_fail(err, WG_EINVAL, "an empty prompt; expected a token or more (a beginning-of-text token will do)");
    if (r->max_new < 1) return wg_fail(err, WG_EINVAL, "%d new tokens; expected at least 1", r->max_new);
    if (r->n >= most)
        return wg_fail(err, WG_ECONTEXT, "the prompt has %d tokens, but only %d fit, new ones included (%s); shorten it%s",
                       r->n, most, most == slots ? "the pages of the cache" : "the context",
                       most == slots ? " or raise pages" : "");
    for (int i = 0; i < r->n; i++)
        if (r->token[i] < 0 || r->token[i] >= vocab)
            return wg_fail(err, WG_EINVAL, "prompt token %d is %d; the vocabulary is 0..%d", i, (int)r->token[i], vocab - 1);
    if (r->draft_most < 0) return wg_fail(err, WG_EINVAL, "drafts of at most %d tokens; expected 0 or more", r->draft_most);
    if (!(r->deadline >= 0)) return wg_fail(err, WG_EINVAL, "a deadline in %g seconds; expected 0 or more", r->deadline);
    return wg_seq_sampling_check(s->engine, &r->how, err);
}

/* Copies n elements to *out, NULL where n is 0. False: out of memory. */
static bool copy_list(const void *from, int n, size_t size, void *to)
{
    void *copy = n > 0 ? wg_alloc((size_t)n, size) : NULL;
    if (copy) memcpy(copy, from, (size_t)n * size);
    memcpy(to, &copy, sizeof copy);
    return copy || n <= 0;
}

static int by_token(const void *a, const void *b)
{
    const int32_t x = ((const wg_logit_bias *)a)->token, y = ((const wg_logit_bias *)b)->token;
    return (x > y) - (x < y);
}

static wg_status sort_biases(wg_logit_bias *bias, int n, wg_error *err)
{
    if (n > 1) qsort(bias, (size_t)n, sizeof *bias, by_token);
    for (int i = 1; i < n; i++)
        if (bias[i].token == bias[i - 1].token)
            return wg_fail(err, WG_EINVAL, "logit_bias: token %d is there twice", (int)bias[i].token);
    return WG_OK;
}

static wg_status copy_request(const wg_sched *s, wg_served *r, const wg_sched_request *from, wg_error *err)
{
    const int slots = wg_engine_options_of(s->engine)->pages * wg_kv_page_slots(wg_engine_kv(s->engine));
    const size_t logs = (size_t)from->n * (size_t)(1 + from->how.top);
    wg_seq_sampling *how = &r->request.how;
    r->request = *from;
    r->request.token = r->request.stop = how->allowed = NULL;
    how->bias = NULL;
    if (how->sampling) r->sampling = *how->sampling, how->sampling = &r->sampling;
    if (!copy_list(from->token, from->n, sizeof *from->token, &r->request.token) ||
        !copy_list(from->stop, from->stops, sizeof *from->stop, &r->request.stop) ||
        !copy_list(from->how.bias, from->how.biases, sizeof *from->how.bias, &how->bias) ||
        !copy_list(from->how.allowed, from->how.n_allowed, sizeof *from->how.allowed, &how->allowed))
        return wg_nomem(err, (size_t)from->n * sizeof *from->token, "a request");
    WG_TRY(sort_biases((wg_logit_bias *)how->bias, how->biases, err));
    if (r->request.max_new > slots - from->n)
        r->request.max_new = slots - from->n; /* so that it has enough pages when it
                                                                                     * runs alone */
    if (from->echo && how->logprobs && !(r->echo = wg_calloc(logs, sizeof *r->echo)))
        return wg_nomem(err, logs * sizeof *r->echo, "the log probabilities of a prompt");
    for (int i = 0; r->echo && i <= how->top; i++) r->echo[i].token = -1; /* the first token follows nothing */
    return WG_OK;
}

static wg_status enqueue(wg_sched *s, wg_served *r, uint64_t *id, wg_error *err)
{
    wg_status status = WG_OK;
    pthread_mutex_lock(&s->lock);
    if (s->draining) status = wg_fail(err, WG_EINTERRUPTED, "the scheduler is draining: it takes no more requests");
    else if (s->waiting >= s->opt.queue)
        status = wg_fail(err, WG_EFULL, "%d requests wait, as many as the queue holds; try again later", s->waiting);
    if (status) s->refused++;
    else {
        r->id = ++s->ids;
        if (id) *id = r->id;
        s->incoming[s->n_incoming++] = r;
        s->waiting++;
        s->submitted++;
        pthread_cond_signal(&s->woken);
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

wg_status wg_sched_submit(wg_sched *s, const wg_sched_request *from, uint64_t *id, wg_error *err)
{
    WG_TRY(check_request(s, from, err));
    wg_served *r = wg_calloc(1, sizeof *r);
    if (!r) return wg_nomem(err, sizeof *r, "a request");
    r->submitted = wg_sched_now(s);
    wg_status status = copy_request(s, r, from, err);
    if (!status) status = enqueue(s, r, id, err);
    if (status) wg_served_free(r);
    return status;
}

static bool cancel_in(wg_served *const *list, int n, uint64_t id)
{
    for (int i = 0; i < n; i++)
        if (list[i]->id == id && !list[i]->ended) return list[i]->cancelled = true;
    return false;
}

wg_status wg_sched_cancel(wg_sched *s, uint64_t id, wg_error *err)
{
    pthread_mutex_lock(&s->lock);
    const bool found = cancel_in(s->live, s->n, id) || cancel_in(s->incoming, s->n_incoming, id);
    s->poked |= found;
    if (found) pthread_cond_signal(&s->woken);
    pthread_mutex_unlock(&s->lock);
    return found ? WG_OK : wg_fail(err, WG_ENOENT, "request %llu has ended, or there was none", (unsigned long long)id);
}

void wg_sched_drain(wg_sched *s)
{
    pthread_mutex_lock(&s->lock);
    s->draining = s->poked = true;
    pthread_cond_signal(&s->woken);
    pthread_mutex_unlock(&s->lock);
}

bool wg_sched_wait(wg_sched *s, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    pthread_mutex_lock(&s->lock);
    const bool idle = s->n == 0 || s->idle > 0; /* no request can be served within this time */
    if (s->n > 0 && s->idle < seconds) seconds = s->idle;
    const double at = (double)until.tv_sec + (double)until.tv_nsec * 1e-9 + (seconds > 0 ? seconds < 1e8 ? seconds : 1e8 : 0);
    until = (struct timespec){ (time_t)at, (long)((at - (double)(time_t)at) * 1e9) };
    while (idle && s->n_incoming == 0 && !s->poked && pthread_cond_timedwait(&s->woken, &s->lock, &until) != ETIMEDOUT)
        continue;
    s->poked = false;
    const bool work = s->n > 0 || s->n_incoming > 0;
    pthread_mutex_unlock(&s->lock);
    return work;
}

void wg_sched_stats_read(wg_sched *s, wg_sched_stats *out)
{
    pthread_mutex_lock(&s->lock);
    *out = s->seen;
    out->waiting = s->waiting;
    out->draining = s->draining;
    out->submitted = s->submitted;
    out->refused = s->refused;
    pthread_mutex_unlock(&s->lock);
}

/* ---- the thread of step */

static void take_incoming(wg_sched *s)
{
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < s->n_incoming; i++) {
        s->incoming[i]->since = s->steps;
        s->live[s->n++] = s->incoming[i];
    }
    s->n_incoming = 0;
    s->stats.draining = s->draining;
    for (int i = 0; i < s->n; i++) s->live[i]->cancel_seen = s->live[i]->cancelled;
    pthread_mutex_unlock(&s->lock);
}

static void end_some(wg_sched *s)
{
    const double now = wg_sched_now(s);
    for (int i = 0; i < s->n; i++) {
        wg_served *r = s->live[i];
        if (r->cancel_seen) wg_served_end(s, r, WG_SCHED_CANCELLED);
        else if (r->request.deadline > 0 && now - r->submitted >= r->request.deadline) wg_served_end(s, r, WG_SCHED_DEADLINE);
    }
}

/* Frees the requests that have ended. */
static void sweep(wg_sched *s)
{
    int kept = 0;
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < s->n; i++) {
        wg_served *r = s->live[i];
        if (!r->ended) {
            s->live[kept++] = r;
            continue;
        }
        s->waiting -= r->state == WG_SERVED_WAITING;
        wg_served_free(r);
    }
    s->n = kept;
    pthread_mutex_unlock(&s->lock);
}

static void count_now(wg_sched *s)
{
    wg_sched_stats *t = &s->stats;
    const wg_kv *kv = wg_engine_kv(s->engine);
    t->running = t->reading = t->preempted = 0;
    for (int i = 0; i < s->n; i++) {
        const wg_served_state state = s->live[i]->state;
        t->running += state == WG_SERVED_RUNNING || state == WG_SERVED_READING;
        t->reading += state == WG_SERVED_READING;
        t->preempted += state == WG_SERVED_PREEMPTED;
    }
    t->pages = wg_kv_pages(kv);
    t->pages_free = wg_kv_pages_free(kv);
    t->pages_cached = wg_prefix_cache_pages(&s->cache);
    t->evictions = s->cache.evictions;
    t->steps = s->steps;
    t->phases = *wg_engine_phases(s->engine);
    pthread_mutex_lock(&s->lock);
    s->seen = *t;
    for (int i = 0; i < s->n; i++)
        if (s->live[i]->seq) wg_counts_add(&s->seen.counts, &s->live[i]->seq->counts);
    s->idle = wg_sched_idle(s);
    pthread_mutex_unlock(&s->lock);
}

int wg_sched_step(wg_sched *s)
{
    const double start = wg_sched_now(s);
    const wg_phases before = *wg_engine_phases(s->engine);
    take_incoming(s);
    end_some(s);
    sweep(s);
    wg_sched_admit(s);
    wg_sched_run(s);
    sweep(s);
    wg_sched_time(s, &before, s->stepped > 0 ? s->stepped : start);
    s->steps++;
    s->stats.seconds += wg_sched_now(s) - start;
    count_now(s);
    pthread_mutex_lock(&s->lock);
    const int n = s->n + s->n_incoming;
    s->stepped = n > 0 && s->idle <= 0 ? wg_sched_now(s) : 0;
    pthread_mutex_unlock(&s->lock);
    return n;
}
