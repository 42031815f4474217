/* SPDX-License-Identifier: MIT
 * Speculative output equals plain output, byte for byte (docs/architecture.md, the laws): every drafter under the rules greedy
 * and match, at every temperature, against plain decoding of one sequence on one thread with the reference operations. Small
 * models with random weights; the drafts range from the target itself (full acceptance, so every commit leaves the draft's
 * cache one short) over its q8_0 rounding (mixed) to a stranger (nearly everything rejected). Requests are ragged and finish at
 * different times.
 *
 * Rejection is lossless in law only; there the outputs must agree with its own at batch 1, and with plain decoding for the root
 * alone. The laws themselves, of every drafter under every rule, are in law_exact.
 *
 * Every drafter meets every sampling and every machine, every sampling meets every machine; not every three of them meet, but
 * at one sampling. On the reference operations, which are slow, a drafter decodes half of the requests in one batch or the
 * other. With --thin (builds that watch memory or have the smallest sizes) every drafter meets a third of the samplings
 * and two machines, and one rule's batches stand for the other's. */
#include <limits.h>
#include <math.h>

#include "kernels/philox.h"
#include "tests/law/synth_models.h"

enum { REQUESTS = 11, REQUESTS_REF = 5, PROMPT_MAX = 45, VOCAB = 320, CONTEXT = 128 };

static int32_t prompt[REQUESTS][PROMPT_MAX];
static law_request request[REQUESTS];
static int failures, coupled_checked, rejection_checked;
static bool thin;

/* A datastore of half the greedy texts, so that what is found there is often right, and the other half wrong. */
static void write_lists(const wg_tokenizer *t, const law_output *plain)
{
    static int32_t token[REQUESTS * (PROMPT_MAX + 2 * CONTEXT)];
    size_t n = 0;
    for (int i = 0; i < REQUESTS; i++) {
        for (int k = 0; k < request[i].n; k++) token[n++] = request[i].prompt[k];
        for (int k = 0; k < plain[i].n; k++) token[n++] = i % 2 ? plain[i].token[k] : (plain[i].token[k] + k) % VOCAB;
        token[n++] = -1;
    }
    law_models_lists(t, token, n);
}

/* Prompts of 1 .. PROMPT_MAX tokens with repetitions (for ngram), outputs of 1 .. 40; one runs into the end of the context. */
static void make_requests(void)
{
    for (int i = 0; i < REQUESTS; i++) {
        const wg_philox r = wg_philox_at(99, (uint32_t)i, 0, 0, 0);
        const int n = i == 0 ? 1 : 1 + (int)(r.v[0] % PROMPT_MAX), period = 1 + (int)(r.v[1] % 9);
        for (int k = 0; k < n; k++)
            prompt[i][k] = 3 + (int32_t)(wg_philox_at(98, (uint32_t)i, (uint32_t)(k % period), 0, 0).v[0] % (VOCAB - 3));
        request[i] = (law_request){ prompt[i], n, i == 1 ? 1 : i == 2 ? 2 * CONTEXT : 5 + (int)(r.v[2] % 36) };
    }
}

typedef struct machine {
    int threads;
    wg_cpu_level level;
    law_model target;
} machine;

static const wg_sampling samplings[] = {
    WG_SAMPLING(0, 0, 1, 0),
    WG_SAMPLING(0.7, 0, 1, 0),
    WG_SAMPLING(1, 0, 1, 0),
    WG_SAMPLING(1, 20, 1, 0),
    WG_SAMPLING(0.7, 0, 0.9, 0),
    WG_SAMPLING(1, 50, 0.8, 0.02),
    { .top_p = 1, .repetition_penalty = 1.3, .presence_penalty = 0.2 },
    { .temperature = 0.7, .top_p = 1, .repetition_penalty = 1.5, .frequency_penalty = 0.3, .penalty_window = 6 },
    { .temperature = 1,
      .top_k = 40,
      .top_p = 0.9,
      .frequency_penalty = 0.5,
      .order = "top_k,penalties,top_p,min_p,temperature" },
};
enum { SAMPLINGS = sizeof samplings / sizeof *samplings, EVERY_MACHINE = 3 }; /* at samplings[3] a drafter meets them all */

static bool meets_sampling(int row, int s) { return !thin || s == 0 || s == EVERY_MACHINE || (row + s) % 3 == 0; }

/* Elsewhere one machine, in turn; but not the slow reference: its plain texts are what the others are held against. */
static bool meets_machine(int row, int s, int i, int machines)
{
    const int first = thin ? 0 : 1;
    return s == EVERY_MACHINE || i == first + (row + s) % (machines - first);
}

static int requests_on(const machine *m) { return !thin && m->level == WG_CPU_REF ? REQUESTS_REF : REQUESTS; }

static void expect(const char *what, const law_output *want, const law_output *got, int n)
{
    failures += law_compare(what, want, got, n);
}

/* One drafter against the plain outputs of its samplings, over machines and batches. */
static void check_row(int number, const law_row *r, machine *m, int machines, law_output plain[SAMPLINGS][REQUESTS])
{
    wg_counts total = { 0 };
    long runs = 0, tokens = 0;
    for (int s = 0; s < SAMPLINGS; s++) {
        for (int i = 0; i < machines && meets_sampling(number, s); i++) {
            if (!meets_machine(number, s, i, machines)) continue;
            for (int k = 0; k < 3; k++) {
                const bool greedy = s == 0 && k == 2;
                if (k == 2 && !greedy) continue;
                if (!thin && m[i].level == WG_CPU_REF && k != number % 2) continue;
                const int batch = k ? 8 : 1, n = requests_on(&m[i]);
                const law_setup setup = { .target = &m[i].target,
                                          .drafter = r->class->name,
                                          .options = r->options,
                                          .rule = greedy ? "greedy" : "match",
                                          .sampling = samplings[s],
                                          .seed = 7,
                                          .batch = batch,
                                          .page_slots = i == 1   ? 4
                                                        : i == 2 ? 16
                                                                 : 0,
                                          .prefill_rows = 5 + i,
                                          .alpha = s == EVERY_MACHINE };
                law_output got[REQUESTS] = { 0 };
                wg_counts counts = { 0 };
                law_decode(&setup, request, n, got, &counts);
                char what[200];
                snprintf(what, sizeof what, "%s, rule %s, T=%g top_k=%d top_p=%g, batch %d, %d threads, ops %s", r->label,
                         setup.rule, samplings[s].temperature, samplings[s].top_k, samplings[s].top_p, batch, m[i].threads,
                         wg_cpu_name(m[i].level));
                expect(what, plain[s], got, n);
                if (s == 0 && counts.accepted < r->test->keeps * (double)counts.drafted) {
                    fprintf(stderr, "FAILED %s: accepted %ld of %ld greedy drafts, at least %g expected\n", what,
                            counts.accepted, counts.drafted, r->test->keeps);
                    failures++;
                }
                runs++;
                tokens += law_tokens(got, n);
                wg_counts_add(&total, &counts);
                law_free(got, n);
            }
        }
    }
    printf("%-22s %3ld runs, %6ld tokens equal plain decoding; %5ld passes, %6ld drafted, %5ld accepted\n", r->label, runs,
           tokens, total.passes, total.drafted, total.accepted);
    if (strcmp(r->class->name, "none") && total.drafted == 0) {
        fprintf(stderr, "FAILED %s: nothing was drafted, so nothing was tested\n", r->label);
        failures++;
    }
    long levels = 0;
    for (int d = 1; d < WG_TREE_MAX; d++) levels += total.offered_at[d];
    if (levels != total.drafted && !r->test->siblings) {
        fprintf(stderr, "FAILED %s: it drafts siblings; its class has to say so\n", r->label);
        failures++;
    }
}

/* Rejection: the same text whatever the machine and the batch; for the root alone, plain decoding's. */
static void check_rejection(int number, const law_row *r, machine *m, int machines, law_output plain[SAMPLINGS][REQUESTS])
{
    for (int s = 0; s < SAMPLINGS; s++) {
        law_output alone[REQUESTS] = { 0 };
        if (!law_legal(r->class->name, r->options, &samplings[s], &wg_verifier_rejection)) continue;
        for (int i = -1; i < machines && meets_sampling(number, s); i++) { /* first one at a time */
            if (i >= 0 && !meets_machine(number, s, i, machines)) continue;
            const machine *on = &m[i < 0 ? machines - 1 : i];
            const int n = i < 0 ? REQUESTS : requests_on(on);
            law_output got[REQUESTS] = { 0 };
            wg_counts counts = { 0 };
            const law_setup setup = { .target = &on->target,
                                      .drafter = r->class->name,
                                      .options = r->options,
                                      .rule = "rejection",
                                      .sampling = samplings[s],
                                      .seed = 7,
                                      .batch = i < 0 ? 1 : 8 };
            law_decode(&setup, request, n, got, &counts);
            char what[160];
            snprintf(what, sizeof what, "%s rule rejection, T=%g, batch %d, %d threads, ops %s", r->label,
                     samplings[s].temperature, setup.batch, on->threads, wg_cpu_name(on->level));
            if (!strcmp(r->class->name, "none") || s == 0) expect(what, plain[s], got, n);
            rejection_checked++;
            if (i < 0) {
                memcpy(alone, got, sizeof alone);
                continue;
            }
            if (!r->class->cross_request || r->test->own_request || s == 0) expect(what, alone, got, n);
            law_free(got, n);
        }
        law_free(alone, REQUESTS);
    }
}

/* Coupled: one text for one seed and number of races, whatever is drafted, in whatever batch (methods.md, Coupled races). Not
 * match's text: other draws. */
enum { COUPLED_AT = 5 }; /* of samplings */
static const char *const races_of[] = { "races=1", "races=3" };
static void check_coupled(const law_row *r, const machine *m, const char *races, const law_output *alone)
{
    for (int batch = thin ? 8 : 1; batch <= 8; batch += 7) {
        law_output got[REQUESTS] = { 0 };
        wg_counts counts = { 0 };
        const law_setup setup = { .target = &m->target,
                                  .drafter = r->class->name,
                                  .options = r->options,
                                  .rule = "coupled",
                                  .rule_options = races,
                                  .sampling = samplings[COUPLED_AT],
                                  .seed = 7,
                                  .batch = batch };
        law_decode(&setup, request, REQUESTS, got, &counts);
        char what[160];
        snprintf(what, sizeof what, "%s rule coupled, %s, batch %d", r->label, races, batch);
        expect(what, alone, got, REQUESTS);
        law_free(got, REQUESTS);
        coupled_checked++;
    }
}

int main(int argc, char **argv)
{
    thin = argc > 1 && !strcmp(argv[1], "--thin");
    const law_files files = law_models_write((wg_synth_shape){ .name = "target",
                                                               .layers = 2,
                                                               .dim = 32,
                                                               .heads = 4,
                                                               .kv_heads = 2,
                                                               .hidden = 64,
                                                               .vocab = VOCAB,
                                                               .context = CONTEXT });
    make_requests();

    const wg_cpu_level top = wg_cpu_best();
    wg_cpu_level lower = top > WG_CPU_REF + 1 ? top - 1 : top;
    while (!wg_cpu_has(lower)) lower--;
    machine all[] = { { 1, WG_CPU_REF, { 0 } }, { 2, top, { 0 } }, { 3, top, { 0 } }, { 2, lower, { 0 } }, { 1, top, { 0 } } };
    enum { MACHINES = sizeof all / sizeof *all };
    machine *const m = thin ? all + MACHINES - 2 : all;
    const int machines = thin ? 2 : MACHINES;
    const machine *const one = &m[machines - 1]; /* one thread */
    for (int i = 0; i < machines; i++) law_model_open(&m[i].target, files.target, m[i].threads, m[i].level, WG_F32);

    law_output plain[SAMPLINGS][REQUESTS] = { 0 };
    for (int s = 0; s < SAMPLINGS; s++) {
        wg_counts counts = { 0 };
        const law_setup setup = {
            .target = &m[0].target, .drafter = "none", .rule = "match", .sampling = samplings[s], .seed = 7
        };
        law_decode(&setup, request, REQUESTS, plain[s], &counts);
    }

    law_output coupled[2][REQUESTS] = { 0 };
    for (int i = 0; i < 2; i++) {
        wg_counts ignored = { 0 };
        const law_setup racing = { .target = &one->target,
                                   .drafter = "none",
                                   .rule = "coupled",
                                   .rule_options = races_of[i],
                                   .sampling = samplings[COUPLED_AT],
                                   .seed = 7 };
        law_decode(&racing, request, REQUESTS, coupled[i], &ignored);
    }

    write_lists(m[0].target.tokenizer, plain[0]);
    static law_row rows[LAW_ROWS];
    const int n_rows = law_rows(&files, INT_MAX, rows, &failures);
    for (int i = 0; i < n_rows; i++) {
        check_row(i, &rows[i], m, machines, plain);
        for (int k = 0; k < 2; k++)
            if (!thin || k == i % 2) check_coupled(&rows[i], one, races_of[k], coupled[k]);
        check_rejection(i, &rows[i], m, machines, plain);
    }
    for (int k = 0; k < 2; k++) law_free(coupled[k], REQUESTS);
    for (int s = 0; s < SAMPLINGS; s++) law_free(plain[s], REQUESTS);
    for (int i = 0; i < machines; i++) law_model_close(&m[i].target);
    printf("%d runs of races and %d of rejection have one text whatever the batch%s\n", coupled_checked, rejection_checked,
           thin ? "" : " and the machine");
    if (failures) fprintf(stderr, "%d failures\n", failures);
    return failures != 0;
}
