/* SPDX-License-Identifier: MIT
 * Answers of a rule from outside that cannot be committed: each is an error of the step that names the rule, and every sequence
 * of the batch, and a chunk that rides with it, are as before the step. The same engine then goes on. */
#include "core/engine/seq_rows.h"
#include "tests/unit/draft/composed.h"

enum { V = 40, FAULTY = 2, STEPS = 4 };

static void open_all(void) { open_target(V); }
TestSuite(rule_answers, .init = open_all, .fini = close_target);

static const int32_t prompt[] = { 1, 2, 3, 1, 2, 4, 1, 2 };
static void (*spoil)(const wg_tree *t, wg_rows *p, wg_path *path); /* of request FAULTY; NULL: the rule is `match` */

static void accept(const void *opt, const wg_tree *t, wg_rows *p, wg_rows *q, const wg_chance *c, wg_workspace *work,
                   wg_path *out)
{
    wg_verifier_match.accept(opt, t, p, q, c, work, out);
    if (spoil && c->request == FAULTY) spoil(t, p, out);
}

static const wg_verifier_class exact = { .name = "mine", .laws = WG_LAWS, .lossless = true, .accept = accept };
static const wg_verifier_class lossy = { .name = "mine", .laws = WG_LAWS, .accept = accept };

/* A token that the target does not emit behind the root. */
static int32_t impossible(const wg_tree *t, wg_rows *p)
{
    for (int32_t x = 0; x < V; x++)
        if (!(wg_rows_prob(p, t->row, x) > 0)) return x;
    abort();
}

static void nothing(const wg_tree *t, wg_rows *p, wg_path *path) { (void)t, (void)p, path->n = 0; }
static void below_nothing(const wg_tree *t, wg_rows *p, wg_path *path) { (void)t, (void)p, path->n = -3; }
static void more_than_all(const wg_tree *t, wg_rows *p, wg_path *path) { (void)p, path->n = t->n + 1; }
static void no_root(const wg_tree *t, wg_rows *p, wg_path *path) { (void)t, (void)p, path->n = 1, path->node[0] = 1; }
static void two(wg_path *path, int a, int b)
{
    path->n = 2;
    path->node[0] = (int16_t)a;
    path->node[1] = (int16_t)b;
}
static void far_away(const wg_tree *t, wg_rows *p, wg_path *path) { (void)t, (void)p, two(path, 0, 200); }
static void negative(const wg_tree *t, wg_rows *p, wg_path *path) { (void)t, (void)p, two(path, 0, -1); }
static void twice(const wg_tree *t, wg_rows *p, wg_path *path) { (void)t, (void)p, two(path, 0, 0); }
static void skips(const wg_tree *t, wg_rows *p, wg_path *path) { (void)t, (void)p, two(path, 0, 2); }
static void beyond(const wg_tree *t, wg_rows *p, wg_path *path) { (void)t, (void)p, path->next = V; }
static void before(const wg_tree *t, wg_rows *p, wg_path *path) { (void)t, (void)p, path->next = -1; }
static void unlikely(const wg_tree *t, wg_rows *p, wg_path *path) { path->n = 1, path->next = impossible(t, p); }
/* The first draft is accepted, which is none that the target emits there. */
static void unlikely_draft(const wg_tree *t, wg_rows *p, wg_path *path)
{
    ((wg_tree *)t)->token[1] = impossible(t, p);
    two(path, 0, 1);
    path->next = wg_rows_argmax(p, t->row + 1);
}

typedef struct batch {
    wg_engine *e;
    wg_seq *seq[3]; /* two decode, one has a prompt that is read beside them */
} batch;

static void open_batch(batch *b, const wg_verifier_class *rule, const wg_seq_sampling *how)
{
    wg_error err;
    char options[600];
    snprintf(options, sizeof options, "model=%s,length=3", near_path);
    const law_setup setup = { .target = &target,
                              .drafter = "model",
                              .options = options,
                              .rule_class = rule,
                              .sampling = WG_SAMPLING(0.8, how ? 0 : 4, 1, 0),
                              .batch = 3,
                              .ride_rows = 4,
                              .seed = 5 };
    b->e = law_engine(&setup);
    for (int i = 0; i < 3; i++) LAW_TRY(wg_seq_open(b->e, &b->seq[i], FAULTY - 1 + (uint32_t)i, prompt, 8, 40, &err));
    if (how) LAW_TRY(wg_seq_sample(b->e, b->seq[1], how, &err));
    spoil = NULL;
    LAW_TRY(wg_engine_step(b->e, b->seq, 2, &err)); /* the prompts are read */
}

static void close_batch(batch *b)
{
    for (int i = 0; i < 3; i++) wg_seq_close(b->e, b->seq[i]);
    wg_engine_close(b->e);
}

/* A step with this fault fails and changes nothing; steps without it then end as those of a batch that never had it. */
static void check(const wg_verifier_class *rule, const wg_seq_sampling *how,
                  void (*fault)(const wg_tree *, wg_rows *, wg_path *), const char *says)
{
    wg_error err = { 0 };
    batch b, clean;
    int n[3], len[3];
    open_batch(&b, rule, how);
    open_batch(&clean, rule, how);
    for (int i = 0; i < 3; i++) n[i] = b.seq[i]->n, len[i] = wg_kv_len(b.seq[i]->kv);
    spoil = fault;
    wg_chunk chunk = { .seq = b.seq[2], .n = 3 };
    cr_assert_eq(wg_engine_step_with(b.e, b.seq, 2, &chunk, 1, &err), WG_EINVAL, "%s", says);
    cr_assert_str_eq(err.text, says);
    for (int i = 0; i < 3; i++) {
        const wg_seq *s = b.seq[i];
        cr_assert(s->n == n[i] && wg_kv_len(s->kv) == len[i] && wg_kv_tail(s->kv) == 0, "%s: sequence %d", says, i);
        cr_assert(s->finish == WG_RUNNING && s->counts.passes == (i < 2));
    }
    spoil = NULL;
    for (int step = 0; step < STEPS; step++) {
        LAW_TRY(wg_engine_step(b.e, b.seq, 2, &err));
        LAW_TRY(wg_engine_step(clean.e, clean.seq, 2, &err));
    }
    for (int i = 0; i < 2; i++)
        cr_assert(b.seq[i]->n == clean.seq[i]->n &&
                  !memcmp(b.seq[i]->token, clean.seq[i]->token, (size_t)b.seq[i]->n * sizeof *b.seq[i]->token));
    close_batch(&b);
    close_batch(&clean);
}

Test(rule_answers, each_is_an_error_of_the_rule_and_changes_nothing)
{
    static const struct {
        void (*fault)(const wg_tree *, wg_rows *, wg_path *);
        const char *says;
    } faults[] = {
        { nothing, "a path of 0 nodes in a tree of 4; expected the root and the accepted nodes" },
        { below_nothing, "a path of -3 nodes in a tree of 4; expected the root and the accepted nodes" },
        { more_than_all, "a path of 5 nodes in a tree of 4; expected the root and the accepted nodes" },
        { no_root, "a path that begins at node 1; expected the root, node 0" },
        { far_away, "a path with node 200 behind node 0; the tree has nodes 0..3" },
        { negative, "a path with node -1 behind node 0; the tree has nodes 0..3" },
        { twice, "a path with node 0 behind node 0; expected a child of it" },
        { skips, "a path with node 2 behind node 0; expected a child of it" },
        { beyond, "the next token 40; the vocabulary is 0..39" },
        { before, "the next token -1; the vocabulary is 0..39" },
        { unlikely, "token 0 behind node 0, where the target gives it no probability" },
        { unlikely_draft, "token 0 behind node 0, where the target gives it no probability" },
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        char says[300];
        snprintf(says, sizeof says, "rule mine, request 2: %s", faults[i].says);
        check(&exact, NULL, faults[i].fault, says);
        if (faults[i].fault != unlikely && faults[i].fault != unlikely_draft) check(&lossy, NULL, faults[i].fault, says);
    }
}

/* A lossy rule may emit what the target does not, but not what the request forbids. */
Test(rule_answers, a_lossy_rule_keeps_to_the_allowed_tokens)
{
    static const int32_t allowed[] = { 3, 5, 7, 9, 11, 13 };
    const wg_seq_sampling how = { .allowed = allowed, .n_allowed = 6 };
    wg_error err;
    batch b;
    check(&lossy, &how, unlikely, "rule mine, request 2: token 0 behind node 0, where the request does not allow it");
    open_batch(&b, &lossy, NULL);
    spoil = unlikely;
    LAW_TRY(wg_engine_step(b.e, b.seq, 2, &err));
    close_batch(&b);
}
