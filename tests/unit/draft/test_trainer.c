/* SPDX-License-Identifier: MIT
 * Training: a page learnt by heart, runs that are cut off and go on, losses that are plugged in, files that are damaged. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/mem.h"
#include "draft/train/trainer.h"
#include "tests/temp.h"
#include "tests/unit/draft/tiny_arch.h"

static const char page[] =
    "The mill stood where the river bent. Every morning the miller opened the sluice, and the great wheel began to turn, "
    "slowly at "
    "first, then with a steady groan that the whole valley knew. Carts came down the lane before the sun was over the hill; "
    "the "
    "children counted the sacks, and the dog barked at each horse in turn, though he had known them all for years. ";

/* Token file of the page, a token a byte less 32. */
static wg_tokens *page_open(temp *dir, size_t times)
{
    enum { MOST = 4096 };
    static int32_t id[MOST];
    wg_error err;
    wg_tokens *t;
    wg_weights *w;
    wg_tokenizer *tokenizer;
    const uint64_t start[2] = { 0, sizeof page - 1 };
    size_t n = 0;
    for (size_t k = 0; k < times; k++)
        for (size_t i = 0; i + 1 < sizeof page; i++) id[n++] = page[i] - 32;
    must(wg_weights_open(&w, "synth:tiny:f32", &err), &err);
    must(wg_tokenizer_open(&tokenizer, w, &err), &err);
    must(wg_tokens_write(temp_at(dir, "page.tokens"), tokenizer, id, n, start, NULL, times > 1 ? 2 : 1, &err), &err);
    must(wg_tokens_open(&t, temp_at(dir, "page.tokens"), NULL, &err), &err);
    wg_tokenizer_close(tokenizer);
    wg_weights_close(w);
    return t;
}

typedef struct run {
    wg_pool *pool;
    wg_net *net;
    wg_trainer *trainer;
    wg_train_options opt;
    wg_optimiser_options optimiser;
    wg_schedule_options schedule;
    wg_train_student student;
    double first, last, held, hash;
    int steps; /* 0: 60 */
    long stop_at;
    volatile sig_atomic_t stop;
} run;

static wg_status report(void *user, const wg_train_report *r, wg_error *err)
{
    run *u = user;
    (void)err;
    if (r->held_out) u->held = r->loss;
    else if (u->first == 0) u->first = r->loss;
    if (!r->held_out) u->last = r->loss;
    u->stop = r->step == u->stop_at;
    return WG_OK;
}

static void run_open(run *u, const wg_tokens *tokens, int kind, int threads, const char *folder, const wg_train_loss *loss,
                     const wg_train_feed *feed)
{
    wg_error err;
    wg_arch a = tiny_arch(&(tiny){ .layers = 2,
                                   .dim = 32,
                                   .heads = 4,
                                   .kv_heads = 2,
                                   .head_dim = 8,
                                   .hidden = 64,
                                   .vocab = 96,
                                   .context = 64,
                                   .tied = true,
                                   .seed = 1 });
    wg_option_defaults(wg_train_table, &u->opt);
    wg_option_defaults(wg_optimiser_table, &u->optimiser);
    wg_option_defaults(wg_schedule_table, &u->schedule);
    if (u->stop_at == 0) u->stop_at = -1;
    u->opt.steps = u->steps ? u->steps : 60, u->opt.batch = 4, u->opt.micro = 2, u->opt.checkpoint = 10;
    u->optimiser.kind = kind;
    if (kind == WG_ADAMW) u->optimiser.lr = 0.01;
    must(wg_pool_open(&u->pool, threads, &err), &err);
    must(wg_net_open(&u->net, wg_ops_f32(), &a, 2, 64, u->pool, &err), &err);
    wg_net_randomise(u->net, 1);
    u->student = (wg_train_student){ .net = u->net, .loss = loss, .optimiser = &u->optimiser, .schedule = &u->schedule };
    const wg_train_parts parts = { .student = &u->student,
                                   .students = 1,
                                   .feed = feed,
                                   .pool = u->pool,
                                   .train = tokens,
                                   .held = tokens,
                                   .bos = -1,
                                   .options = &u->opt,
                                   .folder = folder,
                                   .settings = "{\n  \"seed\": 1\n}\n",
                                   .stop = &u->stop };
    must(wg_trainer_open(&u->trainer, &parts, &err), &err);
}

static void run_close(run *u)
{
    wg_trainer_close(u->trainer);
    wg_net_close(u->net);
    wg_pool_close(u->pool);
}

static wg_status run_go(run *u, wg_error *err) { return wg_trainer_run(u->trainer, report, u, err); }

Test(trainer, a_page_is_learnt_by_heart)
{
    temp dir;
    wg_error err;
    temp_make(&dir);
    wg_tokens *tokens = page_open(&dir, 1);
    for (int kind = WG_MUON; kind <= WG_ADAMW; kind++) {
        run u = { .steps = 120 };
        run_open(&u, tokens, kind, 1, NULL, NULL, NULL);
        must(run_go(&u, &err), &err);
        cr_assert(u.first > 4.4 && u.first < 5, "before: %g", u.first); /* log 96 is 4.56 */
        cr_assert(u.held < 0.5, "%s: %g nats after %d steps", kind == WG_MUON ? "muon" : "adamw", u.held, u.opt.steps);
        run_close(&u);
    }
    wg_tokens_close(tokens);
    temp_remove(&dir);
}

/* Weights of a run: with so many threads, stopped and continued where stop_at is not 0. */
static void weights_of(temp *dir, const wg_tokens *tokens, int threads, long stop_at, float **w, size_t *n)
{
    wg_error err;
    uint64_t log;
    run u = { .stop_at = stop_at };
    run_open(&u, tokens, WG_MUON, threads, dir->dir, NULL, NULL);
    if (stop_at) {
        cr_assert_eq(run_go(&u, &err), WG_EINTERRUPTED);
        cr_assert_str_eq(err.text, "interrupted after step 27 of 60; its checkpoint is written");
        run_close(&u);
        u = (run){ 0 };
        run_open(&u, tokens, WG_MUON, threads, dir->dir, NULL, NULL);
        wg_net_randomise(u.net, 99);
        must(wg_trainer_resume(u.trainer, &log, &err), &err);
        cr_assert_eq(wg_trainer_step(u.trainer), stop_at);
    }
    must(run_go(&u, &err), &err);
    *n = wg_net_elements(u.net);
    *w = malloc(*n * sizeof **w);
    memcpy(*w, wg_net_weights(u.net), *n * sizeof **w);
    run_close(&u);
}

Test(trainer, a_resumed_run_is_the_uninterrupted_one)
{
    temp dir;
    float *w[3];
    size_t n;
    temp_make(&dir);
    wg_tokens *tokens = page_open(&dir, 3);
    weights_of(&dir, tokens, 2, 27, &w[1], &n);
    cr_assert_eq(dir_count(dir.dir), 3, "two checkpoints and the tokens, not %d files", dir_count(dir.dir));
    weights_of(&dir, tokens, 2, 0, &w[0], &n);
    weights_of(&dir, tokens, 1, 0, &w[2], &n);
    cr_assert(memcmp(w[0], w[1], n * sizeof(float)) == 0, "resumed");
    cr_assert(memcmp(w[0], w[2], n * sizeof(float)) == 0, "one thread");
    for (int i = 0; i < 3; i++) free(w[i]);
    wg_tokens_close(tokens);
    temp_remove(&dir);
}

static void damage(const char *path, long at)
{
    size_t n = 0;
    char *p = file_read(path, &n);
    cr_assert_not_null(p, "%s", path);
    if (at < 0) n /= 2;
    else p[at] ^= 1;
    file_write(path, p, n);
    free(p);
}

Test(trainer, damaged_checkpoints_are_passed_over)
{
    temp dir;
    wg_error err;
    uint64_t log = 0;
    char expected[400];
    temp_make(&dir);
    wg_tokens *tokens = page_open(&dir, 1);
    run u = { 0 };
    run_open(&u, tokens, WG_ADAMW, 1, dir.dir, NULL, NULL);
    cr_assert_eq(wg_trainer_resume(u.trainer, &log, &err), WG_ENOENT);
    snprintf(expected, sizeof expected, "%s: there is no checkpoint to go on from; leave out --resume to begin", dir.dir);
    cr_assert_str_eq(err.text, expected);
    file_write(temp_at(&dir, "checkpoint-00000050.wgc.123-0.part"), "x", 1); /* of a process that was killed */
    wg_trainer_log_is(u.trainer, 4711);
    must(run_go(&u, &err), &err);
    damage(temp_at(&dir, "checkpoint-00000060.wgc"), 5000);
    must(wg_trainer_resume(u.trainer, &log, &err), &err);
    cr_assert_eq(wg_trainer_step(u.trainer), 50);
    cr_assert_eq(log, 4711);
    damage(temp_at(&dir, "checkpoint-00000050.wgc"), -1);
    cr_assert_eq(wg_trainer_resume(u.trainer, &log, &err), WG_EFORMAT);
    snprintf(expected, sizeof expected,
             "%s/checkpoint-00000050.wgc: the checkpoint is damaged: its size or its checksum is wrong", dir.dir);
    cr_assert_str_eq(err.text, expected);
    cr_assert_eq(dir_count(dir.dir), 3);
    run_close(&u);
    wg_tokens_close(tokens);
    temp_remove(&dir);
}

/* Checkpoints of other settings and of other models. */
Test(trainer, other_checkpoints_are_refused)
{
    temp dir;
    wg_error err;
    char expected[512], path[128];
    temp_make(&dir);
    wg_tokens *tokens = page_open(&dir, 1);
    run u = { .stop_at = 10 }, other = { 0 };
    run_open(&u, tokens, WG_MUON, 1, dir.dir, NULL, NULL);
    cr_assert_eq(run_go(&u, &err), WG_EINTERRUPTED);
    snprintf(path, sizeof path, "%s/checkpoint-00000010.wgc", dir.dir);
    run_open(&other, tokens, WG_ADAMW, 1, dir.dir, NULL, NULL); /* the same settings, but more state */
    uint64_t log;
    cr_assert_eq(wg_trainer_resume(other.trainer, &log, &err), WG_EFORMAT);
    unsigned long long there, here;
    snprintf(expected, sizeof expected,
             "%s: the checkpoint has %%llu numbers, the model and its optimiser %%llu; train into another folder", path);
    cr_assert(sscanf(err.text, expected, &there, &here) == 2 && there < here, "%s", err.text);
    wg_optimiser *o;
    must(wg_optimiser_open(&o, u.net, &u.optimiser, u.pool, &err), &err);
    wg_checkpoint c = { .settings = "{\n  \"seed\": 2\n}\n" };
    must(wg_checkpoint_add_net(&c, u.net, o, &err), &err);
    cr_assert_eq(wg_checkpoint_load(dir.dir, &c, &err), WG_EINVAL);
    snprintf(expected, sizeof expected,
             "%s: the checkpoint is of another config: there '\"seed\": 1', here '\"seed\": 2'. Go on with the same config, or "
             "train "
             "into another folder",
             path);
    cr_assert_str_eq(err.text, expected);
    wg_checkpoint_close(&c);
    wg_optimiser_close(o);
    run_close(&other);
    run_close(&u);
    wg_tokens_close(tokens);
    temp_remove(&dir);
}

Test(trainer, steps_are_whole_passes)
{
    temp dir;
    wg_error err;
    temp_make(&dir);
    wg_tokens *tokens = page_open(&dir, 1);
    run u = { 0 };
    wg_trainer *t;
    run_open(&u, tokens, WG_MUON, 1, NULL, NULL, NULL);
    u.opt.batch = 5;
    const wg_train_parts parts = {
        .student = &u.student, .students = 1, .pool = u.pool, .train = tokens, .bos = -1, .options = &u.opt
    };
    cr_assert_eq(wg_trainer_open(&t, &parts, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "batch 5 is not a multiple of micro 2; a step is made of whole passes");
    run_close(&u);
    wg_tokens_close(tokens);
    temp_remove(&dir);
}

/* ---- losses that are plugged in */

typedef struct plugged {
    const int32_t *target;
    int prepared, nan_at, passes;
} plugged;

static wg_status prepare(void *ctx, const wg_train_rows *r, wg_error *err)
{
    plugged *p = ctx;
    (void)err;
    p->target = r->target;
    p->prepared++;
    return WG_OK;
}

static void plugged_loss(void *ctx, int thread, int first, int n, int vocab, const float *z, float *dz, wg_loss_part *sum)
{
    const plugged *p = ctx;
    cr_assert(thread >= 0 && thread < 2 && n <= WG_LOSS_ROWS && first % 64 == 0);
    float loss[WG_LOSS_ROWS];
    const wg_entropy_job j = { .target = p->target + first, .z = z, .dz = dz, .loss = loss, .rows = n, .vocab = vocab };
    wg_ops_f32()->part[WG_OP_CROSS_ENTROPY](&j, 0, 0, n);
    for (int i = 0; i < n; i++) {
        sum->loss += (double)loss[i];
        sum->rows += j.target[i] >= 0;
    }
    if (p->prepared == p->nan_at) sum->loss = NAN;
    sum->alpha += 0.5 * n;
}

Test(trainer, a_plugged_loss_is_the_built_in_one)
{
    temp dir;
    wg_error err;
    temp_make(&dir);
    wg_tokens *tokens = page_open(&dir, 1);
    plugged p = { 0 };
    const wg_train_loss loss = { plugged_loss, &p };
    const wg_train_feed feed = { .prepare = prepare, .ctx = &p };
    run a = { .steps = 20 }, b = { .steps = 20 };
    run_open(&a, tokens, WG_MUON, 2, NULL, NULL, NULL);
    run_open(&b, tokens, WG_MUON, 2, NULL, &loss, &feed);
    must(run_go(&a, &err), &err);
    must(run_go(&b, &err), &err);
    cr_assert(memcmp(wg_net_weights(a.net), wg_net_weights(b.net), wg_net_elements(a.net) * sizeof(float)) == 0);
    cr_assert(p.prepared > 2 * 20, "once a pass, of two a step and of held-out text");
    run_close(&a);
    run_close(&b);
    wg_tokens_close(tokens);
    temp_remove(&dir);
}

Test(trainer, a_loss_that_is_not_a_number_stops_the_run)
{
    temp dir;
    wg_error err;
    temp_make(&dir);
    wg_tokens *tokens = page_open(&dir, 1);
    plugged p = { .nan_at = 2 * 24 };
    const wg_train_loss loss = { plugged_loss, &p };
    const wg_train_feed feed = { .prepare = prepare, .ctx = &p };
    run u = { 0 };
    run_open(&u, tokens, WG_MUON, 2, dir.dir, &loss, &feed);
    cr_assert_eq(run_go(&u, &err), WG_EMODEL);
    cr_assert_str_eq(err.text,
                     "step 24: the loss is not a finite number; the checkpoint of step 20 is kept. Lower the learning "
                     "rate, raise the warm-up or clip the gradients, and begin again or go on from the checkpoint");
    struct stat st;
    cr_assert_eq(stat(temp_at(&dir, "checkpoint-00000020.wgc"), &st), 0);
    run_close(&u);
    wg_tokens_close(tokens);
    temp_remove(&dir);
}

/* ---- schedules, files */

Test(trainer, schedules)
{
    const wg_schedule_options wsd = { WG_WSD, 0.1, 0.2, 0.1 }, cosine = { WG_COSINE, 0.1, 0, 0.2 };
    cr_assert_float_eq(wg_schedule_at(&wsd, 0, 100), 0.1, 1e-12);
    cr_assert_float_eq(wg_schedule_at(&wsd, 9, 100), 1, 1e-12);
    cr_assert_float_eq(wg_schedule_at(&wsd, 79, 100), 1, 1e-12);
    cr_assert_float_eq(wg_schedule_at(&wsd, 99, 100), 0.1 + 0.9 / 21, 1e-12);
    cr_assert_float_eq(wg_schedule_at(&cosine, 54, 100), 0.6, 1e-12);
    cr_assert_float_eq(wg_schedule_at(&cosine, 99, 100), 0.2, 1e-12);
}

Test(trainer, windows_cover_the_text_once_an_epoch)
{
    temp dir;
    wg_error err;
    temp_make(&dir);
    wg_tokens *tokens = page_open(&dir, 2);
    int32_t a[4][50];
    int seen[1024] = { 0 };
    const wg_window_out out = { a[0], a[1], a[2], a[3] };
    wg_windows w = { .tokens = tokens, .length = 50, .vocab = 96, .bos = -1, .seed = 4 };
    must(wg_windows_open(&w, &err), &err);
    uint32_t first[64];
    cr_assert(w.count <= 64);
    memcpy(first, w.order, w.count * sizeof *first);
    for (size_t n = 0; n < w.count; n++) {
        must(wg_windows_get(&w, w.count + n, false, &out, &err), &err);
        bool found = false;
        for (size_t at = 0; !found && at + 50 < wg_tokens_count(tokens); at++) {
            bool same = true;
            for (size_t i = 0; same && i < 50; i++) same = a[0][i] == page[(at + i) % (sizeof page - 1)] - 32;
            if (same && !seen[at]) seen[at] = found = true;
        }
        cr_assert(found, "window %zu", n);
        for (int i = 0; i < 50; i++) cr_assert_eq(a[3][i], i - a[2][i]);
        for (int i = 0; i + 1 < 50; i++)
            cr_assert(a[1][i] == a[0][i + 1] || (a[1][i] == -1 && a[2][i + 1] == i + 1), "target %d", i);
    }
    cr_assert(memcmp(first, w.order, w.count * sizeof *first) != 0, "two epochs of one order");
    wg_windows_close(&w);
    w.vocab = 60;
    must(wg_windows_open(&w, &err), &err);
    cr_assert_eq(wg_windows_get(&w, 0, true, &out, &err), WG_EFORMAT);
    cr_assert(strstr(err.text, ": the vocabulary has 60 tokens") && strstr(err.text, "has id "), "%s", err.text);
    wg_windows_close(&w);
    w.length = 5000;
    cr_assert_eq(wg_windows_open(&w, &err), WG_EINVAL);
    cr_assert(strstr(err.text, " tokens: a sequence of 5000 needs 5001; lower the length or add text"), "%s", err.text);
    wg_tokens_close(tokens);
    temp_remove(&dir);
}

Test(trainer, damaged_token_files)
{
    static const struct {
        long at; /* byte to change; -1: half the file */
        const char *what;
    } row[] = { { 0, "another format" },
                { 20, "a damaged header, or another version" },
                { -1, "the size differs from that of its header" },
                { 128, "documents that are not in order" } };
    temp dir;
    wg_error err;
    wg_tokens *t;
    temp_make(&dir);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        wg_tokens_close(page_open(&dir, 2));
        damage(temp_at(&dir, "page.tokens"), row[i].at);
        cr_assert_eq(wg_tokens_open(&t, temp_at(&dir, "page.tokens"), NULL, &err), WG_EFORMAT);
        cr_assert(strstr(err.text, row[i].what) &&
                      strstr(err.text, "; expected a token file of version 1 or 2, such as `wager train` writes from a text"),
                  "%s", err.text);
    }
    file_write(temp_at(&dir, "page.tokens"), "short", 5);
    cr_assert_eq(wg_tokens_open(&t, temp_at(&dir, "page.tokens"), NULL, &err), WG_EFORMAT);
    cr_assert(strstr(err.text, "no header"), "%s", err.text);
    wg_tokens_close(page_open(&dir, 1));
    cr_assert_eq(wg_tokens_open(&t, temp_at(&dir, "page.tokens"),
                                "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", &err),
                 WG_EVOCAB);
    cr_assert(strstr(err.text, ": written with another tokenizer (digest ") &&
                  strstr(err.text, ", expected 0123456789ab); write it again from the text"),
              "%s", err.text);
    cr_assert_eq(wg_tokens_open(&t, "/nowhere/x.tokens", NULL, &err), WG_ENOENT);
    cr_assert_str_eq(err.text, "/nowhere/x.tokens: cannot open the token file: No such file or directory");
    temp_remove(&dir);
}
