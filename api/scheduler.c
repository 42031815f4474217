/* SPDX-License-Identifier: MIT
 * Serving: a scheduler over the engine of a session, and its structs as the caller has them. */
#include <string.h>

#include "api/scheduler_impl.h"
#include "core/base/mem.h"
#include "draft/length/length.h"
#include "core/setup/constrained.h"

/* Rows of a table of costs, and of the larger draft pass whose price is taken; depth that is planned of drafts that are looked
 * up. */
enum { ROWS = WG_TREE_MAX > 64 ? 64 : WG_TREE_MAX, DRAFT_ROWS = WG_TREE_MAX > 16 ? 16 : WG_TREE_MAX, LOOKED_UP = 16 };

/* ---- opening */

/* Given costs, or those of the profile: of passes of the target, and of passes of a draft model, as a line over their rows: a
 * level of the draft is one pass, with a row for each sequence that drafts so deep. */
static wg_status take_costs(const wg_session *in, const wg_scheduler_options *o, wg_cost_prices *out, wg_error *err)
{
    const wg_drafter *d = wg_engine_drafter(in->engine);
    wg_lm *lm = (wg_lm *)(uintptr_t)wg_drafter_lm(d), *target = wg_engine_target(in->engine);
    wg_prices passes, drafts;
    *out = (wg_cost_prices){ .level = { o->draft_cost } };
    while (out->rows < ROWS && o->cost[out->rows] > 0) out->rows++, out->pass[out->rows] = o->cost[out->rows - 1];
    if (out->rows > 0) return WG_OK;
    WG_TRY(wg_profile_target(in->profile, target, &passes, err));
    for (int r = 1; r <= ROWS; r++) out->pass[r] = wg_prices_of(&passes, r);
    out->rows = ROWS;
    if (out->level[0] > 0 || !lm || lm == target) return WG_OK;
    WG_TRY(wg_profile_draft(in->profile, lm, target, &drafts, err));
    out->token = out->read[0] = (wg_prices_of(&drafts, DRAFT_ROWS) - wg_prices_of(&drafts, 1)) / (DRAFT_ROWS - 1);
    out->level[0] = wg_prices_of(&drafts, 1) - out->token;
    return WG_OK;
}

/* The deepest draft of a drafter. */
static int depth_of(const wg_drafter *d)
{
    wg_draft_extent e = { .levels = LOOKED_UP };
    if (d->class->extent) d->class->extent(d, WG_TREE_MAX - 1, &e);
    return e.levels < 1 ? 1 : e.levels < WG_TREE_MAX ? e.levels : WG_TREE_MAX - 1;
}

static wg_status take_options(wg_scheduler_options *o, const wg_scheduler_options *opt, wg_error *err)
{
    if (opt) WG_TRY(wg_struct_in(o, sizeof *o, opt, WG_SIZE_TO(wg_scheduler_options, draft_cost), "wg_scheduler_options", err));
    if (o->mode > WG_BATCHING_STATIC)
        return wg_fail(err, WG_EINVAL, "wg_scheduler_options.mode is %d; expected one of wg_batching", (int)o->mode);
    if (o->speculation > WG_SPECULATION_ADAPTIVE)
        return wg_fail(err, WG_EINVAL, "wg_scheduler_options.speculation is %d; expected one of wg_speculation",
                       (int)o->speculation);
    for (int i = 0; i < ROWS; i++)
        if (!(o->cost[i] >= 0) || o->cost[i] > 1e12)
            return wg_fail(err, WG_EINVAL,
                           "wg_scheduler_options.cost[%d] is %g; expected a number above 0, or 0 behind the last", i,
                           o->cost[i]);
    if (!(o->draft_cost >= 0) || o->draft_cost > 1e12)
        return wg_fail(err, WG_EINVAL, "wg_scheduler_options.draft_cost is %g; expected 0 or more", o->draft_cost);
    if (o->batch < 0 || o->batch > 256)
        return wg_fail(err, WG_EINVAL, "wg_scheduler_options.batch is %d; expected 1..256, or 0", o->batch);
    if (o->prefill_rows < 0 || o->prefill_rows > WG_KV_TAIL_MAX)
        return wg_fail(err, WG_EINVAL, "wg_scheduler_options.prefill_rows is %d; expected 1..%d, or 0", o->prefill_rows,
                       (int)WG_KV_TAIL_MAX);
    if (o->pages < 0) return wg_fail(err, WG_EINVAL, "wg_scheduler_options.pages is %d; expected 1 or more, or 0", o->pages);
    return WG_OK;
}

static wg_status open_scheduler(wg_scheduler *s, const wg_engine_text *text, const wg_scheduler_options *o, wg_error *err)
{
    static const wg_sched_mode modes[] = { [WG_BATCHING_CONTINUOUS] = WG_SCHED_CONTINUOUS,
                                           [WG_BATCHING_DYNAMIC] = WG_SCHED_DYNAMIC,
                                           [WG_BATCHING_STATIC] = WG_SCHED_STATIC };
    const int rows = o->prefill_rows ? o->prefill_rows : WG_ENGINE_PREFILL_ROWS;
    const wg_engine_options serving = {
        .step_batch = o->batch, .pages = o->pages, .prefill_rows = rows, .ride_rows = rows, .host_rows = o->logprobs
    };
    wg_cost_prices costs;
    const bool adaptive = o->speculation == WG_SPECULATION_ADAPTIVE;
    WG_TRY(wg_session_make_serving(&s->session, text, &serving, err));
    if (adaptive) WG_TRY(take_costs(s->session, o, &costs, err));
    wg_profile_keep(s->session->profile);
    const wg_sched_options opt = { .costs = adaptive ? &costs : NULL,
                                   .live_costs = o->cost[0] <= 0,
                                   .depth = depth_of(wg_engine_drafter(s->session->engine)),
                                   .mode = modes[o->mode],
                                   .queue = o->queue,
                                   .aging = o->aging,
                                   .prefix_cache = o->prefix_cache,
                                   .no_draft = o->speculation == WG_SPECULATION_OFF,
                                   .window = o->window > 0 ? o->window : 0.01 };
    return wg_sched_open(&s->sched, s->session->engine, &opt, err);
}

wg_status wg_scheduler_open(wg_scheduler **out, const char *config, const wg_scheduler_options *opt, wg_error *err)
{
    wg_scheduler_options o = { 0 };
    if (!out || !config) return wg_missing("wg_scheduler_open", out ? "config" : "out", err);
    WG_TRY(take_options(&o, opt, err));
    wg_scheduler *s = wg_calloc(1, sizeof *s);
    if (!s) return wg_nomem(err, sizeof *s, "a scheduler");
    pthread_mutex_init(&s->grammar_lock, NULL);
    const wg_engine_text text = { .name = "config", .json = config, .target = true };
    const wg_status status = open_scheduler(s, &text, &o, err);
    if (status) wg_scheduler_close(s);
    else *out = s;
    return status;
}

void wg_scheduler_close(wg_scheduler *s)
{
    if (!s) return;
    wg_sched_close(s->sched);
    wg_scheduler_free_grammars(s);
    pthread_mutex_destroy(&s->grammar_lock);
    wg_session_close(s->session);
    wg_free(s);
}

/* ---- requests */

/* Who is told of a request, with room for log probabilities of its largest event; freed after its last event. */
typedef struct listener {
    void (*on_event)(void *user, const wg_event *event);
    void *user;
    double *logprob, *top_logprob; /* (n), (n, top); NULL: not asked for */
    int32_t *top_token;
} listener;

static void close_listener(listener *to)
{
    if (!to) return;
    wg_free(to->logprob);
    wg_free(to->top_logprob);
    wg_free(to->top_token);
    wg_free(to);
}

static wg_status open_listener(listener **out, const wg_request *r, wg_error *err)
{
    const int round = WG_TREE_MAX + 1, top = r->top > 0 ? r->top : 0;
    const size_t n = r->echo && r->n > round ? (size_t)r->n : (size_t)round, all = n * (size_t)top;
    listener *to = *out = wg_calloc(1, sizeof *to);
    if (!to) return wg_nomem(err, sizeof *to, "a request");
    to->on_event = r->on_event;
    to->user = r->user;
    if (!r->logprobs || top > WG_LOGPROBS_MAX) return WG_OK; /* the scheduler refuses more */
    to->logprob = wg_alloc(n, sizeof *to->logprob);
    to->top_logprob = wg_alloc(all, sizeof *to->top_logprob);
    to->top_token = wg_alloc(all, sizeof *to->top_token);
    if (to->logprob && to->top_logprob && to->top_token) return WG_OK;
    return wg_nomem(err, (n + all) * sizeof *to->logprob, "log probabilities");
}

/* Log probabilities as the caller has them: a list for the tokens, and lists for the most probable ones. */
static void put_logs(listener *to, const wg_sched_event *e)
{
    const int top = e->logs.top;
    for (int i = 0; i < e->n; i++) {
        const wg_logprob *row = e->logs.row + (size_t)i * (size_t)(1 + top);
        to->logprob[i] = row->logprob;
        for (int k = 0; k < top; k++) {
            to->top_token[i * top + k] = row[1 + k].token;
            to->top_logprob[i * top + k] = row[1 + k].logprob;
        }
    }
}

static const wg_end ends[] = { [WG_SCHED_NOT] = WG_END_NOT,
                               [WG_SCHED_EOS] = WG_END_EOS,
                               [WG_SCHED_LENGTH] = WG_END_LENGTH,
                               [WG_SCHED_STOP] = WG_END_STOP,
                               [WG_SCHED_CANCELLED] = WG_END_CANCELLED,
                               [WG_SCHED_DEADLINE] = WG_END_DEADLINE };

static void on_event(void *user, const wg_sched_event *e)
{
    listener *to = user;
    const bool last = e->kind == WG_SCHED_ENDED || e->kind == WG_SCHED_FAILED;
    const wg_counts none = { 0 }, *c = e->counts ? e->counts : &none;
    const bool logs = e->logs.row && e->n > 0;
    if (logs) put_logs(to, e);
    const wg_event event = { .size = sizeof event,
                             .id = e->id,
                             .kind = (wg_event_kind)e->kind,
                             .end = ends[e->end],
                             .token = e->token,
                             .drafted = e->drafted,
                             .n = e->n,
                             .nodes = e->nodes,
                             .logprob = logs ? to->logprob : NULL,
                             .top_token = logs && e->logs.top ? to->top_token : NULL,
                             .top_logprob = logs && e->logs.top ? to->top_logprob : NULL,
                             .top = logs ? e->logs.top : 0,
                             .prompt_tokens = e->prompt,
                             .cached_tokens = e->cached,
                             .emitted = c->emitted,
                             .passes = c->passes,
                             .drafted_tokens = c->drafted,
                             .accepted_tokens = c->accepted,
                             .preemptions = e->preemptions,
                             .now = e->now,
                             .admitted = e->admitted,
                             .started = e->started,
                             .first_token = e->first_token,
                             .status = e->why ? e->why->code : WG_OK,
                             .message = e->why ? e->why->text : NULL };
    if (to->on_event) to->on_event(to->user, &event);
    if (last) close_listener(to);
}

_Static_assert((int)WG_SCHED_STARTED == (int)WG_EVENT_STARTED && (int)WG_SCHED_FAILED == (int)WG_EVENT_FAILED, "event kinds");

/* How its tokens are drawn. *sampling: what how->sampling points to. */
static wg_status take_sampling(const wg_scheduler *s, const wg_request *r, wg_seq_sampling *how, wg_sampling *sampling,
                               wg_error *err)
{
    *how = (wg_seq_sampling){ .biases = r->biases, .logprobs = r->logprobs, .top = r->logprobs ? r->top : 0 };
    how->bias = (const wg_logit_bias *)r->bias; /* the same struct, by the assertions below */
    if (!r->bias && r->biases > 0) return wg_missing("wg_scheduler_submit", "request->bias", err);
    if (r->grammar) how->acceptor = r->grammar->of.acceptor;
    how->forced = r->grammar && wg_drafts_forced(s->session->engine);
    if (r->top < 0 || r->biases < 0)
        return wg_fail(err, WG_EINVAL, "wg_request: %d biases, %d most probable tokens; expected 0 or more", r->biases, r->top);
    if (!r->sampling) return WG_OK;
    wg_sampler_options o = { 0 };
    WG_TRY(
        wg_struct_in(&o, sizeof o, r->sampling, WG_SIZE_TO(wg_sampler_options, presence_penalty), "wg_sampler_options", err));
    *sampling = s->session->setup.sampling; /* the order of the stages */
    sampling->temperature = o.temperature;
    sampling->top_p = o.top_p;
    sampling->min_p = o.min_p;
    sampling->top_k = o.top_k;
    sampling->penalty_window = o.penalty_window;
    sampling->repetition_penalty = o.repetition_penalty;
    sampling->frequency_penalty = o.frequency_penalty;
    sampling->presence_penalty = o.presence_penalty;
    if (memcmp(sampling, &s->session->setup.sampling, sizeof *sampling) != 0) how->sampling = sampling;
    return WG_OK;
}

_Static_assert(sizeof(wg_token_bias) == sizeof(wg_logit_bias) && offsetof(wg_token_bias, bias) == offsetof(wg_logit_bias, bias),
               "biases");

static wg_status check_request(const wg_request *r, wg_error *err)
{
    if (!r->token && r->n > 0) return wg_missing("wg_scheduler_submit", "request->token", err);
    if (!r->stop && r->stops > 0) return wg_missing("wg_scheduler_submit", "request->stop", err);
    if (r->stops < 0 || r->stops > 1024) return wg_fail(err, WG_EINVAL, "%d stop tokens; expected 0..%d", r->stops, 1024);
    return WG_OK;
}

wg_status wg_scheduler_submit(wg_scheduler *s, const wg_request *request, uint64_t *id, wg_error *err)
{
    wg_request r = { 0 };
    if (!s || !request) return wg_missing("wg_scheduler_submit", s ? "request" : "the scheduler", err);
    WG_TRY(wg_struct_in(&r, sizeof r, request, WG_SIZE_TO(wg_request, on_event), "wg_request", err));
    WG_TRY(check_request(&r, err));
    wg_seq_sampling how;
    wg_sampling sampling;
    WG_TRY(take_sampling(s, &r, &how, &sampling, err));
    listener *to = NULL;
    wg_status status = open_listener(&to, &r, err);
    const wg_sched_request ask = { .token = r.token,
                                   .n = r.n,
                                   .max_new = r.max_tokens ? r.max_tokens : s->session->setup.top.max_tokens,
                                   .seed = r.seed,
                                   .number = r.number,
                                   .stop = r.stop,
                                   .stops = r.stops,
                                   .priority = r.priority,
                                   .ignore_end = r.ignore_end,
                                   .echo = r.echo,
                                   .no_draft = r.no_draft,
                                   .how = how,
                                   .draft_most = r.draft_most,
                                   .deadline = r.deadline,
                                   .on_event = on_event,
                                   .user = to };
    if (!status) status = wg_sched_submit(s->sched, &ask, id, err);
    if (status) close_listener(to);
    return status;
}

wg_status wg_scheduler_cancel(wg_scheduler *s, uint64_t id, wg_error *err)
{
    return s ? wg_sched_cancel(s->sched, id, err) : wg_missing("wg_scheduler_cancel", "the scheduler", err);
}

wg_status wg_scheduler_step(wg_scheduler *s, int *running, wg_error *err)
{
    if (!s) return wg_missing("wg_scheduler_step", "the scheduler", err);
    const int n = wg_sched_step(s->sched);
    if (running) *running = n;
    return WG_OK;
}

int wg_scheduler_wait(wg_scheduler *s, double seconds) { return s && wg_sched_wait(s->sched, seconds); }

void wg_scheduler_drain(wg_scheduler *s)
{
    if (s) wg_sched_drain(s->sched);
}

/* ---- what it is, and counts */

wg_status wg_scheduler_about_get(const wg_scheduler *s, wg_scheduler_about *out, wg_error *err)
{
    if (!s || !out) return wg_missing("wg_scheduler_about_get", s ? "out" : "the scheduler", err);
    const wg_session *in = s->session;
    const wg_tokenizer *t = in->target->tokenizer;
    const wg_lm *lm = wg_engine_target(in->engine);
    const wg_sched_options *o = wg_sched_options_of(s->sched);
    const wg_scheduler_about about = { .vocab = lm->vocab,
                                       .context = wg_engine_options_of(in->engine)->max_tokens,
                                       .batch = o->batch,
                                       .queue = o->queue,
                                       .lossless = wg_setup_lossless(&in->setup),
                                       .law_only = lm->class->law_only,
                                       .max_tokens = in->setup.top.max_tokens,
                                       .bos = wg_tokenizer_bos(t),
                                       .eos = wg_tokenizer_eos(t),
                                       .chat = wg_scheduler_template(s).family != WG_CHAT_NONE,
                                       .drafter = in->drafter,
                                       .rule = wg_engine_verifier(in->engine)->name,
                                       .model = in->target->path,
                                       .tokenizer = wg_tokenizer_kind(t),
                                       .profile = wg_session_profile(s->session),
                                       .profile_notes = in->profile_notes };
    return wg_struct_out(out, &about, sizeof about, WG_SIZE_TO(wg_scheduler_about, tokenizer), "wg_scheduler_about", err);
}

static void put_counts(wg_scheduler_stats *to, const wg_sched_stats *from)
{
    const wg_counts *c = &from->counts;
    const int deep = WG_TREE_MAX - 1 < 64 ? WG_TREE_MAX - 1 : 64;
    int64_t undrafted = 0;
    for (int i = 0; i < WG_NO_DRAFT_REASONS; i++) undrafted += c->without_draft[i];
    to->emitted = c->emitted;
    to->passes = c->passes;
    to->drafts = c->passes - undrafted;
    to->drafted = c->drafted;
    to->accepted = c->accepted;
    to->undrafted_off = from->undrafted_off;
    to->undrafted_policy = from->undrafted_policy;
    to->undrafted_other = undrafted - from->undrafted_off - from->undrafted_policy;
    for (int d = 0; d < deep; d++) to->offered_at[d] = c->offered_at[d + 1], to->accepted_at[d] = c->accepted_at[d + 1];
}

wg_status wg_scheduler_stats_get(wg_scheduler *s, wg_scheduler_stats *out, wg_error *err)
{
    wg_sched_stats now;
    if (!s || !out) return wg_missing("wg_scheduler_stats_get", s ? "out" : "the scheduler", err);
    wg_sched_stats_read(s->sched, &now);
    wg_scheduler_stats t = { .waiting = now.waiting,
                             .running = now.running,
                             .reading = now.reading,
                             .preempted = now.preempted,
                             .pages = now.pages,
                             .pages_free = now.pages_free,
                             .pages_cached = now.pages_cached,
                             .page_tokens = wg_kv_page_slots(wg_engine_kv(s->session->engine)),
                             .draining = now.draining,
                             .submitted = now.submitted,
                             .refused = now.refused,
                             .ended = now.ended,
                             .failed = now.failed,
                             .cancelled = now.cancelled,
                             .expired = now.expired,
                             .steps = now.steps,
                             .preemptions = now.preemptions,
                             .evictions = now.evictions,
                             .prompt_tokens = now.prompt_tokens,
                             .cached_tokens = now.cached_tokens,
                             .read_tokens = now.read_tokens,
                             .lookups = now.lookups,
                             .hits = now.hits,
                             .draft_seconds = now.phases.draft,
                             .verify_seconds = now.phases.verify,
                             .accept_seconds = now.phases.accept,
                             .kv_seconds = now.phases.kv,
                             .prefill_seconds = now.phases.prefill,
                             .step_seconds = now.seconds };
    put_counts(&t, &now);
    return wg_struct_out(out, &t, sizeof t, WG_SIZE_TO(wg_scheduler_stats, step_seconds), "wg_scheduler_stats", err);
}
