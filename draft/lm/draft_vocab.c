/* SPDX-License-Identifier: MIT
 * The vocabulary of a draft model (draft_vocab.h). */
#include "draft/lm/draft_vocab.h"

#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/model/arch.h"
#include "core/model/student.h"
#include "draft/lm/vocabulary_subset.h"

static const char *target_name(const wg_env *env) { return env->target_name ? env->target_name : "the target"; }

/* Sets own[] to the draft model's ids of the common tokens. */
static wg_status intersect(wg_draft_vocab *v, const wg_env *env, const wg_weights *w, int vocab, const char *path,
                           wg_error *err)
{
    WG_TRY(wg_tokenizer_open(&v->tokenizer, w, err));
    if (wg_tokenizer_same(env->tokenizer, v->tokenizer, "", "", NULL) == WG_OK) { /* equal vocabularies need no map */
        wg_tokenizer_close(v->tokenizer);
        v->tokenizer = NULL;
        return WG_OK;
    }
    WG_TRY(wg_vocab_map_open(&v->map, env->tokenizer, v->tokenizer, err));
    for (int i = 0; i < v->target_vocab; i++) {
        const int32_t own = i < v->map.a ? v->map.to_b[i] : -1;
        v->own[i] = own < vocab ? own : -1;
    }
    for (int i = 0; i < v->target_vocab; i++) /* tokens that only end a text do not suffice */
        if (v->own[i] >= 0 && !wg_tokenizer_is_control(env->tokenizer, i)) return WG_OK;
    return wg_fail(err, WG_EVOCAB,
                   "the vocabularies of %s (%s, %d tokens) and %s (%s, %d tokens) have no token in common, so nothing could be "
                   "drafted; take another draft model",
                   target_name(env), wg_tokenizer_kind(env->tokenizer), wg_tokenizer_size(env->tokenizer), path,
                   wg_tokenizer_kind(v->tokenizer), wg_tokenizer_size(v->tokenizer));
}

/* Removes all tokens from own[] that are not in the list. */
static wg_status prune(wg_draft_vocab *v, const wg_env *env, const char *path, wg_error *err)
{
    wg_vocabulary_subset p;
    WG_TRY(wg_vocabulary_subset_open(&p, path, env->tokenizer, target_name(env), err));
    for (int i = 0; i < p.n; i++)
        if (p.token[i] < v->target_vocab && v->own[p.token[i]] >= 0) v->own[p.token[i]] = -2 - v->own[p.token[i]];
    wg_vocabulary_subset_close(&p);
    for (int i = 0; i < v->target_vocab; i++) v->own[i] = v->own[i] < -1 ? -2 - v->own[i] : -1;
    return WG_OK;
}

/* Leaves in own[] the tokens of a cut student, which have the target's ids. */
static wg_status of_student(wg_draft_vocab *v, const wg_env *env, const wg_weights *w, int kept, const char *path,
                            wg_error *err)
{
    char digest[WG_SHA256_HEX];
    wg_text made = { 0 };
    (void)wg_meta_string(w, WG_STUDENT_TOKENIZER, &made);
    wg_tokenizer_digest(env->tokenizer, digest);
    if (!wg_text_is(made, digest))
        return wg_fail(err, WG_EVOCAB,
                       "%s is a student of another target (digest of the tokenizer %.*s, that of %s is %.12s), so its ids mean "
                       "other texts",
                       path, (int)(made.n < 12 ? made.n : 12), made.s ? made.s : "", target_name(env), digest);
    for (int i = 0; i < v->target_vocab; i++) v->own[i] = -1;
    for (int i = 0; i < kept; i++) {
        int64_t id = -1;
        (void)wg_meta_array_int(w, WG_STUDENT_TOKENS, i, &id);
        if (id < 0 || id >= v->target_vocab || v->own[id] >= 0)
            return wg_fail(err, WG_EMODEL, "%s: key '%s' has at %d the token %lld: expected different ones below %d", path,
                           WG_STUDENT_TOKENS, i, (long long)id, v->target_vocab);
        v->own[id] = (int32_t)id;
    }
    return WG_OK;
}

static wg_status list(wg_draft_vocab *v, const char *path, wg_error *err)
{
    for (int i = 0; i < v->target_vocab; i++) v->n += v->own[i] >= 0;
    if (v->n == 0)
        return wg_fail(err, WG_EVOCAB, "%s has none of the tokens of the pruned list, so nothing could be drafted", path);
    v->token = wg_alloc((size_t)v->n, sizeof *v->token);
    v->row = wg_alloc((size_t)v->n, sizeof *v->row);
    if (!v->token || !v->row) return wg_nomem(err, (size_t)v->n * 8, "the vocabulary of a draft");
    for (int i = 0, k = 0; i < v->target_vocab; i++)
        if (v->own[i] >= 0) {
            v->token[k] = i;
            v->row[k++] = v->own[i];
        }
    return WG_OK;
}

/* Sets the rows of a cut student's head, which are in the order of its list. */
static wg_status student_rows(wg_draft_vocab *v, const wg_weights *w, int kept, wg_error *err)
{
    int32_t *at = wg_calloc((size_t)v->target_vocab, sizeof *at);
    if (!at) return wg_nomem(err, (size_t)v->target_vocab * sizeof *at, "the vocabulary of a draft");
    for (int i = 0; i < kept; i++) {
        int64_t id = 0;
        (void)wg_meta_array_int(w, WG_STUDENT_TOKENS, i, &id);
        at[id] = i;
    }
    for (int k = 0; k < v->n; k++) v->row[k] = at[v->token[k]];
    wg_free(at);
    return WG_OK;
}

wg_status wg_draft_vocab_open(wg_draft_vocab *v, const wg_env *env, const wg_weights *w, const char *path, bool intersection,
                              const char *pruned, wg_error *err)
{
    wg_arch a;
    *v = (wg_draft_vocab){ .target_vocab = env->target->vocab };
    if (!env->tokenizer)
        return wg_fail(err, WG_EMODEL, "%s has no tokenizer, so it is unknown which tokens it has in common with %s%s%s",
                       target_name(env), path, *pruned ? " and with " : "", pruned);
    if (intersection && wg_meta_array(w, "tokenizer.ggml.tokens", &(wg_meta_kind){ 0 }) <= 0)
        return wg_fail(err, WG_EMODEL,
                       "%s has no tokenizer, so its tokens cannot be compared with those of %s; convert it again with "
                       "--tokenizer",
                       path, target_name(env));
    WG_TRY(wg_arch_read(w, &a, err));
    v->own = wg_alloc((size_t)v->target_vocab, sizeof *v->own);
    if (!v->own) return wg_nomem(err, (size_t)v->target_vocab * sizeof *v->own, "the vocabulary of a draft");
    for (int i = 0; i < v->target_vocab; i++) v->own[i] = i < a.vocab ? i : -1;
    if (intersection) WG_TRY(intersect(v, env, w, a.vocab, path, err));
    if (a.kept) WG_TRY(of_student(v, env, w, a.kept, path, err));
    if (*pruned) WG_TRY(prune(v, env, pruned, err));
    if (v->tokenizer || a.kept || *pruned) WG_TRY(list(v, path, err));
    return a.kept ? student_rows(v, w, a.kept, err) : WG_OK;
}

void wg_draft_vocab_close(wg_draft_vocab *v)
{
    wg_vocab_map_close(&v->map);
    wg_tokenizer_close(v->tokenizer);
    wg_free(v->token);
    wg_free(v->row);
    wg_free(v->own);
    *v = (wg_draft_vocab){ 0 };
}

void wg_draft_vocab_spread(const wg_draft_vocab *v, const float *logits, float *row)
{
    for (int i = 0; i < v->target_vocab; i++) row[i] = -INFINITY;
    for (int i = 0; i < v->n; i++) row[v->token[i]] = logits[i];
}

void wg_draft_vocab_support(const wg_draft_vocab *v, wg_rows *q, int row)
{
    if (v->n == 0 || v->n > q->room || q->point[row] >= 0 || q->supported[row] >= 0) return;
    memcpy(q->support + (size_t)row * (size_t)q->room, v->token, (size_t)v->n * sizeof *v->token);
    q->supported[row] = v->n;
}
