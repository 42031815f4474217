/* SPDX-License-Identifier: MIT
 * Heads of EAGLE and MTP against the speculators package (tests/conformance/heads, written by make_heads.py): logits of
 * rows of true features and of a draft tree; chains that the whole engine drafts; both layouts; what a draft leaves in the
 * cache, whatever was accepted; and what is refused. Error of a row: sqrt(sum (x - ref)^2 / sum ref^2). */
#include "tests/unit/draft/head_fixture.h"
#include "tests/unit/draft/head_rows.h"

enum { TEXT = 24, MOST = 32, WIDEST = 200 };
static const double allowed = 1e-4;
static wg_error err;
static int converted = -1; /* the type that heads are converted to */
static int width;          /* of the rows that all_rows gave */

static const char *head_file; /* a GGUF file in the place of the folder, or NULL */

/* The drafter of a fixture. */
static const wg_drafter_class *class_of(const char *name)
{
    if (!strncmp(name, "p-eagle", 7)) return &wg_drafter_block;
    return !strncmp(name, "mtp", 3) || !strcmp(name, "mimo") ? &wg_drafter_mtp : &wg_drafter_eagle;
}

/* ---- rows */

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
    must(wg_head_file_open(&file, head_file ? head_file : f->head.dir, &err), &err);
    must(wg_head_file_taps(file, u.lm->hidden.layers, tap, &err), &err);
    must(wg_head_open(&h, file, &env, WG_F32, converted, &err), &err);
    wg_head_file_close(file);
    must(wg_kv_seq_open(u.kv, &u.seq, &err), &err);
    read_taps(&u, h, tap, f->of.token, TEXT - 1);
    read_text(&u, h, f->of.token, TEXT - 1, at_once, text);
    read_tree(&u, h, nodes, tree);
    width = wg_head_outputs(h);
    wg_head_close(h);
    setup_close(&u);
}

static void check_rows(const char *name)
{
    static float text[MOST * WIDEST], tree[MOST * WIDEST], again[MOST * WIDEST], branch[MOST * WIDEST];
    char path[300];
    size_t bytes;
    const char *root = getenv("WG_ROOT");
    fixture f = fixture_open(name);
    const wg_tree tree_nodes = tree_of(&f);
    snprintf(path, sizeof path, "%s/tests/conformance/heads/%s/rows.f32", root ? root : ".", name);
    float *want = (float *)(void *)file_read(path, &bytes);
    const json_t *rows = json_object_get(f.at, "rows");
    const int kept = (int)json_array_size(rows), nodes = tree_nodes.n - 1;
    all_rows(&f, MOST, &tree_nodes, text, tree);
    cr_assert(want && bytes == (size_t)(kept + nodes) * (size_t)width * sizeof *want);
    double worst = 0;
    for (int i = 0; i < kept; i++)
        worst =
            fmax(worst, off(text + (json_integer_value(json_array_get(rows, (size_t)i)) - 1) * width, want + i * width, width));
    for (int i = 0; i < nodes; i++) worst = fmax(worst, off(tree + i * width, want + (kept + i) * width, width));
    fprintf(stderr, "head %-13s largest relative error of a row %.1e (allowed %.0e)\n", name, worst, allowed);
    cr_assert(worst < allowed, "%s: %g", name, worst);
    all_rows(&f, 1, &tree_nodes, again, branch);
    cr_assert(!memcmp(text, again, (size_t)((TEXT - 1) * width) * sizeof *text) &&
                  !memcmp(tree, branch, (size_t)(nodes * width) * sizeof *tree),
              "%s: rows one at a time differ", name);
    free(want);
    fixture_close(&f);
}

Test(head, plain_rows) { check_rows("plain"); }
Test(head, rows_of_eagle_3_1) { check_rows("eagle-3.1"); }
Test(head, rows_of_two_qwen3_layers_with_a_window) { check_rows("qwen3-layers"); }
Test(head, rows_with_biases_and_scaled_rotation) { check_rows("biased"); }
Test(head, rows_of_safeailabs_layout) { check_rows("safeailab"); }
Test(head, rows_of_an_mtp_layer) { check_rows("mtp"); }
Test(head, rows_of_mimos_mtp_layer) { check_rows("mimo"); }
Test(head, rows_of_an_mtp_layer_of_deepseeks_form) { check_rows("mtp-deepseek"); }
Test(head, rows_of_an_mtp_layer_of_qwens_form) { check_rows("mtp-qwen3.5"); }
Test(head, rows_of_p_eagle) { check_rows("p-eagle"); }
Test(head, rows_of_p_eagle_with_norms) { check_rows("p-eagle-norms"); }
Test(head, rows_of_eagle_1) { check_rows("eagle-1"); }
Test(head, rows_of_eagle_1_with_norms) { check_rows("eagle-1-norms"); }

/* The same head in both layouts has the same bits. */
static void check_layouts(const char *one, const char *other)
{
    static float text[2][MOST * WIDEST], tree[2][MOST * WIDEST];
    const char *const name[] = { one, other };
    memset(text, 0, sizeof text);
    memset(tree, 0, sizeof tree);
    for (int i = 0; i < 2; i++) {
        fixture f = fixture_open(name[i]);
        const wg_tree nodes = tree_of(&f);
        all_rows(&f, MOST, &nodes, text[i], tree[i]);
        fixture_close(&f);
    }
    cr_assert(!memcmp(text[0], text[1], sizeof text[0]) && !memcmp(tree[0], tree[1], sizeof tree[0]));
}

Test(head, layouts_agree) { check_layouts("biased", "safeailab"); }
Test(head, layouts_of_eagle_1_agree) { check_layouts("eagle-1", "eagle-1-speculators"); }

/* ---- GGUF files */

static wg_status bytes_of(void *user, const wg_tensor *t, void *dst, wg_error *e)
{
    (void)e;
    memcpy(dst, user, t->bytes);
    return WG_OK;
}

/* llama.cpp's name of a tensor of a fixture. */
static const char *gguf_name(const char *name)
{
    static const char *const row[][2] = { { "norm.weight", "output_norm.weight" },
                                          { "lm_head.weight", "output.weight" },
                                          { "layers.0.input_layernorm.weight", "blk.0.attn_norm.weight" },
                                          { "layers.0.hidden_norm.weight", "blk.0.attn_norm_2.weight" },
                                          { "layers.0.post_attention_layernorm.weight", "blk.0.ffn_norm.weight" },
                                          { "layers.0.self_attn.q_proj.weight", "blk.0.attn_q.weight" },
                                          { "layers.0.self_attn.k_proj.weight", "blk.0.attn_k.weight" },
                                          { "layers.0.self_attn.v_proj.weight", "blk.0.attn_v.weight" },
                                          { "layers.0.self_attn.o_proj.weight", "blk.0.attn_output.weight" },
                                          { "layers.0.mlp.gate_proj.weight", "blk.0.ffn_gate.weight" },
                                          { "layers.0.mlp.up_proj.weight", "blk.0.ffn_up.weight" },
                                          { "layers.0.mlp.down_proj.weight", "blk.0.ffn_down.weight" } };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (!strcmp(row[i][0], name)) return row[i][1];
    return name;
}

/* What a test changes in a GGUF file. rotary 0: no key; shift: added to each id. */
static struct {
    float eps, base;
    int rotary, shift;
} gguf = { .eps = 1e-5F, .base = 500000 };

/* The plain head as llama.cpp's converter writes it: rows of queries and keys in pairs, ids in d2t. Keys: what a test wants. */
static void gguf_write(const fixture *f, const char *path, const char *arch, int heads, int taps, const char *more)
{
    const int32_t layer[] = { 0, 1, 2 };
    char *made[HEAD_TENSORS];
    wg_gguf_writer *g;
    size_t i;
    json_t *t;
    must(wg_gguf_writer_open(&g, path, &err), &err);
    wg_gguf_set_string(g, "general.architecture", arch, strlen(arch));
    wg_gguf_set_u32(g, "eagle3.embedding_length", 64);
    wg_gguf_set_u32(g, "eagle3.feed_forward_length", 48);
    wg_gguf_set_u32(g, "eagle3.attention.head_count", (uint32_t)heads);
    wg_gguf_set_u32(g, "eagle3.attention.head_count_kv", 2);
    wg_gguf_set_u32(g, "eagle3.attention.key_length", 16);
    wg_gguf_set_u32(g, "eagle3.target_hidden_size", 64);
    wg_gguf_set_u32(g, "eagle3.vocab_size", 200);
    wg_gguf_set_f32(g, "eagle3.rope.freq_base", gguf.base);
    wg_gguf_set_f32(g, "eagle3.attention.layer_norm_rms_epsilon", gguf.eps);
    if (gguf.rotary) wg_gguf_set_u32(g, "eagle3.rope.dimension_count", (uint32_t)gguf.rotary);
    wg_gguf_set_i32s(g, "eagle3.target_layers", layer, (size_t)taps);
    if (more) wg_gguf_set_bool(g, more, true);
    json_array_foreach(json_object_get(f->at, "tensors"), i, t) {
        const char *name = json_string_value(json_object_get(t, "name")),
                   *type = json_string_value(json_object_get(t, "dtype"));
        const json_t *shape = json_object_get(t, "shape");
        const bool ids = !strcmp(type, "I64"), turned = strstr(name, "q_proj") || strstr(name, "k_proj");
        const int n = (int)json_array_size(shape);
        wg_safetensors_entry e = { .name = name, .dtype = type, .n_dims = n };
        wg_tensor as = { .name = gguf_name(name), .type = ids ? WG_I64 : WG_F32, .n_dims = n, .dim = { 1, 1, 1, 1 } };
        size_t bytes;
        made[i] = NULL;
        if (!strcmp(name, "t2d")) continue;
        for (int d = 0; d < n; d++) as.dim[n - 1 - d] = e.dim[d] = json_integer_value(json_array_get(shape, (size_t)d));
        char *data = made[i] = head_bytes(name, &e, f->of.vocab, &bytes);
        for (int64_t k = 0; ids && k < e.dim[0]; k++) ((int64_t *)(void *)data)[k] += k + gguf.shift;
        if (turned) {
            const size_t row = bytes / (size_t)e.dim[0];
            made[i] = malloc(bytes);
            for (int64_t k = 0; k < e.dim[0]; k++)
                memcpy(made[i] + (size_t)k * row, data + (size_t)(k / 16 * 16 + k % 2 * 8 + k % 16 / 2) * row, row);
            free(data);
        }
        wg_gguf_add(g, &as, bytes_of, made[i]);
    }
    must(wg_gguf_writer_finish(g, &err), &err);
    for (size_t k = 0; k < json_array_size(json_object_get(f->at, "tensors")); k++) free(made[k]);
}

/* A head of a GGUF file is that of the folder, up to the order of sums over rotary pairs. */
Test(head, rows_of_a_gguf_file)
{
    static float text[2][MOST * WIDEST], tree[2][MOST * WIDEST];
    fixture f = fixture_open("plain");
    const wg_tree nodes = tree_of(&f);
    all_rows(&f, MOST, &nodes, text[0], tree[0]);
    head_file = temp_at(&f.target, "head.gguf");
    gguf_write(&f, head_file, "eagle3", 4, 3, NULL);
    all_rows(&f, MOST, &nodes, text[1], tree[1]);
    head_file = NULL;
    const double worst = fmax(off(text[1], text[0], 23 * width), off(tree[1], tree[0], 5 * width));
    cr_assert(worst < 1e-5, "%g", worst);
    fixture_close(&f);
}

Test(head, gguf_files_that_are_not_understood_are_refused)
{
    static const struct {
        const char *arch, *more, *says;
        int heads, taps;
        wg_status status;
    } row[] = {
        { "llama", NULL, "is no GGUF file of the architectures eagle3 and dflash, the only ones of heads that are read", 4, 3,
          WG_EUNSUPPORTED },
        { "eagle3", "eagle3.gated", "key 'eagle3.gated' is not known in the GGUF file of an EAGLE-3 head", 4, 3,
          WG_EUNSUPPORTED },
        { "eagle3", NULL, "key 'eagle3.target_layers' is missing or wrong: expected up to 8 different layers", 4, 0,
          WG_EMODEL },
        { "eagle3", NULL, "3 heads of 16 over 2: expected a multiple, and heads of an even width", 3, 3, WG_EMODEL },
        { "eagle3", NULL, "key 'eagle3.attention.head_count' is 0: expected 1 .. 65536", 0, 3, WG_EMODEL },
        { "eagle3", "eagle3.norm_before_fc", "there is no tensor 'enc.output_norm.weight', which the head has by its keys", 4,
          3, WG_EMODEL },
        { "eagle3", "eagle3.block_count", "key 'eagle3.block_count' has a value of another kind: expected an integer", 4, 3,
          WG_EMODEL },
    };
    static const struct {
        float eps, base;
        int rotary;
        const char *says;
    } value[] = {
        { NAN, 1e4F, 16, "key 'eagle3.attention.layer_norm_rms_epsilon' is nan: expected a number 1e-12..1" },
        { -1, 1e4F, 16, "key 'eagle3.attention.layer_norm_rms_epsilon' is -1" },
        { 1e-5F, 0, 16, "key 'eagle3.rope.freq_base' is 0: expected a number 1..1e+12" },
        { 1e-5F, INFINITY, 16, "key 'eagle3.rope.freq_base' is inf" },
        { 1e-5F, 1e4F, 8, "key 'eagle3.rope.dimension_count' is 8: expected 16, as the other keys and the tensors have it" },
    };
    wg_head_file *file;
    int32_t token[60];
    fixture f = fixture_open("plain");
    char path[300];
    snprintf(path, sizeof path, "%s", temp_at(&f.target, "head.gguf"));
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        gguf_write(&f, path, row[i].arch, row[i].heads, row[i].taps, row[i].more);
        cr_assert(wg_head_file_open(&file, path, &err) == row[i].status && strstr(err.text, row[i].says), "%s", err.text);
    }
    for (size_t i = 0; i < sizeof value / sizeof value[0]; i++) {
        gguf.eps = value[i].eps;
        gguf.base = value[i].base;
        gguf.rotary = value[i].rotary;
        gguf_write(&f, path, "eagle3", 4, 3, NULL);
        cr_assert(wg_head_file_open(&file, path, &err) && strstr(err.text, value[i].says), "%s: %s", value[i].says, err.text);
    }
    gguf.rotary = 16;
    gguf.shift = 1000;
    gguf_write(&f, path, "eagle3", 4, 3, NULL);
    must(wg_head_file_open(&file, path, &err), &err);
    cr_assert(wg_head_file_tokens(file, token, &err) == WG_EMODEL);
    cr_assert(strstr(err.text, "holds 1000 at 0, with a target of 200 tokens: expected the ids of tokens, ascending"), "%s",
              err.text);
    wg_head_file_close(file);
    fixture_close(&f);
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
    return fixture_engine(f->class, f, target, more);
}

static void check_chains(const char *name) { fixture_chains(class_of(name), name); }

Test(head, engine_drafts_plain) { check_chains("plain"); }
Test(head, engine_drafts_eagle_3_1) { check_chains("eagle-3.1"); }
Test(head, engine_drafts_qwen3_layers) { check_chains("qwen3-layers"); }
Test(head, engine_drafts_safeailab) { check_chains("safeailab"); }
Test(head, engine_drafts_mtp) { check_chains("mtp"); }
Test(head, engine_drafts_mimo) { check_chains("mimo"); }
Test(head, engine_drafts_mtp_of_deepseeks_form) { check_chains("mtp-deepseek"); }
Test(head, engine_drafts_mtp_of_qwens_form) { check_chains("mtp-qwen3.5"); }
Test(head, engine_drafts_p_eagle) { check_chains("p-eagle"); }
Test(head, engine_drafts_p_eagle_with_norms) { check_chains("p-eagle-norms"); }
Test(head, engine_drafts_eagle_1) { check_chains("eagle-1"); }
Test(head, engine_drafts_eagle_1_with_norms) { check_chains("eagle-1-norms"); }

/* The children of a node are the most probable tokens of its own row, in a tree that is drafted level by level. */
static void check_tree(const char *name, const char *shape)
{
    enum { WIDTH = 60 };
    static float text[MOST * WIDTH], rows[WG_TREE_MAX * WIDTH];
    fixture f = fixture_open(name);
    f.class = class_of(name);
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
    f.class = class_of(name);
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
Test(head, history_leaves_no_trace_in_mtp) { check_history("mimo", ",tree=2-1-1"); }
Test(head, history_leaves_no_trace_in_p_eagle) { check_history("p-eagle-norms", ""); }
Test(head, history_leaves_no_trace_in_trees_of_p_eagle) { check_history("p-eagle-norms", ",tree=2-1-1"); }
Test(head, history_leaves_no_trace_in_eagle_1) { check_history("eagle-1", ",tree=2-1-1"); }
Test(head, history_leaves_no_trace_in_best_first) { check_history("plain", ",grow=best_first,budget=7"); }

/* Features of rows that wait are not written into pages that another sequence has. */
Test(head, pages_of_forks_are_left_alone)
{
    fixture f = fixture_open("plain");
    f.class = &wg_drafter_eagle;
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

/* A map is read where lm_head has all tokens, too: it can say nothing else than that. */
Test(head, maps_of_all_tokens_are_checked)
{
    static const wg_lm_class elsewhere = { .name = "elsewhere" };
    static const char *const says[] = { "has no tensor 'embed_tokens.weight'", /* which comes next */
                                        "tensor 'd2t' holds 100 at 100, with a target of 200 tokens: expected an offset" };
    wg_lm target = { .class = &elsewhere, .vocab = 200, .context = 9, .hidden = { .dim = 64 } };
    json_t *tensors, *t;
    size_t at;
    fixture f = fixture_open("plain");
    json_t *config = json_load_file(temp_at(&f.head, "config.json"), 0, NULL);
    json_object_del(config, "draft_vocab_size");
    json_dump_file(config, temp_at(&f.head, "config.json"), 0);
    json_decref(config);
    tensors = json_object_get(f.at, "tensors");
    json_array_foreach(tensors, at, t) {
        const char *name = json_string_value(json_object_get(t, "name"));
        if (!strcmp(name, "lm_head.weight") || !strcmp(name, "d2t"))
            json_array_set_new(json_object_get(t, "shape"), 0, json_integer(200));
    }
    for (int i = 0; i < 2; i++) {
        wg_head_file *file;
        wg_head *h = NULL;
        wg_kv *kv;
        head_weights(tensors, i ? 400 : 200, temp_at(&f.head, "model.safetensors"));
        must(wg_kv_open(&kv, 16, 4, 64, &err), &err);
        must(wg_head_file_open(&file, f.head.dir, &err), &err);
        const wg_env env = { .target = &target, .kv = kv };
        cr_assert(wg_head_open(&h, file, &env, WG_F32, -1, &err) && strstr(err.text, says[i]), "%s", err.text);
        wg_head_file_close(file);
        wg_kv_close(kv);
    }
    fixture_close(&f);
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
