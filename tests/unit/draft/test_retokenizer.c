/* SPDX-License-Identifier: MIT
 * A draft model with another tokenizer reads its own tokenization of the whole text: after every token of any kind (words,
 * bytes, halves of characters, control tokens), for any number of tokens at a time, between tokenizers of both kinds. */
#include <criterion/criterion.h>

#include "draft/lm/retokenizer.h"
#include "tests/unit/text/tiny.h"

enum { SLOTS = 2, TOKENS = 9000 };

static tiny file;
static const wg_lm_class no_model = { .name = "none" };

static wg_tokenizer *opened(bool bpe)
{
    wg_tokenizer *t = NULL;
    wg_error err;
    if (bpe) tiny_bpe(&file);
    else tiny_spm(&file);
    cr_assert_eq(tiny_open(&file, &t, &err), WG_OK, "%s", err.text);
    return t;
}

typedef struct scene {
    wg_tokenizer *from, *to;
    wg_vocab_map map;
    wg_kv *kv;
    wg_lm lm;
    wg_env env;
    wg_retokenizer r;
    int32_t token[TOKENS];
    wg_seq seq;
    wg_error err;
} scene;

static wg_status scene_open(scene *x, bool from, bool to, int context)
{
    *x = (scene){ .from = opened(from), .to = opened(to), .lm = { .class = &no_model, .context = context } };
    x->seq.token = x->token;
    cr_assert_eq(wg_vocab_map_open(&x->map, x->from, x->to, &x->err), WG_OK);
    cr_assert_eq(wg_kv_open(&x->kv, 16, SLOTS * TOKENS / 16, TOKENS, &x->err), WG_OK);
    x->env = (wg_env){ .tokenizer = x->from, .kv = x->kv, .max_batch = SLOTS };
    return wg_retokenizer_open(&x->r, &x->env, x->to, &x->map, &x->lm, &x->err);
}

static void scene_close(scene *x)
{
    wg_retokenizer_close(&x->r);
    wg_kv_close(x->kv);
    wg_vocab_map_close(&x->map);
    wg_tokenizer_close(x->from);
    wg_tokenizer_close(x->to);
}

/* What the reader must hold: the text of each stretch between control tokens, encoded whole. */
static size_t expected(const scene *x, int32_t *out)
{
    size_t n = 0;
    wg_error err;
    if (wg_tokenizer_add_bos(x->to)) out[n++] = wg_tokenizer_bos(x->to);
    char text[TOKENS * 8];
    size_t at = 0;
    bool first = true;
    for (int i = 0; i <= x->seq.n; i++) {
        const int32_t id = i < x->seq.n ? x->token[i] : -1;
        if (i < x->seq.n && !wg_tokenizer_is_control(x->from, id)) {
            at += wg_tokenizer_decode_one(x->from, id, first, false, text + at, sizeof text - at);
            first = false;
            continue;
        }
        int32_t *ids;
        size_t k;
        cr_assert_eq(wg_tokenizer_encode(x->to, text, at, false, false, &ids, &k, &err), WG_OK);
        memcpy(out + n, ids, k * sizeof *ids);
        n += k;
        wg_free(ids);
        at = 0;
        if (id < 0 || (i == 0 && id == wg_tokenizer_bos(x->from)) || x->map.to_b[id] < 0) continue;
        out[n++] = x->map.to_b[id];
    }
    return n;
}

static void follow(scene *x, wg_retokenizer_text **t)
{
    cr_assert_eq(wg_retokenizer_follow(&x->r, &x->seq, t, &x->err), WG_OK, "%s", x->err.text);
    cr_assert_eq(wg_kv_tail((*t)->kv), 0);
    if ((*t)->n) cr_assert_eq(wg_kv_len((*t)->kv), (*t)->n - 1);
    cr_assert_eq(wg_kv_check(x->r.kv, &x->err), WG_OK, "%s", x->err.text);
}

Test(retokenizer, reads_the_text_in_own_tokens)
{
    static scene x;
    static int32_t want[8 * TOKENS];
    for (int kinds = 0; kinds < 4; kinds++)
        for (uint64_t seed = 1; seed <= 12; seed++) {
            cr_assert_eq(scene_open(&x, kinds & 1, kinds & 2, 4000), WG_OK, "%s", x.err.text);
            uint64_t s = seed * 991;
            const int size = wg_tokenizer_size(x.from);
            wg_retokenizer_text *t;
            x.token[x.seq.n++] = seed % 3 ? wg_tokenizer_bos(x.from) : 0;
            while (x.seq.n < 220) {
                for (uint32_t k = tiny_random(&s) % 5; k < 5; k++) { /* words more often than bytes, sometimes control */
                    const uint32_t r = tiny_random(&s);
                    x.token[x.seq.n++] = (int32_t)(r % 4 ? (uint32_t)size - 1 - r / 4 % 45 : r / 4 % (uint32_t)size);
                }
                follow(&x, &t);
                const size_t n = expected(&x, want);
                cr_assert_eq((size_t)t->n, n, "kinds %d, seed %d: %d own tokens after %d, expected %zu", kinds, (int)seed, t->n,
                             x.seq.n, n);
                cr_assert_eq(memcmp(t->own, want, n * sizeof *want), 0, "kinds %d, seed %d, after %d", kinds, (int)seed,
                             x.seq.n);
            }
            scene_close(&x);
        }
}

/* One long word has no place to cut at: it is cut by force, at the same places however it comes; and old text is let go. */
Test(retokenizer, long_texts)
{
    static scene a, b;
    wg_retokenizer_text *t, *u;
    for (int spaces = 0; spaces < 2; spaces++) {
        cr_assert_eq(scene_open(&a, true, false, 100000), WG_OK);
        cr_assert_eq(scene_open(&b, true, false, 100000), WG_OK);
        uint64_t s = 5;
        while (a.seq.n < TOKENS) {
            const uint32_t r = tiny_random(&s) % 9;
            a.token[a.seq.n++] = spaces && r == 0 ? ' ' : 'a' + (int32_t)r; /* bytes are tokens 0..255 */
            if (tiny_random(&s) % 7 == 0) follow(&a, &t);
        }
        follow(&a, &t);
        memcpy(b.token, a.token, sizeof a.token);
        b.seq.n = a.seq.n;
        follow(&b, &u); /* all at once */
        cr_assert(t->n == u->n && !memcmp(t->own, u->own, (size_t)t->n * sizeof *t->own));
        cr_assert_lt(t->bytes, spaces ? 200 : 4200, "%d bytes are encoded again each time", t->bytes);
        scene_close(&a);
        scene_close(&b);
    }
}

/* The draft that became text stays in the cache; what did not is dropped. */
Test(retokenizer, keeps_what_it_drafted)
{
    static scene x;
    cr_assert_eq(scene_open(&x, false, true, 1000), WG_OK);
    wg_retokenizer_text *t;
    int32_t *ids;
    size_t n;
    cr_assert_eq(wg_tokenizer_encode(x.from, "hello hello world", 17, true, false, &ids, &n, &x.err), WG_OK);
    memcpy(x.token, ids, n * sizeof *ids);
    wg_free(ids);
    x.seq.n = (int)n;
    follow(&x, &t);
    const int before = t->n;
    /* drafted: " hello" and after it " world" or "!" */
    cr_assert_eq(wg_tokenizer_encode(x.to, " hello world", 12, false, false, &ids, &n, &x.err), WG_OK);
    cr_assert_eq(n, 2);
    wg_tree_reset(&t->tree, t->own[t->n - 1], WG_LAW_FIXED);
    wg_tree_push(&t->tree, 0, ids[0], -1);
    wg_tree_push(&t->tree, 1, '!', -1);
    wg_tree_push(&t->tree, 1, ids[1], -1);
    cr_assert_eq(wg_kv_reserve(t->kv, 4, &x.err), WG_OK);
    wg_free(ids);
    cr_assert_eq(wg_tokenizer_encode(x.from, "hello hello world hello world!", 30, true, false, &ids, &n, &x.err), WG_OK);
    memcpy(x.token, ids, n * sizeof *ids);
    wg_free(ids);
    x.seq.n = (int)n;
    follow(&x, &t);
    cr_assert_eq(t->n, before + 3);
    cr_assert_eq(t->tree.n, 0);
    /* forgotten, the place is as new */
    wg_retokenizer_forget(&x.r, &x.seq);
    cr_assert_eq(wg_kv_len(t->kv), 0);
    cr_assert(t->n == 0 && t->read == 0 && t->bytes == 0 && !t->full);
    follow(&x, &t);
    cr_assert_eq(t->n, before + 3);
    scene_close(&x);
}

Test(retokenizer, a_text_that_is_too_long_is_not_read)
{
    static scene x;
    cr_assert_eq(scene_open(&x, false, true, 20), WG_OK);
    wg_retokenizer_text *t;
    for (x.seq.n = 0; x.seq.n < 19; x.seq.n++) x.token[x.seq.n] = 3 + 'x';
    follow(&x, &t);
    cr_assert(!t->full);
    for (; x.seq.n < 40; x.seq.n++) x.token[x.seq.n] = 3 + 'x';
    cr_assert_eq(wg_retokenizer_follow(&x.r, &x.seq, &t, &x.err), WG_OK);
    cr_assert(t->full);
    cr_assert_eq(wg_retokenizer_follow(&x.r, &x.seq, &t, &x.err), WG_OK);
    wg_retokenizer_forget(&x.r, &x.seq);
    cr_assert(!t->full);
    scene_close(&x);
}

Test(retokenizer, failed_allocations)
{
    static scene x;
    bool failed = true;
    for (uint64_t nth = 1; failed; nth++) {
        const size_t before = wg_mem_read().live_blocks;
        x = (scene){ .from = opened(false), .to = opened(true), .lm = { .class = &no_model, .context = 50 } };
        cr_assert_eq(wg_vocab_map_open(&x.map, x.from, x.to, &x.err), WG_OK);
        cr_assert_eq(wg_kv_open(&x.kv, 16, 20, 100, &x.err), WG_OK);
        x.env = (wg_env){ .tokenizer = x.from, .kv = x.kv, .max_batch = SLOTS };
        wg_mem_fail_at(nth, false);
        failed = wg_retokenizer_open(&x.r, &x.env, x.to, &x.map, &x.lm, &x.err) != WG_OK;
        wg_mem_fail_at(0, false);
        if (failed) cr_assert_eq(x.err.code, WG_ENOMEM);
        scene_close(&x);
        cr_assert_eq(wg_mem_read().live_blocks, before);
    }
}
