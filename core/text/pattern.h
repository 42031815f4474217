/* SPDX-License-Identifier: MIT
 * The part of regular expressions that published pre-tokenisers use, compiled to a small program and matched in linear time.
 *
 * Syntax (that of Oniguruma, as the library `tokenizers` reads it): characters, sets ([...], [^...], ranges, \s \d \w \S \D \W,
 * \p{L} \p{Lu} ... \P{...}), alternatives, groups (...) (?:...) (?i:...), the quantifiers ? * + {m} {m,n} {m,} behind one
 * character or set, greedy or possessive, ? behind a group; behind a white-space loop (?!\S) and $. All else is refused.
 *
 * Time. A matcher searches one text from left to right. No failed state is entered twice from one place: for each unbounded
 * loop the matcher remembers the present run of characters and the ends of this run that have failed. So all attempts together
 * read each byte a constant number of times, whatever the text. */
#ifndef WG_CORE_TEXT_PATTERN_H
#define WG_CORE_TEXT_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/file/weights.h"

enum { WG_PATTERN_CODE = 160, WG_PATTERN_SETS = 64, WG_PATTERN_RANGES = 512, WG_PATTERN_LOOPS = 24 };

typedef struct wg_charset {
    uint64_t ascii[2];           /* which characters below 128, complete */
    uint32_t categories;         /* of other characters: bits by wg_category */
    uint16_t range, ranges;      /* further ones: range[range .. range + ranges) of the pattern */
    uint16_t exception, without; /* exceptions from the categories: range[exception .. exception + without) */
    bool negated;                /* all of this holds for characters from 128 on that are not meant */
} wg_charset;

typedef enum wg_pattern_op {
    WG_PATTERN_SET,
    WG_PATTERN_LOOP,
    WG_PATTERN_SPLIT,
    WG_PATTERN_JUMP,
    WG_PATTERN_LOOK,
    WG_PATTERN_LINE_END,
    WG_PATTERN_MATCH
} wg_pattern_op;

typedef struct wg_pattern_code {
    uint8_t op, set, loop; /* loop: number of an unbounded one */
    bool possessive;
    uint16_t min, max;  /* of a loop; max 0: unbounded */
    uint16_t to, other; /* of a jump; of a split: tried first, and then */
    uint64_t first[2];  /* of a split: characters below 128 with which its first branch can begin */
} wg_pattern_code;

typedef struct wg_pattern {
    wg_pattern_code code[WG_PATTERN_CODE];
    wg_charset set[WG_PATTERN_SETS];
    uint32_t range[WG_PATTERN_RANGES][2];
    int n, sets, ranges, loops;
} wg_pattern;

/* Compiles n bytes. NULL: success; else what is not implemented, at byte *at of the expression. */
const char *wg_pattern_compile(wg_pattern *p, const char *regex, size_t n, size_t *at);
/* EUNSUPPORTED: "PATH: KEY: the expression REGEX has at byte AT WHY, which is not implemented". */
wg_status wg_pattern_refuse(const char *path, const char *key, wg_text regex, const char *why, size_t at, wg_error *err);
/* Whether the empty text is a match. */
bool wg_pattern_matches_nothing(const wg_pattern *p);
/* A literal text, and the sets of the library's steps Digits and Punctuation (`each`: single characters, else runs). */
const char *wg_pattern_literal(wg_pattern *p, const char *s, size_t n);
void wg_pattern_digits(wg_pattern *p, bool each);
void wg_pattern_punctuation(wg_pattern *p);

typedef struct wg_matcher {
    const wg_pattern *p;
    const char *s;
    size_t end;            /* the text is s[0..end) as far as the pattern can see */
    const uint16_t *chars; /* NULL, or the character that each byte stands for */
    size_t reach;          /* 1 + the farthest byte inspected; end + 1: the end of the text was inspected */
    uint64_t steps;        /* characters inspected */
    struct {
        size_t lo, hi, failed; /* a run [lo, hi) of the loop's set; leaving it at failed .. hi has failed; lo > hi: none */
    } run[WG_PATTERN_LOOPS];
} wg_matcher;

/* Another text begins; `reach` and `steps` stay. */
void wg_matcher_text(wg_matcher *m, const char *s, size_t end);
/* The end of the match that begins at `at`; `at` itself when there is none. Ask in ascending order of `at`. */
size_t wg_matcher_at(wg_matcher *m, size_t at);
/* The length of the character at `at` < end. */
size_t wg_matcher_step(const wg_matcher *m, size_t at);

#endif
