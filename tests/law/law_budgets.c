/* SPDX-License-Identifier: MIT
 * Draft lengths that others decide: the limits that requests carry, and those that the scheduler plans from what rules have
 * accepted before (cost_model.h). Two requests run in one scheduler, with every random decision of both enumerated, drafts
 * included. The joint law of their texts must be the product of the target's two laws (to 1e-12): so each text has the target's
 * law, whatever became of the other, and lengths tell nothing about the draws that they are judged by (methods.md, L3).
 *
 * Production's lengths are one choice among many. A drafter that limits itself by all that has been drawn so far, before it
 * draws, stands for the others. The same drafter, limiting itself after it has drawn, is the mistake that the test must find.
 * So are two requests that draw at the same addresses: planned lengths have seen such draws where the other one was ahead. */
#include "core/sched/sched_impl.h"
#include "tests/law/blind_drafter.h"

enum { V = 3, WHO = 2, PROMPT = 6, LONGEST = 3, PASSES = 8, TABLES = 3, RUNS = 1000000 };
static const int32_t prompts[WHO][PROMPT] = { { 1, 2, 0, 1, 2, 0 }, { 2, 2, 0, 1, 0, 1 } };
static int failures;

/* ---- the drafter: that of blind_drafter.h, as a chain too, with limits of its own */

typedef enum moment { NEVER, BEFORE, AFTER } moment;
static struct {
    moment limits;
    bool chain;
    wg_chance_tree *tree;
} bettor;

/* 0, 1 or 2 levels of draft tokens, by a digest of all outcomes so far, of both requests. */
static void limit(wg_seq *s) { s->levels_end = 1 + (int)((wg_chance_tree_past(bettor.tree) >> 17) % 3); }

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    (void)d, (void)err;
    for (int i = 0; i < n; i++) {
        if (bettor.limits == BEFORE) limit(seq[i]);
        const int room = wg_seq_room(seq[i]), width = bettor.chain ? 1 : 2;
        wg_tree_reset(&out[i], seq[i]->token[seq[i]->n - 1], blind_law);
        if (room > 0) blind_grow(seq[i], &out[i], 0, width, q);
        for (int node = 1; node <= width && room > 1; node++) blind_grow(seq[i], &out[i], node, 1, q);
        if (bettor.limits == AFTER) limit(seq[i]); /* the engine cuts the tree */
    }
    return WG_OK;
}

/* ---- lengths */

/* Costs of passes over 1, 2, ... rows: a line on which acceptance decides, stairs, and passes of one price. */
static const double passes[TABLES][PASSES] = { { 1, 1.35, 1.7, 2.05, 2.4, 2.75, 3.1, 3.45 },
                                               { 1, 1, 1.2, 1.2, 2.3, 2.3, 2.3, 4 },
                                               { 1, 1, 1, 1, 1, 1, 1, 1 } };

typedef struct way {
    const char *name;
    moment limits;
    int table;                    /* of passes; -1: lengths are not planned */
    int most[WHO], no_draft[WHO]; /* what the requests ask for */
    bool shared, learns;          /* one seed and number for both; the drafter says that it learns from other requests */
    bool varies;                  /* drafts of the same request must have had several lengths */
} way;

static const way ways[] = {
    { "limits of the requests' own", .table = -1, .most = { 1, 2 }, .varies = true },
    { "one request without drafts", .table = -1, .no_draft = { 0, 1 }, .varies = true },
    { "planned by a line", .varies = true },
    { "planned by stairs", .table = 1, .varies = true },
    { "planned, and a limit of its own", .table = 2, .most = { 1, 0 } },
    { "planned, with one seed and number", .shared = true, .varies = true },
    { "learnt, with one seed and number", .table = -1, .shared = true, .learns = true },
    { "by all that was drawn before", BEFORE, .table = -1, .varies = true },
};
enum { WAYS = sizeof ways / sizeof *ways };

/* Rules, and drafts that each must take. Trees with drawn siblings have many outcomes: their texts are shorter. */
static const struct kind {
    const char *rule;
    wg_sibling_law law;
    bool chain, drawn_tree;
} kinds[] = {
    { "match", WG_LAW_FIXED, false, false },
    { "coupled", WG_LAW_FIXED, false, false },
    { "rejection", WG_LAW_FIXED, true, false },
    { "block", WG_LAW_FIXED, true, false },
    { "topk", WG_LAW_FIXED, false, false },
    { "traversal", WG_LAW_FIXED, false, false },
    { "rejection", WG_LAW_IID, true, false },
    { "block", WG_LAW_IID, true, false },
    { "rejection", WG_LAW_IID, false, true },
    { "traversal", WG_LAW_IID, false, true },
    { "optimal", WG_LAW_IID, false, true },
    { "without_replacement", WG_LAW_WITHOUT_REPLACEMENT, false, true },
    { "paired", WG_LAW_WITHOUT_REPLACEMENT, false, true },
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- two requests in a scheduler */

typedef struct world {
    const way *way;
    const char *rule;
    int length[WHO], late; /* late: the step at which the second request comes */
    wg_engine *engine;
    wg_sched *sched;
    wg_chance_tree *tree;
    int32_t text[WHO][LONGEST];
    int n[WHO];
    unsigned nodes; /* of drafts, where more than one token was wanted: bit n for n draft tokens */
    long runs, drafted, accepted;
} world;

typedef struct listener {
    world *w;
    int who;
} listener;

static void on_event(void *user, const wg_sched_event *e)
{
    const listener *to = user;
    world *w = to->w;
    if (e->kind == WG_SCHED_FAILED) exit((fprintf(stderr, "FAILED: %s\n", e->why->text), 1));
    for (int i = 0; e->kind == WG_SCHED_STARTED && i < w->sched->n; i++) { /* its draws are enumerated, at their addresses */
        if (w->sched->live[i]->id != e->id) continue;
        wg_chance *c = &w->sched->live[i]->seq->chance, own = wg_chance_tree_chance(w->tree, c->position);
        own.seed = c->seed;
        own.request = c->request;
        *c = own;
    }
    if (e->kind != WG_SCHED_ROUND) return;
    if (w->length[to->who] - w->n[to->who] > 1) w->nodes |= 1u << e->nodes;
    memcpy(w->text[to->who] + w->n[to->who], e->token, (size_t)e->n * sizeof *e->token);
    w->n[to->who] += e->n;
}

static double no_time(void) { return 0; }

static void submit(world *w, const listener *to)
{
    wg_error err;
    const int who = to->who;
    const wg_sched_request r = { .token = prompts[who],
                                 .n = PROMPT,
                                 .max_new = w->length[who],
                                 .seed = 5,
                                 .number = w->way->shared ? 9 : (uint32_t)who,
                                 .draft_most = w->way->most[who],
                                 .no_draft = w->way->no_draft[who],
                                 .on_event = on_event,
                                 .user = (void *)(uintptr_t)to };
    LAW_TRY(wg_sched_submit(w->sched, &r, NULL, &err));
}

/* Both texts under one choice of outcomes. */
static void run_once(world *w)
{
    wg_error err;
    wg_sched_stats stats;
    const listener to[WHO] = { { w, 0 }, { w, 1 } };
    wg_cost_prices costs = { .rows = PASSES };
    memcpy(costs.pass + 1, passes[w->way->table > 0 ? w->way->table : 0], sizeof passes[0]);
    const wg_sched_options o = { .costs = w->way->table < 0 ? NULL : &costs, .depth = 2, .now = no_time };
    LAW_TRY(wg_sched_open(&w->sched, w->engine, &o, &err));
    memset(w->n, 0, sizeof w->n);
    submit(w, &to[0]);
    for (int step = 0, left = 1; left > 0 || step <= w->late; step++) {
        if (step == w->late) submit(w, &to[1]);
        left = wg_sched_step(w->sched);
    }
    wg_sched_stats_read(w->sched, &stats);
    w->drafted += stats.counts.drafted;
    w->accepted += stats.counts.accepted;
    w->runs++;
    wg_sched_close(w->sched);
}

/* ---- laws */

/* The product of the two laws: texts of the second request behind those of the first. */
static void want(const world *w, exact_target *t, wg_text_laws *l, int at, int who, int32_t *text, int n, double probability)
{
    double p[EXACT_VOCAB];
    const exact_run as = { .setup = { .sampling = WG_SAMPLING(1, 0, 1, 0) } };
    if (who < WHO && n == PROMPT + w->length[who]) {
        int32_t next[PROMPT + LONGEST];
        if (who + 1 < WHO) memcpy(next, prompts[who + 1], sizeof prompts[0]);
        want(w, t, l, at, who + 1, next, PROMPT, probability);
        return;
    }
    if (who == WHO) {
        l->text[at].want = probability;
        return;
    }
    exact_row(&as, t, text, n, p);
    for (int i = 0; i < V; i++) {
        text[n] = i;
        want(w, t, l, exact_child(l, at, i), who, text, n + 1, probability * p[i]);
    }
}

static int joint(const world *w, wg_text_laws *l)
{
    int at = 0;
    for (int who = 0; who < WHO; who++)
        for (int i = 0; i < w->n[who]; i++) at = exact_child(l, at, w->text[who][i]);
    return at;
}

static struct {
    int laws;
    long runs, drafted, accepted;
    double worst;
    unsigned nodes[WAYS];
} all;

/* The deviation of the joint law; *reused: addresses that were asked twice. */
static double deviation(world *w, exact_target *t, long *reused)
{
    static wg_text_laws laws;
    wg_error err;
    wg_chance_tree tree;
    int32_t text[PROMPT + LONGEST];
    const wg_drafter_class class = {
        .name = "bettor", .size = sizeof(wg_drafter), .laws = blind_law, .propose = propose, .cross_request = w->way->learns
    };
    const law_setup setup = { .target = &t->m,
                              .drafter_class = &class,
                              .rule = w->rule,
                              .sampling = WG_SAMPLING(1, 0, 1, 0),
                              .batch = WHO,
                              .ride_rows = 2 * PROMPT };
    if (!laws.text) LAW_TRY(wg_text_laws_open(&laws, EXACT_TEXTS, &err));
    wg_text_laws_clear(&laws);
    memcpy(text, prompts[0], sizeof prompts[0]);
    want(w, t, &laws, 0, 0, text, PROMPT, 1);
    w->engine = law_engine(&setup);
    LAW_TRY(wg_chance_tree_open(&tree, &err));
    w->tree = bettor.tree = &tree;
    bettor.limits = w->way->limits;
    do {
        run_once(w);
        laws.text[joint(w, &laws)].got += wg_chance_tree_probability(&tree);
    } while (w->runs < RUNS && wg_chance_tree_next(&tree));
    if (tree.failed || tree.beyond || w->runs == RUNS) exit((fprintf(stderr, "FAILED: not all outcomes\n"), 1));
    *reused = wg_chance_tree_reused(&tree);
    wg_chance_tree_close(&tree);
    wg_engine_close(w->engine);
    return wg_text_laws_deviation(&laws);
}

/* The texts' lengths and when the second request comes change with `number`. */
static double judge(const struct kind *k, const way *how, int number, exact_target *t, long *reused)
{
    const int longer = k->drawn_tree ? 2 : 3;
    world w = {
        .way = how, .rule = k->rule, .length = { number % 2 ? 2 : longer, number % 2 ? longer : 2 }, .late = number % 3
    };
    blind_law = k->law;
    bettor.chain = k->chain;
    const double off = deviation(&w, t, reused);
    all.laws++;
    all.runs += w.runs, all.drafted += w.drafted, all.accepted += w.accepted;
    if (how >= ways && how < ways + WAYS) all.nodes[how - ways] |= w.nodes;
    return off;
}

static void check(const struct kind *k, const way *how, int number, exact_target *t)
{
    long reused;
    const double off = judge(k, how, number, t, &reused);
    all.worst = fmax(all.worst, off);
    if (off <= 1e-12 && reused == 0) return;
    fprintf(stderr, "FAILED %s, drafts %s%s, rule %s: the law is off by %g; %ld addresses asked twice\n", how->name,
            wg_law_name(k->law), k->chain ? " in chains" : "", k->rule, off, reused);
    failures++;
}

/* Lengths that have seen what they are about: found under rules that draw, and without effect under those that compare. */
static void controls(exact_target *t)
{
    static const way looks = { "by the draft itself", AFTER, .table = -1 };
    static const struct kind seen[] = { { "rejection", WG_LAW_IID, true, false },
                                        { "block", WG_LAW_IID, true, false },
                                        { "match", WG_LAW_IID, true, false } };
    for (int i = 0; i < 3; i++) {
        long reused;
        const double off = judge(&seen[i], &looks, 0, t, &reused);
        const bool right = i < 2 ? off >= 1e-3 : off <= 1e-12;
        printf("lengths %s, rule %s: off by %.2g\n", looks.name, seen[i].rule, off);
        if (right && reused == 0) continue;
        fprintf(stderr, "FAILED: lengths %s, rule %s: the law is off by %g; expected %s\n", looks.name, seen[i].rule, off,
                i < 2 ? "0.001 or more" : "1e-12 at most");
        failures++;
    }
}

int main(void)
{
    exact_target t;
    const double start = wg_clock_now();
    exact_table(&t, V, 3, 17, 1.2);
    for (int k = 0, number = 0; k < KINDS; k++)
        for (int i = 0; i < WAYS; i++, number++) {
            const bool compares = !strcmp(kinds[k].rule, "match") || !strcmp(kinds[k].rule, "coupled");
            if (compares && ways[i].shared) continue; /* two texts of one seed are one text, as they should be */
            check(&kinds[k], &ways[i], number, &t);
        }
    controls(&t);
    exact_target_close(&t);
    for (int i = 0; i < WAYS; i++) {
        const unsigned h = all.nodes[i];
        if (!ways[i].varies || (h & (h - 1))) continue;
        fprintf(stderr, "FAILED %s: all drafts were of one length (%#x)\n", ways[i].name, h);
        failures++;
    }
    printf("%d laws, %ld enumerated runs, %ld drafted, %ld accepted; largest deviation %.2g; %.1f s\n", all.laws, all.runs,
           all.drafted, all.accepted, all.worst, wg_clock_now() - start);
    return failures != 0;
}
