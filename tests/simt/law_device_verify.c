/* SPDX-License-Identifier: MIT
 * Settling on the device is verify on the host: with the same target on cuda:0/exact, every drafter under every rule that it
 * may be drafting for gives the CPU's text, byte for byte, and where nobody looks at rows none of them comes to the host.
 * usage: law_device_verify [RULES [WORDS]]     so many rules a drafter, those that ran least first; all when left out. WORDS of
 * the device's name: /eager, /serial, /eager/serial */
#include "core/engine/device_verify.h"
#include "core/engine/engine_impl.h"
#include "tests/law/pair.h"

enum { PROMPTS = 2, LONGEST = 24, TOKENS = 7 };

static const wg_sampling samplings[] = { WG_SAMPLING(0.8, 0, 0.95, 0), WG_SAMPLING(1, 0, 1, 0), WG_SAMPLING(0, 0, 1, 0),
                                         WG_SAMPLING(1.1, 30, 0.9, 0.02) };
enum { SAMPLINGS = sizeof samplings / sizeof *samplings };

/* The text on the device; *on_device counts engines whose rows stayed there. Failures. */
static int check(law_setup setup, const law_model *device, const char *label, const law_request *r, int *on_device)
{
    law_output want[PROMPTS] = { 0 }, got[PROMPTS] = { 0 };
    char what[1200];
    snprintf(what, sizeof what, "%s, rule %s, T=%g", label, setup.rule, setup.sampling.temperature);
    law_decode(&setup, r, PROMPTS, want, &(wg_counts){ 0 });
    setup.target = device;
    wg_engine *e = law_engine(&setup);
    law_run(e, 1, r, PROMPTS, got, &(wg_counts){ 0 });
    int bad = law_compare(what, want, got, PROMPTS);
    if ((e->device_verify == NULL) != e->watched || (e->device_verify && wg_engine_last_step(e).p->n)) {
        fprintf(stderr, "FAILED %s: the rows were%s expected on the host\n", what, e->watched ? "" : " not");
        bad++;
    }
    *on_device += e->device_verify != NULL;
    wg_engine_close(e);
    law_free(want, PROMPTS);
    law_free(got, PROMPTS);
    return bad;
}

int main(int argc, char **argv)
{
    char large[512], path[512], prompts[512], store[] = "/tmp/wg-store-XXXXXX", name[64];
    const char *root = getenv("WG_ROOT");
    const int each = argc > 1 ? atoi(argv[1]) : 100;
    if (!pair_find(large, path, sizeof path)) {
        printf("SKIPPED: the bundled pair is not there\n");
        return LAW_SKIP;
    }
    law_model host, device;
    law_request r[PROMPTS];
    static law_row row[LAW_ROWS];
    pair_paths paths;
    law_model_open_on(&host, path, "cpu");
    snprintf(name, sizeof name, "cuda:0/exact%s", argc > 2 ? argv[2] : "");
    law_model_open_on(&device, path, name);
    snprintf(prompts, sizeof prompts, "%s/configs/prompts/quickstart.jsonl", root ? root : ".");
    if (pair_prompts(prompts, host.tokenizer, 1, PROMPTS, LONGEST, TOKENS, r) != PROMPTS) return 1;
    pair_store(&host, r, PROMPTS, store);
    const wg_verifier_class *rule[32];
    int failures = 0, on_device = 0, runs = 0, rules = 0, ran[32] = { 0 };
    const int rows = pair_rows(&paths, path, path, store, row, &failures);
    for (int v = 0; wg_verifiers[v]; v++)
        if (wg_verifiers[v]->device != WG_RULE_HOST) rule[rules++] = wg_verifiers[v];
    const double begin = wg_clock_now();
    for (int d = 0; d < rows; d++) {
        const law_row *p = &row[d];
        bool seen[32] = { false };
        for (int done = 0; done < each; done++) {
            const wg_sampling *s = &samplings[runs % SAMPLINGS];
            int k = -1; /* what has run least so far */
            for (int i = 0; i < rules; i++)
                if (!seen[i] && law_legal(p->class->name, p->options, s, rule[i]) && !(rule[i]->chains && p->test->siblings) &&
                    (k < 0 || ran[i] < ran[k]))
                    k = i;
            if (k < 0) break;
            const law_setup setup = { .target = &host,
                                      .drafter = p->class->name,
                                      .options = p->options,
                                      .rule = rule[k]->name,
                                      .sampling = *s,
                                      .seed = 5,
                                      .batch = 1 + runs % 2 };
            failures += check(setup, &device, p->label, r, &on_device);
            seen[k] = true;
            ran[k]++;
            runs++;
        }
    }
    for (int i = 0; i < rules; i++)
        if (!ran[i]) failures++, fprintf(stderr, "FAILED %s: never run\n", rule[i]->name);
    printf("%d runs, %d on_device on the device, %d failures, %.1f s\n", runs, on_device, failures, wg_clock_now() - begin);
    if (2 * on_device < runs) failures++, fprintf(stderr, "FAILED: few were on_device on the device\n");
    for (int i = 0; i < PROMPTS; i++) wg_free((int32_t *)r[i].prompt);
    law_model_close(&host);
    law_model_close(&device);
    remove(store);
    return failures != 0;
}
