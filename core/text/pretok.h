/* SPDX-License-Identifier: MIT
 * The pre-tokenisers of byte-level BPE: they cut text into the words inside which pairs may merge. Each is published as a
 * regular expression; here one hand-written scanner reads them all from a row of flags. */
#ifndef WG_CORE_TEXT_PRETOK_H
#define WG_CORE_TEXT_PRETOK_H

#include <stdbool.h>
#include <stddef.h>

typedef struct wg_pretok {
    const char *names; /* the values of tokenizer.ggml.pre, separated by spaces; the first is the family's own */
    bool any_case;     /* contractions match in upper case too */
    bool prefix_any;   /* a word may begin with any one character but \r \n L N (else: with one U+0020) */
    int digits;        /* numbers per pre-token (0: all), without a leading space; -1: all, with a leading space */
    bool lines;        /* line ends stick to punctuation, and \s*[\r\n]+ is a token of its own */
    bool digits_first; /* numbers are cut out first, so that white space before one ends a piece of text */
    bool whole_words;  /* a pre-token that is a token itself is not merged from its bytes ("ignore_merges") */
    bool add_bos;      /* what a missing add_bos_token means */
} wg_pretok;

/* The row that carries this name, or NULL. */
const wg_pretok *wg_pretok_find(const char *name, size_t n);

/* All names, separated by ", "; writes into buf. */
const char *wg_pretok_list(char *buf, size_t size);

/* The length of the first pre-token of n bytes: 1..n, or 0 when n is 0. The patterns never look back, so cutting a text is
 * calling this until it is used up. Bytes that are not UTF-8 count as punctuation, each by itself. */
size_t wg_pretok_next(const wg_pretok *p, const char *s, size_t n);

#endif
