/* SPDX-License-Identifier: MIT
 * Speculative output equals plain output, byte for byte (DESIGN.md, laws 1, 3 and 4): every drafter under the rules greedy and
 * match, at every temperature, against plain decoding of one sequence on one thread with the reference operations. Small models
 * with random weights; the drafts range from the target itself (full acceptance, so every commit leaves the draft's cache one
 * short) over its q8_0 rounding (mixed) to a stranger (nearly everything rejected). Requests are ragged and finish at different
 * times.
 *
 * Rejection is lossless in law only; there the outputs must agree with its own at batch 1, and with plain decoding for the root
 * alone.
 *
 * Every drafter meets every sampling and every machine, every sampling meets every machine; not every three of them meet, but
 * at one sampling. With --thin (builds that watch memory or have the smallest sizes) every drafter meets a third of the samplings
 * and two machines, and one rule's batches stand for the other's. */
#include <math.h>
#include <unistd.h>

#include "core/file/synth.h"
#include "draft/lookup/datastore.h"
#include "draft/lm/vocabulary_subset.h"
#include "kernels/philox.h"
#include "tests/law/plain_decode.h"

enum { REQUESTS = 11, PROMPT_MAX = 45, VOCAB = 320, CONTEXT = 128 };

static char dir[] = "/tmp/wg-law-XXXXXX";
static char target_path[64], near_path[64], far_path[64], short_path[64], store_path[64], other_path[64], list_path[64];
static int32_t prompt[REQUESTS][PROMPT_MAX];
static law_request request[REQUESTS];
static int failures, rules_checked, coupled_checked, rejection_checked;
static bool thin;

static void write_models(void)
{
    wg_error err;
    if (!mkdtemp(dir)) exit((perror(dir), 1));
    snprintf(target_path, sizeof target_path, "%s/target.gguf", dir);
    snprintf(near_path, sizeof near_path, "%s/near.gguf", dir);
    snprintf(far_path, sizeof far_path, "%s/far.gguf", dir);
    snprintf(short_path, sizeof short_path, "%s/short.gguf", dir);
    snprintf(store_path, sizeof store_path, "%s/store", dir);
    snprintf(other_path, sizeof other_path, "%s/other.gguf", dir);
    snprintf(list_path, sizeof list_path, "%s/list.json", dir);
    wg_synth_shape s = {
        .name = "target", .layers = 2, .dim = 32, .heads = 4, .kv_heads = 2, .hidden = 64, .vocab = VOCAB, .context = CONTEXT};
    LAW_TRY(wg_synth_write(&s, WG_F32, 1, target_path, &err));
    LAW_TRY(wg_synth_write(&s, WG_Q8_0, 1, near_path, &err)); /* the same weights, rounded */
    s.context = 40;                                           /* ends before the sequences do */
    LAW_TRY(wg_synth_write(&s, WG_F16, 1, short_path, &err));
    s.context = CONTEXT;
    s.vocab = VOCAB - 30; /* another tokenizer: the same words but the last thirty */
    LAW_TRY(wg_synth_write(&s, WG_Q8_0, 1, other_path, &err));
    s = (wg_synth_shape){
        .name = "far", .layers = 1, .dim = 32, .heads = 2, .hidden = 64, .vocab = VOCAB, .context = CONTEXT, .tied = true};
    LAW_TRY(wg_synth_write(&s, WG_F32, 2, far_path, &err));
}

static void remove_models(void)
{
    remove(target_path), remove(near_path), remove(far_path), remove(short_path), remove(store_path), remove(other_path);
    remove(list_path), remove(dir);
}

/* A datastore of half the greedy texts, so that what is found there is often right, and the other half wrong. */
static void write_store(const wg_tokenizer *t, const law_output *plain)
{
    static int32_t token[REQUESTS * (PROMPT_MAX + 2 * CONTEXT)];
    wg_error err;
    size_t n = 0;
    for (int i = 0; i < REQUESTS; i++) {
        for (int k = 0; k < request[i].n; k++) token[n++] = request[i].prompt[k];
        for (int k = 0; k < plain[i].n; k++) token[n++] = i % 2 ? plain[i].token[k] : (plain[i].token[k] + k) % VOCAB;
        token[n++] = -1;
    }
    LAW_TRY(wg_datastore_write(store_path, t, token, n, &err));
}

/* Every other token may be drafted. */
static void write_list(const wg_tokenizer *t)
{
    int32_t token[VOCAB / 2];
    wg_error err;
    for (int i = 0; i < VOCAB / 2; i++) token[i] = 2 * i;
    LAW_TRY(wg_pruned_write(list_path, t, token, VOCAB / 2, &err));
}

/* Prompts of 1 .. PROMPT_MAX tokens with repetitions (for ngram), outputs of 1 .. 40; one runs into the end of the context. */
static void make_requests(void)
{
    for (int i = 0; i < REQUESTS; i++) {
        const wg_philox r = wg_philox_at(99, (uint32_t)i, 0, 0, 0);
        const int n = i == 0 ? 1 : 1 + (int)(r.v[0] % PROMPT_MAX), period = 1 + (int)(r.v[1] % 9);
        for (int k = 0; k < n; k++)
            prompt[i][k] = 3 + (int32_t)(wg_philox_at(98, (uint32_t)i, (uint32_t)(k % period), 0, 0).v[0] % (VOCAB - 3));
        request[i] = (law_request){prompt[i], n, i == 1 ? 1 : i == 2 ? 2 * CONTEXT : 5 + (int)(r.v[2] % 36)};
    }
}

typedef struct machine {
    int threads;
    wg_cpu_level level;
    law_model target;
} machine;

typedef struct row {
    const char *label, *drafter, *options;
    double keeps; /* least share kept when greedy */
    bool learns;  /* from one request for another: what is drafted, and so rejection's text, depends on who was served before */
} row;

static const wg_sampling samplings[] = {
    WG_SAMPLING(0, 0, 1, 0),
    WG_SAMPLING(0.7, 0, 1, 0),
    WG_SAMPLING(1, 0, 1, 0),
    WG_SAMPLING(1, 20, 1, 0),
    WG_SAMPLING(0.7, 0, 0.9, 0),
    WG_SAMPLING(1, 50, 0.8, 0.02),
    {.top_p = 1, .repetition_penalty = 1.3, .presence_penalty = 0.2},
    {.temperature = 0.7, .top_p = 1, .repetition_penalty = 1.5, .frequency_penalty = 0.3, .penalty_window = 6},
    {.temperature = 1, .top_k = 40, .top_p = 0.9, .frequency_penalty = 0.5, .order = "top_k,penalties,top_p,min_p,temperature"},
};
enum { SAMPLINGS = sizeof samplings / sizeof *samplings, EVERY_MACHINE = 3 }; /* at samplings[3] a drafter meets them all */

static bool meets_sampling(int row, int s) { return !thin || s == 0 || s == EVERY_MACHINE || (row + s) % 3 == 0; }

/* Elsewhere one machine, in turn; but not the slow reference: its plain texts are what the others are held against. */
static bool meets_machine(int row, int s, int i, int machines)
{
    const int first = thin ? 0 : 1;
    return s == EVERY_MACHINE || i == first + (row + s) % (machines - first);
}

static void expect(const char *what, const law_output *want, const law_output *got)
{
    failures += law_compare(what, want, got, REQUESTS);
}

/* One drafter against the plain outputs of its samplings, over machines and batches. Returns whether it drafts chains. */
static bool check_row(int number, const row *r, machine *m, int machines, law_output plain[SAMPLINGS][REQUESTS])
{
    wg_counts total = {0};
    long runs = 0, tokens = 0;
    for (int s = 0; s < SAMPLINGS; s++) {
        for (int i = 0; i < machines && meets_sampling(number, s); i++) {
            if (!meets_machine(number, s, i, machines)) continue;
            for (int k = 0; k < 3; k++) {
                const bool greedy = s == 0 && k == 2;
                if (k == 2 && !greedy) continue;
                const int batch = k ? 8 : 1;
                const law_setup setup = {.target = &m[i].target,
                                         .drafter = r->drafter,
                                         .options = r->options,
                                         .rule = greedy ? "greedy" : "match",
                                         .sampling = samplings[s],
                                         .seed = 7,
                                         .batch = batch,
                                         .page_slots = i == 1 ? 4 : i == 2 ? 16 : 0,
                                         .prefill_rows = 5 + i,
                                         .alpha = s == EVERY_MACHINE};
                law_output got[REQUESTS] = {0};
                wg_counts counts = {0};
                law_decode(&setup, request, REQUESTS, got, &counts);
                char what[200];
                snprintf(what, sizeof what, "%s (%s) rule %s, T=%g top_k=%d top_p=%g, batch %d, %d threads, ops %s", r->label,
                         r->options ? r->options : "", setup.rule, samplings[s].temperature, samplings[s].top_k,
                         samplings[s].top_p, batch, m[i].threads, wg_cpu_name(m[i].level));
                expect(what, plain[s], got);
                if (s == 0 && counts.accepted < r->keeps * (double)counts.drafted) {
                    fprintf(stderr, "FAILED %s: accepted %ld of %ld greedy drafts, at least %g expected\n", what,
                            counts.accepted, counts.drafted, r->keeps);
                    failures++;
                }
                runs++;
                tokens += law_tokens(got, REQUESTS);
                wg_counts_add(&total, &counts);
                law_free(got, REQUESTS);
            }
        }
    }
    printf("%-22s %3ld runs, %6ld tokens equal plain decoding; %5ld passes, %6ld drafted, %5ld accepted\n", r->label, runs,
           tokens, total.passes, total.drafted, total.accepted);
    if (strcmp(r->drafter, "none") && total.drafted == 0) {
        fprintf(stderr, "FAILED %s: nothing was drafted, so nothing was tested\n", r->label);
        failures++;
    }
    long levels = 0;
    for (int d = 1; d < WG_TREE_MAX; d++) levels += total.offered_at[d];
    return levels == total.drafted;
}

/* At temperature 0 every lossless rule that checks the drafter's law is plain decoding. */
static void check_rules(int number, const row *r, const machine *m, bool chain, const law_output *plain)
{
    int batch = 8;
    for (const wg_verifier_class *const *rule = wg_verifiers; *rule; rule++) {
        law_output got[REQUESTS] = {0};
        wg_counts counts = {0};
        if (!(*rule)->lossless || ((*rule)->chains && !chain)) continue;
        if (thin && (number + (rule - wg_verifiers)) % 4) continue;
        if (!law_legal(r->drafter, r->options, &samplings[0], *rule)) continue;
        const law_setup setup = {.target = &m->target,
                                 .drafter = r->drafter,
                                 .options = r->options,
                                 .rule = (*rule)->name,
                                 .sampling = samplings[0],
                                 .seed = 7,
                                 .batch = batch};
        law_decode(&setup, request, REQUESTS, got, &counts);
        char what[160];
        snprintf(what, sizeof what, "%s rule %s, T=0, batch %d", r->label, setup.rule, batch);
        expect(what, plain, got);
        law_free(got, REQUESTS);
        batch = 9 - batch;
        rules_checked++;
    }
}

/* Rejection: the same text whatever the machine and the batch; for the root alone, plain decoding's. */
static void check_rejection(int number, const row *r, machine *m, int machines, law_output plain[SAMPLINGS][REQUESTS])
{
    for (int s = 0; s < SAMPLINGS; s++) {
        law_output alone[REQUESTS] = {0};
        for (int i = -1; i < machines && meets_sampling(number, s); i++) { /* first one at a time */
            if (i >= 0 && !meets_machine(number, s, i, machines)) continue;
            const machine *on = &m[i < 0 ? machines - 1 : i];
            law_output got[REQUESTS] = {0};
            wg_counts counts = {0};
            const law_setup setup = {.target = &on->target,
                                     .drafter = r->drafter,
                                     .options = r->options,
                                     .rule = "rejection",
                                     .sampling = samplings[s],
                                     .seed = 7,
                                     .batch = i < 0 ? 1 : 8};
            law_decode(&setup, request, REQUESTS, got, &counts);
            char what[160];
            snprintf(what, sizeof what, "%s rule rejection, T=%g, batch %d, %d threads, ops %s", r->label,
                     samplings[s].temperature, setup.batch, on->threads, wg_cpu_name(on->level));
            if (!strcmp(r->drafter, "none") || s == 0) expect(what, plain[s], got);
            rejection_checked++;
            if (i < 0) {
                memcpy(alone, got, sizeof alone);
                continue;
            }
            if (!r->learns || s == 0) expect(what, alone, got);
            law_free(got, REQUESTS);
        }
        law_free(alone, REQUESTS);
    }
}

/* Coupled: one text for one seed and number of races, whatever is drafted, in whatever batch (METHODS B12). Not match's text:
 * other draws. */
enum { COUPLED_AT = 5 }; /* of samplings */
static const char *const races_of[] = {"races=1", "races=3"};
static void check_coupled(const row *r, const machine *m, const char *races, const law_output *alone)
{
    for (int batch = thin ? 8 : 1; batch <= 8; batch += 7) {
        law_output got[REQUESTS] = {0};
        wg_counts counts = {0};
        const law_setup setup = {.target = &m->target,
                                 .drafter = r->drafter,
                                 .options = r->options,
                                 .rule = "coupled",
                                 .rule_options = races,
                                 .sampling = samplings[COUPLED_AT],
                                 .seed = 7,
                                 .batch = batch};
        law_decode(&setup, request, REQUESTS, got, &counts);
        char what[160];
        snprintf(what, sizeof what, "%s rule coupled, %s, batch %d", r->label, races, batch);
        expect(what, alone, got);
        law_free(got, REQUESTS);
        coupled_checked++;
    }
}

/* Drafts that share the rule's draws: rejection refuses them. */
static bool races(const row *r)
{
    return !strcmp(r->drafter, "synthetic") || (r->options && strstr(r->options, "siblings=coupled"));
}

int main(int argc, char **argv)
{
    thin = argc > 1 && !strcmp(argv[1], "--thin");
    write_models();
    atexit(remove_models);
    make_requests();

    const wg_cpu_level top = wg_cpu_best();
    wg_cpu_level lower = top > WG_CPU_REF + 1 ? top - 1 : top;
    while (!wg_cpu_has(lower)) lower--;
    machine all[] = {{1, WG_CPU_REF, {0}}, {2, top, {0}}, {3, top, {0}}, {2, lower, {0}}, {1, top, {0}}};
    enum { MACHINES = sizeof all / sizeof *all };
    machine *const m = thin ? all + MACHINES - 2 : all;
    const int machines = thin ? 2 : MACHINES;
    const machine *const one = &m[machines - 1]; /* one thread */
    for (int i = 0; i < machines; i++) law_model_open(&m[i].target, target_path, m[i].threads, m[i].level, WG_F32);

    law_output plain[SAMPLINGS][REQUESTS] = {0};
    for (int s = 0; s < SAMPLINGS; s++) {
        wg_counts counts = {0};
        const law_setup setup = {
            .target = &m[0].target, .drafter = "none", .rule = "match", .sampling = samplings[s], .seed = 7};
        law_decode(&setup, request, REQUESTS, plain[s], &counts);
    }

    law_output coupled[2][REQUESTS] = {0};
    for (int i = 0; i < 2; i++) {
        wg_counts ignored = {0};
        const law_setup racing = {.target = &one->target,
                                  .drafter = "none",
                                  .rule = "coupled",
                                  .rule_options = races_of[i],
                                  .sampling = samplings[COUPLED_AT],
                                  .seed = 7};
        law_decode(&racing, request, REQUESTS, coupled[i], &ignored);
    }

    write_store(m[0].target.tokenizer, plain[0]);
    write_list(m[0].target.tokenizer);

    char cache_store[128], sam_store[128], retrieval[128];
    snprintf(cache_store, sizeof cache_store, "corpus=%s,hits=1,memory_mb=1,corpus_mb=1", store_path);
    snprintf(sam_store, sizeof sam_store, "corpus=%s,n_min=1,bias=1", store_path);
    snprintf(retrieval, sizeof retrieval, "datastore=%s,n_min=1,nodes=12,depth=4", store_path);
    char self[128], self_tree[128], near_chain[128], near_tree[128], sure[128], cold_tree[128], far[128], brief[128];
    char sequoia[160], best[128];
    snprintf(self, sizeof self, "model=%s,kv_type=f32,length=3", target_path);
    snprintf(self_tree, sizeof self_tree, "model=%s,kv_type=f32,tree=2-1-1", target_path);
    snprintf(near_chain, sizeof near_chain, "model=%s,length=5", near_path);
    snprintf(near_tree, sizeof near_tree, "model=%s,tree=%s", near_path, WG_TREE_MAX > 8 ? "3-2-1" : "3-1");
    snprintf(sure, sizeof sure, "model=%s,length=6,p_min=0.05,kv_type=bf16", near_path);
    snprintf(cold_tree, sizeof cold_tree, "model=%s,tree=%s,temperature=0", near_path, WG_TREE_MAX > 8 ? "3-1-1" : "2-2");
    snprintf(sequoia, sizeof sequoia, "model=%s,grow=sequoia,accept=0.4/0.2/0.1,budget=7,length=4", near_path);
    snprintf(best, sizeof best, "model=%s,grow=best_first,budget=%d,length=5", near_path, WG_TREE_MAX > 8 ? 12 : 7);
    snprintf(far, sizeof far, "model=%s,length=2,temperature=1.5", far_path);
    snprintf(brief, sizeof brief, "model=%s,length=7", short_path);
    char common[128], common_tree[160], common_race[160], slem[128];
    const char *tree = WG_TREE_MAX > 8 ? "3-2-1" : "3-1";
    snprintf(common, sizeof common, "model=%s,vocabulary=intersection,length=4", other_path);
    snprintf(common_tree, sizeof common_tree, "model=%s,vocabulary=intersection,tree=%s", other_path, tree);
    snprintf(common_race, sizeof common_race, "model=%s,vocabulary=intersection,length=3,siblings=coupled", other_path);
    snprintf(slem, sizeof slem, "model=%s,length=5", other_path);
    char pruned[200];
    snprintf(pruned, sizeof pruned, "model=%s,prune=%s,length=4", near_path, list_path);
    char race[128], race_tree[128];
    snprintf(race, sizeof race, "model=%s,length=5,siblings=coupled", near_path);
    snprintf(race_tree, sizeof race_tree, "model=%s,tree=%s,siblings=coupled", near_path, WG_TREE_MAX > 8 ? "3-2-1" : "3-1");
    char hybrid[300], best_of[300], full[300], cascade[300];
    snprintf(hybrid, sizeof hybrid, "first=ngram:k=5;n_max=4,second=model:model=%s;length=3", near_path);
    snprintf(best_of, sizeof best_of, "of=ngram:k=5|model:model=%s;length=3|model:model=%s;tree=2-1", near_path, far_path);
    snprintf(full, sizeof full, "of={best_of:of=ngram|ngram:n_max=1}|model:model=%s;length=3|none", near_path);
    snprintf(cascade, sizeof cascade, "model=%s,length=4,inner=model:model=%s;length=2", near_path, far_path);
    const char *itself = "first=sparse_kv:window=8;length=3,second=early_exit:layer=1;tree=2-1,min_score=2";
    const row rows[] = {
        {"none", "none", NULL, 0, false},
        {"model, itself", "model", self, 1, false},
        {"model, itself, tree", "model", self_tree, 0.4, false},
        {"model, rounded", "model", near_chain, 0.5, false},
        {"model, rounded, tree", "model", near_tree, 0, false},
        {"model, when sure", "model", sure, 0, false},
        {"model, top-k tree", "model", cold_tree, 0, false},
        {"model, Sequoia", "model", sequoia, 0, false},
        {"model, best first", "model", best, 0, false},
        {"model, stranger", "model", far, 0, false},
        {"model, short context", "model", brief, 0.5, false},
        {"model, racing", "model", race, 0, false},
        {"model, racing tree", "model", race_tree, 0, false},
        {"model, common tokens", "model", common, 0, false},
        {"model, common, tree", "model", common_tree, 0, false},
        {"model, common, racing", "model", common_race, 0, false},
        {"model, pruned", "model", pruned, 0, false},
        {"slem", "slem", slem, 0, false},
        {"ngram", "ngram", "k=5,n_max=4", 0, false},
        {"ngram_cache, corpus", "ngram_cache", cache_store, 0, true},
        {"ngram_hash", "ngram_hash", "n=1,k=5,memory_mb=1", 0, true},
        {"suffix, tree", "suffix", "factor=4,p_min=0.01,tree=true,memory_mb=1", 0, true},
        {"suffix, own text", "suffix", "factor=3,tree=true,depth=6,memory_mb=0", 0, false},
        {"sam, corpus", "sam", sam_store, 0, false},
        {"retrieval", "retrieval", retrieval, 0, false},
        {"recycle", "recycle", "nodes=15", 0, true},
        {"lookahead", "lookahead", WG_TREE_MAX > 8 ? "window=4,n=4,guesses=3" : "window=2,n=3,guesses=2", 0, false},
        {"lookahead, text", "lookahead", "window=3,n=3,guesses=4,keys=8,text=true", 0, false},
        {"layer skip", "layer_skip", "attention=1,mlp=0,length=3", 0, false},
        {"layer skip, tree", "layer_skip", WG_TREE_MAX > 8 ? "mlp=1,tree=3-2-1" : "mlp=1,tree=3-1", 0, false},
        {"early exit, all", "early_exit", "layer=2,length=3", 1, false},
        {"early exit, best first", "early_exit", "grow=best_first,budget=7,length=4", 0, false},
        {"sparse cache, all", "sparse_kv", "window=128,length=3", 1, false},
        {"sparse cache, tree", "sparse_kv", "sinks=2,window=6,tree=2-1-1", 0, false},
        {"hybrid with itself", "hybrid", itself, 0, false},
        {"hybrid", "hybrid", hybrid, 0.3, false},
        {"best of", "best_of", best_of, 0, false},
        {"full information", "full_information", full, 0, false},
        {"cascade", "cascade", cascade, 0.5, false},
        {"process", "process", "command=python3 examples/process-drafter/bigram.py 3,timeout_ms=60000", 0, false},
        {"synthetic", "synthetic", "k=4,rate=0.7", 0.3, false},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    const char *name[ROWS];
    for (int i = 0; i < ROWS; i++) {
        name[i] = rows[i].drafter;
        const bool chain = check_row(i, &rows[i], m, machines, plain);
        check_rules(i, &rows[i], one, chain, plain[0]);
        for (int k = 0; k < 2; k++)
            if (!thin || k == i % 2) check_coupled(&rows[i], one, races_of[k], coupled[k]);
        if (!races(&rows[i])) check_rejection(i, &rows[i], m, machines, plain);
    }
    for (int k = 0; k < 2; k++) law_free(coupled[k], REQUESTS);
    for (int s = 0; s < SAMPLINGS; s++) law_free(plain[s], REQUESTS);
    for (int i = 0; i < machines; i++) law_model_close(&m[i].target);
    printf("%d pairs of a drafter and a lossless rule at temperature 0 equal plain decoding\n", rules_checked);
    printf("%d runs of races and %d of rejection have one text whatever the batch%s\n", coupled_checked, rejection_checked,
           thin ? "" : " and the machine");
    failures += law_uncovered(name, ROWS);
    if (failures) fprintf(stderr, "%d failures\n", failures);
    return failures != 0;
}
