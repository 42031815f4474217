/* SPDX-License-Identifier: MIT
 * Arbitrary JSON as a pruned vocabulary: an accepted one has distinct ids inside its vocabulary, a refused one has a
 * message. */
#include <stdlib.h>

#include "core/base/mem.h"
#include "draft/lm/vocabulary_subset.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    wg_json *doc;
    wg_vocabulary_subset p;
    wg_error err = { 0 };
    if (wg_json_parse(&doc, "input", (const char *)bytes, n, &err)) return 0;
    if (wg_vocabulary_subset_read(&p, doc, &err) == WG_OK) {
        bool *seen = wg_calloc((size_t)p.vocab, 1);
        for (int i = 0; seen && i < p.n; i++) {
            if (p.token[i] < 0 || p.token[i] >= p.vocab || seen[p.token[i]]) abort();
            seen[p.token[i]] = true;
        }
        wg_free(seen);
        wg_vocabulary_subset_close(&p);
    } else if (err.text[0] == '\0') abort();
    wg_json_close(doc);
    return 0;
}
