/* SPDX-License-Identifier: MIT
 * No length policy changes the text under rules that only compare (match, greedy), including policies that measure the
 * machine or use drawn tokens; with and without penalties, chains and trees, batch 1 and 8. Under rejection a policy that
 * depends on the past and q only gives the same text for every batch. */
#include <unistd.h>

#include "core/file/synth.h"
#include "tests/law/plain_decode.h"

enum { REQUESTS = 9, PROMPT = 24, VOCAB = 300 };

static char dir[] = "/tmp/wg-length-XXXXXX";
static char target_path[64], draft_path[64];

static void write_models(void)
{
    wg_error err;
    if (!mkdtemp(dir)) exit((perror(dir), 1));
    snprintf(target_path, sizeof target_path, "%s/target.gguf", dir);
    snprintf(draft_path, sizeof draft_path, "%s/draft.gguf", dir);
    const wg_synth_shape s = {
        .name = "target", .layers = 2, .dim = 32, .heads = 4, .kv_heads = 2, .hidden = 64, .vocab = VOCAB, .context = 128
    };
    LAW_TRY(wg_synth_write(&s, WG_F32, 1, target_path, &err));
    LAW_TRY(wg_synth_write(&s, WG_Q8_0, 1, draft_path, &err));
}

static void remove_models(void) { remove(target_path), remove(draft_path), remove(dir); }

static const wg_sampling samplings[] = {
    WG_SAMPLING(0, 0, 1, 0),
    WG_SAMPLING(0.3, 0, 1, 0),
    { .temperature = 0.3, .top_p = 0.95, .repetition_penalty = 1.3, .frequency_penalty = 0.2, .penalty_window = 20 },
};
enum { SAMPLINGS = sizeof samplings / sizeof *samplings };

static const struct {
    const char *options;
    bool needs_q, steady; /* steady: only the past and q decide, so rejection too gives the same text everywhere */
} policies[] = {
    { "fixed", false, true },
    { "confidence,threshold=0.05", true, true },
    { "entropy,threshold=0.1,spread=0.15", true, true },
    { "adaedl,threshold=0.1,spread=0.15", true, true },
    { "cost,costs=1/1.1/1.3/1.5,draft_cost=0.05", false, true },
    { "cost", false, false },
    { "drawn,threshold=0.02", true, false },
};
enum { POLICIES = sizeof policies / sizeof *policies };

static const struct {
    const char *drafter, *options;
    bool has_q;
} drafts[] = {
    { "model", "length=6", true },
    { "model", WG_TREE_MAX > 8 ? "tree=2-2-1-1" : "tree=2-1-1", true },
    { "model", "grow=best_first,budget=7,length=5", true },
    { "ngram", "k=6,n_max=2", false },
};
enum { DRAFTS = sizeof drafts / sizeof *drafts };

static int32_t prompt[REQUESTS][PROMPT];
static law_request request[REQUESTS];
static law_model target;
static int runs, failures;

static void make_requests(void)
{
    for (int i = 0; i < REQUESTS; i++) {
        for (int k = 0; k < PROMPT; k++) prompt[i][k] = 3 + (k % (3 + i) * 37 + i * 11) % (VOCAB - 3);
        request[i] = (law_request){ prompt[i], PROMPT - 2 * i, 10 + 3 * i };
    }
}

/* One draft and policy under `rule`, at batch 1 and 8, against `want`; when that is NULL the two against each other. */
static void check(int s, int d, int p, const char *rule, const law_output *want, wg_counts *counts)
{
    char options[256], what[400];
    law_output alone[REQUESTS] = { 0 }, got[REQUESTS] = { 0 };
    snprintf(options, sizeof options, "%s%s%s,policy=%s", drafts[d].options, drafts[d].has_q ? ",model=" : "",
             drafts[d].has_q ? draft_path : "", policies[p].options);
    law_setup setup = { .target = &target,
                        .drafter = drafts[d].drafter,
                        .options = options,
                        .rule = rule,
                        .sampling = samplings[s],
                        .seed = 5,
                        .batch = 1 };
    snprintf(what, sizeof what, "%s (%s), rule %s, sampling %d", drafts[d].drafter, options, rule, s);
    law_decode(&setup, request, REQUESTS, alone, counts);
    setup.batch = 8;
    law_decode(&setup, request, REQUESTS, got, counts);
    if (want) failures += law_compare(what, want, alone, REQUESTS);
    failures += law_compare(what, want ? want : alone, got, REQUESTS);
    law_free(alone, REQUESTS);
    law_free(got, REQUESTS);
    runs += 2;
}

/* Looking at drawn tokens under a rule that accepts with probabilities: the engine does not open. */
static void check_refusal(void)
{
    wg_error err = { 0 };
    wg_engine *e;
    const size_t size = wg_drafter_model.size - wg_drafter_model.options_at;
    void *options = wg_calloc(1, size);
    char list[128];
    snprintf(list, sizeof list, "model=%s,policy=drawn", draft_path);
    wg_option_defaults(wg_drafter_model.options, options);
    LAW_TRY(wg_option_set_list(wg_drafter_model.options, options, size, list, &err));
    const wg_engine_parts parts = { .target = target.lm,
                                    .pool = target.pool,
                                    .ops = target.ops,
                                    .drafter = &wg_drafter_model,
                                    .drafter_options = options,
                                    .verifier = &wg_verifier_rejection };
    const wg_engine_options o = { .max_batch = 1, .sampling = WG_SAMPLING(1, 0, 1, 0) };
    const wg_status s = wg_engine_open(&e, &parts, &o, &err);
    if (s != WG_ELAW || !strstr(err.text, "non-anticipation")) {
        fprintf(stderr, "FAILED policy drawn with rejection: %s: %s\n", wg_status_name(s), err.text);
        failures++;
    }
    wg_free(options);
}

int main(void)
{
    write_models();
    atexit(remove_models);
    law_model_open(&target, target_path, 2, wg_cpu_chosen(), WG_F16);
    make_requests();
    check_refusal();
    for (int s = 0; s < SAMPLINGS; s++) {
        law_output plain[REQUESTS] = { 0 };
        wg_counts counts = { 0 };
        const law_setup base = { .target = &target, .drafter = "none", .rule = "match", .sampling = samplings[s], .seed = 5 };
        law_decode(&base, request, REQUESTS, plain, &counts);
        for (int d = 0; d < DRAFTS; d++)
            for (int p = 0; p < POLICIES; p++) {
                if (policies[p].needs_q && !drafts[d].has_q) continue;
                check(s, d, p, s ? "match" : "greedy", plain, &counts);
                if (policies[p].steady) check(s, d, p, "rejection", s ? NULL : plain, &counts);
            }
        law_free(plain, REQUESTS);
        printf("sampling %d: %d runs so far; %ld drafted, %ld accepted\n", s, runs, counts.drafted, counts.accepted);
        failures += counts.drafted == 0 || counts.accepted == 0;
    }
    law_model_close(&target);
    if (failures) fprintf(stderr, "%d failures\n", failures);
    return failures != 0;
}
