/* SPDX-License-Identifier: MIT
 * A distillation run (distill.h). */
#include "experiments/run/distill.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/number.h"
#include "draft/train/distill_feed.h"
#include "draft/train/distill_loss.h"
#include "draft/train/head_write.h"
#include "draft/train/trainer.h"
#include "experiments/run/conversations.h"
#include "experiments/run/train_folder.h"

enum { EVERY = 20 }; /* steps between lines of progress without a terminal */

typedef struct student {
    const wg_distill_student *c;
    wg_arch arch;
    wg_net *net;
    wg_distill_loss *loss;
    wg_train_loss plug;
    double last, held, alpha; /* loss of the last step; held-out loss and alpha, NaN: none */
} student;

typedef struct run {
    const wg_distill_config *c;
    const wg_distill_run_options *o;
    wg_target *target;
    wg_device device; /* device of the students */
    wg_train_ops ops;
    wg_target_rows *rows;
    wg_kept_rows *kept_rows;     /* NULL: the target reads every sequence */
    int32_t *kept;               /* (c->distill.keep) the tokens that students propose; NULL: all */
    int tap[WG_HEAD_TAPS], taps; /* hidden states that are kept; 0: no student is a head */
    student *student;
    wg_train_student *part; /* in the trainer's form */
    wg_net **net;           /* their networks */
    wg_rejections trace;
    wg_distill_feed *feed;
    int students, length;
    wg_train_folder folder;
    wg_trainer *trainer;
    long begun;                         /* step at which this process began */
    double start, shown, spent, worked; /* worked: rows of steps that took `spent` seconds */
} run;

/* ---- opening */

static wg_status check_device(const run *r, wg_error *err)
{
    if (!r->o->device || !strcmp(r->o->device, "cpu")) return WG_OK;
    for (int i = 0; i < r->c->students; i++)
        if (r->c->student[i].kind == WG_STUDENT_EAGLE3)
            return wg_fail(
                err, WG_EUNSUPPORTED,
                "student %s: heads are trained on the CPU, not on the device '%s': leave out --device, or this student",
                r->c->student[i].name, r->o->device);
    return WG_OK;
}

static wg_status open_target(run *r, wg_error *err)
{
    wg_target_options o = wg_setup_target_options(&r->c->target);
    o.need_tokenizer = true;
    if (r->o->threads) o.threads = r->o->threads;
    WG_TRY(wg_target_open(&r->target, r->c->target.model, &o, err));
    r->length = r->c->train.train.length;
    if (r->length == 0) r->length = r->target->lm->context;
    if (r->length <= r->target->lm->context) return WG_OK;
    return wg_fail(err, WG_EINVAL, "train.length is %d: the context of %s is %d", r->length, r->target->path,
                   r->target->lm->context);
}

static wg_status open_shapes(run *r, wg_error *err)
{
    r->students = r->c->students;
    r->student = wg_calloc((size_t)r->students, sizeof *r->student);
    r->part = wg_calloc((size_t)r->students, sizeof *r->part);
    r->net = wg_calloc((size_t)r->students, sizeof(wg_net *));
    if (!r->student || !r->part || !r->net) return wg_nomem(err, (size_t)r->students * sizeof *r->student, "students");
    for (int i = 0; i < r->students; i++) {
        student *s = &r->student[i];
        s->c = &r->c->student[i];
        s->held = s->alpha = s->last = NAN;
        WG_TRY(wg_distill_arch(&s->arch, s->c, r->target, r->length, err));
    }
    return WG_OK;
}

static bool is_head(const run *r, int i) { return r->student[i].c->kind == WG_STUDENT_EAGLE3; }

static wg_net_ends ends_of(const run *r, int i)
{
    wg_net_ends e = { .frozen = r->student[i].c->head == WG_HEAD_FROZEN, .kept = r->c->distill.keep };
    if (is_head(r, i)) e.steps = r->student[i].c->steps, e.taps = r->taps;
    return e;
}

/* Checks the total memory before anything is allocated. */
static wg_status check_memory(const run *r, wg_error *err)
{
    const int micro = r->c->train.train.micro, threads = wg_pool_threads(r->target->pool), vocab = r->target->lm->vocab;
    const size_t available = wg_mem_available();
    if (r->ops.gpu) return WG_OK; /* each student's opening checks a device's memory */
    const int width = r->c->distill.keep ? r->c->distill.keep : vocab;
    const int hidden = r->taps * r->target->lm->hidden.dim;
    double weights = 0, passes = 0, rows = (double)wg_target_rows_need(vocab, width, hidden, micro, r->length, threads);
    for (int i = 0; i < r->students; i++) {
        const wg_net_ends ends = ends_of(r, i);
        const wg_net_bytes b = wg_net_need(&r->student[i].arch, &ends, sizeof(float), micro, r->length, threads);
        weights += (double)b.weights + (double)b.gradients * 3; /* two are the optimiser's */
        passes += (double)b.activations + (double)b.logits + (double)wg_distill_loss_need(width, threads);
    }
    if (weights + passes + rows <= (double)available) return WG_OK;
    return wg_fail(err, WG_ENOMEM,
                   "distilling needs %.0f MB: weights, gradients and optimisers of %d students %.0f, activations and logits of "
                   "%d x %d tokens %.0f, the target's rows %.0f; %.0f MB are free: lower the sequences of a pass (micro), the "
                   "length, the models, or train fewer students at a time",
                   (weights + passes + rows) * 1e-6, r->students, weights * 1e-6, micro, r->length, passes * 1e-6, rows * 1e-6,
                   (double)available * 1e-6);
}

static wg_status open_rows(run *r, wg_error *err)
{
    const wg_target_rows_options o = { .lm = r->target->lm,
                                       .ops = r->target->ops,
                                       .pool = r->target->pool,
                                       .temperature = r->c->distill.temperature,
                                       .sequences = r->c->train.train.micro,
                                       .length = r->length,
                                       .kept = r->kept,
                                       .n_kept = r->c->distill.keep,
                                       .tap = r->tap,
                                       .n_taps = r->taps };
    WG_TRY(wg_target_rows_open(&r->rows, &o, err));
    if (r->c->distill.rows == WG_ROWS_KEPT) return wg_kept_rows_open(&r->kept_rows, &o, WG_KEPT_LENGTH, r->folder.train, err);
    return WG_OK;
}

static wg_status check_keep(const run *r, wg_error *err)
{
    const int n = r->c->distill.keep, vocab = wg_tokenizer_size(r->target->tokenizer);
    if (n < vocab) return WG_OK;
    return wg_fail(err, WG_EINVAL, "distill.keep is %d: %s has %d tokens; keep fewer, or leave it out", n, r->target->path,
                   vocab);
}

static wg_status choose_tokens(run *r, wg_error *err)
{
    const int n = r->c->distill.keep;
    char path[WG_TRAIN_PATH];
    if (n == 0) return WG_OK;
    r->kept = wg_alloc((size_t)n, sizeof *r->kept);
    if (!r->kept) return wg_nomem(err, (size_t)n * sizeof *r->kept, "the kept tokens");
    return wg_distill_vocabulary(r->kept, n, r->folder.train, r->target,
                                 wg_train_folder_at(&r->folder, "vocabulary.json", path), err);
}

static wg_status open_students(run *r, wg_error *err)
{
    wg_pool *pool = r->target->pool;
    for (int i = 0; i < r->students; i++) {
        student *s = &r->student[i];
        const wg_net_ends ends = ends_of(r, i);
        WG_TRY(wg_net_open_ends(&s->net, &r->ops, &s->arch, &ends, r->c->train.train.micro, r->length, pool, err));
        r->net[i] = s->net;
        WG_TRY(wg_distill_begin(s->net, s->c, r->kept, r->target, err));
        WG_TRY(wg_distill_loss_open(&s->loss, &s->c->loss, r->rows, ends.steps, r->c->distill.temperature,
                                    wg_pool_threads(pool), err));
        s->plug = wg_distill_loss_plug(s->loss);
        r->part[i] = (wg_train_student){ .net = s->net,
                                         .loss = &s->plug,
                                         .optimiser = &s->c->optimiser,
                                         .schedule = &s->c->schedule,
                                         .name = r->students > 1 ? s->c->name : NULL };
    }
    return WG_OK;
}

static wg_status open_feed(run *r, wg_error *err)
{
    const wg_distill_options *o = &r->c->distill;
    char path[WG_TRAIN_PATH];
    const double written = o->source.share[WG_SOURCE_TARGET] + o->source.share[WG_SOURCE_STUDENT];
    if (written > 0 && o->source.prompt >= r->length)
        return wg_fail(err, WG_EINVAL, "distill.prompt is %d, but sequences have %d tokens: there is nothing to continue",
                       o->source.prompt, r->length);
    if (o->source.share[WG_SOURCE_TRACE] > 0)
        WG_TRY(wg_rejections_open(&r->trace, o->trace, wg_train_folder_at(&r->folder, "trace.tokens", path), r->target, err));
    const wg_distill_feed_parts parts = { .options = &o->source,
                                          .rows = r->rows,
                                          .kept = r->kept_rows,
                                          .target = r->target->lm,
                                          .ops = r->target->ops,
                                          .device = &r->target->device,
                                          .tokenizer = r->target->tokenizer,
                                          .tokenizer_file = r->target->weights,
                                          .student = r->net,
                                          .students = r->students,
                                          .micro = r->c->train.train.micro,
                                          .length = r->length,
                                          .temperature = o->temperature,
                                          .bos_share = r->c->train.train.bos_share,
                                          .seed = (uint64_t)r->c->train.train.seed,
                                          .text = r->folder.train,
                                          .trace = r->trace.text,
                                          .rejected = r->trace.at,
                                          .folder = r->o->folder };
    return wg_distill_feed_open(&r->feed, &parts, err);
}

static wg_status open_trainer(run *r, const wg_train_feed *feed, wg_train_options *options, wg_error *err)
{
    options->length = r->length;
    const wg_train_parts parts = { .student = r->part,
                                   .students = r->students,
                                   .feed = feed,
                                   .pool = r->target->pool,
                                   .train = r->folder.train,
                                   .held = r->folder.held,
                                   .bos = wg_tokenizer_bos(r->target->tokenizer),
                                   .options = options,
                                   .folder = r->o->folder,
                                   .settings = r->c->resolved,
                                   .stop = r->o->stop };
    WG_TRY(wg_trainer_open(&r->trainer, &parts, err));
    if (r->o->resume) WG_TRY(wg_trainer_resume(r->trainer, &r->folder.log_bytes, err));
    r->begun = wg_trainer_step(r->trainer);
    return wg_train_folder_cut(&r->folder, err);
}

/* ---- models */

/* A student's file; of a head its folder. */
static const char *model_path(const run *r, int i, char path[WG_TRAIN_PATH])
{
    char name[WG_DISTILL_NAME + 8];
    snprintf(name, sizeof name, "%s%s", r->c->student[i].name, is_head(r, i) ? "" : ".gguf");
    return wg_train_folder_at(&r->folder, name, path);
}

/* Writes a student without what it has from its target, beside the whole one. */
static wg_status write_cut(run *r, int i, int type, wg_error *err)
{
    char path[WG_TRAIN_PATH], name[WG_DISTILL_NAME + 16], digest[WG_SHA256_HEX];
    if (!r->kept) return WG_OK;
    snprintf(name, sizeof name, "%s-cut.gguf", r->c->student[i].name);
    wg_tokenizer_digest(r->target->tokenizer, digest);
    const wg_net_cut cut = { r->c->student[i].name, r->kept, wg_model_arch(r->target->model)->name, digest };
    return wg_net_write_cut(r->student[i].net, wg_train_folder_at(&r->folder, name, path), &cut, type, err);
}

static wg_status write_head(run *r, int i, int type, wg_error *err)
{
    char path[WG_TRAIN_PATH];
    const wg_head_write_options o = { .folder = model_path(r, i, path),
                                      .target = r->target->path,
                                      .tap = r->tap,
                                      .n_taps = r->taps,
                                      .token = r->kept,
                                      .type = type == WG_F32 ? WG_F32 : WG_F16 };
    return wg_net_write_head(r->student[i].net, &o, err);
}

/* Writes a student with its present weights. */
static wg_status write_model(run *r, int i, wg_error *err)
{
    char path[WG_TRAIN_PATH];
    const int type = wg_type_parse(r->c->train.output.type);
    wg_net_fetch(r->student[i].net);
    WG_TRY(wg_ops_wait(&r->ops, err));
    if (is_head(r, i)) return write_head(r, i, type, err);
    WG_TRY(write_cut(r, i, type, err));
    return wg_net_write(r->student[i].net, model_path(r, i, path), r->c->student[i].name, r->target->weights, type, err);
}

/* ---- progress and log */

/* The student with the highest held-out alpha; 0 if unknown. */
static int best(const run *r)
{
    int at = 0;
    for (int i = 1; i < r->students; i++)
        if (r->student[i].alpha > r->student[at].alpha) at = i;
    return at;
}

static void show(run *r, const wg_train_report *t)
{
    const double now = wg_clock_now(), rate = r->worked / r->spent;
    const double left = (now - r->start) / (double)(t->step - r->begun) * (double)(t->steps - t->step);
    const student *s = &r->student[best(r)];
    char alpha[160] = "", of[WG_DISTILL_NAME + 8] = "";
    if (r->o->progress ? now - r->shown < 0.2 : t->step % (t->steps / EVERY + 1) != 0) return;
    if (r->students > 1) snprintf(of, sizeof of, " of %s", s->c->name);
    if (!isnan(s->alpha)) snprintf(alpha, sizeof alpha, ", held-out alpha %.4f", s->alpha);
    r->shown = now;
    fprintf(stderr, "%sstep %ld/%ld: loss%s %.4f%s, %.0f tok/s, %d:%02d:%02d left%s", r->o->progress ? "\r\x1b[K" : "", t->step,
            t->steps, of, s->last, alpha, rate, (int)left / 3600, (int)left / 60 % 60, (int)left % 60,
            r->o->progress ? "" : "\n");
    fflush(stderr);
}

static wg_status report(void *user, const wg_train_report *t, wg_error *err)
{
    run *r = user;
    student *s = &r->student[t->student];
    char line[640], loss[WG_NUMBER_TEXT], alpha[WG_NUMBER_TEXT], norm[WG_NUMBER_TEXT], rate[WG_NUMBER_TEXT];
    int n;
    wg_number_text(t->loss, loss, WG_NUMBER_TEXT);
    wg_number_text(t->alpha, alpha, WG_NUMBER_TEXT);
    if (t->held_out) {
        s->held = t->loss;
        s->alpha = t->alpha;
        n = snprintf(line, sizeof line,
                     "{\"alpha\":%s,\"held_out\":%s,\"rows\":%ld,\"seconds\":%.3f,\"step\":%ld,\"student\":\"%s\"}\n", alpha,
                     loss, t->rows, t->seconds, t->step, s->c->name);
    } else {
        s->last = t->loss;
        n = snprintf(line, sizeof line,
                     "{\"alpha\":%s,\"loss\":%s,\"norm\":%s,\"rate\":%s,\"rows\":%ld,\"seconds\":%.3f,\"step\":%ld,"
                     "\"student\":\"%s\"}\n",
                     alpha, loss, wg_number_text(t->norm, norm, WG_NUMBER_TEXT), wg_number_text(t->rate, rate, WG_NUMBER_TEXT),
                     t->rows, t->seconds, t->step, s->c->name);
        r->worked += (double)t->rows;
        if (t->student == r->students - 1) {
            r->spent += t->seconds;
            show(r, t);
        }
    }
    WG_TRY(wg_train_folder_append(&r->folder, line, (size_t)n, err));
    wg_trainer_log_is(r->trainer, r->folder.log_bytes);
    return t->held_out ? write_model(r, t->student, err) : WG_OK;
}

/* ---- results */

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static wg_status write_models(run *r, json_t *list, wg_error *err)
{
    char path[WG_TRAIN_PATH];
    for (int i = 0; i < r->students; i++) {
        const student *s = &r->student[i];
        WG_TRY(write_model(r, i, err));
        model_path(r, i, path);
        json_array_append_new(list, json_pack("{s:s, s:i, s:s, s:I, s:o, s:o, s:o, s:s}", "name", s->c->name, "seed",
                                              s->c->seed, "family", s->c->family_name, "parameters",
                                              (json_int_t)(is_head(r, i) ? wg_net_trained_elements(s->net)
                                                                         : (size_t)wg_arch_parameters(&s->arch)),
                                              "loss", number(s->last), "held_out", number(s->held), "alpha", number(s->alpha),
                                              "model", strrchr(path, '/') + 1));
    }
    return WG_OK;
}

static wg_status evaluate(run *r, wg_held_sums **sums, int *documents, wg_error *err)
{
    const wg_distill_eval_parts p = { .student = r->net,
                                      .students = r->students,
                                      .rows = r->rows,
                                      .pool = r->target->pool,
                                      .held = r->folder.held,
                                      .documents = r->c->distill.documents,
                                      .prompt =
                                          r->c->distill.source.prompt < r->length ? r->c->distill.source.prompt : r->length / 2,
                                      .writer = { .lm = r->target->lm,
                                                  .ops = r->target->ops,
                                                  .temperature = r->c->distill.temperature,
                                                  .sequences = r->c->train.train.micro,
                                                  .length = r->length,
                                                  .tokenizer = r->target->tokenizer,
                                                  .seed = (uint64_t)r->c->train.train.seed } };
    *documents = p.held ? wg_distill_eval_documents(&p) : 0;
    const size_t n = (size_t)r->students * (size_t)(*documents + 1);
    *sums = wg_calloc(n, sizeof **sums);
    if (!*sums) return wg_nomem(err, n * sizeof **sums, "held-out sums");
    return *documents ? wg_distill_evaluate(&p, *sums, err) : WG_OK;
}

/* The seconds of sampling a row, measured on one of the target's. */
static double time_row(const run *r, wg_error *err)
{
    enum { ROWS = 64 };
    const wg_sampling sampling = WG_SAMPLING(r->c->distill.temperature, 0, 1, 0);
    const wg_chance chance = wg_chance_philox(1, 0, 0);
    wg_sampler s;
    wg_rows rows;
    double start = 0;
    const int last = wg_target_rows_last(r->rows);
    if (last < 0) return 0; /* nothing is predicted anywhere */
    const float *p = wg_target_rows_p(r->rows, last);
    const int vocab = r->target->lm->vocab;
    float *row = wg_calloc((size_t)vocab, sizeof *row);
    for (int i = 0; row && i < wg_target_rows_width(r->rows); i++) row[r->kept ? r->kept[i] : i] = p[i];
    if (!row || wg_rows_open(&rows, 1, vocab, err)) {
        wg_free(row);
        return 0;
    }
    if (wg_sampler_open(&s, &sampling, r->target->ops, r->target->lm->vocab, err) == WG_OK) {
        wg_rows_push(&rows);
        for (int i = -1; i < ROWS; i++) { /* the first warms memory up */
            if (i == 0) start = wg_clock_now();
            wg_sampler_row(&s, row, &rows, 0);
            wg_rows_pick(&rows, 0, &chance, WG_DRAW_NEXT, i + 1);
        }
        start = (wg_clock_now() - start) / ROWS;
        wg_sampler_close(&s);
    }
    wg_rows_close(&rows);
    wg_free(row);
    return start;
}

/* Times passes of the written files, one per family, and of the target. */
static wg_status measure_costs(run *r, wg_distill_costs *costs, wg_error *err)
{
    char path[WG_TRAIN_PATH];
    costs->context = r->length / 2;
    costs->row = time_row(r, err);
    costs->student = wg_calloc((size_t)r->c->families, sizeof *costs->student);
    if (!costs->student) return wg_nomem(err, (size_t)r->c->families * sizeof *costs->student, "costs");
    WG_TRY(wg_cost_measure(&costs->target, r->target->lm, WG_TAU_LENGTHS + 1, costs->context, 1, err));
    for (int f = 0; f < r->c->families; f++) {
        wg_weights *w;
        wg_model *m = NULL;
        if (is_head(r, f * r->c->seeds)) continue; /* its pass is not a model's */
        WG_TRY(wg_weights_open(&w, model_path(r, f * r->c->seeds, path), err));
        const wg_model_options o = { .kv_type = WG_F16, .head = r->kept, .n_head = r->c->distill.keep };
        wg_status s = wg_model_open(&m, w, &r->target->device, &o, err);
        if (s == WG_OK) s = wg_cost_measure(&costs->student[f], wg_model_lm(m), 2, costs->context, 1, err);
        wg_model_close(m);
        wg_weights_close(w);
        WG_TRY(s);
    }
    return WG_OK;
}

static wg_status compare(run *r, json_t *result, json_t *list, wg_error *err)
{
    wg_held_sums *sums = NULL;
    wg_distill_costs costs = { 0 };
    wg_distill_outcome o = { .c = r->c };
    wg_status s = evaluate(r, &sums, &o.documents, err);
    const bool predict = s == WG_OK && o.documents > 0 && r->c->distill.predict;
    if (predict) s = measure_costs(r, &costs, err);
    o.sums = sums;
    o.costs = predict ? &costs : NULL;
    if (s == WG_OK) s = wg_distill_result(result, list, &o, err);
    wg_free(sums);
    wg_free(costs.student);
    return s;
}

static student *student_named(run *r, const char *name)
{
    for (int i = 0; name && i < r->students; i++)
        if (!strcmp(r->student[i].c->name, name)) return &r->student[i];
    return NULL;
}

/* Reads rows with a loss, seconds of steps and each student's last values from the log, which has the steps of all processes of
 * the run. */
static wg_status read_log(run *r, double *rows, double *seconds, wg_error *err)
{
    char path[WG_TRAIN_PATH], line[1024];
    FILE *f = fopen(wg_train_folder_at(&r->folder, r->folder.log_name, path), "re");
    if (!f) return wg_fail(err, WG_EIO, "%s: cannot read: %s", path, strerror(errno));
    while (fgets(line, sizeof line, f)) {
        json_t *o = json_loads(line, 0, NULL);
        student *s = student_named(r, json_string_value(json_object_get(o, "student")));
        if (s && json_object_get(o, "loss")) {
            s->last = json_number_value(json_object_get(o, "loss"));
            *rows += json_number_value(json_object_get(o, "rows"));
            if (s == &r->student[r->students - 1]) *seconds += json_number_value(json_object_get(o, "seconds"));
        } else if (s) {
            s->held = json_number_value(json_object_get(o, "held_out"));
            s->alpha = json_number_value(json_object_get(o, "alpha"));
        }
        json_decref(o);
    }
    fclose(f);
    return WG_OK;
}

static wg_status write_result(run *r, json_t **result, wg_error *err)
{
    char path[WG_TRAIN_PATH];
    double rows = 0, seconds = 0;
    WG_TRY(read_log(r, &rows, &seconds, err));
    json_t *list = json_array();
    *result = json_pack("{s:i, s:s, s:I, s:I, s:f, s:f, s:o}", "schema", 1, "target", r->target->path, "steps",
                        (json_int_t)wg_trainer_step(r->trainer), "tokens", (json_int_t)(rows / r->students), "seconds", seconds,
                        "tok_s", seconds > 0 ? rows / seconds : 0.0, "students", list);
    if (!*result) return wg_nomem(err, 1, "a result");
    WG_TRY(write_models(r, list, err));
    WG_TRY(compare(r, *result, list, err));
    return wg_json_save(*result, wg_train_folder_at(&r->folder, "distill.json", path), err);
}

/* Has the target write the conversations that are missing. */
static wg_status write_conversations(run *r, wg_conversations_count *count, wg_error *err)
{
    const wg_conversations_job job = { .options = &r->c->conversations,
                                       .path = r->c->train.data.conversations,
                                       .target = r->target,
                                       .how = &r->c->target,
                                       .stop = r->o->stop,
                                       .progress = r->o->progress };
    return r->c->conversations.tokens > 0 ? wg_conversations_write(&job, count, err) : WG_OK;
}

static wg_status write_only(run *r, json_t **result, wg_error *err)
{
    wg_conversations_count n = { 0 };
    if (r->c->conversations.tokens == 0)
        return wg_fail(err, WG_EINVAL, "conversations.tokens is 0: there is nothing to write; say how many tokens of answers");
    WG_TRY(open_target(r, err));
    WG_TRY(write_conversations(r, &n, err));
    *result = json_pack("{s:I, s:I}", "conversations", (json_int_t)n.conversations, "tokens", (json_int_t)n.tokens);
    return *result ? WG_OK : wg_nomem(err, 1, "a result");
}

static wg_status go(run *r, json_t **result, wg_error *err)
{
    wg_train_options options = r->c->train.train;
    wg_conversations_count written;
    if (r->o->write_only) return write_only(r, result, err);
    WG_TRY(check_device(r, err));
    WG_TRY(open_target(r, err)); /* what the config has wrong is said before texts are read or written */
    WG_TRY(check_keep(r, err));
    WG_TRY(wg_device_open(&r->device, r->o->device ? r->o->device : "cpu", r->target->pool, err));
    WG_TRY(wg_train_ops_of(&r->ops, &r->device, err));
    WG_TRY(open_shapes(r, err));
    WG_TRY(wg_distill_taps(r->c, r->target, r->tap, &r->taps, err));
    WG_TRY(check_memory(r, err));
    WG_TRY(wg_train_folder_open(&r->folder, err));
    WG_TRY(write_conversations(r, &written, err));
    WG_TRY(wg_train_folder_tokens(&r->folder, &r->c->train.data, r->target->tokenizer, r->length, err));
    WG_TRY(choose_tokens(r, err));
    WG_TRY(open_rows(r, err));
    WG_TRY(open_students(r, err));
    WG_TRY(open_feed(r, err));
    const wg_train_feed feed = wg_distill_feed_plug(r->feed);
    WG_TRY(open_trainer(r, &feed, &options, err));
    WG_TRY(wg_train_folder_save(&r->folder, "config.json", r->c->resolved, err));
    r->start = wg_clock_now();
    const wg_status s = wg_trainer_run(r->trainer, report, r, err);
    if (r->o->progress) fputs("\r\x1b[K", stderr);
    return s ? s : write_result(r, result, err);
}

wg_status wg_distill_run(const wg_distill_config *c, const wg_distill_run_options *o, json_t **result, wg_error *err)
{
    run r = { .c = c, .o = o };
    r.folder = (wg_train_folder){ .path = o->folder, .log_name = "distill.jsonl", .resume = o->resume, .log = -1 };
    *result = NULL;
    const wg_status s = go(&r, result, err);
    wg_trainer_close(r.trainer);
    for (int i = 0; r.student && i < r.students; i++) {
        wg_net_close(r.student[i].net);
        wg_distill_loss_close(r.student[i].loss);
    }
    wg_distill_feed_close(r.feed);
    wg_rejections_close(&r.trace);
    wg_kept_rows_close(r.kept_rows);
    wg_target_rows_close(r.rows);
    wg_train_folder_close(&r.folder);
    wg_device_close(&r.device);
    wg_target_close(r.target);
    wg_free(r.student);
    wg_free(r.part);
    wg_free(r.net);
    wg_free(r.kept);
    if (s && *result) json_decref(*result), *result = NULL;
    return s;
}
