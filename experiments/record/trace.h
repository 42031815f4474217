/* SPDX-License-Identifier: MIT
 * The binary trace of a run (docs/traces.md has the bytes): per round the draft tree, the rows of p and q, where its uniforms
 * live, times, and what was kept. Records carry their length and a checksum, so a file that was cut or damaged shows where, and
 * all rounds before that place can be used.
 *
 * A row is stored as `trace_rows` says: exactly (its doubles, a list of those that are not zero, or the one token that has
 * all), as the target's logits (exact too, and good for another sampling chain), or in a compact form. Compact rows carry their
 * distance from the true row: the total variation sum |p - p'| / 2, measured when they were written. */
#ifndef WG_EXPERIMENTS_RECORD_TRACE_H
#define WG_EXPERIMENTS_RECORD_TRACE_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "core/engine/engine.h"

enum { WG_TRACE_NONE, WG_TRACE_STEPS, WG_TRACE_PROBS };               /* the option `trace` */
enum { WG_TRACE_EXACT, WG_TRACE_LOGITS, WG_TRACE_F16, WG_TRACE_TOP }; /* the option `trace_rows` */
enum { WG_ROW_ONE_HOT, WG_ROW_DENSE, WG_ROW_LIST, WG_ROW_LOGITS, WG_ROW_F16, WG_ROW_TOP, WG_ROW_KINDS };
enum { WG_RECORD_HEADER = 1, WG_RECORD_REQUEST, WG_RECORD_ROUND, WG_RECORD_END }; /* what a record is */
enum { WG_TRACE_VERSION = 1, WG_TRACE_VOCAB_MAX = 1 << 20, WG_TRACE_POLICY = 16 };

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* A row in its bytes. */
typedef struct wg_trace_row {
    int kind;                  /* WG_ROW_... */
    uint32_t count;            /* POINT: the token; LIST, TOP: tokens listed */
    double error;              /* total variation between this row and the true one; 0: none */
    const unsigned char *data; /* wg_trace_row_bytes of them */
} wg_trace_row;

/* Bytes of the data of a row of this kind; 0 for a point. */
size_t wg_trace_row_bytes(int kind, uint32_t count, int vocab);

/* The row as a distribution, in row `row` of out (its vocabulary). LOGITS rows are not: those go through a sampler.
 * EFORMAT: it is no distribution. */
wg_status wg_trace_row_read(const wg_trace_row *in, wg_rows *out, int row, wg_error *err);
void wg_trace_row_logits(const wg_trace_row *in, float *logits, int vocab);

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Builds records in memory. A record that was begun and ended lies in `byte`, whole. */
typedef struct wg_trace_writer {
    unsigned char *byte;
    size_t n, room;
    bool failed;    /* out of memory: what is there is not to be used */
    int rows, top;  /* WG_TRACE_EXACT ...; tokens of a TOP row */
    double *clean;  /* (vocab) scratch of compact rows */
    int32_t *order; /* (vocab) */
    int vocab;
} wg_trace_writer;

wg_status wg_trace_writer_open(wg_trace_writer *w, int rows, int top, int vocab, wg_error *err);
void wg_trace_writer_close(wg_trace_writer *w);

/* Each starts the buffer afresh and leaves one record in it (header: behind the file's magic). */
wg_status wg_trace_put_header(wg_trace_writer *w, const json_t *header, wg_error *err);

/* What a request is; the tokens are the prompt's. Rounds name it by the byte at which its record begins. */
typedef struct wg_trace_asked {
    uint32_t address;                                          /* for randomness (wg_seq.request) */
    int32_t cell, group, prompt, repeat, limit, prompt_tokens; /* limit: of tokens, prompt included */
} wg_trace_asked;
wg_status wg_trace_put_request(wg_trace_writer *w, const wg_trace_asked *a, const int32_t *token, wg_error *err);
wg_status wg_trace_put_end(wg_trace_writer *w, uint64_t request, int32_t tokens, int finish, wg_error *err);

/* What a round took and how it ended, beside its tree and rows. */
typedef struct wg_trace_facts {
    uint64_t request;                          /* where its request's record begins */
    uint32_t step, position;                   /* its how many-th round; of the first token it emitted */
    int32_t left, batch, finish;               /* tokens there was room for; sequences of the step; wg_finish */
    double seconds, draft, verify, accept, kv; /* this sequence's share of the step's */
    int32_t n_policy; /* what the drafter's length policy goes by after the round (wg_drafter_class.policy) */
    double policy[WG_TRACE_POLICY];
} wg_trace_facts;
/* logits: the target's, row tree->row + node, or NULL: then exact rows of p are its doubles. path: after the cut (wg_seq.path).
 */
wg_status wg_trace_put_round(wg_trace_writer *w, const wg_trace_facts *f, const wg_tree *tree, const wg_path *path, wg_rows *p,
                             wg_rows *q, const float *logits, wg_error *err);

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* A group of cells: what its rounds have in common. */
typedef struct wg_trace_group {
    int vocab;
    int32_t *eog; /* tokens that end a text, ascending */
    int n_eog;
} wg_trace_group;

typedef struct wg_trace_request {
    uint64_t at; /* its record */
    wg_trace_asked asked;
    int32_t *token; /* (n) prompt and output */
    int n, rounds;
    bool ended; /* its end is in the file */
} wg_trace_request;

typedef struct wg_trace_entry {
    uint64_t at;
    int32_t request;
} wg_trace_entry; /* a round: its record, whose */

/* One round, decoded but for its rows. Points into the trace: valid until the next call. */
typedef struct wg_trace_round {
    wg_trace_facts facts;
    wg_tree tree; /* row 0; qrow 0 .. n_q-1 */
    wg_path path;
    int n_q;
    wg_trace_row p[WG_TREE_MAX], q[WG_TREE_MAX];
} wg_trace_round;

/* A trace, scanned once: header, requests with their texts, where the rounds are. Rows stay in the file. */
typedef struct wg_trace {
    char *name; /* for messages */
    FILE *file;
    uint64_t size, end;     /* of the file; behind the last whole record */
    char damage[256];       /* why the scan stopped before the file's end; "" when it did not */
    json_t *header, *cells; /* cells: [{"cell": swept, "group": g, "config": ...}], inside header */
    wg_trace_group *group;
    int groups;
    wg_trace_request *request;
    int requests;
    wg_trace_entry *round;
    int rounds;
    unsigned char *payload; /* of the record read last */
    size_t room;
} wg_trace;

/* EFORMAT: not a trace, another version, no whole header, or records that contradict each other; EUNSUPPORTED: a tree of more
 * nodes than this build has. A cut or damaged tail is no error: see damage. */
wg_status wg_trace_open(wg_trace **out, const char *path, wg_error *err);
wg_status wg_trace_read(wg_trace **out, const char *name, FILE *file, wg_error *err); /* takes the file, also on failure */
void wg_trace_close(wg_trace *t);                                                     /* NULL is fine */

/* Round i again. EIO, EFORMAT. */
wg_status wg_trace_get(wg_trace *t, int i, wg_trace_round *out, wg_error *err);

bool wg_trace_is_eog(const wg_trace_group *g, int32_t token);

/* The sum that ends a record: of its first 8 bytes (length and kind) and the n bytes of its payload (docs/traces.md). */
uint64_t wg_trace_sum(const unsigned char *head, const unsigned char *byte, size_t n);
#define WG_TRACE_MAGIC "wgtrace\n"

#endif
