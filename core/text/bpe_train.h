/* SPDX-License-Identifier: MIT
 * Training of byte-level BPE: from texts to a vocabulary and its merges. It uses the pre-tokenisers and the byte map of bpe.h,
 * which reads its results.
 *
 * The words of all texts are counted. The pair of neighbours that is most frequent becomes a token, and so on until there are
 * as many tokens as asked for. Counts of pairs change only where words change; the pairs wait in a heap. Among equally frequent
 * pairs the one of the lower left id comes first, then of the lower right id, so that the result is a function of the texts
 * alone. These and the ids (special tokens, then the 256 bytes in the order of the characters that stand for them, then merges)
 * are those of the library `tokenizers` (BpeTrainer with the byte alphabet, each text as one sequence), and so are the merges.
 *
 * Memory: the words that differ, and 4 bytes for each place of a pair in them; the texts are read in parts. */
#ifndef WG_CORE_TEXT_BPE_TRAIN_H
#define WG_CORE_TEXT_BPE_TRAIN_H

#include "core/text/byte_strings.h"
#include "core/text/pretok.h"

typedef struct wg_bpe_merge {
    int32_t left, right, id;
} wg_bpe_merge;

typedef struct wg_bpe_trainer {
    const wg_pretok_row *row;
    wg_pretok *pretok;
    wg_byte_strings words;
    uint64_t bytes; /* of text read */
    int64_t read;   /* words of text, repetitions included */

    /* The result. */
    wg_byte_strings token; /* texts of the tokens: a byte is the character that stands for it (wg_byte_chars) */
    wg_bpe_merge *merge;   /* (merges) */
    size_t merges, specials;
} wg_bpe_trainer;

/* `row`: the pre-tokeniser. Errors: EUNSUPPORTED, ENOMEM. */
wg_status wg_bpe_trainer_open(wg_bpe_trainer *t, const wg_pretok_row *row, wg_error *err);
void wg_bpe_trainer_close(wg_bpe_trainer *t);

/* Counts the words of a text file, read in parts (a byte order mark is skipped). Errors: ENOENT, EIO, ENOMEM; EFORMAT: not
 * UTF-8 (at which byte). Words that were counted before an error stay. */
wg_status wg_bpe_trainer_read(wg_bpe_trainer *t, const char *path, wg_error *err);
/* The same of n bytes in memory; `name` for messages. */
wg_status wg_bpe_trainer_add(wg_bpe_trainer *t, const char *name, const char *text, size_t n, wg_error *err);

/* Makes `vocab` tokens, or fewer if no pair is left that occurs at least `least` times. `special` is borrowed. Errors: EINVAL
 * (no text; fewer tokens than bytes and special tokens), ENOMEM. */
wg_status wg_bpe_trainer_run(wg_bpe_trainer *t, size_t vocab, int64_t least, const wg_text *special, size_t specials,
                             wg_error *err);

/* Writes the result (save.h) as a tokenizer.json, or where the name ends in .gguf as a GGUF file of these keys alone, in which
 * the first special token ends a text. Errors: EIO, ENOMEM. */
wg_status wg_bpe_trainer_save(const wg_bpe_trainer *t, const char *path, wg_error *err);

#endif
