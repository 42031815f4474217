/* SPDX-License-Identifier: MIT
 * An external language model: another process (process_target.h) or another engine's library. A wg_row_server answers rows of
 * logits for trees of tokens behind texts that it keeps. The contents of each of its sequences are known here (external.c), so
 * a request states what to keep and what is new; after any failure everything is sent again.
 *
 * It need not keep the Prefix Law (wg_lm_class.law_only), so speculative texts equal plain decoding's in law, not byte by
 * byte. */
#ifndef WG_CORE_MODEL_EXTERNAL_EXTERNAL_H
#define WG_CORE_MODEL_EXTERNAL_EXTERNAL_H

#include "core/model/lm.h"

/* A row of a request. */
typedef struct wg_asked_row {
    int32_t token;
    int32_t parent;   /* an earlier row of the same sequence and request; -1: the last token that it keeps */
    int32_t position; /* tokens before it */
    int32_t logits;   /* row of the answer for its logits; -1: none */
} wg_asked_row;

/* Rows of one sequence. It keeps `kept` tokens of the text that it holds, then rows path[0 .. path_n - 1] of the sequence's
 * last request, which follow each other in the text, and nothing else. The new rows stand behind these. */
typedef struct wg_asked_part {
    int sequence; /* 0 .. sequences - 1 */
    int kept, path_n, n;
    const int32_t *path;     /* (path_n) */
    const wg_asked_row *row; /* (n) */
} wg_asked_part;

typedef struct wg_asked {
    int parts, rows, logits; /* rows, and rows of logits, of all parts */
    const wg_asked_part *part;
    const int *tap; /* (taps) the hidden states that are wanted of all rows (core/model/taps.h); taps 0: none */
    int taps;
} wg_asked;

typedef struct wg_row_server wg_row_server;

typedef struct wg_row_server_class {
    const char *name;
    /* Writes logits (asked->logits, vocab) and, where they are wanted, taps (asked->rows, taps, dim): finite numbers. On
     * failure it holds nothing of any sequence afterwards. */
    wg_status (*answer)(wg_row_server *s, const wg_asked *asked, float *logits, float *taps, wg_error *err);
    void (*close)(wg_row_server *s);
} wg_row_server_class;

enum { WG_EXTERNAL_ROWS = WG_KV_TAIL_MAX, WG_EXTERNAL_SEQUENCES = 8 };

struct wg_row_server {
    const wg_row_server_class *class;
    int vocab, context;
    int layers, dim; /* of its hidden states: taps 0 .. layers + 1, of dim floats; 0 and 0: it gives none */
    int sequences;   /* sequences that it holds at once; at least 1 */
};

/* Takes the server, on failure too. `context`: the longest sequence, at most the server's; 0: the server's. ENOMEM, EINVAL. */
wg_status wg_external_open(wg_lm **out, wg_row_server *server, int context, wg_error *err);

#endif
