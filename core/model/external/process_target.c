/* SPDX-License-Identifier: MIT
 * Process targets (process_target.h). */
#include "core/model/external/process_target.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/child.h"
#include "core/base/mem.h"
#include "core/model/taps.h"

_Static_assert((int)WG_TAPS_MOST <= (int)WG_ROWS_TAPS_MOST, "what a pass can ask for, OPEN can name");

typedef struct process_server {
    wg_row_server base; /* first */
    wg_child child;
    char *command;
    int timeout_ms, start_ms;
    wg_rows_hello hello; /* answer of its first start; later ones must equal it */
    wg_rows_layout layout;
    int tap[WG_ROWS_TAPS_MOST], taps; /* the hidden states that OPEN named last */
    int memory;                       /* a descriptor of the shared memory, a new one for every start; -1: none */
    int serial;
    int32_t *words; /* (wg_rows_ask_words) */
    int32_t answer[WG_ROWS_ANSWER_MOST];
} process_server;

static wg_status read_child(void *child, void *to, size_t bytes, wg_error *err)
{
    return wg_child_read_all(child, to, bytes, err);
}

/* Sends the request of n words that lies in s->words, and reads the words of its answer into s->answer. */
static wg_status exchange(process_server *s, wg_rows_kind kind, int words, int *n, wg_error *err)
{
    WG_TRY(wg_child_send(&s->child, s->words, (size_t)words * sizeof *s->words, err));
    return wg_rows_answer(read_child, &s->child, kind, s->serial, s->answer, n, err);
}

static void stop(process_server *s, int grace_ms)
{
    wg_child_stop(&s->child, grace_ms);
    if (s->memory >= 0) close(s->memory);
    s->memory = -1;
}

static wg_status make_memory(process_server *s, wg_error *err)
{
    s->memory = memfd_create("wager-rows", MFD_CLOEXEC);
    return s->memory >= 0 ? WG_OK : wg_fail(err, WG_EIO, "no shared memory can be made: %s", strerror(errno));
}

/* Sizes the memory for logits and the hidden states s->tap, and informs the program. It never shrinks, since the program has it
 * mapped. */
static wg_status share_memory(process_server *s, wg_error *err)
{
    const uint64_t before = s->layout.bytes;
    int n;
    s->layout = wg_rows_layout_of(&s->hello, s->taps);
    if (s->layout.bytes < before) s->layout.bytes = before;
    if (ftruncate(s->memory, (off_t)s->layout.bytes) != 0)
        return wg_fail(err, WG_EIO, "the shared memory cannot have %llu bytes: %s", (unsigned long long)s->layout.bytes,
                       strerror(errno));
    const int words = wg_rows_put_open(s->words, ++s->serial, &s->layout, s->tap, s->taps);
    WG_TRY(exchange(s, WG_ROWS_OPEN, words, &n, err));
    return wg_rows_take_open(s->answer, n, err);
}

/* Starts the program and shares the memory with it. */
static wg_status greet(process_server *s, wg_error *err)
{
    wg_rows_hello hello;
    int n;
    WG_TRY(make_memory(s, err));
    s->layout = (wg_rows_layout){ 0 };
    WG_TRY(wg_child_start(&s->child, s->memory, err));
    wg_child_begin(&s->child, s->start_ms, "start_ms");
    WG_TRY(exchange(s, WG_ROWS_HELLO, wg_rows_put_hello(s->words, ++s->serial, s->base.sequences), &n, err));
    WG_TRY(wg_rows_take_hello(s->answer, n, &hello, err));
    if (s->hello.vocab && memcmp(&hello, &s->hello, sizeof hello) != 0)
        return wg_fail(
            err, WG_EFORMAT,
            "after its restart the program has another model: a vocabulary of %d and a context of %d, before that %d and %d",
            hello.vocab, hello.context, s->hello.vocab, s->hello.context);
    s->hello = hello;
    return share_memory(s, err);
}

static wg_status start(process_server *s, wg_error *err)
{
    if (s->child.pid) return WG_OK;
    stop(s, 0);
    return greet(s, err);
}

/* Copies rows out of the shared memory, once. */
static wg_status copy_rows(const process_server *s, float *to, uint64_t at, int rows, int width, const char *what,
                           wg_error *err)
{
    const size_t bytes = (size_t)rows * (size_t)width * sizeof *to;
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = pread(s->memory, (char *)to + done, bytes - done, (off_t)(at + done));
        if (got > 0) done += (size_t)got;
        else if (got == 0)
            return wg_fail(err, WG_EFORMAT, "the shared memory ends before %d rows of %s; the program made it shorter", rows,
                           what);
        else if (errno != EINTR) return wg_fail(err, WG_EIO, "the shared memory cannot be read: %s", strerror(errno));
    }
    return wg_rows_check_finite(to, rows, width, what, err);
}

/* Sends the list of hidden states that the request needs, unless it is unchanged. */
static wg_status name_taps(process_server *s, const wg_asked *asked, wg_error *err)
{
    const size_t bytes = (size_t)asked->taps * sizeof *s->tap;
    if (!asked->taps || (s->taps == asked->taps && !memcmp(s->tap, asked->tap, bytes))) return WG_OK;
    memcpy(s->tap, asked->tap, bytes);
    s->taps = asked->taps;
    return share_memory(s, err);
}

static wg_status ask(process_server *s, const wg_asked *asked, float *logits, float *taps, wg_error *err)
{
    int n;
    WG_TRY(start(s, err));
    wg_child_begin(&s->child, s->timeout_ms, "timeout_ms");
    WG_TRY(name_taps(s, asked, err));
    WG_TRY(exchange(s, WG_ROWS_ASK, wg_rows_put_ask(s->words, ++s->serial, asked), &n, err));
    WG_TRY(wg_rows_take_ask(s->answer, n, asked, err));
    WG_TRY(copy_rows(s, logits, 0, asked->logits, s->hello.vocab, "logits", err));
    if (!asked->taps) return WG_OK;
    return copy_rows(s, taps, s->layout.taps_at, asked->rows, asked->taps * s->hello.dim, "hidden states", err);
}

static wg_status answer(wg_row_server *base, const wg_asked *asked, float *logits, float *taps, wg_error *err)
{
    process_server *s = (process_server *)base;
    const wg_status status = ask(s, asked, logits, taps, err);
    if (status) stop(s, 0);
    return status;
}

static void close_server(wg_row_server *base)
{
    process_server *s = (process_server *)base;
    stop(s, WG_CHILD_GRACE_MS);
    wg_free(s->command);
    wg_free(s->words);
    wg_free(s);
}

static const wg_row_server_class process_class = { .name = "process", .answer = answer, .close = close_server };

static wg_status open_server(process_server *s, const wg_process_target *o, wg_error *err)
{
    s->base.class = &process_class;
    s->base.sequences = o->sequences > WG_EXTERNAL_SEQUENCES ? o->sequences : WG_EXTERNAL_SEQUENCES;
    s->timeout_ms = o->timeout_ms;
    s->start_ms = o->start_ms;
    s->memory = -1;
    s->command = wg_strdup(o->command);
    s->words = wg_calloc((size_t)wg_rows_ask_words(s->base.sequences), sizeof *s->words);
    wg_child_init(&s->child, s->command);
    if (!s->command || !s->words) return wg_nomem(err, sizeof *s, "a process target");
    const wg_status status = start(s, err);
    if (status) return wg_fail_in(err, status, "target process");
    s->base.vocab = s->hello.vocab;
    s->base.context = s->hello.context;
    s->base.layers = s->hello.layers;
    s->base.dim = s->hello.dim;
    return WG_OK;
}

wg_status wg_process_target_open(wg_lm **out, const wg_process_target *o, wg_error *err)
{
    process_server *s = wg_calloc(1, sizeof *s);
    if (!s) return wg_nomem(err, sizeof *s, "a process target");
    const wg_status status = open_server(s, o, err);
    if (!status) return wg_external_open(out, &s->base, o->context, err);
    stop(s, 0);
    close_server(&s->base);
    return status;
}
