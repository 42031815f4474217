/* SPDX-License-Identifier: MIT
 * Every unit and every replacement that is read is checked against the ends, because the trie may hold anything. */
#include "core/text/charsmap.h"

#include <string.h>

bool wg_charsmap_open(wg_charsmap *m, wg_text bytes)
{
    uint32_t size;
    if (bytes.n < 8) return false;
    memcpy(&size, bytes.s, 4);
    if (size == 0 || size % 4 != 0 || size > bytes.n - 4 || bytes.s[bytes.n - 1] != '\0') return false;
    *m = (wg_charsmap){ bytes.s + 4, size / 4, { bytes.s + 4 + size, bytes.n - 4 - size } };
    return true;
}

static bool unit_at(const wg_charsmap *m, size_t at, uint32_t *unit)
{
    if (at >= m->count) return false;
    memcpy(unit, m->units + 4 * at, 4);
    return true;
}

static size_t offset_of(uint32_t unit) { return (size_t)(unit >> 10) << ((unit & 1u << 9) >> 6); }

/* A walk along a text. */
typedef struct walk {
    size_t node;
    bool lost; /* no piece goes on here */
} walk;

static walk begin(const wg_charsmap *m)
{
    uint32_t root;
    const bool lost = !unit_at(m, 0, &root);
    return (walk){ lost ? 0 : offset_of(root), lost };
}

/* Takes a byte; true: a piece ends behind it, which becomes *to. */
static bool step(const wg_charsmap *m, walk *w, uint32_t c, wg_text *to)
{
    uint32_t unit, value;
    w->node ^= c;
    w->lost = !unit_at(m, w->node, &unit) || (unit & (1u << 31 | 255)) != c;
    if (w->lost) return false;
    w->node ^= offset_of(unit);
    if (!(unit >> 8 & 1)) return false;
    w->lost = !unit_at(m, w->node, &value) || (value & 0x7fffffff) >= m->values.n;
    if (w->lost) return false;
    const char *text = m->values.s + (value & 0x7fffffff);
    *to = (wg_text){ text, strlen(text) }; /* the last byte of all is NUL */
    return true;
}

size_t wg_charsmap_find(const wg_charsmap *m, const char *s, size_t n, wg_text *to)
{
    size_t best = 0;
    walk w = begin(m);
    for (size_t i = 0; i < n && i < WG_CHARSMAP_PIECE && !w.lost; i++)
        if (step(m, &w, (unsigned char)s[i], to)) best = i + 1;
    return best;
}

bool wg_charsmap_first(const wg_charsmap *m, const char *s, size_t n, wg_text *to)
{
    walk w = begin(m);
    for (size_t i = 0; i < n && s[i] && !w.lost; i++)
        if (step(m, &w, (unsigned char)s[i], to)) return true;
    return false;
}
