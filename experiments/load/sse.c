/* SPDX-License-Identifier: MIT
 * Server-sent events (sse.h). */
#include "experiments/load/sse.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/base/read_file.h"

void wg_sse_init(wg_sse *s, size_t most) { *s = (wg_sse){ .most = most }; }

void wg_sse_restart(wg_sse *s)
{
    s->line_n = s->data_n = 0;
    s->has_data = s->after_cr = s->begun = false;
    s->state = WG_SSE_OK;
}

void wg_sse_close(wg_sse *s)
{
    wg_free(s->line);
    wg_free(s->data);
    *s = (wg_sse){ .most = s->most };
}

/* Appends to one of the two buffers, which double. */
static wg_sse_state append(char **to, size_t *at, size_t *room, size_t most, const char *bytes, size_t n)
{
    if (n > most - *at) return WG_SSE_LONG;
    if (*at + n > *room) {
        size_t more = *room ? *room : 256;
        while (more < *at + n) more *= 2;
        char *grown = wg_realloc(*to, more, 1);
        if (!grown) return WG_SSE_NOMEM;
        *to = grown;
        *room = more;
    }
    if (n) memcpy(*to + *at, bytes, n);
    *at += n;
    return WG_SSE_OK;
}

static wg_sse_state end_event(wg_sse *s, wg_sse_event *on, void *user)
{
    const bool goes_on = !s->has_data || on(user, s->data ? s->data : "", s->data_n);
    s->has_data = false;
    s->data_n = 0;
    return goes_on ? WG_SSE_OK : WG_SSE_STOPPED;
}

static bool is(const char *name, size_t n, const char *word) { return strlen(word) == n && !memcmp(name, word, n); }

static wg_sse_state end_line(wg_sse *s, wg_sse_event *on, void *user)
{
    const size_t mark = s->begun || !s->line ? 0 : wg_byte_order_mark(s->line, s->line_n);
    const char *line = s->line ? s->line + mark : "", *colon;
    const size_t n = s->line_n - mark;
    s->line_n = 0;
    s->begun = true;
    if (n == 0) return end_event(s, on, user);
    colon = memchr(line, ':', n);
    const size_t name = colon ? (size_t)(colon - line) : n;
    if (name == 0 || is(line, name, "event") || is(line, name, "id") || is(line, name, "retry")) return WG_SSE_OK;
    if (!is(line, name, "data")) return WG_SSE_MALFORMED;
    size_t from = colon ? name + 1 : n;
    if (from < n && line[from] == ' ') from++;
    wg_sse_state state = s->has_data ? append(&s->data, &s->data_n, &s->data_room, s->most, "\n", 1) : WG_SSE_OK;
    s->has_data = true;
    if (state == WG_SSE_OK) state = append(&s->data, &s->data_n, &s->data_room, s->most, line + from, n - from);
    return state;
}

wg_sse_state wg_sse_feed(wg_sse *s, const char *bytes, size_t n, wg_sse_event *on, void *user)
{
    for (size_t at = 0; at < n && s->state == WG_SSE_OK;) {
        if (s->after_cr && bytes[at] == '\n') at++; /* the second half of CR LF */
        s->after_cr = false;
        size_t end = at;
        while (end < n && bytes[end] != '\n' && bytes[end] != '\r') end++;
        s->state = append(&s->line, &s->line_n, &s->line_room, s->most, bytes + at, end - at);
        if (end < n && s->state == WG_SSE_OK) {
            s->after_cr = bytes[end] == '\r';
            s->state = end_line(s, on, user);
        }
        at = end + 1;
    }
    return s->state;
}
