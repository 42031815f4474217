/* SPDX-License-Identifier: MIT
 * Files of small models with random weights for the words of test options: a target and draft models of several kinds, a
 * datastore, a list of tokens, a head. */
#ifndef WG_TESTS_LAW_SYNTH_MODELS_H
#define WG_TESTS_LAW_SYNTH_MODELS_H

#include <sys/stat.h>
#include <unistd.h>

#include "core/file/synth.h"
#include "draft/lm/vocabulary_subset.h"
#include "draft/lookup/datastore.h"
#include "tests/conformance/head_folder.h"
#include "tests/law/plain_decode.h"

static struct law_models {
    char dir[32], target[64], near[64], far[64], brief[64], other[64], store[64], list[64], head[64];
} law_models;

static inline void law_models_remove(void)
{
    const struct law_models *m = &law_models;
    head_remove(m->head);
    const char *const file[] = { m->target, m->near, m->far, m->brief, m->other, m->store, m->list, m->dir };
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) remove(file[i]);
}

static inline void law_models_name(char path[64], const char *name) { snprintf(path, 64, "%.31s/%s", law_models.dir, name); }

/* Writes a target of this shape and its draft models, to be removed when the program ends. `near` has the same weights in q8_0;
 * `brief` the same in f16, with a context that ends before the texts do; `other` lacks the last thirty words; `far` has other
 * weights. */
static inline law_files law_models_write(wg_synth_shape s)
{
    wg_error err;
    struct law_models *m = &law_models;
    snprintf(m->dir, sizeof m->dir, "/tmp/wg-law-XXXXXX");
    if (!mkdtemp(m->dir)) exit((perror(m->dir), 1));
    atexit(law_models_remove);
    law_models_name(m->target, "target.gguf");
    law_models_name(m->near, "near.gguf");
    law_models_name(m->far, "far.gguf");
    law_models_name(m->brief, "short.gguf");
    law_models_name(m->other, "other.gguf");
    law_models_name(m->store, "store");
    law_models_name(m->list, "list.json");
    law_models_name(m->head, "head");
    LAW_TRY(wg_synth_write(&s, WG_F32, 1, m->target, &err));
    LAW_TRY(wg_synth_write(&s, WG_Q8_0, 1, m->near, &err));
    if (mkdir(m->head, 0700)) exit((perror(m->head), 1));
    head_for(m->target, m->head);
    const int context = s.context;
    s.context = 40;
    LAW_TRY(wg_synth_write(&s, WG_F16, 1, m->brief, &err));
    s.context = context;
    s.vocab -= 30;
    LAW_TRY(wg_synth_write(&s, WG_Q8_0, 1, m->other, &err));
    s = (wg_synth_shape){
        .name = "far", .layers = 1, .dim = 32, .heads = 2, .hidden = 64, .vocab = s.vocab + 30, .context = context, .tied = true
    };
    LAW_TRY(wg_synth_write(&s, WG_F32, 2, m->far, &err));
    return (law_files){ .target = m->target,
                        .near = m->near,
                        .far = m->far,
                        .brief = m->brief,
                        .other = m->other,
                        .store = m->store,
                        .list = m->list,
                        .head = m->head,
                        .plugin = LAW_PLUGIN };
}

/* Writes the datastore, of these tokens, and the list: every other token may be drafted. */
static inline void law_models_lists(const wg_tokenizer *t, const int32_t *token, size_t n)
{
    wg_error err;
    const int vocab = wg_tokenizer_size(t);
    int32_t *kept = wg_calloc((size_t)vocab, sizeof *kept);
    if (!kept) abort();
    for (int i = 0; i < vocab / 2; i++) kept[i] = 2 * i;
    LAW_TRY(wg_vocabulary_subset_write(law_models.list, t, kept, vocab / 2, &err));
    wg_free(kept);
    LAW_TRY(wg_datastore_write(law_models.store, t, token, n, &err));
}

/* A text whose every part occurs again. */
static inline void law_models_text(int32_t *token, int n)
{
    for (int k = 0; k < n; k++) token[k] = 3 + (k * k + k / 5) % 13;
}

#endif
