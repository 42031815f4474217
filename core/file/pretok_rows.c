/* SPDX-License-Identifier: MIT
 * The rows of pretok_rows.h. Expressions are those of the published tokenizer.json files; a range's ends are written as code
 * points where a normal form would change them. */
#include "core/file/pretok_rows.h"

#include <stdio.h>
#include <string.h>

#define ISOLATED "split", "isolated"
#define CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LINES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LLAMA3(numbers) CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" LINES
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASES(end, numbers)                                                                                                    \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" end "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" end "|" numbers             \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" LINES
#define QWEN35 CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES
#define SEED CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define DEEPSEEK3                                                                                                              \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "                      \
    "?[\\p{P}\\p{S}]+[\\r\\n]*|" LINES
/* Letters with case as of an older version of Unicode, as DeepSeek LLM lists them. */
#define CASED                                                                                                                  \
    "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376"       \
    "\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556"      \
    "\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15"    \
    "\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe"      \
    "\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113"     \
    "\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184"        \
    "\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e"     \
    "\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3"              \
    "\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943]+"
#define CJK "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"

/* clang-format off */
static const wg_pretok_row rows[] = {
    { .names = "gpt-2 gpt2 phi-2 mpt olmo jais gpt-neox trillion granite-docling exaone4",
      .words = { ISOLATED, WG_PRETOK_GPT2 } },
    { .names = "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2",
      .words = { ISOLATED, LLAMA3("\\p{N}{1,3}") }, .whole_words = true, .add_bos = true },
    { .names = "dbrx smaug-bpe chatglm-bpe glm4", .words = { ISOLATED, LLAMA3("\\p{N}{1,3}") } },
    { .names = "qwen2 deepseek-r1-qwen stablelm2 hunyuan megrez", .words = { ISOLATED, LLAMA3("\\p{N}") } },
    { .names = "seed-coder", .words = { ISOLATED, SEED } },
    { .names = "qwen35", .words = { ISOLATED, QWEN35 } },
    { .names = "starcoder smollm refact command-r codeshell exaone minerva-7b",
      .words = { "digits", "each", ISOLATED, WG_PRETOK_GPT2 } },
    { .names = "tekken", .words = { ISOLATED, CASES("", "\\p{N}") }, .whole_words = true, .add_bos = true },
    { .names = "gpt-4o llama4", .words = { ISOLATED, CASES(CONTRACTION "?", "\\p{N}{1,3}") } },
    { .names = "deepseek-llm",
      .words = { ISOLATED, "[\r\n]", ISOLATED, CASED, ISOLATED,
                 "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", ISOLATED, "\\s+$", ISOLATED, CJK,
                 "digits", "each" } },
    { .names = "deepseek-coder",
      .words = { ISOLATED, "[\r\n]", ISOLATED, "\\s?\\p{L}+", ISOLATED, "\\s?\\p{P}+", ISOLATED, CJK, "digits", "each" } },
    { .names = "deepseek-v3 hunyuan-dense",
      .words = { ISOLATED, "\\p{N}{1,3}", ISOLATED, "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", ISOLATED, DEEPSEEK3 } },
    { .names = "falcon",
      .words = { "punctuation", "contiguous", ISOLATED, WG_PRETOK_GPT2, "bytes", "digits", "runs", ISOLATED,
                 "[0-9][0-9][0-9]" } },
};
/* clang-format on */

enum { ROWS = sizeof rows / sizeof *rows };

/* The length of the next name in a list, *s moved to its beginning; 0 at the end. */
static size_t next_name(const char **s)
{
    *s += strspn(*s, " ");
    return strcspn(*s, " ");
}

const wg_pretok_row *wg_pretok_row_named(const char *name, size_t n)
{
    for (int i = 0; i < ROWS; i++) {
        const char *s = rows[i].names;
        for (size_t len; (len = next_name(&s)) > 0; s += len)
            if (len == n && memcmp(s, name, n) == 0) return &rows[i];
    }
    return NULL;
}

const wg_pretok_row *wg_pretok_row_of(const wg_text *word, size_t n, bool whole_words)
{
    for (int i = 0; i < ROWS; i++) {
        size_t k = 0;
        const char *const *of = rows[i].words;
        while (k < n && of[k] && wg_text_is(word[k], of[k])) k++;
        if (k == n && !of[k] && rows[i].whole_words == whole_words) return &rows[i];
    }
    return NULL;
}

size_t wg_pretok_row_name(const wg_pretok_row *row) { return strcspn(row->names, " "); }

const char *wg_pretok_list(char *buf, size_t size)
{
    size_t at = 0;
    if (size > 0) buf[0] = '\0';
    for (int i = 0; i < ROWS; i++) {
        const char *s = rows[i].names;
        for (size_t len; (len = next_name(&s)) > 0 && at < size; s += len)
            at += (size_t)snprintf(buf + at, size - at, "%s%.*s", at ? ", " : "", (int)len, s);
    }
    return buf;
}
