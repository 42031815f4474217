/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as tokenizer.json, of as many ids as the last byte gives: what is accepted opens as a tokenizer or is refused
 * with a message, and encodes and decodes the input itself. */
#include "tests/fuzz/open_tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const size_t live = wg_mem_read().live_blocks;
    const wg_hf_ids ids = { n % 3 ? -1 : 1, { n % 2 ? -1 : 2, -1, -1 } };
    wg_json *doc;
    wg_error err = { 0 };
    if (n > 0 && wg_json_parse(&doc, "input", (const char *)bytes, n - 1, &err) == WG_OK) {
        wg_gguf_writer *g;
        void *head;
        size_t size, whole;
        if (wg_gguf_writer_open(&g, NULL, NULL) != WG_OK) abort();
        const wg_status s = wg_hf_tokenizer(g, doc, &ids, 4 * bytes[n - 1] + 4, &err);
        if (s != WG_OK && err.text[0] == '\0') abort();
        if (s != WG_OK) wg_gguf_writer_abort(g);
        else if (wg_gguf_writer_head(g, &head, &size, &whole, &err) == WG_OK) {
            open_tokenizer(head, size, bytes, n);
            wg_free(head);
        }
        wg_json_close(doc);
    }
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
