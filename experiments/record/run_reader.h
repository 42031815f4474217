/* SPDX-License-Identifier: MIT
 * The run reader: the three documents of a result folder and one row of numbers per request. Texts stay in the file and are
 * read on demand, so a folder of a hundred thousand requests needs a few dozen megabytes. */
#ifndef WG_EXPERIMENTS_RECORD_RUN_READER_H
#define WG_EXPERIMENTS_RECORD_RUN_READER_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "core/base/error.h"

/* A prompt's key: equal in all runs whose prompt has the same id and the same text (all turns). tokens: length of the prompt,
 * from its first line. */
typedef struct wg_prompt_key {
    char *id, *category, *hash;
    int tokens;
} wg_prompt_key;

typedef struct wg_entry {
    off_t at;                                  /* offset of its line */
    int32_t cell, group, prompt, turn, repeat; /* cell -1: a baseline; prompt: index into wg_run_reader.asked */
    int32_t tokens, passes, drafted, accepted;
    bool ok;
    unsigned char sha[32];              /* digest of the output */
    double decode, prefill, ttft, tpot; /* milliseconds; NaN: none */
} wg_entry;

typedef struct wg_run_reader {
    char *path;
    json_t *config, *machine, *summary; /* summary NULL: the run is incomplete */
    json_t *cells;                      /* [{"cell", "config", "tells"}] from the config (wg_sweep_cells) */
    bool complete;
    wg_entry *entry;
    int n, failed;
    wg_prompt_key *asked;
    int n_asked;
    FILE *file;     /* requests.jsonl */
    bool published; /* a published result: config.json and summary.json without requests */
} wg_run_reader;

/* Version 2: spec_decode_num_drafts, mean_acceptance_length, acceptance_histogram and conditional_by_position count only rounds
 * that drafted. Readers set these members of earlier summaries to null. */
enum { WG_SUMMARY_SCHEMA = 2 };

/* Whether the members of summary.json that its readers use are present: an object whose cells have values, drafter and rule. */
bool wg_summary_is_sound(const json_t *summary);

/* Opens a folder. Errors: ENOENT, EIO; EFORMAT (file and line), also for a line with a wrong checksum (line_sum.h; lines of
 * earlier versions have none). An incomplete last line is ignored. */
wg_status wg_run_reader_open(wg_run_reader **out, const char *dir, wg_error *err);
wg_status wg_run_reader_open_result(wg_run_reader **out, const char *dir, wg_error *err);    /* also opens a published result */
wg_status wg_run_reader_open_documents(wg_run_reader **out, const char *dir, wg_error *err); /* without requests.jsonl */
void wg_run_reader_close(wg_run_reader *f);                                                  /* NULL is fine */

/* Whether a folder has a run, or the published result of one. */
bool wg_run_reader_is_run(const char *dir);
bool wg_run_reader_is_published(const char *dir);

/* The cells of its summary. EINVAL: the run has none yet. */
wg_status wg_run_reader_cells(const wg_run_reader *f, const json_t **cells, wg_error *err);

/* The whole line of an entry; NULL when it cannot be read. */
json_t *wg_run_reader_line(const wg_run_reader *f, const wg_entry *e);

/* Reads the numbers of a line into e, all but `at` and `prompt`. False: it is no object, or has no id. */
bool wg_entry_read(const json_t *line, wg_entry *e);

/* Order of prompts by id, then text. Takes pointers to wg_prompt_key. */
int wg_prompt_key_compare(const wg_prompt_key *a, const wg_prompt_key *b);

/* A readable name of a cell: what differs between cells, "length=4, rule=match", or drafter and rule where nothing does; with a
 * label that, and what else differs: "LABEL, rule=match" (wg_free). */
char *wg_run_reader_cell_name(const wg_run_reader *f, int cell);

/* The end of captions: processor and kernel level, target models, prompts and requests (free); NULL: out of memory. */
char *wg_run_reader_about(const wg_run_reader *f);

#endif
