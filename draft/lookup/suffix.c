/* SPDX-License-Identifier: MIT
 * SuffixDecoding (Oliaro et al. 2024): drafts the tokens that most often followed earlier occurrences of the text's longest
 * suffixes, in this sequence (prompt and output) and in answers to finished requests. It suits texts that repeat: agents, code
 * edits, extraction, repeated questions.
 *
 * Every suffix of at most `depth` tokens that occurred before is a candidate. A match of m tokens allows a draft of min(k,
 * factor m + offset) tokens: longer matches get longer drafts. The draft follows the most frequent token (a chain), or, with
 * `tree`, grows by the frontier node of the largest path probability; it ends where that falls below p_min. The sum of the path
 * probabilities is the expected number of accepted tokens; the candidate with the largest sum wins, among equals the longer
 * match, then the sequence's own text.
 *
 * Statistics are suffix automata with counts instead of suffix trees: one per sequence, allocated for its whole length at its
 * first draft (without memory it learns nothing and the answers of others still serve), and two of half of memory_mb for
 * finished answers. When the younger is full, the older is emptied and takes its place: so at least the last half of the
 * memory's answers is kept, and memory never grows. An answer is learned when its sequence is closed or extended, 1 us per
 * token. Law FIXED: a function of the texts; rows of q are one-hot. */
#include "draft/draft.h"

#include "core/base/mem.h"
#include "draft/lookup/automaton.h"
#include "draft/one_hot.h"

typedef struct suffix_options {
    int k, depth, n_min, memory_mb;
    double factor, offset, p_min;
    bool tree;
} suffix_options;

/* The longest suffix of the text read so far, of at most `depth` tokens, that occurs in an automaton. */
typedef struct match {
    int state, len;
    int done; /* tokens of the text read so far */
} match;

typedef struct local {
    wg_automaton automaton;
    int done;         /* tokens of the sequence read so far */
    int room;         /* capacity of own in tokens; 0: not allocated */
    int answer;       /* first token of the answer that is not learned yet */
    match answers[2]; /* matches in the automata of answers, found after `lessons` lessons */
    long lessons;
} local;

/* A partial draft; node 0 is the root. */
typedef struct draft {
    int n;
    double score;
    int32_t token[WG_TREE_MAX];
    int16_t parent[WG_TREE_MAX];
} draft;

/* A child that may be drafted. */
typedef struct leaf {
    int edge, parent, depth;
    double p; /* probability of the path to it */
} leaf;
enum { LEAVES = WG_TREE_MAX * WG_AUTOMATON_TOP };

typedef struct suffix_drafter {
    wg_drafter base;
    suffix_options opt;
    local *local;           /* (max_batch) */
    wg_automaton answer[2]; /* answers of finished requests; answer[young] is being filled */
    int young;
    long lessons; /* answers learned */
    draft best, trial;
    leaf leaf[LEAVES];
} suffix_drafter;

static const wg_option options[] = {
    WG_OPTION_INT(suffix_options, k, 24, 1, WG_DRAFT_MAX,
                  "most tokens per draft (24, and the other defaults: Arctic Inference, as in vLLM)"),
    WG_OPTION_INT(suffix_options, depth, 24, 1, 64, "longest match looked for"),
    WG_OPTION_INT(suffix_options, n_min, 1, 1, 64, "shortest match that is used"),
    WG_OPTION_FLOAT(suffix_options, factor, 1, 0, 64, "draft tokens per token of the match"),
    WG_OPTION_FLOAT(suffix_options, offset, 0, -64, 64, "draft tokens added to that"),
    WG_OPTION_FLOAT(suffix_options, p_min, 0.1, 0, 1, "least estimated probability of a drafted token's path"),
    WG_OPTION_BOOL(suffix_options, tree, false, "draft the most probable continuations as a tree, not one as a chain"),
    WG_OPTION_INT(suffix_options, memory_mb, 64, 0, 65536, "memory for finished answers; 0: none are kept"),
    WG_OPTION_END,
};

static wg_status open(wg_drafter *base, const wg_env *env, wg_error *err)
{
    suffix_drafter *d = (suffix_drafter *)base;
    if (d->opt.n_min > d->opt.depth)
        return wg_fail(err, WG_ECONFIG, "drafter suffix: n_min=%d is longer than depth=%d; no match could be found",
                       d->opt.n_min, d->opt.depth);
    d->local = wg_calloc((size_t)env->max_batch, sizeof *d->local);
    if (!d->local) return wg_nomem(err, (size_t)env->max_batch * sizeof *d->local, "the drafter suffix");
    const size_t half = ((size_t)d->opt.memory_mb << 20) / 2;
    for (int i = 0; half && i < 2; i++)
        if (!wg_automaton_open(&d->answer[i], wg_automaton_cap(half, d->opt.depth), d->opt.depth))
            return wg_nomem(err, half, "finished answers; lower the drafter's memory_mb?");
    return WG_OK;
}

static void close(wg_drafter *base)
{
    suffix_drafter *d = (suffix_drafter *)base;
    for (int i = 0; d->local && i < base->env->max_batch; i++) wg_automaton_close(&d->local[i].automaton);
    wg_free(d->local);
    for (int i = 0; i < 2; i++) wg_automaton_close(&d->answer[i]);
}

/* ---- learning */

/* Learns tokens from .. to-1, a finished answer. */
static void learn_answer(suffix_drafter *d, const wg_seq *s, int from, int to)
{
    wg_automaton *a = &d->answer[d->young];
    if (a->cap == 0) return;
    d->lessons++;
    if (to - from > a->cap) from = to - a->cap;
    if (to - from > a->cap - a->tokens) {
        a = &d->answer[d->young ^= 1];
        wg_automaton_clear(a);
    }
    wg_automaton_begin(a);
    for (int i = from; i < to; i++) wg_automaton_put(a, s->token[i], 0);
}

static wg_automaton *learn_own(suffix_drafter *d, const wg_seq *s)
{
    local *l = &d->local[s->slot];
    if (l->answer && l->answer < s->asked) learn_answer(d, s, l->answer, s->asked); /* another question was added */
    l->answer = s->prompt;
    if (l->room < s->cap) { /* a new sequence, or an extended one (wg_seq_extend), which is read again */
        wg_automaton_close(&l->automaton);
        l->done = 0;
        l->room = s->cap;
        wg_automaton_open(&l->automaton, s->cap, d->opt.depth);
    }
    if (!l->automaton.cap) return NULL;
    while (l->done < s->n && wg_automaton_put(&l->automaton, s->token[l->done], l->done)) l->done++;
    return &l->automaton;
}

static void forget(wg_drafter *base, const wg_seq *s)
{
    suffix_drafter *d = (suffix_drafter *)base;
    if (s->finish != WG_RUNNING) learn_answer(d, s, s->prompt, s->n); /* an aborted request has no answer */
    wg_automaton_close(&d->local[s->slot].automaton);
    d->local[s->slot] = (local){ 0 };
}

/* ---- drafting */

/* Adds the likely children of a state to the frontier. */
static int spread(suffix_drafter *d, const wg_automaton *a, int state, leaf from, int leaves)
{
    const wg_automaton_counts *c = &a->counts[state];
    const int width = d->opt.tree ? WG_AUTOMATON_TOP : 1;
    for (int i = 0; i < width && c->top[i] >= 0 && leaves < LEAVES; i++) {
        const double p = from.p * (double)a->edge[c->top[i]].count / (double)c->out;
        if (p < d->opt.p_min) break; /* the others are rarer */
        d->leaf[leaves++] = (leaf){ c->top[i], from.parent, from.depth, p };
    }
    return leaves;
}

/* Grows the draft that follows a state, of at most `budget` tokens and depth `room`, always by the most probable leaf. */
static void grow(suffix_drafter *d, const wg_automaton *a, int state, int budget, int room, draft *t)
{
    t->n = 1;
    t->score = 0;
    int leaves = spread(d, a, state, (leaf){ .parent = 0, .depth = 1, .p = 1 }, 0);
    while (leaves > 0 && t->n <= budget) {
        int best = 0;
        for (int i = 1; i < leaves; i++)
            if (d->leaf[i].p > d->leaf[best].p) best = i;
        const leaf l = d->leaf[best];
        const wg_automaton_edge *e = &a->edge[l.edge];
        d->leaf[best] = d->leaf[--leaves];
        t->token[t->n] = e->token;
        t->parent[t->n] = (int16_t)l.parent;
        t->score += l.p;
        const leaf below = { .parent = t->n++, .depth = l.depth + 1, .p = l.p };
        if (l.depth < room && !wg_env_is_eog(d->base.env, e->token))
            leaves = spread(d, a, wg_automaton_near(a, e->to), below, leaves);
    }
}

/* Tries the candidates of one automaton: the state of the longest match and those of its links. */
static void try_all(suffix_drafter *d, const wg_automaton *a, int state, int len, int room)
{
    for (; state > 0 && len >= d->opt.n_min; state = a->state[state].link, len = a->state[state].len) {
        if (a->counts[state].out == 0) continue; /* it has no continuation */
        const double want = d->opt.factor * len + d->opt.offset;
        const int most = d->opt.k < WG_TREE_MAX - 1 ? d->opt.k : WG_TREE_MAX - 1, budget = want < most ? (int)want : most;
        if (budget <= d->best.score) continue; /* a path probability is at most 1 */
        grow(d, a, state, budget, room, &d->trial);
        if (d->trial.score > d->best.score) d->best = d->trial;
    }
}

/* An empty match that begins before the last `depth` tokens. */
static match no_match(const suffix_drafter *d, const wg_seq *s)
{
    return (match){ .done = s->n > d->opt.depth ? s->n - d->opt.depth : 0 };
}

/* Tries the longest suffix that occurs in finished answers; the match is found anew after each lesson, else continued by new
 * tokens. */
static void try_answers(suffix_drafter *d, int which, const wg_seq *s, int room)
{
    const wg_automaton *a = &d->answer[which];
    match *m = &d->local[s->slot].answers[which];
    if (!a->tokens) return;
    if (m->done < s->n - d->opt.depth) *m = no_match(d, s);
    while (m->done < s->n) {
        m->state = wg_automaton_step(a, m->state, &m->len, s->token[m->done++]);
        if (m->len > d->opt.depth) m->len = d->opt.depth;
        if (m->len == d->opt.depth) m->state = wg_automaton_near(a, m->state);
    }
    try_all(d, a, m->state, m->len, room);
}

static wg_status propose(wg_drafter *base, wg_seq *const *seq, int n, wg_tree *out, wg_rows *q, wg_error *err)
{
    suffix_drafter *d = (suffix_drafter *)base;
    (void)err;
    for (int i = 0; i < n; i++) {
        const wg_seq *s = seq[i];
        wg_tree_reset(&out[i], s->token[s->n - 1], WG_LAW_FIXED);
        const int room = wg_one_hot_depth(s, d->opt.k);
        const wg_automaton *own = learn_own(d, s);
        if (room == 0) continue;
        d->best.n = 1;
        d->best.score = 0;
        if (own) {
            const int len = own->state[own->near].len;
            try_all(d, own, own->near, len < d->opt.depth ? len : d->opt.depth, room);
        }
        local *l = &d->local[s->slot];
        if (l->lessons != d->lessons) l->answers[0] = l->answers[1] = no_match(d, s);
        l->lessons = d->lessons;
        try_answers(d, d->young, s, room);
        try_answers(d, !d->young, s, room);
        out[i].score = d->best.score;
        for (int k = 1; k < d->best.n; k++) wg_one_hot_push(&out[i], d->best.parent[k], d->best.token[k], q);
    }
    return WG_OK;
}

const wg_drafter_class wg_drafter_suffix = {
    .name = "suffix",
    .doc = "SuffixDecoding: what most often followed the longest suffixes, here and in finished answers; chains and trees",
    .size = sizeof(suffix_drafter),
    .options = options,
    .options_at = offsetof(suffix_drafter, opt),
    .test_options =
        (const wg_drafter_test[]){
            { .options = "factor=4,p_min=0.01,tree=true,memory_mb=1", .siblings = true },
            { .options = "factor=2" },
            { .options = "factor=3,tree=true,depth=6,memory_mb=0", .siblings = true, .own_request = true },
            { .options = NULL },
        },
    WG_LOOKUP_MEMBERS,
    .forget = forget,
    .cross_request = true,
};
