/* SPDX-License-Identifier: MIT
 * Pre-tokenisers against the published patterns, as PyPI `tokenizers` reads them (tests/golden/text/pretok.txt). */
#include <criterion/criterion.h>

#include "core/text/pretok.h"
#include "core/text/unicode.h"
#include "tests/unit/text/golden.h"
#include "tests/unit/text/tiny.h"

static wg_pretok *named(const char *name, size_t n)
{
    wg_pretok *p = NULL;
    wg_error err;
    const wg_pretok_row *row = wg_pretok_row_named(name, n);
    if (row) cr_assert_eq(wg_pretok_open_row(&p, row, &err), WG_OK, "%s", err.text);
    return p;
}

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
        wg_pretok *p = named(line, (size_t)(tab - line));
        cr_assert(p && numbers, "line %d", lines + 1);
        const size_t n_want = golden_numbers(numbers + 1, end, want), n = golden_unescape(text, (size_t)(numbers - text));
        size_t at = 0, k = 0;
        wg_splitter x;
        wg_splitter_begin(&x, p, text, n);
        for (wg_piece w; wg_splitter_next(&x, &w); at = w.end, k++)
            cr_assert(k < n_want && w.at == at && w.end - at == (size_t)want[k],
                      "pretok.txt:%d: piece %zu at byte %zu is %zu long", lines + 1, k, at, w.end - at);
        wg_free(p);
        cr_assert(k == n_want && at == n, "pretok.txt:%d: %zu pieces, expected %zu", lines + 1, k, n_want);
    }
    cr_assert_eq(lines, 400);
    free(file);
}

static const char *const families[] = { "gpt-2",  "llama3", "dbrx",           "qwen2",       "qwen35", "starcoder",
                                        "tekken", "gpt-4o", "deepseek-coder", "deepseek-v3", "falcon", "deepseek-llm" };
enum { FAMILIES = sizeof families / sizeof *families };

/* Any bytes are used up in pieces of at least one byte. */
Test(pretok, total)
{
    static const char *const parts[] = { " ",        "  ", "\n",    "\r\n",     "'s",           "'LL",
                                         "a",        "Z9", "12345", "\xc3\xa9", "\xe6\x88\x91", "\xff",
                                         "\xe2\x96", "!",  "...",   "\xc2\xa0", "\xe3\x80\x80", "\xf0\x9f\x98\x81",
                                         "\0" };
    uint64_t seed = 5;
    for (int f = 0; f < FAMILIES; f++) {
        wg_pretok *p = named(families[f], strlen(families[f]));
        for (int round = 0; round < 2000; round++) {
            char text[256];
            size_t n = 0, at = 0;
            wg_splitter x;
            while (n < 200 && tiny_random(&seed) % 30) {
                const char *part = parts[tiny_random(&seed) % (sizeof parts / sizeof *parts)];
                const size_t len = *part ? strlen(part) : 1;
                memcpy(text + n, part, len);
                n += len;
            }
            wg_splitter_begin(&x, p, text, n);
            for (wg_piece w; wg_splitter_next(&x, &w); at = w.end) {
                if (w.at != at || w.end <= w.at || w.end > n) cr_assert(false, "%s, round %d", families[f], round);
            }
            if (at != n) cr_assert(false, "%s, round %d: %zu of %zu bytes", families[f], round, at, n);
        }
        wg_free(p);
    }
}

static size_t pieces_of(const wg_pretok *p, const char *s, size_t n, size_t offset, size_t *ends)
{
    wg_splitter x;
    size_t count = 0;
    wg_splitter_begin(&x, p, s, n);
    for (wg_piece w; wg_splitter_next(&x, &w);) ends[count++] = offset + w.end;
    return count;
}

/* A cut that is found in the beginning of a text: what stands before and behind it has, by itself, the pieces of the whole. */
Test(pretok, cuts)
{
    static const char *const parts[] = {
        " ",        "  ",       "\n",           "\r",           "'", "s", "l", "l",   "re", "A", "Ab", "1", "23",
        "\xc3\xa9", "\xcc\x81", "\xe6\x88\x91", "\xe3\x82\xab", "!", "/", "-", "\xff"
    };
    enum { BYTES = 60 };
    uint64_t seed = 17;
    for (int f = 0; f <= FAMILIES; f++) { /* the last has a step that begins in vain inside a match of the one before */
        static const wg_text inside[] = { { "split", 5 }, { "isolated", 8 }, { "A[0-9]", 6 },
                                          { "split", 5 }, { "isolated", 8 }, { "[0-9]+", 6 } };
        const char *name = f < FAMILIES ? families[f] : "A[0-9], [0-9]+";
        wg_pretok *p = NULL;
        if (f < FAMILIES) p = named(name, strlen(name));
        else cr_assert_eq(wg_pretok_open(&p, "FILE", "KEY", inside, 6, NULL), WG_OK);
        int cuts = 0;
        for (int round = 0; round < 100; round++) {
            char text[BYTES + 8];
            size_t n = 0, whole[BYTES + 8], both[BYTES + 8];
            while (n < BYTES) {
                const char *part = parts[tiny_random(&seed) % (sizeof parts / sizeof *parts)];
                memcpy(text + n, part, strlen(part));
                n += strlen(part);
            }
            const size_t count = pieces_of(p, text, n, 0, whole);
            for (size_t shown = 1; shown < n; shown++) {
                const size_t cut = wg_pretok_cut(p, text, shown - wg_utf8_open_tail(text, shown));
                if (cut == 0) continue;
                cuts++;
                const size_t front = pieces_of(p, text, cut, 0, both),
                             all = front + pieces_of(p, text + cut, n - cut, cut, both + front);
                const bool same = all == count && memcmp(whole, both, all * sizeof *whole) == 0;
                if (!same) cr_assert(false, "%s: cut at %zu of %zu: '%.*s'", name, cut, shown, (int)n, text);
            }
        }
        cr_expect_gt(cuts, 500, "%s: %d", name, cuts);
        wg_free(p);
    }
}

/* The characters that are looked at grow as the text does, whatever the text: a run of one kind, kinds that alternatives begin
 * with in vain, marks of every sort. */
Test(pretok, linear)
{
    static const char *const units[] = { "a",  "A",  " ",  "\n",           " \n",  "1",         "'",   "!", "\xcc\x81",
                                         "Aa", "a1", " !", "\xe6\x88\x91", "\xff", "A\xcc\x81", "  x", "/", "\t \r" };
    enum { SMALL = 20000 };
    char *text = malloc(2 * SMALL + 16);
    for (int f = 0; f < FAMILIES; f++) {
        wg_pretok *p = named(families[f], strlen(families[f]));
        for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
            uint64_t steps[2];
            for (int k = 0; k < 2; k++) {
                const size_t n = (size_t)SMALL << k, len = strlen(units[u]);
                wg_splitter x;
                for (size_t i = 0; i < n; i++) text[i] = units[u][i % len];
                wg_splitter_begin(&x, p, text, n);
                for (wg_piece w; wg_splitter_next(&x, &w);) continue;
                steps[k] = wg_splitter_steps(&x);
            }
            cr_expect(10 * steps[1] <= 23 * steps[0] && steps[0] < 40 * SMALL,
                      "%s: %llu steps, of twice the text %llu, unit %zu", families[f], (unsigned long long)steps[0],
                      (unsigned long long)steps[1], u);
        }
        wg_free(p);
    }
    free(text);
}

/* An expression that would be quadratic, or exponential, where each attempt begins anew. */
Test(pattern, linear)
{
    static const char *const hostile[] = { "a+b|a",    "a*a*a*b|a",   "[ab]*a*[ab]+c|[ab]", "\\s*\\S+x|\\s|\\S",
                                           "a{2,}b|a", "(?:a+)?a+b|a" };
    enum { SMALL = 20000 };
    char *text = malloc(2 * SMALL);
    memset(text, 'a', 2 * SMALL);
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        wg_pattern p;
        size_t at;
        uint64_t steps[2];
        const char *why = wg_pattern_compile(&p, hostile[i], strlen(hostile[i]), &at);
        cr_assert_null(why, "%s: %s", hostile[i], why);
        for (int k = 0; k < 2; k++) {
            wg_matcher m = { .p = &p };
            wg_matcher_text(&m, text, (size_t)SMALL << k);
            for (size_t b = 0, end; b<m.end; b = end> b ? end : b + 1) end = wg_matcher_at(&m, b);
            steps[k] = m.steps;
        }
        cr_expect(10 * steps[1] <= 23 * steps[0] && steps[0] < 40 * SMALL, "%s: %llu steps, of twice the text %llu", hostile[i],
                  (unsigned long long)steps[0], (unsigned long long)steps[1]);
    }
    free(text);
}

/* The leftmost match of the first alternative that matches, as a backtracking matcher finds it. */
Test(pattern, matches)
{
    static const struct {
        const char *regex, *text;
        size_t end;
    } row[] = {
        { "a|ab", "ab", 1 },
        { "ab|a", "ab", 2 },
        { "a*", "aaab", 3 },
        { "a*ab", "aaab", 4 },
        { "a*+ab", "aaab", 0 },
        { "a?+ab", "ab", 0 },
        { "a{2}", "aaaa", 2 },
        { "a{2,3}", "aaaa", 3 },
        { "a{2,}", "aaaa", 4 },
        { "a{3,}", "aa", 0 },
        { "a{2,3}a", "aaa", 3 },
        { "(?i:'s)", "'S", 2 },
        { "(?i:'s)", "'\u017f", 3 },
        { "(?i:k)x", "\u212ax", 4 },
        { "(?:ab)?c", "abc", 3 },
        { "(?:ab)?abc", "abc", 3 },
        { "(a|b)c", "bc", 2 },
        { "\\s+(?!\\S)", "   x", 2 },
        { "\\s+(?!\\S)", "   ", 3 },
        { "\\s+(?!\\S)", " x", 0 },
        { "\\s+$", "  \nx", 2 },
        { "\\s+$", "  x", 0 },
        { "[^a-c]", "b", 0 },
        { "[^a-c]", "\u00e9", 2 },
        { "[\\]a-]+", "]-a", 3 },
        { "[a\\-z]+", "-z", 2 },
        { "[^\\S]", " ", 1 },
        { "\\p{Lu}\\P{Lu}", "\u00c9a", 3 },
        { "\\w+", "a1_\u2160!", 6 },
        { "\\W", "\u00b2", 2 },
        { "\\d+", "12\u0663", 4 },
        { "", "a", 0 },
        { "x|", "a", 0 },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        wg_pattern p;
        size_t at;
        const char *why = wg_pattern_compile(&p, row[i].regex, strlen(row[i].regex), &at);
        cr_assert_null(why, "%s: %s", row[i].regex, why);
        wg_matcher m = { .p = &p };
        wg_matcher_text(&m, row[i].text, strlen(row[i].text));
        cr_expect_eq(wg_matcher_at(&m, 0), row[i].end, "%s in '%s': %zu, expected %zu", row[i].regex, row[i].text,
                     wg_matcher_at(&m, 0), row[i].end);
    }
}

Test(pattern, refusals)
{
    static const struct {
        const char *regex, *why;
        size_t at;
    } row[] = {
        { "a**", "this quantifier", 2 },
        { "a+?", "this quantifier", 2 },
        { "a{2", "this quantifier", 3 },
        { "a{3,2}", "this quantifier", 6 },
        { "a{1001}", "this quantifier", 7 },
        { "(a+)+", "a repeated group", 4 },
        { "(?=a)", "this kind of group", 2 },
        { "(?<!a)b", "this kind of group", 2 },
        { "a(?!\\S)", "an assertion that does not follow a loop of white space", 7 },
        { "a$", "an assertion that does not follow a loop of white space", 2 },
        { "(a", "a group without an end", 2 },
        { "a)", "a ) without (", 1 },
        { ".", "this character without \\", 0 },
        { "^a", "this character without \\", 0 },
        { "[a", "a set without an end", 2 },
        { "[[a]]", "a set in a set", 2 },
        { "[a&&b]", "a set in a set", 3 },
        { "[b-a]", "a range that ends before it begins", 4 },
        { "[a-\\d]", "a range that ends in a set", 5 },
        { "\\p{Greek}", "this property of characters", 2 },
        { "\\b", "this escape", 2 },
        { "\\", "\\ at the end", 1 },
        { "(?i:\u00e9)", "(?i:) around such a character", 7 },
        { "((((((((((a))))))))))", "groups so deep", 9 },
        { "a{0,100}b{0,100}", "so many choices", 16 },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        wg_pattern p;
        size_t at = 0;
        const char *why = wg_pattern_compile(&p, row[i].regex, strlen(row[i].regex), &at);
        cr_expect(why && strcmp(why, row[i].why) == 0 && at == row[i].at, "%s: %s at %zu, expected %s at %zu", row[i].regex,
                  why ? why : "no error", at, row[i].why, row[i].at);
    }
    char longer[4000] = "";
    size_t at;
    wg_pattern p;
    for (int i = 0; i < 70; i++) strcat(longer, "a");
    cr_expect_str_eq(wg_pattern_compile(&p, longer, strlen(longer), &at), "an expression of so many sets");
    *longer = '\0';
    for (int i = 0; i < 30; i++) strcat(longer, "a+");
    cr_expect_str_eq(wg_pattern_compile(&p, longer, strlen(longer), &at), "an expression of so many loops");
    *longer = '\0';
    for (int i = 0; i < 90; i++) strcat(longer, "|");
    cr_expect_str_eq(wg_pattern_compile(&p, longer, strlen(longer), &at), "an expression of this length");
    strcpy(longer, "[");
    for (int i = 0; i < 600; i++) {
        char one[8];
        snprintf(one, sizeof one, "%c%c%c", 0xe4 + i / 1000, 0x80 + i / 32, 0x80 + 2 * (i % 32));
        strcat(longer, one);
    }
    cr_expect_str_eq(wg_pattern_compile(&p, longer, strlen(longer), &at), "a set of so many ranges");
    cr_expect_str_eq(wg_pattern_literal(&p, "", 0), "an empty text");
    cr_expect_str_eq(wg_pattern_literal(&p, "\xff", 1), "a text that is not UTF-8");
}

Test(pretok, bad_lists)
{
    static const struct {
        const char *words[4], *text;
        wg_status s;
    } row[] = {
        { { "sort" },
          "FILE: KEY[0] is \"sort\": expected a step (split, split_not, text, digits, punctuation, prefix_space, bytes) with "
          "its words; convert the model again",
          WG_EMODEL },
        { { "split", "somehow", "a" }, "FILE: KEY[0] is \"split\": expected a step", WG_EMODEL },
        { { "split", "isolated" }, "FILE: KEY[0] is \"split\": expected a step", WG_EMODEL },
        { { "bytes", "digits", "some" }, "FILE: KEY[1] is \"digits\": expected a step", WG_EMODEL },
        { { "split", "isolated", "(?<=a)b" },
          "FILE: KEY: the expression \"(?<=a)b\" has at byte 2 this kind of group, which is not implemented",
          WG_EUNSUPPORTED },
        { { "punctuation", "removed", "prefix_space" },
          "FILE: KEY: a space in front of every piece of another step is not implemented",
          WG_EUNSUPPORTED },
    };
    wg_error err;
    wg_pretok *p;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        wg_text word[4];
        size_t n = 0;
        for (; n < 4 && row[i].words[n]; n++) word[n] = (wg_text){ row[i].words[n], strlen(row[i].words[n]) };
        cr_expect_eq(wg_pretok_open(&p, "FILE", "KEY", word, n, &err), row[i].s);
        cr_expect(strncmp(err.text, row[i].text, strlen(row[i].text)) == 0, "%s", err.text);
    }
    wg_text many[24];
    for (int i = 0; i < 24; i++) many[i] = i % 2 ? (wg_text){ "each", 4 } : (wg_text){ "digits", 6 };
    cr_expect_eq(wg_pretok_open(&p, "FILE", "KEY", many, 24, &err), WG_EUNSUPPORTED);
    cr_expect_str_eq(err.text, "FILE: KEY has more than 10 steps that cut, which is not implemented");
    cr_assert_eq(wg_mem_read().live_blocks, 0);
}

Test(pretok, names)
{
    char list[1024], small[16];
    cr_assert_eq(wg_pretok_row_named("gpt-2", 5), wg_pretok_row_named("mpt", 3));
    cr_assert_eq(wg_pretok_row_named("llama-bpe", 9), wg_pretok_row_named("llama3", 6));
    cr_assert_neq(wg_pretok_row_named("llama3", 6), wg_pretok_row_named("qwen2", 5));
    cr_assert(wg_pretok_row_named("llama3", 6)->whole_words && !wg_pretok_row_named("gpt-2", 5)->whole_words);
    static const char *const unknown[] = { "", "default", "gpt", "gpt-2 mpt", "gpt-22", "GPT-2", " " };
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        cr_assert_null(wg_pretok_row_named(unknown[i], strlen(unknown[i])), "%s", unknown[i]);
    wg_pretok_list(list, sizeof list);
    cr_assert(strstr(list, "gpt-2, gpt2, phi-2") == list && strstr(list, "falcon"), "%s", list);
    cr_assert(strlen(list) + 1 < sizeof list, "the list is cut short in messages");
    cr_assert(strlen(wg_pretok_list(small, sizeof small)) < sizeof small);
}
