/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as config.json: what is accepted can be written as the keys of a GGUF file, with its special tokens. */
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/file/hf.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void write(const wg_hf_config *c)
{
    wg_gguf_writer *g;
    void *head;
    size_t n, whole;
    if (wg_gguf_writer_open(&g, NULL, NULL) != WG_OK) abort();
    wg_hf_config_write(c, g);
    if (wg_gguf_writer_head(g, &head, &n, &whole, NULL) != WG_OK) abort();
    wg_free(head);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const size_t live = wg_mem_read().live_blocks;
    wg_json *doc;
    wg_error err = { 0 };
    if (wg_json_parse(&doc, "input", (const char *)bytes, n, &err) == WG_OK) {
        wg_hf_config c;
        wg_hf_ids ids;
        if (wg_hf_config_read(&c, doc, &err) == WG_OK) write(&c);
        else if (err.text[0] == '\0') abort();
        (void)wg_hf_ids_read(&ids, n % 2 ? doc : NULL, doc, &err);
        wg_json_close(doc);
    }
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
