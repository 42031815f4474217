/* SPDX-License-Identifier: MIT
 * A vocabulary of all bytes and a few longer tokens, for tests of grammars. */
#ifndef WG_TESTS_UNIT_TEXT_BYTE_VOCAB_H
#define WG_TESTS_UNIT_TEXT_BYTE_VOCAB_H

#include <string.h>

#include "core/text/grammar/acceptor.h"

enum { BYTE_VOCAB = 256 + 9 };

static inline wg_token_trie *byte_vocab(void)
{
    static const char *const more[] = { "ab", "aba", "tru", "true", "\":", "\", \"", "\xC3\xA9", "123", "" };
    static char bytes[256];
    wg_text text[BYTE_VOCAB];
    wg_token_trie *t = NULL;
    wg_error err;
    for (int i = 0; i < 256; i++) {
        bytes[i] = (char)i;
        text[i] = (wg_text){ bytes + i, 1 };
    }
    for (int i = 256; i < BYTE_VOCAB; i++) text[i] = (wg_text){ more[i - 256], strlen(more[i - 256]) };
    return wg_token_trie_open(&t, text, BYTE_VOCAB, &err) == WG_OK ? t : NULL;
}

static inline bool token_in(const uint64_t *set, int x) { return set[x / 64] >> x % 64 & 1; }

#endif
