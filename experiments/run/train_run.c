/* SPDX-License-Identifier: MIT
 * A training run (train_run.h). */
#include "experiments/run/train_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/number.h"
#include "core/file/tokenizer_file.h"
#include "core/model/model.h"
#include "experiments/run/train_folder.h"

enum { EVERY = 20 }; /* steps between lines of progress without a terminal */

typedef struct run {
    const wg_train_config *c;
    const wg_train_run_options *o;
    wg_train_result *result;
    wg_weights *init, *source; /* source: the tokenizer's file; may be init */
    wg_tokenizer *tokenizer;
    wg_train_folder folder;
    wg_arch arch;
    wg_pool *pool;
    wg_device device;
    wg_train_ops ops;
    wg_net *net;
    wg_trainer *trainer;
    int length;
    double start, shown, seconds, rows; /* seconds, rows: of steps, for the rate */
} run;

/* ---- model and tokenizer */

static wg_status open_model(run *r, wg_error *err)
{
    const wg_train_model *m = &r->c->model;
    if (*m->init) {
        WG_TRY(wg_weights_open(&r->init, m->init, err));
        WG_TRY(wg_model_check(r->init, &(wg_model_options){ 0 }, &r->arch, err));
        WG_TRY(wg_net_check(&r->arch, m->init, err));
    }
    WG_TRY(*m->tokenizer ? wg_tokenizer_file_open(&r->source, m->tokenizer, err) : WG_OK);
    if (!r->source) r->source = r->init;
    WG_TRY(wg_tokenizer_open(&r->tokenizer, r->source, err));
    if (!r->init) wg_train_arch(&r->arch, m, wg_tokenizer_size(r->tokenizer), r->c->output.name);
    r->length = r->c->train.length ? r->c->train.length : r->arch.context;
    if (r->length > r->arch.context)
        return wg_fail(err, WG_EINVAL, "train.length is %d: the context of %s is %d", r->length, m->init, r->arch.context);
    if (wg_tokenizer_size(r->tokenizer) <= r->arch.vocab) return WG_OK;
    return wg_fail(err, WG_EVOCAB, "%s has %d tokens, the embedding of %s %d; give the model's own tokenizer", m->tokenizer,
                   wg_tokenizer_size(r->tokenizer), m->init, r->arch.vocab);
}

static void show(run *r, const wg_train_report *t)
{
    const double now = wg_clock_now(), rate = r->rows / r->seconds;
    const double left = (now - r->start) / (double)(t->step - r->result->step) * (double)(t->steps - t->step);
    char alpha[32] = "";
    if (t->alpha > 0) snprintf(alpha, sizeof alpha, ", alpha %.4f", t->alpha);
    if (r->o->progress ? now - r->shown < 0.2 : t->step % (t->steps / EVERY + 1) != 0) return;
    r->shown = now;
    fprintf(stderr, "%sstep %ld/%ld: loss %.4f%s%s, %.0f tok/s, %d:%02d:%02d left%s", r->o->progress ? "\r\x1b[K" : "", t->step,
            t->steps, t->loss, alpha, t->norm > 0 ? "" : " (no gradient)", rate, (int)left / 3600, (int)left / 60 % 60,
            (int)left % 60, r->o->progress ? "" : "\n");
    fflush(stderr);
}

static wg_status write_model(run *r, wg_error *err)
{
    char name[WG_OPTION_STRING + 8], path[WG_TRAIN_PATH];
    wg_net_fetch(r->net);
    WG_TRY(wg_ops_wait(&r->ops, err));
    snprintf(name, sizeof name, "%s.gguf", r->c->output.name);
    WG_TRY(wg_net_write(r->net, wg_train_folder_at(&r->folder, name, path), r->c->output.name, r->source,
                        wg_type_parse(r->c->output.type), err));
    snprintf(r->result->model, sizeof r->result->model, "%s", path);
    return WG_OK;
}

static wg_status report(void *user, const wg_train_report *t, wg_error *err)
{
    run *r = user;
    char line[512], number[4][WG_NUMBER_TEXT];
    int n;
    if (t->held_out) {
        r->result->held = t->loss;
        n = snprintf(line, sizeof line, "{\"held_out\":%s,\"rows\":%ld,\"seconds\":%.3f,\"step\":%ld}\n",
                     wg_number_text(t->loss, number[0], WG_NUMBER_TEXT), t->rows, t->seconds, t->step);
    } else {
        r->seconds += t->seconds;
        r->rows += (double)t->rows;
        r->result->loss = t->loss;
        r->result->rows += t->rows;
        n = snprintf(line, sizeof line,
                     "{\"alpha\":%s,\"loss\":%s,\"norm\":%s,\"rate\":%s,\"rows\":%ld,\"seconds\":%.3f,\"step\":%ld}\n",
                     t->alpha > 0 ? wg_number_text(t->alpha, number[0], WG_NUMBER_TEXT) : "null",
                     wg_number_text(t->loss, number[1], WG_NUMBER_TEXT), wg_number_text(t->norm, number[2], WG_NUMBER_TEXT),
                     wg_number_text(t->rate, number[3], WG_NUMBER_TEXT), t->rows, t->seconds, t->step);
        show(r, t);
    }
    WG_TRY(wg_train_folder_append(&r->folder, line, (size_t)n, err));
    wg_trainer_log_is(r->trainer, r->folder.log_bytes);
    return t->held_out ? write_model(r, err) : WG_OK;
}

/* ---- the run */

static wg_status open_trainer(run *r, wg_error *err)
{
    const wg_train_config *c = r->c;
    WG_TRY(wg_net_open(&r->net, &r->ops, &r->arch, c->train.micro, r->length, r->pool, err));
    if (r->init) WG_TRY(wg_net_read(r->net, r->init, err));
    else wg_net_randomise(r->net, (uint64_t)c->train.seed);
    const wg_train_student student = { .net = r->net, .optimiser = &c->optimiser, .schedule = &c->schedule };
    const wg_train_parts parts = { .student = &student,
                                   .students = 1,
                                   .pool = r->pool,
                                   .train = r->folder.train,
                                   .held = r->folder.held,
                                   .bos = wg_tokenizer_bos(r->tokenizer),
                                   .options = &c->train,
                                   .folder = r->o->folder,
                                   .settings = c->resolved,
                                   .stop = r->o->stop };
    WG_TRY(wg_trainer_open(&r->trainer, &parts, err));
    r->result->parameters = wg_arch_parameters(&r->arch);
    r->result->steps = c->train.steps;
    if (r->o->resume) WG_TRY(wg_trainer_resume(r->trainer, &r->folder.log_bytes, err));
    r->result->step = wg_trainer_step(r->trainer);
    return wg_train_folder_cut(&r->folder, err);
}

/* Opens the device before minutes of reading text. */
static wg_status open_device(run *r, wg_error *err)
{
    WG_TRY(wg_pool_open(&r->pool, r->o->threads, err));
    WG_TRY(wg_device_open(&r->device, r->o->device ? r->o->device : "cpu", r->pool, err));
    return wg_train_ops_of(&r->ops, &r->device, err);
}

static wg_status go(run *r, wg_error *err)
{
    WG_TRY(open_device(r, err));
    WG_TRY(open_model(r, err));
    WG_TRY(wg_train_folder_open(&r->folder, err));
    WG_TRY(wg_train_folder_tokens(&r->folder, &r->c->data, r->tokenizer, r->length, err));
    WG_TRY(open_trainer(r, err));
    WG_TRY(wg_train_folder_save(&r->folder, "config.json", r->c->resolved, err));
    r->start = wg_clock_now();
    const wg_status s = wg_trainer_run(r->trainer, report, r, err);
    if (r->o->progress) fputs("\r\x1b[K", stderr);
    r->result->step = wg_trainer_step(r->trainer);
    r->result->seconds = wg_clock_now() - r->start;
    return s ? s : write_model(r, err);
}

wg_status wg_train_run(const wg_train_config *c, const wg_train_run_options *o, wg_train_result *out, wg_error *err)
{
    *out = (wg_train_result){ .held = NAN };
    run r = { .c = c, .o = o, .result = out };
    r.folder = (wg_train_folder){ .path = o->folder, .log_name = "train.jsonl", .resume = o->resume, .log = -1 };
    const wg_status s = go(&r, err);
    wg_trainer_close(r.trainer);
    wg_net_close(r.net);
    wg_device_close(&r.device);
    wg_pool_close(r.pool);
    wg_train_folder_close(&r.folder);
    wg_tokenizer_close(r.tokenizer);
    if (r.source != r.init) wg_weights_close(r.source);
    wg_weights_close(r.init);
    return s;
}
