/* SPDX-License-Identifier: MIT
 * The tokens that begin at a position are found by narrowing the sorted list byte by byte. A node of the search is a wg_pair of
 * the merger's heap: `key` holds the bits of the sum, `n` where the last token begins, `id` this token. */
#include "core/text/unigram.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/metadata.h"
#include "core/text/unicode.h"

static const double penalty = 10;
enum { OPEN = -2 }; /* id of a node that no token has reached */

static bool counts(const wg_unigram *u, const wg_vocab *v, int32_t id)
{
    if (v->text[id].n == 0 || v->type[id] == WG_TOKEN_UNUSED || isnan(u->score[id])) return false;
    return u->is_double || wg_vocab_plain(v, id);
}

wg_status wg_unigram_count(wg_unigram *u, const wg_vocab *v, const wg_weights *w, wg_error *err)
{
    int64_t n;
    *u = (wg_unigram){ .is_double = wg_key_present(w, WG_UNIGRAM_KEY) };
    if (v->unknown < 0)
        return wg_fail(err, WG_EMODEL, "%s: %s is missing, which every Unigram model needs; convert the model again",
                       wg_weights_path(w), WG_KEY("unknown_token_id"));
    if (!u->is_double) return WG_OK;
    WG_TRY(wg_key_array(w, WG_UNIGRAM_KEY, WG_META_FLOAT, &n, err));
    if (n == v->n) return WG_OK;
    return wg_fail(err, WG_EMODEL, "%s: %s has %" PRId64 " entries, expected %d, one for each token; convert the model again",
                   wg_weights_path(w), WG_UNIGRAM_KEY, n, v->n);
}

void wg_unigram_carve(wg_unigram *u, const wg_vocab *v, char *base, size_t *used)
{
    u->sorted = wg_carve(base, used, (size_t)v->n, sizeof *u->sorted);
    u->score = wg_carve(base, used, (size_t)v->n, sizeof *u->score);
}

static int by_text(const void *pa, const void *pb, void *user)
{
    const wg_vocab *v = user;
    const int32_t a = *(const int32_t *)pa, b = *(const int32_t *)pb;
    const int order = wg_text_order(v->text[a], v->text[b]);
    return order ? order : a < b ? -1 : 1;
}

wg_status wg_unigram_fill(wg_unigram *u, const wg_vocab *v, const wg_weights *w, wg_error *err)
{
    double least = INFINITY;
    for (int32_t i = 0; i < v->n; i++) {
        u->score[i] = u->is_double ? NAN : v->score[i];
        if (u->is_double && (!wg_meta_array_float(w, WG_UNIGRAM_KEY, i, &u->score[i]) || isinf(u->score[i])))
            return wg_fail(err, WG_EMODEL, "%s: %s[%d] is not a finite number; convert the model again", wg_weights_path(w),
                           WG_UNIGRAM_KEY, i);
        const bool has_score = u->is_double ? !isnan(u->score[i]) : v->type[i] == WG_TOKEN_NORMAL;
        if (has_score && u->score[i] < least) least = u->score[i];
        if (counts(u, v, i)) u->sorted[u->tokens++] = i;
    }
    u->unknown = (isinf(least) ? 0 : least) - penalty;
    if (!u->is_double) u->unknown = (float)u->unknown;
    if (u->tokens > 1) qsort_r(u->sorted, (size_t)u->tokens, sizeof *u->sorted, by_text, (void *)(uintptr_t)v);
    return WG_OK;
}

typedef union number {
    double d;
    uint64_t bits;
} number;

/* A token of s[0..n) that the rest of the list sorted[*lo .. *hi) agrees with up to `depth` bytes; -1: none ends here. */
static int32_t ends_here(const wg_unigram *u, const wg_vocab *v, int *lo, int hi, size_t depth)
{
    int32_t id = -1;
    while (*lo < hi && v->text[u->sorted[*lo]].n == depth) {
        if (id < 0) id = u->sorted[*lo]; /* of several with the same text, the lowest */
        ++*lo;
    }
    return id;
}

static int first_from(const wg_unigram *u, const wg_vocab *v, int lo, int hi, size_t depth, int c)
{
    while (lo < hi) {
        const int mid = lo + (hi - lo) / 2;
        if ((unsigned char)v->text[u->sorted[mid]].s[depth] < c) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

static void offer(const wg_unigram *u, wg_pair *node, size_t from, double sum, int32_t id)
{
    const number old = { .bits = node->key }, new = { .d = u->is_double ? sum : (float)sum };
    if (node->id != OPEN && !(new.d > old.d)) return;
    *node = (wg_pair){ .key = new.bits, .n = (uint32_t)from, .id = id };
}

static void extend(const wg_unigram *u, const wg_vocab *v, wg_pair *node, const char *s, size_t at, size_t n)
{
    int lo = 0, hi = u->tokens;
    uint32_t cp;
    bool single = false;
    const size_t one = wg_utf8_decode(s + at, n - at, &cp);
    const number here = { .bits = node[at].key };
    for (size_t depth = 0;; depth++) {
        const int32_t id = depth > 0 ? ends_here(u, v, &lo, hi, depth) : -1;
        if (id >= 0) offer(u, &node[at + depth], at, here.d + u->score[id], id);
        single = single || (id >= 0 && depth == one);
        if (lo == hi || at + depth == n) break;
        const int c = (unsigned char)s[at + depth];
        lo = first_from(u, v, lo, hi, depth, c);
        hi = first_from(u, v, lo, hi, depth, c + 1);
    }
    if (!single) offer(u, &node[at + one], at, here.d + u->unknown, v->unknown);
}

/* The ids of an unknown stretch: its bytes, when all of them are tokens; else the unknown token. */
static wg_status push_unknown(const wg_vocab *v, const char *s, size_t n, wg_ids *out, wg_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (v->byte[(unsigned char)s[i]] < 0) return wg_ids_push(out, v->unknown, err);
    for (size_t i = 0; i < n; i++) WG_TRY(wg_ids_push(out, v->byte[(unsigned char)s[i]], err));
    return WG_OK;
}

wg_status wg_unigram_encode(const wg_unigram *u, const wg_vocab *v, wg_merger *m, size_t n, wg_ids *out, wg_error *err)
{
    uint32_t cp;
    WG_TRY(wg_merger_begin(m, n + 1, err));
    wg_pair *node = m->heap;
    for (size_t i = 0; i <= n; i++) node[i] = (wg_pair)
        {
            .id = OPEN
        };
    for (size_t at = 0; at < n; at += wg_utf8_decode(m->text + at, n - at, &cp))
        if (at == 0 || node[at].id != OPEN) extend(u, v, node, m->text, at, n);

    wg_pair *last = node + m->pair_capacity; /* the path, from its end, in the second half of the heap */
    for (size_t at = n; at > 0; at = node[at].n) *--last = (wg_pair){ .key = at, .n = node[at].n, .id = node[at].id };
    for (const wg_pair *end = node + m->pair_capacity; last < end;) {
        const size_t from = last->n;
        size_t to = (size_t)last->key;
        const int32_t id = last->id;
        for (last++; id == v->unknown && last < end && last->id == v->unknown; last++) to = (size_t)last->key;
        if (id == v->unknown) WG_TRY(push_unknown(v, m->text + from, to - from, out, err));
        else WG_TRY(wg_ids_push(out, id, err));
    }
    return WG_OK;
}
