/* SPDX-License-Identifier: MIT
 * Heads of tests/conformance/heads for tests: a fixture with its target, and engines whose rule accepts what a test says. */
#ifndef WG_TESTS_HEAD_FIXTURE_H
#define WG_TESTS_HEAD_FIXTURE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/engine/build.h"
#include "core/engine/engine.h"
#include "core/file/gguf_write.h"
#include "core/model/taps.h"
#include "draft/draft.h"
#include "draft/head/head.h"
#include "kernels/cpu.h"
#include "tests/conformance/head_folder.h"
#include "tests/unit/model/one_sequence.h"
#include "verify/verify.h"

static wg_error fixture_err;

/* A fixture, its target, and both as folders. */
typedef struct fixture {
    miniature of;
    temp target, head;
    json_t *at;
    wg_weights *weights;
    const wg_drafter_class *class; /* for tests of several drafters */
} fixture;

static inline fixture fixture_open(const char *name)
{
    fixture f;
    const char *root = getenv("WG_ROOT");
    char path[256], *config;
    size_t n;
    mini_open(&f.of, "llama-scaled");
    temp_make(&f.target);
    temp_make(&f.head);
    mini_write(&f.of, &f.target, 0);
    snprintf(path, sizeof path, "%s/tests/conformance/heads/%s/case.json", root ? root : ".", name);
    f.at = json_load_file(path, 0, NULL);
    cr_assert(f.at, "%s", path);
    snprintf(path, sizeof path, "%s/tests/conformance/heads/%s/config.json", root ? root : ".", name);
    config = file_read(path, &n);
    file_write(temp_at(&f.head, "config.json"), config, n);
    free(config);
    head_weights(json_object_get(f.at, "tensors"), f.of.vocab, temp_at(&f.head, "model.safetensors"));
    must(wg_weights_open(&f.weights, f.target.dir, &fixture_err), &fixture_err);
    return f;
}

static inline void fixture_close(fixture *f)
{
    wg_weights_close(f->weights);
    json_decref(f->at);
    temp_remove(&f->target);
    temp_remove(&f->head);
    mini_close(&f->of);
}

static inline double off(const float *got, const float *want, int n)
{
    double d = 0, s = 0;
    for (int i = 0; i < n; i++) d += pow((double)got[i] - want[i], 2), s += pow((double)want[i], 2);
    return sqrt(d / s);
}

static wg_tree last_tree; /* that the rule has seen */
static wg_tree seen[8];   /* (n_seen) the same of all sequences of a step, where a test sets n_seen to 0 before it */
static int n_seen = 8, batch = 1;
static int accepts; /* how many draft tokens it accepts at most */

static inline void look(const void *opt, const wg_tree *t, wg_rows *p, wg_rows *q, const wg_chance *c, wg_workspace *work,
                        wg_path *out)
{
    (void)opt, (void)p, (void)q, (void)c, (void)work;
    last_tree = *t;
    if (n_seen < 8) seen[n_seen++] = *t;
    *out = (wg_path){ .n = 1, .next = 17 };
    for (int node = 0; out->n <= accepts && (node = wg_tree_child(t, node, node)) >= 0;) out->node[out->n++] = (int16_t)node;
}

static const wg_verifier_class look_class = { .name = "look", .laws = WG_LAWS, .accept = look };

static inline wg_status fixture_try(wg_engine **e, const wg_drafter_class *c, const fixture *f, wg_model *target,
                                    const char *more)
{
    static unsigned char options[4096] __attribute__((aligned(16)));
    char text[256];
    snprintf(text, sizeof text, "model=%s,kv_type=f32,length=4%s", f->head.dir, more);
    cr_assert(c->size - c->options_at <= sizeof options);
    wg_option_defaults(c->options, options);
    must(wg_option_set_list(c->options, options, c->size - c->options_at, text, &fixture_err), &fixture_err);
    const wg_engine_parts parts = { .target = wg_model_lm(target),
                                    .ops = wg_ops_for(wg_cpu_chosen()),
                                    .target_name = "target",
                                    .drafter = c,
                                    .drafter_options = options,
                                    .verifier = &look_class };
    const wg_engine_options o = {
        .max_batch = batch, .max_tokens = 200, .prefill_rows = 7, .sampling = WG_SAMPLING(0, 0, 1, 0)
    };
    return wg_engine_open(e, &parts, &o, &fixture_err);
}

static inline wg_engine *fixture_engine(const wg_drafter_class *c, const fixture *f, wg_model *target, const char *more)
{
    wg_engine *e;
    must(fixture_try(&e, c, f, target, more), &fixture_err);
    return e;
}

static inline wg_model *open_target(const fixture *f)
{
    wg_model *m;
    wg_device device;
    must(wg_device_cpu(&device, NULL, &fixture_err), &fixture_err);
    must(wg_model_open(&m, f->weights, &device, &(wg_model_options){ .kv_type = WG_F32 }, &fixture_err), &fixture_err);
    return m;
}

/* The engine drafts the chains that the package does. */
static inline void fixture_chains(const wg_drafter_class *c, const char *name)
{
    fixture f = fixture_open(name);
    wg_model *m = open_target(&f);
    const json_t *chains = json_object_get(f.at, "chains");
    accepts = 0;
    for (size_t i = 0; i < json_array_size(chains); i++) {
        const json_t *want = json_object_get(json_array_get(chains, i), "drafts");
        const int n = (int)head_number(json_array_get(chains, i), "tokens");
        wg_engine *e = fixture_engine(c, &f, m, "");
        wg_seq *s;
        must(wg_seq_open(e, &s, 0, f.of.token, n, 50, &fixture_err), &fixture_err);
        must(wg_engine_step(e, &s, 1, &fixture_err), &fixture_err);
        cr_assert(last_tree.n == (int)json_array_size(want) + 1, "%s: %d nodes", name, last_tree.n);
        for (int k = 0; k + 1 < last_tree.n; k++)
            cr_assert(last_tree.token[k + 1] == json_integer_value(json_array_get(want, (size_t)k)),
                      "%s: draft %d behind %d tokens is %d", name, k, n, (int)last_tree.token[k + 1]);
        wg_seq_close(e, s);
        wg_engine_close(e);
    }
    wg_model_close(m);
    fixture_close(&f);
}

/* The bytes of a slot in a space. */
static inline void slot_bytes(const wg_kv_seq *kv, int space, int layer, int slot, size_t bytes, char *to)
{
    const wg_kv_view v = wg_kv_view_of(kv, space, layer);
    const char *at = v.pool + (size_t)v.page[slot / v.page_slots] * v.stride + (size_t)(slot % v.page_slots) * bytes;
    memcpy(to, at, bytes);
    memcpy(to + bytes, at + v.value_at, bytes);
}

#endif
