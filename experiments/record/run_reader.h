/* SPDX-License-Identifier: MIT
 * A result folder, read: its three documents and a row of numbers per request. What a request said stays in the file and is
 * fetched when it is asked for, so a folder of a hundred thousand requests takes a few dozen megabytes. */
#ifndef WG_EXPERIMENTS_RECORD_RUN_READER_H
#define WG_EXPERIMENTS_RECORD_RUN_READER_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "core/base/error.h"
#include "experiments/base/json_scan.h"

/* A prompt, the same in every run that has its id and its text, of all its turns; tokens: of its first line. */
typedef struct wg_prompt_key {
    char *id, *category, *hash;
    int tokens;
} wg_prompt_key;

typedef struct wg_entry {
    off_t at;                                  /* of its line */
    int32_t cell, group, prompt, turn, repeat; /* cell -1: a baseline; prompt: index into `asked` */
    int32_t tokens, passes, drafted, accepted;
    bool ok;
    unsigned char sha[32];              /* of the output */
    double decode, prefill, ttft, tpot; /* milliseconds; NaN: none */
} wg_entry;

typedef struct wg_run_reader {
    char *path;
    json_t *config, *machine, *summary; /* summary NULL: the run never came to its end */
    json_t *cells;                      /* [{"cell": swept, "config": resolved}] from the config */
    bool complete;
    wg_entry *entry;
    int n, failed;
    wg_prompt_key *asked;
    int n_asked;
    FILE *file; /* requests.jsonl */
} wg_run_reader;

/* Is this a summary.json as far as its readers rely on it: an object, in whose cells are values, drafter and rule? */
bool wg_summary_is_sound(const json_t *summary);

/* Errors: ENOENT, EIO; EFORMAT naming file and line. A torn last line is left out. */
wg_status wg_run_reader_open(wg_run_reader **out, const char *dir, wg_error *err);
void wg_run_reader_close(wg_run_reader *f); /* NULL is fine */

/* The whole line of an entry; NULL when it cannot be read. */
json_t *wg_run_reader_line(const wg_run_reader *f, const wg_entry *e);

/* Reads one line (n bytes) into e; id, hash, category and prompt length into *asked as spans of the line. */
typedef struct wg_prompt_key_span {
    wg_span id, hash, category;
    int tokens;
} wg_prompt_key_span;
bool wg_entry_read(const char *line, size_t n, wg_entry *e, wg_prompt_key_span *asked);

/* Order of prompts by id, then text. Takes pointers to wg_prompt_key. */
int wg_prompt_key_compare(const wg_prompt_key *a, const wg_prompt_key *b);

/* Is this path swept in every grid, so that all names of cells have it? */
bool wg_run_reader_sweeps(const wg_run_reader *f, const char *key);

/* Name of a cell for people: "length=4, rule=match", or drafter and rule where nothing is swept (wg_free). */
char *wg_run_reader_cell_name(const wg_run_reader *f, int cell);

#endif
