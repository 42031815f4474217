/* SPDX-License-Identifier: MIT
 * Tokens of a request's own text beside a part of the vocabulary (text_words.h). */
#include "draft/lm/text_words.h"

#include <string.h>

#include "core/base/mem.h"

const wg_matrix *wg_text_words_rows(const wg_model *m, const wg_lm *target)
{
    const wg_arch *a = wg_model_arch(m);
    const struct wg_model *of = wg_lm_transformer(target);
    if (a->kept) return of ? wg_model_output(of) : NULL;
    return a->tied ? wg_model_embedding(m) : NULL;
}

wg_status wg_text_words_open(wg_text_words *x, wg_model *m, const wg_matrix *rows, const wg_draft_vocab *part, int room,
                             const wg_env *env, wg_error *err)
{
    const wg_arch *a = wg_model_arch(m);
    const int last = a->layers + 1;
    const size_t act = env->ops->act_bytes(rows->type, 1, rows->k), n = (size_t)env->max_batch;
    *x = (wg_text_words){ .part = part,
                          .rows = rows,
                          .ops = env->ops,
                          .room = room,
                          .sequences = env->max_batch,
                          .scale = a->logit_divisor ? 1 / a->logit_scale : a->logit_scale,
                          .cap = a->logit_cap };
    WG_TRY(wg_taps_open(&x->taps, wg_model_lm(m), &last, 1, err));
    x->h = wg_alloc((size_t)rows->k, sizeof *x->h);
    x->act = wg_alloc(act, 1);
    x->of = wg_calloc(n, sizeof *x->of);
    if (!x->h || !x->act || !x->of) return wg_nomem(err, act, "tokens of a text");
    for (size_t i = 0; i < n; i++) {
        x->of[i].token = wg_alloc((size_t)room, sizeof *x->of[i].token);
        if (!x->of[i].token) return wg_nomem(err, (size_t)room * sizeof *x->of[i].token, "tokens of a text");
    }
    return WG_OK;
}

void wg_text_words_close(wg_text_words *x)
{
    wg_taps_close(x->taps);
    for (int i = 0; x->of && i < x->sequences; i++) wg_free(x->of[i].token);
    wg_free(x->of);
    wg_free(x->act);
    wg_free(x->h);
    *x = (wg_text_words){ 0 };
}

void wg_text_words_forget(wg_text_words *x, const wg_seq *s)
{
    if (x->of) x->of[s->slot].n = x->of[s->slot].read = 0;
}

/* Inserts a token that is not there. */
static void insert(wg_text_words_of *of, int32_t token)
{
    int lo = 0, hi = of->n;
    while (lo < hi) {
        const int mid = lo + (hi - lo) / 2;
        if (of->token[mid] == token) return;
        if (of->token[mid] < token) lo = mid + 1;
        else hi = mid;
    }
    memmove(of->token + lo + 1, of->token + lo, (size_t)(of->n - lo) * sizeof *of->token);
    of->token[lo] = token;
    of->n++;
}

void wg_text_words_read(wg_text_words *x, const wg_seq *s)
{
    wg_text_words_of *of = &x->of[s->slot];
    for (; of->read < s->n && of->n < x->room; of->read++) {
        const int32_t t = s->token[of->read];
        if (t < x->rows->n && t < x->part->target_vocab && x->part->own[t] < 0) insert(of, t);
    }
}

bool wg_text_words_any(const wg_text_words *x, const wg_seq *s) { return x->of[s->slot].n > 0; }

/* Tokens of one panel of the matrix are outputs of one product. */
void wg_text_words_logits(const wg_text_words *x, const wg_seq *s, int at, float *row)
{
    const wg_text_words_of *of = &x->of[s->slot];
    const wg_matrix *w = x->rows;
    const size_t panel = x->ops->matrix_bytes(w->type, WG_PANEL, w->k);
    float y[WG_PANEL];
    if (of->n == 0) return;
    memcpy(x->h, wg_taps_at(x->taps, at), (size_t)w->k * sizeof *x->h);
    if (x->scale != 1) x->ops->scale(x->h, x->scale, w->k);
    x->ops->act_prepare(w->type, x->h, (size_t)w->k, 1, w->k, x->act, 0, 1);
    for (int i = 0, had = -1; i < of->n; i++) {
        const int p = of->token[i] / WG_PANEL, left = w->n - p * WG_PANEL;
        if (p != had) {
            const wg_matrix one = {
                .type = w->type, .n = left < WG_PANEL ? left : WG_PANEL, .k = w->k, .data = (char *)w->data + (size_t)p * panel
            };
            x->ops->matmul(&one, x->act, 1, y, WG_PANEL, 0, 1);
            if (x->cap > 0) x->ops->softcap(y, x->cap, one.n);
        }
        had = p;
        row[of->token[i]] = y[of->token[i] % WG_PANEL];
    }
}

void wg_text_words_support(const wg_text_words *x, const wg_seq *s, wg_rows *q, int row)
{
    const wg_text_words_of *of = &x->of[s->slot];
    const wg_draft_vocab *v = x->part;
    if (v->n + of->n > q->room || q->point[row] >= 0 || q->supported[row] >= 0) return;
    int32_t *to = q->support + (size_t)row * (size_t)q->room;
    for (int i = 0, k = 0; i < v->n || k < of->n;)
        *to++ = k == of->n || (i < v->n && v->token[i] < of->token[k]) ? v->token[i++] : of->token[k++];
    q->supported[row] = v->n + of->n;
}
