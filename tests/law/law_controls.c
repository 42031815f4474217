/* SPDX-License-Identifier: MIT
 * The matrix of law_exact can fail: one drafter, one rule and one length policy with one mistake each, through the same engine
 * and the same enumeration. Each control says by how much the law is off, or that an address is drawn twice, or that the engine
 * refuses it by name; without its mistake each is exact.
 *
 * methods.md, L1: the q that is published is not the one that was drawn from (sqrt(q), q before the sampler chain, another
 * row). L2: drafter and rule share a draw. L3: a length policy looks at the draws that it is judged by. L4: the number of
 * siblings depends on their draws. Beside these, penalties that are counted once a step. */
#include "draft/length/length.h"
#include "kernels/philox.h"
#include "tests/law/engine_law.h"
#include "core/file/synth.h"

#include <unistd.h>

enum { V = 3 };
static int failures;
static const int32_t prompt[] = { 1, 2, 0, 1 };

/* ---- a drafter with mistakes: `width` children at each node of depth 0, one at each node of depth 1 */

typedef enum mistake {
    RIGHT,
    SQRT_Q,
    RAW_Q,        /* q before top-k */
    WRONG_ROW,    /* children of the root name the row of their own children, and the reverse */
    SHARED_DRAW,  /* drawn where the rule draws whether the node is kept */
    LOOKS,        /* verifies what it drew unless that is token 0 */
    STOPS,        /* no siblings after the first when that is token 0, and says nothing */
    STOPS_SILENT, /* the same, declaring what it has drawn afterwards: a lie that only the law shows */
    BREAKS_WORD,  /* declares the siblings that it will draw, then stops */
    DEPTH_FIRST,  /* right, numbered depth first: the first child of the root has a child unless it is token 0 */
} mistake;

static mistake what;
static int width = 1;
static bool distinct; /* siblings are drawn without replacement */

typedef struct liar {
    wg_drafter base;
    wg_sampler chain, raw;
} liar;

static wg_status open_liar(wg_drafter *d, const wg_env *env, wg_error *err)
{
    liar *l = (liar *)d;
    const wg_sampling raw = WG_SAMPLING(1, 0, 1, 0);
    WG_TRY(wg_sampler_open(&l->raw, &raw, env->ops, V, err));
    return wg_sampler_open(&l->chain, env->sampling, env->ops, V, err);
}

static void close_liar(wg_drafter *d)
{
    wg_sampler_close(&((liar *)d)->raw);
    wg_sampler_close(&((liar *)d)->chain);
}

/* The row that follows a node, from logits that depend on the node's token and depth. */
static int push_row(liar *l, const wg_seq *s, const wg_tree *t, int node, bool raw, wg_rows *q)
{
    float logits[V];
    const int row = wg_rows_push(q);
    const wg_philox w = wg_philox_at(23, (uint32_t)t->token[node], (uint32_t)(s->n + wg_tree_depth(t, node)), 0, 0);
    for (int x = 0; x < V; x++) logits[x] = 3 * wg_philox_float(w.v[x]);
    if (raw) wg_sampler_row(&l->raw, logits, q, row);
    else
        wg_sampler_row_after(&l->chain, logits,
                             &(wg_prefix){ .token = s->token, .n = s->n, .prompt = s->prompt, .tree = t, .node = node }, q,
                             row);
    return row;
}

static void take_root(wg_rows *q, int row)
{
    double sum = 0, *at = wg_rows_at(q, row);
    for (int x = 0; x < V; x++) sum += at[x] = sqrt(at[x]);
    for (int x = 0; x < V; x++) at[x] /= sum;
    q->supported[row] = -1;
}

/* The children of a node, of the number that `what` makes of `most`. */
static void grow(liar *l, const wg_seq *s, wg_tree *t, int node, int most, wg_rows *q)
{
    const int row = push_row(l, s, t, node, false, q), first = t->n;
    const wg_purpose purpose = what == SHARED_DRAW ? WG_DRAW_ACCEPT : WG_DRAW_DRAFT;
    const bool stops = what == STOPS || what == STOPS_SILENT || what == BREAKS_WORD;
    const int named = what == RAW_Q ? push_row(l, s, t, node, true, q) : row;
    if (what != STOPS && what != STOPS_SILENT) wg_tree_group(t, node, most);
    for (int k = 0; k < most; k++) {
        double left[V] = { 0 };
        for (int32_t y = 0; y < V; y++)
            if (!distinct || wg_tree_find(t, node, y) < 0) left[y] = wg_rows_prob(q, row, y);
        const int32_t x = wg_chance_pick(&s->chance, purpose, t->n, left, V);
        if (what == LOOKS && x == 0) break;
        wg_tree_push(t, node, x, named);
        if (stops && x == 0) break;
    }
    if (what == STOPS_SILENT) wg_tree_group(t, node, t->n - first);
    if (what == SQRT_Q) take_root(q, row);
}

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    liar *l = (liar *)d;
    (void)err;
    for (int i = 0; i < n; i++) {
        wg_tree *t = &out[i];
        const wg_seq *s = seq[i];
        wg_tree_reset(t, s->token[s->n - 1], distinct ? WG_LAW_WITHOUT_REPLACEMENT : WG_LAW_IID);
        if (what == DEPTH_FIRST) { /* a whole tree, whatever the room is: the engine cuts it */
            const int row = push_row(l, s, t, 0, false, q);
            wg_tree_group(t, 0, 2);
            const int32_t x = wg_rows_pick(q, row, &s->chance, WG_DRAW_DRAFT, 1);
            const int a = wg_tree_push(t, 0, x, row);
            if (x != 0) grow(l, s, t, a, 1, q);
            wg_tree_push(t, 0, wg_rows_pick(q, row, &s->chance, WG_DRAW_DRAFT, 9), row);
            continue;
        }
        if (wg_seq_room(s) > 0) grow(l, s, t, 0, width, q);
        const int level = t->n;
        for (int node = 1; node < level && wg_seq_room(s) > 1; node++) grow(l, s, t, node, 1, q);
        if (what == WRONG_ROW && t->n > level)
            for (int node = 1; node < t->n; node++) t->qrow[node] = node < level ? t->qrow[level] : t->qrow[1];
    }
    return WG_OK;
}

static const wg_drafter_class liar_class = {
    .name = "liar", .size = sizeof(liar), .laws = WG_LAW_IID, .open = open_liar, .propose = propose, .close = close_liar
};
static const wg_drafter_class distinct_class = { .name = "distinct liar",
                                                 .size = sizeof(liar),
                                                 .laws = WG_LAW_WITHOUT_REPLACEMENT,
                                                 .open = open_liar,
                                                 .propose = propose,
                                                 .close = close_liar };

/* The drafter that draws the siblings that the rule takes. */
static const wg_drafter_class *liar_for(const char *rule)
{
    distinct = !strcmp(rule, "paired") || !strcmp(rule, "without_replacement");
    return distinct ? &distinct_class : &liar_class;
}

/* ---- a rule that reads the root's row at every node: where the target has no memory but for its penalties, these are then
 * counted once a step (SGLang #33643) */

static void penalties_once(const void *opt, const wg_tree *t, wg_rows *p, wg_rows *q, const wg_chance *c, wg_workspace *work,
                           wg_path *out)
{
    static double stale[WG_TREE_MAX * V];
    int32_t point[WG_TREE_MAX];
    int supported[WG_TREE_MAX];
    wg_lazy_row lazy[WG_TREE_MAX];
    wg_rows all = *p;
    wg_tree own = *t;
    for (int i = 0; i < t->n; i++) {
        memcpy(stale + i * V, wg_rows_at(p, t->row), V * sizeof *stale);
        point[i] = supported[i] = -1;
        lazy[i] = (wg_lazy_row){ .state = WG_ROW_THERE };
    }
    own.row = 0;
    all.p = stale, all.point = point, all.supported = supported, all.lazy = lazy;
    wg_verifier_rejection.accept(opt, &own, &all, q, c, work, out);
}

static const wg_verifier_class stale_rule = {
    .name = "stale", .laws = WG_LAW_FIXED | WG_LAW_IID, .lossless = true, .accept = penalties_once, .reads_q = true
};

/* ---- the policy `drawn`, told that the rule only compares */

static wg_env told;
static wg_status open_told(wg_drafter *d, const wg_env *env, wg_error *err)
{
    told = *env;
    told.checks = WG_LAWS;
    d->env = &told;
    return wg_drafter_model.open(d, &told, err);
}

/* ---- the controls */

typedef struct control {
    const char *name, *rule;
    mistake what;
    int width, length;
    wg_sampling sampling;
    double least; /* the law is off by this at least; 0: it is exact */
    bool reused;  /* an address is asked twice */
} control;

#define PLAIN WG_SAMPLING(1, 0, 1, 0)
static const control controls[] = {
    { "right", "rejection", RIGHT, 1, 3, PLAIN, 0, false },
    { "right, truncated", "rejection", RIGHT, 2, 3, WG_SAMPLING(0.8, 2, 1, 0), 0, false },
    { "right, distinct", "paired", RIGHT, 2, 3, PLAIN, 0, false },
    { "sqrt(q)", "rejection", SQRT_Q, 1, 3, PLAIN, 0.01, false },
    { "sqrt(q)", "block", SQRT_Q, 1, 3, PLAIN, 0.01, false },
    { "sqrt(q)", "kseq", SQRT_Q, 2, 2, PLAIN, 0.01, false },
    { "sqrt(q)", "optimal", SQRT_Q, 2, 2, PLAIN, 0.01, false },
    { "sqrt(q)", "paired", SQRT_Q, 2, 2, PLAIN, 0.001, false },
    { "q before the sampler chain", "rejection", RAW_Q, 1, 3, WG_SAMPLING(1, 2, 1, 0), 0.01, false },
    { "q before the sampler chain", "traversal", RAW_Q, 2, 2, WG_SAMPLING(1, 2, 1, 0), 0.01, false },
    { "q of the wrong row", "rejection", WRONG_ROW, 1, 3, PLAIN, 0.005, false },
    { "q of the wrong row", "block", WRONG_ROW, 1, 3, PLAIN, 0.005, false },
    { "drafter and rule share a draw", "rejection", SHARED_DRAW, 1, 3, PLAIN, 0, true },
    { "length after the token", "rejection", LOOKS, 1, 3, PLAIN, 0.01, false },
    { "length after the token", "block", LOOKS, 1, 3, PLAIN, 0.01, false },
    { "length after the token, compared only", "match", LOOKS, 1, 3, PLAIN, 0, false },
    { "siblings stop at token 0", "optimal", STOPS_SILENT, 2, 2, PLAIN, 0.01, false },
    { "siblings stop at token 0", "multipath", STOPS_SILENT, 2, 2, PLAIN, 0.01, false },
    { "siblings stop at token 0", "kseq", STOPS_SILENT, 2, 2, PLAIN, 0.001, false },
    { "siblings stop at token 0", "paired", STOPS_SILENT, 2, 2, PLAIN, 0.01, false },
    { "siblings stop at token 0", "without_replacement", STOPS, 2, 2, PLAIN, 0, false },
    { "siblings stop at token 0", "rejection", STOPS, 2, 2, PLAIN, 0, false },
    { "siblings stop at token 0", "traversal", STOPS, 2, 2, PLAIN, 0, false },
    { "siblings stop at token 0", "topk", STOPS, 2, 2, PLAIN, 0, false },
    { "depth first, cut to a level", "optimal", DEPTH_FIRST, 2, 2, PLAIN, 0, false },
    { "depth first, cut to a level", "multipath", DEPTH_FIRST, 2, 2, PLAIN, 0, false },
    { "depth first, cut to a level", "kseq", DEPTH_FIRST, 2, 2, PLAIN, 0, false },
    { "depth first, cut to a level", "rejection", DEPTH_FIRST, 2, 3, PLAIN, 0, false },
};

static void judge(const char *name, const char *rule, const exact_run *x, double least, bool reused)
{
    const bool right = least > 0 ? x->deviation >= least : x->deviation <= 1e-12;
    const bool as_said = right && (x->reused > 0) == reused && x->drafted > 0;
    printf("%-40s %-10s %7ld runs, off by %8.2g, %5ld addresses twice\n", name, rule, x->runs, x->deviation, x->reused);
    if (as_said) return;
    fprintf(stderr, "FAILED %s, rule %s: off by %g, %ld addresses twice; expected %s%g%s\n", name, rule, x->deviation,
            x->reused, least > 0 ? "at least " : "", least, reused ? " and some" : "");
    failures++;
}

static void run_controls(exact_target *t)
{
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++) {
        const control *c = &controls[i];
        what = c->what;
        width = c->width;
        exact_run x = { .setup = { .drafter_class = liar_for(c->rule), .rule = c->rule, .sampling = c->sampling, .seed = 1 },
                        .other = i % 2 ? 5 : 0,
                        .prompt = prompt,
                        .n = 4,
                        .length = c->length };
        exact_law_of(&x, t);
        judge(c->name, c->rule, &x, c->least, c->reused);
    }
}

/* Penalties over a target without memory, once counted at every node and once at the root alone. */
static void penalties(void)
{
    exact_target t;
    exact_table(&t, V, 0, 5, 1);
    what = RIGHT;
    width = 1;
    exact_run x = {
        .setup = { .drafter_class = liar_for("rejection"),
                   .rule = "rejection",
                   .sampling = { .temperature = 1, .top_p = 1, .frequency_penalty = 0.8, .repetition_penalty = 1.5 } },
        .prompt = prompt,
        .n = 4,
        .length = 3
    };
    exact_law_of(&x, &t);
    judge("penalties at every node", "rejection", &x, 0, false);
    x.setup.rule_class = &stale_rule;
    exact_law_of(&x, &t);
    judge("penalties once a step", "rejection", &x, 0.01, false);
    exact_target_close(&t);
}

/* The policy that drops drawn tokens, where it is refused: bent by a drafter that hides the rule from it. */
static void anticipation(exact_target *t)
{
    char dir[] = "/tmp/wg-controls-XXXXXX", path[64], options[200];
    wg_error err;
    const wg_synth_shape s = { .layers = 1, .dim = 32, .heads = 2, .hidden = 32, .vocab = V, .context = EXACT_CONTEXT };
    if (!mkdtemp(dir)) exit((perror(dir), 1));
    snprintf(path, sizeof path, "%s/draft.gguf", dir);
    LAW_TRY(wg_synth_write(&s, WG_F32, 2, path, &err));
    wg_drafter_class lied = wg_drafter_model;
    lied.open = open_told;
    snprintf(options, sizeof options, "model=%s,length=2,policy=drawn,threshold=0.35", path);
    for (int looks = 1; looks >= 0; looks--) {
        exact_run x = { .setup = { .drafter_class = &lied, .options = options, .rule = "rejection", .sampling = PLAIN },
                        .prompt = prompt,
                        .n = 4,
                        .length = 3 };
        exact_law_of(&x, t);
        judge(looks ? "policy drawn under rejection" : "policy confidence", "rejection", &x, looks ? 0.001 : 0, false);
        snprintf(options, sizeof options, "model=%s,length=2,policy=confidence,threshold=0.35", path);
    }
    remove(path);
    remove(dir);
}

/* What the engine says of a tree whose groups were not declared, or are not what was declared: by name, and only for rules that
 * weigh siblings jointly. The step is undone. */
static void refusals(exact_target *t)
{
    static const char *const rules[] = { "kseq", "optimal", "multipath", "paired", "rejection", "traversal", "topk", "match" };
    enum { RULES = 8, JOINT = 4 };
    for (int i = 0; i < RULES; i++)
        for (int broken = 0; broken < 2; broken++) {
            wg_error err = { 0 };
            wg_seq *s;
            wg_status status = WG_OK;
            what = broken ? BREAKS_WORD : STOPS;
            width = 3;
            law_setup setup = {
                .target = &t->m, .drafter_class = liar_for(rules[i]), .rule = rules[i], .sampling = PLAIN, .seed = 1
            };
            wg_engine *e = law_engine(&setup);
            for (uint32_t request = 0; !status && request < 20; request++) { /* draws of both kinds */
                LAW_TRY(wg_seq_open(e, &s, request, prompt, 4, 4, &err));
                status = wg_engine_step(e, &s, 1, &err);
                if (status && (s->n != 4 || wg_kv_len(s->kv) != 3 || wg_kv_tail(s->kv) != 0)) status = WG_EINVAL;
                wg_seq_close(e, s);
            }
            wg_engine_close(e);
            const wg_status want = i < JOINT ? WG_ELAW : WG_OK;
            const char *says = i >= JOINT ? ""
                               : broken   ? " was to have 3 children and has "
                                          : "(wg_tree_group), or choose one of: ";
            if (status == want && strstr(err.text, says) && (i >= JOINT || strstr(err.text, rules[i]))) continue;
            fprintf(stderr, "FAILED %s, groups %s: %s: %s\n", rules[i], broken ? "other than declared" : "not declared",
                    wg_status_name(status), err.text);
            failures++;
        }
}

int main(void)
{
    exact_target t;
    exact_table(&t, V, 3, 17, 1.2);
    run_controls(&t);
    penalties();
    anticipation(&t);
    refusals(&t);
    exact_target_close(&t);
    if (failures) fprintf(stderr, "%d failures\n", failures);
    return failures != 0;
}
