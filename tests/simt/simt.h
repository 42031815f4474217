/* SPDX-License-Identifier: MIT
 * What a test may turn on the emulated device; kernels see kernels/cuda/cuda_emulated.h alone. One block runs at a time, on the calling
 * thread; state is the process's, as threadIdx and shared memory are words of the language and not arguments. */
#ifndef WG_TESTS_SIMT_H
#define WG_TESTS_SIMT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
#include "kernels/cuda/cuda_emulated.h"
extern "C" {
#endif

typedef enum simt_order { SIMT_FORWARD, SIMT_REVERSE, SIMT_SHUFFLED, SIMT_ORDERS } simt_order;

/* The order of threads within a block and of blocks within a grid, from the next launch on. */
void simt_order_set(simt_order order);

/* Device memory: at most `bytes` from now on (0: all there is). Only between allocations of 0 bytes is it exact. */
void simt_memory_limit(size_t bytes);

/* Device memory is closed to the host outside of launches and copies; a test opens it to look inside. */
void simt_memory_open(bool open);

typedef struct simt_stats {
    long launches, blocks, switches;
    long replays;      /* of graphs */
    size_t live, peak; /* bytes of device memory */
} simt_stats;
simt_stats simt_stats_read(void);

/* The next failure (divergence, deadlock, wild pointer) calls this with its message instead of aborting; it must not return. */
void simt_on_fail(void (*fn)(const char *message));

/* What rules ask in the place of Philox, from the next launch on; NULL: nobody (kernels/rule/rule_ask.h). */
struct wg_rule_oracle;
void simt_oracle_set(const struct wg_rule_oracle *o);

#ifdef __cplusplus
}
#endif

/* Of memory.cpp and graph.cpp, for the launcher and the runtime. */
#ifdef __cplusplus
bool simt_memory_holds(const void *p);
void *simt_memory_take(size_t bytes);          /* NULL: none left */
void *simt_memory_take_weights(size_t bytes);
void simt_memory_give(void *p);
void simt_mapped(void *p, size_t bytes);       /* host memory that kernels may be handed; 0 bytes: no longer */
bool simt_mapped_holds(const void *p);
extern simt_stats simt_counts;

/* What can be touched: by the host nothing; by a kernel weights (to be read), after its wg_depend() the rest too; by copies
 * all of it. Gives what could before. simt_memory_guarded: whether that is still so (memory.cpp). */
enum simt_access { SIMT_NOTHING, SIMT_WEIGHTS, SIMT_KERNEL, SIMT_EVERYTHING };
simt_access simt_memory_access(simt_access now);
bool simt_memory_guarded();

/* A launch, or something else to be done in its place (no kernel). arg: `bytes` of it, copied when it is recorded. */
struct simt_step { dim3 grid, block; size_t dynamic; const char *kernel; simt_fn *run; void *arg; size_t bytes; };
struct simt_graph;
bool simt_recording();
void simt_record_begin();
void simt_record(const simt_step &step);
void simt_record_refuse(const char *what);     /* called while something is recorded: what cannot be part of it */
simt_graph *simt_record_end(const int32_t *again = NULL); /* again: a loop, as long as this word is not 0; NULL: none */
void simt_replay(const simt_graph *g);
void simt_forget(simt_graph *g);
void simt_pinned(const void *p, size_t bytes); /* host memory that no recorded argument may point into; 0 bytes: no longer */
#endif

#endif
