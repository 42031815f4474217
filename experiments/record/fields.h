/* SPDX-License-Identifier: MIT
 * The members of the lines of requests.jsonl and steps.jsonl: name, type, unit, place of the value in memory, meaning. The
 * run writer (run_writer.c), the resume cursor (resume_cursor.c), the run reader (run_reader.c), `wager list fields` and the
 * tests use these tables. */
#ifndef WG_EXPERIMENTS_RECORD_FIELDS_H
#define WG_EXPERIMENTS_RECORD_FIELDS_H

#include "experiments/record/run_reader.h"
#include "experiments/record/run_writer.h"

/* The storage of a value. OWN: by the row's own functions. WRITER: by run_writer.c, because the value needs the tokenizer or
 * the file. */
typedef enum wg_field_type {
    WG_FIELD_INT,
    WG_FIELD_LONG,
    WG_FIELD_REAL,
    WG_FIELD_MS,
    WG_FIELD_TEXT,
    WG_FIELD_OWN,
    WG_FIELD_WRITER
} wg_field_type;

/* The kinds of lines that have the member. */
enum {
    WG_FIELD_ADDRESS = 1, /* requests and steps: the address of the request */
    WG_FIELD_ALWAYS = 2,  /* all requests, failed ones included */
    WG_FIELD_OK = 4,      /* requests that succeeded */
    WG_FIELD_STEPPED = 8, /* of these, runs with "trace": steps or probs */
    WG_FIELD_FAILED = 16,
    WG_FIELD_STEP = 32, /* a line of steps.jsonl */
    WG_FIELD_KEY = 64,  /* a further bit: with the address the member identifies a line's request */
};

typedef struct wg_field {
    const char *name; /* name of the member; "a.b": member b of object a */
    unsigned in;      /* WG_FIELD_ADDRESS, ... */
    wg_field_type type;
    size_t at; /* offset in wg_request or wg_step_record. MS: seconds in memory, milliseconds in the line */
    int entry; /* offset in wg_entry (run_reader.h), of an int32_t (INT, LONG) or of the line's double (REAL, MS); -1: not in
                * wg_entry */
    json_t *(*value)(const void *record);           /* OWN: NULL leaves the member out */
    void (*read)(void *record, const json_t *line); /* OWN: NULL is not read back */
    const char *unit, *doc;
} wg_field;

extern const wg_field wg_request_fields[], wg_step_fields[]; /* end with a NULL name */

/* Writes the members of `record` that belong to the kinds of lines `in`. */
void wg_fields_put(json_t *line, const wg_field *table, unsigned in, const void *record);

/* Reads the members back; of a list as much as the record has room for. A missing integer is 0, a missing real NaN. */
void wg_fields_read(void *record, const wg_field *table, unsigned in, const json_t *line);

/* Reads the numbers of an entry from a line: a missing integer, or one outside -1 .. 2^31 - 1, is 0, a missing real NaN. */
void wg_fields_read_entry(wg_entry *e, const json_t *line);

/* Target passes of the object speculative_decoding of a line; earlier versions wrote them as num_spec_steps. */
long wg_fields_passes(const json_t *speculation);

/* Whether two lines are of the same request, by all fields of its address that are read back. */
bool wg_fields_same_address(const json_t *a, const json_t *b);

/* Whether this line of requests.jsonl is of q, by its address and WG_FIELD_KEY. */
bool wg_fields_is_of(const json_t *line, const wg_request *q);

#endif
