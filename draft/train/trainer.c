/* SPDX-License-Identifier: MIT
 * The training loop (trainer.h). */
#include "draft/train/trainer.h"

#include <math.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/mem.h"

/* clang-format off */
const wg_option wg_train_table[] = {
    WG_OPTION_INT(wg_train_options, steps, 1000, 1, 1 << 30, "updates of the weights"),
    WG_OPTION_INT(wg_train_options, batch, 16, 1, 1 << 20, "sequences of a step"),
    WG_OPTION_INT(wg_train_options, micro, 4, 1, 1 << 16, "sequences of a pass; gradients of several passes are added up"),
    WG_OPTION_INT(wg_train_options, length, 0, 0, 1 << 20, "tokens of a sequence; 0: the model's context"),
    WG_OPTION_INT(wg_train_options, seed, 1, 0, INT32_MAX, "of the weights and of the order of the text"),
    WG_OPTION_INT(wg_train_options, checkpoint, 100, 0, 1 << 30, "steps between checkpoints; 0: only at the end"),
    WG_OPTION_INT(wg_train_options, evaluate, 100, 0, 1 << 30, "steps between held-out losses; 0: only at the end"),
    WG_OPTION_INT(wg_train_options, held_out, 32, 1, 1 << 20, "sequences of a held-out loss"),
    WG_OPTION_FLOAT(wg_train_options, bos_share, 0.5, 0, 1, "share of the sequences whose first token is replaced by bos"),
    WG_OPTION_BOOL(wg_train_options, keep_zeros, false,
                   "weights of layers that are 0 at the start stay 0: fine-tuning of a pruned model"),
    WG_OPTION_END,
};
/* clang-format on */

/* A network that is trained. */
typedef struct learner {
    wg_optimiser *optimiser;
    /* (4, batch * length) tokens, targets, starts, positions of a step; shared by students with the same rows */
    int32_t *arrays;
    uint8_t *unpruned; /* (trained elements) 1: trained, 0: a weight that stays 0; NULL: all are trained */
    long targets;      /* rows with a loss */
    wg_loss_part sum;
} learner;

struct wg_trainer {
    wg_train_parts p;
    wg_train_student *student;
    learner *learner;
    wg_train_options opt;
    wg_windows train, held;
    size_t rows; /* batch * length */
    int passes;  /* passes of a step */
    bool apart;  /* students have rows of their own */
    long step;
    wg_checkpoint kept; /* the arrays of checkpoints */
    uint64_t saved;     /* step of the last checkpoint; UINT64_MAX: none */
};

static wg_windows windows_of(const wg_trainer *t, const wg_tokens *tokens)
{
    return (wg_windows){ .tokens = tokens,
                         .length = t->opt.length,
                         .vocab = wg_net_arch(t->student->net)->vocab,
                         .bos = t->p.bos,
                         .bos_share = t->opt.bos_share,
                         .seed = (uint64_t)t->opt.seed };
}

/* Marks the weights of layers that are not 0. */
static wg_status mark_zeros(learner *l, wg_net *net, wg_error *err)
{
    const float *w = wg_net_weights(net);
    const size_t all = wg_net_trained_elements(net);
    uint8_t *marks = wg_alloc(all, 1);
    l->unpruned = wg_ops_alloc(wg_net_ops(net), all);
    if (!marks || !l->unpruned) {
        wg_free(marks);
        return wg_nomem(err, all, "the marks of pruned weights");
    }
    memset(marks, 1, all);
    for (int i = 0; i < wg_net_tensors(net); i++) {
        const wg_net_tensor *x = wg_net_tensor_at(net, i);
        const size_t n = (size_t)x->rows * (size_t)x->columns;
        for (size_t k = 0; k < n && x->matrix; k++) marks[x->at + k] = w[x->at + k] != 0;
    }
    wg_ops_put(wg_net_ops(net), l->unpruned, marks, all);
    wg_free(marks);
    return WG_OK;
}

/* Clears the pruned elements of weights or gradients. */
static void clear_pruned(const wg_trainer *t, int k, void *x)
{
    const wg_net *net = t->student[k].net;
    const wg_keep_job j = { .x = x, .kept = t->learner[k].unpruned, .n = wg_net_trained_elements(net) };
    if (j.kept) wg_ops_run(t->p.pool, wg_net_ops(net), WG_OP_KEEP, &j, wg_spans(j.n), 1);
}

static wg_status open_learners(wg_trainer *t, wg_error *err)
{
    const size_t n = (size_t)t->p.students;
    t->student = wg_calloc(n, sizeof *t->student);
    t->learner = wg_calloc(n, sizeof *t->learner);
    if (!t->student || !t->learner) return wg_nomem(err, n * (sizeof *t->student + sizeof *t->learner), "students");
    memcpy(t->student, t->p.student, n * sizeof *t->student);
    for (size_t i = 0; i < n; i++) {
        learner *l = &t->learner[i];
        if (i == 0 || t->apart) {
            l->arrays = wg_calloc(4 * t->rows, sizeof *l->arrays);
            if (!l->arrays) return wg_nomem(err, 4 * t->rows * sizeof *l->arrays, "the tokens of a step; lower batch");
        }
        if (t->student[i].loss) WG_TRY(wg_net_plug(t->student[i].net, err));
        if (t->opt.keep_zeros) WG_TRY(mark_zeros(l, t->student[i].net, err));
        WG_TRY(wg_optimiser_open(&l->optimiser, t->student[i].net, t->student[i].optimiser, t->p.pool, err));
        WG_TRY(wg_checkpoint_add_net(&t->kept, t->student[i].net, l->optimiser, err));
    }
    float *p;
    size_t floats;
    for (int i = 0; t->p.feed && t->p.feed->state && t->p.feed->state(t->p.feed->ctx, i, &p, &floats); i++)
        WG_TRY(wg_checkpoint_add(&t->kept, p, floats, err));
    return WG_OK;
}

static wg_status open_all(wg_trainer *t, wg_error *err)
{
    if (t->opt.length == 0) t->opt.length = wg_net_arch(t->p.student->net)->context;
    if (t->opt.batch % t->opt.micro != 0)
        return wg_fail(err, WG_EINVAL, "batch %d is not a multiple of micro %d; a step is made of whole passes", t->opt.batch,
                       t->opt.micro);
    t->rows = (size_t)t->opt.batch * (size_t)t->opt.length;
    t->passes = t->opt.batch / t->opt.micro;
    t->apart = t->p.feed && t->p.feed->own;
    WG_TRY(open_learners(t, err));
    t->train = windows_of(t, t->p.train);
    WG_TRY(wg_windows_open(&t->train, err));
    if (!t->p.held) return WG_OK;
    t->held = windows_of(t, t->p.held);
    return wg_windows_open(&t->held, err);
}

wg_status wg_trainer_open(wg_trainer **out, const wg_train_parts *parts, wg_error *err)
{
    wg_trainer *t = wg_calloc(1, sizeof *t);
    if (!t) return wg_nomem(err, sizeof *t, "a trainer");
    t->p = *parts;
    t->opt = *parts->options;
    t->saved = UINT64_MAX;
    t->kept.settings = parts->settings;
    const wg_status s = open_all(t, err);
    if (s) wg_trainer_close(t);
    else *out = t;
    return s;
}

void wg_trainer_close(wg_trainer *t)
{
    if (!t) return;
    wg_windows_close(&t->train);
    wg_windows_close(&t->held);
    for (int i = 0; t->learner && i < t->p.students; i++) {
        wg_optimiser_close(t->learner[i].optimiser);
        wg_free(t->learner[i].arrays);
        if (t->learner[i].unpruned) wg_ops_free(wg_net_ops(t->student[i].net), t->learner[i].unpruned);
    }
    wg_checkpoint_close(&t->kept);
    wg_free(t->student);
    wg_free(t->learner);
    wg_free(t);
}

long wg_trainer_step(const wg_trainer *t) { return t->step; }
void wg_trainer_log_is(wg_trainer *t, uint64_t bytes) { t->kept.log_bytes = bytes; }

/* ---- rows */

/* The arrays of sequence i of the step. */
static wg_window_out sequence_at(const wg_trainer *t, int student, size_t i)
{
    int32_t *a = t->learner[t->apart ? student : 0].arrays + i * (size_t)t->opt.length;
    return (wg_window_out){ a, a + t->rows, a + 2 * t->rows, a + 3 * t->rows };
}

static wg_train_rows pass_at(const wg_trainer *t, int student, int pass)
{
    const wg_window_out o = sequence_at(t, student, (size_t)pass * (size_t)t->opt.micro);
    return (wg_train_rows){ .sequences = t->opt.micro,
                            .length = t->opt.length,
                            .token = o.token,
                            .target = o.target,
                            .start = o.start,
                            .position = o.position };
}

static bool is_own(const wg_trainer *t, int pass)
{
    const wg_train_feed *f = t->p.feed;
    return t->apart && f->own(f->ctx, (uint64_t)t->step * (uint64_t)t->passes + (uint64_t)pass);
}

static wg_status fill_pass(wg_trainer *t, int pass, int student, wg_error *err)
{
    const wg_train_feed *f = t->p.feed;
    const uint64_t n = (uint64_t)t->step * (uint64_t)t->passes + (uint64_t)pass, micro = (uint64_t)t->opt.micro;
    const wg_window_out o = sequence_at(t, student < 0 ? 0 : student, (size_t)pass * (size_t)micro);
    if (f && f->fill) return f->fill(f->ctx, n, student, &o, err);
    for (int i = 0; i < t->opt.micro; i++) {
        const wg_window_out at = sequence_at(t, 0, (size_t)pass * (size_t)micro + (size_t)i);
        WG_TRY(wg_windows_get(&t->train, n * micro + (uint64_t)i, false, &at, err));
    }
    return WG_OK;
}

/* Loads all rows of a step; a pass that students share is copied if each has arrays of its own. */
static wg_status load_step(wg_trainer *t, wg_error *err)
{
    const size_t part = (size_t)t->opt.micro * (size_t)t->opt.length;
    for (int pass = 0; pass < t->passes; pass++) {
        const bool own = is_own(t, pass);
        if (!own) WG_TRY(fill_pass(t, pass, -1, err));
        for (int k = 0; t->apart && k < t->p.students; k++) {
            if (own) WG_TRY(fill_pass(t, pass, k, err));
            else
                for (size_t a = 0; a < 4 && k > 0; a++) {
                    const size_t at = a * t->rows + (size_t)pass * part;
                    memcpy(t->learner[k].arrays + at, t->learner[0].arrays + at, part * sizeof(int32_t));
                }
        }
    }
    for (int k = 0; k < t->p.students; k++) {
        const int32_t *target = sequence_at(t, k, 0).target;
        t->learner[k].targets = 0;
        t->learner[k].sum = (wg_loss_part){ 0 };
        for (size_t i = 0; i < t->rows; i++) t->learner[k].targets += target[i] >= 0;
    }
    return WG_OK;
}

/* ---- steps */

static wg_status prepare(const wg_trainer *t, const wg_train_rows *rows, wg_error *err)
{
    const wg_train_feed *f = t->p.feed;
    return f && f->prepare ? f->prepare(f->ctx, rows, err) : WG_OK;
}

static const float *hidden(const wg_trainer *t)
{
    const wg_train_feed *f = t->p.feed;
    return f && f->hidden ? f->hidden(f->ctx) : NULL;
}

static void pass_of(const wg_trainer *t, int k, const wg_train_rows *rows, bool backward)
{
    learner *l = &t->learner[k];
    wg_net *net = t->student[k].net;
    const double scale = backward && l->targets ? 1 / (double)l->targets : 0;
    wg_net_forward(net, rows);
    const wg_loss_part p = wg_net_loss(net, rows, t->student[k].loss, scale, backward);
    l->sum.loss += p.loss;
    l->sum.alpha += p.alpha;
    l->sum.rows += p.rows;
}

/* Runs one pass of all students. */
static wg_status pass_all(wg_trainer *t, int pass, bool own, bool backward, wg_error *err)
{
    for (int k = 0; k < t->p.students; k++) {
        wg_train_rows rows = pass_at(t, k, pass);
        if (own || k == 0) WG_TRY(prepare(t, &rows, err));
        rows.hidden = hidden(t);
        pass_of(t, k, &rows, backward);
    }
    return WG_OK;
}

/* The size of the text, in messages, on what a stopped run keeps. */
enum { KEPT = 96 };
static const char *kept_of(const wg_trainer *t, char kept[KEPT])
{
    if (t->saved == UINT64_MAX) return "no checkpoint was written yet";
    snprintf(kept, KEPT, "the checkpoint of step %llu is kept", (unsigned long long)t->saved);
    return kept;
}

/* Waits for the computations of student k. */
static wg_status wait(const wg_trainer *t, int k, wg_error *err)
{
    char kept[KEPT];
    wg_error why;
    const wg_status s = wg_ops_wait(wg_net_ops(t->student[k].net), &why);
    return s ? wg_fail(err, s, "step %ld: %s; %s", t->step + 1, why.text, kept_of(t, kept)) : WG_OK;
}

static wg_status not_finite(const wg_trainer *t, int k, const char *what, wg_error *err)
{
    char kept[KEPT];
    const char *name = t->student[k].name;
    return wg_fail(err, WG_EMODEL,
                   "step %ld%s%s: the %s is not a finite number; %s. Lower the learning rate, raise the warm-up or clip the "
                   "gradients, and begin again or go on from the checkpoint",
                   t->step + 1, name ? ", student " : "", name ? name : "", what, kept_of(t, kept));
}

static wg_train_report report_of(const wg_trainer *t, int k, double start)
{
    const wg_loss_part *sum = &t->learner[k].sum;
    const double counted = sum->rows ? sum->rows : 1;
    return (wg_train_report){ .student = k,
                              .step = t->step,
                              .steps = t->opt.steps,
                              .loss = sum->loss / counted,
                              .alpha = sum->alpha / counted,
                              .rows = sum->rows,
                              .seconds = wg_clock_now() - start };
}

/* Makes a step of all students; out: (students). Weights change only if all losses and gradients are finite. */
static wg_status step(wg_trainer *t, wg_train_report *out, wg_error *err)
{
    const wg_train_feed *f = t->p.feed;
    const double start = wg_clock_now();
    const int students = t->p.students;
    if (f && f->begin) WG_TRY(f->begin(f->ctx, t->step, err));
    WG_TRY(load_step(t, err));
    for (int k = 0; k < students; k++) wg_net_clear_gradients(t->student[k].net);
    for (int i = 0; i < t->passes; i++) WG_TRY(pass_all(t, i, is_own(t, i), true, err));
    for (int k = 0; k < students; k++) {
        clear_pruned(t, k, wg_net_gradients(t->student[k].net));
        out[k].norm = wg_optimiser_norm(t->learner[k].optimiser);
        WG_TRY(wait(t, k, err));
        if (!isfinite(t->learner[k].sum.loss)) return not_finite(t, k, "loss", err);
        if (!isfinite(out[k].norm)) return not_finite(t, k, "gradient", err);
    }
    for (int k = 0; k < students; k++) {
        const double norm = out[k].norm, rate = wg_schedule_at(t->student[k].schedule, t->step, t->opt.steps);
        wg_optimiser_step(t->learner[k].optimiser, t->step, rate, norm);
        clear_pruned(t, k, wg_net_trained(t->student[k].net)); /* Muon's updates are dense */
        out[k] = report_of(t, k, start);
        out[k].rows = t->learner[k].targets; /* not those of drafts, of which a head has several to each */
        out[k].step++;
        out[k].norm = norm;
        out[k].rate = rate;
    }
    t->step++;
    for (int k = 0; k < students; k++) out[k].seconds = out[students - 1].seconds;
    return WG_OK;
}

wg_status wg_trainer_held_out(wg_trainer *t, int windows, wg_train_report *out, wg_error *err)
{
    const double start = wg_clock_now();
    const size_t all = t->held.count < (size_t)windows ? t->held.count : (size_t)windows, micro = (size_t)t->opt.micro;
    for (int k = 0; k < t->p.students; k++) t->learner[k].sum = (wg_loss_part){ 0 };
    for (size_t first = 0; first < all; first += micro) {
        for (size_t i = 0; i < micro; i++) {
            const wg_window_out o = sequence_at(t, 0, i);
            const size_t n = first + i < all ? first + i : all - 1; /* spread over the text; fills up the last pass */
            WG_TRY(wg_windows_get(&t->held, n * t->held.count / all, true, &o, err));
            for (int k = 0; first + i >= all && k < t->opt.length; k++) o.target[k] = -1; /* a filler does not count */
        }
        wg_train_rows rows = pass_at(t, 0, 0);
        WG_TRY(prepare(t, &rows, err));
        rows.hidden = hidden(t);
        for (int k = 0; k < t->p.students; k++) pass_of(t, k, &rows, false);
    }
    for (int k = 0; k < t->p.students; k++) {
        WG_TRY(wait(t, k, err));
        out[k] = report_of(t, k, start);
        out[k].held_out = true;
    }
    return WG_OK;
}

wg_status wg_trainer_resume(wg_trainer *t, uint64_t *log_bytes, wg_error *err)
{
    WG_TRY(wg_checkpoint_load(t->p.folder, &t->kept, err));
    for (int k = 0; k < t->p.students; k++) {
        wg_net_send(t->student[k].net);
        wg_optimiser_send(t->learner[k].optimiser);
    }
    t->step = (long)t->kept.step;
    t->saved = t->kept.step;
    *log_bytes = t->kept.log_bytes;
    return WG_OK;
}

static wg_status save(wg_trainer *t, wg_error *err)
{
    t->kept.step = (uint64_t)t->step;
    if (!t->p.folder || t->saved == t->kept.step) return WG_OK;
    for (int k = 0; k < t->p.students; k++) {
        wg_net_fetch(t->student[k].net);
        wg_optimiser_fetch(t->learner[k].optimiser);
        WG_TRY(wait(t, k, err));
    }
    const wg_status s = wg_checkpoint_save(t->p.folder, &t->kept, err);
    if (s) {
        char kept[KEPT];
        const wg_error why = *err;
        return wg_fail(err, s, "step %ld: %s; %s. Make room, then %s", t->step, why.text, kept_of(t, kept),
                       t->saved == UINT64_MAX ? "begin again" : "go on with --resume");
    }
    t->saved = t->kept.step;
    return WG_OK;
}

static bool due(long step, int every, int steps) { return step == steps || (every > 0 && step % every == 0); }

static wg_status tell(const wg_trainer *t, const wg_train_report *r, wg_train_report_fn *report, void *user, wg_error *err)
{
    for (int k = 0; k < t->p.students; k++) WG_TRY(report(user, &r[k], err));
    return WG_OK;
}

static wg_status run_steps(wg_trainer *t, wg_train_report *r, wg_train_report_fn *report, void *user, wg_error *err)
{
    while (t->step < t->opt.steps) {
        WG_TRY(step(t, r, err));
        WG_TRY(tell(t, r, report, user, err));
        if (t->p.held && due(t->step, t->opt.evaluate, t->opt.steps)) {
            WG_TRY(wg_trainer_held_out(t, t->opt.held_out, r, err));
            WG_TRY(tell(t, r, report, user, err));
        }
        const bool stop = t->p.stop && *t->p.stop;
        if (stop || due(t->step, t->opt.checkpoint, t->opt.steps)) WG_TRY(save(t, err));
        if (stop && t->step < t->opt.steps)
            return wg_fail(err, WG_EINTERRUPTED, "interrupted after step %ld of %d; its checkpoint is written", t->step,
                           t->opt.steps);
    }
    return WG_OK;
}

wg_status wg_trainer_run(wg_trainer *t, wg_train_report_fn *report, void *user, wg_error *err)
{
    wg_train_report *r = wg_calloc((size_t)t->p.students, sizeof *r);
    if (!r) return wg_nomem(err, (size_t)t->p.students * sizeof *r, "reports");
    const wg_status s = run_steps(t, r, report, user, err);
    wg_free(r);
    return s;
}
