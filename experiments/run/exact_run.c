/* SPDX-License-Identifier: MIT
 * Exact tau of a cell: texts, drafts at every position, closed forms (exact_run.h). */
#include "experiments/run/exact_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/setup/conversation.h"
#include "core/setup/target.h"
#include "experiments/run/teacher_pass.h"

enum { MOST_CHILDREN = 16 };

/* ---- shapes and series ------------------------------------------------------------------------------------------- */

wg_status wg_exact_shape_read(wg_exact_shape *s, const char *text, bool tree, wg_error *err)
{
    const char *at = text;
    *s = (wg_exact_shape){ .depth = 0 };
    snprintf(s->name, sizeof s->name, "%s%.50s", tree && !strchr(text, '-') ? "tree " : "", text);
    for (char *end; s->depth < WG_EXACT_DEPTH; at = end + 1) {
        const long n = strtol(at, &end, 10);
        const long most = tree ? MOST_CHILDREN : WG_EXACT_DEPTH;
        if (end == at || *at < '0' || *at > '9' || n < 1 || n > most || (*end && *end != '-')) break;
        if (!tree && !*end) {
            for (int d = 0; d < n; d++) s->children[d] = 1;
            s->depth = (int)n;
            return WG_OK;
        }
        if (!tree) break;
        s->children[s->depth++] = (int)n;
        if (!*end) return WG_OK;
    }
    if (tree)
        return wg_fail(err, WG_EINVAL, "--tree %s: expected children of a node by its depth, such as 3-2-1, each 1..%d", text,
                       (int)MOST_CHILDREN);
    return wg_fail(err, WG_EINVAL, "--length %s: expected the length of a chain, 1..%d", text, (int)WG_EXACT_DEPTH);
}

static int most_children(const wg_exact_shape *s)
{
    int k = 0;
    for (int d = 0; d < s->depth; d++) k = s->children[d] > k ? s->children[d] : k;
    return k;
}

static bool fits(wg_exact_form f, const wg_exact_shape *s)
{
    return !wg_exact_rules[f].most || most_children(s) <= wg_exact_rules[f].most;
}

static wg_status find_form(const char *name, wg_exact_form *out, wg_error *err)
{
    char all[256] = "";
    for (int f = 0; f < WG_EXACT_FORMS; f++) {
        *out = (wg_exact_form)f;
        if (!strcmp(wg_exact_rules[f].rule, name)) return WG_OK;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", f ? ", " : "", wg_exact_rules[f].rule);
    }
    return wg_fail(err, WG_ELAW,
                   "rule %s has no closed form given the text; those that have one: %s. For others: wager replay on a "
                   "trace, or wager run",
                   name, all);
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* A value for each position of one text, for a form with k children. */
typedef struct series {
    wg_exact_form form;
    int k;
    double *value;
} series;

enum { SERIES = WG_EXACT_FORMS * MOST_CHILDREN }; /* one for each form and number of children */

typedef struct lesson {
    const wg_cell *cell;
    wg_engine *engine;
    wg_exact_run *out;
    bool fixed;
    series s[SERIES];
    int n_series;
    wg_tree *tree;   /* (max_tokens) fixed drafts: the tree made at each position */
    int *kept;       /* (max_tokens) */
    double *scratch; /* (max_tokens + 1) */
    int max;
} lesson;

static double *series_of(const lesson *l, wg_exact_form form, int k)
{
    for (int i = 0; i < l->n_series; i++)
        if (l->s[i].form == form && l->s[i].k == k) return l->s[i].value;
    return NULL;
}

static wg_status add_series(lesson *l, wg_exact_form form, int k, wg_error *err)
{
    if (series_of(l, form, k)) return WG_OK;
    wg_assert(l->n_series < SERIES);
    series *s = &l->s[l->n_series++];
    *s = (series){ form, k, wg_calloc((size_t)l->max, sizeof(double)) };
    return s->value ? WG_OK : wg_nomem(err, (size_t)l->max * 8, "values of a text");
}

static wg_status plan(lesson *l, const wg_exact_shape *shape, int shapes, const char *const *rule, int n_rules, int prompts,
                      wg_error *err)
{
    wg_exact_run *o = l->out;
    const int most = (n_rules ? n_rules : WG_EXACT_FORMS) * shapes;
    if (!(o->result = wg_calloc((size_t)most, sizeof *o->result)))
        return wg_nomem(err, (size_t)most * sizeof *o->result, "results");
    for (int i = 0; i < (n_rules ? n_rules : WG_EXACT_FORMS); i++) {
        wg_exact_form f = (wg_exact_form)i;
        if (n_rules) WG_TRY(find_form(rule[i], &f, err));
        if (l->fixed && !n_rules && f != WG_EXACT_TOPK) continue; /* one form suffices for fixed drafts */
        for (int k = 0; k < shapes; k++) {
            if (!l->fixed && !fits(f, &shape[k])) {
                if (!n_rules) continue;
                return wg_fail(err, WG_ELAW, "rule %s has a closed form for at most %d children of a node; not for %s", rule[i],
                               wg_exact_rules[f].most, shape[k].name);
            }
            wg_exact_result *r = &o->result[o->n++];
            *r = (wg_exact_result){ .rule = wg_exact_rules[f].rule,
                                    .law = l->fixed ? "fixed" : wg_exact_rules[f].law,
                                    .fixed = l->fixed,
                                    .form = f,
                                    .shape = &shape[k],
                                    .prompts = prompts };
            r->tokens = wg_calloc((size_t)prompts, sizeof *r->tokens);
            r->rounds = wg_calloc((size_t)prompts, sizeof *r->rounds);
            if (!r->tokens || !r->rounds) return wg_nomem(err, (size_t)prompts * 16, "results");
            for (int d = 0; !l->fixed && d < shape[k].depth; d++) WG_TRY(add_series(l, f, shape[k].children[d], err));
        }
    }
    return WG_OK;
}

/* Adds the values of the emitted position, from the root's p and its children's q at the emitted token. */
static void note(lesson *l, const wg_seq *s, int at)
{
    const wg_last_step last = wg_engine_last_step(l->engine);
    const wg_tree *t = &last.tree[0];
    const int child = wg_tree_child(t, 0, 0);
    const double alpha = wg_teacher_alpha(l->engine, 0);
    if (isfinite(alpha)) l->out->alpha += alpha, l->out->drafted++;
    if (l->fixed) l->tree[at] = *t;
    for (int i = 0; i < l->n_series; i++) {
        const bool known = child >= 0 && t->qrow[child] >= 0; /* else nothing was drafted here */
        l->s[i].value[at] = known ? wg_exact_accept(l->s[i].form, l->s[i].k, last.p, t->row, last.q, t->qrow[child],
                                                    s->token[s->n - 1], last.work)
                                  : 0;
    }
}

/* The number of leading tokens of the draft made at a position that equal the text. */
static int kept_of(const wg_tree *t, const int32_t *text, int n)
{
    int node = 0, kept = 0;
    while (kept < n && (node = wg_tree_find(t, node, text[kept])) >= 0) kept++;
    return kept;
}

/* Adds the first n values as a text's. */
static void add_text(lesson *l, int prompt, const int32_t *text, int n)
{
    for (int t = 0; l->fixed && t < n; t++) l->kept[t] = kept_of(&l->tree[t], text + t, n - t);
    for (int i = 0; i < l->out->n; i++) {
        wg_exact_result *r = &l->out->result[i];
        const double *of[WG_EXACT_DEPTH];
        double rounds;
        if (l->fixed) {
            rounds = wg_exact_rounds_fixed(l->kept, r->shape->depth, n, l->scratch);
        } else {
            for (int d = 0; d < r->shape->depth; d++) of[d] = series_of(l, r->form, r->shape->children[d]);
            rounds = wg_exact_rounds(r->form == WG_EXACT_BLOCK, of, r->shape->depth, n, l->scratch);
        }
        r->tokens[prompt] += n;
        r->rounds[prompt] += rounds;
    }
    l->out->texts++;
    l->out->tokens += n;
}

/* Runs a conversation; each answer is a text. */
static wg_status read_texts(lesson *l, int prompt, uint32_t request, const wg_question *q, int turns, wg_error *err)
{
    wg_seq *s = NULL;
    wg_status st = WG_OK;
    for (int turn = 0; turn < turns && !st; turn++) {
        st = wg_conversation_ask(l->engine, &s, q, turn, request, l->max, NULL, err);
        for (int at = 0; !st && s->finish == WG_RUNNING; at++) {
            st = wg_engine_step(l->engine, &s, 1, err);
            if (!st) note(l, s, at);
        }
        if (!st) add_text(l, prompt, s->token + s->prompt, s->n - s->prompt);
    }
    wg_seq_close(l->engine, s);
    return st;
}

static wg_status all_texts(lesson *l, const wg_dataset *d, const wg_target *t, wg_error *err)
{
    const int repeats = l->cell->setup.top.repeats;
    const wg_chat chat = wg_setup_chat(&l->cell->setup.prompts, t->weights);
    wg_question *q = wg_calloc((size_t)d->turns, sizeof *q);
    wg_status s = q ? WG_OK : wg_nomem(err, (size_t)d->turns * sizeof *q, "a conversation");
    for (int i = 0; i < d->n && !s; i++) {
        const wg_prompt *p = &d->prompt[i];
        memset(q, 0, (size_t)d->turns * sizeof *q);
        s = wg_prompt_encode(q, t->tokenizer, &chat, p, err);
        for (int k = 0; !s && k < repeats; k++) {
            s = read_texts(l, i, (uint32_t)(i * repeats + k), q, p->turns, err);
            if (s == WG_ECONTEXT) s = WG_OK; /* as in a run, a prompt that does not fit gives no text */
        }
        wg_conversation_free(q, p->turns);
        if (s) wg_fail_in(err, s, "prompt \"%.60s\"", p->id);
    }
    wg_free(q);
    WG_TRY(s);
    if (l->out->texts) return WG_OK;
    return wg_fail(err, WG_ECONTEXT, "no prompt fits into the context of the target");
}

/* ---- a whole cell ------------------------------------------------------------------------------------------------ */

/* Sets the drafter's length. One level is enough for drawn drafts, whose rows of q depend on the prefix only; fixed chains are
 * drafted at the longest requested length, and cut. */
static void set_length(const wg_drafter_choice *d, bool fixed, int depth)
{
    char is[WG_OPTION_STRING], text[16];
    if (!fixed && wg_teacher_fits(d->class)) {
        wg_teacher_one_token(d->class, d->options);
        return;
    }
    const wg_option *table = d->class->options, *length = wg_option_find(table, "length"),
                    *tree = wg_option_find(table, "tree");
    wg_error err;
    if (!length && fixed) length = wg_option_find(table, "k");
    if (!length || length->type != WG_OPT_INT) return;
    if (tree && tree->type == WG_OPT_STRING && *wg_option_value(tree, d->options, is, sizeof is)) return;
    snprintf(text, sizeof text, "%d", !fixed ? 1 : depth < (int)length->max ? depth : (int)length->max);
    wg_option_set(table, d->options, length->name, text, &err);
}

static wg_status open_lesson(lesson *l, const wg_config *c, wg_target *t, int depth, wg_error *err)
{
    const wg_cell *cell = l->cell;
    const wg_drafter_choice d = wg_cell_lone(cell);
    const unsigned laws = wg_drafter_laws(d.class, d.options, &cell->setup.sampling);
    l->fixed = laws == WG_LAW_FIXED;
    if (!l->fixed && laws & WG_LAW_FIXED)
        return wg_fail(err, WG_ELAW,
                       "drafter %s drafts by several laws, fixed among them; an exact replay needs a drafter of one law",
                       d.class->name);
    set_length(&d, l->fixed, depth);
    wg_engine_parts parts = wg_target_engine_parts(t);
    parts.drafter = d.class;
    parts.drafter_options = d.options;
    parts.verifier = &wg_teacher_rule;
    parts.rules = c->plugins->verifiers;
    const wg_engine_options o = {
        .max_batch = 1, .seed = (uint64_t)cell->setup.top.seed, .sampling = cell->setup.sampling, .host_rows = true
    };
    WG_TRY(wg_engine_open(&l->engine, &parts, &o, err));
    l->scratch = wg_calloc((size_t)l->max + 1, sizeof *l->scratch);
    l->kept = wg_calloc((size_t)l->max, sizeof *l->kept);
    if (l->fixed) l->tree = wg_calloc((size_t)l->max, sizeof *l->tree);
    return l->scratch && l->kept && (!l->fixed || l->tree)
               ? WG_OK
               : wg_nomem(err, (size_t)l->max * sizeof *l->tree, "drafts of a text");
}

wg_status wg_exact_cell(const wg_config *c, int cell, const wg_exact_shape *shape, int shapes, const char *const *rule,
                        int n_rules, wg_exact_run *out, wg_error *err)
{
    const wg_cell *k = &c->cell[cell];
    const wg_dataset *d = c->dataset[k->dataset];
    wg_target *t = NULL;
    lesson *l = wg_calloc(1, sizeof *l);
    *out = (wg_exact_run){ .cell = cell, .drafter = wg_cell_lone(k).class->name };
    if (!l) return wg_nomem(err, sizeof *l, "texts");
    if (*k->setup.top.grammar || *k->setup.top.json_schema) {
        wg_free(l);
        return wg_fail(err, WG_EUNSUPPORTED,
                       "an exact replay generates free texts; take \"grammar\" and \"json_schema\" out of "
                       "the config, or replay a trace");
    }
    *l = (lesson){ .cell = k, .out = out, .max = k->setup.top.max_tokens };
    wg_target_options o = wg_setup_target_options(&k->setup.target);
    o.device = NULL; /* rows of p are needed on the host */
    o.need_tokenizer = true;
    int depth = 1;
    for (int i = 0; i < shapes; i++) depth = shape[i].depth > depth ? shape[i].depth : depth;
    wg_status s = wg_target_open(&t, k->setup.target.model, &o, err);
    if (!s) s = open_lesson(l, c, t, depth, err);
    if (!s) s = plan(l, shape, shapes, rule, n_rules, d->n, err);
    if (!s) s = all_texts(l, d, t, err);
    out->alpha = out->drafted ? out->alpha / (double)out->drafted : NAN;
    for (int i = 0; i < l->n_series; i++) wg_free(l->s[i].value);
    wg_free(l->tree);
    wg_free(l->kept);
    wg_free(l->scratch);
    wg_engine_close(l->engine);
    wg_target_close(t);
    wg_free(l);
    if (s) wg_exact_run_free(out);
    return s;
}

void wg_exact_run_free(wg_exact_run *r)
{
    for (int i = 0; i < r->n; i++) {
        wg_free(r->result[i].tokens);
        wg_free(r->result[i].rounds);
    }
    wg_free(r->result);
    *r = (wg_exact_run){ 0 };
}
