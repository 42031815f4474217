/* SPDX-License-Identifier: MIT
 * Pre-tokenisation without regular expressions. Every pattern is the same list of alternatives, tried in this order:
 *
 *     contraction      's|'t|'re|'ve|'m|'ll|'d                 any_case: (?i:...), where U+017F counts as an s
 *     word             " ?\p{L}+"                              prefix_any: [^\r\n\p{L}\p{N}]?\p{L}+
 *     number           " ?\p{N}+"                              digits: \p{N}{1,digits}
 *     punctuation      " ?[^\s\p{L}\p{N}]+"                    lines: followed by [\r\n]*
 *     line ends        -                                       lines: \s*[\r\n]+
 *     white space      \s+(?!\S)|\s+
 *
 * The last two are one scan of the white space ahead: up to its last line end; else all of it but its last character,
 * which is left for the word that follows. */
#include "core/text/pretok.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/text/unicode.h"

/* clang-format off */
static const wg_pretok rows[] = {
    { .names = "gpt-2 gpt2 phi-2 mpt olmo jais", .digits = -1 },
    { .names = "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0", .any_case = true, .prefix_any = true,
      .digits = 3, .lines = true, .whole_words = true, .add_bos = true },
    { .names = "dbrx smaug-bpe", .any_case = true, .prefix_any = true, .digits = 3, .lines = true },
    { .names = "qwen2 deepseek-r1-qwen stablelm2", .any_case = true, .prefix_any = true, .digits = 1, .lines = true },
    { .names = "starcoder smollm refact command-r codeshell exaone", .digits = 1, .digits_first = true },
};
/* clang-format on */

enum { ROWS = sizeof rows / sizeof *rows };

/* The length of the next name in a list, *s moved to its beginning; 0 at the end. */
static size_t next_name(const char **s)
{
    *s += strspn(*s, " ");
    return strcspn(*s, " ");
}

const wg_pretok *wg_pretok_find(const char *name, size_t n)
{
    for (int i = 0; i < ROWS; i++) {
        const char *s = rows[i].names;
        for (size_t len; (len = next_name(&s)) > 0; s += len)
            if (len == n && memcmp(s, name, n) == 0) return &rows[i];
    }
    return NULL;
}

const char *wg_pretok_list(char *buf, size_t size)
{
    size_t at = 0;
    if (size > 0) buf[0] = '\0';
    for (int i = 0; i < ROWS; i++) {
        const char *s = rows[i].names;
        for (size_t len; (len = next_name(&s)) > 0 && at < size; s += len)
            at += (size_t)snprintf(buf + at, size - at, "%s%.*s", at ? ", " : "", (int)len, s);
    }
    return buf;
}

/* One character: its class and where the next one begins. n == 0 reads as `end`. */
typedef struct glyph {
    uint32_t cp;
    wg_unicode is;
    size_t n;
} glyph;

static glyph look(const char *s, size_t n)
{
    glyph g = { .cp = WG_UTF8_BAD };
    g.n = wg_utf8_decode(s, n, &g.cp);
    g.is = wg_unicode_class(g.cp);
    return g;
}

/* Bytes of the run of characters of one class at s, at most `limit` characters (0: no limit). */
static size_t run(const char *s, size_t n, wg_unicode is, int limit)
{
    size_t at = 0;
    for (int k = 0; limit == 0 || k < limit; k++) {
        const glyph g = look(s + at, n - at);
        if (g.n == 0 || g.is != is) break;
        at += g.n;
    }
    return at;
}

static bool is_line_end(uint32_t cp) { return cp == '\r' || cp == '\n'; }

/* One letter of a contraction in lower case; 0 for anything that occurs in none. */
static char contraction_letter(glyph g, bool any_case)
{
    if (any_case && g.cp == 0x17f) return 's'; /* the long s: the one other character whose case folding is in the list */
    if (any_case && g.cp >= 'A' && g.cp <= 'Z') return (char)(g.cp + ('a' - 'A'));
    return g.cp >= 'a' && g.cp <= 'z' ? (char)g.cp : 0;
}

static size_t contraction(const wg_pretok *p, const char *s, size_t n)
{
    if (n < 2 || s[0] != '\'') return 0;
    const glyph first = look(s + 1, n - 1);
    const char a = contraction_letter(first, p->any_case);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 1 + first.n;
    const glyph second = look(s + 1 + first.n, n - 1 - first.n);
    const char b = contraction_letter(second, p->any_case);
    const bool two = (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l');
    return two ? 1 + first.n + second.n : 0;
}

/* White space at s, as the two or three last alternatives cut it. */
static size_t white_space(const wg_pretok *p, const char *s, size_t n)
{
    size_t at = 0, last = 0, after_line = 0; /* ends of the run, of the run less its last character, of its last line end */
    glyph g;
    while ((g = look(s + at, n - at)).n > 0 && g.is == WG_UNICODE_SPACE) {
        last = at;
        at += g.n;
        if (is_line_end(g.cp)) after_line = at;
    }
    if (p->lines && after_line > 0) return after_line;
    const bool ends = g.n == 0 || (p->digits_first && g.is == WG_UNICODE_NUMBER);
    return ends || last == 0 ? at : last;
}

size_t wg_pretok_next(const wg_pretok *p, const char *s, size_t n)
{
    if (n == 0) return 0;
    const size_t short_form = contraction(p, s, n);
    if (short_form > 0) return short_form;

    const glyph g = look(s, n);
    const glyph h = look(s + g.n, n - g.n);
    const size_t space = g.cp == ' ' ? g.n : 0; /* of " ?" */
    const wg_unicode is = space ? h.is : g.is;  /* what stands after it */

    if (is == WG_UNICODE_LETTER && (space == 0 || h.n > 0)) return space + run(s + space, n - space, WG_UNICODE_LETTER, 0);
    if (p->prefix_any && g.is != WG_UNICODE_NUMBER && !is_line_end(g.cp) && h.n > 0 && h.is == WG_UNICODE_LETTER)
        return g.n + run(s + g.n, n - g.n, WG_UNICODE_LETTER, 0);
    if (g.is == WG_UNICODE_NUMBER) return run(s, n, WG_UNICODE_NUMBER, p->digits < 0 ? 0 : p->digits);
    if (is == WG_UNICODE_NUMBER && p->digits < 0) return space + run(s + space, n - space, WG_UNICODE_NUMBER, 0);
    if (is == WG_UNICODE_OTHER && (space == 0 || h.n > 0)) {
        size_t at = space + run(s + space, n - space, WG_UNICODE_OTHER, 0);
        while (p->lines && at < n && is_line_end((unsigned char)s[at])) at++;
        return at;
    }
    return white_space(p, s, n);
}
