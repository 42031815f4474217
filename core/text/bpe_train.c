/* SPDX-License-Identifier: MIT
 * Training of byte-level BPE: the words of texts and how often each stands there, the merges (Sennrich et al. 2016, "Neural
 * Machine Translation of Rare Words with Subword Units"), and the files of a trained vocabulary. */
#include "core/text/bpe_train.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "core/base/read_file.h"
#include "core/base/save.h"
#include "core/file/hf.h"
#include "core/text/bpe.h"
#include "core/text/unicode.h"

/* ---- counting words */

enum { PART = 1 << 20, WHOLE = 1 << 30 };

wg_status wg_bpe_trainer_open(wg_bpe_trainer *t, const wg_pretok_row *row, wg_error *err)
{
    *t = (wg_bpe_trainer){ .row = row };
    return wg_pretok_open_row(&t->pretok, row, err);
}

void wg_bpe_trainer_close(wg_bpe_trainer *t)
{
    wg_byte_strings_free(&t->words);
    wg_byte_strings_free(&t->token);
    wg_free(t->merge);
    wg_free(t->pretok);
    *t = (wg_bpe_trainer){ 0 };
}

/* The words of n bytes that end where words end. */
static wg_status count_words(wg_bpe_trainer *t, const char *s, size_t n, wg_error *err)
{
    wg_splitter x;
    wg_piece word;
    uint32_t number;
    wg_splitter_begin(&x, t->pretok, s, n);
    while (wg_splitter_next(&x, &word)) {
        WG_TRY(wg_byte_strings_add(&t->words, s + word.at, word.end - word.at, 1, &number, err));
        t->read++;
    }
    t->bytes += n;
    return WG_OK;
}

static wg_status check_text(const char *name, const char *s, size_t n, uint64_t before, wg_error *err)
{
    uint32_t cp;
    for (size_t i = 0; i < n; i += wg_utf8_decode(s + i, n - i, &cp)) {
        if ((unsigned char)s[i] < 0x80) continue;
        wg_utf8_decode(s + i, n - i, &cp);
        if (cp == WG_UTF8_BAD)
            return wg_fail(err, WG_EFORMAT,
                           "%s: byte %llu (0x%02x) is not UTF-8: expected plain text in UTF-8; convert it, or "
                           "leave the file out",
                           name, (unsigned long long)(before + i), (unsigned char)s[i]);
    }
    return WG_OK;
}

wg_status wg_bpe_trainer_add(wg_bpe_trainer *t, const char *name, const char *text, size_t n, wg_error *err)
{
    const size_t mark = wg_byte_order_mark(text, n);
    WG_TRY(check_text(name, text, n, 0, err));
    return count_words(t, text + mark, n - mark, err);
}

typedef struct input {
    const char *path;
    int fd;
    char *s;
    size_t n, room, checked; /* bytes in s; of them known to be UTF-8 */
    uint64_t before;         /* bytes of the file before s */
    bool ended;
} input;

static wg_status fill(input *in, size_t want, wg_error *err)
{
    WG_TRY(wg_grow((void **)&in->s, &in->room, want, 1, "a part of a text", err));
    while (in->n < want && !in->ended) {
        const ssize_t got = read(in->fd, in->s + in->n, want - in->n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return wg_fail(err, WG_EIO, "%s: cannot read: %s", in->path, strerror(errno));
        in->n += (size_t)got;
        in->ended = got == 0;
    }
    const size_t whole = in->ended ? in->n : in->n - wg_utf8_open_tail(in->s, in->n);
    if (whole > in->checked)
        WG_TRY(check_text(in->path, in->s + in->checked, whole - in->checked, in->before + in->checked, err));
    in->checked = whole > in->checked ? whole : in->checked;
    return WG_OK;
}

static void drop(input *in, size_t n)
{
    memmove(in->s, in->s + n, in->n - n);
    in->n -= n;
    in->checked -= n;
    in->before += n;
}

/* A part is read to the last place where it can be cut; where there is none, more is read. */
static wg_status read_parts(wg_bpe_trainer *t, input *in, wg_error *err)
{
    WG_TRY(fill(in, PART, err));
    drop(in, wg_byte_order_mark(in->s, in->n));
    for (size_t part = PART;;) {
        WG_TRY(fill(in, part, err));
        const size_t cut = in->ended ? in->n : wg_pretok_cut(t->pretok, in->s, in->checked);
        if (cut > 0) WG_TRY(count_words(t, in->s, cut, err));
        if (in->ended) return WG_OK;
        drop(in, cut);
        part = cut > 0 ? PART : 2 * part;
        if (part > WHOLE)
            return wg_fail(err, WG_EFORMAT, "%s: a word of more than %d MB from byte %llu on: expected plain text", in->path,
                           WHOLE >> 21, (unsigned long long)in->before);
    }
}

wg_status wg_bpe_trainer_read(wg_bpe_trainer *t, const char *path, wg_error *err)
{
    input in = { .path = path, .fd = open(path, O_RDONLY | O_CLOEXEC) };
    if (in.fd < 0) return wg_fail(err, errno == ENOENT ? WG_ENOENT : WG_EIO, "%s: cannot open: %s", path, strerror(errno));
    const wg_status s = read_parts(t, &in, err);
    close(in.fd);
    wg_free(in.s);
    return s;
}

/* ---- merging. A pair lies in the heap with the words in which it was found when it came up; a count that has changed since is
 * corrected when the pair is popped. */

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

/* ---- saving: as tokenizer.json of the library `tokenizers`, or as the GGUF file without tensors that it would be */

static json_t *text_of(const wg_bpe_trainer *t, size_t id)
{
    const wg_text s = wg_byte_string_at(&t->token, id);
    return json_stringn(s.s, s.n);
}

static json_t *added_tokens(const wg_bpe_trainer *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->specials; i++)
        json_array_append_new(list,
                              json_pack("{s:I, s:o, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)i, "content", text_of(t, i),
                                        "single_word", 0, "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1));
    return list;
}

static json_t *model(const wg_bpe_trainer *t)
{
    json_t *vocab = json_object(), *merges = json_array();
    for (size_t i = 0; i < t->token.n; i++) {
        const wg_text s = wg_byte_string_at(&t->token, i);
        json_object_setn_new(vocab, s.s, s.n, json_integer((json_int_t)i));
    }
    for (size_t i = 0; i < t->merges; i++) {
        json_array_append_new(merges,
                              json_pack("[o, o]", text_of(t, (size_t)t->merge[i].left), text_of(t, (size_t)t->merge[i].right)));
    }
    return json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:o}", "type", "BPE", "dropout", "unk_token",
                     "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0, "ignore_merges",
                     t->row->whole_words, "vocab", vocab, "merges", merges);
}

typedef struct output {
    wg_save *save;
    wg_status status;
    wg_error *err;
} output;

static int write_part(const char *s, size_t n, void *user)
{
    output *k = user;
    if (!k->status) k->status = wg_save_write(k->save, s, n, k->err);
    return k->status ? -1 : 0;
}

static wg_status save_json(const wg_bpe_trainer *t, const json_t *root, const char *path, wg_error *err)
{
    output k = { .err = err };
    WG_TRY(wg_save_open(&k.save, path, err));
    const int done = json_dump_callback(root, write_part, &k, JSON_INDENT(1));
    if (!k.status && done) k.status = wg_nomem(err, t->token.n_bytes, "a tokenizer.json");
    if (!k.status) return wg_save_commit(k.save, err);
    wg_save_abort(k.save);
    return k.status;
}

/* The keys of a GGUF file, by way of the reader of tokenizer.json. */
static wg_status save_gguf(const wg_bpe_trainer *t, const json_t *root, const char *path, wg_error *err)
{
    const wg_hf_ids ids = { .bos = -1, .end = { t->specials > 0 ? 0 : -1, -1, -1 } };
    char *text = json_dumps(root, JSON_COMPACT);
    wg_json *doc = NULL;
    wg_gguf_writer *g = NULL;
    wg_status s = text ? wg_json_parse(&doc, path, text, strlen(text), err) : wg_nomem(err, t->token.n_bytes, "a tokenizer");
    if (!s) s = wg_gguf_writer_open(&g, path, err);
    if (!s) s = wg_hf_tokenizer(g, doc, &ids, (int)t->token.n, err);
    if (!s) s = wg_gguf_writer_finish(g, err);
    else wg_gguf_writer_abort(g);
    wg_json_close(doc);
    free(text);
    return s;
}

wg_status wg_bpe_trainer_save(const wg_bpe_trainer *t, const char *path, wg_error *err)
{
    const size_t n = strlen(path);
    const bool gguf = n > 5 && strcmp(path + n - 5, ".gguf") == 0;
    json_t *root =
        json_pack("{s:s, s:n, s:n, s:o, s:n, s:o, s:n, s:{s:s, s:b, s:b, s:b}, s:o}", "version", "1.0", "truncation", "padding",
                  "added_tokens", added_tokens(t), "normalizer", "pre_tokenizer", wg_hf_pretok_json(t->row), "post_processor",
                  "decoder", "type", "ByteLevel", "add_prefix_space", 1, "trim_offsets", 1, "use_regex", 1, "model", model(t));
    if (!root) return wg_nomem(err, t->token.n_bytes, "a tokenizer.json");
    const wg_status s = (gguf ? save_gguf : save_json)(t, root, path, err);
    json_decref(root);
    return s;
}
