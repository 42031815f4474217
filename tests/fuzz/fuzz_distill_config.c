/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as the config of a distillation: either students or problems with positions, and no memory held afterwards.
 * What is resolved is a config again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "experiments/config/distill_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void write_all(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char *const set[] = { "target.model=synth:tiny:f32",
                                       "data.text=",
                                       "data.tokens=x",
                                       "data.held=",
                                       "model.init=",
                                       "model.tokenizer=",
                                       "distill.trace=x" };
    const int n_set = n % 3 ? (int)(sizeof set / sizeof set[0]) : 0; /* most files that a text names do not exist */
    char path[] = "/tmp/wager-fuzz-XXXXXX";
    const int fd = mkstemp(path);
    if (fd < 0) abort();
    close(fd);
    write_all(path, bytes, n);
    const size_t live = wg_mem_read().live_blocks;
    wg_distill_config c, again;
    wg_error err = { 0 };
    if (wg_distill_config_open(&c, path, set, n_set, &err) == WG_OK) {
        if (c.students < 1 || c.students != c.families * c.seeds) abort();
        write_all(path, c.resolved, strlen(c.resolved));
        if (n_set && (wg_distill_config_open(&again, path, set, n_set, &err) || strcmp(c.resolved, again.resolved) != 0))
            abort();
        if (n_set) wg_distill_config_close(&again);
        wg_distill_config_close(&c);
    } else if (err.code == WG_OK || !err.text[0] || c.student || c.resolved) abort();
    unlink(path);
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
