/* SPDX-License-Identifier: MIT */
#include "experiments/cli/plan_student.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/file/synth.h"
#include "draft/train/net.h"
#include "experiments/analysis/cost.h"
#include "experiments/analysis/student_points.h"
#include "experiments/base/json_number.h"
#include "experiments/base/spec.h"
#include "experiments/base/target.h"
#include "experiments/base/timing.h"
#include "experiments/bench/bench_train.h"
#include "experiments/run/train_folder.h"

enum { STUDENTS = 48, SEQUENCES = 4, BATCH = 16, LENGTH = 512, REPEATS = 3, ROWS = 64, CHOSEN = 4, SHORTEST = 32 };
#define ENOUGH 1.5 /* the speed-up that the second break-even is for */

typedef struct student {
    wg_student_shape shape;
    char name[48];
    wg_arch arch;
    wg_cost cost;
    double even, enough; /* alpha for a speed-up of 1 and of ENOUGH; NaN: none gives it */
    wg_scaling_alpha alpha;
    int length; /* of drafts, the best for alpha */
    wg_predicted speed;
    wg_train_speed train;
    double hours, memory, disk; /* of training; hours NaN: not measured */
} student;

typedef struct planner {
    const wg_plan_student *o;
    wg_target *t;
    const wg_arch *arch; /* the target's */
    wg_cost cost;
    double rest;                   /* of a row of a step besides its pass */
    int context, length, students; /* length: of sequences of training */
    student *s;
    wg_student_points points;
    wg_scaling_fit fit;
    bool fitted;
    char unfitted[WG_ERROR_TEXT], untimed[WG_ERROR_TEXT]; /* why not; "": it is */
} planner;

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static bool number_in(const char **at, const char *end, int most, int *out)
{
    long v = 0;
    const char *begin = *at;
    while (*at < end && **at >= '0' && **at <= '9' && v <= most) v = 10 * v + *(*at)++ - '0';
    *out = (int)v;
    return *at > begin && v >= 1 && v <= most;
}

bool wg_student_shape_parse(const char *text, size_t n, wg_student_shape *out)
{
    const char *at = text, *end = text + n;
    *out = (wg_student_shape){ 0 };
    if (!number_in(&at, end, 1024, &out->layers) || at == end || *at++ != 'x' || !number_in(&at, end, 1 << 16, &out->dim))
        return false;
    if (at < end && *at == 'x' && (at++, !number_in(&at, end, 4096, &out->heads))) return false;
    if (at < end && *at == 'h') out->target_head = true, at++;
    return at == end && out->dim % 8 == 0 &&
           (out->heads == 0 || (out->dim % out->heads == 0 && out->dim / out->heads % 2 == 0));
}

/* Heads of 32, of 64 from a width of 512 on; one where the width is no multiple. */
static int usual_heads(int dim)
{
    const int size = dim >= 512 ? 64 : 32;
    return dim % size == 0 ? dim / size : 1;
}

static void set_arch(const planner *p, student *s)
{
    const wg_student_shape *w = &s->shape;
    const int heads = w->heads ? w->heads : usual_heads(w->dim);
    wg_train_model shape;
    wg_train_model_shape(&shape, w->layers, w->dim, heads);
    shape.kv_heads = heads % 2 == 0 ? heads / 2 : heads;
    shape.context = p->arch->context;
    wg_train_arch(&s->arch, &shape, p->arch->vocab, "");
    if (w->target_head) s->arch.tied = p->arch->tied;
    snprintf(s->name, sizeof s->name, "%dx%d%s", w->layers, w->dim, w->target_head ? "h" : "");
}

static wg_status add_shape(planner *p, wg_student_shape w, wg_error *err)
{
    if (w.target_head && w.dim != p->arch->dim)
        return wg_fail(err, WG_EINVAL, "--shapes %dx%dh: with the target's head a student has the target's width, %d", w.layers,
                       w.dim, p->arch->dim);
    if (p->students == STUDENTS) return wg_fail(err, WG_EINVAL, "--shapes: more than %d shapes; give fewer", STUDENTS);
    p->s[p->students].shape = w;
    set_arch(p, &p->s[p->students++]);
    return WG_OK;
}

static wg_status read_shapes(planner *p, wg_error *err)
{
    for (const char *at = p->o->shapes; *at;) {
        const size_t n = strcspn(at, ",");
        wg_student_shape w;
        if (!wg_student_shape_parse(at, n, &w))
            return wg_fail(
                err, WG_EINVAL,
                "--shapes: \"%.*s\": expected LAYERSxWIDTH, such as 2x128, 2x128x4 with 4 heads, or 1x%dh with the head of "
                "the target; the width a multiple of 8, a head's even",
                (int)(n < 60 ? n : 60), at, p->arch->dim);
        WG_TRY(add_shape(p, w, err));
        at += n + (at[n] == ',');
    }
    return WG_OK;
}

/* One to three layers of an eighth to a half of the target's width, and one or two of its own width under its head. */
static wg_status usual_shapes(planner *p, wg_error *err)
{
    static const double share[] = { 1. / 8, 1. / 6, 1. / 4, 1. / 3, 1. / 2 };
    int last = 0;
    for (size_t i = 0; i < sizeof share / sizeof *share; i++) {
        const int dim = (int)(p->arch->dim * share[i] + SHORTEST / 2) / SHORTEST * SHORTEST;
        if (dim <= last || dim >= p->arch->dim) continue;
        for (int layers = 1; layers <= 3; layers++)
            WG_TRY(add_shape(p, (wg_student_shape){ .layers = layers, .dim = dim }, err));
        last = dim;
    }
    for (int layers = 1; layers <= 2 && layers < p->arch->layers; layers++)
        WG_TRY(add_shape(p, (wg_student_shape){ .layers = layers, .dim = p->arch->dim, .target_head = true }, err));
    return WG_OK;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

/* A model of random weights of the shape, in its usual type, for the time of its passes. */
static wg_status time_student(planner *p, student *s, const char *file, wg_error *err)
{
    const wg_arch *a = &s->arch;
    const wg_synth_shape shape = { .name = s->name,
                                   .layers = a->layers,
                                   .dim = a->dim,
                                   .heads = a->heads,
                                   .kv_heads = a->kv_heads,
                                   .hidden = a->hidden,
                                   .vocab = a->vocab,
                                   .context = a->context,
                                   .tied = a->tied };
    wg_weights *w;
    wg_model *m = NULL;
    WG_TRY(wg_synth_write(&shape, WG_Q8_0, 1, file, err));
    WG_TRY(wg_weights_open(&w, file, err));
    wg_status st = wg_model_open(&m, w, &p->t->device, &(wg_model_options){ .kv_type = WG_F16 }, err);
    wg_weights_close(w);
    if (st == WG_OK) st = wg_cost_measure(&s->cost, wg_model_lm(m), 2, p->context, 1, err);
    wg_model_close(m);
    return st;
}

static wg_status time_students(planner *p, wg_error *err)
{
    char file[4096];
    const char *tmp = getenv("TMPDIR");
    snprintf(file, sizeof file, "%.4000s/wager-plan-%ld.gguf", tmp && *tmp ? tmp : "/tmp", (long)getpid());
    wg_status s = WG_OK;
    for (int i = 0; i < p->students && s == WG_OK; i++) s = time_student(p, &p->s[i], file, err);
    unlink(file);
    return s;
}

/* Sampling a row and keeping it: from plain steps of the target. */
static wg_status time_rest(planner *p, wg_error *err)
{
    enum { STEPS = 32 };
    wg_engine_parts parts = wg_target_engine_parts(p->t);
    wg_engine *e;
    wg_seq *seq = NULL;
    const int32_t first[] = { 0 };
    const wg_engine_options o = { .max_batch = 1,
                                  .seed = 1,
                                  .sampling = WG_SAMPLING(isnan(p->o->temperature) ? 1 : p->o->temperature, 0, 1, 0) };
    WG_TRY(wg_find_drafter(&wg_program_plugins, "none", &parts.drafter, err));
    WG_TRY(wg_find_verifier(&wg_program_plugins, "match", &parts.verifier, err));
    WG_TRY(wg_engine_open(&e, &parts, &o, err));
    wg_status s = wg_seq_open(e, &seq, 0, first, 1, STEPS, err);
    int steps = 0;
    while (s == WG_OK && seq->finish == WG_RUNNING) s = wg_engine_step(e, &seq, 1, err), steps++;
    const wg_phases *phases = wg_engine_phases(e);
    p->rest = (phases->accept + phases->kv + phases->draft) / fmax(1, steps);
    wg_seq_close(e, seq);
    wg_engine_close(e);
    return s;
}

/* Hours of training, of student and target's rows; where products cannot be timed, why not. */
static void bill(planner *p, student *s)
{
    wg_error err;
    const wg_bench_train_options o = {
        .threads = p->o->threads, .sequences = SEQUENCES, .length = p->length, .repeats = REPEATS
    };
    const int threads = wg_pool_threads(p->t->pool);
    const wg_net_bytes b = wg_net_need(&s->arch, sizeof(float), SEQUENCES, p->length, threads);
    const double step = (double)BATCH * p->length, target_row = wg_cost_pass(&p->cost, ROWS, p->context, 1) / ROWS;
    const double state = 3.0 * (double)b.weights; /* weights, and the most that an optimiser keeps of each */
    s->memory = state + (double)b.gradients + (double)b.activations + (double)b.logits +
                (double)SEQUENCES * p->length * s->arch.vocab * sizeof(float);
    s->disk = 2 * state + p->o->tokens * (s->arch.vocab > 1 << 16 ? 4 : 2);
    s->hours = NAN;
    if (*p->untimed) return;
    if (wg_bench_train_speed(&s->arch, &o, &s->train, &err) != WG_OK) {
        snprintf(p->untimed, sizeof p->untimed, "%s", err.text);
        return;
    }
    s->hours = p->o->tokens * (s->train.pass / s->train.rows + s->train.update / step + target_row) / 3600;
}

/* ---- predicting -------------------------------------------------------------------------------------------------- */

static wg_predicted speed_at(const planner *p, const student *s, double alpha, int length)
{
    const wg_step_cost plain = { 0, wg_cost_pass(&p->cost, 1, p->context, 1), p->rest },
                       step = { length * (wg_cost_pass(&s->cost, 1, p->context, 1) + p->rest),
                                wg_cost_pass(&p->cost, length + 1, p->context, 1), p->rest * (length + 1) };
    double tau = 1;
    for (int i = 1; i <= length; i++) tau += pow(alpha, i);
    return wg_cost_speedup(tau, &step, &plain, fmax(p->cost.error, s->cost.error), s->cost.error);
}

static int best_length(const planner *p, const student *s, double alpha)
{
    int best = 1;
    for (int n = 2; n <= p->o->length; n++)
        if (speed_at(p, s, alpha, n).speedup > speed_at(p, s, alpha, best).speedup) best = n;
    return best;
}

/* The least alpha with which drafts of the best length have this speed-up; NaN: none below 1 has. */
static double alpha_for(const planner *p, const student *s, double speedup)
{
    double lo = 0, hi = 1;
    if (speed_at(p, s, 1, best_length(p, s, 1)).speedup < speedup) return NAN;
    for (int i = 0; i < 40; i++) {
        const double a = (lo + hi) / 2;
        if (speed_at(p, s, a, best_length(p, s, a)).speedup < speedup) lo = a;
        else hi = a;
    }
    return hi;
}

static void predict(const planner *p, student *s)
{
    s->even = alpha_for(p, s, 1);
    s->enough = alpha_for(p, s, ENOUGH);
    if (!p->fitted) return;
    s->alpha = wg_scaling_predict(&p->fit, (double)wg_arch_parameters(&s->arch), p->o->tokens);
    s->length = best_length(p, s, s->alpha.alpha);
    s->speed = speed_at(p, s, s->alpha.alpha, s->length);
    const double lo = log(s->speed.lo / s->speed.speedup), hi = log(s->speed.hi / s->speed.speedup),
                 down = log(speed_at(p, s, s->alpha.lo, s->length).speedup / s->speed.speedup),
                 up = log(speed_at(p, s, s->alpha.hi, s->length).speedup / s->speed.speedup);
    s->speed.lo = s->speed.speedup * exp(-sqrt(lo * lo + down * down)); /* as independent errors */
    s->speed.hi = s->speed.speedup * exp(sqrt(hi * hi + up * up));
}

static wg_status read_points(planner *p, wg_error *err)
{
    wg_error own;
    for (int i = 0; i < p->o->points->n; i++) WG_TRY(wg_student_points_add(&p->points, p->o->points->item[i], err));
    WG_TRY(wg_student_points_at(&p->points, p->o->temperature, err));
    if (p->points.n == 0) {
        snprintf(p->unfitted, sizeof p->unfitted, "no measured students were given (--points distill.json or a result folder)");
        return WG_OK;
    }
    p->fitted = wg_scaling_fit_points(&p->fit, p->points.value, p->points.n, &own) == WG_OK;
    if (!p->fitted) snprintf(p->unfitted, sizeof p->unfitted, "%s", own.text);
    return WG_OK;
}

/* ---- what to train ----------------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const int64_t x = wg_arch_parameters(&((const student *)a)->arch), y = wg_arch_parameters(&((const student *)b)->arch);
    return (x > y) - (x < y);
}

/* With a fit the fastest; without one sizes that are spread over the list, which a fit needs. Students are in order of size. */
static int choose(const planner *p, int chosen[CHOSEN])
{
    int n = 0;
    if (!p->fitted) {
        for (int i = 0; i < CHOSEN && i < p->students; i++)
            chosen[n++] = p->students <= CHOSEN ? i : i * (p->students - 1) / (CHOSEN - 1);
        return n;
    }
    for (bool more = true; more && n < CHOSEN - 1;) {
        int best = -1;
        for (int i = 0; i < p->students; i++) {
            bool taken = false;
            for (int k = 0; k < n; k++) taken = taken || chosen[k] == i;
            if (!taken && (best < 0 || p->s[i].speed.speedup > p->s[best].speed.speedup)) best = i;
        }
        more = best >= 0;
        if (more) chosen[n++] = best;
    }
    return n;
}

static json_t *config_json(const planner *p)
{
    int chosen[CHOSEN];
    const int n = choose(p, chosen);
    json_t *students = json_array();
    for (int i = 0; i < n; i++) {
        const student *s = &p->s[chosen[i]];
        json_t *model = json_pack("{s:i, s:i, s:i, s:i, s:i}", "layers", s->arch.layers, "dim", s->arch.dim, "heads",
                                  s->arch.heads, "kv_heads", s->arch.kv_heads, "hidden", s->arch.hidden);
        json_object_set_new(model, "context", json_integer(s->arch.context));
        if (s->shape.target_head) json_object_set_new(model, "target_head", json_string("frozen"));
        json_array_append_new(students, json_pack("{s:s, s:o}", "name", s->name, "model", model));
    }
    const double steps = ceil(p->o->tokens / ((double)BATCH * p->length));
    return json_pack("{s:{s:s}, s:{s:s}, s:{s:I, s:i, s:i, s:i}, s:o}", "target", "model", p->o->model, "data", "text",
                     p->o->text ? p->o->text : "TEXT", "train", "steps", (json_int_t)steps, "batch", BATCH, "micro", SEQUENCES,
                     "length", p->length, "students", students);
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static void print_fit(const planner *p)
{
    const wg_scaling_fit *f = &p->fit;
    if (!p->fitted) {
        printf("fit     none: %s.\n        So there is no alpha and no speed-up below, only what alpha would have to be.\n\n",
               p->unfitted);
        return;
    }
    printf("fit     1 - alpha = %.3g", exp(f->constant));
    if (f->by_size) printf(" * parameters^%.3f", f->size);
    if (f->by_tokens) printf(" * tokens^%.3f", f->tokens);
    printf(" through %d students at temperature %g; they are off by %.3f in log(1 - alpha)\n", f->points,
           p->points.of[0].temperature, f->deviation);
    for (int i = 0; i < p->points.n; i++) {
        const wg_scaling_point *v = &p->points.value[i];
        printf("        %-40s %8.3f M  ", p->points.of[i].name, v->parameters * 1e-6);
        if (isnan(v->tokens)) printf("tokens not known");
        else printf("%8.2f M tokens", v->tokens * 1e-6);
        printf("  alpha %.4f, fitted %.4f\n", v->alpha, wg_scaling_predict(f, v->parameters, v->tokens).alpha);
    }
    if (!f->by_tokens) printf("        the points do not say what more tokens do: alpha is that of training as theirs\n");
    putchar('\n');
}

static const char *alpha_text(double a, char b[16])
{
    if (isnan(a)) strcpy(b, "-");
    else snprintf(b, 16, "%.3f", a);
    return b;
}

static void print_student(const planner *p, const student *s)
{
    char even[16], enough[16], hours[16] = "-", speed[64] = "";
    if (isfinite(s->hours)) snprintf(hours, sizeof hours, "%.2f", s->hours);
    printf("%-8s %9.3f M  %5.3f  %7s  %7s", s->name, (double)wg_arch_parameters(&s->arch) * 1e-6,
           wg_cost_pass(&s->cost, 1, p->context, 1) / wg_cost_pass(&p->cost, 1, p->context, 1), alpha_text(s->even, even),
           alpha_text(s->enough, enough));
    if (p->fitted) {
        snprintf(speed, sizeof speed, "%.2fx [%.2f, %.2f]", s->speed.speedup, s->speed.lo, s->speed.hi);
        printf("  %.3f [%.3f, %.3f]%s %6d  %18s", s->alpha.alpha, s->alpha.lo, s->alpha.hi, s->alpha.outside ? "*" : " ",
               s->length, speed);
    }
    printf("  %7s %9.0f %8.0f\n", hours, s->memory * 1e-6, s->disk * 1e-6);
}

static void print_text(const planner *p)
{
    const double one = wg_cost_pass(&p->cost, 1, p->context, 1);
    printf("target  %s: %.2f M parameters, %.4g ms for one row after %d tokens; v(2) %.2f, v(4) %.2f, v(8) %.2f\n", p->o->model,
           (double)wg_arch_parameters(p->arch) * 1e-6, one * 1e3, p->context, wg_cost_pass(&p->cost, 2, p->context, 1) / one,
           wg_cost_pass(&p->cost, 4, p->context, 1) / one, wg_cost_pass(&p->cost, 8, p->context, 1) / one);
    printf("bill    %.4g M tokens of text in steps of %d x %d; hours of one student alone on %d threads\n", p->o->tokens * 1e-6,
           BATCH, p->length, wg_pool_threads(p->t->pool));
    if (*p->untimed) printf("        hours are not known: %s\n", p->untimed);
    print_fit(p);
    printf("student   parameters      c  a for 1  a for %g%s    hours memory MB  disk MB\n", ENOUGH,
           p->fitted ? "  alpha                  length            speed-up" : "");
    bool outside = false;
    for (int i = 0; i < p->students; i++) {
        print_student(p, &p->s[i]);
        outside = outside || (p->fitted && p->s[i].alpha.outside);
    }
    printf("\nc: seconds of a pass over those of the target's. a for 1, for %g: the alpha with which drafts of the best length "
           "(up to %d) are\n"
           "as fast as plain decoding, or %gx; -: none is. h: with the head of the target, frozen.%s\n",
           ENOUGH, p->o->length, ENOUGH, outside ? " *: beyond the sizes or tokens of the points." : "");
    json_t *config = config_json(p);
    char *text = wg_json_canonical(config, true);
    printf("\nto paste into a file in this folder, for wager distill%s:\n%s",
           p->fitted ? "" : " (sizes that a fit can be made through)", text ? text : "");
    wg_free(text);
    json_decref(config);
}

static void put_line(json_t *o) { wg_json_put_line(o, JSON_REAL_PRECISION(9)); }

static void print_json(const planner *p)
{
    for (int i = 0; i < p->students; i++) {
        const student *s = &p->s[i];
        json_t *o = json_pack("{s:s, s:s, s:I, s:f, s:o, s:o, s:o, s:f, s:f}", "kind", "student", "name", s->name, "parameters",
                              (json_int_t)wg_arch_parameters(&s->arch), "c",
                              wg_cost_pass(&s->cost, 1, p->context, 1) / wg_cost_pass(&p->cost, 1, p->context, 1),
                              "alpha_for_1", wg_json_number(s->even), "alpha_for_1.5", wg_json_number(s->enough), "hours",
                              wg_json_number(s->hours), "memory_bytes", s->memory, "disk_bytes", s->disk);
        if (p->fitted) {
            json_object_set_new(o, "alpha", json_real(s->alpha.alpha));
            json_object_set_new(o, "alpha_ci", json_pack("[f,f]", s->alpha.lo, s->alpha.hi));
            json_object_set_new(o, "outside", json_boolean(s->alpha.outside));
            json_object_set_new(o, "length", json_integer(s->length));
            json_object_set_new(o, "predicted_speedup", json_real(s->speed.speedup));
            json_object_set_new(o, "predicted_speedup_range", json_pack("[f,f]", s->speed.lo, s->speed.hi));
        }
        put_line(o);
    }
    const wg_scaling_fit *f = &p->fit;
    put_line(p->fitted ? json_pack("{s:s, s:i, s:f, s:f, s:f, s:f}", "kind", "fit", "points", f->points, "constant",
                                   f->constant, "size", f->size, "tokens", f->tokens, "deviation", f->deviation)
                       : json_pack("{s:s, s:i, s:s}", "kind", "fit", "points", p->points.n, "none", p->unfitted));
    put_line(json_pack("{s:s, s:o}", "kind", "config", "config", config_json(p)));
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static wg_status run(planner *p, wg_error *err)
{
    const wg_plan_student *o = p->o;
    const wg_target_options want = { .threads = o->threads,
                                     .pin = o->pin,
                                     .quantize = o->quantize,
                                     .need_tokenizer = true,
                                     .model = { .kv_type = o->kv_type } };
    WG_TRY(read_points(p, err)); /* before anything is timed */
    WG_TRY(wg_target_open(&p->t, o->model, &want, err));
    p->arch = wg_model_arch(p->t->model);
    p->context = o->context ? o->context : p->arch->context / 2 < 256 ? p->arch->context / 2 : 256;
    p->length = p->arch->context < LENGTH ? p->arch->context : LENGTH;
    WG_TRY(o->shapes ? read_shapes(p, err) : usual_shapes(p, err));
    qsort(p->s, (size_t)p->students, sizeof *p->s, by_size);
    WG_TRY(wg_cost_measure(&p->cost, p->t->lm, ROWS, p->context, 1, err));
    WG_TRY(time_rest(p, err));
    WG_TRY(time_students(p, err));
    for (int i = 0; i < p->students; i++) {
        bill(p, &p->s[i]);
        predict(p, &p->s[i]);
    }
    if (o->json) print_json(p);
    else print_text(p);
    return WG_OK;
}

wg_status wg_plan_students(const wg_plan_student *o, wg_error *err)
{
    planner *p = wg_calloc(1, sizeof *p);
    if (!p || !(p->s = wg_calloc(STUDENTS, sizeof *p->s))) {
        wg_free(p);
        return wg_nomem(err, sizeof *p + STUDENTS * sizeof *p->s, "a plan");
    }
    p->o = o;
    const wg_status s = run(p, err);
    wg_target_close(p->t);
    wg_free(p->s);
    wg_free(p);
    return s;
}
