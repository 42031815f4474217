/* SPDX-License-Identifier: MIT
 * Drafts of a language model (lm_draft.h): chains (Leviathan et al. 2023, Chen et al. 2023) and trees of sampled siblings
 * (SpecInfer), of any shape of draft/lm/grow.h: the option `grow`.
 *
 * Law. By `siblings` the children of a node are independent draws from its q row (iid), draws each without the earlier ones
 * (without_replacement), both at the step's own position with the node's number as index; or the first finishers of a race over
 * q on the times of the children's position, which the rule `coupled` uses as well (coupled). At draft temperature 0 the
 * children are the k most probable tokens (FIXED). The law is determined at open, so it never depends on a draw. If q has fewer
 * tokens than children are wanted, distinct children end early. A best-first tree takes the most probable tokens at any
 * temperature: it is FIXED, with one-hot rows.
 *
 * Passes. All sequences' nodes of one depth are rows of one pass, and leaves are never fed, so a draft of depth n costs n
 * passes. Committed tokens that the model has not read (at first the whole prompt; the last accepted token after full
 * acceptance) are rows of the first pass, with the roots. So this space may be shorter than the sequence after a commit; its
 * valid length says how long it is.
 *
 * Vocabulary. The nodes' tokens are always the target's ids. A model that proposes only some of them (draft_vocab.h) has a
 * shorter row of logits, which is scattered to the target's ids and completed for tokens of the text (text_words.h); a model
 * with another tokenizer reads the text in its own tokens, in a cache of its own (retokenizer.h). The input of a pass is
 * `text`, which is the sequence itself where the vocabulary is the same.
 *
 * Whether a node gets children depends on its prefix, its q row, the past and the remaining room, never on a later draw
 * (methods.md, L3); draft/length/length.h refuses the one policy that violates this unless the rule allows it.
 *
 * Context. A text longer than the model's context C is read from token wg_window_base(n) on, which has position 0: when the
 * text exceeds C tokens, the model reads the last half again and continues from there. The beginning depends on the number of
 * tokens alone, so q stays a function of the text, whatever the batch and earlier drafts. The space is restarted at that slot.
 * A model with another tokenizer reads no text longer than C of its tokens. */
#include "draft/draft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/engine/seq_rows.h"
#include "draft/lm/lm_draft.h"

enum { PASS_ROWS = WG_DRAFT_ROWS };
enum { GROW_CHAIN, GROW_KARY, GROW_FILE, GROW_SEQUOIA, GROW_BEST };

typedef wg_lm_drafter model_drafter;
typedef wg_logit_row logit_row;

const char *const wg_growth_shapes[] = { "chain", "kary", "file", "sequoia", "best_first", NULL };
const char *const wg_growth_siblings[] = { "iid", "without_replacement", "coupled", NULL };
const wg_option wg_growth_option_rows[] = { WG_GROWTH_OPTIONS, WG_OPTION_END };
static const wg_sibling_law sibling_laws[] = { WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT, WG_LAW_COUPLED };

/* ---- open */

static wg_status shape(model_drafter *m, wg_error *err)
{
    const wg_growth *o = &m->opt;
    double accept[WG_ACCEPT_MAX];
    int n;
    wg_status s = WG_OK;
    switch (o->grow == GROW_CHAIN && *o->tree ? GROW_KARY : o->grow) {
    case GROW_CHAIN: s = wg_shape_chain(&m->shape, o->length, err); break;
    case GROW_KARY: s = wg_shape_kary(&m->shape, o->tree, err); break;
    case GROW_FILE: s = wg_shape_file(&m->shape, o->tree, err); break;
    case GROW_SEQUOIA:
        s = wg_accept_parse(o->accept, accept, &n, err);
        if (!s) s = wg_shape_sequoia(&m->shape, accept, n, o->budget, o->length, err);
        break;
    case GROW_BEST: break;
    }
    m->levels = o->grow == GROW_BEST ? o->length : m->shape.levels;
    if (m->levels > WG_TREE_MAX - 1) m->levels = WG_TREE_MAX - 1;
    return s ? wg_fail_in(err, s, "drafter %s", m->base.class->name) : WG_OK;
}

/* Draft tokens of a best-first tree. */
static int budget(const model_drafter *m) { return m->opt.budget < WG_TREE_MAX - 1 ? m->opt.budget : WG_TREE_MAX - 1; }

/* The most nodes of one depth that get children. */
static int widest(const model_drafter *m)
{
    int most = 1;
    if (m->opt.grow == GROW_BEST) return m->opt.width && m->opt.width < budget(m) ? m->opt.width : budget(m);
    for (int depth = 0; depth < m->levels; depth++) {
        int n = 0;
        for (int i = m->shape.above[depth]; i < m->shape.above[depth + 1]; i++) n += m->shape.children[i] > 0;
        if (n > most) most = n;
    }
    return most;
}

static wg_status open_buffers(model_drafter *m, int rows, wg_error *err)
{
    const wg_env *env = m->base.env;
    const size_t vocab = (size_t)m->outputs;
    size_t asking = (size_t)widest(m) * (size_t)env->max_batch;
    if (asking > (size_t)rows) asking = (size_t)rows;
    WG_TRY(wg_batch_open(&m->batch, rows, err));
    m->logit_row = wg_calloc((size_t)rows, sizeof *m->logit_row);
    m->height = wg_calloc((size_t)env->max_batch, sizeof *m->height);
    m->first = wg_calloc((size_t)env->max_batch, sizeof *m->first);
    m->logits = wg_calloc(asking * vocab, sizeof *m->logits);
    m->place = wg_calloc((size_t)env->max_batch, sizeof *m->place);
    if (m->opt.grow == GROW_BEST && !(m->best = wg_calloc((size_t)env->max_batch, sizeof *m->best)))
        return wg_nomem(err, (size_t)env->max_batch * sizeof *m->best, "best-first trees");
    m->text = wg_calloc((size_t)env->max_batch, sizeof *m->text);
    if (!m->logit_row || !m->height || !m->first || !m->place || !m->logits || !m->text)
        return wg_nomem(err, asking * vocab * sizeof *m->logits, "the logits of a draft model");
    if (m->words || m->outputs != m->vocab) {
        m->row = wg_calloc((size_t)m->vocab, sizeof *m->row);
        if (!m->row) return wg_nomem(err, (size_t)m->vocab * sizeof *m->row, "a row of draft logits");
    }
    const bool distinct = m->law == WG_LAW_WITHOUT_REPLACEMENT || m->law == WG_LAW_COUPLED;
    const wg_length_class *policy = &wg_length_classes[m->opt.length_policy.policy];
    if (m->best || distinct || (m->law == WG_LAW_FIXED && (m->opt.p_min > 0 || policy->stops || policy->drops))) {
        m->weight = wg_calloc((size_t)m->vocab, sizeof *m->weight);
        if (!m->weight) return wg_nomem(err, (size_t)m->vocab * sizeof *m->weight, "a row of draft probabilities");
    }
    return WG_OK;
}

/* The draft model's sampler chain for a chain of the target, of the engine (from which the law follows) or of a request. */
static wg_sampling chain_for(const wg_growth *o, const wg_sampling *target)
{
    wg_sampling s = *target;
    if (o->temperature >= 0) s.temperature = o->temperature;
    if (!o->truncate) s.top_k = 0, s.top_p = 1, s.min_p = 0;
    return s;
}

unsigned wg_growth_laws(const void *options, const wg_sampling *target)
{
    const wg_growth *o = options;
    const wg_sampling s = chain_for(o, target);
    return s.temperature > 0 && s.top_k != 1 && o->grow != GROW_BEST ? sibling_laws[o->siblings] : WG_LAW_FIXED;
}

wg_status wg_lm_drafter_begin(wg_lm_drafter *m, const wg_growth *opt, const wg_env *env, wg_error *err)
{
    m->opt = *opt;
    WG_TRY(shape(m, err));
    m->law = (wg_sibling_law)wg_growth_laws(&m->opt, env->sampling);
    m->vocab = env->target->vocab;
    return WG_OK;
}

wg_status wg_lm_drafter_open(wg_lm_drafter *m, wg_lm *lm, int rows, wg_error *err)
{
    const wg_env *env = m->base.env;
    const wg_sampling sampling = chain_for(&m->opt, env->sampling);
    m->inverse = m->opt.grow == GROW_BEST && isfinite(1 / sampling.temperature) ? 1 / sampling.temperature : 1;
    m->lm = lm;
    if (m->outputs == 0) m->outputs = lm->vocab;
    if (m->rows.pass && m->levels > m->rows.levels) m->levels = m->rows.levels;
    WG_TRY(open_buffers(m, rows < PASS_ROWS ? rows : PASS_ROWS, err));
    WG_TRY(wg_sampler_open(&m->sampler, &sampling, env->ops, m->vocab, err));
    const unsigned gives = WG_SEES_Q | (m->rows.survival ? WG_SEES_HEAD : 0);
    return wg_length_open(&m->length, &m->opt.length_policy, m->base.class->name, m->levels, gives, m->lm, env, err);
}

void wg_lm_drafter_close(wg_lm_drafter *m)
{
    wg_length_close(&m->length);
    wg_sampler_close(&m->sampler);
    wg_batch_close(&m->batch);
    wg_free(m->logit_row);
    wg_free(m->height);
    wg_free(m->first);
    wg_free(m->place);
    wg_free(m->best);
    wg_free(m->logits);
    wg_free(m->row);
    wg_free(m->weight);
    wg_free(m->text);
}

/* ---- propose */

/* The tokens of sequence i that the draft model reads. */
static wg_status read_text(model_drafter *m, const wg_seq *s, int i, wg_error *err)
{
    wg_retokenizer_text *t;
    const int base = wg_window_base(s->n, m->lm->context);
    m->text[i] = (wg_reading){ s->kv, s->token, s->n, base > m->begins ? base : m->begins };
    if (m->added) wg_text_words_read(m->added, s);
    if (!m->reader) return WG_OK;
    WG_TRY(wg_retokenizer_follow(m->reader, s, &t, err));
    m->text[i] = (wg_reading){ t->kv, t->own, t->full ? m->lm->context + 1 : t->n, 0 };
    return WG_OK;
}

/* The draft model's id of a token that it proposed; -1: it has none. Models with added tokens have the target's ids. */
static int32_t own_id(const model_drafter *m, int32_t token) { return m->words && !m->added ? m->words->own[token] : token; }

/* Records the draft in the model's tokens for its cache. */
static void remember(model_drafter *m, const wg_seq *s, const wg_tree *t)
{
    wg_tree *own = &m->reader->text[s->slot].tree;
    own->n = t->n;
    memcpy(own->parent, t->parent, (size_t)t->n * sizeof *t->parent);
    for (int node = 1; node < t->n; node++) own->token[node] = own_id(m, t->token[node]);
}

/* The largest depth of a sequence's draft: `next` takes the last place before the limit, the deepest fed node (at depth
 * height-1) must fit the draft model's context, and so must every token fed in its vocabulary. *why: the reason if nothing is
 * drafted. */
static int height_for(model_drafter *m, const wg_seq *s, const wg_reading *text, wg_no_draft *why)
{
    const int context = m->lm->context - (text->n - text->base) + 1;
    int h = wg_length_plan(&m->length, s);
    if (h <= 0) *why = WG_NO_DRAFT_POLICY;
    else if (context <= 0) *why = WG_NO_DRAFT_CONTEXT;
    if (h > wg_seq_room(s)) h = wg_seq_room(s);
    if (h > context) h = context;
    if (h <= 0 || text->n <= m->begins) return 0;
    if (text->base != wg_kv_first(text->kv, m->lm->space) && !wg_kv_restart(text->kv, m->lm->space, text->base)) {
        *why = WG_NO_DRAFT_CONTEXT;
        return 0;
    }
    for (int i = wg_kv_valid(text->kv, m->lm->space); i < text->n; i++)
        if (text->token[i] >= m->lm->vocab) return 0;
    *why = WG_NO_DRAFT_POLICY; /* in case it or p_min ends the draft before its first token */
    return h;
}

/* A row of the draft model's logits at the target's width; padding gets -inf. */
static float *at_width(model_drafter *m, float *logits)
{
    if (!m->row) return logits;
    if (m->words) {
        wg_draft_vocab_spread(m->words, logits, m->row);
        return m->row;
    }
    const int both = m->outputs < m->vocab ? m->outputs : m->vocab;
    memcpy(m->row, logits, (size_t)both * sizeof *m->row);
    for (int i = both; i < m->vocab; i++) m->row[i] = -INFINITY;
    return m->row;
}

/* Adds a child as child k of its parent in the shape. */
static void push(model_drafter *m, int seq, wg_tree *t, int node, int k, int32_t token, int qrow)
{
    const int child = wg_tree_push(t, node, token, qrow);
    if (child >= 0) m->place[seq][child] = (int16_t)(m->shape.first[m->place[seq][node]] + k);
}

/* Removes the most probable token from the logits and returns it; -1 when there is none. */
static int pop_best(const model_drafter *m, float *logits)
{
    const int x = m->base.env->ops->argmax(logits, m->vocab);
    if (x < 0 || logits[x] == -INFINITY) return -1;
    logits[x] = -INFINITY;
    return x;
}

/* Whether a node with these weights gets no children: p_min bounds the probability of the best token, whose weight is 1. */
static bool unsure(const model_drafter *m, const wg_seq *s, double sum)
{
    return sum * m->opt.p_min > 1 || wg_length_stops(&m->length, s, m->weight, m->vocab, sum);
}

/* The k most probable tokens, each with its own one-hot row. */
static void grow_fixed(model_drafter *m, const wg_seq *s, int seq, wg_tree *t, int node, float *logits, wg_rows *q)
{
    const double sum = m->weight ? m->base.env->ops->softmax64(logits, m->vocab, m->inverse, m->weight) : 1;
    if (m->weight && unsure(m, s, sum)) return;
    for (int k = 0, x; k < m->shape.children[m->place[seq][node]] && (x = pop_best(m, logits)) >= 0; k++) {
        if (m->weight && wg_length_drops(&m->length, s, x, m->weight[x] / sum)) return;
        const int row = wg_rows_push(q);
        if (row >= 0) q->point[row] = x;
        push(m, seq, t, node, k, x, row);
    }
}

/* Adds candidates for the best-first tree, while they can still be among the best. */
static void grow_best(model_drafter *m, const wg_seq *s, wg_best *b, int node, float *logits)
{
    const double sum = m->base.env->ops->softmax64(logits, m->vocab, m->inverse, m->weight), floor = wg_best_floor(b);
    if (unsure(m, s, sum)) return;
    for (int k = widest(m), x; k > 0 && (x = pop_best(m, logits)) >= 0; k--) {
        const double value = b->value[node] * (m->weight[x] / sum);
        if (value <= floor || wg_length_drops(&m->length, s, x, m->weight[x] / sum)) return;
        wg_best_offer(b, node, x, value);
    }
}

/* Draws distinct tokens: one after another at separate addresses, or by the races of the rule. */
static void grow_distinct(model_drafter *m, const wg_seq *s, int seq, wg_tree *t, int node, wg_rows *q, int row)
{
    const wg_chance at = wg_chance_at(&s->chance, wg_tree_depth(t, node)); /* the children's position */
    const double *drawn = wg_rows_dense(q, row, m->weight);
    const int children = m->shape.children[m->place[seq][node]];
    if (drawn != m->weight) memcpy(m->weight, drawn, (size_t)m->vocab * sizeof *m->weight);
    int number = 0; /* number of children, at most the tokens that q can draw */
    for (int x = 0; x < m->vocab && number < children; x++) number += m->weight[x] > 0;
    wg_tree_group(t, node, number);
    for (int k = 0; k < number; k++) {
        const wg_lists lists = wg_lists_dealt(k, children, m->base.env->races);
        const int x = m->law == WG_LAW_COUPLED ? wg_chance_race(&at, WG_DRAW_COUPLED, lists, NULL, m->weight, m->vocab)
                                               : wg_chance_pick(&s->chance, WG_DRAW_DRAFT, t->n, m->weight, m->vocab);
        m->weight[x] = 0;
        if (wg_length_drops(&m->length, s, x, wg_rows_prob(q, row, x))) return;
        push(m, seq, t, node, k, x, row);
    }
}

/* The sampler of q: the sequence's, with the temperature and the truncation of the options. */
static wg_sampler sampler_for(const model_drafter *m, const wg_seq *s)
{
    wg_sampler sampler = wg_seq_sampler(s, &m->sampler);
    sampler.sampling = chain_for(&m->opt, &sampler.sampling);
    return sampler;
}

/* Draws children independently from the row. */
static void grow_drawn(model_drafter *m, const wg_seq *s, int seq, wg_tree *t, int node, float *logits, wg_rows *q)
{
    const int row = wg_rows_push(q);
    if (row < 0) return;
    wg_sampler sampler = sampler_for(m, s);
    const wg_prefix prefix = wg_seq_prefix(s, t, node);
    wg_sampler_row_after(&sampler, logits, &prefix, q, row);
    if (m->added) wg_text_words_support(m->added, s, q, row);
    else if (m->words) wg_draft_vocab_support(m->words, q, row);
    if (m->opt.p_min > 0 && wg_rows_prob(q, row, wg_rows_argmax(q, row)) < m->opt.p_min) return;
    if (wg_length_stops(&m->length, s, q->point[row] < 0 ? wg_rows_at(q, row) : NULL, m->vocab, 1)) return;
    if (m->law != WG_LAW_IID) {
        grow_distinct(m, s, seq, t, node, q, row);
        return;
    }
    wg_tree_group(t, node, m->shape.children[m->place[seq][node]]);
    for (int k = 0; k < m->shape.children[m->place[seq][node]]; k++) {
        const int32_t x = wg_rows_pick(q, row, &s->chance, WG_DRAW_DRAFT, t->n);
        if (wg_length_drops(&m->length, s, x, wg_rows_prob(q, row, x))) return; /* its address is used up */
        push(m, seq, t, node, k, x, row);
    }
}

static void grow(model_drafter *m, const wg_seq *s, int seq, wg_tree *t, int node, float *logits, wg_rows *q)
{
    if (wg_length_asks(&m->length) && wg_length_halts(&m->length, s, m->rows.survival(m->rows.user, seq, t, node))) return;
    if (m->law != WG_LAW_FIXED) {
        grow_drawn(m, s, seq, t, node, logits, q);
        return;
    }
    wg_sampler sampler = sampler_for(m, s);
    const wg_prefix prefix = wg_seq_prefix(s, t, node);
    wg_sampler_penalise(&sampler, logits, &prefix); /* in place, since the buffer is the drafter's */
    if (m->best) grow_best(m, s, &m->best[seq], node, logits);
    else grow_fixed(m, s, seq, t, node, logits, q);
}

/* Runs the collected pass and creates the children of its nodes. */
static wg_status flush(model_drafter *m, wg_seq *const *seq, wg_tree *out, wg_rows *q, wg_error *err)
{
    if (m->batch.n == 0) return WG_OK;
    for (int i = 0; m->added && i < m->batch.logits && !m->batch.taps; i++)
        if (wg_text_words_any(m->added, seq[m->logit_row[i].seq])) m->batch.taps = m->added->taps;
    WG_TRY(wg_lm_forward(m->lm, &m->batch, m->logits, err));
    for (int i = 0; i < m->batch.logits; i++) {
        const logit_row a = m->logit_row[i];
        float *logits = at_width(m, m->logits + (size_t)i * (size_t)m->outputs);
        if (m->added) wg_text_words_logits(m->added, seq[a.seq], a.at, logits);
        grow(m, seq[a.seq], a.seq, &out[a.seq], a.node, logits, q);
    }
    wg_batch_clear(&m->batch);
    return WG_OK;
}

/* Depth 0: adds the tokens of sequence i that the model has not read, and its root. */
static wg_status feed_root(model_drafter *m, wg_seq *const *seq, int i, wg_tree *out, wg_rows *q, wg_error *err)
{
    const wg_reading *s = &m->text[i];
    for (int at = wg_kv_valid(s->kv, m->lm->space); at < s->n;) {
        if (m->batch.n == m->batch.cap) WG_TRY(flush(m, seq, out, q, err));
        const int room = m->batch.cap - m->batch.n, left = s->n - at, take = left < room ? left : room;
        const int from = m->batch.n, row = wg_batch_chain(&m->batch, s->kv, at, s->token + at, take, take == left);
        wg_batch_rebase(&m->batch, from, s->base);
        if (row >= 0) m->logit_row[row] = (logit_row){ i, 0, m->batch.n - 1 };
        at += take;
    }
    return WG_OK;
}

/* Adds a node of sequence i at depth > 0 to the pass, for its children, which it gets at once where all rows are there. Nothing
 * can follow an end-of-generation token. */
static wg_status feed_node(model_drafter *m, wg_seq *const *seq, int i, int node, wg_tree *out, wg_rows *q, wg_error *err)
{
    const int32_t x = out[i].token[node], own = own_id(m, x);
    if (own < 0 || own >= m->lm->vocab || wg_env_is_eog(m->base.env, x)) return WG_OK;
    if (m->batch.n == m->batch.cap) WG_TRY(flush(m, seq, out, q, err));
    const int depth = wg_tree_depth(&out[i], node), from = m->batch.n;
    if (m->rows.pass) {
        grow(m, seq[i], i, &out[i], node, at_width(m, m->rows.row(m->rows.user, i, &out[i], node)), q);
        return WG_OK;
    }
    const int row = wg_batch_node(&m->batch, m->text[i].kv, node, depth, out[i].anc[node], own, true);
    m->logit_row[row] = (logit_row){ i, node, from };
    wg_batch_rebase(&m->batch, from, m->text[i].base);
    return WG_OK;
}

/* Adds the next depth of a static shape: the nodes first .. end-1 that get children. */
static wg_status feed_level(model_drafter *m, wg_seq *const *seq, int i, int end, wg_tree *out, wg_rows *q, wg_error *err)
{
    for (int node = m->first[i]; node < end; node++)
        if (m->shape.children[m->place[i][node]] > 0) WG_TRY(feed_node(m, seq, i, node, out, q, err));
    return WG_OK;
}

/* Merges the level that was just fed into the best-first tree of sequence i, and feeds its newest nodes; or finishes the
 * tree. */
static wg_status next_best(model_drafter *m, wg_seq *const *seq, int i, int depth, wg_tree *out, wg_rows *q, wg_error *err)
{
    wg_best *b = &m->best[i];
    int16_t node[WG_TREE_MAX];
    double gain;
    const int kept = wg_best_tree(b, &out[i], node, &gain);
    if (!m->rows.pass) wg_kv_renumber(m->text[i].kv, m->lm->space, node, kept);
    if (m->states) wg_kv_renumber(m->text[i].kv, m->states, node, kept);
    if (depth == m->height[i] || gain <= m->opt.gain) {
        m->height[i] = 0;
        return WG_OK;
    }
    const int n = wg_best_pick(b, &out[i], widest(m), node);
    if (!m->rows.pass) WG_TRY(wg_kv_reserve(m->text[i].kv, out[i].n, err));
    for (int k = 0; k < n; k++) WG_TRY(feed_node(m, seq, i, node[k], out, q, err));
    return WG_OK;
}

static wg_status next_level(model_drafter *m, wg_seq *const *seq, int n, int depth, wg_tree *out, wg_rows *q, wg_error *err)
{
    for (int i = 0; i < n; i++) {
        const int end = out[i].n; /* nodes from here on are deeper */
        if (m->best && m->height[i] >= depth) WG_TRY(next_best(m, seq, i, depth, out, q, err));
        if (!m->best && m->height[i] > depth) WG_TRY(feed_level(m, seq, i, end, out, q, err));
        m->first[i] = end;
    }
    return flush(m, seq, out, q, err);
}

/* One-hot rows for a finished best-first tree, and its expected number of accepted tokens. */
static void finish_best(const wg_best *b, wg_tree *t, wg_rows *q)
{
    t->score = 0;
    for (int node = 1; node < t->n; node++) {
        t->qrow[node] = (int16_t)wg_rows_push(q);
        if (t->qrow[node] >= 0) q->point[t->qrow[node]] = t->token[node];
        t->score += b->value[node];
    }
}

/* The first level. */
static wg_status grow_roots(model_drafter *m, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    if (m->rows.pass) WG_TRY(m->rows.pass(m->rows.user, seq, m->height, n, err));
    for (int i = 0; i < n; i++) {
        if (m->height[i] == 0) continue;
        if (m->rows.pass) grow(m, seq[i], i, &out[i], 0, at_width(m, m->rows.row(m->rows.user, i, &out[i], 0)), q);
        else WG_TRY(wg_kv_reserve(m->text[i].kv, m->best ? 1 : m->shape.above[m->height[i]], err));
    }
    for (int i = 0; i < n && !m->rows.pass; i++)
        if (m->height[i]) WG_TRY(feed_root(m, seq, i, out, q, err));
    return flush(m, seq, out, q, err);
}

wg_status wg_lm_drafter_propose(wg_drafter *d, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    model_drafter *m = (model_drafter *)d;
    wg_batch_clear(&m->batch);
    for (int i = 0; i < n; i++) {
        wg_tree_reset(&out[i], seq[i]->token[seq[i]->n - 1], m->law);
        WG_TRY(read_text(m, seq[i], i, err));
        m->height[i] = height_for(m, seq[i], &m->text[i], &out[i].no_draft);
        m->first[i] = 1;
        m->place[i][0] = 0;
        if (m->best) wg_best_start(&m->best[i], budget(m) + 1);
    }
    WG_TRY(grow_roots(m, seq, n, out, q, err));
    for (int depth = 1; depth < m->levels + (m->best != NULL); depth++) WG_TRY(next_level(m, seq, n, depth, out, q, err));
    for (int i = 0; m->best && i < n; i++) finish_best(&m->best[i], &out[i], q);
    for (int i = 0; m->reader && i < n; i++) remember(m, seq[i], &out[i]);
    return WG_OK;
}

void wg_lm_drafter_observe(wg_drafter *d, const wg_seq *seq, const wg_tree *tree, const wg_path *path, wg_rows *target)
{
    (void)target;
    wg_length_learn(&((model_drafter *)d)->length, seq, tree, path);
}

int wg_lm_drafter_policy(const wg_drafter *d, const wg_seq *seq, double *out, int most)
{
    return wg_length_report(&((const model_drafter *)d)->length, seq, out, most);
}

void wg_lm_drafter_forget(wg_drafter *d, const wg_seq *seq)
{
    model_drafter *m = (model_drafter *)d;
    wg_length_forget(&m->length, seq);
    if (m->added) wg_text_words_forget(m->added, seq);
    if (m->reader) wg_retokenizer_forget(m->reader, seq);
}

const wg_lm *wg_lm_drafter_lm(const wg_drafter *d) { return ((const wg_lm_drafter *)d)->lm; }

int wg_lm_drafter_context(const wg_drafter *d, bool *slides)
{
    const wg_lm_drafter *m = (const wg_lm_drafter *)d;
    *slides = !m->reader && m->lm->context > 1;
    return m->lm->context;
}

void wg_lm_drafter_extent(const wg_drafter *d, int depth, wg_draft_extent *out)
{
    const wg_lm_drafter *m = (const wg_lm_drafter *)d;
    const int last = depth < m->levels ? depth : m->levels, rows = m->best ? m->opt.budget + 1 : m->shape.above[last + 1];
    *out = (wg_draft_extent){ .levels = m->levels, .rows = rows };
}

bool wg_lm_drafter_device_chain(const wg_drafter *d, wg_device_chain *out)
{
    const model_drafter *m = (const model_drafter *)d;
    const wg_sampling *s = &m->sampler.sampling;
    *out = (wg_device_chain){ .source = WG_CHAIN_MODEL,
                              .length = m->levels,
                              .lm = m->lm,
                              .law = m->law,
                              .temperature = s->temperature,
                              .top_p = s->top_p,
                              .min_p = s->min_p,
                              .top_k = s->top_k };
    return m->opt.grow == GROW_CHAIN && !*m->opt.tree && m->law != WG_LAW_COUPLED && m->opt.p_min == 0 &&
           m->opt.length_policy.policy == WG_LENGTH_FIXED && !m->words && !m->reader && m->outputs == m->vocab &&
           m->sampler.usual && !m->sampler.penalises;
}
