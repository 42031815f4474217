/* SPDX-License-Identifier: MIT
 * The plan for a model (plan.h). */
#include "experiments/cli/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/setup/spec.h"
#include "experiments/config/dataset.h"
#include "experiments/record/run_writer.h"

/* ---- drafts */

/* Lengths to try, by the option that sets them; trees get more nodes than chains get tokens. */
static const struct by_option {
    const char *option;
    int length[WG_PLAN_LENGTHS];
} by_option[] = { { "length", { 4, 2, 8 } }, { "nodes", { 8, 4, 16 } }, { "k", { 4, 2, 8 } }, { NULL, { 0 } } };

/* The look-ups to try. On texts as short as these, sam, ngram_cache and ngram_hash draft the same. */
static const wg_plan_draft lookups[] = {
    { "ngram", "k", { 4, 2, 8 }, 3, false, NULL, NULL },
    { "suffix", "k", { 8, 4, 16 }, 3, false, NULL, NULL },
    { "recycle", "nodes", { 8, 4, 16 }, 3, false, NULL, NULL },
    { "lookahead:n=3", "window", { 1, 2, 3 }, 3, false, NULL, NULL },
};

static wg_status add_draft(wg_plan_draft out[WG_PLAN_DRAFTS], int *n, const wg_plan_draft *d, wg_error *err)
{
    if (*n == WG_PLAN_DRAFTS)
        return wg_fail(err, WG_EINVAL, "more than %d drafts; give fewer of -d and --draft", WG_PLAN_DRAFTS);
    out[(*n)++] = *d;
    return WG_OK;
}

/* Whether "KIND:k=v,..." sets an option for the length of drafts. */
static bool names_length(const char *spec)
{
    static const char *const options[] = { "length", "k", "nodes", "tree", "budget", "grow", "policy", "window" };
    for (const char *at = strchr(spec, ':'); at; at = strchr(at + 1, ','))
        for (size_t i = 0; i < sizeof options / sizeof *options; i++)
            if (!strncmp(at + 1, options[i], strlen(options[i])) && at[1 + strlen(options[i])] == '=') return true;
    return false;
}

/* Adds a draft that the user names, at several lengths unless it sets one or has no such option. */
static wg_status add_asked(wg_plan_draft out[WG_PLAN_DRAFTS], int *n, const char *before, const char *text, wg_error *err)
{
    wg_plan_draft d = { .asked = true, .flag = *before ? "-d" : "--draft", .text = text };
    wg_drafter_choice choice;
    if (strlen(before) + strlen(text) + 24 > sizeof d.spec)
        return wg_fail(err, WG_EINVAL, "--draft %.40s...: longer than %d bytes", text, WG_PLAN_SPEC - 24);
    snprintf(d.spec, sizeof d.spec, "%s%s", before, text);
    const wg_status s = wg_choose_drafter(d.spec, &choice, err);
    if (s) return wg_fail_in(err, s, "%s %s", d.flag, text);
    const bool named = names_length(d.spec);
    for (const struct by_option *b = by_option; b->option && !named && !d.option; b++)
        if (wg_option_find(choice.class->options, b->option)) {
            d.option = b->option;
            memcpy(d.length, b->length, sizeof d.length);
            d.lengths = WG_PLAN_LENGTHS;
        }
    wg_choice_close(&choice);
    return add_draft(out, n, &d, err);
}

wg_status wg_plan_drafts(wg_plan_draft out[WG_PLAN_DRAFTS], int *n, const wg_flag_list *models, const wg_flag_list *drafts,
                         int layers, wg_error *err)
{
    wg_plan_draft skip = { .option = "length", .length = { 2, 1, 4 }, .lengths = WG_PLAN_LENGTHS }, exits = skip;
    *n = 0;
    for (int i = 0; i < models->n; i++) WG_TRY(add_asked(out, n, "model:model=", models->item[i], err));
    for (int i = 0; i < drafts->n; i++) WG_TRY(add_asked(out, n, "", drafts->item[i], err));
    for (size_t i = 0; i < sizeof lookups / sizeof *lookups; i++) WG_TRY(add_draft(out, n, &lookups[i], err));
    if (layers < 3) return WG_OK;
    const int from = layers / 3, to = from + (layers + 2) / 3 - 1; /* the middle third, which changes least */
    snprintf(exits.spec, sizeof exits.spec, "early_exit:layer=%d", (layers + 1) / 2);
    snprintf(skip.spec, sizeof skip.spec, "layer_skip:attention=%d-%d,mlp=%d-%d", from, to, from, to);
    WG_TRY(add_draft(out, n, &exits, err));
    return add_draft(out, n, &skip, err);
}

void wg_plan_draft_spec(const wg_plan_draft *d, int i, char out[WG_PLAN_SPEC])
{
    if (!d->option) snprintf(out, WG_PLAN_SPEC, "%.1175s", d->spec);
    else snprintf(out, WG_PLAN_SPEC, "%.1160s%c%s=%d", d->spec, strchr(d->spec, ':') ? ',' : ':', d->option, d->length[i]);
}

/* ---- the plan */

/* READY and the shares below: parts of the time after loading by which the first arms must be warm and the first two stages
 * end. SCREEN_*: tokens of a text. */
#define READY 0.15
#define FIRST 0.3
#define SECOND 0.45
enum { SCREEN_LEAST = 8, SCREEN_MOST = 32, FEWEST = 2 }; /* FEWEST: texts that the first stage must have for a second one */

typedef struct planner {
    const wg_plan_options *o;
    wg_target *t;
    wg_sampling sampling;
    double start, loaded; /* times (wg_clock_now) of the command's start and of the loaded model */
    wg_plan_draft draft[WG_PLAN_DRAFTS];
    int drafts;
    wg_plan_text text[WG_PLAN_TEXTS]; /* the first `screen` are for choosing, the others for the verdict */
    int texts, screen;
    wg_plan_arm arm[WG_PLAN_ARMS];       /* arms of the present stage */
    wg_plan_candidate *of[WG_PLAN_ARMS]; /* candidate of arm k; of[0] is NULL */
    double text_seconds;                 /* plain decoding's, as in candidates */
    wg_plan_about about;
    wg_plan_result result;
} planner;

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static wg_status add_text(planner *p, const wg_chat *chat, const char *kind, const char *text, size_t bytes, wg_error *err)
{
    wg_plan_text *x = &p->text[p->texts];
    const wg_text turn = { text, bytes };
    int32_t *ids;
    size_t n;
    WG_TRY(wg_chat_encode(p->t->tokenizer, chat, &turn, 1, &ids, &n, err));
    const int most = p->o->n > SCREEN_MOST ? (int)p->o->n : SCREEN_MOST, room = p->t->lm->context - most - 1;
    const size_t skip = room > 0 && n > (size_t)room ? n - (size_t)room : 0; /* a long prompt keeps its end only */
    if (room < 1) {
        wg_free(ids);
        return wg_fail(err, WG_EINVAL, "-n %ld leaves no room for a prompt in the context of %d tokens; give less", p->o->n,
                       p->t->lm->context);
    }
    memmove(ids, ids + skip, (n - skip) * sizeof *ids);
    *x = (wg_plan_text){ kind, ids, (int)(n - skip) };
    p->texts++;
    return WG_OK;
}

/* The chat template: the named one, or the model's own if it works. */
static wg_chat template_of(planner *p)
{
    wg_chat chat = p->o->chat;
    wg_text own;
    wg_error why;
    chat.model = p->t->weights;
    if (p->o->chat_name || !wg_meta_string(p->t->weights, "tokenizer.chat_template", &own)) return chat;
    chat.family = WG_CHAT_MODEL;
    if (wg_chat_check(p->t->tokenizer, &chat, false, &why)) {
        snprintf(p->about.no_template, sizeof p->about.no_template, "%.299s", why.text);
        chat.family = WG_CHAT_NONE;
    }
    return chat;
}

static wg_status read_texts(planner *p, wg_error *err)
{
    const wg_chat chat = template_of(p);
    p->about.chat = chat.family == WG_CHAT_NONE ? NULL : wg_chat_names[chat.family];
    if (!p->o->prompts) {
        for (int i = 0; i < WG_PLAN_PROMPTS; i++)
            WG_TRY(add_text(p, &chat, wg_plan_prompts[i].kind, wg_plan_prompts[i].text, strlen(wg_plan_prompts[i].text), err));
    } else {
        const wg_setup_prompts slice = { .limit = (int)p->o->limit, .shuffle = (int)p->o->seed };
        wg_dataset *d;
        WG_TRY(wg_dataset_open(&d, p->o->prompts, &slice, err));
        wg_status s = WG_OK;
        for (int i = 0; i < d->n && !s; i++) s = add_text(p, &chat, NULL, d->prompt[i].text, d->prompt[i].bytes, err);
        wg_dataset_close(d);
        WG_TRY(s);
    }
    p->screen = p->texts < WG_INTERVAL_PROMPTS + 1 ? 0
                : p->texts / 3 < WG_PLAN_KINDS     ? p->texts / 3
                                                   : WG_PLAN_KINDS; /* few texts serve both purposes */
    return WG_OK;
}

/* What every stage has. */
static wg_plan_stage stage_of(const planner *p)
{
    wg_plan_stage on = { .target = p->t,
                         .sampling = &p->sampling,
                         .seed = (uint64_t)p->o->seed,
                         .warm = p->text,
                         .most = p->o->n > SCREEN_MOST ? (int)p->o->n : SCREEN_MOST };
    for (int i = 0; i < p->texts; i++) on.longest = p->text[i].n > on.longest ? p->text[i].n : on.longest;
    return on;
}

/* Whether the drafts that the user names can run, before anything is printed or measured. */
static wg_status check_asked(const planner *p, wg_error *err)
{
    const wg_plan_stage on = stage_of(p);
    char spec[WG_PLAN_SPEC];
    for (int i = 0; i < p->drafts; i++) {
        const wg_plan_draft *d = &p->draft[i];
        if (!d->asked) continue;
        wg_plan_draft_spec(d, 0, spec);
        const wg_status s = wg_plan_can_run(spec, &on, err);
        if (s) return wg_fail_in(err, s, "%s %s", d->flag, d->text);
    }
    return WG_OK;
}

static wg_status open_all(planner *p, wg_error *err)
{
    const wg_plan_options *o = p->o;
    const wg_target_options want = { .threads = (int)o->threads,
                                     .pin = o->pin,
                                     .quantize = o->quantize,
                                     .need_tokenizer = true,
                                     .model = { .kv_type = o->kv_type } };
    WG_TRY(wg_target_open(&p->t, o->model, &want, err));
    WG_TRY(wg_plan_drafts(p->draft, &p->drafts, &o->models, &o->drafts, wg_model_arch(p->t->model)->layers, err));
    WG_TRY(read_texts(p, err));
    WG_TRY(check_asked(p, err));
    p->loaded = wg_clock_now();
    p->about.drafts = p->drafts;
    p->about.texts = p->texts;
    p->about.screen = p->screen;
    p->about.threads = wg_pool_threads(p->t->pool);
    p->about.rule = wg_plan_rule(&p->sampling);
    return WG_OK;
}

/* ---- stages ------------------------------------------------------------------------------------------------------ */

static int add_arm(planner *p, int arms, wg_plan_candidate *c)
{
    wg_plan_arm *a = &p->arm[arms];
    *a = (wg_plan_arm){ .asked = c && c->asked };
    snprintf(a->spec, sizeof a->spec, "%s", c ? c->spec : "none");
    p->of[arms] = c;
    return arms + 1;
}

/* A new candidate: a draft at its length number i. */
static wg_plan_candidate *candidate_of(planner *p, int draft, int i)
{
    wg_plan_candidate *c = &p->result.tried[p->result.n++];
    *c = (wg_plan_candidate){ .draft = draft, .asked = p->draft[draft].asked, .speedup = NAN, .tau = NAN };
    wg_plan_draft_spec(&p->draft[draft], i, c->spec);
    return c;
}

static double sum(const double *v, int n)
{
    double s = 0;
    for (int i = 0; i < n; i++) s += v[i];
    return s;
}

/* Measures the arms until a share of the time after loading; judge: on the texts of the verdict, else on those for choosing. */
static wg_status stage(planner *p, int arms, bool judge, double share, wg_error *err)
{
    const double end = p->start + (double)p->o->seconds, left = end - p->loaded;
    const int most = (int)p->o->n, choose = p->screen ? p->screen : p->texts;
    wg_plan_stage on = stage_of(p);
    on.text = judge ? p->text + p->screen : p->text;
    on.texts = judge ? p->texts - p->screen : choose;
    on.least = judge ? WG_PLAN_JUDGE_LEAST : SCREEN_LEAST;
    on.most = judge || most < SCREEN_MOST ? most : SCREEN_MOST;
    on.until = p->loaded + share * left;
    on.end = end;
    on.ready = judge ? on.until : p->loaded + left * (share - FIRST + READY);
    if (on.least > on.most) on.least = on.most;
    int done;
    WG_TRY(wg_plan_measure(p->arm, arms, &on, &done, err));
    p->text_seconds = p->arm->prompt_seconds + WG_PLAN_JUDGE_LEAST * p->arm->token_seconds;
    for (int k = 1; k < arms; k++) {
        wg_plan_arm *a = &p->arm[k];
        wg_plan_candidate *c = p->of[k];
        c->text_seconds = a->prompt_seconds + WG_PLAN_JUDGE_LEAST * a->token_seconds;
        c->state = a->state;
        snprintf(c->why, sizeof c->why, "%s", a->why);
        if (a->state != WG_PLAN_RAN || !done) continue;
        c->tau = sum(a->tokens, done) / sum(a->passes, done);
        c->speedup = sum(a->tokens, done) / sum(a->seconds, done) * sum(p->arm->seconds, done) / sum(p->arm->tokens, done);
    }
    p->about.judged = done;
    p->about.plain = done ? sum(p->arm->tokens, done) / sum(p->arm->seconds, done) : NAN;
    return WG_OK;
}

/* The fastest unmarked candidate that ran; NULL: none. */
static wg_plan_candidate *next_best(wg_plan_result *r)
{
    wg_plan_candidate *best = NULL;
    for (int i = 0; i < r->n; i++) {
        wg_plan_candidate *c = &r->tried[i];
        if (c->state == WG_PLAN_RAN && isfinite(c->speedup) && !c->marked && (!best || c->speedup > best->speedup)) best = c;
    }
    return best;
}

static wg_status screen(planner *p, wg_error *err)
{
    int arms = add_arm(p, 0, NULL);
    for (int d = 0; d < p->drafts; d++) arms = add_arm(p, arms, candidate_of(p, d, 0));
    WG_TRY(stage(p, arms, false, FIRST, err));
    arms = add_arm(p, 0, NULL);
    for (int best = 0; p->about.judged >= FEWEST && best < WG_PLAN_JUDGED; best++) {
        wg_plan_candidate *c = next_best(&p->result);
        if (!c) break;
        c->marked = true;
        for (int i = 1; i < p->draft[c->draft].lengths; i++) arms = add_arm(p, arms, candidate_of(p, c->draft, i));
    }
    for (int i = 0; i < p->result.n; i++) p->result.tried[i].marked = false;
    return arms > 1 ? stage(p, arms, false, SECOND, err) : WG_OK;
}

/* Speed-ups of arm k over plain decoding on the texts of each kind. */
static void by_kind(planner *p, int k, int done)
{
    wg_plan_candidate *c = p->of[k];
    for (int kind = 0; kind < WG_PLAN_KINDS; kind++) {
        double v[4] = { 0 };
        for (int i = 0; i < done; i++) {
            const char *of = p->text[p->screen + i].kind;
            if (!of || strcmp(of, wg_plan_prompts[kind].kind) != 0) continue;
            v[0] += p->arm[k].tokens[i], v[1] += p->arm[k].seconds[i];
            v[2] += p->arm->tokens[i], v[3] += p->arm->seconds[i];
        }
        c->kind[kind] = v[1] > 0 && v[2] > 0 ? v[0] / v[1] * v[3] / v[2] : NAN;
    }
}

static wg_status judge(planner *p, wg_error *err)
{
    wg_plan_result *r = &p->result;
    wg_plan_speed speed[WG_PLAN_JUDGED];
    int arms = add_arm(p, 0, NULL), n = 0, best;
    r->best = -1;
    double each = p->text_seconds; /* seconds of a text by all arms */
    const double left = p->start + (double)p->o->seconds - wg_clock_now();
    for (wg_plan_candidate *c; arms <= WG_PLAN_JUDGED && (c = next_best(r)); c->marked = true) {
        each += c->text_seconds;
        if (arms > 1 && each * WG_INTERVAL_PROMPTS > left) break; /* one draft with an interval is better than two without */
        arms = add_arm(p, arms, c);
    }
    if (arms == 1) return WG_OK;
    WG_TRY(stage(p, arms, true, 1, err));
    const int done = p->about.judged;
    for (int k = 1; k < arms; k++) {
        if (p->of[k]->state != WG_PLAN_RAN || !done) continue;
        speed[n] = wg_plan_speed_of(p->arm[k].seconds, p->arm[k].tokens, p->arm->seconds, p->arm->tokens, done);
        p->of[k]->tok_s = sum(p->arm[k].tokens, done) / sum(p->arm[k].seconds, done);
        by_kind(p, k, done);
        r->judged[n++] = p->of[k];
    }
    r->answer = wg_plan_answer_of(speed, n, &best);
    r->judges = n;
    r->best = best;
    for (int i = 0; i < n; i++) r->judged[i]->speed = speed[i];
    return WG_OK;
}

static wg_status run(planner *p, wg_error *err)
{
    const double load = wg_machine_load(), cores = (double)sysconf(_SC_NPROCESSORS_ONLN);
    WG_TRY(open_all(p, err));
    wg_plan_put_budget(p->o);
    wg_plan_warn_of_load(stderr, load, cores);
    wg_plan_put_about(p->o, &p->about);
    WG_TRY(screen(p, err));
    wg_plan_put_tried(p->o, &p->result);
    WG_TRY(judge(p, err));
    p->about.seconds = wg_clock_now() - p->start;
    wg_plan_put_verdict(p->o, &p->about, &p->result);
    return WG_OK;
}

wg_status wg_plan_speculation(const wg_plan_options *o, wg_error *err)
{
    planner *p = wg_calloc(1, sizeof *p);
    if (!p) return wg_nomem(err, sizeof *p, "a plan");
    p->o = o;
    p->start = wg_clock_now();
    p->sampling = (wg_sampling)WG_SAMPLING(o->temperature, 0, 1, 0);
    const wg_status s = run(p, err);
    for (int i = 0; i < p->texts; i++) wg_free(p->text[i].token);
    wg_target_close(p->t);
    wg_free(p);
    return s;
}
