/* SPDX-License-Identifier: MIT
 * Pages of a space on one of several ranks (kv_part.h): a cache whose page tables come from elsewhere. */
#include "core/kv/kv_part.h"

#include <string.h>

#include "core/base/mem.h"
#include "core/kv/kv_impl.h"

enum { SEQUENCES = 64 }; /* in a block; blocks do not move, since rows point to sequences */

typedef struct block {
    wg_kv_seq seq[SEQUENCES];
} block;

struct wg_kv_part {
    wg_kv kv;
    block **blocks;
    size_t n_blocks, room;
};

wg_status wg_kv_part_open(wg_kv_part **out, const wg_kv_shape *shape, wg_error *err)
{
    int space;
    wg_kv_part *p = wg_calloc(1, sizeof *p);
    if (!p) return wg_nomem(err, sizeof *p, "pages");
    p->kv = (wg_kv){ .page_slots = shape->page_slots, .pages = shape->pages };
    wg_status s = wg_kv_space(&p->kv, shape->layers, shape->kv_heads, shape->head_dim, shape->type, &space, err);
    wg_kv_store *t = &p->kv.space[0];
    if (!s && !(t->pool = wg_calloc((size_t)shape->pages, t->page_bytes)))
        s = wg_fail(err, WG_ENOMEM, "out of memory: %d KV pages of %zu bytes; lower pages or max_tokens", shape->pages,
                    t->page_bytes);
    if (s) wg_kv_part_close(p);
    else *out = p;
    return s;
}

void wg_kv_part_close(wg_kv_part *p)
{
    if (!p) return;
    for (size_t i = 0; i < p->n_blocks; i++) wg_free(p->blocks[i]);
    wg_free(p->blocks);
    wg_free(p->kv.space[0].pool);
    wg_free(p);
}

char *wg_kv_part_pool(wg_kv_part *p) { return p->kv.space[0].pool; }
size_t wg_kv_part_page_bytes(const wg_kv_part *p) { return p->kv.space[0].page_bytes; }

wg_kv_place wg_kv_part_place(const wg_kv_part *p, size_t at)
{
    const wg_kv_store *t = &p->kv.space[0];
    return (wg_kv_place){ (int32_t)(at / t->page_bytes), (int32_t)(at % t->page_bytes / t->row_bytes) };
}

void wg_kv_part_copy(wg_kv_part *p, int32_t to, int32_t from)
{
    const wg_kv_store *t = &p->kv.space[0];
    memcpy(t->pool + (size_t)to * t->page_bytes, t->pool + (size_t)from * t->page_bytes, t->page_bytes);
}

void wg_kv_part_move(wg_kv_part *p, wg_kv_place to, wg_kv_place from)
{
    wg_kv_slot_copy(&p->kv, &p->kv.space[0], to.page, to.offset, from.page, from.offset);
}

wg_status wg_kv_part_seq(wg_kv_part *p, int i, int32_t *page, wg_kv_seq **out, wg_error *err)
{
    const size_t at = (size_t)i / SEQUENCES;
    if (at >= p->n_blocks) {
        WG_TRY(wg_grow((void **)&p->blocks, &p->room, at + 1, sizeof *p->blocks, "sequences", err));
        while (p->n_blocks <= at) {
            if (!(p->blocks[p->n_blocks] = wg_calloc(1, sizeof **p->blocks)))
                return wg_nomem(err, sizeof **p->blocks, "sequences");
            p->n_blocks++;
        }
    }
    wg_kv_seq *s = &p->blocks[at]->seq[i % SEQUENCES];
    s->kv = &p->kv;
    s->page = page;
    *out = s;
    return WG_OK;
}
