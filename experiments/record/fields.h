/* SPDX-License-Identifier: MIT
 * The members of the lines of requests.jsonl and steps.jsonl: name, type, unit, where the value is stored, what it means. What
 * writes lines (run_writer.c), reads them back (resume_cursor.c), scans them (run_reader.c), lists them (wager list fields) and
 * documents them (results/README.md, which test_fields holds against them) goes by these tables. */
#ifndef WG_EXPERIMENTS_RECORD_FIELDS_H
#define WG_EXPERIMENTS_RECORD_FIELDS_H

#include "experiments/record/run_writer.h"

/* How a value is stored. OWN: by functions of its own. WRITER: run_writer.c puts it, for it needs the tokenizer or the file. */
typedef enum wg_field_type {
    WG_FIELD_INT,
    WG_FIELD_LONG,
    WG_FIELD_REAL,
    WG_FIELD_MS,
    WG_FIELD_TEXT,
    WG_FIELD_OWN,
    WG_FIELD_WRITER
} wg_field_type;

/* Which lines have it. */
enum {
    WG_FIELD_ADDRESS = 1, /* requests and steps alike: which request it is */
    WG_FIELD_ALWAYS = 2,  /* requests, also those that failed */
    WG_FIELD_OK = 4,      /* those that ended well */
    WG_FIELD_STEPPED = 8, /* of these, with "trace": steps or probs */
    WG_FIELD_FAILED = 16,
    WG_FIELD_STEP = 32, /* a line of steps.jsonl */
};

typedef struct wg_field {
    const char *name; /* of the member; "a.b": member b of the object a */
    unsigned in;      /* WG_FIELD_ADDRESS, ... */
    wg_field_type type;
    size_t at; /* in wg_request or wg_step_record. MS: seconds there, milliseconds in the line */
    int entry; /* in wg_entry (run_reader.h), an int32_t (INT, LONG) or the line's double (REAL, MS); -1: not there */
    json_t *(*value)(const void *record);           /* OWN: NULL leaves the member out */
    void (*read)(void *record, const json_t *line); /* OWN: NULL is not read back */
    const char *unit, *doc;
} wg_field;

extern const wg_field wg_request_fields[], wg_step_fields[]; /* end with a NULL name */

/* Sets the members that lie in the record and are in one of the lines `in`. */
void wg_fields_put(json_t *line, const wg_field *table, unsigned in, const void *record);

/* The other way round. A whole number that is missing is 0, another one NaN. */
void wg_fields_read(void *record, const wg_field *table, unsigned in, const json_t *line);

/* Are two lines of the same request, by all fields of its address that are read back? */
bool wg_fields_same_address(const json_t *a, const json_t *b);

/* Is this line of the request with the address of q? */
bool wg_fields_is_of(const json_t *line, const wg_request *q);

#endif
