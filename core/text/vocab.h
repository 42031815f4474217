/* SPDX-License-Identifier: MIT
 * The vocabulary of a file: texts, types and scores of its tokens, the map from a text to an id, and the tokens that are
 * found in raw text before any splitting. All arrays lie in one block of memory that the caller provides. */
#ifndef WG_CORE_TEXT_VOCAB_H
#define WG_CORE_TEXT_VOCAB_H

#include "core/base/error.h"
#include "core/file/weights.h"

/* tokenizer.ggml.token_type */
typedef enum wg_token_type {
    WG_TOKEN_NORMAL = 1,
    WG_TOKEN_UNKNOWN,
    WG_TOKEN_CONTROL,
    WG_TOKEN_USER,
    WG_TOKEN_UNUSED,
    WG_TOKEN_BYTE
} wg_token_type;

enum {
    WG_VOCAB_MAX = 1 << 24 /* tokens, and merges */
};

/* tokenizer.wager.added, for each token: what an added token takes with it, and where it is found */
enum { WG_ADDED_LSTRIP = 1, WG_ADDED_RSTRIP = 2, WG_ADDED_SINGLE_WORD = 4, WG_ADDED_NORMALIZED = 8 };
#define WG_ADDED_KEY "tokenizer.wager.added"

/* Kinds of special tokens: user-defined or another; found in the text as it is or in its normal form. */
enum { WG_FIND_USER = 1, WG_FIND_CONTROL = 2, WG_FIND_NORMAL_USER = 4, WG_FIND_NORMAL_CONTROL = 8 };

typedef struct wg_special {
    wg_text text;
    int32_t id;
    uint8_t kind, flags;
} wg_special;
typedef struct wg_slot {
    uint32_t tag;
    int32_t next;
} wg_slot; /* next: id + 1, 0 when empty */

typedef struct wg_vocab {
    int n;
    wg_text *text;     /* (n) */
    uint8_t *type;     /* (n) wg_token_type */
    float *score;      /* (n), NULL for kinds without scores */
    int32_t byte[256]; /* the token of a single byte, -1: none */
    int32_t unknown;   /* -1: none */
    size_t longest;    /* bytes of the longest text that a word can become */

    wg_slot *slot;             /* (slots) open addressing by the hash of the text; slots is a power of two */
    wg_special *special;       /* (specials) control, unknown and user-defined tokens in byte order */
    unsigned char begins[256]; /* which bytes begin one, of which kinds */
    char *bytes;               /* (text_bytes) the texts */
    size_t slots, specials, text_bytes;
    bool has_types, has_scores, has_added;
    unsigned flags, kinds; /* of all special tokens together */
} wg_vocab;

/* Takes n * size bytes, aligned to 16, from a block whose first *used bytes are taken. base NULL: only counts. */
void *wg_carve(char *base, size_t *used, size_t n, size_t size);

/* Opening is in three steps: check and count, carve (twice: to measure, then to place), fill. Errors: EMODEL. */
wg_status wg_vocab_count(wg_vocab *v, const wg_weights *w, bool with_scores, wg_error *err);
void wg_vocab_carve(wg_vocab *v, char *base, size_t *used);
wg_status wg_vocab_fill(wg_vocab *v, const wg_weights *w, wg_error *err);

/* Of SPM: every byte needs a token, or the file an unknown token. Called when `byte` is filled. */
wg_status wg_vocab_check_bytes(const wg_vocab *v, const wg_weights *w, wg_error *err);

/* The token with this text, or -1. Of several, the one that a word can become (normal, user-defined), then the lowest id. */
int32_t wg_vocab_find(const wg_vocab *v, const char *s, size_t n);

/* Whether a word can become this token. */
static inline bool wg_vocab_plain(const wg_vocab *v, int32_t id)
{
    return v->type[id] == WG_TOKEN_NORMAL || v->type[id] == WG_TOKEN_USER;
}

/* The longest special token of some kinds that s begins with, or NULL. */
const wg_special *wg_vocab_special(const wg_vocab *v, const char *s, size_t n, unsigned kinds);

/* Whether this is one of the texts that end a turn in known models ("<|im_end|>", ...). */
bool wg_vocab_is_end_text(wg_text t);

/* A token's text for a message: in quotes, unprintable bytes as \xNN, cut to fit. Writes into buf, returns it. */
const char *wg_vocab_quote(wg_text t, char *buf, size_t size);

#endif
