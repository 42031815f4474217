/* SPDX-License-Identifier: MIT
 * Heads of DFlash and DSpark against the speculators package (tests/conformance/heads, written by make_heads.py): logits of the
 * rows of blocks, which those of DSpark have behind given tokens, and its estimates; chains that the whole engine drafts, both
 * layouts; trees from marginals and from conditionals; lengths by the estimates; what a draft leaves in the cache. */
#include "tests/unit/draft/block_gguf.h"

enum { TEXT = 24, BLOCK = 4, LAYERS = 2, OUT = 0 }; /* OUT: the logit of tokens that are no candidates, in files */
static const double allowed = 1e-4;
static wg_error err;

static double chance[BLOCK]; /* the head's estimate for each row of block_rows */
static int unused;           /* rows at the begin of a block that give no token */

/* The rows of a DSpark head, and its estimates, where these tokens follow the anchor. */
static void follow(wg_head *h, int32_t anchor, const int32_t *path, float *rows)
{
    static float states[BLOCK * 64];
    int32_t all[BLOCK];
    memcpy(states, wg_head_states(h), sizeof states);
    all[0] = anchor;
    for (int n = 1; n <= BLOCK - unused; n++) {
        wg_head_follow(h, states, all, n, rows + (n - 1 + unused) * wg_head_outputs(h));
        if (wg_head_spec_of(h)->confidence) chance[n - 1 + unused] = wg_head_confidence(h, states, all, n);
        if (n < BLOCK) all[n] = path[n - 1];
    }
}

static const char *head_file; /* a GGUF file in the place of the folder, or NULL */

/* The rows of the block behind the first n tokens, and of `path` of a DSpark head: (BLOCK, outputs). Features are read in
 * `parts` parts. */
static int block_rows(const fixture *f, int n, int parts, const int32_t *path, float *rows)
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
    must(wg_head_file_open(&file, head_file ? head_file : f->head.dir, &err), &err);
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
    unused = !s->from_anchor;
    if (s->markov) follow(h, f->of.token[n - 1], path, rows);
    wg_head_close(h);
    wg_head_file_close(file);
    setup_close(&u);
    return outputs;
}

/* The tokens behind the anchor in a fixture of DSpark. */
static const int32_t *path_of(const fixture *f)
{
    static int32_t path[BLOCK];
    for (size_t i = 0; i < BLOCK - 1; i++)
        path[i] = (int32_t)json_integer_value(json_array_get(json_object_get(f->at, "path"), i));
    return path;
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
    const json_t *at = json_object_get(f.at, "rows"), *chances = json_object_get(f.at, "confidence");
    double worst = 0;
    int width = 0, first = 0;
    for (size_t i = 0; i < json_array_size(at); i++) {
        const int n = (int)json_integer_value(json_array_get(at, i)) + 1;
        width = block_rows(&f, n, 1, path_of(&f), rows);
        first = json_object_get(f.at, "path") ? unused : 0;
        const float *of = want + (int)i * (BLOCK - first) * width;
        for (int k = 0; k < BLOCK * width; k++) rows[k] = rows[k] == -INFINITY ? OUT : rows[k];
        for (int r = first; r < BLOCK; r++) worst = fmax(worst, off(rows + r * width, of + (r - first) * width, width));
        for (int r = first; json_array_size(chances) && r < BLOCK; r++) {
            const json_t *is = json_array_get(json_array_get(chances, i), (size_t)(r - first));
            worst = fmax(worst, fabs(chance[r] - json_real_value(is)));
        }
        block_rows(&f, n, 3, path_of(&f), again);
        for (int k = 0; k < BLOCK * width; k++) again[k] = again[k] == -INFINITY ? OUT : again[k];
        cr_assert(!memcmp(rows, again, (size_t)(BLOCK * width) * sizeof *rows), "%s: features read in parts differ", name);
    }
    cr_assert(bytes == json_array_size(at) * (size_t)((BLOCK - first) * width) * sizeof *want && width > 0);
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
Test(block_head, rows_of_dspark) { check_rows("dspark"); }
Test(block_head, rows_of_a_gated_markov_head) { check_rows("dspark-gated"); }
Test(block_head, rows_of_a_recurrent_markov_head) { check_rows("dspark-rnn"); }
Test(block_head, rows_of_a_recurrent_markov_head_behind_the_anchor) { check_rows("dspark-rnn-later"); }

Test(block_head, rows_of_dflash_2) { check_rows("dflash-2"); }
Test(block_head, rows_of_z_labs_dflash_2) { check_rows("dflash-2-z-lab"); }

/* The same head in both layouts has the same bits. */
static void check_layouts(const char *one, const char *other)
{
    static float rows[2][BLOCK * 200];
    const char *const name[] = { one, other };
    for (int i = 0; i < 2; i++) {
        fixture f = fixture_open(name[i]);
        cr_assert_eq(block_rows(&f, TEXT, 1, path_of(&f), rows[i]), 200);
        fixture_close(&f);
    }
    cr_assert(!memcmp(rows[0], rows[1], sizeof rows[0]));
}

Test(block_head, layouts_agree) { check_layouts("dflash-all", "dflash-z-lab"); }
Test(block_head, layouts_of_dflash_2_agree) { check_layouts("dflash-2-full", "dflash-2-z-lab"); }
Test(block_head, layouts_of_dspark_agree) { check_layouts("dspark-rnn", "dspark-deepspec"); }

/* ---- GGUF files */

/* A head of a GGUF file has the bits of the folder's. */
static void check_gguf(const char *name)
{
    static float rows[2][BLOCK * 200];
    fixture f = fixture_open(name);
    gguf.block = BLOCK;
    gguf.mask = 7;
    gguf_write(&f, temp_at(&f.target, "head.gguf"));
    const int width = block_rows(&f, TEXT, 1, path_of(&f), rows[0]);
    const double estimate = chance[BLOCK - 1];
    head_file = temp_at(&f.target, "head.gguf");
    chance[BLOCK - 1] = 0;
    cr_assert_eq(block_rows(&f, TEXT, 1, path_of(&f), rows[1]), width);
    head_file = NULL;
    cr_assert(!memcmp(rows[0], rows[1], (size_t)(BLOCK * width) * sizeof(float)) && chance[BLOCK - 1] == estimate);
    fixture_close(&f);
}

Test(block_head, rows_of_a_gguf_file) { check_gguf("dflash"); }
Test(block_head, rows_of_a_gguf_file_of_dspark) { check_gguf("dspark"); }

/* llama.cpp has one flag for all layers, which is false where it is absent; of others than DSpark row 0 gives no token. */
Test(block_head, keys_of_gguf_files)
{
    wg_head_file *file;
    fixture f = fixture_open("dflash");
    char path[300];
    snprintf(path, sizeof path, "%s", temp_at(&f.target, "head.gguf"));
    gguf.block = BLOCK;
    gguf.mask = 7;
    for (int causal = 0; causal < 2; causal++) {
        gguf.more = causal ? "dflash.attention.causal" : NULL;
        gguf_write(&f, path);
        must(wg_head_file_open(&file, path, &err), &err);
        const wg_head_spec *s = wg_head_file_spec(file);
        cr_assert(!s->from_anchor && !s->windowed && !s->adjacent && s->n_taps == 2 && s->tap[0] == 1 && s->tap[1] == 2);
        cr_assert_eq(s->causal, causal ? ~0U : 0U);
        cr_assert_eq(s->n_assumed, causal ? 0 : 1);
        wg_head_file_close(file);
    }
    gguf.more = NULL;
    gguf.window = 5;
    gguf.pattern = 2;
    gguf_write(&f, path);
    must(wg_head_file_open(&file, path, &err), &err);
    cr_assert(wg_head_file_spec(file)->windowed == 1 && wg_head_file_spec(file)->window == 5);
    cr_assert_eq(wg_head_file_spec(file)->causal, 0U);
    wg_head_file_close(file);
    fixture_close(&f);
}

Test(block_head, gguf_files_that_are_not_understood_are_refused)
{
    static const struct {
        int block, mask, window, pattern;
        const char *more, *says;
    } row[] = {
        { 4, 7, 0, 0, "dflash.gated", "key 'dflash.gated' is not known in the GGUF file of a DFlash head" },
        { 4, 7, 0, 0, "dflash.norm_before_fc", "key 'dflash.norm_before_fc' is not known" },
        { 0, 7, 0, 0, NULL, "key 'dflash.block_size' is 0: expected 1 .. 1024" },
        { 4, 0, 0, 0, NULL,
          "a block of 4 tokens with the mask token -1: expected at least 2, and the key 'tokenizer.ggml.mask_token_id' with a "
          "token of 200" },
        { 1, 7, 0, 0, NULL, "a block of 1 tokens" },
        { 4, 200, 0, 0, NULL, "with the mask token 200" },
        { 4, 7, 5, 0, NULL,
          "key 'dflash.attention.sliding_window' is 5: expected a window, and true or false in "
          "'dflash.attention.sliding_window_pattern' for each layer" },
    };
    wg_head_file *file;
    fixture f = fixture_open("dflash");
    char path[300];
    snprintf(path, sizeof path, "%s", temp_at(&f.target, "head.gguf"));
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        gguf.block = row[i].block;
        gguf.mask = row[i].mask;
        gguf.window = row[i].window;
        gguf.pattern = row[i].pattern;
        gguf.more = row[i].more;
        gguf_write(&f, path);
        cr_assert(wg_head_file_open(&file, path, &err) && strstr(err.text, row[i].says), "%s: %s", row[i].says, err.text);
    }
    fixture_close(&f);
}

/* ---- the whole engine */

Test(block_head, engine_drafts_chains) { fixture_chains(&wg_drafter_block, "dflash"); }
Test(block_head, engine_drafts_from_the_anchor) { fixture_chains(&wg_drafter_block, "dflash-window"); }
Test(block_head, engine_drafts_by_the_targets_head) { fixture_chains(&wg_drafter_block, "dflash-z-lab"); }
Test(block_head, engine_drafts_dspark) { fixture_chains(&wg_drafter_block, "dspark"); }
Test(block_head, engine_drafts_by_a_gated_markov_head) { fixture_chains(&wg_drafter_block, "dspark-gated"); }
Test(block_head, engine_drafts_by_a_recurrent_markov_head) { fixture_chains(&wg_drafter_block, "dspark-rnn"); }
Test(block_head, engine_drafts_dflash_2) { fixture_chains(&wg_drafter_block, "dflash-2"); }
Test(block_head, engine_drafts_deepspec) { fixture_chains(&wg_drafter_block, "dspark-deepspec"); }

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

/* The same of what follows a node of a tree below the text. */
static void log_below(const fixture *f, const wg_tree *t, int node, double temperature, double *to)
{
    static float rows[BLOCK * 200];
    int32_t path[WG_TREE_MAX] = { 0 };
    const int depth = wg_tree_depth(t, node);
    for (int at = node, d = depth; d > 0; at = t->parent[at]) path[--d] = t->token[at];
    const int width = block_rows(f, TEXT, 1, path, rows);
    log_row(rows + (depth + unused) * width, width, temperature, to);
}

/* The best-first tree is the set of the most probable paths: under independent levels (DDTree), or of true conditionals. */
static void check_best_first(const char *name, int levels)
{
    enum { NODES = 7 };
    double row[200], value[NODES + 1] = { 0 }, least = 0, best = -INFINITY;
    fixture f = fixture_open(name);
    const wg_tree t = drafted(&f, ",grow=best_first,temperature=0.5,budget=7");
    cr_assert_eq(t.n, NODES + 1);
    int deep = 0;
    for (int node = 0; node < t.n; node++) {
        const int d = wg_tree_depth(&t, node);
        if (d < levels) log_below(&f, &t, node, 0.5, row);
        for (int x = 0; x < 200 && d < levels; x++) {
            int in = 0;
            for (int i = 1; i < t.n; i++)
                if (t.parent[i] == node && t.token[i] == x) in = i;
            if (in) least = fmin(least, value[in] = value[node] + row[x]);
            else best = fmax(best, value[node] + row[x]);
        }
        deep += d > 1;
    }
    cr_assert(best <= least + 1e-6 && deep > 0, "%s: a path of %g is left out, one of %g is in", name, best, least);
    fixture_close(&f);
}

Test(block_head, best_first_is_the_best_tree_of_marginals) { check_best_first("dflash", BLOCK - 1); }
Test(block_head, best_first_is_the_best_tree_of_candidates) { check_best_first("dflash-2", BLOCK - 1); }
Test(block_head, best_first_is_the_best_tree_of_conditionals) { check_best_first("dspark-rnn", BLOCK); }

/* Nodes have the children of their rows, best first. */
static void check_children(const char *name)
{
    double row[200];
    fixture f = fixture_open(name);
    const wg_tree t = drafted(&f, ",tree=2-2");
    cr_assert_eq(t.n, 1 + 2 + 4);
    for (int i = 1; i < t.n; i++) {
        int better = 0, first = 0;
        log_below(&f, &t, t.parent[i], 1, row);
        for (int x = 0; x < 200; x++) better += row[x] > row[t.token[i]];
        for (int k = 1; k < i; k++) first += t.parent[k] == t.parent[i];
        cr_assert_eq(better, first, "%s: node %d", name, i);
    }
    fixture_close(&f);
}

Test(block_head, kary_trees_have_the_best_children) { check_children("dflash"); }
Test(block_head, kary_trees_follow_their_tokens) { check_children("dspark"); }
Test(block_head, kary_trees_follow_their_candidates) { check_children("dflash-2"); }
Test(block_head, kary_trees_follow_their_paths) { check_children("dspark-rnn"); }

/* The policy `head` stops where the product of the head's estimates along the path falls below the threshold. */
Test(block_head, lengths_by_the_heads_own_estimates)
{
    static float rows[BLOCK * 200];
    double survival = 1;
    char policy[80];
    int varied = 0;
    fixture f = fixture_open("dspark-rnn");
    const wg_tree t = drafted(&f, "");
    cr_assert_eq(t.n, BLOCK + 1);
    block_rows(&f, TEXT, 1, t.token + 1, rows);
    for (int k = 0; k < BLOCK; k++) {
        for (int below = 0; below < 2; below++) {
            snprintf(policy, sizeof policy, ",policy=head,threshold=%.9f", survival * chance[k] + (below ? 1e-6 : -1e-6));
            const int n = drafted(&f, policy).n - 1;
            cr_assert(below ? n == k : n > k, "%s: %d tokens", policy, n);
            varied += n < BLOCK;
        }
        survival *= chance[k];
    }
    cr_assert(varied >= BLOCK);
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
Test(block_head, history_leaves_no_trace_in_dspark) { check_history("dspark-rnn", ",tree=2-1-1"); }
Test(block_head, history_leaves_no_trace_in_best_first) { check_history("dflash", ",grow=best_first,budget=7"); }

/* Sequences of a batch get the drafts that each gets alone. */
static void check_batch(const char *name)
{
    static const int n[] = { 5, TEXT, 2, 12 };
    wg_tree alone[4];
    fixture f = fixture_open(name);
    accepts = 0;
    for (int together = 0; together < 2; together++) {
        wg_model *m = open_target(&f);
        wg_seq *s[4];
        batch = together ? 4 : 1;
        wg_engine *e = fixture_engine(&wg_drafter_block, &f, m, "");
        for (int i = 0; i < 4; i += batch) {
            for (int k = i; k < i + batch; k++) must(wg_seq_open(e, &s[k], (uint64_t)k, f.of.token, n[k], 50, &err), &err);
            n_seen = 0;
            must(wg_engine_step(e, s + i, batch, &err), &err);
            if (!together) alone[i] = seen[0];
            for (int k = i; k < i + batch; k++) wg_seq_close(e, s[k]);
        }
        wg_engine_close(e);
        wg_model_close(m);
    }
    for (int i = 0; i < 4; i++)
        cr_assert(seen[i].n == alone[i].n && alone[i].n > 3 &&
                      !memcmp(seen[i].token, alone[i].token, (size_t)alone[i].n * sizeof *seen[i].token),
                  "%s: sequence %d", name, i);
    fixture_close(&f);
}

Test(block_head, batches_of_dspark) { check_batch("dspark"); }
Test(block_head, batches_of_dflash_2) { check_batch("dflash-2"); }
Test(block_head, batches_of_p_eagle) { check_batch("p-eagle"); }

/* A drafter names the one that runs a head of another kind. */
Test(block_head, heads_of_other_kinds_are_refused)
{
    static const struct {
        const char *head, *says;
        const wg_drafter_class *class;
    } row[] = { { "plain", "is an EAGLE-3 head, which another drafter runs: take eagle", &wg_drafter_block },
                { "dflash", "is a DFlash head, which another drafter runs: take block", &wg_drafter_eagle },
                { "eagle-1", "is an EAGLE-1 head, which another drafter runs: take eagle", &wg_drafter_mtp },
                { "dspark", "is a DSpark head, which another drafter runs: take block", &wg_drafter_mtp },
                { "p-eagle", "is a P-EAGLE head, which another drafter runs: take block", &wg_drafter_eagle } };
    for (int i = 0; i < 5; i++) {
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
