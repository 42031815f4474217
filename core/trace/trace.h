/* SPDX-License-Identifier: MIT
 * The binary trace of a run (docs/traces.md has the bytes): per round the draft tree, the rows of p and q, the addresses of its
 * uniforms, times, and the accepted tokens. Records carry their length and a checksum, so a cut or damage is located, and all
 * rounds before it can be used.
 *
 * A row is stored as `trace_rows` says: exactly (its doubles, a list of the nonzero ones, or the token of a one-hot row), as
 * the target's logits (also exact, and usable with another sampling chain), in half floats, or cut. A cut row lists its most
 * probable tokens and all that the round needs (drafted tokens and the text's) with their doubles, and for each gap between
 * listed tokens the mass of the others, the integer that draws use (kernels/mass.h). So the probability of a listed token
 * is exact, and a draw from the row gives the true token, if it is listed, or one of the true token's gap. Rows of the last two
 * forms carry their distance from the true row: the total variation sum |p - p'| / 2, measured at writing. */
#ifndef WG_CORE_TRACE_TRACE_H
#define WG_CORE_TRACE_TRACE_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "core/engine/engine.h"

enum { WG_TRACE_NONE, WG_TRACE_STEPS, WG_TRACE_PROBS };                              /* the option `trace` */
enum { WG_TRACE_AUTO, WG_TRACE_EXACT, WG_TRACE_LOGITS, WG_TRACE_F16, WG_TRACE_TOP }; /* the option `trace_rows` */
/* TOP: in traces of earlier versions. */
enum { WG_ROW_ONE_HOT, WG_ROW_DENSE, WG_ROW_LIST, WG_ROW_LOGITS, WG_ROW_F16, WG_ROW_TOP, WG_ROW_CUT, WG_ROW_KINDS };
enum { WG_ROW_OVERLAP = 16 }; /* added to the kind of a row of p that is followed by its overlap */
/* AUTO: from a vocabulary of WIDE tokens on, rows with more than LIST nonzero tokens are cut; LIST of them take 16 KB. */
enum { WG_TRACE_WIDE = 32000, WG_TRACE_LIST = 1360 };
enum { WG_RECORD_HEADER = 1, WG_RECORD_REQUEST, WG_RECORD_ROUND, WG_RECORD_END }; /* kinds of records */
enum { WG_TRACE_VERSION = 1, WG_TRACE_VOCAB_MAX = 1 << 20, WG_TRACE_POLICY = 16 };

/* Added to the law of a tree of independent or distinct drawn siblings whose numbers were declared before they were drawn
 * (wg_tree_group). */
enum { WG_TRACE_DECLARED = 256 };

/* ---- rows -------------------------------------------------------------------------------------------------------- */

/* A row as stored. */
typedef struct wg_trace_row {
    int kind;                  /* WG_ROW_... */
    uint32_t count;            /* ONE_HOT: the token; LIST, TOP, CUT: number of tokens */
    double error;              /* total variation between this row and the true one; 0: none */
    double overlap;            /* of p: sum min(p, q) with the q row of its node's first child; -1: not stored */
    const unsigned char *data; /* wg_trace_row_bytes of them */
} wg_trace_row;

/* Bytes of the data of a row of this kind; 0 for a one-hot row. */
size_t wg_trace_row_bytes(int kind, uint32_t count, int vocab);

/* Writes the row as a distribution into row `row` of out (vocab). LOGITS rows go through a sampler instead. EFORMAT: it is not
 * a distribution. */
wg_status wg_trace_row_read(const wg_trace_row *in, wg_rows *out, int row, wg_error *err);
void wg_trace_row_logits(const wg_trace_row *in, float *logits, int vocab);
/* Whether a CUT row lists the token. */
bool wg_trace_row_lists(const wg_trace_row *in, int32_t token);

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* The most nonzero tokens of a row that is stored whole by these options; vocab: no row is cut, also where a cut row, with 24
 * bytes a token, would be no shorter than the doubles of a whole one. */
int wg_trace_whole(int rows, int top, int vocab);

/* Builds records in memory. After a wg_trace_put_* call `byte` holds one complete record of n bytes. */
typedef struct wg_trace_writer {
    unsigned char *byte;
    size_t n, room;
    bool failed;    /* out of memory: the contents are invalid */
    int rows, top;  /* rows: WG_TRACE_EXACT, ..., not AUTO; top: most probable tokens of a cut row */
    int list;       /* wg_trace_whole */
    double *clean;  /* (vocab) scratch of compact rows */
    int32_t *order; /* (vocab) */
    int vocab;
} wg_trace_writer;

wg_status wg_trace_writer_open(wg_trace_writer *w, int rows, int top, int vocab, wg_error *err);
void wg_trace_writer_close(wg_trace_writer *w);

/* Each call clears the buffer and puts one record into it (the header with the file's magic before it). */
wg_status wg_trace_put_header(wg_trace_writer *w, const json_t *header, wg_error *err);

/* A request, whose record also has the prompt's tokens. Rounds refer to it by the offset of its record. */
typedef struct wg_trace_asked {
    uint32_t address;                                          /* address of its randomness (wg_seq.request) */
    int32_t cell, group, prompt, repeat, limit, prompt_tokens; /* limit: tokens, prompt included */
} wg_trace_asked;
wg_status wg_trace_put_request(wg_trace_writer *w, const wg_trace_asked *a, const int32_t *token, wg_error *err);
wg_status wg_trace_put_end(wg_trace_writer *w, uint64_t request, int32_t tokens, int finish, wg_error *err);

/* The numbers of a round besides its tree and rows. */
typedef struct wg_trace_facts {
    uint64_t request;                          /* offset of its request's record */
    uint32_t step, position;                   /* index of the round in its request; position of the first token it emitted */
    int32_t left, batch, finish;               /* tokens left in the request; sequences of the step; wg_finish */
    double seconds, draft, verify, accept, kv; /* this sequence's share of the step's */
    int32_t n_policy; /* state of the drafter's length policy after the round (wg_drafter_class.policy) */
    double policy[WG_TRACE_POLICY];
} wg_trace_facts;
/* logits: the target's, row tree->row + node; NULL: exact rows of p are stored as doubles. path: after the cut
 * (wg_seq.path). */
wg_status wg_trace_put_round(wg_trace_writer *w, const wg_trace_facts *f, const wg_tree *tree, const wg_path *path, wg_rows *p,
                             wg_rows *q, const float *logits, wg_error *err);

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The properties that all rounds of a group of cells share. */
typedef struct wg_trace_group {
    int vocab;
    int32_t *eog; /* tokens that end a text, ascending */
    int n_eog;
} wg_trace_group;

typedef struct wg_trace_request {
    uint64_t at; /* offset of its record */
    wg_trace_asked asked;
    int32_t *token; /* (n) prompt and output */
    int n, rounds;
    bool ended; /* the file has its end record */
} wg_trace_request;

typedef struct wg_trace_entry {
    uint64_t at;
    int32_t request;
} wg_trace_entry; /* a round: the offset of its record, its request */

/* One round, with undecoded rows. It points into the trace and is valid until the next call. */
typedef struct wg_trace_round {
    wg_trace_facts facts;
    wg_tree tree; /* row 0; qrow 0 .. n_q-1; group: declared numbers of children, else -1 */
    wg_path path;
    int n_q;
    wg_trace_row p[WG_TREE_MAX], q[WG_TREE_MAX];
} wg_trace_round;

/* A trace, scanned once: header, requests with their texts, offsets of the rounds. Rows stay in the file. */
typedef struct wg_trace {
    char *name; /* for messages */
    FILE *file;
    uint64_t size, end;     /* bytes of the file; offset after the last complete record */
    char damage[256];       /* why the scan stopped before the end of the file; "": it did not */
    json_t *header, *cells; /* cells: [{"cell": swept, "group": g, "config": ...}], inside header */
    wg_trace_group *group;
    int groups;
    wg_trace_request *request;
    int requests;
    wg_trace_entry *round;
    int rounds;
    unsigned char *payload; /* payload of the record read last */
    size_t room;
} wg_trace;

/* Opens a trace. EFORMAT: not a trace, another version, no complete header, or records that contradict each other;
 * EUNSUPPORTED: a tree with more nodes than this build allows. A cut or damaged tail is not an error: see `damage`. */
wg_status wg_trace_open(wg_trace **out, const char *path, wg_error *err);
wg_status wg_trace_read(wg_trace **out, const char *name, FILE *file, wg_error *err); /* owns the file, also on failure */
void wg_trace_close(wg_trace *t);                                                     /* NULL is fine */

/* Reads round i. EIO, EFORMAT. */
wg_status wg_trace_get(wg_trace *t, int i, wg_trace_round *out, wg_error *err);

bool wg_trace_is_eog(const wg_trace_group *g, int32_t token);

/* The checksum that ends a record: of its first 8 bytes (length and kind) and the n bytes of its payload (docs/traces.md). */
uint64_t wg_trace_sum(const unsigned char *head, const unsigned char *byte, size_t n);
#define WG_TRACE_MAGIC "wgtrace\n"

#endif
