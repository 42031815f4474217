/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as the lines of requests.jsonl. */
#include <stdint.h>
#include <string.h>

#include <jansson.h>

#include "experiments/record/run_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const char *text = (const char *)bytes;
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        const size_t size = end ? (size_t)(end - text) - at : n - at;
        wg_entry e = { 0 };
        json_t *line = json_loadb(text + at, size, JSON_ALLOW_NUL, NULL);
        wg_entry_read(line, &e);
        json_decref(line);
        at += size + 1;
    }
    return 0;
}
