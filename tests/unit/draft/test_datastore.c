/* SPDX-License-Identifier: MIT */
#include "core/base/hash.h"
#include "draft/lookup/datastore_file.h"
#include "tests/unit/draft/store.h"

/* Places where the key begins. */
static int naive_count(const int32_t *t, int n, const int32_t *key, int m)
{
    int count = 0;
    for (int i = 0; i + m <= n; i++) count += !memcmp(t + i, key, (size_t)m * sizeof *t);
    return count;
}

/* Sign of suffix a - suffix b; -1 and the end come first. */
static int naive_order(const int32_t *t, int n, uint32_t a, uint32_t b)
{
    for (; a < (uint32_t)n && b < (uint32_t)n; a++, b++)
        if (t[a] != t[b]) return t[a] < t[b] ? -1 : 1;
    return a < (uint32_t)n ? 1 : -1;
}

Test(datastore, finds_what_a_scan_finds)
{
    store s;
    store_open(&s);
    for (uint32_t c = 0; c < 60; c++) {
        int32_t t[300], key[6];
        const int n = 1 + (int)(c * 37 % 300), symbols = c % 3 ? 2 + (int)(c % 9) : 320;
        points_text(t, n, symbols, c);
        for (int i = 1; i < n; i++)
            if (c % 2 && i % 23 == 0) t[i] = -1;
        store_write(&s, t, n);
        wg_datastore *d;
        wg_error err;
        cr_assert_eq(wg_datastore_open(&d, s.path, "x", &s.env, &err), WG_OK, "%s", err.text);
        cr_assert_eq(d->tokens, n);
        int ids = 0;
        for (int i = 0; i < n; i++) {
            cr_assert_eq(wg_datastore_token(d, i), t[i]);
            ids += t[i] >= 0;
        }
        cr_assert_eq(d->suffixes, ids);
        cr_assert_eq(wg_datastore_token(d, -1), -1);
        cr_assert_eq(wg_datastore_token(d, n), -1);
        for (int i = 1; i < ids; i++) cr_assert_lt(naive_order(t, n, d->suffix[i - 1], d->suffix[i]), 0);
        for (uint32_t k = 0; k < 100; k++) {
            const int m = 1 + (int)(k % 6);
            int64_t low, high;
            points_text(key, m, symbols, 1000 + k);
            if (k % 2 && n > m) memcpy(key, t + k % (uint32_t)(n - m), (size_t)m * sizeof *key);
            bool whole = true;
            for (int i = 0; i < m; i++) whole = whole && key[i] >= 0;
            if (!whole) continue;
            wg_datastore_find(d, key, m, &low, &high);
            cr_assert_eq(high - low, naive_count(t, n, key, m));
            for (int64_t i = low; i < high; i++) cr_assert_eq(memcmp(t + d->suffix[i], key, (size_t)m * sizeof *key), 0);
        }
        wg_datastore_close(d);
    }
    wg_datastore_close(NULL);
    store_close(&s);
}

Test(datastore, every_truncation_and_every_damaged_header_is_refused)
{
    store s;
    wg_error err;
    store_open(&s);
    store_write(&s, LIST(1, 2, 3, -1, 4, 5));
    size_t n;
    char *bytes = file_read(s.path, &n);
    cr_assert_eq(n, 128 + 6 * 4 + 5 * 4);
    uint64_t *copy = malloc(n + 8); /* aligned, exactly as long as it claims where it matters */
    for (size_t cut = 0; cut < n; cut++) {
        wg_datastore d;
        memcpy(copy, bytes, cut);
        cr_assert_eq(wg_datastore_view(&d, "f", copy, cut, &err), WG_EFORMAT);
        const char *part = cut < 8     ? "not a datastore"
                           : cut < 128 ? "in its header"
                           : cut < 152 ? "in its tokens"
                                       : "in its suffix array";
        cr_assert(strstr(err.text, part), "cut at %zu: %s", cut, err.text);
    }
    for (size_t at = 0; at < 128; at++) {
        wg_datastore d;
        memcpy(copy, bytes, n);
        ((char *)copy)[at] ^= 1;
        cr_assert_neq(wg_datastore_view(&d, "f", copy, n, &err), WG_OK, "byte %zu", at);
    }
    wg_datastore d;
    header *h = (header *)(void *)copy;
    memcpy(copy, bytes, n);
    h->vocab++;
    cr_assert_eq(wg_datastore_view(&d, "f", copy, n, &err), WG_EFORMAT);
    cr_assert(strstr(err.text, "f: the header is damaged (its checksum differs); build it again with: "), "%s", err.text);
    h->suffixes = 0;
    h->check = wg_hash64(WG_HASH_START, h, offsetof(header, check));
    cr_assert_eq(wg_datastore_view(&d, "f", copy, n, &err), WG_EFORMAT);
    cr_assert(strstr(err.text, "f: 0 suffixes of 6 tokens, vocabulary 321: not possible; build it again"), "%s", err.text);
    h->version = 9;
    cr_assert_eq(wg_datastore_view(&d, "f", copy, n, &err), WG_EUNSUPPORTED);
    cr_assert(strstr(err.text, "f: datastore version 9; this program reads version 1; build it again"), "%s", err.text);
    memcpy(copy, bytes, n);
    cr_assert_eq(wg_datastore_view(&d, "f", copy, n, &err), WG_OK);
    cr_assert_eq(wg_datastore_view(&d, "f", copy, n + 1, &err), WG_EFORMAT);
    cr_assert(strstr(err.text, "1 bytes follow"));
    free(copy);
    free(bytes);
    store_close(&s);
}

Test(datastore, writing_refuses_what_cannot_be)
{
    store s;
    wg_error err;
    store_open(&s);
    const int32_t bad[] = { 1, 320 }, worse[] = { -2 }, nothing[] = { -1, -1 };
    cr_assert_eq(wg_datastore_write(s.path, s.tokenizer, bad, 2, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "datastore: token 1 is 320; the vocabulary is 0..319");
    cr_assert_eq(wg_datastore_write(s.path, s.tokenizer, bad, (size_t)1 << 30, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "datastore: 1073741824 tokens; at most 1073741823 fit; give it less text");
    cr_assert_eq(wg_datastore_write(s.path, s.tokenizer, worse, 1, &err), WG_EINVAL);
    cr_assert_eq(wg_datastore_write(s.path, s.tokenizer, nothing, 2, &err), WG_EINVAL);
    cr_assert_eq(wg_datastore_write(s.path, s.tokenizer, nothing, 0, &err), WG_EINVAL);
    cr_assert_eq(wg_datastore_write("/nowhere/at/all", s.tokenizer, bad, 1, &err), WG_ENOENT, "%s", err.text);
    const size_t blocks = wg_mem_read().live_blocks;
    for (int nth = 1; nth <= 3; nth++) {
        wg_mem_fail_at((uint64_t)nth, true);
        cr_assert_eq(wg_datastore_write(s.path, s.tokenizer, bad, 1, &err), WG_ENOMEM);
        wg_mem_fail_at(0, false);
        cr_assert_eq(wg_mem_read().live_blocks, blocks);
    }
    store_close(&s);
}

Test(datastore, digests_tell_tokenizers_apart)
{
    store s;
    char a[WG_SHA256_HEX], b[WG_SHA256_HEX], again[WG_SHA256_HEX];
    store_open(&s);
    wg_tokenizer *same = store_tokenizer(&s, 320);
    wg_tokenizer_digest(s.tokenizer, a);
    wg_tokenizer_digest(s.other, b);
    wg_tokenizer_digest(same, again);
    cr_assert_str_neq(a, b);
    cr_assert_str_eq(a, again);
    wg_tokenizer_close(same);
    store_close(&s);
}
