/* SPDX-License-Identifier: MIT
 * Teacher forcing, and the teacher-forced pass of a run (teacher_pass.h). */
#include "experiments/run/teacher_pass.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "draft/lm/lm_draft.h"

static void keep_root(const void *opt, const wg_tree *tree, wg_rows *p, wg_rows *q, const wg_chance *chance, wg_workspace *work,
                      wg_path *out)
{
    (void)opt, (void)q, (void)work;
    out->n = 1;
    out->node[0] = 0;
    out->next = wg_rows_pick(p, tree->row, chance, WG_DRAW_NEXT, 0);
}

const wg_verifier_class wg_teacher_rule = {
    .name = "teacher",
    .doc = "keeps the root alone",
    .laws = WG_LAWS,
    .lossless = true,
    .accept = keep_root,
};

double wg_teacher_alpha(wg_engine *e, int tree)
{
    const wg_last_step last = wg_engine_last_step(e);
    const wg_tree *t = &last.tree[tree];
    const int child = wg_tree_child(t, 0, 0);
    if (child < 0) return NAN;
    if (t->qrow[child] >= 0) return wg_rows_overlap(last.p, t->row, last.q, t->qrow[child]);
    return t->law == WG_LAW_FIXED ? wg_rows_prob(last.p, t->row, t->token[child]) : NAN;
}

bool wg_teacher_fits(const wg_drafter_class *d)
{
    bool all = d->laws & WG_LAW_IID;
    for (const wg_option *row = wg_growth_option_rows; all && row->name; row++) all = wg_option_find(d->options, row->name);
    return all;
}

/* Whether an option makes another q at a prefix, beside the shape and length of drafts. */
static bool is_of_q(const char *option) { return !strcmp(option, "temperature") || !strcmp(option, "truncate"); }

void wg_teacher_one_token(const wg_drafter_class *d, void *options)
{
    char text[WG_OPTION_STRING];
    wg_growth plain;
    wg_error err;
    wg_option_defaults(wg_growth_option_rows, &plain); /* a chain of drawn tokens, of fixed length */
    plain.length = 1;
    for (const wg_option *row = wg_growth_option_rows; row->name; row++)
        if (!is_of_q(row->name))
            wg_option_set(d->options, options, row->name, wg_option_value(row, &plain, text, sizeof text), &err);
}

const char *wg_teacher_unknown(const wg_cell *cell)
{
    if (!cell->setup.top.alpha) return "\"alpha\" is false";
    return wg_teacher_fits(wg_cell_lone(cell).class) ? NULL : "the drafter is not one model with a row of q at every position";
}

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

static bool same_pair(const wg_teacher *t, const wg_drafter_class *d, const void *options)
{
    char a[WG_OPTION_STRING], b[WG_OPTION_STRING];
    bool same = t->drafter == d;
    for (const wg_option *o = d->options; same && o->name; o++)
        same = !strcmp(wg_option_value(o, t->options, a, sizeof a), wg_option_value(o, options, b, sizeof b));
    return same;
}

static wg_status add_pair(wg_group *g, const wg_drafter_class *d, void *options, wg_error *err)
{
    wg_teacher **more = wg_realloc(g->teacher, (size_t)g->teachers + 1, sizeof *more), *t = NULL;
    if (more) g->teacher = more;
    if (more) t = wg_calloc(1, sizeof *t);
    if (t) g->teacher[g->teachers++] = t;
    if (t) *t = (wg_teacher){ .drafter = d, .options = options, .first = -1 };
    if (t) t->value = wg_calloc((size_t)g->room, sizeof *t->value);
    if (!t) wg_free(options);
    return t && t->value ? WG_OK : wg_nomem(err, (size_t)g->room * sizeof *t->value, "a pair of models");
}

wg_status wg_teacher_join(wg_group *g, wg_arm *a, const wg_cell *cell, wg_error *err)
{
    if (wg_teacher_unknown(cell)) return WG_OK;
    const wg_drafter_choice lone = wg_cell_lone(cell);
    const wg_drafter_class *d = lone.class;
    void *options = wg_alloc(d->size + 1, 1);
    int i = 0;
    if (!options) return wg_nomem(err, d->size, "options");
    memcpy(options, lone.options, d->size + 1);
    wg_teacher_one_token(d, options);
    while (i < g->teachers && !same_pair(g->teacher[i], d, options)) i++;
    if (i < g->teachers) wg_free(options);
    else WG_TRY(add_pair(g, d, options, err));
    a->teacher = g->teacher[i];
    return WG_OK;
}

void wg_teacher_rest(wg_group *g)
{
    for (int i = 0; i < g->teachers; i++) {
        wg_engine_close(g->teacher[i]->engine);
        g->teacher[i]->engine = NULL;
    }
}

void wg_teacher_close(wg_group *g)
{
    wg_teacher_rest(g);
    for (int i = 0; i < g->teachers; i++) {
        wg_free(g->teacher[i]->options);
        wg_free(g->teacher[i]->value);
        wg_free(g->teacher[i]);
    }
    wg_free(g->teacher);
}

/* ---- a batch ----------------------------------------------------------------------------------------------------- */

typedef struct pass {
    const wg_room *room;
    const wg_group *g;
    wg_teacher *t;
    const wg_batch_plan *plan;
    wg_seq **seq; /* (n) NULL: closed */
    int turn;
} pass;

static bool has_turn(const pass *p, int i) { return p->turn < p->g->dataset->prompt[p->plan->first + i].turns; }

/* The sums of the ith conversation's present turn, which it must have. */
static wg_taught *value_of(const pass *p, int i)
{
    const wg_prompt *prompt = &p->g->dataset->prompt[p->plan->first];
    return &p->t->value[prompt[i].before - prompt->before + p->turn];
}

static void close_seq(pass *p, int i)
{
    wg_seq_close(p->t->engine, p->seq[i]);
    p->seq[i] = NULL;
}

/* Begins a turn; a conversation that fails here has no text, nor has it in the baseline. */
static void begin_turn(pass *p)
{
    for (int i = 0; i < p->plan->n; i++) {
        const wg_prompt *prompt = &p->g->dataset->prompt[p->plan->first + i];
        wg_error e;
        if (!has_turn(p, i)) continue;
        *value_of(p, i) = (wg_taught){ .n = 0 };
        if (p->turn && !p->seq[i]) continue;
        if (wg_conversation_ask(p->t->engine, &p->seq[i], &p->g->prompts.question[prompt->before], p->turn,
                                wg_request_address(p->g, p->plan->first + i, p->plan->repeat), p->plan->max_new,
                                p->g->by.of.acceptor, &e))
            close_seq(p, i);
    }
}

/* Steps the running conversations from .. to-1; if the joint step fails, each is stepped alone. *left: the number that ran. */
static wg_status step_batch(pass *p, int from, int to, int *left)
{
    wg_seq **active = p->room->active;
    int who[WG_BATCH_MOST], k = 0;
    wg_error e;
    for (int i = from; i < to; i++)
        if (p->seq[i] && has_turn(p, i) && p->seq[i]->finish == WG_RUNNING) {
            who[k] = i;
            active[k++] = p->seq[i];
        }
    *left = k;
    if (k == 0) return WG_OK;
    if (p->room->stop && *p->room->stop) return WG_EINTERRUPTED;
    const wg_status s = wg_engine_step(p->t->engine, active, k, &e);
    for (int i = from, alone; s && k > 1 && i < to; i++) WG_TRY(step_batch(p, i, i + 1, &alone));
    for (int place = 0; place < k && !s; place++) {
        const double alpha = wg_teacher_alpha(p->t->engine, place);
        wg_taught *v = value_of(p, who[place]);
        if (isnan(alpha)) continue;
        v->sum += alpha;
        v->n++;
    }
    if (!s || k > 1) return WG_OK;
    value_of(p, who[0])->sum = NAN;
    close_seq(p, who[0]);
    return WG_OK;
}

static wg_status run_pass(pass *p)
{
    wg_status s = WG_OK;
    memset(p->seq, 0, (size_t)p->plan->n * sizeof *p->seq);
    for (; p->turn < p->plan->turns && !s; p->turn++) {
        int left = 1;
        begin_turn(p);
        while (!s && left > 0) s = step_batch(p, 0, p->plan->n, &left);
    }
    for (int i = 0; i < p->plan->n; i++)
        if (p->seq[i]) close_seq(p, i);
    return s;
}

static wg_status open_engine(wg_teacher *t, const wg_engine_parts *parts, const wg_engine_options *opt, wg_error *err)
{
    wg_engine_parts p = *parts;
    wg_engine_options o = *opt;
    p.drafter = t->drafter;
    p.drafter_options = t->options;
    p.verifier = &wg_teacher_rule;
    p.verifier_options = NULL;
    o.host_rows = true;
    o.measure_alpha = false;
    o.lengths = NULL;
    const wg_status s = wg_engine_open(&t->engine, &p, &o, err);
    return s ? wg_fail_in(err, s, "the pass that measures analytic_alpha (\"alpha\": false goes without)") : WG_OK;
}

wg_status wg_teacher_run(const wg_room *room, wg_group *g, wg_arm *a, const wg_batch_plan *plan, const wg_engine_parts *parts,
                         const wg_engine_options *opt, wg_error *err)
{
    wg_teacher *t = a->teacher;
    const int requests = wg_dataset_questions(g->dataset, plan->first, plan->n);
    if (!t || plan->repeat > 0) return WG_OK;
    if (t->first != plan->first) {
        pass p = { .room = room, .g = g, .t = t, .plan = plan, .seq = room->seq };
        if (!t->engine) WG_TRY(open_engine(t, parts, opt, err));
        WG_TRY(run_pass(&p));
        t->first = plan->first;
    }
    for (int i = 0; i < requests; i++) a->request[i].taught = t->value[i];
    return WG_OK;
}
