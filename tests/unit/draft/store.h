/* SPDX-License-Identifier: MIT
 * A tokenizer and datastores for tests of the lookup drafters. */
#ifndef WG_TESTS_DRAFT_STORE_H
#define WG_TESTS_DRAFT_STORE_H

#include "core/file/synth.h"
#include "draft/lookup/datastore.h"
#include "tests/temp.h"
#include "tests/unit/draft/points.h"

typedef struct store {
    temp dir;
    wg_tokenizer *tokenizer, *other; /* of 320 and of 330 tokens */
    char path[128];                  /* of the datastore that store_write makes */
    wg_env env;
} store;

static inline wg_tokenizer *store_tokenizer(store *s, int vocab)
{
    wg_error err;
    wg_weights *w;
    wg_tokenizer *t;
    const wg_synth_shape shape = { .layers = 1, .dim = 32, .heads = 2, .hidden = 32, .vocab = vocab, .context = 16 };
    const char *path = temp_at(&s->dir, "model.gguf");
    cr_assert_eq(wg_synth_write(&shape, WG_F32, 1, path, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_weights_open(&w, path, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_tokenizer_open(&t, w, &err), WG_OK, "%s", err.text);
    wg_weights_close(w);
    return t;
}

static inline void store_open(store *s)
{
    temp_make(&s->dir);
    s->tokenizer = store_tokenizer(s, 320);
    s->other = store_tokenizer(s, 330);
    snprintf(s->path, sizeof s->path, "%s/store", s->dir.dir);
    s->env = (wg_env){ .max_batch = 8, .is_eog = points_is_eog, .tokenizer = s->tokenizer, .target_name = "t.gguf" };
}

static inline void store_write(store *s, const int32_t *token, int n)
{
    wg_error err;
    cr_assert_eq(wg_datastore_write(s->path, s->tokenizer, token, (size_t)n, &err), WG_OK, "%s", err.text);
}

static inline void store_close(store *s)
{
    wg_tokenizer_close(s->tokenizer);
    wg_tokenizer_close(s->other);
    temp_remove(&s->dir);
}

/* A drafter with `option`=the datastore and the rest of the options. */
static inline wg_drafter *store_drafter(store *s, const wg_drafter_class *c, const char *option, const char *rest,
                                        wg_error *err)
{
    char options[400];
    snprintf(options, sizeof options, "%s=%s%s%s", option, s->path, *rest ? "," : "", rest);
    return points_open(c, &s->env, options, err);
}

/* Files that are missing, damaged or of another tokenizer are refused, and nothing is held. */
static inline void store_refusals(const wg_drafter_class *c, const char *option)
{
    store s;
    wg_error err;
    store_open(&s);
    const size_t blocks = wg_mem_read().live_blocks;
    cr_assert_null(store_drafter(&s, c, option, "", &err));
    cr_assert_eq(err.code, WG_ENOENT);
    cr_assert(strstr(err.text, s.path));
    store_write(&s, LIST(1, 2, 3, -1, 4, 5));
    wg_drafter *d = store_drafter(&s, c, option, "", &err);
    cr_assert_not_null(d, "%s", err.text);
    points_close(d);
    s.env.tokenizer = s.other;
    cr_assert_null(store_drafter(&s, c, option, "", &err));
    cr_assert_eq(err.code, WG_EVOCAB);
    cr_assert(strstr(err.text, "another tokenizer") && strstr(err.text, c->name) && strstr(err.text, "datastore build"));
    s.env.tokenizer = NULL;
    cr_assert_null(store_drafter(&s, c, option, "", &err));
    cr_assert_eq(err.code, WG_EMODEL);
    char want[800];
    snprintf(want, sizeof want, "drafter %s: %s has no tokenizer, so it is unknown whether %s was built for it", c->name,
             s.env.target_name, s.path);
    cr_assert_str_eq(err.text, want);
    s.env.tokenizer = s.tokenizer;
    cr_assert_eq(truncate(s.path, 140), 0);
    cr_assert_null(store_drafter(&s, c, option, "", &err));
    cr_assert_eq(err.code, WG_EFORMAT);
    cr_assert_eq(wg_mem_read().live_blocks, blocks);
    store_close(&s);
}

#endif
