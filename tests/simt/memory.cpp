/* SPDX-License-Identifier: MIT
 * The memory of the emulated device: two stretches of addresses, one of them for weights, with the access rights of the moment.
 * The host can touch neither; copies touch both; a kernel reads weights, and the rest once it has called wg_depend(). A kernel
 * that writes weights (the fault tells) makes them like the rest until the next copy. So a host pointer handed to a kernel, a
 * device pointer read by the host and a kernel that reads or writes too early all stop the test. Fresh memory is NaN; blocks
 * are fenced under the address sanitizer.
 * Changing access rights takes up to a millisecond where many threads run, so it ends after GUARDED changes: a mistake is seen
 * where it is made early. */
#include <signal.h>
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

enum { ALIGN = 256, FENCE = 256, BLOCKS = 4096, GUARDED = 1500, MAPPED = 16 };
static const size_t STRETCH = (size_t)1 << 30;

struct block {
    size_t at, bytes;
};

struct stretch {
    char *base;
    block blocks[BLOCKS]; /* in the order of their places */
    int n, rights;
    size_t set; /* bytes from the base on that have these rights */
};

static struct memory {
    stretch made, weights;
    simt_access access;
    bool drawn; /* a kernel has written weights */
    int changes;
    size_t limit;
    struct {
        const char *at;
        size_t bytes;
    } mapped[MAPPED];
    struct sigaction before; /* what a fault elsewhere goes to */
} H;

static bool within(const stretch *s, const void *p)
{
    return s->base && (const char *)p >= s->base && (const char *)p < s->base + STRETCH;
}

/* Says what was done by whom; addresses of others go where they went before. */
static void fault(int, siginfo_t *info, void *)
{
    const bool weights = within(&H.weights, info->si_addr);
    if (!weights && !within(&H.made, info->si_addr)) {
        sigaction(SIGSEGV, &H.before, NULL);
        return;
    }
    if (weights && H.access == SIMT_KERNEL && !H.drawn) {
        H.drawn = true;
        simt_memory_access(SIMT_KERNEL);
        return;
    }
    simt_fail(SIMT_HERE, H.access == SIMT_NOTHING ? "the host touches device memory"
                         : H.access == SIMT_WEIGHTS
                             ? "before wg_depend() a kernel touches what the one before it may still read or write"
                             : "a kernel touches what lies behind all device memory");
}

static char *reserve()
{
    void *p = mmap(NULL, STRETCH, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        perror("simt: device memory");
        abort();
    }
    return (char *)p;
}

static void open_memory()
{
    if (H.made.base) return;
    H.made.base = reserve();
    H.weights.base = reserve();
    struct sigaction now;
    memset(&now, 0, sizeof now);
    now.sa_sigaction = fault;
    now.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &now, &H.before);
}

static void give_rights(stretch *s, int rights)
{
    const block *last = s->n ? &s->blocks[s->n - 1] : NULL;
    const size_t used = last ? (last->at + last->bytes + FENCE + 4095) / 4096 * 4096 : 0;
    if (!simt_memory_guarded()) rights = PROT_READ | PROT_WRITE;
    if (used == 0 || (s->rights == rights && used <= s->set)) return;
    s->rights = rights;
    s->set = used;
    H.changes++;
    if (mprotect(s->base, used, rights)) {
        perror("simt: device memory");
        abort();
    }
}

simt_access simt_memory_access(simt_access now)
{
    static const int made[] = { PROT_NONE, PROT_NONE, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE };
    static const int weights[] = { PROT_NONE, PROT_READ, PROT_READ, PROT_READ | PROT_WRITE };
    const simt_access was = H.access;
    H.access = now;
    if (now == SIMT_EVERYTHING) H.drawn = false;
    give_rights(&H.made, made[now]);
    give_rights(&H.weights, H.drawn ? made[now] : weights[now]);
    return was;
}

bool simt_memory_guarded() { return H.changes < GUARDED; }
void simt_memory_open(bool open) { simt_memory_access(open ? SIMT_EVERYTHING : SIMT_NOTHING); }
bool simt_memory_holds(const void *p) { return within(&H.made, p) || within(&H.weights, p); }
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

static void *take(stretch *s, size_t bytes)
{
    open_memory();
    if (bytes == 0) bytes = 1;
    if (s->n == BLOCKS || bytes > STRETCH || (H.limit && simt_counts.live + bytes > H.limit)) return NULL;
    size_t at = FENCE;
    int i = 0; /* the first gap that fits */
    for (; i < s->n && s->blocks[i].at < at + bytes + FENCE; i++)
        at = (s->blocks[i].at + s->blocks[i].bytes + FENCE + ALIGN - 1) / ALIGN * ALIGN;
    if (at + bytes + FENCE > STRETCH) return NULL;
    memmove(&s->blocks[i + 1], &s->blocks[i], (size_t)(s->n - i) * sizeof *s->blocks);
    s->blocks[i] = block{ at, bytes };
    s->n++;
    simt_counts.live += bytes;
    if (simt_counts.live > simt_counts.peak) simt_counts.peak = simt_counts.live;
    char *p = s->base + at;
    const simt_access was = simt_memory_access(SIMT_EVERYTHING);
    USABLE(p, bytes);
    memset(p, 0xff, bytes);
    FENCED(p + bytes, FENCE);
    FENCED(p - FENCE, FENCE);
    simt_memory_access(was);
    return p;
}

void *simt_memory_take(size_t bytes) { return take(&H.made, bytes); }
void *simt_memory_take_weights(size_t bytes) { return take(&H.weights, bytes); }

void simt_memory_give(void *p)
{
    stretch *s = within(&H.weights, p) ? &H.weights : &H.made;
    if (!p) return;
    for (int i = 0; i < s->n; i++)
        if (s->base + s->blocks[i].at == p) {
            simt_counts.live -= s->blocks[i].bytes;
            FENCED(p, s->blocks[i].bytes);
            memmove(&s->blocks[i], &s->blocks[i + 1], (size_t)(s->n - i - 1) * sizeof *s->blocks);
            s->n--;
            return;
        }
    fprintf(stderr, "simt: freed a block of device memory that is not there\n");
    abort();
}
