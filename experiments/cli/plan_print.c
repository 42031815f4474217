/* SPDX-License-Identifier: MIT
 * Printing a plan (plan.h). */
#include "experiments/cli/plan.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/json_line.h"
#include "core/base/program.h"
#include "experiments/base/shell_word.h"

static const char *const answers[] = { "undecided", "do not speculate", "speculate" };

static void put_json(json_t *v)
{
    wg_json_put_line(v, JSON_REAL_PRECISION(9));
    fflush(stdout);
}

static json_t *real(double v) { return isfinite(v) ? json_real(v) : json_null(); }

static json_t *interval(const wg_plan_speed *v)
{
    return isfinite(v->lo) && isfinite(v->hi) ? json_pack("[f,f]", v->lo, v->hi) : json_null();
}

void wg_plan_warn_of_load(FILE *f, double load, double cores)
{
    if (load > 0.25 * cores)
        fprintf(f, "warning: a load of %.1f on %.0f cores: other programs run beside this one, and speed-ups are less sure\n",
                load, cores);
}

void wg_plan_put_budget(const wg_plan_options *o)
{
    if (o->json) put_json(json_pack("{s:s, s:i}", "kind", "budget", "seconds", (int)o->seconds));
    else printf("budget  at most %ld s for everything, loading the model included (--seconds)\n", o->seconds);
    fflush(stdout);
}

void wg_plan_put_about(const wg_plan_options *o, const wg_plan_about *a)
{
    const int screen = a->screen ? a->screen : a->texts, judge = a->texts - a->screen;
    if (o->json) {
        put_json(json_pack("{s:s, s:s, s:s?, s:s, s:f, s:i, s:i, s:i, s:i, s:s}", "kind", "about", "model", o->model, "chat",
                           a->chat, "rule", a->rule, "temperature", o->temperature, "threads", a->threads, "drafts", a->drafts,
                           "prompts_to_choose", screen, "prompts_to_judge", judge, "no_template", a->no_template));
        return;
    }
    printf("model   %s, %d thread%s, %s%s\n", o->model, a->threads, a->threads > 1 ? "s" : "",
           a->chat ? "chat template " : "no chat template", a->chat ? a->chat : "");
    if (*a->no_template) printf("        its own chat template is left out: %s\n", a->no_template);
    printf("tries   %d drafts, then other lengths of the best, beside plain decoding; temperature %g, rule %s; %d %sprompts to "
           "choose, %d to judge\n\n",
           a->drafts, o->temperature, a->rule, screen, o->prompts ? "" : "built-in ", judge);
    fflush(stdout);
}

static json_t *candidate_json(const wg_plan_candidate *c, const char *kind)
{
    static const char *const states[] = { "ran", "refused", "no time" };
    json_t *v = json_pack("{s:s, s:s, s:s, s:o, s:o}", "kind", kind, "draft", c->spec, "state", states[c->state], "tau",
                          real(c->tau), "speedup", real(c->speedup));
    if (c->state == WG_PLAN_REFUSED) json_object_set_new(v, "why", json_string(c->why));
    return v;
}

void wg_plan_put_tried(const wg_plan_options *o, const wg_plan_result *r)
{
    for (int i = 0; i < r->n && o->json; i++) put_json(candidate_json(&r->tried[i], "tried"));
    if (o->json) return;
    printf("  tau  speed-up  draft\n");
    for (int i = 0; i < r->n; i++)
        if (isfinite(r->tried[i].speedup))
            printf("%5.2f     %4.2fx  %s\n", r->tried[i].tau, r->tried[i].speedup, r->tried[i].spec);
    for (int i = 0; i < r->n; i++) {
        const wg_plan_candidate *c = &r->tried[i];
        if (c->state == WG_PLAN_REFUSED) printf("    -         -  %s: %s\n", c->spec, c->why);
        else if (!isfinite(c->speedup)) printf("    -         -  %s: there was no time left\n", c->spec);
    }
    putchar('\n');
    fflush(stdout);
}

/* ---- the verdict ------------------------------------------------------------------------------------------------- */

static const wg_plan_candidate *best_of(const wg_plan_result *r) { return r->best < 0 ? NULL : r->judged[r->best]; }

static void put_speed(FILE *f, const wg_plan_candidate *c)
{
    fprintf(f, "%.2fx as fast as plain decoding", c->speed.speedup);
    if (isfinite(c->speed.lo)) fprintf(f, " [%.2f, %.2f]", c->speed.lo, c->speed.hi);
}

void wg_plan_sentence(FILE *f, const wg_plan_about *a, const wg_plan_result *r)
{
    const wg_plan_candidate *best = best_of(r);
    if (!best) {
        fprintf(f, "Undecided: no draft could be measured in %.0f s; give more time with --seconds.", a->seconds);
        return;
    }
    if (r->answer == WG_PLAN_SPECULATE) fprintf(f, "Speculate: %s decodes ", best->spec);
    else if (r->answer == WG_PLAN_UNDECIDED && wg_plan_spans_one(&best->speed))
        fprintf(f, "Undecided: no difference from plain decoding was measured; the best draft, %s, decodes ", best->spec);
    else if (r->answer == WG_PLAN_PLAIN)
        fprintf(f, "Do not speculate: no draft that was tried beats plain decoding here; the best, %s, decodes ", best->spec);
    else fprintf(f, "Undecided: the best draft, %s, decodes ", best->spec);
    put_speed(f, best);
    if (r->answer == WG_PLAN_UNDECIDED && !isfinite(best->speed.lo))
        fprintf(f, ", over %d prompts, and an interval takes %d: give more time (--seconds) or prompts (-p FILE)", a->judged,
                WG_INTERVAL_PROMPTS);
    else if (r->answer == WG_PLAN_UNDECIDED && wg_plan_spans_one(&best->speed))
        fprintf(f, ": plain decoding is safe; more time (--seconds) or prompts like yours (-p FILE) may show one");
    else if (r->answer == WG_PLAN_UNDECIDED)
        fprintf(f, ", which leaves open whether it pays: give more time (--seconds) or prompts like yours (-p FILE)");
    fputc('.', f);
}

static void put_option(FILE *f, const char *name, const char *value)
{
    if (!value) return;
    fprintf(f, " %s ", name);
    wg_put_shell_word(f, value);
}

void wg_plan_command(FILE *f, const wg_plan_options *o, const wg_plan_about *a, const wg_plan_result *r)
{
    const wg_plan_candidate *best = best_of(r);
    const bool likely = best && best->speed.speedup > 1 && !wg_plan_spans_one(&best->speed);
    const bool draft = best && (r->answer == WG_PLAN_SPECULATE || (r->answer == WG_PLAN_UNDECIDED && likely));
    fprintf(f, "%s generate", wg_program());
    put_option(f, "-m", o->model);
    put_option(f, "--quantize", o->quantize);
    put_option(f, "--kv-type", o->kv_name);
    if (o->threads) fprintf(f, " --threads %ld", o->threads);
    if (o->pin) fputs(" --pin", f);
    put_option(f, "--chat", a->chat);
    put_option(f, "--system", o->system);
    if (draft) put_option(f, "--draft", best->spec);
    fprintf(f, " --rule %s --temp %.6g -n 200 -p 'Why is the sky blue?'", a->rule, o->temperature);
}

static char *text_of_command(const wg_plan_options *o, const wg_plan_about *a, const wg_plan_result *r, bool sentence)
{
    char *text = NULL; /* allocated by open_memstream */
    size_t n;
    FILE *f = open_memstream(&text, &n);
    if (!f) return NULL;
    if (sentence) wg_plan_sentence(f, a, r);
    else wg_plan_command(f, o, a, r);
    fclose(f);
    return text;
}

static void put_kinds_json(json_t *v, const wg_plan_candidate *c)
{
    json_t *kinds = json_object();
    for (int k = 0; k < WG_PLAN_KINDS; k++)
        if (isfinite(c->kind[k])) json_object_set_new(kinds, wg_plan_prompts[k].kind, json_real(c->kind[k]));
    json_object_set_new(v, "speedup_by_kind", kinds);
}

static void put_verdict_json(const wg_plan_options *o, const wg_plan_about *a, const wg_plan_result *r)
{
    for (int i = 0; i < r->judges; i++) {
        json_t *v = candidate_json(r->judged[i], "judged");
        json_object_set_new(v, "speedup_ci", interval(&r->judged[i]->speed));
        json_object_set_new(v, "tok_s", real(r->judged[i]->tok_s));
        put_kinds_json(v, r->judged[i]);
        put_json(v);
    }
    char *sentence = text_of_command(o, a, r, true), *paste = text_of_command(o, a, r, false);
    const wg_plan_candidate *best = best_of(r);
    put_json(json_pack("{s:s, s:s, s:s?, s:o, s:i, s:o, s:f, s:s?, s:s?}", "kind", "verdict", "verdict", answers[r->answer],
                       "draft", best ? best->spec : NULL, "speedup_ci", best ? interval(&best->speed) : json_null(), "prompts",
                       best ? a->judged : 0, "plain_tok_s", real(a->plain), "seconds", a->seconds, "sentence", sentence,
                       "paste", paste));
    free(sentence);
    free(paste);
}

void wg_plan_put_verdict(const wg_plan_options *o, const wg_plan_about *a, const wg_plan_result *r)
{
    const wg_plan_candidate *best = best_of(r);
    if (o->json) {
        put_verdict_json(o, a, r);
        return;
    }
    if (best) {
        printf("judged on %d %sprompts, in turn with plain decoding:\n  tau   tok/s  speed-up [95 %%]       draft\n", a->judged,
               a->screen ? "other " : "");
        printf("%5.2f  %6.1f  %-20s  plain decoding\n", 1.0, a->plain, "1.00x");
    }
    for (int i = 0; i < r->judges; i++) {
        const wg_plan_candidate *c = r->judged[i];
        char speed[64];
        snprintf(speed, sizeof speed, isfinite(c->speed.lo) ? "%.2fx [%.2f, %.2f]" : "%.2fx", c->speed.speedup, c->speed.lo,
                 c->speed.hi);
        printf("%5.2f  %6.1f  %-20s  %s\n", c->tau, c->tok_s, speed, c->spec);
    }
    for (int k = 0, n = 0; best && k < WG_PLAN_KINDS; k++)
        if (isfinite(best->kind[k]))
            printf("%s%s %.2fx", n++ ? ", " : "the best by kind of prompt: ", wg_plan_prompts[k].kind, best->kind[k]);
    if (best && !o->prompts) putchar('\n');
    printf("%.0f s used\n\n", a->seconds);
    wg_plan_sentence(stdout, a, r);
    putchar('\n');
    wg_plan_command(stdout, o, a, r);
    putchar('\n');
}
