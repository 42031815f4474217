/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as the answers of a process target, to each kind of request: as they are, and behind a right header, so that
 * the words are reached; then as a row of logits. */
#include <stdlib.h>
#include <string.h>

#include "core/model/external/row_protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

typedef struct input {
    const uint8_t *bytes;
    size_t n, at;
} input;

static wg_status take(void *user, void *to, size_t bytes, wg_error *err)
{
    input *in = user;
    if (bytes > in->n - in->at) return wg_fail(err, WG_EIO, "the input ends");
    memcpy(to, in->bytes + in->at, bytes);
    in->at += bytes;
    return WG_OK;
}

static void check(wg_status s, const wg_error *err)
{
    if (s && !*err->text) abort();
}

/* What a target does with an answer. */
static void answer(const uint8_t *bytes, size_t n, wg_rows_kind kind, int serial)
{
    input in = { bytes, n, 0 };
    int32_t word[WG_ROWS_ANSWER_MOST];
    int words = 0;
    wg_error err = { 0 };
    wg_rows_hello hello;
    static const int tap[] = { 1, 0 };
    const wg_asked asked = { .parts = 1, .rows = 3, .logits = 2, .tap = tap, .taps = serial % 2 ? 2 : 0 };
    wg_status s = wg_rows_answer(take, &in, kind, serial, word, &words, &err);
    check(s, &err);
    if (s) return;
    if (words < 0 || words > WG_ROWS_ANSWER_MOST) abort();
    if (kind == WG_ROWS_HELLO && !(s = wg_rows_take_hello(word, words, &hello, &err))) {
        const wg_rows_layout at = wg_rows_layout_of(&hello, WG_ROWS_TAPS_MOST);
        if (hello.vocab < 1 || hello.context < 2 || at.bytes < at.taps_at || memchr(hello.name, '\n', strlen(hello.name)))
            abort();
    }
    if (kind == WG_ROWS_OPEN) s = wg_rows_take_open(word, words, &err);
    if (kind == WG_ROWS_ASK) s = wg_rows_take_ask(word, words, &asked, &err);
    check(s, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    wg_error err = { 0 };
    for (wg_rows_kind kind = WG_ROWS_HELLO; kind <= WG_ROWS_FAILED; kind++) {
        const size_t body = n < WG_ROWS_ANSWER_MOST * sizeof(int32_t) ? n : WG_ROWS_ANSWER_MOST * sizeof(int32_t);
        const int32_t header[WG_ROWS_HEADER] = { WG_ROWS_MAGIC, (int32_t)kind, 7, (int32_t)(body / sizeof(int32_t)) };
        uint8_t *framed = malloc(sizeof header + body);
        if (!framed) return 0;
        memcpy(framed, header, sizeof header);
        if (body) memcpy(framed + sizeof header, bytes, body);
        answer(bytes, n, kind, 7);
        answer(framed, sizeof header + body, kind, 7);
        framed[2 * sizeof *header] = 8; /* the serial number of a request without hidden states */
        answer(framed, sizeof header + body, kind, 8);
        framed[2 * sizeof *header] = 7;
        if (kind == WG_ROWS_FAILED) answer(framed, sizeof header + body, WG_ROWS_ASK, 7);
        free(framed);
    }
    const int floats = (int)(n / sizeof(float));
    float *row = malloc(n + 1);
    if (!row) return 0;
    if (n) memcpy(row, bytes, n);
    check(wg_rows_check_finite(row, floats ? 1 : 0, floats, "logits", &err), &err);
    free(row);
    return 0;
}
