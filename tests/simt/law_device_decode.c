/* SPDX-License-Identifier: MIT
 * Rounds that a device goes through by itself are steps of the host: with target and draft on cuda:0/exact, every rule that
 * settles there gives the CPU's text and counts under plain decoding, chains of a draft model and of n-grams, of batches whose
 * requests come and go.
 * usage: law_device_decode [RUNS [WORDS]]     so many of them; all when left out. WORDS: /serial, /eager (then the host makes
 * the rounds) */
#include <inttypes.h>

#include "core/engine/device_decode.h"
#include "core/engine/engine_impl.h"
#include "tests/law/pair.h"

enum { PROMPTS = 3, LONGEST = 20, TOKENS = 16, WINDOW = 3 };

static const wg_sampling samplings[] = { WG_SAMPLING(0.8, 0, 0.95, 0), WG_SAMPLING(1, 0, 1, 0), WG_SAMPLING(0, 0, 1, 0) };
enum { SAMPLINGS = sizeof samplings / sizeof *samplings };

static bool eager; /* of the device: no loop is to be had */

/* Failures. */
static int check(law_setup setup, const law_model *device, const char *device_options, const law_request *r)
{
    law_output want[PROMPTS] = { 0 }, got[PROMPTS] = { 0 };
    wg_counts host = { 0 }, loop = { 0 };
    char what[120];
    snprintf(what, sizeof what, "%s, rule %s, T=%g, batch %d", setup.drafter, setup.rule, setup.sampling.temperature,
             setup.batch);
    law_decode(&setup, r, PROMPTS, want, &host);
    setup.target = device;
    setup.options = device_options;
    wg_engine *e = law_engine(&setup);
    int bad = (e->device_decode == NULL) != eager;
    if (bad) fprintf(stderr, "FAILED %s: there is %s loop\n", what, eager ? "a" : "no");
    const long before = setup.target->lm->passes;
    law_run(e, WINDOW, r, PROMPTS, got, &loop);
    bad += law_compare(what, want, got, PROMPTS);
    if (loop.passes != host.passes || loop.drafted != host.drafted || loop.accepted != host.accepted ||
        memcmp(loop.accepted_at, host.accepted_at, sizeof host.accepted_at) ||
        memcmp(loop.tried_at, host.tried_at, sizeof host.tried_at) ||
        memcmp(loop.without_draft, host.without_draft, sizeof host.without_draft))
        bad++, fprintf(stderr, "FAILED %s: %ld passes, %ld drafted, %ld accepted; steps: %ld, %ld, %ld\n", what, loop.passes,
                       loop.drafted, loop.accepted, host.passes, host.drafted, host.accepted);
    printf("%-50s %ld of %ld drafted accepted, %ld passes of the device\n", what, loop.accepted, loop.drafted,
           setup.target->lm->passes - before);
    wg_engine_close(e);
    law_free(want, PROMPTS);
    law_free(got, PROMPTS);
    return bad;
}

int main(int argc, char **argv)
{
    char large[512], path[512], prompts[512], host_draft[600], device_draft[700], name[64];
    const char *root = getenv("WG_ROOT");
    const int most = argc > 1 ? atoi(argv[1]) : 1000;
    if (!pair_find(large, path, sizeof path)) {
        printf("SKIPPED: the bundled pair is not there\n");
        return LAW_SKIP;
    }
    law_model host, device;
    law_request r[PROMPTS];
    law_model_open_on(&host, path, "cpu");
    snprintf(name, sizeof name, "cuda:0/exact%s", argc > 2 ? argv[2] : "");
    eager = strstr(name, "/eager") != NULL;
    law_model_open_on(&device, path, name);
    snprintf(prompts, sizeof prompts, "%s/configs/prompts/quickstart.jsonl", root ? root : ".");
    if (pair_prompts(prompts, host.tokenizer, 1, PROMPTS, LONGEST, TOKENS, r) != PROMPTS) return 1;
    for (int i = 0; i < PROMPTS; i++) r[i].max_new -= 5 * i;
    snprintf(host_draft, sizeof host_draft, "model=%s,length=3,temperature=0.7", path);
    snprintf(device_draft, sizeof device_draft, "%s,device=%s", host_draft, name);
    int failures = 0, runs = 0;
    for (int v = 0; wg_verifiers[v] && runs < most; v++)
        for (int d = 0; d < 3 && runs < most; d++) {
            const wg_verifier_class *rule = wg_verifiers[v];
            const wg_sampling *s = &samplings[rule->zero_only ? 2 : v % SAMPLINGS];
            const char *drafter = d == 0 ? "model" : d == 1 ? "ngram" : "none", *options = d == 0 ? host_draft : NULL;
            if (rule->device == WG_RULE_HOST || (d && v % 3) || !law_legal(drafter, options, s, rule)) continue;
            const law_setup setup = { .target = &host,
                                      .drafter = drafter,
                                      .options = options,
                                      .rule = rule->name,
                                      .sampling = *s,
                                      .seed = 5,
                                      .batch = v % 2 ? 2 : 1 };
            failures += check(setup, &device, d == 0 ? device_draft : NULL, r);
            runs++;
        }
    printf("%d runs, %d failures\n", runs, failures);
    for (int i = 0; i < PROMPTS; i++) wg_free((int32_t *)r[i].prompt);
    law_model_close(&host);
    law_model_close(&device);
    return failures || runs == 0;
}
