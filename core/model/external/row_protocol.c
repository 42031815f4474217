/* SPDX-License-Identifier: MIT
 * The row protocol (row_protocol.h). */
#include "core/model/external/row_protocol.h"

#include <math.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are written as they lie in memory");
_Static_assert(sizeof(wg_asked_row) == 4 * sizeof(int32_t), "a row is four words");

enum { VOCAB_MOST = 1 << 24, LAYERS_MOST = 4096, DIM_MOST = 1 << 20 };

/* ---- requests */

static int put_header(int32_t *to, wg_rows_kind kind, int serial, int words)
{
    const int32_t header[WG_ROWS_HEADER] = { WG_ROWS_MAGIC, (int32_t)kind, serial, words };
    memcpy(to, header, sizeof header);
    return WG_ROWS_HEADER + words;
}

static int32_t *put_wide(int32_t *to, uint64_t x)
{
    memcpy(to, &x, sizeof x);
    return to + 2;
}

wg_rows_layout wg_rows_layout_of(const wg_rows_hello *h, int taps)
{
    const uint64_t row = sizeof(float) * (uint64_t)WG_EXTERNAL_ROWS, logits = row * (uint64_t)h->vocab;
    return (wg_rows_layout){ .taps_at = logits, .bytes = logits + row * (uint64_t)taps * (uint64_t)h->dim };
}

int wg_rows_put_hello(int32_t *to, int serial, int sequences)
{
    const int32_t word[WG_ROWS_HELLO_WORDS] = { WG_ROWS_VERSION, WG_EXTERNAL_ROWS, sequences };
    memcpy(to + WG_ROWS_HEADER, word, sizeof word);
    return put_header(to, WG_ROWS_HELLO, serial, WG_ROWS_HELLO_WORDS);
}

int wg_rows_put_open(int32_t *to, int serial, const wg_rows_layout *at, const int *tap, int taps)
{
    int32_t *w = put_wide(put_wide(to + WG_ROWS_HEADER, at->bytes), at->taps_at);
    *w++ = taps;
    for (int i = 0; i < taps; i++) *w++ = tap[i];
    return put_header(to, WG_ROWS_OPEN, serial, WG_ROWS_OPEN_WORDS + taps);
}

int wg_rows_ask_words(int sequences) { return WG_ROWS_HEADER + 2 + 4 * sequences + 5 * WG_EXTERNAL_ROWS; }

int wg_rows_put_ask(int32_t *to, int serial, const wg_asked *asked)
{
    int32_t *w = to + WG_ROWS_HEADER;
    *w++ = asked->taps > 0;
    *w++ = asked->parts;
    for (int i = 0; i < asked->parts; i++) {
        const wg_asked_part *p = &asked->part[i];
        const int32_t head[4] = { p->sequence, p->kept, p->path_n, p->n };
        memcpy(w, head, sizeof head);
        w += 4;
        if (p->path_n) memcpy(w, p->path, (size_t)p->path_n * sizeof *w);
        w += p->path_n;
        if (p->n) memcpy(w, p->row, (size_t)p->n * sizeof *p->row);
        w += 4 * p->n;
    }
    return put_header(to, WG_ROWS_ASK, serial, (int)(w - to) - WG_ROWS_HEADER);
}

/* ---- answers */

/* Reports the program's text, with control and non-ASCII characters shown as '?'. */
static wg_status says(const int32_t *word, int n, wg_error *err)
{
    char text[WG_ROWS_ANSWER_MOST];
    const size_t bytes = (size_t)n * sizeof *word, most = bytes < sizeof text - 1 ? bytes : sizeof text - 1;
    memcpy(text, word, most);
    text[most] = '\0';
    for (char *s = text; *s; s++)
        if (*s < ' ' || *s > '~') *s = '?';
    return wg_fail(err, WG_EIO, "it says: %s", *text ? text : "(nothing)");
}

wg_status wg_rows_answer(wg_rows_read_fn *read, void *user, wg_rows_kind kind, int serial, int32_t *word, int *n, wg_error *err)
{
    int32_t h[WG_ROWS_HEADER];
    WG_TRY(read(user, h, sizeof h, err));
    if (h[0] != WG_ROWS_MAGIC)
        return wg_fail(
            err, WG_EFORMAT,
            "an answer begins with the word 0x%08x; expected 0x%08x (does the program print to its standard output?)",
            (unsigned)h[0], (unsigned)WG_ROWS_MAGIC);
    if (h[1] != (int32_t)kind && h[1] != WG_ROWS_FAILED)
        return wg_fail(err, WG_EFORMAT, "an answer of kind %d; expected %d, the request's, or %d", (int)h[1], (int)kind,
                       (int)WG_ROWS_FAILED);
    if (h[2] != serial)
        return wg_fail(err, WG_EFORMAT, "an answer to request %d; expected one to request %d", (int)h[2], serial);
    if (h[3] < 0 || h[3] > WG_ROWS_ANSWER_MOST)
        return wg_fail(err, WG_EFORMAT, "an answer of %d words; expected 0..%d", (int)h[3], (int)WG_ROWS_ANSWER_MOST);
    if (h[3]) WG_TRY(read(user, word, (size_t)h[3] * sizeof *word, err));
    *n = h[3];
    return h[1] == WG_ROWS_FAILED ? says(word, *n, err) : WG_OK;
}

wg_status wg_rows_take_hello(const int32_t *word, int n, wg_rows_hello *out, wg_error *err)
{
    enum { WORDS = 5 };
    if (n < WORDS)
        return wg_fail(err, WG_EFORMAT,
                       "an answer to HELLO of %d words; expected %d: version, vocabulary, context, layers, width", n,
                       (int)WORDS);
    if (word[0] != WG_ROWS_VERSION)
        return wg_fail(err, WG_EFORMAT, "the program speaks version %d of the row protocol; expected %d", (int)word[0],
                       (int)WG_ROWS_VERSION);
    if (word[1] < 1 || word[1] > VOCAB_MOST || word[2] < 2 || word[2] > VOCAB_MOST)
        return wg_fail(err, WG_EFORMAT, "a vocabulary of %d and a context of %d tokens; expected 1..%d and 2..%d", (int)word[1],
                       (int)word[2], (int)VOCAB_MOST, (int)VOCAB_MOST);
    if (word[3] < 0 || word[3] > LAYERS_MOST || word[4] < 0 || word[4] > DIM_MOST || !word[3] != !word[4])
        return wg_fail(err, WG_EFORMAT,
                       "hidden states of %d layers and %d numbers; expected 1..%d and 1..%d, or 0 and 0: there are none",
                       (int)word[3], (int)word[4], (int)LAYERS_MOST, (int)DIM_MOST);
    *out = (wg_rows_hello){ .vocab = word[1], .context = word[2], .layers = word[3], .dim = word[4] };
    const size_t bytes = (size_t)(n - WORDS) * sizeof *word;
    memcpy(out->name, word + WORDS, bytes < sizeof out->name - 1 ? bytes : sizeof out->name - 1);
    for (char *s = out->name; *s; s++)
        if (*s < ' ' || *s > '~') *s = '?';
    return WG_OK;
}

wg_status wg_rows_take_open(const int32_t *word, int n, wg_error *err)
{
    (void)word;
    return n == 0 ? WG_OK : wg_fail(err, WG_EFORMAT, "an answer to OPEN of %d words; expected none", n);
}

wg_status wg_rows_take_ask(const int32_t *word, int n, const wg_asked *asked, wg_error *err)
{
    const int taps = asked->taps ? asked->rows : 0;
    if (n != 2) return wg_fail(err, WG_EFORMAT, "an answer to ASK of %d words; expected 2: rows of logits, rows of taps", n);
    if (word[0] != asked->logits || word[1] != taps)
        return wg_fail(err, WG_EFORMAT, "%d rows of logits and %d of taps; %d and %d were asked", (int)word[0], (int)word[1],
                       asked->logits, taps);
    return WG_OK;
}

wg_status wg_rows_check_finite(const float *x, int rows, int width, const char *what, wg_error *err)
{
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < width; i++)
            if (!isfinite(x[(size_t)r * (size_t)width + (size_t)i]))
                return wg_fail(err, WG_EFORMAT, "row %d of %s has %f at %d; expected finite numbers", r, what,
                               (double)x[(size_t)r * (size_t)width + (size_t)i], i);
    return WG_OK;
}
