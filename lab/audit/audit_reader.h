/* SPDX-License-Identifier: MIT
 * Reading records of other engines: JSON lines of the format of docs/audit.md. A line is a header, which holds for the lines
 * after it, or a record. Memory is bounded by the line: a partial row is read over the tokens that its round lists and one
 * class for all others, whatever the size of the vocabulary. */
#ifndef WG_LAB_AUDIT_AUDIT_READER_H
#define WG_LAB_AUDIT_AUDIT_READER_H

#include <jansson.h>
#include <stdio.h>

#include "lab/audit/audit_round.h"
#include "core/setup/spec.h"

enum { WG_AUDIT_NAME = 128, WG_AUDIT_LINE_MAX = 256 << 20 };

/* The properties that a header gives the records after it. */
typedef struct wg_audit_header {
    char stream[WG_AUDIT_NAME]; /* "": none */
    char rule[WG_AUDIT_NAME];   /* "NAME[:k=v,...]"; "": unknown */
    wg_sibling_law law;         /* 0: iid if rows of q are recorded, else fixed */
    double row_error;
} wg_audit_header;

/* Sums of rounds, from records of counters. -1: not recorded. */
typedef struct wg_audit_counters {
    double rounds, drafted, accepted, emitted;
    int histogram_n;                           /* -1: not recorded */
    double histogram[WG_TREE_MAX];             /* (histogram_n) rounds by number of accepted tokens */
    int positions;                             /* -1: not recorded */
    double by_position[WG_TREE_MAX];           /* (positions) accepted tokens by position */
    double steps, step_drafted, step_accepted; /* length and sums of the lists by round */
    double excess;                             /* rounds that accept more than they draft */
    double mean_length, mean_emitted, rate;    /* as stated by the engine; NaN: not recorded. mean_emitted: emitted / rounds */
} wg_audit_counters;

typedef enum wg_audit_line { WG_AUDIT_NOTHING, WG_AUDIT_HEADER, WG_AUDIT_RECORD } wg_audit_line;

typedef struct wg_audit_reader {
    char *name; /* for messages */
    long line;
    wg_audit_header header;
    wg_audit_round round; /* the last record's round, valid until the next line */
    char stream[WG_AUDIT_NAME];
    wg_audit_counters counters; /* for WG_EVIDENCE_COUNTERS */
    long tokens, differs;       /* for WG_EVIDENCE_TOKENS: emitted; the first that differs from plain decoding, -1: none */
    bool plain;                 /* plain decoding was recorded */
    wg_rows p, q, raw;
    int32_t *listed; /* tokens of the round's rows, ascending */
    int n_listed, room;
} wg_audit_reader;

wg_status wg_audit_reader_open(wg_audit_reader *r, const char *name, wg_error *err);
void wg_audit_reader_close(wg_audit_reader *r);

/* Reads one line. EFORMAT "NAME:LINE: what". EUNSUPPORTED: more drafts than this build allows. */
wg_status wg_audit_read_line(wg_audit_reader *r, const char *text, size_t n, wg_audit_line *out, wg_error *err);

/* The same for a parsed value; messages have no position. */
wg_status wg_audit_read_value(wg_audit_reader *r, const json_t *o, wg_audit_line *out, wg_error *err);

/* Reads the next line of a file into *text (grown; the caller frees it); *n: its bytes, -1 at the end. EIO, ENOMEM, EFORMAT
 * (longer than WG_AUDIT_LINE_MAX). */
wg_status wg_audit_next_line(wg_audit_reader *r, FILE *f, char **text, size_t *room, long *n, wg_error *err);

#endif
