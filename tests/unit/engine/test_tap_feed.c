/* SPDX-License-Identifier: MIT
 * Feeds of hidden states: which rows enter, at which positions; readers of several lists; the latest rows; absorbing, rewinding
 * and closing; what is refused. law_taps compares the bits over random models and steps. */
#include "core/engine/tap_feed.h"

#include "core/model/model.h"
#include "core/model/taps.h"
#include "tests/unit/engine/bench.h"
#include "tests/unit/model/tiny_model.h"

enum { LAYERS = 3, DIM = 32, VOCAB = 30, LONGEST = 800, LISTS = 3 };

static wg_error err;
static void must(wg_status s) { cr_assert(s == WG_OK, "%s", err.text); }

/* ---- a drafter that opens feeds and proposes one tree: 0 - 1 - 3, 0 - 2; a rule that accepts one path of it */

static struct {
    wg_tap_reader reader[LISTS];
    int readers;
    wg_tap_feed *feed[LISTS];
    int absorbs, drops, fail_at; /* calls of absorb; rows that one drops (-1: all); the call that fails */
    int first, rows, len;        /* of the first feed and of the cache, in the last call */
    bool fails;                  /* the next proposal */
    wg_path path;
} t;

static wg_status absorb(void *user, const wg_seq *seq, wg_error *e)
{
    wg_tap_feed *f = t.feed[*(const int *)user];
    const int rows = wg_tap_feed_rows(f, seq);
    t.first = wg_tap_feed_first(f, seq);
    t.rows = rows;
    t.len = wg_kv_len(seq->kv);
    wg_tap_feed_drop(f, seq, t.drops < 0 ? rows : t.drops);
    if (++t.absorbs == t.fail_at) return wg_fail(e, WG_EIO, "a reader fell over");
    return WG_OK;
}

static wg_status listener_open(wg_drafter *d, const wg_env *env, wg_error *e)
{
    (void)d;
    for (int i = 0; i < t.readers; i++) WG_TRY(wg_tap_feed_open(&t.feed[i], env->feeds, &t.reader[i], e));
    return WG_OK;
}

static wg_status listener_propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *e)
{
    (void)d, (void)q, (void)seq;
    if (t.fails) return wg_fail(e, WG_EIO, "no draft");
    for (int i = 0; i < n; i++) {
        wg_tree_reset(&out[i], out[i].token[0], WG_LAW_FIXED);
        wg_tree_push(&out[i], 0, 11, -1);
        wg_tree_push(&out[i], 0, 12, -1);
        wg_tree_push(&out[i], 1, 13, -1);
        wg_tree_probe(&out[i], 0, 14);
    }
    return WG_OK;
}

static const wg_drafter_class listener_class = {
    .name = "listener", .size = sizeof(wg_drafter), .laws = WG_LAW_FIXED, .open = listener_open, .propose = listener_propose
};

static void pick(const void *opt, const wg_tree *tree, wg_rows *p, wg_rows *q, const wg_chance *c, wg_workspace *w,
                 wg_path *out)
{
    (void)opt, (void)tree, (void)p, (void)q, (void)c, (void)w;
    *out = t.path;
}

static const wg_verifier_class pick_class = { .name = "pick", .laws = WG_LAWS, .accept = pick };

/* ---- a transformer, its engine, and plain prefill by another one */

typedef struct stage {
    wg_weights *file;
    wg_device device;
    wg_model *model, *other;
    wg_engine *e;
} stage;

static wg_status stage_open(stage *s, int batch, int prefill_rows)
{
    static const tiny shape = { .layers = LAYERS,
                                .dim = DIM,
                                .heads = 2,
                                .kv_heads = 1,
                                .head_dim = 16,
                                .hidden = 48,
                                .vocab = VOCAB,
                                .context = LONGEST,
                                .norm_type = WG_F32,
                                .seed = 5 };
    char path[64];
    must(tiny_open(&shape, &s->file, path, &err));
    must(wg_device_cpu(&s->device, NULL, &err));
    must(wg_model_open(&s->model, s->file, &s->device, &(wg_model_options){ .kv_type = WG_F16 }, &err));
    must(wg_model_open(&s->other, s->file, &s->device, &(wg_model_options){ .kv_type = WG_F16, .max_rows = LONGEST }, &err));
    const wg_engine_parts parts = {
        .target = wg_model_lm(s->model), .ops = s->device.ops, .drafter = &listener_class, .verifier = &pick_class
    };
    const wg_engine_options o = { .max_batch = batch, .prefill_rows = prefill_rows, .sampling = WG_SAMPLING(1, 0, 1, 0) };
    return wg_engine_open(&s->e, &parts, &o, &err);
}

static void stage_close(stage *s)
{
    wg_engine_close(s->e);
    wg_model_close(s->model);
    wg_model_close(s->other);
    wg_weights_close(s->file);
    cr_assert_eq(wg_mem_read().live_blocks, 0);
}

static wg_seq *text_open(stage *s, uint32_t request, int n)
{
    int32_t token[LONGEST];
    wg_seq *seq;
    for (int i = 0; i < n; i++) token[i] = (int32_t)((7 * i + (int)request + i * i) % VOCAB);
    must(wg_seq_open(s->e, &seq, request, token, n, LONGEST - n, &err));
    return seq;
}

/* Taps tap[0 .. n-1] of all tokens but the last: (rows, n, dim). */
static void plain_rows(stage *s, const wg_seq *seq, const int *tap, int n, float *out)
{
    wg_kv *kv;
    wg_kv_seq *text;
    wg_batch batch;
    wg_taps *taps;
    const int rows = seq->n - 1;
    must(wg_kv_open(&kv, 16, LONGEST / 16, LONGEST, &err));
    must(wg_lm_attach(wg_model_lm(s->other), kv, &err));
    must(wg_kv_seq_open(kv, &text, &err));
    must(wg_batch_open(&batch, rows, &err));
    must(wg_taps_open(&taps, wg_model_lm(s->other), tap, n, &err));
    must(wg_kv_reserve(text, rows, &err));
    wg_batch_chain(&batch, text, 0, seq->token, rows, 0);
    batch.taps = taps;
    must(wg_lm_forward(wg_model_lm(s->other), &batch, NULL, &err));
    must(wg_taps_read(taps, 0, rows, out, &err));
    wg_taps_close(taps);
    wg_batch_close(&batch);
    wg_kv_seq_close(text);
    wg_kv_close(kv);
}

/* Rows first .. of a feed wait, up to the last token but one, and are those of plain prefill. */
static void expect_rows(stage *s, int feed, const wg_seq *seq, int first)
{
    const wg_tap_reader *r = &t.reader[feed];
    static float want[LONGEST * 3 * DIM], got[LONGEST * 3 * DIM];
    const int rows = seq->n - 1 - first;
    const size_t row = (size_t)r->n * DIM;
    cr_assert_eq(wg_tap_feed_first(t.feed[feed], seq), first, "%d, not %d", wg_tap_feed_first(t.feed[feed], seq), first);
    cr_assert_eq(wg_tap_feed_rows(t.feed[feed], seq), rows, "%d, not %d", wg_tap_feed_rows(t.feed[feed], seq), rows);
    plain_rows(s, seq, r->tap, r->n, want);
    must(wg_tap_feed_read(t.feed[feed], seq, 0, rows, got, &err));
    for (int i = 0; i < rows; i++)
        cr_assert_arr_eq(got + (size_t)i * row, want + (size_t)(first + i) * row, row * sizeof *got, "row %d", i);
    if (rows > 0)
        cr_assert_arr_eq(wg_tap_feed_at(t.feed[feed], seq, rows - 1), got + (size_t)(rows - 1) * row, row * sizeof *got);
}

static const int lists[LISTS][3] = { { 2, 0, 3 }, { 3, 4, 1 }, { 0, 2, 0 } };
static const int numbers[LISTS] = { 0, 1, 2 };

/* Feeds of these lists, `latest` rows of the last. */
static void readers(int n, int latest)
{
    memset(&t, 0, sizeof t);
    t.readers = n;
    t.drops = -1;
    t.path = (wg_path){ .n = 1, .next = 9 };
    for (int i = 0; i < n; i++)
        t.reader[i] =
            (wg_tap_reader){ .tap = lists[i], .n = 3 - (i == 2), .absorb = absorb, .user = (void *)(uintptr_t)&numbers[i] };
    t.reader[n - 1].latest = latest;
}

static void accept_path(int n, int a, int b, int32_t next)
{
    t.path = (wg_path){ .n = n, .node = { 0, (int16_t)a, (int16_t)b }, .next = next };
}

/* ---- tests */

#ifndef WG_HARD /* its queues hold fewer rows than the texts of the next tests; law_taps draws texts of all lengths */

/* The prompt; then the root alone, the second child alone (not its sibling), a path of three. */
Test(tap_feed, rows_of_the_accepted_path)
{
    stage s;
    readers(1, 0);
    must(stage_open(&s, 2, 5));
    wg_seq *seq[2] = { text_open(&s, 1, 13), text_open(&s, 2, 1) };
    must(wg_engine_prefill(s.e, seq[0], &err));
    expect_rows(&s, 0, seq[0], 0);
    const struct {
        int n, a, b;
    } paths[] = { { 1, 0, 0 }, { 2, 2, 0 }, { 3, 1, 3 }, { 2, 1, 0 } };
    int rows = 12;
    for (int i = 0; i < 4; i++) {
        accept_path(paths[i].n, paths[i].a, paths[i].b, 20 + i);
        must(wg_engine_step(s.e, seq, 2, &err));
        for (int k = 0; k < 2; k++) expect_rows(&s, 0, seq[k], 0);
        rows += paths[i].n;
        cr_assert_eq(wg_tap_feed_rows(t.feed[0], seq[0]), rows);
    }
    wg_tap_feed_drop(t.feed[0], seq[0], 7);
    expect_rows(&s, 0, seq[0], 7);
    expect_rows(&s, 0, seq[1], 0);
    must(wg_engine_step(s.e, &seq[1], 1, &err)); /* alone: the rows of its tree are others */
    expect_rows(&s, 0, seq[1], 0);
    for (int k = 0; k < 2; k++) wg_seq_close(s.e, seq[k]);
    stage_close(&s);
}

/* Three readers of one pass, the third of the last four rows. */
Test(tap_feed, several_readers)
{
    stage s;
    readers(3, 4);
    must(stage_open(&s, 1, 64));
    wg_seq *seq = text_open(&s, 3, 30);
    cr_assert_eq(wg_taps_count(s.e->feeds.taps), 5); /* 2 0 3 4 1, each once */
    const long passes = wg_model_lm(s.model)->passes;
    for (int i = 0; i < 5; i++) {
        accept_path(1 + i % 3, 1, 3, 4);
        must(wg_engine_step(s.e, &seq, 1, &err));
        expect_rows(&s, 0, seq, 0);
        expect_rows(&s, 1, seq, 0);
        expect_rows(&s, 2, seq, seq->n - 1 - 4);
    }
    cr_assert_eq(wg_model_lm(s.model)->passes - passes, 6); /* a prefill and five steps */
    wg_seq_close(s.e, seq);
    seq = text_open(&s, 4, 3); /* fewer rows than the latest */
    must(wg_engine_prefill(s.e, seq, &err));
    expect_rows(&s, 2, seq, 0);
    wg_seq_close(s.e, seq);
    stage_close(&s);
}

/* Cached tokens that are dropped take their rows along, read or not; a place that is used again begins at 0. */
Test(tap_feed, rewinding)
{
    stage s;
    readers(2, 4);
    must(stage_open(&s, 1, 64));
    wg_seq *seq = text_open(&s, 7, 20);
    must(wg_engine_prefill(s.e, seq, &err));
    wg_tap_feed_drop(t.feed[0], seq, 5);
    wg_seq_truncate(s.e, seq, 17);
    cr_assert(wg_tap_feed_first(t.feed[0], seq) == 5 && wg_tap_feed_rows(t.feed[0], seq) == 12);
    cr_assert(wg_tap_feed_first(t.feed[1], seq) == 15 && wg_tap_feed_rows(t.feed[1], seq) == 2);
    wg_seq_truncate(s.e, seq, 3);
    for (int i = 0; i < 2; i++) cr_assert(wg_tap_feed_first(t.feed[i], seq) == 3 && wg_tap_feed_rows(t.feed[i], seq) == 0);
    seq->token[4] = 1; /* another text */
    must(wg_engine_step(s.e, &seq, 1, &err));
    expect_rows(&s, 0, seq, 3);
    expect_rows(&s, 1, seq, seq->n - 1 - 4);
    wg_seq_close(s.e, seq);
    seq = text_open(&s, 8, 9);
    must(wg_engine_prefill(s.e, seq, &err));
    for (int i = 0; i < 2; i++) expect_rows(&s, i, seq, i ? 4 : 0);
    wg_seq_close(s.e, seq);
    stage_close(&s);
}

/* A text that goes on, and one that is cut behind an accepted token that ends it. */
Test(tap_feed, conversations)
{
    stage s;
    const int32_t more[] = { 1, 2, 3, 4 };
    readers(1, 0);
    must(stage_open(&s, 1, 3));
    wg_seq *seq;
    must(wg_seq_open(s.e, &seq, 9, more, 4, 2, &err));
    accept_path(3, 1, 3, 4); /* three tokens, of which two have room: the draft is cut to a level, and the path to it */
    accept_path(2, 1, 0, 4);
    must(wg_engine_step(s.e, &seq, 1, &err));
    cr_assert_eq(seq->finish, WG_FINISH_LENGTH);
    expect_rows(&s, 0, seq, 0);
    must(wg_seq_extend(s.e, seq, more, 4, 20, &err));
    accept_path(3, 1, 3, 4);
    must(wg_engine_step(s.e, &seq, 1, &err));
    expect_rows(&s, 0, seq, 0);
    wg_seq_close(s.e, seq);
    stage_close(&s);
}

#endif

/* A prompt longer than the room, and steps whose rows nobody asks for. */
Test(tap_feed, absorbing)
{
    stage s;
    readers(1, 0);
    must(stage_open(&s, 1, 100));
    wg_seq *seq = text_open(&s, 5, 3 * WG_TREE_MAX + 7);
    must(wg_engine_prefill(s.e, seq, &err));
    cr_assert(t.absorbs > 0);
    cr_assert_eq(t.rows, 2 * WG_TREE_MAX);
    const int first = wg_tap_feed_first(t.feed[0], seq);
    cr_assert(first > 0);
    expect_rows(&s, 0, seq, first);
    accept_path(2, 1, 0, 3);
    while (t.absorbs < 4) must(wg_engine_step(s.e, &seq, 1, &err)); /* before a step: all rows there are */
    cr_assert_eq(t.first + t.rows, t.len);
    cr_assert(t.rows > WG_TREE_MAX);
    expect_rows(&s, 0, seq, t.first + t.rows);

    t.drops = 0; /* a reader that does not drop what it has read: nothing has changed then */
    wg_status status = WG_OK;
    int n = 0;
    for (int i = 0; i < 2 * WG_TREE_MAX && !status; i++) {
        n = seq->n;
        status = wg_engine_step(s.e, &seq, 1, &err);
    }
    cr_assert_eq(status, WG_EINVAL);
    char text[256];
    snprintf(
        text, sizeof text,
        "request 5: a reader of hidden states left %d rows of %d unread where %d more come; expected that it drops what it "
        "has read (wg_tap_feed_drop)",
        t.rows, 2 * WG_TREE_MAX, WG_TREE_MAX);
    cr_assert_str_eq(err.text, text);
    cr_assert_eq(seq->n, n);
    expect_rows(&s, 0, seq, wg_tap_feed_first(t.feed[0], seq));
    t.drops = -1;
    must(wg_engine_step(s.e, &seq, 1, &err));
    wg_seq_close(s.e, seq);
    stage_close(&s);
}

/* A prefill that fails behind rows that were read hands them out again; a step that fails leaves all rows where they are. */
Test(tap_feed, failures)
{
    stage s;
    readers(2, 3);
    must(stage_open(&s, 1, 40));
    wg_seq *seq = text_open(&s, 6, 5 * WG_TREE_MAX);
    for (t.fail_at = 1; t.fail_at <= 2; t.fail_at++) {
        cr_assert_eq(wg_engine_prefill(s.e, seq, &err), WG_EIO);
        cr_assert_eq(wg_kv_len(seq->kv), 0);
        for (int i = 0; i < 2; i++) cr_assert(wg_tap_feed_first(t.feed[i], seq) == 0 && wg_tap_feed_rows(t.feed[i], seq) == 0);
        t.absorbs = 0;
    }
    t.fail_at = 0;
    must(wg_engine_prefill(s.e, seq, &err));
    const int first = wg_tap_feed_first(t.feed[0], seq);
    t.fails = true;
    cr_assert_eq(wg_engine_step(s.e, &seq, 1, &err), WG_EIO);
    const int after = wg_tap_feed_first(t.feed[0], seq); /* room was made before the draft */
    cr_assert(after >= first);
    expect_rows(&s, 0, seq, after);
    expect_rows(&s, 1, seq, seq->n - 1 - 3);
    t.fails = false;
    must(wg_engine_step(s.e, &seq, 1, &err));
    expect_rows(&s, 0, seq, after);
    wg_seq_close(s.e, seq);
    stage_close(&s);
}

/* Memory that is missing when the first sequence opens: nothing is left, and it can be opened later. */
Test(tap_feed, out_of_memory)
{
    stage s;
    const int32_t token[] = { 1, 2, 3 };
    wg_seq *seq = NULL;
    readers(2, 2);
    must(stage_open(&s, 2, 8));
    const uint64_t before = wg_mem_read().live_blocks;
    uint64_t nth = 1;
    wg_status status = WG_ENOMEM;
    for (; status; nth++) {
        wg_mem_fail_at(nth, false);
        status = wg_seq_open(s.e, &seq, 1, token, 3, 9, &err);
        wg_mem_fail_at(0, false);
        cr_assert(status == WG_OK || status == WG_ENOMEM);
        if (status && nth < 8) cr_assert_eq(wg_mem_read().live_blocks, before, "allocation %d", (int)nth);
    }
    cr_assert(nth > 10);
    must(wg_engine_step(s.e, &seq, 1, &err));
    expect_rows(&s, 0, seq, 0);
    wg_seq_close(s.e, seq);
    stage_close(&s);
}

Test(tap_feed, refused)
{
    stage s;
    wg_tap_feed *f = NULL;
    readers(1, 0);
    cr_assert_eq(wg_tap_feed_open(&f, NULL, &t.reader[0], &err), WG_EUNSUPPORTED);
    cr_assert_str_eq(err.text, "hidden states are read from the passes of an engine, and here a drafter runs without one; use "
                               "wager run or generate");
    must(stage_open(&s, 1, 8));
    cr_assert_eq(wg_engine_proposes(s.e, &err), WG_EUNSUPPORTED);
    cr_assert_str_eq(err.text, "drafter listener reads the target's hidden states, and here the target is another engine's; "
                               "choose one that drafts from tokens, such as suffix");
    stage_close(&s);
    static const int none[] = { 1, LAYERS + 2 };
    memset(&s, 0, sizeof s);
    t.reader[0].tap = none;
    t.reader[0].n = 2;
    cr_assert_eq(stage_open(&s, 1, 8), WG_EINVAL);
    cr_assert(strncmp(err.text, "tap 5: a model of 3 layers", 26) == 0, "%s", err.text);
    stage_close(&s);
    bench b = start((setup){ 0 }); /* over a table */
    cr_assert_eq(wg_tap_feed_open(&f, b.e->env.feeds, &t.reader[0], &err), WG_EUNSUPPORTED);
    cr_assert(strstr(err.text, "the target gives no hidden states (it is: table)"), "%s", err.text);
    wg_seq *seq = open_seq(&b, 1, 9); /* without readers passes are asked for nothing */
    step(&b, &seq, 1);
    cr_assert_null(b.e->batch.taps);
    wg_seq_close(b.e, seq);
    bench_close(&b);
}
