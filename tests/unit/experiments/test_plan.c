/* SPDX-License-Identifier: MIT
 * `wager plan -m MODEL`: the verdict from speeds, the drafts that are tried, the sentence and the command that end it. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/setup/spec.h"
#include "experiments/cli/plan.h"
#include "run_scene.h"

enum { TEXTS = 12 };

/* A draft that takes seconds[i] for the 100 tokens of text i, which plain decoding has in one second. */
static wg_plan_speed speed_of(const double *seconds, int n)
{
    double tokens[TEXTS], plain[TEXTS];
    for (int i = 0; i < n; i++) tokens[i] = 100, plain[i] = 1;
    return wg_plan_speed_of(seconds, tokens, plain, tokens, n);
}

/* `usual` seconds a text, with a scatter of a hundredth. */
static wg_plan_speed even(double usual)
{
    double seconds[TEXTS];
    for (int i = 0; i < TEXTS; i++) seconds[i] = usual * (1 + 0.01 * (i % 3 - 1));
    return speed_of(seconds, TEXTS);
}

/* Half of the texts in 0.25 s, half in 1.6: 1.08 times as fast in all. */
static wg_plan_speed uneven(void)
{
    double seconds[TEXTS];
    for (int i = 0; i < TEXTS; i++) seconds[i] = i % 2 ? 0.25 : 1.6;
    return speed_of(seconds, TEXTS);
}

Test(plan_verdict, follows_the_intervals)
{
    int best;
    wg_plan_speed fast = even(0.5), slow = even(1.3), same = even(1), open = uneven();
    cr_assert(fast.lo > 1.9 && fast.lo < 2 && fast.hi > 2 && fast.hi < 2.1);
    cr_assert(open.speedup > 1.05 && open.lo < 1 && open.hi > 1);
    cr_assert_eq(wg_plan_answer_of(&fast, 1, &best), WG_PLAN_SPECULATE);
    cr_assert_eq(best, 0);
    cr_assert_eq(wg_plan_answer_of(&slow, 1, &best), WG_PLAN_PLAIN);
    cr_assert_eq(wg_plan_answer_of(&same, 1, &best), WG_PLAN_UNDECIDED, "its interval, narrow as it is, spans 1");
    cr_assert_eq(wg_plan_answer_of(&open, 1, &best), WG_PLAN_UNDECIDED, "its interval spans 1");
    cr_assert_eq(best, 0);
}

Test(plan_verdict, takes_the_fastest_of_those_that_are_faster)
{
    int best;
    wg_plan_speed v[3] = { uneven(), even(0.95), even(1.2) };
    cr_assert(v[0].speedup > v[1].speedup);
    cr_assert_eq(wg_plan_answer_of(v, 3, &best), WG_PLAN_SPECULATE);
    cr_assert_eq(best, 1);
    wg_plan_speed w[2] = { even(1.2), uneven() };
    cr_assert_eq(wg_plan_answer_of(w, 2, &best), WG_PLAN_UNDECIDED, "one of them may pay");
    cr_assert_eq(best, 1);
}

Test(plan_verdict, says_nothing_without_an_interval)
{
    const double seconds[4] = { 0.5, 0.5, 0.51, 0.5 };
    int best;
    wg_plan_speed few = speed_of(seconds, 4), none = speed_of(seconds, 0);
    cr_assert_float_eq(few.speedup, 400 / 2.01 / 100, 1e-9);
    cr_assert(isnan(few.lo) && isnan(few.hi));
    cr_assert_eq(wg_plan_answer_of(&few, 1, &best), WG_PLAN_UNDECIDED);
    cr_assert_eq(best, 0);
    cr_assert_eq(wg_plan_answer_of(&none, 1, &best), WG_PLAN_UNDECIDED);
    cr_assert_eq(best, -1);
    cr_assert_eq(wg_plan_answer_of(NULL, 0, &best), WG_PLAN_UNDECIDED);
    cr_assert_eq(best, -1);
}

/* ---- drafts ------------------------------------------------------------------------------------------------------ */

Test(plan_drafts, name_drafter_and_length)
{
    const wg_flag_list none = { 0 };
    wg_plan_draft d[WG_PLAN_DRAFTS];
    wg_error err;
    int n;
    cr_assert_eq(wg_plan_drafts(d, &n, &none, &none, 30, &err), WG_OK);
    cr_assert_eq(n, 6);
    cr_assert_str_eq(d[4].spec, "early_exit:layer=15");
    cr_assert_str_eq(d[5].spec, "layer_skip:attention=10-19,mlp=10-19");
    for (int i = 0; i < n; i++)
        for (int k = 0; k < d[i].lengths; k++) {
            char spec[WG_PLAN_SPEC];
            wg_drafter_choice c;
            wg_plan_draft_spec(&d[i], k, spec);
            cr_assert_eq(wg_choose_drafter(spec, &c, &err), WG_OK, "%s: %s", spec, err.text);
            cr_assert(strchr(spec, '=') && strtol(strrchr(spec, '=') + 1, NULL, 10) == d[i].length[k], "%s", spec);
            wg_choice_close(&c);
        }
    cr_assert_eq(wg_plan_drafts(d, &n, &none, &none, 2, &err), WG_OK);
    cr_assert_eq(n, 4, "a model of two layers has no middle third");
}

Test(plan_drafts, of_the_user_come_first)
{
    const wg_flag_list models = { { "a.gguf" }, 1 }, drafts = { { "ngram:k=3", "recycle", "auto:of=suffix" }, 3 };
    wg_plan_draft d[WG_PLAN_DRAFTS];
    char spec[WG_PLAN_SPEC];
    wg_error err;
    int n;
    cr_assert_eq(wg_plan_drafts(d, &n, &models, &drafts, 2, &err), WG_OK, "%s", err.text);
    cr_assert_eq(n, 8);
    wg_plan_draft_spec(&d[0], 2, spec);
    cr_assert_str_eq(spec, "model:model=a.gguf,length=8");
    cr_assert(d[0].asked && d[3].asked && !d[4].asked);
    cr_assert_eq(d[1].lengths, 0, "its length is given");
    wg_plan_draft_spec(&d[1], 0, spec);
    cr_assert_str_eq(spec, "ngram:k=3");
    wg_plan_draft_spec(&d[2], 1, spec);
    cr_assert_str_eq(spec, "recycle:nodes=4");
    cr_assert_eq(d[3].lengths, 0, "auto chooses its lengths");
}

Test(plan_drafts, have_limits)
{
    wg_flag_list drafts = { .n = WG_PLAN_DRAFTS - 3 };
    const wg_flag_list none = { 0 };
    char path[WG_PLAN_SPEC];
    wg_plan_draft d[WG_PLAN_DRAFTS];
    wg_error err;
    int n;
    for (int i = 0; i < drafts.n; i++) drafts.item[i] = "ngram";
    cr_assert_eq(wg_plan_drafts(d, &n, &none, &drafts, 2, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "more than 32 drafts; give fewer of -d and --draft");
    drafts.n--;
    cr_assert_eq(wg_plan_drafts(d, &n, &none, &drafts, 2, &err), WG_OK);
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    const wg_flag_list models = { { path }, 1 };
    cr_assert_eq(wg_plan_drafts(d, &n, &models, &none, 2, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "--draft aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...: longer than 1176 bytes");
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static wg_plan_result result;
static const wg_plan_about about = { .chat = "model", .rule = "match", .judged = 12, .seconds = 50 };

static void expect(const char *sentence, const char *command)
{
    const wg_plan_options o = { .model = "a b.gguf", .threads = 2, .kv_name = "q8" };
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    wg_plan_sentence(f, &about, &result);
    fclose(f);
    cr_assert_str_eq(text, sentence);
    free(text);
    f = open_memstream(&text, &n);
    wg_plan_command(f, &o, &about, &result);
    fclose(f);
    cr_assert_str_eq(text, command);
    free(text);
}

static void judged(wg_plan_answer answer, double speedup, double lo, double hi)
{
    wg_plan_candidate *c = &result.tried[0];
    *c = (wg_plan_candidate){ .spec = "suffix:k=8", .speed = { .speedup = speedup, .lo = lo, .hi = hi } };
    result.judged[0] = c;
    result.answer = answer;
    result.best = 0;
}

Test(plan_print, warns_of_other_programs)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    wg_plan_warn_of_load(f, NAN, 2);
    wg_plan_warn_of_load(f, 0.5, 2);
    wg_plan_warn_of_load(f, 0.6, 2);
    fclose(f);
    cr_assert_str_eq(text,
                     "warning: a load of 0.6 on 2 cores: other programs run beside this one, and speed-ups are less sure\n");
    free(text);
}

#define PLAIN                                                                                                                  \
    "wager generate -m 'a b.gguf' --kv-type q8 --threads 2 --chat model --rule match --temp 0 -n 200 -p 'Why is the sky "      \
    "blue?'"
#define DRAFT                                                                                                                  \
    "wager generate -m 'a b.gguf' --kv-type q8 --threads 2 --chat model --draft suffix:k=8 --rule match --temp 0 -n 200 "      \
    "-p 'Why is the sky blue?'"

Test(plan_print, ends_with_a_sentence_and_what_was_measured_best)
{
    judged(WG_PLAN_SPECULATE, 1.5, 1.2, 1.9);
    expect("Speculate: suffix:k=8 decodes 1.50x as fast as plain decoding [1.20, 1.90].", DRAFT);
    judged(WG_PLAN_PLAIN, 0.9, 0.8, 0.98);
    expect(
        "Do not speculate: no draft that was tried beats plain decoding here; the best, suffix:k=8, decodes 0.90x as fast as "
        "plain decoding [0.80, 0.98].",
        PLAIN);
    judged(WG_PLAN_UNDECIDED, 1.1, 0.9, 1.3);
    expect(
        "Undecided: no difference from plain decoding was measured; the best draft, suffix:k=8, decodes 1.10x as fast as "
        "plain decoding [0.90, 1.30]: plain decoding is safe; more time (--seconds) or prompts like yours (-p FILE) may show "
        "one.",
        PLAIN);
    judged(WG_PLAN_UNDECIDED, 1.1, 1.01, 1.3); /* Holm's adjustment for another draft took the verdict */
    expect("Undecided: the best draft, suffix:k=8, decodes 1.10x as fast as plain decoding [1.01, 1.30], which leaves open "
           "whether it pays: give more time (--seconds) or prompts like yours (-p FILE).",
           DRAFT);
    judged(WG_PLAN_UNDECIDED, 1.1, NAN, NAN);
    expect("Undecided: the best draft, suffix:k=8, decodes 1.10x as fast as plain decoding, over 12 prompts, and an interval "
           "takes "
           "5: give more time (--seconds) or prompts (-p FILE).",
           DRAFT);
    result.best = -1;
    expect("Undecided: no draft could be measured in 50 s; give more time with --seconds.", PLAIN);
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

static scene made;
static void setup(void) { scene_make(&made); }
static void teardown(void) { scene_remove(&made); }
TestSuite(plan_measure, .init = setup, .fini = teardown);

static int measure(wg_plan_arm *arm, int n, double ready, double until, double end, wg_status want)
{
    static int32_t ids[2][6] = { { 5, 6, 7, 8, 5, 6 }, { 9, 8, 7, 9, 8, 7 } };
    const wg_plan_text text[2] = { { "chat", ids[0], 6 }, { "edit", ids[1], 6 } };
    const wg_sampling greedy = WG_SAMPLING(0, 0, 1, 0);
    const wg_target_options one = { .threads = 1 };
    wg_target *t;
    wg_error err;
    int done;
    cr_assert_eq(wg_target_open(&t, "target.gguf", &one, &err), WG_OK, "%s", err.text);
    const wg_plan_stage on = { .target = t,
                               .sampling = &greedy,
                               .seed = 1,
                               .warm = text,
                               .text = text,
                               .texts = 2,
                               .least = 8,
                               .most = 40,
                               .longest = 6,
                               .ready = wg_clock_now() + ready,
                               .until = wg_clock_now() + until,
                               .end = wg_clock_now() + end };
    cr_assert_eq(wg_plan_measure(arm, n, &on, &done, &err), want, "%s", err.text);
    wg_target_close(t);
    return done;
}

Test(plan_measure, takes_what_runs_and_says_what_does_not)
{
    static wg_plan_arm arm[4] = {
        { .spec = "none" }, { .spec = "early_exit:layer=99" }, { .spec = "ngram:k=4" }, { .spec = "none" }
    };
    cr_assert_eq(measure(arm, 4, 1e3, 1e3, 1e3, WG_OK), 2);
    cr_assert_eq(arm[1].state, WG_PLAN_REFUSED);
    cr_assert(strstr(arm[1].why, "layer"), "%s", arm[1].why);
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 2; i++) {
            if (k == 1) continue;
            cr_assert_eq(arm[k].state, WG_PLAN_RAN);
            cr_assert_eq(arm[k].tokens[i], arm[0].tokens[i], "the texts are equal by the rule match");
            cr_assert(arm[k].tokens[i] > 0 && arm[k].tokens[i] <= 40 && arm[k].seconds[i] > 0);
            cr_assert(k == 2 ? arm[k].passes[i] <= arm[k].tokens[i] : arm[k].passes[i] == arm[k].tokens[i]);
        }
    arm[1].asked = true; /* the user's own */
    cr_assert_eq(measure(arm, 4, 1e3, 1e3, 1e3, WG_ECONFIG), 0);
}

Test(plan_measure, leaves_out_what_there_is_no_time_for)
{
    static wg_plan_arm arm[4] = { { .spec = "none" }, { .spec = "ngram:k=4" }, { .spec = "recycle" }, { .spec = "suffix" } };
    cr_assert_eq(measure(arm, 4, -1, 1e3, 1e3, WG_OK), 2);
    cr_assert(arm[0].tokens[1] > 0 && arm[1].state == WG_PLAN_RAN, "plain decoding and one draft are always there");
    cr_assert(arm[2].state == WG_PLAN_LATE && arm[3].state == WG_PLAN_LATE);
    cr_assert_eq(measure(arm, 4, 1e3, -1, 1e3, WG_OK), 1, "the first text has the time of all");
    cr_assert(arm[1].state == WG_PLAN_RAN && arm[2].state == WG_PLAN_LATE && arm[3].state == WG_PLAN_LATE);
    cr_assert_eq(measure(arm, 4, 1e3, -1, -1, WG_OK), 0);
}
