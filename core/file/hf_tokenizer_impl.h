/* SPDX-License-Identifier: MIT
 * What is read from a tokenizer.json. Private to core/file. */
#ifndef WG_CORE_FILE_HF_TOKENIZER_IMPL_H
#define WG_CORE_FILE_HF_TOKENIZER_IMPL_H

#include "core/file/hf.h"

enum { WG_HF_NORMAL = 1, WG_HF_UNKNOWN, WG_HF_CONTROL, WG_HF_USER, WG_HF_UNUSED, WG_HF_BYTE }; /* tokenizer.ggml.token_type */
enum { WG_HF_WORDS = 48, WG_HF_AROUND = 8 };

#define WG_HF_PAD "[PAD%d]"                          /* the text of an id without a token */
extern const char *const wg_hf_end_keys[WG_HF_ENDS]; /* of the tokens that end a text */
/* Normalisers without parameters: as tokenizer.json and the list of words call them. */
enum { WG_HF_PLAIN_NORMALIZERS = 7 };
extern const char *const wg_hf_plain_normalizers[WG_HF_PLAIN_NORMALIZERS][2];
/* The name in tokenizer.json of a behaviour in a list of words; NULL: it is none. */
const char *wg_hf_behavior_title(wg_text word);

#define WG_HF_SPACE "\xe2\x96\x81" /* U+2581 */

typedef struct wg_hf_words {
    wg_text word[WG_HF_WORDS];
    size_t n;
} wg_hf_words;

typedef struct wg_hf_tokenizer_reader {
    const json_t *root, *model, *vocab;
    const char *path;
    int rows; /* of the embedding */
    int n;    /* tokens: at least as many, and WG_HF_BEYOND more while they are read */
    bool spm, unigram, prefix_space, split_spaces, prepends, replaces;
    const char *metaspace;   /* when a prefix is put before a text, "always" or "first"; NULL: not by Metaspace */
    wg_hf_words normal, pre; /* steps (core/file/pretok_rows.h, core/text/normal.h) */
    int32_t before[WG_HF_AROUND], after[WG_HF_AROUND]; /* put around a text */
    size_t befores, afters;
    wg_text map;    /* of Precompiled, owned */
    wg_text *text;  /* (n) of each token; s NULL: none has this id */
    int32_t *type;  /* (n) */
    int32_t *flags; /* (n) of added tokens */
    float *score;   /* (n) */
    double *log;    /* (n) scores of Unigram */
    wg_text *merge; /* (merges) "left right" */
    char *bytes;    /* what merges and unused tokens are written to */
    size_t merges;
    wg_error *err;
} wg_hf_tokenizer_reader;

wg_status wg_hf_refuse_step(const wg_hf_tokenizer_reader *r, const char *what, const json_t *v);
wg_status wg_hf_malformed(const wg_hf_tokenizer_reader *r, const char *what, const char *expected);

/* Reads all but the tokens: the kind, its normaliser, pre-tokeniser, decoder and template. EUNSUPPORTED: a step, by name. */
wg_status wg_hf_pipeline(wg_hf_tokenizer_reader *r);

#endif
