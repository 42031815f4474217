/* SPDX-License-Identifier: MIT
 * Hidden states (taps) of a language model. Tap i of a row is its residual stream after i layers: tap 0 is the embedding as it
 * enters the first layer (scaled, with positions), tap L that behind the last of L layers, before the final norm; tap L + 1 is
 * tap L behind the final norm. They are what drafters with heads read (EAGLE, MTP, Medusa, DFlash; methods.md, Heads).
 *
 * They are requested per pass: if a batch's `taps` is set (after wg_batch_clear, which unsets it), the taps of all its rows are
 * written here, those of rows without logits, too. They lie in the memory of the model's device as (rows, taps, dim) floats,
 * and are those of the last such pass. The Prefix Law holds for them as for logits: they depend on the row's token prefix
 * alone. The taps of an external model (external/external.h) are as that model declares them, in host memory.
 *
 * A wg_tap_queue per sequence keeps the taps that a drafter has not read: after a commit the taps of its rows are pushed in the
 * order of the text, and stay on the device until they are dropped. Queues of several readers take their taps from one pass
 * (core/engine/tap_feed.h). */
#ifndef WG_CORE_MODEL_TAPS_H
#define WG_CORE_MODEL_TAPS_H

#include "core/model/device.h"
#include "core/model/lm.h"

enum { WG_TAPS_MOST = 64 };

typedef struct wg_taps wg_taps;

/* Taps tap[0 .. n-1] of lm, in this order; room for its largest pass is allocated on its device, where it has a largest one.
 * Borrows lm: close before it. EUNSUPPORTED: lm gives no hidden states. EINVAL: no tap, too many, one twice, one the model has
 * not. ENOMEM. */
wg_status wg_taps_open(wg_taps **out, wg_lm *lm, const int *tap, int n, wg_error *err);
void wg_taps_close(wg_taps *t); /* NULL is fine; close its queues first */

/* The checks of wg_taps_open without allocation: of a list for a model with `layers` layers; of a model and a list. */
wg_status wg_taps_check(const int *tap, int n, int layers, wg_error *err);
wg_status wg_taps_offered(const wg_lm *lm, const int *tap, int n, wg_error *err);

int wg_taps_count(const wg_taps *t);
int wg_taps_dim(const wg_taps *t);
int wg_taps_rows(const wg_taps *t); /* rows of the last pass that requested taps; 0 after a failed pass */

/* Row `row` of the last pass: (taps, dim) floats in device memory; rows follow each other. Valid until the next pass. */
const float *wg_taps_at(const wg_taps *t, int row);

/* Copies `rows` rows from `row` on to host memory. EIO: the device failed. */
wg_status wg_taps_read(const wg_taps *t, int row, int rows, float *to, wg_error *err);

/* ---- of one sequence: taps of committed rows that wait for their reader, the oldest first */

typedef struct wg_tap_queue wg_tap_queue;

/* Room for `rows` rows on the device, each (n, dim): of the passes' taps, tap[0 .. n-1] in this order. ENOMEM. */
wg_status wg_tap_queue_open(wg_tap_queue **out, wg_taps *taps, const int *tap, int n, int rows, wg_error *err);
void wg_tap_queue_close(wg_tap_queue *q); /* NULL is fine */

/* Takes rows row[0 .. n-1] of the last pass (indices in its batch). Cannot fail: at most wg_tap_queue_room rows. */
void wg_tap_queue_push(wg_tap_queue *q, const int *row, int n);
int wg_tap_queue_room(const wg_tap_queue *q);
int wg_tap_queue_rows(const wg_tap_queue *q);
const float *wg_tap_queue_at(const wg_tap_queue *q, int i); /* the i-th oldest row, as wg_taps_at; valid until the next push */
wg_status wg_tap_queue_read(const wg_tap_queue *q, int i, int rows, float *to, wg_error *err); /* as wg_taps_read */
void wg_tap_queue_drop(wg_tap_queue *q, int n); /* drops the n oldest, which were read */
void wg_tap_queue_cut(wg_tap_queue *q, int n);  /* drops the n newest, whose tokens left the text */

/* ---- for the pass (forward.c, external/external.c) */

struct wg_taps {
    wg_lm *lm; /* borrowed */
    int tap[WG_TAPS_MOST];
    int n, dim, last; /* last: the largest tap */
    int rows;
    int most;    /* capacity in rows */
    wg_buf room; /* (most, n, dim) */
};

/* Makes room for `rows` rows in all. ENOMEM: nothing has changed. */
wg_status wg_taps_reserve(wg_taps *t, int rows, wg_error *err);

/* The largest tap that a pass requests; -1: none. */
static inline int wg_taps_last(const wg_taps *t) { return t ? t->last : -1; }

/* take: stores x (rows, dim) as tap `tap`, if it is requested. take_last: the taps after the last of `layers` layers and after
 * the final norm. h: scratch. */
void wg_taps_take(wg_taps *t, int tap, const float *x, int rows);
void wg_taps_take_last(wg_taps *t, int layers, const float *x, const wg_norm *norm, float *h, int rows);

#endif
