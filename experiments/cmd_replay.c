/* SPDX-License-Identifier: MIT
 * wager replay: the rounds of a trace under other rules, lengths and temperatures. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/mem.h"
#include "experiments/cli.h"
#include "experiments/commands.h"
#include "experiments/replay.h"
#include "experiments/stats.h"
#include "verify/verify.h"

enum { MOST_LENGTHS = 16, MOST_RULES = 64 };

typedef struct asked {
    wg_flag_list rule, length;
    double temperature;
    long cell;
    bool json;
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

/* The recorded rule where none is asked for; with "all", those that fit. */
static wg_status choose_rules(asked *a, wg_replay *r, wg_error *err)
{
    unsigned laws;
    bool siblings;
    WG_TRY(wg_replay_laws(r, &laws, &siblings, err));
    for (int i = 0; i < a->rule.n && a->rules < MOST_RULES; i++) {
        if (strcmp(a->rule.item[i], "all") != 0) {
            WG_TRY(wg_choose_rule(a->rule.item[i], &a->choice[a->rules], err));
            a->rules++;
            continue;
        }
        for (int k = 0; wg_verifiers[k] && a->rules < MOST_RULES; k++) {
            const wg_verifier_class *v = wg_verifiers[k];
            const bool elsewhere = v->zero_only && r->sampling.temperature > 0; /* that is not the question asked */
            if (!wg_replay_fits(v, laws, siblings) || elsewhere) continue;
            WG_TRY(wg_choose_rule(v->name, &a->choice[a->rules], err));
            a->rules++;
        }
    }
    return WG_OK;
}

static json_t *number(double v) { return isfinite(v) ? json_real(v) : json_null(); }

static json_t *row_json(const wg_replay *r, const wg_resettled *s, double *scratch)
{
    const wg_ratio tokens = { s->by_tokens, s->by_rounds, NULL, NULL, s->prompts };
    const wg_ratio against = { s->by_tokens, s->by_recorded, NULL, NULL, s->prompts };
    double lo = NAN, hi = NAN;
    json_t *v = json_object();
    json_object_set_new(v, "cell", json_integer(r->cell));
    json_object_set_new(v, "rule", json_string(s->rule->name));
    json_object_set_new(v, "recorded_rule", json_string(r->rule.class->name));
    json_object_set_new(v, "lossless", json_boolean(wg_verifier_lossless(s->rule, r->sampling.temperature)));
    json_object_set_new(v, "length", s->length ? json_integer(s->length) : json_null());
    json_object_set_new(v, "temperature", json_real(r->sampling.temperature));
    json_object_set_new(v, "rounds", json_integer(s->rounds));
    json_object_set_new(v, "same_rounds", json_integer(s->same));
    json_object_set_new(v, "drafted", json_integer(s->drafted));
    json_object_set_new(v, "accepted", json_integer(s->accepted));
    json_object_set_new(v, "tokens_per_recorded_round", number(wg_ratio_value(&tokens)));
    bool known = wg_ratio_interval(&tokens, r->seed, scratch, &lo, &hi);
    json_object_set_new(v, "tokens_ci", known ? json_pack("[f,f]", lo, hi) : json_null());
    json_object_set_new(v, "against_recorded", number(wg_ratio_value(&against)));
    known = wg_ratio_interval(&against, r->seed, scratch, &lo, &hi);
    json_object_set_new(v, "against_ci", known ? json_pack("[f,f]", lo, hi) : json_null());
    json_object_set_new(v, "alpha", number(s->alpha));
    json_object_set_new(v, "alpha_star", number(s->alpha_star));
    json_object_set_new(v, "alpha_error_mean", json_real(s->error));
    json_object_set_new(v, "alpha_error_most", json_real(s->worst));
    return v;
}

static double real(const json_t *v, const char *key) { return json_number_value(json_object_get(v, key)); }

static void put_ci(const char *format, const json_t *ci)
{
    char text[64] = "-";
    if (json_is_array(ci)) snprintf(text, sizeof text, "%.3f..%.3f", json_number_value(json_array_get(ci, 0)),
                                    json_number_value(json_array_get(ci, 1)));
    printf(format, text);
}

static void print_row(const json_t *v, const wg_resettled *s)
{
    printf("%4lld  %-19s ", (long long)json_integer_value(json_object_get(v, "cell")), s->rule->name);
    if (s->length) printf("%6d ", s->length);
    else printf("%6s ", "-");
    printf("%7ld %8ld %7.4f ", s->rounds, s->same, real(v, "tokens_per_recorded_round"));
    put_ci("%-14s ", json_object_get(v, "tokens_ci"));
    printf("%8.4f ", real(v, "against_recorded"));
    put_ci("%-14s ", json_object_get(v, "against_ci"));
    printf("%6.3f  %6.3f%s\n", s->alpha, s->alpha_star, json_is_true(json_object_get(v, "lossless")) ? "" : "  lossy");
}

static wg_status replay_cell(asked *a, wg_trace *t, int cell, wg_error *err)
{
    wg_replay *r = NULL;
    wg_resettled *s = wg_calloc((size_t)MOST_RULES * MOST_LENGTHS, sizeof *s);
    double *scratch = wg_calloc(WG_RESAMPLES, sizeof *scratch);
    int n = 0;
    if (!s || !scratch) {
        wg_free(s);
        wg_free(scratch);
        return wg_nomem(err, WG_RESAMPLES * 8, "results");
    }
    wg_status st = wg_replay_open(&r, t, cell, a->temperature, err);
    if (!st) st = choose_rules(a, r, err);
    for (int i = 0; !st && i < (a->rules ? a->rules : 1); i++)
        for (int k = 0; k < a->n_lengths; k++) {
            const wg_rule_choice *c = a->rules ? &a->choice[i] : &r->rule;
            s[n++] = (wg_resettled){ .rule = c->class, .options = c->options, .length = a->lengths[k] };
        }
    if (!st) st = wg_replay_all(r, s, n, err);
    for (int i = 0; !st && i < n; i++) {
        json_t *v = row_json(r, &s[i], scratch);
        if (a->json) {
            json_dumpf(v, stdout, JSON_SORT_KEYS | JSON_COMPACT | JSON_REAL_PRECISION(15));
            putchar('\n');
        } else print_row(v, &s[i]);
        json_decref(v);
    }
    for (int i = 0; i < n; i++) wg_resettled_free(&s[i]);
    for (int i = 0; i < a->rules; i++) wg_rule_choice_close(&a->choice[i]);
    a->rules = 0;
    wg_replay_close(r);
    wg_free(s);
    wg_free(scratch);
    return st;
}

static const char *const head =
    "cell  rule                length  rounds     same  tokens 95 %           against 95 %            alpha  alpha*\n";

static wg_status replay(asked *a, const char *path, wg_error *err)
{
    char buf[4096];
    wg_trace *t;
    WG_TRY(read_lengths(a, err));
    WG_TRY(wg_trace_open(&t, trace_path(path, buf, sizeof buf), err));
    if (*t->damage)
        fprintf(stderr, "wager replay: %s: %s; the %d rounds before it are used\n", t->name, t->damage, t->rounds);
    const int cells = (int)json_array_size(t->cells);
    wg_status s = t->rounds ? WG_OK : wg_fail(err, WG_EFORMAT, "%s: there are no rounds in it", t->name);
    if (!s && !a->json) fputs(head, stdout);
    if (!s && a->cell >= 0) s = replay_cell(a, t, (int)a->cell, err);
    for (int c = 0; !s && a->cell < 0 && c < cells; c++) s = replay_cell(a, t, c, err);
    if (!s && !a->json)
        puts("\ntokens: per recorded round, next included, and against what the recorded rule emitted in the same rounds (not tau of "
             "another\nrule, whose rounds would begin elsewhere: wager replay --exact). same: rounds settled as recorded.");
    wg_trace_close(t);
    return s;
}

int wg_cmd_replay(int argc, char **argv)
{
    asked a = { .temperature = -1, .cell = -1 };
    const char *path;
    const wg_flag flags[] = {
        { "rule", 0, WG_FLAG_LIST, &a.rule, "R", "settle by NAME[:option=value,...], or by `all` that fit; may be repeated", 0, 0 },
        { "length", 0, WG_FLAG_LIST, &a.length, "N", "drafts no deeper than this; may be repeated", 0, 0 },
        { "temperature", 0, WG_FLAG_FLOAT, &a.temperature, "T", "of the target; drafts stay as drawn. Negative: as recorded", -1,
          100 },
        { "cell", 0, WG_FLAG_INT, &a.cell, "N", "of the run; negative: all of them", -1, 1e6 },
        { "json", 0, WG_FLAG_BOOL, &a.json, NULL, "one JSON object a line", 0, 0 },
        { NULL, 0, WG_FLAG_BOOL, NULL, NULL, NULL, 0, 0 },
    };
    const int done = wg_cli_parse("replay", flags, argc, argv, &path, 1, 1);
    if (done >= 0) return done;
    wg_error err;
    const wg_status s = replay(&a, path, &err);
    return s ? wg_cli_fail(&err) : WG_EXIT_OK;
}
