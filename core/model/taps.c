/* SPDX-License-Identifier: MIT
 * Hidden states: taken by the forward pass with one copy each, read by the host, kept for drafters. A queue is a plain array
 * whose rows move to its begin when the end is reached, so that those of a sequence always follow each other: a head
 * multiplies with them as they lie. */
#include "core/model/taps.h"

#include <string.h>

#include "core/base/mem.h"

struct wg_tap_queue {
    wg_taps *taps;
    wg_buf at; /* (room, n, dim) */
    int first, rows, room;
    int n, column[WG_TAPS_MOST]; /* its taps' places in a row of a pass */
    bool whole;                  /* they are all of that row, in its order */
};

wg_status wg_taps_check(const int *tap, int n, int layers, wg_error *err)
{
    if (n < 1 || n > WG_TAPS_MOST) return wg_fail(err, WG_EINVAL, "%d taps: expected 1..%d", n, WG_TAPS_MOST);
    for (int i = 0; i < n; i++) {
        if (tap[i] < 0 || tap[i] > layers + 1)
            return wg_fail(
                err, WG_EINVAL,
                "tap %d: a model of %d layers has taps 0 (the embedding) to %d (behind the last layer), and %d behind "
                "the final norm",
                tap[i], layers, layers, layers + 1);
        for (int k = 0; k < i; k++)
            if (tap[k] == tap[i]) return wg_fail(err, WG_EINVAL, "tap %d is asked for twice", tap[i]);
    }
    return WG_OK;
}

wg_status wg_taps_offered(const wg_lm *lm, const int *tap, int n, wg_error *err)
{
    if (!lm->hidden.device)
        return wg_fail(
            err, WG_EUNSUPPORTED,
            "the target gives no hidden states (it is: %s); expected a transformer of this program, or a process that "
            "says how many layers it has",
            lm->class ? lm->class->name : "unknown");
    return wg_taps_check(tap, n, lm->hidden.layers, err);
}

wg_status wg_taps_open(wg_taps **out, wg_lm *lm, const int *tap, int n, wg_error *err)
{
    WG_TRY(wg_taps_offered(lm, tap, n, err));
    wg_taps *t = wg_calloc(1, sizeof *t);
    if (!t) return wg_nomem(err, sizeof *t, "hidden states");
    t->lm = lm;
    t->n = n;
    t->dim = lm->hidden.dim;
    memcpy(t->tap, tap, (size_t)n * sizeof *tap);
    for (int i = 0; i < n; i++) t->last = tap[i] > t->last ? tap[i] : t->last;
    const wg_status s = wg_taps_reserve(t, lm->most_rows, err);
    if (s) wg_taps_close(t);
    else *out = t;
    return s;
}

static wg_device *device_of(const wg_taps *t) { return t->lm->hidden.device; }
static size_t row_floats(const wg_taps *t) { return (size_t)t->n * (size_t)t->dim; }

wg_status wg_taps_reserve(wg_taps *t, int rows, wg_error *err)
{
    wg_device *d = device_of(t);
    if (rows <= t->most) return WG_OK;
    const size_t floats = (size_t)rows * row_floats(t);
    const wg_buf room = d->class->alloc(d, floats);
    if (!room)
        return wg_nomem(err, floats * sizeof(float), "the hidden states of a pass; lower max_rows or ask for fewer taps");
    if (t->rows) d->class->copy(d, room, t->room, (size_t)t->rows * row_floats(t));
    d->class->free(d, t->room);
    t->room = room;
    t->most = rows;
    return WG_OK;
}

void wg_taps_close(wg_taps *t)
{
    if (!t) return;
    device_of(t)->class->free(device_of(t), t->room);
    wg_free(t);
}

int wg_taps_count(const wg_taps *t) { return t->n; }
int wg_taps_dim(const wg_taps *t) { return t->dim; }
int wg_taps_rows(const wg_taps *t) { return t->rows; }

const float *wg_taps_at(const wg_taps *t, int row)
{
    wg_assert(row >= 0 && row < t->rows);
    return t->room + (size_t)row * row_floats(t);
}

static wg_status download(const wg_taps *t, const float *from, size_t floats, float *to, wg_error *err)
{
    return device_of(t)->class->download(device_of(t), to, from, floats, err);
}

wg_status wg_taps_read(const wg_taps *t, int row, int rows, float *to, wg_error *err)
{
    wg_assert(row >= 0 && rows >= 0 && row + rows <= t->rows);
    return download(t, t->room + (size_t)row * row_floats(t), (size_t)rows * row_floats(t), to, err);
}

void wg_taps_take(wg_taps *t, int tap, const float *x, int rows)
{
    if (!t) return;
    wg_device *d = device_of(t);
    for (int i = 0; i < t->n; i++)
        if (t->tap[i] == tap) d->class->tap(d, x, t->dim, t->room + (size_t)i * (size_t)t->dim, t->n * t->dim, rows);
}

void wg_taps_take_last(wg_taps *t, int layers, const float *x, const wg_norm *norm, float *h, int rows)
{
    const int normed = t ? t->lm->hidden.layers + 1 : 0;
    wg_taps_take(t, layers, x, rows);
    if (!t || t->last < normed) return;
    device_of(t)->class->rmsnorm(device_of(t), x, norm, h, rows);
    wg_taps_take(t, normed, h, rows);
}

/* ---- queues */

static size_t queue_floats(const wg_tap_queue *q) { return (size_t)q->n * (size_t)q->taps->dim; }

static int column_of(const wg_taps *t, int tap)
{
    int i = 0;
    while (i < t->n && t->tap[i] != tap) i++;
    wg_assert(i < t->n); /* the passes have all that a queue takes */
    return i;
}

wg_status wg_tap_queue_open(wg_tap_queue **out, wg_taps *taps, const int *tap, int n, int rows, wg_error *err)
{
    wg_device *d = device_of(taps);
    wg_tap_queue *q = wg_calloc(1, sizeof *q);
    if (!q) return wg_nomem(err, sizeof *q, "kept hidden states");
    *q = (wg_tap_queue){ .taps = taps, .room = rows, .n = n, .whole = n == taps->n };
    for (int i = 0; i < n; i++) {
        q->column[i] = column_of(taps, tap[i]);
        q->whole = q->whole && q->column[i] == i;
    }
    const size_t floats = (size_t)rows * queue_floats(q);
    q->at = d->class->alloc(d, floats);
    if (!q->at) {
        wg_free(q);
        return wg_nomem(err, floats * sizeof(float), "kept hidden states; ask for fewer taps or rows");
    }
    *out = q;
    return WG_OK;
}

void wg_tap_queue_close(wg_tap_queue *q)
{
    if (!q) return;
    device_of(q->taps)->class->free(device_of(q->taps), q->at);
    wg_free(q);
}

/* Copies within the device; the parts do not overlap. */
static void copy(const wg_tap_queue *q, float *to, const float *from, size_t floats)
{
    wg_device *d = device_of(q->taps);
    d->class->copy(d, to, from, floats);
}

/* Moves all rows to the begin, in pieces as long as the way they go. */
static void to_begin(wg_tap_queue *q)
{
    const size_t row = queue_floats(q);
    for (int done = 0, n; done < q->rows; done += n) {
        n = q->rows - done < q->first ? q->rows - done : q->first;
        copy(q, q->at + (size_t)done * row, q->at + (size_t)(q->first + done) * row, (size_t)n * row);
    }
    q->first = 0;
}

/* The queue's taps of a row of the pass, in pieces that follow each other there too. */
static void take_columns(const wg_tap_queue *q, float *to, const float *from)
{
    const size_t dim = (size_t)q->taps->dim;
    for (int i = 0, run; i < q->n; i += run) {
        for (run = 1; i + run < q->n && q->column[i + run] == q->column[i] + run; run++) {}
        copy(q, to + (size_t)i * dim, from + (size_t)q->column[i] * dim, (size_t)run * dim);
    }
}

void wg_tap_queue_push(wg_tap_queue *q, const int *row, int n)
{
    const size_t floats = queue_floats(q);
    wg_assert(n <= wg_tap_queue_room(q));
    if (q->rows == 0) q->first = 0;
    if (q->first + q->rows + n > q->room) to_begin(q);
    float *to = q->at + (size_t)(q->first + q->rows) * floats;
    for (int i = 0, run; i < n; i += run, to += (size_t)run * floats) {
        for (run = 1; q->whole && i + run < n && row[i + run] == row[i] + run; run++) {}
        wg_assert(row[i] + run <= q->taps->rows);
        const float *from = wg_taps_at(q->taps, row[i]);
        if (q->whole) copy(q, to, from, (size_t)run * floats);
        else take_columns(q, to, from);
    }
    q->rows += n;
}

int wg_tap_queue_room(const wg_tap_queue *q) { return q->room - q->rows; }
int wg_tap_queue_rows(const wg_tap_queue *q) { return q->rows; }

const float *wg_tap_queue_at(const wg_tap_queue *q, int i)
{
    wg_assert(i >= 0 && i < q->rows);
    return q->at + (size_t)(q->first + i) * queue_floats(q);
}

wg_status wg_tap_queue_read(const wg_tap_queue *q, int i, int rows, float *to, wg_error *err)
{
    const size_t row = queue_floats(q);
    wg_assert(i >= 0 && rows >= 0 && i + rows <= q->rows);
    return download(q->taps, q->at + (size_t)(q->first + i) * row, (size_t)rows * row, to, err);
}

void wg_tap_queue_drop(wg_tap_queue *q, int n)
{
    wg_assert(n >= 0 && n <= q->rows);
    q->first += n;
    q->rows -= n;
}

void wg_tap_queue_cut(wg_tap_queue *q, int n)
{
    wg_assert(n >= 0 && n <= q->rows);
    q->rows -= n;
}
