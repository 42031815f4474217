/* SPDX-License-Identifier: MIT
 * The emulated device itself: what its collectives return, and that it reports each kind of mistake that it must detect. */
#include <criterion/criterion.h>

#include <unistd.h>

#include "kernels/cuda/cuda.h"
#include "tests/simt/runtime.h"
#include "tests/simt/simt.h"

/* At once, past every stream. */
#define LAUNCH(kernel, grid, block, dynamic, ...) simt_start(kernel, #kernel, dim3(grid), dim3(block), dynamic, __VA_ARGS__)

enum { SEEN = 42 }; /* exit status of a test whose mistake was noticed */
static const char *expected;
static void noticed(const char *message) { _exit(strstr(message, expected) ? SEEN : 3); }

static void expect(const char *part)
{
    expected = part;
    simt_on_fail(noticed);
}

template <class T> static T *device(size_t n) { return (T *)simt_memory_take(n * sizeof(T)); }

struct host_view { /* device memory is open to the host while this lives */
    host_view() { simt_memory_open(true); }
    ~host_view() { simt_memory_open(false); }
};

static void every_order(void (*body)())
{
    for (int i = 0; i < SIMT_ORDERS; i++) {
        simt_order_set((simt_order)i);
        body();
    }
}

/* ---- collectives */

WG_KERNEL collectives(int *shuffled, unsigned *votes, int *sums, float *folds)
{
    wg_depend();
    WG_SHARED(int, sum, 1);
    const int t = (int)threadIdx.x, lane = t % 32;
    if (t == 0) sum[0] = 0;
    __syncthreads();
    shuffled[t] = __shfl_xor_sync(0xffffffffu, t, 5) * 1000 + __shfl_down_sync(0xffffffffu, t, 3);
    shuffled[t] += 1000000 * __shfl_sync(0xffffffffu, lane, 7) + 10000000 * __shfl_up_sync(0xffffffffu, lane, 1);
    votes[t] = __ballot_sync(0xffffffffu, lane % 3 == 0);
    atomicAdd(&sum[0], t);
    __syncthreads();
    sums[t] = sum[0];
    folds[t] = wg_warp_fold16((float)lane);
}

Test(simt, collectives)
{
    every_order([] {
        int *shuffled = device<int>(64), *sums = device<int>(64);
        unsigned *votes = device<unsigned>(64);
        float *folds = device<float>(64);
        LAUNCH(collectives, 1, 64, 0, shuffled, votes, sums, folds);
        host_view open;
        for (int t = 0; t < 64; t++) {
            const int lane = t % 32, down = lane + 3 < 32 ? t + 3 : t, up = lane >= 1 ? lane - 1 : lane;
            cr_assert_eq(shuffled[t], (t ^ 5) * 1000 + down + 7000000 + 10000000 * up);
            cr_assert_eq(votes[t], 0x49249249u);
            cr_assert_eq(sums[t], 64 * 63 / 2);
            if (lane < 16) cr_assert_eq(folds[t], 120);
        }
        simt_memory_give(shuffled), simt_memory_give(sums), simt_memory_give(votes), simt_memory_give(folds);
    });
}

/* Every thread and block once, whatever the order; blocks of three dimensions. */
WG_KERNEL count_threads(int *count)
{
    wg_depend();
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    count[block * 64 + thread]++;
}

Test(simt, every_thread_of_every_block_once)
{
    every_order([] {
        int *count = device<int>(30 * 64);
        {
            host_view open;
            memset(count, 0, 30 * 64 * sizeof(int));
        }
        LAUNCH(count_threads, dim3(5, 3, 2), dim3(8, 4, 2), 0, count);
        host_view open;
        for (int i = 0; i < 30 * 64; i++) cr_assert_eq(count[i], 1);
        simt_memory_give(count);
    });
}

/* ---- instructions: A and B by the layouts that cuda.h states, against plain sums */

WG_KERNEL one_mma(const uint16_t *a, const uint16_t *b, float *d, int bf16)
{
    wg_depend();
    WG_SHARED(uint16_t, columns, 8 * 24);
    const int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4;
    for (int i = lane; i < 8 * 16; i += 32) columns[i / 16 * 24 + i % 16] = b[i % 16 * 8 + i / 16]; /* B transposed, padded */
    __syncwarp();
    uint32_t w[4], x[4];
    for (int i = 0; i < 4; i++) {
        const int r = g + i % 2 * 8, k = 2 * t + i / 2 * 8;
        w[i] = (uint32_t)a[r * 16 + k] | (uint32_t)a[r * 16 + k + 1] << 16;
    }
    wg_ldmatrix_x4(x, columns + lane % 8 * 24 + lane / 8 % 2 * 8);
    float acc[4] = { 1, 2, 3, 4 };
    for (int i = 0; i < 4 && bf16 < 0; i++) acc[i] = 0;
    if (bf16 > 0) wg_mma_bf16(acc, w, x);
    else wg_mma_f16(acc, w, x);
    for (int i = 0; i < 4; i++) d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = acc[i];
}

Test(simt, mma_and_ldmatrix)
{
    for (int bf16 = 0; bf16 < 2; bf16++) {
        uint16_t *a = device<uint16_t>(256), *b = device<uint16_t>(128);
        float *d = device<float>(128), A[256], B[128];
        {
            host_view open;
            for (int i = 0; i < 256; i++) A[i] = (float)(i * 7 % 31 - 15), a[i] = bf16 ? wg_bf16_of(A[i]) : wg_f16_of(A[i]);
            for (int i = 0; i < 128; i++) B[i] = (float)(i * 5 % 23 - 11), b[i] = bf16 ? wg_bf16_of(B[i]) : wg_f16_of(B[i]);
        }
        LAUNCH(one_mma, 1, 32, 0, a, b, d, bf16);
        host_view open;
        for (int r = 0; r < 16; r++)
            for (int c = 0; c < 8; c++) {
                float sum = (float)(1 + (r >= 8) * 2 + c % 2);
                for (int k = 0; k < 16; k++) sum += A[r * 16 + k] * B[k * 8 + c];
                cr_assert_eq(d[r * 8 + c], sum, "(%d, %d)", r, c);
            }
        simt_memory_give(a), simt_memory_give(b), simt_memory_give(d);
    }
}

/* 1, and fifteen products of 2^-by: in turn each is rounded away; tensor cores cut them off some bits behind those of f32, and
 * their sum with the 1 to those of f32, every eight or sixteen. */
static float sum_of_small(simt_mma_sums how, int by, float sign)
{
    uint16_t *a = device<uint16_t>(256), *b = device<uint16_t>(128);
    float *d = device<float>(128);
    {
        host_view open;
        for (int i = 0; i < 256; i++) a[i] = wg_f16_of(i % 16 ? ldexpf(sign, -12) : sign);
        for (int i = 0; i < 128; i++) b[i] = wg_f16_of(i < 8 ? 1 : ldexpf(1, 12 - by));
    }
    simt_mma_set(how);
    LAUNCH(one_mma, 1, 32, 0, a, b, d, -1);
    host_view open;
    const float sum = d[0];
    simt_memory_give(a), simt_memory_give(b), simt_memory_give(d);
    return sum;
}

Test(simt, mma_cuts_off_as_tensor_cores_do)
{
    static const struct {
        simt_mma_sums how;
        int by, units;
    } cases[] = {
        /* units of 2^-23 above 1 */
        { SIMT_MMA_EXACT, 24, 0 },  { SIMT_MMA_EXACT, 25, 0 },  { SIMT_MMA_AMPERE, 24, 7 },
        { SIMT_MMA_AMPERE, 25, 0 }, { SIMT_MMA_HOPPER, 24, 7 }, { SIMT_MMA_HOPPER, 25, 3 },
    };
    for (const auto &c : cases)
        for (float sign = -1; sign < 2; sign += 2)
            cr_assert_eq(sum_of_small(c.how, c.by, sign), sign * (1 + ldexpf((float)c.units, -23)), "sums %d, 2^-%d", c.how,
                         c.by);
}

WG_KERNEL one_mma_s8(const int8_t *a, const int8_t *b, int *d, int depth)
{
    wg_depend();
    WG_SHARED(int8_t, columns, 8 * 48);
    const int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4;
    for (int i = lane; i < 8 * 32; i += 32) columns[i / 32 * 48 + i % 32] = b[i % 32 * 8 + i / 32]; /* B transposed, padded */
    __syncwarp();
    uint32_t w[4], x[4];
    for (int i = 0; i < 4; i++) w[i] = *(const uint32_t *)(a + (g + i % 2 * 8) * 32 + 4 * t + i / 2 * 16);
    wg_ldmatrix_x4(x, columns + lane % 8 * 48 + lane / 8 % 2 * 16);
    int acc[4];
    const int from[4] = { 1, 2, 3, 4 };
    if (depth == 32) wg_mma_s8(acc, w, x, from);
    else wg_mma_s8_half(acc, w + 2, x + 1, from); /* of k = 16 .. 31 */
    for (int i = 0; i < 4; i++) d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = acc[i];
}

Test(simt, mma_of_bytes)
{
    for (int depth = 16; depth <= 32; depth += 16) {
        int8_t *a = device<int8_t>(512), *b = device<int8_t>(256);
        int *d = device<int>(128);
        {
            host_view open;
            for (int i = 0; i < 512; i++) a[i] = (int8_t)(i * 37 + 11);
            for (int i = 0; i < 256; i++) b[i] = (int8_t)(i * 59 - 128);
        }
        LAUNCH(one_mma_s8, 1, 32, 0, a, b, d, depth);
        host_view open;
        for (int r = 0; r < 16; r++)
            for (int c = 0; c < 8; c++) {
                int sum = 1 + (r >= 8) * 2 + c % 2;
                for (int k = 32 - depth; k < 32; k++) sum += a[r * 32 + k] * b[k * 8 + c];
                cr_assert_eq(d[r * 8 + c], sum, "(%d, %d)", r, c);
            }
        simt_memory_give(a), simt_memory_give(b), simt_memory_give(d);
    }
}

/* All 16-bit floats, to and fro. */
Test(simt, conversions_are_those_of_types_c)
{
    for (uint32_t h = 0; h < 1 << 16; h++) {
        const float f = wg_f16_value((uint16_t)h), b = wg_bf16_value((uint16_t)h);
        const bool nan16 = (h & 0x7C00) == 0x7C00 && (h & 0x3FF), nanb = (h & 0x7F80) == 0x7F80 && (h & 0x7F);
        cr_assert(nan16 ? f != f : wg_f16_of(f) == h, "f16 %04x", h);
        cr_assert(nanb ? b != b : wg_bf16_of(b) == h, "bf16 %04x", h);
    }
    cr_assert(wg_f16_of(65519.0f) == 0x7BFF && wg_f16_of(65520.0f) == 0x7C00 && wg_f16_of(0x1p-25f) == 0);
    cr_assert(wg_f16_of(0x1.8p-25f) == 1 && wg_bf16_of(1.00390625f) == 0x3F80 && wg_bf16_of(1.01171875f) == 0x3F82);
}

/* ---- asynchronous copies */

WG_KERNEL copies(const float *from, float *to, int groups_left)
{
    wg_depend();
    WG_SHARED(float, tile, 2 * 32 * 4);
    const int t = (int)threadIdx.x;
    for (int i = 0; i < 2; i++) {
        wg_copy_async16(tile + i * 128 + t * 4, from + i * 128 + t * 4, t != 3);
        wg_copy_commit();
    }
    wg_copy_wait(groups_left);
    __syncthreads();
    for (int i = 0; i < 2; i++) to[i * 128 + t] = tile[i * 128 + t];
    __syncthreads();
    wg_copy_wait(0);
}

Test(simt, a_copy_happens_at_its_wait)
{
    for (int left = 0; left < 3; left++) {
        float *from = device<float>(256), *to = device<float>(256);
        {
            host_view open;
            for (int i = 0; i < 256; i++) from[i] = (float)i;
        }
        LAUNCH(copies, 1, 32, 0, from, to, left);
        host_view open;
        for (int t = 0; t < 32; t++) {
            const bool zero = t / 4 == 3;
            cr_assert(left == 2 ? isnan(to[t]) : to[t] == (zero ? 0 : (float)t));
            cr_assert(left > 0 ? isnan(to[128 + t]) : to[128 + t] == (zero ? 0 : (float)(128 + t)), "thread %d, %d left: %g", t,
                      left, (double)to[128 + t]);
        }
        simt_memory_give(from), simt_memory_give(to);
    }
}

WG_KERNEL forgotten_copy(const float *from)
{
    wg_depend();
    WG_SHARED(float, tile, 128);
    wg_copy_async16(tile + threadIdx.x * 4, from + threadIdx.x * 4, true);
    wg_copy_commit();
}

Test(simt, a_copy_without_a_wait_is_noticed, .exit_code = SEEN)
{
    expect("nobody waited for");
    LAUNCH(forgotten_copy, 1, 32, 0, device<float>(128));
}

/* ---- mistakes */

WG_KERNEL no_barrier(float *out)
{
    wg_depend();
    WG_SHARED(float, x, 64);
    x[threadIdx.x] = (float)threadIdx.x;
    out[threadIdx.x] = x[63 - threadIdx.x]; /* of another warp */
}

Test(simt, a_missing_barrier_shows)
{
    for (int i = 0; i < SIMT_ORDERS; i++) {
        float *out = device<float>(64);
        simt_order_set((simt_order)i);
        LAUNCH(no_barrier, 1, 64, 0, out);
        host_view open;
        int wrong = 0;
        for (int t = 0; t < 64; t++) wrong += out[t] != (float)(63 - t);
        cr_assert_gt(wrong, 0);
        simt_memory_give(out);
    }
}

/* Each warp tells the other two numbers, one after the other in the same place; `held`: not before the first has been read. */
WG_KERNEL two_turns(int *out, int held)
{
    wg_depend();
    WG_SHARED(int, room, 2);
    const int warp = (int)threadIdx.x / 32;
    for (int turn = 0; turn < 2; turn++) {
        __syncwarp();
        if (threadIdx.x % 32 == 0) room[warp] = turn * 10 + warp;
        __syncthreads();
        const int other = room[1 - warp];
        if (threadIdx.x % 32 == 0) out[turn * 2 + warp] = other;
        if (held) __syncthreads();
    }
}

/* 0: right; else how many of the numbers are of another turn. */
static int wrong_turns(simt_order order, int held)
{
    int *out = device<int>(4), wrong = 0;
    simt_order_set(order);
    LAUNCH(two_turns, 1, 64, 0, out, held);
    {
        host_view open;
        for (int i = 0; i < 4; i++) wrong += out[i] != i / 2 * 10 + (1 - i % 2);
    }
    simt_memory_give(out);
    return wrong;
}

Test(simt, a_missing_barrier_before_a_second_turn_shows_where_a_warp_is_ahead)
{
    for (int order = 0; order < SIMT_ORDERS; order++) cr_assert_eq(wrong_turns((simt_order)order, 1), 0, "order %d", order);
    cr_assert_eq(wrong_turns(SIMT_FORWARD, 0), 0); /* which is why there is the other */
    cr_assert_gt(wrong_turns(SIMT_AHEAD, 0), 0);
}

WG_KERNEL half_a_barrier(int)
{
    wg_depend();
    if (threadIdx.x < 32) __syncthreads();
    else
        for (int i = 0; i < 2; i++) __syncthreads();
}

Test(simt, a_divergent_barrier_is_noticed, .exit_code = SEEN)
{
    expect("divergent barrier");
    LAUNCH(half_a_barrier, 1, 64, 0, 0);
}

WG_KERNEL half_a_warp(int)
{
    wg_depend();
    if (threadIdx.x < 7) __syncwarp();
    else __syncthreads();
}

Test(simt, a_deadlock_is_noticed, .exit_code = SEEN)
{
    expect("deadlock: 57 threads at a barrier, 7 at a collective");
    LAUNCH(half_a_warp, 1, 64, 0, 0);
}

WG_KERNEL two_collectives(int)
{
    wg_depend();
    if (threadIdx.x % 2) __ballot_sync(0xffffffffu, 1);
    else __syncwarp();
}

Test(simt, different_collectives_are_noticed, .exit_code = SEEN)
{
    expect("lanes of a warp at different collectives");
    LAUNCH(two_collectives, 1, 32, 0, 0);
}

WG_KERNEL reads(const int *p)
{
    wg_depend();
    (void)p;
}

Test(simt, a_host_pointer_is_noticed, .exit_code = SEEN)
{
    int x = 0;
    expect("argument 0 of the launch is not device memory");
    LAUNCH(reads, 1, 32, 0, &x);
}

Test(simt, the_host_cannot_read_device_memory, .exit_code = SEEN)
{
    expect("the host touches device memory");
    int *volatile p = device<int>(8);
    cr_assert_eq(*p, 0);
}

/* ---- the order of kernels: what wg_depend() asks of them */

WG_KERNEL early(const int *weights, int *x, int how)
{
    int w = weights[threadIdx.x]; /* weights may be read */
    if (how == 1) w += x[threadIdx.x];
    if (how == 2) x[threadIdx.x] = w;
    wg_depend();
    x[threadIdx.x] += w;
}

static void launch_early(int how)
{
    int *weights = (int *)simt_memory_take_weights(64 * sizeof(int)), *x = device<int>(64);
    {
        host_view open;
        for (int i = 0; i < 64; i++) weights[i] = 100 + i, x[i] = i;
    }
    LAUNCH(early, 2, 64, 0, weights, x, how);
    host_view open;
    for (int i = 0; i < 64; i++) cr_assert_eq(x[i], 200 + 3 * i);
    simt_memory_give(weights), simt_memory_give(x);
}

static int of_early;
static void once_early() { launch_early(of_early); }

Test(simt, weights_may_be_read_early) { every_order(once_early); }

Test(simt, an_early_read_is_noticed, .exit_code = SEEN)
{
    expect("before wg_depend() a kernel touches what the one before it may still read or write");
    launch_early(1);
}

WG_KERNEL copies_early(const float *from)
{
    WG_SHARED(float, tile, 128);
    wg_copy_async16(tile + threadIdx.x * 4, from + threadIdx.x * 4, true);
    wg_copy_commit();
    wg_depend();
    wg_copy_wait(0);
}

Test(simt, an_early_copy_is_noticed, .exit_code = SEEN)
{
    expect("before wg_depend() a kernel touches what the one before it may still read or write");
    LAUNCH(copies_early, 1, 32, 0, (const float *)simt_memory_take_weights(512));
    LAUNCH(copies_early, 1, 32, 0, device<float>(128));
}

Test(simt, an_early_write_is_noticed, .exit_code = SEEN)
{
    expect("before wg_depend() a kernel touches what the one before it may still read or write");
    launch_early(2);
}

/* Weights that a kernel has written are what it may still write, until a copy has come after it. */
WG_KERNEL draws(int *weights)
{
    wg_depend();
    weights[threadIdx.x] = 100;
}

static void draw_and_read(bool copy_between)
{
    int *weights = (int *)simt_memory_take_weights(64 * sizeof(int)), *x = device<int>(64);
    LAUNCH(draws, 1, 64, 0, weights);
    if (copy_between) host_view open;
    LAUNCH(early, 1, 64, 0, weights, x, 0);
}

Test(simt, drawn_weights_may_be_read_early_after_a_copy) { draw_and_read(true); }

Test(simt, drawn_weights_that_are_read_at_once_are_noticed, .exit_code = SEEN)
{
    expect("before wg_depend() a kernel touches what the one before it may still read or write");
    draw_and_read(false);
}

/* In the order of a graph too, and where one warp is ahead of the others. */
WG_KERNEL one_warp_ahead(int *x)
{
    if (threadIdx.x >= 32) __syncthreads();
    wg_depend();
    x[threadIdx.x] = 1;
    if (threadIdx.x < 32) __syncthreads();
}

Test(simt, warps_that_do_not_meet_there_are_noticed, .exit_code = SEEN)
{
    int *x = device<int>(64);
    expect("divergent barrier");
    simt_record_begin();
    LAUNCH(one_warp_ahead, 1, 64, 0, x);
    simt_replay(simt_record_end());
}

WG_KERNEL never_depends(int *x)
{
    if (threadIdx.x == 9) return;
    wg_depend();
    x[threadIdx.x] = 1;
}

Test(simt, a_thread_that_never_waits_is_noticed, .exit_code = SEEN)
{
    expect("ended without wg_depend()");
    LAUNCH(never_depends, 1, 32, 0, device<int>(32));
}

WG_KERNEL depends_twice(int *x)
{
    wg_depend();
    x[threadIdx.x] = 1;
    wg_depend();
}

Test(simt, waiting_twice_is_noticed, .exit_code = SEEN)
{
    expect("wg_depend() twice");
    LAUNCH(depends_twice, 1, 32, 0, device<int>(32));
}

WG_KERNEL unaligned(const char *from)
{
    wg_depend();
    WG_SHARED(char, x, 1024);
    wg_copy_async16(x + threadIdx.x * 16 + 1, from, true);
}

Test(simt, an_unaligned_copy_is_noticed, .exit_code = SEEN)
{
    expect("not aligned");
    LAUNCH(unaligned, 1, 32, 0, device<char>(64));
}

Test(simt, memory_is_fenced_reused_and_limited)
{
    char *a = device<char>(100), *b = device<char>(300), *c = device<char>(5000);
    cr_assert(b >= a + 100 + 256 && c >= b + 300 + 256 && (uintptr_t)b % 256 == 0);
    simt_memory_give(b);
    cr_assert_eq(device<char>(200), b);
    simt_memory_limit(6000);
    cr_assert_null(device<char>(701));
    cr_assert_not_null(device<char>(700));
    cr_assert_eq(simt_stats_read().live, 6000);
}

struct holder {
    const int *p;
    int *out;
};
WG_KERNEL reads_holder(holder h)
{
    wg_depend();
    h.out[threadIdx.x] = h.p[0];
}

Test(simt, a_recorded_launch_that_points_into_the_stack_is_noticed, .exit_code = SEEN)
{
    int local = 7;
    expect("points into the caller's stack");
    simt_record_begin();
    LAUNCH(reads_holder, 1, 32, 0, holder{ &local, device<int>(32) });
}

Test(simt, a_recorded_launch_that_points_into_pinned_memory_is_noticed, .exit_code = SEEN)
{
    static int pinned[64];
    int *out = device<int>(32);
    simt_pinned(pinned, sizeof pinned);
    expect("points into pinned memory");
    simt_record_begin();
    LAUNCH(reads_holder, 1, 32, 0, holder{ pinned + 3, out });
}

/* Arguments are those of the recording; what they point to is read at the replay. */
Test(simt, a_replay_takes_recorded_arguments_and_the_memory_of_now)
{
    int *from = device<int>(1), *out = device<int>(32);
    holder h = { from, out };
    simt_record_begin();
    LAUNCH(reads_holder, 1, 32, 0, h);
    simt_graph *g = simt_record_end();
    h = holder{ NULL, NULL };
    for (int i = 1; i < 4; i++) {
        {
            host_view see;
            *from = i;
        }
        simt_replay(g);
        host_view see;
        cr_assert(out[0] == i && out[31] == i);
    }
    simt_forget(g);
}
