/* SPDX-License-Identifier: MIT
 * Matching (pattern.h): backtracking over at most one frame for each instruction, with the memory of failed ends. */
#include "core/text/pattern.h"

#include "core/text/unicode.h"

static bool among(const wg_pattern *p, int first, size_t n, uint32_t cp)
{
    return wg_range_find(p->range + first, n, sizeof *p->range, cp) != NULL;
}

static bool has(const wg_pattern *p, const wg_charset *c, uint32_t cp)
{
    if (cp < 128) return c->ascii[cp >> 6] >> (cp & 63) & 1;
    const bool by_category =
        c->categories >> wg_unicode_category(cp) & 1 && !(c->without && among(p, c->exception, c->without, cp));
    return (by_category || (c->ranges && among(p, c->range, c->ranges, cp))) != c->negated;
}

void wg_matcher_text(wg_matcher *m, const char *s, size_t end)
{
    m->s = s;
    m->end = end;
    for (int i = 0; i < m->p->loops; i++) m->run[i].lo = 1, m->run[i].hi = 0;
}

static size_t decode(const wg_matcher *m, size_t at, uint32_t *cp)
{
    if (!m->chars) return wg_utf8_decode(m->s + at, m->end - at, cp);
    *cp = m->chars[(unsigned char)m->s[at]];
    return 1;
}

size_t wg_matcher_step(const wg_matcher *m, size_t at)
{
    uint32_t cp;
    return decode(m, at, &cp);
}

/* The character before `at` > 0 begins here. Valid sequences of UTF-8 are found from behind as from the front. */
static size_t before(const wg_matcher *m, size_t at)
{
    uint32_t cp;
    if (m->chars || (unsigned char)m->s[at - 1] < 0x80) return at - 1;
    for (size_t k = 2; k <= WG_UTF8_MAX && k <= at; k++)
        if (wg_utf8_decode(m->s + at - k, k, &cp) == k) return at - k;
    return at - 1;
}

/* The length of the character at `at`, if the set has it; else 0. */
static size_t take(wg_matcher *m, const wg_charset *c, size_t at)
{
    uint32_t cp;
    m->steps++;
    if (at >= m->end) {
        m->reach = m->end + 1;
        return 0;
    }
    const size_t n = decode(m, at, &cp);
    if (at + n > m->reach) m->reach = at + n;
    return has(m->p, c, cp) ? n : 0;
}

static size_t match(wg_matcher *m, int pc, size_t at);
enum { NONE = -1 };
#define FAILED ((size_t)NONE)

static size_t bounded(wg_matcher *m, int pc, size_t at)
{
    const wg_pattern_code *c = &m->p->code[pc];
    const wg_charset *set = &m->p->set[c->set];
    size_t end = at;
    int n = 0;
    for (size_t k; n < c->max && (k = take(m, set, end)) > 0; n++) end += k;
    for (; n >= c->min; n--) {
        const size_t found = match(m, pc + 1, end);
        if (found != FAILED || c->possessive) return found;
        if (n > 0) end = before(m, end);
    }
    return FAILED;
}

static size_t unbounded(wg_matcher *m, int pc, size_t at)
{
    const wg_pattern_code *c = &m->p->code[pc];
    const wg_charset *set = &m->p->set[c->set];
    size_t least = at, hi = at, lo = m->run[c->loop].lo;
    const bool known = lo <= m->run[c->loop].hi;
    if (known && at >= lo && at <= m->run[c->loop].hi) hi = m->run[c->loop].hi;
    else {
        for (size_t k; !(known && hi == lo) && (k = take(m, set, hi)) > 0;) hi += k;
        const bool joins = known && hi == lo;
        if (joins) hi = m->run[c->loop].hi;
        else m->run[c->loop].failed = hi + 1;
        m->run[c->loop].hi = hi;
        m->run[c->loop].lo = at;
    }
    for (int i = 0; i < c->min; i++) {
        if (least >= hi) return FAILED;
        least += wg_matcher_step(m, least);
    }
    if (c->possessive) return match(m, pc + 1, hi);
    const size_t failed = m->run[c->loop].failed;
    for (size_t x = failed > hi      ? hi
                    : failed > least ? before(m, failed)
                                     : FAILED;
         x != FAILED && x >= least; x = x > least ? before(m, x) : FAILED) {
        const size_t found = match(m, pc + 1, x);
        if (found != FAILED) return found;
        m->run[c->loop].failed = x;
    }
    return FAILED;
}

static bool may_begin(const wg_matcher *m, const wg_pattern_code *c, size_t at)
{
    if (at >= m->end) return true;
    const unsigned char b = (unsigned char)m->s[at];
    const uint32_t cp = m->chars ? m->chars[b] : b;
    return cp >= 128 || c->first[cp >> 6] >> (cp & 63) & 1;
}

static size_t match(wg_matcher *m, int pc, size_t at)
{
    for (;; pc++) {
        const wg_pattern_code *c = &m->p->code[pc];
        size_t n;
        switch ((wg_pattern_op)c->op) {
        case WG_PATTERN_MATCH: return at;
        case WG_PATTERN_SET:
            n = take(m, &m->p->set[c->set], at);
            if (n == 0) return FAILED;
            at += n;
            break;
        case WG_PATTERN_LOOP: return c->max ? bounded(m, pc, at) : unbounded(m, pc, at);
        case WG_PATTERN_LOOK: /* no character of the set follows */
            if (take(m, &m->p->set[c->set], at) > 0) return FAILED;
            break;
        case WG_PATTERN_LINE_END:
            if (at + 1 > m->reach) m->reach = at + 1;
            if (at < m->end && m->s[at] != '\n') return FAILED;
            break;
        case WG_PATTERN_SPLIT:
            if (may_begin(m, c, at)) {
                n = match(m, c->to, at);
                if (n != FAILED) return n;
            } else if (at + 1 > m->reach) m->reach = at + 1;
            pc = c->other - 1;
            break;
        case WG_PATTERN_JUMP: pc = c->to - 1; break;
        }
    }
}

bool wg_pattern_matches_nothing(const wg_pattern *p)
{
    wg_matcher m = { .p = p };
    wg_matcher_text(&m, "", 0);
    return match(&m, 0, 0) != FAILED;
}

size_t wg_matcher_at(wg_matcher *m, size_t at)
{
    const size_t end = match(m, 0, at);
    return end == FAILED ? at : end;
}
