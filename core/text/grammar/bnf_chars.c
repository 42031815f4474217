/* SPDX-License-Identifier: MIT
 * Sets of characters as sequences of byte ranges: a range of code points falls into ranges whose UTF-8 has one length and whose
 * bytes vary independently (as in RE2 and Rust's utf8-ranges). */
#include "core/text/grammar/bnf_impl.h"

#include <stdlib.h>
#include <string.h>

#include "core/text/unicode.h"

static int by_start(const void *a, const void *b)
{
    const uint32_t x = ((const wg_char_range *)a)->lo, y = ((const wg_char_range *)b)->lo;
    return (x > y) - (x < y);
}

int wg_char_ranges_tidy(wg_char_range *r, int n, bool not )
{
    wg_char_range out[WG_CHAR_RANGES + 1];
    int kept = 0, left = 0;
    uint32_t from = 0;
    qsort(r, (size_t)n, sizeof *r, by_start);
    for (int i = 0; i < n; i++)
        if (kept > 0 && r[i].lo <= r[kept - 1].hi + 1) r[kept - 1].hi = r[i].hi > r[kept - 1].hi ? r[i].hi : r[kept - 1].hi;
        else r[kept++] = r[i];
    if (!not ) return kept;
    for (int i = 0; i < kept; i++) {
        if (r[i].lo > from) out[left++] = (wg_char_range){ from, r[i].lo - 1 };
        from = r[i].hi + 1;
    }
    if (from <= 0x10FFFF) out[left++] = (wg_char_range){ from, 0x10FFFF };
    memcpy(r, out, (size_t)left * sizeof *r);
    return left;
}

/* Adds a choice to the piece. */
static void add_choice(wg_bnf_builder *b, wg_piece *p, int32_t choice)
{
    p->start = p->start < 0 ? choice : wg_bnf_add(b, WG_BNF_SPLIT, 0, 0, choice, p->start);
}

/* lo .. hi have one length, and each byte varies over its whole range. */
static void add_bytes(wg_bnf_builder *b, wg_piece *p, uint32_t lo, uint32_t hi)
{
    char first[WG_UTF8_MAX], last[WG_UTF8_MAX];
    int32_t next = p->end;
    const size_t n = wg_utf8_encode(lo, first);
    wg_utf8_encode(hi, last);
    for (size_t i = n; i-- > 0;) next = wg_bnf_add(b, WG_BNF_BYTE, (uint8_t)first[i], (uint8_t)last[i], next, -1);
    add_choice(b, p, next);
}

static void add_range(wg_bnf_builder *b, wg_piece *p, uint32_t lo, uint32_t hi)
{
    static const uint32_t length[] = { 0x7F, 0x7FF, 0xFFFF };
    if (lo > hi) return;
    for (int i = 0; i < 3; i++)
        if (lo <= length[i] && length[i] < hi) {
            add_range(b, p, lo, length[i]);
            add_range(b, p, length[i] + 1, hi);
            return;
        }
    for (int i = 1; i < 4 && hi > 0x7F; i++) {
        const uint32_t low = (1u << 6 * i) - 1;
        if ((lo & ~low) == (hi & ~low)) continue;
        if (lo & low) {
            add_range(b, p, lo, lo | low);
            add_range(b, p, (lo | low) + 1, hi);
            return;
        }
        if ((hi & low) != low) {
            add_range(b, p, lo, (hi & ~low) - 1);
            add_range(b, p, hi & ~low, hi);
            return;
        }
    }
    add_bytes(b, p, lo, hi);
}

wg_piece wg_bnf_chars(wg_bnf_builder *b, const wg_char_range *range, int n)
{
    wg_piece p = { -1, wg_bnf_add(b, WG_BNF_SPLIT, 0, 0, -1, -1) };
    for (int i = 0; i < n; i++) { /* surrogates have no UTF-8 */
        const uint32_t lo = range[i].lo, hi = range[i].hi;
        add_range(b, &p, lo, hi < 0xD7FF ? hi : 0xD7FF);
        add_range(b, &p, lo > 0xE000 ? lo : 0xE000, hi);
    }
    if (p.start < 0) p.start = wg_bnf_add(b, WG_BNF_DEAD, 0, 0, -1, -1);
    return p;
}
