/* SPDX-License-Identifier: MIT
 * Shared by the law tests: decodes a list of requests under one setting, in batches, and compares the tokens. A failure of
 * anything but the law ends the program with its message. */
#ifndef WG_TESTS_LAW_PLAIN_DECODE_H
#define WG_TESTS_LAW_PLAIN_DECODE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/engine/build.h"
#include "core/engine/engine.h"
#include "core/model/model.h"
#include "draft/draft.h"
#include "kernels/cpu.h"
#include "verify/verify.h"

enum { LAW_SKIP = 77 }; /* exit status of a test that could not run */

#define LAW_TRY(expr)                                                                                                          \
    do {                                                                                                                       \
        const wg_status s_ = (expr);                                                                                           \
        if (s_) {                                                                                                              \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, wg_status_name(s_), err.text);                              \
            exit(1);                                                                                                           \
        }                                                                                                                      \
    } while (0)

/* A model opened on one device. */
typedef struct law_model {
    wg_weights *file;
    wg_model *model;
    wg_lm *lm;
    wg_tokenizer *tokenizer; /* NULL: the file has none */
    wg_pool *pool;
    const wg_ops *ops;
} law_model;

static inline void law_model_open(law_model *m, const char *path, int threads, wg_cpu_level level, int kv_type)
{
    wg_error err;
    wg_device device;
    *m = (law_model){ .ops = wg_ops_for(level) };
    LAW_TRY(wg_pool_open(&m->pool, threads, &err));
    LAW_TRY(wg_device_cpu(&device, m->pool, &err));
    device.ops = m->ops;
    LAW_TRY(wg_weights_open(&m->file, path, &err));
    const wg_model_options o = { .kv_type = kv_type };
    LAW_TRY(wg_model_open(&m->model, m->file, &device, &o, &err));
    m->lm = wg_model_lm(m->model);
    if (wg_meta_array(m->file, "tokenizer.ggml.tokens", &(wg_meta_kind){ 0 }) > 0)
        LAW_TRY(wg_tokenizer_open(&m->tokenizer, m->file, &err));
}

/* On a device by its name; f16 cache. */
static inline void law_model_open_on(law_model *m, const char *path, const char *device_name)
{
    wg_error err;
    wg_device device;
    const wg_model_options o = { .kv_type = WG_F16 };
    *m = (law_model){ .ops = wg_ops_for(wg_cpu_chosen()) };
    LAW_TRY(wg_device_open(&device, device_name, NULL, &err));
    LAW_TRY(wg_weights_open(&m->file, path, &err));
    LAW_TRY(wg_model_open(&m->model, m->file, &device, &o, &err));
    wg_device_close(&device); /* the model holds it */
    m->lm = wg_model_lm(m->model);
    LAW_TRY(wg_tokenizer_open(&m->tokenizer, m->file, &err));
}

static inline void law_model_close(law_model *m)
{
    wg_tokenizer_close(m->tokenizer);
    wg_model_close(m->model);
    wg_weights_close(m->file);
    wg_pool_close(m->pool);
}

typedef struct law_setup {
    const law_model *target;
    const char *drafter, *options, *rule;  /* "model", "model=FILE,length=4", "match" */
    const wg_drafter_class *drafter_class; /* a test's own, in place of a name; NULL: by name */
    const wg_verifier_class *rule_class;
    const char *rule_options;
    wg_sampling sampling;
    uint64_t seed;
    int batch, max_tokens, page_slots, prefill_rows; /* 0: the engine's defaults; batch 0: 1 */
    int places, pages, ride_rows;                    /* places: of sequences; 0: as many as the batch */
    bool alpha;
    wg_length_log *lengths;
    wg_is_eog_fn *is_eog; /* NULL: the tokenizer says which tokens end a text */
} law_setup;

typedef struct law_request {
    const int32_t *prompt;
    int n, max_new;
} law_request; /* its number addresses its randomness */
typedef struct law_output {
    int32_t *token;
    int n;
    wg_finish finish;
} law_output; /* what came after the prompt */

/* A drafter's options as a struct, over their defaults; to be freed. */
static inline void *law_options(const wg_drafter_class *c, const char *text)
{
    wg_error err;
    const size_t size = c->size - c->options_at;
    void *options = wg_calloc(1, size);
    if (!options) abort();
    if (c->options) wg_option_defaults(c->options, options);
    if (text && *text) LAW_TRY(wg_option_set_list(c->options, options, size, text, &err));
    return options;
}

/* Whether the rule checks all laws that the drafter has with these options. */
static inline bool law_legal(const char *drafter, const char *options, const wg_sampling *sampling,
                             const wg_verifier_class *rule)
{
    static const wg_plugins plugins = { wg_drafters, wg_verifiers };
    const wg_drafter_class *c;
    wg_error err;
    LAW_TRY(wg_find_drafter(&plugins, drafter, &c, &err));
    void *o = law_options(c, options);
    const unsigned drawn = wg_drafter_laws(c, o, sampling);
    wg_free(o);
    return wg_check_laws(c, drawn, rule, NULL, NULL) == WG_OK;
}

/* Files for the words of a drafter's test options (core/engine/drafter.h); NULL: the test has none. */
typedef struct law_files {
    const char *target, *near, *far, *brief, *other, *store, *list, *plugin, *head;
} law_files;

#ifdef WG_TEST_PLUGINS
#define LAW_PLUGIN WG_TEST_PLUGINS "/libbigram.so"
#else
#define LAW_PLUGIN NULL /* this build has no shared objects */
#endif

/* A drafter with options of its class, ready to run. */
typedef struct law_row {
    const wg_drafter_class *class;
    const wg_drafter_test *test;
    char options[1024], label[1024]; /* words replaced by files; as the class has them */
} law_row;

/* The options with files for their words; false: one has no file here. */
static inline bool law_expand(const law_files *f, const char *text, char *out, size_t size)
{
    const struct {
        const char *word, *path;
    } words[] = {
        { "$target", f->target }, { "$near", f->near },     { "$far", f->far },
        { "$short", f->brief },   { "$other", f->other },   { "$store", f->store },
        { "$list", f->list },     { "$plugin", f->plugin }, { "$head", f->head },
    };
    size_t n = 0;
    while (*text && n + 1 < size) {
        size_t k = 0, length = 0;
        for (; k < sizeof words / sizeof *words; k++)
            if (!strncmp(text, words[k].word, length = strlen(words[k].word))) break;
        if (*text != '$') {
            out[n++] = *text++;
            continue;
        }
        if (k == sizeof words / sizeof *words || !words[k].path) return false;
        n += (size_t)snprintf(out + n, size - n, "%s", words[k].path);
        text += length;
    }
    out[n < size ? n : size - 1] = '\0';
    return n + 1 < size;
}

enum { LAW_ROWS = 128 }; /* room for the test options of all drafters */

/* Every drafter of the registry with its first `each` test options, at most LAW_ROWS rows. Returns how many; *failures counts
 * drafters without a row, each named: one without test options, or with a word that has no file here. */
static inline int law_rows(const law_files *f, int each, law_row *row, int *failures)
{
    int n = 0;
    for (const wg_drafter_class *const *c = wg_drafters; *c; c++) {
        int rows = 0, skipped = 0;
        for (const wg_drafter_test *t = (*c)->test_options; t && t->options && rows < each; t++) {
            if (n == LAW_ROWS) exit((fprintf(stderr, "FAILED: there are more test options than LAW_ROWS\n"), 1));
            law_row *r = &row[n];
            if (!law_expand(f, t->options, r->options, sizeof r->options)) {
                skipped += strstr(t->options, "$plugin") != NULL && !f->plugin;
                continue;
            }
            r->class = *c;
            r->test = t;
            snprintf(r->label, sizeof r->label, "%s%s%s", (*c)->name, *t->options ? ":" : "", t->options);
            n++, rows++;
        }
        if (rows == 0 && !skipped) {
            fprintf(stderr, "FAILED drafter %s: its class has no test_options that run here\n", (*c)->name);
            ++*failures;
        }
    }
    return n;
}

static inline wg_engine *law_engine(const law_setup *s)
{
    static const wg_plugins plugins = { wg_drafters, wg_verifiers };
    wg_error err;
    wg_engine_parts parts = { .target = s->target->lm,
                              .pool = s->target->pool,
                              .ops = s->target->ops,
                              .tokenizer = s->target->tokenizer,
                              .target_name = "target",
                              .is_eog = s->is_eog,
                              .rules = wg_verifiers,
                              .plugins = &plugins,
                              .drafter = s->drafter_class,
                              .verifier = s->rule_class };
    if (!parts.drafter) LAW_TRY(wg_find_drafter(&plugins, s->drafter, &parts.drafter, &err));
    if (!parts.verifier) LAW_TRY(wg_find_verifier(&plugins, s->rule, &parts.verifier, &err));
    void *options = law_options(parts.drafter, s->options);
    parts.drafter_options = parts.drafter->options ? options : NULL;
    double rule_options[8]; /* room for any rule's */
    if (s->rule_options) {
        wg_option_defaults(parts.verifier->options, rule_options);
        LAW_TRY(wg_option_set_list(parts.verifier->options, rule_options, sizeof rule_options, s->rule_options, &err));
        parts.verifier_options = rule_options;
    }
    const wg_engine_options o = { .max_batch = s->places  ? s->places
                                               : s->batch ? s->batch
                                                          : 1,
                                  .step_batch = s->batch,
                                  .pages = s->pages,
                                  .ride_rows = s->ride_rows,
                                  .max_tokens = s->max_tokens,
                                  .page_slots = s->page_slots,
                                  .prefill_rows = s->prefill_rows,
                                  .seed = s->seed,
                                  .sampling = s->sampling,
                                  .measure_alpha = s->alpha,
                                  .lengths = s->lengths };
    wg_engine *e;
    LAW_TRY(wg_engine_open(&e, &parts, &o, &err));
    wg_free(options);
    return e;
}

/* Decodes n requests on an open engine, always as many at once as there are places: a finished one makes room for the next,
 * after each step, or after so many rounds where `rounds` is above 1. */
static inline void law_run(wg_engine *e, int rounds, const law_request *r, int n, law_output *out, wg_counts *counts)
{
    wg_error err;
    wg_seq *seq[256];
    int who[256], running = 0, next = 0;
    while (running || next < n) {
        for (; running < wg_engine_options_of(e)->max_batch && next < n; next++, running++) {
            LAW_TRY(wg_seq_open(e, &seq[running], (uint32_t)next, r[next].prompt, r[next].n, r[next].max_new, &err));
            who[running] = next;
        }
        LAW_TRY(rounds > 1 ? wg_engine_rounds(e, seq, running, rounds, NULL, NULL, &err)
                           : wg_engine_step(e, seq, running, &err));
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

static inline void law_decode(const law_setup *s, const law_request *r, int n, law_output *out, wg_counts *counts)
{
    wg_engine *e = law_engine(s);
    law_run(e, 1, r, n, out, counts);
    wg_engine_close(e);
}

static inline void law_free(law_output *o, int n)
{
    for (int i = 0; i < n; i++) wg_free(o[i].token);
    memset(o, 0, (size_t)n * sizeof *o);
}

/* The number of requests whose outputs differ; says where the first one does. */
static inline int law_compare(const char *what, const law_output *want, const law_output *got, int n)
{
    int bad = 0;
    for (int i = 0; i < n; i++) {
        int at = 0;
        while (at < want[i].n && at < got[i].n && want[i].token[at] == got[i].token[at]) at++;
        if (at == want[i].n && at == got[i].n && want[i].finish == got[i].finish) continue;
        if (!bad++)
            fprintf(stderr, "FAILED %s: request %d: %d tokens, plain decoding %d; they part at output token %d (%d, not %d)\n",
                    what, i, got[i].n, want[i].n, at, at < got[i].n ? got[i].token[at] : -1,
                    at < want[i].n ? want[i].token[at] : -1);
    }
    return bad;
}

static inline long law_tokens(const law_output *o, int n)
{
    long sum = 0;
    for (int i = 0; i < n; i++) sum += o[i].n;
    return sum;
}

#endif
