/* SPDX-License-Identifier: MIT
 * bench comm: what messages between ranks cost: latency and bandwidth by bytes. */
#include <jansson.h>
#include <stdio.h>

#include "core/base/json_line.h"
#include "core/setup/target_ranks.h"
#include "experiments/base/timing.h"
#include "experiments/bench/bench_parts.h"

static const char *const names[] = { "order", "join", "round" };
static const size_t sizes[] = { 8, 1024, 16384, 262144, 4194304 };
enum { SIZES = sizeof sizes / sizeof sizes[0], CALLS = 3 };

/* Calls of which a repeat takes some milliseconds. */
static int times_of(size_t bytes) { return bytes < 100000 ? 200 : bytes < 1000000 ? 50 : 10; }

/* Bytes that rank 0 sends and receives in a call. */
static double moved(const wg_comm *c, wg_ranks_call what, size_t bytes)
{
    const double others = c->ranks - 1;
    return (double)bytes * (what == WG_RANKS_TELL ? others : what == WG_RANKS_JOIN ? 2 * others : 2);
}

static wg_status time_call(wg_comm *c, wg_ranks_call what, size_t bytes, int repeats, double *seconds, wg_error *err)
{
    double each[WG_BENCH_REPEATS];
    const int times = times_of(bytes);
    for (int i = -1; i < repeats; i++) { /* the first one is a warm-up */
        double all;
        WG_TRY(wg_ranks_time(c, what, bytes, times, &all, err));
        if (i >= 0) each[i] = all / times;
    }
    *seconds = wg_bench_median(each, repeats);
    return WG_OK;
}

static wg_status time_all(wg_comm *c, int repeats, bool json, wg_error *err)
{
    if (!json) printf("%d ranks (%s): microseconds of a call, and GB/s through rank 0\n", c->ranks, c->class->name);
    if (!json) printf("%10s %18s %18s %18s\n", "bytes", "order", "join", "round");
    for (int i = 0; i < SIZES; i++) {
        if (!json) printf("%10zu", sizes[i]);
        for (int k = 0; k < CALLS; k++) {
            double seconds;
            WG_TRY(time_call(c, (wg_ranks_call)k, sizes[i], repeats, &seconds, err));
            const double rate = moved(c, (wg_ranks_call)k, sizes[i]) / seconds / 1e9;
            if (!json) printf(" %10.2f %7.3f", seconds * 1e6, rate);
            else
                wg_json_put_line(json_pack("{s:s, s:s, s:i, s:I, s:f, s:f}", "call", names[k], "ranks", c->class->name, "n",
                                           c->ranks, "bytes", (json_int_t)sizes[i], "us", seconds * 1e6, "gb_s", rate),
                                 0);
        }
        if (!json) putchar('\n');
    }
    return WG_OK;
}

wg_status wg_bench_comm(const char *ranks, int repeats, bool json, wg_error *err)
{
    wg_comm_spec where;
    wg_rank_threads *threads = NULL;
    WG_TRY(wg_target_ranks(&(wg_target_options){ .ranks = ranks }, &where, err));
    if (where.ranks < 2)
        return wg_fail(err, WG_EINVAL, "bench comm needs several ranks: --ranks threads:N, or mpirun -n N before the command");
    if (where.kind == WG_COMM_THREADS) WG_TRY(wg_rank_threads_open(&threads, where.ranks, &wg_target_rank_opener, err));
    const wg_status s = time_all(threads ? wg_rank_threads_comm(threads) : wg_comm_mpi_open(), repeats, json, err);
    wg_rank_threads_close(threads);
    return s;
}
