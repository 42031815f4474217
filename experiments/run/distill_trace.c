/* SPDX-License-Identifier: MIT
 * Traces as training text (distill.h). */
#include "experiments/run/distill.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/trace/trace.h"

typedef struct texts {
    int32_t *id;
    uint64_t *start; /* (requests) index of its first token */
    size_t n;
} texts;

static wg_status collect(const wg_trace *t, const char *path, const wg_target *target, texts *x, wg_error *err)
{
    size_t n = 0;
    for (int i = 0; i < t->groups; i++)
        if (t->group[i].vocab != target->lm->vocab)
            return wg_fail(err, WG_EVOCAB,
                           "%s: the trace has a vocabulary of %d tokens, the target %s %d: record it with this target", path,
                           t->group[i].vocab, target->path, target->lm->vocab);
    for (int i = 0; i < t->requests; i++) n += (size_t)t->request[i].n;
    x->id = wg_alloc(n + 1, sizeof *x->id);
    x->start = wg_alloc((size_t)t->requests + 1, sizeof *x->start);
    if (!x->id || !x->start) return wg_nomem(err, n * sizeof *x->id, "the texts of a trace");
    for (int i = 0; i < t->requests; i++) {
        const wg_trace_request *r = &t->request[i];
        x->start[i] = x->n;
        memcpy(x->id + x->n, r->token, (size_t)r->n * sizeof *x->id);
        x->n += (size_t)r->n;
    }
    return WG_OK;
}

/* Whether a draft was rejected: the last accepted node has a child. */
static bool is_rejected(const wg_trace_round *r)
{
    const int last = r->path.node[r->path.n - 1];
    bool child = false;
    for (int i = 1; i < r->tree.n; i++) child = child || r->tree.parent[i] == last;
    return child;
}

static wg_status mark(wg_rejections *out, wg_trace *t, const texts *x, wg_error *err)
{
    wg_trace_round *r = wg_calloc(1, sizeof *r);
    wg_status s = r ? WG_OK : wg_nomem(err, sizeof *r, "a round");
    for (int i = 0; i < t->rounds && s == WG_OK; i++) {
        s = wg_trace_get(t, i, r, err);
        if (s || !is_rejected(r)) continue;
        const int request = t->round[i].request;
        const int64_t position = (int64_t)r->facts.position + r->path.n - 1;
        if (position >= t->request[request].n) continue; /* the text ends before it */
        out->at[x->start[request] + (uint64_t)position] = 1;
        out->rejected++;
    }
    wg_free(r);
    return s;
}

static wg_status read_trace(wg_rejections *out, wg_trace *t, const char *path, const char *tokens, const wg_target *target,
                            texts *x, wg_error *err)
{
    WG_TRY(collect(t, path, target, x, err));
    out->at = wg_calloc(x->n + 1, 1);
    if (!out->at) return wg_nomem(err, x->n, "the texts of a trace");
    WG_TRY(mark(out, t, x, err));
    if (out->rejected == 0)
        return wg_fail(err, WG_EINVAL,
                       "%s: no draft was rejected in %d rounds: record drafts of a model that is to be improved", path,
                       t->rounds);
    WG_TRY(wg_tokens_write(tokens, target->tokenizer, x->id, x->n, x->start, NULL, (size_t)t->requests, err));
    return wg_tokens_open(&out->text, tokens, NULL, err);
}

wg_status wg_rejections_open(wg_rejections *out, const char *trace, const char *tokens, const wg_target *target, wg_error *err)
{
    wg_trace *t;
    texts x = { 0 };
    *out = (wg_rejections){ 0 };
    WG_TRY(wg_trace_open(&t, trace, err));
    const wg_status s = read_trace(out, t, trace, tokens, target, &x, err);
    wg_free(x.id);
    wg_free(x.start);
    wg_trace_close(t);
    if (s) wg_rejections_close(out);
    return s;
}

void wg_rejections_close(wg_rejections *r)
{
    wg_tokens_close(r->text);
    wg_free(r->at);
    *r = (wg_rejections){ 0 };
}
