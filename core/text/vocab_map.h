/* SPDX-License-Identifier: MIT
 * The correspondence of two vocabularies: which tokens of one are tokens of the other, by their bytes (Timor et al. 2025;
 * methods.md, Vocabularies). The space marks of the two kinds (U+2581, U+0120) and byte tokens are decoded to bytes, so " the"
 * corresponds to " the" and "<0x0A>" to a newline. Control tokens have no bytes: the beginning and the end of a text
 * correspond by role, the others by name. The unknown token has no counterpart.
 *
 * Invariant: a bijection between the tokens that have a counterpart. Of several tokens with the same bytes ("A" and
 * "<0x41>") the one stored in the fewest bytes has the counterpart, then the lowest id. */
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
