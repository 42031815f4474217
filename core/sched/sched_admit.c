/* SPDX-License-Identifier: MIT
 * Admission and preemption. Requests enter in one order: by priority, which rises by one for every `aging` steps of waiting,
 * then by submission; while the first has no room, no other enters. So every request runs in the end: it becomes the first
 * after a bounded number of others, and the first is never preempted. */
#include "core/sched/sched_impl.h"

enum { HEADROOM = 16 }; /* free slots behind its text that a request needs to enter, enough for a usual draft */

static int64_t rank(const wg_sched *s, const wg_served *r)
{
    return r->request.priority + (s->steps - r->since) / s->opt.aging;
}

bool wg_sched_before(const wg_sched *s, const wg_served *a, const wg_served *b)
{
    const int64_t x = rank(s, a), y = rank(s, b);
    return x != y ? x > y : a->id < b->id;
}

static bool is_in(const wg_served *r) { return !r->ended && (r->state == WG_SERVED_READING || r->state == WG_SERVED_RUNNING); }

static int count_in(const wg_sched *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) n += is_in(s->live[i]);
    return n;
}

static int count_places(const wg_sched *s)
{
    int n = 0;
    for (int i = 0; i < s->n; i++) n += s->live[i]->seq != NULL;
    return n;
}

/* ---- pages */

static int pages_for(const wg_sched *s, int slots)
{
    const int page = wg_kv_page_slots(wg_engine_kv(s->engine));
    return (slots + page - 1) / page;
}

/* Free pages, less those that prompts being read will take and one for the growth of each text. */
static int pages_left(const wg_sched *s)
{
    int left = wg_kv_pages_free(wg_engine_kv(s->engine));
    for (int i = 0; i < s->n; i++) {
        const wg_served *r = s->live[i];
        if (!is_in(r)) continue;
        const int more = pages_for(s, r->seq->n) - wg_kv_pages_held(r->seq->kv);
        left -= 1 + (more > 0 ? more : 0);
    }
    return left;
}

/* A cache whose first *shared slots are those of a request. NULL: no cache shares a whole page. */
static wg_kv_seq *begins_with(wg_sched *s, const wg_served *r, wg_cached_text **text, int *shared)
{
    const int32_t *token = r->seq ? r->seq->token : r->request.token;
    const int n = (r->seq ? r->seq->n : r->request.n) - 1; /* the last token is not in the cache */
    wg_kv_seq *from = NULL;
    *text = NULL;
    *shared = 0;
    if (!s->opt.prefix_cache || (r->echo && r->echoed + 1 < r->request.n)) return NULL;
    if ((*text = wg_prefix_cache_find(&s->cache, token, n, shared))) from = (*text)->kv;
    for (int i = 0; i < s->n; i++) {
        const wg_served *other = s->live[i];
        if (!is_in(other) || other == r) continue;
        const int k = wg_shared_prefix(other->seq->token, wg_seq_shareable(s->engine, other->seq), token, n);
        if (k > *shared) *shared = k, *text = NULL, from = other->seq->kv;
    }
    return *shared >= wg_kv_page_slots(wg_engine_kv(s->engine)) ? from : NULL;
}

/* Whether there are pages for the request, after evicting cached texts where needed. *from, *shared: the prefix that it may
 * share. */
static bool find_pages(wg_sched *s, const wg_served *r, wg_kv_seq **from, int *shared)
{
    const int n = r->seq ? r->seq->n : r->request.n;
    const bool alone = count_in(s) == 0;
    for (;;) {
        wg_cached_text *text;
        *from = begins_with(s, r, &text, shared);
        if (text) wg_prefix_cache_use(&s->cache, text);
        const int have = *from ? *shared / wg_kv_page_slots(wg_engine_kv(s->engine)) : 0;
        if (pages_for(s, n + HEADROOM) - have <= pages_left(s)) return true;
        if (!wg_prefix_cache_evict(&s->cache)) return alone; /* nothing is left to evict */
    }
}

/* ---- entering and leaving the batch */

/* The number in the addresses of its draws. Requests of one seed and number have the same draws, so a draft that depends on
 * other requests' results may have seen, in another's text, the draws that judge it (methods.md, L3; law_budgets). Where that
 * matters the number is the scheduler's id. */
static uint32_t number_of(const wg_sched *s, const wg_served *r)
{
    const bool depends = s->policy || wg_engine_drafter(s->engine)->class->cross_request;
    return depends && !wg_verifier_compares(wg_engine_verifier(s->engine)) ? (uint32_t)r->id : r->request.number;
}

static wg_status open_sequence(wg_sched *s, wg_served *r, wg_error *err)
{
    const wg_sched_request *a = &r->request; /* the engine knows it by its id, since numbers may repeat */
    WG_TRY(wg_seq_open(s->engine, &r->seq, (uint32_t)r->id, a->token, a->n, a->max_new, err));
    r->seq->chance = wg_chance_philox(a->seed, number_of(s, r), (uint32_t)a->n);
    r->seq->stop = a->stop;
    r->seq->stops = a->stops;
    r->seq->ignore_end = a->ignore_end;
    return wg_served_has_rows(r) ? wg_seq_sample(s->engine, r->seq, &a->how, err) : WG_OK;
}

static void left_the_queue(wg_sched *s, wg_served *r)
{
    pthread_mutex_lock(&s->lock);
    s->waiting -= r->state == WG_SERVED_WAITING;
    r->state = WG_SERVED_READING;
    pthread_mutex_unlock(&s->lock);
    if (r->admitted == 0) r->admitted = wg_sched_now(s);
}

/* Admits a request. False: there are not enough pages. */
static bool enter(wg_sched *s, wg_served *r)
{
    wg_error err;
    wg_kv_seq *from;
    int shared;
    const bool first = !r->seq;
    if (!find_pages(s, r, &from, &shared)) return false;
    const wg_status status = first ? open_sequence(s, r, &err) : WG_OK;
    left_the_queue(s, r);
    if (status) {
        wg_served_fail(s, r, &err);
        return true;
    }
    if (from && wg_seq_share(s->engine, r->seq, from, shared, NULL) != WG_OK) from = NULL; /* it reads the whole prompt */
    if (!first) return true;
    r->cached = from ? wg_kv_len(r->seq->kv) : 0;
    s->stats.prompt_tokens += r->request.n;
    s->stats.cached_tokens += r->cached;
    s->stats.lookups += s->opt.prefix_cache;
    s->stats.hits += r->cached > 0;
    return true;
}

void wg_sched_preempt(wg_sched *s, wg_served *r)
{
    wg_seq_truncate(s->engine, r->seq, 0);
    r->state = WG_SERVED_PREEMPTED;
    r->preemptions++;
    s->stats.preemptions++;
}

/* The last request in the batch that has a lower priority than r and comes after it in the order: r may take its place and
 * pages. */
static bool yield_to(wg_sched *s, const wg_served *r)
{
    wg_served *last = NULL;
    if (!r->seq && count_places(s) >= s->places) return false;
    for (int i = 0; i < s->n; i++) {
        wg_served *other = s->live[i];
        const bool lower = is_in(other) && other->request.priority < r->request.priority && wg_sched_before(s, r, other);
        if (lower && (!last || wg_sched_before(s, last, other))) last = other;
    }
    if (last) wg_sched_preempt(s, last);
    return last != NULL;
}

bool wg_sched_relieve(wg_sched *s)
{
    wg_served *first = NULL, *last = NULL;
    if (wg_prefix_cache_evict(&s->cache)) return true;
    for (int i = 0; i < s->n; i++) {
        wg_served *r = s->live[i];
        if (!is_in(r)) continue;
        if (!first || wg_sched_before(s, r, first)) first = r;
        if (!last || wg_sched_before(s, last, r)) last = r;
    }
    if (!first) return false;
    if (first != last) {
        wg_sched_preempt(s, last);
        return true;
    }
    const bool drafts = first->state == WG_SERVED_RUNNING && !first->plain;
    first->plain = true;
    return drafts;
}

double wg_sched_idle(const wg_sched *s)
{
    if (s->opt.mode != WG_SCHED_DYNAMIC || s->n == 0 || s->n >= s->opt.batch || s->stats.draining || count_places(s) > 0)
        return 0;
    const double left = s->live[0]->submitted + s->opt.window - wg_sched_now(s);
    return left > 0 ? left : 0;
}

/* Whether requests that have not run may enter: always in continuous mode, else when a batch begins. */
static bool doors_open(const wg_sched *s)
{
    return s->opt.mode == WG_SCHED_CONTINUOUS || (count_places(s) == 0 && wg_sched_idle(s) == 0);
}

static wg_served *next_to_enter(const wg_sched *s, bool open)
{
    wg_served *first = NULL;
    for (int i = 0; i < s->n; i++) {
        wg_served *r = s->live[i];
        if (!r->ended && !is_in(r) && (open || r->seq) && (!first || wg_sched_before(s, r, first))) first = r;
    }
    return first;
}

void wg_sched_admit(wg_sched *s)
{
    const bool open = doors_open(s);
    for (wg_served *r; (r = next_to_enter(s, open));) {
        const bool room = count_in(s) < s->opt.batch && (r->seq || count_places(s) < s->places);
        if (room && enter(s, r)) continue;
        if (s->opt.mode != WG_SCHED_CONTINUOUS || !yield_to(s, r)) return;
    }
}
