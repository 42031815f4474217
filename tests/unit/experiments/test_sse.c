/* SPDX-License-Identifier: MIT
 * Server-sent events: the same events for every division of the bytes, the forms of the standard, and what is refused. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "experiments/load/answer_stream.h"

typedef struct seen {
    char text[400];
    int n, most;
} seen;

static bool note(void *user, const char *data, size_t n)
{
    seen *s = user;
    const size_t at = strlen(s->text);
    snprintf(s->text + at, sizeof s->text - at, "[%.*s]", (int)n, data);
    return ++s->n != s->most;
}

/* Feeds the text in pieces of `piece` bytes. */
static wg_sse_state feed(seen *to, const char *text, size_t piece, size_t most)
{
    wg_sse s;
    wg_sse_init(&s, most);
    wg_sse_state state = WG_SSE_OK;
    for (size_t at = 0, n = strlen(text); at < n; at += piece)
        state = wg_sse_feed(&s, text + at, n - at < piece ? n - at : piece, note, to);
    wg_sse_close(&s);
    return state;
}

static const struct {
    const char *text, *events;
    wg_sse_state state;
} cases[] = {
    { "data: a\n\ndata: b\n\n", "[a][b]", WG_SSE_OK },
    { "data: a\r\n\r\ndata:b\r\rdata: c\n\n", "[a][b][c]", WG_SSE_OK },
    { "data: one\ndata: two\n\n", "[one\ntwo]", WG_SSE_OK },
    { "data:  two spaces\n\n", "[ two spaces]", WG_SSE_OK },
    { ": a comment\n\nevent: x\nid: 3\nretry: 9\ndata: a\n\n", "[a]", WG_SSE_OK },
    { "data\n\n", "[]", WG_SSE_OK },
    { "data:\ndata\n\n", "[\n]", WG_SSE_OK },
    { "\n\n\n", "", WG_SSE_OK },
    { "\xEF\xBB\xBF"
      "data: a\n\n",
      "[a]", WG_SSE_OK },
    { "data: a\n\ndata: without an end\n", "[a]", WG_SSE_OK },
    { "data: a\n\n{\"json\": 1}\n", "[a]", WG_SSE_MALFORMED },
    { "data: a\n\n\xEF\xBB\xBF"
      "data: b\n\n",
      "[a]", WG_SSE_MALFORMED },
    { "datum: a\n\n", "", WG_SSE_MALFORMED },
};

Test(sse, is_the_same_in_any_pieces)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t piece = 1; piece <= 40; piece++) {
            seen s = { .n = 0 };
            cr_assert_eq(feed(&s, cases[i].text, piece, 100), cases[i].state, "%zu: %s", piece, cases[i].text);
            cr_assert_str_eq(s.text, cases[i].events, "in pieces of %zu", piece);
        }
}

Test(sse, ends_where_its_reader_ends)
{
    seen s = { .most = 2 };
    cr_assert_eq(feed(&s, "data: a\n\ndata: b\n\ndata: c\n\n", 100, 100), WG_SSE_STOPPED);
    cr_assert_str_eq(s.text, "[a][b]");
}

Test(sse, refuses_what_is_longer_than_allowed)
{
    seen s = { .n = 0 };
    cr_assert_eq(feed(&s, "data: 0123456789\n\n", 3, 16), WG_SSE_OK);
    cr_assert_eq(feed(&s, "data: 01234567890\n\n", 3, 16), WG_SSE_LONG);
    cr_assert_eq(feed(&s, "data: 01234567\ndata: 89012345\n\n", 3, 16), WG_SSE_LONG, "an event of many lines");
    cr_assert_str_eq(s.text, "[0123456789]");
}

Test(sse, forgets_a_stream_and_leaks_nothing)
{
    const size_t live = wg_mem_read().live_blocks;
    seen s = { .n = 0 };
    wg_sse sse;
    wg_sse_init(&sse, 50);
    cr_assert_eq(wg_sse_feed(&sse, "data: half", 10, note, &s), WG_SSE_OK);
    wg_sse_restart(&sse);
    cr_assert_eq(wg_sse_feed(&sse, "data: a\n\n", 9, note, &s), WG_SSE_OK);
    cr_assert_str_eq(s.text, "[a]");
    wg_mem_fail_at(1, true);
    wg_sse other;
    wg_sse_init(&other, 50);
    cr_assert_eq(wg_sse_feed(&other, "data: a\n\n", 9, note, &s), WG_SSE_NOMEM);
    wg_mem_fail_at(0, false);
    wg_sse_close(&other);
    wg_sse_close(&sse);
    cr_assert_eq(wg_mem_read().live_blocks, live);
}
