/* SPDX-License-Identifier: MIT
 * Replaying recorded rounds (replay.h). */
#include "lab/replay.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/dist/optimal_acceptance.h"
#include "lab/exact.h"
#include "kernels/cpu.h"
#include "verify/verify.h"

/* ---- a cell, from its config ------------------------------------------------------------------------------------- */

/* Sets the members of a section that the table has, from JSON. */
static wg_status set_from(const wg_option *table, void *o, const json_t *section, const char *selector, wg_error *err)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)section, key, v) {
        if (selector && !strcmp(key, selector)) continue;
        if (json_is_string(v)) WG_TRY(wg_option_set(table, o, key, json_string_value(v), err));
        else if (json_is_number(v)) WG_TRY(wg_option_set_number(table, o, key, json_number_value(v), json_is_integer(v), err));
        else if (json_is_boolean(v)) WG_TRY(wg_option_set(table, o, key, json_is_true(v) ? "true" : "false", err));
    }
    return WG_OK;
}

static wg_status read_cell(wg_replay *r, const json_t *cell, wg_error *err)
{
    const json_t *config = json_object_get(cell, "config"), *verify = json_object_get(config, "verify");
    const char *rule = json_string_value(json_object_get(verify, "rule"));
    r->seed = (uint64_t)json_integer_value(json_object_get(config, "seed"));
    wg_option_defaults(wg_sampling_options, &r->sampling);
    WG_TRY(set_from(wg_sampling_options, &r->sampling, json_object_get(config, "sampling"), NULL, err));
    if (!rule || strchr(rule, ':')) return wg_fail(err, WG_EFORMAT, "its config names no rule");
    WG_TRY(wg_name_rule(rule, &r->rule, err));
    WG_TRY(set_from(r->rule.class->options, r->rule.options, verify, "rule", err));
    return wg_rule_load(&r->rule, err);
}

static wg_status open_replay(wg_replay *r, double temperature, wg_error *err)
{
    const json_t *cell = json_array_get(r->trace->cells, (size_t)r->cell);
    const json_int_t group = json_integer_value(json_object_get(cell, "group"));
    if (!cell)
        return wg_fail(err, WG_EINVAL, "%s: there is no cell %d; it has cells 0..%d", r->trace->name, r->cell,
                       (int)json_array_size(r->trace->cells) - 1);
    if (group < 0 || group >= r->trace->groups)
        return wg_fail(err, WG_EFORMAT, "%s: cell %d belongs to no group", r->trace->name, r->cell);
    r->group = &r->trace->group[group];
    r->vocab = r->group->vocab;
    const wg_status s = read_cell(r, cell, err);
    if (s) return wg_fail_in(err, s == WG_ENOMEM ? s : WG_EFORMAT, "%s: cell %d", r->trace->name, r->cell);
    r->recorded = r->sampling.temperature;
    r->as_recorded = temperature < 0 || temperature == r->recorded;
    if (temperature >= 0) r->sampling.temperature = temperature;
    return wg_workspace_open(&r->work, r->vocab, err);
}

wg_status wg_replay_open(wg_replay **out, wg_trace *trace, int cell, double temperature, wg_error *err)
{
    wg_replay *r = wg_calloc(1, sizeof *r);
    if (!r) return wg_nomem(err, sizeof *r, "a replay");
    r->trace = trace;
    r->cell = cell;
    const wg_status s = open_replay(r, temperature, err);
    if (s) wg_replay_close(r);
    else *out = r;
    return s;
}

void wg_replay_close(wg_replay *r)
{
    if (!r) return;
    if (r->sampler_open) wg_sampler_close(&r->sampler);
    if (r->p.p) wg_rows_close(&r->p);
    if (r->q.p) wg_rows_close(&r->q);
    wg_workspace_close(&r->work);
    wg_rule_choice_close(&r->rule);
    wg_free(r->logits);
    wg_free(r);
}

/* ---- a round ----------------------------------------------------------------------------------------------------- */

/* Allocates rows for the first round, and more when a larger tree needs them. */
static wg_status make_room(wg_rows *rows, int n, int vocab, wg_error *err)
{
    if (rows->p && rows->cap >= n) return WG_OK;
    if (rows->p) wg_rows_close(rows);
    return wg_rows_open(rows, n, vocab, err);
}

static wg_status from_logits(wg_replay *r, int node, wg_error *err)
{
    const wg_trace_request *request = &r->trace->request[r->trace->round[r->entry].request];
    const wg_prefix prefix = { .token = request->token,
                               .n = (int)r->round.facts.position,
                               .prompt = request->asked.prompt_tokens,
                               .tree = &r->round.tree,
                               .node = node };
    if (!r->sampler_open) {
        WG_TRY(wg_cpu_check(err));
        WG_TRY(wg_sampler_open(&r->sampler, &r->sampling, wg_ops_for(wg_cpu_chosen()), r->vocab, err));
        r->sampler_open = true;
    }
    if (!r->logits && !(r->logits = wg_alloc((size_t)r->vocab, sizeof *r->logits)))
        return wg_nomem(err, (size_t)r->vocab * 4, "a row of logits");
    wg_trace_row_logits(&r->round.p[node], r->logits, r->vocab);
    wg_sampler_row_after(&r->sampler, r->logits, &prefix, &r->p, node);
    return WG_OK;
}

/* Computes p at another temperature from p: softmax(x / T) is p^(T0/T), normalised, if the row was not truncated. */
static wg_status rewarp(wg_replay *r, int node, wg_error *err)
{
    const wg_sampling *o = &r->sampling;
    if (r->recorded <= 0 || o->temperature <= 0 || o->top_k || o->top_p < 1 || o->min_p > 0 ||
        r->round.p[node].kind != WG_ROW_DENSE)
        return wg_fail(err, WG_EINVAL,
                       "%s: p at temperature %g does not follow from these rows; record with "
                       "\"trace_rows\": \"logits\"",
                       r->trace->name, o->temperature);
    double *p = wg_rows_at(&r->p, node), sum = 0;
    for (int i = 0; i < r->vocab; i++) sum += p[i] = p[i] > 0 ? pow(p[i], r->recorded / o->temperature) : 0;
    for (int i = 0; i < r->vocab; i++) p[i] /= sum;
    return WG_OK;
}

static wg_status load_rows(wg_replay *r, wg_error *err)
{
    const wg_trace_round *o = &r->round;
    const wg_tree *t = &o->tree;
    WG_TRY(make_room(&r->p, t->n, r->vocab, err));
    WG_TRY(make_room(&r->q, o->n_q ? o->n_q : 1, r->vocab, err));
    if (!r->work.row) WG_TRY(wg_workspace_open(&r->work, r->vocab, err));
    r->p.n = t->n;
    r->q.n = o->n_q;
    r->error = r->alpha_error = 0;
    for (int i = 0; i < o->n_q; i++) WG_TRY(wg_trace_row_read(&o->q[i], &r->q, i, err));
    for (int i = 0; i < t->n; i++) {
        if (o->p[i].kind == WG_ROW_LOGITS) WG_TRY(from_logits(r, i, err));
        else WG_TRY(wg_trace_row_read(&o->p[i], &r->p, i, err));
        if (!r->as_recorded && o->p[i].kind != WG_ROW_LOGITS) WG_TRY(rewarp(r, i, err));
        const int child = wg_tree_child(t, i, i);
        const double error = o->p[i].error + (child >= 0 && t->qrow[child] >= 0 ? o->q[t->qrow[child]].error : 0);
        r->error = error > r->error ? error : r->error;
        if (o->p[i].kind == WG_ROW_CUT || o->p[i].overlap >= 0) continue; /* alpha is stored */
        r->alpha_error = error > r->alpha_error ? error : r->alpha_error;
    }
    for (int i = 1; i < t->n; i++)
        if (t->law & (WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT) && !(wg_rows_prob(&r->q, t->qrow[i], t->token[i]) > 0))
            return wg_fail(err, WG_EFORMAT, "node %d is token %d, which its row of q cannot draw", i, (int)t->token[i]);
    return WG_OK;
}

wg_status wg_replay_load(wg_replay *r, int i, wg_error *err)
{
    r->entry = i;
    WG_TRY(wg_trace_get(r->trace, i, &r->round, err));
    const wg_status s = load_rows(r, err);
    return s == WG_EFORMAT
               ? wg_fail_in(err, s, "%s: the record at byte %llu", r->trace->name, (unsigned long long)r->trace->round[i].at)
               : s;
}

/* The tree to verify: cut before the first node deeper than `length`, with unchanged numbers. If nodes are numbered level by
 * level, whole levels are cut, as by the engine. */
static void tree_of(const wg_replay *r, int length, wg_tree *out)
{
    *out = r->round.tree;
    int keep = 1;
    while (keep < out->n && (length <= 0 || wg_tree_depth(out, keep) <= length)) keep++;
    out->n = keep;
    for (int i = 0; length > 0 && i < keep; i++)
        if (wg_tree_depth(out, i) == length) out->group[i] = -1; /* all its children were cut */
}

/* Checks that a drawn tree is cut by whole levels (as in engine.c), since the depth below a sibling depends on draws. */
static wg_status check_cut(const wg_replay *r, const wg_tree *cut, int length, wg_error *err)
{
    const wg_tree *t = &r->round.tree;
    if (t->law == WG_LAW_FIXED) return WG_OK;
    for (int i = cut->n; i < t->n; i++)
        if (wg_tree_depth(t, i) <= length)
            return wg_fail(err, WG_EUNSUPPORTED,
                           "%s: cell %d, length %d: its trees are numbered depth first, so a cut would take siblings away from "
                           "nodes of that depth; replay them without --length",
                           r->trace->name, r->cell, length);
    return WG_OK;
}

/* Whether the rule's path follows from the rows. */
static bool rows_suffice(const wg_verifier_class *rule, const wg_replay_drafts *d)
{
    const bool cut = d->cut_p || (d->cut_q && rule->reads_q);
    return !cut || rule->cut == WG_CUT_TREES || (rule->cut == WG_CUT_CHAINS && !d->siblings);
}

bool wg_replay_fits(const wg_verifier_class *rule, const wg_replay_drafts *d)
{
    return (d->laws & ~rule->laws) == 0 && !(d->siblings && rule->chains) && !(d->undeclared && rule->joint) &&
           rows_suffice(rule, d);
}

json_t *wg_replay_rules_json(void)
{
    json_t *list[WG_CUT_TREES + 1];
    for (int k = 0; k <= WG_CUT_TREES; k++) list[k] = json_array();
    for (int i = 0; wg_verifiers[i]; i++)
        for (int k = WG_CUT_CHAINS; k <= wg_verifiers[i]->cut; k++)
            json_array_append_new(list[k], json_string(wg_verifiers[i]->name));
    json_decref(list[WG_CUT_NONE]);
    return json_pack("{s:s, s:s, s:{s:o, s:o}}", "one_hot, dense, list, logits", "all", "half", "all, to the error of the rows",
                     "cut", "chains", list[WG_CUT_CHAINS], "trees", list[WG_CUT_TREES]);
}

static bool has_siblings(const wg_tree *t)
{
    for (int i = 1; i < t->n; i++)
        if (t->parent[i] != i - 1) return true;
    return false;
}

/* Adds the tree, which has the first nodes of the round. */
static void add_drafts(wg_replay_drafts *d, const wg_trace_round *o, const wg_tree *t)
{
    int children;
    for (int i = 0; i < t->n; i++) {
        d->cut_p = d->cut_p || o->p[i].kind == WG_ROW_CUT;
        d->cut_q = d->cut_q || (t->qrow[i] >= 0 && o->q[t->qrow[i]].kind == WG_ROW_CUT);
    }
    if (t->n == 1) return;
    d->laws |= t->law;
    d->siblings = d->siblings || has_siblings(t);
    d->undeclared = d->undeclared || wg_tree_undeclared(t, &children) >= 0;
}

/* Checks laws, declared numbers of siblings and rows; the recorded rule is exempt from the second, which the engine checked. */
static wg_status check_law(const wg_replay *r, const wg_tree *t, const wg_verifier_class *rule, wg_error *err)
{
    wg_replay_drafts d = { .laws = 0 };
    char laws[128], fit[512] = "";
    add_drafts(&d, &r->round, t);
    if (rule == r->rule.class) d.undeclared = false;
    if (wg_replay_fits(rule, &d)) return WG_OK;
    for (int i = 0; wg_verifiers[i]; i++)
        if (wg_replay_fits(wg_verifiers[i], &d))
            snprintf(fit + strlen(fit), sizeof fit - strlen(fit), "%s%s", *fit ? ", " : "", wg_verifiers[i]->name);
    const bool lawful = (d.laws & ~rule->laws) == 0 && !(d.siblings && rule->chains);
    if (lawful && !(d.undeclared && rule->joint))
        return wg_fail(err, WG_EUNSUPPORTED,
                       "%s: cell %d: rule %s needs whole rows%s, and rows of this trace are cut to their most probable tokens; "
                       "rules that fit: %s; for %s record again with \"trace_rows\": \"exact\"",
                       r->trace->name, r->cell, rule->name, rule->cut ? " for trees" : "", fit, rule->name);
    if (lawful)
        return wg_fail(
            err, WG_ELAW,
            "%s: cell %d: rule %s weighs siblings jointly, and the trace does not say that their numbers were declared "
            "before they were drawn (docs/verification.md), or was recorded by a version that did not write it; rules "
            "that fit: %s",
            r->trace->name, r->cell, rule->name, fit);
    return wg_fail(err, WG_ELAW, "%s: cell %d drafts %s by the law %s, but rule %s checks %s%s; rules that fit: %s",
                   r->trace->name, r->cell, d.siblings ? "trees" : "chains", wg_law_name(t->law), rule->name,
                   rule->chains ? "chains of " : "", wg_law_list(rule->laws, laws, sizeof laws), fit);
}

/* Cuts a path as wg_seq_append does: at a token that ends the text, and at the limit. */
static void cut(const wg_replay *r, const wg_tree *t, wg_path *path)
{
    const int n = path->n;
    for (int i = 1; i <= n; i++) {
        const int32_t token = i < n ? t->token[path->node[i]] : path->next;
        if (i < n && i < r->round.facts.left && !wg_trace_is_eog(r->group, token)) continue;
        path->n = i;
        path->next = token;
        return;
    }
}

/* Whether `next` follows from the rows: they are whole, or it was drawn from p itself and is listed. */
static bool knows_next(const wg_replay *r, const wg_verifier_class *rule, const wg_tree *t, const wg_path *path)
{
    const int node = path->node[path->n - 1], child = wg_tree_child(t, node, node);
    const bool drawn = child < 0 || wg_verifier_compares(rule);
    const wg_trace_row *p = &r->round.p[node];
    if (p->kind == WG_ROW_CUT) return drawn && wg_trace_row_lists(p, path->next);
    for (int i = child; !drawn && rule->reads_q && i >= 0; i = wg_tree_child(t, node, i))
        if (t->qrow[i] >= 0 && r->round.q[t->qrow[i]].kind == WG_ROW_CUT) return false;
    return true;
}

wg_status wg_replay_rule(wg_replay *r, const wg_verifier_class *rule, const void *options, int length, wg_path *path,
                         wg_error *err)
{
    wg_tree t;
    tree_of(r, length, &t);
    WG_TRY(check_cut(r, &t, length, err));
    WG_TRY(check_law(r, &t, rule, err));
    const wg_chance chance =
        wg_chance_philox(r->seed, r->trace->request[r->trace->round[r->entry].request].asked.address, r->round.facts.position);
    path->n = 0;
    rule->accept(options, &t, &r->p, &r->q, &chance, &r->work, path);
    if (wg_path_check(path, &t, r->p.vocab, err)) return wg_fail_in(err, WG_EINVAL, "%s: rule %s", r->trace->name, rule->name);
    const int emitted = path->n;
    r->next_known = knows_next(r, rule, &t, path);
    cut(r, &t, path);
    r->next_known = r->next_known || path->n < emitted; /* the last one is a draft token */
    return WG_OK;
}

/* ---- all rounds -------------------------------------------------------------------------------------------------- */

bool wg_replay_cut(const wg_replay *r)
{
    wg_replay_drafts d = { .laws = 0 };
    add_drafts(&d, &r->round, &r->round.tree);
    return d.cut_p || d.cut_q;
}

double wg_replay_overlap(wg_replay *r, int node, int qrow)
{
    const double stored = r->round.p[node].overlap;
    return stored >= 0 ? stored : wg_rows_overlap(&r->p, node, &r->q, qrow);
}

double wg_replay_star(wg_replay *r, const wg_tree *tree, int node)
{
    const int child = wg_tree_child(tree, node, node), qrow = child < 0 ? -1 : tree->qrow[child];
    const bool whole = r->round.p[node].kind != WG_ROW_CUT && (qrow < 0 || r->round.q[qrow].kind != WG_ROW_CUT);
    if (whole || tree->law == WG_LAW_FIXED || qrow < 0) return wg_optimal_alpha(tree, node, &r->p, &r->q, &r->work);
    return wg_tree_child(tree, node, child) < 0 ? wg_replay_overlap(r, node, qrow) : NAN;
}

static bool same_path(const wg_path *a, const wg_path *b, bool next)
{
    return a->n == b->n && (!next || a->next == b->next) && memcmp(a->node, b->node, (size_t)a->n * sizeof *a->node) == 0;
}

static void measure(wg_replay *r, wg_replayed *s, const wg_tree *t, const wg_path *path)
{
    for (int i = 0; i < path->n; i++) {
        const int node = path->node[i], child = wg_tree_child(t, node, node);
        if (child < 0) continue;
        s->alpha_star += wg_replay_star(r, t, node);
        s->alpha_star_n++;
        if (t->qrow[child] < 0) continue;
        s->alpha += wg_replay_overlap(r, node, t->qrow[child]);
        s->alpha_n++;
    }
}

static wg_status replay_one(wg_replay *r, wg_replayed *s, wg_error *err)
{
    const int prompt = r->trace->request[r->trace->round[r->entry].request].asked.prompt;
    wg_path path;
    wg_tree t;
    WG_TRY(wg_replay_rule(r, s->rule, s->options, s->length, &path, err));
    tree_of(r, s->length, &t);
    s->rounds++;
    s->same += same_path(&path, &r->round.path, r->next_known);
    s->unknown += !r->next_known;
    s->tokens += path.n;
    s->accepted += path.n - 1;
    s->drafted += t.n - 1;
    s->error += r->alpha_error;
    s->worst = r->alpha_error > s->worst ? r->alpha_error : s->worst;
    s->by_rounds[prompt]++;
    s->by_tokens[prompt] += path.n;
    s->by_recorded[prompt] += r->round.path.n;
    measure(r, s, &t, &path);
    return WG_OK;
}

/* ---- tau by renewal ---------------------------------------------------------------------------------------------- */

/* The input of the renewal chain from one request: p and q at its tokens; q < 0: not in the trace. */
typedef struct taught {
    double *p, *q;
    int n;
} taught;

static wg_status teach(wg_replay *r, taught *all, wg_error *err)
{
    const int of = r->trace->round[r->entry].request;
    const wg_trace_request *q = &r->trace->request[of];
    const wg_tree *t = &r->round.tree;
    const wg_path *path = &r->round.path;
    taught *k = &all[of];
    if (!k->p) {
        const size_t n = (size_t)(q->n - q->asked.prompt_tokens);
        k->p = wg_calloc(n + 1, sizeof *k->p);
        k->q = wg_calloc(n + 1, sizeof *k->q);
        if (!k->p || !k->q) return wg_nomem(err, n * 16, "a text");
    }
    for (int i = 0; i < path->n; i++) {
        const int node = path->node[i], child = wg_tree_child(t, node, node);
        const int32_t y = i + 1 < path->n ? t->token[path->node[i + 1]] : path->next;
        k->p[k->n] = wg_rows_prob(&r->p, node, y);
        k->q[k->n++] = child >= 0 && t->qrow[child] >= 0 ? wg_rows_prob(&r->q, t->qrow[child], y) : -1;
    }
    return WG_OK;
}

/* One value per position: the probability that the rule accepts a child drawn there. False: the rule has no such form. */
static bool value_of(const wg_verifier_class *rule, double p, double q, double *value)
{
    static const char *const ratio[] = { "rejection", "kseq", "optimal", "without_replacement" };
    *value = q;
    if (!strcmp(rule->name, "match")) return true;
    *value = q < p ? q / p : 1;
    for (size_t i = 0; i < sizeof ratio / sizeof *ratio; i++)
        if (!strcmp(rule->name, ratio[i])) return true;
    return false;
}

static wg_status bracket(const wg_replay *r, const taught *all, int depth, wg_replayed *s, wg_error *err)
{
    double tokens = 0, rounds[2] = { 0 }, v;
    s->tau_low = s->tau_high = NAN;
    if (!value_of(s->rule, 1, 1, &v)) return WG_OK;
    if (s->length) depth = s->length;
    const double **of = wg_calloc((size_t)depth + 1, sizeof *of);
    wg_status st = of ? WG_OK : wg_nomem(err, (size_t)depth * 8, "a chain");
    for (int i = 0; !st && i < r->trace->requests; i++) {
        const int n = all[i].n;
        double *value = n ? wg_alloc(2 * (size_t)n + 1, sizeof *value) : NULL;
        if (!n) continue;
        if (!value) st = wg_nomem(err, (size_t)n * 16, "a text");
        tokens += n;
        for (int k = 0; k < 2 && !st; k++) {
            for (int t = 0; t < n; t++) {
                value_of(s->rule, all[i].p[t], all[i].q[t], &value[t]);
                if (all[i].q[t] < 0) value[t] = k;
            }
            for (int d = 0; d < depth; d++) of[d] = value;
            rounds[k] += wg_exact_rounds(false, of, depth, n, value + n);
        }
        wg_free(value);
    }
    wg_free(of);
    if (!st && tokens > 0) {
        s->tau_low = tokens / rounds[0];
        s->tau_high = tokens / rounds[1];
    }
    return st;
}

/* ---- the results ------------------------------------------------------------------------------------------------- */

static wg_status make_series(wg_replayed *s, int prompts, wg_error *err)
{
    s->prompts = prompts;
    s->by_rounds = wg_calloc((size_t)prompts, sizeof *s->by_rounds);
    s->by_tokens = wg_calloc((size_t)prompts, sizeof *s->by_tokens);
    s->by_recorded = wg_calloc((size_t)prompts, sizeof *s->by_recorded);
    return s->by_rounds && s->by_tokens && s->by_recorded ? WG_OK : wg_nomem(err, (size_t)prompts * 24, "results");
}

/* The file's prompt numbers are not trusted as indices, so the distinct ones are counted. */
static wg_status count_prompts(const wg_replay *r, int *prompts, wg_error *err)
{
    *prompts = 0;
    for (int i = 0; i < r->trace->requests; i++) {
        const wg_trace_asked *a = &r->trace->request[i].asked;
        if (a->cell == r->cell && a->prompt >= *prompts) *prompts = a->prompt + 1;
    }
    return *prompts <= 1 << 24 ? WG_OK : wg_fail(err, WG_EFORMAT, "%s: a request of prompt %d", r->trace->name, *prompts - 1);
}

/* Verifies every round under all rules and collects the input of the renewal chain. *depth: of the deepest chain; 0: drafts are
 * not chains of drawn tokens at the recorded temperature. */
static wg_status pass(wg_replay *r, wg_replayed *result, int n, taught *all, int *depth, wg_error *err)
{
    bool chains = r->as_recorded;
    *depth = 0;
    for (int i = 0; i < r->trace->rounds; i++) {
        if (r->trace->request[r->trace->round[i].request].asked.cell != r->cell) continue;
        WG_TRY(wg_replay_load(r, i, err));
        for (int k = 0; k < n; k++) WG_TRY(replay_one(r, &result[k], err));
        const wg_tree *t = &r->round.tree;
        const int height = wg_tree_height(t);
        chains = chains && (t->n == 1 || (!has_siblings(t) && t->law & (WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT)));
        if (chains) WG_TRY(teach(r, all, err));
        *depth = height > *depth ? height : *depth;
    }
    if (!chains) *depth = 0;
    return WG_OK;
}

wg_status wg_replay_all(wg_replay *r, wg_replayed *result, int n, wg_error *err)
{
    int prompts, depth = 0;
    WG_TRY(count_prompts(r, &prompts, err));
    for (int k = 0; k < n; k++) WG_TRY(make_series(&result[k], prompts, err));
    taught *all = wg_calloc((size_t)r->trace->requests, sizeof *all);
    wg_status st =
        all ? pass(r, result, n, all, &depth, err) : wg_nomem(err, (size_t)r->trace->requests * sizeof *all, "texts");
    for (int k = 0; k < n; k++) {
        result[k].tau_low = result[k].tau_high = NAN;
        if (!st && depth) st = bracket(r, all, depth, &result[k], err);
    }
    for (int i = 0; all && i < r->trace->requests; i++) {
        wg_free(all[i].p);
        wg_free(all[i].q);
    }
    wg_free(all);
    WG_TRY(st);
    for (int k = 0; k < n; k++) {
        wg_replayed *s = &result[k];
        s->alpha = s->alpha_n ? s->alpha / (double)s->alpha_n : NAN;
        s->alpha_star = s->alpha_star_n ? s->alpha_star / (double)s->alpha_star_n : NAN;
        s->error = s->rounds ? s->error / (double)s->rounds : 0;
    }
    return WG_OK;
}

void wg_replayed_free(wg_replayed *s)
{
    wg_free(s->by_rounds);
    wg_free(s->by_tokens);
    wg_free(s->by_recorded);
    s->by_rounds = s->by_tokens = s->by_recorded = NULL;
}

wg_status wg_replay_drafts_of(wg_replay *r, wg_replay_drafts *out, wg_error *err)
{
    *out = (wg_replay_drafts){ .laws = 0 };
    for (int i = 0; i < r->trace->rounds; i++) {
        if (r->trace->request[r->trace->round[i].request].asked.cell != r->cell) continue;
        WG_TRY(wg_trace_get(r->trace, i, &r->round, err));
        add_drafts(out, &r->round, &r->round.tree);
    }
    return WG_OK;
}
