/* SPDX-License-Identifier: MIT */
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

struct wg_trainer {
    wg_train_parts p;
    wg_train_options opt;
    wg_windows train, held;
    wg_optimiser *optimiser;
    int32_t *arrays; /* (4, batch * length) tokens, targets, starts, positions of a step */
    size_t rows;     /* batch * length */
    uint8_t *kept;   /* (elements of the weights) 0: a weight that stays 0; NULL: all are trained */
    long step;
    uint64_t log_bytes, saved; /* saved: steps of the last checkpoint; UINT64_MAX: none */
};

static wg_windows windows_of(const wg_trainer *t, const wg_tokens *tokens)
{
    return (wg_windows){ .tokens = tokens,
                         .length = t->opt.length,
                         .vocab = wg_net_arch(t->p.net)->vocab,
                         .bos = t->p.bos,
                         .bos_share = t->opt.bos_share,
                         .seed = (uint64_t)t->opt.seed };
}

/* Which weights of the layers are not 0. */
static wg_status mark_zeros(wg_trainer *t, wg_error *err)
{
    wg_net *net = t->p.net;
    const float *w = wg_net_weights(net);
    if (!t->opt.keep_zeros) return WG_OK;
    t->kept = wg_alloc(wg_net_elements(net), 1);
    if (!t->kept) return wg_nomem(err, wg_net_elements(net), "the marks of pruned weights");
    memset(t->kept, 1, wg_net_elements(net));
    for (int i = 0; i < wg_net_tensors(net); i++) {
        const wg_net_tensor *x = wg_net_tensor_at(net, i);
        const size_t n = (size_t)x->rows * (size_t)x->columns;
        for (size_t k = 0; k < n && x->matrix; k++) t->kept[x->at + k] = w[x->at + k] != 0;
    }
    return WG_OK;
}

/* Of weights or gradients. */
static void clear_pruned(const wg_trainer *t, float *x)
{
    const size_t n = t->kept ? wg_net_elements(t->p.net) : 0;
    for (size_t i = 0; i < n; i++) x[i] = t->kept[i] ? x[i] : 0;
}

static wg_status open_all(wg_trainer *t, wg_error *err)
{
    if (t->opt.batch % t->opt.micro != 0)
        return wg_fail(err, WG_EINVAL, "batch %d is not a multiple of micro %d; a step is made of whole passes", t->opt.batch,
                       t->opt.micro);
    t->train = windows_of(t, t->p.train);
    WG_TRY(wg_windows_open(&t->train, err));
    if (t->p.held) {
        t->held = windows_of(t, t->p.held);
        WG_TRY(wg_windows_open(&t->held, err));
    }
    WG_TRY(mark_zeros(t, err));
    t->rows = (size_t)t->opt.batch * (size_t)t->opt.length;
    t->arrays = wg_calloc(4 * t->rows, sizeof *t->arrays);
    if (!t->arrays) return wg_nomem(err, 4 * t->rows * sizeof *t->arrays, "the tokens of a step; lower batch");
    return wg_optimiser_open(&t->optimiser, t->p.net, t->p.optimiser, t->p.pool, err);
}

wg_status wg_trainer_open(wg_trainer **out, const wg_train_parts *parts, wg_error *err)
{
    wg_trainer *t = wg_calloc(1, sizeof *t);
    if (!t) return wg_nomem(err, sizeof *t, "a trainer");
    t->p = *parts;
    t->opt = *parts->options;
    t->saved = UINT64_MAX;
    if (t->opt.length == 0) t->opt.length = wg_net_arch(parts->net)->context;
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
    wg_optimiser_close(t->optimiser);
    wg_free(t->arrays);
    wg_free(t->kept);
    wg_free(t);
}

long wg_trainer_step(const wg_trainer *t) { return t->step; }
void wg_trainer_log_is(wg_trainer *t, uint64_t bytes) { t->log_bytes = bytes; }

/* Place of sequence i of the step. */
static wg_window_out sequence_at(const wg_trainer *t, size_t i)
{
    int32_t *a = t->arrays + i * (size_t)t->opt.length;
    return (wg_window_out){ a, a + t->rows, a + 2 * t->rows, a + 3 * t->rows };
}

static wg_train_rows pass_at(const wg_trainer *t, int sequence)
{
    const wg_window_out o = sequence_at(t, (size_t)sequence);
    return (wg_train_rows){ .sequences = t->opt.micro,
                            .length = t->opt.length,
                            .token = o.token,
                            .target = o.target,
                            .start = o.start,
                            .position = o.position };
}

static wg_status load_step(wg_trainer *t, long *targets, wg_error *err)
{
    for (int i = 0; i < t->opt.batch; i++) {
        const wg_window_out o = sequence_at(t, (size_t)i);
        const uint64_t n = (uint64_t)t->step * (uint64_t)t->opt.batch + (uint64_t)i;
        WG_TRY(wg_windows_get(&t->train, n, false, &o, err));
    }
    *targets = 0;
    for (size_t i = 0; i < t->rows; i++) *targets += t->arrays[t->rows + i] >= 0;
    return WG_OK;
}

static wg_status pass(wg_trainer *t, const wg_train_rows *rows, double scale, bool backward, wg_loss_part *sum, wg_error *err)
{
    const wg_train_loss *loss = t->p.loss;
    if (loss && loss->prepare) WG_TRY(loss->prepare(loss->ctx, rows, err));
    wg_net_forward(t->p.net, rows);
    const wg_loss_part p = wg_net_loss(t->p.net, rows, loss, scale, backward);
    sum->loss += p.loss;
    sum->alpha += p.alpha;
    sum->rows += p.rows;
    return WG_OK;
}

static wg_status not_finite(const wg_trainer *t, const char *what, wg_error *err)
{
    char kept[96] = "no checkpoint was written yet";
    if (t->saved != UINT64_MAX)
        snprintf(kept, sizeof kept, "the checkpoint of step %llu is kept", (unsigned long long)t->saved);
    return wg_fail(err, WG_EINVAL,
                   "step %ld: the %s is not a finite number; %s. Lower the learning rate, raise the warm-up or clip the "
                   "gradients, and begin again or go on from the checkpoint",
                   t->step + 1, what, kept);
}

static wg_status step(wg_trainer *t, wg_train_report *r, wg_error *err)
{
    long targets;
    wg_loss_part sum = { 0 };
    const double start = wg_clock_now();
    WG_TRY(load_step(t, &targets, err));
    wg_net_clear_gradients(t->p.net);
    for (int i = 0; i < t->opt.batch; i += t->opt.micro) {
        const wg_train_rows rows = pass_at(t, i);
        WG_TRY(pass(t, &rows, targets ? 1 / (double)targets : 0, true, &sum, err));
    }
    clear_pruned(t, wg_net_gradients(t->p.net));
    const double norm = wg_optimiser_norm(t->optimiser), rate = wg_schedule_at(t->p.schedule, t->step, t->opt.steps);
    const double counted = sum.rows ? sum.rows : 1;
    if (!isfinite(sum.loss)) return not_finite(t, "loss", err);
    if (!isfinite(norm)) return not_finite(t, "gradient", err);
    wg_optimiser_step(t->optimiser, t->step, rate, norm);
    clear_pruned(t, wg_net_weights(t->p.net)); /* Muon's updates are dense */
    t->step++;
    *r = (wg_train_report){ .step = t->step,
                            .steps = t->opt.steps,
                            .loss = sum.loss / counted,
                            .alpha = sum.alpha / counted,
                            .norm = norm,
                            .rate = rate,
                            .rows = sum.rows,
                            .seconds = wg_clock_now() - start };
    return WG_OK;
}

wg_status wg_trainer_held_out(wg_trainer *t, int windows, wg_train_report *out, wg_error *err)
{
    wg_loss_part sum = { 0 };
    const double start = wg_clock_now();
    const size_t all = t->held.count < (size_t)windows ? t->held.count : (size_t)windows;
    for (size_t first = 0; first < all; first += (size_t)t->opt.micro) {
        for (size_t i = 0; i < (size_t)t->opt.micro; i++) {
            const wg_window_out o = sequence_at(t, i);
            const size_t n = first + i < all ? first + i : all - 1; /* spread over the text; the last pass is filled up, */
            WG_TRY(wg_windows_get(&t->held, n * t->held.count / all, true, &o, err));
            for (int k = 0; first + i >= all && k < t->opt.length; k++) o.target[k] = -1; /* not counted */
        }
        const wg_train_rows rows = pass_at(t, 0);
        WG_TRY(pass(t, &rows, 0, false, &sum, err));
    }
    const double counted = sum.rows ? sum.rows : 1;
    *out = (wg_train_report){ .step = t->step,
                              .steps = t->opt.steps,
                              .loss = sum.loss / counted,
                              .alpha = sum.alpha / counted,
                              .rows = sum.rows,
                              .seconds = wg_clock_now() - start,
                              .held_out = true };
    return WG_OK;
}

wg_status wg_trainer_resume(wg_trainer *t, uint64_t *log_bytes, wg_error *err)
{
    wg_checkpoint c = { .settings = t->p.settings };
    WG_TRY(wg_checkpoint_load(t->p.folder, &c, t->p.net, t->optimiser, err));
    t->step = (long)c.step;
    t->saved = c.step;
    *log_bytes = t->log_bytes = c.log_bytes;
    return WG_OK;
}

static wg_status save(wg_trainer *t, wg_error *err)
{
    const wg_checkpoint c = { .step = (uint64_t)t->step, .log_bytes = t->log_bytes, .settings = t->p.settings };
    if (!t->p.folder || t->saved == c.step) return WG_OK;
    WG_TRY(wg_checkpoint_save(t->p.folder, &c, t->p.net, t->optimiser, err));
    t->saved = c.step;
    return WG_OK;
}

static bool due(long step, int every, int steps) { return step == steps || (every > 0 && step % every == 0); }

wg_status wg_trainer_run(wg_trainer *t, wg_train_report_fn *report, void *user, wg_error *err)
{
    wg_train_report r;
    while (t->step < t->opt.steps) {
        WG_TRY(step(t, &r, err));
        WG_TRY(report(user, &r, err));
        if (t->p.held && due(t->step, t->opt.evaluate, t->opt.steps)) {
            WG_TRY(wg_trainer_held_out(t, t->opt.held_out, &r, err));
            WG_TRY(report(user, &r, err));
        }
        const bool stop = t->p.stop && *t->p.stop;
        if (stop || due(t->step, t->opt.checkpoint, t->opt.steps)) WG_TRY(save(t, err));
        if (stop && t->step < t->opt.steps)
            return wg_fail(err, WG_EINTERRUPTED, "interrupted after step %ld of %d; its checkpoint is written", t->step,
                           t->opt.steps);
    }
    return WG_OK;
}
