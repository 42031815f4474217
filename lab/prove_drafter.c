/* SPDX-License-Identifier: MIT
 * The prover of a drafter (prove_drafter.h). The drafter runs inside another one that watches each call of propose: under
 * enumeration it collects the drafts after each past, with production's draws it hashes them. */
#include "lab/prove_drafter.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/mem.h"
#include "core/model/lm_table.h"
#include "verify/proof/draft_law.h"
#include "verify/proof/text_law.h"
#include "draft/draft.h"
#include "kernels/cpu.h"
#include "kernels/philox.h"
#include "verify/verify.h"

enum { CONTEXT = 48, TEXTS = 1 << 16, LONG_TEXT = 20, MAX_RUNS = 200000 };
static const double bound = 1e-12;

const char *const wg_drafter_check_names[WG_DRAFTER_CHECKS] = { "trees",  "draws",  "groups", "room", "look-ahead",
                                                                "output", "forget", "seed",   "batch" };

/* The state of the watch. `class` replaces the drafter's own and comes first, so that an instance finds the watch by it. */
typedef struct watch {
    wg_drafter_class class;
    const wg_prove_drafter_options *o;
    wg_prove_drafter_result *out;
    wg_lm_table *target;
    wg_pool *pool;
    const wg_verifier_class *rule;
    bool fresh;                           /* drafts depend on other requests, so each run opens a new engine */
    wg_chance_tree *tree;                 /* tree of the enumeration; NULL: production's draws */
    wg_draft_law *drafts;                 /* (WG_LAW_LENGTH) by the number of tokens emitted */
    int32_t text[WG_LAW_LENGTH][CONTEXT]; /* text before these drafts */
    int text_n[WG_LAW_LENGTH];
    bool learns, undeclared; /* the class declares cross_request; siblings were drawn without a declared number */
    uint64_t digest;         /* digest of all drafts of the watched request */
    wg_error why;            /* error of the last failed step */
} watch;

typedef struct watcher {
    wg_drafter base;
    wg_drafter *inner;
} watcher;

static watch *watch_of(const wg_drafter *d) { return (watch *)(uintptr_t)d->class; }

/* ---- findings ---------------------------------------------------------------------------------------------------- */

static void put_tokens(char *b, size_t n, const int32_t *token, int count)
{
    size_t at = strlen(b);
    for (int i = 0; i < count && at < n; i++) at += (size_t)snprintf(b + at, n - at, " %d", (int)token[i]);
}

static void put_numbers(char *b, size_t n, const double *v, int count)
{
    size_t at = strlen(b);
    for (int i = 0; i < count && at < n; i++) at += (size_t)snprintf(b + at, n - at, " %.4g", v[i]);
}

/* Records a failure at a node after a text of `size` tokens and begins its example; NULL: a smaller or worse one is known. */
static char *failure(watch *w, wg_drafter_check check, const int32_t *text, int size, int node, double deviation)
{
    wg_drafter_finding *f = &w->out->finding[check];
    const bool less =
        f->verdict == WG_FAILS &&
        (size > f->size || (size == f->size && (node > f->node || (node == f->node && deviation <= f->deviation))));
    if (less) return NULL;
    f->verdict = WG_FAILS;
    f->size = size, f->node = node, f->deviation = deviation;
    snprintf(f->example, sizeof f->example, "after the text");
    put_tokens(f->example, sizeof f->example, text, size);
    return f->example;
}

static void append(char *example, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void append(char *example, const char *fmt, ...)
{
    const size_t at = strlen(example), room = sizeof((wg_drafter_finding *)0)->example;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(example + at, room - at, fmt, ap);
    va_end(ap);
}

static void put_node(char *example, const wg_tree *t, int node)
{
    append(example, ", draft");
    for (int i = 1; i < node; i++) append(example, " %d", (int)t->token[i]);
    append(example, "%s: node %d, below node %d", node > 1 ? "" : " empty", node, t->parent[node]);
}

/* Checks the drafts after one past, when all of them have been seen. */
static void judge(watch *w, int level)
{
    wg_draft_law *l = &w->drafts[level];
    const int32_t *text = w->text[level];
    const int n = w->text_n[level];
    const size_t room = sizeof w->out->finding->example;
    wg_drafter_finding *f = &w->out->finding[WG_CHECK_DRAWS];
    const wg_draw_deviation d = wg_draft_law_draws(l, bound, &f->deviation, &w->out->drawn);
    char *e = d.tree ? failure(w, WG_CHECK_DRAWS, text, n, d.node, d.deviation) : NULL;
    if (e) {
        put_node(e, d.tree, d.node);
        append(e, "\n  tokens are drawn with");
        put_numbers(e, room, d.got, l->vocab);
        append(e, d.varies ? "\n  its row of q depends on the token; here" : "\n  its row of q says      ");
        put_numbers(e, room, d.want, l->vocab);
    }
    const wg_tree *t;
    const int node = wg_draft_law_groups(l, &t, &w->undeclared);
    if (node >= 0 && (e = failure(w, WG_CHECK_GROUPS, text, n, node, 0))) {
        append(e, ", draft");
        for (int i = 1; i < t->n; i++) append(e, " %d", (int)t->token[i]);
        append(e, ": node %d declares %d children; with other draws it has, or declares, another number", node, t->group[node]);
    }
    w->out->drafts += l->n;
    if (l->full) snprintf(f->what, sizeof f->what, "the first %d drafts after each past", (int)WG_DRAFT_LAW_MOST);
    wg_draft_law_clear(l);
}

/* ---- the watched drafter ------------------------------------------------------------------------------------------ */

static wg_status watcher_open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    watch *w = watch_of(d);
    const wg_drafter_class *c = w->o->drafter;
    wg_drafter *inner = wg_calloc(1, c->size);
    if (!inner) return wg_nomem(err, c->size, "a drafter");
    ((watcher *)d)->inner = inner;
    inner->class = c;
    inner->env = env;
    if (c->options) memcpy((char *)inner + c->options_at, w->o->drafter_options, c->size - c->options_at);
    w->learns = c->cross_request;
    if (c->open) WG_TRY(c->open(inner, env, err));
    if (c == &wg_drafter_plugin) w->learns = wg_drafter_in_object(inner)->cross_request;
    return WG_OK;
}

static void watcher_close(wg_drafter *d)
{
    wg_drafter *inner = ((watcher *)d)->inner;
    if (inner && inner->class->close) inner->class->close(inner);
    wg_free(inner);
}

static uint64_t digest_of(uint64_t h, const wg_tree *t, wg_rows *q)
{
    h = wg_hash64(h, &t->n, sizeof t->n);
    h = wg_hash64(h, t->token, (size_t)t->n * sizeof *t->token);
    h = wg_hash64(h, t->parent, (size_t)t->n * sizeof *t->parent);
    for (int i = 1; i < t->n; i++)
        for (int x = 0; x < q->vocab && t->qrow[i] >= 0; x++) {
            const double p = wg_rows_prob(q, t->qrow[i], x);
            h = wg_hash64(h, &p, sizeof p);
        }
    return h;
}

/* Stores a draft of the enumerated sequence; a new past completes the drafts of the last one. */
static wg_status keep(watch *w, const wg_seq *s, uint64_t past, double before, const wg_tree *t, wg_rows *q, wg_error *err)
{
    const int level = s->n - s->prompt;
    wg_draft_law *l = &w->drafts[level];
    if (l->n > 0 && l->past != past) judge(w, level);
    memcpy(w->text[level], s->token, (size_t)s->n * sizeof **w->text);
    w->text_n[level] = s->n;
    l->past = past;
    return wg_draft_law_add(l, wg_chance_tree_past(w->tree), wg_chance_tree_probability(w->tree) / before, t, q, err);
}

static wg_status watcher_propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    watch *w = watch_of(d);
    wg_drafter *inner = ((watcher *)d)->inner;
    int me = 0;
    while (me + 1 < n && seq[me]->request != WG_LAW_REQUEST) me++;
    const wg_seq *s = seq[me];
    const uint64_t past = w->tree ? wg_chance_tree_past(w->tree) : 0;
    const double before = w->tree ? wg_chance_tree_probability(w->tree) : 1;
    WG_TRY(inner->class->propose(inner, seq, n, out, q, err));
    if (s->request != WG_LAW_REQUEST || wg_tree_check(&out[me], q->vocab, q->n, NULL)) return WG_OK; /* the engine refuses it */
    const int deep = wg_tree_height(&out[me]), room = wg_seq_room(s);
    char *e = deep > room ? failure(w, WG_CHECK_ROOM, s->token, s->n, 0, deep - room) : NULL;
    if (e) append(e, ": a draft of %d levels, where %d more can be emitted", deep, room);
    if (!w->tree) w->digest = digest_of(w->digest, &out[me], q);
    return w->tree ? keep(w, s, past, before, &out[me], q, err) : WG_OK;
}

static void watcher_observe(wg_drafter *d, const wg_seq *seq, const wg_tree *tree, const wg_path *path, wg_rows *target)
{
    wg_drafter *inner = ((watcher *)d)->inner;
    if (inner->class->observe) inner->class->observe(inner, seq, tree, path, target);
}

static void watcher_forget(wg_drafter *d, const wg_seq *seq)
{
    wg_drafter *inner = ((watcher *)d)->inner;
    if (inner->class->forget) inner->class->forget(inner, seq);
}

static wg_status open_engine(watch *w, const wg_drafter_class *drafter, const wg_verifier_class *rule, int batch,
                             wg_engine **out, wg_error *err)
{
    const wg_engine_parts parts = { .target = &w->target->lm,
                                    .pool = w->pool,
                                    .ops = wg_ops_for(wg_cpu_chosen()),
                                    .target_name = "target",
                                    .rules = w->o->plugins->verifiers,
                                    .plugins = w->o->plugins,
                                    .drafter = drafter,
                                    .verifier = rule,
                                    .verifier_options = rule == w->o->rule ? w->o->rule_options : NULL };
    const wg_engine_options o = { .max_batch = batch, .seed = w->o->seed, .sampling = WG_SAMPLING(1, 0, 1, 0) };
    return wg_engine_open(out, &parts, &o, err);
}

/* ---- enumerations ------------------------------------------------------------------------------------------------ */

/* A prompt, the laws of texts after it, and whether some outcomes were not visited. */
typedef struct prompt {
    int32_t token[CONTEXT];
    int n;
    wg_text_laws laws;
    bool cut;
} prompt;

/* Enumerates one prompt under a drafter and a rule: adds each run's probability to that of its text, `want` or `got`. A run
 * that ends with an error is a finding. */
static wg_status enumerate(watch *w, const wg_drafter_class *drafter, const wg_verifier_class *rule, prompt *of, bool want,
                           wg_error *err)
{
    wg_text_laws *laws = &of->laws;
    bool *cut = &of->cut;
    const int n = of->n;
    wg_chance_tree tree;
    wg_engine *e = NULL;
    wg_engine_law run = { .prompt = of->token, .n = n, .length = w->o->length };
    const long most = w->o->max_runs ? w->o->max_runs : MAX_RUNS;
    WG_TRY(wg_chance_tree_open(&tree, err));
    wg_status s = open_engine(w, drafter, rule, 1, &e, err);
    w->tree = want ? NULL : &tree;
    for (bool more = true; more && !s;) {
        int text;
        s = wg_engine_law_once(&run, e, &tree, laws, &text, &w->why);
        if (!s && want) laws->text[text].want += wg_chance_tree_probability(&tree);
        else if (!s) laws->text[text].got += wg_chance_tree_probability(&tree);
        else if (s == WG_ENOMEM || s == WG_EFULL) *err = w->why;
        else {
            char *x = failure(w, WG_CHECK_TREES, of->token, n, 0, 0);
            if (x) append(x, " or later: %.400s", w->why.text);
            s = WG_OK;
        }
        *cut = *cut || run.runs >= most || tree.beyond;
        more = !*cut && wg_chance_tree_next(&tree);
        if (!s && more && w->fresh && !want) {
            wg_engine_close(e);
            e = NULL;
            s = open_engine(w, drafter, rule, 1, &e, err);
        }
    }
    w->tree = NULL;
    for (int k = 0; k < WG_LAW_LENGTH; k++) judge(w, k);
    w->out->runs += want ? 0 : run.runs;
    char *x = !want && wg_chance_tree_reused(&tree) ? failure(w, WG_CHECK_LOOKAHEAD, of->token, n, 0, 0) : NULL;
    if (x)
        append(x, " or later, rule %s: a draw has the address of another; %d times in all runs", rule->name,
               wg_chance_tree_reused(&tree));
    wg_engine_close(e);
    wg_chance_tree_close(&tree);
    return s;
}

/* Finds the text with the most wrong probability. */
static void judge_output(watch *w, const wg_text_laws *l, int at, int32_t *text, int n)
{
    for (int i = l->text[at].child; i; i = l->text[i].next) {
        text[n] = l->text[i].token;
        const double off = fabs(l->text[i].got - l->text[i].want);
        char *e = off <= bound ? NULL : failure(w, WG_CHECK_OUTPUT, text, n + 1, 0, off);
        if (e)
            append(e, ", of which %d tokens are emitted: chance %.6g, should be %.6g", w->o->length, l->text[i].got,
                   l->text[i].want);
        judge_output(w, l, i, text, n + 1);
    }
}

/* Makes a prompt of n tokens. */
static void make_prompt(const watch *w, int n, int32_t *out)
{
    for (int i = 0; i < n; i++)
        out[i] = (int32_t)(wg_philox_at(w->o->seed, (uint32_t)n, (uint32_t)i, 1, 0).v[0] % (uint32_t)w->o->vocab);
}

static wg_status enumerate_all(watch *w, wg_error *err)
{
    prompt p = { .cut = false };
    WG_TRY(wg_text_laws_open(&p.laws, TEXTS, err));
    wg_status s = WG_OK;
    for (int i = 0; i < w->o->cases && !s; i++) {
        make_prompt(w, p.n = 2 + i, p.token);
        wg_text_laws_clear(&p.laws);
        s = enumerate(w, &wg_drafter_none, &wg_verifier_match, &p, true, err);
        if (!s) s = enumerate(w, &w->class, w->rule, &p, false, err);
        if (!s && !p.cut && w->out->finding[WG_CHECK_TREES].verdict != WG_FAILS) judge_output(w, &p.laws, 0, p.token, p.n);
        wg_text_laws_clear(&p.laws);
        if (!s && w->rule != &wg_verifier_match && w->class.laws != WG_LAW_COUPLED)
            s = enumerate(w, &w->class, &wg_verifier_match, &p, false, err);
    }
    wg_text_laws_close(&p.laws);
    wg_drafter_finding *f = &w->out->finding[WG_CHECK_OUTPUT];
    if (p.cut) snprintf(f->what, sizeof f->what, "some prompts have too many outcomes; fewer tokens, or --length");
    if (p.cut && f->verdict == WG_HOLDS) f->verdict = WG_UNTESTED;
    return s;
}

/* ---- production's draws ------------------------------------------------------------------------------------------ */

/* Decodes sequences to their ends, in one batch. */
static wg_status decode(wg_engine *e, wg_seq *const *seq, int n, wg_error *err)
{
    for (wg_status s = WG_OK; !s;) {
        wg_seq *running[2];
        int some = 0;
        for (int i = 0; i < n; i++)
            if (seq[i]->finish == WG_RUNNING) running[some++] = seq[i];
        if (some == 0) return WG_OK;
        s = wg_engine_step(e, running, some, err);
        if (s) return s;
    }
    return WG_OK;
}

typedef enum company { ALONE, AFTER_ANOTHER, BESIDE_ANOTHER } company;

/* The digest of all drafts of a request that runs alone, after another in the same slot, or behind another in the batch. */
static wg_status drafts_of(watch *w, company with, uint64_t *out, wg_error *err)
{
    int32_t prompt[12], other[9];
    wg_engine *e = NULL;
    wg_seq *seq[2] = { NULL, NULL };
    make_prompt(w, 12, prompt);
    make_prompt(w, 9, other);
    w->digest = WG_HASH_START;
    WG_TRY(open_engine(w, &w->class, w->rule, 2, &e, err));
    wg_status s = WG_OK;
    if (with != ALONE) s = wg_seq_open(e, &seq[0], WG_LAW_OTHER, other, 9, LONG_TEXT, err);
    if (with == AFTER_ANOTHER && !s) {
        s = decode(e, seq, 1, err);
        wg_seq_close(e, seq[0]);
        seq[0] = NULL;
    }
    const int me = with == BESIDE_ANOTHER;
    if (!s) s = wg_seq_open(e, &seq[me], WG_LAW_REQUEST, prompt, 12, LONG_TEXT, err);
    if (!s) s = decode(e, seq, me + 1, err);
    for (int i = 0; i < 2; i++) wg_seq_close(e, seq[i]);
    wg_engine_close(e);
    *out = w->digest;
    return s;
}

/* Checks that drafts repeat: again, after another request, and beside one. */
static void compare_drafts(watch *w)
{
    static const struct {
        wg_drafter_check check;
        company with;
        const char *says;
    } runs[] = {
        { WG_CHECK_SEED, ALONE, ": the same seed gives other drafts the second time" },
        { WG_CHECK_FORGET, AFTER_ANOTHER, ": other drafts after another request in its place; cross_request is not declared" },
        { WG_CHECK_BATCH, BESIDE_ANOTHER, ": other drafts beside another sequence in the batch" },
    };
    int32_t prompt[12];
    uint64_t alone, now = 0;
    make_prompt(w, 12, prompt);
    wg_status s = drafts_of(w, ALONE, &alone, &w->why);
    for (int i = 0; i < 3 && !s; i++) {
        wg_drafter_finding *f = &w->out->finding[runs[i].check];
        s = drafts_of(w, runs[i].with, &now, &w->why);
        if (s || now == alone) continue;
        w->fresh = true;
        if (i > 0 && w->learns) {
            f->verdict = WG_UNTESTED;
            snprintf(f->what, sizeof f->what, "its drafts depend on other requests, as its class declares");
            continue;
        }
        char *e = failure(w, runs[i].check, prompt, 12, 0, 0);
        if (e) append(e, "%s", runs[i].says);
    }
    char *e = s ? failure(w, WG_CHECK_TREES, prompt, 12, 0, 0) : NULL;
    if (e) append(e, " or later: %.400s", w->why.text);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* Chooses the rule and checks that it takes the drafts' laws. */
static wg_status choose_rule(watch *w, wg_error *err)
{
    const wg_verifier_class *const *all = w->o->plugins->verifiers;
    const wg_verifier_class *rule = w->o->rule ? w->o->rule : &wg_verifier_rejection;
    for (int i = 0; !w->o->rule && (w->class.laws & ~rule->laws) && all[i]; i++)
        if (all[i]->lossless && !all[i]->zero_only && !(w->class.laws & ~all[i]->laws)) rule = all[i];
    w->rule = w->out->rule = rule;
    if (!rule->lossless || rule->zero_only)
        return wg_fail(err, WG_EINVAL, "prove: rule %s is not lossless above temperature 0; choose one that is", rule->name);
    return wg_check_laws(w->o->drafter, w->class.laws, rule, all, err);
}

/* Describes the comparisons in words. */
static void describe(const watch *w)
{
    wg_drafter_finding *f = w->out->finding;
    static const char *const says[WG_DRAFTER_CHECKS] = {
        "the engine takes every draft",
        "tokens are drawn from their rows of q",
        "declared numbers of children do not depend on their draws",
        "no draft is deeper than the text that is left",
        "no draw has the address of another",
        "the law of texts is that of plain decoding",
        "a request before in its place changes no draft",
        "the same seed gives the same drafts",
        "another sequence in the batch changes no draft",
    };
    for (int i = 0; i < WG_DRAFTER_CHECKS; i++)
        if (!*f[i].what) snprintf(f[i].what, sizeof f->what, "%s", says[i]);
    if (f[WG_CHECK_GROUPS].verdict == WG_HOLDS && w->undeclared) {
        f[WG_CHECK_GROUPS].verdict = WG_UNTESTED;
        snprintf(f[WG_CHECK_GROUPS].what, sizeof f->what,
                 "numbers of siblings are not declared (wg_tree_group): rules that weigh siblings jointly refuse these drafts");
    }
    if (f[WG_CHECK_TREES].verdict == WG_FAILS && f[WG_CHECK_OUTPUT].verdict == WG_HOLDS) {
        f[WG_CHECK_OUTPUT].verdict = WG_UNTESTED;
        snprintf(f[WG_CHECK_OUTPUT].what, sizeof f->what, "some texts ended with an error");
    }
    const bool none = w->out->drawn == 0 && f[WG_CHECK_TREES].verdict == WG_HOLDS;
    for (int i = 0; i < WG_DRAFTER_CHECKS && none; i++) f[i].verdict = WG_UNTESTED;
    if (none)
        snprintf(f[WG_CHECK_DRAWS].what, sizeof f->what,
                 "it drafted nothing, or siblings of law coupled, so nothing is proved");
}

wg_status wg_prove_drafter(const wg_prove_drafter_options *o, wg_prove_drafter_result *out, wg_error *err)
{
    const wg_sampling sampling = WG_SAMPLING(1, 0, 1, 0);
    *out = (wg_prove_drafter_result){ 0 };
    if (o->vocab < 2 || o->vocab > WG_DRAFT_LAW_VOCAB || o->length < 1 || o->length > WG_LAW_LENGTH || o->cases < 1 ||
        2 + o->cases + o->length > CONTEXT / 2)
        return wg_fail(err, WG_EINVAL, "prove: %d tokens, texts of %d, %d prompts; expected 2..%d, 1..%d, 1..%d", o->vocab,
                       o->length, o->cases, (int)WG_DRAFT_LAW_VOCAB, (int)WG_LAW_LENGTH, CONTEXT / 2 - 2 - o->length);
    watch *w = wg_calloc(1, sizeof *w);
    if (!w) return wg_nomem(err, sizeof *w, "a proof");
    *w = (watch){ .o = o, .out = out };
    w->class = (wg_drafter_class){ .name = o->drafter->name,
                                   .doc = o->drafter->doc,
                                   .size = sizeof(watcher),
                                   .laws = wg_drafter_laws(o->drafter, o->drafter_options, &sampling),
                                   .open = watcher_open,
                                   .propose = watcher_propose,
                                   .observe = watcher_observe,
                                   .forget = watcher_forget,
                                   .close = watcher_close };
    w->drafts = wg_calloc(WG_LAW_LENGTH, sizeof *w->drafts);
    wg_status s = w->drafts ? choose_rule(w, err) : wg_nomem(err, WG_LAW_LENGTH * sizeof *w->drafts, "laws of drafts");
    for (int i = 0; w->drafts && i < WG_LAW_LENGTH; i++) w->drafts[i].vocab = o->vocab;
    if (!s) s = wg_pool_open(&w->pool, 1, err);
    if (!s) s = wg_lm_table_open(&w->target, o->vocab, 2, o->seed, 1.2, CONTEXT, err);
    wg_engine *e = NULL;
    if (!s) s = open_engine(w, &w->class, w->rule, 2, &e, err); /* an error of opening is returned to the caller */
    wg_engine_close(e);
    if (!s) compare_drafts(w);
    if (!s) s = enumerate_all(w, err);
    if (!s) describe(w);
    for (int i = 0; w->drafts && i < WG_LAW_LENGTH; i++) wg_draft_law_close(&w->drafts[i]);
    wg_free(w->drafts);
    wg_lm_table_close(w->target);
    wg_pool_close(w->pool);
    wg_free(w);
    return s;
}
