/* SPDX-License-Identifier: MIT
 * wager replay: the rounds of a trace under other rules, lengths and temperatures; with --exact, tau of rules, lengths and
 * trees from texts only. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/mem.h"
#include "experiments/analysis/attribution.h"
#include "experiments/cli/cli.h"
#include "experiments/run/exact_run.h"
#include "lab/replay.h"
#include "experiments/base/stats.h"
#include "core/base/json_number.h"
#include "verify/verify.h"

enum { MOST_LENGTHS = 16, MOST_RULES = 64 };

typedef struct asked {
    wg_flag_list rule, length, tree, set;
    double temperature;
    long cell;
    bool json, exact, attribution;
    bool headed; /* the head of the table is printed */
    int lengths[MOST_LENGTHS], n_lengths;
    wg_rule_choice choice[MOST_RULES];
    int rules;
} asked;

/* The trace of a result folder, or the file itself. */
static const char *trace_path(const char *path, char *buf, size_t size)
{
    struct stat st;
    if (stat(path, &st) || !S_ISDIR(st.st_mode)) return path;
    snprintf(buf, size, "%s/trace.wgt", path);
    return buf;
}

static wg_status read_lengths(asked *a, wg_error *err)
{
    for (int i = 0; i < a->length.n; i++) {
        char *end;
        const long n = strtol(a->length.item[i], &end, 10);
        if (end == a->length.item[i] || *end || n < 1 || n > INT32_MAX || a->n_lengths == MOST_LENGTHS)
            return wg_fail(err, WG_EINVAL, "--length %s: expected a depth of draft trees, 1 or more, at most %d times",
                           a->length.item[i], (int)MOST_LENGTHS);
        a->lengths[a->n_lengths++] = (int)n;
    }
    if (a->n_lengths == 0) a->lengths[a->n_lengths++] = 0;
    return WG_OK;
}

/* Chooses rules: the recorded one by default, with "all" those that fit. */
static wg_status choose_rules(asked *a, wg_replay *r, wg_error *err)
{
    wg_replay_drafts drafts;
    WG_TRY(wg_replay_drafts_of(r, &drafts, err));
    for (int i = 0; i < a->rule.n && a->rules < MOST_RULES; i++) {
        if (strcmp(a->rule.item[i], "all") != 0) {
            WG_TRY(wg_choose_rule_flag(a->rule.item[i], &a->choice[a->rules], err));
            a->rules++;
            continue;
        }
        for (int k = 0; wg_verifiers[k] && a->rules < MOST_RULES; k++) {
            const wg_verifier_class *v = wg_verifiers[k];
            const bool elsewhere = v->zero_only && r->sampling.temperature > 0; /* it verifies temperature 0 only */
            if (!wg_replay_fits(v, &drafts) || elsewhere) continue;
            WG_TRY(wg_choose_rule(v->name, &a->choice[a->rules], err));
            a->rules++;
        }
    }
    return WG_OK;
}

static json_t *row_json(const wg_replay *r, const wg_replayed *s)
{
    const wg_ratio tokens = { .a = s->by_tokens, .b = s->by_rounds, .n = s->prompts };
    const wg_ratio against = { .a = s->by_tokens, .b = s->by_recorded, .n = s->prompts };
    json_t *v = json_object();
    json_object_set_new(v, "cell", json_integer(r->cell));
    json_object_set_new(v, "rule", json_string(s->rule->name));
    json_object_set_new(v, "recorded_rule", json_string(r->rule.class->name));
    json_object_set_new(v, "lossless", json_boolean(wg_verifier_lossless(s->rule, r->sampling.temperature)));
    json_object_set_new(v, "length", s->length ? json_integer(s->length) : json_null());
    json_object_set_new(v, "temperature", json_real(r->sampling.temperature));
    json_object_set_new(v, "rounds", json_integer(s->rounds));
    json_object_set_new(v, "same_rounds", json_integer(s->same));
    json_object_set_new(v, "next_unknown_rounds", json_integer(s->unknown));
    json_object_set_new(v, "drafted", json_integer(s->drafted));
    json_object_set_new(v, "accepted", json_integer(s->accepted));
    json_object_set_new(v, "tokens_per_recorded_round", wg_json_number(wg_ratio_value(&tokens)));
    json_object_set_new(v, "tokens_ci", wg_ratio_interval_json(&tokens));
    json_object_set_new(v, "against_recorded", wg_json_number(wg_ratio_value(&against)));
    json_object_set_new(v, "against_ci", wg_ratio_interval_json(&against));
    json_object_set_new(v, "tau_bracket", isfinite(s->tau_low) ? json_pack("[f,f]", s->tau_low, s->tau_high) : json_null());
    json_object_set_new(v, "alpha", wg_json_number(s->alpha));
    json_object_set_new(v, "alpha_star", wg_json_number(s->alpha_star));
    json_object_set_new(v, "alpha_error_mean", json_real(s->error));
    json_object_set_new(v, "alpha_error_most", json_real(s->worst));
    return v;
}

static void put_ci(const char *format, const json_t *ci)
{
    char text[64] = "-";
    if (json_is_array(ci))
        snprintf(text, sizeof text, "%.3f..%.3f", json_number_value(json_array_get(ci, 0)),
                 json_number_value(json_array_get(ci, 1)));
    printf(format, text);
}

static void print_row(const json_t *v, const wg_replayed *s)
{
    printf("%4lld  %-19s ", (long long)json_integer_value(json_object_get(v, "cell")), s->rule->name);
    if (s->length) printf("%6d ", s->length);
    else printf("%6s ", "-");
    printf("%7ld %8ld %7.4f ", s->rounds, s->same, wg_json_real(v, "tokens_per_recorded_round"));
    put_ci("%-14s ", json_object_get(v, "tokens_ci"));
    printf("%8.4f ", wg_json_real(v, "against_recorded"));
    put_ci("%-14s ", json_object_get(v, "against_ci"));
    put_ci("%-13s ", json_object_get(v, "tau_bracket"));
    printf("%6.3f  %6.3f%s\n", s->alpha, s->alpha_star, json_is_true(json_object_get(v, "lossless")) ? "" : "  lossy");
}

static const char *const head = "cell  rule                length  rounds     same  tokens 95 %           against 95 %         "
                                "  tau           alpha  alpha*\n";

/* Before the first row: what is refused before it has printed nothing. */
static void put_head(asked *a, const char *text)
{
    if (!a->headed) fputs(text, stdout);
    a->headed = true;
}

static wg_status replay_cell(asked *a, wg_trace *t, int cell, wg_error *err)
{
    wg_replay *r = NULL;
    wg_replayed *s = wg_calloc((size_t)MOST_RULES * MOST_LENGTHS, sizeof *s);
    int n = 0;
    if (!s) return wg_nomem(err, (size_t)MOST_RULES * MOST_LENGTHS * sizeof *s, "results");
    wg_status st = wg_replay_open(&r, t, cell, a->temperature, err);
    if (!st) st = choose_rules(a, r, err);
    for (int i = 0; !st && i < (a->rules ? a->rules : 1); i++)
        for (int k = 0; k < a->n_lengths; k++) {
            const wg_rule_choice *c = a->rules ? &a->choice[i] : &r->rule;
            s[n++] = (wg_replayed){ .rule = c->class, .options = c->options, .length = a->lengths[k] };
        }
    if (!st) st = wg_replay_all(r, s, n, err);
    for (int i = 0; !st && i < n; i++) {
        json_t *v = row_json(r, &s[i]);
        if (!a->json) put_head(a, head);
        if (a->json) wg_json_put_line(json_incref(v), JSON_REAL_PRECISION(15));
        else print_row(v, &s[i]);
        json_decref(v);
    }
    for (int i = 0; i < n; i++) wg_replayed_free(&s[i]);
    for (int i = 0; i < a->rules; i++) wg_rule_choice_close(&a->choice[i]);
    a->rules = 0;
    wg_replay_close(r);
    wg_free(s);
    return st;
}

static wg_status attribute(const asked *a, wg_trace *t, int cell, wg_error *err)
{
    json_t *v;
    WG_TRY(wg_attribution(&v, t, cell, true, err));
    if (a->json) wg_json_put_line(json_incref(v), JSON_REAL_PRECISION(15));
    else wg_attribution_print(stdout, v);
    json_decref(v);
    return WG_OK;
}

static wg_status replay(asked *a, const char *path, wg_error *err)
{
    char buf[4096];
    wg_trace *t;
    WG_TRY(read_lengths(a, err));
    WG_TRY(wg_trace_open(&t, trace_path(path, buf, sizeof buf), err));
    if (*t->damage) fprintf(stderr, "wager replay: %s: %s; the %d rounds before it are used\n", t->name, t->damage, t->rounds);
    const int cells = (int)json_array_size(t->cells);
    wg_status s = t->rounds ? WG_OK : wg_fail(err, WG_EFORMAT, "%s: there are no rounds in it", t->name);
    const int first = a->cell < 0 ? 0 : (int)a->cell, end = a->cell < 0 ? cells : first + 1;
    for (int c = first; !s && c < end; c++) s = a->attribution ? attribute(a, t, c, err) : replay_cell(a, t, c, err);
    if (!s && !a->json && !a->attribution)
        puts("\ntokens: per recorded round, next included, and against what the recorded rule emitted in the same rounds (not "
             "tau of "
             "another\nrule, whose rounds would begin elsewhere). same: rounds verified as recorded. tau: its bounds by the "
             "renewal "
             "chain over the\nrecorded texts, for chains verified token by token; wager replay --exact has it without bounds. "
             "Intervals: over prompts,\nfive at least.");
    wg_trace_close(t);
    return s;
}

/* ---- --exact ----------------------------------------------------------------------------------------------------- */

/* The result of `rejection` on the same drafts. */
static const wg_exact_result *rejection_beside(const wg_exact_run *x, const wg_exact_result *r)
{
    for (int i = 0; i < x->n; i++)
        if (x->result[i].form == WG_EXACT_REJECTION && x->result[i].shape == r->shape) return &x->result[i];
    return NULL;
}

static json_t *exact_json(const wg_exact_run *x, const wg_exact_result *r, const wg_cell *cell)
{
    const wg_ratio tau = { .a = r->tokens, .b = r->rounds, .n = r->prompts };
    const wg_exact_result *other = rejection_beside(x, r);
    json_t *v = json_object();
    json_object_set_new(v, "cell", json_integer(x->cell));
    json_object_set(v, "config", json_object_get(cell->config, "draft"));
    json_object_set_new(v, "drafter", json_string(x->drafter));
    json_object_set_new(v, "temperature", json_real(cell->setup.sampling.temperature));
    json_object_set_new(v, "rule", json_string(r->fixed ? "any lossless" : r->rule));
    json_object_set_new(v, "law", json_string(r->law));
    json_object_set_new(v, "draft", json_string(r->shape->name));
    wg_ratio_set_json(v, "tau", &tau);
    json_object_set_new(v, "alpha", wg_json_number(x->alpha));
    json_object_set_new(v, "texts", json_integer(x->texts));
    json_object_set_new(v, "tokens", json_integer(x->tokens));
    json_object_set_new(v, "drafted_positions", json_integer(x->drafted));
    if (other && other != r) {
        const wg_ratio ratio = { .a = other->rounds, .b = r->rounds, .n = r->prompts }; /* tokens are equal */
        json_object_set_new(v, "against_rejection", wg_json_number(wg_ratio_value(&ratio)));
        json_object_set_new(v, "against_ci", wg_ratio_interval_json(&ratio));
    }
    return v;
}

static void print_exact(const json_t *v)
{
    const json_t *against = json_object_get(v, "against_rejection");
    printf("%4lld  %-16s %5.2f  %-19s %-19s %-8s %7.4f ", (long long)json_integer_value(json_object_get(v, "cell")),
           json_string_value(json_object_get(v, "drafter")), wg_json_real(v, "temperature"),
           json_string_value(json_object_get(v, "rule")), json_string_value(json_object_get(v, "law")),
           json_string_value(json_object_get(v, "draft")), wg_json_real(v, "tau"));
    put_ci("%-14s ", json_object_get(v, "tau_ci"));
    if (json_is_null(json_object_get(v, "alpha"))) printf("%6s", "-");
    else printf("%6.3f", wg_json_real(v, "alpha"));
    if (against) {
        printf("  %7.4f ", json_number_value(against));
        put_ci("%s", json_object_get(v, "against_ci"));
    }
    putchar('\n');
}

static const char *const exact_head = "cell  drafter           temp  rule                siblings            draft        tau "
                                      "95 %            alpha  against 95 %\n";

static wg_status exact_cell(asked *a, const wg_config *c, int cell, const wg_exact_shape *shape, int shapes, wg_error *err)
{
    wg_exact_run x;
    const bool all = a->rule.n == 0 || (a->rule.n == 1 && !strcmp(a->rule.item[0], "all"));
    const wg_status s = wg_exact_cell(c, cell, shape, shapes, a->rule.item, all ? 0 : a->rule.n, &x, err);
    for (int i = 0; !s && i < x.n; i++) {
        json_t *v = exact_json(&x, &x.result[i], &c->cell[cell]);
        if (!a->json) put_head(a, exact_head);
        if (a->json) wg_json_put_line(json_incref(v), JSON_REAL_PRECISION(15));
        else print_exact(v);
        json_decref(v);
    }
    if (!s && !a->json) printf("      %d texts, %ld tokens\n", x.texts, x.tokens);
    if (!s) wg_exact_run_free(&x);
    return s;
}

/* Whether an earlier cell has this cell's texts and drafter. The rule does not matter here. */
static bool is_repeated(const wg_config *c, int cell)
{
    for (int i = 0; i < cell; i++)
        if (c->cell[i].group == c->cell[cell].group &&
            json_equal(json_object_get(c->cell[i].config, "draft"), json_object_get(c->cell[cell].config, "draft")))
            return true;
    return false;
}

static wg_status exact(asked *a, const char *path, wg_error *err)
{
    static const char *const usual[] = { "1", "2", "4", "8" };
    wg_exact_shape shape[WG_EXACT_SHAPES];
    wg_config *c;
    int n = 0;
    for (int i = 0; i < a->length.n && n < WG_EXACT_SHAPES; i++)
        WG_TRY(wg_exact_shape_read(&shape[n++], a->length.item[i], false, err));
    for (int i = 0; i < a->tree.n && n < WG_EXACT_SHAPES; i++)
        WG_TRY(wg_exact_shape_read(&shape[n++], a->tree.item[i], true, err));
    for (int i = 0; !a->length.n && !a->tree.n && i < 4; i++) WG_TRY(wg_exact_shape_read(&shape[n++], usual[i], false, err));
    WG_TRY(wg_config_open(&c, path, a->set.item, a->set.n, &wg_program_plugins, err));
    wg_status s = a->cell < c->n
                      ? WG_OK
                      : wg_fail(err, WG_EINVAL, "%s: there is no cell %ld; it has cells 0..%d", path, a->cell, c->n - 1);
    for (int i = 0; !s && i < c->n; i++)
        if (a->cell < 0 ? !is_repeated(c, i) : a->cell == i) s = exact_cell(a, c, i, shape, n, err);
    if (!s && !a->json)
        puts("\ntau: tokens per pass of the target, exact given the texts; its interval is over prompts, five at least. "
             "against: the rounds rejection needs for\nthe same texts over this rule's. alpha: mean of sum min(p, q) over the "
             "positions of the texts at which a token was drafted.");
    wg_config_close(c);
    return s;
}

int wg_cmd_replay(int argc, char **argv)
{
    asked a = { .temperature = -1, .cell = -1 };
    const char *path;
    const wg_flag flags[] = {
        { "rule", 0, WG_FLAG_LIST, &a.rule, "RULE", "verify by NAME[:option=value,...], or by `all` that fit; may be repeated",
          0, 0 },
        { "length", 0, WG_FLAG_LIST, &a.length, "N", "cut drafts to a depth of N tokens; may be repeated", 0, 0 },
        { "temperature", 0, WG_FLAG_FLOAT, &a.temperature, "T",
          "temperature of the target; drafts stay as recorded. Negative: the recorded one", -1, 100 },
        { "attribution", 0, WG_FLAG_BOOL, &a.attribution, NULL,
          "losses of drafter and rule, alpha under other settings of the draft, and calibration of confidences", 0, 0 },
        { "exact", 0, WG_FLAG_BOOL, &a.exact, NULL, "tau without sampling noise, from texts that the target of CONFIG writes",
          0, 0 },
        { "tree", 0, WG_FLAG_LIST, &a.tree, "K-K-..", "with --exact: children of a node by its depth; may be repeated", 0, 0 },
        { "set", 0, WG_FLAG_LIST, &a.set, "A.B=V", "with --exact: override a value of the config; may be repeated", 0, 0 },
        { "cell", 0, WG_FLAG_INT, &a.cell, "N", "number of the cell; negative: all cells", -1, 1e6 },
        { "json", 0, WG_FLAG_BOOL, &a.json, NULL, "one JSON object a line", 0, 0 },
        { NULL, 0, WG_FLAG_BOOL, NULL, NULL, NULL, 0, 0 },
    };
    const int done = wg_cli_parse("replay", flags, argc, argv, &path, 1, 1);
    if (done >= 0) return done;
    wg_error err;
    if (!a.exact && (a.tree.n || a.set.n))
        return wg_cli_refuse("replay", "--tree and --set belong to --exact; a trace has the drafts it has");
    if (a.exact && a.temperature >= 0)
        return wg_cli_refuse("replay", "--exact takes the temperature from the config: --set sampling.temperature=%g",
                             a.temperature);
    const wg_status s = a.exact ? exact(&a, path, &err) : replay(&a, path, &err);
    return s ? wg_cli_fail(&err) : WG_EXIT_OK;
}
