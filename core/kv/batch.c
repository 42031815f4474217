/* SPDX-License-Identifier: MIT
 * Building a batch: the visible slots of each row are set here, once, for chains and trees. */
#include "core/kv/batch.h"

#include "core/base/mem.h"

wg_status wg_batch_open(wg_batch *b, int cap, wg_error *err)
{
    if (cap < 1) return wg_fail(err, WG_EINVAL, "a batch of %d rows: expected at least 1", cap);
    *b = (wg_batch){ .cap = cap, .row = wg_calloc((size_t)cap, sizeof *b->row) };
    return b->row ? WG_OK : wg_nomem(err, (size_t)cap * sizeof *b->row, "the rows of a batch");
}

void wg_batch_close(wg_batch *b)
{
    wg_free(b->row);
    *b = (wg_batch){ 0 };
}

void wg_batch_clear(wg_batch *b)
{
    b->n = b->logits = 0;
    b->taps = NULL;
}

static int push(wg_batch *b, wg_row row, bool logits)
{
    wg_assert(b->n < b->cap);
    row.logits = logits ? b->logits++ : -1;
    b->row[b->n++] = row;
    return row.logits;
}

int wg_batch_chain(wg_batch *b, wg_kv_seq *kv, int first, const int32_t *token, int n, int logits)
{
    const wg_mask self = wg_mask_bit(0);
    int asked = -1;
    for (int i = 0; i < n; i++) {
        const int at = first + i; /* slot and position */
        const wg_row row = { .token = token[i], .position = at, .slot = at, .prefix = at, .tail = at, .anc = self, .kv = kv };
        const int l = push(b, row, i >= n - logits);
        if (asked < 0) asked = l;
    }
    return asked;
}

int wg_batch_node(wg_batch *b, wg_kv_seq *kv, int node, int depth, wg_mask anc, int32_t token, bool logits)
{
    wg_assert(node >= 0 && wg_mask_last(&anc) == node); /* the row itself is the last that it sees */
    const int len = wg_kv_len(kv);
    const wg_row row = {
        .token = token, .position = len + depth, .slot = len + node, .prefix = len, .tail = len, .anc = anc, .kv = kv
    };
    return push(b, row, logits);
}

void wg_batch_rebase(wg_batch *b, int from, int base)
{
    for (int i = from; i < b->n; i++) {
        wg_row *r = &b->row[i];
        wg_assert(r->gap == 0 && base <= r->prefix);
        r->position -= base;
        r->base = r->gap = base;
    }
}

wg_row wg_row_within(wg_row r, int window)
{
    int out = r.base + r.position + 1 - window; /* first slots that it does not see; of a tree, nodes of its path */
    const int of_prefix = out < r.prefix ? out : r.prefix;
    if (of_prefix > r.sinks + r.gap) r.gap = of_prefix - r.sinks;
    for (; out > r.prefix; out--) wg_mask_take(&r.anc);
    return r;
}
