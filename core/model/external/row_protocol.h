/* SPDX-License-Identifier: MIT
 * The row protocol of process targets (docs/process-target.md): messages of 32-bit words, little-endian, over the program's
 * standard input and output, and rows of floats in memory that both share. Whatever the program writes is checked here before
 * it is used. */
#ifndef WG_CORE_MODEL_EXTERNAL_ROW_PROTOCOL_H
#define WG_CORE_MODEL_EXTERNAL_ROW_PROTOCOL_H

#include "core/model/external/external.h"

/* A message: magic, kind, serial number, number of words that follow; then these. An answer has the kind and the serial number
 * of its request, or the kind FAILED, whose words are a text. */
enum { WG_ROWS_MAGIC = 0x53574F52, WG_ROWS_VERSION = 1, WG_ROWS_HEADER = 4, WG_ROWS_ANSWER_MOST = 1024 };
typedef enum wg_rows_kind { WG_ROWS_HELLO = 1, WG_ROWS_OPEN, WG_ROWS_ASK, WG_ROWS_FAILED } wg_rows_kind;

/* Words of a request. Of HELLO: version, most rows of a request, most sequences at once. */
enum { WG_ROWS_HELLO_WORDS = 3, WG_ROWS_OPEN_WORDS = 5, WG_ROWS_TAPS_MOST = 64 };

/* What the program says in its answer to HELLO. */
typedef struct wg_rows_hello {
    int vocab, context;
    int layers, dim; /* as in wg_row_server */
    char name[64];   /* of the model, for people */
} wg_rows_hello;

/* Where rows lie in the shared memory, which is (rows, vocab) floats of logits, then (rows, taps, dim) of taps. */
typedef struct wg_rows_layout {
    uint64_t taps_at, bytes;
} wg_rows_layout;
wg_rows_layout wg_rows_layout_of(const wg_rows_hello *h, int taps);

/* Requests as words. ask: `room` words at `to`; wg_rows_ask_words of them are needed. They return the number written, header
 * included. */
int wg_rows_put_hello(int32_t *to, int serial, int sequences);
int wg_rows_put_open(int32_t *to, int serial, const wg_rows_layout *at, const int *tap, int taps);
int wg_rows_put_ask(int32_t *to, int serial, const wg_asked *asked);
int wg_rows_ask_words(int sequences); /* of the largest request */

/* Reads the answer to a request: exactly its header and words, by `read`, into word (WG_ROWS_ANSWER_MOST); *n words. EFORMAT:
 * it is no answer to this request. EIO: the program says that it failed; its text is the message; or `read` failed. */
typedef wg_status wg_rows_read_fn(void *user, void *to, size_t bytes, wg_error *err);
wg_status wg_rows_answer(wg_rows_read_fn *read, void *user, wg_rows_kind kind, int serial, int32_t *word, int *n,
                         wg_error *err);

/* Reads the words of an answer. EFORMAT names what is wrong, and what was expected. */
wg_status wg_rows_take_hello(const int32_t *word, int n, wg_rows_hello *out, wg_error *err);
wg_status wg_rows_take_open(const int32_t *word, int n, wg_error *err);
wg_status wg_rows_take_ask(const int32_t *word, int n, const wg_asked *asked, wg_error *err);

/* EFORMAT: one of these (rows, width) floats is not finite. what: "logits". */
wg_status wg_rows_check_finite(const float *x, int rows, int width, const char *what, wg_error *err);

#endif
