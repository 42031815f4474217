/* SPDX-License-Identifier: MIT
 * Lookahead decoding (Fu et al. 2024): the target guesses several later tokens at once by Jacobi iteration, in the same passes
 * that verify, and the n-grams of its guesses are the drafts.
 *
 * Lookahead branch. A window of W columns guesses tokens ahead of the text. Column j holds a run of n-1 tokens that begins at
 * position j after the root: its first token is a base (column 0's is the root itself), the others are the target's answers in
 * earlier passes. Its rows are probes (wg_tree): base j is a child of base j-1, the rest of a column below its base, so each
 * row sees the bases up to its own and its own column, which is the Jacobi mask. The target's answer after the last row makes
 * the column an n-gram, which goes to the pool under its first token; then every column drops its base and takes the answer,
 * and the window slides by the tokens that were accepted. Rows with the same path are scored once (Prefix Law): where the
 * iteration has converged, columns share rows with each other and with the draft, and cost less than W(n-1)-1.
 *
 *     n = 4, W = 3     root a  b          in the tree:  root - c - e        a pass answers x, y, z:  (root,c,e) -> x
 *                      c    d  f                        root - a - d - g                             (a,d,g)    -> y
 *                      e    g  h                               a - b - f - h                         (b,f,h)    -> z
 *     the next window, with one token emitted:  next d f / e g h / x y z
 *
 * Verification branch. The pool's continuations of the root, the most recent G, are the draft: a trie of certain proposals.
 *
 * New columns begin with the last W tokens of the text, one each, and grow by an answer a pass until they have n-1. Answers are
 * the argmax of the raw logits, at every temperature: no draw is made here, so none can be one of the rule's (methods.md, L2).
 * A draft is a function of texts and of finished passes (law FIXED). All state belongs to one sequence.
 *
 * Invariant: a column with height h has h tokens; 0: it is to begin. Only full columns (n-1) become n-grams. */
#include "draft/draft.h"

#include <string.h>

#include "core/base/mem.h"
#include "draft/lookup/ngram_pool.h"
#include "draft/one_hot.h"

enum { N_MAX = 16 };

typedef struct lookahead_options {
    int window, n, guesses, keys;
    bool text;
} lookahead_options;

/* The state of a sequence. */
typedef struct local {
    wg_ngram_pool pool; /* open from the first proposal to `forget` */
    int read;           /* tokens of the text whose n-grams are in the pool */
} local;

typedef struct lookahead_drafter {
    wg_drafter base;
    lookahead_options opt;
    local *local;   /* (max_batch) */
    int *height;    /* (max_batch, window) */
    int32_t *token; /* (max_batch, window, n-1) */
} lookahead_drafter;

static const wg_option options[] = {
    WG_OPTION_INT(lookahead_options, window, 3, 1, WG_DRAFT_MAX, "columns: tokens guessed ahead at once (W)"),
    WG_OPTION_INT(lookahead_options, n, 4, 2, N_MAX, "tokens of an n-gram; a draft has n-1 (N)"),
    WG_OPTION_INT(lookahead_options, guesses, 3, 1, WG_DRAFT_MAX, "n-grams kept for a first token, and verified (G)"),
    WG_OPTION_INT(lookahead_options, keys, 2048, 1, 1 << 20, "first tokens kept for a sequence"),
    WG_OPTION_BOOL(lookahead_options, text, false, "n-grams of the text itself are kept, too"),
    WG_OPTION_END,
};

static wg_status open(wg_drafter *base, const wg_env *env, wg_error *err)
{
    lookahead_drafter *d = (lookahead_drafter *)base;
    const lookahead_options *o = &d->opt;
    const int rows = (o->window + o->guesses) * (o->n - 1) - 1;
    if (!env->logits)
        return wg_fail(err, WG_EUNSUPPORTED,
                       "drafter lookahead: this engine does not hand out the target's logits; "
                       "choose another drafter");
    wg_env_watch(env);
    if (rows > WG_DRAFT_MAX)
        return wg_fail(err, WG_ECONFIG,
                       "drafter lookahead: (window=%d + guesses=%d) * (n=%d - 1) - 1 = %d rows beside the "
                       "root; a tree has room for %d: lower one of them, or build with a larger WG_TREE_NODES",
                       o->window, o->guesses, o->n, rows, (int)WG_DRAFT_MAX);
    const size_t slots = (size_t)env->max_batch, columns = slots * (size_t)o->window;
    d->local = wg_calloc(slots, sizeof *d->local);
    d->height = wg_calloc(columns, sizeof *d->height);
    d->token = wg_calloc(columns, (size_t)(o->n - 1) * sizeof *d->token);
    return d->local && d->height && d->token ? WG_OK : wg_nomem(err, columns * sizeof *d->token, "the drafter lookahead");
}

static void close(wg_drafter *base)
{
    lookahead_drafter *d = (lookahead_drafter *)base;
    for (int i = 0; d->local && i < base->env->max_batch; i++) wg_ngram_pool_close(&d->local[i].pool);
    wg_free(d->local);
    wg_free(d->height);
    wg_free(d->token);
}

static int32_t *column(const lookahead_drafter *d, const wg_seq *s, int j)
{
    return d->token + ((size_t)s->slot * (size_t)d->opt.window + (size_t)j) * (size_t)(d->opt.n - 1);
}

static int *heights(const lookahead_drafter *d, const wg_seq *s) { return d->height + (size_t)s->slot * (size_t)d->opt.window; }

/* ---- a proposal */

static void read_text(const lookahead_drafter *d, local *l, const wg_seq *s)
{
    for (; l->read + d->opt.n <= s->n; l->read++) wg_ngram_pool_put(&l->pool, s->token[l->read], s->token + l->read + 1);
}

static void guess(const lookahead_drafter *d, local *l, const wg_seq *s, wg_tree *t, wg_rows *q)
{
    int have;
    const int n = d->opt.n - 1, depth = wg_one_hot_depth(s, n);
    const int32_t *rest = wg_ngram_pool_get(&l->pool, t->token[0], &have);
    for (int i = 0; i < have; i++, rest += n)
        for (int k = 0, node = 0; k < depth && node >= 0; k++) {
            const int there = wg_tree_find(t, node, rest[k]);
            node = there >= 0 ? there : wg_one_hot_push(t, node, rest[k], q);
            if (wg_env_is_eog(d->base.env, rest[k])) break;
        }
}

/* Adds the window to the tree as probes. Columns beyond the end of the text or of the tree's room are left out and get no
 * answer. */
static void look_ahead(const lookahead_drafter *d, const wg_seq *s, wg_tree *t)
{
    int *height = heights(d, s);
    const int room = wg_seq_room(s), W = d->opt.window;
    for (int j = 0, base = 0; j < W; j++) {
        int32_t *c = column(d, s, j);
        if (height[j] == 0) {
            height[j] = 1;
            c[0] = s->token[s->n < W ? j % s->n : s->n - W + j];
        }
        if (j == 0) c[0] = t->token[0];
        else base = j <= room ? wg_tree_probe(t, base, c[0]) : -1;
        for (int r = 1, node = base; r < height[j] && node >= 0 && j + r <= room; r++) node = wg_tree_probe(t, node, c[r]);
    }
}

static wg_status propose(wg_drafter *base, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    lookahead_drafter *d = (lookahead_drafter *)base;
    for (int i = 0; i < n; i++) {
        const wg_seq *s = seq[i];
        local *l = &d->local[s->slot];
        wg_tree_reset(&out[i], s->token[s->n - 1], WG_LAW_FIXED);
        if (!l->pool.key && !wg_ngram_pool_open(&l->pool, d->opt.keys, d->opt.guesses, d->opt.n - 1))
            return wg_nomem(err, (size_t)d->opt.keys * (size_t)d->opt.guesses * (size_t)d->opt.n * sizeof(int32_t),
                            "the n-grams of a sequence; lower the drafter's keys?");
        if (d->opt.text) read_text(d, l, s);
        guess(d, l, s, &out[i], q);
        look_ahead(d, s, &out[i]);
    }
    return WG_OK;
}

/* ---- after a pass */

/* The target's answers after the last rows of all columns; -1: the column was not in the tree, for example in another
 * drafter's. */
static void read_answers(const lookahead_drafter *d, const wg_seq *s, const wg_tree *t, int32_t *answer)
{
    const wg_env *env = d->base.env;
    const int vocab = env->target->vocab, *height = heights(d, s);
    int base = column(d, s, 0)[0] == t->token[0] ? 0 : -1;
    for (int j = 0; j < d->opt.window; j++) {
        const int32_t *c = column(d, s, j);
        if (j) base = wg_tree_scored(t, base, c[0]);
        int node = height[j] ? base : -1;
        for (int r = 1; r < height[j]; r++) node = wg_tree_scored(t, node, c[r]);
        answer[j] = node < 0 ? -1 : env->ops->argmax(env->logits + (size_t)(t->row + node) * (size_t)vocab, vocab);
    }
}

static void observe(wg_drafter *base, const wg_seq *s, const wg_tree *tree, const wg_path *path, wg_rows *target)
{
    const lookahead_drafter *d = (const lookahead_drafter *)base;
    local *l = &d->local[s->slot];
    const int full = d->opt.n - 1, W = d->opt.window;
    int32_t answer[WG_DRAFT_MAX], rest[N_MAX];
    int *height = heights(d, s);
    (void)target;
    if (!l->pool.key) return;
    read_answers(d, s, tree, answer);
    for (int j = W - 1; j >= 0; j--) { /* the nearest column last, so that the likeliest n-grams become the most recent */
        if (height[j] < full || answer[j] < 0) continue;
        memcpy(rest, column(d, s, j) + 1, (size_t)(full - 1) * sizeof *rest);
        rest[full - 1] = answer[j];
        wg_ngram_pool_put(&l->pool, column(d, s, j)[0], rest);
    }
    for (int j = 0, from = path->n - 1; j < W; j++, from++) {
        int32_t *c = column(d, s, j);
        height[j] = from < W ? height[from] : 0;
        if (height[j] == 0) continue;
        const int drop = height[j] == full && answer[from] >= 0;
        memmove(c, column(d, s, from) + drop, (size_t)(height[j] - drop) * sizeof *c);
        if (answer[from] >= 0) c[height[j] - drop] = answer[from];
        height[j] += !drop && answer[from] >= 0;
    }
}

static void forget(wg_drafter *base, const wg_seq *s)
{
    lookahead_drafter *d = (lookahead_drafter *)base;
    wg_ngram_pool_close(&d->local[s->slot].pool);
    d->local[s->slot] = (local){ 0 };
    memset(heights(d, s), 0, (size_t)d->opt.window * sizeof *d->height);
}

const wg_drafter_class wg_drafter_lookahead = {
    .name = "lookahead",
    .doc = "lookahead decoding: n-grams that the target guesses in the same passes (Jacobi window and pool)",
    .size = sizeof(lookahead_drafter),
    .options = options,
    .options_at = offsetof(lookahead_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = WG_TREE_MAX > 8 ? "window=4,n=4,guesses=3" : "window=2,n=3,guesses=2", .siblings = true },
            { .options = "window=3,n=3,guesses=4,keys=8,text=true", .siblings = true },
            { .options = NULL },
        },
    WG_LOOKUP_MEMBERS,
    .observe = observe,
    .forget = forget,
};
