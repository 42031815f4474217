/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as a model in several GGUF files: a file begins at each "GGUF" (three at most), and the last one is opened.
 * What opens can be read to the last byte. */
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/file/weights.h"
#include "tests/temp.h"

enum { MOST = 3 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static volatile unsigned sink;
static temp folder;

static void leave(void) { temp_remove(&folder); }

/* The start of the next file, or n. */
static size_t next_file(const uint8_t *bytes, size_t at, size_t n)
{
    while (++at < n && (n - at < 4 || memcmp(bytes + at, "GGUF", 4) != 0)) {}
    return at < n ? at : n;
}

static void read_all(const wg_weights *w)
{
    unsigned sum = 0;
    for (int i = 0; i < wg_weights_count(w); i++) {
        const wg_tensor *t = wg_weights_at(w, i);
        if (wg_weights_find(w, t->name) != t) abort();
        for (size_t k = 0; k < t->bytes; k++) sum += ((const uint8_t *)t->data)[k];
    }
    sink += sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const size_t live = wg_mem_read().live_blocks;
    size_t end[MOST] = { 0 };
    int files = 0;
    if (!*folder.dir) temp_make(&folder), atexit(leave);
    for (size_t at = 0; at < n && files < MOST; at = end[files++]) end[files] = files == MOST - 1 ? n : next_file(bytes, at, n);
    for (int i = 0; i < files; i++) {
        char name[64];
        const size_t at = i ? end[i - 1] : 0;
        snprintf(name, sizeof name, "m-%05d-of-%05d.gguf", i + 1, files);
        file_write(temp_at(&folder, name), bytes + at, end[i] - at);
    }
    if (files == 0) return 0;
    wg_weights *w = NULL;
    wg_error err = { 0 };
    if (wg_weights_open(&w, folder.path, &err) == WG_OK) {
        read_all(w);
        wg_weights_close(w);
    } else if (w || err.code == WG_OK || err.text[0] == '\0') {
        abort();
    }
    for (int i = 0; i < files; i++) {
        char name[64];
        snprintf(name, sizeof name, "m-%05d-of-%05d.gguf", i + 1, files);
        (void)remove(temp_at(&folder, name));
    }
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
