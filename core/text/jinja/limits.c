/* SPDX-License-Identifier: MIT
 * The arena, the limits of a rendering, and failures with line and column. */
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/text/jinja/jinja_impl.h"

enum { BLOCK = 64 << 10, ALIGN = 16 };

struct wgj_block {
    struct wgj_block *next;
    size_t used, size;
};

static wgj_block *add_block(wgj *j, size_t bytes)
{
    const size_t size = bytes > BLOCK ? bytes : BLOCK, head = (sizeof(wgj_block) + ALIGN - 1) / ALIGN * ALIGN;
    wgj_block *b = wg_alloc(head + size, 1);
    if (!b) {
        if (!j->failed) j->failed = wg_nomem(j->err, size, "a chat template");
        return NULL;
    }
    *b = (wgj_block){ .next = j->arena.first, .used = head, .size = head + size };
    if (bytes > BLOCK / 4 && j->arena.first) { /* the block in use stays the first one */
        b->next = j->arena.first->next;
        j->arena.first->next = b;
    } else j->arena.first = b;
    j->arena.bytes += size;
    return b;
}

void *wgj_take(wgj *j, size_t n, size_t size)
{
    size_t bytes;
    if (j->failed) return NULL;
    if (!wg_size_mul(n, size, &bytes) || bytes > WGJ_MEMORY || j->arena.bytes + bytes > WGJ_MEMORY) {
        wgj_fail(j, WG_EMODEL, "more than %d MB of memory are needed", WGJ_MEMORY >> 20);
        return NULL;
    }
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    wgj_block *b = j->arena.first;
    if (!b || b->size - b->used < bytes) b = add_block(j, bytes);
    if (!b) return NULL;
    void *p = (char *)b + b->used;
    b->used += bytes;
    memset(p, 0, bytes);
    return p;
}

bool wgj_grow(wgj *j, void **p, size_t n, size_t need, size_t *cap, size_t size)
{
    if (need <= *cap) return true;
    const size_t more = 2 * need + 8;
    void *q = wgj_take(j, more, size);
    if (!q) return false;
    if (n) memcpy(q, *p, n * size);
    *p = q;
    *cap = more;
    return true;
}

void wgj_free(wgj *j)
{
    while (j->arena.first) {
        wgj_block *next = j->arena.first->next;
        wg_free(j->arena.first);
        j->arena.first = next;
    }
}

bool wgj_spend(wgj *j, size_t work)
{
    if (j->failed) return false;
    j->work += work;
    if (j->work <= WGJ_WORK) return true;
    wgj_fail(j, WG_EMODEL, "the template takes more than %d steps; does a loop of it never end?", WGJ_WORK);
    return false;
}

bool wgj_enter(wgj *j)
{
    if (++j->depth <= WGJ_DEPTH) return wgj_spend(j, 1);
    wgj_fail(j, WG_EMODEL, "more than %d levels of nesting; does a macro of the template call itself without end?", WGJ_DEPTH);
    return false;
}

void wgj_leave(wgj *j) { j->depth--; }

void wgj_fail(wgj *j, wg_status code, const char *fmt, ...)
{
    char what[1024];
    int line = 1, column = 1;
    va_list args;
    if (j->failed) return;
    j->failed = code;
    for (size_t i = 0; i < j->at && i < j->n; i++) {
        if (j->source[i] == '\n') line++, column = 1;
        else column += ((unsigned char)j->source[i] & 0xC0) != 0x80;
    }
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    wg_fail(j->err, code, "%s, line %d, column %d: %s", j->name, line, column, what);
}
