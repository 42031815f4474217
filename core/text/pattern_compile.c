/* SPDX-License-Identifier: MIT
 * Regular expressions to programs (pattern.h), by recursive descent. An unbounded loop holds one set and no group, so a program
 * has no loop in itself. The ways through the bounded choices of one alternative are at most WAYS. */
#include <string.h>

#include "core/text/pattern.h"
#include "core/text/unicode.h"
#include "core/text/vocab.h"

enum { WAYS = 4096, MOST = 1000, ALL_CATEGORIES = (1 << (WG_CATEGORY_SPACE + 1)) - 1 };

#define BIT(name) (1u << WG_CATEGORY_##name)
#define LETTERS (BIT(LU) | BIT(LL) | BIT(LT) | BIT(LM) | BIT(LO))
#define NUMBERS (BIT(ND) | BIT(NL) | BIT(NO))
#define WORDS (LETTERS | BIT(M) | BIT(ND) | BIT(NL) | BIT(PC))

typedef struct compiler {
    wg_pattern *p;
    const char *s;
    size_t n, at;
    bool any_case;
    int depth;
    const char *why;         /* NULL: all is well */
    wg_pattern_code no_code; /* what is written where there is no room */
    wg_charset no_set;
} compiler;

static bool refuse(compiler *c, const char *why)
{
    if (!c->why) c->why = why;
    return false;
}

static bool peek(const compiler *c, char x) { return c->at < c->n && c->s[c->at] == x; }
static bool eat(compiler *c, const char *x)
{
    const size_t n = strlen(x);
    if (c->n - c->at < n || memcmp(c->s + c->at, x, n) != 0) return false;
    c->at += n;
    return true;
}

static wg_pattern_code *emit(compiler *c, wg_pattern_op op)
{
    if (c->p->n == WG_PATTERN_CODE) {
        refuse(c, "an expression of this length");
        return &c->no_code;
    }
    wg_pattern_code *code = &c->p->code[c->p->n++];
    *code = (wg_pattern_code){ .op = (uint8_t)op };
    return code;
}

/* ---- sets. While one is built, `categories` counts for all characters, and ranges are not in order. */

static wg_charset *new_set(compiler *c)
{
    if (c->p->sets == WG_PATTERN_SETS) {
        refuse(c, "an expression of so many sets");
        return &c->no_set;
    }
    wg_charset *set = &c->p->set[c->p->sets++];
    *set = (wg_charset){ .range = (uint16_t)c->p->ranges };
    return set;
}

static void add_category(wg_charset *set, uint32_t categories)
{
    for (uint32_t cp = 0; cp < 128; cp++)
        if (categories >> wg_unicode_category(cp) & 1) set->ascii[cp >> 6] |= 1ull << (cp & 63);
    set->categories |= categories;
}

static bool add_range(compiler *c, wg_charset *set, uint32_t lo, uint32_t hi)
{
    wg_pattern *p = c->p;
    if (hi < lo) return refuse(c, "a range that ends before it begins");
    for (; lo <= hi && lo < 128; lo++) set->ascii[lo >> 6] |= 1ull << (lo & 63);
    if (lo > hi) return true;
    if (p->ranges == WG_PATTERN_RANGES) return refuse(c, "a set of so many ranges");
    int i = p->ranges++;
    for (; i > set->range && p->range[i - 1][0] > lo; i--) memcpy(p->range[i], p->range[i - 1], sizeof p->range[i]);
    p->range[i][0] = lo;
    p->range[i][1] = hi;
    set->ranges++;
    return true;
}

/* Joins ranges that meet, so that a search finds the one that counts. */
static void finish_set(wg_pattern *p, wg_charset *set, bool negated)
{
    uint32_t(*r)[2] = p->range + set->range;
    int kept = 0;
    for (int i = 0; i < set->ranges; i++) {
        if (kept > 0 && r[i][0] <= r[kept - 1][1] + 1) {
            if (r[i][1] > r[kept - 1][1]) r[kept - 1][1] = r[i][1];
        } else memmove(r[kept++], r[i], sizeof r[i]);
    }
    p->ranges -= set->ranges - kept;
    set->ranges = (uint16_t)kept;
    set->negated = negated;
    for (int i = 0; negated && i < 2; i++) set->ascii[i] = ~set->ascii[i];
}

/* A character, and in (?i:...) what folds to the same. */
static bool add_char(compiler *c, wg_charset *set, uint32_t lo, uint32_t hi)
{
    bool ok = add_range(c, set, lo, hi);
    for (uint32_t x = lo; ok && c->any_case && x <= hi && x < 128; x++) {
        const uint32_t lower = x | 0x20;
        if (lower < 'a' || lower > 'z') continue;
        ok = add_range(c, set, x ^ 0x20, x ^ 0x20);
        if (ok && lower == 's') ok = add_range(c, set, 0x17f, 0x17f);
        if (ok && lower == 'k') ok = add_range(c, set, 0x212a, 0x212a);
    }
    if (ok && c->any_case && hi >= 128) return refuse(c, "(?i:) around such a character");
    return ok;
}

static bool property(compiler *c, uint32_t *categories)
{
    static const struct {
        const char *name;
        uint32_t of;
    } known[] = {
        { "{L}", LETTERS },  { "{Lu}", BIT(LU) },         { "{Ll}", BIT(LL) }, { "{Lt}", BIT(LT) }, { "{Lm}", BIT(LM) },
        { "{Lo}", BIT(LO) }, { "{M}", BIT(M) },           { "{N}", NUMBERS },  { "{Nd}", BIT(ND) }, { "{Nl}", BIT(NL) },
        { "{No}", BIT(NO) }, { "{P}", BIT(PC) | BIT(P) }, { "{Pc}", BIT(PC) }, { "{S}", BIT(S) },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (eat(c, known[i].name)) {
            *categories = known[i].of;
            return true;
        }
    return refuse(c, "this property of characters");
}

/* What \ begins that is a set: true; else the character in *cp. */
static bool escape(compiler *c, uint32_t *categories, uint32_t *cp)
{
    static const char named[] = "r\rn\nt\tf\fv\v", plain[] = "-.[]{}()*+?^$|/\\\"'#&~!%@<>=:;,`_ ";
    *categories = 0;
    if (c->at == c->n) return refuse(c, "\\ at the end");
    const char x = c->s[c->at++];
    switch (x) {
    case 's': *categories = BIT(SPACE); return true;
    case 'S': *categories = ALL_CATEGORIES & ~BIT(SPACE); return true;
    case 'd': *categories = BIT(ND); return true;
    case 'D': *categories = ALL_CATEGORIES & ~BIT(ND); return true;
    case 'w': *categories = WORDS; return true;
    case 'W': *categories = ALL_CATEGORIES & ~WORDS; return true;
    case 'p': return property(c, categories);
    case 'P':
        if (!property(c, categories)) return false;
        *categories = ALL_CATEGORIES & ~*categories;
        return true;
    default: break;
    }
    for (size_t i = 0; named[i]; i += 2)
        if (x == named[i]) {
            *cp = (unsigned char)named[i + 1];
            return false;
        }
    if (!strchr(plain, x)) refuse(c, "this escape");
    *cp = (unsigned char)x;
    return false;
}

/* One member of a set: true when it is a set itself, else its character. */
static bool member(compiler *c, uint32_t *categories, uint32_t *cp)
{
    *categories = 0;
    if (eat(c, "\\")) return escape(c, categories, cp);
    if (peek(c, '[') || (c->n - c->at > 1 && c->s[c->at] == '&' && c->s[c->at + 1] == '&')) refuse(c, "a set in a set");
    const size_t n = wg_utf8_decode(c->s + c->at, c->n - c->at, cp);
    if (n == 0 || *cp == WG_UTF8_BAD) refuse(c, "a set without an end");
    c->at += n;
    return false;
}

static bool bracket(compiler *c, wg_charset *set)
{
    const bool negated = eat(c, "^");
    bool first = true;
    for (; !c->why && (first || !peek(c, ']')); first = false) {
        uint32_t categories, lo = 0, hi;
        if (member(c, &categories, &lo)) {
            add_category(set, categories);
            continue;
        }
        hi = lo;
        if (peek(c, '-') && c->at + 1 < c->n && c->s[c->at + 1] != ']') {
            c->at++;
            if (member(c, &categories, &hi)) refuse(c, "a range that ends in a set");
        }
        if (!c->why) add_char(c, set, lo, hi);
    }
    c->at += !c->why;
    finish_set(c->p, set, negated);
    return !c->why;
}

/* ---- pieces */

static int number(compiler *c)
{
    int v = -1;
    for (; c->at < c->n && c->s[c->at] >= '0' && c->s[c->at] <= '9' && v <= MOST; c->at++)
        v = (v < 0 ? 0 : v) * 10 + (c->s[c->at] - '0');
    return v;
}

/* Reads a quantifier; false: there is none. max 0: no bound. */
static bool quantifier(compiler *c, int *min, int *max, bool *possessive)
{
    *min = 0;
    *max = 0;
    *possessive = false;
    const bool braces = eat(c, "{");
    if (braces) {
        *min = number(c);
        *max = eat(c, ",") ? (peek(c, '}') ? 0 : number(c)) : *min;
        if (!eat(c, "}") || *min < 0 || *min > MOST || *max < 0 || *max > MOST || (*max > 0 && *max < *min))
            return refuse(c, "this quantifier");
        if (*max == 0 && *min == 0 && c->s[c->at - 2] != ',') return refuse(c, "this quantifier");
    } else if (eat(c, "?")) *max = 1;
    else if (eat(c, "+")) *min = 1;
    else if (!eat(c, "*")) return false;
    if (!braces) *possessive = eat(c, "+");
    if (peek(c, '?') || peek(c, '+') || peek(c, '*') || peek(c, '{')) return refuse(c, "this quantifier");
    return true;
}

static bool is_space_set(const wg_charset *s)
{
    return s->categories == BIT(SPACE) && s->ranges == 0 && !s->negated && s->ascii[0] == 0x100003e00ull && s->ascii[1] == 0;
}

/* The number of a set; that of no_set does not count. */
static uint8_t index_of(const compiler *c, const wg_charset *set) { return set == &c->no_set ? 0 : (uint8_t)(set - c->p->set); }

/* A set has been read: with its quantifier it is one instruction. */
static void one(compiler *c, wg_charset *set, int *ways)
{
    int min, max;
    bool possessive;
    const uint8_t index = index_of(c, set);
    if (c->why) return;
    if (!quantifier(c, &min, &max, &possessive)) {
        emit(c, WG_PATTERN_SET)->set = index;
        return;
    }
    wg_pattern_code *code = emit(c, WG_PATTERN_LOOP);
    code->set = index;
    code->min = (uint16_t)min;
    code->max = (uint16_t)max;
    code->possessive = possessive;
    if (max == 0) {
        if (c->p->loops == WG_PATTERN_LOOPS) refuse(c, "an expression of so many loops");
        else code->loop = (uint8_t)c->p->loops++;
    } else if (!possessive) *ways *= max - min + 1;
}

/* (?!\S) and $ need white space before them: text is cut at other places on the assumption that no more text matters there. */
static void behind_space(compiler *c, wg_pattern_op op)
{
    const wg_pattern_code *last = c->p->n > 0 ? &c->p->code[c->p->n - 1] : NULL;
    if (!last || last->op != WG_PATTERN_LOOP || last->min == 0 || !is_space_set(&c->p->set[last->set])) {
        refuse(c, "an assertion that does not follow a loop of white space");
        return;
    }
    wg_charset *set = op == WG_PATTERN_LOOK ? new_set(c) : NULL;
    if (set) {
        add_category(set, ALL_CATEGORIES & ~BIT(SPACE));
        finish_set(c->p, set, false);
    }
    emit(c, op)->set = set ? index_of(c, set) : 0;
}

static void alternatives(compiler *c);

static void group(compiler *c, int *ways)
{
    const bool any_case = c->any_case;
    if (eat(c, "?i:")) c->any_case = true;
    else if (!eat(c, "?:") && peek(c, '?')) refuse(c, "this kind of group");
    const int split = c->p->n;
    emit(c, WG_PATTERN_SPLIT)->to = (uint16_t)(split + 1); /* of a group that may be left out; else both ways are the same */
    if (++c->depth > 8) refuse(c, "groups so deep");
    if (!c->why) alternatives(c);
    c->depth--;
    if (!eat(c, ")")) refuse(c, "a group without an end");
    c->any_case = any_case;
    const bool optional = eat(c, "?");
    if (peek(c, '?') || peek(c, '*') || peek(c, '+') || peek(c, '{')) refuse(c, "a repeated group");
    c->p->code[split].op = optional ? WG_PATTERN_SPLIT : WG_PATTERN_JUMP;
    c->p->code[split].other = (uint16_t)c->p->n;
    *ways *= optional ? 4 : 2;
}

static void sequence(compiler *c)
{
    int ways = 1;
    while (!c->why && c->at < c->n && !peek(c, '|') && !peek(c, ')')) {
        uint32_t categories = 0, cp = 0;
        if (eat(c, "(?!\\S)")) behind_space(c, WG_PATTERN_LOOK);
        else if (eat(c, "$")) behind_space(c, WG_PATTERN_LINE_END);
        else if (eat(c, "(")) group(c, &ways);
        else if (peek(c, '^') || peek(c, '.') || peek(c, '*') || peek(c, '+') || peek(c, '?') || peek(c, '{'))
            refuse(c, "this character without \\");
        else {
            wg_charset *set = new_set(c);
            if (eat(c, "[")) bracket(c, set);
            else {
                if (member(c, &categories, &cp)) add_category(set, categories);
                else if (!c->why) add_char(c, set, cp, cp);
                finish_set(c->p, set, false);
            }
            one(c, set, &ways);
        }
        if (ways > WAYS) refuse(c, "so many choices");
    }
}

static void alternatives(compiler *c)
{
    int jump[WG_PATTERN_CODE], jumps = 0;
    for (;;) {
        const int split = c->p->n;
        emit(c, WG_PATTERN_SPLIT);
        sequence(c);
        if (c->why) return;
        if (!eat(c, "|")) {
            c->p->code[split].op = WG_PATTERN_JUMP; /* the last one */
            c->p->code[split].to = (uint16_t)(split + 1);
            break;
        }
        jump[jumps++] = c->p->n;
        emit(c, WG_PATTERN_JUMP);
        c->p->code[split].to = (uint16_t)(split + 1);
        c->p->code[split].other = (uint16_t)c->p->n;
    }
    for (int i = 0; i < jumps; i++) c->p->code[jump[i]].to = (uint16_t)c->p->n;
}

/* ---- which characters can begin a branch */

/* Adds those below 128 to `first`; true when the branch can be passed without any. */
static void begins(const wg_pattern *p, int pc, uint64_t first[2])
{
    for (;; pc++) {
        const wg_pattern_code *c = &p->code[pc];
        switch ((wg_pattern_op)c->op) {
        case WG_PATTERN_SET:
        case WG_PATTERN_LOOP:
            for (int i = 0; i < 2; i++) first[i] |= p->set[c->set].ascii[i];
            if (c->op == WG_PATTERN_SET || c->min > 0) return;
            break;
        case WG_PATTERN_SPLIT:
            begins(p, c->to, first);
            pc = c->other - 1;
            break;
        case WG_PATTERN_JUMP: pc = c->to - 1; break;
        default: first[0] = first[1] = ~0ull; return;
        }
    }
}

const char *wg_pattern_compile(wg_pattern *p, const char *regex, size_t n, size_t *at)
{
    compiler c = { .p = p, .s = regex, .n = n };
    p->n = p->sets = p->ranges = p->loops = 0;
    alternatives(&c);
    if (c.at < n) refuse(&c, "a ) without (");
    emit(&c, WG_PATTERN_MATCH);
    *at = c.at;
    if (c.why) return c.why;
    for (int i = p->n - 1; i >= 0; i--)
        if (p->code[i].op == WG_PATTERN_SPLIT) begins(p, p->code[i].to, p->code[i].first);
    return NULL;
}

wg_status wg_pattern_refuse(const char *path, const char *key, wg_text regex, const char *why, size_t at, wg_error *err)
{
    char quoted[400];
    return wg_fail(err, WG_EUNSUPPORTED, "%s: %s: the expression %s has at byte %zu %s, which is not implemented", path, key,
                   wg_vocab_quote(regex, quoted, sizeof quoted), at, why);
}

const char *wg_pattern_literal(wg_pattern *p, const char *s, size_t n)
{
    compiler c = { .p = p, .s = s, .n = n };
    p->n = p->sets = p->ranges = p->loops = 0;
    for (uint32_t cp; c.at < n && !c.why;) {
        c.at += wg_utf8_decode(s + c.at, n - c.at, &cp);
        wg_charset *set = new_set(&c);
        if (cp == WG_UTF8_BAD) refuse(&c, "a text that is not UTF-8");
        add_range(&c, set, cp, cp);
        emit(&c, WG_PATTERN_SET)->set = index_of(&c, set);
    }
    emit(&c, WG_PATTERN_MATCH);
    return n == 0 ? "an empty text" : c.why;
}

/* ---- sets of Rust's standard library, which knows Unicode 17, and of its crate unicode_categories, which knows Unicode 8 */

static void of_one_set(wg_pattern *p, bool each)
{
    p->code[0] = (wg_pattern_code){ .op = each ? WG_PATTERN_SET : WG_PATTERN_LOOP, .min = 1 };
    p->code[1] = (wg_pattern_code){ .op = WG_PATTERN_MATCH };
    p->n = 2;
    p->loops = !each;
}

void wg_pattern_digits(wg_pattern *p, bool each)
{
    compiler c = { .p = p };
    p->n = p->sets = p->ranges = p->loops = 0;
    wg_charset *set = new_set(&c);
    add_category(set, NUMBERS);
    add_range(&c, set, 0x11de0, 0x11de9);
    add_range(&c, set, 0x16ff4, 0x16ff6);
    of_one_set(p, each);
}

void wg_pattern_punctuation(wg_pattern *p)
{
    static const uint32_t later[][2] = { { 0x61d, 0x61d },     { 0x9fd, 0xa76 },     { 0xc77, 0xc84 },     { 0x1b4e, 0x1b4f },
                                         { 0x1b7d, 0x1b7f },   { 0x2e43, 0x2e5d },   { 0x10d6e, 0x10f89 }, { 0x113d4, 0x1145d },
                                         { 0x11660, 0x116b9 }, { 0x1183b, 0x11fff }, { 0x12ff1, 0x12ff2 }, { 0x16d6d, 0x16fe2 },
                                         { 0x1e5ff, 0x1e95f } };
    static const char ascii[] = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
    compiler c = { .p = p };
    p->n = p->sets = p->ranges = p->loops = 0;
    wg_charset *set = new_set(&c);
    add_category(set, BIT(PC) | BIT(P));
    for (size_t i = 0; ascii[i]; i++) add_range(&c, set, (unsigned char)ascii[i], (unsigned char)ascii[i]);
    add_range(&c, set, 0x111c9, 0x111c9);
    add_range(&c, set, 0x166d, 0x166d);
    set->exception = (uint16_t)p->ranges;
    set->without = sizeof later / sizeof *later;
    memcpy(p->range + p->ranges, later, sizeof later);
    p->ranges += set->without;
    of_one_set(p, true);
}
