/* SPDX-License-Identifier: MIT
 * The output of the rules on the bundled pair has the law of the target, by a statistical test: the whole engine decodes
 * three tokens after a prompt, many times, under every lossless rule and every law of siblings that it checks (chains on one
 * prompt, trees two wide on another), and the texts are tested against their exact probabilities, which follow from the
 * target's logits. (The prover shows the same by enumeration on small tables; here rows, trees and draws are the real ones.)
 *
 * The test. Texts are put into cells of known probability p_c. After n texts with counts n_c the next one, in cell c,
 * multiplies M by (K p_c + n_c) / (K + n) / p_c, the likelihood ratio of a Dirichlet mixture around p against p. If the
 * texts have the law p, M is a martingale of expectation 1 under every stopping rule, so Pr(M ever reaches 1/a) <= a
 * (Ville): the test evaluates M after every text, and stops at the first M >= 1/a. A text of probability 0 rejects at once.
 * With a = FAMILY / tests, the probability that any lossless rule is rejected is below FAMILY. (All seeds are fixed: the
 * verdict is the same in every run.)
 *
 * The power is measured: texts of a law at total variation e, in the direction that is hardest to detect (half of the mass
 * times 1 + 2e, the other half times 1 - 2e; Pinsker's bound is met), are detected in 95 of 100 simulated tests at the e
 * that is printed. Controls that must be detected: rejection whose residual is p itself, and rejection that accepts every
 * draft with p > 0.
 *
 * Each logit is computed once: the engine's target is the pair's target with a cache of logits by prefix, which by the
 * Prefix Law have the bits of a pass. */
#include <math.h>

#include "kernels/philox.h"
#include "tests/law/pair.h"
#include "verify/host_passes.h"
#include "kernels/rule/rule_passes.h"

enum { TOKENS = 3, TEXTS = 6000, BATCH = 60, PROMPTS = 2, PREFIXES = 4096, BUCKETS = 16384, CELLS = 128, LEAVES = 4096 };
static const double FAMILY = 1e-3, CONCENTRATION = 500, CELL_MASS = 0.04;
static const wg_sampling target_chain = WG_SAMPLING(0.9, 8, 1, 0), draft_chain = WG_SAMPLING(1.2, 10, 1, 0);

/* ---- logits of a model after prefixes of one prompt, each computed once */

typedef struct memory {
    law_model model;
    wg_kv *kv;
    wg_kv_seq *seq;
    wg_batch batch;
    int32_t key[PREFIXES][TOKENS + 1]; /* tokens after the prompt; their number last */
    float *logits;                     /* (PREFIXES, vocab) */
    int n, bucket[BUCKETS];            /* bucket: prefix + 1 */
} memory;

static void memory_open(memory *m, const char *path)
{
    wg_error err;
    law_model_open(&m->model, path, 1, wg_cpu_chosen(), WG_F16);
    LAW_TRY(wg_kv_open(&m->kv, 16, 512 / 16, 512, &err));
    LAW_TRY(wg_lm_attach(m->model.lm, m->kv, &err));
    LAW_TRY(wg_kv_seq_open(m->kv, &m->seq, &err));
    LAW_TRY(wg_batch_open(&m->batch, 256, &err));
    if (!(m->logits = wg_alloc((size_t)PREFIXES * (size_t)m->model.lm->vocab, sizeof *m->logits))) abort();
}

static void memory_close(memory *m)
{
    wg_free(m->logits);
    wg_batch_close(&m->batch);
    wg_kv_seq_close(m->seq);
    wg_kv_close(m->kv);
    law_model_close(&m->model);
}

/* n new tokens behind what is committed; logits of the last. */
static void pass(memory *m, const int32_t *token, int n, float *logits)
{
    wg_error err;
    LAW_TRY(wg_kv_reserve(m->seq, n, &err));
    wg_batch_clear(&m->batch);
    wg_batch_chain(&m->batch, m->seq, wg_kv_len(m->seq), token, n, logits != NULL);
    LAW_TRY(wg_lm_forward(m->model.lm, &m->batch, logits, &err));
}

/* Another prompt: its last token is fed with every prefix. */
static void memory_prompt(memory *m, const law_request *prompt)
{
    wg_kv_truncate(m->seq, 0);
    m->n = 0;
    memset(m->bucket, 0, sizeof m->bucket);
    pass(m, prompt->prompt, prompt->n - 1, NULL);
    wg_kv_commit_chain(m->seq, prompt->n - 1);
}

/* Logits after the prompt, whose last token is `last`, and n <= TOKENS tokens. */
static const float *recall(memory *m, int32_t last, const int32_t *token, int n)
{
    const size_t vocab = (size_t)m->model.lm->vocab;
    int32_t key[TOKENS + 1] = { 0 }, fed[TOKENS + 1] = { last };
    memcpy(key, token, (size_t)n * sizeof *key);
    memcpy(fed + 1, token, (size_t)n * sizeof *fed);
    key[TOKENS] = n;
    uint32_t at = 0;
    for (int i = 0; i <= TOKENS; i++) at = (at ^ (uint32_t)key[i]) * 2654435761u;
    for (at >>= 18; m->bucket[at]; at = (at + 1) % BUCKETS)
        if (!memcmp(m->key[m->bucket[at] - 1], key, sizeof key)) return m->logits + (size_t)(m->bucket[at] - 1) * vocab;
    if (m->n == PREFIXES) {
        fprintf(stderr, "more than %d prefixes\n", (int)PREFIXES);
        exit(1);
    }
    float *logits = m->logits + (size_t)m->n * vocab;
    memcpy(m->key[m->n], key, sizeof key);
    m->bucket[at] = ++m->n;
    pass(m, fed, n + 1, logits);
    wg_kv_rollback(m->seq);
    return logits;
}

/* ---- the pair as the engine's target and drafter */

static memory target, draft; /* of the current prompt */
static law_request prompt;

/* A token's "key" is its id. */
static wg_status attach(wg_lm *lm, wg_kv *kv, wg_error *err) { return wg_kv_space(kv, 1, 1, 1, WG_F32, &lm->space, err); }

static float *slot_at(const wg_kv_view *v, int slot)
{
    return (float *)(void *)(v->pool + (size_t)v->page[slot / v->page_slots] * v->stride +
                             (size_t)(slot % v->page_slots) * sizeof(float));
}

static wg_status forward(wg_lm *lm, const wg_batch *batch, float *logits, wg_error *err)
{
    (void)err;
    for (int r = 0; r < batch->n; r++) {
        const wg_row *row = &batch->row[r];
        const wg_kv_view v = wg_kv_view_of(row->kv, lm->space, 0);
        *slot_at(&v, row->slot) = (float)row->token;
        const int n = row->position - (prompt.n - 1);
        int32_t token[TOKENS];
        wg_mask anc = row->anc;
        for (int i = n - 1, slot = row->prefix - 1; row->logits >= 0 && i >= 0; i--) {
            const int bit = wg_mask_take_last(&anc);
            token[i] = (int32_t)*slot_at(&v, bit >= 0 ? row->tail + bit : slot--);
        }
        if (row->logits >= 0)
            memcpy(logits + (size_t)row->logits * (size_t)lm->vocab, recall(&target, prompt.prompt[prompt.n - 1], token, n),
                   (size_t)lm->vocab * sizeof *logits);
    }
    for (int r = 0; r < batch->n; r++) wg_kv_wrote(batch->row[r].kv, lm->space, batch->row[r].slot);
    return WG_OK;
}

static const wg_lm_class memory_class = { .name = "memory", .attach = attach, .forward = forward };

static wg_sibling_law draft_law; /* of the current test */
static int draft_wide;           /* children of every node */

typedef struct pair_drafter {
    wg_drafter base;
    wg_sampler sampler;
    double *left; /* (vocab) */
} pair_drafter;

static wg_status pair_open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    pair_drafter *p = (pair_drafter *)d;
    if (!(p->left = wg_alloc((size_t)env->target->vocab, sizeof *p->left))) return wg_nomem(err, 0, "weights");
    return wg_sampler_open(&p->sampler, &draft_chain, env->ops, env->target->vocab, err);
}

static void pair_close(wg_drafter *d)
{
    wg_sampler_close(&((pair_drafter *)d)->sampler);
    wg_free(((pair_drafter *)d)->left);
}

/* The children of one node by the law. */
static void pair_children(pair_drafter *p, const wg_seq *s, wg_tree *t, int node, int depth, wg_rows *q, int row)
{
    const wg_chance at = wg_chance_at(&s->chance, depth);
    const wg_support can = wg_rows_support(q, row);
    double *left = p->left; /* of the tokens that can be drawn */
    for (int i = 0; i < can.n; i++) left[i] = wg_rows_prob(q, row, wg_support_at(&can, i));
    if (draft_law == WG_LAW_COUPLED)
        memcpy(left, wg_rows_at(q, row), (size_t)q->vocab * sizeof *left); /* times belong to tokens */
    wg_tree_group(t, node, draft_wide);
    for (int k = 0; k < draft_wide; k++) {
        int i = 0, x;
        if (draft_law == WG_LAW_COUPLED) {
            x = i = wg_chance_race(&at, WG_DRAW_COUPLED, wg_list_0, NULL, left, q->vocab);
        } else {
            if (draft_law == WG_LAW_FIXED)
                for (int j = 1; j < can.n; j++) i = left[j] > left[i] ? j : i;
            else i = wg_chance_pick(&s->chance, WG_DRAW_DRAFT, t->n, left, can.n);
            x = wg_support_at(&can, i);
        }
        wg_tree_push(t, node, x, row);
        if (draft_law != WG_LAW_IID) left[i] = 0;
    }
}

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    (void)err;
    pair_drafter *p = (pair_drafter *)d;
    for (int i = 0; i < n; i++) {
        const wg_seq *s = seq[i];
        wg_tree *t = &out[i];
        const int done = s->n - prompt.n;
        wg_tree_reset(t, s->token[s->n - 1], draft_law);
        for (int node = 0; node < t->n; node++) { /* breadth first; three tokens need drafts of two */
            const int depth = wg_tree_depth(t, node);
            int32_t token[TOKENS];
            if (done + depth >= TOKENS - 1) break;
            memcpy(token, s->token + prompt.n, (size_t)done * sizeof *token);
            for (int at = node, k = done + depth; at > 0; at = t->parent[at]) token[--k] = t->token[at];
            const int row = wg_rows_push(q);
            wg_sampler_row(&p->sampler, recall(&draft, prompt.prompt[prompt.n - 1], token, done + depth), q, row);
            pair_children(p, s, t, node, depth, q, row);
        }
    }
    return WG_OK;
}

static wg_drafter_class pair_class = { .name = "pair",
                                       .doc = "the bundled draft model from memory",
                                       .size = sizeof(pair_drafter),
                                       .open = pair_open,
                                       .propose = propose,
                                       .close = pair_close };

/* ---- rules that must be detected */

static int biased_child(const wg_rule_block *b, wg_node_view *v)
{
    const int32_t x = b->tree->token[v->first];
    return wg_accepts(b, v->first, wg_prob(v->p, x), wg_prob(wg_q(b, v->first), x)) ? v->first : wg_stop(b, v);
}

static int eager_child(const wg_rule_block *b, wg_node_view *v)
{
    return wg_prob(v->p, b->tree->token[v->first]) > 0 ? v->first : wg_stop(b, v);
}

static void accept_biased(const void *opt, const wg_tree *tree, wg_rows *p, wg_rows *q, const wg_chance *chance,
                          wg_workspace *work, wg_path *out)
{
    (void)opt;
    const wg_rule_block b = wg_host_block(tree, p, q, chance, work, NULL, out);
    wg_node_view v = wg_view(&b, 0, 0);
    while (wg_advance(&b, &v, v.first < 0 ? wg_stop(&b, &v) : biased_child(&b, &v)))
        ;
}

static void accept_eager(const void *opt, const wg_tree *tree, wg_rows *p, wg_rows *q, const wg_chance *chance,
                         wg_workspace *work, wg_path *out)
{
    (void)opt;
    const wg_rule_block b = wg_host_block(tree, p, q, chance, work, NULL, out);
    wg_node_view v = wg_view(&b, 0, 0);
    while (wg_advance(&b, &v, v.first < 0 ? wg_stop(&b, &v) : eager_child(&b, &v)))
        ;
}

static const wg_verifier_class biased = {
    .name = "CONTROL residual = p", .laws = WG_LAW_IID, .chains = true, .accept = accept_biased
};
static const wg_verifier_class eager = {
    .name = "CONTROL keeps all", .laws = WG_LAW_IID, .chains = true, .accept = accept_eager
};

/* ---- the exact law of the texts, in cells */

typedef struct law {
    int32_t text[LEAVES][TOKENS];
    int cell[LEAVES], n, cells;
    double p[CELLS];
} law;

static void add_texts(law *l, wg_sampler *s, wg_rows *row, int32_t *text, int n, double p)
{
    if (n == TOKENS) {
        if (l->n == LEAVES) abort();
        if (l->n == 0 || l->p[l->cells - 1] >= CELL_MASS)
            l->p[l->cells++] = 0; /* texts side by side share a cell until it is heavy */
        if (l->cells > CELLS) abort();
        memcpy(l->text[l->n], text, sizeof l->text[0]);
        l->cell[l->n++] = l->cells - 1;
        l->p[l->cells - 1] += p;
        return;
    }
    struct {
        int32_t token;
        double p;
    } next[64];
    int k = 0;
    wg_sampler_row(s, recall(&target, prompt.prompt[prompt.n - 1], text, n), row, 0);
    for (int32_t x = 0; x < row->vocab; x++)
        if (wg_rows_prob(row, 0, x) > 0) {
            next[k].token = x;
            next[k++].p = wg_rows_prob(row, 0, x);
        }
    for (int i = 0; i < k; i++) {
        text[n] = next[i].token;
        add_texts(l, s, row, text, n + 1, p * next[i].p);
    }
}

static void law_of_texts(law *l, const wg_sampling *chain)
{
    wg_error err;
    wg_sampler s;
    wg_rows row;
    int32_t text[TOKENS];
    l->n = l->cells = 0;
    LAW_TRY(wg_sampler_open(&s, chain, target.model.ops, target.model.lm->vocab, &err));
    LAW_TRY(wg_rows_open(&row, 1, target.model.lm->vocab, &err));
    wg_rows_push(&row);
    add_texts(l, &s, &row, text, 0, 1);
    wg_rows_close(&row);
    wg_sampler_close(&s);
}

static int cell_of(const law *l, const int32_t *text)
{
    for (int i = 0; i < l->n; i++)
        if (!memcmp(l->text[i], text, sizeof l->text[0])) return l->cell[i];
    return -1;
}

/* ---- the test martingale */

typedef struct evidence {
    long n, count[CELLS];
    double log, highest; /* of M */
    long highest_at;
} evidence;

static void see(evidence *e, const law *l, int cell)
{
    e->log += cell < 0
                  ? INFINITY
                  : log((CONCENTRATION * l->p[cell] + (double)e->count[cell]) / (CONCENTRATION + (double)e->n) / l->p[cell]);
    e->n++;
    if (cell >= 0) e->count[cell]++;
    if (e->log > e->highest) {
        e->highest = e->log;
        e->highest_at = e->n;
    }
}

/* The share of simulated tests that see texts at total variation tv. */
static double power_at(const law *l, double tv, double limit)
{
    enum { RUNS = 100 };
    int seen = 0;
    for (uint32_t run = 0; run < RUNS; run++) {
        double other[CELLS], half = 0;
        uint32_t i = 0;
        for (int c = 0; c < l->cells; c++) { /* a half of the mass, drawn anew for each run */
            const wg_philox w = wg_philox_at(77, run, (uint32_t)c, 0, 0);
            const int up = half < 0.5 && (w.v[0] & 1);
            other[c] = up ? -l->p[c] : l->p[c];
            half += up ? l->p[c] : 0;
        }
        for (int c = 0; c < l->cells; c++) /* + tv in the one part, - tv in the other */
            other[c] = other[c] < 0 ? -other[c] * (1 + tv / half) : half > 0 ? other[c] * (1 - tv / (1 - half)) : other[c];
        evidence e = { 0 };
        for (; i < TEXTS && e.highest < limit; i++) {
            const wg_philox w = wg_philox_at(78, run, i, 0, 0);
            double u = wg_philox_double(w.v[0], w.v[1]);
            int c = 0;
            while (c < l->cells - 1 && u >= other[c]) u -= other[c++];
            see(&e, l, c);
        }
        seen += e.highest >= limit;
    }
    return seen / (double)RUNS;
}

static double detectable(const law *l, double limit)
{
    double tv = 0.01;
    while (tv < 0.5 && power_at(l, tv, limit) < 0.95) tv += 0.005;
    return tv;
}

/* ---- one test */

enum { GREEDY_TEXTS = 300 };

static evidence test(const wg_verifier_class *rule, wg_sibling_law siblings, int wide, const wg_sampling *chain, const law *l,
                     uint64_t seed, double limit, wg_counts *counts)
{
    static const wg_plugins plugins = { wg_drafters, wg_verifiers };
    wg_error err;
    wg_lm lm = { .class = &memory_class, .vocab = target.model.lm->vocab, .context = target.model.lm->context, .space = -1 };
    pair_class.laws = draft_law = siblings;
    draft_wide = wide;
    const wg_engine_options o = { .max_batch = BATCH, .max_tokens = 128, .seed = seed, .sampling = *chain };
    void *rule_options = rule->options ? wg_calloc(1, rule->size) : NULL;
    if (rule_options) wg_option_defaults(rule->options, rule_options);
    const wg_engine_parts parts = { .target = &lm,
                                    .pool = target.model.pool,
                                    .ops = target.model.ops,
                                    .target_name = "target",
                                    .drafter = &pair_class,
                                    .verifier = rule,
                                    .verifier_options = rule_options,
                                    .rules = wg_verifiers,
                                    .plugins = &plugins };
    wg_engine *e;
    LAW_TRY(wg_engine_open(&e, &parts, &o, &err));
    evidence seen = { 0 };
    const uint32_t texts = l->n == 1 ? GREEDY_TEXTS : TEXTS; /* only one text is right */
    for (uint32_t at = 0; at < texts && seen.highest < limit; at += BATCH) {
        wg_seq *seq[BATCH], *running[BATCH];
        for (uint32_t i = 0; i < BATCH; i++) LAW_TRY(wg_seq_open(e, &seq[i], at + i, prompt.prompt, prompt.n, TOKENS, &err));
        for (int n = BATCH; n > 0;) {
            n = 0;
            for (int i = 0; i < BATCH; i++)
                if (seq[i]->finish == WG_RUNNING) running[n++] = seq[i];
            if (n) LAW_TRY(wg_engine_step(e, running, n, &err));
        }
        for (int i = 0; i < BATCH; i++) {
            if (seen.highest < limit) see(&seen, l, cell_of(l, seq[i]->token + prompt.n));
            wg_counts_add(counts, &seq[i]->counts);
            wg_seq_close(e, seq[i]);
        }
    }
    wg_engine_close(e);
    wg_free(rule_options);
    return seen;
}

static const wg_sibling_law all_laws[] = { WG_LAW_FIXED, WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT, WG_LAW_COUPLED };

/* All laws of a rule, `wide` children at every node. Returns how many tests there are; counts those that reject. */
static int test_rule(const wg_verifier_class *rule, int wide, const law *l, const law *point, double limit, int *rejects)
{
    static const wg_sampling greedy_chain = WG_SAMPLING(0, 0, 1, 0);
    const bool greedy = rule->zero_only;
    int tests = 0;
    for (size_t k = 0; k < sizeof all_laws / sizeof *all_laws && wide <= (rule->chains ? 1 : 2); k++) {
        if (!(rule->laws & all_laws[k])) continue;
        if (wide == 1 && all_laws[k] == WG_LAW_WITHOUT_REPLACEMENT && rule->laws & WG_LAW_IID) continue; /* the same chain */
        tests++;
        if (!l) continue;
        wg_counts counts = { 0 };
        const evidence e = test(rule, all_laws[k], wide, greedy ? &greedy_chain : &target_chain, greedy ? point : l,
                                1000 + (uint64_t)tests, limit, &counts);
        const bool reject = e.highest >= limit;
        *rejects += reject;
        printf("  %-22s %-20s %5ld texts, tau %.2f, log10 M %6.2f at most (text %ld)%s\n", rule->name, wg_law_name(all_laws[k]),
               e.n, (double)counts.emitted / (double)counts.passes, e.highest / log(10), e.highest_at,
               reject ? "  REJECTED" : "");
    }
    return tests;
}

int main(void)
{
    char target_path[512], draft_path[512], prompts[600];
    if (!pair_find(target_path, draft_path, sizeof target_path)) {
        printf("SKIPPED: the bundled pair is not there\n");
        return LAW_SKIP;
    }
    memory_open(&target, target_path);
    memory_open(&draft, draft_path);
    const char *root = getenv("WG_ROOT");
    snprintf(prompts, sizeof prompts, "%s/configs/prompts/quickstart.jsonl", root ? root : ".");
    law_request r[PROMPTS];
    const int n = pair_prompts(prompts, target.model.tokenizer, PROMPTS, PROMPTS, 30, TOKENS, r);
    int tests = 0, accused = 0, missed = 0;
    for (int i = 0; wg_verifiers[i]; i++)
        for (int wide = 1; wide <= PROMPTS; wide++)
            if (wg_verifiers[i]->lossless) tests += test_rule(wg_verifiers[i], wide, NULL, NULL, 0, NULL);
    const double limit = log(tests / FAMILY);
    printf("%d tests of lossless rules, family-wise error below %g: M >= %.3g rejects; %d texts at most\n", tests, FAMILY,
           exp(limit), (int)TEXTS);
    static law l, point;
    for (int i = 0; i < n; i++) {
        static const wg_sampling greedy_chain = WG_SAMPLING(0, 0, 1, 0);
        prompt = r[i];
        memory_prompt(&target, &prompt);
        memory_prompt(&draft, &prompt);
        law_of_texts(&l, &target_chain);
        law_of_texts(&point, &greedy_chain);
        double sum = 0;
        for (int c = 0; c < l.cells; c++) sum += l.p[c];
        printf("prompt %d, %s: %d texts in %d cells, mass %.12f; detected in 95 of 100 tests: total variation %.3f\n", i + 1,
               i ? "trees two wide" : "chains", l.n, l.cells, sum, detectable(&l, limit));
        for (int k = 0; wg_verifiers[k]; k++)
            if (wg_verifiers[k]->lossless) test_rule(wg_verifiers[k], i + 1, &l, &point, limit, &accused);
        for (int k = 0; k < 2; k++) {
            int found = 0;
            test_rule(k ? &eager : &biased, 1, &l, &point, limit, &found);
            missed += !found;
        }
    }
    printf("%d of %d tests of lossless rules reject; %d of %d controls are missed\n", accused, tests, missed, 2 * n);
    for (int i = 0; i < n; i++) wg_free((int32_t *)r[i].prompt);
    memory_close(&target);
    memory_close(&draft);
    if (accused) fprintf(stderr, "FAILED: a lossless rule emits texts of another law\n");
    if (missed) fprintf(stderr, "FAILED: a control was not detected\n");
    return accused || missed || n < PROMPTS;
}
