/* SPDX-License-Identifier: MIT
 * Writes trace.wgt of a run with "trace": "probs", each round when it ends, outside all timed intervals. Its failures are the
 * result folder's (run_writer.h), not a request's. */
#ifndef WG_EXPERIMENTS_RUN_TRACER_H
#define WG_EXPERIMENTS_RUN_TRACER_H

#include "experiments/record/run_writer.h"
#include "core/trace/trace.h"

typedef struct wg_tracer {
    wg_run_writer *record;   /* borrowed */
    wg_trace_writer *writer; /* (groups) */
    int groups;
    json_t *header; /* written before the first request */
    double seconds; /* spent on tracing so far */
} wg_tracer;

/* machine: the environment (wg_machine_json), for its digests. Groups are added in order. */
wg_status wg_tracer_open(wg_tracer **out, const wg_config *config, const json_t *machine, wg_run_writer *record, wg_error *err);
wg_status wg_tracer_add_group(wg_tracer *t, const wg_config *config, int vocab, const wg_tokenizer *tokenizer, wg_error *err);
void wg_tracer_close(wg_tracer *t); /* NULL is fine */

/* wg_tracer_begin starts a request and sets q->trace_at. wg_tracer_round writes round q->step[step] with its times; s and tree
 * are as the step left them; e has the rows of p. wg_tracer_end ends the request. */
wg_status wg_tracer_begin(wg_tracer *t, wg_request *q, const wg_seq *s, wg_error *err);
wg_status wg_tracer_round(wg_tracer *t, const wg_request *q, int step, const wg_seq *s, wg_engine *e, const wg_tree *tree,
                          wg_error *err);
wg_status wg_tracer_end(wg_tracer *t, const wg_request *q, const wg_seq *s, wg_error *err);

#endif
