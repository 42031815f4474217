/* SPDX-License-Identifier: MIT
 * A splitter has one level for each step. A level takes a piece of the level above, searches matches in it, and hands out
 * matches and gaps by the step's behaviour. Nothing is stored but the next match of each level. */
#include "core/text/pretok.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/text/unicode.h"
#include "core/text/vocab.h"

/* ---- opening */

static bool behavior_of(wg_text t, wg_behavior *out)
{
    static const char *const names[] = { "isolated", "removed", "contiguous", "merged_with_previous", "merged_with_next" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (wg_text_is(t, names[i])) {
            *out = (wg_behavior)i;
            return true;
        }
    return false;
}

void wg_byte_chars(uint16_t chars[256])
{
    int other = 0;
    for (int c = 0; c < 256; c++) {
        const bool printable = (c >= 33 && c <= 126) || (c >= 161 && c <= 172) || c >= 174;
        chars[c] = (uint16_t)(printable ? c : 0x100 + other++);
    }
}

typedef struct reader {
    wg_pretok *p;
    const char *path, *key;
    const wg_text *word;
    size_t n, at;
    bool on_bytes;
    wg_error *err;
} reader;

static wg_status bad_list(const reader *r)
{
    char quoted[80];
    const wg_text word = r->at < r->n ? r->word[r->at] : (wg_text){ "", 0 };
    return wg_fail(
        r->err, WG_EMODEL,
        "%s: %s[%zu] is %s: expected a step (split, split_not, text, digits, punctuation, prefix_space, bytes) with its "
        "words; convert the model again",
        r->path, r->key, r->at, wg_vocab_quote(word, quoted, sizeof quoted));
}

/* One step that searches; `left`: words behind its name. */
static wg_status read_search(reader *r, wg_text name, wg_pretok_step *step)
{
    const wg_text *word = r->word + r->at + 1;
    const size_t left = r->n - r->at - 1;
    const char *why = NULL;
    size_t at = 0;
    *step = (wg_pretok_step){ .on_bytes = r->on_bytes, .inverted = wg_text_is(name, "split_not") };
    if (wg_text_is(name, "digits") && left >= 1 && (wg_text_is(word[0], "each") || wg_text_is(word[0], "runs"))) {
        wg_pattern_digits(&step->pattern, wg_text_is(word[0], "each"));
        r->at += 2;
        return WG_OK;
    }
    if (wg_text_is(name, "digits") || left < 1 || !behavior_of(word[0], &step->behavior)) return bad_list(r);
    if (wg_text_is(name, "punctuation")) {
        wg_pattern_punctuation(&step->pattern);
        r->at += 2;
        return WG_OK;
    }
    if (left < 2) return bad_list(r);
    if (wg_text_is(name, "text")) why = wg_pattern_literal(&step->pattern, word[1].s, word[1].n);
    else if (step->inverted || wg_text_is(name, "split")) why = wg_pattern_compile(&step->pattern, word[1].s, word[1].n, &at);
    else return bad_list(r);
    if (why) return wg_pattern_refuse(r->path, r->key, word[1], why, at, r->err);
    r->at += 3;
    return WG_OK;
}

static wg_status read_steps(reader *r)
{
    while (r->at < r->n) {
        const wg_text name = r->word[r->at];
        if (wg_text_is(name, "bytes") || wg_text_is(name, "prefix_space")) {
            if (wg_text_is(name, "bytes")) r->on_bytes = true;
            else if (r->p->steps == 0) r->p->prefix_space = true;
            else
                return wg_fail(r->err, WG_EUNSUPPORTED,
                               "%s: %s: a space in front of every piece of another step is not implemented", r->path, r->key);
            r->at++;
            continue;
        }
        if (r->p->steps == WG_PRETOK_STEPS)
            return wg_fail(r->err, WG_EUNSUPPORTED, "%s: %s has more than %d steps that cut, which is not implemented", r->path,
                           r->key, WG_PRETOK_STEPS);
        WG_TRY(read_search(r, name, &r->p->step[r->p->steps]));
        r->p->steps++;
    }
    return WG_OK;
}

wg_status wg_pretok_open(wg_pretok **out, const char *path, const char *key, const wg_text *word, size_t n, wg_error *err)
{
    const size_t most = n / 2 + 1 < WG_PRETOK_STEPS ? n / 2 + 1 : WG_PRETOK_STEPS,
                 bytes = sizeof(wg_pretok) + most * sizeof(wg_pretok_step);
    wg_pretok *p = wg_calloc(1, bytes);
    reader r = { .p = p, .path = path, .key = key, .word = word, .n = n, .err = err };
    if (!p) return wg_nomem(err, bytes, "a pre-tokeniser");
    wg_byte_chars(p->chars);
    const wg_status s = read_steps(&r);
    if (s) wg_free(p);
    else *out = p;
    return s;
}

wg_status wg_pretok_open_row(wg_pretok **out, const wg_pretok_row *row, wg_error *err)
{
    wg_text word[WG_PRETOK_WORDS];
    size_t n = 0;
    for (; row->words[n]; n++) word[n] = (wg_text){ row->words[n], strlen(row->words[n]) };
    WG_TRY(wg_pretok_open(out, row->names, "its row", word, n, err));
    (*out)->whole_words = row->whole_words;
    (*out)->add_bos = row->add_bos;
    return WG_OK;
}

/* ---- splitting */

static void enter(wg_split_level *l, const char *s, size_t at, size_t end)
{
    l->at = at;
    l->end = end;
    l->next = (wg_piece){ at, at, false };
    l->found = l->found_end = 0;
    wg_matcher_text(&l->m, s, end);
}

void wg_splitter_begin(wg_splitter *x, const wg_pretok *p, const char *s, size_t n)
{
    x->p = p;
    x->s = s;
    x->n = n;
    for (int k = 0; k < p->steps; k++) {
        wg_split_level *l = &x->level[k];
        l->m = (wg_matcher){ .p = &p->step[k].pattern, .chars = p->step[k].on_bytes ? p->chars : NULL };
        l->sure = n;
        enter(l, s, 0, k == 0 ? n : 0);
    }
}

/* The next match or gap; at == end: there is none. */
static wg_piece take(wg_splitter *x, int k)
{
    wg_split_level *l = &x->level[k];
    if (l->at == l->end) return (wg_piece){ l->at, l->at, false };
    if (l->found_end <= l->at) { /* used up */
        const size_t known = k == 0 ? x->n : x->level[k - 1].sure;
        l->found = l->found_end = l->end;
        for (size_t at = l->at, end; at < l->end; at += wg_matcher_step(&l->m, at)) {
            end = wg_matcher_at(&l->m, at);
            if (l->m.reach > known && at < l->sure) l->sure = at;
            if (end == at) continue;
            l->found = at;
            l->found_end = end;
            break;
        }
    }
    const bool match = l->at == l->found;
    const wg_piece out = { l->at, match ? l->found_end : l->found, match != x->p->step[k].inverted };
    l->at = out.end;
    return out;
}

/* The next piece of level k within the piece of the level above. */
static wg_piece piece(wg_splitter *x, int k)
{
    wg_split_level *l = &x->level[k];
    const wg_behavior behavior = x->p->step[k].behavior;
    wg_piece t = l->next;
    if (t.at == t.end) t = take(x, k);
    l->next.at = l->next.end;
    if (behavior == WG_ISOLATED) return t;
    while (behavior == WG_REMOVED && t.match && t.at < t.end) t = take(x, k);
    if (behavior == WG_REMOVED || t.at == t.end) return t;
    for (wg_piece n = take(x, k); n.at < n.end; t.end = n.end, n = take(x, k)) {
        const bool joins = behavior == WG_CONTIGUOUS             ? n.match == t.match
                           : behavior == WG_MERGED_WITH_PREVIOUS ? n.match && !t.match
                                                                 : t.match && !n.match;
        if (!joins) {
            l->next = n;
            break;
        }
        if (behavior != WG_CONTIGUOUS) t.match = !t.match; /* one is joined */
        if (behavior == WG_MERGED_WITH_NEXT) {
            t.end = n.end;
            break;
        }
    }
    return t;
}

bool wg_splitter_next(wg_splitter *x, wg_piece *out)
{
    const int last = x->p->steps - 1;
    if (last < 0) {
        *out = (wg_piece){ 0, x->n, false };
        x->n = 0;
        return out->end > 0;
    }
    for (int k = last; k >= 0;) {
        *out = piece(x, k);
        if (out->at == out->end) {
            k--; /* this level needs another piece of the one above */
        } else if (k == last) return true;
        else {
            k++;
            enter(&x->level[k], x->s, out->at, out->end);
        }
    }
    return false;
}

uint64_t wg_splitter_steps(const wg_splitter *x)
{
    uint64_t n = 0;
    for (int k = 0; k < x->p->steps; k++) n += x->level[k].m.steps;
    return n;
}

/* ---- cutting */

/* Whether the last character of n > 0 bytes is white space. */
static bool ends_in_space(const char *s, size_t n)
{
    size_t at = n - 1;
    uint32_t cp;
    while (at > 0 && n - at < WG_UTF8_MAX && ((unsigned char)s[at] & 0xc0) == 0x80) at--;
    wg_utf8_decode(s + at, n - at, &cp);
    return wg_unicode_category(cp) == WG_CATEGORY_SPACE;
}

/* A search that begins in a gap finds what one that began before it finds, since no expression looks back; one that begins in a
 * match may not. There is no cut after white space, whose words depend on the following text. */
static bool may_cut(const wg_splitter *x, size_t at)
{
    const int last = x->p->steps - 1;
    if (at == 0 || ((unsigned char)x->s[at] & 0xc0) == 0x80 || ends_in_space(x->s, at)) return false;
    for (int k = 0; k < last; k++)
        if (x->level[k].found < at && at < x->level[k].found_end) return false;
    return at < x->level[last].sure;
}

size_t wg_pretok_cut(const wg_pretok *p, const char *s, size_t n)
{
    wg_splitter x;
    wg_piece out;
    size_t cut = 0;
    if (p->steps == 0) return 0;
    wg_splitter_begin(&x, p, s, n);
    while (wg_splitter_next(&x, &out) && out.at < x.level[p->steps - 1].sure)
        if (may_cut(&x, out.at)) cut = out.at;
    return cut;
}
