/* SPDX-License-Identifier: MIT
 * Groups, units, arms: see runner.h. Allocations and writes happen between requests only. */
#include "experiments/run/runner.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/json.h"
#include "core/base/json_number.h"
#include "core/base/mem.h"
#include "core/engine/profile.h"
#include "core/setup/target.h"
#include "draft/draft.h"
#include "experiments/analysis/attribution.h"
#include "experiments/record/resume_cursor.h"
#include "experiments/run/preflight.h"
#include "experiments/run/progress.h"
#include "experiments/run/runner_batch.h"
#include "experiments/run/second_pass.h"
#include "experiments/run/summary.h"
#include "experiments/run/teacher_pass.h"
#include "experiments/run/tracer.h"
#include "experiments/run/trace_size.h"
#include "verify/verify.h"

enum { WARM_UP_TOKENS = 24 };

typedef struct runner {
    const wg_config *config;
    const wg_run_options *opt;
    wg_target **target; /* (targets) */
    int targets;
    wg_group *group; /* (config->groups) */
    wg_run_writer *record;
    wg_tracer *tracer; /* NULL: probabilities are not traced */
    json_t *costs;     /* cost.json: the costs measured before the timed part */
    wg_run *run;
    wg_room room; /* room for the largest batch */
    wg_progress progress;
    wg_preflight *preflight;
    wg_profile *profile; /* NULL: nominal prices */
    double second_pass;  /* seconds of second passes */
} runner;

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static wg_status encode(wg_group *g, wg_error *err)
{
    wg_encoded *p = &g->prompts;
    const wg_chat chat = wg_setup_chat(&g->like->setup.prompts, g->target->weights);
    p->question = wg_calloc((size_t)g->dataset->questions, sizeof *p->question);
    if (!p->question) return wg_nomem(err, (size_t)g->dataset->questions * sizeof *p->question, "prompts");
    p->count = g->dataset->questions;
    for (int i = 0; i < g->dataset->n; i++) {
        const wg_prompt *asked = &g->dataset->prompt[i];
        WG_TRY(wg_prompt_encode(&p->question[asked->before], g->target->tokenizer, &chat, asked, err));
    }
    return WG_OK;
}

static const wg_question *conversation(const wg_group *g, int prompt)
{
    return &g->prompts.question[g->dataset->prompt[prompt].before];
}

/* The longest sequence: that of the longest prompt that fits, since pages for a whole context would waste memory. */
static int longest_sequence(const wg_group *g)
{
    const int context = g->target->lm->context, max_new = g->like->setup.top.max_tokens;
    long longest = 1 + (long)max_new;
    for (int i = 0; i < g->dataset->n; i++) {
        const wg_question *q = conversation(g, i);
        const long most = wg_conversation_most(q, g->dataset->prompt[i].turns, max_new);
        if (q->n < context && most > longest) longest = most;
    }
    return longest < context ? (int)longest : context;
}

static wg_status open_requests(wg_arm *a, const wg_group *g, bool trace, wg_error *err)
{
    const size_t n = (size_t)g->like->setup.top.max_tokens;
    a->request = wg_calloc((size_t)g->room, sizeof *a->request);
    if (!a->request) return wg_nomem(err, (size_t)g->room * sizeof *a->request, "requests");
    for (int i = 0; i < g->room; i++) {
        wg_request *q = &a->request[i];
        q->token = wg_calloc(n, sizeof *q->token);
        if (trace) q->step = wg_calloc(n, sizeof *q->step);
        if (trace) q->cap_steps = (int)n;
        q->cap_tokens = (int)n;
        if (!q->token || (trace && !q->step)) return wg_nomem(err, n * sizeof *q->token, "an output");
        WG_TRY(wg_events_open(&q->events, (int)n, err));
    }
    return WG_OK;
}

static wg_engine_parts parts_of(const runner *r, const wg_group *g)
{
    wg_engine_parts parts = wg_target_engine_parts(g->target);
    parts.rules = r->config->plugins->verifiers;
    parts.profile = r->profile;
    return parts;
}

static wg_engine_options options_of(const wg_group *g)
{
    return (wg_engine_options){
        .max_batch = g->batch,
        .max_tokens = longest_sequence(g),
        .seed = (uint64_t)g->like->setup.top.seed,
        .sampling = g->like->setup.sampling,
    };
}

/* Opens an arm; cell NULL: the baseline. */
static wg_status open_arm(const runner *r, wg_group *g, const wg_cell *cell, wg_arm *a, wg_error *err)
{
    a->cell = cell ? (int)(cell - r->config->cell) : -1;
    if (r->opt->recorded) return open_requests(a, g, r->config->top.trace, err); /* nothing will run */
    wg_engine_parts parts = parts_of(r, g);
    parts.drafter = cell ? cell->setup.drafter : &wg_drafter_none;
    parts.drafter_options = cell ? cell->setup.draft : NULL;
    parts.verifier = cell ? cell->setup.verifier : &wg_verifier_match;
    parts.verifier_options = cell ? cell->setup.verifier_options : NULL;
    wg_engine_options o = options_of(g);
    o.lengths = &a->lengths;
    WG_TRY(wg_engine_open(&a->engine, &parts, &o, err));
    if (cell) WG_TRY(wg_second_pass_open(a, r->config, cell, &parts, &o, err));
    if (cell) WG_TRY(wg_teacher_join(g, a, cell, err));
    return open_requests(a, g, r->config->top.trace, err);
}

static const wg_target *find_target(const runner *r, const wg_setup_target *t, int *index)
{
    for (int i = 0; i < r->config->n; i++) { /* finds the target opened for an earlier cell with the same settings */
        const wg_setup_target *o = &r->config->cell[i].setup.target;
        const bool same = !strcmp(o->model, t->model) && !strcmp(o->ranks, t->ranks) && o->tensor == t->tensor &&
                          o->pipeline == t->pipeline && o->threads == t->threads && o->pin == t->pin &&
                          o->kv_type == t->kv_type && o->context == t->context && o->allow_nan == t->allow_nan &&
                          !strcmp(o->device, t->device) && !strcmp(o->quantize, t->quantize) && o->kind == t->kind &&
                          !strcmp(o->command, t->command) && o->timeout_ms == t->timeout_ms && o->start_ms == t->start_ms &&
                          !strcmp(o->library, t->library);
        if (same) return *index = i, r->target[i];
    }
    return NULL;
}

static wg_status open_target(runner *r, const wg_cell *cell, const wg_target **out, wg_error *err)
{
    int index = 0, batch = 1;
    *out = find_target(r, &cell->setup.target, &index);
    if (*out) return WG_OK;
    for (int i = 0; i < r->config->n; i++)
        if (r->config->cell[i].setup.top.batch > batch) batch = r->config->cell[i].setup.top.batch;
    wg_target_options o = wg_setup_target_options(&cell->setup.target);
    o.need_tokenizer = true;
    o.model.max_rows = wg_target_step_rows(batch, 0);
    o.external.sequences = batch;
    WG_TRY(wg_target_open(&r->target[index], cell->setup.target.model, &o, err));
    *out = r->target[index];
    return WG_OK;
}

static wg_status open_group(runner *r, int number, wg_error *err)
{
    const wg_config *c = r->config;
    const wg_group_shape shape = wg_group_shape_of(c, number);
    wg_group *g = &r->group[number];
    int n = 0;
    for (int i = 0; i < c->n; i++)
        if (c->cell[i].group == number) n++, g->like = &c->cell[i];
    if (!r->opt->recorded) WG_TRY(open_target(r, g->like, &g->target, err));
    g->dataset = c->dataset[g->like->dataset];
    g->batch = shape.batch;
    for (int unit = 0; unit < shape.units; unit++)
        if (wg_unit_requests(&shape, unit) > g->room) g->room = wg_unit_requests(&shape, unit);
    if (!r->opt->recorded) WG_TRY(encode(g, err));
    if (!r->opt->recorded)
        WG_TRY(wg_constrained_open(&g->by, g->like->setup.top.grammar, g->like->setup.top.json_schema, g->target->tokenizer,
                                   g->target->lm->vocab, err));
    g->arm = wg_calloc((size_t)n + 1, sizeof *g->arm);
    if (!g->arm) return wg_nomem(err, (size_t)n * sizeof *g->arm, "arms");
    g->arms = 1;
    WG_TRY(open_arm(r, g, NULL, &g->arm[0], err));
    for (int i = 0; i < c->n; i++) {
        if (c->cell[i].group != number) continue;
        WG_TRY(wg_result_open(&r->run->result[i], g->dataset, c->top.repeats, err));
        if (r->opt->recorded) r->run->result[i].coverage = r->opt->recorded[i];
        wg_error why;
        const wg_status s = open_arm(r, g, &c->cell[i], &g->arm[g->arms++], &why);
        if (s) wg_preflight_refuse(r->preflight, i, s, &why); /* other cells may have errors, too */
        if (s == WG_ENOMEM) break;
    }
    if (!r->opt->recorded) wg_preflight_group(r->preflight, g);
    return WG_OK;
}

static void close_group(wg_group *g)
{
    for (int k = 0; k < g->arms; k++) {
        for (int i = 0; g->arm[k].request && i < g->room; i++) {
            wg_free(g->arm[k].request[i].token);
            wg_free(g->arm[k].request[i].step);
            wg_events_close(&g->arm[k].request[i].events);
        }
        wg_free(g->arm[k].request);
        wg_engine_close(g->arm[k].second);
        wg_engine_close(g->arm[k].engine);
        wg_free(g->arm[k].lengths.planned);
    }
    wg_teacher_close(g);
    wg_constrained_close(&g->by);
    wg_conversation_free(g->prompts.question, g->prompts.count);
    wg_free(g->prompts.question);
    wg_free(g->arm);
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

static void take_costs(runner *r, const wg_group *g)
{
    for (int k = 1; k < g->arms; k++) {
        wg_result *o = &r->run->result[g->arm[k].cell];
        o->cost = wg_calibration_of(r->costs, g->like->group, g->arm[k].cell);
        wg_machine_of(r->costs, g->like->group, &o->pass_cost, &o->roofline);
    }
}

/* Times the target's passes up to the number of rows in the warm-up. If it fails, the run has no prediction. */
static wg_status calibrate(runner *r, wg_group *g, const wg_warm *warm, wg_error *err)
{
    wg_cost pass;
    wg_error e;
    int rows = 1, *cell = wg_calloc((size_t)g->arms, sizeof *cell);
    double tokens = 0;
    if (!cell) return wg_nomem(err, (size_t)g->arms * sizeof *cell, "a calibration");
    for (int k = 0; k < g->arms; k++) {
        cell[k] = g->arm[k].cell;
        rows = warm[k].rows > rows ? warm[k].rows : rows;
    }
    for (int i = 0; i < g->dataset->n; i++)
        for (int turns = 1; turns <= g->dataset->prompt[i].turns; turns++)
            tokens += (double)wg_conversation_most(conversation(g, i), turns, g->like->setup.top.max_tokens);
    const int context = (int)(tokens / g->dataset->questions);
    wg_status s = WG_OK;
    if (wg_cost_measure(&pass, g->target->lm, rows * g->batch, context, g->batch, &e) == WG_OK) {
        wg_roofline peaks;
        json_t *known = wg_calibration_json(g->like->group, g->batch, &pass, cell, warm, g->arms);
        const wg_pass_cost demand = wg_pass_cost_of(g->target->model, wg_kv_type_ids[g->like->setup.target.kv_type]);
        if (wg_roofline_measure(&peaks, g->target, &e)) peaks = (wg_roofline){ 0 };
        json_object_set_new(known, "demand", wg_pass_cost_json(&demand));
        json_object_set_new(known, "machine", wg_roofline_json(&peaks));
        json_array_append_new(r->costs, known);
        s = wg_run_writer_costs(r->record, r->costs, err);
    }
    wg_free(cell);
    take_costs(r, g);
    return s;
}

/* Runs a batch through an arm, timed, and then its second pass, if it has one, which is traced instead. */
static wg_status run_batch(runner *r, const wg_group *g, wg_arm *a, const wg_batch_plan *plan, wg_tracer *tracer, wg_error *err)
{
    WG_TRY(wg_batch_run(&r->room, g, a, plan, a->second ? NULL : tracer, err));
    if (!a->second) return WG_OK;
    const double start = wg_clock_now();
    const wg_status s = wg_second_pass_run(&r->room, g, a, plan, tracer, err);
    r->second_pass += wg_clock_now() - start;
    return s;
}

/* Runs the teacher-forced pass of the same batch. */
static wg_status teach_batch(runner *r, wg_group *g, wg_arm *a, const wg_batch_plan *plan, wg_error *err)
{
    const wg_engine_parts parts = parts_of(r, g);
    const wg_engine_options o = options_of(g);
    const double start = wg_clock_now();
    const wg_status s = wg_teacher_run(&r->room, g, a, plan, &parts, &o, err);
    r->run->teacher_pass += wg_clock_now() - start;
    return s;
}

/* Runs a discarded batch on each arm, so that no first request meets cold pages or clocks; it also measures the costs of
 * arms. */
static wg_status warm_up(runner *r, wg_group *g, wg_error *err)
{
    int prompt = 0;
    while (prompt + 1 < g->dataset->n && conversation(g, prompt)->n >= g->target->lm->context) prompt++;
    const int tokens = g->like->setup.top.max_tokens < WARM_UP_TOKENS ? g->like->setup.top.max_tokens : WARM_UP_TOKENS;
    const wg_batch_plan plan = { .first = prompt,
                                 .n = prompt + g->batch <= g->dataset->n ? g->batch : g->dataset->n - prompt,
                                 .turns = 1,
                                 .max_new = tokens };
    wg_warm *warm = wg_calloc((size_t)g->arms, sizeof *warm);
    wg_status s = warm ? WG_OK : wg_nomem(err, (size_t)g->arms * sizeof *warm, "a warm-up");
    for (int k = 0; k < g->arms && !s; k++) {
        g->arm[k].warm = &warm[k];
        s = run_batch(r, g, &g->arm[k], &plan, NULL, err);
        g->arm[k].warm = NULL;
    }
    if (!s && !wg_calibration_of(r->costs, g->like->group, g->arm[g->arms - 1].cell).known) s = calibrate(r, g, warm, err);
    wg_free(warm);
    return s;
}

static wg_status finish_arm(runner *r, const wg_group *g, wg_arm *a, int n, bool base_known, wg_error *err)
{
    for (int i = 0; i < n; i++) {
        wg_request *q = &a->request[i];
        const wg_request *base = &g->arm[0].request[i];
        wg_request_digest(q);
        if (base_known && !q->status && !base->status) q->equals = wg_request_same_output(q, base);
        WG_TRY(wg_run_writer_request(r->record, q, g->target->tokenizer, err));
        wg_progress_add(&r->progress, q);
    }
    return WG_OK;
}

/* Sets the address that a recorded request of a unit must have. */
static void expect_requests(const wg_group *g, wg_arm *a, int first, int n, int repeat)
{
    wg_request *q = a->request;
    for (int i = first; i < first + n; i++)
        for (int turn = 0; turn < g->dataset->prompt[i].turns; turn++) wg_request_begin(g, a, q++, i, turn, repeat);
}

/* Handles one arm of a unit: reads it back if the folder has it, else runs and records it. A batch that is only partly in the
 * folder runs again, since its requests run together. */
static wg_status run_arm(runner *r, wg_group *g, wg_arm *a, int first, int n, int repeat, bool base_known, wg_error *err)
{
    const int left = wg_run_writer_left(r->record), max_new = g->like->setup.top.max_tokens;
    const int requests = wg_dataset_questions(g->dataset, first, n);
    if (left < requests && r->opt->recorded)
        return wg_fail(err, WG_EFORMAT, "%s: requests are missing: it ends after %d", wg_run_writer_path(r->record),
                       r->run->resumed);
    if (left < requests) {
        WG_TRY(wg_run_writer_cut(r->record, err));
        const wg_batch_plan plan = { .first = first, .n = n, .repeat = repeat, .turns = g->dataset->turns, .max_new = max_new };
        WG_TRY(run_batch(r, g, a, &plan, a->cell < 0 ? NULL : r->tracer, err));
        WG_TRY(teach_batch(r, g, a, &plan, err));
        return finish_arm(r, g, a, requests, base_known, err);
    }
    expect_requests(g, a, first, n, repeat);
    for (int i = 0; i < requests; i++) {
        wg_request *q = &a->request[i];
        WG_TRY(wg_run_writer_take(r->record, q, err));
        r->run->resumed++;
        r->run->seconds += q->prefill + q->decode;
        r->progress.requests--;
    }
    return WG_OK;
}

static wg_status run_unit(runner *r, wg_group *g, int unit, int repeat, wg_error *err)
{
    const int first = unit * g->batch, left = g->dataset->n - first, n = left < g->batch ? left : g->batch;
    const int requests = wg_dataset_questions(g->dataset, first, n);
    bool base_known = false;
    if (!g->warm && !r->opt->recorded && wg_run_writer_left(r->record) < requests * g->arms) {
        WG_TRY(warm_up(r, g, err));
        g->warm = true;
    }
    for (int k = 0; k < g->arms; k++) {
        wg_arm *a = &g->arm[(k + unit + repeat) % g->arms];
        WG_TRY(run_arm(r, g, a, first, n, repeat, base_known, err));
        base_known = base_known || a->cell < 0;
        wg_progress_show(&r->progress, g->like->group, first + n, g->dataset->n, repeat);
    }
    for (int k = 1; k < g->arms; k++)
        for (int i = 0; i < requests; i++) {
            wg_result *o = &r->run->result[g->arm[k].cell];
            WG_TRY(wg_result_add_pair(o, &g->arm[k].request[i], &g->arm[0].request[i], g->dataset->questions, err));
            if (!r->opt->recorded) wg_result_add_coverage(o, g->arm[k].engine, &g->arm[k].request[i]);
        }
    return WG_OK;
}

/* Makes a group with a cross-request drafter, which must process all requests in order, read back all of its requests or
 * none. */
static wg_status whole_or_nothing(const runner *r, const wg_group_shape *g, wg_error *err)
{
    const int all = g->dataset->questions * r->config->top.repeats * g->arms, left = wg_run_writer_left(r->record);
    return g->cross_request && left > 0 && left < all ? wg_run_writer_cut(r->record, err) : WG_OK;
}

/* The number of requests of a group in this shard. */
static long requests_of(const wg_config *c, int group)
{
    const wg_group_shape g = wg_group_shape_of(c, group);
    long requests = 0;
    for (int unit = 0; unit < g.units; unit++)
        if (wg_shard_has(c->shard, &g, group, unit)) requests += wg_unit_requests(&g, unit);
    return requests * c->top.repeats * g.arms;
}

static wg_status run_group(runner *r, int number, wg_error *err)
{
    const wg_group_shape shape = wg_group_shape_of(r->config, number);
    wg_group *g = &r->group[number];
    take_costs(r, g);
    if (requests_of(r->config, number) > 0) WG_TRY(whole_or_nothing(r, &shape, err));
    for (int repeat = 0; repeat < r->config->top.repeats; repeat++) {
        for (int unit = 0; unit < shape.units; unit++)
            if (wg_shard_has(r->config->shard, &shape, number, unit)) WG_TRY(run_unit(r, g, unit, repeat, err));
        wg_teacher_rest(g);
    }
    return WG_OK;
}

static wg_status run_groups(runner *r, wg_error *err)
{
    const double start = wg_clock_now();
    wg_status s = WG_OK;
    for (int g = 0; g < r->config->groups && s == WG_OK; g++) s = run_group(r, g, err);
    r->run->seconds += wg_clock_now() - start;
    r->run->complete = s == WG_OK;
    return s;
}

/* ---- the machine's profile (core/engine/profile.h): profile.json of the result folder, which a resumed run uses */

static void say(void *file, bool warning, const char *text)
{
    if (file) fprintf(file, "%s%s\n", warning ? "warning: " : "", text);
}

/* Opens the resumed folder's profile, if there is one; else the config's. */
static wg_status open_profile(wg_profile **out, const wg_config *config, const wg_run_options *opt, wg_error *err)
{
    char *found = NULL, path[4096] = "";
    wg_error unused; /* a missing folder is reported where it is opened */
    if (opt->resume && !opt->out && wg_resume_find(&found, config, &unused)) found = NULL;
    if (opt->resume && (opt->out || found)) snprintf(path, sizeof path, "%s/profile.json", opt->out ? opt->out : found);
    wg_free(found);
    const bool there = *path && access(path, F_OK) == 0;
    const wg_profile_options o = { .use = there ? path : config->top.profile, .say = say, .user = opt->warnings };
    return wg_profile_open(out, &o, err);
}

/* Writes its digest to `name` and to the member "profile" of machine.json; p NULL: reads it from there. "": no prices were
 * used. */
static void name_profile(const wg_profile *p, json_t *machine, char name[WG_SHA256_HEX])
{
    char hex[WG_SHA256_HEX];
    snprintf(name, WG_SHA256_HEX, "%s", p ? wg_profile_name(p, hex) : wg_json_word(machine, "profile"));
    if (*name) json_object_set_new(machine, "profile", json_string(name));
}

/* Writes profile.json unless nothing was measured or the folder has it. p may be NULL. EIO. */
static wg_status save_profile(const wg_profile *p, const char *dir, wg_error *err)
{
    char hex[WG_SHA256_HEX], path[4096];
    const char *name = wg_profile_name(p, hex);
    snprintf(path, sizeof path, "%s/profile.json", dir);
    return !*name || !strcmp(name, "nominal") || access(path, F_OK) == 0 ? WG_OK : wg_profile_save(p, path, err);
}

/* ---- a whole run ------------------------------------------------------------------------------------------------- */

static wg_status open_all(runner *r, wg_error *err)
{
    const wg_config *c = r->config;
    int batch = 1;
    long requests = 0;
    r->room.stop = r->opt->stop;
    if (!(r->preflight = wg_calloc(1, sizeof *r->preflight))) return wg_nomem(err, sizeof *r->preflight, "warnings");
    wg_preflight_config(r->preflight, c);
    for (int i = 0; i < c->n; i++)
        if (c->cell[i].setup.top.batch > batch) batch = c->cell[i].setup.top.batch;
    r->room.seq = wg_calloc((size_t)batch, sizeof *r->room.seq);
    r->room.active = wg_calloc((size_t)batch, sizeof *r->room.active);
    r->target = wg_calloc((size_t)c->n, sizeof *r->target);
    r->group = wg_calloc((size_t)c->groups, sizeof *r->group);
    r->run->result = wg_calloc((size_t)c->n, sizeof *r->run->result);
    if (!r->room.seq || !r->room.active || !r->target || !r->group || !r->run->result)
        return wg_nomem(err, (size_t)c->n * sizeof *r->run->result, "a run");
    for (int g = 0; g < c->groups; g++) {
        WG_TRY(open_group(r, g, err));
        requests += requests_of(c, g);
    }
    for (int i = 0; i < c->n && !r->opt->recorded; i++)
        WG_TRY(wg_trace_check_rule(&c->cell[i], i, r->group[c->cell[i].group].target->lm->vocab, err));
    wg_progress_open(&r->progress, r->opt->progress, requests, c->groups, c->top.repeats);
    return wg_preflight_status(r->preflight, err);
}

static void close_all(runner *r)
{
    wg_tracer_close(r->tracer);
    wg_run_writer_close(r->record);
    json_decref(r->costs);
    for (int g = 0; r->group && g < r->config->groups; g++) close_group(&r->group[g]);
    for (int i = 0; r->target && i < r->config->n; i++) wg_target_close(r->target[i]);
    wg_profile_close(r->profile);
    wg_free(r->preflight);
    wg_free(r->group);
    wg_free(r->target);
    wg_free(r->room.seq);
    wg_free(r->room.active);
}

static wg_status write_summary(const runner *r, wg_error *err)
{
    if (r->progress.requests == 0 && wg_resume_finished(wg_run_writer_path(r->record)))
        return WG_OK; /* no request is left to run */
    json_t *v = wg_summary_json(r->run);
    if (v && r->config->top.trace) {
        const double seconds = wg_run_writer_traced(r->record) + (r->tracer ? r->tracer->seconds : 0);
        json_object_set_new(v, "trace_seconds", r->opt->recorded ? json_null() : json_real(seconds));
    }
    if (v && r->second_pass > 0) json_object_set_new(v, "second_pass_seconds", json_real(r->second_pass));
    if (v && r->config->top.alpha)
        json_object_set_new(v, "teacher_pass_seconds", r->opt->recorded ? json_null() : json_real(r->run->teacher_pass));
    if (v && r->run->complete && r->tracer) {
        char trace[4200];
        snprintf(trace, sizeof trace, "%s/trace.wgt", wg_run_writer_path(r->record));
        const wg_status bad = wg_attribution_add(v, trace, err);
        if (bad) json_decref(v);
        WG_TRY(bad);
    }
    const wg_status s = v ? wg_run_writer_summary(r->record, v, err) : wg_nomem(err, 1, "the summary");
    json_decref(v);
    return s;
}

static wg_status open_tracer(runner *r, const json_t *machine, wg_error *err)
{
    WG_TRY(wg_tracer_open(&r->tracer, r->config, machine, r->record, err));
    for (int g = 0; g < r->config->groups; g++)
        WG_TRY(wg_tracer_add_group(r->tracer, r->config, r->group[g].target->lm->vocab, r->group[g].target->tokenizer, err));
    return WG_OK;
}

wg_status wg_run_open(const wg_config *config, FILE *warnings, const char *before, wg_run_held *held, wg_error *err)
{
    static const wg_run_options none;
    wg_run run = { .config = config };
    runner r = { .config = config, .opt = &none, .run = &run };
    const bool measures = !*config->top.profile || !strcmp(config->top.profile, "new"); /* a check does not measure prices */
    wg_status s = measures ? WG_OK : open_profile(&r.profile, config, &none, err);
    if (!s) s = open_all(&r, err);
    if (!s) wg_preflight_print(warnings, r.preflight, before);
    if (!s && held && r.target[0]->model) held->ranks = wg_ranks_held(r.target[0]->model, held->rank);
    close_all(&r);
    wg_run_free(&run);
    return s;
}

wg_status wg_run_config(const wg_config *config, const wg_run_options *opt, wg_run *out, char **path, wg_error *err)
{
    wg_energy energy;
    runner r = { .config = config, .opt = opt, .run = out, .room.energy = &energy };
    *out = (wg_run){ .config = config };
    *path = NULL;
    if (config->shard.count && config->top.trace == WG_TRACE_PROBS)
        return wg_fail(err, WG_EINVAL, "--shard: traces of probabilities are not merged; run it whole, or with trace=steps");
    if (!opt->recorded) WG_TRY(wg_run_writer_check(opt->out, opt->resume, err)); /* before anything is measured */
    wg_energy_open(&energy, WG_ENERGY_ROOT);
    wg_status s = opt->recorded ? WG_OK : open_profile(&r.profile, config, opt, err);
    if (!s) s = open_all(&r, err);
    if (!s && opt->warnings) wg_preflight_print(opt->warnings, r.preflight, "warning: ");
    json_t *machine = s ? NULL : opt->recorded ? wg_run_writer_machine(opt->out) : wg_machine_json(config, &energy);
    if (!s) name_profile(r.profile, machine, out->profile);
    if (!s) s = (opt->resume ? wg_run_writer_resume : wg_run_writer_open)(&r.record, opt->out, config, machine, err);
    if (!s) s = save_profile(r.profile, wg_run_writer_path(r.record), err);
    if (!s && config->top.trace == WG_TRACE_PROBS && !opt->recorded) s = open_tracer(&r, machine, err);
    json_decref(machine);
    if (!s) {
        *path = wg_strdup(wg_run_writer_path(r.record));
        r.costs = wg_run_writer_known_costs(r.record);
        s = run_groups(&r, err);
        wg_progress_close(&r.progress);
        if (energy.n == 0) snprintf(out->energy, sizeof out->energy, "%s", energy.why);
        if (s == WG_EINTERRUPTED) wg_fail(err, s, "interrupted; requests that had finished are kept");
        if (!s || s == WG_EINTERRUPTED) {
            const wg_status saved = write_summary(&r, err);
            if (saved) s = saved;
        }
    }
    close_all(&r);
    wg_energy_close(&energy);
    return s;
}
