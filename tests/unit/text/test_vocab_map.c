/* SPDX-License-Identifier: MIT
 * Maps between two vocabularies: a token is paired with the token of the same bytes, in any encoding of spaces and bytes. */
#include <criterion/criterion.h>

#include "core/text/vocab.h"
#include "core/text/vocab_map.h"
#include "tests/unit/text/tiny.h"

static tiny file;

static wg_tokenizer *opened(bool bpe)
{
    wg_tokenizer *t = NULL;
    wg_error err = { 0 };
    if (bpe) tiny_bpe(&file);
    else tiny_spm(&file);
    cr_assert_eq(tiny_open(&file, &t, &err), WG_OK, "%s", err.text);
    return t;
}

static int32_t id_of(const wg_tokenizer *t, const char *piece)
{
    for (int32_t i = 0; i < wg_tokenizer_size(t); i++) {
        const wg_text p = wg_tokenizer_piece(t, i);
        if (p.n == strlen(piece) && !memcmp(p.s, piece, p.n)) return i;
    }
    cr_assert_fail("no token '%s'", piece);
    return -1;
}

static size_t bytes_of(const wg_tokenizer *t, int32_t id, char *out)
{
    return wg_tokenizer_decode_one(t, id, false, false, out, TINY_LONGEST);
}

/* Partners are mutual and stand for the same bytes; tokens without one have no free twin over there. */
static void check(const wg_vocab_map *m, const wg_tokenizer *a, const wg_tokenizer *b)
{
    int shared = 0;
    char x[TINY_LONGEST], y[TINY_LONGEST];
    for (int32_t i = 0; i < m->a; i++) {
        const int32_t j = m->to_b[i];
        const size_t n = bytes_of(a, i, x);
        if (j >= 0) {
            shared++;
            cr_assert_eq(m->to_a[j], i);
            cr_assert(bytes_of(b, j, y) == n && !memcmp(x, y, n), "%d and %d", i, j);
            continue;
        }
        bool twin = false, taken = false; /* of several twins one has a partner: a better spelling of the same bytes */
        for (int32_t k = 0; n > 0 && i > 0 && k < m->b; k++) {
            if (bytes_of(b, k, y) != n || memcmp(x, y, n)) continue;
            twin = true;
            taken = taken || m->to_a[k] >= 0;
        }
        cr_assert(!twin || taken, "%d has a twin but no partner", i);
    }
    for (int32_t j = 0; j < m->b; j++)
        if (m->to_a[j] >= 0) cr_assert_eq(m->to_b[m->to_a[j]], j);
    cr_assert_eq(shared, m->shared);
}

Test(vocab_map, bytes_decide)
{
    wg_tokenizer *spm = opened(false), *bpe = opened(true);
    wg_error err;
    wg_vocab_map m, back;
    cr_assert_eq(wg_vocab_map_open(&m, spm, bpe, &err), WG_OK);
    cr_assert_eq(wg_vocab_map_open(&back, bpe, spm, &err), WG_OK);
    check(&m, spm, bpe);
    check(&back, bpe, spm);
    cr_assert_eq(m.shared, back.shared);
    static const struct {
        const char *spm, *bpe;
    } pairs[] = {
        { "\xe2\x96\x81hello", "\xc4\xa0hello" }, /* a space is a space */
        { "\xe2\x96\x81", "\xc4\xa0" },
        { "\xe2\x96\x81\xe2\x96\x81", "\xc4\xa0\xc4\xa0" },
        { "hell", "hell" },
        { "h", "h" },             /* not <0x68> */
        { "<0x0A>", "\xc4\x8a" }, /* a byte token that has no better spelling */
        { "<0xFF>", "\xc3\xbf" }, /* half a character */
        { "\xc3\xa9", "\xc3\x83\xc2\xa9" },
        { "<tool>", "<tool>" }, /* user-defined */
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        cr_assert_eq(m.to_b[id_of(spm, pairs[i].spm)], id_of(bpe, pairs[i].bpe), "%s", pairs[i].spm);
    static const char *const alone[] = { "<unk>", "<0x68>", "\xe6\x88\x91", "<|im_end|>", "<tool>>" };
    for (size_t i = 0; i < sizeof alone / sizeof *alone; i++) cr_assert_eq(m.to_b[id_of(spm, alone[i])], -1, "%s", alone[i]);
    cr_assert_eq(m.to_a[id_of(bpe, "xyz")], -1);
    cr_assert_eq(m.to_b[2], id_of(bpe, "<|endoftext|>"), "the end of a text is the end of a text");
    cr_assert_eq(m.to_b[1], -1, "one token for both ends of a text: the end has it");
    wg_vocab_map_close(&m);
    wg_vocab_map_close(&back);
    wg_tokenizer_close(spm);
    wg_tokenizer_close(bpe);
}

Test(vocab_map, a_vocabulary_with_itself)
{
    file.with_doubles = true;
    wg_tokenizer *t = opened(false);
    wg_error err;
    wg_vocab_map m;
    cr_assert_eq(wg_vocab_map_open(&m, t, t, &err), WG_OK);
    check(&m, t, t);
    cr_assert_eq(m.to_b[1], 1);
    cr_assert_eq(m.to_b[id_of(t, "<|im_end|>")], id_of(t, "<|im_end|>"), "control tokens meet by name");
    cr_assert_eq(m.to_b[0], -1, "unknown text is nothing to agree on");
    wg_vocab_map_close(&m);
    for (uint64_t nth = 1; nth <= 3; nth++) {
        wg_mem_fail_at(nth, false);
        cr_assert_eq(wg_vocab_map_open(&m, t, t, &err), WG_ENOMEM);
    }
    wg_mem_fail_at(0, false);
    wg_tokenizer_close(t);
    file.with_doubles = false;
}
