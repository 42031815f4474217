/* SPDX-License-Identifier: MIT
 * The exact law of what an engine emits (verify/proof/text_law.h): the probability of each whole text is compared with
 * the target's. The reference shares nothing with the engine but the model's logits: they are computed one text at a time over
 * another instance and cache, and the sampler chain is written out naively below. */
#ifndef WG_TESTS_LAW_ENGINE_LAW_H
#define WG_TESTS_LAW_ENGINE_LAW_H

#include <math.h>

#include "core/model/lm_table.h"
#include "verify/proof/text_law.h"
#include "tests/law/plain_decode.h"

enum { EXACT_TEXTS = 4096, EXACT_CONTEXT = 48, EXACT_VOCAB = 512 };

/* ---- the target, twice: for the engine, and for the reference */

typedef struct exact_target {
    law_model m, again;    /* `again` is the same model, in a cache of its own */
    wg_lm_table *table[2]; /* NULL: a model from a file */
    wg_kv *kv;
    wg_batch batch;
} exact_target;

static inline void exact_reference(exact_target *t)
{
    wg_error err;
    LAW_TRY(wg_kv_open(&t->kv, 8, 16, EXACT_CONTEXT, &err));
    LAW_TRY(wg_lm_attach(t->again.lm, t->kv, &err));
    LAW_TRY(wg_batch_open(&t->batch, EXACT_CONTEXT, &err));
}

/* A table model: the logits depend on the last `order` tokens. */
static inline void exact_table(exact_target *t, int vocab, int order, uint64_t seed, double sharpness)
{
    wg_error err;
    *t = (exact_target){ 0 };
    for (int i = 0; i < 2; i++) {
        law_model *m = i ? &t->again : &t->m;
        LAW_TRY(wg_lm_table_open(&t->table[i], vocab, order, seed, sharpness, EXACT_CONTEXT, &err));
        *m = (law_model){ .lm = &t->table[i]->lm, .ops = wg_ops_for(wg_cpu_chosen()) };
        LAW_TRY(wg_pool_open(&m->pool, 1, &err));
    }
    exact_reference(t);
}

static inline void exact_file(exact_target *t, const char *path)
{
    *t = (exact_target){ 0 };
    law_model_open(&t->m, path, 1, wg_cpu_chosen(), WG_F32);
    law_model_open(&t->again, path, 1, wg_cpu_chosen(), WG_F32);
    exact_reference(t);
}

static inline void exact_target_close(exact_target *t)
{
    wg_batch_close(&t->batch);
    wg_kv_close(t->kv);
    for (int i = 0; i < 2; i++) {
        law_model *m = i ? &t->again : &t->m;
        if (t->table[i]) {
            wg_lm_table_close(t->table[i]);
            wg_pool_close(m->pool);
        } else law_model_close(m);
    }
}

/* The logits after a text of n tokens, read in one pass. */
static inline void exact_logits(exact_target *t, const int32_t *text, int n, float *logits)
{
    wg_error err;
    wg_kv_seq *s;
    LAW_TRY(wg_kv_seq_open(t->kv, &s, &err));
    LAW_TRY(wg_kv_reserve(s, n, &err));
    wg_batch_clear(&t->batch);
    wg_batch_chain(&t->batch, s, 0, text, n, 1);
    LAW_TRY(wg_lm_forward(t->again.lm, &t->batch, logits, &err));
    wg_kv_seq_close(s);
}

/* ---- the sampler chain, stage by stage; a dropped token has x = -inf */

/* w = softmax(x / temperature) up to a factor: the largest has weight 1. Returns the sum. */
static inline double exact_softmax(const float *x, int vocab, double temperature, double *w)
{
    float most = -INFINITY;
    double sum = 0;
    for (int i = 0; i < vocab; i++) most = x[i] > most ? x[i] : most;
    for (int i = 0; i < vocab; i++) sum += w[i] = x[i] > -INFINITY ? exp(((double)x[i] - most) / temperature) : 0;
    return sum;
}

/* Keeps the `most` largest, and of these no more than reach the weight `enough` of w (NULL: no such bound). */
static inline void exact_keep(float *x, int vocab, int most, const double *w, double enough)
{
    bool kept[EXACT_VOCAB] = { false };
    double mass = 0;
    for (int n = 0; n < most && (n == 0 || !w || mass < enough); n++) {
        int best = -1;
        for (int i = 0; i < vocab; i++)
            if (!kept[i] && x[i] > -INFINITY && (best < 0 || x[i] > x[best])) best = i;
        if (best < 0) break;
        kept[best] = true;
        if (w) mass += w[best];
    }
    for (int i = 0; i < vocab; i++)
        if (!kept[i]) x[i] = -INFINITY;
}

/* The first `prompt` tokens count for the repetition penalty alone. */
static inline void exact_penalise(const wg_sampling *o, const int32_t *text, int n, int prompt, int vocab, float *x)
{
    const int window = o->penalty_window && o->penalty_window < n ? o->penalty_window : n;
    const float repeat = o->repetition_penalty > 0 ? (float)o->repetition_penalty : 1;
    for (int i = 0; i < vocab; i++) {
        int count = 0, output = 0;
        for (int k = n - window; k < n; k++) {
            count += text[k] == i;
            output += text[k] == i && (k >= prompt || o->penalise_prompt);
        }
        if (count) x[i] = x[i] > 0 ? x[i] / repeat : x[i] * repeat;
        if (output) x[i] -= (float)(output * o->frequency_penalty + o->presence_penalty);
    }
}

/* ---- one enumeration */

typedef struct exact_run {
    law_setup setup;            /* its batch is 1 or 2 */
    bool fresh;                 /* the drafter remembers requests that are over: a new engine for each run */
    uint64_t other;             /* as of wg_engine_law, */
    bool after;                 /* likewise */
    const wg_seq_sampling *own; /* how its rows are made; NULL: as setup.sampling says */
    bool (*may)(const int32_t *text, int n, int32_t token); /* what may follow a text, prompt included; NULL: all */
    const int32_t *prompt;
    int n, length;
    long most; /* runs; 0: a million */
    /* What came out. */
    long runs, reused, drafted, accepted;
    double deviation, passes; /* largest over texts; the expected number of the target's passes */
    bool cut, beyond;         /* there were more runs; a joint law of races that is not known */
    unsigned heights[WG_LAW_LENGTH + 1];
} exact_run;

/* p after a text: what decoding one token at a time draws from. */
static inline void exact_row(const exact_run *run, exact_target *t, const int32_t *text, int n, double *p)
{
    const int vocab = t->m.lm->vocab;
    const wg_seq_sampling *own = run->own;
    const wg_sampling *o = own && own->sampling ? own->sampling : &run->setup.sampling;
    float x[EXACT_VOCAB];
    double temperature = 1;
    exact_logits(t, text, n, x);
    for (int i = 0; own && i < own->biases; i++) x[own->bias[i].token] += own->bias[i].bias;
    for (int i = 0; i < vocab; i++)
        if (run->may && !run->may(text, n, i)) x[i] = -INFINITY;
    for (const char *at = *o->order ? o->order : WG_SAMPLING_ORDER; *at; at += strcspn(at, ","), at += *at == ',') {
        if (!strncmp(at, "pen", 3)) exact_penalise(o, text, n, run->n, vocab, x);
        else if (!strncmp(at, "tem", 3)) temperature = o->temperature;
        else if (temperature == 0) continue;
        else if (!strncmp(at, "top_k", 5) && o->top_k) exact_keep(x, vocab, o->top_k, NULL, 0);
        else if (!strncmp(at, "top_p", 5) && o->top_p < 1)
            exact_keep(x, vocab, vocab, p, o->top_p * exact_softmax(x, vocab, temperature, p));
        else if (!strncmp(at, "min_p", 5) && o->min_p > 0) {
            exact_softmax(x, vocab, temperature, p);
            for (int i = 0; i < vocab; i++) x[i] = p[i] < o->min_p ? -INFINITY : x[i];
        }
    }
    if (o->temperature == 0) exact_keep(x, vocab, 1, NULL, 0);
    const double sum = exact_softmax(x, vocab, o->temperature > 0 ? temperature : 1, p);
    for (int i = 0; i < vocab; i++) p[i] /= sum;
}

static inline int exact_child(wg_text_laws *l, int at, int32_t token)
{
    const int child = wg_text_child(l, at, token);
    if (child < 0) exit((fprintf(stderr, "FAILED: more than %d texts\n", l->cap), 1));
    return child;
}

/* The target's law after text[0 .. n), which has this probability. */
static inline void exact_want(const exact_run *x, exact_target *t, wg_text_laws *l, int at, int32_t *text, int n,
                              double probability)
{
    double p[EXACT_VOCAB];
    const bool done = n > x->n && x->setup.is_eog && x->setup.is_eog(NULL, text[n - 1]);
    if (done || n == x->n + x->length) {
        l->text[at].want = probability;
        return;
    }
    exact_row(x, t, text, n, p);
    for (int i = 0; i < t->m.lm->vocab; i++) {
        if (!(p[i] > 0)) continue;
        text[n] = i;
        exact_want(x, t, l, exact_child(l, at, i), text, n + 1, probability * p[i]);
    }
}

static inline bool exact_end(exact_run *x, long runs, wg_chance_tree *tree)
{
    x->beyond |= tree->beyond;
    x->cut = runs >= (x->most ? x->most : 1000000);
    if (x->beyond || x->cut || !wg_chance_tree_next(tree)) return true;
    return false;
}

/* Enumerates x->setup over target t; what comes out is in *x. The setup's target is set here. */
static inline void exact_law_of(exact_run *x, exact_target *t)
{
    static wg_text_laws laws;
    wg_error err;
    wg_chance_tree tree;
    wg_engine_law run = {
        .prompt = x->prompt, .n = x->n, .length = x->length, .other = x->other, .after = x->after, .sampling = x->own
    };
    int32_t text[EXACT_CONTEXT];
    int at;
    if (!laws.text) LAW_TRY(wg_text_laws_open(&laws, EXACT_TEXTS, &err));
    memcpy(text, x->prompt, (size_t)x->n * sizeof *text);
    wg_text_laws_clear(&laws);
    x->setup.target = &t->m;
    x->setup.batch = x->other ? 2 : 1;
    x->cut = x->beyond = false;
    exact_want(x, t, &laws, 0, text, x->n, 1);
    wg_engine *e = law_engine(&x->setup);
    LAW_TRY(wg_chance_tree_open(&tree, &err));
    for (bool done = false; !done;) {
        LAW_TRY(wg_engine_law_once(&run, e, &tree, &laws, &at, &err));
        laws.text[at].got += wg_chance_tree_probability(&tree);
        done = exact_end(x, run.runs, &tree);
        if (x->fresh && !done) {
            wg_engine_close(e);
            e = law_engine(&x->setup);
        }
    }
    if (tree.failed) exit((fprintf(stderr, "FAILED: out of memory\n"), 1));
    x->reused = wg_chance_tree_reused(&tree);
    wg_chance_tree_close(&tree);
    wg_engine_close(e);
    x->runs = run.runs, x->drafted = run.drafted, x->accepted = run.accepted, x->passes = run.passes;
    memcpy(x->heights, run.heights, sizeof x->heights);
    x->deviation = wg_text_laws_deviation(&laws);
}

#endif
