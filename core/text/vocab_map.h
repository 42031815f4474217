/* SPDX-License-Identifier: MIT
 * Two vocabularies side by side: which tokens of one are tokens of the other, by the bytes they stand for (Timor et al. 2025;
 * METHODS A18). The marks of the two kinds (U+2581, U+0120) and byte tokens disappear in the bytes, so " the" meets " the" and
 * "<0x0A>" meets a newline. Control tokens stand for no bytes: the beginning and the end of a text meet by their role, the
 * others by their names. The unknown token meets nothing.
 *
 * Invariant: a bijection between the tokens that have a partner. Of several with the same bytes ("A" and "<0x41>") the one that
 * is stored in the fewest bytes has it, then the lowest id. */
#ifndef WG_CORE_TEXT_VOCAB_MAP_H
#define WG_CORE_TEXT_VOCAB_MAP_H

#include "core/text/tokenizer.h"

typedef struct wg_vocab_map {
    int a, b;      /* sizes of the two */
    int shared;    /* tokens that have a partner */
    int32_t *to_b; /* (a) the partner, or -1 */
    int32_t *to_a; /* (b) likewise */
} wg_vocab_map;

wg_status wg_vocab_map_open(wg_vocab_map *m, const wg_tokenizer *a, const wg_tokenizer *b, wg_error *err); /* ENOMEM */
void wg_vocab_map_close(wg_vocab_map *m);

#endif
