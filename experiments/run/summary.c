/* SPDX-License-Identifier: MIT
 * Writes summary.json; `wager list columns` and results/README.md define its numbers, ratios of totals with intervals over
 * prompts. A number that was not measured is null. */
#include "experiments/run/summary.h"

#include <math.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/json_number.h"
#include "core/base/mem.h"
#include "draft/open.h"
#include "experiments/base/stats.h"
#include "experiments/record/acceptance.h"
#include "experiments/record/audit_json.h"
#include "experiments/record/run_reader.h"
#include "experiments/run/teacher_pass.h"

static double sum(const double *v, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++) s += v[i];
    return s;
}

/* Percentiles in milliseconds; sorts v. */
static json_t *percentiles(double *v, int n)
{
    json_t *o = json_object();
    json_object_set_new(o, "p50", wg_json_ms(wg_quantile(v, n, 0.50)));
    json_object_set_new(o, "p90", wg_json_ms(wg_quantile(v, n, 0.90)));
    json_object_set_new(o, "p99", wg_json_ms(wg_quantile(v, n, 0.99)));
    return o;
}

/* Milliseconds of a target pass, by phase. */
static json_t *phases(const wg_result *r)
{
    const wg_phases *p = &r->phases;
    const double n = (double)r->counts.passes;
    json_t *o = json_object();
    json_object_set_new(o, "draft", wg_json_ms(p->draft / n));
    json_object_set_new(o, "verify", wg_json_ms(p->verify / n));
    json_object_set_new(o, "accept", wg_json_ms(p->accept / n));
    json_object_set_new(o, "kv", wg_json_ms(p->kv / n));
    json_object_set_new(o, "other", wg_json_ms((r->decode - p->draft - p->verify - p->accept - p->kv) / n));
    return o;
}

/* Steps that accepted at least d tokens, of those that drafted at least d. */
static json_t *by_position(const wg_counts *c)
{
    json_t *v = json_array();
    for (int d = 1; d < WG_TREE_MAX && c->offered_at[d]; d++)
        json_array_append_new(v, wg_json_ratio((double)c->accepted_at[d], (double)c->offered_at[d]));
    return v;
}

static json_t *per_position(const wg_counts *c)
{
    json_t *v = json_array();
    for (int d = 1; d < WG_TREE_MAX && c->offered_at[d]; d++) json_array_append_new(v, json_integer(c->accepted_at[d]));
    return v;
}

/* The digest of all outputs of a cell: that of the requests' digests in order of repeat, then prompt. */
static json_t *output_digest(const wg_result *r)
{
    char hex[WG_SHA256_HEX];
    wg_sha256_state s;
    wg_sha256_begin(&s);
    for (int i = 0; i < r->outputs; i++) wg_sha256_add(&s, r->sha256[i], strlen(r->sha256[i]) + 1);
    wg_sha256_end(&s, hex);
    return json_string(hex);
}

/* E / (gamma c + v + o) in units of a plain pass (methods.md, Expected speed), with E = tau and the measured phases. It omits
 * the time between the phases, so its difference from the measured speed-up is the time that the phases do not explain. */
static json_t *explained(const wg_result *r)
{
    const wg_pairs *p = &r->pairs;
    const double passes = (double)r->counts.passes, plain = sum(p->base_phases, p->n) / sum(p->base_passes, p->n);
    const double pass = (r->phases.draft + r->phases.verify + r->phases.accept + r->phases.kv) / passes;
    return wg_json_number((double)r->counts.emitted / passes * plain / pass);
}

/* The calibration's prediction for drafts with this acceptance, and each phase's share of the deviation. */
static void add_prediction(json_t *v, const wg_result *r)
{
    const wg_pairs *p = &r->pairs;
    const double passes = (double)r->counts.passes;
    static const char *const keys[] = { "predicted_speedup", "predicted_speedup_range", "predicted_ms", "residual_percent" };
    for (int i = 0; i < 4; i++) json_object_set_new(v, keys[i], json_null());
    if (!r->cost.known || !(passes > 0)) return;
    const wg_fared fared = { .tau = (double)r->counts.emitted / passes,
                             .rows = 1 + (double)(r->counts.drafted + r->counts.probes) / passes,
                             .context = r->context / passes,
                             .drafts = r->requests,
                             .passes = passes };
    wg_step_cost step, plain;
    const wg_predicted s = wg_calibration_predict(&r->cost, &fared, &step, &plain);
    const double draft = r->phases.draft / passes, verify = r->phases.verify / passes;
    const wg_step_cost measured = { draft, verify, r->decode / passes - draft - verify };
    const wg_residual why = wg_cost_residual(&step, &measured, plain.draft + plain.verify + plain.rest,
                                             sum(p->base_seconds, p->n) / sum(p->base_tokens, p->n));
    json_object_set_new(v, keys[0], wg_json_number(s.speedup));
    json_object_set_new(v, keys[1], json_pack("[o,o]", wg_json_number(s.lo), wg_json_number(s.hi)));
    json_object_set_new(v, keys[2],
                        json_pack("{s:o, s:o, s:o, s:o}", "draft", wg_json_ms(step.draft), "verify", wg_json_ms(step.verify),
                                  "rest", wg_json_ms(step.rest), "plain", wg_json_ms(plain.draft + plain.verify + plain.rest)));
    json_object_set_new(v, keys[3],
                        json_pack("{s:o, s:o, s:o, s:o, s:o}", "draft", wg_json_number(why.draft), "verify",
                                  wg_json_number(why.verify), "rest", wg_json_number(why.rest), "plain",
                                  wg_json_number(why.plain), "total", wg_json_number(why.total)));
}

/* c of the glossary: seconds of drafting for each level of a draft (a chain's tokens, a tree's depth), over those of a plain
 * pass. Null if nothing was drafted. */
static json_t *cost_ratio(const wg_result *r)
{
    const wg_pairs *p = &r->pairs;
    double levels = 0;
    for (int d = 1; d < WG_TREE_MAX; d++) levels += (double)r->counts.offered_at[d];
    const double plain = sum(p->base_phases, p->n) / sum(p->base_passes, p->n);
    return levels > 0 ? wg_json_number(r->phases.draft / levels / plain) : json_null();
}

/* Adds "<name>_unknown", the reason of a null number. */
static void add_reason(json_t *v, const char *name, const char *why)
{
    char key[64];
    if (!why || !json_is_null(json_object_get(v, name))) return;
    snprintf(key, sizeof key, "%s_unknown", name);
    json_object_set_new(v, key, json_string(why));
}

static void add_analytic_alpha(json_t *v, const wg_cell *cell, const wg_taught *taught)
{
    const char *why = wg_teacher_unknown(cell);
    json_object_set_new(v, "analytic_alpha", wg_json_ratio(taught->sum, (double)taught->n));
    if (!why && taught->n == 0)
        why = isnan(taught->sum) ? "the requests were recorded by a version that did not measure it"
                                 : "no position of the texts of the first repeat was drafted";
    add_reason(v, "analytic_alpha", why ? why : "the pass that drafts at every position of the text failed for some request");
}

static void add_speculation(json_t *v, const wg_cell *cell, const wg_counts *c)
{
    json_object_set_new(v, "acceptance_rate", wg_json_ratio((double)c->accepted, (double)c->drafted));
    json_object_set_new(v, "acceptance_by_position", by_position(c));
    json_object_set_new(v, "alpha", wg_json_ratio(c->alpha_sum, (double)c->alpha_n));
    json_object_set_new(v, "alpha_star", wg_json_ratio(c->alpha_star_sum, (double)c->alpha_star_n));
    add_reason(v, "alpha_star",
               !cell->setup.top.alpha ? "\"alpha\" is false"
               : c->alpha_star_n == 0 ? "no node that was reached had a draft"
                                      : "at some node the row of q that the siblings were drawn from is not known");
    json_object_set_new(v, "spec_decode_num_drafts", json_integer(c->offered_at[1])); /* vLLM's names from here */
    json_object_set_new(v, "spec_decode_num_draft_tokens", json_integer(c->drafted));
    json_object_set_new(v, "spec_decode_num_accepted_tokens", json_integer(c->accepted));
    json_object_set_new(v, "spec_decode_num_accepted_tokens_per_pos", per_position(c));
    json_object_set_new(v, "mean_acceptance_length", wg_mean_acceptance_length(c));
    json_object_set_new(v, "draft_acceptance_rate", wg_json_ratio((double)c->accepted, (double)c->drafted));
}

/* Only for drafters with a draft model. */
static void add_overlap(json_t *v, const wg_result *r)
{
    const wg_coverage *c = &r->coverage;
    if (!c->vocab) return;
    json_t *o = json_object();
    json_object_set_new(o, "shared", json_integer(c->shared));
    json_object_set_new(o, "vocabulary", json_integer(c->vocab));
    json_object_set_new(o, "share", wg_json_ratio(c->shared, c->vocab));
    json_object_set_new(o, "text_shared", json_integer(c->covered));
    json_object_set_new(o, "text_tokens", json_integer(c->text));
    json_object_set_new(o, "text_share", wg_json_ratio((double)c->covered, (double)c->text));
    json_object_set_new(v, "overlap", o);
}

/* Only for composite drafters. */
static void add_parts(json_t *v, const wg_composite_totals *m)
{
    json_t *list = wg_composite_totals_json(m), *part;
    size_t k;
    if (!list) return;
    json_array_foreach(list, k, part) {
        const wg_component_totals *p = &m->part[k];
        json_object_set_new(part, "acceptance_rate", wg_json_ratio((double)p->accepted, (double)p->drafted));
        json_object_set_new(part, "matched_per_step", wg_json_ratio((double)p->matched, (double)p->asked));
    }
    json_object_set_new(v, "parts", list);
    json_object_set_new(v, "parts_matched", json_integer(m->matched));
}

/* Tokens a second, prompts included. */
static json_t *throughput(const wg_run_work *e) { return wg_json_ratio(e->tokens, e->prefill + e->decode); }

/* The seconds outside the models. A drafter may run the target itself (synthetic); those passes are part of the drafting time,
 * so at most the verify phase is subtracted for the target's passes. */
static double overhead(const wg_result *r) { return r->decode - r->phases.draft - fmin(r->forward, r->phases.verify); }

/* The baseline's seconds per token over the cell's. */
static wg_ratio speedup_of(const wg_pairs *p)
{
    return (wg_ratio){ .a = p->base_seconds, .b = p->base_tokens, .c = p->seconds, .d = p->tokens, .n = p->n };
}

static wg_between_runs between_runs(const wg_result *r)
{
    const wg_ratio prompts = speedup_of(&r->pairs), blocks = speedup_of(&r->blocks);
    return wg_ratio_between(&prompts, &blocks);
}

static void add_speed(json_t *v, const wg_result *r)
{
    const wg_pairs *p = &r->pairs;
    const double tokens = sum(p->tokens, p->n), seconds = sum(p->seconds, p->n);
    const wg_ratio tau = { .a = p->tokens, .b = p->passes, .n = p->n };
    const wg_ratio speedup = speedup_of(p);
    const wg_between_runs between = between_runs(r);
    wg_ratio_set_json(v, "tau", &tau);
    wg_ratio_set_run_json(v, "speedup", &speedup, &between);
    json_object_set_new(v, "explained_speedup", explained(r));
    add_prediction(v, r);
    json_object_set_new(v, "draft_cost_ratio", cost_ratio(r));
    json_object_set_new(v, "tok_s", wg_json_ratio(tokens, seconds));
    json_object_set_new(v, "baseline_tok_s", wg_json_ratio(sum(p->base_tokens, p->n), sum(p->base_seconds, p->n)));
    json_object_set_new(v, "output_throughput", throughput(&r->work)); /* vLLM's name */
    json_object_set_new(v, "baseline_output_throughput", throughput(&r->base_work));
    json_object_set_new(v, "overhead_us_per_token", wg_json_ratio(overhead(r) * 1e6, tokens));
    json_object_set_new(v, "ttft_ms", percentiles(r->ttft, r->n_ttft));
    json_object_set_new(v, "tpot_ms", percentiles(r->tpot, r->n_tpot));
    json_object_set_new(v, "itl_ms", percentiles(r->itl.v, r->itl.n));
    json_object_set_new(v, "itl_per_token_ms", percentiles(r->itl_token.v, r->itl_token.n));
    json_object_set_new(v, "mean_itl_ms", wg_json_ms(sum(r->itl.v, r->itl.n) / r->itl.n)); /* vLLM's name */
    json_object_set_new(v, "phase_ms", phases(r));
}

/* Plain decoding's slowest repeat over its fastest, minus 1; NaN: one repeat only. */
static double baseline_spread(const wg_result *r)
{
    double least = INFINITY, most = 0;
    int n = 0;
    for (int i = 0; i < r->repeats; i++) {
        if (!(r->base_tokens[i] > 0)) continue;
        least = fmin(least, r->base_seconds[i] / r->base_tokens[i]);
        most = fmax(most, r->base_seconds[i] / r->base_tokens[i]);
        n++;
    }
    return n > 1 && least > 0 ? most / least - 1 : NAN;
}

/* Reports a disturbed machine: plain decoding's repeats differ by more than the width of the speed-up's interval, and by at
 * least a twentieth. */
static void add_disturbance(json_t *v, const wg_result *r)
{
    const double spread = baseline_spread(r), speedup = wg_json_real(v, "speedup");
    const json_t *ci = json_object_get(v, "speedup_ci");
    const double width = (json_number_value(json_array_get(ci, 1)) - json_number_value(json_array_get(ci, 0))) / speedup;
    json_object_set_new(v, "baseline_spread", wg_json_number(spread));
    json_object_set_new(v, "disturbed",
                        isnan(spread) || !json_is_array(ci) ? json_null() : json_boolean(spread > fmax(width, 0.05)));
}

/* Adds to cells of `auto` the fastest competitor, among the settings measured in its group under its rule and plain decoding,
 * and its own speed relative to it. */
static void add_best_fixed(const wg_config *config, json_t *cells)
{
    json_t *fastest = json_object(); /* by group and rule: {"cell": null where plain decoding is, "speedup"} */
    char key[200];
    for (int i = 0; i < 2 * config->n; i++) { /* the competitors, then the cells of `auto` */
        const wg_cell *cell = &config->cell[i % config->n];
        const char *drafter = cell->setup.drafter->name;
        const bool is_auto = !strcmp(drafter, "auto");
        json_t *v = json_array_get(cells, (size_t)(i % config->n));
        const double own = wg_json_measured(v, "speedup");
        snprintf(key, sizeof key, "%d %p", cell->group, (const void *)cell->setup.verifier);
        json_t *of = json_object_get(fastest, key);
        if (isnan(own) || is_auto != (i >= config->n) || !strcmp(drafter, "synthetic")) continue;
        if (is_auto && of) {
            const double best = wg_json_real(of, "speedup");
            json_object_set_new(
                v, "best_fixed",
                json_pack("{s:O, s:f, s:f}", "cell", json_object_get(of, "cell"), "speedup", best, "share", own / best));
        }
        if (is_auto) continue;
        if (!of) json_object_set_new(fastest, key, of = json_pack("{s:n, s:f}", "cell", "speedup", 1.0));
        if (!(own > wg_json_real(of, "speedup"))) continue;
        json_object_set_new(of, "cell", json_integer(i));
        json_object_set_new(of, "speedup", json_real(own));
    }
    json_decref(fastest);
}

static json_t *equals_baseline(const wg_cell *cell, const wg_result *r)
{
    if (r->requests == 0 || (wg_setup_lossless(&cell->setup) && !wg_setup_repeats_plain(&cell->setup))) return json_null();
    return json_boolean(r->equal == r->requests);
}

/* Adds whether the law is the target's, the unproved assumption of that, and the evidence against it. */
static void add_law(json_t *v, const wg_config *config, const wg_cell *cell, const wg_result *r)
{
    char words[200];
    const char *why =
        wg_verifier_withdrawn(cell->setup.verifier, cell->setup.sampling.temperature, &r->counts.audit, words, sizeof words);
    const char *on = wg_setup_assumes(&cell->setup, config->plugins);
    json_object_set_new(v, "lossless", json_boolean(wg_setup_lossless(&cell->setup) && !why));
    json_object_set_new(v, "law_only", json_boolean(wg_setup_law_only(&cell->setup)));
    json_object_set_new(v, "lossless_if", on && !why ? json_string(on) : json_null());
    json_object_set_new(v, "lossless_withdrawn", why ? json_string(why) : json_null());
    json_object_set_new(v, "audit", wg_audit_verdict_json(&r->counts.audit));
}

/* ---- the breakdown of a cell by prompt category and by turn of conversations (methods.md, Acceptance rates) */

/* ---- categories -------------------------------------------------------------------------------------------------- */

/* The pairs of one category or turn, packed; for turns after the first, together with the same prompts' first turns. */
enum { SECONDS, TOKENS, PASSES, BASE_SECONDS, BASE_TOKENS, DRAFTED, ACCEPTED, FIRST_TOKENS, FIRST_PASSES, SERIES };
typedef struct part {
    double *v[SERIES];
    int n;
    double total[SERIES];
} part;

static bool open_part(part *s, int n)
{
    double *room = wg_alloc((size_t)n * SERIES, sizeof *room);
    *s = (part){ .n = 0 };
    for (int k = 0; room && k < SERIES; k++) s->v[k] = room + (size_t)k * (size_t)n;
    return room;
}

static void empty(part *s)
{
    s->n = 0;
    memset(s->total, 0, sizeof s->total);
}

/* Packs the pair at i; first: index of the conversation's first turn. A pair without tokens is skipped. */
static void pack(part *s, const wg_pairs *p, int i, int first)
{
    if (p->tokens[i] == 0 || p->tokens[first] == 0) return;
    const double v[SERIES] = { p->seconds[i], p->tokens[i],   p->passes[i],     p->base_seconds[i], p->base_tokens[i],
                               p->drafted[i], p->accepted[i], p->tokens[first], p->passes[first] };
    for (int k = 0; k < SERIES; k++) {
        s->v[k][s->n] = v[k];
        s->total[k] += v[k];
    }
    s->n++;
}

/* The object of a part. name: category or turn, whose reference is taken. */
static json_t *part_json(const part *s, const char *of, json_t *name, const wg_between_runs *between)
{
    const wg_ratio tau = { .a = s->v[TOKENS], .b = s->v[PASSES], .n = s->n };
    const wg_ratio speedup = {
        .a = s->v[BASE_SECONDS], .b = s->v[BASE_TOKENS], .c = s->v[SECONDS], .d = s->v[TOKENS], .n = s->n
    };
    json_t *o = json_object();
    json_object_set_new(o, of, name);
    json_object_set_new(o, "prompts", json_integer(s->n));
    json_object_set_new(o, "tokens", wg_json_number(s->total[TOKENS]));
    wg_ratio_set_json(o, "tau", &tau);
    wg_ratio_set_run_json(o, "speedup", &speedup, between);
    json_object_set_new(o, "acceptance_rate", wg_json_ratio(s->total[ACCEPTED], s->total[DRAFTED]));
    return o;
}

static bool is_first(const wg_dataset *prompts, int i)
{
    for (int k = 0; k < i; k++)
        if (!strcmp(prompts->prompt[k].category, prompts->prompt[i].category)) return false;
    return true;
}

static double mean_of(const json_t *list, const char *key)
{
    double sum = 0;
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)list, i, v) sum += json_number_value(json_object_get(v, key));
    return i ? sum / (double)i : NAN;
}

static double mean_of_prompts(const wg_pairs *p)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < p->n; i++) {
        const double r = p->base_seconds[i] / p->base_tokens[i] / (p->seconds[i] / p->tokens[i]);
        if (isfinite(r)) sum += r, n++;
    }
    return n ? sum / n : NAN;
}

enum { MOST_CATEGORIES = 64 };

/* Sets "categories" (one object per category of the counted prompts; empty when there is only one), and the unweighted means of
 * ratios: "tau_macro" and "speedup_macro" over categories, "speedup_mean_of_prompts". between: the variance between runs, for
 * the intervals of speed-ups. */
static void add_categories(json_t *cell, const wg_dataset *prompts, const wg_pairs *p, const wg_between_runs *between)
{
    part s;
    json_t *list = json_array();
    const bool room = open_part(&s, p->n);
    int seen = 0;
    for (int i = 0; room && i < p->n && seen < MOST_CATEGORIES; i++) {
        const char *category = prompts->prompt[i].category;
        if (!is_first(prompts, i)) continue;
        seen++;
        empty(&s);
        for (int k = i; k < p->n; k++)
            if (!strcmp(prompts->prompt[k].category, category)) pack(&s, p, k, k);
        if (s.n) json_array_append_new(list, part_json(&s, "category", json_string(category), between));
    }
    wg_free(s.v[0]);
    json_object_set_new(cell, "tau_macro", wg_json_number(mean_of(list, "tau")));
    json_object_set_new(cell, "speedup_macro", wg_json_number(mean_of(list, "speedup")));
    json_object_set_new(cell, "speedup_mean_of_prompts", wg_json_number(mean_of_prompts(p)));
    if (json_array_size(list) < 2) json_array_clear(list);
    json_object_set_new(cell, "categories", list);
}

/* ---- turns ------------------------------------------------------------------------------------------------------- */

enum { MOST_TURNS = 64 };

/* Sets "turns": an object per turn of conversations, from 0; empty if no prompt has several. `questions`: wg_result.turns. */
static void add_turns(json_t *cell, const wg_dataset *prompts, const wg_pairs *questions, const wg_between_runs *between)
{
    part s = { .n = 0 };
    json_t *list = json_array();
    const bool room = questions->n && open_part(&s, prompts->n);
    for (int turn = 0; room && turn < prompts->turns && turn < MOST_TURNS; turn++) {
        empty(&s);
        for (int i = 0; i < prompts->n; i++) {
            const wg_prompt *p = &prompts->prompt[i];
            if (turn < p->turns) pack(&s, questions, p->before + turn, p->before);
        }
        if (!s.n) continue;
        json_t *o = part_json(&s, "turn", json_integer(turn), between);
        const wg_ratio tau = { .a = s.v[TOKENS], .b = s.v[PASSES], .c = s.v[FIRST_TOKENS], .d = s.v[FIRST_PASSES], .n = s.n };
        if (turn) wg_ratio_set_json(o, "tau_over_first", &tau);
        json_array_append_new(list, o);
    }
    wg_free(s.v[0]);
    json_object_set_new(cell, "turns", list);
}

/* ---- cells */

static json_t *cell_summary(const wg_config *config, const wg_cell *cell, const wg_result *r)
{
    const wg_dataset *prompts = config->dataset[cell->dataset];
    char drafter[WG_OPTION_STRING];
    json_t *v = json_object();
    json_object_set(v, "cell", cell->swept);
    json_object_set_new(v, "group", json_integer(cell->group));
    if (*cell->setup.named_by.label) json_object_set_new(v, "label", json_string(cell->setup.named_by.label));
    json_object_set_new(v, "drafter",
                        json_string(wg_drafter_title(cell->setup.drafter, cell->setup.draft, drafter, sizeof drafter)));
    json_object_set_new(v, "rule", json_string(cell->setup.verifier->name));
    json_object_set_new(v, "temperature", json_real(cell->setup.sampling.temperature));
    add_law(v, config, cell, r);
    json_object_set_new(v, "requests", json_integer(r->requests));
    json_object_set_new(v, "failed", json_integer(r->failed));
    if (r->failed) json_object_set_new(v, "first_failure", json_string(r->first_failure));
    json_object_set_new(v, "tokens", json_integer(r->counts.emitted));
    json_object_set_new(v, "target_passes", json_integer(r->counts.passes));
    json_object_set_new(v, "drafted", json_integer(r->counts.drafted));
    json_object_set_new(v, "accepted", json_integer(r->counts.accepted));
    json_object_set_new(v, "probes", json_integer(r->counts.probes));
    json_object_set_new(v, "device_verified_passes", json_integer(r->on_device.verified));
    json_object_set_new(v, "device_decoded_passes", json_integer(r->on_device.decoded));
    json_object_set_new(v, "rounds_without_draft", wg_without_draft_json(&r->counts));
    json_object_set_new(v, "draft_context", r->coverage.context ? json_integer(r->coverage.context) : json_null());
    add_overlap(v, r);
    add_parts(v, &r->composite);
    add_speculation(v, cell, &r->counts);
    add_analytic_alpha(v, cell, &r->taught);
    json_object_set_new(v, "acceptance", wg_acceptance_json(&r->counts));
    add_speed(v, r);
    add_disturbance(v, r);
    wg_add_efficiency(v, &r->work, &r->base_work, &r->pass_cost, &r->roofline);
    const wg_between_runs between = between_runs(r);
    add_categories(v, prompts, &r->pairs, &between);
    add_turns(v, prompts, &r->turns, &between);
    json_object_set_new(v, "output_sha256", output_digest(r));
    json_object_set_new(v, "equals_baseline", equals_baseline(cell, r));
    return v;
}

json_t *wg_summary_json(const wg_run *run)
{
    const wg_config *c = run->config;
    char utc[64], shard[WG_SHARD_TEXT];
    json_t *v = json_object(), *cells = json_array();
    for (int i = 0; i < c->n; i++) json_array_append_new(cells, cell_summary(c, &c->cell[i], &run->result[i]));
    add_best_fixed(c, cells);
    json_object_set_new(v, "schema", json_integer(WG_SUMMARY_SCHEMA));
    json_object_set_new(v, "name", json_string(c->top.name));
    json_object_set_new(v, "question", json_string(c->top.question));
    json_object_set_new(v, "config_sha256", json_string(c->sha256));
    if (c->shard.count) json_object_set_new(v, "shard", json_string(wg_shard_text(c->shard, shard)));
    if (*run->profile) json_object_set_new(v, "profile", json_string(run->profile));
    json_object_set_new(v, "complete", json_boolean(run->complete));
    json_object_set_new(v, "seconds", wg_json_number(round(run->seconds * 1e3) / 1e3));
    json_object_set_new(v, "finished", json_string(wg_clock_utc(utc, sizeof utc)));
    if (*run->energy) json_object_set_new(v, "energy_unknown", json_string(run->energy));
    json_object_set_new(v, "cells", cells);
    return v;
}
