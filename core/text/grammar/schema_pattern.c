/* SPDX-License-Identifier: MIT
 * The keyword `pattern`: a regular expression (ECMA-262, of whole characters as with the flag u) as an expression of the
 * grammar. Choices, groups and repetitions stand in the same places in both notations, so the expression is written while the
 * pattern is read. Characters become those of a JSON string: " and \ with a \ before them, control characters by their short
 * escapes; those that have none, and 0x7F, are not written. Where an alternative does not begin with ^ or end with $, any
 * characters may stand there (JSON Schema validation, section 6.3.3: a pattern is not anchored). */
#include <stdlib.h>
#include <string.h>

#include "core/text/grammar/bnf.h"
#include "core/text/grammar/bnf_impl.h"
#include "core/text/grammar/schema_impl.h"
#include "core/text/unicode.h"

enum { NESTING = WG_BNF_NESTING - 4, HIGHEST = 0x10FFFF };

typedef struct pattern {
    wg_schema_writer *w;
    const char *text, *at, *stop;
} pattern;

/* A set of characters; `whole`: of an escape such as \d, which bounds no range. */
typedef struct chars {
    wg_char_range r[WG_CHAR_RANGES + 1];
    int n;
    bool whole;
} chars;

/* The first failure, with its place; reading goes on over nothing. */
static void fail(pattern *p, wg_status code, const char *what)
{
    wg_schema_fail(p->w, code, "pattern: %s, at byte %d", what, (int)(p->at - p->text));
    p->at = p->stop;
}

static char peek(const pattern *p) { return p->at < p->stop ? *p->at : '\0'; }

static bool take(pattern *p, const char *word)
{
    const size_t n = strlen(word);
    if ((size_t)(p->stop - p->at) < n || memcmp(p->at, word, n) != 0) return false;
    p->at += n;
    return true;
}

/* ---- sets of characters */

static void add(pattern *p, chars *c, uint32_t lo, uint32_t hi)
{
    if (c->n == WG_CHAR_RANGES) fail(p, WG_EINVAL, "a set of more than 256 ranges");
    else c->r[c->n++] = (wg_char_range){ lo, hi };
}

static void add_all(pattern *p, chars *c, const chars *more)
{
    for (int i = 0; i < more->n; i++) add(p, c, more->r[i].lo, more->r[i].hi);
}

static void add_class(pattern *p, chars *c, char name)
{
    static const wg_char_range digit[] = { { '0', '9' } }, word[] = { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } },
                               space[] = { { 9, 13 },          { ' ', ' ' },       { 0xA0, 0xA0 },     { 0x1680, 0x1680 },
                                           { 0x2000, 0x200A }, { 0x2028, 0x2029 }, { 0x202F, 0x202F }, { 0x205F, 0x205F },
                                           { 0x3000, 0x3000 }, { 0xFEFF, 0xFEFF } };
    chars named = { .n = 0 };
    const bool negated = name < 'a';
    const wg_char_range *r = strchr("dD", name) ? digit : strchr("wW", name) ? word : space;
    const int n = r == digit ? 1 : r == word ? 4 : 10;
    for (int i = 0; i < n; i++) add(p, &named, r[i].lo, r[i].hi);
    named.n = wg_char_ranges_tidy(named.r, named.n, negated);
    add_all(p, c, &named);
    c->whole = true;
}

static uint32_t hex(pattern *p, int digits)
{
    uint32_t value = 0;
    for (int i = 0; i < digits; i++) {
        const int d = wg_hex_digit(peek(p));
        if (d < 0) {
            fail(p, WG_EFORMAT, "expected hexadecimal digits: two after \\x, four after \\u");
            return 0;
        }
        value = value << 4 | (uint32_t)d;
        p->at++;
    }
    return value;
}

/* \uHHHH, a pair of surrogates as the one character that it is, or \u{H..}. */
static uint32_t unicode_escape(pattern *p)
{
    if (take(p, "{")) {
        uint32_t value = 0;
        while (peek(p) != '}' && peek(p) && value <= HIGHEST) value = value << 4 | hex(p, 1);
        if (value > HIGHEST || !take(p, "}")) fail(p, WG_EFORMAT, "expected \\u{H} of a character");
        return value;
    }
    const uint32_t high = hex(p, 4);
    if (high < 0xD800 || high > 0xDBFF || !take(p, "\\u")) return high;
    return 0x10000 + ((high - 0xD800) << 10) + ((hex(p, 4) - 0xDC00) & 0x3FF);
}

/* What follows a \. */
static void escape(pattern *p, chars *c, bool in_set)
{
    static const char named[] = "nrtfv0", means[] = "\n\r\t\f\v";
    const char e = peek(p);
    const char *known = e ? strchr(named, e) : NULL;
    uint32_t value = (uint8_t)e;
    if (!e) fail(p, WG_EFORMAT, "a \\ at the end");
    else if ((e >= '1' && e <= '9') || (e == 'k' && !in_set)) fail(p, WG_EUNSUPPORTED, "back references are not supported");
    else if ((e == 'b' || e == 'B') && !in_set) fail(p, WG_EUNSUPPORTED, "\\b and \\B are not supported");
    else if (e == 'p' || e == 'P') fail(p, WG_EUNSUPPORTED, "\\p{...} is not supported");
    if (p->at == p->stop) return;
    p->at++;
    if (strchr("dDwWsS", e)) {
        add_class(p, c, e);
        return;
    }
    if (known) value = (uint8_t)means[known - named];
    else if (e == 'b') value = '\b';
    else if (e == 'x') value = hex(p, 2);
    else if (e == 'u') value = unicode_escape(p);
    else if (value >= 0x80 || (e >= 'a' && e <= 'z') || (e >= 'A' && e <= 'Z')) {
        p->at--;
        fail(p, WG_EUNSUPPORTED, "an escape that is not supported");
    }
    add(p, c, value, value);
}

/* One character or escape. */
static void member(pattern *p, chars *c, bool in_set)
{
    uint32_t value;
    if (take(p, "\\")) {
        escape(p, c, in_set);
        return;
    }
    p->at += wg_utf8_decode(p->at, (size_t)(p->stop - p->at), &value);
    add(p, c, value, value);
}

/* Behind a [. */
static void set(pattern *p, chars *c)
{
    const char *from = p->at - 1;
    const bool negated = take(p, "^");
    while (!take(p, "]")) {
        chars lo = { .n = 0 }, hi = { .n = 0 };
        if (p->at == p->stop) {
            p->at = from;
            fail(p, WG_EFORMAT, "a set that does not end; expected ]");
            return;
        }
        member(p, &lo, true);
        if (peek(p) == '-' && p->at + 1 < p->stop && p->at[1] != ']') {
            p->at++;
            member(p, &hi, true);
            if (lo.whole || hi.whole || lo.n == 0 || hi.n == 0 || hi.r[0].lo < lo.r[0].lo)
                fail(p, WG_EFORMAT, "a range whose end is before its beginning, or is a class");
            else lo.r[0].hi = hi.r[0].lo;
        }
        add_all(p, c, &lo);
    }
    c->n = wg_char_ranges_tidy(c->r, c->n, negated);
}

/* ---- writing them */

static void put_char(pattern *p, uint32_t c)
{
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    wg_schema_put(p->w, plain ? "%c" : c < 0x80 ? "\\x%02X" : c < 0x10000 ? "\\u%04X" : "\\U%08X", (unsigned)c);
}

static bool has(const chars *c, uint32_t x)
{
    for (int i = 0; i < c->n; i++)
        if (x >= c->r[i].lo && x <= c->r[i].hi) return true;
    return false;
}

/* Writes lo .. hi without what a string or UTF-8 does not have as it is; whether there was something. */
static bool put_range(pattern *p, uint32_t lo, uint32_t hi, bool first)
{
    static const wg_char_range plain[] = { { ' ', '!' }, { '#', '[' }, { ']', '~' }, { 0x80, 0xD7FF }, { 0xE000, HIGHEST } };
    bool any = false;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        const uint32_t from = lo > plain[i].lo ? lo : plain[i].lo, to = hi < plain[i].hi ? hi : plain[i].hi;
        if (from > to) continue;
        if (first && !any) wg_schema_put(p->w, "[");
        any = true;
        put_char(p, from);
        if (to > from) wg_schema_put(p->w, "-"), put_char(p, to);
    }
    return any;
}

/* One character of the set, in parentheses. */
static void put_chars(pattern *p, const chars *c)
{
    static const char written[] = "\"\\\b\f\n\r\t", *const as[] = { "\\\"", "\\\\", "\\b", "\\f", "\\n", "\\r", "\\t" };
    bool any = false;
    wg_schema_put(p->w, "(");
    for (int i = 0; i < c->n; i++) any |= put_range(p, c->r[i].lo, c->r[i].hi, !any);
    if (any) wg_schema_put(p->w, "]");
    for (size_t i = 0; i + 1 < sizeof written; i++) {
        if (!has(c, (uint8_t)written[i])) continue;
        if (any) wg_schema_put(p->w, " | ");
        wg_schema_literal(p->w, as[i], 2);
        any = true;
    }
    wg_schema_put(p->w, ")");
    if (!any) fail(p, WG_EUNSUPPORTED, "a set of characters of which none can be written");
}

/* ---- the expression */

static int count(pattern *p)
{
    int value = 0;
    if (!(peek(p) >= '0' && peek(p) <= '9'))
        fail(p, WG_EFORMAT, "expected a repetition as {2}, {2,} or {2,5}; write \\{ for {");
    for (; peek(p) >= '0' && peek(p) <= '9'; p->at++)
        if ((value = 10 * value + (*p->at - '0')) > WG_SCHEMA_REPEAT) fail(p, WG_EINVAL, "more than 4096 repetitions");
    return value;
}

/* Behind an item. A lazy repetition has the same texts. */
static void repetition(pattern *p)
{
    const char c = peek(p);
    if (c == '*' || c == '+' || c == '?') {
        p->at++;
        wg_schema_put(p->w, "%c", c);
    } else if (take(p, "{")) {
        const int least = count(p);
        wg_schema_put(p->w, "{%d", least);
        if (take(p, ",")) {
            wg_schema_put(p->w, ",");
            if (peek(p) != '}') {
                const int most = count(p);
                if (most < least) fail(p, WG_EFORMAT, "a repetition whose most is below its least");
                wg_schema_put(p->w, "%d", most);
            }
        }
        if (!take(p, "}")) fail(p, WG_EFORMAT, "expected }");
        wg_schema_put(p->w, "}");
    } else return;
    take(p, "?");
}

/* ( with what may stand behind it. */
static void open_group(pattern *p)
{
    if (take(p, "?=") || take(p, "?!") || take(p, "?<=") || take(p, "?<!"))
        fail(p, WG_EUNSUPPORTED, "looking ahead and behind is not supported");
    else if (take(p, "?<")) {
        while (peek(p) && !take(p, ">")) p->at++;
    } else if (peek(p) == '?' && !take(p, "?:")) fail(p, WG_EFORMAT, "expected (, (?: or (?<name>");
    wg_schema_put(p->w, "(\"\" ");
}

/* One character of the pattern, or a set of them. */
static void item(pattern *p)
{
    chars c = { .n = 0 };
    if (take(p, "[")) set(p, &c);
    else if (take(p, ".")) {
        c = (chars){ .r = { { '\n', '\n' }, { '\r', '\r' }, { 0x2028, 0x2029 } }, .n = 3 };
        c.n = wg_char_ranges_tidy(c.r, c.n, true);
    } else member(p, &c, false);
    if (!p->w->status) put_chars(p, &c);
}

/* $ and ^ are known at the ends of the pattern's own alternatives. */
static void anchor_or_item(pattern *p, int depth, bool *ended)
{
    const char c = peek(p);
    if (c == '$' && depth == 0 && (p->at + 1 == p->stop || p->at[1] == '|')) {
        p->at++;
        *ended = true;
    } else if (c == '^' || c == '$')
        fail(p, WG_EUNSUPPORTED, "^ and $ are supported at the beginning and the end of the pattern and of its alternatives");
    else if (c == '*' || c == '+' || c == '?' || c == '{') fail(p, WG_EFORMAT, "nothing to repeat");
    else {
        item(p);
        repetition(p);
    }
}

static void begin(pattern *p) { wg_schema_put(p->w, take(p, "^") ? "\"\" " : "char* "); }

void wg_schema_pattern(wg_schema_writer *w, const json_t *schema)
{
    const json_t *value = json_object_get(schema, "pattern");
    const char *text = json_is_string(value) ? json_string_value(value) : "";
    pattern p = { w, text, text, text + strlen(text) };
    int depth = 0;
    bool ended = false; /* the alternative has its $ */
    if (!json_is_string(value)) fail(&p, WG_EFORMAT, "expected a regular expression, as a string");
    wg_schema_put(w, "\"\\\"\" (");
    begin(&p);
    while (p.at < p.stop) {
        if (take(&p, "(")) {
            if (++depth > NESTING) fail(&p, WG_EINVAL, "groups inside more than 60 others");
            open_group(&p);
        } else if (peek(&p) == ')') {
            if (depth-- == 0) fail(&p, WG_EFORMAT, "a ) without its (");
            p.at += p.at < p.stop;
            wg_schema_put(w, ")");
            repetition(&p);
        } else if (take(&p, "|")) {
            if (depth == 0 && !ended) wg_schema_put(w, " char*");
            wg_schema_put(w, depth > 0 ? " | \"\" " : " | ");
            if (depth == 0) begin(&p);
            ended = false;
        } else anchor_or_item(&p, depth, &ended);
        wg_schema_put(w, " ");
    }
    if (depth > 0) fail(&p, WG_EFORMAT, "a ( without its )");
    wg_schema_put(w, "%s) \"\\\"\"", ended ? "" : "char*");
}
