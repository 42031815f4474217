/* SPDX-License-Identifier: MIT
 * The drafter of examples/plugin-drafter, loaded from its shared object; and objects with one fault each. */
#include "tests/unit/draft/composed.h"

enum { V = 40 };

static void open_all(void) { open_target(V); }
TestSuite(plugin, .init = open_all, .fini = close_target);

static const int32_t prompt[] = { 1, 2, 3, 1, 2, 4, 1 };

Test(plugin, drafts_through_the_object)
{
    static const wg_sampling samplings[] = { WG_SAMPLING(0, 0, 1, 0), WG_SAMPLING(1, 4, 1, 0) };
    for (int s = 0; s < 2; s++) {
        const law_request r = { prompt, 7, 60 };
        law_output plain = { 0 }, got = { 0 };
        wg_counts counts = { 0 };
        law_setup setup = { .target = &target, .drafter = "none", .rule = "match", .sampling = samplings[s], .seed = 3 };
        law_decode(&setup, &r, 1, &plain, &counts);
        setup.drafter = "plugin";
        setup.options = "path=" WG_TEST_PLUGINS "/libbigram.so,options=k=3";
        counts = (wg_counts){ 0 };
        law_decode(&setup, &r, 1, &got, &counts);
        cr_assert_eq(law_compare("plugin", &plain, &got, 1), 0);
        cr_assert_gt(counts.drafted, 20);
        cr_assert_gt(counts.accepted, 0);
        cr_assert_eq(counts.offered_at[4], 0);
        law_free(&plain, 1);
        law_free(&got, 1);
    }
}

Test(plugin, the_first_draft)
{
    wg_error err;
    const law_setup setup = {
        .target = &target, .drafter = "plugin", .options = "path=" WG_TEST_PLUGINS "/libbigram.so,options=k=5", .rule = "greedy"
    };
    wg_engine *e = law_engine(&setup);
    wg_seq *s;
    LAW_TRY(wg_seq_open(e, &s, 1, prompt, 7, 30, &err));
    LAW_TRY(wg_engine_step(e, &s, 1, &err));
    const int32_t want[] = { 1, 2, 4, 1, 2, 4 }; /* after 1 came 2 last, after 2 came 4, after 4 came 1 */
    cr_assert_eq(wg_engine_last_step(e).tree[0].n, 6);
    for (int i = 0; i < 6; i++) cr_assert_eq(wg_engine_last_step(e).tree[0].token[i], want[i]);
    wg_seq_close(e, s);
    wg_engine_close(e);
}

Test(plugin, refuses_what_was_not_built_for_this_program)
{
    char text_file[600], options[1200];
    snprintf(text_file, sizeof text_file, "%s", temp_at(&folder, "text.so"));
    file_write(text_file, "not an object\n", 14);
    const struct {
        const char *path, *options, *says;
    } bad[] = {
        { "", "", "drafter plugin: no shared object is named; set its option path=FILE" },
        { "/nowhere/x.so", "", "drafter plugin: path=/nowhere/x.so: no such file, or it cannot be read" },
        { text_file, "", "text.so is not a shared object (no ELF header); build one as in examples/plugin-drafter" },
        { WG_TEST_PLUGINS "/libbad_drafter_1.so", "",
          "was built for version 9 of the drafter contract, this program has version 3; "
          "rebuild it against this program's headers" },
        { WG_TEST_PLUGINS "/libbad_drafter_2.so", "",
          "drafter plugin: " WG_TEST_PLUGINS "/libbad_drafter_2.so was built for trees of 5 nodes, this program for " },
        { WG_TEST_PLUGINS "/libbad_drafter_3.so", "",
          "was built against other headers (the structures of core/engine/drafter.h differ in size); rebuild it against this "
          "program's" },
        { WG_TEST_PLUGINS "/libbad_drafter_10.so", "",
          "was built against other headers (the structures of core/engine/drafter.h differ in size); rebuild it against this "
          "program's" },
        { WG_TEST_PLUGINS "/libnearest.so", "tap=3", "drafter nearest: tap 3: a model of 1 layers has taps 0 (the embedding)" },
        { WG_TEST_PLUGINS "/libbad_drafter_4.so", "",
          "has no symbol wg_plugin_drafter; define it with WG_DRAFTER_PLUGIN(class)" },
        { WG_TEST_PLUGINS "/libbad_drafter_5.so", "",
          "libbad_drafter_5.so: drafter bad declares the laws: fixed, without_replacement; a plug-in may have only: fixed, "
          "iid" },
        { WG_TEST_PLUGINS "/libbad_drafter_6.so", "",
          "drafter plugin: " WG_TEST_PLUGINS "/libbad_drafter_6.so: its class needs a name, a size of at least" },
        { WG_TEST_PLUGINS "/libbigram.so", "k=0", "drafter bigram: option 'k' = '0': expected integer 1..63" },
        { WG_TEST_PLUGINS "/libbigram.so", "n=1", "drafter bigram: " },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(options, sizeof options, "%s%s%s%s", *bad[i].path ? "path=" : "", bad[i].path,
                 *bad[i].options ? ",options=" : "", bad[i].options);
        const char *text = refusal(&target, "plugin", options, true);
        cr_assert(text && strstr(text, bad[i].says), "%s: %s", options, text ? text : "it opens");
    }
}

/* Built when wg_env was shorter. */
Test(plugin, an_older_object_runs)
{
    cr_assert_null(refusal(&target, "plugin", "path=" WG_TEST_PLUGINS "/libbad_drafter_11.so", true));
}

/* Hidden states go through the object's feed: what it proposes is a function of them, and the text is plain decoding's. */
Test(plugin, reads_hidden_states)
{
    const law_request r = { prompt, 7, 60 };
    law_output plain = { 0 }, got = { 0 };
    wg_counts counts = { 0 };
    law_setup setup = {
        .target = &target, .drafter = "none", .rule = "match", .sampling = WG_SAMPLING(1, 4, 1, 0), .prefill_rows = 2
    };
    law_decode(&setup, &r, 1, &plain, &counts);
    setup.drafter = "plugin";
    for (int composed = 0; composed < 2; composed++) {
        setup.drafter = composed ? "best_of" : "plugin";
        setup.options = composed ? "of=plugin:path=" WG_TEST_PLUGINS "/libnearest.so;options={k=3;tap=1}|ngram:k=2"
                                 : "path=" WG_TEST_PLUGINS "/libnearest.so,options=k=3;tap=1";
        counts = (wg_counts){ 0 };
        law_decode(&setup, &r, 1, &got, &counts);
        cr_assert_eq(law_compare("plugin", &plain, &got, 1), 0);
        cr_assert_gt(counts.drafted, 20);
        cr_assert_gt(counts.accepted, 0);
        law_free(&got, 1);
    }
    law_free(&plain, 1);
}

/* A tree with a law that the plug-in did not declare, and a failure without a message: errors of the step. */
Test(plugin, a_step_survives_its_faults)
{
    for (int fault = 7; fault <= 8; fault++) {
        char options[600];
        wg_error err = { 0 };
        snprintf(options, sizeof options, "path=%s/libbad_drafter_%d.so", WG_TEST_PLUGINS, fault);
        const law_setup setup = { .target = &target, .drafter = "plugin", .options = options, .rule = "match" };
        wg_engine *e = law_engine(&setup);
        wg_seq *s;
        LAW_TRY(wg_seq_open(e, &s, 1, prompt, 7, 30, &err));
        const wg_status status = wg_engine_step(e, &s, 1, &err);
        cr_assert_eq(status, fault == 7 ? WG_EINVAL : WG_EIO);
        const char *says =
            fault == 7 ? "libbad_drafter_7.so: law iid is not among those bad declares" : "bad failed and did not say why";
        cr_assert(strstr(err.text, says), "%s", err.text);
        cr_assert(wg_kv_tail(s->kv) == 0 && s->n == 7);
        wg_seq_close(e, s);
        wg_engine_close(e);
    }
}

/* Rows of q that are no distributions; also inside another drafter. The sequence is unchanged. */
Test(plugin, a_row_of_q_that_is_no_distribution_ends_the_step)
{
    static const char *const says[] = {
        "request 1: q row 0 gives token 1 the probability -0.25; expected 0..1",
        "request 1: q row 0 gives token 1 the probability nan; expected 0..1",
        "request 1: q row 0 gives token 0 the probability 1.5; expected 0..1",
        "request 1: q row 0 has all its mass on token 40; the vocabulary is 0..39",
        "request 1: q row 0: its support of 2 tokens is no ascending list of 1..5 tokens of 0..39",
        "request 1: q row 0 sums to 0.9; expected 1",
    };
    for (int fault = 12; fault <= 17; fault++)
        for (int wrapped = 0; wrapped < 2; wrapped++) {
            char options[700];
            wg_error err = { 0 };
            snprintf(options, sizeof options, "%spath=%s/libbad_drafter_%d.so%s", wrapped ? "first=plugin:" : "",
                     WG_TEST_PLUGINS, fault, wrapped ? ",second=none" : "");
            const law_setup setup = { .target = &target,
                                      .drafter = wrapped ? "hybrid" : "plugin",
                                      .options = options,
                                      .rule = "rejection",
                                      .sampling = WG_SAMPLING(1, 0, 1, 0) };
            wg_engine *e = law_engine(&setup);
            wg_seq *s;
            LAW_TRY(wg_seq_open(e, &s, 1, prompt, 7, 30, &err));
            cr_assert_eq(wg_engine_step(e, &s, 1, &err), WG_EINVAL, "fault %d", fault);
            cr_assert(strstr(err.text, says[fault - 12]), "%s", err.text);
            cr_assert(wg_kv_tail(s->kv) == 0 && s->n == 7 && s->counts.passes == 0);
            wg_seq_close(e, s);
            wg_engine_close(e);
        }
}

/* Inside another drafter the engine does not see the tree: who wraps it looks. */
Test(plugin, a_wrapped_one_is_checked_too)
{
    wg_error err = { 0 };
    const law_setup setup = { .target = &target,
                              .drafter = "hybrid",
                              .rule = "match",
                              .options = "first=plugin:path=" WG_TEST_PLUGINS "/libbad_drafter_9.so,second=none" };
    wg_engine *e = law_engine(&setup);
    wg_seq *s;
    LAW_TRY(wg_seq_open(e, &s, 1, prompt, 7, 30, &err));
    cr_assert_eq(wg_engine_step(e, &s, 1, &err), WG_EINVAL);
    cr_assert(strstr(err.text, "inner drafter plugin: the root is not the last token"), "%s", err.text);
    wg_seq_close(e, s);
    wg_engine_close(e);
}

Test(plugin, every_failed_allocation_is_an_error_and_leaks_nothing)
{
    fail_every_allocation(&target, "plugin", "path=" WG_TEST_PLUGINS "/libbigram.so,options=k=3");
    fail_every_allocation(&target, "plugin", "path=" WG_TEST_PLUGINS "/libnearest.so,options=k=3");
}
