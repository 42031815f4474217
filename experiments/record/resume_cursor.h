/* SPDX-License-Identifier: MIT
 * Resuming an interrupted run. The requests of a run have a fixed order (groups, repeats, batches, arms), so the lines of a
 * folder are a prefix of the whole run: requests that have lines are read back, and work starts at the first missing one. An
 * incomplete last line, a request without all of its steps, and steps without a request are cut off.
 *
 * Resuming is refused, with the difference in the message, for another config, other prompts or weights, another program or
 * another processor. */
#ifndef WG_EXPERIMENTS_RECORD_RESUME_CURSOR_H
#define WG_EXPERIMENTS_RECORD_RESUME_CURSOR_H

#include <stdio.h>
#include <sys/types.h>

#include "experiments/record/run_writer.h"

/* Offsets in requests.jsonl, steps.jsonl and trace.wgt after a request. */
typedef struct wg_resume_end {
    off_t requests, steps, trace;
} wg_resume_end;

typedef struct wg_resume_cursor {
    FILE *file;        /* requests.jsonl, at line `next` */
    char *path, *line; /* path: requests.jsonl's */
    size_t room;
    wg_resume_end *end; /* (n) of each request */
    int n, next;        /* complete requests; requests already read back */
} wg_resume_cursor;

bool wg_resume_same_config(const char *dir, const wg_config *config); /* compares with config.json of the folder */

/* Checks that this config can be resumed in this folder on this machine. EINVAL names the difference. */
wg_status wg_resume_check(const char *dir, const wg_config *config, const json_t *machine, wg_error *err);

/* Appends the current time to "resumed" in machine.json. */
wg_status wg_resume_note(const char *dir, const json_t *machine, wg_error *err);

/* Whether the folder has a summary of the complete run. */
bool wg_resume_finished(const char *dir);

/* Scans the files (steps.jsonl when `trace`, the length of trace.wgt when `probs`) without changing them. A missing file
 * counts as empty. EFORMAT: a whole line whose checksum (line_sum.h) is wrong or missing. */
wg_status wg_resume_cursor_open(wg_resume_cursor *k, const char *dir, bool trace, bool probs, wg_error *err);
void wg_resume_cursor_close(wg_resume_cursor *k);

/* The offsets after the first n requests. */
wg_resume_end wg_resume_cursor_end(const wg_resume_cursor *k, int n);

/* Reads the next line into q. The caller has set q's cell, group, prompt, turn and repeat to the expected ones, and its
 * prompt and arrays. EFORMAT when the line is another request's or is damaged. */
wg_status wg_resume_cursor_take(wg_resume_cursor *k, wg_request *q, wg_error *err);

/* The latest results/<name>/<hash>-*-<utc> of this config that has no complete summary, or else the latest (wg_free). ENOENT
 * lists the folders that exist. */
wg_status wg_resume_find(char **out, const wg_config *config, wg_error *err);

#endif
