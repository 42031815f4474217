/* SPDX-License-Identifier: MIT
 * Heads of EAGLE-3 against the speculators package (tests/conformance/heads, written by make_heads.py): logits of rows of true
 * features and of a draft tree; chains that the whole engine drafts; both layouts; what a draft leaves in the cache, whatever
 * was accepted; and what is refused. Error of a row: sqrt(sum (x - ref)^2 / sum ref^2). */
#include "tests/unit/draft/head_fixture.h"

enum { TEXT = 24, MOST = 32 };
static const double allowed = 1e-4;
static wg_error err;
static int converted = -1; /* the type that heads are converted to */

/* ---- rows */

/* Reads the taps of the first n tokens into the head's features. */
static void read_taps(setup *u, wg_head *h, const int *tap, const int32_t *token, int n)
{
    wg_taps *taps;
    float *x = malloc((size_t)n * 3 * 64 * sizeof *x), logits[200];
    must(wg_taps_open(&taps, u->lm, tap, 3, &err), &err);
    must(wg_kv_reserve(u->seq, n, &err), &err);
    wg_batch_clear(&u->batch);
    wg_batch_chain(&u->batch, u->seq, 0, token, n, 1);
    u->batch.taps = taps;
    must(wg_lm_forward(u->lm, &u->batch, logits, &err), &err);
    must(wg_taps_read(taps, 0, n, x, &err), &err);
    wg_kv_commit_chain(u->seq, n);
    must(wg_kv_reserve(u->seq, 1, &err), &err);
    wg_head_read(h, u->seq, x, n);
    wg_kv_rollback(u->seq);
    wg_taps_close(taps);
    free(x);
}

/* Rows first .. last of the text, `at_once` in a pass. */
static void read_text(setup *u, wg_head *h, const int32_t *token, int last, int at_once, float *logits)
{
    wg_lm *lm = wg_head_lm(h);
    const size_t width = (size_t)wg_head_outputs(h);
    cr_assert(wg_kv_restart(u->seq, lm->space, 1));
    must(wg_kv_reserve(u->seq, 1, &err), &err);
    for (int at = 1; at <= last;) {
        const int n = last + 1 - at < at_once ? last + 1 - at : at_once;
        wg_batch_clear(&u->batch);
        wg_batch_chain(&u->batch, u->seq, at, token + at, n, n);
        wg_batch_rebase(&u->batch, 0, 1);
        must(wg_lm_forward(lm, &u->batch, logits + (size_t)(at - 1) * width, &err), &err);
        at += n;
    }
}

/* The nodes of a tree, one after another: row i - 1 of logits is that of node i. */
static void read_tree(setup *u, wg_head *h, const wg_tree *t, float *logits)
{
    must(wg_kv_reserve(u->seq, t->n, &err), &err);
    for (int i = 1; i < t->n; i++) {
        wg_batch_clear(&u->batch);
        wg_batch_node(&u->batch, u->seq, i, wg_tree_depth(t, i), t->anc[i], t->token[i], true);
        wg_batch_rebase(&u->batch, 0, 1);
        must(wg_lm_forward(wg_head_lm(h), &u->batch, logits + (size_t)(i - 1) * (size_t)wg_head_outputs(h), &err), &err);
    }
}

/* The tree of a fixture. */
static wg_tree tree_of(const fixture *f)
{
    const json_t *o = json_object_get(f->at, "tree"), *parents = json_object_get(o, "parents"), *v;
    wg_tree t;
    size_t i;
    wg_tree_reset(&t, f->of.token[TEXT - 1], WG_LAW_FIXED);
    json_array_foreach(json_object_get(o, "tokens"), i, v)
        wg_tree_push(&t, (int)json_integer_value(json_array_get(parents, i)), (int32_t)json_integer_value(v), -1);
    return t;
}

/* The logits of the text's rows and of the nodes of a tree below it. */
static void all_rows(const fixture *f, int at_once, const wg_tree *nodes, float *text, float *tree)
{
    int tap[WG_HEAD_TAPS];
    wg_head_file *file;
    wg_head *h;
    setup u;
    const wg_model_options opt = { .kv_type = WG_F32 };
    must(wg_device_cpu(&u.device, NULL, &err), &err);
    must(wg_model_open(&u.model, f->weights, &u.device, &opt, &err), &err);
    u.lm = wg_model_lm(u.model);
    must(wg_kv_open(&u.kv, 16, 64, 1024, &err), &err);
    must(wg_lm_attach(u.lm, u.kv, &err), &err);
    must(wg_batch_open(&u.batch, 512, &err), &err);
    const wg_env env = { .target = u.lm, .kv = u.kv };
    must(wg_head_file_open(&file, f->head.dir, &err), &err);
    must(wg_head_file_taps(file, u.lm->hidden.layers, tap, &err), &err);
    must(wg_head_open(&h, file, &env, WG_F32, converted, &err), &err);
    wg_head_file_close(file);
    must(wg_kv_seq_open(u.kv, &u.seq, &err), &err);
    read_taps(&u, h, tap, f->of.token, TEXT - 1);
    read_text(&u, h, f->of.token, TEXT - 1, at_once, text);
    read_tree(&u, h, nodes, tree);
    wg_head_close(h);
    setup_close(&u);
}

static void check_rows(const char *name)
{
    enum { WIDTH = 60 };
    static float text[MOST * WIDTH], tree[MOST * WIDTH], again[MOST * WIDTH], branch[MOST * WIDTH];
    char path[300];
    size_t bytes;
    const char *root = getenv("WG_ROOT");
    fixture f = fixture_open(name);
    const wg_tree tree_nodes = tree_of(&f);
    snprintf(path, sizeof path, "%s/tests/conformance/heads/%s/rows.f32", root ? root : ".", name);
    float *want = (float *)(void *)file_read(path, &bytes);
    const json_t *rows = json_object_get(f.at, "rows");
    const int kept = (int)json_array_size(rows), nodes = 5;
    cr_assert(want && bytes == (size_t)(kept + nodes) * WIDTH * sizeof *want);
    all_rows(&f, MOST, &tree_nodes, text, tree);
    double worst = 0;
    for (int i = 0; i < kept; i++)
        worst =
            fmax(worst, off(text + (json_integer_value(json_array_get(rows, (size_t)i)) - 1) * WIDTH, want + i * WIDTH, WIDTH));
    for (int i = 0; i < nodes; i++) worst = fmax(worst, off(tree + i * WIDTH, want + (kept + i) * WIDTH, WIDTH));
    fprintf(stderr, "head %-13s largest relative error of a row %.1e (allowed %.0e)\n", name, worst, allowed);
    cr_assert(worst < allowed, "%s: %g", name, worst);
    all_rows(&f, 1, &tree_nodes, again, branch);
    cr_assert(!memcmp(text, again, (TEXT - 1) * WIDTH * sizeof *text) && !memcmp(tree, branch, nodes * WIDTH * sizeof *tree),
              "%s: rows one at a time differ", name);
    free(want);
    fixture_close(&f);
}

Test(head, plain_rows) { check_rows("plain"); }
Test(head, rows_of_eagle_3_1) { check_rows("eagle-3.1"); }
Test(head, rows_of_two_qwen3_layers_with_a_window) { check_rows("qwen3-layers"); }
Test(head, rows_with_biases_and_scaled_rotation) { check_rows("biased"); }
Test(head, rows_of_safeailabs_layout) { check_rows("safeailab"); }

/* The same head in both layouts has the same bits. */
Test(head, layouts_agree)
{
    static float text[2][MOST * 60], tree[2][MOST * 60];
    const char *const name[] = { "biased", "safeailab" };
    for (int i = 0; i < 2; i++) {
        fixture f = fixture_open(name[i]);
        const wg_tree nodes = tree_of(&f);
        all_rows(&f, MOST, &nodes, text[i], tree[i]);
        fixture_close(&f);
    }
    cr_assert(!memcmp(text[0], text[1], sizeof text[0]) && !memcmp(tree[0], tree[1], sizeof tree[0]));
}

/* Matrices in another type: the same head with its rounding. */
Test(head, converted)
{
    static const struct {
        int type;
        double least, most;
    } row[] = { { WG_Q8_0, 1e-4, 0.02 }, { WG_Q4_0, 0.02, 0.3 }, { WG_Q4_K, -1, 1e-9 } }; /* no row has blocks of 256 */
    static float text[2][MOST * 60], tree[MOST * 60];
    fixture f = fixture_open("eagle-3.1");
    const wg_tree nodes = tree_of(&f);
    all_rows(&f, MOST, &nodes, text[0], tree);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        converted = row[i].type;
        all_rows(&f, MOST, &nodes, text[1], tree);
        const double error = off(text[1] + 9 * 60, text[0] + 9 * 60, 60);
        cr_assert(error > row[i].least && error < row[i].most, "%s: %g", wg_type_name(row[i].type), error);
    }
    converted = -1;
    fixture_close(&f);
}

/* ---- the whole engine */

static wg_engine *open_engine(const fixture *f, wg_model *target, const char *more)
{
    return fixture_engine(&wg_drafter_eagle, f, target, more);
}

static void check_chains(const char *name) { fixture_chains(&wg_drafter_eagle, name); }

Test(head, engine_drafts_plain) { check_chains("plain"); }
Test(head, engine_drafts_eagle_3_1) { check_chains("eagle-3.1"); }
Test(head, engine_drafts_qwen3_layers) { check_chains("qwen3-layers"); }
Test(head, engine_drafts_safeailab) { check_chains("safeailab"); }

/* The children of a node are the most probable tokens of its own row, in a tree that is drafted level by level. */
static void check_tree(const char *name, const char *shape)
{
    enum { WIDTH = 60 };
    static float text[MOST * WIDTH], rows[WG_TREE_MAX * WIDTH];
    fixture f = fixture_open(name);
    wg_model *m = open_target(&f);
    wg_engine *e = open_engine(&f, m, shape);
    wg_seq *s;
    accepts = 0;
    must(wg_seq_open(e, &s, 0, f.of.token, TEXT, 50, &err), &err);
    must(wg_engine_step(e, &s, 1, &err), &err);
    const wg_tree drafted = last_tree;
    wg_seq_close(e, s);
    wg_engine_close(e);
    all_rows(&f, MOST, &drafted, text, rows);
    int deep = 0;
    for (int node = 0; node < drafted.n; node++) {
        const float *row = node ? rows + (node - 1) * WIDTH : text + (TEXT - 2) * WIDTH;
        bool child[WIDTH] = { false };
        float least = INFINITY;
        for (int i = 1; i < drafted.n; i++) {
            if (drafted.parent[i] != node) continue;
            int own = 0;
            while (own < WIDTH && own * 200 / WIDTH != drafted.token[i]) own++;
            cr_assert(own < WIDTH, "token %d has no row", (int)drafted.token[i]);
            child[own] = true;
            least = fminf(least, row[own]);
            deep += node > 0;
        }
        for (int i = 0; i < WIDTH; i++)
            cr_assert(child[i] || row[i] <= least, "%s: node %d has not its best children", shape, node);
    }
    cr_assert(drafted.n > 6 && deep > 0);
    wg_model_close(m);
    fixture_close(&f);
}

Test(head, kary_trees_have_the_best_children) { check_tree("eagle-3.1", ",tree=2-1-1"); }
Test(head, best_first_trees_have_the_best_children) { check_tree("qwen3-layers", ",grow=best_first,temperature=0.3,budget=7"); }

/* Spaces 1 and 2 are the head's: keys and values, 2 heads of 16 floats each, and features, halves of 64. */
static void same_pages(const wg_seq *a, const wg_seq *b)
{
    const int len = wg_kv_len(a->kv);
    cr_assert(len == wg_kv_len(b->kv) && a->n == b->n && !memcmp(a->token, b->token, (size_t)a->n * sizeof *a->token));
    for (int space = 1; space <= 2; space++) {
        const int valid = wg_kv_valid(a->kv, space), other = wg_kv_valid(b->kv, space);
        cr_assert(valid <= len && valid > 2);
        for (int slot = wg_kv_first(a->kv, space); slot < valid && slot < other; slot++) {
            char x[256], y[256];
            slot_bytes(a->kv, space, 0, slot, 128, x);
            slot_bytes(b->kv, space, 0, slot, 128, y);
            cr_assert(!memcmp(x, y, sizeof x), "space %d: slot %d of %d is not that of a plain prefill", space, slot, valid);
        }
    }
}

/* A new sequence that begins with the text of s, after a step that accepted nothing. Compared are its draft, or its pages. */
static void compare_fresh(const fixture *f, wg_model *m, const char *shape, const wg_seq *s, const wg_tree *drafted)
{
    wg_engine *e = open_engine(f, m, shape);
    wg_seq *fresh;
    accepts = 0;
    must(wg_seq_open(e, &fresh, 0, s->token, s->n, 50, &err), &err);
    must(wg_engine_step(e, &fresh, 1, &err), &err);
    if (drafted) {
        const size_t bytes = (size_t)drafted->n * sizeof *drafted->token;
        cr_assert(drafted->n == last_tree.n && !memcmp(drafted->token, last_tree.token, bytes),
                  "%d tokens: another draft than that of the text alone", s->n);
    } else {
        wg_kv_truncate(fresh->kv, wg_kv_len(s->kv));
        fresh->n = s->n;
        same_pages(s, fresh);
    }
    wg_seq_close(e, fresh);
    wg_engine_close(e);
}

/* Whatever was drafted and accepted, pages and drafts are those of a sequence that begins with the same text. */
static void check_history(const char *name, const char *shape)
{
    fixture f = fixture_open(name);
    wg_model *m = open_target(&f), *other = open_target(&f);
    wg_engine *e = open_engine(&f, m, shape);
    wg_seq *s;
    must(wg_seq_open(e, &s, 0, f.of.token, 9, 120, &err), &err);
    for (int step = 0; step < 24; step++) {
        const int n = s->n;
        accepts = step % 5;
        must(wg_engine_step(e, &s, 1, &err), &err);
        const wg_tree drafted = last_tree;
        compare_fresh(&f, other, shape, s, NULL);
        const int grown = s->n;
        s->n = n;
        compare_fresh(&f, other, shape, s, &drafted);
        s->n = grown;
    }
    wg_seq_close(e, s);
    wg_engine_close(e);
    wg_model_close(m);
    wg_model_close(other);
    fixture_close(&f);
}

Test(head, history_leaves_no_trace_in_chains) { check_history("plain", ""); }
Test(head, history_leaves_no_trace_in_trees) { check_history("plain", ",tree=2-1-1"); }
Test(head, history_leaves_no_trace_in_best_first) { check_history("plain", ",grow=best_first,budget=7"); }

/* Features of rows that wait are not written into pages that another sequence has. */
Test(head, pages_of_forks_are_left_alone)
{
    fixture f = fixture_open("plain");
    wg_model *m = open_target(&f);
    wg_engine *e = open_engine(&f, m, "");
    wg_seq *s;
    must(wg_seq_open(e, &s, 0, f.of.token, 9, 60, &err), &err);
    for (int step = 0; step < 6; step++) {
        wg_kv_seq *fork;
        accepts = 2;
        must(wg_engine_step(e, &s, 1, &err), &err);
        must(wg_kv_fork(s->kv, &fork, &err), &err);
        must(wg_engine_step(e, &s, 1, &err), &err);
        must(wg_kv_check(wg_engine_kv(e), &err), &err);
        wg_kv_seq_close(fork);
    }
    wg_seq_close(e, s);
    wg_engine_close(e);
    wg_model_close(m);
    fixture_close(&f);
}

/* ---- what is refused */

static void refused(wg_lm *target, wg_status status, const char *says)
{
    wg_head_file *file;
    wg_head *h = NULL;
    wg_kv *kv;
    fixture f = fixture_open("plain");
    must(wg_kv_open(&kv, 16, 4, 64, &err), &err);
    must(wg_head_file_open(&file, f.head.dir, &err), &err);
    const wg_env env = { .target = target, .kv = kv };
    cr_assert(wg_head_open(&h, file, &env, WG_F32, -1, &err) == status && strstr(err.text, says), "%s", err.text);
    wg_head_file_close(file);
    wg_kv_close(kv);
    fixture_close(&f);
}

Test(head, other_targets_are_refused)
{
    static const wg_lm_class elsewhere = { .name = "elsewhere" };
    refused(&(wg_lm){ .class = &elsewhere, .vocab = 100, .hidden = { .dim = 64 } }, WG_EVOCAB,
            "is for a target of 200 tokens, and the target has 100");
    refused(&(wg_lm){ .class = &elsewhere, .vocab = 200, .hidden = { .dim = 32 } }, WG_EMODEL,
            "reads hidden states of width 64, and those of the target have 32");
    refused(&(wg_lm){ .class = &elsewhere, .vocab = 200, .context = 9, .hidden = { .dim = 64 } }, WG_EUNSUPPORTED,
            "has no tensor 'embed_tokens.weight', and the target's is not in this program's memory to be borrowed");
}

Test(head, targets_without_hidden_states_are_refused)
{
    unsigned char drafter[8192] __attribute__((aligned(16))) = { 0 };
    wg_lm target = { .vocab = 200 };
    wg_drafter *d = (wg_drafter *)(void *)drafter;
    const wg_drafter_class *c = &wg_drafter_eagle;
    const wg_sampling cold = WG_SAMPLING(0, 0, 1, 0);
    const wg_env env = { .target = &target, .sampling = &cold };
    cr_assert(c->size <= sizeof drafter);
    *d = (wg_drafter){ c, &env };
    wg_option_defaults(c->options, drafter + c->options_at);
    must(wg_option_set_list(c->options, drafter + c->options_at, c->size - c->options_at, "model=somewhere", &err), &err);
    cr_assert(
        c->open(d, &env, &err) == WG_EUNSUPPORTED &&
            strstr(err.text, "drafter eagle: reads hidden states of the target, and the target gives none; take a target"),
        "%s", err.text);
    c->close(d);
}
