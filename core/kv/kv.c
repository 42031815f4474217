/* SPDX-License-Identifier: MIT
 * The KV-cache manager; the contract and its numbered invariants are in kv.h. Two phases, as in a pager: reserve may fail and
 * takes every page and every copy it may need; commit and rollback only copy slots inside pages the sequence owns alone, so
 * they cannot fail. Nothing but opening allocates: tables are sized for the longest sequence. */
#include "core/kv/kv_impl.h"

#include <limits.h>
#include <string.h>

#include "core/base/mem.h"

#ifdef WG_HARD
static void hard_check(const wg_kv *kv)
{
    wg_error err;
    const bool sound = wg_kv_check(kv, &err) == WG_OK;
    wg_assert(sound);
}
#else
static void hard_check(const wg_kv *kv) { (void)kv; }
#endif

const char *const wg_kv_type_names[] = { "f32", "f16", "bf16", "q8", NULL };
const int wg_kv_type_ids[] = { WG_F32, WG_F16, WG_BF16, WG_KV_Q8 };

const char *wg_kv_type_name(int type) { return type == WG_KV_Q8 ? "q8" : wg_type_name(type); }

size_t wg_kv_token_bytes(int type, int layers, int kv_heads, int head_dim)
{
    const size_t scales = type == WG_KV_Q8 ? (size_t)wg_kv_blocks(head_dim) * sizeof(float) : 0;
    return 2 * (size_t)layers * (size_t)kv_heads * (wg_kv_row_bytes(type, head_dim) + scales);
}

/* ---- the pool */

wg_status wg_kv_open(wg_kv **out, int page_slots, int pages, int max_slots, wg_error *err)
{
    if (page_slots < 1 || page_slots > 256)
        return wg_fail(err, WG_EINVAL, "KV cache: %d slots a page: expected 1..256", page_slots);
    if (pages < 1 || pages > INT_MAX / 256)
        return wg_fail(err, WG_EINVAL, "KV cache: %d pages: expected 1..%d", pages, INT_MAX / 256);
    if (max_slots < 1 || max_slots > INT_MAX / 2)
        return wg_fail(err, WG_EINVAL, "KV cache: %d slots a sequence: expected 1..%d", max_slots, INT_MAX / 2);
#ifdef WG_HARD
    if (page_slots > 2) pages = (int)(((long)pages * page_slots + 1) / 2); /* the requested number of slots */
    page_slots = 2;
#endif
    wg_kv *kv = wg_calloc(1, sizeof *kv);
    if (!kv) return wg_nomem(err, sizeof *kv, "a KV cache");
    kv->page_slots = page_slots;
    kv->pages = kv->free_pages = pages;
    kv->max_slots = max_slots;
    kv->back = WG_KV_BACK;
    kv->refs = wg_calloc((size_t)pages, sizeof *kv->refs);
    kv->free = wg_calloc((size_t)pages, sizeof *kv->free);
    kv->count = wg_calloc((size_t)pages, sizeof *kv->count);
    if (!kv->refs || !kv->free || !kv->count) {
        wg_kv_close(kv);
        return wg_nomem(err, (size_t)pages * sizeof *kv->refs, "the page lists of a KV cache");
    }
    for (int i = 0; i < pages; i++) kv->free[i] = pages - 1 - i; /* page 0 is used first */
    *out = kv;
    return WG_OK;
}

void wg_kv_close(wg_kv *kv)
{
    if (!kv) return;
    wg_assert(kv->sequences == 0);
    for (int i = 0; i < kv->spaces; i++) {
        const wg_kv_store *t = &kv->space[i];
        if (!t->memory.alloc) wg_free(t->pool);
        else if (t->pool) t->memory.free(t->memory.user, t->pool);
    }
    wg_free(kv->refs);
    wg_free(kv->free);
    wg_free(kv->count);
    wg_free(kv);
}

static size_t align_up(size_t n) { return (n + WG_ALIGN - 1) / WG_ALIGN * WG_ALIGN; }

wg_status wg_kv_space(wg_kv *kv, int layers, int kv_heads, int head_dim, int type, int *space, wg_error *err)
{
    return wg_kv_space_at(kv, NULL, layers, kv_heads, head_dim, type, space, err);
}

wg_status wg_kv_space_at(wg_kv *kv, const wg_kv_memory *memory, int layers, int kv_heads, int head_dim, int type, int *space,
                         wg_error *err)
{
    if (kv->placed)
        return wg_fail(err, WG_EINVAL,
                       "KV cache: a model was attached after the first sequence had been opened; attach all models first");
    if (kv->spaces == WG_KV_SPACES)
        return wg_fail(err, WG_EFULL, "KV cache: no room for another model: it holds at most %d", WG_KV_SPACES);
    if (type != WG_F32 && type != WG_F16 && type != WG_BF16 && type != WG_KV_Q8)
        return wg_fail(err, WG_EINVAL, "KV cache: type %s: expected f32, f16, bf16 or q8", wg_type_name(type));
    if (memory && !memory->scales && type == WG_KV_Q8)
        return wg_fail(err, WG_EUNSUPPORTED, "KV cache: type q8 is for the CPU: on another device expected f32, f16 or bf16");
    if (layers < 1 || layers > 1 << 16 || kv_heads < 1 || head_dim < 1 || head_dim > (1 << 24) / kv_heads)
        return wg_fail(err, WG_EINVAL, "KV cache: %d layers of %d heads of %d: expected 1..65536 and together 1..16777216",
                       layers, kv_heads, head_dim);
    wg_kv_store t = { .layers = layers, .kv_dim = kv_heads * head_dim, .head_dim = head_dim, .type = type };
    if (memory) t.memory = *memory;
    t.row_bytes = wg_kv_row_bytes(type, t.kv_dim);
    t.scales = type == WG_KV_Q8 ? kv_heads * wg_kv_blocks(head_dim) : 0;
    t.scale_at = align_up((size_t)kv->page_slots * t.row_bytes);
    t.value_at = t.scale_at + align_up((size_t)kv->page_slots * (size_t)t.scales * sizeof(float));
    t.layer_bytes = 2 * t.value_at;
    t.page_bytes = (size_t)layers * t.layer_bytes;
    *space = kv->spaces;
    kv->space[kv->spaces++] = t;
    return WG_OK;
}

void wg_kv_window(wg_kv *kv, int space, int window)
{
    wg_assert(space >= 0 && space < kv->spaces && !kv->placed && window >= 0);
    kv->space[space].window = window;
}

int wg_kv_page_slots(const wg_kv *kv) { return kv->page_slots; }
int wg_kv_pages(const wg_kv *kv) { return kv->pages; }
int wg_kv_spaces(const wg_kv *kv) { return kv->spaces; }
int wg_kv_pages_free(const wg_kv *kv) { return kv->free_pages; }
int wg_kv_window_slots(int window, int tail, int page_slots)
{
    return ((window + WG_KV_BACK) / page_slots + 2 + tail / page_slots + 1) * page_slots;
}

int wg_kv_pages_most(const wg_kv *kv) { return wg_kv_pages_for(kv, kv->max_slots); }

static size_t table_bytes(const wg_kv *kv) { return (size_t)wg_kv_pages_for(kv, kv->max_slots) * sizeof(int32_t); }

/* Allocates the pages' memory once; the system provides pages when they are touched. */
static wg_status place(wg_kv *kv, wg_error *err)
{
    for (int i = 0; i < kv->spaces; i++) {
        wg_kv_store *t = &kv->space[i];
        size_t bytes;
        if (!t->pool)
            t->pool = !t->memory.alloc                                        ? wg_calloc((size_t)kv->pages, t->page_bytes)
                      : wg_size_mul((size_t)kv->pages, t->page_bytes, &bytes) ? t->memory.alloc(t->memory.user, bytes)
                                                                              : NULL;
        if (!t->pool)
            return wg_fail(err, WG_ENOMEM, "out of memory%s%s: %d KV pages of %zu bytes; lower pages or max_tokens",
                           t->memory.alloc ? " on " : "", t->memory.alloc ? t->memory.name : "", kv->pages, t->page_bytes);
    }
    kv->placed = true;
    return WG_OK;
}

static int32_t page_take(wg_kv *kv)
{
    const int32_t p = kv->free[--kv->free_pages];
    kv->refs[p] = 1;
    return p;
}

static void page_drop(wg_kv *kv, int32_t p)
{
    wg_assert(kv->refs[p] > 0);
    if (--kv->refs[p] == 0) kv->free[kv->free_pages++] = p;
}

/* ---- sequences */

wg_status wg_kv_seq_open(wg_kv *kv, wg_kv_seq **out, wg_error *err)
{
    if (!kv->placed) WG_TRY(place(kv, err));
    const size_t bytes = sizeof(wg_kv_seq) + table_bytes(kv);
    wg_kv_seq *s = wg_calloc(1, bytes);
    if (!s) return wg_nomem(err, bytes, "a sequence of the KV cache");
    s->kv = kv;
    s->page = (int32_t *)(s + 1);
    s->next = kv->first;
    if (s->next) s->next->prev = s;
    kv->first = s;
    kv->sequences++;
    *out = s;
    return WG_OK;
}

/* Forgets the tail and gives back the pages past `len`. */
static void keep_slots(wg_kv_seq *s, int len)
{
    const int words = (s->tail + 63) / 64;
    for (int i = 0; i < s->kv->spaces; i++) memset(s->wrote[i], 0, (size_t)words * sizeof s->wrote[i][0]);
    const int keep = wg_kv_pages_for(s->kv, len);
    while (s->pages > keep && s->pages > s->gone) page_drop(s->kv, s->page[--s->pages]);
    if (s->gone > keep) s->pages = s->gone = keep; /* nothing is left */
    s->len = len;
    s->tail = 0;
}

void wg_kv_seq_close(wg_kv_seq *s)
{
    if (!s) return;
    wg_kv *kv = s->kv;
    keep_slots(s, 0);
    if (s->prev) s->prev->next = s->next;
    else kv->first = s->next;
    if (s->next) s->next->prev = s->prev;
    kv->sequences--;
    wg_free(s);
    hard_check(kv);
}

wg_status wg_kv_fork(wg_kv_seq *from, wg_kv_seq **out, wg_error *err)
{
    wg_assert(from->tail == 0);
    wg_kv_seq *s;
    WG_TRY(wg_kv_seq_open(from->kv, &s, err));
    s->len = from->len;
    s->pages = from->pages;
    s->gone = from->gone;
    memcpy(s->first, from->first, sizeof s->first);
    memcpy(s->valid, from->valid, sizeof s->valid);
    memcpy(s->page, from->page, (size_t)from->pages * sizeof *s->page);
    for (int i = s->gone; i < s->pages; i++) s->kv->refs[s->page[i]]++;
    *out = s;
    hard_check(s->kv);
    return WG_OK;
}

/* ---- reserve -> wrote -> commit | rollback */

/* Exchanges page i of the sequence for a copy of its own. */
static void page_copy(wg_kv_seq *s, int i)
{
    wg_kv *kv = s->kv;
    const int32_t old = s->page[i], fresh = page_take(kv);
    for (int k = 0; k < kv->spaces; k++) {
        const wg_kv_store *t = &kv->space[k];
        char *to = t->pool + (size_t)fresh * t->page_bytes, *from = t->pool + (size_t)old * t->page_bytes;
        if (t->memory.alloc) t->memory.copy(t->memory.user, to, from, t->page_bytes);
        else memcpy(to, from, t->page_bytes);
    }
    page_drop(kv, old);
    s->page[i] = fresh;
}

wg_status wg_kv_reserve(wg_kv_seq *s, int n, wg_error *err)
{
    wg_kv *kv = s->kv;
    if (n < 0 || n > WG_KV_TAIL_MAX)
        return wg_fail(err, WG_EINVAL, "KV cache: a tail of %d slots: expected 0..%d", n, WG_KV_TAIL_MAX);
    if (n <= s->tail) return WG_OK;
    if (n > kv->max_slots - s->len)
        return wg_fail(err, WG_ECONTEXT,
                       "KV cache: %d committed and %d new slots, but a sequence has room for %d; raise max_tokens", s->len, n,
                       kv->max_slots);

    /* The slots that may be written next: the tail, and committed slots that some space has not reached yet (3). */
    const int from = wg_kv_final_len(s) / kv->page_slots, want = wg_kv_pages_for(kv, s->len + n);
    int need = want - s->pages;
    for (int i = from; i < s->pages; i++) need += kv->refs[s->page[i]] > 1;
    if (need > kv->free_pages)
        return wg_fail(err, WG_EFULL,
                       "KV cache: %d new slots need %d pages of %d slots, %d of %d are free: %d missing; "
                       "raise pages or run fewer sequences at once",
                       n, need, kv->page_slots, kv->free_pages, kv->pages, need - kv->free_pages);

    for (int i = from; i < s->pages; i++)
        if (kv->refs[s->page[i]] > 1) page_copy(s, i);
    while (s->pages < want) s->page[s->pages++] = page_take(kv);
    s->tail = n;
    hard_check(kv);
    return WG_OK;
}

static bool tail_wrote(const wg_kv_seq *s, int space, int i) { return s->wrote[space][i / 64] >> (i % 64) & 1; }

/* The offset of a slot in layer 0, of a part that begins `at` bytes after the keys and has `bytes` per slot. */
static size_t part_at(const wg_kv_store *t, int32_t page, int offset, size_t at, size_t bytes)
{
    return (size_t)page * t->page_bytes + at + (size_t)offset * bytes;
}

static void copy_pieces(const wg_kv_store *t, size_t to, size_t from, size_t bytes)
{
    for (int i = 0; i < 2 * t->layers; i++, to += t->value_at, from += t->value_at) memcpy(t->pool + to, t->pool + from, bytes);
}

void wg_kv_slot_copy(const wg_kv *kv, const wg_kv_store *t, int32_t to_page, int to, int32_t from_page, int from)
{
    copy_pieces(t, part_at(t, to_page, to, 0, t->row_bytes), part_at(t, from_page, from, 0, t->row_bytes), t->row_bytes);
    for (int i = 0; i < t->scales; i++) {
        const size_t at = t->scale_at + (size_t)(i * kv->page_slots) * sizeof(float);
        copy_pieces(t, part_at(t, to_page, to, at, sizeof(float)), part_at(t, from_page, from, at, sizeof(float)),
                    sizeof(float));
    }
}

/* Slots of a space to be moved; for another device's memory they are moved in one call. */
typedef struct moving {
    const wg_kv_seq *s;
    const wg_kv_store *t;
    wg_kv_moves m;
} moving;

static moving moving_in(const wg_kv_seq *s, int space)
{
    const wg_kv_store *t = &s->kv->space[space];
    /* keys and values of all layers: layer_bytes is twice value_at */
    return (moving){ s, t, { .bytes = t->row_bytes, .stride = t->value_at, .count = 2 * t->layers } };
}

static void moving_end(moving *w)
{
    if (w->m.n) w->t->memory.move(w->t->memory.user, w->t->pool, &w->m);
    w->m.n = 0;
}

static void slot_move(moving *w, int to, int from)
{
    const wg_kv_seq *s = w->s;
    const wg_kv_store *t = w->t;
    const int P = s->kv->page_slots;
    if (!t->memory.alloc) {
        wg_kv_slot_copy(s->kv, t, s->page[to / P], to % P, s->page[from / P], from % P);
        return;
    }
    if (w->m.n == WG_KV_MOVES) moving_end(w);
    w->m.to[w->m.n] = part_at(t, s->page[to / P], to % P, 0, t->row_bytes);
    w->m.from[w->m.n++] = part_at(t, s->page[from / P], from % P, 0, t->row_bytes);
}

/* Gives back the pages that nothing will read (7). */
static void drop_unread(wg_kv_seq *s)
{
    const int keep = wg_kv_unread(s, s->len, s->kv->back) / s->kv->page_slots;
    while (s->gone < keep) page_drop(s->kv, s->page[s->gone++]);
}

/* path[i] >= i, so copying in ascending order never reads a slot that was already overwritten. NULL is 0, 1, ..., n-1. */
static void commit(wg_kv_seq *s, const int16_t *path, int n)
{
    for (int k = 0; k < s->kv->spaces; k++) {
        if (s->valid[k] < s->len) continue; /* this space must catch up with older slots first */
        moving w = moving_in(s, k);
        for (int i = 0; i < n; i++) {
            const int from = path ? path[i] : i;
            if (!tail_wrote(s, k, from)) break;
            if (from != i) slot_move(&w, s->len + i, s->len + from);
            s->valid[k]++;
        }
        moving_end(&w);
    }
    keep_slots(s, s->len + n);
    drop_unread(s);
    hard_check(s->kv);
}

void wg_kv_commit(wg_kv_seq *s, const int16_t *path, int n)
{
    wg_assert(n >= 0 && n <= s->tail);
    for (int i = 0; i < n; i++) wg_assert(path[i] < s->tail && (i == 0 ? path[i] >= 0 : path[i] > path[i - 1]));
    commit(s, path, n);
}

void wg_kv_commit_chain(wg_kv_seq *s, int n)
{
    wg_assert(n >= 0 && n <= s->tail);
    commit(s, NULL, n);
}

void wg_kv_rollback(wg_kv_seq *s)
{
    keep_slots(s, s->len);
    hard_check(s->kv);
}

void wg_kv_truncate(wg_kv_seq *s, int len)
{
    wg_assert(s->tail == 0 && len >= 0 && len <= s->len);
    if (s->gone * s->kv->page_slots > wg_kv_unread(s, len, 0)) len = 0;
    keep_slots(s, len);
    for (int i = 0; i < s->kv->spaces; i++) {
        if (s->first[i] > len) s->first[i] = s->valid[i] = 0;
        if (s->valid[i] > len) s->valid[i] = len;
    }
    hard_check(s->kv);
}

void wg_kv_renumber(wg_kv_seq *s, int space, const int16_t *slot, int n)
{
    wg_assert(space >= 0 && space < s->kv->spaces && n <= s->tail);
    moving w = moving_in(s, space);
    for (int i = 0; i < n; i++) {
        wg_assert(slot[i] < s->tail && slot[i] >= (i ? slot[i - 1] + 1 : 0));
        uint64_t *word = &s->wrote[space][i / 64];
        const bool wrote = tail_wrote(s, space, slot[i]);
        if (wrote && slot[i] != i) slot_move(&w, s->len + i, s->len + slot[i]);
        *word = (*word & ~((uint64_t)1 << (i % 64))) | (uint64_t)wrote << (i % 64);
    }
    moving_end(&w);
    wg_kv_unwrite(s, space, n);
}

int wg_kv_len(const wg_kv_seq *s) { return s->len; }
int wg_kv_tail(const wg_kv_seq *s) { return s->tail; }

int wg_kv_pages_held(const wg_kv_seq *s) { return s->pages - s->gone; }

int wg_kv_pages_alone(wg_kv_seq *const *seq, int n)
{
    int alone = 0;
    for (int k = 0; k < n; k++)
        for (int i = seq[k]->gone; i < seq[k]->pages; i++) seq[k]->kv->count[seq[k]->page[i]] = 0;
    for (int k = 0; k < n; k++) {
        const wg_kv *kv = seq[k]->kv;
        for (int i = seq[k]->gone; i < seq[k]->pages; i++) alone += ++kv->count[seq[k]->page[i]] == kv->refs[seq[k]->page[i]];
    }
    return alone;
}

int wg_kv_first(const wg_kv_seq *s, int space)
{
    wg_assert(space >= 0 && space < s->kv->spaces);
    return s->first[space];
}

int wg_kv_valid(const wg_kv_seq *s, int space)
{
    wg_assert(space >= 0 && space < s->kv->spaces);
    return s->valid[space];
}

bool wg_kv_holds(const wg_kv_seq *s, int space, int slot)
{
    wg_assert(space >= 0 && space < s->kv->spaces && slot >= 0);
    if (slot >= s->len) return slot < s->len + s->tail && tail_wrote(s, space, slot - s->len);
    return slot >= s->first[space] && slot < s->valid[space] && slot / s->kv->page_slots >= s->gone;
}

void wg_kv_wrote(wg_kv_seq *s, int space, int slot)
{
    wg_assert(space >= 0 && space < s->kv->spaces && slot >= 0 && slot < s->len + s->tail);
    wg_assert(s->kv->refs[s->page[slot / s->kv->page_slots]] == 1); /* (3): no other table has the page */
    if (slot >= s->len) {
        const int i = slot - s->len;
        s->wrote[space][i / 64] |= (uint64_t)1 << (i % 64);
    } else {
        wg_assert(slot == s->valid[space]);
        s->valid[space]++;
    }
}

bool wg_kv_restart(wg_kv_seq *s, int space, int from)
{
    const wg_kv *kv = s->kv;
    wg_assert(space >= 0 && space < kv->spaces && from >= 0 && from <= s->len);
    if (from < s->gone * kv->page_slots) return false;
    for (int i = from / kv->page_slots; s->tail && i < s->pages; i++)
        if (kv->refs[s->page[i]] > 1) return false;
    s->first[space] = s->valid[space] = from;
    hard_check(kv);
    return true;
}

void wg_kv_unwrite(wg_kv_seq *s, int space, int from)
{
    wg_assert(space >= 0 && space < s->kv->spaces && from >= 0);
    for (int i = from; i < s->tail; i++) s->wrote[space][i / 64] &= ~((uint64_t)1 << (i % 64));
}

wg_kv_view wg_kv_view_of(const wg_kv_seq *s, int space, int layer)
{
    wg_assert(space >= 0 && space < s->kv->spaces);
    const wg_kv_store *t = &s->kv->space[space];
    wg_assert(layer >= 0 && layer < t->layers);
    return (wg_kv_view){
        .type = t->type,
        .page_slots = s->kv->page_slots,
        .kv_dim = t->kv_dim,
        .page = s->page,
        .pool = t->pool + (size_t)layer * t->layer_bytes,
        .stride = t->page_bytes,
        .value_at = t->value_at,
        .head_dim = t->head_dim,
        .scale_at = t->scale_at,
    };
}
