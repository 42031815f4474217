/* SPDX-License-Identifier: MIT
 * wager prove: proves every rule on every law that it accepts, on chains and trees. It prints the largest deviation of the
 * exact output law from the target's, the acceptance, and the largest acceptance of any lossless rule. Exits with 1 when a
 * lossless rule deviates by more than 1e-12. */
#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/mem.h"
#include "core/base/pool.h"
#include "core/setup/spec.h"
#include "experiments/cli/cli.h"
#include "lab/prove_drafter.h"
#include "verify/proof/counterexample.h"
#include "verify/proof/prove.h"
#include "verify/proof/prove_device.h"
#include "verify/proof/text_law.h"
#include "verify/rule_plugin.h"
#include "verify/verify.h"

static const double bound = 1e-12;

enum { DEPTH = 8, JOBS = 256 };

/* A shape of drafts: children by depth, as in the drafter `model`. */
typedef struct shape {
    int vocab;
    const char *tree;
    int steps, cases;
    bool ragged, one_hot; /* prove.h */
} shape;

/* The default shapes. */
#define WHOLE false, false
#define RAGGED true, false
#define ONE_HOT false, true
static const shape standard[] = {
    { 2, "1-1-1", 1, 1000, WHOLE }, { 3, "1-1", 1, 1000, WHOLE },       { 4, "1-1-1", 1, 1000, WHOLE },
    { 3, "2", 1, 1000, WHOLE },     { 4, "3", 1, 1000, WHOLE },         { 2, "2-2", 1, 1000, WHOLE },
    { 3, "1-2", 1, 1000, WHOLE },   { 3, "2-1", 1, 1000, WHOLE },       { 4, "2-2", 1, 50, WHOLE },
    { 4, "2-1-1", 1, 50, WHOLE },   { 4, "3-1", 1, 50, WHOLE },         { 2, "1-1", 2, 200, WHOLE },
    { 2, "2", 2, 200, WHOLE },      { 3, "1", 2, 200, WHOLE },          { 3, "1-1-1", 1, 200, true, true },
    { 2, "5", 1, 200, ONE_HOT },    { 2, "2-1-1", 1, 200, true, true }, { 3, "2-2", 1, 50, true, true },
    { 2, "3-1", 1, 200, RAGGED },   { 2, "2-1", 2, 20, true, true },
};
enum { SHAPES = sizeof standard / sizeof *standard };

typedef struct prove {
    const char *rule, *law, *tree, *plugin, *device;
    long vocab, depth, children, steps, cases, seed, threads;
    bool ragged, one_hot;
    bool json, brief; /* brief: one line for all shapes of a rule and a law */
    shape asked[(int)SHAPES + (int)DEPTH];
    char trees[DEPTH][4 * DEPTH];
    int shapes;
} prove;

/* One line of the table. */
typedef struct job {
    const shape *shape;
    wg_prove_options o;
    int width[DEPTH];
    wg_prove_result r;
    wg_status status;
    wg_error err;
} job;

typedef struct jobs {
    const wg_verifier_class *rule;
    const void *options; /* options of the rule; NULL: defaults */
    bool device;         /* the device's decisions are enumerated, by one thread */
    bool headed;         /* the head of the table is printed */
    job *job;
    int n;
    atomic_int next;
} jobs;

static bool proved(const wg_verifier_class *rule, const wg_prove_result *r)
{
    return !wg_verifier_has_law(rule) || (r->deviation <= bound && r->reused == 0);
}

static const char *verdict_of(const wg_verifier_class *rule, const wg_prove_result *r)
{
    return !wg_verifier_has_law(rule) ? "lossy"
           : !proved(rule, r)         ? "BIASED"
           : !rule->lossless          ? "lossy, by its stated law"
           : rule->zero_only          ? "exact at temperature 0"
                                      : "exact";
}

static void print_result(const prove *g, const wg_verifier_class *rule, const job *j)
{
    const char *verdict = verdict_of(rule, &j->r);
    const wg_prove_options *o = &j->o;
    const wg_prove_result *r = &j->r;
    char best[32] = "-"; /* defined for one step only */
    if (o->steps == 1) snprintf(best, sizeof best, "%.4f", r->alpha_star);
    if (!g->json) {
        char draft[64];
        snprintf(draft, sizeof draft, "%s%s%s", o->ragged ? "<=" : "", j->shape->tree, o->one_hot ? "/one-hot" : "");
        printf("%-19s %-19s %5d %-15s %5d %6d %9ld %9.2g %8.4f %7.4f %7s  %s\n", rule->name, wg_law_name(o->law), o->vocab,
               draft, o->steps, r->cases, r->runs, r->deviation, r->tau, r->alpha, best, verdict);
        return;
    }
    json_t *row =
        json_pack("{s:s, s:b, s:s, s:i, s:s, s:b, s:b, s:i, s:i, s:I, s:I, s:f, s:f, s:f, s:o, s:s}", "rule", rule->name,
                  "lossless", rule->lossless, "law", wg_law_name(o->law), "vocab", o->vocab, "tree", j->shape->tree, "ragged",
                  o->ragged, "one_hot", o->one_hot, "steps", o->steps, "cases", r->cases, "runs", (json_int_t)r->runs,
                  "reused_addresses", (json_int_t)r->reused, "deviation", r->deviation, "tau", r->tau, "alpha", r->alpha,
                  "alpha_star", o->steps == 1 ? json_real(r->alpha_star) : json_null(), "verdict", verdict);
    wg_json_put_line(row, 0);
}

static const char *const brief_head = "rule                siblings             shapes  cases       runs  deviation\n";
static const char *const full_head =
    "rule                siblings            vocab draft           steps  cases      runs deviation      tau   alpha  alpha*\n";

/* Prints jobs [first, end) of one law as one line. */
static void print_brief(const wg_verifier_class *rule, const job *first, const job *end)
{
    wg_prove_result all = { 0 };
    for (const job *j = first; j < end; j++) {
        all.cases += j->r.cases;
        all.runs += j->r.runs;
        all.reused += j->r.reused;
        if (!(j->r.deviation <= all.deviation)) all.deviation = j->r.deviation;
    }
    printf("%-19s %-19s %7d %6d %10ld %10.2g  %s\n", rule->name, wg_law_name(first->o.law), (int)(end - first), all.cases,
           all.runs, all.deviation, verdict_of(rule, &all));
}

/* Parses "3-2-1" to {3, 2, 1}; returns the number of levels, -1 when it is no such list. */
static int read_tree(const char *text, int width[DEPTH])
{
    int n = 0;
    while (*text) {
        char *end;
        const long k = strtol(text, &end, 10);
        if (n == DEPTH || end == text || *text < '0' || *text > '9' || k < 1 || k >= WG_TREE_MAX || (*end == '-' && !end[1]) ||
            (*end && *end != '-'))
            return -1;
        width[n++] = (int)k;
        text = *end ? end + 1 : end;
    }
    return n;
}

/* Computes the same line for the rule as run on a device. */
static wg_status prove_on_device(const wg_verifier_class *rule, const wg_prove_options *o, wg_prove_result *r, wg_error *err)
{
    wg_prove_device *d;
    wg_prove_rule on_device;
    wg_prove_options p = *o;
    void *options = wg_calloc(1, rule->size + 1);
    if (!options) return wg_nomem(err, rule->size + 1, "a rule's options");
    wg_option_defaults(rule->options, options);
    wg_status s = wg_prove_device_open(&d, o->vocab, err);
    if (!s) s = wg_prove_device_rule(d, rule, o->rule_options ? o->rule_options : options, &on_device, err);
    p.rule_options = &on_device.of;
    if (!s) s = wg_prove(&on_device.class, &p, r, err);
    wg_prove_device_close(d);
    wg_free(options);
    return s;
}

/* A thread's loop: takes the next line until none is left. */
static void work(void *arg, int thread, int threads)
{
    jobs *w = arg;
    (void)thread, (void)threads;
    for (int i; (i = atomic_fetch_add(&w->next, 1)) < w->n;) {
        job *j = &w->job[i];
        j->o.width = j->width;
        j->o.rule_options = w->options;
        j->status = (w->device ? prove_on_device : wg_prove)(w->rule, &j->o, &j->r, &j->err);
    }
}

/* Adds the lines of one rule: its laws times the shapes. */
static void plan(const prove *g, jobs *w)
{
    static const wg_sibling_law laws[] = { WG_LAW_FIXED, WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT, WG_LAW_COUPLED };
    w->n = 0;
    atomic_store(&w->next, 0);
    for (int l = 0; l < 4; l++) {
        if (!(w->rule->laws & laws[l]) || (strcmp(g->law, "all") && strcmp(g->law, wg_law_name(laws[l])))) continue;
        for (int i = 0; i < g->shapes && w->n < JOBS; i++) {
            const shape *s = &g->asked[i];
            job *j = &w->job[w->n];
            *j = (job){ .shape = s };
            const int depth = read_tree(s->tree, j->width);
            bool siblings = false;
            for (int d = 0; d < depth; d++) siblings |= j->width[d] > 1;
            if (siblings && w->rule->chains) continue;
            j->o = (wg_prove_options){ .vocab = s->vocab,
                                       .depth = depth,
                                       .steps = s->steps,
                                       .law = laws[l],
                                       .ragged = s->ragged,
                                       .one_hot = s->one_hot,
                                       .cases = s->cases,
                                       .seed = (uint64_t)g->seed };
            j->o.greedy = w->rule->zero_only; /* the target is one-hot at the argmax */
            w->n++;
        }
    }
}

/* Prints the smallest counterexample of a rule, for the law of the first line that refutes it. */
static void show_counterexample(const prove *g, const jobs *w, const job *j)
{
    wg_counterexample c;
    if (w->device || !wg_counterexample_find(w->rule, &j->o, bound, &c)) return;
    if (!g->json) {
        wg_counterexample_print(stdout, w->rule, &c);
        return;
    }
    json_t *p = json_array(), *q = json_array(), *text = json_array();
    for (int x = 0; x < c.vocab; x++) {
        json_array_append_new(p, json_real(c.p[x]));
        json_array_append_new(q, json_real(c.q[x]));
    }
    for (int i = 0; i < c.n; i++) json_array_append_new(text, json_integer(c.text[i]));
    json_t *row =
        json_pack("{s:{s:s, s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:f, s:f, s:I}}", "counterexample", "rule", w->rule->name, "law",
                  wg_law_name(c.law), "tree", c.tree, "vocab", c.vocab, "steps", c.steps, "p", p, "q", q, "text", text,
                  "chance", c.got, "should_be", c.want, "reused_addresses", (json_int_t)c.reused);
    wg_json_put_line(row, 0);
}

static wg_status prove_rule(const prove *g, jobs *w, wg_pool *pool, int *bad, wg_error *err)
{
    const job *convicted = NULL;
    plan(g, w);
    wg_pool_run(pool, work, w);
    for (int i = 0; i < w->n; i++) {
        const job *j = &w->job[i];
        if (j->status) {
            *err = j->err;
            return wg_fail_in(err, j->status, "law %s, vocabulary %d, tree %s", wg_law_name(j->o.law), j->o.vocab,
                              j->shape->tree);
        }
        if (!g->json && !w->headed) fputs(g->brief ? brief_head : full_head, stdout);
        w->headed = true;
        *bad += !proved(w->rule, &j->r);
        if (!convicted && !proved(w->rule, &j->r)) convicted = j;
        if (!g->brief) print_result(g, w->rule, j);
        else if (i + 1 == w->n || j[1].o.law != j->o.law) {
            const job *first = j;
            while (first > w->job && first[-1].o.law == j->o.law) first--;
            print_brief(w->rule, first, j + 1);
        }
    }
    if (convicted) show_counterexample(g, w, convicted);
    fflush(stdout);
    return WG_OK;
}

/* Sets g->asked: the default shapes, or those of the flags (0: not given). False after a message. */
static bool choose_shapes(prove *g)
{
    int width[DEPTH];
    if (!g->vocab && !g->depth && !g->children && !g->steps && !*g->tree && !g->ragged && !g->one_hot) {
        memcpy(g->asked, standard, sizeof standard);
        g->shapes = SHAPES;
        g->brief = !g->json && !*g->plugin && !strcmp(g->rule, "all");
        for (int i = 0; i < SHAPES && g->cases; i++) g->asked[i].cases = (int)g->cases;
        return true;
    }
    const shape one = { .vocab = g->vocab ? (int)g->vocab : 3,
                        .tree = g->tree,
                        .steps = g->steps ? (int)g->steps : 1,
                        .cases = g->cases ? (int)g->cases : 20,
                        .ragged = g->ragged,
                        .one_hot = g->one_hot };
    if (*g->tree) {
        if (read_tree(g->tree, width) < 0) {
            fprintf(stderr, "wager prove: --tree %s: expected children by depth, such as 3-2-1, at most %d levels\n", g->tree,
                    DEPTH);
            return false;
        }
        g->asked[g->shapes++] = one;
        return true;
    }
    const int depth = g->depth ? (int)g->depth : 2, most = g->children ? (int)g->children : 2;
    for (int k = 1; k <= most; k++) {
        char *text = g->trees[g->shapes];
        for (int d = 0; d < depth; d++) sprintf(text + strlen(text), "%s%d", d ? "-" : "", k);
        g->asked[g->shapes] = one;
        g->asked[g->shapes++].tree = text;
    }
    return true;
}

/* Chooses the rule: NAME:option=value,..., or an object's (--plugin, where --rule has only options); class NULL: all. */
static wg_status choose(const prove *g, wg_rule_choice *c, wg_error *err)
{
    const size_t n = strcspn(g->rule, ":");
    if (!*g->plugin) return strcmp(g->rule, "all") ? wg_choose_rule_flag(g->rule, c, err) : WG_OK;
    WG_TRY(wg_verifier_load(g->plugin, &c->class, &c->object, err));
    if (!c->class->size) return WG_OK;
    if (!(c->options = wg_calloc(1, c->class->size))) return wg_nomem(err, c->class->size, "a rule's options");
    wg_option_defaults(c->class->options, c->options);
    return g->rule[n] ? wg_option_set_list(c->class->options, c->options, c->class->size, g->rule + n + 1, err) : WG_OK;
}

static wg_status prove_all(const prove *g, const wg_rule_choice *c, int *bad, wg_error *err)
{
    jobs w = { .options = c->options, .device = *g->device != 0, .job = wg_calloc(JOBS, sizeof(job)) };
    wg_pool *pool = NULL;
    wg_status s = w.job ? wg_pool_open(&pool, w.device ? 1 : (int)g->threads, err)
                        : wg_nomem(err, JOBS * sizeof(job), "the lines of the table");
    for (int i = 0; !s && wg_verifiers[i]; i++) {
        w.rule = c->class ? c->class : wg_verifiers[i];
        if (!c->class && w.device && w.rule->device == WG_RULE_HOST) continue;
        s = prove_rule(g, &w, pool, bad, err);
        if (c->class) break;
    }
    wg_pool_close(pool);
    wg_free(w.job);
    return s;
}

/* ---- --drafter */

typedef struct drafter_flags {
    const char *spec, *rule;         /* a shared object, or KIND:option=value,...; "all": the usual rule */
    long vocab, length, cases, seed; /* 0: defaults */
    bool json;
} drafter_flags;

/* Chooses the drafter of a shared object, or of a specification as in --draft. */
static wg_status choose_drafter(const char *spec, wg_drafter_choice *out, wg_error *err)
{
    struct stat st;
    if (stat(spec, &st) || !S_ISREG(st.st_mode)) {
        const wg_status s = wg_choose_drafter(spec, out, err);
        return s ? wg_fail_in(err, s, "--drafter %s", spec) : WG_OK;
    }
    WG_TRY(wg_choose_drafter("plugin", out, err));
    const wg_status s = wg_option_set(out->class->options, out->options, "path", spec, err);
    if (s) wg_choice_close(out);
    return s;
}

static const char *const words[] = { [WG_HOLDS] = "holds", [WG_FAILS] = "FAILS", [WG_UNTESTED] = "-" };

static void print_checks_json(const drafter_flags *g, const wg_prove_drafter_result *r)
{
    for (int i = 0; i < WG_DRAFTER_CHECKS; i++) {
        const wg_drafter_finding *f = &r->finding[i];
        json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:f}", "drafter", g->spec, "rule", r->rule->name,
                                "check", wg_drafter_check_names[i], "what", f->what, "verdict",
                                f->verdict == WG_UNTESTED ? "untested" : words[f->verdict], "runs", (json_int_t)r->runs,
                                "drafts", (json_int_t)r->drafts, "draws", (json_int_t)r->drawn, "deviation", f->deviation);
        if (f->verdict == WG_FAILS) json_object_set_new(row, "example", json_string(f->example));
        wg_json_put_line(row, 0);
    }
}

static void print_checks(const drafter_flags *g, const wg_prove_drafter_options *o, const wg_prove_drafter_result *r)
{
    printf("%s under rule %s; %d tokens, texts of %d after %d prompts: %ld runs, %ld different drafts, %ld draws\n", g->spec,
           r->rule->name, o->vocab, o->length, o->cases, r->runs, r->drafts, r->drawn);
    for (int i = 0; i < WG_DRAFTER_CHECKS; i++) {
        const wg_drafter_finding *f = &r->finding[i];
        printf("%-11s %-6s %s\n", wg_drafter_check_names[i], words[f->verdict], f->what);
        if (f->verdict == WG_FAILS) printf("  %s\n", f->example);
    }
}

/* Checks names and options, then runs the prover. */
static wg_status check_drafter(const drafter_flags *g, const wg_drafter_choice *drafter, const wg_rule_choice *rule, int *bad,
                               wg_error *err)
{
    wg_prove_drafter_result r;
    const wg_prove_drafter_options o = { .drafter = drafter->class,
                                         .drafter_options = drafter->options,
                                         .plugins = &wg_program_plugins,
                                         .rule = rule->class,
                                         .rule_options = rule->options,
                                         .vocab = g->vocab ? (int)g->vocab : 3,
                                         .length = (int)g->length,
                                         .cases = g->cases ? (int)g->cases : 6,
                                         .seed = (uint64_t)g->seed };
    WG_TRY(wg_prove_drafter(&o, &r, err));
    if (g->json) print_checks_json(g, &r);
    else print_checks(g, &o, &r);
    for (int i = 0; i < WG_DRAFTER_CHECKS; i++) *bad += r.finding[i].verdict == WG_FAILS;
    if (r.finding[WG_CHECK_DRAWS].verdict == WG_UNTESTED && !*bad) *bad = -1;
    return WG_OK;
}

/* Returns the exit status; 1: a check fails, or nothing was drafted. */
static int prove_drafter(const drafter_flags *g)
{
    wg_error err;
    wg_drafter_choice drafter = { 0 };
    wg_rule_choice rule = { 0 };
    int bad = 0;
    wg_status s = choose_drafter(g->spec, &drafter, &err);
    if (!s && strcmp(g->rule, "all")) s = wg_choose_rule_flag(g->rule, &rule, &err);
    if (!s) s = check_drafter(g, &drafter, &rule, &bad, &err);
    wg_rule_choice_close(&rule);
    wg_choice_close(&drafter);
    if (s) return wg_cli_fail(&err);
    fflush(stdout);
    if (bad > 0) fprintf(stderr, "wager prove: %d of the checks above fail\n", bad);
    if (bad < 0)
        fprintf(stderr, "wager prove: nothing was drafted that could be compared; another --vocab, --length or --seed?\n");
    return bad ? WG_EXIT_FAILED : WG_EXIT_OK;
}

int wg_cmd_prove(int argc, char **argv)
{
    prove g = { .rule = "all", .law = "all", .tree = "", .plugin = "", .device = "", .seed = 1 };
    drafter_flags drafter = { .spec = "", .length = 4 };
    const wg_flag flags[] = {
        { "rule", 0, WG_FLAG_STRING, &g.rule, "RULE|all", "the rule, as NAME or NAME:option=value,...", 0, 0 },
        { "plugin", 0, WG_FLAG_STRING, &g.plugin, "FILE", "a rule of your own in a shared object (examples/plugin-verifier)", 0,
          0 },
        { "drafter", 0, WG_FLAG_STRING, &drafter.spec, "FILE|KIND",
          "prove a drafter instead, a shared object (examples/plugin-drafter) or KIND:option=value,...", 0, 0 },
        { "length", 0, WG_FLAG_INT, &drafter.length, "N", "with --drafter: length of a text, in tokens", 1, WG_LAW_LENGTH },
        { "device", 0, WG_FLAG_STRING, &g.device, "cuda:0",
          "prove the decisions of the rules on that device (emulated devices only)", 0, 0 },
        { "law", 0, WG_FLAG_CHOICE, &g.law, "all|fixed|iid|without_replacement|coupled", "how siblings are drawn", 0, 0 },
        { "tree", 0, WG_FLAG_STRING, &g.tree, "K-K-..", "draft: children of a node by its depth, such as 2-1", 0, 0 },
        { "vocab", 0, WG_FLAG_INT, &g.vocab, "V",
          "tokens of the language; 0 with no other flag of the draft: a standard set of drafts", 1, 16 },
        { "depth", 0, WG_FLAG_INT, &g.depth, "D", "draft: number of levels", 1, DEPTH },
        { "children", 0, WG_FLAG_INT, &g.children, "K", "draft: most children of a node; 1: chains", 1, DEPTH },
        { "ragged", 0, WG_FLAG_BOOL, &g.ragged, NULL, "draft: nodes have different numbers of children, up to --children", 0,
          0 },
        { "one-hot", 0, WG_FLAG_BOOL, &g.one_hot, NULL, "a third of the rows of p and q have all mass on one token", 0, 0 },
        { "steps", 0, WG_FLAG_INT, &g.steps, "N", "number of consecutive steps in one enumeration", 1, 3 },
        { "cases", 0, WG_FLAG_INT, &g.cases, "N", "number of random pairs of p and q", 1, 1e6 },
        { "seed", 0, WG_FLAG_INT, &g.seed, "S", "seed of these pairs", 0, 0 },
        { "threads", 0, WG_FLAG_INT, &g.threads, "N", "number of threads; 0: as many as the process may use", 0, 256 },
        { "json", 0, WG_FLAG_BOOL, &g.json, NULL, "one JSON object a line", 0, 0 },
        { 0 },
    };
    const int done = wg_cli_parse("prove", flags, argc, argv, NULL, 0, 0);
    if (done >= 0) return done;
    if (*drafter.spec) {
        if (strcmp(g.law, "all") || *g.tree || g.depth || g.children || g.steps || *g.plugin || *g.device)
            return wg_cli_refuse("prove", "--drafter goes with --rule, --vocab, --length, --cases, --seed and --json only");
        drafter.rule = g.rule, drafter.vocab = g.vocab, drafter.cases = g.cases, drafter.seed = g.seed, drafter.json = g.json;
        return prove_drafter(&drafter);
    }
    if (*g.device && strcmp(g.device, "cuda:0"))
        return wg_cli_refuse("prove", "--device %s: expected cuda:0, or nothing for the rules of the host", g.device);
    if (!choose_shapes(&g)) return WG_EXIT_USAGE;
    wg_error err;
    wg_rule_choice c = { 0 };
    int bad = 0;
    wg_status s = choose(&g, &c, &err);
    if (!s) s = prove_all(&g, &c, &bad, &err);
    wg_rule_choice_close(&c);
    if (s) return wg_cli_fail(&err);
    if (bad)
        fprintf(stderr, "wager prove: %d of the lines above deviate by more than %g or use an address twice\n", bad, bound);
    return bad ? WG_EXIT_FAILED : WG_EXIT_OK;
}
