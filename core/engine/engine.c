/* SPDX-License-Identifier: MIT
 * The speculative step: draft, score, verify, commit. Everything that may fail comes first and is undone by a rollback; from
 * the first verification on nothing can fail, and nothing in this file allocates. Invariant between steps: the cache holds
 * all tokens of a sequence but the last, which is the root of the next tree. Plain decoding is a tree of one node; greedy
 * decoding has one-hot rows. */
#include "core/engine/engine_impl.h"

#include "core/base/clock.h"
#include "core/engine/build.h"
#include "core/engine/device_decode.h"
#include "core/dist/optimal_acceptance.h"
#include "core/engine/device_verify.h"
#include "core/engine/seq_rows.h"

/* The seconds since *since, which is set to now. */
static double lap(double *since)
{
    const double start = *since;
    *since = wg_clock_now();
    return *since - start;
}

/* Adds the rows of a chunk to the pass as a chain. */
static wg_status add_chunk(wg_engine *e, wg_chunk *c, wg_error *err)
{
    const int at = wg_kv_len(c->seq->kv);
    WG_TRY(wg_kv_reserve(c->seq->kv, c->n, err));
    c->row = wg_batch_chain(&e->batch, c->seq->kv, at, c->seq->token + at, c->n, c->logits ? c->n : 0);
    return WG_OK;
}

/* Runs a pass over one chunk. */
static wg_status pass_chunk(wg_engine *e, wg_chunk *c, wg_error *err)
{
    wg_batch_clear(&e->batch);
    e->batch.taps = e->feeds.taps;
    WG_TRY(add_chunk(e, c, err));
    WG_TRY(wg_lm_forward(e->target, &e->batch, e->logits, err));
    wg_kv_commit_chain(c->seq->kv, c->n);
    return e->feeds.taps ? wg_tap_feeds_chunk(&e->feeds, c->seq, c->n, err) : WG_OK;
}

/* Prefills the prompt tokens except the last, in chunks without logits. */
static wg_status prefill(wg_engine *e, wg_seq *s, wg_error *err)
{
    for (int at; (at = wg_kv_len(s->kv)) < s->n - 1;) {
        const int left = s->n - 1 - at;
        wg_chunk c = { .seq = s, .n = left < e->opt.prefill_rows ? left : e->opt.prefill_rows };
        WG_TRY(pass_chunk(e, &c, err));
    }
    return WG_OK;
}

/* Undoes a failed prefill from `len` on. */
static void undo(wg_engine *e, wg_seq *s, int len)
{
    wg_kv_rollback(s->kv);
    wg_seq_truncate(e, s, len);
}

wg_status wg_engine_prefill(wg_engine *e, wg_seq *s, wg_error *err)
{
    const int len = wg_kv_len(s->kv);
    double clock = wg_clock_now();
    const wg_status status = prefill(e, s, err);
    if (status) undo(e, s, len);
    e->phases.prefill += lap(&clock);
    return status;
}

static wg_status check_chunk(const wg_chunk *c, int most, wg_error *err)
{
    if (c->n >= 1 && c->n <= most && c->n <= c->seq->n - 1 - wg_kv_len(c->seq->kv)) return WG_OK;
    return wg_fail(err, WG_EINVAL, "request %u: a chunk of %d tokens; %d are left to be read, and a pass has room for %d",
                   (unsigned)c->seq->request, c->n, c->seq->n - 1 - wg_kv_len(c->seq->kv), most);
}

wg_status wg_engine_chunk(wg_engine *e, wg_chunk *c, wg_error *err)
{
    WG_TRY(check_chunk(c, e->opt.prefill_rows, err));
    const int len = wg_kv_len(c->seq->kv);
    double clock = wg_clock_now();
    const wg_status status = pass_chunk(e, c, err);
    if (status) undo(e, c->seq, len);
    e->phases.prefill += lap(&clock);
    return status;
}

static wg_status check_running(const wg_engine *e, wg_seq *const *seq, int n, wg_error *err)
{
    uint64_t seen[4] = { 0 };
    if (n < 0 || n > e->opt.step_batch)
        return wg_fail(err, WG_EINVAL, "a step of %d sequences; expected 1..%d (max_batch)", n, e->opt.step_batch);
    for (int i = 0; i < n; i++) {
        const uint64_t bit = 1ull << seq[i]->slot % 64;
        if (seq[i]->finish != WG_RUNNING)
            return wg_fail(err, WG_EINVAL, "request %u is finished; take it out of the batch", (unsigned)seq[i]->request);
        if (seen[seq[i]->slot / 64] & bit)
            return wg_fail(err, WG_EINVAL, "request %u is twice in one step", (unsigned)seq[i]->request);
        seen[seq[i]->slot / 64] |= bit;
    }
    return WG_OK;
}

/* Cuts nodes too deep to be emitted, by whole levels, since any other choice among siblings would depend on draws below them
 * (methods.md, L3, L4), and nodes without probability in the sequence's own rows (seq_rows.h). The remaining nodes move up in
 * every space of the drafter. */
static wg_status cut(wg_engine *e, const wg_seq *s, wg_tree *t, wg_error *err)
{
    bool keep[WG_TREE_MAX];
    int16_t from[WG_TREE_MAX];
    const int room = wg_seq_room(s);
    int n = 0, probes = 0;
    for (int i = 0; i < t->n; i++) keep[i] = wg_tree_depth(t, i) <= room;
    WG_TRY(wg_seq_rows_prune(s, t, keep, err));
    for (int i = 0; i < t->n; i++) n += keep[i];
    if (n == t->n) {
        while (probes < t->probes && wg_tree_depth(t, t->n + probes) <= room) probes++;
        t->probes = probes;
        return WG_OK;
    }
    n = wg_tree_keep(t, keep, from);
    for (int i = 0; i < n; i++)
        if (wg_tree_depth(t, i) == room) t->group[i] = -1; /* all its children were cut */
    while (n > 0 && from[n - 1] >= wg_kv_tail(s->kv)) n--;
    for (int space = 0; space < wg_kv_spaces(e->kv); space++)
        if (space != e->target->space && n > 0) wg_kv_renumber(s->kv, space, from, n);
    return WG_OK;
}

/* Checks a drafter's tree, which is not trusted, and cuts it. */
static wg_status take_tree(wg_engine *e, const wg_seq *s, wg_tree *t, wg_error *err)
{
    const wg_drafter_class *d = e->drafter->class;
    wg_status status = wg_tree_check(t, e->p.vocab, e->q.n, err);
    if (!status && t->token[0] != s->token[s->n - 1])
        status = wg_fail(err, WG_EINVAL, "draft tree: the root is token %d, but the sequence ends in %d", (int)t->token[0],
                         (int)s->token[s->n - 1]);
    if (!status && t->n > 1 && !(t->law & d->laws))
        status = wg_fail(err, WG_EINVAL, "draft tree: law %s is not among those the drafter declares", wg_law_name(t->law));
    if (!status) status = wg_check_draws(e->verifier, e->rules, t, &e->q, &e->massless, err);
    if (status) return wg_fail_in(err, status, "drafter %s, request %u", d->name, (unsigned)s->request);
    WG_TRY(cut(e, s, t, err));
    return wg_seq_rows_finish(e, s, t, &e->q, err);
}

wg_status wg_engine_draft(wg_engine *e, wg_seq *const *seq, int n, wg_error *err)
{
    e->proposed = NULL; /* tree[0] is overwritten */
    wg_rows_clear(&e->q);
    for (int i = 0; i < n; i++) WG_TRY(wg_seq_rows_read(seq[i], err));
    for (int i = 0; i < n; i++) wg_tree_reset(&e->tree[i], seq[i]->token[seq[i]->n - 1], WG_LAW_FIXED);
    WG_TRY(e->drafter->class->propose(e->drafter, seq, n, e->tree, &e->q, err));
    for (int i = 0; i < n; i++) WG_TRY(take_tree(e, seq[i], &e->tree[i], err));
    return WG_OK;
}

/* The sequences of a step, for the threads that compute rows of p. */
typedef struct scored {
    wg_engine *e;
    wg_seq *const *seq;
    int n;
} scored;

/* Computes a thread's share of the rows of p. A row is a function of its logits and, in some chains, of the text and the
 * drafted path before it. Probes have no row. */
static void sample_rows(void *arg, int thread, int threads)
{
    const scored *job = arg;
    wg_engine *e = job->e;
    int lo, hi;
    wg_pool_share(e->p.n, 1, thread, threads, &lo, &hi);
    for (int i = 0; i < job->n; i++) {
        const wg_tree *t = &e->tree[i];
        wg_sampler sampler = wg_seq_sampler(job->seq[i], &e->sampler[thread]);
        for (int row = lo > t->row ? lo : t->row; row < hi && row < t->row + t->n; row++) {
            const wg_prefix prefix = wg_seq_scored_prefix(job->seq[i], t, row - t->row);
            wg_sampler_row_after(&sampler, e->logits + (size_t)row * (size_t)e->p.vocab, &prefix, &e->p, row);
        }
    }
}

/* Leaves all rows of p to be computed when they are read. False: a sequence's rows do not allow it. */
static bool leave_lazy(wg_engine *e, wg_seq *const *seq, int n)
{
    wg_sampler *sampler;
    for (int i = 0; i < n; i++)
        if (!wg_seq_lazy_sampler(seq[i], e->sampler)) return false;
    for (int i = 0; i < n; i++) {
        const wg_tree *t = &e->tree[i];
        sampler = wg_seq_lazy_sampler(seq[i], e->sampler);
        for (int row = t->row; row < t->row + wg_tree_rows(t); row++)
            wg_sampler_lazy(sampler, e->logits + (size_t)row * (size_t)e->p.vocab, &e->p, row);
    }
    return true;
}

/* Whether rows take passes over the vocabulary beside the search for the largest logit. */
static bool have_work(const wg_engine *e, wg_seq *const *seq, int n)
{
    for (int i = 0; i < n; i++)
        if (wg_seq_has_rows(seq[i])) return true;
    return e->opt.sampling.temperature > 0;
}

/* Makes the rows of p: by the pool's threads, or lazily, if the threads would take as long for all rows as one thread for four
 * rows per sequence, about the number that a rule reads. */
static void make_rows(wg_engine *e, wg_seq *const *seq, int n)
{
    scored job = { e, seq, n };
    if (e->p.n > 1 && 4 * n <= e->p.n / e->samplers && leave_lazy(e, seq, n)) return;
    if (e->p.n > 1 && e->samplers > 1 && have_work(e, seq, n)) wg_pool_run(e->env.pool, sample_rows, &job);
    else sample_rows(&job, 0, 1);
}

/* Chunks that ride with a step. */
typedef struct riders {
    wg_chunk *chunk;
    int n;
} riders;

/* Makes draft trees, reserves their slots and runs the target's pass, which gives p at every node or, with *on_device, the
 * paths that the device verified. Chunks follow the trees in the pass. */
static wg_status draft_and_score(wg_engine *e, wg_seq *const *seq, int n, riders with, bool *on_device, wg_error *err)
{
    for (int i = 0; i < n; i++)
        if (wg_kv_len(seq[i]->kv) < seq[i]->n - 1) WG_TRY(wg_engine_prefill(e, seq[i], err));
    double clock = wg_clock_now();
    for (int i = 0; i < n && e->feeds.taps; i++) WG_TRY(wg_tap_feeds_make_room(&e->feeds, seq[i], err));
    if (n > 0) WG_TRY(wg_engine_draft(e, seq, n, err));
    e->phases.draft += lap(&clock);

    wg_batch_clear(&e->batch);
    e->batch.taps = e->feeds.taps;
    for (int i = 0; i < n; i++) {
        wg_tree *t = &e->tree[i];
        WG_TRY(wg_kv_reserve(seq[i]->kv, wg_tree_rows(t), err));
        t->row = e->batch.logits;
        for (int k = 0; k < wg_tree_rows(t); k++)
            wg_batch_node(&e->batch, seq[i]->kv, k, wg_tree_depth(t, k), t->anc[k], t->token[k], true);
    }
    const int scored = e->batch.logits;
    for (int i = 0; i < with.n; i++) WG_TRY(add_chunk(e, &with.chunk[i], err));
    e->phases.kv += lap(&clock);
    *on_device = n > 0 && wg_device_verify_fits(e, seq, n);
    WG_TRY(*on_device ? wg_device_verify_run(e, seq, n, err) : wg_lm_forward_in_parts(e->target, &e->batch, e->logits, err));
    e->phases.verify += lap(&clock);
    if (*on_device) return WG_OK;

    e->p.n = scored;
    make_rows(e, seq, n);
    e->phases.accept += lap(&clock);
    return WG_OK;
}

/* Measures the probability that a draft token is accepted when it is tested first at its place. Coupled drafts have none, since
 * they share draws with the rule. */
static void measure_independent(wg_engine *e, const wg_tree *t, wg_counts *counts)
{
    if (t->law == WG_LAW_COUPLED) return;
    for (int i = 1; i < t->n; i++) {
        const double p = wg_rows_prob(&e->p, t->row + t->parent[i], t->token[i]);
        const double q = t->law == WG_LAW_FIXED ? 1 : wg_rows_prob(&e->q, t->qrow[i], t->token[i]);
        counts->independent_sum += p < q ? p / q : 1;
        counts->independent_n++;
    }
}

static void measure_alpha(wg_engine *e, const wg_tree *t, const wg_path *path, wg_counts *counts)
{
    for (int i = 0; i < path->n; i++) {
        const int node = path->node[i], child = wg_tree_child(t, node, node);
        const double best = wg_optimal_alpha(t, node, &e->p, &e->q, &e->work);
        if (i == 0) wg_audit_kept(&counts->audit, t, best, path->n > 1);
        if (child < 0) continue;
        counts->alpha_star_sum += best; /* NaN where it is unknown; then the mean is unknown, too */
        counts->alpha_star_n++;
        if (t->qrow[child] < 0) continue;
        counts->alpha_sum += wg_rows_overlap(&e->p, t->row + node, &e->q, t->qrow[child]);
        counts->alpha_n++;
    }
}

bool wg_engine_carries(const wg_engine *e) { return e->opt.ride_rows > 0 && !e->feeds.list && !e->device_verify; }

static wg_status check_riders(const wg_engine *e, wg_seq *const *seq, int n, riders with, wg_error *err)
{
    int left = e->opt.ride_rows;
    if (with.n > 0 && !wg_engine_carries(e))
        return wg_fail(err, WG_EUNSUPPORTED, "this engine's steps carry no chunks of prompts (ride_rows, wg_engine_carries)");
    for (int i = 0; i < with.n; left -= with.chunk[i++].n) {
        WG_TRY(check_chunk(&with.chunk[i], left, err));
        for (int k = 0; k < n + i; k++)
            if ((k < n ? seq[k] : with.chunk[k - n].seq) == with.chunk[i].seq)
                return wg_fail(err, WG_EINVAL, "request %u is twice in one step", (unsigned)with.chunk[i].seq->request);
    }
    return WG_OK;
}

/* Runs the rule on all trees of a step. It fails only if a rule from outside returns an answer that cannot be committed, while
 * every sequence is still as before the step. */
static wg_status accept_all(wg_engine *e, wg_seq *const *seq, int n, bool on_device, wg_error *err)
{
    double clock = wg_clock_now();
    for (int i = 0; i < n; i++) {
        wg_path *path = &e->path[i];
        path->n = 0;
        if (on_device) wg_device_verify_path(e, i, path);
        else e->verifier->accept(e->verifier_opt, &e->tree[i], &e->p, &e->q, &seq[i]->chance, &e->work, path);
        if (!e->checks_answers || on_device) continue;
        const wg_status s = wg_check_answer(e->verifier, seq[i], &e->tree[i], &e->p, path, err);
        if (s) return wg_fail_in(err, s, "rule %s, request %u", e->verifier->name, (unsigned)seq[i]->request);
    }
    e->phases.accept += lap(&clock);
    return WG_OK;
}

wg_status wg_engine_step(wg_engine *e, wg_seq *const *seq, int n, wg_error *err)
{
    if (n == 0) return wg_fail(err, WG_EINVAL, "a step of %d sequences; expected 1..%d (max_batch)", n, e->opt.step_batch);
    return wg_engine_step_with(e, seq, n, NULL, 0, err);
}

wg_status wg_engine_step_with(wg_engine *e, wg_seq *const *seq, int n, wg_chunk *chunk, int chunks, wg_error *err)
{
    const riders with = { chunk, chunks };
    WG_TRY(check_running(e, seq, n, err));
    WG_TRY(check_riders(e, seq, n, with, err));
    bool on_device = false;
    wg_status status = n + chunks ? draft_and_score(e, seq, n, with, &on_device, err) : WG_OK;
    if (!status) status = accept_all(e, seq, n, on_device, err);
    if (status) {
        for (int i = 0; i < n + chunks; i++) wg_kv_rollback(i < n ? seq[i]->kv : chunk[i - n].seq->kv);
        return status;
    }
    for (int i = 0; i < chunks; i++) wg_kv_commit_chain(chunk[i].seq->kv, chunk[i].n);
    double clock = wg_clock_now();
    for (int i = 0; i < n; i++) { /* nothing below can fail */
        wg_seq *s = seq[i];
        const wg_tree *t = &e->tree[i];
        const wg_path *path = &e->path[i];
        wg_assert(path->node[path->n - 1] < t->n); /* rules never accept a probe */
        wg_seq_append(s, t, path, e->is_eog, e->is_eog_user);
        wg_seq_rows_emitted(e, s, t);
        s->on_device.verified += on_device;
        e->phases.accept += lap(&clock);
        if (e->opt.measure_alpha) {
            measure_alpha(e, t, path, &s->counts);
            measure_independent(e, t, &s->counts);
        }
        if (e->opt.audit) wg_audit_draws(&s->counts.audit, t, &e->p, &e->q);
        e->phases.measure += lap(&clock);
        wg_kv_commit(s->kv, s->path.node, s->path.n);
        if (e->feeds.taps) wg_tap_feeds_path(&e->feeds, s, t->row, &s->path);
        e->phases.kv += lap(&clock);
        if (e->drafter->class->observe) e->drafter->class->observe(e->drafter, s, t, &s->path, &e->p);
        e->phases.draft += lap(&clock);
    }
    return WG_OK;
}

/* Prefills their whole prompts. */
static wg_status prefill_all(wg_engine *e, wg_seq *const *seq, int n, wg_error *err)
{
    for (int i = 0; i < n; i++)
        if (wg_kv_len(seq[i]->kv) < seq[i]->n - 1) WG_TRY(wg_engine_prefill(e, seq[i], err));
    return WG_OK;
}

wg_status wg_engine_rounds(wg_engine *e, wg_seq *const *seq, int n, int rounds, wg_round_fn *on_round, void *user,
                           wg_error *err)
{
    wg_seq *running[64 * sizeof e->slots / sizeof *e->slots];
    wg_device_rounds r = { .rounds = rounds, .on_round = on_round, .user = user, .wanted = true };
    for (; r.rounds > 0 && r.wanted; r.rounds -= r.ran) {
        int some = 0;
        for (int i = 0; i < n && i < e->opt.max_batch; i++)
            if (seq[i]->finish == WG_RUNNING) running[some++] = seq[i];
        if (some == 0) return WG_OK;
        WG_TRY(check_running(e, running, some, err));
        WG_TRY(prefill_all(e, running, some, err));
        r.ran = 0;
        if (wg_device_decode_fits(e, running, some)) WG_TRY(wg_device_decode_run(e, running, some, &r, err));
        if (r.ran > 0) continue;
        WG_TRY(wg_engine_step(e, running, some, err));
        for (int i = 0; i < some && on_round; i++) r.wanted = on_round(user, running[i], &e->tree[i]) && r.wanted;
        r.ran = 1;
    }
    return WG_OK;
}
