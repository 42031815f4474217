/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as a weights file: it opens or is refused with a message; a file that opens can be read to the last byte. */
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/file/weights.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static volatile unsigned sink;

static void touch(const void *p, size_t n)
{
    unsigned sum = 0;
    for (size_t i = 0; i < n; i++) sum += ((const uint8_t *)p)[i];
    sink += sum;
}

static void touch_array(const wg_weights *w, const char *key)
{
    wg_text t;
    int64_t v;
    double x;
    const int64_t n = wg_meta_array(w, key, NULL);
    for (int64_t i = 0; i < n; i++) {
        if (wg_meta_array_string(w, key, i, &t)) touch(t.s, t.n);
        if (wg_meta_array_int(w, key, i, &v) || wg_meta_array_float(w, key, i, &x)) sink++;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const size_t live = wg_mem_read().live_blocks;
    wg_weights *w = NULL;
    wg_error err = { 0 };
    if (wg_weights_open_memory(&w, "input", bytes, n, &err) != WG_OK) {
        if (w || err.code == WG_OK || err.text[0] == '\0') abort();
    } else {
        for (int i = 0; i < wg_meta_count(w); i++) {
            wg_text t;
            if (wg_meta_string(w, wg_meta_key(w, i), &t)) touch(t.s, t.n);
            touch_array(w, wg_meta_key(w, i));
        }
        for (int i = 0; i < wg_weights_count(w); i++) {
            const wg_tensor *t = wg_weights_at(w, i);
            if (wg_weights_find(w, t->name) != t) abort();
            touch(t->data, t->bytes);
        }
        wg_weights_close(w);
    }
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
