/* SPDX-License-Identifier: MIT
 * Arbitrary bytes as a trace, unchanged and with the checksums of records corrected, so that the code behind the checksums
 * is reached: every round that the scan accepts can be read again, and verified by its own rule, or is refused. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "lab/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* What a round that was loaded says of itself: rows are distributions, overlaps and alpha* in 0..1 or unknown. */
static void check_round(wg_replay *r)
{
    const wg_tree *tree = &r->round.tree;
    for (int i = 0; i < r->p.n; i++) {
        double sum = 0;
        if (r->round.p[i].kind == WG_ROW_LOGITS) continue; /* of any numbers */
        for (int32_t x = 0; x < r->vocab; x++) sum += wg_rows_prob(&r->p, i, x);
        if (!(sum > 0.999 && sum < 1.001)) abort();
        const int child = wg_tree_child(tree, i, i), qrow = child < 0 ? -1 : tree->qrow[child];
        if (child < 0) continue;
        const double star = wg_replay_star(r, tree, i), overlap = qrow < 0 ? 0 : wg_replay_overlap(r, i, qrow);
        if (star < -1e-3 || star > 1.001 || !(overlap >= 0 && overlap < 1.001)) abort();
    }
}

static void replay_rounds(wg_trace *t)
{
    wg_error err = { 0 };
    for (int c = 0; c < (int)json_array_size(t->cells) && c < 4; c++) {
        wg_replay *r = NULL;
        if (wg_replay_open(&r, t, c, -1, &err)) {
            if (!err.text[0]) abort();
            continue;
        }
        for (int i = 0; r->vocab <= 4096 && i < t->rounds && i < 64; i++) {
            wg_path path;
            if (t->request[t->round[i].request].asked.cell != c || wg_replay_load(r, i, &err)) continue;
            if (r->vocab != r->p.vocab) continue;
            check_round(r);
            if (wg_replay_rule(r, r->rule.class, r->rule.options, 0, &path, &err)) continue;
            if (path.n < 1 || path.n > r->round.tree.n || path.next < 0 || path.next >= r->vocab) abort();
        }
        wg_replay_close(r);
    }
}

static void read_once(const uint8_t *bytes, size_t n)
{
    wg_trace *t;
    wg_error err = { 0 };
    FILE *f = n ? fmemopen((void *)bytes, n, "rb") : NULL;
    if (!f) return;
    if (wg_trace_read(&t, "input", f, &err)) {
        if (!err.text[0]) abort();
        return;
    }
    if (t->end > t->size || (t->end < t->size) != (t->damage[0] != '\0')) abort();
    replay_rounds(t);
    wg_trace_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    const size_t live = wg_mem_read().live_blocks;
    uint8_t *copy = malloc(n + 1);
    if (!copy) return 0;
    read_once(bytes, n);
    memcpy(copy, bytes, n);
    for (size_t at = 16; at + 16 <= n;) {
        uint32_t length;
        memcpy(&length, copy + at, 4);
        if (length > n - at - 16) break;
        const uint64_t sum = wg_trace_sum(copy + at, copy + at + 8, length);
        memcpy(copy + at + 8 + length, &sum, 8);
        at += (size_t)length + 16;
    }
    read_once(copy, n);
    free(copy);
    if (wg_mem_read().live_blocks != live) abort();
    return 0;
}
