/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as tokenizer.json, of as many ids as the last byte gives: what is accepted opens as a tokenizer or is refused
 * with a message, and encodes and decodes the input itself. */
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/file/hf.h"
#include "core/text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void use(const wg_tokenizer *t, const char *text, size_t n)
{
    int32_t *ids;
    size_t n_ids, n_back;
    char *back;
    if (wg_tokenizer_encode(t, text, n, true, true, &ids, &n_ids, NULL) != WG_OK) return;
    for (size_t i = 0; i < n_ids; i++)
        if (ids[i] < 0 || ids[i] >= wg_tokenizer_size(t)) abort();
    if (wg_tokenizer_decode(t, ids, n_ids, true, &back, &n_back, NULL) == WG_OK) wg_free(back);
    wg_free(ids);
}

static void open(void *head, size_t n, const uint8_t *bytes, size_t n_bytes)
{
    wg_weights *w;
    wg_tokenizer *t;
    wg_error err = { 0 };
    if (wg_weights_open_memory(&w, "input", head, n, &err) != WG_OK) abort(); /* the writer's files can be read */
    if (wg_tokenizer_open(&t, w, &err) == WG_OK) {
        use(t, (const char *)bytes, n_bytes < 4096 ? n_bytes : 4096);
        wg_tokenizer_close(t);
    } else if (err.text[0] == '\0') {
        abort();
    }
    wg_weights_close(w);
}

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
            open(head, size, bytes, n);
            wg_free(head);
        }
        wg_json_close(doc);
    }
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
