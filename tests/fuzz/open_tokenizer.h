/* SPDX-License-Identifier: MIT
 * What the fuzz targets of tokenizers do with what was accepted: it opens as a tokenizer or is refused with a message, and
 * encodes and decodes the input itself. */
#ifndef WG_TESTS_FUZZ_OPEN_TOKENIZER_H
#define WG_TESTS_FUZZ_OPEN_TOKENIZER_H

#include <stdlib.h>

#include "core/base/mem.h"
#include "core/file/hf.h"
#include "core/text/tokenizer.h"

static inline void use_tokenizer(const wg_tokenizer *t, const char *text, size_t n)
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

/* Opens the head of a file that the writer made, and uses its tokenizer on the input. */
static inline void open_tokenizer(void *head, size_t n, const uint8_t *bytes, size_t n_bytes)
{
    wg_weights *w;
    wg_tokenizer *t;
    wg_error err = { 0 };
    if (wg_weights_open_memory(&w, "input", head, n, &err) != WG_OK) abort(); /* the writer's files can be read */
    if (wg_tokenizer_open(&t, w, &err) == WG_OK) {
        use_tokenizer(t, (const char *)bytes, n_bytes < 4096 ? n_bytes : 4096);
        wg_tokenizer_close(t);
    } else if (err.text[0] == '\0') {
        abort();
    }
    wg_weights_close(w);
}

#endif
