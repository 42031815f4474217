/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as an experiment: either a config or problems with positions, never both, and no memory held afterwards.
 * The files that it names need not exist: that is one of the problems. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "experiments/config/config.h"
#include "core/setup/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char *const set[] = { "seed=3", "draft.length=2" };
    char path[] = "/tmp/wager-fuzz-XXXXXX";
    const int fd = mkstemp(path);
    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n) abort();
    close(fd);
    const size_t live = wg_mem_read().live_blocks;
    wg_config *c = NULL;
    wg_error err = { 0 };
    if (wg_config_open(&c, path, set, n % 3 == 0 ? 2 : 0, &wg_program_plugins, &err) == WG_OK) {
        if (!c || c->n < 1) abort();
        wg_config_close(c);
    } else if (c || err.code == WG_OK || !err.text[0]) abort();
    unlink(path);
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
