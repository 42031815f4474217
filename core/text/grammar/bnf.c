/* SPDX-License-Identifier: MIT
 * The parser of GBNF (bnf.h). It writes the network while it reads: a piece for every item, joined by nodes without a byte. */
#include <string.h>

#include "core/base/mem.h"
#include "core/text/grammar/bnf_impl.h"
#include "core/text/unicode.h"

/* ---- failing: the first failure stays, and parsing goes on over nothing */

static void fail_at(wg_bnf_builder *b, wg_status code, const char *at, const char *what)
{
    int line = 1, column = 1;
    if (b->status) return;
    for (const char *c = b->text; c < at; c++) {
        column = *c == '\n' ? 1 : column + 1;
        line += *c == '\n';
    }
    b->status = wg_fail(b->err, code, "%s:%d:%d: %s", b->name, line, column, what);
    b->at = b->stop;
}

static void fail(wg_bnf_builder *b, const char *what) { fail_at(b, WG_EFORMAT, b->at, what); }

int32_t wg_bnf_add(wg_bnf_builder *b, wg_bnf_op op, int lo, int hi, int32_t next, int32_t other)
{
    if (b->status) return 0;
    if (b->n == WG_BNF_NODES) {
        b->status =
            wg_fail(b->err, WG_EINVAL,
                    "%s: the grammar is larger than %d nodes, repetitions such as {0,1000} written out; repeat less often",
                    b->name, (int)WG_BNF_NODES);
        b->at = b->stop;
        return 0;
    }
    b->status = wg_grow((void **)&b->node, &b->room, (size_t)b->n + 1, sizeof *b->node, "a grammar", b->err);
    if (b->status) {
        b->at = b->stop;
        return 0;
    }
    b->node[b->n] = (wg_bnf_node){ .op = (uint8_t)op, .lo = (uint8_t)lo, .hi = (uint8_t)hi, .next = next, .other = other };
    return b->n++;
}

static wg_piece nothing(wg_bnf_builder *b)
{
    const int32_t node = wg_bnf_add(b, WG_BNF_SPLIT, 0, 0, -1, -1);
    return (wg_piece){ node, node };
}

static void join(wg_bnf_builder *b, int32_t end, int32_t next)
{
    if (!b->status) b->node[end].next = next;
}

/* ---- words */

static char peek(const wg_bnf_builder *b) { return b->at < b->stop ? *b->at : '\0'; }

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static void skip_space(wg_bnf_builder *b, bool lines)
{
    for (;; b->at++) {
        const char c = peek(b);
        if (c == '#')
            while (b->at < b->stop && *b->at != '\n' && *b->at != '\r') b->at++;
        if (b->at == b->stop) return;
        if (!(*b->at == ' ' || *b->at == '\t' || (lines && (*b->at == '\n' || *b->at == '\r')))) return;
    }
}

/* The number of the rule that is named here; -1 after a failure. */
static int name(wg_bnf_builder *b)
{
    const char *from = b->at;
    uint32_t number = 0;
    while (is_name(peek(b))) b->at++;
    if (b->at == from) {
        fail(b, "expected a rule's name: letters, digits, - and _");
        return -1;
    }
    const size_t before = b->rule.n;
    b->status = wg_byte_strings_add(&b->rule, from, (size_t)(b->at - from), 1, &number, b->err);
    if (!b->status && b->rule.n > WG_BNF_RULES)
        b->status = wg_fail(b->err, WG_EINVAL, "%s: the grammar has more than %d rules", b->name, (int)WG_BNF_RULES);
    if (!b->status)
        b->status = wg_grow((void **)&b->start, &b->start_room, b->rule.n, sizeof *b->start, "the rules of a grammar", b->err);
    if (!b->status)
        b->status = wg_grow((void **)&b->used, &b->used_room, b->rule.n, sizeof *b->used, "the rules of a grammar", b->err);
    if (b->status) {
        b->at = b->stop;
        return -1;
    }
    if (b->rule.n > before) {
        b->start[number] = -1;
        b->used[number] = (size_t)(from - b->text);
    }
    return (int)number;
}

static uint32_t hex(wg_bnf_builder *b, int digits)
{
    uint32_t value = 0;
    for (int i = 0; i < digits; i++) {
        const int d = wg_hex_digit(peek(b));
        if (d < 0) {
            fail(b, "expected hexadecimal digits: two after \\x, four after \\u, eight after \\U");
            return 0;
        }
        value = value << 4 | (uint32_t)d;
        b->at++;
    }
    return value;
}

/* One character of the text, UTF-8 or an escape. */
static uint32_t character(wg_bnf_builder *b)
{
    static const char plain[] = "\\\"[]-^", named[] = "nrt", means[] = "\n\r\t";
    const char *from = b->at;
    const bool escaped = *b->at == '\\';
    uint32_t value;
    if (escaped) {
        b->at++;
        const char e = peek(b), *known = e ? strchr(named, e) : NULL;
        if (e) b->at++;
        if (known) return (uint32_t)means[known - named];
        if (e && strchr(plain, e)) return (uint32_t)e;
        value = e == 'x' ? hex(b, 2) : e == 'u' ? hex(b, 4) : e == 'U' ? hex(b, 8) : UINT32_MAX;
    } else b->at += wg_utf8_decode(b->at, (size_t)(b->stop - b->at), &value);
    if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
        fail_at(b, WG_EFORMAT, from,
                escaped ? "expected an escape: \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\xHH \\uHHHH \\UHHHHHHHH, of a character"
                        : "expected UTF-8");
    return value;
}

/* ---- items */

static wg_piece literal(wg_bnf_builder *b)
{
    wg_piece p = nothing(b);
    const char *from = b->at++;
    while (peek(b) != '"') {
        if (b->at == b->stop || *b->at == '\n') {
            fail_at(b, WG_EFORMAT, from, "a text in quotes that does not end on its line; expected \"");
            return p;
        }
        const uint32_t c = character(b);
        const wg_piece one = wg_bnf_chars(b, &(wg_char_range){ c, c }, 1);
        join(b, p.end, one.start);
        p.end = one.end;
    }
    b->at++;
    return p;
}

static wg_piece set(wg_bnf_builder *b)
{
    wg_char_range r[WG_CHAR_RANGES + 1];
    const char *from = b->at++;
    const bool not = peek(b) == '^';
    int n = 0;
    b->at += not ;
    while (peek(b) != ']') {
        if (b->at == b->stop || *b->at == '\n' || n == WG_CHAR_RANGES) {
            fail_at(b, WG_EFORMAT, from,
                    n == WG_CHAR_RANGES ? "a set of more than 256 ranges" : "a set that does not end on its line; expected ]");
            return nothing(b);
        }
        const uint32_t lo = character(b);
        uint32_t hi = lo;
        if (peek(b) == '-' && b->at + 1 < b->stop && b->at[1] != ']') {
            b->at++;
            hi = character(b);
        }
        if (hi < lo) fail(b, "a range whose end is before its beginning");
        r[n++] = (wg_char_range){ lo, hi };
    }
    b->at++;
    return wg_bnf_chars(b, r, wg_char_ranges_tidy(r, n, not ));
}

/* Another copy of the nodes from .. to-1, which make up a piece. */
static wg_piece copy(wg_bnf_builder *b, wg_piece p, int from, int to)
{
    const int32_t by = b->n - from;
    for (int i = from; i < to && !b->status; i++) {
        const wg_bnf_node x = b->node[i];
        const bool calls = x.op == WG_BNF_CALL;
        wg_bnf_add(b, (wg_bnf_op)x.op, x.lo, x.hi, x.next < 0 || i == p.end ? -1 : x.next + by,
                   x.other < 0 || calls ? x.other : x.other + by);
    }
    return (wg_piece){ p.start + by, p.end + by };
}

/* least .. most times (most < 0: any number) what was built from node `from` on as piece p. */
static wg_piece repeat(wg_bnf_builder *b, wg_piece p, int from, int least, int most)
{
    const int to = b->n;
    wg_piece all = nothing(b);
    const int32_t end = wg_bnf_add(b, WG_BNF_SPLIT, 0, 0, -1, -1);
    const int copies = most < 0 ? least + 1 : most;
    for (int i = 0; i < copies && !b->status; i++) {
        const wg_piece one = i == copies - 1 ? p : copy(b, p, from, to);
        const int32_t before = i < least ? one.start : wg_bnf_add(b, WG_BNF_SPLIT, 0, 0, one.start, end);
        join(b, all.end, before);
        if (i >= least && most < 0) { /* the last one: a loop */
            join(b, one.end, before);
            all.end = -1;
        } else all.end = one.end;
    }
    if (all.end >= 0) join(b, all.end, end);
    all.end = end;
    return all;
}

static int number(wg_bnf_builder *b)
{
    int value = 0;
    if (!(peek(b) >= '0' && peek(b) <= '9')) fail(b, "expected a number of repetitions, as in {2,5}");
    for (; peek(b) >= '0' && peek(b) <= '9'; b->at++)
        if (value < 1 << 20) value = 10 * value + (*b->at - '0');
    return value;
}

static wg_piece repetitions(wg_bnf_builder *b, wg_piece p, int from)
{
    for (;;) {
        const char c = peek(b);
        int least = c == '+', most = c == '?' ? 1 : -1;
        if (c == '{') {
            b->at++;
            skip_space(b, false);
            least = most = number(b);
            skip_space(b, false);
            if (peek(b) == ',') {
                b->at++;
                skip_space(b, false);
                most = peek(b) == '}' ? -1 : number(b);
                skip_space(b, false);
            }
            if (peek(b) != '}') fail(b, "expected } after the number of repetitions");
            else if (most >= 0 && most < least) fail(b, "a repetition whose most is below its least");
        } else if (c != '*' && c != '+' && c != '?') return p;
        if (b->status) return p;
        b->at++;
        p = repeat(b, p, from, least, most);
        skip_space(b, false);
    }
}

static wg_piece choices(wg_bnf_builder *b, int nesting);

static wg_piece item(wg_bnf_builder *b, int nesting)
{
    const char c = peek(b);
    if (c == '"') return literal(b);
    if (c == '[') return set(b);
    if (c == '.') {
        b->at++;
        return wg_bnf_chars(b, &(wg_char_range){ 0, 0x10FFFF }, 1);
    }
    if (c == '(') {
        b->at++;
        if (nesting == WG_BNF_NESTING) {
            fail(b, "parentheses inside more than 64 others");
            return nothing(b);
        }
        skip_space(b, true);
        const wg_piece p = choices(b, nesting + 1);
        if (peek(b) != ')') fail(b, "expected )");
        else b->at++;
        return p;
    }
    const int rule = name(b);
    const int32_t end = wg_bnf_add(b, WG_BNF_SPLIT, 0, 0, -1, -1);
    return (wg_piece){ wg_bnf_add(b, WG_BNF_CALL, 0, 0, end, rule), end };
}

/* Items one behind the other; the nodes of each stand side by side, so that it can be repeated. */
static wg_piece sequence(wg_bnf_builder *b, int nesting)
{
    wg_piece p = nothing(b);
    for (;;) {
        const char c = peek(b);
        if (!(c == '"' || c == '[' || c == '.' || c == '(' || is_name(c))) return p;
        const int from = b->n;
        wg_piece one = item(b, nesting);
        skip_space(b, false);
        one = repetitions(b, one, from);
        skip_space(b, nesting > 0);
        join(b, p.end, one.start);
        p.end = one.end;
    }
}

/* A line may begin with |. */
static bool another(wg_bnf_builder *b)
{
    const char *at = b->at;
    skip_space(b, true);
    if (peek(b) == '|') return true;
    b->at = at;
    return false;
}

static wg_piece choices(wg_bnf_builder *b, int nesting)
{
    wg_piece all = sequence(b, nesting);
    while (!b->status && another(b)) {
        b->at++;
        skip_space(b, true);
        const wg_piece one = sequence(b, nesting);
        const int32_t end = wg_bnf_add(b, WG_BNF_SPLIT, 0, 0, -1, -1);
        join(b, all.end, end);
        join(b, one.end, end);
        all = (wg_piece){ wg_bnf_add(b, WG_BNF_SPLIT, 0, 0, all.start, one.start), end };
    }
    return all;
}

/* ---- rules */

static void rule(wg_bnf_builder *b)
{
    const char *from = b->at;
    const int number = name(b);
    skip_space(b, false);
    if (!b->status && (b->stop - b->at < 3 || memcmp(b->at, "::=", 3) != 0)) fail(b, "expected ::= after a rule's name");
    if (!b->status && b->start[number] >= 0) fail_at(b, WG_EFORMAT, from, "a rule that is there already; expected each once");
    if (b->status) return;
    b->at += 3;
    skip_space(b, true);
    const wg_piece p = choices(b, 0);
    join(b, p.end, wg_bnf_add(b, WG_BNF_END, 0, 0, -1, number));
    if (b->status) return;
    b->start[number] = p.start;
    if (b->at < b->stop && *b->at != '\n' && *b->at != '\r')
        fail(b, "expected \"text\", [set], ., (choices), a rule's name, | or the end of the line");
    skip_space(b, true);
}

static void rules(wg_bnf_builder *b)
{
    skip_space(b, true);
    while (!b->status && b->at < b->stop) rule(b);
    for (size_t i = 0; i < b->rule.n && !b->status; i++)
        if (b->start[i] < 0) fail_at(b, WG_EFORMAT, b->text + b->used[i], "a rule that is nowhere defined");
}

static wg_status finish(wg_bnf_builder *b, wg_bnf **out, wg_error *err)
{
    const int64_t root = wg_byte_strings_find(&b->rule, "root", 4);
    if (root < 0) return wg_fail(err, WG_EFORMAT, "%s: there is no rule root, where a text begins", b->name);
    wg_bnf *g = wg_calloc(1, sizeof *g);
    if (!g) return wg_nomem(err, sizeof *g, "a grammar");
    *g = (wg_bnf){ .node = b->node, .n = b->n, .rules = (int)b->rule.n, .start = b->start, .root = (int)root };
    b->node = NULL;
    b->start = NULL;
    const wg_status status = wg_bnf_check(b, g, err);
    if (status) wg_bnf_close(g);
    else *out = g;
    return status;
}

wg_status wg_bnf_open(wg_bnf **out, const char *name, const char *text, size_t n, wg_error *err)
{
    if (n > WG_BNF_TEXT)
        return wg_fail(err, WG_EINVAL, "%s: a grammar of %zu bytes; expected %d at most", name, n, (int)WG_BNF_TEXT);
    wg_bnf_builder b = { .name = name, .text = text, .at = text, .stop = text + n, .err = err };
    rules(&b);
    wg_status status = b.status;
    if (!status) status = finish(&b, out, err);
    wg_byte_strings_free(&b.rule);
    wg_free(b.node);
    wg_free(b.start);
    wg_free(b.used);
    return status;
}

void wg_bnf_close(wg_bnf *b)
{
    if (!b) return;
    wg_free(b->node);
    wg_free(b->start);
    wg_free(b);
}
