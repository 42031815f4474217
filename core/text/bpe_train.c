/* SPDX-License-Identifier: MIT
 * Training of byte-level BPE, second part: the merges (Sennrich et al. 2016, "Neural Machine Translation of Rare Words with
 * Subword Units"). A pair lies in the heap with the words in which it was found when it came up; a count that has changed since
 * is corrected when the pair is popped. */
#include "core/text/bpe_train.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/text/bpe.h"
#include "core/text/unicode.h"

typedef struct pair {
    int32_t left, right;
    int64_t count;
    uint32_t fresh;       /* words found in this round */
    uint32_t round, word; /* the last of them, and when */
    size_t next;          /* where its next place goes */
} pair;

typedef struct waiting {
    int64_t count;
    uint32_t pair;
    size_t at, n; /* words: place[at .. at + n) */
} waiting;

typedef struct found {
    uint32_t pair, word;
} found;

typedef struct work {
    wg_bpe_trainer *t;
    int32_t *symbol;  /* of all words; a word keeps its place and becomes shorter */
    uint32_t *length; /* (words) */
    pair *pair;
    uint32_t *slot; /* (slots) of pairs, number + 1 */
    waiting *heap;
    uint32_t *place;   /* words of the pairs in the heap */
    found *fresh;      /* what this round has found */
    uint32_t *touched; /* pairs of `fresh`, each once */
    size_t pairs, pair_room, slots, waits, heap_room, places, place_room, n_fresh, fresh_room, n_touched, touched_room;
    size_t merge_room, token_room;
    uint32_t round;
    wg_error *err;
} work;

/* ---- pairs */

static size_t slot_of(const work *w, int32_t left, int32_t right)
{
    const uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15ull;
    size_t i = h >> 32;
    for (;; i++) {
        const uint32_t k = w->slot[i & (w->slots - 1)];
        if (k == 0 || (w->pair[k - 1].left == left && w->pair[k - 1].right == right)) return i & (w->slots - 1);
    }
}

static wg_status more_slots(work *w)
{
    const size_t slots = w->slots > 0 ? 2 * w->slots : 4096;
    uint32_t *slot = wg_calloc(slots, sizeof *slot);
    if (!slot) return wg_nomem(w->err, slots * sizeof *slot, "pairs of tokens");
    wg_free(w->slot);
    w->slot = slot;
    w->slots = slots;
    for (size_t i = 0; i < w->pairs; i++) w->slot[slot_of(w, w->pair[i].left, w->pair[i].right)] = (uint32_t)i + 1;
    return WG_OK;
}

/* `by` more of a pair in a word; where there are more, the word is noted. */
static wg_status change(work *w, int32_t left, int32_t right, int by, uint32_t word)
{
    if (2 * (w->pairs + 1) > w->slots) WG_TRY(more_slots(w));
    const size_t at = slot_of(w, left, right);
    if (w->slot[at] == 0) {
        WG_TRY(wg_grow((void **)&w->pair, &w->pair_room, w->pairs + 1, sizeof *w->pair, "pairs of tokens", w->err));
        w->pair[w->pairs] = (pair){ .left = left, .right = right };
        w->slot[at] = (uint32_t)++w->pairs;
    }
    const uint32_t number = w->slot[at] - 1;
    pair *p = &w->pair[number];
    p->count += by * w->t->words.v[word].count;
    if (by < 0 || (p->fresh > 0 && p->round == w->round && p->word == word)) return WG_OK;
    if (p->fresh == 0) {
        WG_TRY(
            wg_grow((void **)&w->touched, &w->touched_room, w->n_touched + 1, sizeof *w->touched, "pairs of tokens", w->err));
        w->touched[w->n_touched++] = number;
    }
    WG_TRY(wg_grow((void **)&w->fresh, &w->fresh_room, w->n_fresh + 1, sizeof *w->fresh, "places of pairs", w->err));
    w->fresh[w->n_fresh++] = (found){ number, word };
    p->fresh++;
    p->round = w->round;
    p->word = word;
    return WG_OK;
}

/* ---- the heap: the most frequent pair, then the lowest ids */

static bool before(const work *w, const waiting *a, const waiting *b)
{
    const pair *p = &w->pair[a->pair], *q = &w->pair[b->pair];
    if (a->count != b->count) return a->count > b->count;
    return p->left != q->left ? p->left < q->left : p->right < q->right;
}

static void sink(work *w, size_t i, waiting x)
{
    for (size_t child; (child = 2 * i + 1) < w->waits; i = child) {
        if (child + 1 < w->waits && before(w, &w->heap[child + 1], &w->heap[child])) child++;
        if (!before(w, &w->heap[child], &x)) break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = x;
}

static wg_status push(work *w, waiting x)
{
    WG_TRY(wg_grow((void **)&w->heap, &w->heap_room, w->waits + 1, sizeof *w->heap, "pairs of tokens", w->err));
    size_t i = w->waits++;
    for (; i > 0 && before(w, &x, &w->heap[(i - 1) / 2]); i = (i - 1) / 2) w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = x;
    return WG_OK;
}

/* What was found in this round goes to the heap, pair by pair. */
static wg_status end_round(work *w)
{
    WG_TRY(wg_grow((void **)&w->place, &w->place_room, w->places + w->n_fresh, sizeof *w->place, "places of pairs", w->err));
    for (size_t i = 0; i < w->n_touched; i++) {
        pair *p = &w->pair[w->touched[i]];
        if (p->count > 0) WG_TRY(push(w, (waiting){ p->count, w->touched[i], w->places, p->fresh }));
        p->next = w->places;
        w->places += p->fresh;
        p->fresh = 0;
    }
    for (size_t i = 0; i < w->n_fresh; i++) w->place[w->pair[w->fresh[i].pair].next++] = w->fresh[i].word;
    w->n_fresh = w->n_touched = 0;
    w->round++;
    return WG_OK;
}

/* ---- merging */

/* Joins the pair everywhere in a word, from the left. */
static wg_status merge_word(work *w, uint32_t word, int32_t left, int32_t right, int32_t id)
{
    int32_t *s = w->symbol + w->t->words.v[word].at;
    const uint32_t n = w->length[word];
    uint32_t to = 0;
    for (uint32_t i = 0; i < n; to++) {
        if (s[i] != left || i + 1 == n || s[i + 1] != right) {
            s[to] = s[i++];
            continue;
        }
        if (to > 0) {
            WG_TRY(change(w, s[to - 1], left, -1, word));
            WG_TRY(change(w, s[to - 1], id, 1, word));
        }
        if (i + 2 < n) {
            WG_TRY(change(w, right, s[i + 2], -1, word));
            WG_TRY(change(w, id, s[i + 2], 1, word));
        }
        s[to] = id;
        i += 2;
    }
    w->length[word] = to;
    return WG_OK;
}

/* The token of the texts of two, which may be a special one. `text` has room for it. */
static wg_status join(work *w, int32_t left, int32_t right, int32_t *id, char *text)
{
    wg_bpe_trainer *t = w->t;
    const wg_text a = wg_byte_string_at(&t->token, (size_t)left), b = wg_byte_string_at(&t->token, (size_t)right);
    uint32_t number;
    memcpy(text, a.s, a.n);
    memcpy(text + a.n, b.s, b.n);
    WG_TRY(wg_byte_strings_add(&t->token, text, a.n + b.n, 0, &number, w->err));
    *id = (int32_t)number;
    return WG_OK;
}

static wg_status merge_pair(work *w, const waiting *top, char *text)
{
    wg_bpe_trainer *t = w->t;
    const int32_t left = w->pair[top->pair].left, right = w->pair[top->pair].right;
    int32_t id;
    WG_TRY(join(w, left, right, &id, text));
    WG_TRY(wg_grow((void **)&t->merge, &w->merge_room, t->merges + 1, sizeof *t->merge, "merges", w->err));
    t->merge[t->merges++] = (wg_bpe_merge){ .left = left, .right = right, .id = id };
    for (size_t i = 0; i < top->n; i++) WG_TRY(merge_word(w, w->place[top->at + i], left, right, id));
    return end_round(w);
}

static wg_status merge_pairs(work *w, size_t vocab, int64_t least, char *text)
{
    while (w->t->token.n < vocab && w->waits > 0) {
        waiting top = w->heap[0];
        if (top.count != w->pair[top.pair].count) {
            top.count = w->pair[top.pair].count;
            sink(w, 0, top);
            continue;
        }
        if (top.count < 1 || top.count < least) break;
        const waiting last = w->heap[--w->waits];
        if (w->waits > 0) sink(w, 0, last);
        WG_TRY(merge_pair(w, &top, text));
    }
    return WG_OK;
}

/* ---- beginning */

/* Special tokens, then bytes in the order of their characters: the token of each byte in id. A special token may be the text of
 * another token. */
static wg_status add_first(wg_bpe_trainer *t, const wg_text *special, size_t specials, int32_t id[256], wg_error *err)
{
    uint16_t chars[256];
    uint32_t number;
    wg_byte_chars(chars);
    for (size_t i = 0; i < specials; i++) WG_TRY(wg_byte_strings_add(&t->token, special[i].s, special[i].n, 0, &number, err));
    t->specials = t->token.n;
    for (uint32_t cp = 0; cp < WG_BPE_CHARS; cp++)
        for (int c = 0; c < 256; c++) {
            char text[WG_UTF8_MAX];
            if (chars[c] != cp) continue;
            WG_TRY(wg_byte_strings_add(&t->token, text, wg_utf8_encode(cp, text), 0, &number, err));
            id[c] = (int32_t)number;
        }
    return WG_OK;
}

/* The symbols of every word, and the first pairs. */
static wg_status begin(work *w, const int32_t id[256])
{
    const wg_byte_strings *words = &w->t->words;
    w->symbol = wg_alloc(words->n_bytes, sizeof *w->symbol);
    w->length = wg_alloc(words->n, sizeof *w->length);
    if (!w->symbol || !w->length)
        return wg_nomem(w->err, words->n_bytes * sizeof *w->symbol + words->n * sizeof *w->length, "the words of the texts");
    for (size_t i = 0; i < words->n_bytes; i++) w->symbol[i] = id[(unsigned char)words->bytes[i]];
    for (size_t k = 0; k < words->n; k++) {
        const int32_t *s = w->symbol + words->v[k].at;
        w->length[k] = words->v[k].n;
        for (uint32_t i = 0; i + 1 < w->length[k]; i++) WG_TRY(change(w, s[i], s[i + 1], 1, (uint32_t)k));
    }
    return end_round(w);
}

static wg_status run(work *w, size_t vocab, int64_t least, const int32_t id[256])
{
    size_t longest = 0;
    WG_TRY(begin(w, id));
    for (size_t k = 0; k < w->t->words.n; k++) longest = w->t->words.v[k].n > longest ? w->t->words.v[k].n : longest;
    char *text = wg_alloc(longest + 1, WG_UTF8_MAX);
    if (!text) return wg_nomem(w->err, (longest + 1) * WG_UTF8_MAX, "a token");
    const wg_status s = merge_pairs(w, vocab, least, text);
    wg_free(text);
    return s;
}

wg_status wg_bpe_trainer_run(wg_bpe_trainer *t, size_t vocab, int64_t least, const wg_text *special, size_t specials,
                             wg_error *err)
{
    int32_t id[256];
    work w = { .t = t, .err = err };
    if (t->words.n == 0) return wg_fail(err, WG_EINVAL, "the texts are empty: expected plain text to learn a vocabulary from");
    WG_TRY(add_first(t, special, specials, id, err));
    if (vocab < t->token.n)
        return wg_fail(err, WG_EINVAL,
                       "a vocabulary of %zu tokens is too small: expected at least %zu, the 256 bytes and %zu "
                       "special token%s",
                       vocab, t->token.n, t->token.n - 256, t->token.n == 257 ? "" : "s");
    const wg_status s = run(&w, vocab, least, id);
    void *const all[] = { w.symbol, w.length, w.pair, w.slot, w.heap, w.place, w.fresh, w.touched };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) wg_free(all[i]);
    return s;
}
