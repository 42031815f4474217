/* SPDX-License-Identifier: MIT
 * Losses of students as plug-ins of the network (distill_loss.h). */
#include "draft/train/distill_loss.h"

#include "core/base/mem.h"

struct wg_distill_loss {
    const wg_target_rows *target;
    wg_loss **loss; /* (threads) */
    int threads, steps;
};

size_t wg_distill_loss_need(int width, int threads) { return (size_t)threads * 5 * (size_t)width * sizeof(double); }

static wg_status open_all(wg_distill_loss *l, const wg_loss_spec *spec, double temperature, wg_error *err)
{
    const int width = wg_target_rows_width(l->target);
    wg_loss_spec own = *spec;
    if (l->steps) own.length = l->steps;
    l->loss = wg_calloc((size_t)l->threads, sizeof *l->loss);
    if (!l->loss) return wg_nomem(err, (size_t)l->threads * sizeof *l->loss, "a loss");
    for (int i = 0; i < l->threads; i++) WG_TRY(wg_loss_open(&l->loss[i], &own, temperature, WG_LOSS_ROWS, width, err));
    return WG_OK;
}

wg_status wg_distill_loss_open(wg_distill_loss **out, const wg_loss_spec *spec, const wg_target_rows *target, int steps,
                               double temperature, int threads, wg_error *err)
{
    wg_distill_loss *l = wg_calloc(1, sizeof *l);
    if (!l) return wg_nomem(err, sizeof *l, "a loss");
    l->target = target;
    l->threads = threads;
    l->steps = steps;
    const wg_status s = open_all(l, spec, temperature, err);
    if (s) wg_distill_loss_close(l);
    else *out = l;
    return s;
}

void wg_distill_loss_close(wg_distill_loss *l)
{
    if (!l) return;
    for (int i = 0; l->loss && i < l->threads; i++) wg_loss_close(l->loss[i]);
    wg_free(l->loss);
    wg_free(l);
}

/* Whether a draft reaches row `at`: all tokens before it, from the row where it begins, are kept. */
static bool is_reached(const wg_target_rows *target, int first, int at)
{
    while (first < at && wg_target_rows_text(target, first) >= 0) first++;
    return first == at;
}

wg_loss_target wg_distill_loss_target(const wg_target_rows *target, int steps, int logits)
{
    const wg_train_rows *in = wg_target_rows_of(target);
    const int row = wg_net_row(in, steps, logits);
    if (row < 0 || (steps && !is_reached(target, logits / steps, row))) return (wg_loss_target){ .text = -1, .left_out = true };
    return (wg_loss_target){ .narrow = wg_target_rows_p(target, row),
                             .entropy = wg_target_rows_entropy(target, row),
                             .text = wg_target_rows_text(target, row),
                             .begins = steps ? logits % steps == 0 : in->start[row] == row % in->length };
}

static void loss_of_rows(void *ctx, int thread, int first, int rows, int vocab, const float *z, float *dz, wg_loss_part *sum)
{
    const wg_distill_loss *l = ctx;
    wg_loss_target at[WG_LOSS_ROWS];
    wg_loss_value value;
    (void)vocab;
    for (int i = 0; i < rows; i++) at[i] = wg_distill_loss_target(l->target, l->steps, first + i);
    wg_loss_rows(l->loss[thread], at, rows, z, dz, &value);
    sum->loss += value.loss;
    sum->alpha += value.alpha;
    sum->rows += value.rows;
}

wg_train_loss wg_distill_loss_plug(wg_distill_loss *l) { return (wg_train_loss){ loss_of_rows, l }; }
