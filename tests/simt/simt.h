/* SPDX-License-Identifier: MIT
 * What a test may turn on the emulated device; kernels see tests/simt/cuda_emulated.h alone. One block runs at a time, on
 * the calling thread; state is the process's, as threadIdx and shared memory are words of the language and not arguments. */
#ifndef WG_TESTS_SIMT_H
#define WG_TESTS_SIMT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
#include "tests/simt/cuda_emulated.h"
extern "C" {
#endif

typedef enum simt_order { SIMT_FORWARD, SIMT_REVERSE, SIMT_SHUFFLED, SIMT_AHEAD, SIMT_ORDERS } simt_order;

/* The order of threads within a block and of blocks within a grid, from the next launch on. In the first three a thread runs
 * until it must wait for others, then another; so no warp is ever further than a collective ahead. SIMT_AHEAD: a warp runs
 * until only others of the block can let it go on, the one that released a barrier first, so it is a barrier ahead: memory
 * that it writes there while others still read what was in it has other bits then. */
void simt_order_set(simt_order order);

/* Device memory: at most `bytes` from now on (0: all there is). Only between allocations of 0 bytes is it exact. */
void simt_memory_limit(size_t bytes);

/* Device memory is closed to the host outside of launches and copies; a test opens it to look inside. */
void simt_memory_open(bool open);

typedef struct simt_stats {
    long launches, blocks, switches;
    long replays;      /* of graphs */
    long polls;        /* of a stream that was not ready */
    long uncarved;     /* launches of kernels whose share of a multiprocessor's memory nobody has stated */
    size_t live, peak; /* bytes of device memory */
} simt_stats;
simt_stats simt_stats_read(void);

/* The card: multiprocessors, and bytes of shared memory that a block may take. At first 2 and 227 KiB, or what the environment
 * says (WG_SIMT_SMS, WG_SIMT_SHARED in KiB). For devices opened from then on; 0: as it is. */
typedef struct simt_card {
    int sms;
    size_t shared;
} simt_card;
void simt_card_set(int sms, size_t shared);
simt_card simt_card_read(void);

/* How an mma adds (mma.cpp): each product in turn, rounded; or as tensor cores do, aligned and cut off. At first the former, or
 * what WG_SIMT_MMA says: "exact", "ampere", "hopper". */
typedef enum simt_mma_sums { SIMT_MMA_EXACT, SIMT_MMA_AMPERE, SIMT_MMA_HOPPER, SIMT_MMA_KINDS } simt_mma_sums;
void simt_mma_set(simt_mma_sums how);

/* The stub runtime, for tests of what runtime.cu makes of its answers. fail: the nth call of this name from now on fails with
 * an error (a cudaError_t); WG_SIMT_FAIL names a call that always fails. break: every call fails, for good. capture_answers:
 * what is illegal during a capture is answered as the toolkit answers it, instead of stopping the test. */
void simt_cuda_fail(const char *call, int nth, int error);
void simt_cuda_break(int error);
void simt_capture_answers(bool answers);

/* The next failure (divergence, deadlock, wild pointer) calls this with its message instead of aborting; it must not return. */
void simt_on_fail(void (*fn)(const char *message));

/* What rules ask in the place of Philox, from the next launch on; NULL: nobody (kernels/rule/rule_ask.h). */
struct wg_rule_oracle;
void simt_oracle_set(const struct wg_rule_oracle *o);

#ifdef __cplusplus
}
#endif

/* Of memory.cpp and stream.cpp, for the launcher and the runtime. */
#ifdef __cplusplus
bool simt_memory_holds(const void *p);
void *simt_memory_take(size_t bytes); /* NULL: none left */
void *simt_memory_take_weights(size_t bytes);
void simt_memory_give(void *p);
void simt_mapped(void *p, size_t bytes); /* host memory that kernels may be handed; 0 bytes: no longer */
bool simt_mapped_holds(const void *p);
extern simt_stats simt_counts;

/* What can be touched: by the host nothing; by a kernel weights (to be read), after its wg_depend() the rest too; by copies
 * all of it. Gives what could before. simt_memory_guarded: whether that is still so (memory.cpp). */
enum simt_access { SIMT_NOTHING, SIMT_WEIGHTS, SIMT_KERNEL, SIMT_EVERYTHING };
simt_access simt_memory_access(simt_access now);
bool simt_memory_guarded();

/* A launch, or something else to be done in its place (no kernel). arg: `bytes` of it, copied when it is kept for later.
 * function: the kernel's, when it was launched through the stub runtime. */
struct simt_step {
    dim3 grid, block;
    size_t dynamic;
    const char *kernel;
    simt_fn *run;
    void *arg;
    size_t bytes;
    const void *function;
};

/* Of stream.cpp. What is launched between begin and end is kept, to be done by replay. */
bool simt_recording();
void simt_record_begin();
void simt_record(simt_step step);
struct simt_graph *simt_record_end();
void simt_replay(const simt_graph *g);
void simt_forget(simt_graph *g);
void simt_pinned(const void *p, size_t bytes); /* host memory that no recorded argument may point into; 0 bytes: no longer */
#endif

#endif
