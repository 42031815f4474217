/* SPDX-License-Identifier: MIT
 * Rows of one sequence: a sampler chain of its own, biases, allowed tokens. The law of whole texts, with every random decision
 * enumerated, is that of plain decoding with the same transformations (to 1e-12), under every lossless rule, beside another
 * sequence that has none of them, with drafts of every sibling law, from drafters that know the transformations and from one
 * that does not. */
#include "tests/law/blind_drafter.h"

enum { V = 3 };
static const int32_t prompt[] = { 1, 2, 0, 1, 2, 0 };

/* ---- transformations */

static bool not_1(const int32_t *text, int n, int32_t token)
{
    (void)text, (void)n;
    return token != 1;
}

static bool only_2(const int32_t *text, int n, int32_t token)
{
    (void)text, (void)n;
    return token == 2;
}

static const wg_sampling cold = WG_SAMPLING(0, 0, 1, 0), warm = WG_SAMPLING(0.7, 2, 1, 0);
static const wg_sampling penal = { .temperature = 0.9, .top_p = 1, .repetition_penalty = 1.6, .frequency_penalty = 0.7 };
static const wg_sampling whole = { .temperature = 1, .top_p = 1, .presence_penalty = 0.6, .penalise_prompt = true };
static const wg_sampling recent = { .temperature = 1, .top_p = 0.9, .presence_penalty = 0.9, .penalty_window = 2 };
static const wg_logit_bias bias[] = { { 2, 1.5f }, { 0, -2 } };
static const int32_t some[] = { 0, 2 }, one[] = { 2 };

static const struct transformation {
    const char *name;
    wg_seq_sampling how;
    bool (*may)(const int32_t *text, int n, int32_t token);
} transformations[] = {
    { "a greedy sequence", { .sampling = &cold }, NULL },
    { "another temperature, top-k", { .sampling = &warm }, NULL },
    { "penalties", { .sampling = &penal }, NULL },
    { "penalties in a window, top-p", { .sampling = &recent }, NULL },
    { "penalties of the prompt too", { .sampling = &whole }, NULL },
    { "biases", { .bias = bias, .biases = 2 }, NULL },
    { "allowed tokens", { .allowed = some, .n_allowed = 2 }, not_1 },
    { "one allowed token", { .allowed = one, .n_allowed = 1 }, only_2 },
    { "all of them",
      { .sampling = &penal, .bias = bias, .biases = 2, .allowed = some, .n_allowed = 2, .logprobs = true },
      not_1 },
};
enum { TRANSFORMATIONS = sizeof transformations / sizeof *transformations };

static law_sums all;

static void check(exact_run *x, exact_target *t, const char *drafter, const struct transformation *how)
{
    char what[160];
    x->own = &how->how;
    x->may = how->may;
    x->prompt = prompt;
    x->n = sizeof prompt / sizeof *prompt;
    exact_law_of(x, t);
    snprintf(what, sizeof what, "%s, drafter %s", how->name, drafter);
    law_judge(&all, x, what);
}

/* Drafts of every law, unaware of the transformations: many have p = 0. */
static void run_blind(exact_target *t)
{
    for (unsigned l = WG_LAW_FIXED; l <= WG_LAW_COUPLED; l *= 2)
        for (const wg_verifier_class *const *v = wg_verifiers; *v; v++) {
            if (!(*v)->lossless || (*v)->zero_only || (*v)->chains || !((*v)->laws & l)) continue;
            if (l != WG_LAW_FIXED && !(*v)->reads_q && strcmp((*v)->name, "match")) continue; /* they compare, as match */
            for (int i = 0; i < TRANSFORMATIONS; i++) {
                const wg_drafter_class c = blind_of((wg_sibling_law)l);
                exact_run x = {
                    .setup = { .drafter_class = &c, .rule = (*v)->name, .sampling = WG_SAMPLING(1, 0, 1, 0), .seed = 3 },
                    .other = i % 3 ? 11 : 0,
                    .after = i % 3 == 2,
                    .length = i % 2 ? 2 : 3
                };
                check(&x, t, wg_law_name(blind_law), &transformations[i]);
            }
        }
}

/* Drafters that make q by the sequence's own chain, that draft without q, and that run rows for themselves. */
static void run_registered(exact_target *t, const char *near)
{
    static const char *const drafters[][2] = {
        { "model", "length=3" },
        { "model", "tree=2-1" },
        { "model", "tree=2-1,siblings=without_replacement" },
        { "model", "tree=2-1,temperature=0" },
        { "model", "tree=2-1,temperature=1.6" },
        { "model", "grow=best_first,budget=4" },
        { "suffix", "" },
        { "lookahead", "" },
        { "recycle", "" },
    };
    static const char *const rules[] = { "match", "rejection", "block", "traversal", "without_replacement" };
    for (size_t d = 0; d < sizeof drafters / sizeof *drafters; d++)
        for (size_t r = 0; r < sizeof rules / sizeof *rules; r++)
            for (int i = 0; i < TRANSFORMATIONS; i++) {
                char options[200];
                const wg_verifier_class *rule;
                wg_error err;
                static const wg_plugins plugins = { wg_drafters, wg_verifiers };
                const wg_sampling sampling = WG_SAMPLING(1, 0, 1, 0);
                const bool model = !strcmp(drafters[d][0], "model"), chain = d == 0 || !strcmp(drafters[d][0], "suffix");
                snprintf(options, sizeof options, "%s%s%s%s", model ? "model=" : "", model ? near : "", model ? "," : "",
                         drafters[d][1]);
                LAW_TRY(wg_find_verifier(&plugins, rules[r], &rule, &err));
                if (!law_legal(drafters[d][0], options, &sampling, rule) || (rule->chains && !chain)) continue;
                exact_run x = { .setup = { .drafter = drafters[d][0],
                                           .options = options,
                                           .rule = rules[r],
                                           .sampling = sampling,
                                           .seed = 3 },
                                .fresh = !model,
                                .other = i % 2 ? 11 : 0,
                                .length = 3 };
                check(&x, t, model ? drafters[d][1] : drafters[d][0], &transformations[i]);
            }
}

/* ---- log-probabilities: those of plain decoding, bit for bit, and naively computed */

enum { REQUESTS = 6, NEW = 24, TOP = 2 };
typedef struct logged {
    int n;
    int32_t token[NEW];
    wg_logprob row[NEW][1 + TOP];
} logged;

static void log_text(const law_setup *setup, uint32_t request, const wg_seq_sampling *how, logged *out)
{
    wg_error err;
    wg_seq *s;
    wg_engine *e = law_engine(setup);
    LAW_TRY(wg_seq_open(e, &s, request, prompt, 6, NEW, &err));
    LAW_TRY(wg_seq_sample(e, s, how, &err));
    out->n = 0;
    while (s->finish == WG_RUNNING) {
        int top;
        LAW_TRY(wg_engine_step(e, &s, 1, &err));
        const wg_logprob *l = wg_seq_logprobs(s, &top);
        for (int i = 0; i < s->last_emitted; i++, out->n++) {
            out->token[out->n] = s->token[s->n - s->last_emitted + i];
            memcpy(out->row[out->n], l + i * (1 + top), sizeof out->row[0]);
        }
    }
    wg_seq_close(e, s);
    wg_engine_close(e);
}

static bool same_rows(const logged *a, const logged *b)
{
    bool same = a->n == b->n;
    for (int i = 0; same && i < a->n; i++)
        for (int k = 0; k <= TOP; k++)
            same = same && a->row[i][k].token == b->row[i][k].token &&
                   !memcmp(&a->row[i][k].logprob, &b->row[i][k].logprob, sizeof(double));
    return same;
}

static bool as_by_hand(exact_target *t, const logged *l)
{
    int32_t text[64];
    float x[EXACT_VOCAB];
    double worst = 0;
    bool ranked = true;
    memcpy(text, prompt, sizeof prompt);
    for (int i = 0; i < l->n; i++) {
        double sum = 0;
        exact_logits(t, text, 6 + i, x);
        for (int k = 0; k < V; k++) sum += exp(x[k]);
        text[6 + i] = l->token[i];
        ranked = ranked && l->row[i][0].token == l->token[i];
        for (int k = 0; k <= TOP; k++) worst = fmax(worst, fabs(l->row[i][k].logprob - (x[l->row[i][k].token] - log(sum))));
        for (int k = 1; k <= TOP; k++) {
            int above = 0;
            for (int y = 0; y < V; y++) above += x[y] > x[l->row[i][k].token];
            ranked = ranked && above == k - 1;
        }
    }
    return worst < 1e-12 && ranked;
}

static void run_logprobs(exact_target *t)
{
    static const char *const drafters[] = { "suffix", "synthetic", "lookahead" };
    static const struct {
        wg_sampling own;
        bool transforms;
    } ways[] = { { WG_SAMPLING(1, 0, 1, 0), false }, { WG_SAMPLING(0, 0, 1, 0), true }, { WG_SAMPLING(0.8, 2, 1, 0), true } };
    long accepted = 0;
    for (int w = 0; w < 3; w++) {
        const wg_seq_sampling how = { .sampling = &ways[w].own,
                                      .bias = bias,
                                      .biases = ways[w].transforms ? 2 : 0,
                                      .allowed = some,
                                      .n_allowed = ways[w].transforms ? 2 : 0,
                                      .logprobs = true,
                                      .top = TOP };
        for (uint32_t request = 0; request < REQUESTS; request++) {
            logged want, got;
            law_setup setup = { .target = &t->m, .drafter = "none", .rule = "match", .sampling = WG_SAMPLING(1, 0, 1, 0) };
            log_text(&setup, request, &how, &want);
            if (!as_by_hand(t, &want)) {
                fprintf(stderr, "FAILED log-probabilities of plain decoding, request %u\n", (unsigned)request);
                all.failures++;
            }
            for (int d = 0; d < 3; d++) {
                setup.drafter = drafters[d];
                log_text(&setup, request, &how, &got);
                accepted += got.n;
                if (same_rows(&got, &want)) continue;
                fprintf(stderr, "FAILED log-probabilities, drafter %s, request %u: not those of plain decoding\n", drafters[d],
                        (unsigned)request);
                all.failures++;
            }
        }
    }
    printf("log-probabilities of %ld tokens\n", accepted);
}

int main(void)
{
    law_near near;
    exact_target t;
    const double start = wg_clock_now();
    law_near_make(&near, V);
    exact_table(&t, V, 3, 17, 1.2);
    run_blind(&t);
    run_registered(&t, near.path);
    run_logprobs(&t);
    exact_target_close(&t);
    law_near_remove(&near);
    return law_end(&all, start);
}
