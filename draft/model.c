/* SPDX-License-Identifier: MIT
 * A second, smaller language model as drafter: chains (Leviathan et al. 2023, Chen et al. 2023; METHODS A1) and trees of
 * sampled siblings (SpecInfer; METHODS B4). A tree is the same numbers everywhere: the ith entry of `tree` is how many children
 * a node of depth i gets; `length` alone is the chain 1-1-...-1.
 *
 * Law. By `siblings` the children of a node are independent draws from its q row (iid), draws of which each leaves out those
 * before it (without_replacement), both at the step's own position with the node's number as index; or the first to finish a race
 * over q on the times of the children's position, which the rule `coupled` uses as well (coupled; METHODS B12). At draft
 * temperature 0 there is nothing to draw, so the children are the k most probable tokens (FIXED). Which it is, is settled at open,
 * so it never depends on what was drawn. Where q has fewer tokens than there are children wanted, distinct children end early.
 *
 * Passes. All sequences' nodes of one depth ride in one pass, and leaves are never fed, so a draft of depth n costs n passes.
 * What the model has not seen of the committed text (the whole prompt at first, the last accepted token after a fully accepted
 * draft) rides with the roots in the first of them. A commit therefore leaves this space shorter than the sequence now and
 * then; the cache's valid length says what is missing.
 *
 * Whether a node gets children depends on its prefix, its q row and the room that is left, never on what would be drawn
 * (METHODS L3). */
#include "draft/draft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/model.h"

/* Rows of one pass; more are fed in several. */
#ifdef WG_HARD
enum { PASS_ROWS = 5 };
#else
enum { PASS_ROWS = 256 };
#endif

typedef struct model_options {
    char model[WG_OPTION_STRING], tree[WG_OPTION_STRING];
    int length, kv_type, siblings;
    double temperature, p_min;
} model_options;

/* Whose logits a row of the pass are. */
typedef struct asker {
    int seq, node;
} asker;

typedef struct model_drafter {
    wg_drafter base;
    model_options opt;
    wg_model *model;
    wg_lm *lm;
    wg_sampler sampler;
    wg_batch batch;
    int vocab;                    /* the target's: the width of a q row */
    int levels;                   /* depth of a whole draft */
    int children[WG_TREE_MAX];    /* of a node of depth i < levels */
    int nodes_above[WG_TREE_MAX]; /* of a whole draft, at depths 0 .. i-1 */
    wg_sibling_law law;
    asker *asker;        /* (batch.cap) */
    float *logits;       /* (most rows that ask in one pass, lm->vocab) */
    float *row;          /* (vocab): logits at the target's width; NULL when the widths agree */
    double *weight;      /* (vocab) for p_min at temperature 0, and for distinct siblings; else NULL */
    int *height, *first; /* (max_batch) depth of this draft; first node of the depth being fed */
} model_drafter;

static const char *const kv_types[] = {"f32", "f16", "bf16", NULL};
static const int kv_type_ids[] = {WG_F32, WG_F16, WG_BF16};
static const char *const siblings[] = {"iid", "without_replacement", "coupled", NULL};
static const wg_sibling_law sibling_laws[] = {WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT, WG_LAW_COUPLED};

static const wg_option options[] = {
    WG_OPTION_STR(model_options, model, "", "weights file of the draft model (needed)"),
    WG_OPTION_INT(model_options, length, WG_TREE_MAX > 4 ? 4 : 1, 1, WG_TREE_MAX - 1, "tokens of a chain"),
    WG_OPTION_STR(model_options, tree, "", "children of a node by its depth, such as 3-2-1; empty: a chain of `length`"),
    WG_OPTION_ENUM(model_options, siblings, 0, siblings, "how children are drawn; coupled: for the rule of that name"),
    WG_OPTION_FLOAT(model_options, temperature, -1, -1, 100, "of q; negative: the target's; 0: the most probable tokens"),
    WG_OPTION_FLOAT(model_options, p_min, 0, 0, 1, "a node whose most probable next token is below this gets no children"),
    WG_OPTION_ENUM(model_options, kv_type, 1, kv_types, "element type of the draft model's cache"),
    WG_OPTION_END,
};

/* ---- open */

static wg_status bad_tree(const char *text, wg_error *err)
{
    return wg_fail(err, WG_ECONFIG,
                   "drafter model: tree=%s: expected children per depth, such as 3-2-1 (each 1..%d), with at most "
                   "%d nodes below the root in all",
                   text, WG_TREE_MAX - 1, WG_TREE_MAX - 1);
}

/* Fills levels, children and nodes_above from the options. */
static wg_status shape(model_drafter *m, wg_error *err)
{
    const char *at = m->opt.tree;
    int width = 1, nodes = 1;
    m->levels = 0;
    while (*at || (!*m->opt.tree && m->levels < m->opt.length)) {
        int k = 1;
        if (*at) {
            char *end;
            if (*at < '0' || *at > '9') return bad_tree(m->opt.tree, err);
            const long v = strtol(at, &end, 10);
            if (v < 1 || v >= WG_TREE_MAX || (*end && (*end != '-' || !end[1]))) return bad_tree(m->opt.tree, err);
            k = (int)v;
            at = *end ? end + 1 : end;
        }
        width *= k;
        if (nodes + width > WG_TREE_MAX) return bad_tree(m->opt.tree, err);
        m->nodes_above[m->levels] = nodes - width / k;
        m->children[m->levels++] = k;
        nodes += width;
    }
    m->nodes_above[m->levels] = nodes - width;
    return WG_OK;
}

/* Ids of the two models must mean the same. Without both tokenizers only the sizes can be compared. */
static wg_status check_vocabulary(const model_drafter *m, const wg_weights *w, wg_error *err)
{
    const wg_env *env = m->base.env;
    const char *target = env->target_name ? env->target_name : "target";
    int64_t keys = wg_meta_array(w, "tokenizer.ggml.tokens", &(wg_meta_kind){0});
    if (env->tokenizer && keys > 0) {
        wg_tokenizer *t;
        WG_TRY(wg_tokenizer_open(&t, w, err));
        const wg_status s = wg_tokenizer_same(env->tokenizer, t, target, m->opt.model, err);
        wg_tokenizer_close(t);
        return s;
    }
    if (m->lm->vocab != env->target->vocab)
        return wg_fail(err, WG_EVOCAB,
                       "%s has a vocabulary of %d tokens, %s one of %d: a draft model needs the target's tokenizer",
                       m->opt.model, m->lm->vocab, target, env->target->vocab);
    return WG_OK;
}

static wg_status open_model(model_drafter *m, wg_error *err)
{
    const wg_env *env = m->base.env;
    wg_device device;
    WG_TRY(wg_device_cpu(&device, env->pool, err));
    if (env->ops) device.ops = env->ops;
    wg_weights *w;
    WG_TRY(wg_weights_open(&w, m->opt.model, err));
    const wg_model_options o = {.kv_type = kv_type_ids[m->opt.kv_type], .max_rows = PASS_ROWS};
    wg_status s = wg_model_open(&m->model, w, &device, &o, err);
    if (!s) {
        m->lm = wg_model_lm(m->model);
        s = check_vocabulary(m, w, err);
    }
    wg_weights_close(w);
    return s;
}

static wg_status open_buffers(model_drafter *m, wg_error *err)
{
    const wg_env *env = m->base.env;
    const size_t vocab = (size_t)m->lm->vocab;
    int width = 1, widest = 1; /* fed nodes of one depth */
    for (int i = 0; i + 1 < m->levels; i++) {
        width *= m->children[i];
        if (width > widest) widest = width;
    }
    size_t asking = (size_t)widest * (size_t)env->max_batch;
    if (asking > PASS_ROWS) asking = PASS_ROWS;
    WG_TRY(wg_batch_open(&m->batch, PASS_ROWS, err));
    m->asker = wg_calloc(PASS_ROWS, sizeof *m->asker);
    m->height = wg_calloc((size_t)env->max_batch, sizeof *m->height);
    m->first = wg_calloc((size_t)env->max_batch, sizeof *m->first);
    m->logits = wg_calloc(asking * vocab, sizeof *m->logits);
    if (!m->asker || !m->height || !m->first || !m->logits)
        return wg_nomem(err, asking * vocab * sizeof *m->logits, "the logits of a draft model");
    if (m->lm->vocab != m->vocab) {
        m->row = wg_calloc((size_t)m->vocab, sizeof *m->row);
        if (!m->row) return wg_nomem(err, (size_t)m->vocab * sizeof *m->row, "a row of draft logits");
    }
    if (m->law == WG_LAW_WITHOUT_REPLACEMENT || m->law == WG_LAW_COUPLED || (m->law == WG_LAW_FIXED && m->opt.p_min > 0)) {
        m->weight = wg_calloc((size_t)m->vocab, sizeof *m->weight);
        if (!m->weight) return wg_nomem(err, (size_t)m->vocab * sizeof *m->weight, "a row of draft probabilities");
    }
    return WG_OK;
}

/* The draft model's own chain, and the law that follows from it. */
static wg_sampling chain_for(const model_options *o, const wg_sampling *target)
{
    wg_sampling s = *target;
    if (o->temperature >= 0) s.temperature = o->temperature;
    return s;
}

static unsigned laws_for(const void *options, const wg_sampling *target)
{
    const model_options *o = options;
    const wg_sampling s = chain_for(o, target);
    return s.temperature > 0 && s.top_k != 1 ? sibling_laws[o->siblings] : WG_LAW_FIXED;
}

static wg_status open(wg_drafter *d, const wg_env *env, wg_error *err)
{
    model_drafter *m = (model_drafter *)d;
    if (!*m->opt.model) return wg_fail(err, WG_ECONFIG, "drafter model: no draft model is named; set its option model=FILE");
    WG_TRY(shape(m, err));
    const wg_sampling sampling = chain_for(&m->opt, env->sampling);
    m->law = (wg_sibling_law)laws_for(&m->opt, env->sampling);
    m->vocab = env->target->vocab;
    WG_TRY(open_model(m, err));
    WG_TRY(open_buffers(m, err));
    WG_TRY(wg_sampler_open(&m->sampler, &sampling, env->ops, m->vocab, err));
    return wg_lm_attach(m->lm, env->kv, err);
}

static void close(wg_drafter *d)
{
    model_drafter *m = (model_drafter *)d;
    wg_sampler_close(&m->sampler);
    wg_batch_close(&m->batch);
    wg_free(m->asker);
    wg_free(m->height);
    wg_free(m->first);
    wg_free(m->logits);
    wg_free(m->row);
    wg_free(m->weight);
    wg_model_close(m->model);
}

/* ---- propose */

/* How deep the draft of a sequence may be: `next` takes the last place before the limit, the deepest fed node (at depth
 * height-1) must lie in the draft model's context, and so must every token it would be fed in its vocabulary. */
static int height_for(const model_drafter *m, const wg_seq *s)
{
    int h = m->levels;
    if (h > wg_seq_room(s)) h = wg_seq_room(s);
    if (h > m->lm->context - s->n + 1) h = m->lm->context - s->n + 1;
    if (h <= 0) return 0;
    for (int i = wg_kv_valid(s->kv, m->lm->space); i < s->n; i++)
        if (s->token[i] >= m->lm->vocab) return 0;
    return h;
}

/* One row of the draft model's logits at the target's width; padding can never be drawn. */
static float *at_width(model_drafter *m, float *logits)
{
    if (!m->row) return logits;
    const int both = m->lm->vocab < m->vocab ? m->lm->vocab : m->vocab;
    memcpy(m->row, logits, (size_t)both * sizeof *m->row);
    for (int i = both; i < m->vocab; i++) m->row[i] = -INFINITY;
    return m->row;
}

/* The k most probable tokens, each with its own point row. */
static void grow_fixed(model_drafter *m, const wg_seq *s, wg_tree *t, int node, float *logits, wg_rows *q)
{
    const wg_ops *ops = m->base.env->ops;
    wg_sampler_penalise(&m->sampler, logits, &(wg_prefix){s->token, s->n, t, node}); /* for good: these logits are ours */
    /* How sure the model is, at temperature 1: there the largest weight of the softmax is 1. */
    if (m->weight && ops->softmax64(logits, m->vocab, 1, m->weight) * m->opt.p_min > 1) return;
    for (int k = m->children[wg_tree_depth(t, node)]; k > 0; k--) {
        const int x = ops->argmax(logits, m->vocab);
        if (x < 0 || logits[x] == -INFINITY) return;
        logits[x] = -INFINITY;
        const int row = wg_rows_push(q);
        if (row >= 0) q->point[row] = x;
        wg_tree_push(t, node, x, row);
    }
}

/* Draws from the row without what was drawn before: at addresses of their own, or all from one race. */
static void grow_distinct(model_drafter *m, const wg_seq *s, wg_tree *t, int node, wg_rows *q, int row)
{
    const wg_chance at = wg_chance_at(&s->chance, wg_tree_depth(t, node)); /* the children's position */
    const double *drawn = wg_rows_dense(q, row, m->weight);
    if (drawn != m->weight) memcpy(m->weight, drawn, (size_t)m->vocab * sizeof *m->weight);
    for (int k = m->children[wg_tree_depth(t, node)]; k > 0; k--) {
        int left = 0;
        while (left < m->vocab && !(m->weight[left] > 0)) left++;
        if (left == m->vocab) return;
        const int x = m->law == WG_LAW_COUPLED ? wg_chance_race(&at, WG_DRAW_COUPLED, m->weight, m->vocab)
                                               : wg_chance_pick(&s->chance, WG_DRAW_DRAFT, t->n, m->weight, m->vocab);
        m->weight[x] = 0;
        wg_tree_push(t, node, x, row);
    }
}

/* Draws from the row. */
static void grow_drawn(model_drafter *m, const wg_seq *s, wg_tree *t, int node, float *logits, wg_rows *q)
{
    const int row = wg_rows_push(q);
    if (row < 0) return;
    wg_sampler_row_after(&m->sampler, logits, &(wg_prefix){s->token, s->n, t, node}, q, row);
    if (m->opt.p_min > 0 && wg_rows_prob(q, row, wg_rows_argmax(q, row)) < m->opt.p_min) return;
    if (m->law != WG_LAW_IID) {
        grow_distinct(m, s, t, node, q, row);
        return;
    }
    for (int k = m->children[wg_tree_depth(t, node)]; k > 0; k--)
        wg_tree_push(t, node, wg_rows_pick(q, row, &s->chance, WG_DRAW_DRAFT, t->n), row);
}

/* Runs the pass that has been gathered and gives the nodes that asked their children. */
static wg_status flush(model_drafter *m, wg_seq *const *seq, wg_tree *out, wg_rows *q, wg_error *err)
{
    if (m->batch.n == 0) return WG_OK;
    WG_TRY(wg_lm_forward(m->lm, &m->batch, m->logits, err));
    for (int i = 0; i < m->batch.logits; i++) {
        const asker a = m->asker[i];
        float *logits = at_width(m, m->logits + (size_t)i * (size_t)m->lm->vocab);
        if (m->law == WG_LAW_FIXED)
            grow_fixed(m, seq[a.seq], &out[a.seq], a.node, logits, q);
        else
            grow_drawn(m, seq[a.seq], &out[a.seq], a.node, logits, q);
    }
    wg_batch_clear(&m->batch);
    return WG_OK;
}

/* Depth 0: what the model has not seen of sequence i, and its root. */
static wg_status feed_root(model_drafter *m, wg_seq *const *seq, int i, wg_tree *out, wg_rows *q, wg_error *err)
{
    const wg_seq *s = seq[i];
    for (int at = wg_kv_valid(s->kv, m->lm->space); at < s->n;) {
        if (m->batch.n == m->batch.cap) WG_TRY(flush(m, seq, out, q, err));
        const int room = m->batch.cap - m->batch.n, left = s->n - at, take = left < room ? left : room;
        const int row = wg_batch_chain(&m->batch, s->kv, at, s->token + at, take, take == left);
        if (row >= 0) m->asker[row] = (asker){i, 0};
        at += take;
    }
    return WG_OK;
}

/* Depth `depth` > 0 of sequence i: the nodes first .. end-1. Nothing can follow an end-of-generation token. */
static wg_status feed_nodes(model_drafter *m, wg_seq *const *seq, int i, int depth, int end, wg_tree *out, wg_rows *q,
                            wg_error *err)
{
    for (int node = m->first[i]; node < end; node++) {
        const int32_t x = out[i].token[node];
        if (x >= m->lm->vocab || wg_env_is_eog(m->base.env, x)) continue;
        if (m->batch.n == m->batch.cap) WG_TRY(flush(m, seq, out, q, err));
        m->asker[wg_batch_node(&m->batch, seq[i]->kv, node, depth, out[i].anc[node], x, true)] = (asker){i, node};
    }
    return WG_OK;
}

static wg_status propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    model_drafter *m = (model_drafter *)d;
    wg_batch_clear(&m->batch);
    for (int i = 0; i < n; i++) {
        wg_tree_reset(&out[i], seq[i]->token[seq[i]->n - 1], m->law);
        m->height[i] = height_for(m, seq[i]);
        m->first[i] = 1;
        if (m->height[i]) WG_TRY(wg_kv_reserve(seq[i]->kv, m->nodes_above[m->height[i]], err));
    }
    for (int i = 0; i < n; i++)
        if (m->height[i]) WG_TRY(feed_root(m, seq, i, out, q, err));
    WG_TRY(flush(m, seq, out, q, err));
    for (int depth = 1; depth < m->levels; depth++) {
        for (int i = 0; i < n; i++) {
            const int end = out[i].n; /* nodes from here on are deeper */
            if (m->height[i] > depth) WG_TRY(feed_nodes(m, seq, i, depth, end, out, q, err));
            m->first[i] = end;
        }
        WG_TRY(flush(m, seq, out, q, err));
    }
    return WG_OK;
}

const wg_lm *wg_drafter_lm(const wg_drafter *d)
{
    return d->class == &wg_drafter_model ? ((const model_drafter *)d)->lm : NULL;
}

const wg_drafter_class wg_drafter_model = {
    .name = "model",
    .doc = "a smaller language model with the target's vocabulary: chains and trees",
    .size = sizeof(model_drafter),
    .options = options,
    .options_at = offsetof(model_drafter, opt),
    .laws = WG_LAWS,
    .laws_for = laws_for,
    .open = open,
    .propose = propose,
    .close = close,
};
