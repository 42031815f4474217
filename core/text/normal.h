/* SPDX-License-Identifier: MIT
 * Normalisers: changes of text before it is cut into words. A normaliser is a list of steps, as in the key
 * tokenizer.wager.normalizer:
 *   nfc, nfd, nfkc, nfkd     normal forms, with the data of Unicode 9.0, as in the library `tokenizers`
 *   lowercase                each character by itself
 *   strip_accents            combining marks are taken out; letters that hold one stay (nfd comes first)
 *   nmt                      control characters are taken out, other white space becomes a space (SentencePiece's "nmt")
 *   replace FROM TO          every FROM, from left to right
 *   replace_regex REGEX TO   every match of an expression (pattern.h)
 *   prepend TEXT             in front of a text that is not empty
 *   strip left|right|both    white space at the ends
 *   charsmap MAP             the map of characters of a SentencePiece model: the longest piece at each place
 *   precompiled MAP          the same map as the library reads it: of a grapheme cluster of fewer than six bytes, else of each
 *                            character, the shortest piece at its beginning stands for all of it
 *   squeeze                  no spaces at the ends, one space where there are several
 * Bytes that are not UTF-8 stay as they are. Linear time, but O(n log n) in the length of a run of combining marks. */
#ifndef WG_CORE_TEXT_NORMAL_H
#define WG_CORE_TEXT_NORMAL_H

#include "core/base/error.h"
#include "core/file/weights.h"
#include "core/text/pattern.h"

#define WG_NORMALIZER_KEY "tokenizer.wager.normalizer"

enum { WG_NORMAL_STEPS = 16 };

typedef enum wg_normal_op {
    WG_NORMAL_NFC,
    WG_NORMAL_NFD,
    WG_NORMAL_NFKC,
    WG_NORMAL_NFKD,
    WG_NORMAL_LOWERCASE,
    WG_NORMAL_STRIP_ACCENTS,
    WG_NORMAL_NMT,
    WG_NORMAL_REPLACE,
    WG_NORMAL_REPLACE_REGEX,
    WG_NORMAL_PREPEND,
    WG_NORMAL_STRIP,
    WG_NORMAL_CHARSMAP,
    WG_NORMAL_PRECOMPILED,
    WG_NORMAL_SQUEEZE
} wg_normal_op;

/* The map of characters of a SentencePiece model ("precompiled_charsmap"; nmt_nfkc and others): a double-array trie (Aoe 1989)
 * from pieces of text to their replacements, of which the longest match counts. Layout: u32 bytes of the trie, its units of
 * u32, and the replacements, each ended by NUL. A unit's bits: 31 and 0..7 label, 8 whether a value follows, 9 and 10..30
 * offset. */
typedef struct wg_charsmap {
    const char *units; /* (count) of four bytes */
    size_t count;
    wg_text values;
} wg_charsmap;

typedef struct wg_normal_step {
    wg_normal_op op;
    wg_text a, b; /* words; not owned */
    bool left, right;
    wg_charsmap map;
    wg_pattern *pattern; /* NULL: none */
} wg_normal_step;

typedef struct wg_normalizer {
    int steps;
    wg_normal_step step[WG_NORMAL_STEPS];
} wg_normalizer;

/* Working memory; zero-initialise. Grows, and then is kept. */
typedef struct wg_normal_room {
    char *text[2];
    size_t capacity[2];
    size_t most;    /* bytes that a text may become; 0: as many as there are */
    uint32_t *mark; /* (2 * marks) */
    size_t marks;
} wg_normal_room;
void wg_normal_room_free(wg_normal_room *r);

/* The steps of n words, which must stay. Close it after an error too. Errors: EMODEL (not a list of steps), EUNSUPPORTED (a
 * part of an expression), ENOMEM. */
wg_status wg_normalizer_open(wg_normalizer *z, const char *path, const wg_text *word, size_t n, wg_error *err);
void wg_normalizer_close(wg_normalizer *z);

/* *out: the normal form of a text, in `r` or the text itself where nothing changes. It may be 1 MB and 64 times the text, so
 * that a hostile file cannot make any text fill the memory. Errors: ENOMEM, EUNSUPPORTED. */
wg_status wg_normalizer_apply(const wg_normalizer *z, wg_text text, wg_normal_room *r, wg_text *out, wg_error *err);

/* *out: `prefix` and the text behind it. ENOMEM. */
wg_status wg_normal_prepend(wg_text text, wg_text prefix, wg_normal_room *r, wg_text *out, wg_error *err);

/* The number of leading bytes of n that stay unchanged whatever follows; 0 if a step is not a normal form. */
size_t wg_normalizer_sure(const wg_normalizer *z, const char *s, size_t n);

#endif
