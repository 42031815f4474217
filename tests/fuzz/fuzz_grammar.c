/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as a grammar, and behind a NUL a text: the grammar opens or is refused with a message; at every place of the
 * text the tokens that may follow are those that the acceptor goes on with; nothing stays allocated. */
#include <stdlib.h>

#include "core/base/mem.h"
#include "tests/unit/text/byte_vocab.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void follow(wg_acceptor *a, const char *text, size_t n)
{
    int32_t state = wg_acceptor_start(a);
    char forced[64];
    for (size_t i = 0; i < n && i < 64 && state >= 0; i++) {
        const uint8_t next = (uint8_t)text[i];
        int count;
        const uint64_t *set = wg_acceptor_allowed(a, state, &count);
        const bool may = set && token_in(set, next);
        const size_t known = wg_acceptor_forced(a, state, forced, sizeof forced);
        const int32_t to = wg_acceptor_bytes(a, state, text + i, 1);
        if (set && to != WG_ACCEPTOR_FULL && may != (to >= 0)) abort();
        if (set && known > 0 && to >= 0 && forced[0] != text[i]) abort();
        state = to;
        if (i % 8 == 7) {
            wg_acceptor_tidy(a);
            state = wg_acceptor_bytes(a, wg_acceptor_start(a), text, i + 1);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const size_t live = wg_mem_read().live_blocks;
    const uint8_t *end = memchr(bytes, '\0', n);
    const size_t size = end ? (size_t)(end - bytes) : n;
    wg_token_trie *trie = byte_vocab();
    wg_bnf *b = NULL;
    wg_acceptor *a = NULL;
    wg_error err = { 0 };
    if (!trie) abort();
    if (wg_bnf_open(&b, "input", (const char *)bytes, size, &err) != WG_OK) {
        if (err.text[0] == '\0' || b) abort();
    } else if (wg_acceptor_open(&a, b, trie, &err) == WG_OK && end) follow(a, (const char *)end + 1, n - size - 1);
    wg_acceptor_close(a);
    wg_bnf_close(b);
    wg_token_trie_close(trie);
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
