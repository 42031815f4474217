/* SPDX-License-Identifier: MIT
 * After warm-up a step allocates nothing: the ledger of core/base/mem.h counts every allocation of the program while small
 * real models decode, for every drafter and rule, one sequence and several. A closed sequence leaves nothing: the engine and
 * its drafter then hold the memory that they held before it was opened.
 *
 * With --thin (builds that watch memory or have the smallest sizes) every drafter still runs with every rule, but each pair
 * with one sampling and one number of sequences only. */
#include "tests/law/synth_models.h"

enum { WARM_UP = 3, STEPS = 25, SEQUENCES = 5, PROMPT = 20, TEXT = 2000, ROWS_EACH = 5 /* of a drafter's test options */ };

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
    law_model target;
    static law_row rows[LAW_ROWS];
    const law_files files = law_models_write((wg_synth_shape){
        .name = "target", .layers = 2, .dim = 64, .heads = 4, .kv_heads = 2, .hidden = 96, .vocab = 320, .context = 512 });
    int32_t text[TEXT];
    law_models_text(text, TEXT);
    int failures = 0, cases = 0;
    const int n_rows = law_rows(&files, ROWS_EACH, rows, &failures);
    const wg_sampling samplings[] = {
        WG_SAMPLING(0, 0, 1, 0), { .temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.01, .repetition_penalty = 1.2 }
    };

    law_model_open(&target, files.target, 2, wg_cpu_chosen(), WG_F16);
    law_models_lists(target.tokenizer, text, TEXT);
    for (int d = 0; d < n_rows; d++)
        for (const wg_verifier_class *const *rule = wg_verifiers; *rule; rule++)
            for (int s = 0; s < 2; s++)
                for (int n = 1; n <= SEQUENCES; n += SEQUENCES - 1) {
                    const law_setup setup = { .target = &target,
                                              .drafter = rows[d].class->name,
                                              .options = rows[d].options,
                                              .rule = (*rule)->name,
                                              .sampling = samplings[s],
                                              .seed = 3,
                                              .batch = n,
                                              .alpha = true };
                    const bool greedy = !strcmp((*rule)->name, "greedy");
                    if (greedy && s) continue;
                    if (thin && !is_turn(d + (int)(rule - wg_verifiers), greedy, s, n)) continue;
                    if (!law_legal(setup.drafter, setup.options, &setup.sampling, *rule)) continue;
                    if (rows[d].test->siblings && (*rule)->chains) continue;
                    long left;
                    wg_engine *e = law_engine(&setup);
                    const uint64_t calls = count(e, n, &left);
                    wg_engine_close(e);
                    cases++;
                    if (calls == 0 && left == 0) continue;
                    failures++;
                    fprintf(stderr,
                            "FAILED drafter %s, rule %s, T=%g, %d sequences: %llu allocations in %d steps, "
                            "%ld bytes left when they were closed\n",
                            rows[d].label, (*rule)->name, samplings[s].temperature, n, (unsigned long long)calls, STEPS, left);
                }
    law_model_close(&target);
    printf("%d settings, %d steps each after %d of warm-up: %d of them allocate, or leave something of a sequence\n", cases,
           STEPS, WARM_UP, failures);
    return failures != 0;
}
