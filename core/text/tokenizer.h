/* SPDX-License-Identifier: MIT
 * Text to token ids and back, from the metadata of a weights file. Three kinds: SPM-style BPE ("llama": merge the pair with the
 * best score, spaces as U+2581, byte fallback), byte-level BPE ("gpt2": pre-tokeniser, byte map, ranked merges) and Unigram
 * ("t5": the best sum of scores). */
#ifndef WG_CORE_TEXT_TOKENIZER_H
#define WG_CORE_TEXT_TOKENIZER_H

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/file/weights.h"
#include "core/text/merge.h"

typedef struct wg_tokenizer wg_tokenizer; /* read-only after open; may be shared between threads */

/* Reads tokenizer.ggml.* of a file and keeps its own copy. Errors: EMODEL (missing or inconsistent keys, with the key),
 * EUNSUPPORTED (a kind or pre-tokeniser that is not implemented: what there is instead). */
wg_status wg_tokenizer_open(wg_tokenizer **out, const wg_weights *w, wg_error *err);
void wg_tokenizer_close(wg_tokenizer *t); /* NULL is fine */

const char *wg_tokenizer_kind(const wg_tokenizer *t); /* "llama", "gpt2" or "t5" */
int wg_tokenizer_size(const wg_tokenizer *t);
int wg_tokenizer_bos(const wg_tokenizer *t); /* -1: none */
int wg_tokenizer_eos(const wg_tokenizer *t); /* -1: none */
bool wg_tokenizer_add_bos(const wg_tokenizer *t);
bool wg_tokenizer_is_eog(const wg_tokenizer *t, int32_t id); /* eos, eot, eom and the well-known end strings */
bool wg_tokenizer_is_control(const wg_tokenizer *t, int32_t id);
bool wg_tokenizer_is_unknown(const wg_tokenizer *t, int32_t id); /* stands for text without a token; it is control too */

/* Bytes that hold any token's text together with what a stream may hold back: the least size of the buffer of wg_stream_put. */
size_t wg_tokenizer_room(const wg_tokenizer *t);

/* The token as stored in the vocabulary (byte-mapped or with U+2581), for people. */
wg_text wg_tokenizer_piece(const wg_tokenizer *t, int32_t id);

/* The meaning of the ids: SHA-256 over the kind, the special ids and all pieces, in hex. Files made for a vocabulary carry
 * it. */
void wg_tokenizer_digest(const wg_tokenizer *t, char hex[WG_SHA256_HEX]);

/* Encodes n bytes (any bytes; invalid UTF-8 is encoded byte by byte). `special`: texts of control tokens become these
 * tokens; otherwise they are plain text. With `bos` the tokens that the file puts before and after a text are added. *ids is
 * allocated (wg_free); *n_ids may be 0. Cost O(n log n). Errors: ENOMEM, EINVAL (n > 256 MB). */
wg_status wg_tokenizer_encode(const wg_tokenizer *t, const char *text, size_t n, bool bos, bool special, int32_t **ids,
                              size_t *n_ids, wg_error *err);

/* A special token in a text s, and the part that it stands for: s[from..end), which is its own text and the white space that it
 * takes with it (lstrip, rstrip). */
typedef struct wg_special_place {
    int32_t id;
    size_t from, end;
} wg_special_place;

/* The longest special token whose text begins at s[at] and ends at s[to] at the latest: the length of its text (0: none). What
 * stands before s[begin] is not taken. Without `special` only user-defined ones. */
size_t wg_tokenizer_special(const wg_tokenizer *t, wg_text s, size_t begin, size_t at, size_t to, bool special,
                            wg_special_place *out);

/* Encoding a text in parts. A cut is an offset such that the parts before and after it, encoded separately, have the ids of
 * the whole, for any later text. wg_tokenizer_cut returns the last one that is found in n bytes; 0: none. encode_part
 * appends the ids of a part (control tokens are plain text) with working memory of the caller; `begins`: the part begins the
 * text. It allocates nothing if ids, and the symbols and the text of the merger, have room for WG_PART_ROOM(n), but for a
 * normaliser's working memory, which grows to the longest part. ENOMEM. */
#define WG_PART_ROOM(n) (4 * (n) + 4)
size_t wg_tokenizer_cut(const wg_tokenizer *t, const char *text, size_t n);
wg_status wg_tokenizer_encode_part(const wg_tokenizer *t, const char *text, size_t n, bool begins, wg_merger *m, wg_ids *ids,
                                   wg_error *err);

/* The bytes of one token: writes at most `size`, returns the full length. Control tokens give nothing unless `special`.
 * For "llama" files with a prefix space, `first` drops one leading space (the first token of a text). */
size_t wg_tokenizer_decode_one(const wg_tokenizer *t, int32_t id, bool first, bool special, char *out, size_t size);

/* A whole text; *out is allocated (wg_free) and NUL-terminated, *n its length. */
wg_status wg_tokenizer_decode(const wg_tokenizer *t, const int32_t *ids, size_t n_ids, bool special, char **out, size_t *n,
                              wg_error *err);

/* Streaming: feed tokens one at a time and print the returned bytes; an incomplete UTF-8 sequence is held back until it is
 * complete (an invalid one passes unchanged). */
typedef struct wg_stream {
    char held[8];
    int n_held;
    bool started;
} wg_stream; /* zero-initialise */
/* Writes the printable bytes for `id` to out and returns how many; size is at least wg_tokenizer_room. */
size_t wg_stream_put(wg_stream *s, const wg_tokenizer *t, int32_t id, char *out, size_t size);
size_t wg_stream_end(wg_stream *s, char *out, size_t size); /* the bytes still held */

/* Whether the ids of the two are interchangeable: sizes, bos/eos and texts are compared. EVOCAB lists the first ten
 * differing ids with both strings; a target that only has extra padded rows at the end passes. */
wg_status wg_tokenizer_same(const wg_tokenizer *target, const wg_tokenizer *draft, const char *target_name,
                            const char *draft_name, wg_error *err);

#endif
