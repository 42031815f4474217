/* SPDX-License-Identifier: MIT
 * The allocator: a header of one cache line in front of every block holds its size, atomics hold the totals. Invariant:
 * live_bytes is the sum of the sizes of all blocks allocated and not freed; the totals are exact at any moment when no other
 * thread is inside. Large cleared blocks come from calloc, so untouched pages cost nothing. */
#include "core/base/mem.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct header {
    uint64_t magic;
    size_t size;   /* requested bytes */
    char *raw;     /* the block of the C library, or the mapping ... */
    size_t mapped; /* ... of so many bytes; 0: of the C library */
} header;

enum { LAZY_ZERO = 1 << 18 }; /* from this size on the system's zero pages beat memset */

#define MAGIC 0x77616765726d656dull

static atomic_size_t live_blocks, live_bytes, peak_bytes;
static atomic_uint_fast64_t calls, fail_in; /* fail_in: 0 off, 1 fail the next one */
static atomic_bool fail_sticky;

static header *header_of(void *p)
{
    header *h = (header *)((char *)p - WG_ALIGN);
    wg_assert(h->magic == MAGIC); /* foreign, freed twice, or overwritten by the block before */
    return h;
}

/* Counts the call; true when the test hook wants it to fail. */
static bool must_fail(void)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    uint_fast64_t left = atomic_load_explicit(&fail_in, memory_order_relaxed);
    while (left != 0) {
        const uint_fast64_t next = left > 1 ? left - 1 : atomic_load(&fail_sticky) ? 1 : 0;
        if (atomic_compare_exchange_weak(&fail_in, &left, next)) return left == 1;
    }
    return false;
}

static void ledger_add(size_t size)
{
    const size_t now = atomic_fetch_add_explicit(&live_bytes, size, memory_order_relaxed) + size;
    size_t peak = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
    while (now > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, now)) {}
}

static void *enter(char *p, header h)
{
    *(header *)(p - WG_ALIGN) = h;
    atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
    ledger_add(h.size);
    return p;
}

static void *block_new(size_t size, bool zero)
{
    if (size > SIZE_MAX / 2) return NULL;
    char *raw = NULL, *p = NULL;
    if (zero && size >= LAZY_ZERO) {
        raw = calloc(1, size + 2 * WG_ALIGN);
        if (!raw) return NULL;
        p = (char *)(((uintptr_t)raw + 2 * WG_ALIGN - 1) & ~(uintptr_t)(WG_ALIGN - 1));
    } else {
        void *got = NULL;
        if (posix_memalign(&got, WG_ALIGN, size + WG_ALIGN) != 0) return NULL;
        raw = got;
        p = raw + WG_ALIGN;
        if (zero) memset(p, 0, size);
    }
    return enter(p, (header){ MAGIC, size, raw, 0 });
}

void *wg_calloc(size_t n, size_t size)
{
    size_t bytes;
    return must_fail() || !wg_size_mul(n, size, &bytes) ? NULL : block_new(bytes, true);
}

void *wg_alloc(size_t n, size_t size)
{
    size_t bytes;
    return must_fail() || !wg_size_mul(n, size, &bytes) ? NULL : block_new(bytes, false);
}

void *wg_map(size_t n, size_t size)
{
    size_t bytes, all;
    if (must_fail() || !wg_size_mul(n, size, &bytes) || !wg_size_add(bytes, WG_ALIGN, &all)) return NULL;
    char *raw = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED) return NULL;
#ifdef MADV_NOHUGEPAGE
    (void)madvise(raw, all, MADV_NOHUGEPAGE); /* a large page would be touched whole */
#endif
    return enter(raw + WG_ALIGN, (header){ MAGIC, bytes, raw, all });
}

void wg_mem_large_pages(void *p, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t large = 2 << 20, lo = ((uintptr_t)p + large - 1) & ~(large - 1), hi = ((uintptr_t)p + bytes) & ~(large - 1);
    if (lo < hi) (void)madvise((void *)lo, hi - lo, MADV_HUGEPAGE); /* advice: a failure changes nothing */
#else
    (void)p, (void)bytes;
#endif
}

void *wg_realloc(void *p, size_t n, size_t size)
{
    size_t bytes;
    if (must_fail() || !wg_size_mul(n, size, &bytes)) return NULL;
    void *q = block_new(bytes, false);
    if (!q || !p) return q;
    const size_t old = header_of(p)->size;
    memcpy(q, p, old < bytes ? old : bytes);
    wg_free(p);
    return q;
}

wg_status wg_grow(void **p, size_t *room, size_t need, size_t size, const char *what, wg_error *err)
{
    if (need <= *room) return WG_OK;
    size_t more = *room > 0 ? *room : 64;
    while (more < need) more = more > SIZE_MAX / 2 ? need : 2 * more;
    void *q = wg_realloc(*p, more, size);
    if (!q) return wg_nomem(err, more > SIZE_MAX / size ? SIZE_MAX : more * size, what);
    *p = q;
    *room = more;
    return WG_OK;
}

void wg_free(void *p)
{
    if (!p) return;
    header *h = header_of(p);
    atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&live_bytes, h->size, memory_order_relaxed);
    h->magic = 0;
    if (h->mapped) (void)munmap(h->raw, h->mapped); /* the very mapping that was made */
    else free(h->raw);
}

char *wg_strndup(const char *s, size_t n)
{
    const char *nul = memchr(s, '\0', n);
    const size_t len = nul ? (size_t)(nul - s) : n;
    char *copy = wg_alloc(len + 1, 1);
    if (!copy) return NULL;
    memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

char *wg_strdup(const char *s) { return wg_strndup(s, strlen(s)); }

wg_status wg_nomem(wg_error *err, size_t bytes, const char *what)
{
    return wg_fail(err, WG_ENOMEM, "out of memory: %zu bytes for %s", bytes, what);
}

bool wg_size_mul(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_mul_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

bool wg_size_add(size_t a, size_t b, size_t *out)
{
    size_t r;
    if (__builtin_add_overflow(a, b, &r)) return false;
    *out = r;
    return true;
}

wg_mem_stats wg_mem_read(void)
{
    return (wg_mem_stats){
        .live_blocks = atomic_load(&live_blocks),
        .live_bytes = atomic_load(&live_bytes),
        .peak_bytes = atomic_load(&peak_bytes),
        .calls = atomic_load(&calls),
    };
}

void wg_mem_fail_at(uint64_t nth, bool sticky)
{
    atomic_store(&fail_sticky, sticky);
    atomic_store(&fail_in, nth);
}

/* The number behind `key` in a file of the system's; false: no such file, or no number ("max"). */
static bool number_in(const char *path, const char *key, size_t *out)
{
    char line[256];
    bool found = false;
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        const size_t n = strlen(key);
        unsigned long long v;
        if (strncmp(line, key, n) != 0 || sscanf(line + n, "%llu", &v) != 1) continue;
        *out = (size_t)v;
        found = true;
    }
    if (f) fclose(f);
    return found;
}

size_t wg_mem_available(void)
{
    size_t free = SIZE_MAX, kib, most, used;
    if (number_in("/proc/meminfo", "MemAvailable:", &kib)) free = kib * 1024;
    if (number_in("/sys/fs/cgroup/memory.max", "", &most) && number_in("/sys/fs/cgroup/memory.current", "", &used)) {
        const size_t left = most > used ? most - used : 0;
        if (left < free) free = left;
    }
    return free;
}
