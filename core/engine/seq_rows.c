/* SPDX-License-Identifier: MIT
 * See seq_rows.h. */
#include "core/engine/seq_rows.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/engine/engine_impl.h"

struct wg_seq_rows {
    wg_sampler sampler; /* over the memory of the engine's first one */
    wg_logit_bias *bias;
    uint64_t *allowed; /* NULL: all */
    bool logprobs;
    int top;
    wg_logprob *logprob; /* (WG_TREE_MAX, 1 + top) */
};

static void free_rows(struct wg_seq_rows *r)
{
    if (!r) return;
    wg_free(r->bias);
    wg_free(r->allowed);
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

static wg_status set_buffers(const wg_engine *e, struct wg_seq_rows *r, const wg_seq_sampling *how, wg_error *err)
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
    if (!status) status = set_buffers(e, r, how, err);
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

/* ---- the step */

void wg_seq_rows_prune(const wg_engine *e, const wg_seq *s, wg_tree *t, bool *keep)
{
    const struct wg_seq_rows *r = s->rows;
    const bool drawn = t->law & (WG_LAW_IID | WG_LAW_WITHOUT_REPLACEMENT);
    bool ends[WG_TREE_MAX] = { false }; /* nothing can follow */
    if (!r || !r->allowed) return;
    for (int i = 1; i < t->n; i++) {
        const bool offered = wg_token_in(r->allowed, t->token[i]);
        ends[i] = !offered || (e->is_eog && e->is_eog(e->is_eog_user, t->token[i]));
        keep[i] = keep[i] && keep[t->parent[i]] && !ends[t->parent[i]] && (offered || drawn);
        if (ends[i]) t->group[i] = -1;
    }
}

wg_sampler wg_seq_sampler(const wg_seq *s, const wg_sampler *memory)
{
    return s->rows ? wg_sampler_over(&s->rows->sampler, memory) : *memory;
}

wg_sampler *wg_seq_lazy_sampler(const wg_seq *s, wg_sampler *engines)
{
    wg_sampler *own = s->rows ? &s->rows->sampler : engines;
    return wg_sampler_may_wait(own) && !(s->rows && s->rows->allowed) ? own : NULL;
}

wg_prefix wg_seq_prefix(const wg_seq *s, const wg_tree *t, int node)
{
    return (wg_prefix){ .token = s->token, .n = s->n, .tree = t, .node = node, .allowed = s->rows ? s->rows->allowed : NULL };
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
