/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as a datastore, unchanged and with a header whose magic and checksum are corrected, so that its counts and
 * the data after them are reached. A datastore that opens is searched and read to its end. */
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "draft/lookup/datastore.h"
#include "draft/lookup/datastore_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static volatile int64_t sink;

static void use(const void *bytes, size_t n)
{
    wg_datastore d;
    wg_error err = { 0 };
    if (wg_datastore_view(&d, "input", bytes, n, &err) != WG_OK) {
        if (err.text[0] == '\0') abort();
        return;
    }
    for (int64_t i = 0; i < d.tokens; i++) sink += wg_datastore_token(&d, i);
    for (int64_t i = 0; i < d.suffixes; i++) {
        int32_t key[4];
        int64_t low, high;
        for (int k = 0; k < 4; k++) key[k] = wg_datastore_token(&d, (int64_t)d.suffix[i] + k);
        for (int m = 1; m <= 4; m++) {
            wg_datastore_find(&d, key, m, &low, &high);
            if (low < 0 || low > high || high > d.suffixes) abort();
            for (int64_t j = low; j < high; j++) sink += wg_datastore_token(&d, (int64_t)d.suffix[j] + m);
        }
        if (i > 200) break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    uint8_t *copy = wg_alloc(n, 1); /* aligned; as long as the input */
    if (!copy) return 0;
    if (n) memcpy(copy, bytes, n);
    use(copy, n);
    if (n >= sizeof(header)) {
        header h;
        memcpy(&h, copy, sizeof h);
        memcpy(h.magic, DATASTORE_MAGIC, sizeof h.magic);
        h.version = DATASTORE_VERSION;
        h.check = wg_hash64(WG_HASH_START, &h, offsetof(header, check));
        memcpy(copy, &h, sizeof h);
        use(copy, n);
    }
    wg_free(copy);
    return 0;
}
