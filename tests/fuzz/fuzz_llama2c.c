/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as a llama2.c checkpoint, and as a tokenizer.bin with as many tokens as the first byte gives. */
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/file/format.h"
#include "core/file/gguf_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static volatile unsigned sink;

static void checkpoint(const uint8_t *bytes, size_t n)
{
    wg_weights *w;
    if (wg_weights_open_memory(&w, "input", bytes, n, NULL) != WG_OK) return;
    for (int i = 0; i < wg_weights_count(w); i++) {
        const wg_tensor *t = wg_weights_at(w, i);
        for (size_t k = 0; k < t->bytes; k++) sink += ((const uint8_t *)t->data)[k];
    }
    wg_weights_close(w);
}

static void tokenizer(const uint8_t *bytes, size_t n)
{
    wg_gguf_writer *g;
    wg_error err = { 0 };
    if (wg_gguf_writer_open(&g, "/dev/null", &err) != WG_OK) abort();
    if (wg_llama2c_tokenizer(g, "input", (const char *)bytes, n, n ? 3 + bytes[0] : 0, &err) == WG_OK) {
        if (wg_gguf_writer_finish(g, &err) != WG_OK) abort();
        return;
    }
    if (err.text[0] == '\0') abort();
    wg_gguf_writer_abort(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const size_t live = wg_mem_read().live_blocks;
    checkpoint(bytes, n);
    tokenizer(bytes, n);
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
