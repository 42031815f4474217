/* SPDX-License-Identifier: MIT
 * Rounds that a device runs without the host (kernels/cuda/decode.h): the body of a round is recorded once, as a loop, and
 * the host reads the result of each round while the next ones run. Text and counts are those of rounds that the host runs.
 *
 * A loop ends when no sequence runs, its window of rounds is over, the ring has no space for another round, or the host
 * stops it. Pages for a whole window are reserved before it starts; pages that the text did not reach are released after it. */
#ifndef WG_CORE_MODEL_DECODE_LOOP_H
#define WG_CORE_MODEL_DECODE_LOOP_H

#include "core/model/device_chain.h"
#include "core/model/lm.h"
#include "kernels/cuda/decode.h"

typedef struct wg_decode_loop_options {
    wg_device_chain draft;
    const wg_verify_spec *how; /* the target's chain and rule; borrowed */
    const uint64_t *ends;      /* (vocab bits, in words) tokens that end a text; copied */
    int sequences, rows;       /* most sequences of a batch; most rows of p that the target verifies in one pass */
    int rounds, events;        /* of a window; of the ring */
} wg_decode_loop_options;

typedef struct wg_decode_loop_seq {
    wg_kv_seq *kv; /* holds all but the last token */
    uint64_t seed; /* of its chance */
    uint32_t request;
    const int32_t *token; /* (n) its text, which must not change until the loop has started */
    int n, limit;
} wg_decode_loop_seq;

typedef struct wg_decode_loop wg_decode_loop;

/* Times of a loop so far, in seconds: waiting for its events; of that, for drafts. */
typedef struct wg_decode_loop_times {
    double all, draft;
} wg_decode_loop_times;

/* *out stays NULL where no loop is possible: the models are not on one device or attend over a window, passes are not recorded
 * there, drafts are longer than WG_DECODE_DRAFT_MAX or of another vocabulary, or not even one sequence fits. ENOMEM names the
 * option to lower. */
wg_status wg_decode_loop_open(wg_decode_loop **out, wg_lm *target, const wg_kv *kv, const wg_decode_loop_options *o,
                              wg_error *err);
void wg_decode_loop_close(wg_decode_loop *l); /* NULL is fine; before the models */

/* Whether the loop can run this batch: it has places for the sequences, the draft model has read all but two tokens of each,
 * and none can outgrow the context in a round. */
bool wg_decode_loop_fits(const wg_decode_loop *l, const wg_decode_loop_seq *seq, int n);

/* Runs up to `rounds` rounds, fewer where the window or the ring ends. *ran: their number; 0 where the loop could not be
 * recorded, which is permanent. on_event is called for each event in order while later rounds run; when it returns false,
 * rounds after that event's round do not count, and the caches are as after that round. On failure exactly the rounds that
 * on_event was called for have been made. */
typedef bool wg_decode_loop_fn(void *user, const wg_gpu_event *event);
wg_status wg_decode_loop_run(wg_decode_loop *l, const wg_decode_loop_seq *seq, int n, int rounds, wg_decode_loop_fn *on_event,
                             void *user, int *ran, wg_error *err);
wg_decode_loop_times wg_decode_loop_times_of(const wg_decode_loop *l);

/* Limits windows and ring below their opened sizes, for tests. */
void wg_decode_loop_limit(wg_decode_loop *l, int rounds, int events);

#endif
