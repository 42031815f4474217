/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as a JSON schema: it is refused with a message, or becomes a grammar that opens (or is too large, or has no
 * text), and the first text of it that a walk finds is JSON. */
#include <jansson.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/text/grammar/json_schema.h"
#include "tests/unit/text/byte_vocab.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* Ends what can be ended: of the bytes that may follow the first of these, else the lowest. */
static void write_text(wg_acceptor *a)
{
    char text[512];
    size_t n = 0;
    int32_t state = wg_acceptor_start(a);
    while (n < sizeof text && !wg_acceptor_accepts(a, state)) {
        static const char likes[] = "\"}]0,:";
        int count, x = -1;
        const uint64_t *set = wg_acceptor_allowed(a, state, &count);
        if (!set) return;
        for (const char *c = likes; *c && x < 0; c++) x = token_in(set, *c) ? *c : -1;
        for (int k = 0; k < 256 && x < 0; k++) x = token_in(set, k) ? k : -1;
        if (x < 0) return; /* too deep */
        text[n++] = (char)x;
        state = wg_acceptor_token(a, state, x);
        if (state < 0) return;
    }
    if (!wg_acceptor_accepts(a, state)) return;
    json_t *v = json_loadb(text, n, JSON_DECODE_ANY, NULL);
    if (!v) abort();
    json_decref(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const size_t live = wg_mem_read().live_blocks;
    json_t *schema = json_loadb((const char *)bytes, n, JSON_DECODE_ANY, NULL);
    wg_token_trie *trie = byte_vocab();
    wg_bnf *b = NULL;
    wg_acceptor *a = NULL;
    wg_error err = { 0 };
    char *text = NULL;
    size_t size;
    if (!trie) abort();
    if (schema && wg_schema_grammar("input", schema, &text, &size, &err) != WG_OK) {
        if (err.text[0] == '\0' || text) abort();
    } else if (schema) {
        const wg_status status = wg_bnf_open(&b, "input", text, size, &err);
        if (status && status != WG_EINVAL && status != WG_EUNSUPPORTED && !strstr(err.text, "no text has this grammar"))
            abort();
        if (!status && wg_acceptor_open(&a, b, trie, &err) == WG_OK) write_text(a);
    }
    wg_acceptor_close(a);
    wg_bnf_close(b);
    wg_token_trie_close(trie);
    wg_free(text);
    json_decref(schema);
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
