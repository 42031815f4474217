/* SPDX-License-Identifier: MIT
 * Device decode against steps of the host on the same device: texts, counts, events after each round, valid lengths, and
 * every byte of the pages. Windows of few rounds, a ring smaller than a text, texts that end in the middle, sequences that
 * end while others continue. A position that is off by one may not change the text; here it changes a byte. */
#include "core/engine/device_decode.h"
#include "core/engine/engine_impl.h"

#include "core/engine/build.h"
#include "core/model/model.h"
#include "draft/draft.h"
#include "tests/simt/simt_check.h"
#include "tests/unit/model/tiny_model.h"
#include "verify/verify.h"

enum { VOCAB = 40, CONTEXT = 96, BATCH = 3, SPACES = 2, LAYERS = 2, ROW = 32 };

static wg_error err;
static char draft_path[64];
static int attention_window; /* of models from now on; 0: none */

static tiny shape_of(int layers, int context)
{
    return (tiny){ .layers = layers,
                   .dim = 32,
                   .heads = 2,
                   .kv_heads = 1,
                   .head_dim = 16,
                   .hidden = 48,
                   .vocab = VOCAB,
                   .context = context,
                   .type = { WG_F16, WG_F16, WG_F16, WG_F16 },
                   .norm_type = WG_F32,
                   .window = attention_window,
                   .seed = 3 };
}

/* The draft is the target without its second layer, which agrees with it often, up to some length. */
static void write_models(void)
{
    const tiny shape = shape_of(LAYERS - 1, CONTEXT / 2);
    snprintf(draft_path, sizeof draft_path, "/tmp/wg-loop-%d.gguf", (int)getpid());
    cr_assert_eq(tiny_write(&shape, draft_path, &err), WG_OK, "%s", err.text);
}

static void remove_models(void) { unlink(draft_path); }

TestSuite(gpu_decode, .init = write_models, .fini = remove_models);

/* ---- one way to decode */

typedef struct way {
    const char *rule, *drafter, *options; /* beside the model's file */
    wg_sampling sampling;
    int batch, window, ring; /* 0: as they are */
    int prompt, most;        /* of the first sequence; the next have 1, 2 more tokens and 3, 6 fewer to add */
    int end;                 /* a token that ends a text; -1: none does */
    int pages, page_slots;   /* of the cache; 0: as they are */
    int again;               /* then the conversation goes on: so many more; 0: it does not */
    int quit;                /* on_round says no after so many tokens; 0: never */
    simt_order order;
} way;

typedef struct slot_bytes {
    uint16_t of[2 * LAYERS][ROW];
} slot_bytes;
typedef struct outcome {
    int32_t token[CONTEXT];
    int n, finish, len, valid[SPACES];
    wg_counts counts;
    slot_bytes kv[SPACES][CONTEXT];
    int reports; /* of on_round */
    unsigned report_sum;
} outcome;

static bool is_end(const void *user, int32_t token) { return token == *(const int *)user; }

/* The target runs on this device, in this mode. */
static const wg_gpu_api *api;
static unsigned mode;

static wg_engine *engine_of(const way *w, wg_weights **file, wg_model **m)
{
    static const wg_plugins plugins = { wg_drafters, wg_verifiers };
    wg_device device;
    wg_engine *e;
    char options[256], path[64];
    const tiny shape = shape_of(LAYERS, CONTEXT);
    const wg_model_options o = { .kv_type = WG_F16, .max_rows = 64 };
    const wg_engine_options opt = {
        .max_batch = BATCH, .seed = 11, .sampling = w->sampling, .pages = w->pages, .page_slots = w->page_slots
    };
    wg_engine_parts parts = {
        .ops = wg_ops_for(wg_cpu_chosen()), .rules = wg_verifiers, .plugins = &plugins, .is_eog = is_end, .is_eog_user = &w->end
    };
    cr_assert_eq(wg_device_cuda(&device, api, 0, mode, NULL, &err), WG_OK, "%s", err.text);
    cr_assert_eq(tiny_open(&shape, file, path, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_model_open(m, *file, &device, &o, &err), WG_OK, "%s", err.text);
    wg_device_close(&device);
    parts.target = wg_model_lm(*m);
    cr_assert_eq(wg_find_drafter(&plugins, w->drafter, &parts.drafter, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_find_verifier(&plugins, w->rule, &parts.verifier, &err), WG_OK, "%s", err.text);
    const wg_drafter_class *d = parts.drafter;
    char *set = wg_calloc(1, d->size);
    if (d->options) {
        wg_option_defaults(d->options, set);
        if (strcmp(w->drafter, "model")) snprintf(options, sizeof options, "%s", w->options);
        else snprintf(options, sizeof options, "model=%s,%s", draft_path, w->options);
        cr_assert_eq(wg_option_set_list(d->options, set, d->size - d->options_at, options, &err), WG_OK, "%s", err.text);
        parts.drafter_options = set;
    }
    cr_assert_eq(wg_engine_open(&e, &parts, &opt, &err), WG_OK, "%s", err.text);
    wg_free(set);
    if (e->device_decode && w->window) wg_device_decode_limit(e, w->window, w->ring);
    return e;
}

/* Keys and values of the committed slots of a sequence. */
/* A draft model without a device keeps its pages on the host. */
static void read_page(const way *w, int space, void *to, const char *at)
{
    if (space == 1 && !strstr(w->options, "device=")) memcpy(to, at, 32);
    else from_device(to, at, 32);
}

static void read_pages(const way *w, const wg_engine *e, const wg_seq *s, outcome *o)
{
    o->len = wg_kv_len(s->kv);
    for (int space = 0; space < wg_kv_spaces(wg_engine_kv(e)); space++) {
        o->valid[space] = wg_kv_valid(s->kv, space);
        for (int layer = 0; layer < LAYERS - space; layer++) {
            const wg_kv_view v = wg_kv_view_of(s->kv, space, layer);
            for (int i = 0; i < o->valid[space]; i++) {
                const char *at = v.pool + (size_t)v.page[i / v.page_slots] * v.stride + (size_t)(i % v.page_slots) * 32;
                read_page(w, space, o->kv[space][i].of[2 * layer], at);
                read_page(w, space, o->kv[space][i].of[2 * layer + 1], at + v.value_at);
            }
        }
    }
}

typedef struct listener {
    outcome *of;
    wg_seq *const *seq;
    int n, quit;
} listener;

/* What on_round sees after a round: the tokens so far, and the verified tree. */
static bool listen(void *user, const wg_seq *s, const wg_tree *verified)
{
    cr_assert_eq(verified->n, s->last_nodes);
    listener *l = user;
    int i = 0;
    while (l->seq[i] != s) i++;
    outcome *o = &l->of[i];
    o->reports++;
    for (int k = 0; k < l->n; k++) /* all in step */
        cr_assert(l->seq[k]->finish != WG_RUNNING || l->of[k].reports >= o->reports - 1);
    o->report_sum = o->report_sum * 31 + (unsigned)(s->n * 7 + s->last_nodes * 5 + s->last_emitted * 3 + s->token[s->n - 1]);
    return !l->quit || s->n < l->quit;
}

/* Steps of all that run, or rounds. */
static wg_status decode(wg_engine *e, bool rounds, listener *l)
{
    wg_seq *running[BATCH];
    if (rounds) return wg_engine_rounds(e, l->seq, l->n, 1000, listen, l, &err);
    for (bool wanted = true; wanted;) {
        int n = 0;
        for (int i = 0; i < l->n; i++)
            if (l->seq[i]->finish == WG_RUNNING) running[n++] = l->seq[i];
        if (n == 0) break;
        WG_TRY(wg_engine_step(e, running, n, &err));
        for (int i = 0; i < n; i++) wanted = listen(l, running[i], &e->tree[i]) && wanted;
    }
    return WG_OK;
}

static void open_all(const way *w, wg_engine *e, wg_seq **seq)
{
    for (int i = 0; i < w->batch; i++) {
        int32_t prompt[CONTEXT];
        for (int k = 0; k < w->prompt + i; k++) prompt[k] = 1 + (k * 7 + i * 11) % (VOCAB - 1);
        cr_assert_eq(wg_seq_open(e, &seq[i], (uint32_t)i, prompt, w->prompt + i, w->most - 3 * i, &err), WG_OK, "%s", err.text);
    }
}

/* Returns the replays of graphs; -1: there was no loop. */
static int run(const way *w, bool rounds, outcome *out)
{
    wg_weights *file;
    wg_model *m;
    wg_seq *seq[BATCH];
    if (!api) api = gpu()->api;
    wg_engine *e = engine_of(w, &file, &m);
    const long replays = simt_stats_read().replays;
    memset(out, 0, BATCH * sizeof *out);
    simt_order_set(w->order);
    open_all(w, e, seq);
    listener l = { out, seq, w->batch, w->quit };
    cr_assert_eq(decode(e, rounds, &l), WG_OK, "%s", err.text);
    for (int i = 0; i < w->batch && w->again; i++) {
        cr_assert_eq(wg_seq_extend(e, seq[i], (const int32_t[]){ 4, 9, 2, 30 }, 4, w->again, &err), WG_OK, "%s", err.text);
        out[i].reports = 0;
    }
    if (w->again) cr_assert_eq(decode(e, rounds, &l), WG_OK, "%s", err.text);
    const int looped = e->device_decode ? (int)(simt_stats_read().replays - replays) : -1;
    for (int i = 0; i < w->batch; i++) {
        const wg_seq *s = seq[i];
        out[i].n = s->n;
        out[i].finish = (int)s->finish;
        out[i].counts = s->counts;
        memcpy(out[i].token, s->token, (size_t)s->n * sizeof *s->token);
        read_pages(w, e, s, &out[i]);
        cr_assert_eq(out[i].len, s->n - 1);
    }
    cr_assert_eq(wg_kv_check(wg_engine_kv(e), &err), WG_OK, "%s", err.text);
    for (int i = 0; i < w->batch; i++) wg_seq_close(e, seq[i]);
    wg_engine_close(e);
    wg_model_close(m);
    wg_weights_close(file);
    cr_assert_eq(simt_stats_read().live, 0);
    return looped;
}

static void same(const way *w, const char *what, const outcome *want, const outcome *got)
{
    for (int i = 0; i < w->batch; i++) {
        const outcome *a = &want[i], *b = &got[i];
        cr_assert_eq(b->n, a->n, "%s, sequence %d: %d tokens, steps make %d", what, i, b->n, a->n);
        for (int k = 0; k < a->n; k++)
            cr_assert_eq(b->token[k], a->token[k], "%s, sequence %d: token %d is %d, not %d", what, i, k, b->token[k],
                         a->token[k]);
        cr_assert_eq(b->finish, a->finish, "%s, sequence %d", what, i);
        cr_assert_eq(memcmp(&b->counts, &a->counts, sizeof a->counts), 0,
                     "%s, sequence %d: %ld passes, %ld drafted, %ld accepted; steps: %ld, %ld, %ld", what, i, b->counts.passes,
                     b->counts.drafted, b->counts.accepted, a->counts.passes, a->counts.drafted, a->counts.accepted);
        cr_assert(b->reports == a->reports && b->report_sum == a->report_sum, "%s, sequence %d", what, i);
        for (int s = 0; s < SPACES; s++) {
            cr_assert_eq(b->valid[s], a->valid[s], "%s, sequence %d, space %d: %d slots, not %d", what, i, s, b->valid[s],
                         a->valid[s]);
            for (int k = 0; k < a->valid[s]; k++)
                cr_assert_eq(memcmp(&b->kv[s][k], &a->kv[s][k], sizeof a->kv[s][k]), 0,
                             "%s, sequence %d, space %d: slot %d has other keys or values", what, i, s, k);
        }
    }
}

static outcome want[BATCH], got[BATCH];

/* Most rounds ran several in a replay, where there is a window for them. */
static void check(const way *w, const char *what)
{
    run(w, false, want);
    const int replays = run(w, true, got);
    const long passes = want[0].counts.passes;
    cr_assert_geq(replays, 0, "%s: there was no loop", what);
    cr_assert(w->again || replays < passes, "%s: %d replays for %ld rounds", what, replays, passes);
    cr_assert(w->again || w->window || w->end >= 0 || 2 * replays < passes, "%s: %d replays for %ld rounds", what, replays,
              passes);
    same(w, what, want, got);
}

static void check_all(const way *w, int n, const char *what)
{
    long accepted = 0, drafted = 0;
    for (int i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s %d", what, i);
        check(&w[i], name);
        accepted += want[0].counts.accepted;
        drafted += want[0].counts.drafted;
    }
    if (drafted) cr_assert(accepted > 25 && 5 * accepted < 4 * drafted, "%ld of %ld", accepted, drafted);
}

#define GREEDY WG_SAMPLING(0, 0, 1, 0)
#define WARM WG_SAMPLING(1, 0, 1, 0)
#define CUT WG_SAMPLING(0.8, 20, 0.9, 0.01)

Test(gpu_decode, plain_decoding)
{
    static const way ways[] = {
        { "match", "none", "", GREEDY, .batch = 1, .prompt = 5, .most = 30, .end = -1 },
        { "match", "none", "", WARM, .batch = 3, .prompt = 1, .most = 20, .end = -1, .window = 4, .ring = 100 },
        { "match", "none", "", CUT, .batch = 3, .prompt = 4, .most = 24, .end = 9, .window = 9, .ring = 8 },
        { "greedy", "none", "", GREEDY, .batch = 2, .prompt = 9, .most = 200, .end = -1, .page_slots = 3, .pages = 80 },
    };
    check_all(ways, sizeof ways / sizeof *ways, "plain");
}

Test(gpu_decode, chains_of_a_model)
{
    static const way ways[] = {
        { "match", "model", "device=cuda:0,length=4", GREEDY, .batch = 1, .prompt = 5, .most = 40, .end = -1 },
        { "rejection", "model", "device=cuda:0,length=3,temperature=3", WARM, .batch = 3, .prompt = 3, .most = 30, .end = -1,
          .window = 5, .ring = 100, .order = SIMT_REVERSE },
        { "rejection", "model", "device=cuda:0,length=4,temperature=2", CUT, .batch = 3, .prompt = 2, .most = 30, .end = 9,
          .window = 7, .ring = 10, .order = SIMT_SHUFFLED },
        { "block", "model", "device=cuda:0,length=5,temperature=0", WARM, .batch = 2, .prompt = 6, .most = 33, .end = 5,
          .page_slots = 3, .pages = 100 },
        { "without_replacement", "model", "device=cuda:0,length=2,siblings=without_replacement,temperature=2", WARM, .batch = 2,
          .prompt = 1, .most = 21, .end = -1, .window = 2, .ring = 3 },
    };
    check_all(ways, sizeof ways / sizeof *ways, "chains");
}

Test(gpu_decode, conversations)
{
    static const way ways[] = {
        { "rejection", "model", "device=cuda:0,length=3", WARM, .batch = 2, .prompt = 3, .most = 12, .again = 9, .end = -1,
          .window = 4, .ring = 20 },
        { "match", "none", "", GREEDY, .batch = 1, .prompt = 3, .most = 12, .again = 20, .end = -1 },
    };
    for (int i = 0; i < 2; i++) check(&ways[i], "conversation");
}

/* The host makes the rounds of a text that is longer than the draft model's context: what it reads then begins elsewhere. */
Test(gpu_decode, beyond_the_context_of_the_draft)
{
    static const way w = { "rejection", "model",  "device=cuda:0,length=3", WARM, .batch = 2, .prompt = 30, .most = 30,
                           .again = 20, .end = -1 };
    check(&w, "beyond");
    cr_assert(want[0].n > CONTEXT / 2 && want[0].counts.without_draft[WG_NO_DRAFT_CONTEXT] == 0);
}

Test(gpu_decode, lookups)
{
    static const way ways[] = {
        { "match", "ngram", "k=6", GREEDY, .batch = 1, .prompt = 30, .most = 50, .end = -1 },
        { "rejection", "ngram", "k=3,n_max=2", CUT, .batch = 3, .prompt = 14, .most = 40, .end = 5, .window = 5, .ring = 7 },
        { "match", "ngram", "k=4,n_min=2,n_max=5", WG_SAMPLING(0.3, 0, 1, 0), .batch = 3, .prompt = 9, .most = 200, .end = -1,
          .order = SIMT_SHUFFLED },
    };
    check_all(ways, sizeof ways / sizeof *ways, "lookups");
}

/* on_round says no in the middle of a window: that round is the last that counts, and decoding can go on from there later. */
Test(gpu_decode, a_listener_that_has_heard_enough)
{
    way w = {
        "rejection", "model", "device=cuda:0,length=3,temperature=2", WARM, .batch = 2, .prompt = 4, .most = 40, .end = -1
    };
    for (w.quit = 12; w.quit < 30; w.quit += 9) {
        run(&w, false, want);
        cr_assert_geq(run(&w, true, got), 0);
        cr_assert(want[0].finish == WG_RUNNING && (want[0].n >= w.quit || want[1].n >= w.quit));
        same(&w, "heard enough", want, got);
    }
}

/* A cache with few pages: the window shrinks to what there is, and only then a step fails. */
Test(gpu_decode, few_pages)
{
    static const way w = { "match",    "model",   "device=cuda:0,length=3", GREEDY,      .batch = 2,   .prompt = 4,
                           .most = 30, .end = -1, .page_slots = 4,          .pages = 18, .window = 32, .ring = 96 };
    check(&w, "few pages");
}

Test(gpu_decode, who_has_none)
{
    way w = { "match", "model", "length=3", GREEDY, .batch = 1, .prompt = 4, .most = 12, .end = -1 };
    static const char *const no[] = { "length=3", "device=cuda:0/eager,length=3", "device=cuda:0,tree=2-1",
                                      "device=cuda:0,length=3,p_min=0.1", "device=cuda:0,length=3,policy=adaedl" };
    run(&w, false, want);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        w.options = no[i];
        cr_assert_eq(run(&w, true, got), -1, "%s has a loop", no[i]);
        cr_assert_arr_eq(got[0].token, want[0].token, sizeof got[0].token, "%s", no[i]);
    }
    mode = WG_CUDA_EAGER;
    w.drafter = "none", w.options = "";
    cr_assert_eq(run(&w, true, got), -1);
    mode = 0;
    cr_assert_geq(run(&w, true, got), 0);
    attention_window = 5;
    run(&w, false, want);
    cr_assert_eq(run(&w, true, got), -1, "attention over a window has a loop");
    cr_assert_arr_eq(got[0].token, want[0].token, sizeof got[0].token);
}

/* The end of a round of two sequences, by itself: the last round, a full ring, the host's stop, texts that end. */
Test(gpu_decode, whether_there_is_another_round)
{
    static const struct {
        int rounds, room, stop, limit, again;
    } cases[] = {
        { 9, 9, 0, 50, 1 }, { 2, 9, 0, 50, 1 }, { 1, 9, 0, 50, 0 }, { 9, 4, 0, 50, 1 },
        { 9, 3, 0, 50, 0 }, { 9, 9, 1, 50, 0 }, { 9, 9, 0, 8, 0 },
    };
    const wg_gpu_api *on = gpu()->api;
    const uint64_t ends = 0;
    const wg_rule_path path[2] = { { .n = 1, .next = 3 }, { .n = 1, .next = 4 } };
    const wg_rule_tree tree[2] = { { .n = 1, .token = { 1 } }, { .n = 1, .token = { 2 } } };
    char why[WG_GPU_WHY];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wg_gpu_decode_state turn = { .again = 7, .rounds = cases[i].rounds, .room = cases[i].room, .first = 5 };
        wg_gpu_seq seq[2];
        for (int k = 0; k < 2; k++) seq[k] = (wg_gpu_seq){ .running = 1, .n = 7, .limit = cases[i].limit, .last = 1 + k };
        void *there;
        wg_gpu_ring *ring = on->map(gpu(), sizeof *ring + sizeof ring->event, &there);
        wg_gpu_decode_loop l = { .sequences = 2,
                                 .state = to_device(&turn, sizeof turn),
                                 .seq = to_device(seq, sizeof seq),
                                 .tree = to_device(tree, sizeof tree),
                                 .path = to_device(path, sizeof path),
                                 .ends = to_device(&ends, sizeof ends),
                                 .ring = there };
        ring->stop = cases[i].stop;
        on->loop_end(gpu(), &l);
        cr_assert_eq(on->wait(gpu(), why), 0, "%s", why);
        from_device(&turn, l.state, sizeof turn);
        cr_assert_eq(turn.again, cases[i].again, "case %zu", i);
        cr_assert(turn.round == 1 && turn.events == 2);
        for (int k = 0; k < 2; k++) {
            const wg_gpu_event *e = &ring->event[k];
            cr_assert(e->number == 5 + (unsigned)k && e->seq == k && e->n == 8 && e->next == 3 + k && e->kept == 0);
        }
        on->unmap(gpu(), ring);
        device_free(l.state), device_free(l.seq), device_free(l.tree), device_free((void *)(uintptr_t)l.path);
        device_free((void *)(uintptr_t)l.ends);
    }
}

/* A greedy node from the head's largest logits by piece (wg_gpu_best): the largest, of equals the lowest token. -1 and -inf
 * give no node. Given pieces, the draw does not read the logits, which differ from them here; without pieces it reads them. */
Test(gpu_decode, a_greedy_node_is_the_largest_logit_of_the_head)
{
    enum { SEQUENCES = 4, V = 300 };
    static wg_gpu_best piece[SEQUENCES * WG_GPU_BESTS];
    static float logits[SEQUENCES * V];
    static const int largest[SEQUENCES] = { 17, 40, -1, -1 }, looked[SEQUENCES] = { 299, 5, 0, -1 };
    const wg_gpu_api *on = gpu()->api;
    const uint64_t ends = 0;
    wg_rule_tree tree[SEQUENCES];
    for (int i = 0; i < SEQUENCES * WG_GPU_BESTS; i++) piece[i] = (wg_gpu_best){ 99, -1 };
    piece[511] = (wg_gpu_best){ 2, 17 }, piece[3] = (wg_gpu_best){ 1, 4 };
    piece[WG_GPU_BESTS + 2] = (wg_gpu_best){ 0.0f, 80 }, piece[WG_GPU_BESTS + 300] = (wg_gpu_best){ -0.0f, 40 };
    piece[2 * WG_GPU_BESTS + 1] = (wg_gpu_best){ -INFINITY, 3 }; /* the last: none at all */
    for (int i = 0; i < SEQUENCES * V; i++) logits[i] = i / V == 3 ? -INFINITY : 0;
    logits[2 * V + 3] = -INFINITY, logits[299] = 1, logits[V + 5] = logits[V + 6] = 1, logits[V] = NAN;
    for (int pieces = 0; pieces < 2; pieces++) {
        wg_gpu_seq seq[SEQUENCES];
        for (int i = 0; i < SEQUENCES; i++) {
            seq[i] = (wg_gpu_seq){ .running = 1, .fed = 1 };
            tree[i] = (wg_rule_tree){ .n = 1, .token = { 1 } };
        }
        wg_gpu_decode_loop l = { .sequences = SEQUENCES,
                                 .length = 2,
                                 .law = WG_RULE_FIXED,
                                 .seq = to_device(seq, sizeof seq),
                                 .tree = to_device(tree, sizeof tree),
                                 .ends = to_device(&ends, sizeof ends) };
        float *x = to_device(logits, sizeof logits);
        wg_gpu_best *best = pieces ? to_device(piece, sizeof piece) : NULL;
        on->loop_draw(gpu(), &l, 0, V, x, best, NULL, NULL);
        from_device(tree, l.tree, sizeof tree);
        for (int i = 0; i < SEQUENCES; i++) {
            const int want_token = pieces ? largest[i] : looked[i];
            cr_assert_eq(tree[i].n, want_token < 0 ? 1 : 2, "sequence %d, pieces %d", i, pieces);
            if (want_token >= 0) cr_assert_eq(tree[i].token[1], want_token, "%d, pieces %d: %d", i, pieces, tree[i].token[1]);
        }
        device_free(l.seq), device_free(l.tree), device_free((void *)(uintptr_t)l.ends), device_free(x), device_free(best);
    }
}

/* ---- a runtime that fails where the test wants it to */

static struct {
    wg_gpu_api api;
    int loops, waits, fail_at;
    bool refuse;
} faulty;

static void *faulty_loop(wg_gpu *g, const int32_t *again, char why[WG_GPU_WHY])
{
    faulty.loops++;
    void *graph = gpu()->api->recorded_loop(g, again, why);
    if (!faulty.refuse) return graph;
    gpu()->api->forget(g, graph);
    strcpy(why, "no loops here");
    return NULL;
}

static int faulty_wait(wg_gpu *g, char why[WG_GPU_WHY])
{
    if (++faulty.waits != faulty.fail_at) return gpu()->api->wait(g, why);
    strcpy(why, "the card has fallen off the bus");
    return -1;
}

static void be_faulty(void)
{
    memset(&faulty, 0, sizeof faulty);
    faulty.api = *gpu()->api;
    faulty.api.recorded_loop = faulty_loop;
    faulty.api.wait = faulty_wait;
    api = &faulty.api;
}

Test(gpu_decode, what_cannot_be_recorded_is_stepped)
{
    static const way w = { "match", "none", "", WARM, .batch = 2, .prompt = 4, .most = 20, .end = -1 };
    run(&w, false, want);
    be_faulty();
    faulty.refuse = true;
    run(&w, true, got);
    cr_assert_eq(faulty.loops, 1); /* tried once */
    same(&w, "refused", want, got);
}

/* Rounds that were reported before the failure count; the sequence goes on from there. */
Test(gpu_decode, a_failed_loop_keeps_the_rounds_it_reported)
{
    static const way w = { "match", "none", "", WARM, .batch = 1, .prompt = 4, .most = 40, .end = -1, .window = 5, .ring = 9 };
    wg_weights *file;
    wg_model *m;
    wg_seq *seq[BATCH];
    run(&w, false, want);
    be_faulty();
    wg_engine *e = engine_of(&w, &file, &m);
    open_all(&w, e, seq);
    memset(got, 0, sizeof got);
    listener l = { got, seq, 1, 0 };
    cr_assert_eq(wg_engine_rounds(e, seq, 1, 3, listen, &l, &err), WG_OK, "%s", err.text); /* one by launches, then a loop */
    faulty.fail_at = faulty.waits + 1;
    cr_assert_eq(decode(e, true, &l), WG_EIO);
    cr_assert(strstr(err.text, "cuda:0 (emulated): the card has fallen off the bus"), "%s", err.text);
    cr_assert(got[0].reports > 3 && wg_kv_len(seq[0]->kv) == seq[0]->n - 1 && wg_kv_check(wg_engine_kv(e), &err) == WG_OK);
    const uint64_t calls = wg_mem_read().calls;
    const size_t live = simt_stats_read().live;
    cr_assert_eq(decode(e, true, &l), WG_OK, "%s", err.text);
    cr_assert(wg_mem_read().calls == calls && simt_stats_read().live == live); /* rounds take no memory */
    cr_assert(seq[0]->n == want[0].n && memcmp(seq[0]->token, want[0].token, (size_t)want[0].n * 4) == 0);
    cr_assert_eq(memcmp(&seq[0]->counts, &want[0].counts, sizeof want[0].counts), 0);
    wg_seq_close(e, seq[0]);
    wg_engine_close(e);
    wg_model_close(m);
    wg_weights_close(file);
    cr_assert_eq(simt_stats_read().live, 0);
}
