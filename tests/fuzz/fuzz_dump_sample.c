/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as a safetensors file of hidden states: read to the last row, or refused with a message. */
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/file/tap_dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static volatile float sink;

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const size_t live = wg_mem_read().live_blocks;
    wg_dump_sample s;
    wg_error err = { 0 };
    if (wg_dump_read_sample("input", bytes, n, &s, &err) != WG_OK) {
        if (err.text[0] == '\0') abort();
    } else {
        float *row = malloc((size_t)s.dim * sizeof *row); /* no larger than the file */
        for (int64_t i = 0; i < s.n; i++) {
            if (wg_dump_token(&s, i) < 0) abort();
            for (int k = 0; k < s.taps; k++) wg_dump_row(&s, i, k, row), sink += row[0];
        }
        free(row);
    }
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
