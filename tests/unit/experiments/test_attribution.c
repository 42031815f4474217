/* SPDX-License-Identifier: MIT
 * Calibration against samples counted by hand, changed rows against rows changed by hand, and the attribution of real runs
 * against their summaries. */
#include <math.h>

#include "core/base/mem.h"
#include "experiments/analysis/attribution.h"
#include "experiments/analysis/reliability.h"
#include "experiments/analysis/counterfactual.h"
#include "experiments/run/runner.h"
#include "experiments/run/summary.h"
#include "scene.h"

static double real(const json_t *v, const char *key)
{
    cr_assert(json_is_number(json_object_get(v, key)), "%s", key);
    return json_number_value(json_object_get(v, key));
}

Test(attribution, calibration_by_hand)
{
    static const wg_sample s[] = { { 0.9f, 1, 1 }, { 0.9f, 0, 1 }, { 0.2f, 0, 1 }, { 0.6f, 1, 2 }, { 0.1f, 0, 2 } };
    wg_samples all = { 0 };
    wg_error err;
    cr_assert_null(wg_reliability_json(&all));
    for (int i = 0; i < 5; i++)
        cr_assert_eq(wg_samples_add(&all, (double)s[i].confidence, s[i].depth, (double)s[i].p, &err), WG_OK);
    json_t *v = wg_reliability_json(&all);
    /* pairs (kept, not): 0.9 ties 0.9, beats 0.2 and 0.1; 0.6 loses to 0.9, beats 0.2 and 0.1 */
    cr_assert_float_eq(real(v, "auc"), (0.5 + 1 + 1 + 0 + 1 + 1) / 6, 1e-12);
    cr_assert_float_eq(real(v, "ece"), (fabs(1.8 - 1) + 0.2 + fabs(0.6 - 1) + 0.1) / 5, 1e-6);
    const json_t *by_depth = json_object_get(v, "auc_by_depth"), *bins = json_object_get(v, "bins");
    cr_assert_float_eq(json_number_value(json_array_get(by_depth, 0)), (0.5 + 1) / 2, 1e-12);
    cr_assert_float_eq(json_number_value(json_array_get(by_depth, 1)), 1, 1e-12);
    cr_assert_eq(json_integer_value(json_object_get(json_array_get(bins, 9), "n")), 2);
    cr_assert_float_eq(real(json_array_get(bins, 9), "p"), 0.5, 1e-12);
    cr_assert(json_is_null(json_object_get(json_array_get(bins, 5), "p")));
    json_decref(v);
    wg_samples_free(&all);
}

/* Events of probability p: the sums over all outcomes of independent events. */
Test(attribution, calibration_against_probabilities)
{
    static const wg_sample s[] = { { 0.25f, 0.25f, 1 }, { 0.5f, 0.25f, 1 }, { 0.5f, 0.75f, 1 } };
    wg_samples all = { 0 };
    wg_error err;
    double ordered = 0, pairs = 0;
    for (int i = 0; i < 3; i++)
        cr_assert_eq(wg_samples_add(&all, (double)s[i].confidence, s[i].depth, (double)s[i].p, &err), WG_OK);
    for (int outcome = 0; outcome < 8; outcome++) {
        double probability = 1;
        for (int i = 0; i < 3; i++) probability *= outcome >> i & 1 ? (double)s[i].p : 1 - (double)s[i].p;
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                if (!(outcome >> i & 1) || outcome >> j & 1) continue;
                pairs += probability;
                ordered += probability * (s[i].confidence > s[j].confidence ? 1 : s[i].confidence == s[j].confidence ? 0.5 : 0);
            }
    }
    json_t *v = wg_reliability_json(&all);
    cr_assert_float_eq(real(v, "auc"), ordered / pairs, 1e-12);
    cr_assert_float_eq(real(v, "ece"), 0, 0, "a bin's mean confidence is its mean p");
    json_decref(v);
    wg_samples_free(&all);
}

Test(attribution, changed_rows_by_hand)
{
    const double p[4] = { 0.4, 0.3, 0.2, 0.1 }, q[4] = { 0.1, 0.2, 0.3, 0.4 };
    double row[4];
    int32_t order[4];
    const int32_t rank[4] = { 0, 1, 2, 3 };
    cr_assert_float_eq(wg_alpha(p, q, 4), 0.6, 1e-15);
    cr_assert_float_eq(wg_variation(p, q, 4), 0.4, 1e-15);
    cr_assert_float_eq(wg_alpha_at_temperature(p, q, 4, 1, row), 0.6, 1e-12);
    cr_assert_float_eq(wg_alpha_at_temperature(p, q, 4, 0.5, row), 0.01 / 0.3 + 0.04 / 0.3 + 0.2 + 0.1, 1e-12); /* q^2 */
    cr_assert_float_eq(wg_alpha_in_nucleus(p, q, 4, 0.65, row, order), 0.2 + 0.1, 1e-12); /* tokens 3 and 2: 4/7 and 3/7 */
    cr_assert_float_eq(wg_alpha_in_nucleus(p, q, 4, 1, row, order), 0.6, 1e-12);
    cr_assert_float_eq(wg_alpha_of_vocabulary(p, q, 4, rank, 2, row), 1.0 / 3 + 0.3, 1e-12); /* 1/3 and 2/3 */
    cr_assert_float_eq(wg_alpha_of_vocabulary(p, (const double[]){ 0, 0, 0, 1 }, 4, rank, 2, row), 0, 0);
}

/* A run; its summary. */
static json_t *run_into(const char *out, const char *text)
{
    char path[64];
    wg_config *c = config_of(text);
    const wg_run_options o = { .out = out };
    wg_run r;
    char *folder = NULL;
    wg_error err;
    cr_assert_eq(wg_run_config(c, &o, &r, &folder, &err), WG_OK, "%s", err.text);
    wg_free(folder);
    wg_run_free(&r);
    wg_config_close(c);
    snprintf(path, sizeof path, "%s/summary.json", out);
    json_t *v = json_load_file(path, 0, NULL);
    cr_assert_not_null(v);
    return v;
}

/* `match` gives every cell the same text, so a draft in another type stands at the very same prefixes; the same draft twice
 * differs by nothing. */
Test(attribution, of_a_run, .timeout = 60)
{
    scene s;
    wg_error err;
    wg_trace *t;
    json_t *v[4];
    scene_make(&s);
    cr_assert_eq(wg_synth_write(&scene_draft, WG_Q8_0, 2, "draft8.gguf", &err), WG_OK, "%s", err.text);
    json_t *whole = run_into(
        "out",
        "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"prompts\": {\"file\": "
        "\"prompts.jsonl\"},"
        "\"trace\": \"probs\", \"max_tokens\": 24, \"sampling\": {\"temperature\": 1}, \"sweep\": {"
        "\"draft\": [{\"kind\": \"model\", \"model\": \"draft.gguf\", \"length\": 2},"
        "{\"kind\": \"model\", \"model\": \"draft8.gguf\", \"length\": 2}], \"verify.rule\": [\"match\", \"rejection\"]}}");
    const json_t *cells = json_object_get(whole, "cells");
    cr_assert_eq(wg_trace_open(&t, "out/trace.wgt", &err), WG_OK, "%s", err.text);
    for (int c = 0; c < 4; c++) {
        const json_t *summary = json_array_get(cells, (size_t)c), *brief = json_object_get(summary, "attribution");
        cr_assert_eq(wg_attribution(&v[c], t, c, true, &err), WG_OK, "%s", err.text);
        cr_assert_float_eq(real(v[c], "alpha"), real(summary, "alpha"), 1e-9);
        cr_assert_float_eq(real(v[c], "alpha_star"), real(summary, "alpha_star"), 1e-9);
        cr_assert_float_eq(real(brief, "kept"), real(v[c], "kept"), 0);
        cr_assert_float_eq(real(v[c], "drafter_loss") + real(v[c], "rule_loss") + real(v[c], "kept"), 1, 1e-9);
        cr_assert_not(json_object_get(brief, "if"));
        const json_t *q = json_object_get(json_object_get(brief, "calibration"), "q"),
                     *path = json_object_get(json_object_get(brief, "calibration"), "path");
        cr_assert_eq((long)real(q, "n"), (long)real(v[c], "nodes")); /* chains: one child a node */
        cr_assert_eq((long)real(path, "n"), (long)real(summary, "drafted"));
    }
    const json_t *others = json_object_get(v[0], "other_cells"), *quantised = NULL;
    size_t i;
    json_t *o;
    json_array_foreach((json_t *)others, i, o)
        if (json_integer_value(json_object_get(o, "cell")) == 2) quantised = o;
    cr_assert_not_null(quantised);
    cr_assert_float_eq(real(quantised, "p_variation"), 0, 0); /* the Prefix Law */
    cr_assert(real(quantised, "q_variation") > 0 && real(quantised, "q_variation") < 0.05, "%g",
              real(quantised, "q_variation"));
    cr_assert_lt(fabs(real(quantised, "alpha") - real(quantised, "alpha_with_its_q")), real(quantised, "q_variation") + 1e-12);
    for (int c = 0; c < 4; c++) json_decref(v[c]);
    json_decref(whole);
    wg_trace_close(t);
    scene_remove(&s);
}

/* The attribution of a cell of a new run. */
static json_t *attribution_of(const char *draft, const char *rule)
{
    char text[1000];
    static int runs;
    char out[20];
    snprintf(
        text, sizeof text,
        "{\"name\": \"t\", \"target\": {\"model\": \"target.gguf\", \"threads\": 1}, \"prompts\": {\"file\": "
        "\"prompts.jsonl\"}, \"trace\": \"probs\", \"max_tokens\": 40, \"repeats\": 2, \"sampling\": {\"temperature\": 1}, "
        "\"draft\": {\"kind\": \"model\", %s}, \"verify\": {\"rule\": \"%s\"}}",
        draft, rule);
    snprintf(out, sizeof out, "out%d", runs++);
    json_t *summary = run_into(out, text),
           *v = json_incref(json_object_get(json_array_get(json_object_get(summary, "cells"), 0), "attribution"));
    json_decref(summary);
    cr_assert_not_null(v);
    return v;
}

static double ece(const json_t *v, const char *signal)
{
    return real(json_object_get(json_object_get(v, "calibration"), signal), "ece");
}

/* A drafter whose q is p is calibrated, whatever the rule accepts; one that is too sure of itself is not. */
Test(attribution, calibration_of_a_perfect_drafter, .timeout = 60)
{
    static const char *const perfect = "\"model\": \"target.gguf\", \"length\": 3",
                             *const sharp = "\"model\": \"target.gguf\", \"length\": 3, \"temperature\": 0.3";
    static const char *const rules[] = { "rejection", "match" };
    static const char *const probabilities[] = { "q", "top", "path" };
    scene s;
    scene_make(&s);
    for (int rule = 0; rule < 2; rule++) {
        json_t *right = attribution_of(perfect, rules[rule]), *wrong = attribution_of(sharp, rules[rule]);
        cr_assert_eq(rule == 0, real(right, "kept") == 1, "rejection accepts all of q = p, match does not");
        for (int i = 0; i < 3; i++) {
            cr_assert_float_eq(ece(right, probabilities[i]), 0, 1e-12, "%s: %s", rules[rule], probabilities[i]);
            cr_assert_gt(ece(wrong, probabilities[i]), 0.05, "%s: %s", rules[rule], probabilities[i]);
        }
        const json_t *entropy = json_object_get(json_object_get(right, "calibration"), "entropy");
        cr_assert(json_is_null(json_object_get(entropy, "ece")) && json_is_number(json_object_get(entropy, "auc")));
        json_decref(right);
        json_decref(wrong);
    }
    scene_remove(&s);
}

/* Intervals are over prompts, so three prompts have none, however often they are repeated. */
static void has_interval(const json_t *v, const char *loss, bool expected)
{
    char key[40];
    snprintf(key, sizeof key, "%s_ci", loss);
    const json_t *ci = json_object_get(v, key);
    cr_assert_eq(json_is_array(ci), expected, "%s", key);
    if (!expected) return;
    const double lo = json_number_value(json_array_get(ci, 0)), hi = json_number_value(json_array_get(ci, 1));
    cr_assert(lo < real(v, loss) && real(v, loss) < hi && hi - lo < 1, "%s: %g to %g", key, lo, hi);
    cr_assert_float_eq((lo + hi) / 2, real(v, loss), 1e-9);
}

/* A loss at a node is that of rules that decide there, and of lossless ones. */
Test(attribution, losses_of_rules_that_look_ahead, .timeout = 60)
{
    static const struct {
        const char *rule, *why;
    } rules[] = { { "rejection", NULL },
                  { "match", NULL },
                  { "block", "rule block looks ahead" },
                  { "traversal", "rule traversal looks ahead" },
                  { "lenience", "rule lenience is lossy" },
                  { "greedy", "rule greedy is lossy" } };
    scene s;
    scene_make(&s);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        json_t *v = attribution_of("\"model\": \"draft.gguf\", \"length\": 3", rules[i].rule);
        const char *why = json_string_value(json_object_get(v, "rule_loss_unknown"));
        cr_assert(real(v, "drafter_loss") > 0);
        has_interval(v, "drafter_loss", i > 0);
        has_interval(v, "rule_loss", i > 0 && !rules[i].why);
        if (i == 0)
            put("prompts.jsonl", "{\"prompt\": \"The cat sat\"}\n{\"prompt\": \"A dog ran\"}\n{\"prompt\": \"abab\"}\n"
                                 "{\"prompt\": \"and then\"}\n{\"prompt\": \"what\"}\n");
        cr_assert_eq(json_is_number(json_object_get(v, "rule_loss")), !rules[i].why, "%s", rules[i].rule);
        cr_assert(rules[i].why ? why && !strncmp(why, rules[i].why, strlen(rules[i].why)) : !why, "%s: %s", rules[i].rule, why);
        json_decref(v);
    }
    scene_remove(&s);
}
