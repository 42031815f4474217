/* SPDX-License-Identifier: MIT
 * The sampler chain (core/dist/sampler.c: temperature, top-k, top-p, min-p in this order) for rows of logits that stay on the
 * device: the host's row to the last bit, several blocks a row.
 *
 * The host has several ways to where a prefix of the order (logit descending, id ascending) ends, all to the same token: masses
 * are whole numbers (kernels/mass.h). Here it is always buckets of tokens by how far their logit is below the largest, to which
 * all threads add, and of the one in which the prefix ends the tokens, in whatever order they come, sorted by the bits of
 * (logit, id). A token too light to matter is no candidate on either side.
 *
 * What all blocks of a row must have said before one can go on lies between two launches: the largest logit; the mass; the
 * buckets; their end, twice where top-p takes a part of top-k; what is kept. They say it by atomic additions to the row's state
 * and by an atomic minimum, neither of which has an order. Where the next word is one block's, it is the last to arrive. */
#include "kernels/cuda/block_ops.h"
#include "kernels/cuda/launch.h"
#include "kernels/exp.h"

enum { BUCKETS = 1024, EACH = BUCKETS / WG_BLOCK_THREADS, PER_NAT = 32, LEAST_PART = 8192, MOST_PARTS = 16 };

/* Of a row, in device memory. */
typedef struct row_state {
    wg_shared_mass mass[BUCKETS], all, kept_mass;
    int32_t count[BUCKETS], kept, arrived, keys;
    int32_t bucket, last; /* where the prefix ends: its bucket (BUCKETS: nowhere), its last token (n: there is none) */
    int32_t taken, most;  /* tokens before the bucket; as many as there may be; the mass of these, and which is enough */
    unsigned long long best;
    wg_mass reached, enough;
} row_state;
static_assert(sizeof(row_state) <= WG_GPU_SAMPLE_STATE, "gpu.h says how much room a row's state has");

/* A part of a row. */
struct chain {
    row_state *s;
    uint64_t *key;
    const float *x;
    double *p; /* weights, then probabilities */
    int n, from, to, parts;
    wg_gpu_chain o;
    int best; /* -1: no number among them; as max, not known to sample_largest */
    float max;
    double inverse, per_logit;
};

WG_DEVICE int ends_at(int part, int parts, int n) { return (int)((long long)n * part / parts); }

WG_DEVICE chain chain_at(const float *logits, int n, const wg_gpu_chain &o, double *rows, char *scratch, size_t room)
{
    const size_t r = blockIdx.y, V = (size_t)n;
    const int part = (int)blockIdx.x, parts = (int)gridDim.x;
    char *mine = scratch + r * room;
    chain c;
    c.s = (row_state *)mine;
    c.key = (uint64_t *)(mine + WG_GPU_SAMPLE_STATE);
    c.x = logits + r * V;
    c.p = rows + r * V;
    c.n = n, c.from = ends_at(part, parts, n), c.to = ends_at(part + 1, parts, n), c.parts = parts;
    c.o = o;
    c.best = -1, c.max = -INFINITY;
    c.inverse = 1 / o.temperature, c.per_logit = PER_NAT / o.temperature;
    const uint64_t key = c.s->best;
    if (key != ~(uint64_t)0) c.best = (int)(uint32_t)key, c.max = c.x[c.best];
    return c;
}

WG_DEVICE bool is_point(const chain &c)
{
    return !(c.inverse < INFINITY) || !(c.max < INFINITY && c.max > -INFINITY) || c.o.top_k == 1;
}
WG_DEVICE bool is_whole(const chain &c) { return c.o.top_k == 0 && c.o.top_p >= 1 && c.o.min_p <= 0; }

WG_DEVICE int bucket_of(const chain &c, int i)
{
    const double at = ((double)c.max - (double)c.x[i]) * c.per_logit;
    return at < BUCKETS - 1 ? (int)at : BUCKETS - 1;
}

#define TINY 0x1p-1022

/* The lightest candidate. */
WG_DEVICE double floor_of(const chain &c)
{
    const double part = (1 - c.o.top_p) * wg_mass_value(wg_mass_there(&c.s->all)) / c.n / 2;
    const double light = c.o.top_k || !(c.o.top_p < 1 - 1e-6) ? 0 : part;
    return light > TINY ? light : TINY;
}

/* Ascending keys are the order; equal logits have one key, whatever their sign of zero. */
WG_DEVICE uint64_t key_of(float x, int i)
{
    const unsigned bits = __float_as_uint(x == 0 ? 0.0f : x), up = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (uint64_t)~up << 32 | (unsigned)i;
}

/* Whether this block of the row is the last to come here; then it sees what all others wrote before. */
WG_DEVICE bool is_last(wg_block *b, const chain &c)
{
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        b->index = atomicAdd(&c.s->arrived, 1) == c.parts - 1;
        if (b->index) c.s->arrived = 0;
        __threadfence();
    }
    __syncthreads();
    const bool last = b->index;
    __syncthreads();
    return last;
}

/* ---- the largest logit, the weights */

/* An empty state; the largest logit, where a row's pieces tell it. */
WG_KERNEL WG_LAUNCH_BOUNDS(WG_BLOCK_THREADS, 1)
    sample_begin(const float *logits, int n, const wg_gpu_best *piece, char *scratch, size_t room)
{
    wg_depend();
    WG_SHARED(wg_block, b, 1);
    const size_t r = blockIdx.x;
    row_state *s = (row_state *)(scratch + r * room);
    const int which = piece ? wg_block_largest(b, piece + r * WG_GPU_BESTS, WG_GPU_BESTS) : -1;
    for (int k = (int)threadIdx.x; k < BUCKETS; k += WG_BLOCK_THREADS) {
        s->mass[k].low = s->mass[k].high = 0;
        s->count[k] = 0;
    }
    if (threadIdx.x != 0) return;
    s->all.low = s->all.high = s->kept_mass.low = s->kept_mass.high = 0;
    s->kept = s->arrived = s->keys = s->taken = 0;
    s->bucket = BUCKETS;
    s->last = n;
    s->best = which >= 0 ? key_of(logits[r * (size_t)n + (size_t)which], which) : ~0ull;
    s->reached = 0;
}

WG_KERNEL WG_LAUNCH_BOUNDS(WG_BLOCK_THREADS, 1)
    sample_largest(const float *logits, int n, wg_gpu_chain o, double *rows, char *scratch, size_t room)
{
    wg_depend();
    WG_SHARED(wg_block, b, 1);
    const chain c = chain_at(logits, n, o, rows, scratch, room);
    const int best = wg_block_argmax(b, c.x + c.from, c.to - c.from);
    if (threadIdx.x == 0 && best >= 0) atomicMin(&c.s->best, (unsigned long long)key_of(c.x[c.from + best], c.from + best));
}

struct weigh {
    const chain &c;
    WG_DEVICE_MEMBER double operator()(int i)
    {
        const float x = c.x[c.from + i];
        return c.p[c.from + i] = x == x ? wg_exp64_of(((double)x - (double)c.max) * c.inverse) : 0;
    }
};

WG_KERNEL WG_LAUNCH_BOUNDS(WG_BLOCK_THREADS, 1)
    sample_weigh(const float *logits, int n, wg_gpu_chain o, double *rows, char *scratch, size_t room)
{
    wg_depend();
    WG_SHARED(wg_block, b, 1);
    const chain c = chain_at(logits, n, o, rows, scratch, room);
    if (is_point(c)) return;
    weigh all = { c };
    const wg_mass mass = wg_block_mass(b, c.to - c.from, all);
    if (threadIdx.x == 0) wg_add_mass(&c.s->all, mass);
}

/* ---- the end of a prefix */

typedef struct bucket_room {
    wg_shared_mass mass[BUCKETS];
    int32_t count[BUCKETS];
} bucket_room;

/* Where the shortest prefix with `most` tokens or the mass `enough` ends: its bucket, and what is before that. One block's. */
WG_DEVICE void find_bucket(wg_block *b, const chain &c, int most, wg_mass enough)
{
    row_state *s = c.s;
    WG_SHARED(wg_mass, mass_of, WG_BLOCK_THREADS);
    WG_SHARED(int32_t, count_of, WG_BLOCK_THREADS);
    const int t = (int)threadIdx.x;
    wg_mass mass = 0, mass_before = 0;
    int count = 0, before = 0, mine = -1;
    for (int k = EACH * t; k < EACH * (t + 1); k++) {
        mass += wg_mass_there(&s->mass[k]);
        count += s->count[k];
    }
    mass_of[t] = mass;
    count_of[t] = count;
    __syncthreads();
    for (int i = 0; i < t; i++) {
        mass_before += mass_of[i];
        before += count_of[i];
    }
    for (int k = EACH * t; k < EACH * (t + 1) && mine < 0; k++) {
        const wg_mass more = wg_mass_there(&s->mass[k]);
        if (s->count[k] > 0 && !(before + s->count[k] < most && mass_before + more < enough)) {
            mine = k;
            break;
        }
        before += s->count[k];
        mass_before += more;
    }
    const int bucket = wg_block_best(b, -(double)mine, mine);
    if (bucket >= 0 ? mine == bucket : t == WG_BLOCK_THREADS - 1) { /* none: all is before it */
        s->bucket = bucket >= 0 ? bucket : BUCKETS;
        s->taken = before;
        s->reached = mass_before;
        s->keys = 0;
        s->most = most;
        s->enough = enough;
    }
    __syncthreads();
}

WG_DEVICE wg_mass part_of(const chain &c, wg_mass all) { return wg_mass_of(c.o.top_p * wg_mass_value(all)); }
WG_DEVICE wg_mass everything() { return ~(wg_mass)0; }

WG_KERNEL WG_LAUNCH_BOUNDS(WG_BLOCK_THREADS, 1)
    sample_fill(const float *logits, int n, wg_gpu_chain o, double *rows, char *scratch, size_t room)
{
    wg_depend();
    WG_SHARED(wg_block, b, 1);
    WG_SHARED(bucket_room, here, 1);
    const chain c = chain_at(logits, n, o, rows, scratch, room);
    if (is_point(c)) return;
    const double floor = floor_of(c);
    for (int k = (int)threadIdx.x; k < BUCKETS; k += WG_BLOCK_THREADS) {
        here->mass[k].low = here->mass[k].high = 0;
        here->count[k] = 0;
    }
    __syncthreads();
    for (int i = c.from + (int)threadIdx.x; i < c.to; i += WG_BLOCK_THREADS)
        if (c.p[i] >= floor) {
            const int k = bucket_of(c, i);
            atomicAdd(&here->count[k], 1);
            wg_add_mass(&here->mass[k], wg_steps_of(c.p[i]));
        }
    __syncthreads();
    for (int k = (int)threadIdx.x; k < BUCKETS; k += WG_BLOCK_THREADS)
        if (here->count[k] > 0) {
            atomicAdd(&c.s->count[k], here->count[k]);
            wg_add_mass(&c.s->mass[k], wg_mass_there(&here->mass[k]));
        }
    if (!is_last(b, c)) return;
    if (c.o.top_k) find_bucket(b, c, c.o.top_k, everything());
    else find_bucket(b, c, INT32_MAX, part_of(c, wg_mass_there(&c.s->all)));
}

struct weight_of_key {
    const chain &c;
    WG_DEVICE_MEMBER double operator()(int i) { return c.p[(uint32_t)c.key[i]]; }
};

/* The end of the prefix in the order of its bucket: its first token in any case. Then `reached` is the mass of all of it. One
 * block's. */
WG_DEVICE void end_prefix(wg_block *b, const chain &c)
{
    row_state *s = c.s;
    const int n = s->keys, most = s->most - s->taken - 1;
    const wg_mass before = s->reached, enough = s->enough;
    weight_of_key weight = { c };
    int end = most < 0 || enough <= before ? 0 : most < n - 1 ? most : n - 1;
    wg_block_sort(c.key, n, ~(uint64_t)0);
    if (end > 0 && before + wg_block_mass(b, n, weight) >= enough) {
        const int at = wg_block_find(b, n, enough - before - 1, weight);
        end = at < end ? at : end;
    }
    const wg_mass mass = wg_block_mass(b, end + 1, weight);
    if (threadIdx.x == 0) {
        s->reached = before + mass;
        s->last = (int32_t)(uint32_t)c.key[end];
    }
    __syncthreads();
}

/* Collects the tokens of the bucket; among them is the end. */
WG_KERNEL WG_LAUNCH_BOUNDS(WG_BLOCK_THREADS, 1)
    sample_cut(const float *logits, int n, wg_gpu_chain o, double *rows, char *scratch, size_t room, int again)
{
    wg_depend();
    WG_SHARED(wg_block, b, 1);
    const chain c = chain_at(logits, n, o, rows, scratch, room);
    if (is_point(c)) return;
    const double floor = floor_of(c);
    const int bucket = c.s->bucket;
    for (int i = c.from + (int)threadIdx.x; i < c.to; i += WG_BLOCK_THREADS)
        if (c.p[i] >= floor && bucket_of(c, i) == bucket) c.key[atomicAdd(&c.s->keys, 1)] = key_of(c.x[i], i);
    if (!is_last(b, c)) return;
    if (bucket < BUCKETS) end_prefix(b, c);
    if (!again && o.top_k && o.top_p < 1) find_bucket(b, c, INT32_MAX, part_of(c, c.s->reached)); /* of what top-k keeps */
}

/* ---- what is kept */

struct keep {
    const chain &c;
    float edge;
    int last, mine; /* mine: how many this thread has seen */
    double lightest;
    WG_DEVICE_MEMBER bool is_kept(int i) const
    {
        const float x = c.x[i];
        return (x > edge || (x == edge && i <= last)) && c.p[i] >= lightest;
    }
    WG_DEVICE_MEMBER double operator()(int i)
    {
        const bool in = is_kept(c.from + i);
        mine += in;
        return in ? c.p[c.from + i] : 0;
    }
};

WG_DEVICE keep kept_of(const chain &c)
{
    const int last = c.s->last;
    return keep{ c, last < c.n ? c.x[last] : -INFINITY, last, 0, is_whole(c) ? 0 : c.o.min_p > TINY ? c.o.min_p : TINY };
}

WG_KERNEL WG_LAUNCH_BOUNDS(WG_BLOCK_THREADS, 1)
    sample_keep(const float *logits, int n, wg_gpu_chain o, double *rows, char *scratch, size_t room)
{
    wg_depend();
    WG_SHARED(wg_block, b, 1);
    const chain c = chain_at(logits, n, o, rows, scratch, room);
    if (is_point(c)) return;
    keep kept = kept_of(c);
    const wg_mass mass = wg_block_mass(b, c.to - c.from, kept);
    const int count = wg_block_count(b, kept.mine);
    if (threadIdx.x != 0) return;
    wg_add_mass(&c.s->kept_mass, mass);
    atomicAdd(&c.s->kept, count);
}

WG_KERNEL WG_LAUNCH_BOUNDS(WG_BLOCK_THREADS, 1)
    sample_store(const float *logits, int n, wg_gpu_chain o, double *rows, char *scratch, size_t room, int32_t *point)
{
    wg_depend();
    const chain c = chain_at(logits, n, o, rows, scratch, room);
    const bool stands = is_point(c) || (is_whole(c) ? n : c.s->kept) < 2;
    if (blockIdx.x == 0 && threadIdx.x == 0) point[blockIdx.y] = !stands ? -1 : c.max > -INFINITY ? c.best : 0;
    if (stands) return;
    const double scale = 1 / wg_mass_value(wg_mass_there(is_whole(c) ? &c.s->all : &c.s->kept_mass));
    const keep kept = kept_of(c);
    for (int i = c.from + (int)threadIdx.x; i < c.to; i += WG_BLOCK_THREADS) c.p[i] = kept.is_kept(i) ? c.p[i] * scale : 0;
}

extern "C" void WG_GPU(sample)(wg_gpu *g, const float *x, int n, const wg_gpu_chain *chain, double *p, int32_t *point,
                               uint64_t *scratch, int rows)
{
    const wg_gpu_chain o = *chain;
    const size_t room = wg_gpu_sample_bytes(n);
    const int most = n / LEAST_PART < MOST_PARTS ? n / LEAST_PART : MOST_PARTS;
    const dim3 grid((unsigned)(most > 1 ? most : 1), (unsigned)rows);
    const bool cuts = o.top_k || o.top_p < 1;
    char *s = (char *)scratch;
    WG_LAUNCH(sample_begin, rows, WG_BLOCK_THREADS, 0, g->stream, x, n, o.best, s, room);
    if (!o.best) WG_LAUNCH(sample_largest, grid, WG_BLOCK_THREADS, 0, g->stream, x, n, o, p, s, room);
    if (1 / o.temperature < INFINITY && o.top_k != 1) {
        WG_LAUNCH(sample_weigh, grid, WG_BLOCK_THREADS, 0, g->stream, x, n, o, p, s, room);
        if (cuts) WG_LAUNCH(sample_fill, grid, WG_BLOCK_THREADS, 0, g->stream, x, n, o, p, s, room);
        if (cuts) WG_LAUNCH(sample_cut, grid, WG_BLOCK_THREADS, 0, g->stream, x, n, o, p, s, room, 0);
        if (o.top_k && o.top_p < 1) WG_LAUNCH(sample_cut, grid, WG_BLOCK_THREADS, 0, g->stream, x, n, o, p, s, room, 1);
        if (cuts || o.min_p > 0) WG_LAUNCH(sample_keep, grid, WG_BLOCK_THREADS, 0, g->stream, x, n, o, p, s, room);
    }
    WG_LAUNCH(sample_store, grid, WG_BLOCK_THREADS, 0, g->stream, x, n, o, p, s, room, point);
}
