/* SPDX-License-Identifier: MIT
 * Heads of DFlash against the speculators package (tests/conformance/heads, written by make_heads.py): logits of the rows of
 * blocks, chains that the whole engine drafts, both layouts; trees from marginals; what a draft leaves in the cache. */
#include "tests/unit/draft/head_fixture.h"

enum { TEXT = 24, BLOCK = 4, LAYERS = 2 };
static const double allowed = 1e-4;
static wg_error err;

/* The rows of the block behind the first n tokens: (BLOCK, outputs). Features are read in `parts` parts. */
static int block_rows(const fixture *f, int n, int parts, float *rows)
{
    int tap[WG_HEAD_TAPS];
    wg_head_file *file;
    wg_head *h;
    setup u;
    must(wg_device_cpu(&u.device, NULL, &err), &err);
    must(wg_model_open(&u.model, f->weights, &u.device, &(wg_model_options){ .kv_type = WG_F32 }, &err), &err);
    u.lm = wg_model_lm(u.model);
    must(wg_kv_open(&u.kv, 16, 64, 1024, &err), &err);
    must(wg_lm_attach(u.lm, u.kv, &err), &err);
    must(wg_batch_open(&u.batch, 512, &err), &err);
    const wg_env env = { .target = u.lm, .kv = u.kv };
    must(wg_head_file_open(&file, f->head.dir, &err), &err);
    must(wg_head_file_taps(file, u.lm->hidden.layers, tap, &err), &err);
    must(wg_head_open(&h, file, &env, WG_F32, -1, &err), &err);
    const wg_head_spec *s = wg_head_spec_of(h);
    const int outputs = wg_head_outputs(h);
    must(wg_kv_seq_open(u.kv, &u.seq, &err), &err);
    for (int part = 0, at = 0; part < parts && n > 1; part++) {
        const int end = part + 1 == parts ? n - 1 : (n - 1) * (part + 1) / parts, m = end - at;
        static float x[TEXT * 2 * 64], logits[200];
        wg_taps *taps;
        if (m == 0) continue;
        must(wg_taps_open(&taps, u.lm, tap, s->n_taps, &err), &err);
        must(wg_kv_reserve(u.seq, m, &err), &err);
        wg_batch_clear(&u.batch);
        wg_batch_chain(&u.batch, u.seq, at, f->of.token + at, m, 1);
        u.batch.taps = taps;
        must(wg_lm_forward(u.lm, &u.batch, logits, &err), &err);
        must(wg_taps_read(taps, 0, m, x, &err), &err);
        wg_kv_commit_chain(u.seq, m);
        must(wg_kv_reserve(u.seq, 1, &err), &err);
        wg_head_read(h, u.seq, x, m);
        wg_kv_rollback(u.seq);
        wg_taps_close(taps);
        at = end;
    }
    wg_mask all = { { (1 << BLOCK) - 1 } }, seen = { { 0 } };
    must(wg_kv_reserve(u.seq, BLOCK, &err), &err);
    wg_batch_clear(&u.batch);
    for (int i = 0; i < BLOCK; i++) {
        seen = wg_mask_with(seen, i);
        wg_batch_node(&u.batch, u.seq, i, i, seen, i ? s->mask_token : f->of.token[n - 1], true);
        u.batch.row[i].anc = all;
    }
    must(wg_lm_forward(wg_head_lm(h), &u.batch, rows, &err), &err);
    wg_head_close(h);
    wg_head_file_close(file);
    setup_close(&u);
    return outputs;
}

static void check_rows(const char *name)
{
    static float rows[BLOCK * 200], again[BLOCK * 200];
    char path[300];
    size_t bytes;
    const char *root = getenv("WG_ROOT");
    fixture f = fixture_open(name);
    snprintf(path, sizeof path, "%s/tests/conformance/heads/%s/rows.f32", root ? root : ".", name);
    float *want = (float *)(void *)file_read(path, &bytes);
    const json_t *at = json_object_get(f.at, "rows");
    double worst = 0;
    int width = 0;
    for (size_t i = 0; i < json_array_size(at); i++) {
        const int n = (int)json_integer_value(json_array_get(at, i)) + 1;
        width = block_rows(&f, n, 1, rows);
        for (int r = 0; r < BLOCK; r++) worst = fmax(worst, off(rows + r * width, want + ((int)i * BLOCK + r) * width, width));
        block_rows(&f, n, 3, again);
        cr_assert(!memcmp(rows, again, (size_t)(BLOCK * width) * sizeof *rows), "%s: features read in parts differ", name);
    }
    cr_assert(bytes == json_array_size(at) * BLOCK * (size_t)width * sizeof *want && width > 0);
    fprintf(stderr, "head %-16s largest relative error of a row %.1e (allowed %.0e)\n", name, worst, allowed);
    cr_assert(worst < allowed, "%s: %g", name, worst);
    free(want);
    fixture_close(&f);
}

Test(block_head, rows) { check_rows("dflash"); }
Test(block_head, rows_of_a_causal_window_from_the_anchor) { check_rows("dflash-window"); }
Test(block_head, rows_of_a_window_both_ways_with_biases) { check_rows("dflash-both-ways"); }
Test(block_head, rows_by_the_targets_head) { check_rows("dflash-all"); }
Test(block_head, rows_of_z_labs_layout) { check_rows("dflash-z-lab"); }

/* The same head in both layouts has the same bits. */
Test(block_head, layouts_agree)
{
    static float rows[2][BLOCK * 200];
    const char *const name[] = { "dflash-all", "dflash-z-lab" };
    for (int i = 0; i < 2; i++) {
        fixture f = fixture_open(name[i]);
        cr_assert_eq(block_rows(&f, TEXT, 1, rows[i]), 200);
        fixture_close(&f);
    }
    cr_assert(!memcmp(rows[0], rows[1], sizeof rows[0]));
}

Test(block_head, engine_drafts_chains) { fixture_chains(&wg_drafter_block, "dflash"); }
Test(block_head, engine_drafts_from_the_anchor) { fixture_chains(&wg_drafter_block, "dflash-window"); }
Test(block_head, engine_drafts_by_the_targets_head) { fixture_chains(&wg_drafter_block, "dflash-z-lab"); }

static wg_tree drafted(const fixture *f, const char *shape)
{
    wg_model *m = open_target(f);
    wg_engine *e = fixture_engine(&wg_drafter_block, f, m, shape);
    wg_seq *s;
    accepts = 0;
    must(wg_seq_open(e, &s, 0, f->of.token, TEXT, 50, &err), &err);
    must(wg_engine_step(e, &s, 1, &err), &err);
    wg_seq_close(e, s);
    wg_engine_close(e);
    wg_model_close(m);
    return last_tree;
}

/* log of the probability of each token of a row, by target ids at temperature t; -inf: it is not in the vocabulary. */
static void log_row(const float *row, int width, double t, double *to)
{
    double sum = 0, top = -INFINITY;
    for (int i = 0; i < width; i++) top = fmax(top, row[i]);
    for (int i = 0; i < width; i++) sum += exp((row[i] - top) / t);
    for (int i = 0; i < 200; i++) to[i] = -INFINITY;
    for (int i = 0; i < width; i++) to[i * 200 / width] = (row[i] - top) / t - log(sum);
}

/* The best-first tree is the set of the most probable paths under independent levels (DDTree). */
Test(block_head, best_first_is_the_best_tree_of_marginals)
{
    enum { NODES = 7 };
    static float rows[BLOCK * 200];
    double level[3][200], value[NODES + 1] = { 0 }, least = 0, best = -INFINITY;
    fixture f = fixture_open("dflash");
    const wg_tree t = drafted(&f, ",grow=best_first,temperature=0.5,budget=7");
    const int width = block_rows(&f, TEXT, 1, rows);
    cr_assert_eq(t.n, NODES + 1);
    for (int d = 0; d < 3; d++) log_row(rows + (d + 1) * width, width, 0.5, level[d]);
    for (int i = 1; i < t.n; i++) {
        value[i] = value[t.parent[i]] + level[wg_tree_depth(&t, i) - 1][t.token[i]];
        least = fmin(least, value[i]);
    }
    for (int node = 0; node < t.n; node++) {
        const int d = wg_tree_depth(&t, node);
        for (int x = 0; x < 200 && d < 3; x++) {
            bool in = false;
            for (int i = 1; i < t.n; i++) in = in || (t.parent[i] == node && t.token[i] == x);
            if (!in) best = fmax(best, value[node] + level[d][x]);
        }
    }
    int deep = 0;
    for (int i = 1; i < t.n; i++) deep += wg_tree_depth(&t, i) > 1;
    cr_assert(best <= least + 1e-6 && deep > 0, "a path of %g is left out, one of %g is in", best, least);
    fixture_close(&f);
}

/* All nodes of a level have the children of its row. */
Test(block_head, kary_trees_have_the_best_children)
{
    static float rows[BLOCK * 200];
    double level[200];
    fixture f = fixture_open("dflash");
    const wg_tree t = drafted(&f, ",tree=2-2");
    const int width = block_rows(&f, TEXT, 1, rows);
    cr_assert_eq(t.n, 1 + 2 + 4);
    for (int i = 1; i < t.n; i++) {
        int better = 0, first = 0;
        log_row(rows + wg_tree_depth(&t, i) * width, width, 1, level);
        for (int x = 0; x < 200; x++) better += level[x] > level[t.token[i]];
        for (int k = 1; k < i; k++) first += t.parent[k] == t.parent[i];
        cr_assert_eq(better, first, "node %d", i);
    }
    fixture_close(&f);
}

/* A sequence that begins with the text of s, after a step that accepted nothing: its pages, and its draft. */
static void compare_fresh(const fixture *f, wg_model *m, const char *shape, const wg_seq *s, const wg_tree *draft)
{
    wg_engine *e = fixture_engine(&wg_drafter_block, f, m, shape);
    wg_seq *fresh;
    accepts = 0;
    must(wg_seq_open(e, &fresh, 0, s->token, s->n, 50, &err), &err);
    must(wg_engine_step(e, &fresh, 1, &err), &err);
    if (draft) cr_assert(draft->n == last_tree.n && !memcmp(draft->token, last_tree.token, (size_t)draft->n * sizeof(int32_t)));
    else {
        const int valid = wg_kv_valid(s->kv, 1), other = wg_kv_valid(fresh->kv, 1);
        cr_assert(valid > 2 && valid <= wg_kv_len(s->kv) && valid <= other);
        for (int slot = 0; slot < valid; slot++)
            for (int layer = 0; layer < LAYERS; layer++) {
                char x[256], y[256];
                slot_bytes(s->kv, 1, layer, slot, 128, x);
                slot_bytes(fresh->kv, 1, layer, slot, 128, y);
                cr_assert(!memcmp(x, y, sizeof x), "slot %d of %d is not that of a plain prefill", slot, valid);
            }
    }
    wg_seq_close(e, fresh);
    wg_engine_close(e);
}

/* Whatever was drafted and accepted, pages and drafts are those of a sequence that begins with the same text. */
static void check_history(const char *name, const char *shape)
{
    fixture f = fixture_open(name);
    wg_model *m = open_target(&f), *other = open_target(&f);
    wg_engine *e = fixture_engine(&wg_drafter_block, &f, m, shape);
    wg_seq *s;
    must(wg_seq_open(e, &s, 0, f.of.token, 9, 120, &err), &err);
    for (int step = 0; step < 16; step++) {
        const int n = s->n;
        accepts = step % 4;
        must(wg_engine_step(e, &s, 1, &err), &err);
        const wg_tree draft = last_tree;
        compare_fresh(&f, other, shape, s, NULL);
        const int grown = s->n;
        s->n = n;
        compare_fresh(&f, other, shape, s, &draft);
        s->n = grown;
    }
    wg_seq_close(e, s);
    wg_engine_close(e);
    wg_model_close(m);
    wg_model_close(other);
    fixture_close(&f);
}

Test(block_head, history_leaves_no_trace_in_chains) { check_history("dflash-window", ""); }
Test(block_head, history_leaves_no_trace_in_trees) { check_history("dflash", ",tree=2-1-1"); }
Test(block_head, history_leaves_no_trace_in_best_first) { check_history("dflash", ",grow=best_first,budget=7"); }

/* A drafter names the one that runs a head of another kind. */
Test(block_head, heads_of_other_kinds_are_refused)
{
    static const struct {
        const char *head, *says;
        const wg_drafter_class *class;
    } row[] = { { "plain", "is an EAGLE-3 head, which another drafter runs: take eagle", &wg_drafter_block },
                { "dflash", "is a DFlash head, which another drafter runs: take block", &wg_drafter_eagle } };
    for (int i = 0; i < 2; i++) {
        fixture f = fixture_open(row[i].head);
        wg_model *m = open_target(&f);
        wg_engine *e;
        cr_assert(fixture_try(&e, row[i].class, &f, m, "") == WG_EUNSUPPORTED && strstr(fixture_err.text, row[i].says), "%s",
                  fixture_err.text);
        wg_model_close(m);
        fixture_close(&f);
    }
}

/* The config of a fixture with another value of a key. */
static void set_key(const fixture *f, const char *key, json_t *value)
{
    char path[300];
    snprintf(path, sizeof path, "%s/config.json", f->head.dir);
    json_t *o = json_load_file(path, 0, NULL);
    json_object_set_new(o, key, value);
    json_dump_file(o, path, 0);
    json_decref(o);
}

Test(block_head, blocks_beyond_a_tree_are_refused)
{
    fixture f = fixture_open("dflash");
    wg_model *m = open_target(&f);
    wg_engine *e;
    set_key(&f, "block_size", json_integer(1024));
    const wg_status s = fixture_try(&e, &wg_drafter_block, &f, m, "");
    if (WG_TREE_MAX >= 1024) wg_engine_close(e);
    else
        cr_assert(s == WG_EUNSUPPORTED && strstr(fixture_err.text, "its blocks have 1024 rows, and a draft of this program"),
                  "%s", fixture_err.text);
    wg_model_close(m);
    fixture_close(&f);
}

/* A narrower head cannot take the target's embedding. */
Test(block_head, rows_of_another_width_are_not_borrowed)
{
    json_t *t = json_array();
    fixture f = fixture_open("dflash");
    wg_model *m = open_target(&f);
    wg_engine *e;
    head_tensor(t, "fc.weight", "F32", 32, 128);
    head_tensor(t, "hidden_norm.weight", "F32", 32, 0);
    head_tensor(t, "norm.weight", "F32", 32, 0);
    head_layer(t, "layers", 0, 32, 32);
    head_tensor(t, "layers.0.self_attn.q_norm.weight", "F32", 8, 0);
    head_tensor(t, "layers.0.self_attn.k_norm.weight", "F32", 8, 0);
    json_t *config = json_pack("{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:[i, i]}", "model_type", "qwen3",
                               "hidden_size", 32, "target_hidden_size", 64, "intermediate_size", HEAD_HIDDEN,
                               "num_attention_heads", HEAD_HEADS, "num_key_value_heads", 1, "head_dim", HEAD_WIDTH,
                               "vocab_size", 200, "block_size", 4, "mask_token_id", 7, "target_layer_ids", 0, 1);
    head_save(t, config, 200, f.head.dir);
    cr_assert(fixture_try(&e, &wg_drafter_block, &f, m, "") == WG_EMODEL &&
                  strstr(fixture_err.text,
                         "has no tensor 'embed_tokens.weight', and the target's has rows of 64 where the head's "
                         "width is 32"),
              "%s", fixture_err.text);
    wg_model_close(m);
    fixture_close(&f);
}
