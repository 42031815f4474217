/* SPDX-License-Identifier: MIT
 * auto: the arithmetic of its choice, and what it does over a text, with given costs: it stops drafting where drafts are not
 * kept and begins again where they are, without passes of a model that is not chosen; its decisions repeat, from a log too; and
 * texts do not depend on it where the rule compares. The law of its drafts: tests/law/law_exact.c. */
#include <math.h>

#include "draft/one_hot.h"
#include "tests/unit/draft/composed.h"
#include "tests/unit/draft/points.h"

/* ---- over a text */

enum { TEXT = 900, DEEPEST = WG_TREE_MAX > 8 ? 8 : WG_TREE_MAX - 1 };
static int32_t truth[TEXT];
static long passes; /* of the oracle's model */

/* A drafter with a model: it knows the text where this says so, and is wrong elsewhere. Each level is a pass. */
static bool (*knows)(int position);
static wg_lm oracle_lm = { .vocab = VOCAB, .context = TEXT, .space = 7 };

static wg_status oracle_propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    (void)d, (void)err;
    for (int i = 0; i < n; i++) {
        const wg_seq *s = seq[i];
        const int depth = wg_seq_room(s) < DEEPEST ? wg_seq_room(s) : DEEPEST;
        wg_tree_reset(&out[i], s->token[s->n - 1], WG_LAW_FIXED);
        for (int k = 0; k < depth; k++, passes++) {
            const int row = wg_rows_push(q), at = s->n + k;
            const int32_t x = knows(at) ? truth[at] : (truth[at] + 1) % (VOCAB - 1);
            q->point[row] = x;
            wg_tree_push(&out[i], k, x, row);
        }
    }
    return WG_OK;
}

static wg_status oracle_open(wg_drafter *d, const wg_env *env, wg_error *err) { return (void)d, (void)env, (void)err, WG_OK; }
static void oracle_close(wg_drafter *d) { (void)d; }
static const wg_lm *oracle_model(const wg_drafter *d) { return (void)d, &oracle_lm; }
static const wg_option no_options[] = { WG_OPTION_END };
static const wg_drafter_class oracle = { .name = "oracle",
                                         .doc = "knows some of the text",
                                         .size = sizeof(wg_drafter),
                                         .options = no_options,
                                         .options_at = sizeof(wg_drafter),
                                         .laws = WG_LAW_FIXED,
                                         .open = oracle_open,
                                         .propose = oracle_propose,
                                         .close = oracle_close,
                                         .lm = oracle_model };

/* A drafter that looks up one token: right where the oracle is. */
static int looks, seen; /* drafts; rounds that it observed */
static wg_status guess_propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    (void)d, (void)err;
    for (int i = 0; i < n; i++, looks++) {
        const wg_seq *s = seq[i];
        wg_tree_reset(&out[i], s->token[s->n - 1], WG_LAW_FIXED);
        if (wg_seq_room(s) > 0) wg_one_hot_push(&out[i], 0, knows(s->n) ? truth[s->n] : (truth[s->n] + 1) % (VOCAB - 1), q);
    }
    return WG_OK;
}
static void guess_observe(wg_drafter *d, const wg_seq *s, const wg_tree *tree, const wg_path *path, wg_rows *target)
{
    (void)d, (void)s, (void)tree, (void)path, (void)target;
    seen++;
}
static const wg_drafter_class guess = { .name = "guess",
                                        .doc = "looks up some of the text",
                                        .size = sizeof(wg_drafter),
                                        .options = no_options,
                                        .options_at = sizeof(wg_drafter),
                                        .laws = WG_LAW_FIXED,
                                        .open = oracle_open,
                                        .propose = guess_propose,
                                        .observe = guess_observe,
                                        .close = oracle_close,
                                        .stands_alone = true };

/* The numbers of draft tokens of the steps in which the text is emitted from `begin` on, of a rule that compares; and the step
 * in which each position was emitted. Returns the number of steps. */
static double (*pass_takes)(int rows); /* seconds; NULL: passes are not timed */
static int texts = 1;                  /* that are followed, one after the other; the last one counts */
static int other_every;                /* rounds, after each of which another text is read; 0: never */
static int follow(const char *options, wg_length_log *log, int begin, int *drafted, int *step_of)
{
    static const wg_drafter_class *const drafters[] = { &wg_drafter_ngram, &wg_drafter_suffix, &oracle, &guess, NULL };
    static const wg_plugins plugins = { drafters, NULL };
    static wg_sampling sampling = WG_SAMPLING(1, 0, 1, 0);
    wg_error err = { 0 };
    wg_kv *kv;
    wg_lm stub = { .vocab = VOCAB, .context = TEXT, .space = 0 };
    cr_assert_eq(wg_kv_open(&kv, 16, 4, 64, &err), WG_OK);
    const wg_env env = { .target = &stub,
                         .kv = kv,
                         .max_batch = 1,
                         .plugins = &plugins,
                         .sampling = &sampling,
                         .lengths = log,
                         .checks = WG_LAWS & ~WG_LAW_COUPLED };
    wg_drafter *d = points_open(&wg_drafter_auto, &env, options, &err);
    cr_assert_not_null(d, "%s", err.text);
    wg_seq s = { .token = truth, .n = begin, .prompt = begin, .cap = TEXT, .limit = TEXT - 10 }, *one = &s;
    int steps = 0, left = texts;
    for (; s.n < s.limit - 1; steps++) {
        wg_tree t;
        wg_path path = { .n = 1 };
        points_propose(d, &one, 1, &t);
        for (int node; path.n < t.n && (node = wg_tree_find(&t, path.node[path.n - 1], truth[s.n + path.n - 1])) >= 0;)
            path.node[path.n++] = (int16_t)node;
        for (int i = 0; i < path.n; i++) step_of[s.n + i] = steps;
        if (pass_takes) stub.passes++, stub.rows += t.n, stub.seconds += pass_takes(t.n);
        if (other_every && steps % other_every == 0) stub.passes++;
        drafted[steps] = t.n - 1;
        s.last_emitted = path.n;
        s.n += path.n;
        d->class->observe(d, &s, &t, &path, NULL);
        if (s.n < s.limit - 1 || --left == 0) continue;
        d->class->forget(d, &s);
        s.n = begin;
        steps = -1;
    }
    points_close(d);
    wg_kv_close(kv);
    return steps;
}

/* Tokens at random, then again and again the same seven. */
static void random_then_periodic(int from)
{
    for (int i = 0; i < TEXT; i++) truth[i] = (int32_t)(wg_philox_at(4, (uint32_t)i, 0, 0, 0).v[0] % (VOCAB - 1));
    for (int i = from + 7; i < TEXT; i++) truth[i] = truth[i - 7];
}

static int sum(const int *v, int from, int to)
{
    int all = 0;
    for (int i = from; i < to; i++) all += v[i];
    return all;
}

static bool nothing(int position) { return (void)position, false; }
static bool everything(int position) { return (void)position, true; }
static bool half_of_it(int position) { return wg_philox_at(5, (uint32_t)position, 0, 0, 0).v[0] % 2; }
static bool the_end(int position) { return position >= 500; }

#define COSTS ",costs=1/1.2/1.5/1.9/2.3/2.7/3.1/3.5/3.9"

Test(auto_text, look_up_is_put_aside_and_taken_up_again)
{
    int drafted[TEXT] = { 0 }, step_of[TEXT];
    random_then_periodic(400);
    follow("of=ngram|suffix:memory_mb=0" COSTS ",draft_costs=0/0", NULL, 20, drafted, step_of);
    cr_assert_lt(sum(drafted, 0, step_of[400]), 3, "%d tokens in text that does not repeat", sum(drafted, 0, step_of[400]));
    const int again = step_of[400 + 7] + 16;
    for (int i = again; i < step_of[700]; i++) cr_assert_geq(drafted[i], 3, "step %d, %d after the text repeats", i, i - again);
}

/* A look-up that is never taken is asked in one of 8 rounds; while it is right, or taken, in all of them. */
Test(auto_text, a_useless_look_up_rests)
{
    int drafted[TEXT] = { 0 }, step_of[TEXT];
    random_then_periodic(TEXT);
    knows = nothing;
    looks = seen = 0;
    int steps = follow("of=guess,costs=1/9,draft_costs=0", NULL, 20, drafted, step_of);
    cr_assert(looks >= steps / 8 && looks < steps / 8 + 32, "%d drafts in %d steps", looks, steps);
    cr_assert_eq(seen, looks, "it observed %d rounds, and drafted in %d", seen, looks);
    knows = everything;
    looks = 0;
    steps = follow("of=guess,costs=1/9,draft_costs=0", NULL, 20, drafted, step_of);
    cr_assert_geq(looks, steps - 8, "%d drafts in %d steps", looks, steps);
    knows = half_of_it; /* taken, and wrong in between */
    looks = 0;
    steps = follow("of=guess,costs=1/1.01,draft_costs=0", NULL, 20, drafted, step_of);
    cr_assert_geq(looks, steps - 32, "%d drafts in %d steps", looks, steps);
    knows = the_end;
    follow("of=guess,costs=1/1.2,draft_costs=0", NULL, 20, drafted, step_of);
    for (int i = step_of[500] + 24; i < step_of[TEXT - 20]; i++) cr_assert_eq(drafted[i], 1, "step %d", i - step_of[500]);
}

/* A useless model runs only what probes may cost, and is found again once it is useful. */
Test(auto_text, a_model_is_put_aside_and_taken_up_again)
{
    int drafted[TEXT] = { 0 }, step_of[TEXT];
    random_then_periodic(TEXT);
    knows = nothing;
    passes = 0;
    follow("of=oracle" COSTS ",draft_costs=0.02", NULL, 20, drafted, step_of);
    cr_assert_lt(passes, 0.07 * TEXT, "%ld passes", passes);
    cr_assert_leq(sum(drafted, step_of[20 + 32], step_of[TEXT - 20]), passes);
    knows = the_end;
    follow("of=oracle" COSTS ",draft_costs=0.02", NULL, 20, drafted, step_of);
    cr_assert_lt(sum(drafted, step_of[60], step_of[499]), 40);
    cr_assert_gt(sum(drafted, step_of[700], step_of[800]), 50, "%d", sum(drafted, step_of[700], step_of[800]));
}

/* A machine on which two rows take 1.2 of one, but one only 0.6 in a run of plain decoding; and one on which it takes 1. */
static int plain_run;
static double settles_takes(int rows)
{
    plain_run = rows == 1 ? plain_run + 1 : 0;
    return rows > 1 ? 1 + 0.2 * (rows - 1) : plain_run > 8 ? 0.6 : 1;
}
static double always_takes(int rows) { return 1 + 0.2 * (rows - 1); }

/* Of the rounds of a text's second half: the share that drafts nothing, and the mean length of the other drafts. costs: as
 * given, of a machine on which passes take something else. */
typedef struct half {
    double plain, length;
} half;
static half second_half(const char *costs, double (*takes)(int), int other)
{
    char options[200];
    int drafted[TEXT] = { 0 }, step_of[TEXT], plain = 0;
    snprintf(options, sizeof options, "of=oracle,costs=%s,draft_costs=0.1,live=yes,probe=0", costs);
    pass_takes = takes;
    other_every = other;
    plain_run = 0;
    follow(options, NULL, 20, drafted, step_of);
    pass_takes = NULL;
    other_every = 0;
    const int begin = step_of[450], end = step_of[TEXT - 20];
    for (int i = begin; i < end; i++) plain += drafted[i] == 0;
    return (half){ (double)plain / (end - begin), (double)sum(drafted, begin, end) / (end - begin - plain) };
}
static double share_of_plain_rounds(double (*takes)(int), int other)
{
    return second_half("1/1.2/1.4/1.6/1.8/2/2.2/2.4/2.6", takes, other).plain;
}

Test(auto_text, plain_decoding_is_tried_where_costs_are_live)
{
    random_then_periodic(TEXT);
    knows = half_of_it;
    const double pays = share_of_plain_rounds(always_takes, 0), does_not = share_of_plain_rounds(settles_takes, 0);
    const double broken = share_of_plain_rounds(settles_takes, 12); /* not all passes of a trial can be timed */
    cr_assert_lt(pays, 0.25, "%g of the rounds are plain, where drafts pay", pays);
    cr_assert_gt(does_not, 0.75, "%g of the rounds are plain, where they do not", does_not);
    cr_assert_gt(broken, 0.75, "%g of the rounds are plain, where other texts are read between", broken);
}

/* Costs said that three rows, or two, are dear; they are not. */
static double flat_takes(int rows) { return 1 + 0.05 * (rows - 1); }
Test(auto_text, sizes_that_seem_dear_are_tried)
{
    random_then_periodic(TEXT);
    knows = everything;
    const half three = second_half("1/1.05/1.9/2.8/3.7/4.6/5.5/6.4/7.3", flat_takes, 0);
    const half two = second_half("1/2.5/4/5.5/7/8.5/10/11.5/13", flat_takes, 0);
    cr_assert_gt(three.length, 2.5, "%g tokens", three.length);
    cr_assert_lt(three.plain, 0.1, "%g", three.plain);
    cr_assert_lt(two.plain, 0.1, "%g of the rounds are plain", two.plain);
}

/* From the prior to the best depth in 32 rounds: here the deepest, since everything is kept and rows are nearly free. */
Test(auto_text, settles_within_32_rounds)
{
    int drafted[TEXT] = { 0 }, step_of[TEXT];
    random_then_periodic(TEXT);
    knows = everything;
    const int steps =
        follow("of=ngram|oracle,costs=1/1.01/1.02/1.03/1.04/1.05/1.06/1.07/1.08/1.09,draft_costs=0/0.05,prior=0.4", NULL, 20,
               drafted, step_of);
    for (int i = 32; i < steps - 1; i++) cr_assert_eq(drafted[i], DEEPEST, "%d tokens in step %d", drafted[i], i);
}

/* With given costs a run repeats; with any costs it repeats from its log. */
Test(auto_text, repeats)
{
    static const char *const options[] = { "of=ngram|oracle" COSTS ",draft_costs=0/0.02",
                                           "of=ngram|oracle,costs=1/1.01/1.02/1.3,draft_costs=0/0.2" };
    int first[TEXT] = { 0 }, second[TEXT] = { 0 }, step_of[TEXT];
    wg_length_log log = { 0 };
    wg_error err;
    random_then_periodic(450);
    knows = the_end;
    const int steps = follow(options[0], NULL, 20, first, step_of);
    cr_assert_eq(follow(options[0], NULL, 20, second, step_of), steps);
    cr_assert_arr_eq(first, second, sizeof first);
    follow(options[1], NULL, 20, second, step_of);
    cr_assert(memcmp(first, second, sizeof first) != 0, "costs decide");
    cr_assert_eq(wg_length_log_reserve(&log, 40 * TEXT, &err), WG_OK);
    wg_length_log_record(&log);
    follow(options[0], &log, 20, first, step_of);
    wg_length_log_repeat(&log);
    memset(second, 0, sizeof second);
    cr_assert_eq(follow(options[1], &log, 20, second, step_of), steps);
    cr_assert_arr_eq(first, second, sizeof first);
    cr_assert(wg_length_log_agrees(&log));
    wg_free(log.planned);
}

/* A second text begins with what the first one taught where that is remembered: the deepest draft, or that of the prior. */
Test(auto_text, a_text_begins_with_what_others_taught)
{
    random_then_periodic(TEXT);
    knows = everything;
    for (int memory = 0; memory < 2; memory++) {
        int drafted[TEXT] = { 0 }, step_of[TEXT];
        texts = 2;
        follow(memory ? "of=oracle" COSTS ",draft_costs=0.02,memory=yes" : "of=oracle" COSTS ",draft_costs=0.02,memory=no",
               NULL, 20, drafted, step_of);
        texts = 1;
        cr_assert(memory ? drafted[0] > 5 : drafted[0] < 5, "%d tokens", drafted[0]);
    }
}

/* ---- in an engine */

enum { WORDS = 60, REQUESTS = 5 };

static void small(void) { open_target(WORDS); }
TestSuite(auto_engine, .init = small, .fini = close_target);

static law_request request[REQUESTS];
static int32_t prompt[REQUESTS][12];

static void make_requests(void)
{
    for (int i = 0; i < REQUESTS; i++) {
        for (int k = 0; k < 12; k++) prompt[i][k] = 3 + (k % (3 + i) * 7 + i * 11) % (WORDS - 3);
        request[i] = (law_request){ prompt[i], 12 - i, 20 + 3 * i };
    }
}

/* Decodes all requests with auto over a model and a look-up; the counts of the run. */
static wg_length_log *lengths; /* of the next run */

static wg_counts decode(const char *more, const char *rule, double temperature, int batch, law_output *out)
{
    char options[1400];
    wg_counts counts = { 0 };
    snprintf(options, sizeof options, "of=model:model=%s;length=6|ngram%s", near_path, more);
    const law_setup setup = { .target = &target,
                              .drafter = "auto",
                              .options = options,
                              .rule = rule,
                              .sampling = WG_SAMPLING(temperature, 0, 1, 0),
                              .seed = 5,
                              .batch = batch,
                              .lengths = lengths };
    law_decode(&setup, request, REQUESTS, out, &counts);
    return counts;
}

/* Rules that compare, and temperature 0: with measured, live costs, and what is learned from sequence to sequence. */
Test(auto_engine, text_is_plain_where_the_rule_compares)
{
    static const char *const rules[] = { "greedy", "match", "coupled", "rejection" };
    static const char *const costs[] = { "", ",costs=1/1.01,draft_costs=0.01/0", ",costs=nominal,live=yes,prior=0.95" };
    make_requests();
    for (int i = 0; i < 3 * 4; i++)
        for (int batch = 1; batch <= 3; batch += 2) {
            const double temperature = i % 4 == 1 || i % 4 == 2 ? 0.3 : 0;
            law_output plain[REQUESTS] = { 0 }, got[REQUESTS] = { 0 };
            wg_counts counts = { 0 };
            const law_setup base = { .target = &target,
                                     .drafter = "none",
                                     .rule = i % 4 == 2 ? "coupled" : "match",
                                     .sampling = WG_SAMPLING(temperature, 0, 1, 0),
                                     .seed = 5 };
            law_decode(&base, request, REQUESTS, plain, &counts);
            counts = decode(costs[i / 4], rules[i % 4], temperature, batch, got);
            cr_assert_eq(law_compare(rules[i % 4], plain, got, REQUESTS), 0);
            if (i / 4 == 1) cr_assert_gt(counts.accepted, 10);
            law_free(plain, REQUESTS);
            law_free(got, REQUESTS);
        }
}

/* A rule that draws: by default the text is a function of seed and request, whatever the batch. */
Test(auto_engine, text_repeats_where_the_rule_draws)
{
    static const char *const costs[] = { "", ",costs=1/1.01/1.02,draft_costs=0.02/0" };
    make_requests();
    for (int i = 0; i < 2; i++) {
        law_output one[REQUESTS] = { 0 }, again[REQUESTS] = { 0 }, all[REQUESTS] = { 0 };
        cr_assert(decode(costs[i], "rejection", 0.5, 1, one).drafted > 0 || i == 0);
        decode(costs[i], "rejection", 0.5, 1, again);
        decode(costs[i], "rejection", 0.5, 4, all);
        cr_assert_eq(law_compare("again", one, again, REQUESTS), 0);
        cr_assert_eq(law_compare("in a batch", one, all, REQUESTS), 0);
        law_free(one, REQUESTS);
        law_free(again, REQUESTS);
        law_free(all, REQUESTS);
    }
}

/* The same drafts at other costs, from the log: choices, and where chains ended. */
Test(auto_engine, drafts_repeat_from_a_log)
{
    wg_length_log log = { 0 };
    wg_error err;
    law_output one[REQUESTS] = { 0 }, again[REQUESTS] = { 0 };
    make_requests();
    cr_assert_eq(wg_length_log_reserve(&log, 10000, &err), WG_OK);
    wg_length_log_record(&log);
    lengths = &log;
    const wg_counts a = decode(",costs=1/1.05/1.1/1.2/1.3,draft_costs=0.05/0", "rejection", 0.5, 1, one);
    wg_length_log_repeat(&log);
    const wg_counts b = decode(",costs=1/1.5/2,draft_costs=0.3/0", "rejection", 0.5, 1, again);
    lengths = NULL;
    cr_assert(wg_length_log_agrees(&log) && a.drafted == b.drafted && a.drafted > 0);
    cr_assert_eq(law_compare("again", one, again, REQUESTS), 0);
    wg_free(log.planned);
    law_free(one, REQUESTS);
    law_free(again, REQUESTS);
}

Test(auto_engine, refuses_what_it_cannot_run)
{
    static const char *const bad[][2] = {
        { "of=", "option 'of' has no value; give one, or leave the option out" },
        { "", "drafter auto: of=: expected one to 4 drafters, separated by |" },
        { "of=ngram|ngram:k=2|ngram:k=3|sam|suffix", "expected one to 4 drafters" },
        { "of=ngram|synthetic", "drafter auto: of=synthetic draws siblings by the laws: coupled" },
        { "of=ngram|sam,draft_costs=0.1",
          "drafter auto: draft_costs=0.1: expected 2 numbers such as 0.1/0, one for each drafter of `of`: a level of its "
          "draft, in passes of the target over one row" },
        { "of=ngram,costs=fast", "drafter auto: costs=fast: expected positive numbers" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *text = refusal(&target, "auto", bad[i][0], true);
        cr_assert(text && strstr(text, bad[i][1]), "%s: %s", bad[i][0], text ? text : "it opens");
    }
    fail_every_allocation(&target, "auto", "of=ngram,costs=nominal");
}
