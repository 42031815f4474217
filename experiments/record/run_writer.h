/* SPDX-License-Identifier: MIT
 * The result folder (results/README.md): config.json and machine.json first, then a line per request in requests.jsonl (and per
 * step in steps.jsonl; per round in trace.wgt, as it ends) as each one finishes, summary.json last. A line is one write(), so
 * killing a run loses at most the request in flight; when the disk fills, the half line is taken back, no summary appears. */
#ifndef WG_EXPERIMENTS_RECORD_RUN_WRITER_H
#define WG_EXPERIMENTS_RECORD_RUN_WRITER_H

#include "core/engine/engine.h"
#include "experiments/config/config.h"
#include "experiments/base/energy.h"
#include "experiments/base/json_number.h"
#include "experiments/record/pass_stats.h"
#include "experiments/record/composite_stats.h"

/* One target pass of one sequence. Seconds are its share of the step: the step's divided by its sequences. */
typedef struct wg_step_record {
    int32_t position, nodes, probes, height, accepted, emitted, batch; /* position of the first token it emitted */
    wg_composite_step composite;
    double seconds;
    wg_phases phases;
} wg_step_record;

/* One request of one arm: a prompt, or a turn of a conversation. Seconds but ttft and tpot are shares of steps, as above: over
 * a batch they add up to wall time. */
typedef struct wg_request {
    int cell, group, prompt, turn, repeat; /* cell -1: the group's baseline; turn: of the conversation, from 0 */
    const wg_prompt *source;
    wg_status status; /* WG_OK, or why it failed: */
    char error[512];
    int prompt_tokens, n; /* tokens before the output, earlier turns among them; tokens of the output */
    int cached;           /* of the former, those that were in the cache already */
    int32_t *token;       /* (room for max_tokens) the output */
    wg_finish finish;
    double prefill, decode, forward; /* forward: in the target's forward passes, part of decode */
    double ttft, tpot;               /* wall seconds to the first step's end; per token after it (NaN: there are none) */
    wg_phases phases;
    wg_counts counts;
    wg_device_passes on_device; /* of counts.passes */
    wg_pass_stats pass_stats;
    wg_composite_totals composite;
    wg_events events;           /* wall seconds */
    double last;                /* when the latest event came */
    double joules;              /* its share of its batch's, by time; NaN: not measured */
    char sha256[WG_SHA256_HEX]; /* of the output's ids as little-endian int32 */
    int equals;                 /* 1 or 0: the baseline's output or not; -1: the baseline has not run yet */
    long long trace_at;         /* of its record in trace.wgt, when there is one */
    wg_step_record *step;       /* (steps), when traced */
    int steps, cap_steps;
} wg_request;

typedef struct wg_run_writer wg_run_writer;

/* Makes the folder and writes config.json and machine.json. dir: the folder itself (created; must be empty if it is there), or
 * NULL for results/<name>/<hash>-<host>-<utc>. Errors: EIO naming the file and what to do; EINVAL when the folder is in use. */
wg_status wg_run_writer_open(wg_run_writer **out, const char *dir, const wg_config *config, const json_t *machine,
                             wg_error *err);

/* The same for a folder that may hold a beginning of this very run (resume.h): its requests can be taken instead of run. dir
 * NULL: the latest folder of this config. Other errors: those of wg_resume_check and wg_resume_find. */
wg_status wg_run_writer_resume(wg_run_writer **out, const char *dir, const wg_config *config, const json_t *machine,
                               wg_error *err);

/* How many requests can still be taken; takes one (as wg_resume_cursor_take). Before the first one that is recorded after that, cut
 * forgets those that remain and notes the hour in machine.json; it may be called again. */
int wg_run_writer_left(const wg_run_writer *r);
wg_status wg_run_writer_take(wg_run_writer *r, wg_request *q, int max_tokens, wg_error *err);
wg_status wg_run_writer_cut(wg_run_writer *r, wg_error *err);
void wg_run_writer_close(wg_run_writer *r); /* NULL is fine */
const char *wg_run_writer_path(const wg_run_writer *r);

/* Appends a request (its text decoded with `tokenizer`, which may be NULL) and its steps. */
wg_status wg_run_writer_request(wg_run_writer *r, const wg_request *q, const wg_tokenizer *tokenizer, wg_error *err);
double wg_run_writer_traced(const wg_run_writer *r); /* seconds that writing steps took */
/* trace.wgt of a run that traces probabilities: where it ends; appends whole records (trace.h). */
long long wg_run_writer_trace_end(const wg_run_writer *r);
wg_status wg_run_writer_trace(wg_run_writer *r, const void *bytes, size_t n, wg_error *err);
/* Appends whole lines that another folder has: of requests.jsonl, or of steps.jsonl. */
wg_status wg_run_writer_lines(wg_run_writer *r, bool steps, const char *text, size_t n, wg_error *err);
/* cost.json (calibrate.h): what it holds, or an empty list; and its new contents. */
json_t *wg_run_writer_known_costs(const wg_run_writer *r);
wg_status wg_run_writer_costs(wg_run_writer *r, const json_t *groups, wg_error *err);
wg_status wg_run_writer_summary(wg_run_writer *r, const json_t *summary, wg_error *err);

/* What ran this: processor, memory, system, the program and its digest, environment, digests of the files the config names,
 * which counters of energy there are (energy may be NULL: nobody looked). */
json_t *wg_machine_json(const wg_config *config, const wg_energy *energy);

json_t *wg_run_writer_machine(const char *dir); /* machine.json as it stands there, or NULL */

#endif
