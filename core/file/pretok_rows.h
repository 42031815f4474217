/* SPDX-License-Identifier: MIT
 * Pre-tokenisers by name: the values of tokenizer.ggml.pre and the steps that each means.
 *
 * Steps are a flat list of words, as in the key tokenizer.wager.pre of files whose pre-tokeniser has no name:
 *   split BEHAVIOR REGEX, split_not BEHAVIOR REGEX    matches of an expression (not: what is between them) become pieces
 *   text BEHAVIOR LITERAL                             the same of a literal text
 *   digits each, digits runs                          numbers, one by one or as runs, isolated
 *   punctuation BEHAVIOR                              punctuation characters
 *   prefix_space                                      a text that does not begin with a space gets one
 *   bytes                                             later steps see each byte as the character it is stored as
 * BEHAVIOR: isolated, removed, contiguous, merged_with_previous, merged_with_next. */
#ifndef WG_CORE_FILE_PRETOK_ROWS_H
#define WG_CORE_FILE_PRETOK_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/file/weights.h"

#define WG_PRETOK_KEY "tokenizer.wager.pre"
#define WG_PRETOK_GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

enum { WG_PRETOK_WORDS = 32 };

typedef struct wg_pretok_row {
    const char *names;                  /* values of tokenizer.ggml.pre, separated by spaces; the first is the family's own */
    const char *words[WG_PRETOK_WORDS]; /* the steps, ended by NULL */
    bool whole_words;                   /* a word that is a token itself is not merged from its bytes ("ignore_merges") */
    bool add_bos;                       /* what a missing add_bos_token means */
} wg_pretok_row;

/* The row that carries this name, or NULL. */
const wg_pretok_row *wg_pretok_row_named(const char *name, size_t n);
/* The row of these steps, or NULL. */
const wg_pretok_row *wg_pretok_row_of(const wg_text *word, size_t n, bool whole_words);
/* The length of the row's first name. */
size_t wg_pretok_row_name(const wg_pretok_row *row);
/* All names, separated by ", "; writes into buf. */
const char *wg_pretok_list(char *buf, size_t size);

#endif
