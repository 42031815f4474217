/* SPDX-License-Identifier: MIT
 * A loop on a CUDA device: the stages of both models and the kernels between them, recorded once for each number of sequences
 * and of spans, in the device's own table of graphs. What a round works on (sequences, page tables, rows) lies in device memory
 * that is sent before a loop starts and changed by its kernels; rows of p and q are those of device verification.
 *
 * Everything runs on the target's stream: a draft model on the same card has another one, which is idle then. */
#include "core/model/decode_loop.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/mem.h"
#include "core/model/cuda/device_cuda.h"
#include "core/model/model_impl.h"

struct wg_decode_loop {
    wg_device on;             /* the target's, held */
    wg_model *target, *draft; /* draft NULL: nothing is drafted, or it is looked up */
    wg_cuda *s, *d;
    wg_decode_loop_options o;
    int rounds, events;  /* present limits of window and ring */
    bool broken;         /* recording failed */
    wg_batch batch;      /* as many rows as a pass has, for its stages */
    int32_t *zeros;      /* (rows) their tokens */
    char *host, *device; /* [turn][sequences][tables]: sent before a start; pinned */
    size_t bytes;
    uint64_t *ends; /* device, as are these */
    wg_gpu_row *row;
    int32_t *text;                  /* (sequences, longest) where drafts are looked up; else NULL */
    size_t longest;                 /* tokens of a text */
    int32_t *from;                  /* (sequences) rows with logits at depth 0: every other one */
    wg_gpu_ring *ring, *ring_there; /* mapped */
    uint32_t number;                /* number of the next event */
    wg_decode_loop_times times;
    int n[WG_DECODE_ROWS_MAX], seen[WG_DECODE_ROWS_MAX]; /* (sequences) tokens; tokens read by the draft model */
};

static size_t seq_at(void) { return (sizeof(wg_gpu_decode_state) + 15) / 16 * 16; }
static size_t tables_at(const wg_decode_loop *l) { return seq_at() + (size_t)l->o.sequences * sizeof(wg_gpu_seq); }
static int rows_of(const wg_decode_loop *l, int n) { return n * (l->o.draft.length + 1); }

/* ---- open */

/* The CUDA device that a transformer runs on, or NULL. */
static wg_cuda *cuda_of(const wg_lm *lm)
{
    const wg_model *m = wg_lm_transformer(lm);
    return m && m->device.class->cuda ? m->device.class->cuda(&m->device) : NULL;
}

/* Whether the draft can be drafted beside the target: on the same card, over the same tokens. */
static bool goes_beside(const wg_cuda *s, const wg_lm *target, const wg_device_chain *o)
{
    const wg_cuda *d = cuda_of(o->lm);
    return d && d->gpu.api == s->gpu.api && d->gpu.ordinal == s->gpu.ordinal && !(d->mode & WG_CUDA_EAGER) &&
           wg_lm_transformer(o->lm)->head_rows == target->vocab;
}

/* The number of sequences that fit. */
static int places(const wg_cuda *s, const wg_lm *target, const wg_decode_loop_options *o)
{
    const wg_model *m = wg_lm_transformer(target), *draft = o->draft.lm ? wg_lm_transformer(o->draft.lm) : NULL;
    const size_t each = (size_t)o->draft.length + 1, row = (size_t)target->vocab * sizeof(float), most = (size_t)o->sequences;
    const size_t room[] = { WG_DECODE_ROWS_MAX / each,
                            (size_t)m->max_rows / each,
                            (size_t)o->rows / each,
                            (size_t)o->events,
                            s->logits_bytes / row / each,
                            draft ? WG_DECODE_ROWS_MAX / 2 : most,
                            draft ? (size_t)draft->max_rows / 2 : most,
                            draft ? wg_cuda_of(&draft->device)->logits_bytes / row : most };
    size_t n = most;
    for (size_t i = 0; i < sizeof room / sizeof *room; i++) n = room[i] < n ? room[i] : n;
    return (int)n;
}

static wg_status open_memory(wg_decode_loop *l, int pages, wg_error *err)
{
    wg_cuda *s = l->s;
    const wg_gpu_api *api = s->gpu.api;
    const int rows = WG_DECODE_ROWS_MAX, n = l->o.sequences;
    const size_t words = ((size_t)l->target->lm.vocab + 63) / 64, ring = (size_t)l->events * sizeof(wg_gpu_event);
    void *there = NULL;
    int32_t from[WG_DECODE_ROWS_MAX];
    const bool lookup = l->o.draft.source == WG_CHAIN_LOOKUP && l->o.draft.length > 0;
    l->bytes = tables_at(l) + (size_t)n * (size_t)pages * sizeof(int32_t);
    l->host = api->pin(&s->gpu, l->bytes);
    l->device = wg_cuda_bytes_alloc(s, l->bytes);
    l->ends = wg_cuda_bytes_alloc(s, words * sizeof *l->ends);
    l->row = wg_cuda_bytes_alloc(s, (size_t)rows * sizeof *l->row);
    l->from = wg_cuda_bytes_alloc(s, sizeof from);
    if (lookup) l->text = wg_cuda_bytes_alloc(s, (size_t)n * l->longest * sizeof *l->text);
    l->ring = api->map(&s->gpu, sizeof *l->ring + ring, &there);
    l->ring_there = there;
    if (!l->host || !l->device || !l->ends || !l->row || !l->from || !l->ring || (lookup && !l->text))
        return wg_cuda_no_memory(s, l->bytes + ring, "rounds in a loop", "lower max_batch or max_tokens", err);
    for (int i = 0; i < WG_DECODE_ROWS_MAX; i++) from[i] = 2 * i + 1;
    api->put(&s->gpu, l->ends, l->o.ends, words * sizeof *l->ends);
    api->put(&s->gpu, l->from, from, sizeof from);
    if (!(l->zeros = wg_calloc((size_t)rows, sizeof *l->zeros))) return wg_nomem(err, (size_t)rows * 4, "rounds in a loop");
    return wg_batch_open(&l->batch, rows, err);
}

wg_status wg_decode_loop_open(wg_decode_loop **out, wg_lm *target, const wg_kv *kv, const wg_decode_loop_options *o,
                              wg_error *err)
{
    *out = NULL;
    wg_cuda *s = cuda_of(target);
    if (!s) return WG_OK;
    wg_model *m = wg_lm_transformer(target);
    if (s->mode & WG_CUDA_EAGER || o->draft.length > WG_DECODE_DRAFT_MAX) return WG_OK;
    if (o->draft.lm && !goes_beside(s, target, &o->draft)) return WG_OK;
    if (m->window || (o->draft.lm && wg_lm_transformer(o->draft.lm)->window))
        return WG_OK; /* its rows see their whole prefix */
    const int n = places(s, target, o);
    if (n == 0) return WG_OK;
    wg_decode_loop *l = wg_calloc(1, sizeof *l);
    if (!l) return wg_nomem(err, sizeof *l, "rounds in a loop");
    *l = (wg_decode_loop){ .on = m->device,
                           .target = m,
                           .draft = o->draft.lm ? wg_lm_transformer(o->draft.lm) : NULL,
                           .s = s,
                           .o = *o,
                           .rounds = o->rounds,
                           .events = o->events,
                           .number = 1,
                           .longest = (size_t)wg_kv_pages_most(kv) * (size_t)wg_kv_page_slots(kv) };
    l->o.sequences = n;
    l->d = l->draft ? wg_cuda_of(&l->draft->device) : NULL;
    wg_device_retain(&l->on);
    const wg_status status = open_memory(l, wg_kv_pages_most(kv), err);
    l->o.ends = NULL;
    if (status) wg_decode_loop_close(l);
    else *out = l;
    return status;
}

void wg_decode_loop_close(wg_decode_loop *l)
{
    if (!l) return;
    wg_cuda *s = l->s;
    void *const piece[] = { l->device, l->ends, l->row, l->from, l->text };
    wg_graphs_clear(&s->graphs);
    for (size_t i = 0; i < sizeof piece / sizeof *piece; i++) wg_cuda_bytes_free(s, piece[i]);
    if (l->host) s->gpu.api->unpin(&s->gpu, l->host);
    if (l->ring) s->gpu.api->unmap(&s->gpu, l->ring);
    wg_batch_close(&l->batch);
    wg_free(l->zeros);
    wg_device_close(&l->on);
    wg_free(l);
}

void wg_decode_loop_limit(wg_decode_loop *l, int rounds, int events)
{
    l->rounds = rounds < l->o.rounds ? rounds : l->o.rounds;
    l->events = events < l->o.events ? events : l->o.events;
}

wg_decode_loop_times wg_decode_loop_times_of(const wg_decode_loop *l) { return l->times; }

/* Rounds after which no text can be longer than the draft model's context; from there on the host chooses what the model reads
 * (draft/lm/lm_draft.h). */
static int rounds_within(const wg_decode_loop *l, const wg_decode_loop_seq *seq, int n)
{
    const int each = l->o.draft.length + 1;
    int rounds = INT32_MAX;
    for (int i = 0; l->draft && i < n; i++) {
        const int context = l->draft->lm.context, room = context > seq[i].n ? (context - seq[i].n) / each : 0;
        if (seq[i].limit > context && room < rounds) rounds = room;
    }
    return rounds;
}

bool wg_decode_loop_fits(const wg_decode_loop *l, const wg_decode_loop_seq *seq, int n)
{
    if (l->broken || n > l->o.sequences || n > l->events) return false;
    for (int i = 0; i < n; i++) {
        const wg_decode_loop_seq *s = &seq[i];
        if (wg_kv_len(s->kv) != s->n - 1) return false;
        if (l->draft && wg_kv_valid(s->kv, l->draft->lm.space) < s->n - 2) return false;
    }
    return rounds_within(l, seq, n) > 0;
}

/* ---- the body of a round */

/* The stages of a model over rows that lie on the device, `asked` of them with logits, on the stream of the target. */
static void stages(wg_decode_loop *l, wg_model *m, wg_kv_seq *kv, int rows, int asked, int most)
{
    wg_cuda *s = wg_cuda_of(&m->device);
    const wg_layer_plan plan = { .layers = m->arch.layers };
    const wg_gpu_stream own = s->gpu.stream;
    wg_batch_clear(&l->batch);
    wg_batch_chain(&l->batch, kv, 0, l->zeros, rows, asked);
    s->now = (wg_pass){ .model = m,
                        .plan = &plan,
                        .row = l->batch.row,
                        .rows = rows,
                        .asked = asked,
                        .max_rows = m->max_rows,
                        .space = m->lm.space,
                        .width = m->head_rows };
    s->all = s->rows = rows;
    s->asked = asked;
    s->row = l->row;
    s->within = NULL;
    s->from = l->from;
    s->tables = (const int32_t *)(const void *)(l->device + tables_at(l));
    s->most = most;
    s->small = true;
    s->gpu.stream = l->s->gpu.stream;
    wg_model_stages(m, &plan, m->lm.space, &l->batch, NULL);
    s->gpu.stream = own;
    s->kept = false;
}

static void round_of(wg_decode_loop *l, const wg_decode_loop_seq *seq, int n, int most)
{
    wg_cuda *s = l->s;
    const wg_gpu_api *api = s->gpu.api;
    const wg_device_chain *o = &l->o.draft;
    const int vocab = l->target->lm.vocab;
    wg_gpu_chain chain = { .temperature = o->temperature, .top_p = o->top_p, .min_p = o->min_p, .top_k = o->top_k };
    const wg_gpu_decode_loop loop = { .sequences = n,
                                      .length = o->length,
                                      .law = o->law,
                                      .context = l->draft ? l->draft->lm.context : INT32_MAX,
                                      .n_max = o->match.n_max,
                                      .n_min = o->match.n_min,
                                      .text = l->text,
                                      .room = l->longest,
                                      .state = (wg_gpu_decode_state *)(void *)l->device,
                                      .seq = (wg_gpu_seq *)(void *)(l->device + seq_at()),
                                      .tree = s->verify.tree,
                                      .path = s->verify.path,
                                      .ends = l->ends,
                                      .ring = l->ring_there };
    if (l->text) api->loop_lookup(&s->gpu, &loop);
    for (int depth = 0; l->draft && depth < o->length; depth++) {
        api->loop_feed(&s->gpu, &loop, depth, l->row);
        stages(l, l->draft, seq[0].kv, depth ? n : 2 * n, n, most);
        chain.best = l->d->verify.best;
        if (o->law != WG_RULE_FIXED) wg_cuda_verify_draft(&s->verify, &s->gpu, vocab, &chain, l->d->logits, depth * n, n);
        api->loop_draw(&s->gpu, &loop, depth, vocab, l->d->logits, chain.best, s->verify.q, s->verify.q_one_hot);
    }
    api->loop_nodes(&s->gpu, &loop, l->row);
    stages(l, l->target, seq[0].kv, rows_of(l, n), rows_of(l, n), most);
    wg_cuda_verify_sample(&s->verify, &s->gpu, vocab, l->o.how, s->logits, 0, rows_of(l, n));
    wg_cuda_verify_trees(&s->verify, &s->gpu, vocab, &l->o.how->rule, n);
    api->loop_end(&s->gpu, &loop);
}

/* Starts a loop: the first round by launches, later ones as recorded. False: it cannot be recorded. */
static bool start(wg_decode_loop *l, const wg_decode_loop_seq *seq, int n, int most, wg_graph *graph, bool first)
{
    wg_cuda *s = l->s;
    const wg_gpu_api *api = s->gpu.api;
    char why[WG_GPU_WHY];
    if (first) {
        round_of(l, seq, n, most);
        return true;
    }
    if (!graph->ready) {
        api->record(&s->gpu);
        round_of(l, seq, n, most);
        graph->ready = api->recorded_loop(&s->gpu, (const int32_t *)(const void *)l->device, why);
    }
    if (!graph->ready) {
        wg_log(WG_LOG_WARN, "%s (%s): rounds could not be recorded as a loop, the host makes them: %s", s->name, s->gpu.card,
               why);
        l->broken = true;
        return false;
    }
    api->replay(&s->gpu, graph->ready);
    return true;
}

/* ---- a run */

/* Reserves pages for the longest window for which there are enough. */
static wg_status reserve(const wg_decode_loop *l, const wg_decode_loop_seq *seq, int n, int *rounds, wg_error *err)
{
    const int each = l->o.draft.length + 1;
    if (*rounds > WG_KV_TAIL_MAX / each) *rounds = WG_KV_TAIL_MAX / each;
    for (;; *rounds /= 2) {
        wg_status status = WG_OK;
        for (int i = 0; i < n && !status; i++) {
            const int left = seq[i].limit - seq[i].n, want = *rounds * each;
            status = wg_kv_reserve(seq[i].kv, want < left ? want : left, err);
        }
        if (status != WG_EFULL || *rounds == 1) return status;
        for (int i = 0; i < n; i++) wg_kv_rollback(seq[i].kv);
    }
}

/* The largest number of keys that a row will see. */
static int longest(const wg_decode_loop_seq *seq, int n)
{
    int most = 0;
    for (int i = 0; i < n; i++) {
        const int slots = wg_kv_len(seq[i].kv) + wg_kv_tail(seq[i].kv);
        most = slots > most ? slots : most;
    }
    return most;
}

static wg_graph *graph_of(wg_decode_loop *l, const wg_decode_loop_seq *seq, int n, int spans, bool *first)
{
    wg_graph_key key;
    memset(&key, 0, sizeof key);
    key.model = l;
    key.pool = wg_kv_view_of(seq[0].kv, l->target->lm.space, 0).pool;
    key.rows = n;
    key.spans = spans;
    return wg_graphs_find(&l->s->graphs, &key, first);
}

/* Sequences, page tables and the turn's own numbers, in one piece. */
static void send(wg_decode_loop *l, const wg_decode_loop_seq *seq, int n, int rounds)
{
    wg_gpu_decode_state *turn = (wg_gpu_decode_state *)(void *)l->host;
    wg_gpu_seq *to = (wg_gpu_seq *)(void *)(l->host + seq_at());
    int32_t *tables = (int32_t *)(void *)(l->host + tables_at(l));
    const wg_gpu_api *api = l->s->gpu.api;
    int used = 0;
    *turn = (wg_gpu_decode_state){ .rounds = rounds, .room = l->events, .first = l->number };
    for (int i = 0; i < n; i++) {
        const wg_decode_loop_seq *q = &seq[i];
        const wg_kv_view view = wg_kv_view_of(q->kv, l->target->lm.space, 0);
        const int slots = wg_kv_len(q->kv) + wg_kv_tail(q->kv), pages = (slots + view.page_slots - 1) / view.page_slots;
        to[i] = (wg_gpu_seq){ .seed = q->seed,
                              .request = q->request,
                              .running = 1,
                              .n = q->n,
                              .limit = q->limit,
                              .last = q->token[q->n - 1],
                              .before = q->n > 1 ? q->token[q->n - 2] : 0,
                              .table = used,
                              .seen = l->draft ? wg_kv_valid(q->kv, l->draft->lm.space) : INT32_MAX };
        if (l->text) api->put(&l->s->gpu, l->text + l->longest * (size_t)i, q->token, (size_t)q->n * sizeof *q->token);
        memcpy(tables + used, view.page, (size_t)pages * sizeof *tables);
        used += pages;
        l->n[i] = q->n;
        l->seen[i] = to[i].seen;
    }
    l->ring->stop = 0;
    api->put(&l->s->gpu, l->device, l->host, tables_at(l) + (size_t)used * sizeof *tables);
}

static void count(wg_decode_loop *l, const wg_gpu_event *e)
{
    wg_lm *target = &l->target->lm;
    target->rows += e->drafted + 1;
    if (l->draft) l->draft->lm.rows += e->drafted + (e->drafted > 0 && l->seen[e->seq] < l->n[e->seq] - 1);
    l->n[e->seq] = e->n;
    l->seen[e->seq] = e->seen;
}

/* Passes events on in the order of their numbers until the device has ended. Returns the number of rounds that count. */
static int drain_events(wg_decode_loop *l, wg_decode_loop_fn *on_event, void *user)
{
    wg_cuda *s = l->s;
    int at = 0, last = -1;
    bool stopped = false, over = false;
    double draft = 0;
    for (;;) {
        const wg_gpu_event *e = &l->ring->event[at];
        if (at < l->events && __atomic_load_n(&e->number, __ATOMIC_ACQUIRE) == l->number + (uint32_t)at) {
            at++;
            if (stopped && e->round > last) continue;
            if (e->round > last) draft += e->draft_ns * 1e-9;
            last = e->round;
            count(l, e);
            if (on_event(user, e) || stopped) continue;
            stopped = true;
            __atomic_store_n(&l->ring->stop, 1, __ATOMIC_RELEASE);
        } else if (over) break;
        else over = s->gpu.api->idle(&s->gpu); /* then once more through the ring */
    }
    l->number += (uint32_t)at;
    l->times.draft += draft;
    if (l->draft) l->draft->lm.seconds += draft;
    return last + 1;
}

/* Commits the slots of the text so far; chains are already in place. */
static void keep(const wg_decode_loop *l, const wg_decode_loop_seq *q, int n, int seen)
{
    for (int slot = q->n - 1; slot < n - 1; slot++) wg_kv_wrote(q->kv, l->target->lm.space, slot);
    if (l->draft) {
        const int space = l->draft->lm.space;
        wg_assert(seen < n);
        for (int slot = wg_kv_valid(q->kv, space); slot < seen; slot++) wg_kv_wrote(q->kv, space, slot);
    }
    wg_kv_commit_chain(q->kv, n - q->n);
}

static void note_times(wg_decode_loop *l, double since, int rounds, double drafted_before)
{
    const double all = wg_clock_now() - since;
    l->times.all += all;
    l->target->lm.seconds += all - (l->times.draft - drafted_before);
    l->target->lm.passes += rounds;
    if (l->draft) l->draft->lm.passes += (long)rounds * l->o.draft.length;
}

/* Pages for the window, and nothing under way on the draft's own stream: pages are copied there. */
static wg_status get_ready(wg_decode_loop *l, const wg_decode_loop_seq *seq, int n, int *rounds, wg_error *err)
{
    char why[WG_GPU_WHY];
    WG_TRY(reserve(l, seq, n, rounds, err));
    if (!l->d || l->d->gpu.api->wait(&l->d->gpu, why) == 0) return WG_OK;
    return wg_fail(err, WG_EIO, "%s (%s): %s", l->s->name, l->s->gpu.card, why);
}

wg_status wg_decode_loop_run(wg_decode_loop *l, const wg_decode_loop_seq *seq, int n, int rounds, wg_decode_loop_fn *on_event,
                             void *user, int *ran, wg_error *err)
{
    wg_cuda *s = l->s;
    const double since = wg_clock_now(), drafted = l->times.draft;
    char why[WG_GPU_WHY];
    *ran = 0;
    wg_assert(wg_decode_loop_fits(l, seq, n));
    if (rounds > l->rounds) rounds = l->rounds;
    if (rounds > rounds_within(l, seq, n)) rounds = rounds_within(l, seq, n);
    const wg_status status = get_ready(l, seq, n, &rounds, err);
    if (status) {
        for (int i = 0; i < n; i++) wg_kv_rollback(seq[i].kv);
        return status;
    }
    bool first;
    const int spans = wg_graph_spans(longest(seq, n));
    wg_graph *graph = graph_of(l, seq, n, spans, &first);
    send(l, seq, n, first ? 1 : rounds);
    if (start(l, seq, n, spans * WG_GPU_SPAN, graph, first)) *ran = drain_events(l, on_event, user);
    s->made.looped += *ran;
    for (int i = 0; i < n; i++) keep(l, &seq[i], l->n[i], l->seen[i]);
    note_times(l, since, *ran, drafted);
    if (s->gpu.api->wait(&s->gpu, why)) return wg_fail(err, WG_EIO, "%s (%s): %s", s->name, s->gpu.card, why);
    return WG_OK;
}
