/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as a prompt file: either prompts or a message, never both, and no memory held afterwards. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "experiments/config/dataset.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    char path[] = "/tmp/wager-fuzz-XXXXXX";
    const int fd = mkstemp(path);
    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n) abort();
    close(fd);
    const size_t live = wg_mem_read().live_blocks;
    wg_dataset *d = NULL;
    wg_error err = { 0 };
    wg_setup_prompts o = {
        .limit = 3, .shuffle = (int)(n % 5), .per_category = (int)(n % 4), .keep_bytes = (int)(n % 7), .turns = (int)(n % 3)
    };
    if (n % 2) strcpy(o.category, "x");
    if (n % 3) strcpy(o.merge, "x=y|z");
    if (wg_dataset_open(&d, path, &o, &err) == WG_OK) {
        if (!d || d->n < 1 || d->n > 3) abort();
        for (int i = 0; i < d->n; i++)
            if (strlen(d->prompt[i].text) > d->prompt[i].bytes || !d->prompt[i].id || d->prompt[i].line < 1) abort();
        for (int i = 0, questions = 0; i < d->n; questions += d->prompt[i++].turns)
            for (int turn = 0; turn < d->prompt[i].turns || turn == 0; turn++) {
                const wg_turn t = wg_prompt_turn(&d->prompt[i], turn);
                if (strlen(t.text) > t.bytes || d->prompt[i].before != questions || d->prompt[i].turns > d->turns) abort();
            }
        if (wg_dataset_questions(d, 0, d->n) != d->questions) abort();
        wg_dataset_close(d);
    } else if (d || err.code == WG_OK || !err.text[0]) abort();
    unlink(path);
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
