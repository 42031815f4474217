/* SPDX-License-Identifier: MIT
 * After warm-up a step allocates nothing (DESIGN.md, section 11): the ledger of core/base/mem.h counts every allocation of the
 * program while small real models decode, for every drafter and rule, one sequence and several. And a sequence that is closed
 * leaves nothing: what the engine and its drafter hold then is what they held before it was opened.
 *
 * With --thin (builds that watch memory or have the smallest sizes) every drafter still meets every rule, but each pair at one
 * sampling and one number of sequences, in turn. */
#include <unistd.h>

#include "core/file/synth.h"
#include "draft/lookup/datastore.h"
#include "tests/law/plain_decode.h"

enum { WARM_UP = 3, STEPS = 25, SEQUENCES = 5, PROMPT = 20 };

static char dir[] = "/tmp/wg-alloc-XXXXXX";
static char target_path[64], draft_path[64], store_path[64], other_path[64];

static void write_models(void)
{
    wg_error err;
    if (!mkdtemp(dir)) exit((perror(dir), 1));
    snprintf(target_path, sizeof target_path, "%s/target.gguf", dir);
    snprintf(draft_path, sizeof draft_path, "%s/draft.gguf", dir);
    snprintf(store_path, sizeof store_path, "%s/store", dir);
    snprintf(other_path, sizeof other_path, "%s/other.gguf", dir);
    wg_synth_shape s = {
        .name = "target", .layers = 2, .dim = 64, .heads = 4, .kv_heads = 2, .hidden = 96, .vocab = 320, .context = 512};
    LAW_TRY(wg_synth_write(&s, WG_F32, 1, target_path, &err));
    LAW_TRY(wg_synth_write(&s, WG_Q8_0, 1, draft_path, &err));
    s.vocab = 300;
    LAW_TRY(wg_synth_write(&s, WG_F16, 1, other_path, &err));
}

static void remove_models(void)
{
    remove(target_path), remove(draft_path), remove(store_path), remove(other_path), remove(dir);
}

static void write_store(const wg_tokenizer *t)
{
    wg_error err;
    int32_t token[2000];
    for (int k = 0; k < 2000; k++) token[k] = 3 + (k * k + k / 5) % 13;
    LAW_TRY(wg_datastore_write(store_path, t, token, 2000, &err));
}

static wg_seq *begin(wg_engine *e, int i)
{
    wg_error err;
    wg_seq *s;
    int32_t prompt[PROMPT];
    for (int k = 0; k < PROMPT; k++) prompt[k] = 3 + (7 * i + k * k) % 13;
    LAW_TRY(wg_seq_open(e, &s, (uint32_t)i, prompt, PROMPT - i, 450, &err));
    return s;
}

/* Allocations of STEPS steps after the warm-up; in *left the bytes that the sequences left behind. Caches take their pages with
 * their first sequence and keep them, so a step of one comes before. */
static uint64_t count(wg_engine *e, int n, long *left)
{
    wg_error err;
    wg_seq *seq[SEQUENCES];
    seq[0] = begin(e, 0);
    LAW_TRY(wg_engine_step(e, seq, 1, &err));
    wg_seq_close(e, seq[0]);
    const size_t held = wg_mem_read().live_bytes;
    for (int i = 0; i < n; i++) seq[i] = begin(e, i);
    uint64_t before = 0;
    for (int k = 0; k < WARM_UP + STEPS; k++) {
        if (k == WARM_UP) before = wg_mem_read().calls;
        LAW_TRY(wg_engine_step(e, seq, n, &err));
        for (int i = 0; i < n; i++)
            if (seq[i]->finish != WG_RUNNING) seq[i]->finish = WG_RUNNING; /* an end token by chance: go on */
    }
    const uint64_t calls = wg_mem_read().calls - before;
    for (int i = 0; i < n; i++) wg_seq_close(e, seq[i]);
    *left = (long)wg_mem_read().live_bytes - (long)held;
    return calls;
}

/* Whose turn it is at a pair of a drafter and a rule, when it has one. */
static bool is_turn(int pair, bool greedy, int s, int n) { return (pair % 4 > 1) == (n > 1) && (greedy || pair % 2 == s); }

int main(int argc, char **argv)
{
    const bool thin = argc > 1 && !strcmp(argv[1], "--thin");
    write_models();
    atexit(remove_models);
    law_model target;
    char chain[128], tree[128], best[128], corpus[128], store[128];
    snprintf(chain, sizeof chain, "model=%s,length=4", draft_path);
    snprintf(tree, sizeof tree, "model=%s,tree=2-1-1", draft_path);
    snprintf(best, sizeof best, "model=%s,grow=best_first,budget=7", draft_path);
    snprintf(corpus, sizeof corpus, "n_min=1,corpus=%s", store_path);
    snprintf(store, sizeof store, "n_min=1,datastore=%s", store_path);
    char common[160], slem[128];
    snprintf(common, sizeof common, "model=%s,vocabulary=intersection,tree=2-1", other_path);
    snprintf(slem, sizeof slem, "model=%s,p_min=0.001", other_path);
    char hybrid[200], best_of[200], full[200], cascade[200];
    snprintf(hybrid, sizeof hybrid, "first=ngram,second=model:model=%s;length=2", draft_path);
    snprintf(best_of, sizeof best_of, "of=ngram|model:model=%s;length=2", draft_path);
    snprintf(full, sizeof full, "of=ngram|model:model=%s;length=2", draft_path);
    snprintf(cascade, sizeof cascade, "model=%s,inner=ngram:k=2", draft_path);
    const struct {
        const char *drafter, *options;
        bool tree;
    } drafters[] = {{"none", NULL, false},
                    {"model", chain, false},
                    {"model", tree, true},
                    {"model", best, true},
                    {"model", common, true},
                    {"slem", slem, false},
                    {"ngram", NULL, false},
                    {"ngram_cache", "memory_mb=1", false},
                    {"ngram_hash", "n=2,memory_mb=1", false},
                    {"suffix", "tree=true,memory_mb=1", true},
                    {"sam", corpus, false},
                    {"retrieval", store, true},
                    {"recycle", NULL, true},
                    {"lookahead", "text=true", true},
                    {"layer_skip", "mlp=1,tree=2-1-1", true},
                    {"early_exit", "grow=best_first,budget=7", true},
                    {"sparse_kv", "sinks=2,window=8", false},
                    {"hybrid", hybrid, false},
                    {"best_of", best_of, false},
                    {"full_information", full, false},
                    {"cascade", cascade, false},
                    {"process", "command=python3 examples/process-drafter/bigram.py,timeout_ms=60000", false},
                    {"synthetic", "k=3", false}};
    enum { DRAFTERS = sizeof drafters / sizeof *drafters };
    const wg_sampling samplings[] = {
        WG_SAMPLING(0, 0, 1, 0), {.temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.01, .repetition_penalty = 1.2}};

    law_model_open(&target, target_path, 2, wg_cpu_chosen(), WG_F16);
    write_store(target.tokenizer);
    int failures = 0, cases = 0;
    for (int d = 0; d < DRAFTERS; d++)
        for (const wg_verifier_class *const *rule = wg_verifiers; *rule; rule++)
            for (int s = 0; s < 2; s++)
                for (int n = 1; n <= SEQUENCES; n += SEQUENCES - 1) {
                    const law_setup setup = {.target = &target,
                                             .drafter = drafters[d].drafter,
                                             .options = drafters[d].options,
                                             .rule = (*rule)->name,
                                             .sampling = samplings[s],
                                             .seed = 3,
                                             .batch = n,
                                             .alpha = true};
                    const bool greedy = !strcmp((*rule)->name, "greedy");
                    if (greedy && s) continue;
                    if (thin && !is_turn(d + (int)(rule - wg_verifiers), greedy, s, n)) continue;
                    if (!law_legal(setup.drafter, setup.options, &setup.sampling, *rule)) continue;
                    if (drafters[d].tree && (*rule)->chains) continue;
                    long left;
                    wg_engine *e = law_engine(&setup);
                    const uint64_t calls = count(e, n, &left);
                    wg_engine_close(e);
                    cases++;
                    if (calls == 0 && left == 0) continue;
                    failures++;
                    fprintf(stderr, "FAILED drafter %s (%s), rule %s, T=%g, %d sequences: %llu allocations in %d steps, "
                            "%ld bytes left when they were closed\n", drafters[d].drafter,
                            drafters[d].options ? drafters[d].options : "", (*rule)->name, samplings[s].temperature, n,
                            (unsigned long long)calls, STEPS, left);
                }
    law_model_close(&target);
    printf("%d settings, %d steps each after %d of warm-up: %d of them allocate, or leave something of a sequence\n", cases,
           STEPS, WARM_UP, failures);
    const char *name[DRAFTERS];
    for (int d = 0; d < DRAFTERS; d++) name[d] = drafters[d].drafter;
    return failures + law_uncovered(name, DRAFTERS) != 0;
}
