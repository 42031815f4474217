/* SPDX-License-Identifier: MIT
 * The scheduler's law: a request's tokens depend on the request alone. Random requests, many of which begin alike, are put
 * through schedulers in random schedules: modes, batches, caches that are too small, chunks of prompts, prefix caches,
 * priorities, cancellations, deadlines, samplings of their own; with every drafter. Under the rules that repeat plain decoding
 * each text must be plain decoding's, byte by byte; under all rules it must be the text that the request has by itself, with
 * the same passes, drafts and accepted tokens: so a hit of the prefix cache and a preemption leave the drafter as a prefill
 * does. A text that was cut is the beginning of the whole one. No page is lost.
 *
 * usage: law_sched [--worlds N] */
#include "core/sched/sched.h"
#include "tests/law/synth_models.h"

enum { REQUESTS = 12, ROOM = 128, TEXT = 600, ROWS_EACH = 2, BASES = 3, BASE = 44, ALONE_PAGES = 16, RULES = 4 };
#ifdef WG_HARD
enum { PAGE_SHARE = 8 }; /* its pages have two tokens instead of 16 */
#else
enum { PAGE_SHARE = 1 };
#endif

typedef struct asked {
    int32_t prompt[ROOM], stop;
    int n;
    wg_sched_request r;
    wg_sampling own; /* where r.how has it */
    wg_logit_bias bias[2];
    int at, gone; /* the steps at which it is submitted, and cancelled (0: it is not) */
} asked;

typedef struct told {
    int32_t token[ROOM];
    int n, last; /* last: events that end it */
    bool started, failed;
    wg_sched_end end;
    wg_counts counts;
    int cached, preemptions;
    uint64_t id;
} told;

static uint64_t dice = 1;
static int roll(int n)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice >> 33) % (uint64_t)n);
}

static double seconds;
static double now(void) { return seconds += 0.001; }

static void on_event(void *user, const wg_sched_event *e)
{
    told *t = user;
    if (t->last || t->n + e->n > ROOM || (e->kind == WG_SCHED_ROUND && !t->started))
        exit((fprintf(stderr, "FAILED: an event out of order\n"), 1));
    t->started |= e->kind == WG_SCHED_STARTED;
    if (e->kind == WG_SCHED_ROUND) {
        memcpy(t->token + t->n, e->token, (size_t)e->n * sizeof *e->token);
        t->n += e->n;
    }
    t->last += e->kind == WG_SCHED_ENDED || e->kind == WG_SCHED_FAILED;
    if (e->kind == WG_SCHED_FAILED) t->failed = true, fprintf(stderr, "FAILED: %s\n", e->why->text);
    t->end = e->end;
    t->cached = e->cached;
    t->preemptions = e->preemptions;
    if (e->counts) t->counts = *e->counts;
}

/* Prompts that begin as one of a few texts do, and go on in their own way. */
static void make_requests(asked *out, bool hot)
{
    int32_t base[BASES][BASE];
    for (int b = 0; b < BASES; b++)
        for (int k = 0; k < BASE; k++) base[b][k] = 3 + roll(13);
    for (int i = 0; i < REQUESTS; i++) {
        asked *a = &out[i];
        const int b = roll(BASES), own = roll(12);
        *a = (asked){ .stop = 3 + roll(300) };
        a->n = 1 + roll(BASE);
        memcpy(a->prompt, base[b], (size_t)a->n * sizeof *a->prompt);
        for (int k = 0; k < own; k++) a->prompt[a->n++] = 3 + roll(13);
        a->r = (wg_sched_request){ .token = a->prompt,
                                   .n = a->n,
                                   .max_new = 1 + roll(28),
                                   .seed = (uint64_t)roll(3),
                                   .number = (uint32_t)roll(5),
                                   .stop = &a->stop,
                                   .stops = roll(2),
                                   .priority = roll(3),
                                   .ignore_end = roll(4) == 0,
                                   .draft_most = roll(4) ? 0 : 1 + roll(3),
                                   .no_draft = roll(8) == 0,
                                   .on_event = on_event };
        /* Of its own: a chain, colder where the rule is for greedy decoding; biases. */
        a->own = (wg_sampling){ .temperature = hot && roll(4) ? 0.5 + 0.1 * roll(8) : 0,
                                .top_k = roll(3) ? 0 : 1 + roll(30),
                                .top_p = roll(2) ? 1 : 0.8,
                                .presence_penalty = roll(3) ? 0 : 0.5 };
        a->bias[0] = (wg_logit_bias){ 3 + roll(100), (float)(roll(9) - 4) };
        a->bias[1] = (wg_logit_bias){ 110 + roll(100), (float)(roll(9) - 4) };
        if (roll(3) == 0) a->r.how.sampling = &a->own;
        if (roll(4) == 0) a->r.how.bias = a->bias, a->r.how.biases = 2;
        a->r.how.logprobs = roll(5) == 0;
        a->at = roll(40);
        if (roll(4) == 0) a->gone = a->at + 1 + roll(20);
        if (roll(8) == 0) a->r.deadline = 0.001 * (1 + roll(200));
    }
}

static wg_sched *scheduler(wg_engine *e, wg_sched_options o)
{
    wg_error err;
    wg_sched *s;
    o.now = now;
    LAW_TRY(wg_sched_open(&s, e, &o, &err));
    return s;
}

static void put(wg_sched *s, const asked *a, bool whole, told *t)
{
    wg_error err;
    wg_sched_request r = a->r;
    *t = (told){ 0 };
    r.user = t;
    if (whole) r.deadline = 0;
    LAW_TRY(wg_sched_submit(s, &r, &t->id, &err));
}

/* Every request by itself. */
static void each_alone(const law_setup *s, const asked *a, told *out)
{
    wg_engine *e = law_engine(s);
    wg_sched *sched = scheduler(e, (wg_sched_options){ .mode = WG_SCHED_CONTINUOUS });
    for (int i = 0; i < REQUESTS; i++) {
        put(sched, &a[i], true, &out[i]);
        while (wg_sched_step(sched)) continue;
    }
    wg_sched_close(sched);
    wg_engine_close(e);
}

/* A staircase. */
static void make_costs(wg_cost_prices *out)
{
    double at = 1;
    *out = (wg_cost_prices){ .rows = 24 };
    for (int i = 1; i <= 24; i++) out->pass[i] = at += roll(4) ? 0 : 0.2 * roll(9);
    out->level[0] = 0.02 * roll(20);
}

/* All of them in one random schedule. Returns the number of lost pages. planned: the depths of drafts are. */
static int together(const law_setup *s, const asked *a, bool planned, told *out, wg_sched_stats *stats)
{
    wg_cost_prices costs;
    make_costs(&costs);
    wg_error err;
    wg_engine *e = law_engine(s);
    const int most = wg_engine_options_of(e)->prefill_rows, rows = s->ride_rows < most ? s->ride_rows : most;
    wg_sched *sched = scheduler(e, (wg_sched_options){ .mode = (wg_sched_mode)(roll(4) % 3),
                                                       .batch = 1 + roll(s->batch),
                                                       .prefill_rows = 1 + roll(rows),
                                                       .aging = 1 + roll(60),
                                                       .prefix_cache = roll(4) > 0,
                                                       .costs = planned ? &costs : NULL,
                                                       .depth = 1 + roll(WG_TREE_MAX > 8 ? 8 : WG_TREE_MAX - 1),
                                                       .window = 0.001 * roll(30) });
    for (int step = 0, left = 1; left || step <= 60; step++) {
        for (int i = 0; i < REQUESTS; i++) {
            if (a[i].at == step) put(sched, &a[i], false, &out[i]);
            if (a[i].gone == step && a[i].gone) wg_sched_cancel(sched, out[i].id, NULL);
        }
        left = wg_sched_step(sched);
        LAW_TRY(wg_kv_check(wg_engine_kv(e), &err));
        if (step > 20000) exit((fprintf(stderr, "FAILED: a request does not end\n"), 1));
    }
    wg_sched_stats_read(sched, stats);
    wg_sched_close(sched);
    const int lost = wg_kv_pages(wg_engine_kv(e)) - wg_kv_pages_free(wg_engine_kv(e));
    wg_engine_close(e);
    return lost;
}

static bool cut_off(const told *t) { return t->end == WG_SCHED_CANCELLED || t->end == WG_SCHED_DEADLINE; }

/* The same text, or the beginning of it. */
static bool same_text(const told *want, const told *got)
{
    if (got->last != 1 || got->failed || memcmp(want->token, got->token, (size_t)got->n * sizeof *got->token) ||
        got->n > want->n)
        return false;
    return cut_off(got) || (got->n == want->n && got->end == want->end);
}

static bool same_counts(const told *want, const told *got)
{
    const wg_counts *x = &want->counts, *y = &got->counts;
    return cut_off(got) || (x->passes == y->passes && x->drafted == y->drafted && x->accepted == y->accepted &&
                            !memcmp(x->offered_at, y->offered_at, sizeof x->offered_at) &&
                            !memcmp(x->accepted_at, y->accepted_at, sizeof x->accepted_at));
}

static int differ(const char *what, const told *want, const told *got, bool counts)
{
    int bad = 0;
    for (int i = 0; i < REQUESTS; i++) {
        const bool text = same_text(&want[i], &got[i]);
        if (text && (!counts || same_counts(&want[i], &got[i]))) continue;
        if (!bad++)
            fprintf(stderr,
                    "FAILED %s: request %d has another %s: %d tokens (end %d), by itself %d (%d); %ld passes, %ld accepted, by "
                    "itself %ld, %ld; %d tokens from the prefix cache, preempted %d times\n",
                    what, i, text ? "acceptance" : "text", got[i].n, (int)got[i].end, want[i].n, (int)want[i].end,
                    got[i].counts.passes, got[i].counts.accepted, want[i].counts.passes, want[i].counts.accepted, got[i].cached,
                    got[i].preemptions);
    }
    return bad;
}

/* Requests that drafted deeper than they allow. */
static int too_deep(const char *what, const asked *a, const told *got)
{
    int bad = 0;
    for (int i = 0; i < REQUESTS; i++) {
        const int most = a[i].r.no_draft ? 0 : a[i].r.draft_most ? a[i].r.draft_most : WG_TREE_MAX - 1;
        if (most == WG_TREE_MAX - 1 || got[i].counts.offered_at[most + 1] == 0) continue; /* at d: that reached d */
        bad++;
        fprintf(stderr, "FAILED %s: request %d allows drafts of depth %d, and had deeper ones\n", what, i, most);
    }
    return bad;
}

static const wg_verifier_class *rule_named(const char *name)
{
    for (const wg_verifier_class *const *v = wg_verifiers; *v; v++)
        if (!strcmp((*v)->name, name)) return *v;
    exit((fprintf(stderr, "FAILED: no rule %s\n", name), 1));
}

typedef struct sums {
    int settings, failures;
    long tokens, hits, preemptions, cut, plans; /* plans: of no draft */
} sums;

/* One drafter under one rule: against plain decoding, and against itself. */
static void check(const law_setup *s, const law_row *row, const asked *a, const told *plain, int worlds, sums *sum)
{
    static told alone[REQUESTS], got[REQUESTS];
    const bool compares = strcmp(s->rule, "rejection") != 0;
    const bool own = !row->class->cross_request || (compares && row->test->own_request); /* sched_admit.c, number_of */
    const bool by_batch = compares && !strcmp(row->class->name, "auto"); /* where the text does not depend on the drafts, its
                                                                         * choice depends on the batch */
    char what[1200];
    law_setup whole = *s;
    whole.pages = 0;
    each_alone(&whole, a, alone);
    for (int w = 0; w < worlds; w++) {
        wg_sched_stats stats;
        law_setup some = *s;
        some.pages = PAGE_SHARE * (ALONE_PAGES + roll(24));
        snprintf(what, sizeof what, "%s, rule %s, world %d", row->label, s->rule, w);
        const bool planned = compares && w % 3 == 2;
        const int lost = together(&some, a, planned, got, &stats);
        if (lost) sum->failures++, fprintf(stderr, "FAILED %s: %d pages are lost\n", what, lost);
        if (compares) sum->failures += differ(what, plain, got, false);
        if (own) sum->failures += differ(what, alone, got, !by_batch && !planned);
        sum->failures += too_deep(what, a, got);
        sum->plans += stats.undrafted_policy;
        for (int i = 0; i < REQUESTS; i++) sum->tokens += got[i].n, sum->cut += cut_off(&got[i]);
        sum->hits += stats.hits;
        sum->preemptions += stats.preemptions;
        sum->settings++;
    }
}

/* A text twice: the second time target and draft model read neither its prompt nor anything else again. */
static int reads_again(law_setup s, const char *near)
{
    enum { PROMPT = 40 };
    char options[128];
    told t[2];
    asked a = { .n = PROMPT, .r = { .n = PROMPT, .max_new = 20, .seed = 9, .on_event = on_event } };
    long rows[3] = { 0 }, draft_rows[3] = { 0 };
    for (int k = 0; k < PROMPT; k++) a.prompt[k] = 3 + roll(13);
    a.r.token = a.prompt;
    snprintf(options, sizeof options, "model=%.100s,length=3", near);
    s.drafter = "model";
    s.options = options;
    s.pages = 0;
    wg_engine *e = law_engine(&s);
    wg_sched *sched = scheduler(e, (wg_sched_options){ .prefix_cache = true });
    const wg_lm *target = wg_engine_target(e), *draft = wg_drafter_lm(wg_engine_drafter(e));
    const long before = target->rows;
    for (int i = 0; i < 2; i++) {
        put(sched, &a, true, &t[i]);
        while (wg_sched_step(sched)) continue;
        rows[i + 1] = target->rows - before;
        draft_rows[i + 1] = draft->rows;
    }
    wg_sched_close(sched);
    wg_engine_close(e);
    const long spared = 2 * rows[1] - rows[2], draft_spared = 2 * draft_rows[1] - draft_rows[2];
    if (t[1].cached == PROMPT - 1 && spared == t[1].cached && draft_spared >= t[1].cached - 1 && same_text(&t[0], &t[1]) &&
        same_counts(&t[0], &t[1]))
        return 0;
    fprintf(stderr,
            "FAILED: a text a second time: %d tokens of its prompt were cached, %ld rows of the target spared, %ld of the "
            "draft model\n",
            t[1].cached, spared, draft_spared);
    return 1;
}

int main(int argc, char **argv)
{
    static law_row rows[LAW_ROWS];
    static asked a[REQUESTS];
    static told plain[REQUESTS];
    static const char *const rules[RULES] = { "greedy", "match", "coupled", "rejection" };
    const wg_sampling samplings[RULES] = { WG_SAMPLING(0, 0, 1, 0),
                                           { .temperature = 0.8, .top_k = 40, .top_p = 0.95, .repetition_penalty = 1.2 },
                                           WG_SAMPLING(0.8, 0, 1, 0),
                                           WG_SAMPLING(0.7, 0, 0.95, 0) };
    const int worlds = argc > 2 && !strcmp(argv[1], "--worlds") ? atoi(argv[2]) : 3;
    law_model target;
    sums sum = { 0 };
    int32_t text[TEXT];
    law_models_text(text, TEXT);
    const law_files files = law_models_write((wg_synth_shape){
        .name = "target", .layers = 2, .dim = 32, .heads = 2, .kv_heads = 2, .hidden = 48, .vocab = 320, .context = 128 });
    const int n_rows = law_rows(&files, ROWS_EACH, rows, &sum.failures);
    law_model_open(&target, files.target, 1, wg_cpu_chosen(), WG_F16);
    law_models_lists(target.tokenizer, text, TEXT);
    for (int r = 0; r < RULES; r++) {
        law_setup s = { .target = &target,
                        .drafter = "none",
                        .rule = rules[r],
                        .sampling = samplings[r],
                        .batch = 4,
                        .places = 8,
                        .page_slots = 8,
                        .ride_rows = 24 };
        make_requests(a, r > 0);
        each_alone(&s, a, plain);
        for (int d = 0; d < n_rows; d++) {
            s.drafter = rows[d].class->name;
            s.options = rows[d].options;
            if (law_legal(s.drafter, s.options, &s.sampling, rule_named(s.rule))) check(&s, &rows[d], a, plain, worlds, &sum);
        }
    }
    sum.failures += reads_again(
        (law_setup){ .target = &target, .rule = "match", .sampling = samplings[2], .batch = 2, .ride_rows = 16 }, files.near);
    law_model_close(&target);
    printf("%d schedules, %ld tokens, %ld hits of the prefix cache, %ld preemptions, %ld requests cut, %ld steps planned "
           "without a "
           "draft: %d differ from the request by itself\n",
           sum.settings, sum.tokens, sum.hits, sum.preemptions, sum.cut, sum.plans, sum.failures);
    return sum.failures != 0 || sum.hits == 0 || sum.preemptions == 0 || sum.cut == 0 || sum.plans == 0;
}
