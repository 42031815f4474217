/* SPDX-License-Identifier: MIT
 * Rows of the target that are kept (kept_rows.h). */
#include "draft/train/kept_rows.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/file/weights.h"

/* A piece of a document. Row i has the elements end[i - 1] .. end[i] - 1 of place and p. */
typedef struct piece {
    size_t first; /* its first token in the text */
    int n;
    uint32_t *end; /* (n); NULL: not computed yet */
    double *entropy;
    int32_t *place;
    float *p;
    uint16_t *hidden; /* (n, taps, dim) bfloat16; NULL without taps */
} piece;

struct wg_kept_rows {
    const wg_tokens *text;
    wg_target_rows *one; /* computes a piece */
    int length, taps;
    size_t dim;      /* of a hidden state */
    int32_t *arrays; /* (4, length) a piece as a sequence */
    piece *piece;
    size_t pieces;
};

/* A text without documents is one. */
static size_t documents_of(const wg_tokens *t) { return wg_tokens_documents(t) ? wg_tokens_documents(t) : 1; }

static void document_at(const wg_tokens *t, size_t i, size_t *first, size_t *n)
{
    *first = 0, *n = wg_tokens_count(t);
    if (wg_tokens_documents(t)) wg_tokens_document(t, i, first, n);
}

static wg_status cut(wg_kept_rows *k, wg_error *err)
{
    const size_t documents = documents_of(k->text), length = (size_t)k->length;
    size_t room = 0, first, n;
    for (size_t i = 0; i < documents; i++) {
        document_at(k->text, i, &first, &n);
        room += (n + length - 1) / length;
    }
    k->piece = wg_calloc(room, sizeof *k->piece);
    if (!k->piece) return wg_nomem(err, room * sizeof *k->piece, "the pieces of a text");
    for (size_t i = 0; i < documents; i++) {
        document_at(k->text, i, &first, &n);
        for (size_t at = 0; at < n; at += length)
            k->piece[k->pieces++] = (piece){ .first = first + at, .n = (int)(n - at < length ? n - at : length) };
    }
    return WG_OK;
}

wg_status wg_kept_rows_open(wg_kept_rows **out, const wg_target_rows_options *o, int length, const wg_tokens *text,
                            wg_error *err)
{
    wg_kept_rows *k = wg_calloc(1, sizeof *k);
    if (!k) return wg_nomem(err, sizeof *k, "rows of the target");
    wg_target_rows_options one = *o;
    one.sequences = 1;
    one.length = k->length = length < o->lm->context ? length : o->lm->context;
    k->text = text;
    k->taps = o->n_taps;
    k->dim = (size_t)o->lm->hidden.dim;
    k->arrays = wg_alloc(4 * (size_t)k->length, sizeof *k->arrays);
    wg_status s = k->arrays ? WG_OK : wg_nomem(err, 16 * (size_t)k->length, "a piece of a text");
    if (!s) s = wg_target_rows_open(&k->one, &one, err);
    if (!s) s = cut(k, err);
    if (s) wg_kept_rows_close(k);
    else *out = k;
    return s;
}

static void forget(piece *x)
{
    wg_free(x->end);
    wg_free(x->entropy);
    wg_free(x->place);
    wg_free(x->p);
    wg_free(x->hidden);
    x->end = NULL, x->entropy = NULL, x->place = NULL, x->p = NULL, x->hidden = NULL;
}

void wg_kept_rows_close(wg_kept_rows *k)
{
    if (!k) return;
    for (size_t i = 0; i < k->pieces; i++) forget(&k->piece[i]);
    wg_target_rows_close(k->one);
    wg_free(k->piece);
    wg_free(k->arrays);
    wg_free(k);
}

/* The document that the token belongs to, and the piece. */
static size_t document_of(const wg_tokens *t, size_t at)
{
    size_t lo = 0, hi = documents_of(t), first, n;
    while (hi - lo > 1) {
        const size_t mid = lo + (hi - lo) / 2;
        document_at(t, mid, &first, &n);
        if (first <= at) lo = mid;
        else hi = mid;
    }
    return lo;
}

static piece *piece_of(const wg_kept_rows *k, size_t at)
{
    size_t lo = 0, hi = k->pieces;
    while (hi - lo > 1) {
        const size_t mid = lo + (hi - lo) / 2;
        if (k->piece[mid].first <= at) lo = mid;
        else hi = mid;
    }
    return &k->piece[lo];
}

/* The piece as a sequence. A row has a target where a sequence's row has one (wg_windows_get). */
static wg_train_rows rows_of(const wg_kept_rows *k, const piece *x)
{
    const wg_tokens *t = k->text;
    const size_t document = document_of(t, x->first), prompt = wg_tokens_prompt(t, document);
    size_t first, n;
    int32_t *token = k->arrays, *target = token + x->n, *start = target + x->n, *position = start + x->n;
    document_at(t, document, &first, &n);
    for (int i = 0; i < x->n; i++) {
        const size_t at = x->first + (size_t)i, next = at + 1 - first;
        token[i] = wg_tokens_id(t, at);
        target[i] = next < n && next >= prompt ? wg_tokens_id(t, at + 1) : -1;
        start[i] = 0;
        position[i] = i;
    }
    return (wg_train_rows){
        .sequences = 1, .length = x->n, .token = token, .target = target, .start = start, .position = position
    };
}

/* Appends the probabilities of row i that are kept. */
static void keep_row(const wg_kept_rows *k, piece *x, int i, uint32_t *n)
{
    const float *p = wg_target_rows_p(k->one, i);
    for (int v = 0; v < wg_target_rows_width(k->one); v++) {
        if (p[v] < WG_KEPT_LEAST) continue;
        if (x->p) x->place[*n] = v, x->p[*n] = p[v];
        ++*n;
    }
}

static uint16_t *state_of(const wg_kept_rows *k, const piece *x, int i, int tap)
{
    return x->hidden + ((size_t)i * (size_t)k->taps + (size_t)tap) * k->dim;
}

static wg_status keep_states(wg_kept_rows *k, piece *x, wg_error *err)
{
    const size_t all = (size_t)x->n * (size_t)k->taps * k->dim;
    if (k->taps == 0) return WG_OK;
    x->hidden = wg_alloc(all, sizeof *x->hidden);
    if (!x->hidden) return wg_nomem(err, all * sizeof *x->hidden, "hidden states; distill.rows = sequence keeps none");
    for (int i = 0; i < x->n; i++)
        for (int tap = 0; tap < k->taps; tap++)
            wg_row_from_f32(WG_BF16, wg_target_rows_state(k->one, i, tap), state_of(k, x, i, tap), k->dim);
    return WG_OK;
}

static wg_status compute(wg_kept_rows *k, piece *x, wg_error *err)
{
    const wg_train_rows rows = rows_of(k, x);
    uint32_t n = 0;
    WG_TRY(wg_target_rows_compute(k->one, &rows, err));
    for (int i = 0; i < x->n; i++)
        if (rows.target[i] >= 0) keep_row(k, x, i, &n);
    x->end = wg_alloc((size_t)x->n, sizeof *x->end);
    x->entropy = wg_calloc((size_t)x->n, sizeof *x->entropy);
    x->place = wg_alloc((size_t)n + 1, sizeof *x->place);
    x->p = wg_alloc((size_t)n + 1, sizeof *x->p);
    if (!x->end || !x->entropy || !x->place || !x->p) {
        forget(x);
        return wg_nomem(err, (size_t)n * 8, "rows of the target; distill.rows = sequence keeps none");
    }
    const wg_status s = keep_states(k, x, err);
    if (s) {
        forget(x);
        return s;
    }
    n = 0;
    for (int i = 0; i < x->n; i++) {
        if (rows.target[i] >= 0) {
            keep_row(k, x, i, &n);
            x->entropy[i] = wg_target_rows_entropy(k->one, i);
        }
        x->end[i] = n;
    }
    return WG_OK;
}

static void give(const piece *x, int i, wg_target_rows *to, int row)
{
    float *p = wg_target_rows_set(to, row, x->entropy[i]);
    for (uint32_t at = i ? x->end[i - 1] : 0; at < x->end[i]; at++) p[x->place[at]] = x->p[at];
}

wg_status wg_kept_rows_give(wg_kept_rows *k, wg_target_rows *to, const wg_train_rows *rows, const size_t *first, wg_error *err)
{
    wg_target_rows_begin(to, rows);
    for (int row = 0; row < rows->sequences * rows->length; row++) {
        const size_t at = first[row / rows->length] + (size_t)(row % rows->length);
        if (rows->target[row] < 0 && k->taps == 0) continue;
        piece *x = piece_of(k, at);
        const int i = (int)(at - x->first);
        if (!x->end) WG_TRY(compute(k, x, err));
        for (int tap = 0; tap < k->taps; tap++)
            wg_row_to_f32(WG_BF16, state_of(k, x, i, tap), wg_target_rows_state(to, row, tap), k->dim);
        if (rows->target[row] >= 0) give(x, i, to, row);
    }
    return WG_OK;
}
