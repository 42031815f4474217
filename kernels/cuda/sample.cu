/* SPDX-License-Identifier: MIT
 * The sampler chain (core/engine/sampler.c: temperature, top-k, top-p, min-p in this order) for rows of logits that stay on the
 * device: the host's row to the last bit, a block a row.
 *
 * The host has several ways to where a prefix of the order (logit descending, id ascending) ends, all to the same token: masses
 * are whole numbers (kernels/mass.h). Here it is always buckets of tokens by how far their logit is below the largest, to which
 * all threads add; those up to the one in which the prefix ends, and that one token by token in order: it is sorted by the bits
 * of (logit, id). A token too light to matter is no candidate on either side. */
#include "kernels/cuda/block.h"
#include "kernels/cuda/launch.h"
#include "kernels/exp.h"

enum { BUCKETS = 1024, PER_NAT = 32 };

typedef struct chain_room {
    wg_shared_mass mass[BUCKETS];
    int32_t count[BUCKETS];
    int32_t bucket, taken, last, found; /* where a prefix ends: its bucket, its tokens, the last of them; 0: before no token */
    wg_mass reached;                    /* its mass */
} chain_room;

/* One row. */
struct chain {
    wg_block *b;
    chain_room *s;
    const float *x;
    double *p; /* weights, then probabilities */
    uint64_t *key;
    int n;
    float max, edge;
    int32_t last;
    double inverse, per_logit, floor;
};

WG_DEVICE int bucket_of(const chain *c, int i)
{
    const double at = ((double)c->max - (double)c->x[i]) * c->per_logit;
    return at < BUCKETS - 1 ? (int)at : BUCKETS - 1;
}

/* Ascending keys are the order; equal logits have one key, whatever their sign of zero. */
WG_DEVICE uint64_t key_of(float x, int i)
{
    const unsigned bits = __float_as_uint(x == 0 ? 0.0f : x), up = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (uint64_t)~up << 32 | (unsigned)i;
}

struct weigh {
    const chain *c;
    WG_DEVICE_MEMBER double operator()(int i)
    {
        const float x = c->x[i];
        return c->p[i] = x == x ? wg_exp64_of(((double)x - (double)c->max) * c->inverse) : 0;
    }
};

/* ---- the end of a prefix */

struct candidate {
    const chain *c;
    int bucket;
    WG_DEVICE_MEMBER bool operator()(int i, double *v)
    {
        *v = c->p[i];
        return *v >= c->floor && bucket_of(c, i) == bucket;
    }
};

WG_DEVICE void fill_buckets(const chain *c)
{
    for (int k = (int)threadIdx.x; k < BUCKETS; k += WG_BLOCK) {
        c->s->mass[k].low = c->s->mass[k].high = 0;
        c->s->count[k] = 0;
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < c->n; i += WG_BLOCK)
        if (c->p[i] >= c->floor) {
            const int k = bucket_of(c, i);
            atomicAdd(&c->s->count[k], 1);
            wg_add_mass(&c->s->mass[k], wg_steps_of(c->p[i]));
        }
    __syncthreads();
}

struct note_keys {
    const chain *c;
    int have;
    WG_DEVICE_MEMBER void operator()(int first, int n)
    {
        (void)first;
        for (int i = (int)threadIdx.x; i < n; i += WG_BLOCK) c->key[have + i] = key_of(c->x[c->b->at[i]], c->b->at[i]);
        have += n;
    }
};

/* Bitonic: `n` keys, padded to a power of two with what is behind all of them. */
WG_DEVICE void sort_keys(uint64_t *key, int n)
{
    int size = 1;
    while (size < n) size *= 2;
    for (int i = n + (int)threadIdx.x; i < size; i += WG_BLOCK) key[i] = ~(uint64_t)0;
    __syncthreads();
    for (int run = 2; run <= size; run *= 2)
        for (int with = run / 2; with; with /= 2) {
            for (int i = (int)threadIdx.x; i < size / 2; i += WG_BLOCK) {
                const int lo = i / with * 2 * with + i % with, hi = lo + with;
                const uint64_t a = key[lo], b = key[hi];
                if ((a > b) == ((lo & run) == 0)) key[lo] = b, key[hi] = a;
            }
            __syncthreads();
        }
}

struct weight_of_key {
    const chain *c;
    WG_DEVICE_MEMBER bool operator()(int i, double *v)
    {
        *v = c->p[(uint32_t)c->key[i]];
        return true;
    }
};

/* Takes tokens in order until there are `most` or their mass is `enough`, and the first one of a bucket in any case. */
struct take_in_order {
    const chain *c;
    int most;
    wg_mass enough;
    WG_DEVICE_MEMBER void operator()(int first, int n)
    {
        chain_room *s = c->s;
        if (threadIdx.x != 0) return;
        for (int i = 0; i < n; i++) {
            if (first + i > 0 && !(s->taken < most && s->reached < enough)) {
                c->b->stop = 1;
                return;
            }
            s->reached += wg_steps_of(c->b->value[i]);
            s->taken++;
            s->last = (int32_t)(uint32_t)c->key[c->b->at[i]];
        }
    }
};

/* The shortest prefix with `most` tokens or the mass `enough`: its end, left alone when all candidates have less. Returns its
 * mass. */
WG_DEVICE wg_mass cut(chain *c, int most, wg_mass enough)
{
    chain_room *s = c->s;
    if (threadIdx.x == 0) {
        int k = 0, taken = 0;
        wg_mass mass = 0;
        for (; k < BUCKETS; k++) {
            const wg_mass more = wg_mass_there(&s->mass[k]);
            if (s->count[k] > 0 && !(taken + s->count[k] < most && mass + more < enough)) break;
            taken += s->count[k];
            mass += more;
        }
        s->bucket = k;
        s->taken = taken;
        s->reached = mass;
    }
    __syncthreads();
    if (s->bucket < BUCKETS) {
        candidate here = { c, s->bucket };
        note_keys note = { c, 0 };
        weight_of_key weight = { c };
        take_in_order take = { c, most, enough };
        wg_gather(c->b, 0, c->n, here, note);
        sort_keys(c->key, note.have);
        wg_gather(c->b, 0, note.have, weight, take);
        c->last = s->last;
        c->edge = c->x[s->last];
    }
    const wg_mass mass = s->reached;
    __syncthreads();
    return mass;
}

/* ---- what is kept */

struct keep {
    const chain *c;
    double lightest;
    int mine; /* how many this thread has seen */
    WG_DEVICE_MEMBER bool is_kept(int i) const
    {
        const float x = c->x[i];
        return (x > c->edge || (x == c->edge && i <= c->last)) && c->p[i] >= lightest;
    }
    WG_DEVICE_MEMBER double operator()(int i)
    {
        const bool in = is_kept(i);
        mine += in;
        return in ? c->p[i] : 0;
    }
};

/* The largest logit, from the pieces of one row. */
WG_DEVICE int best_of(wg_block *b, const wg_gpu_best *piece)
{
    float best = 0;
    int which = -1;
    for (int i = (int)threadIdx.x; i < WG_GPU_BESTS; i += WG_BLOCK)
        if (wg_is_better(piece[i].value, piece[i].at, best, which)) best = piece[i].value, which = piece[i].at;
    return wg_block_best(b, best, which);
}

WG_KERNEL WG_LAUNCH_BOUNDS(WG_BLOCK, 1)
sample_row(const float *logits, int n, wg_gpu_chain o, double *rows, int32_t *point, uint64_t *keys, size_t room)
{
    wg_depend();
    WG_SHARED(wg_block, b, 1);
    WG_SHARED(chain_room, s, 1);
    const double tiny = 0x1p-1022, inverse = 1 / o.temperature;
    const size_t r = blockIdx.x;
    const float *x = logits + r * (size_t)n;
    const int best = o.best ? best_of(b, o.best + r * WG_GPU_BESTS) : wg_block_argmax(b, x, n);
    chain c = { b, s, x, rows + r * (size_t)n, keys + r * room, n, best >= 0 ? x[best] : -INFINITY, -INFINITY, n, inverse,
                PER_NAT / o.temperature, 0 };
    if (threadIdx.x == 0) point[r] = c.max > -INFINITY ? best : 0;
    if (!(inverse < INFINITY) || !(c.max < INFINITY && c.max > -INFINITY) || o.top_k == 1) return;

    weigh all = { &c };
    wg_mass mass = wg_block_mass(b, n, all);
    double scale = 1 / wg_mass_value(mass);
    keep kept = { &c, o.min_p > tiny ? o.min_p : tiny, 0 };
    if (o.top_k == 0 && o.top_p >= 1 && o.min_p <= 0) {
        kept.lightest = 0;
        if (n < 2) return;
    } else {
        if (o.top_k || o.top_p < 1) {
            const double spare = o.top_p < 1 - 1e-6 ? (1 - o.top_p) * wg_mass_value(mass) / n / 2 : 0;
            const double light = o.top_k ? 0 : spare;
            c.floor = light > tiny ? light : tiny;
            fill_buckets(&c);
            if (o.top_k) mass = cut(&c, o.top_k, ~(wg_mass)0);
            if (o.top_p < 1) cut(&c, INT32_MAX, wg_mass_of(o.top_p * wg_mass_value(mass)));
        }
        if (threadIdx.x == 0) s->found = 0;
        scale = 1 / wg_mass_value(wg_block_mass(b, n, kept));
        atomicAdd(&s->found, kept.mine);
        __syncthreads();
        if (s->found < 2) return; /* the point stands */
    }
    for (int i = (int)threadIdx.x; i < n; i += WG_BLOCK) c.p[i] = kept.is_kept(i) ? c.p[i] * scale : 0;
    if (threadIdx.x == 0) point[r] = -1;
}

extern "C" void WG_GPU(sample)(wg_gpu *g, const float *x, int n, const wg_gpu_chain *chain, double *p, int32_t *point,
                               uint64_t *scratch, int rows)
{
    WG_LAUNCH(sample_row, rows, WG_BLOCK, 0, g->stream, x, n, *chain, p, point, scratch, wg_gpu_sample_bytes(n) / 8);
}
