/* SPDX-License-Identifier: MIT
 * Tiny tokenizers of both kinds as GGUF bytes in memory, written here key by key so that a test can leave a key out, give
 * it another type, shorten an array or put a bad entry in. No file, no model, no shared data. */
#ifndef WG_TESTS_UNIT_TEXT_TINY_H
#define WG_TESTS_UNIT_TEXT_TINY_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/text/tokenizer.h"

enum { TINY_LONGEST = 1 << 14, TINY_BYTES = 1 << 16, TINY_TOKENS = 512, TINY_NAME = 64 };

typedef struct tiny {
    /* what to spoil, by the last part of the key; NULL: nothing */
    const char *skip, *retype, *shorten;
    /* what to vary */
    const char *model, *pre, *merge; /* merge: one more at the end */
    bool with_inner_space, with_doubles, with_prefix_key;
    int no_score_at;             /* 0: no; scores[i] = NaN */
    bool huge_types;             /* token_type beyond any number of ours */
    const char *word;            /* one more at the end, of any length */
    int bad_type_at, drop_byte;  /* 0: no; token_type[i] = 9; a byte without a token (gpt2), spelled wrong (llama) */
    int64_t eos;                 /* 0: the usual one */
    int more;                    /* padded rows at the end */
    const char *const *controls; /* control tokens behind everything, up to a NULL; NULL: none */

    unsigned char b[TINY_BYTES];
    size_t n;
    uint64_t keys;

    char name[TINY_TOKENS][TINY_NAME];
    wg_text text[TINY_TOKENS];
    float score[TINY_TOKENS];
    int32_t type[TINY_TOKENS];
    int tokens;
} tiny;

enum { GGUF_U32 = 4, GGUF_I32 = 5, GGUF_F32 = 6, GGUF_BOOL = 7, GGUF_STRING = 8, GGUF_ARRAY = 9, GGUF_U64 = 10 };

static inline void tiny_put(tiny *t, const void *p, size_t n)
{
    wg_assert(t->n + n <= TINY_BYTES);
    memcpy(t->b + t->n, p, n);
    t->n += n;
}
static inline void tiny_u32(tiny *t, uint32_t v) { tiny_put(t, &v, sizeof v); }
static inline void tiny_u64(tiny *t, uint64_t v) { tiny_put(t, &v, sizeof v); }
static inline void tiny_text(tiny *t, const char *s, size_t n)
{
    tiny_u64(t, n);
    tiny_put(t, s, n);
}

static inline bool tiny_is(const char *key, const char *word) { return word && strcmp(key, word) == 0; }

/* Writes key and type; false when the key is to be left out or was written as something else. */
static inline bool tiny_key(tiny *t, const char *key, uint32_t type)
{
    char full[64];
    if (tiny_is(key, t->skip)) return false;
    const int n = snprintf(full, sizeof full, "tokenizer.ggml.%s", key);
    tiny_text(t, full, (size_t)n);
    t->keys++;
    if (!tiny_is(key, t->retype)) {
        tiny_u32(t, type);
        return true;
    }
    tiny_u32(t, type == GGUF_STRING ? GGUF_U32 : GGUF_STRING);
    if (type == GGUF_STRING) tiny_u32(t, 7);
    else tiny_text(t, "7", 1);
    return false;
}

static inline void tiny_string(tiny *t, const char *key, const char *s)
{
    if (tiny_key(t, key, GGUF_STRING)) tiny_text(t, s, strlen(s));
}
static inline void tiny_id(tiny *t, const char *key, int64_t id)
{
    if (tiny_key(t, key, GGUF_U32)) tiny_u32(t, (uint32_t)id);
}
static inline void tiny_bool(tiny *t, const char *key, bool v)
{
    const unsigned char byte = v;
    if (tiny_key(t, key, GGUF_BOOL)) tiny_put(t, &byte, 1);
}
static inline bool tiny_array(tiny *t, const char *key, uint32_t of, int *n)
{
    if (!tiny_key(t, key, GGUF_ARRAY)) return false;
    if (tiny_is(key, t->shorten)) *n -= 1;
    tiny_u32(t, of);
    tiny_u64(t, (uint64_t)*n);
    return true;
}

static inline int tiny_token_n(tiny *t, const char *s, size_t n, int type, float score)
{
    const int i = t->tokens++;
    wg_assert(i < TINY_TOKENS && n <= TINY_NAME);
    memcpy(t->name[i], s, n);
    t->text[i] = (wg_text){ t->name[i], n };
    t->type[i] = i > 0 && i == t->bad_type_at ? 9 : type;
    t->score[i] = i > 0 && i == t->no_score_at ? NAN : score;
    return i;
}
static inline int tiny_token(tiny *t, const char *s, int type, float score)
{
    return tiny_token_n(t, s, strlen(s), type, score);
}

static inline void tiny_begin(tiny *t, const char *kind)
{
    t->n = t->keys = 0;
    t->tokens = 0;
    tiny_put(t, "GGUF", 4);
    tiny_u32(t, 3);
    tiny_u64(t, 0); /* tensors */
    tiny_u64(t, 0); /* keys, patched at the end */
    tiny_string(t, "model", t->model ? t->model : kind);
}

static inline void tiny_finish(tiny *t, bool scores, int bos, int eos)
{
    for (int i = 0; i < t->more; i++) {
        char pad[16];
        snprintf(pad, sizeof pad, "[PAD%d]", t->tokens);
        tiny_token(t, pad, 5, 0);
    }
    for (int i = 0; t->controls && t->controls[i]; i++) tiny_token(t, t->controls[i], 3, 0);
    if (t->word) t->text[tiny_token(t, "", 1, -2000)] = (wg_text){ t->word, strlen(t->word) };
    int n = t->tokens;
    if (tiny_array(t, "tokens", GGUF_STRING, &n))
        for (int i = 0; i < n; i++) tiny_text(t, t->text[i].s, t->text[i].n);
    n = t->tokens;
    if (scores && tiny_array(t, "scores", GGUF_F32, &n)) tiny_put(t, t->score, (size_t)n * sizeof *t->score);
    n = t->tokens;
    if (t->huge_types && tiny_array(t, "token_type", GGUF_U64, &n))
        for (int i = 0; i < n; i++) tiny_u64(t, UINT64_MAX);
    else if (!t->huge_types && tiny_array(t, "token_type", GGUF_I32, &n)) tiny_put(t, t->type, (size_t)n * sizeof *t->type);
    tiny_id(t, "bos_token_id", bos);
    tiny_id(t, "eos_token_id", t->eos ? t->eos : eos);
    tiny_bool(t, "add_bos_token", true);
    memcpy(t->b + 16, &t->keys, sizeof t->keys);
}

#define SP "\xe2\x96\x81"

/* "llama": <unk> 0, <s> 1, </s> 2, bytes 3..258, then the words below; a later word has a lower score. */
static inline void tiny_spm(tiny *t)
{
    static const char *const words[] = {
        SP,       "h",         "e",  "l",   "o",    "w",    "r",     "d",        "a",  "\xc3\xa9", "\xe6\x88\x91",
        SP SP,    SP SP SP SP, "he", "ll",  "lo",   "hell", "hello", SP "hello", "or", "wor",      "ld",
        SP "wor", SP "world",  "aa", "aaa", SP "a", "s>"
    };
    tiny_begin(t, "llama");
    tiny_token(t, "<unk>", 2, 0);
    tiny_token(t, "<s>", 3, 0);
    tiny_token(t, "</s>", 3, 0);
    for (int b = 0; b < 256; b++) {
        char name[8];
        snprintf(name, sizeof name, t->drop_byte && b == t->drop_byte ? "<%02X>" : "<0x%02X>", b);
        tiny_token(t, name, 6, 0);
    }
    if (t->with_doubles) tiny_token(t, "h", 5, 0); /* an unused one: the word comes later */
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) tiny_token(t, words[i], 1, 20.0f - (float)i);
    tiny_token(t, "<tool>", 4, 0);
    tiny_token(t, "<tool>>", 4, 0);
    tiny_token(t, "<|im_end|>", 1, 0); /* a converter's slip: the end of a turn typed as a word */
    if (t->with_inner_space) tiny_token(t, "h" SP, 1, -1000);
    if (t->with_doubles) tiny_token(t, "<tool>", 4, 0);
    tiny_id(t, "unknown_token_id", 0);
    if (t->with_prefix_key) tiny_bool(t, "add_space_prefix", false);
    tiny_finish(t, true, 1, 2);
}

/* The text of a byte in byte-level BPE, from the definition: what prints stands for itself, the rest follow from U+0100. */
static inline size_t tiny_byte_text(int b, char out[4])
{
    int c = 0x100;
    for (int i = 0; i <= b; i++) {
        const bool prints = (i > 32 && i < 127) || (i > 160 && i != 173);
        if (i == b && prints) c = b;
        else if (i < b && !prints) c++;
    }
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    out[0] = (char)(0xc0 | c >> 6);
    out[1] = (char)(0x80 | (c & 0x3f));
    return 2;
}

#define GS "\xc4\xa0" /* U+0120: a space */

static const char *const tiny_merges[] = { "h e",
                                           "l l",
                                           "l o",
                                           "he ll",
                                           "hell o",
                                           GS " hello",
                                           "o r",
                                           "w or",
                                           "l d",
                                           "wor ld",
                                           GS " world",
                                           "1 2",
                                           "a a",
                                           "aa a",
                                           "aa aa",
                                           "\xc3\x83 \xc2\xa9",
                                           "\xc4\x8a \xc4\x8a",
                                           GS " " GS };
enum { TINY_MERGES = sizeof tiny_merges / sizeof *tiny_merges };

/* "gpt2": bytes 0..255, one token for each merge, xyz (no merge leads there), <|endoftext|>, <tool>. */
static inline void tiny_bpe(tiny *t)
{
    tiny_begin(t, "gpt2");
    tiny_string(t, "pre", t->pre ? t->pre : "gpt-2");
    for (int b = 0; b < 256; b++) {
        char text[4];
        const size_t len = tiny_byte_text(b, text);
        if (t->drop_byte && b == t->drop_byte) tiny_token(t, "[gone]", 1, 0);
        else tiny_token_n(t, text, len, 1, 0);
    }
    for (int i = 0; i < TINY_MERGES; i++) {
        char whole[TINY_NAME];
        const size_t left = strcspn(tiny_merges[i], " ");
        snprintf(whole, sizeof whole, "%.*s%s", (int)left, tiny_merges[i], tiny_merges[i] + left + 1);
        tiny_token(t, whole, 1, 0);
    }
    tiny_token(t, "xyz", 1, 0);
    const int end = tiny_token(t, "<|endoftext|>", 3, 0);
    tiny_token(t, "<tool>", 4, 0);
    int n = TINY_MERGES + (t->merge ? 1 : 0);
    if (tiny_array(t, "merges", GGUF_STRING, &n))
        for (int i = 0; i < n; i++) {
            const char *m = i < TINY_MERGES ? tiny_merges[i] : t->merge;
            tiny_text(t, m, strlen(m));
        }
    tiny_finish(t, false, end, end);
}

/* Opens what was built; the tokenizer keeps its own copy, so the bytes and the file are given back at once. */
static inline wg_status tiny_open(tiny *t, wg_tokenizer **out, wg_error *err)
{
    wg_weights *w = NULL;
    WG_TRY(wg_weights_open_memory(&w, "tiny.gguf", t->b, t->n, err));
    const wg_status s = wg_tokenizer_open(out, w, err);
    wg_weights_close(w);
    memset(t->b, 0xee, t->n);
    return s;
}

/* A small generator for tests: xorshift64*. */
static inline uint32_t tiny_random(uint64_t *s)
{
    *s ^= *s >> 12;
    *s ^= *s << 25;
    *s ^= *s >> 27;
    return (uint32_t)(*s * 0x2545f4914f6cdd1dull >> 32);
}

#endif
