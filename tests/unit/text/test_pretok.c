/* SPDX-License-Identifier: MIT
 * Pre-tokenisers against the published patterns, as PyPI `tokenizers` reads them (tests/golden/text/pretok.txt). */
#include <criterion/criterion.h>

#include "core/text/pretok.h"
#include "tests/unit/text/golden.h"
#include "tests/unit/text/tiny.h"

static const wg_pretok *named(const char *name) { return wg_pretok_find(name, strlen(name)); }

Test(pretok, golden_cuts)
{
    char path[512];
    size_t size;
    int lines = 0, want[GOLDEN_NUMBERS];
    char *file = file_read(golden_path("pretok.txt", path, sizeof path), &size), *next = file;
    cr_assert(file, "%s", path);
    for (char *line = next, *end; (end = golden_line(&next)); line = next, lines++) {
        char *tab = memchr(line, '\t', (size_t)(end - line)), *text = tab + 1;
        char *numbers = memchr(text, '\t', (size_t)(end - text));
        const wg_pretok *p = wg_pretok_find(line, (size_t)(tab - line));
        cr_assert(p && numbers, "line %d", lines + 1);
        const size_t n_want = golden_numbers(numbers + 1, end, want), n = golden_unescape(text, (size_t)(numbers - text));
        size_t at = 0, k = 0;
        for (size_t len; (len = wg_pretok_next(p, text + at, n - at)) > 0; at += len, k++)
            cr_assert(k < n_want && len == (size_t)want[k], "pretok.txt:%d: piece %zu at byte %zu is %zu long", lines + 1, k,
                      at, len);
        cr_assert(k == n_want && at == n, "pretok.txt:%d: %zu pieces, expected %zu", lines + 1, k, n_want);
    }
    cr_assert_eq(lines, 400);
    free(file);
}

/* Any bytes are used up in steps of at least one byte, and a piece never ends inside a character. */
Test(pretok, total)
{
    static const char *const names[] = { "gpt-2", "llama3", "dbrx", "qwen2", "starcoder" };
    static const char *const parts[] = { " ",        "  ", "\n",    "\r\n",     "'s",           "'LL",
                                         "a",        "Z9", "12345", "\xc3\xa9", "\xe6\x88\x91", "\xff",
                                         "\xe2\x96", "!",  "...",   "\xc2\xa0", "\xe3\x80\x80", "\xf0\x9f\x98\x81",
                                         "\0" };
    uint64_t seed = 5;
    for (int round = 0; round < 20000; round++) {
        char text[256];
        size_t n = 0, at = 0;
        while (n < 200 && tiny_random(&seed) % 30) {
            const char *part = parts[tiny_random(&seed) % (sizeof parts / sizeof *parts)];
            const size_t len = *part ? strlen(part) : 1;
            memcpy(text + n, part, len);
            n += len;
        }
        const wg_pretok *p = named(names[round % 5]);
        for (size_t len; at < n; at += len) {
            len = wg_pretok_next(p, text + at, n - at);
            if (len == 0 || len > n - at) cr_assert(false, "round %d", round);
            const bool inside = at + len < n && ((unsigned char)text[at + len] & 0xc0) == 0x80;
            if (inside) cr_assert(false, "round %d: cut inside a character at %zu", round, at + len);
        }
    }
    cr_assert_eq(wg_pretok_next(named("gpt-2"), "", 0), 0);
}

Test(pretok, names)
{
    char list[512], small[16];
    cr_assert_eq(named("gpt-2"), named("mpt"));
    cr_assert_eq(named("llama-bpe"), named("llama3"));
    cr_assert_neq(named("llama3"), named("qwen2"));
    cr_assert(named("llama3")->whole_words && !named("gpt-2")->whole_words && !named("dbrx")->whole_words);
    static const char *const unknown[] = { "", "default", "gpt", "gpt-2 mpt", "gpt-22", "GPT-2", " " };
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) cr_assert_null(named(unknown[i]), "%s", unknown[i]);
    wg_pretok_list(list, sizeof list);
    cr_assert(strstr(list, "gpt-2, gpt2, phi-2") == list && strstr(list, "qwen2"), "%s", list);
    cr_assert(strlen(list) + 1 < sizeof list, "the list is cut short in messages");
    cr_assert(strlen(wg_pretok_list(small, sizeof small)) < sizeof small);
}
