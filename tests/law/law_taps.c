/* SPDX-License-Identifier: MIT
 * The Prefix Law for the hidden states that drafters read: a row that a feed (core/engine/tap_feed.h) hands to its reader has
 * the bits of this row in a plain prefill of the same prefix, whatever the steps were.
 *
 * Each case draws a small model (random_model.h), a type and page size of the cache, a thread count, a chunk of prefill and
 * places in the batch; a drafter with two feeds of random lists of taps (one reads every row, one the latest few), alone or
 * twice in a composite; and half of the time a recorder beside it. The drafter proposes random trees and probes, and reads all,
 * some or none of the rows that wait. The rule walks a random path through the tree (or, in every fourth case, it is `match`,
 * which a device runs). Texts end anywhere, go on with a question, or leave their place to another; steps and prefills fail
 * and are made again. Every row read is compared by memcmp, its position with what was read before; and in the end every
 * position of every text was read.
 *
 * The last case is a cascade: the drafter reads the middle model, whose text goes back with every rejected token.
 *
 *     law_taps [--seed S] [--cases N] [--case K] [--device D]      K: only that case */
#include "core/engine/tap_feed.h"

#include <stdarg.h>

#include "core/base/clock.h"
#include "core/model/taps.h"
#include "tests/law/random_model.h"
#include "tests/law/synth_models.h"

enum { CASES = 120, LONGEST = 5 * WG_TREE_MAX, SEQS = 3, REQUESTS = 6, THREADS = 3, PASS = 32, READERS = 8 };

static struct {
    uint64_t seed, rng;
    int number;
    const char *device, *setting;
    bool fails; /* steps and prefills fail now and then */
    bool brief; /* few and short texts: an emulated device takes long */
    long rows, rewound, failures, absorbed;
} now = { .device = "cpu" };

static uint32_t rnd(uint32_t n) { return random_below(&now.rng, n); }

_Noreturn __attribute__((format(printf, 1, 2))) static void failed(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "law_taps: FAILED in case %d (%s): ", now.number, now.setting);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\nreproduce: law_taps --seed %llu --case %d --device %s\n", (unsigned long long)now.seed, now.number,
            now.device);
    va_end(ap);
    exit(1);
}

static void must(wg_status s, const wg_error *err)
{
    if (s != WG_OK) failed("%s", err->text);
}

/* ---- plain prefill */

/* Rows of all taps, of the text of each place in the batch. */
typedef struct plain {
    wg_device device;
    wg_model *model;
    wg_kv *kv;
    wg_batch batch;
    wg_taps *taps;
    size_t floats; /* of a row */
    struct {
        wg_kv_seq *kv;
        int32_t token[LONGEST];
        float *row; /* (LONGEST, taps, dim) */
    } text[SEQS];
} plain;

static void plain_open(plain *p, const wg_weights *w, const char *device, int cache)
{
    wg_error err;
    int tap[WG_TAPS_MOST];
    const wg_model_options opt = { .kv_type = cache };
    must(wg_device_open(&p->device, device, NULL, &err), &err);
    must(wg_model_open(&p->model, w, &p->device, &opt, &err), &err);
    must(wg_kv_open(&p->kv, 16, SEQS * (LONGEST / 16 + 2), LONGEST, &err), &err);
    must(wg_lm_attach(wg_model_lm(p->model), p->kv, &err), &err);
    must(wg_batch_open(&p->batch, PASS, &err), &err);
    const int all = wg_model_arch(p->model)->layers + 2;
    for (int i = 0; i < all; i++) tap[i] = i;
    must(wg_taps_open(&p->taps, wg_model_lm(p->model), tap, all, &err), &err);
    p->floats = (size_t)all * (size_t)wg_taps_dim(p->taps);
    for (int i = 0; i < SEQS; i++) {
        must(wg_kv_seq_open(p->kv, &p->text[i].kv, &err), &err);
        p->text[i].row = malloc(LONGEST * p->floats * sizeof(float));
    }
}

static void plain_close(plain *p)
{
    for (int i = 0; i < SEQS; i++) {
        wg_kv_seq_close(p->text[i].kv);
        free(p->text[i].row);
    }
    wg_taps_close(p->taps);
    wg_batch_close(&p->batch);
    wg_kv_close(p->kv);
    wg_model_close(p->model);
    wg_device_close(&p->device);
}

/* The rows of the first n tokens of a text. */
static const float *plain_rows(plain *p, int place, const int32_t *token, int n)
{
    wg_error err;
    wg_kv_seq *kv = p->text[place].kv;
    int32_t *have = p->text[place].token;
    int same = 0;
    while (same < wg_kv_len(kv) && same < n && have[same] == token[same]) same++;
    if (same < n && same < wg_kv_len(kv)) wg_kv_truncate(kv, same);
    for (int at; (at = wg_kv_len(kv)) < n;) {
        const int rows = n - at < PASS ? n - at : PASS;
        must(wg_kv_reserve(kv, rows, &err), &err);
        wg_batch_clear(&p->batch);
        wg_batch_chain(&p->batch, kv, at, token + at, rows, 0);
        p->batch.taps = p->taps;
        must(wg_lm_forward(wg_model_lm(p->model), &p->batch, NULL, &err), &err);
        must(wg_taps_read(p->taps, 0, rows, p->text[place].row + (size_t)at * p->floats, &err), &err);
        wg_kv_commit_chain(kv, rows);
        memcpy(have + at, token + at, (size_t)rows * sizeof *have);
    }
    return p->text[place].row;
}

/* ---- readers */

typedef struct reading {
    wg_tap_feed *feed;
    plain *plain;
    int tap[WG_TAPS_MOST], n, latest;
    uint32_t request[SEQS]; /* whose rows it has read, and up to which position; -1: it was told to forget them */
    int next[SEQS];
} reading;

static struct {
    reading *at[READERS]; /* those of the current case that read every row of the target */
    int n;
    plain target, middle; /* of the cascade */
    const wg_lm *lm;      /* the target's */
} world;

static wg_status absorb(void *user, const wg_seq *s, wg_error *err);

/* A random list of the model's taps. */
static void reading_open(reading *r, wg_tap_feeds *feeds, int latest)
{
    wg_error err;
    int tap[WG_TAPS_MOST];
    const int all = wg_model_arch(wg_lm_transformer(feeds->target))->layers + 2;
    *r = (reading){ .plain = feeds->target == world.lm ? &world.target : &world.middle, .latest = latest };
    r->n = 1 + (int)rnd((uint32_t)all);
    for (int i = 0; i < all; i++) tap[i] = i;
    for (int i = 0; i < r->n; i++) {
        const int k = i + (int)rnd((uint32_t)(all - i));
        r->tap[i] = tap[k];
        tap[k] = tap[i];
    }
    for (int i = 0; i < SEQS; i++) r->request[i] = UINT32_MAX;
    const wg_tap_reader reader = { .tap = r->tap, .n = r->n, .latest = latest, .absorb = latest ? NULL : absorb, .user = r };
    must(wg_tap_feed_open(&r->feed, feeds, &reader, &err), &err);
    if (!latest && r->plain == &world.target) world.at[world.n++] = r;
}

/* Row i of those that wait is the one of plain prefill. */
static void compare(const reading *r, const wg_seq *s, int i)
{
    wg_error err;
    const int position = wg_tap_feed_first(r->feed, s) + i;
    const size_t dim = (size_t)wg_tap_feed_dim(r->feed);
    const float *want = plain_rows(r->plain, s->slot, s->token, position + 1) + (size_t)position * r->plain->floats;
    float *got = malloc((size_t)r->n * dim * sizeof *got);
    must(wg_tap_feed_read(r->feed, s, i, 1, got, &err), &err);
    for (int k = 0; k < r->n; k++)
        if (memcmp(got + (size_t)k * dim, want + (size_t)r->tap[k] * dim, dim * sizeof *got) != 0)
            failed("request %u, position %d of %d: tap %d is not that of plain prefill", (unsigned)s->request, position, s->n,
                   r->tap[k]);
    free(got);
    now.rows++;
}

/* Compares the n oldest rows, which begin where it stopped reading, and drops them if it reads all. */
static void read_rows(reading *r, const wg_seq *s, int n)
{
    const int first = wg_tap_feed_first(r->feed, s);
    for (int i = 0; i < n; i++) compare(r, s, i);
    if (r->latest) return;
    if (r->request[s->slot] != s->request) r->next[s->slot] = 0;
    const int next = r->next[s->slot];
    if (next >= 0 && (first > next || (first < next && !now.fails)))
        failed("request %u: rows from %d on wait, and %d were read", (unsigned)s->request, first, next);
    now.rewound += first < next;
    r->request[s->slot] = s->request;
    r->next[s->slot] = first + n;
    wg_tap_feed_drop(r->feed, s, n);
}

static void check_end(const reading *r, const wg_seq *s)
{
    const int first = wg_tap_feed_first(r->feed, s), rows = wg_tap_feed_rows(r->feed, s), len = wg_kv_len(s->kv);
    if (first + rows != len || len != s->n - 1)
        failed("request %u: rows %d + %d wait, %d tokens are cached, %d in the text", (unsigned)s->request, first, rows, len,
               s->n);
    if (r->latest && r->plain == &world.target && (rows > r->latest || (len > 0 && rows == 0)))
        failed("request %u: %d of the latest %d rows wait, of %d", (unsigned)s->request, rows, r->latest, len);
}

static wg_status stumble(uint32_t in, wg_error *err)
{
    if (!now.fails || rnd(in) != 0) return WG_OK;
    now.failures++;
    return wg_fail(err, WG_EIO, "on purpose");
}

/* Part of the rows must go, all may. */
static wg_status absorb(void *user, const wg_seq *s, wg_error *err)
{
    reading *r = user;
    const int rows = wg_tap_feed_rows(r->feed, s), left = (int)rnd(WG_TREE_MAX + 1);
    if (wg_tap_feed_first(r->feed, s) + rows > s->n - 1)
        failed("request %u: %d rows of %d tokens", (unsigned)s->request, rows, s->n);
    now.absorbed++;
    WG_TRY(stumble(12, err));
    read_rows(r, s, rows - (left < rows ? left : 0));
    return stumble(12, err);
}

/* ---- a drafter */

typedef struct reader {
    wg_drafter base;
    reading all, last;
} reader;

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    reader *r = (reader *)d;
    (void)err;
    reading_open(&r->all, env->feeds, 0);
    reading_open(&r->last, env->feeds, 1 + (int)rnd(5));
    return WG_OK;
}

static void grow(wg_tree *t, int vocab)
{
    const int style = (int)rnd(3), nodes = 1 + (int)rnd(WG_TREE_MAX > 12 && rnd(8) ? 12 : WG_TREE_MAX);
    while (t->n < nodes) {
        const int parent = style == 0 ? t->n - 1 : (int)rnd((uint32_t)t->n);
        int32_t token = (int32_t)rnd((uint32_t)vocab);
        while (wg_tree_find(t, parent, token) >= 0) token = (token + 1) % vocab;
        wg_tree_push(t, parent, token, -1);
    }
    for (int i = rnd(3) ? 0 : (int)rnd(6); i > 0; i--)
        wg_tree_probe(t, (int)rnd((uint32_t)wg_tree_rows(t)), (int32_t)rnd((uint32_t)vocab));
    t->score = rnd(4);
}

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    reader *r = (reader *)d;
    (void)q;
    for (int i = 0; i < n; i++) {
        const int rows = wg_tap_feed_rows(r->all.feed, seq[i]);
        check_end(&r->all, seq[i]);
        check_end(&r->last, seq[i]);
        if (rnd(3)) read_rows(&r->all, seq[i], rnd(3) ? rows : (int)rnd((uint32_t)rows + 1));
        read_rows(&r->last, seq[i], wg_tap_feed_rows(r->last.feed, seq[i]));
        WG_TRY(stumble(16, err));
        wg_tree_reset(&out[i], out[i].token[0], WG_LAW_FIXED);
        grow(&out[i], d->env->target->vocab);
    }
    return WG_OK;
}

static void observe(wg_drafter *d, const wg_seq *s, const wg_tree *t, const wg_path *path, wg_rows *target)
{
    const reader *r = (const reader *)d;
    (void)t, (void)path, (void)target;
    check_end(&r->all, s);
    check_end(&r->last, s);
}

static void forget(wg_drafter *d, const wg_seq *s) { ((reader *)d)->all.next[s->slot] = -1; }

static const wg_drafter_class reader_class = { .name = "reader",
                                               .size = sizeof(reader),
                                               .laws = WG_LAW_FIXED,
                                               .open = open,
                                               .propose = propose,
                                               .observe = observe,
                                               .forget = forget };

/* ---- a rule: a random path, a random token */

static void wander(const void *opt, const wg_tree *t, wg_rows *p, wg_rows *q, const wg_chance *c, wg_workspace *work,
                   wg_path *out)
{
    (void)opt, (void)q, (void)c, (void)work;
    *out = (wg_path){ .n = 1, .next = (int32_t)rnd((uint32_t)p->vocab) };
    for (int node = 0; rnd(4) != 0;) {
        int child = wg_tree_child(t, node, node);
        if (child < 0) return;
        for (int other; rnd(2) && (other = wg_tree_child(t, node, child)) >= 0;) child = other;
        out->node[out->n++] = (int16_t)(node = child);
    }
}

static const wg_verifier_class wander_class = { .name = "wander", .laws = WG_LAWS, .accept = wander };

/* ---- an engine and its requests */

static bool ends(const void *user, int32_t token) { return (void)user, token == 5; }

static wg_engine *engine_open(const law_model *target, const char *drafter, const char *options, int batch)
{
    static const wg_drafter_class *const drafters[] = { &reader_class, &wg_drafter_hybrid, &wg_drafter_best_of,
                                                        &wg_drafter_cascade, NULL };
    static const wg_plugins plugins = { drafters, wg_verifiers };
    wg_error err;
    wg_engine *e;
    wg_engine_parts parts = { .target = target->lm,
                              .pool = target->pool,
                              .ops = target->ops,
                              .tokenizer = target->tokenizer,
                              .is_eog = rnd(2) ? ends : NULL,
                              .verifier = &wander_class,
                              .plugins = &plugins };
    if (now.number % 4 == 3) must(wg_find_verifier(&plugins, "match", &parts.verifier, &err), &err);
    must(wg_find_drafter(&plugins, drafter, &parts.drafter, &err), &err);
    void *set = law_options(parts.drafter, options);
    parts.drafter_options = parts.drafter->options ? set : NULL;
    const wg_engine_options o = { .max_batch = batch,
                                  .max_tokens = LONGEST - WG_TREE_MAX,
                                  .page_slots = 1 + (int)rnd(rnd(2) ? 8 : 64),
                                  .prefill_rows = 1 + (int)rnd(rnd(2) ? 8 : 100),
                                  .seed = now.rng,
                                  .sampling = WG_SAMPLING(1, 0, 1, 0) };
    must(wg_engine_open(&e, &parts, &o, &err), &err);
    wg_free(set);
    return e;
}

static int question(int32_t *token, int most, int vocab)
{
    const int n = 1 + (int)rnd((uint32_t)(most > 20 && (now.brief || rnd(3)) ? 20 : most));
    for (int i = 0; i < n; i++) token[i] = (int32_t)rnd((uint32_t)vocab);
    return n;
}

/* All rows of a finished text have been read when the rest is. Then it goes on, or is closed: false. */
static bool goes_on(wg_engine *e, wg_seq *s)
{
    wg_error err;
    int32_t token[LONGEST];
    for (int i = 0; i < world.n; i++) {
        reading *r = world.at[i];
        check_end(r, s);
        read_rows(r, s, wg_tap_feed_rows(r->feed, s));
    }
    const int room = wg_engine_options_of(e)->max_tokens - s->n - 1;
    if (room < 1 || rnd(now.brief ? 5 : 2)) {
        wg_seq_close(e, s);
        return false;
    }
    must(wg_seq_extend(e, s, token, question(token, room, wg_engine_target(e)->vocab), 1 + (int)rnd(30), &err), &err);
    return true;
}

static void run_requests(wg_engine *e)
{
    wg_error err;
    wg_seq *seq[SEQS];
    int32_t token[LONGEST];
    const int requests = now.brief ? REQUESTS / 2 : REQUESTS, places = wg_engine_options_of(e)->max_batch,
              longest = wg_engine_options_of(e)->max_tokens;
    for (int n = 0, next = 0; n > 0 || next < requests;) {
        for (; n < places && next < requests; n++, next++) {
            const int prompt = question(token, longest - 1, wg_engine_target(e)->vocab);
            must(wg_seq_open(e, &seq[n], (uint32_t)next, token, prompt, 1 + (int)rnd(now.brief ? 15 : 40), &err), &err);
        }
        const wg_status s = rnd(2) ? wg_engine_step(e, seq, n, &err) : wg_engine_rounds(e, seq, n, 2, NULL, NULL, &err);
        if (s != WG_EIO) must(s, &err);
        must(wg_kv_check(wg_engine_kv(e), &err), &err);
        for (int i = n - 1; i >= 0; i--)
            if (seq[i]->finish != WG_RUNNING && !goes_on(e, seq[i])) seq[i] = seq[--n];
    }
}

/* ---- cases */

static void run_case(int number, wg_pool *const *pool)
{
    static const struct {
        const char *drafter, *options;
    } settings[] = {
        { "reader", "" }, { "reader", "" }, { "hybrid", "first=reader,second=reader" }, { "best_of", "of=reader|reader" }
    };
    static const int caches[] = { WG_F32, WG_F16, WG_BF16, WG_KV_Q8 }; /* the last on the CPU only */
    wg_error err;
    wg_weights *file;
    reading recorder;
    char path[64], same[40];
    now.number = number;
    now.rng = tiny_mix(now.seed ^ (uint64_t)number * 0xD1342543DE82EF95ull);
    const tiny shape = random_model(&now.rng, LONGEST, false);
    const bool on_cpu = strcmp(now.device, "cpu") == 0;
    const int threads = 1 + (int)rnd(THREADS), cache = caches[rnd(on_cpu ? 4 : 3)], set = (int)rnd(4);
    now.setting = settings[set].drafter;
    now.fails = rnd(3) == 0;
    must(tiny_open(&shape, &file, path, &err), &err);
    law_model target = { .ops = wg_ops_for(wg_cpu_best()), .pool = pool[threads - 1] };
    wg_device device;
    const wg_model_options opt = { .kv_type = cache, .max_rows = 128 + SEQS * WG_TREE_MAX };
    must(wg_device_open(&device, now.device, target.pool, &err), &err);
    device.small = rnd(2) ? 1 << 14 : 0;
    must(wg_model_open(&target.model, file, &device, &opt, &err), &err);
    wg_device_close(&device);
    world.lm = target.lm = wg_model_lm(target.model);
    world.n = 0;
    snprintf(same, sizeof same, "%s%s", now.device, strcmp(now.device, "cuda:0") == 0 ? "/eager" : "");
    plain_open(&world.target, file, strstr(now.device, "/exact") ? "cpu" : same, cache);
    wg_engine *e = engine_open(&target, settings[set].drafter, settings[set].options, 1 + (int)rnd(SEQS));
    if (rnd(2)) reading_open(&recorder, wg_engine_feeds(e), 0);
    run_requests(e);
    wg_engine_close(e);
    plain_close(&world.target);
    wg_model_close(target.model);
    wg_weights_close(file);
}

/* The inner engine of a cascade, over a middle model. */
static void run_cascade(int number)
{
    law_model target, middle;
    char options[512];
    now.number = number;
    now.setting = "cascade";
    now.rng = tiny_mix(now.seed);
    now.fails = false;
    const law_files files = law_models_write((wg_synth_shape){
        .name = "target", .layers = 2, .dim = 32, .heads = 2, .kv_heads = 2, .hidden = 48, .vocab = 320, .context = LONGEST });
    law_model_open(&target, files.target, 1, wg_cpu_chosen(), WG_F16);
    law_model_open(&middle, files.near, 1, wg_cpu_chosen(), WG_F16);
    world.lm = target.lm;
    world.n = 0;
    plain_open(&world.middle, middle.file, "cpu", WG_F16);
    snprintf(options, sizeof options, "model=%s,inner=reader,length=6", files.near);
    wg_engine *e = engine_open(&target, "cascade", options, SEQS);
    const long rows = now.rows;
    run_requests(e);
    if (now.rows - rows < 100) failed("only %ld rows of the middle model were compared", now.rows - rows);
    wg_engine_close(e);
    plain_close(&world.middle);
    law_model_close(&middle);
    law_model_close(&target);
}

int main(int argc, char **argv)
{
    int cases = CASES, only = -1;
    wg_error err;
    wg_pool *pool[THREADS] = { NULL };
    now.seed = 20261123;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--seed") == 0) now.seed = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--cases") == 0) cases = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--case") == 0) only = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--device") == 0) now.device = argv[i + 1];
    }
    now.brief = strcmp(now.device, "cpu") != 0;
    for (int i = 1; i < THREADS; i++) must(wg_pool_open(&pool[i], i + 1, &err), &err);
    const double start = wg_clock_now();
    for (int i = only < 0 ? 0 : only; i < (only < 0 ? cases : only + 1); i++)
        if (i < cases || only >= 0) run_case(i, pool);
    if (only < 0 && strcmp(now.device, "cpu") == 0) run_cascade(cases);
    for (int i = 1; i < THREADS; i++) wg_pool_close(pool[i]);
    printf(
        "law_taps: %d cases from seed %llu: %ld rows equal to plain prefill bit for bit, %ld failures, %ld times read again, "
        "%ld absorbed, %.1f s\n",
        only >= 0 ? 1 : cases, (unsigned long long)now.seed, now.rows, now.failures, now.rewound, now.absorbed,
        wg_clock_now() - start);
    if (only < 0 && now.rows < (now.brief ? 30 : 100) * cases) failed("only %ld rows were compared", now.rows);
    if (only < 0 && cases >= 60 && (!now.rewound || !now.absorbed)) failed("nothing was read again, or absorbed");
    return 0;
}
