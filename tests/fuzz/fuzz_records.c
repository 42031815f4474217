/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as the lines of requests.jsonl: the scanner never reads outside the text, and where jansson finds an
 * object, it finds the same members. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "experiments/record/run_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void line(const char *s, size_t n)
{
    wg_entry e = { 0 };
    wg_prompt_key_span a;
    wg_entry_read(s, n, &e, &a);
    json_t *v = json_loadb(s, n, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(v)) {
        size_t members = 0;
        wg_span key, value;
        wg_json_scan sc = wg_json_scan_open((wg_span){ s, n });
        while (wg_json_scan_next(&sc, &key, &value)) members++;
        if (sc.bad || members != json_object_size(v)) abort();
    }
    json_decref(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    char *copy = malloc(n + 1);
    if (!copy) return 0;
    memcpy(copy, bytes, n);
    for (size_t at = 0; at < n;) {
        const char *end = memchr(copy + at, '\n', n - at);
        const size_t size = end ? (size_t)(end - copy) - at : n - at;
        line(copy + at, size);
        at += size + 1;
    }
    free(copy);
    return 0;
}
