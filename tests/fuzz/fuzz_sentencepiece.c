/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as tokenizer.model of SentencePiece, of as many ids as the last byte gives. */
#include "tests/fuzz/open_tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const size_t live = wg_mem_read().live_blocks;
    const wg_hf_ids ids = { n % 3 ? -1 : 1, { n % 2 ? -1 : 2, -1, -1 } };
    wg_gguf_writer *g;
    wg_error err = { 0 };
    void *head;
    size_t size, whole;
    if (n == 0) return 0;
    if (wg_gguf_writer_open(&g, NULL, NULL) != WG_OK) abort();
    const wg_text file = { (const char *)bytes, n - 1 };
    const wg_status s = wg_sentencepiece_tokenizer(g, "input", file, NULL, &ids, 4 * bytes[n - 1] + 4, &err);
    if (s != WG_OK && err.text[0] == '\0') abort();
    if (s != WG_OK) wg_gguf_writer_abort(g);
    else if (wg_gguf_writer_head(g, &head, &size, &whole, &err) == WG_OK) {
        open_tokenizer(head, size, bytes, n);
        wg_free(head);
    }
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
