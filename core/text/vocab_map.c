/* SPDX-License-Identifier: MIT
 * The tokens of b are entered in a set by their bytes; those of a are looked up, the best stored first. */
#include "core/text/vocab_map.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/text/byte_strings.h"

/* The bytes that a token stands for; n == 0: none. */
typedef struct bytes {
    size_t n;
    char *s; /* room for any token of the two, and a byte more */
} bytes;

/* Spells a token. For a control token its name, after a byte that begins no text. */
static void spell(const wg_tokenizer *t, int32_t id, bytes *out)
{
    out->n = 0;
    if (id == wg_tokenizer_bos(t) || id == wg_tokenizer_eos(t)) return; /* by role */
    if (!wg_tokenizer_is_control(t, id)) {
        out->n = wg_tokenizer_decode_one(t, id, false, false, out->s, wg_tokenizer_room(t));
        return;
    }
    if (wg_tokenizer_is_unknown(t, id)) return;
    const wg_text name = wg_tokenizer_piece(t, id);
    if (name.n == 0) return;
    out->s[0] = (char)0xff;
    memcpy(out->s + 1, name.s, name.n);
    out->n = name.n + 1;
}

/* Of two ids with the same bytes, the preferred one. */
static int32_t better(const wg_tokenizer *t, int32_t x, int32_t y)
{
    const size_t nx = wg_tokenizer_piece(t, x).n, ny = wg_tokenizer_piece(t, y).n;
    return nx != ny ? (nx < ny ? x : y) : x < y ? x : y;
}

/* The tokens of t by their bytes; best[number of the bytes]: the preferred one. */
static wg_status enter_all(const wg_tokenizer *t, wg_byte_strings *known, int32_t *best, bytes *b, wg_error *err)
{
    for (int32_t id = 0; id < wg_tokenizer_size(t); id++) {
        uint32_t number;
        const size_t before = known->n;
        spell(t, id, b);
        if (b->n == 0) continue;
        WG_TRY(wg_byte_strings_add(known, b->s, b->n, 0, &number, err));
        best[number] = number == before ? id : better(t, id, best[number]);
    }
    return WG_OK;
}

static void pair(wg_vocab_map *m, int32_t a, int32_t b)
{
    if (a < 0 || b < 0) return;
    m->to_b[a] = b;
    m->to_a[b] = a;
}

static void match(wg_vocab_map *m, const wg_tokenizer *a, const wg_tokenizer *b, const wg_byte_strings *known,
                  const int32_t *best, bytes *s)
{
    pair(m, wg_tokenizer_bos(a), wg_tokenizer_bos(b));
    pair(m, wg_tokenizer_eos(a), wg_tokenizer_eos(b)); /* one token may be both: then the end counts, which can be drafted */
    for (int32_t id = 0; id < m->a; id++) {
        spell(a, id, s);
        const int64_t number = s->n ? wg_byte_strings_find(known, s->s, s->n) : -1;
        if (number < 0) continue;
        const int32_t to = best[number];
        const int32_t before = m->to_a[to];
        if (before >= 0 && better(a, before, id) == before) continue;
        if (before >= 0) m->to_b[before] = -1;
        pair(m, id, to);
    }
    for (int32_t id = 0; id < m->a; id++) { /* a bijection also where one side has one token for both ends of a text */
        if (m->to_b[id] >= 0 && m->to_a[m->to_b[id]] != id) m->to_b[id] = -1;
        m->shared += m->to_b[id] >= 0;
    }
    for (int32_t id = 0; id < m->b; id++)
        if (m->to_a[id] >= 0 && m->to_b[m->to_a[id]] != id) m->to_a[id] = -1;
}

wg_status wg_vocab_map_open(wg_vocab_map *m, const wg_tokenizer *a, const wg_tokenizer *b, wg_error *err)
{
    *m = (wg_vocab_map){ .a = wg_tokenizer_size(a), .b = wg_tokenizer_size(b) };
    const size_t room_a = wg_tokenizer_room(a), room_b = wg_tokenizer_room(b), room = room_a > room_b ? room_a : room_b;
    wg_byte_strings known = { 0 };
    bytes one = { .s = wg_alloc(room, 1) };
    int32_t *best = wg_alloc((size_t)m->b, sizeof *best);
    m->to_b = wg_alloc((size_t)m->a, sizeof *m->to_b);
    m->to_a = wg_alloc((size_t)m->b, sizeof *m->to_a);
    const bool ok = m->to_b && m->to_a && best && one.s;
    const wg_status s = ok ? enter_all(b, &known, best, &one, err) : wg_nomem(err, room, "comparing two vocabularies");
    if (s) wg_vocab_map_close(m);
    else {
        memset(m->to_b, -1, (size_t)m->a * sizeof *m->to_b);
        memset(m->to_a, -1, (size_t)m->b * sizeof *m->to_a);
        match(m, a, b, &known, best, &one);
    }
    wg_byte_strings_free(&known);
    wg_free(best);
    wg_free(one.s);
    return s;
}

void wg_vocab_map_close(wg_vocab_map *m)
{
    wg_free(m->to_b);
    wg_free(m->to_a);
    *m = (wg_vocab_map){ 0 };
}
