/* SPDX-License-Identifier: MIT
 * The run writer, which fills the result folder (results/README.md): config.json and machine.json first, then one line per
 * request in requests.jsonl (one per step in steps.jsonl, one record per round in trace.wgt) when it finishes, summary.json
 * last. A line is one write(), so a killed run loses at most the request in flight; when the disk is full, the incomplete
 * line is removed and no summary is written. */
#ifndef WG_EXPERIMENTS_RECORD_RUN_WRITER_H
#define WG_EXPERIMENTS_RECORD_RUN_WRITER_H

#include "core/engine/engine.h"
#include "experiments/config/config.h"
#include "experiments/base/energy.h"
#include "core/base/json_number.h"
#include "experiments/record/acceptance.h"
#include "experiments/record/pass_stats.h"
#include "experiments/record/composite_stats.h"

/* One target pass of one sequence. Seconds are its share of the step: the step's seconds divided by its sequences. */
typedef struct wg_step_record {
    int32_t position, nodes, probes, height, accepted, emitted, batch; /* position of the first token it emitted */
    wg_composite_step composite;
    double seconds;
    wg_phases phases;
} wg_step_record;

/* One request of one arm: a prompt, or a turn of a conversation. All seconds but ttft and tpot are shares of steps, as above,
 * so over a batch they add up to wall time. */
typedef struct wg_request {
    int cell, group, prompt, turn, repeat; /* cell -1: the baseline of the group; turn: of the conversation, from 0 */
    const wg_prompt *source;
    wg_status status; /* WG_OK, or the error, with `error` as its message */
    char error[512];
    int prompt_tokens, n; /* tokens before the output, earlier turns included; tokens of the output */
    int cached;           /* tokens before the output that were already in the cache */
    int32_t *token;       /* (cap_tokens) the output */
    wg_finish finish;
    double prefill, decode, forward; /* forward: the part of decode in the target's passes */
    double ttft, tpot;               /* wall seconds to the end of the first step; per token after it (NaN: no such token) */
    wg_phases phases;
    wg_counts counts;
    wg_taught taught;           /* on the text of plain decoding at its address; 0 after the first repeat */
    wg_device_passes on_device; /* part of counts.passes */
    wg_pass_stats pass_stats;
    wg_composite_totals composite;
    wg_events events;           /* wall seconds */
    double last;                /* time of the latest event */
    double joules;              /* its share, by time, of the batch's energy; NaN: not measured */
    char sha256[WG_SHA256_HEX]; /* digest of the output's ids as little-endian int32 */
    int equals;                 /* 1: equal to the baseline's output; 0: not; -1: the baseline has not run yet */
    long long trace_at;         /* offset of its record in trace.wgt, when there is one */
    wg_step_record *step;       /* (steps), when traced */
    int steps, cap_steps, cap_tokens;
} wg_request;

typedef struct wg_run_writer wg_run_writer;

/* Creates the folder and writes config.json and machine.json. dir: the folder (created; must be empty if it exists), or NULL
 * for results/<name>/<hash>-<host>-<utc>. Errors: EIO with the file and a remedy; EINVAL when the folder is in use. */
wg_status wg_run_writer_open(wg_run_writer **out, const char *dir, const wg_config *config, const json_t *machine,
                             wg_error *err);

/* As wg_run_writer_open, for a folder that may contain the first part of this run (resume_cursor.h), whose requests can be
 * read back instead of run. dir NULL: the latest folder of this config. Other errors: those of wg_resume_check and
 * wg_resume_find. */
wg_status wg_run_writer_resume(wg_run_writer **out, const char *dir, const wg_config *config, const json_t *machine,
                               wg_error *err);

/* wg_run_writer_left: the number of requests that can still be read back. wg_run_writer_take reads one (as
 * wg_resume_cursor_take). wg_run_writer_cut must be called before the next request is written: it drops the remaining ones
 * and records the time in machine.json; further calls have no effect. */
int wg_run_writer_left(const wg_run_writer *r);
wg_status wg_run_writer_take(wg_run_writer *r, wg_request *q, wg_error *err);
wg_status wg_run_writer_cut(wg_run_writer *r, wg_error *err);
void wg_run_writer_close(wg_run_writer *r); /* NULL is fine */
const char *wg_run_writer_path(const wg_run_writer *r);

/* Appends a request (its text decoded with `tokenizer`, which may be NULL) and its steps. */
wg_status wg_run_writer_request(wg_run_writer *r, const wg_request *q, const wg_tokenizer *tokenizer, wg_error *err);
double wg_run_writer_traced(const wg_run_writer *r); /* seconds spent on writing steps */
/* trace.wgt of a run that traces probabilities: its length; appends complete records (trace.h). */
long long wg_run_writer_trace_end(const wg_run_writer *r);
wg_status wg_run_writer_trace(wg_run_writer *r, const void *bytes, size_t n, wg_error *err);
/* Appends complete lines of another folder's requests.jsonl, or steps.jsonl. */
wg_status wg_run_writer_lines(wg_run_writer *r, bool steps, const char *text, size_t n, wg_error *err);
/* cost.json (calibrate.h): its contents, or an empty list; and writing it. */
json_t *wg_run_writer_known_costs(const wg_run_writer *r);
wg_status wg_run_writer_costs(wg_run_writer *r, const json_t *groups, wg_error *err);
wg_status wg_run_writer_summary(wg_run_writer *r, const json_t *summary, wg_error *err);

/* The environment of a run: processor, memory, system, the program and its digest, environment variables, digests of the
 * files that the config names, energy counters (energy NULL: not opened). */
json_t *wg_machine_facts_json(void); /* facts that do not depend on an experiment */
json_t *wg_machine_json(const wg_config *config, const wg_energy *energy);

/* The mean number of running or waiting processes in the last minute; NaN: unknown. */
double wg_machine_load(void);
/* Prints the line above a table: processor, cores, kernel level, load before the run and now. */
void wg_machine_line(FILE *f, double load_before);

json_t *wg_run_writer_machine(const char *dir); /* the contents of machine.json, or NULL */

#endif
