/* SPDX-License-Identifier: MIT
 * A set of byte strings. */
#include "core/text/byte_strings.h"

#include <string.h>

#include "core/base/hash.h"
#include "core/base/mem.h"

void wg_byte_strings_free(wg_byte_strings *s)
{
    wg_free(s->bytes);
    wg_free(s->v);
    wg_free(s->slot);
    *s = (wg_byte_strings){ 0 };
}

/* The slot of a string, or the empty one where it belongs. */
static size_t slot_of(const wg_byte_strings *s, const char *bytes, size_t n)
{
    size_t i = wg_hash64(WG_HASH_START, bytes, n);
    for (i ^= i >> 32;; i++) {
        const uint32_t k = s->slot[i & (s->slots - 1)];
        if (k == 0) break;
        const wg_byte_string *v = &s->v[k - 1];
        if (v->n == n && memcmp(s->bytes + v->at, bytes, n) == 0) break;
    }
    return i & (s->slots - 1);
}

static wg_status more_slots(wg_byte_strings *s, wg_error *err)
{
    const size_t slots = s->slots > 0 ? 2 * s->slots : 1024;
    uint32_t *slot = wg_calloc(slots, sizeof *slot);
    if (!slot) return wg_nomem(err, slots * sizeof *slot, "words");
    wg_free(s->slot);
    s->slot = slot;
    s->slots = slots;
    for (size_t i = 0; i < s->n; i++) s->slot[slot_of(s, s->bytes + s->v[i].at, s->v[i].n)] = (uint32_t)i + 1;
    return WG_OK;
}

int64_t wg_byte_strings_find(const wg_byte_strings *s, const char *bytes, size_t n)
{
    return s->slots == 0 ? -1 : (int64_t)s->slot[slot_of(s, bytes, n)] - 1;
}

wg_status wg_byte_strings_add(wg_byte_strings *s, const char *bytes, size_t n, int64_t count, uint32_t *number, wg_error *err)
{
    if (2 * (s->n + 1) > s->slots) WG_TRY(more_slots(s, err));
    const size_t at = slot_of(s, bytes, n);
    if (s->slot[at] == 0) {
        WG_TRY(wg_grow((void **)&s->bytes, &s->bytes_room, s->n_bytes + n, 1, "words", err));
        WG_TRY(wg_grow((void **)&s->v, &s->room, s->n + 1, sizeof *s->v, "words", err));
        if (n > 0) memcpy(s->bytes + s->n_bytes, bytes, n);
        s->v[s->n] = (wg_byte_string){ .at = s->n_bytes, .n = (uint32_t)n };
        s->n_bytes += n;
        s->slot[at] = (uint32_t)++s->n;
    }
    *number = s->slot[at] - 1;
    s->v[*number].count += count;
    return WG_OK;
}
