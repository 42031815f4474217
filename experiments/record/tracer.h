/* SPDX-License-Identifier: MIT
 * What a run with "trace": "probs" writes into trace.wgt, as it goes: rounds when they end, outside every clock. A failure is
 * one of the folder (record.h), not of a request. */
#ifndef WG_EXPERIMENTS_RECORD_TRACER_H
#define WG_EXPERIMENTS_RECORD_TRACER_H

#include "experiments/record/run_writer.h"
#include "experiments/record/trace.h"

typedef struct wg_tracer {
    wg_run_writer *record;   /* borrowed */
    wg_trace_writer *writer; /* (groups) */
    int groups;
    json_t *header; /* goes before the first request */
    double seconds; /* spent on it so far */
} wg_tracer;

/* machine: what ran it (wg_machine_json), for the digests. Groups are added in their order. */
wg_status wg_tracer_open(wg_tracer **out, const wg_config *config, const json_t *machine, wg_run_writer *record, wg_error *err);
wg_status wg_tracer_add_group(wg_tracer *t, const wg_config *config, int vocab, const wg_tokenizer *tokenizer, wg_error *err);
void wg_tracer_close(wg_tracer *t); /* NULL is fine */

/* A request begins: sets q->trace_at. A round: of q->step[step], whose times it gets; s and tree are what the step left, the rows
 * of p are in e. The request's end. */
wg_status wg_tracer_begin(wg_tracer *t, wg_request *q, const wg_seq *s, wg_error *err);
wg_status wg_tracer_round(wg_tracer *t, const wg_request *q, int step, const wg_seq *s, wg_engine *e, const wg_tree *tree,
                          wg_error *err);
wg_status wg_tracer_end(wg_tracer *t, const wg_request *q, const wg_seq *s, wg_error *err);

#endif
