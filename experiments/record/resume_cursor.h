/* SPDX-License-Identifier: MIT
 * Going on with a run that was cut off. A run's requests come in one order (groups, repeats, batches, arms), so what a folder
 * holds is a beginning of the whole: its lines are read back instead of run, and the first one that is missing is where work
 * starts. A torn last line, a request whose steps are not all there, and steps without their request are cut.
 *
 * Refused, naming the difference: another config, other prompts or weights, another program, another processor. */
#ifndef WG_EXPERIMENTS_RECORD_RESUME_CURSOR_H
#define WG_EXPERIMENTS_RECORD_RESUME_CURSOR_H

#include <stdio.h>
#include <sys/types.h>

#include "experiments/record/run_writer.h"

typedef struct wg_resume_cursor {
    FILE *file;        /* requests.jsonl, at line `next` */
    char *path, *line; /* path: of requests.jsonl */
    size_t room;
    off_t *requests_end, *steps_end, *trace_end; /* (n) of the three files behind each request */
    int n, next;                                 /* whole requests; those already taken */
} wg_resume_cursor;

bool wg_resume_same_config(const char *dir, const wg_config *config); /* as config.json says there */

/* May this config go on in this folder, on this machine? EINVAL says what differs. */
wg_status wg_resume_check(const char *dir, const wg_config *config, const json_t *machine, wg_error *err);

/* Adds the hour to machine.json's "resumed". */
wg_status wg_resume_note(const char *dir, const json_t *machine, wg_error *err);

/* Is there a summary of the whole run? */
bool wg_resume_finished(const char *dir);

/* Scans the files (steps.jsonl when `trace`, the length of trace.wgt when `probs`); changes nothing. Absent files hold
 * nothing. */
wg_status wg_resume_cursor_open(wg_resume_cursor *k, const char *dir, bool trace, bool probs, wg_error *err);
void wg_resume_cursor_close(wg_resume_cursor *k);

/* Where the files end behind the requests taken so far. */
off_t wg_resume_cursor_requests_end(const wg_resume_cursor *k);
off_t wg_resume_cursor_steps_end(const wg_resume_cursor *k);
off_t wg_resume_cursor_trace_end(const wg_resume_cursor *k);

/* Reads the next line into q, which says by cell, group, prompt, turn and repeat which request it must be; q->token has room
 * for max_tokens. EFORMAT when it is another one or is damaged. */
wg_status wg_resume_cursor_take(wg_resume_cursor *k, wg_request *q, int max_tokens, wg_error *err);

/* The latest results/<name>/<hash>-*-<utc> of this config that has no finished summary, or the latest at all (wg_free). ENOENT
 * with what is there instead. */
wg_status wg_resume_find(char **out, const wg_config *config, wg_error *err);

#endif
