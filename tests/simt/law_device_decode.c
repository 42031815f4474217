/* SPDX-License-Identifier: MIT
 * Rounds that a device goes through by itself are steps of the host: with target and draft on cuda:0/exact, every rule that
 * settles there gives the CPU's text and counts under plain decoding, chains of a draft model and of n-grams, of batches whose
 * requests come and go.
 * usage: law_device_decode [RUNS [WORDS]]     so many of them; all when left out. WORDS: /serial, /eager (then the host makes the rounds) */
#include <inttypes.h>

#include "core/engine/device_decode.h"
#include "core/engine/engine_impl.h"
#include "tests/law/pair.h"

enum { PROMPTS = 3, LONGEST = 20, TOKENS = 16, WINDOW = 3 };

static const wg_sampling samplings[] = { WG_SAMPLING(0.8, 0, 0.95, 0), WG_SAMPLING(1, 0, 1, 0), WG_SAMPLING(0, 0, 1, 0) };
enum { SAMPLINGS = sizeof samplings / sizeof *samplings };

static void open_on(law_model *m, const char *path, const char *name)
{
    wg_error err;
    wg_device device;
    const wg_model_options o = { .kv_type = WG_F16 };
    *m = (law_model){ .ops = wg_ops_for(wg_cpu_chosen()) };
    LAW_TRY(wg_device_open(&device, name, NULL, &err));
    LAW_TRY(wg_weights_open(&m->file, path, &err));
    LAW_TRY(wg_model_open(&m->model, m->file, &device, &o, &err));
    wg_device_close(&device); /* the model holds it */
    m->lm = wg_model_lm(m->model);
    LAW_TRY(wg_tokenizer_open(&m->tokenizer, m->file, &err));
}

/* law_run, a window at a time. */
static void run_windows(wg_engine *e, const law_request *r, int n, law_output *out, wg_counts *counts)
{
    wg_error err;
    wg_seq *seq[PROMPTS];
    int who[PROMPTS], running = 0, next = 0;
    while (running || next < n) {
        for (; running < wg_engine_options_of(e)->max_batch && next < n; next++, running++) {
            LAW_TRY(wg_seq_open(e, &seq[running], (uint32_t)next, r[next].prompt, r[next].n, r[next].max_new, &err));
            who[running] = next;
        }
        LAW_TRY(wg_engine_rounds(e, seq, running, WINDOW, NULL, NULL, &err));
        for (int i = running - 1; i >= 0; i--) {
            if (seq[i]->finish == WG_RUNNING) continue;
            law_output *o = &out[who[i]];
            o->n = seq[i]->n - seq[i]->prompt;
            o->finish = seq[i]->finish;
            o->token = wg_calloc((size_t)o->n, sizeof *o->token);
            if (!o->token) abort();
            memcpy(o->token, seq[i]->token + seq[i]->prompt, (size_t)o->n * sizeof *o->token);
            wg_counts_add(counts, &seq[i]->counts);
            wg_seq_close(e, seq[i]);
            seq[i] = seq[--running];
            who[i] = who[running];
        }
    }
}

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
    run_windows(e, r, PROMPTS, got, &loop);
    bad += law_compare(what, want, got, PROMPTS);
    if (loop.passes != host.passes || loop.drafted != host.drafted || loop.accepted != host.accepted ||
        memcmp(loop.accepted_at, host.accepted_at, sizeof host.accepted_at))
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
        printf("SKIPPED: the bundled pair models/*.gguf is not there\n");
        return LAW_SKIP;
    }
    law_model host, device;
    law_request r[PROMPTS];
    open_on(&host, path, "cpu");
    snprintf(name, sizeof name, "cuda:0/exact%s", argc > 2 ? argv[2] : "");
    eager = strstr(name, "/eager") != NULL;
    open_on(&device, path, name);
    snprintf(prompts, sizeof prompts, "%s/configs/prompts/quickstart.jsonl", root ? root : ".");
    if (pair_prompts(prompts, host.tokenizer, 5, PROMPTS, LONGEST, TOKENS, r) != PROMPTS) return 1;
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
