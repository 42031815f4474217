/* SPDX-License-Identifier: MIT
 * SPM-style BPE (kind "llama"): spaces become U+2581, text starts as characters, and the neighbours whose concatenation is
 * the token with the highest score join first. Characters without a token fall back to bytes "<0xNN>". */
#ifndef WG_CORE_TEXT_SPM_H
#define WG_CORE_TEXT_SPM_H

#include "core/text/merge.h"
#include "core/text/vocab.h"

typedef struct wg_spm {
    bool prefix;       /* add_space_prefix: a text begins with a space of its own */
    bool space_begins; /* no token has a space behind another character, so text may be cut before spaces */
} wg_spm;

/* Finds the byte tokens and the shape of the vocabulary. Errors: EMODEL. */
wg_status wg_spm_fill(wg_spm *spm, wg_vocab *v, const wg_weights *w, wg_error *err);

/* Appends the ids of n > 0 bytes that hold no special token. Error: ENOMEM. */
wg_status wg_spm_encode(const wg_spm *spm, const wg_vocab *v, const char *s, size_t n, wg_merger *m, wg_ids *out,
                        wg_error *err);

/* The beginning of the last part of n bytes: the ids of the text before it do not depend on later text. 0: all is one part. */
size_t wg_spm_cut(const wg_spm *spm, const char *s, size_t n);

/* The bytes of a token that is not special, spaces back in place, without its first one when `drop`: at most `size` are
 * written, all are counted. */
size_t wg_spm_decode(const wg_vocab *v, int32_t id, bool drop, char *out, size_t size);

#endif
