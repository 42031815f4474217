/* SPDX-License-Identifier: MIT
 * The memory of the emulated device: one stretch of addresses that the host cannot touch (no access rights) except while a
 * kernel or a copy runs. So a host pointer handed to a kernel and a device pointer read by the host both stop the test. Fresh
 * memory is NaN; blocks are fenced under the address sanitizer.
 * Changing access rights takes up to a millisecond where many threads run, so it ends after GUARDED changes: a host that reads
 * device memory does so early. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/simt/simt.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define FENCED(p, n) __asan_poison_memory_region(p, n)
#define USABLE(p, n) __asan_unpoison_memory_region(p, n)
#else
#define FENCED(p, n) ((void)(p), (void)(n))
#define USABLE(p, n) ((void)(p), (void)(n))
#endif

enum { ALIGN = 256, FENCE = 256, BLOCKS = 4096, GUARDED = 1000, MAPPED = 16 };
static const size_t ARENA = (size_t)1 << 30;

struct block { size_t at, bytes; };

static struct heap {
    char *base;
    block blocks[BLOCKS]; /* in the order of their places */
    int n, inside, changes;
    size_t open; /* bytes from the base on that stay accessible */
    size_t limit;
    struct { const char *at; size_t bytes; } mapped[MAPPED];
} H;

static void open_arena()
{
    if (H.base) return;
    void *p = mmap(NULL, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        perror("simt: device memory");
        abort();
    }
    H.base = (char *)p;
}

static void protect(int rights)
{
    const size_t used = H.n ? (H.blocks[H.n - 1].at + H.blocks[H.n - 1].bytes + FENCE + 4095) / 4096 * 4096 : 0;
    const bool last = H.changes >= GUARDED;
    if (last && (rights == PROT_NONE || used <= H.open)) return;
    if (last) H.open = used;
    H.changes++;
    if (used && mprotect(H.base, used, rights)) {
        perror("simt: device memory");
        abort();
    }
}

void simt_memory_enter()
{
    if (H.inside++ == 0) protect(PROT_READ | PROT_WRITE);
}

void simt_memory_leave()
{
    if (--H.inside == 0) protect(PROT_NONE);
}

void simt_memory_open(bool open)
{
    if (open) simt_memory_enter();
    else simt_memory_leave();
}

bool simt_memory_holds(const void *p) { return H.base && (const char *)p >= H.base && (const char *)p < H.base + ARENA; }
void simt_memory_limit(size_t bytes) { H.limit = bytes; }
simt_stats simt_stats_read(void) { return simt_counts; }

void simt_mapped(void *p, size_t bytes)
{
    for (int i = 0; i < MAPPED; i++)
        if (H.mapped[i].at == (bytes ? NULL : p)) {
            H.mapped[i].at = bytes ? (const char *)p : NULL;
            H.mapped[i].bytes = bytes;
            return;
        }
    if (bytes) abort(); /* too many */
}

bool simt_mapped_holds(const void *p)
{
    for (int i = 0; i < MAPPED; i++) {
        const char *at = H.mapped[i].at;
        if (at && (const char *)p >= at && (const char *)p < at + H.mapped[i].bytes) return true;
    }
    return false;
}

void *simt_memory_take(size_t bytes)
{
    open_arena();
    if (bytes == 0) bytes = 1;
    if (H.n == BLOCKS || bytes > ARENA || (H.limit && simt_counts.live + bytes > H.limit)) return NULL;
    size_t at = FENCE;
    int i = 0; /* the first gap that fits */
    for (; i < H.n && H.blocks[i].at < at + bytes + FENCE; i++)
        at = (H.blocks[i].at + H.blocks[i].bytes + FENCE + ALIGN - 1) / ALIGN * ALIGN;
    if (at + bytes + FENCE > ARENA) return NULL;
    memmove(&H.blocks[i + 1], &H.blocks[i], (size_t)(H.n - i) * sizeof *H.blocks);
    H.blocks[i] = block{ at, bytes };
    H.n++;
    simt_counts.live += bytes;
    if (simt_counts.live > simt_counts.peak) simt_counts.peak = simt_counts.live;
    char *p = H.base + at;
    H.inside++;
    protect(PROT_READ | PROT_WRITE);
    USABLE(p, bytes);
    memset(p, 0xff, bytes);
    FENCED(p + bytes, FENCE);
    FENCED(p - FENCE, FENCE);
    simt_memory_leave();
    return p;
}

void simt_memory_give(void *p)
{
    if (!p) return;
    for (int i = 0; i < H.n; i++)
        if (H.base + H.blocks[i].at == p) {
            simt_counts.live -= H.blocks[i].bytes;
            FENCED(p, H.blocks[i].bytes);
            memmove(&H.blocks[i], &H.blocks[i + 1], (size_t)(H.n - i - 1) * sizeof *H.blocks);
            H.n--;
            return;
        }
    fprintf(stderr, "simt: freed a block of device memory that is not there\n");
    abort();
}
