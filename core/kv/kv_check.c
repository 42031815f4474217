/* SPDX-License-Identifier: MIT
 * The invariants of kv.h, tested over the whole pool. (4) and (5) are about operations: a state can only show that no
 * written mark is beyond the tail, and that no page is lost. */
#include <string.h>

#include "core/kv/kv_impl.h"

#define BROKEN(number, ...) wg_fail(err, WG_EINVAL, "KV invariant (" #number "): " __VA_ARGS__)

/* (2) each table holds exactly the pages of its slots, each once. Also counts, for (1). */
static wg_status check_table(const wg_kv *kv, const wg_kv_seq *s, int number, wg_error *err)
{
    if (s->len < 0 || s->tail < 0 || s->tail > WG_KV_TAIL_MAX || s->tail > kv->max_slots - s->len)
        return BROKEN(2, "sequence %d has %d + %d slots of at most %d", number, s->len, s->tail, kv->max_slots);
    const int want = wg_kv_pages_for(kv, s->len + s->tail);
    if (s->pages != want)
        return BROKEN(2, "sequence %d holds %d pages for %d slots, expected %d", number, s->pages, s->len + s->tail, want);
    if (s->gone < 0 || s->gone > s->pages) return BROKEN(2, "sequence %d gave %d of %d pages back", number, s->gone, s->pages);
    for (int i = s->gone; i < s->pages; i++) {
        if (s->page[i] < 0 || s->page[i] >= kv->pages)
            return BROKEN(2, "sequence %d holds page %d of %d", number, (int)s->page[i], kv->pages);
        if (kv->count[s->page[i]] < 0) return BROKEN(2, "sequence %d holds page %d twice", number, (int)s->page[i]);
        kv->count[s->page[i]] = -kv->count[s->page[i]] - 1; /* counted, and seen in this table */
    }
    for (int i = s->gone; i < s->pages; i++) kv->count[s->page[i]] *= -1;
    return WG_OK;
}

/* (3) in TAIL, slots that may be written are in no other table. */
static wg_status check_alone(const wg_kv *kv, const wg_kv_seq *s, int number, wg_error *err)
{
    if (s->tail == 0) return WG_OK;
    for (int i = wg_kv_final_len(s) / kv->page_slots; i < s->pages; i++)
        if (kv->refs[s->page[i]] != 1)
            return BROKEN(3, "sequence %d may write page %d, which has %d references", number, (int)s->page[i],
                          (int)kv->refs[s->page[i]]);
    return WG_OK;
}

/* (7) what may be read is still there. */
static wg_status check_window(const wg_kv *kv, const wg_kv_seq *s, int number, wg_error *err)
{
    const int unread = wg_kv_unread(s, s->len, 0), gone = s->gone * kv->page_slots;
    return gone <= unread ? WG_OK : BROKEN(7, "sequence %d gave %d slots back and may read from slot %d", number, gone, unread);
}

/* (4) marks only below the tail; (6) valid lengths. */
static wg_status check_spaces(const wg_kv *kv, const wg_kv_seq *s, int number, wg_error *err)
{
    for (int k = 0; k < kv->spaces; k++) {
        if (s->first[k] < 0 || s->valid[k] < s->first[k] || s->valid[k] > s->len)
            return BROKEN(6, "sequence %d: space %d is valid from %d to %d of %d", number, k, s->first[k], s->valid[k], s->len);
        for (int w = s->tail / 64; w < WG_KV_WORDS; w++) {
            const uint64_t past = s->wrote[k][w] >> (w == s->tail / 64 ? s->tail % 64 : 0);
            if (past)
                return BROKEN(4, "sequence %d: space %d has marks of written slots past its tail of %d", number, k, s->tail);
        }
    }
    return WG_OK;
}

/* (1) references count the tables; pages without any are on the free list, once each. */
static wg_status check_pool(const wg_kv *kv, wg_error *err)
{
    for (int p = 0; p < kv->pages; p++)
        if (kv->refs[p] != kv->count[p])
            return BROKEN(1, "page %d has %d references, %d tables hold it", p, (int)kv->refs[p], (int)kv->count[p]);
    if (kv->free_pages < 0 || kv->free_pages > kv->pages)
        return BROKEN(1, "%d of %d pages are free", kv->free_pages, kv->pages);
    int held = 0;
    for (int p = 0; p < kv->pages; p++) held += kv->refs[p] > 0;
    for (int i = 0; i < kv->free_pages; i++) {
        const int32_t p = kv->free[i];
        if (p < 0 || p >= kv->pages || kv->refs[p] != 0) return BROKEN(1, "page %d is on the free list and in use", (int)p);
        if (kv->count[p]++ != 0) return BROKEN(1, "page %d is on the free list twice", (int)p);
    }
    if (held + kv->free_pages != kv->pages)
        return BROKEN(1, "%d pages are held and %d free, of %d", held, kv->free_pages, kv->pages);
    return WG_OK;
}

wg_status wg_kv_check(const wg_kv *kv, wg_error *err)
{
    memset(kv->count, 0, (size_t)kv->pages * sizeof *kv->count);
    int number = 0;
    for (const wg_kv_seq *s = kv->first; s; s = s->next, number++) WG_TRY(check_table(kv, s, number, err));
    number = 0;
    for (const wg_kv_seq *s = kv->first; s; s = s->next, number++) {
        WG_TRY(check_spaces(kv, s, number, err));
        WG_TRY(check_window(kv, s, number, err));
        WG_TRY(check_alone(kv, s, number, err));
    }
    WG_TRY(check_pool(kv, err));
    return number == kv->sequences ? WG_OK : BROKEN(1, "%d sequences are open, %d are known", kv->sequences, number);
}
