/* SPDX-License-Identifier: MIT
 * Rounds that a device goes through by itself (kernels/cuda/decode.h): the body of a round is recorded once, as a loop, and the
 * host reads what came of each round while the next ones run. Text and counts are those of rounds that the host makes.
 *
 * A loop ends when no sequence runs, its window of rounds is over, the ring has no room for another round, or the host
 * wants no more. Pages are reserved for a whole window before it starts and given back as the text fell short. */
#ifndef WG_CORE_MODEL_DECODE_LOOP_H
#define WG_CORE_MODEL_DECODE_LOOP_H

#include "core/model/device_chain.h"
#include "core/model/lm.h"
#include "kernels/cuda/decode.h"

typedef struct wg_decode_loop_options {
    wg_device_chain draft;
    const wg_verify_spec *how; /* the target's chain and rule; borrowed */
    const uint64_t *ends;      /* (vocab bits, in words) tokens that end a text; copied */
    int sequences, rows;       /* of a batch, at most; of p that the target settles at once */
    int rounds, events;        /* of a window; of the ring */
} wg_decode_loop_options;

typedef struct wg_decode_loop_seq {
    wg_kv_seq *kv; /* holds all but the last token */
    uint64_t seed; /* of its chance */
    uint32_t request;
    const int32_t *token; /* (n) its text, unchanged until the loop has started */
    int n, limit;
} wg_decode_loop_seq;

typedef struct wg_decode_loop wg_decode_loop;

/* What there is of a loop's times so far, in seconds: waiting for its events, of that for drafts. */
typedef struct wg_decode_loop_times {
    double all, draft;
} wg_decode_loop_times;

/* *out stays NULL where there is none: the models are not on one card, passes are not recorded there, drafts are longer than
 * WG_DECODE_DRAFT_MAX or over other tokens, not even one sequence has room. ENOMEM names what to lower. */
wg_status wg_decode_loop_open(wg_decode_loop **out, wg_lm *target, const wg_kv *kv, const wg_decode_loop_options *o,
                              wg_error *err);
void wg_decode_loop_close(wg_decode_loop *l); /* NULL is fine; before the models */

/* Whether a batch can go through it now: as many sequences as it has places for, of which the draft model has seen all but two
 * tokens or will see none. */
bool wg_decode_loop_fits(const wg_decode_loop *l, const wg_decode_loop_seq *seq, int n);

/* Up to `rounds` rounds, fewer where the window or the ring ends. *ran: how many; 0 where the loop could not be recorded, which
 * it then never can. on_event is called for each event in order while later rounds run; when it returns false no round behind
 * that event's counts, and the caches are then as after that round. On failure the rounds that on_event was called for have
 * been made, and none after them. */
typedef bool wg_decode_loop_fn(void *user, const wg_gpu_event *event);
wg_status wg_decode_loop_run(wg_decode_loop *l, const wg_decode_loop_seq *seq, int n, int rounds, wg_decode_loop_fn *on_event,
                             void *user, int *ran, wg_error *err);
wg_decode_loop_times wg_decode_loop_times_of(const wg_decode_loop *l);

/* Shorter windows and a smaller ring than it was opened with, for tests. */
void wg_decode_loop_limit(wg_decode_loop *l, int rounds, int events);

#endif
