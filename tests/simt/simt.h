/* SPDX-License-Identifier: MIT
 * What a test may turn on the emulated device; kernels see kernels/cuda/simt.h alone. One block runs at a time, on the calling
 * thread; state is the process's, as threadIdx and shared memory are words of the language and not arguments. */
#ifndef WG_TESTS_SIMT_H
#define WG_TESTS_SIMT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum simt_order { SIMT_FORWARD, SIMT_REVERSE, SIMT_SHUFFLED, SIMT_ORDERS } simt_order;

/* The order of threads within a block and of blocks within a grid, from the next launch on. */
void simt_order_set(simt_order order);

/* Device memory: at most `bytes` from now on (0: all there is). Only between allocations of 0 bytes is it exact. */
void simt_memory_limit(size_t bytes);

/* Device memory is closed to the host outside of launches and copies; a test opens it to look inside. */
void simt_memory_open(bool open);

typedef struct simt_stats { long launches, blocks, switches; size_t live, peak; } simt_stats; /* bytes of device memory */
simt_stats simt_stats_read(void);

/* The next failure (divergence, deadlock, wild pointer) calls this with its message instead of aborting; it must not return. */
void simt_on_fail(void (*fn)(const char *message));

#ifdef __cplusplus
}
#endif

/* Of memory.cpp, for the launcher and the runtime. */
#ifdef __cplusplus
bool simt_memory_holds(const void *p);
void simt_memory_enter(), simt_memory_leave(); /* nest */
void *simt_memory_take(size_t bytes);          /* NULL: none left */
void simt_memory_give(void *p);
extern simt_stats simt_counts;
#endif

#endif
