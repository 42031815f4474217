/* SPDX-License-Identifier: MIT
 * Pre-tokenisation: text is cut into the words inside which pairs may merge. A pre-tokeniser is a list of steps
 * (core/file/pretok_rows.h), each of which cuts the pieces of the step before. */
#ifndef WG_CORE_TEXT_PRETOK_H
#define WG_CORE_TEXT_PRETOK_H

#include "core/file/pretok_rows.h"
#include "core/text/pattern.h"

enum { WG_PRETOK_STEPS = 10 };

typedef enum wg_behavior {
    WG_ISOLATED,
    WG_REMOVED,
    WG_CONTIGUOUS,
    WG_MERGED_WITH_PREVIOUS,
    WG_MERGED_WITH_NEXT
} wg_behavior; /* treatment of a match */

typedef struct wg_pretok_step {
    wg_pattern pattern;
    wg_behavior behavior;
    bool inverted, on_bytes; /* matches and gaps change places; the step sees bytes as the characters they are stored as */
} wg_pretok_step;

typedef struct wg_pretok {
    int steps;
    bool prefix_space, whole_words, add_bos;
    uint16_t chars[256]; /* the byte map: printable Latin-1 bytes map to themselves, the other 68 in order to U+0100 and up */
    wg_pretok_step step[];
} wg_pretok;

/* The steps of a row, or of n words. `path` and `key` are for messages. *out is to be freed with wg_free. Errors: EUNSUPPORTED
 * (a step or a part of an expression, by name), EMODEL (not a list of steps), ENOMEM. */
wg_status wg_pretok_open(wg_pretok **out, const char *path, const char *key, const wg_text *word, size_t n, wg_error *err);
wg_status wg_pretok_open_row(wg_pretok **out, const wg_pretok_row *row, wg_error *err);

void wg_byte_chars(uint16_t chars[256]);

typedef struct wg_piece {
    size_t at, end;
    bool match;
} wg_piece;

typedef struct wg_split_level {
    wg_matcher m;
    wg_piece next;           /* the next match or gap, of which pieces are made; at == end: unknown */
    size_t at, end;          /* rest of the piece of the level above */
    size_t found, found_end; /* the next match; found < at: unknown */
    size_t sure;             /* text before it is cut finally, whatever follows */
} wg_split_level;

typedef struct wg_splitter {
    const wg_pretok *p;
    const char *s;
    size_t n;
    wg_split_level level[WG_PRETOK_STEPS];
} wg_splitter;

void wg_splitter_begin(wg_splitter *x, const wg_pretok *p, const char *s, size_t n);
/* Gets the next piece; false: none is left. Pieces ascend; removed text is in none. */
bool wg_splitter_next(wg_splitter *x, wg_piece *out);
uint64_t wg_splitter_steps(const wg_splitter *x); /* characters inspected */

/* The last offset in n bytes of text before which pieces do not depend on what follows, and behind which they do not depend on
 * what stands before; 0: none is found. */
size_t wg_pretok_cut(const wg_pretok *p, const char *s, size_t n);

#endif
