/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as a safetensors file: its header is read or refused with a message; tensors can be read to the last byte. */
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/file/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static volatile unsigned sink;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const size_t live = wg_mem_read().live_blocks;
    wg_safetensors s;
    wg_error err = { 0 };
    if (wg_safetensors_read(&s, "input", bytes, n, &err) != WG_OK) {
        if (err.text[0] == '\0') abort();
    } else {
        size_t all = 0;
        for (size_t i = 0; i < s.n; all += s.tensor[i++].bytes)
            for (size_t k = 0; k < s.tensor[i].bytes; k++) sink += s.tensor[i].data[k];
        if (all > n) abort();
        wg_safetensors_free(&s);
    }
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
