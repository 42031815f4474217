/* SPDX-License-Identifier: MIT
 * The allocator. Every allocation of the project goes through these functions, so a test can count allocations (a step
 * allocates nothing after warm-up), make the nth one fail, and list what is still allocated. All functions are thread-safe. */
#ifndef WG_CORE_BASE_MEM_H
#define WG_CORE_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

enum { WG_ALIGN = 64 }; /* alignment of blocks: a cache line, an AVX-512 vector */

/* n * size bytes, aligned to WG_ALIGN, zeroed. NULL when out of memory or when n * size overflows. n * size == 0 gives a
 * unique block. Free with wg_free. */
void *wg_calloc(size_t n, size_t size) __attribute__((malloc, warn_unused_result));

/* The same without clearing (for large buffers that are written before they are read). */
void *wg_alloc(size_t n, size_t size) __attribute__((malloc, warn_unused_result));

/* The same as wg_calloc, in a mapping of its own: pages cost nothing until they are touched, and wg_free gives them back to the
 * system at once, which the C library does not do with blocks that it keeps. For tables that are large and mostly empty. */
void *wg_map(size_t n, size_t size) __attribute__((malloc, warn_unused_result));

/* Grows or shrinks to n * size bytes keeping the contents; on failure returns NULL and p stays as it was. New bytes are
 * not cleared. */
void *wg_realloc(void *p, size_t n, size_t size) __attribute__((warn_unused_result));

/* Advises large pages for a block that will be written whole: fewer faults then, and fewer misses of the TLB later. */
void wg_mem_large_pages(void *p, size_t bytes);

/* Makes room for `need` elements of `size` bytes in *p, which has *room: twice as much as there was, or more. ENOMEM: nothing
 * has changed; what: what the memory is for. */
wg_status wg_grow(void **p, size_t *room, size_t need, size_t size, const char *what, wg_error *err);

void wg_free(void *p); /* NULL is fine */

/* A copy of a string or of its first n bytes (NUL added); NULL when out of memory. */
char *wg_strdup(const char *s) __attribute__((malloc, warn_unused_result));
char *wg_strndup(const char *s, size_t n) __attribute__((malloc, warn_unused_result));

/* The usual message for a failed allocation: "out of memory: %zu bytes for %s". */
wg_status wg_nomem(wg_error *err, size_t bytes, const char *what);

/* Checked size arithmetic for numbers that come from files: false (and *out untouched) on overflow. */
bool wg_size_mul(size_t a, size_t b, size_t *out);
bool wg_size_add(size_t a, size_t b, size_t *out);

typedef struct wg_mem_stats {
    size_t live_blocks, live_bytes; /* not freed yet */
    size_t peak_bytes;
    uint64_t calls; /* allocations and reallocations since the start */
} wg_mem_stats;
wg_mem_stats wg_mem_read(void);

/* Free memory in bytes, of the machine and of the process's control group, the smaller; SIZE_MAX where neither is known. For
 * checks of sizes that a user set: overcommitted memory would kill the process later. */
size_t wg_mem_available(void);

/* Makes the nth allocation from now fail (1 = the next one), and with `sticky` all later ones too; 0 turns it off. */
void wg_mem_fail_at(uint64_t nth, bool sticky);

#endif
