/* SPDX-License-Identifier: MIT
 * For the tests of drafters that open others: small models in a folder of their own, and an engine over them by names. What
 * they emit has the target's law: tests/law/law_exact.c. Include once per test program. */
#ifndef WG_TESTS_UNIT_DRAFT_COMPOSED_H
#define WG_TESTS_UNIT_DRAFT_COMPOSED_H

#include <criterion/criterion.h>

#include "core/file/synth.h"
#include "tests/law/plain_decode.h"
#include "tests/temp.h"

static temp folder;
static uint64_t fail_nth;                                    /* which allocation of opening an engine fails; 0: none */
static char target_path[512], near_path[512], far_path[512]; /* near: the target's weights, rounded */

static inline void write_models(int vocab)
{
    wg_error err;
    temp_make(&folder);
    snprintf(target_path, sizeof target_path, "%s", temp_at(&folder, "target.gguf"));
    snprintf(near_path, sizeof near_path, "%s", temp_at(&folder, "near.gguf"));
    snprintf(far_path, sizeof far_path, "%s", temp_at(&folder, "far.gguf"));
    wg_synth_shape s = { .layers = 1, .dim = 32, .heads = 2, .hidden = 32, .vocab = vocab, .context = 96 };
    cr_assert_eq(wg_synth_write(&s, WG_F32, 1, target_path, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_synth_write(&s, WG_Q8_0, 1, near_path, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_synth_write(&s, WG_F32, 2, far_path, &err), WG_OK, "%s", err.text);
}

static inline void remove_models(void) { temp_remove(&folder); }

static law_model target; /* for suites that need one: open_target, close_target */

static inline void open_target(int vocab)
{
    write_models(vocab);
    law_model_open(&target, target_path, 1, WG_CPU_REF, WG_F32);
}

static inline void close_target(void)
{
    law_model_close(&target);
    remove_models();
}

/* What opening an engine with this drafter says; NULL: it opens. Static text. */
static inline const char *refusal(const law_model *m, const char *drafter, const char *options, bool tables)
{
    static const wg_plugins plugins = { wg_drafters, wg_verifiers };
    static wg_error err;
    wg_engine_parts parts = { .target = m->lm,
                              .pool = m->pool,
                              .ops = m->ops,
                              .tokenizer = m->tokenizer,
                              .target_name = "target",
                              .rules = wg_verifiers,
                              .plugins = tables ? &plugins : NULL };
    const wg_engine_options o = { .max_batch = 2, .sampling = WG_SAMPLING(1, 0, 1, 0) };
    wg_engine *e = NULL;
    cr_assert_eq(wg_find_drafter(&plugins, drafter, &parts.drafter, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_find_verifier(&plugins, "match", &parts.verifier, &err), WG_OK);
    void *opt = wg_calloc(1, parts.drafter->size);
    cr_assert(opt);
    wg_option_defaults(parts.drafter->options, opt);
    wg_status s = wg_option_set_list(parts.drafter->options, opt, parts.drafter->size, options, &err);
    parts.drafter_options = opt;
    wg_mem_fail_at(fail_nth, false);
    if (!s) s = wg_engine_open(&e, &parts, &o, &err);
    wg_mem_fail_at(0, false);
    wg_free(opt);
    wg_engine_close(e);
    return s ? err.text : NULL;
}

/* Opening it with every allocation failing in turn is an error each time and leaves nothing behind. */
static inline void fail_every_allocation(const law_model *m, const char *drafter, const char *options)
{
    const size_t before = wg_mem_read().live_blocks;
    const char *text = "";
    for (fail_nth = 1; fail_nth < 3000 && text; fail_nth++) {
        text = refusal(m, drafter, options, true);
        cr_assert_eq(wg_mem_read().live_blocks, before, "allocation %d", (int)fail_nth);
        if (text) cr_assert(strstr(text, "memory"), "%s", text);
    }
    fail_nth = 0;
    cr_assert_null(text);
}

static inline void expect_same_draft(wg_engine *a, wg_engine *b, const char *what, int at)
{
    const wg_last_step last = wg_engine_last_step(a), afresh = wg_engine_last_step(b);
    const wg_tree *t = last.tree, *u = afresh.tree;
    double x[512], y[512];
    cr_assert(t->n == u->n && t->law == u->law, "%s: %d nodes after %d tokens, afresh %d", what, t->n, at, u->n);
    for (int i = 1; i < t->n; i++) {
        cr_assert(t->token[i] == u->token[i] && t->parent[i] == u->parent[i], "%s: node %d after %d tokens", what, i, at);
        if (t->qrow[i] < 0) continue;
        const double *p = wg_rows_dense(last.q, t->qrow[i], x), *q = wg_rows_dense(afresh.q, u->qrow[i], y);
        cr_assert_eq(memcmp(p, q, (size_t)last.q->vocab * sizeof *p), 0, "%s: q of node %d after %d tokens", what, i, at);
    }
}

/* Every draft of a long text, after whatever was kept, rejected and put aside, is bit for bit what the same drafter, opened
 * afresh, drafts for the text so far: tokens and rows of q. */
static inline void expect_drafts_as_if_fresh(const law_model *m, const char *drafter, const char *options, wg_sampling sampling,
                                             const int32_t *text, int n, int max_new)
{
    wg_error err;
    const law_setup setup = {
        .target = m, .drafter = drafter, .options = options, .rule = "rejection", .sampling = sampling, .seed = 31
    };
    wg_engine *e = law_engine(&setup);
    wg_seq *s;
    long drafted = 0;
    LAW_TRY(wg_seq_open(e, &s, 7, text, n, max_new, &err));
    while (s->finish == WG_RUNNING) {
        wg_engine *fresh = law_engine(&setup);
        wg_seq *f;
        const int at = s->n;
        LAW_TRY(wg_seq_open(fresh, &f, 7, s->token, at, s->limit - at, &err));
        LAW_TRY(wg_engine_step(fresh, &f, 1, &err));
        LAW_TRY(wg_engine_step(e, &s, 1, &err));
        expect_same_draft(e, fresh, options, at);
        wg_seq_close(fresh, f);
        wg_engine_close(fresh);
    }
    drafted = s->counts.drafted;
    cr_assert(s->counts.accepted > 0 && s->counts.accepted < drafted, "%s: %ld of %ld accepted", options, s->counts.accepted,
              drafted);
    wg_seq_close(e, s);
    wg_engine_close(e);
}

#endif
