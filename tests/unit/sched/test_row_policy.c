/* SPDX-License-Identifier: MIT
 * Draft lengths that follow what was accepted and what steps took: what they may depend on, when drafts begin and end, what
 * trials cost, and a simulated server whose best fixed length they must match. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/sched/row_policy.h"
#include "core/sched/row_trial.h"
#include "kernels/philox.h"

static uint32_t drawn;
static double uniform(void)
{
    const wg_philox r = wg_philox_at(11, drawn++, 0, 0, 0);
    return wg_philox_double(r.v[0], r.v[1]);
}

enum { SLOTS = 8, LEVELS = 6, TABLE = 160 };

static wg_row_policy *policy(double per_row)
{
    static double pass[TABLE];
    wg_row_policy *p;
    wg_error err;
    for (int i = 0; i < TABLE; i++) pass[i] = 1 + per_row * i;
    const wg_row_costs costs = { .pass = pass, .rows = TABLE, .level = 0.05, .width = 1 };
    cr_assert_eq(wg_row_policy_open(&p, SLOTS, LEVELS, &costs, &err), WG_OK);
    return p;
}

static int plan_of(wg_row_policy *p, int n, int *length)
{
    int slot[SLOTS], most[SLOTS], missed[SLOTS] = { 0 }, sum = 0;
    for (int i = 0; i < n; i++) slot[i] = i, most[i] = LEVELS;
    wg_row_policy_plan(p, slot, most, missed, n, 0, length);
    for (int i = 0; i < n; i++) sum += length[i];
    return sum;
}

/* Rounds at true rates: how many draft tokens of `offered` are accepted. */
static int accept(double rate, int offered)
{
    int k = 0;
    while (k < offered && uniform() < rate) k++;
    return k;
}

Test(row_policy, learns_rates_by_depth_and_by_sequence)
{
    wg_row_policy *p = policy(0);
    double s[LEVELS];
    for (int round = 0; round < 3000; round++)
        for (int slot = 0; slot < 2; slot++) wg_row_policy_learn(p, slot, 4, 4, accept(slot ? 0.9 : 0.4, 4));
    wg_row_policy_survival(p, 0, s);
    cr_assert_float_eq(s[0], 0.4, 0.15, "%g", s[0]);
    cr_assert(s[1] < 0.3 && s[3] < 0.1);
    wg_row_policy_survival(p, 1, s);
    cr_assert_float_eq(s[0], 0.9, 0.15, "%g", s[0]);
    cr_assert(s[3] > 0.4);
    wg_row_policy_forget(p, 0);
    wg_row_policy_survival(p, 0, s);
    cr_assert_float_eq(s[0], 0.65, 0.1, "a new request has the common rate: %g", s[0]);
    for (int j = 1; j < LEVELS; j++) cr_assert(s[j] <= s[j - 1]);
    wg_row_policy_close(p);
}

Test(row_policy, drafts_less_where_rows_cost_more)
{
    int length[SLOTS], last = SLOTS * LEVELS + 1;
    static const double per_row[] = { 0, 0.02, 0.1, 1 };
    for (int k = 0; k < 4; k++) {
        wg_row_policy *p = policy(per_row[k]);
        for (int round = 0; round < 200; round++)
            for (int slot = 0; slot < SLOTS; slot++) wg_row_policy_learn(p, slot, 4, 4, accept(0.8, 4));
        const int sum = plan_of(p, SLOTS, length);
        cr_assert(sum <= last, "%d tokens at %g a row, %d at less", sum, per_row[k], last);
        last = sum;
        wg_row_policy_close(p);
    }
    cr_assert_eq(last, 0, "a row that costs a pass pays for no draft token");
}

/* Without a draft nothing is learned: now and then WG_ROW_TRIAL_DRAFTS steps in a row draft; and drafts come back. */
Test(row_policy, comes_back_when_drafts_get_better)
{
    enum { STEPS = 20000 };
    wg_row_policy *p = policy(0.3);
    int length[SLOTS], drafted = 0, run = 0;
    for (int round = 0; round < 400; round++) wg_row_policy_learn(p, round % SLOTS, 3, 3, 0);
    for (int step = 0; step < STEPS; step++) {
        const int sum = plan_of(p, SLOTS, length);
        cr_assert(sum <= 1, "more than one token that is never accepted");
        cr_assert(sum == (step % WG_ROW_BETWEEN == WG_ROW_BETWEEN - 1) || step != WG_ROW_BETWEEN - 1, "the first trial");
        cr_assert(sum > 0 || run == 0 || run == WG_ROW_TRIAL_DRAFTS, "a trial of %d steps", run);
        run = sum > 0 ? run + 1 : 0;
        drafted += sum;
    }
    /* Each costs 0.35 of the 3.1 of a plain step, and trials a two-hundredth of all steps, beyond four. */
    cr_assert_float_eq(drafted * 0.35 / 3.1, 4 + 0.005 * STEPS, 0.1 * 0.005 * STEPS, "%d steps of trials", drafted);
    int back = 0;
    for (int step = 0; step < 8000 && !back; step++) {
        const int sum = plan_of(p, SLOTS, length);
        for (int i = 0; i < SLOTS; i++)
            if (length[i]) wg_row_policy_learn(p, i, length[i], length[i], length[i]);
        back = sum > SLOTS;
    }
    cr_assert(back, "drafts that are always accepted are never drafted again");
    wg_row_policy_close(p);
}

/* Texts of which a draft model has read nothing for long do not draft; that is no reason for those that begin now not to. */
Test(row_policy, begins_with_new_texts)
{
    static const int slot[] = { 0, 1, 2 }, most[] = { 3, 3, 3 }, none[] = { 0, 0, 0 }, old[] = { 400, 400, 400 },
                     some[] = { 400, 0, 0 };
    static const double pass[] = { 1, 1, 1, 1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8 };
    const wg_row_costs costs = { .pass = pass, .rows = 12, .level = 0.02, .token = 0.02, .width = 1 };
    wg_row_policy *p;
    wg_error err;
    int length[3];
    cr_assert_eq(wg_row_policy_open(&p, 3, 3, &costs, &err), WG_OK);
    wg_row_policy_plan(p, slot, most, none, 3, 100, length); /* texts begin, beside a prompt that decides nothing */
    for (int i = 0; i < 4; i++) wg_row_policy_plan(p, slot, most, old, 3, 0, length);
    cr_assert_eq(length[0] + length[1] + length[2], 0);
    for (int i = 0; i < 56; i++) wg_row_policy_plan(p, slot, most, some, 3, 0, length); /* less than a trial waits */
    cr_assert(length[0] == 0 && length[1] > 0 && length[2] > 0, "%d %d %d", length[0], length[1], length[2]);
    wg_row_policy_close(p);
}

/* What was missed while nothing was drafted must be earned before drafts begin, and is no reason to end them. */
Test(row_policy, begins_when_what_was_missed_is_earned)
{
    static const int slot[] = { 0, 1 }, most[] = { 1, 1 }, none[] = { 0, 0 };
    static const double pass[] = { 1, 1, 1.1, 1.2 };
    static const wg_row_costs costs = { .pass = pass, .rows = 4, .level = 0.15, .token = 0.025, .width = 1 };
    const double gain = 2 * (1.7 / 1.4 - 1), one = 0.025 / WG_ROW_HORIZON; /* of 2 tokens; a token that was missed, of a pass */
    for (int much = 0; much < 2; much++) {
        const int each = (int)((much ? 1.2 : 0.6) * gain / one / 2 / 2), missed[] = { each, each };
        wg_row_policy *p;
        wg_error err;
        int length[2];
        cr_assert_eq(wg_row_policy_open(&p, 2, 1, &costs, &err), WG_OK);
        wg_row_policy_plan(p, slot, most, none, 2, 100, length); /* texts begin */
        for (int i = 0; i < 40; i++) wg_row_policy_plan(p, slot, most, missed, 2, 0, length);
        cr_assert_eq(length[0] + length[1], much ? 0 : 2, "%d missed", each);
        for (int i = 0; i < 60; i++) wg_row_policy_plan(p, slot, most, none, 2, 0, length);
        cr_assert_eq(length[0] + length[1], 2);
        for (int i = 0; i < 60; i++) wg_row_policy_plan(p, slot, most, (int[]){ 1000, 0 }, 2, 0, length);
        cr_assert(length[0] == 0 && length[1] == 1, "one that has missed much waits, and the other does not");
        wg_row_policy_close(p);
    }
}

/* Every text brings a prompt, which a draft model must read too: where texts are short that is more than drafts save. */
Test(row_policy, counts_the_prompts_that_drafts_read)
{
    static const int slot[] = { 0 }, most[] = { 1 };
    static const double pass[] = { 1, 1.2 };
    const wg_row_costs costs = { .pass = pass, .rows = 2, .token = 0.1, .width = 1 };
    for (int tokens = 30; tokens <= 300; tokens += 270) { /* a prompt takes 10, and drafts save 0.23 of each token's 1 */
        wg_row_policy *p;
        wg_error err;
        int length, drafts = 0, steps = 0;
        cr_assert_eq(wg_row_policy_open(&p, 1, 1, &costs, &err), WG_OK);
        for (int text = 0; text < 60; text++) {
            int missed = 100;
            for (int told = 0; told < tokens; told += 1 + length) {
                wg_row_policy_plan(p, slot, most, &missed, 1, 0, &length);
                wg_row_policy_learn(p, 0, length, length, length && steps % 10 < 7);
                missed = length ? 0 : missed + 1;
                drafts += length;
                steps++;
            }
            wg_row_policy_forget(p, 0);
        }
        cr_assert(tokens == 30 ? drafts < steps / 5 : drafts > steps / 2, "texts of %d: %d drafts in %d steps", tokens, drafts,
                  steps);
        wg_row_policy_close(p);
    }
}

/* Rows of a prompt fill a pass, and further ones are free there: no reason to begin drafts, nor to give them up. */
Test(row_policy, a_prompt_changes_nothing)
{
    static const double dear[] = { 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 8 },
                        cheap[] = { 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8 };
    static const int slot[] = { 0, 1 }, most[] = { 3, 3 }, missed[] = { 0, 0 };
    for (int drafts = 0; drafts < 2; drafts++) {
        const wg_row_costs costs = { .pass = drafts ? cheap : dear, .rows = 12, .level = 0.01, .width = 1 };
        wg_row_policy *p;
        wg_error err;
        int length[2];
        cr_assert_eq(wg_row_policy_open(&p, 2, 3, &costs, &err), WG_OK);
        for (int i = 0; i < 20; i++) wg_row_policy_plan(p, slot, most, missed, 2, 0, length);
        cr_assert_eq(length[0] + length[1] > 0, drafts);
        for (int i = 0; i < 20; i++) wg_row_policy_plan(p, slot, most, missed, 2, drafts ? 6 : 8, length);
        cr_assert_eq(length[0] + length[1] > 0, drafts, "beside a prompt");
        wg_row_policy_plan(p, slot, most, missed, 2, 0, length);
        cr_assert_eq(length[0] + length[1] > 0, drafts, "after it");
        wg_row_policy_close(p);
    }
}

/* Where costs are given and stay, plain steps would tell nothing: there is no trial of them. */
Test(row_policy, tries_plain_decoding_only_where_steps_are_timed)
{
    for (int timed = 0; timed < 2; timed++) {
        wg_row_policy *p = policy(0.02);
        int length[SLOTS], plain = 0;
        for (int step = 0; step < 20000; step++) {
            plain += plan_of(p, SLOTS, length) == 0;
            for (int i = 0; i < SLOTS; i++) wg_row_policy_learn(p, i, length[i], length[i], length[i]);
            if (timed) wg_row_policy_time(p, &(wg_row_step){ .rows = SLOTS, .pass = 1 + 0.02 * (SLOTS - 1) });
        }
        cr_assert(timed ? plain > 0 && plain % WG_ROW_TRIAL_PLAIN == 0 && plain < 200 : plain == 0, "%d plain steps", plain);
        wg_row_policy_close(p);
    }
}

/* A pass over three rows is as cheap as one over two, and the table says that it is not: a length that would never be drafted
 * by its price is tried, and then kept. */
Test(row_policy, finds_out_about_sizes_that_only_seem_dear)
{
    static const double pass[] = { 1, 1.02, 1.6 };
    static const int slot[] = { 0 }, most[] = { 2 }, missed[] = { 0 };
    const wg_row_costs costs = { .pass = pass, .rows = 3, .level = 0.01, .width = 1 };
    wg_row_policy *p;
    wg_error err;
    int length, first = 0, longer = 0;
    cr_assert_eq(wg_row_policy_open(&p, 1, 2, &costs, &err), WG_OK);
    for (int step = 0; step < 2000; step++) {
        wg_row_policy_plan(p, slot, most, missed, 1, 0, &length);
        wg_row_policy_learn(p, 0, length, length, length ? accept(0.9, length) : 0);
        wg_row_policy_time(
            p, &(wg_row_step){
                   .rows = 1 + length, .drafted = length, .depth = length, .draft = 0.01 * length, .pass = length ? 1.02 : 1 });
        first += step < 10 ? length == 1 ? 1 : -10 * (length > 1) : 0;
        longer += step >= 1000 && length > 1;
    }
    cr_assert(first > 0, "the case tests nothing: the first drafts are long");
    cr_assert(longer > 800, "%d of a thousand drafts are longer than a token", longer);
    wg_row_policy_close(p);
}

/* A trial that must read first waits until it costs a two-hundredth of the steps without drafts; it is made where it reads
 * least. */
Test(row_policy, tries_drafts_where_and_when_they_cost_little)
{
    static const double pass[] = { 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5 };
    static const int slot[] = { 0, 1, 2 }, most[] = { 4, 4, 4 }, missed[] = { 400, 300, 500 };
    const wg_row_costs costs = { .pass = pass, .rows = 8, .level = 0.1, .token = 0.2, .rest = 0.05, .width = 1 };
    const double of_plain = (300 * 0.2 / WG_ROW_HORIZON + 0.1 + 0.2 + 0.5) / (2 + 0.05);
    const int due = (int)ceil((WG_ROW_TRIAL_DRAFTS * of_plain - 4) / 0.005);
    wg_row_policy *p;
    wg_error err;
    int length[3], step = 0;
    cr_assert_eq(wg_row_policy_open(&p, 3, 4, &costs, &err), WG_OK);
    for (int round = 0; round < 400; round++) wg_row_policy_learn(p, round % 3, 3, 3, 0);
    do wg_row_policy_plan(p, slot, most, missed, 3, 0, length), step++;
    while (length[0] + length[1] + length[2] == 0 && step < 2 * due);
    cr_assert(abs(step - due) <= due / 50 && length[1] > 0 && length[0] + length[2] == 0, "step %d of %d: %d %d %d", step, due,
              length[0], length[1], length[2]);
    for (int i = 1; i < WG_ROW_TRIAL_DRAFTS; i++) {
        wg_row_policy_plan(p, slot, most, missed, 3, 0, length);
        cr_assert(length[1] > 0 && length[0] + length[2] == 0, "step %d of the trial: %d %d %d", i, length[0], length[1],
                  length[2]);
    }
    wg_row_policy_close(p);
}

/* ---- a server */

enum { CLIENTS = 16, TOKENS = 96, STEPS = 4000 };

/* A server that always has so many clients. A text has a prompt of 12 to 41 tokens, which its first step reads, and TOKENS
 * tokens; how well drafts of it are accepted differs by text. The machine is shared: its speed wanders up to a factor of 1.6,
 * the first plain passes after drafts take longer, and plain decoding is better or worse beside drafts for some thousand
 * tokens at a time. All that is random follows from the numbers of texts, tokens and steps, so servers can be compared. */
typedef struct server {
    double base, row, token, level; /* ms: of a pass, of a row of it (of rows from 17 on, three quarters), of drafts */
    double accepted;                /* the mean rate at which draft tokens are accepted */
    int clients;
    double wander, tilt;  /* logs of its slowness, and of that of plain passes besides */
    int plain, texts;     /* plain steps in a row; texts so far */
    double spent, tokens; /* ms, without the wandering */
    struct text {
        int prompt, told, missed; /* prompt: 0 once it is read. missed: by the draft model */
        double rate;
    } text[CLIENTS];
} server;

static double normal(void) { return sqrt(-2 * log(uniform() + 1e-12)) * cos(6.283185307179586 * uniform()); }

static double pass_of(const server *s, int rows)
{
    const int first = rows < 16 ? rows : 16;
    return s->base + s->row * (first + 0.75 * (rows - first));
}

static void begin(server *s, struct text *t)
{
    const uint32_t back = drawn;
    drawn = 1u << 30 | (uint32_t)s->texts++ << 3;
    *t = (struct text){ .prompt = 12 + (int)(30 * uniform()) };
    t->missed = t->prompt;
    t->rate = fmax(0.2, fmin(0.97, s->accepted + 0.15 * normal()));
    drawn = back;
}

/* A step; tells the policy of it, where there is one. length: of every client. */
static void serve(server *s, wg_row_policy *p, const int *length)
{
    wg_row_step step = { .rest = 0.02 };
    int kept[CLIENTS] = { 0 };
    for (int i = 0; i < s->clients; i++) {
        struct text *t = &s->text[i];
        step.rows += t->prompt ? t->prompt : 1 + length[i];
        step.prompt += t->prompt;
        if (t->prompt || length[i] == 0) continue;
        kept[i] = accept(t->rate, length[i]);
        step.drafted += length[i];
        step.depth = length[i] > step.depth ? length[i] : step.depth;
        step.read += t->missed;
        t->missed = 0;
    }
    const uint32_t back = drawn;
    drawn = 1u << 31 | (uint32_t)(s->tokens / (s->clients * 2500.0));
    s->tilt = 0.2 * (2 * uniform() - 1);
    drawn = back;
    s->plain = step.drafted ? 0 : s->plain + 1;
    s->wander = fmax(-0.5, fmin(0.5, s->wander + 0.05 * normal()));
    const double pass = pass_of(s, step.rows) * (s->plain ? exp(s->tilt + 0.3 * exp(-(s->plain - 1) / 5.0)) : 1);
    const double draft = s->level * step.depth + s->token * (step.drafted + step.read);
    s->spent += pass + draft + step.rest;
    step.pass = pass * exp(s->wander + 0.1 * normal());
    step.draft = draft * exp(s->wander + 0.1 * normal());
    if (p) wg_row_policy_time(p, &step);
    for (int i = 0; i < s->clients; i++) {
        struct text *t = &s->text[i];
        if (t->prompt) {
            t->prompt = 0;
            continue;
        }
        if (p) wg_row_policy_learn(p, i, length[i], length[i], kept[i]);
        s->tokens += 1 + kept[i];
        t->missed += length[i] ? 0 : 1;
        t->told += 1 + kept[i];
        if (t->told < TOKENS) continue;
        begin(s, t);
        if (p) wg_row_policy_forget(p, i);
    }
}

/* The draft lengths of all clients in the coming step. */
static void plan_server(const server *s, wg_row_policy *p, int *length)
{
    int slot[CLIENTS], most[CLIENTS], missed[CLIENTS], planned[CLIENTS], n = 0, other = 0;
    for (int i = 0; i < s->clients; i++) {
        const struct text *t = &s->text[i];
        other += t->prompt;
        length[i] = 0;
        if (t->prompt) continue;
        slot[n] = i;
        most[n] = TOKENS - t->told;
        missed[n++] = t->missed > 2 ? t->missed - 2 : 0;
    }
    if (n > 0) wg_row_policy_plan(p, slot, most, missed, n, other, planned);
    for (int k = 0; k < n; k++) length[slot[k]] = planned[k];
}

/* Tokens per ms with a policy, or without one with drafts of so many tokens. */
static double rate_of(server s, wg_row_policy *p, int draft)
{
    int length[CLIENTS];
    drawn = 0;
    for (int i = 0; i < s.clients; i++) {
        begin(&s, &s.text[i]);
        s.text[i].told = TOKENS * i / s.clients;
    }
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < s.clients; i++) length[i] = draft;
        if (p) plan_server(&s, p, length);
        serve(&s, p, length);
    }
    return s.tokens / s.spent;
}

static double of_the_best(const server *s, double wrong)
{
    double pass[TABLE], best = 0;
    for (int i = 0; i < TABLE; i++) pass[i] = s->base + wrong * (pass_of(s, i + 1) - s->base);
    const wg_row_costs costs = { .pass = pass, .rows = TABLE, .level = s->level, .token = s->token, .rest = 0.02, .width = 1 };
    wg_row_policy *p;
    wg_error err;
    for (int draft = 0; draft <= 4; draft++) best = fmax(best, rate_of(*s, NULL, draft));
    cr_assert_eq(wg_row_policy_open(&p, CLIENTS, LEVELS, &costs, &err), WG_OK);
    const double rate = rate_of(*s, p, 0);
    wg_row_policy_close(p);
    return rate / best;
}

/* Whatever the table says when it opens: at any number of clients it is as good as the best of no and of fixed drafts, its
 * trials, its mistakes and what draft models read included, to a few percent. */
Test(row_policy, is_as_good_as_the_best_fixed_length)
{
    static const int clients[] = { 1, 2, 4, 8, 16 };
    static const double wrong[] = { 0.7, 1, 1.5 };
    static const server machine[] = {
        { .base = 1, .row = 0.03, .token = 0.01, .level = 0.06 },     /* bound by weights: drafts pay, less with many clients */
        { .base = 0.25, .row = 0.06, .token = 0.025, .level = 0.06 }, /* a dear draft model: they pay with one or two */
        { .base = 0.25, .row = 0.3, .token = 0.025, .level = 0.06 },  /* bound by arithmetic: they hardly pay */
    };
    double all = 0, least = 2;
    int n = 0;
    for (int c = 0; c < 5; c++)
        for (int m = 0; m < 3; m++)
            for (int accepted = 0; accepted < 2; accepted++, n++) {
                server s = machine[m];
                s.clients = clients[c];
                s.accepted = accepted ? 0.8 : 0.6;
                const double of = of_the_best(&s, wrong[n % 3]);
                cr_assert(of > 0.9, "%d clients, machine %d, accepted %g: %g of the best", s.clients, m, s.accepted, of);
                all += of;
                least = fmin(least, of);
            }
    cr_assert(all / n > 0.98, "%g of the best on average, %g at least", all / n, least);
}

/* The plan is a function of what was learned: in any order of the slots, without an allocation, cut to what each may have. */
Test(row_policy, depends_on_nothing_else)
{
    wg_row_policy *p = policy(0.05), *q = policy(0.05);
    for (int round = 0; round < 100; round++)
        for (int slot = 0; slot < SLOTS; slot++) {
            const int k = accept(0.2 + 0.1 * slot, 3);
            wg_row_policy_learn(p, slot, 3, 3, k);
            wg_row_policy_learn(q, slot, 3, 3, k);
        }
    const int up[] = { 0, 1, 2, 3, 4, 5, 6, 7 }, down[] = { 7, 6, 5, 4, 3, 2, 1, 0 };
    const int most[] = { 9, 9, 2, 0, 9, 9, -1, 1 }, most_down[] = { 1, -1, 9, 9, 0, 2, 9, 9 };
    int a[SLOTS], b[SLOTS], missed[SLOTS] = { 0 };
    const uint64_t calls = wg_mem_read().calls;
    wg_row_policy_plan(p, up, most, missed, SLOTS, 0, a);
    wg_row_policy_plan(q, down, most_down, missed, SLOTS, 0, b);
    cr_assert_eq(wg_mem_read().calls, calls);
    for (int i = 0; i < SLOTS; i++) cr_assert_eq(a[i], b[SLOTS - 1 - i], "slot %d", i);
    cr_assert(a[2] <= 2 && a[3] == 0 && a[6] == 0 && a[7] <= 1 && a[0] <= LEVELS);
    wg_row_policy_close(p);
    wg_row_policy_close(q);
}

Test(row_policy, says_when_memory_is_short)
{
    const size_t live = wg_mem_read().live_blocks;
    const double one = 1;
    const wg_row_costs costs = { .pass = &one, .rows = 1, .width = 1 };
    for (uint64_t k = 1; k <= 18; k++) { /* all that it makes */
        wg_row_policy *p = NULL;
        wg_error err = { .code = WG_OK };
        wg_mem_fail_at(k, false);
        const wg_status s = wg_row_policy_open(&p, 3, 3, &costs, &err);
        wg_mem_fail_at(0, false);
        cr_assert_eq(s, WG_ENOMEM, "allocation %d", (int)k);
        cr_assert(strstr(err.text, "the draft lengths of a scheduler") || strstr(err.text, "the rows of a step") ||
                      strstr(err.text, "the costs of a scheduler's steps"),
                  "%s", err.text);
    }
    cr_assert_eq(wg_mem_read().live_blocks, live);
}
