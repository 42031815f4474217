/* SPDX-License-Identifier: MIT
 * A pruned draft vocabulary (FR-Spec, Zhao et al. 2025): the ids that a draft model may propose, those most frequent in a
 * corpus. `wager vocab prune` writes the file:
 *
 *     {"schema": 1, "tokenizer": SHA-256 of the tokenizer (64 hex digits), "vocabulary": its tokens, "tokens": [ids, the most
 *      frequent first]} */
#ifndef WG_DRAFT_LM_VOCABULARY_SUBSET_H
#define WG_DRAFT_LM_VOCABULARY_SUBSET_H

#include "core/base/json.h"
#include "core/text/tokenizer.h"

typedef struct wg_vocabulary_subset {
    int n, vocab;
    int32_t *token; /* (n) different ids, each below vocab */
    char digest[65];
} wg_vocabulary_subset;

/* Reads a file made for this tokenizer. Errors: those of reading JSON; EFORMAT naming the member that is wrong; EVOCAB when it
 * was made for another tokenizer. */
wg_status wg_vocabulary_subset_open(wg_vocabulary_subset *out, const char *path, const wg_tokenizer *t, const char *target,
                                    wg_error *err);
/* Reads an open document, made for any tokenizer. */
wg_status wg_vocabulary_subset_read(wg_vocabulary_subset *out, const wg_json *doc, wg_error *err);
void wg_vocabulary_subset_close(wg_vocabulary_subset *p);

/* The n most frequent ids, the most frequent first, the lower of equally frequent ones first; every token that ends a text is
 * one of them, without which no draft could end. count: of each of the tokenizer's ids; token: (n). Errors: EINVAL: n is more
 * than there are, or less than those that end a text; ENOMEM. */
wg_status wg_vocabulary_frequent(const wg_tokenizer *t, const long *count, int n, int32_t *token, wg_error *err);

/* Writes a file of this tokenizer's ids. Errors: those of saving. */
wg_status wg_vocabulary_subset_write(const char *path, const wg_tokenizer *t, const int32_t *token, int n, wg_error *err);

#endif
