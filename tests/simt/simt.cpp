/* SPDX-License-Identifier: MIT
 * The emulated device's scheduler: the threads of a block as fibers on stacks of their own. A fiber runs until it must wait for
 * others, then switches straight to the next one that can go on, in the order of the moment; the fiber of the caller takes over
 * when all have ended. The fibers are kept from block to block: they never unwind, so the address sanitizer has nothing to
 * forget between blocks. */
#include "tests/simt/cuda_emulated.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/simt/simt.h"

#if defined(__has_feature)
#define ASAN_BY_FEATURE __has_feature(address_sanitizer)
#else
#define ASAN_BY_FEATURE 0
#endif
#if defined(__SANITIZE_ADDRESS__) || ASAN_BY_FEATURE
#define WITH_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#else
#define WITH_ASAN 0
#endif
#if defined(__x86_64__) && !defined(SIMT_UCONTEXT)
#define BY_HAND 1 /* a switch is a dozen instructions; ucontext's makes a system call */
#else
#define BY_HAND 0
#include <ucontext.h>
#endif

enum {
    MOST_THREADS = 1024,
    STACK = (WITH_ASAN ? 128 : 48) << 10,
    SHARED = 227 << 10 /* the most of any card */,
    STATIC = 48 << 10,
    ARRAYS = 16,
    FENCE = 64,
    COPIES = 128
};

struct async_copy {
    void *to;
    const void *from;
    size_t bytes, valid;
    int group;
};

enum state { RUNS, AT_BARRIER, AT_COLLECTIVE, ENDED };

struct lane {
    simt_lane_id id; /* first: what kernels see */
    state is;
    simt_place at;      /* where it waits */
    bool depended;      /* has called wg_depend() */
    int warp, arrays;   /* shared arrays declared so far */
    int copies, groups; /* asynchronous copies under way; groups closed */
    async_copy copy[COPIES];
    void *fake; /* the sanitizer's */
#if BY_HAND
    void *sp;
#else
    ucontext_t context;
#endif
};

struct warp {
    int arrived, first;
    simt_place at;
    simt_warp_fn *fn;
    void *arg[32];
}; /* who came first, and where */

simt_lane_id *simt_me;
dim3 simt_block_dim, simt_grid_dim;
simt_stats simt_counts;
const char *simt_launch_name;

static struct machine {
    lane lanes[MOST_THREADS];
    warp warps[MOST_THREADS / 32];
    int order[MOST_THREADS], threads, made, cursor;
    int waiting, ended;
    bool closed; /* only weights can be touched until wg_depend() */
    size_t array_at[ARRAYS], array_bytes[ARRAYS], shared_used, declared, dynamic;
    int arrays;
    simt_fn *run;
    void *arg;
    const char *kernel;
    simt_order how;
    uint32_t seed;
    unsigned block_at;
    void (*on_fail)(const char *);
    /* the caller's own stack, as the sanitizer names it */
    bool from_caller;
    void *caller_fake;
    const void *caller_bottom;
    size_t caller_size;
#if BY_HAND
    void *caller_sp;
#else
    ucontext_t caller;
#endif
} M;

static unsigned char stacks[MOST_THREADS][STACK] __attribute__((aligned(64)));
static unsigned char shared[SHARED + ARRAYS * 2 * FENCE] __attribute__((aligned(128)));

static simt_card card;

simt_card simt_card_read(void)
{
    const char *sms = getenv("WG_SIMT_SMS"), *kib = getenv("WG_SIMT_SHARED");
    if (card.sms == 0) card.sms = sms ? atoi(sms) : 2;
    if (card.shared == 0) card.shared = kib ? strtoul(kib, NULL, 10) << 10 : (size_t)SHARED;
    return card;
}

void simt_card_set(int sms, size_t bytes)
{
    if (sms) card.sms = sms;
    if (bytes) card.shared = bytes < SHARED ? bytes : (size_t)SHARED;
}

void simt_order_set(simt_order how) { M.how = how; }
void simt_on_fail(void (*fn)(const char *)) { M.on_fail = fn; }

void simt_fail(simt_place at, const char *fmt, ...)
{
    char text[512], all[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (simt_me)
        snprintf(all, sizeof all, "%s:%d: %s (kernel %s, block %u %u %u, thread %u %u %u)", at.file, at.line, text, M.kernel,
                 simt_me->block.x, simt_me->block.y, simt_me->block.z, simt_me->thread.x, simt_me->thread.y, simt_me->thread.z);
    else snprintf(all, sizeof all, "%s (kernel %s)", text, M.kernel ? M.kernel : "none");
    if (M.on_fail) M.on_fail(all);
    fprintf(stderr, "simt: %s\n", all);
    abort();
}

/* ---- switching */

#if BY_HAND
/* Saves what a call must keep, leaves the stack pointer in *save, goes on from `to`. */
extern "C" void simt_swap(void **save, void *to);
__asm__(".text\n.globl simt_swap\n.type simt_swap,@function\nsimt_swap:\n"
        " push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        " mov %rsp,(%rdi)\n mov %rsi,%rsp\n"
        " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n.size simt_swap,.-simt_swap\n");
#endif

static lane *current() { return (lane *)simt_me; }

/* What a fiber does first when it goes on. */
static void arrived(void *fake)
{
#if WITH_ASAN
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(fake, &bottom, &size);
    if (M.from_caller) M.caller_bottom = bottom, M.caller_size = size;
#else
    (void)fake;
#endif
}

/* From one fiber to another; NULL is the caller of the launch. */
static void hop(lane *from, lane *to)
{
    simt_counts.switches++;
#if WITH_ASAN
    __sanitizer_start_switch_fiber(from ? &from->fake : &M.caller_fake, to ? stacks[to - M.lanes] : M.caller_bottom,
                                   to ? (size_t)STACK : M.caller_size);
#endif
    M.from_caller = from == NULL;
    simt_me = to ? &to->id : NULL;
#if BY_HAND
    simt_swap(from ? &from->sp : &M.caller_sp, to ? to->sp : M.caller_sp);
#else
    swapcontext(from ? &from->context : &M.caller, to ? &to->context : &M.caller);
#endif
    arrived(from ? from->fake : M.caller_fake);
}

static void shuffle()
{
    for (int i = M.threads - 1; i > 0; i--) {
        M.seed = M.seed * 1664525u + 1013904223u;
        const int j = (int)((M.seed >> 8) % (uint32_t)(i + 1)), t = M.order[i];
        M.order[i] = M.order[j];
        M.order[j] = t;
    }
}

static void deadlock()
{
    int counts[4] = { 0 };
    const lane *first = NULL, *other = NULL;
    for (int i = 0; i < M.threads; i++) {
        const lane *l = &M.lanes[i];
        counts[l->is]++;
        if (l->is == ENDED) continue;
        if (!first) first = l;
        else if (!other && l->at.line != first->at.line) other = l;
    }
    simt_fail(first->at, "deadlock: %d threads at a barrier, %d at a collective of their warp, %d ended; others wait at %s:%d",
              counts[AT_BARRIER], counts[AT_COLLECTIVE], counts[ENDED], other ? other->at.file : first->at.file,
              other ? other->at.line : first->at.line);
}

/* The next of this warp that can run; of the next warp, where none of this can. */
static lane *next_ahead()
{
    const int warps = M.threads / 32, mine = simt_me ? current()->warp : 0, after = simt_me ? simt_me->lane + 1 : 0;
    for (int w = 0; w < warps; w++)
        for (int i = 0; i < 32; i++) {
            lane *l = &M.lanes[(mine + w) % warps * 32 + (after + i) % 32];
            if (l->is == RUNS) return l;
        }
    deadlock();
    return NULL;
}

/* The next that can run. A new round begins at the end of the order, shuffled where that is asked for. */
static lane *next_lane()
{
    if (M.ended == M.threads) return NULL;
    if (M.how == SIMT_AHEAD) return next_ahead();
    for (int passed = 0; passed < 2 * M.threads; passed++) { /* the rest of this round and all of the next */
        if (M.cursor == M.threads) {
            M.cursor = 0;
            if (M.how == SIMT_SHUFFLED) shuffle();
        }
        lane *l = &M.lanes[M.order[M.cursor++]];
        if (l->is == RUNS) return l;
    }
    deadlock();
    return NULL;
}

static void yield()
{
    lane *me = current(), *to = next_lane();
    if (to != me) hop(me, to);
}

/* ---- rendezvous */

void simt_barrier(simt_place at)
{
    lane *me = current();
    me->at = at;
    me->is = AT_BARRIER;
    if (++M.waiting + M.ended < M.threads) {
        yield();
        return;
    }
    for (int i = 0; i < M.threads; i++)
        if (M.lanes[i].is == AT_BARRIER && (M.lanes[i].at.line != at.line || strcmp(M.lanes[i].at.file, at.file)))
            simt_fail(at, "divergent barrier: thread %d waits at %s:%d", i, M.lanes[i].at.file, M.lanes[i].at.line);
    for (int i = 0; i < M.threads; i++)
        if (M.lanes[i].is == AT_BARRIER) M.lanes[i].is = RUNS;
    M.waiting = 0;
}

void simt_warp(simt_warp_fn *fn, void *arg, simt_place at)
{
    lane *me = current();
    warp *w = &M.warps[me->warp];
    lane *first = &M.lanes[me->warp * 32];
    me->at = at;
    w->arg[me->id.lane] = arg;
    if (w->arrived == 0) w->fn = fn, w->at = at, w->first = me->id.lane;
    else if (w->at.line != at.line || w->fn != fn)
        simt_fail(at, "lanes of a warp at different collectives: lane %d waits at %s:%d", w->first, w->at.file, w->at.line);
    if (++w->arrived < 32) {
        me->is = AT_COLLECTIVE;
        yield();
        return;
    }
    fn(w->arg);
    w->arrived = 0;
    for (int i = 0; i < 32; i++)
        if (first[i].is == AT_COLLECTIVE) first[i].is = RUNS;
}

void simt_depend(simt_place at)
{
    lane *me = current();
    me->at = at;
    if (me->depended) simt_fail(at, "a thread calls wg_depend() twice");
    me->depended = true;
    if (!M.closed) return;
    simt_barrier(at);
    if (M.closed) simt_memory_access(SIMT_KERNEL); /* the first to go on */
    M.closed = false;
}

/* ---- shared memory */

void *simt_shared_dynamic() { return shared; /* at the start; arrays come behind it */ }

void *simt_shared(size_t bytes)
{
    lane *me = current();
    const int i = me->arrays++;
    if (i >= ARRAYS) simt_fail(SIMT_HERE, "more than %d shared arrays", (int)ARRAYS);
    if (i < M.arrays) {
        if (M.array_bytes[i] != bytes) simt_fail(SIMT_HERE, "threads declare shared array %d with different sizes", i);
        return shared + M.array_at[i];
    }
    M.array_at[i] = (M.shared_used + FENCE + 127) / 128 * 128;
    M.array_bytes[i] = bytes;
    M.shared_used = M.array_at[i] + bytes;
    M.arrays++;
    M.declared += (bytes + 15) / 16 * 16;
    if (M.declared > STATIC || M.declared + M.dynamic > simt_card_read().shared)
        simt_fail(SIMT_HERE, "%zu bytes of shared arrays and %zu of dynamic shared memory", M.declared, M.dynamic);
#if WITH_ASAN
    __asan_unpoison_memory_region(shared + M.array_at[i], bytes);
#endif
    memset(shared + M.array_at[i], 0xff, bytes);
    return shared + M.array_at[i];
}

static bool in_shared(const void *p, size_t bytes)
{
    const unsigned char *b = (const unsigned char *)p;
    if (b >= shared && b + bytes <= shared + M.dynamic) return true;
    for (int i = 0; i < M.arrays; i++)
        if (b >= shared + M.array_at[i] && b + bytes <= shared + M.array_at[i] + M.array_bytes[i]) return true;
    return false;
}

/* ---- asynchronous copies: done when waited for */

void simt_copy_async(void *to, const void *from, size_t bytes, size_t valid, simt_place at)
{
    lane *me = current();
    if ((uintptr_t)to % 16 || (uintptr_t)from % 16) simt_fail(at, "an asynchronous copy of %zu bytes is not aligned", bytes);
    if (!in_shared(to, bytes)) simt_fail(at, "an asynchronous copy goes outside of shared memory");
    if (me->copies == COPIES) simt_fail(at, "more than %d asynchronous copies of a thread under way", (int)COPIES);
    if (valid) (void)*(const volatile char *)from; /* as early as it may be read */
    memset(to, 0xff, bytes);
    me->copy[me->copies++] = async_copy{ to, from, bytes, valid, me->groups };
}

void simt_copy_commit() { current()->groups++; }

void simt_copy_wait(int left)
{
    lane *me = current();
    int kept = 0;
    for (int i = 0; i < me->copies; i++) {
        const async_copy c = me->copy[i];
        if (c.group >= me->groups - left) {
            me->copy[kept++] = c;
            continue;
        }
        if (c.valid) memcpy(c.to, c.from, c.valid);
        memset((char *)c.to + c.valid, 0, c.bytes - c.valid);
    }
    me->copies = kept;
}

/* ---- ldmatrix: the last lane to arrive reads for all */

static void check_rows(void *const *arg)
{
    for (int l = 0; l < 32; l++) {
        const simt_matrices *m = (const simt_matrices *)arg[l];
        if ((uintptr_t)m->row % 16) simt_fail(m->at, "ldmatrix: the row of lane %d is not aligned to 16 bytes", l);
        if (!in_shared(m->row, 16)) simt_fail(m->at, "ldmatrix: the row of lane %d is not in shared memory", l);
    }
}

void simt_ldmatrix_x4(void *const *arg)
{
    check_rows(arg);
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 4; i++)
            memcpy(&((const simt_matrices *)arg[l])->d[i],
                   (const char *)((const simt_matrices *)arg[8 * i + l / 4])->row + 4 * (l % 4), 4);
}

void simt_ldmatrix_x4_turned(void *const *arg)
{
    check_rows(arg);
    for (int l = 0; l < 32; l++)
        for (int i = 0; i < 4; i++) {
            uint16_t pair[2]; /* rows 2t, 2t+1 of column r */
            for (int h = 0; h < 2; h++)
                memcpy(&pair[h], (const char *)((const simt_matrices *)arg[8 * i + l % 4 * 2 + h])->row + 2 * (l / 4), 2);
            memcpy(&((const simt_matrices *)arg[l])->d[i], pair, 4);
        }
}

/* ---- launching */

static void fiber()
{
    arrived(NULL);
    for (;;) { /* once a block */
        M.run(M.arg);
        lane *me = current();
        if (!me->depended) simt_fail(me->at, "ended without wg_depend()");
        if (me->copies) simt_fail(me->at, "ended with %d asynchronous copies nobody waited for", me->copies);
        me->is = ENDED;
        M.ended++;
        if (M.waiting && M.waiting + M.ended == M.threads) /* the others wait at a barrier for this one only */
            for (int i = 0; i < M.threads; i++)
                if (M.lanes[i].is == AT_BARRIER) M.lanes[i].is = RUNS, M.waiting = 0;
        hop(me, next_lane());
    }
}

static void make_fiber(int i)
{
    lane *l = &M.lanes[i];
#if BY_HAND
    void **sp = (void **)(stacks[i] + STACK) - 1; /* as after a call: 16 n + 8 */
    *--sp = (void *)fiber;
    for (int r = 0; r < 6; r++) *--sp = NULL;
    l->sp = sp;
#else
    getcontext(&l->context);
    l->context.uc_stack.ss_sp = stacks[i];
    l->context.uc_stack.ss_size = STACK;
    makecontext(&l->context, fiber, 0);
#endif
    memset(stacks[i], 0xA5, 64); /* the canary */
}

static void run_block(uint3 block)
{
    M.waiting = M.ended = M.cursor = M.arrays = 0;
    M.shared_used = M.dynamic;
    M.declared = 0;
    memset(M.warps, 0, sizeof M.warps);
#if WITH_ASAN
    __asan_poison_memory_region(shared, sizeof shared);
    __asan_unpoison_memory_region(shared, M.dynamic);
#endif
    memset(shared, 0xff, M.dynamic);
    for (int i = 0; i < M.threads; i++) {
        lane *l = &M.lanes[i];
        const unsigned u = (unsigned)i, x = simt_block_dim.x, y = simt_block_dim.y;
        l->id = simt_lane_id{ { u % x, u / x % y, u / (x * y) }, block, i & 31 };
        l->is = RUNS;
        l->warp = i >> 5;
        l->arrays = l->copies = l->groups = 0;
        l->depended = false;
        l->at = SIMT_HERE;
    }
    hop(NULL, next_lane());
    for (int i = 0; i < M.threads; i++)
        for (int b = 0; b < 64; b++)
            if (stacks[i][b] != 0xA5) simt_fail(SIMT_HERE, "thread %d has overrun its stack of %d bytes", i, (int)STACK);
    simt_counts.blocks++;
}

void simt_launch(dim3 grid, dim3 block, size_t dynamic, const char *kernel, simt_fn *run, void *arg, size_t bytes)
{
    if (simt_recording()) {
        simt_record(simt_step{ grid, block, dynamic, kernel, run, arg, bytes, NULL });
        return;
    }
    M.kernel = kernel;
    M.threads = (int)(block.x * block.y * block.z);
    if (M.threads < 32 || M.threads > MOST_THREADS || M.threads % 32)
        simt_fail(SIMT_HERE, "a block of %d threads: expected whole warps, up to %d threads", M.threads, (int)MOST_THREADS);
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535)
        simt_fail(SIMT_HERE, "a grid of %u x %u x %u blocks", grid.x, grid.y, grid.z);
    if (dynamic > simt_card_read().shared) simt_fail(SIMT_HERE, "%zu bytes of dynamic shared memory", dynamic);
    while (M.made < M.threads) make_fiber(M.made++);
    simt_block_dim = block;
    simt_grid_dim = grid;
    M.run = run;
    M.arg = arg;
    M.dynamic = dynamic;
    M.seed = 12345;
    for (int i = 0; i < M.threads; i++) M.order[i] = M.how == SIMT_REVERSE ? M.threads - 1 - i : i;
    simt_counts.launches++;
    M.closed = simt_memory_guarded(); /* for the first block: what comes before wg_depend() is alike in all */
    const simt_access was = simt_memory_access(M.closed ? SIMT_WEIGHTS : SIMT_KERNEL);
    const unsigned blocks = grid.x * grid.y * grid.z;
    for (unsigned i = 0; i < blocks; i++) {
        unsigned b = M.how == SIMT_REVERSE ? blocks - 1 - i : i;
        if (M.how == SIMT_SHUFFLED) { /* i * odd + c over the next power of two visits every block once */
            unsigned size = 1;
            while (size < blocks) size *= 2;
            if (i == 0) M.block_at = size / 3;
            do M.block_at = (M.block_at * 5 + 3) % size;
            while (M.block_at >= blocks);
            b = M.block_at;
        }
        run_block(uint3{ b % grid.x, b / grid.x % grid.y, b / (grid.x * grid.y) });
    }
    simt_memory_access(was);
    M.kernel = NULL;
}

void simt_check_pointer(const void *p, const char *kernel, int index)
{
    M.kernel = kernel;
    if (p && !simt_memory_holds(p) && !simt_mapped_holds(p))
        simt_fail(SIMT_HERE, "argument %d of the launch is not device memory", index);
}
