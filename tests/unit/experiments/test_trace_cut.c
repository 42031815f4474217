/* SPDX-License-Identifier: MIT
 * Cut rows of traces: what they determine equals what whole rows determine, to the bit; what they do not is refused. */
#include <math.h>

#include "core/base/mem.h"
#include "core/dist/mass_weights.h"
#include "experiments/analysis/attribution.h"
#include "experiments/run/runner.h"
#include "lab/replay.h"
#include "scene.h"
#include "verify/verify.h"

static scene s;
static void setup(void) { scene_make(&s); }
static void teardown(void) { scene_remove(&s); }
TestSuite(trace_cut, .init = setup, .fini = teardown, .timeout = 120);

enum { FULL, CUT, SIDES };
static const char *const rows_of[SIDES] = { "exact", "top" };

/* Runs the same config with whole and with cut rows. */
static void record(const char *more, wg_trace *t[SIDES])
{
    for (int k = 0; k < SIDES; k++) {
        char text[1024], path[64];
        snprintf(text, sizeof text,
                 "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"prompts\": {\"file\": "
                 "\"prompts.jsonl\"}, \"trace\": \"probs\", \"max_tokens\": 24, \"repeats\": 3, \"seed\": 5, \"trace_rows\": "
                 "\"%s\", \"trace_top\": 12, %s}",
                 rows_of[k], more);
        wg_config *c = config_of(text);
        const wg_run_options o = { .out = rows_of[k] };
        wg_run r;
        char *out = NULL;
        wg_error err;
        cr_assert_eq(wg_run_config(c, &o, &r, &out, &err), WG_OK, "%s", err.text);
        wg_free(out);
        wg_run_free(&r);
        wg_config_close(c);
        snprintf(path, sizeof path, "%s/trace.wgt", rows_of[k]);
        cr_assert_eq(wg_trace_open(&t[k], path, &err), WG_OK, "%s", err.text);
    }
    cr_assert_eq(t[FULL]->rounds, t[CUT]->rounds);
}

static void open_both(wg_trace *const t[SIDES], wg_replay *r[SIDES])
{
    wg_error err;
    for (int k = 0; k < SIDES; k++) cr_assert_eq(wg_replay_open(&r[k], t[k], 0, -1, &err), WG_OK, "%s", err.text);
}

static void close_both(wg_trace *const t[SIDES], wg_replay *const r[SIDES])
{
    for (int k = 0; k < SIDES; k++) {
        wg_replay_close(r[k]);
        wg_trace_close(t[k]);
    }
}

typedef struct tally {
    long rounds, accepted, known, unknown;
} tally;

/* Every round by one rule from both: the same path, and the same `next` where it is known. */
static void same_paths(wg_replay *const r[SIDES], const wg_rule_choice *rule, int length, tally *n)
{
    wg_error err;
    for (int i = 0; i < r[FULL]->trace->rounds; i++) {
        wg_path path[SIDES];
        for (int k = 0; k < SIDES; k++) {
            cr_assert_eq(wg_replay_load(r[k], i, &err), WG_OK, "%s", err.text);
            cr_assert_eq(wg_replay_rule(r[k], rule->class, rule->options, length, &path[k], &err), WG_OK, "%s", err.text);
        }
        cr_assert(r[FULL]->next_known);
        cr_assert(path[0].n == path[1].n && !memcmp(path[0].node, path[1].node, (size_t)path[0].n * sizeof(int16_t)),
                  "rule %s, round %d: another path", rule->class->name, i);
        if (r[CUT]->next_known) cr_assert_eq(path[0].next, path[1].next, "rule %s, round %d", rule->class->name, i);
        n->rounds++;
        n->accepted += path[0].n - 1;
        n->known += r[CUT]->next_known;
        n->unknown += !r[CUT]->next_known;
    }
}

static bool same_number(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* The results of a rule from both: alpha, tau and counts have the same bits; alpha* where a node has one child. */
static void same_results(wg_replay *const r[SIDES], const wg_rule_choice *rule, int length, bool siblings)
{
    wg_error err;
    wg_replayed x[SIDES];
    for (int k = 0; k < SIDES; k++) {
        x[k] = (wg_replayed){ .rule = rule->class, .options = rule->options, .length = length };
        cr_assert_eq(wg_replay_all(r[k], &x[k], 1, &err), WG_OK, "%s", err.text);
    }
    const wg_replayed *a = &x[FULL], *b = &x[CUT];
    cr_assert(a->rounds == b->rounds && a->tokens == b->tokens && a->accepted == b->accepted && a->drafted == b->drafted);
    cr_assert(same_number(a->alpha, b->alpha), "%s: alpha %.17g, %.17g", rule->class->name, a->alpha, b->alpha);
    cr_assert(same_number(a->tau_low, b->tau_low) && same_number(a->tau_high, b->tau_high),
              "%s: tau %.17g..%.17g, %.17g..%.17g", rule->class->name, a->tau_low, a->tau_high, b->tau_low, b->tau_high);
    if (siblings) cr_assert(isnan(b->alpha_star));
    else
        cr_assert(same_number(a->alpha_star, b->alpha_star), "%s: %.17g, %.17g", rule->class->name, a->alpha_star,
                  b->alpha_star);
    cr_assert(b->worst == 0 && a->unknown == 0);
    for (int k = 0; k < SIDES; k++) wg_replayed_free(&x[k]);
}

/* Which rules are replayed, by name, in the order of the registry; the others must be refused by name, with the remedy. */
static void rules_fit(wg_trace *const t[SIDES], bool siblings, const char *expected, tally *n)
{
    wg_replay *r[SIDES];
    wg_replay_drafts drafts[SIDES];
    wg_error err;
    char fit[512] = "";
    open_both(t, r);
    for (int k = 0; k < SIDES; k++) cr_assert_eq(wg_replay_drafts_of(r[k], &drafts[k], &err), WG_OK);
    cr_assert(drafts[CUT].cut_p && !drafts[FULL].cut_p && !drafts[FULL].cut_q);
    for (int i = 0; wg_verifiers[i]; i++) {
        wg_rule_choice rule = { 0 };
        if (!wg_replay_fits(wg_verifiers[i], &drafts[FULL])) continue;
        cr_assert_eq(wg_choose_rule(wg_verifiers[i]->name, &rule, &err), WG_OK, "%s", err.text);
        if (wg_replay_fits(wg_verifiers[i], &drafts[CUT])) {
            snprintf(fit + strlen(fit), sizeof fit - strlen(fit), "%s%s", *fit ? ", " : "", wg_verifiers[i]->name);
            for (int length = 0; length <= 2; length++) {
                same_paths(r, &rule, length, n);
                same_results(r, &rule, length, siblings);
            }
        } else {
            wg_replayed all = { .rule = rule.class, .options = rule.options };
            char says[800];
            cr_assert_eq(wg_replay_all(r[CUT], &all, 1, &err), WG_EUNSUPPORTED, "%s", rule.class->name);
            wg_replayed_free(&all);
            snprintf(says, sizeof says,
                     "top/trace.wgt: cell 0: rule %s needs whole rows%s, and rows of this trace are cut to their most probable "
                     "tokens; rules that fit: %s; for %s record again with \"trace_rows\": \"exact\"",
                     rule.class->name, rule.class->cut ? " for trees" : "", expected, rule.class->name);
            cr_assert_str_eq(err.text, says);
        }
        wg_rule_choice_close(&rule);
    }
    cr_assert_str_eq(fit, expected);
    close_both(t, r);
}

Test(trace_cut, chains_replay_as_from_whole_rows)
{
    wg_trace *t[SIDES];
    tally n = { 0 };
    record("\"sampling\": {\"temperature\": 1}, \"draft\": {\"kind\": \"model\", \"model\": \"target.gguf\", \"temperature\": "
           "1.3, \"length\": 3}, \"verify\": {\"rule\": \"rejection\"}",
           t);
    rules_fit(t, false, "greedy, match, rejection, topk, kseq, optimal, lenience, ensemble", &n);
    cr_assert(n.accepted > 100 && n.known > 20 && n.unknown > 20, "%ld accepted, %ld known, %ld unknown", n.accepted, n.known,
              n.unknown);
}

Test(trace_cut, chains_of_distinct_draws)
{
    wg_trace *t[SIDES];
    tally n = { 0 };
    record("\"sampling\": {\"temperature\": 1}, \"draft\": {\"kind\": \"model\", \"model\": \"target.gguf\", \"siblings\": "
           "\"without_replacement\", \"length\": 3}, \"verify\": {\"rule\": \"without_replacement\"}",
           t);
    rules_fit(t, false, "greedy, match, without_replacement, topk, lenience, ensemble", &n);
    cr_assert(n.accepted > 100 && n.unknown > 20, "%ld accepted, %ld unknown", n.accepted, n.unknown);
}

Test(trace_cut, chains_that_are_functions_of_the_prefix)
{
    wg_trace *t[SIDES];
    tally n = { 0 };
    record("\"sampling\": {\"temperature\": 0.3}, \"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\", \"temperature\": "
           "0, \"length\": 3}, \"verify\": {\"rule\": \"rejection\"}",
           t);
    rules_fit(t, false, "greedy, match, rejection, without_replacement, topk, kseq, optimal, lenience", &n);
    cr_assert(n.accepted > 20 && n.unknown > 20, "%ld accepted, %ld unknown", n.accepted, n.unknown);
}

Test(trace_cut, trees_replay_as_from_whole_rows)
{
    wg_trace *t[SIDES];
    tally n = { 0 };
    record(
        "\"sampling\": {\"temperature\": 1}, \"draft\": {\"kind\": \"model\", \"model\": \"target.gguf\", \"tree\": \"2-2\"},"
        "\"verify\": {\"rule\": \"match\"}",
        t);
    rules_fit(t, true, "greedy, match, topk", &n);
    cr_assert(n.accepted > 50 && n.known > 50, "%ld accepted, %ld known", n.accepted, n.known);
}

/* Fixed chains have no row of q, and rows with a support of few tokens are stored whole. */
Test(trace_cut, short_supports_are_whole)
{
    wg_trace *t[SIDES];
    wg_replay *r[SIDES];
    wg_replay_drafts drafts;
    wg_error err;
    record("\"sampling\": {\"temperature\": 1, \"top_k\": 12}, \"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\"},"
           "\"verify\": {\"rule\": \"block\"}",
           t);
    open_both(t, r);
    cr_assert_eq(wg_replay_drafts_of(r[CUT], &drafts, &err), WG_OK);
    cr_assert(!drafts.cut_p && !drafts.cut_q);
    wg_replayed all = { .rule = r[CUT]->rule.class, .options = r[CUT]->rule.options };
    cr_assert_eq(wg_replay_all(r[CUT], &all, 1, &err), WG_OK, "%s", err.text);
    cr_assert(all.same == all.rounds && all.unknown == 0);
    wg_replayed_free(&all);
    close_both(t, r);
}

Test(trace_cut, counterfactuals_are_refused)
{
    wg_trace *t[SIDES];
    json_t *v[SIDES];
    wg_error err;
    record("\"sampling\": {\"temperature\": 1}, \"draft\": {\"kind\": \"model\", \"model\": \"draft.gguf\"}", t);
    for (int k = 0; k < SIDES; k++) cr_assert_eq(wg_attribution(&v[k], t[k], 0, false, &err), WG_OK, "%s", err.text);
    static const char *const same[] = { "nodes", "alpha", "alpha_star", "kept", "drafter_loss", "rule_loss" };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        cr_assert(json_equal(json_object_get(v[FULL], same[i]), json_object_get(v[CUT], same[i])), "%s", same[i]);
    const json_t *calibration[SIDES] = { json_object_get(v[FULL], "calibration"), json_object_get(v[CUT], "calibration") };
    cr_assert(json_equal(json_object_get(calibration[FULL], "q"), json_object_get(calibration[CUT], "q")));
    cr_assert(!json_is_null(json_object_get(calibration[FULL], "entropy")));
    cr_assert(json_is_null(json_object_get(calibration[CUT], "entropy")), "an entropy of rows that are cut");
    for (int k = 0; k < SIDES; k++) json_decref(v[k]);
    cr_assert_eq(wg_attribution(&v[0], t[CUT], 0, true, &err), WG_EUNSUPPORTED);
    cr_assert_str_eq(
        err.text, "top/trace.wgt: cell 0: alpha under other drafts needs whole rows, and rows of this trace are cut to their "
                  "most probable tokens; summary.json has the other numbers; for all of them record again with "
                  "\"trace_rows\": \"exact\"");
    for (int k = 0; k < SIDES; k++) wg_trace_close(t[k]);
}

/* ---- rows of a real vocabulary */

enum { V = 262144 };

/* A trace of one round, whose only row is *rows, by `auto`. */
static wg_trace *one_round(wg_rows *rows, int top, int vocab)
{
    wg_trace_writer w;
    wg_error err;
    wg_trace *t = NULL;
    FILE *f = tmpfile();
    json_t *header = json_pack("{s:[{s:i, s:[]}], s:[{s:{}, s:i, s:{}}]}", "groups", "vocab", vocab, "eog", "cells", "cell",
                               "group", 0, "config");
    const int32_t prompt[] = { 1 };
    wg_tree tree = { .law = WG_LAW_FIXED, .n = 1, .token = { 1 }, .parent = { -1 }, .qrow = { -1 } };
    const wg_path path = { .n = 1, .next = 7 };
    cr_assert_eq(wg_trace_writer_open(&w, WG_TRACE_AUTO, top, vocab, &err), WG_OK);
    cr_assert_eq(wg_trace_put_header(&w, header, &err), WG_OK);
    fwrite(w.byte, 1, w.n, f);
    const uint64_t at = (uint64_t)ftello(f);
    const wg_trace_asked a = { .limit = 9, .prompt_tokens = 1 };
    cr_assert_eq(wg_trace_put_request(&w, &a, prompt, &err), WG_OK);
    fwrite(w.byte, 1, w.n, f);
    const wg_trace_facts facts = { .request = at, .position = 1, .left = 8, .batch = 1 };
    cr_assert_eq(wg_trace_put_round(&w, &facts, &tree, &path, rows, rows, NULL, &err), WG_OK);
    fwrite(w.byte, 1, w.n, f);
    cr_assert_eq(wg_trace_read(&t, "t", f, &err), WG_OK, "%s", err.text);
    wg_trace_writer_close(&w);
    json_decref(header);
    return t;
}

/* A row with mass on `n` tokens, the weights u^power. */
static void fill(wg_rows *rows, int n, double power)
{
    uint32_t u = 1;
    double *p = wg_rows_at(rows, 0), sum = 0;
    memset(p, 0, (size_t)rows->vocab * sizeof *p);
    for (int i = 0; i < n; i++) {
        const int x = (int)((long)i * rows->vocab / n);
        u = u * 1664525u + 1013904223u;
        sum += p[x] = pow((double)u * 0x1p-32, power) + 1e-9;
    }
    for (int i = 0; i < rows->vocab; i++) p[i] /= sum;
}

/* The first token behind x's gap: x itself where it is listed. */
static int gap_of(const wg_trace_row *row, int32_t x)
{
    while (x < V && !wg_trace_row_lists(row, x)) x++;
    return x;
}

/* The mass of every gap, in the steps that draws count, is that of the whole row. */
static void same_masses(wg_rows *full, wg_rows *cut, const wg_trace_row *row)
{
    const double *a = wg_rows_at(full, 0), *b = wg_rows_at(cut, 0);
    const double scale = wg_scale_of(wg_weights_largest(a, V));
    cr_assert_eq(scale, wg_scale_of(wg_weights_largest(b, V)));
    for (int32_t x = 0; x < V;) {
        const int32_t end = gap_of(row, x);
        cr_assert(wg_weights_mass(a + x, end - x, scale) == wg_weights_mass(b + x, end - x, scale), "%d..%d", x, end);
        if (end < V) cr_assert_eq(a[end], b[end]);
        x = end + 1;
    }
}

/* Draws from a cut row are those from the whole row: the listed token, or one of the same gap. */
Test(trace_cut, draws_of_a_wide_row)
{
    static const double powers[] = { 5000, 3, 0 }; /* most of the mass in few tokens; flat rows */
    wg_error err;
    wg_rows full, cut;
    wg_trace_round round;
    cr_assert_eq(wg_rows_open(&full, 1, V, &err), WG_OK);
    cr_assert_eq(wg_rows_open(&cut, 1, V, &err), WG_OK);
    wg_rows_push(&full);
    wg_rows_push(&cut);
    full.point[0] = full.supported[0] = -1;
    for (int i = 0; i < 3; i++) {
        long listed = 0, other = 0;
        fill(&full, V, powers[i]);
        wg_trace *t = one_round(&full, 64, V);
        cr_assert_eq(wg_trace_get(t, 0, &round, &err), WG_OK, "%s", err.text);
        cr_assert_eq(round.p[0].kind, WG_ROW_CUT);
        cr_assert_leq(16 + wg_trace_row_bytes(WG_ROW_CUT, round.p[0].count, V), (size_t)16384);
        cr_assert(wg_trace_row_lists(&round.p[0], 7), "the emitted token is not listed");
        cr_assert_eq(wg_trace_row_read(&round.p[0], &cut, 0, &err), WG_OK, "%s", err.text);
        same_masses(&full, &cut, &round.p[0]);
        for (int k = 0; k < 400; k++) {
            const wg_chance c = wg_chance_philox(9, (uint32_t)k, 4);
            const int32_t x = wg_rows_pick(&full, 0, &c, WG_DRAW_NEXT, 0), y = wg_rows_pick(&cut, 0, &c, WG_DRAW_NEXT, 0);
            cr_assert_eq(gap_of(&round.p[0], x), gap_of(&round.p[0], y), "u %d: %d, %d", k, x, y);
            if (wg_trace_row_lists(&round.p[0], x)) cr_assert(x == y && ++listed);
            else other++;
        }
        cr_assert(other > 10 && (listed > 10 || powers[i] < 5000), "%ld listed, %ld others", listed, other);
        double error = 0;
        for (int x = 0; x < V; x++) error += fabs(wg_rows_prob(&full, 0, x) - wg_rows_prob(&cut, 0, x)) / 2;
        cr_assert_float_eq(error, round.p[0].error, 1e-12);
        wg_trace_close(t);
    }
    wg_rows_close(&full);
    wg_rows_close(&cut);
}

/* By `auto` no row takes more than 16 KB where 64 tokens are listed, rows of at most 1,360 tokens are whole, and below 32,000
 * tokens all are. Rows are whole, too, where a cut one would list all of their tokens, or be as long. */
Test(trace_cut, rows_take_at_most_16_kilobytes)
{
    static const struct {
        int vocab, tokens, top, kind;
    } cases[] = {
        { V, 1360, 64, WG_ROW_LIST },        { V, 1361, 64, WG_ROW_CUT },           { 32000, 1361, 64, WG_ROW_CUT },
        { 31999, 1361, 64, WG_ROW_LIST },    { 32000, 1400, 1400, WG_ROW_LIST },    { 32000, 1401, 1400, WG_ROW_CUT },
        { 32000, 32000, 10666, WG_ROW_CUT }, { 32000, 32000, 10667, WG_ROW_DENSE },
    };
    wg_error err;
    wg_trace_round round;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wg_rows rows;
        cr_assert_eq(wg_rows_open(&rows, 1, cases[i].vocab, &err), WG_OK);
        wg_rows_push(&rows);
        rows.point[0] = rows.supported[0] = -1;
        fill(&rows, cases[i].tokens, 1);
        wg_trace *t = one_round(&rows, cases[i].top, cases[i].vocab);
        cr_assert_eq(wg_trace_get(t, 0, &round, &err), WG_OK, "%s", err.text);
        cr_assert_eq(round.p[0].kind, cases[i].kind, "case %zu: kind %d", i, round.p[0].kind);
        const size_t bytes = 16 + wg_trace_row_bytes(round.p[0].kind, round.p[0].count, cases[i].vocab);
        if (cases[i].vocab >= WG_TRACE_WIDE && cases[i].top == 64) cr_assert_leq(bytes, (size_t)16384);
        wg_trace_close(t);
        wg_rows_close(&rows);
    }
}
