/* SPDX-License-Identifier: MIT
 * A fork-join thread pool for jobs of microseconds: workers spin briefly between jobs, then sleep. The assignment of parts
 * to threads never changes a result: parts split outputs, never sums. */
#ifndef WG_CORE_BASE_POOL_H
#define WG_CORE_BASE_POOL_H

#include "core/base/error.h"

typedef struct wg_pool wg_pool;
typedef void wg_pool_fn(void *arg, int thread, int threads); /* called once for each part, 0 .. threads-1 */
typedef void wg_pool_each_fn(void *arg, int lo, int hi);     /* called for items lo .. hi-1 */

/* threads: 1..256, or 0 for the number of cores this process may run on. One pool per engine; not reentrant. */
wg_status wg_pool_open(wg_pool **out, int threads, wg_error *err);
void wg_pool_close(wg_pool *p); /* NULL is fine */
int wg_pool_threads(const wg_pool *p);

/* Binds worker i to the ith processor of those this process may run on; the first is left to the caller, which is not bound.
 * EINVAL: more threads than processors, or refused by the system. NULL and one thread: nothing to bind. */
wg_status wg_pool_pin(wg_pool *p, wg_error *err);

/* Runs fn for every part and returns when all are done. The caller runs part 0, and parts that no worker has begun by then.
 * p == NULL runs fn(arg, 0, 1). */
void wg_pool_run(wg_pool *p, wg_pool_fn *fn, void *arg);

/* Runs fn for items 0 .. n-1, in runs that cover each once, and returns when all are done. Runs begin and end at multiples of
 * `grain`, or end at n. A thread begins with a share of its own, the same in every job of n, and takes half of its rest at a
 * time; then it takes from the ends of other shares. So threads of unequal speed end together, within about the time of a
 * grain. p == NULL runs fn(arg, 0, n). */
void wg_pool_each(wg_pool *p, int n, int grain, wg_pool_each_fn *fn, void *arg);

/* The contiguous share [*lo, *hi) of n items for one thread, in multiples of `grain` (the last part takes the rest). */
void wg_pool_share(int n, int grain, int thread, int threads, int *lo, int *hi);

#endif
