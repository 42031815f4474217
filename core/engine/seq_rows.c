/* SPDX-License-Identifier: MIT
 * Rows of a sequence (seq_rows.h). */
#include "core/engine/seq_rows.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/engine/engine_impl.h"

/* NOWHERE: state of nodes with p = 0, whose successors are never read. */
enum { NOWHERE = -3, BEFORE = -4 }; /* BEFORE: the constrained text has not begun */

/* A constraint of the text: its states, and the tokens that may follow them. */
typedef struct constrained {
    wg_acceptor *acceptor;     /* NULL: only the set `allowed` constrains */
    int from;                  /* first token of the constrained text; 0: the prompt's end */
    int32_t after;             /* the constraint begins behind this token; -1: at once */
    int origin, read;          /* tokens origin .. read - 1 have been read ... */
    int32_t state;             /* ... and lead to this state ... */
    uint32_t age;              /* ... of an acceptor of this age */
    int32_t node[WG_TREE_MAX]; /* states behind the nodes of the draft */
    size_t words;
    uint64_t *ends; /* (words) tokens that end a text */
    uint64_t *set;  /* (WG_TREE_MAX + 1, words) by node; the last row is for wg_seq_prefix */
} constrained;

struct wg_seq_rows {
    wg_sampler sampler; /* uses the memory of the engine's first sampler */
    wg_logit_bias *bias;
    uint64_t *allowed; /* NULL: all */
    constrained by;
    bool forced, logprobs;
    int top;
    wg_logprob *logprob; /* (WG_TREE_MAX, 1 + top) */
};

static void free_rows(struct wg_seq_rows *r)
{
    if (!r) return;
    wg_free(r->bias);
    wg_free(r->allowed);
    wg_free(r->by.ends);
    wg_free(r->by.set);
    wg_free(r->logprob);
    wg_free(r);
}

void wg_seq_rows_close(wg_seq *s)
{
    free_rows(s->rows);
    s->rows = NULL;
}

/* ---- options */

static wg_status check_tokens(const wg_engine *e, const wg_seq_sampling *how, wg_error *err)
{
    const int vocab = e->target->vocab;
    for (int i = 0; i < how->biases; i++) {
        if (how->bias[i].token < 0 || how->bias[i].token >= vocab)
            return wg_fail(err, WG_EINVAL, "logit_bias: token %d; the vocabulary is 0..%d", (int)how->bias[i].token, vocab - 1);
        if (!isfinite(how->bias[i].bias))
            return wg_fail(err, WG_EINVAL, "logit_bias: token %d has the bias %g; expected a finite number",
                           (int)how->bias[i].token, (double)how->bias[i].bias);
    }
    for (int i = 0; i < how->n_allowed; i++)
        if (how->allowed[i] < 0 || how->allowed[i] >= vocab)
            return wg_fail(err, WG_EINVAL, "allowed tokens: token %d; the vocabulary is 0..%d", (int)how->allowed[i],
                           vocab - 1);
    if (how->top < 0 || how->top > WG_LOGPROBS_MAX)
        return wg_fail(err, WG_EINVAL, "log-probabilities of %d tokens; expected 0..%d", how->top, (int)WG_LOGPROBS_MAX);
    return WG_OK;
}

static wg_status set_chain(wg_engine *e, const wg_seq *s, struct wg_seq_rows *r, const wg_seq_sampling *how, wg_error *err)
{
    WG_TRY(wg_sampler_share(&r->sampler, e->sampler, how->sampling ? how->sampling : &e->opt.sampling, err));
    const double temperature = r->sampler.sampling.temperature;
    if (e->verifier->zero_only && temperature > 0)
        return wg_fail(err, WG_ELAW,
                       "request %u: temperature %g, but rule %s verifies greedy decoding alone; set 0, or open the engine "
                       "with a rule for any temperature, such as rejection",
                       (unsigned)s->request, temperature, e->verifier->name);
    return WG_OK;
}

static wg_status set_grammar(const wg_engine *e, const wg_seq *s, constrained *c, const wg_seq_sampling *how, wg_error *err)
{
    const int vocab = e->target->vocab, known = wg_acceptor_trie(how->acceptor)->vocab;
    bool any = false;
    if (known != vocab)
        return wg_fail(err, WG_EINVAL, "request %u has a grammar over %d tokens; the vocabulary has %d", (unsigned)s->request,
                       known, vocab);
    WG_TRY(wg_acceptor_ready(how->acceptor, err));
    c->words = wg_token_words(vocab);
    c->ends = wg_calloc(c->words, sizeof *c->ends);
    c->set = wg_alloc((WG_TREE_MAX + 1) * c->words, sizeof *c->set);
    if (!c->ends || !c->set) return wg_nomem(err, (WG_TREE_MAX + 2) * c->words * 8, "the tokens that a grammar allows");
    for (int32_t x = 0; x < vocab && e->is_eog; x++)
        if (e->is_eog(e->is_eog_user, x)) wg_token_add(c->ends, x), any = true;
    if (!any)
        return wg_fail(err, WG_EUNSUPPORTED, "request %u has a grammar, but no token of this model ends a text",
                       (unsigned)s->request);
    c->acceptor = how->acceptor;
    c->from = how->from;
    c->after = how->after ? *how->after : -1;
    c->read = -1;
    return WG_OK;
}

static wg_status set_buffers(const wg_engine *e, const wg_seq *s, struct wg_seq_rows *r, const wg_seq_sampling *how,
                             wg_error *err)
{
    const size_t words = wg_token_words(e->target->vocab);
    if (how->biases > 0) {
        const size_t n = (size_t)how->biases;
        if (!(r->bias = wg_alloc(n, sizeof *r->bias))) return wg_nomem(err, n * sizeof *r->bias, "the biases of logits");
        memcpy(r->bias, how->bias, n * sizeof *r->bias);
        r->sampler.bias = r->bias;
        r->sampler.n_bias = how->biases;
    }
    if (how->n_allowed > 0) {
        if (!(r->allowed = wg_calloc(words, sizeof *r->allowed))) return wg_nomem(err, words * 8, "the allowed tokens");
        for (int i = 0; i < how->n_allowed; i++) wg_token_add(r->allowed, how->allowed[i]);
    }
    if (how->acceptor) WG_TRY(set_grammar(e, s, &r->by, how, err));
    r->forced = how->forced;
    r->logprobs = how->logprobs;
    r->top = how->top;
    const size_t room = (size_t)WG_TREE_MAX * (1 + (size_t)how->top);
    if (how->logprobs && !(r->logprob = wg_alloc(room, sizeof *r->logprob)))
        return wg_nomem(err, room * sizeof *r->logprob, "log-probabilities");
    return WG_OK;
}

wg_status wg_seq_sampling_check(const wg_engine *e, const wg_seq_sampling *how, wg_error *err)
{
    WG_TRY(check_tokens(e, how, err));
    if (!how->sampling) return WG_OK;
    WG_TRY(wg_sampling_check(how->sampling, err));
    if (!e->verifier->zero_only || how->sampling->temperature == 0) return WG_OK;
    return wg_fail(err, WG_ELAW,
                   "temperature %g, but rule %s verifies greedy decoding alone; set 0, or open the engine with a rule "
                   "for any temperature, such as rejection",
                   how->sampling->temperature, e->verifier->name);
}

wg_status wg_seq_sample(wg_engine *e, wg_seq *s, const wg_seq_sampling *how, wg_error *err)
{
    WG_TRY(check_tokens(e, how, err));
    struct wg_seq_rows *r = wg_calloc(1, sizeof *r);
    if (!r) return wg_nomem(err, sizeof *r, "the rows of a sequence");
    wg_status status = set_chain(e, s, r, how, err);
    if (!status) status = set_buffers(e, s, r, how, err);
    if (status) {
        free_rows(r);
        return status;
    }
    wg_seq_rows_close(s);
    s->rows = r;
    return WG_OK;
}

const wg_logprob *wg_seq_logprobs(const wg_seq *s, int *top)
{
    if (!s->rows || !s->rows->logprobs) return NULL;
    *top = s->rows->top;
    return s->rows->logprob;
}

/* ---- states of the grammar */

static wg_status too_ambiguous(const wg_seq *s, wg_error *err)
{
    return wg_fail(
        err, WG_EINVAL,
        "request %u: its grammar has too many ways to read the text (more than %d places or %d open rules); write it "
        "with fewer choices that begin alike",
        (unsigned)s->request, (int)WG_ACCEPTOR_PLACES, (int)WG_ACCEPTOR_DEPTH);
}

static bool ends_text(const constrained *c, int32_t token) { return wg_token_in(c->ends, token); }

/* The state after a token; one that ends a text leaves the state unchanged. */
static int32_t step(const constrained *c, int32_t state, int32_t token)
{
    if (state == BEFORE) return token == c->after ? wg_acceptor_start(c->acceptor) : BEFORE;
    return ends_text(c, token) ? state : wg_acceptor_token(c->acceptor, state, token);
}

/* Brings the state up to the end of the text. */
static int32_t read_text(const wg_seq *s, constrained *c)
{
    const int origin = c->from > 0 && c->from < s->n ? c->from : s->prompt;
    if (c->age != wg_acceptor_age(c->acceptor) || c->origin != origin || c->read > s->n || c->read < origin) {
        c->state = c->after >= 0 ? BEFORE : wg_acceptor_start(c->acceptor);
        c->read = c->origin = origin;
        c->age = wg_acceptor_age(c->acceptor);
    }
    for (; c->read < s->n && (c->state >= 0 || c->state == BEFORE); c->read++) c->state = step(c, c->state, s->token[c->read]);
    return c->state;
}

bool wg_seq_is_whole(const wg_seq *s)
{
    constrained *c = s->rows ? &s->rows->by : NULL;
    return !c || !c->acceptor || (read_text(s, c) >= 0 && wg_acceptor_accepts(c->acceptor, c->state));
}

/* Sets set[] to the tokens that may follow a state: those that grammar and request allow, and tokens that end the text if it is
 * complete or nothing else is allowed. Returns the number of text tokens; -1: a bound is exceeded. */
static int find_allowed(const struct wg_seq_rows *r, int32_t state, uint64_t *set)
{
    const constrained *c = &r->by;
    int n;
    const uint64_t *text = wg_acceptor_allowed(c->acceptor, state, &n);
    const bool whole = wg_acceptor_accepts(c->acceptor, state);
    uint64_t any = 0;
    if (!text) return -1;
    for (size_t i = 0; i < c->words; i++) {
        set[i] = (text[i] | (whole ? c->ends[i] : 0)) & (r->allowed ? r->allowed[i] : ~0ull);
        any |= set[i];
    }
    if (!any) memcpy(set, c->ends, c->words * sizeof *set);
    return n;
}

/* The state behind a token; NOWHERE: it may not follow. *offered: it may. An end token that a request ignores leaves the state
 * unchanged, so that only end tokens follow. */
static int32_t follow(const struct wg_seq_rows *r, int32_t state, int32_t token, bool *offered)
{
    const constrained *c = &r->by;
    uint64_t *set = c->set + WG_TREE_MAX * c->words;
    *offered = false;
    if (state == BEFORE) {
        *offered = !r->allowed || wg_token_in(r->allowed, token);
        return !*offered ? NOWHERE : ends_text(c, token) ? state : step(c, state, token);
    }
    if (state < 0) return state;
    if (ends_text(c, token) || r->allowed) {
        if (find_allowed(r, state, set) < 0) return WG_ACCEPTOR_FULL;
        *offered = wg_token_in(set, token);
        if (!*offered || ends_text(c, token)) return *offered ? state : NOWHERE;
    }
    const int32_t next = wg_acceptor_token(c->acceptor, state, token);
    *offered = next >= 0;
    return next == WG_ACCEPTOR_DEAD ? NOWHERE : next;
}

wg_status wg_seq_rows_read(const wg_seq *s, wg_error *err)
{
    constrained *c = s->rows ? &s->rows->by : NULL;
    if (!c || !c->acceptor) return WG_OK;
    wg_acceptor_tidy(c->acceptor);
    if (read_text(s, c) == WG_ACCEPTOR_DEAD)
        return wg_fail(err, WG_EINVAL, "request %u: the text from token %d on is not the beginning of one of its grammar",
                       (unsigned)s->request, c->origin);
    return c->state == WG_ACCEPTOR_FULL ? too_ambiguous(s, err) : WG_OK;
}

/* ---- the draft */

/* The state behind node i, whose parent's is known. Without a grammar: 0, or NOWHERE. */
static int32_t state_behind(const struct wg_seq_rows *r, const wg_tree *t, int i, bool *offered)
{
    const int32_t parent = r->by.node[t->parent[i]];
    if (r->by.acceptor) return follow(r, parent, t->token[i], offered);
    *offered = wg_token_in(r->allowed, t->token[i]);
    return *offered ? parent : NOWHERE;
}

/* The tokens that may follow node `up`; NULL: all may. */
static const uint64_t *allowed_after(const struct wg_seq_rows *r, int up)
{
    uint64_t *set = r->by.set + WG_TREE_MAX * r->by.words;
    if (!r->by.acceptor || r->by.node[up] < 0) return r->allowed;
    return find_allowed(r, r->by.node[up], set) < 0 ? NULL : set; /* a bound that is exceeded: wg_seq_rows_finish reports it */
}

/* Makes the row of q that the children of `up` were drawn from that of the tokens which may follow. */
static void condition(const struct wg_seq_rows *r, const wg_tree *t, int up, wg_rows *q)
{
    const int row = t->qrow[wg_tree_child(t, up, up)];
    const uint64_t *set = allowed_after(r, up);
    if (row < 0 || !set || wg_rows_one_hot(q, row) >= 0) return;
    double *p = wg_rows_at(q, row), sum = 0;
    const wg_support all = wg_rows_support(q, row);
    bool cut = false;
    for (int k = 0; k < all.n; k++) {
        const int32_t x = wg_support_at(&all, k);
        if (!wg_token_in(set, x)) cut = cut || p[x] > 0, p[x] = 0;
        sum += p[x];
    }
    for (int k = 0; cut && k < all.n; k++) p[wg_support_at(&all, k)] /= sum;
}

/* Forgets how many children a node has that lost some; conditions the row of q of one that has some left. */
static void drop_forbidden(const struct wg_seq_rows *r, wg_tree *t, wg_rows *q, const bool *keep)
{
    for (int up = 0; up < t->n; up++) {
        int lost = 0, left = 0;
        for (int i = wg_tree_child(t, up, up); i >= 0; i = wg_tree_child(t, up, i)) lost += !keep[i], left += keep[i];
        if (lost) t->group[up] = -1;
        if (left) condition(r, t, up, q);
    }
}

wg_status wg_seq_rows_prune(const wg_seq *s, wg_tree *t, wg_rows *q, bool lossy, bool *keep, wg_error *err)
{
    struct wg_seq_rows *r = s->rows;
    const bool drawn = t->law & (WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT);
    if (!r || !(r->allowed || r->by.acceptor)) return WG_OK;
    int32_t *state = r->by.node;
    state[0] = r->by.acceptor ? read_text(s, &r->by) : 0;
    for (int i = 1; i < t->n; i++) {
        bool offered;
        state[i] = state_behind(r, t, i, &offered);
        if (state[i] == WG_ACCEPTOR_FULL) return too_ambiguous(s, err);
        const int up = t->parent[i];
        const bool behind_end = up > 0 && r->by.acceptor && ends_text(&r->by, t->token[up]);
        keep[i] = keep[i] && keep[up] && state[up] != NOWHERE && !behind_end && (offered || (drawn && !lossy));
        if (state[i] == NOWHERE || (r->by.acceptor && ends_text(&r->by, t->token[i]))) t->group[i] = -1;
    }
    if (drawn && lossy) drop_forbidden(r, t, q, keep);
    return WG_OK;
}

/* The only text token that may follow; else, if the grammar fixes the following bytes, the longest token that they begin with,
 * a proposal. -1: neither. */
static int32_t forced_token(const struct wg_seq_rows *r, int32_t state, uint64_t *set)
{
    char bytes[WG_TRIE_DEPTH];
    const constrained *c = &r->by;
    int32_t only = -1;
    const size_t n = wg_acceptor_forced(c->acceptor, state, bytes, sizeof bytes);
    if (n > 0) only = wg_token_longest(wg_acceptor_trie(c->acceptor), bytes, n);
    if (only >= 0) return !r->allowed || wg_token_in(r->allowed, only) ? only : -1;
    if (find_allowed(r, state, set) != 1 || wg_acceptor_accepts(c->acceptor, state)) return -1;
    for (size_t i = 0; i < c->words; i++)
        if (set[i]) only = (int32_t)(64 * i) + __builtin_ctzll(set[i]);
    return only;
}

/* Adds a chain of forced tokens below a leaf. Each is a draw from a one-hot q, so it fits every sibling law, and it depends on
 * the prefix alone. */
static void force(const wg_seq *s, wg_tree *t, int node, wg_rows *q)
{
    struct wg_seq_rows *r = s->rows;
    uint64_t *set = r->by.set + WG_TREE_MAX * r->by.words;
    while (wg_tree_depth(t, node) < wg_seq_room(s) && r->by.node[node] >= 0) {
        bool offered;
        const int32_t x = forced_token(r, r->by.node[node], set);
        const int row = x < 0 || t->n == WG_TREE_MAX ? -1 : wg_rows_push(q);
        if (row < 0) return;
        q->point[row] = x;
        wg_tree_group(t, node, 1);
        const int child = wg_tree_push(t, node, x, row);
        r->by.node[child] = state_behind(r, t, child, &offered);
        node = child;
    }
}

static void force_leaves(const wg_engine *e, const wg_seq *s, wg_tree *t, wg_rows *q)
{
    static const wg_sibling_law laws[] = { WG_LAW_FIXED, WG_LAW_IID, WG_LAW_WITHOUT_REPLACEMENT };
    const int n = t->n;
    if (t->probes) return; /* nodes cannot be added behind probes */
    for (int i = 0; i < 3 && n == 1; i++)
        if (e->verifier->laws & laws[i]) {
            t->law = laws[i];
            break;
        }
    for (int i = 0; i < n; i++)
        if (wg_tree_child(t, i, i) < 0) force(s, t, i, q);
}

wg_status wg_seq_rows_finish(const wg_engine *e, const wg_seq *s, wg_tree *t, wg_rows *q, wg_error *err)
{
    struct wg_seq_rows *r = s->rows;
    if (!r || !r->by.acceptor) return WG_OK;
    constrained *c = &r->by;
    bool offered;
    c->node[0] = read_text(s, c);
    for (int i = 1; i < t->n; i++) c->node[i] = state_behind(r, t, i, &offered);
    if (r->forced) force_leaves(e, s, t, q);
    for (int i = 0; i < t->n; i++)
        if (c->node[i] == WG_ACCEPTOR_FULL ||
            (c->node[i] >= 0 && find_allowed(r, c->node[i], c->set + (size_t)i * c->words) < 0))
            return too_ambiguous(s, err);
    return WG_OK;
}

/* ---- the rows */

wg_sampler wg_seq_sampler(const wg_seq *s, const wg_sampler *memory)
{
    return s->rows ? wg_sampler_over(&s->rows->sampler, memory) : *memory;
}

wg_sampler *wg_seq_lazy_sampler(const wg_seq *s, wg_sampler *engines)
{
    wg_sampler *own = s->rows ? &s->rows->sampler : engines;
    return wg_sampler_may_wait(own) && !(s->rows && (s->rows->allowed || s->rows->by.acceptor)) ? own : NULL;
}

static wg_prefix prefix_of(const wg_seq *s, const wg_tree *t, int node, const uint64_t *allowed)
{
    return (wg_prefix){ .token = s->token, .n = s->n, .prompt = s->prompt, .tree = t, .node = node, .allowed = allowed };
}

wg_prefix wg_seq_scored_prefix(const wg_seq *s, const wg_tree *t, int node)
{
    const struct wg_seq_rows *r = s->rows;
    const uint64_t *allowed = r ? r->allowed : NULL;
    if (r && r->by.acceptor && r->by.node[node] != BEFORE)
        allowed = r->by.node[node] >= 0 ? r->by.set + (size_t)node * r->by.words : NULL;
    return prefix_of(s, t, node, allowed);
}

wg_prefix wg_seq_prefix(const wg_seq *s, const wg_tree *t, int node)
{
    struct wg_seq_rows *r = s->rows;
    if (!r || !r->by.acceptor) return prefix_of(s, t, node, r ? r->allowed : NULL);
    constrained *c = &r->by;
    uint64_t *set = c->set + WG_TREE_MAX * c->words;
    int32_t state = read_text(s, c);
    bool offered;
    for (int i = 1; i <= node && state != NOWHERE; i++)
        if (wg_mask_has(&t->anc[node], i)) state = follow(r, state, t->token[i], &offered);
    if (state == BEFORE) return prefix_of(s, t, node, r->allowed);
    return prefix_of(s, t, node, state >= 0 && find_allowed(r, state, set) >= 0 ? set : NULL);
}

void wg_seq_rows_emitted(const wg_engine *e, wg_seq *s, const wg_tree *t)
{
    const struct wg_seq_rows *r = s->rows;
    const size_t vocab = (size_t)e->target->vocab;
    if (!r || !r->logprobs) return;
    for (int i = 0; i < s->path.n; i++) {
        const int row = t->row + s->path.node[i];
        const int32_t token = i + 1 < s->path.n ? t->token[s->path.node[i + 1]] : s->path.next;
        wg_logprobs(e->env.ops, e->logits + (size_t)row * vocab, (int)vocab, token, r->top, e->sampler->whole,
                    r->logprob + (size_t)i * (1 + (size_t)r->top));
    }
}
