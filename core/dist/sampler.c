/* SPDX-License-Identifier: MIT
 * The sampler chain. One order rules it: logit descending, id ascending. Top-k and top-p each keep a prefix of that order, so
 * the last token kept describes it; min-p is a bound on the weight. The end of a prefix is found without sorting: candidates
 * fall into buckets by how far their logit is below the largest, whole buckets are counted, and only the bucket in which the
 * prefix ends is put in order. Two bounds, both exact, keep the candidates few:
 *   top-k: with tokens in k groups or more, no token below every group's largest logit is among the k largest;
 *   top-p: tokens lighter than (1 - top_p) * sum / vocab weigh less than 1 - top_p together (halved for rounding).
 * Masses are sums of whole numbers (kernels/mass.h), the same in every order: each way to where a prefix ends finds the same
 * tokens, on every machine, and gives them the same bits. */
#include "core/dist/sampler_impl.h"

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "core/base/mem.h"

const wg_option wg_sampling_options[] = {
    WG_OPTION_FLOAT(wg_sampling, temperature, 0, 0, 100, "of the softmax; 0: greedy"),
    WG_OPTION_INT(wg_sampling, top_k, 0, 0, 1000000000, "keep the k most probable tokens; 0: all"),
    WG_OPTION_FLOAT(wg_sampling, top_p, 1, 0, 1, "keep the smallest set of most probable tokens with this mass; 1: all"),
    WG_OPTION_FLOAT(wg_sampling, min_p, 0, 0, 1, "drop tokens below this times the largest probability; 0: none"),
    WG_OPTION_FLOAT(wg_sampling, repetition_penalty, 1, 0, 100,
                    "divides positive, multiplies negative logits of tokens seen; 1: none"),
    WG_OPTION_FLOAT(wg_sampling, frequency_penalty, 0, -100, 100,
                    "lowers a token's logit once for each time it was seen in the output"),
    WG_OPTION_FLOAT(wg_sampling, presence_penalty, 0, -100, 100, "lowers the logits of tokens seen in the output, once"),
    WG_OPTION_INT(wg_sampling, penalty_window, 0, 0, 1000000000,
                  "tokens back that count as seen, prompt and drafted path included; 0: all"),
    WG_OPTION_BOOL(wg_sampling, penalise_prompt, 0, "frequency_penalty and presence_penalty count the prompt's tokens too"),
    WG_OPTION_STR(wg_sampling, order, WG_SAMPLING_ORDER, "in which the stages apply: a permutation of the default"),
    WG_OPTION_END,
};

static wg_status check(const wg_sampling *o, wg_error *err)
{
    if (!(o->temperature >= 0 && o->temperature <= 100 && o->top_k >= 0 && o->top_p >= 0 && o->top_p <= 1 && o->min_p >= 0 &&
          o->min_p <= 1))
        return wg_fail(err, WG_EINVAL,
                       "sampling: temperature %g, top_k %d, top_p %g, min_p %g: expected 0..100, 0.., 0..1 and "
                       "0..1",
                       o->temperature, o->top_k, o->top_p, o->min_p);
    if (!(o->repetition_penalty >= 0 && o->repetition_penalty <= 100 && fabs(o->frequency_penalty) <= 100 &&
          fabs(o->presence_penalty) <= 100 && o->penalty_window >= 0))
        return wg_fail(err, WG_EINVAL,
                       "sampling: repetition_penalty %g, frequency_penalty %g, presence_penalty %g, "
                       "penalty_window %d: expected 0..100, -100..100, -100..100 and 0 or more",
                       o->repetition_penalty, o->frequency_penalty, o->presence_penalty, o->penalty_window);
    return WG_OK;
}

static wg_status set_chain(wg_sampler *s, const wg_sampling *o, wg_error *err)
{
    s->sampling = *o;
    s->bias = NULL;
    s->n_bias = 0;
    s->penalises =
        (o->repetition_penalty > 0 && o->repetition_penalty != 1) || o->frequency_penalty != 0 || o->presence_penalty != 0;
    WG_TRY(check(o, err));
    return wg_sampler_stages(o->order, s->stage, &s->usual, err);
}

wg_status wg_sampling_check(const wg_sampling *sampling, wg_error *err)
{
    wg_sampler s = { 0 };
    return set_chain(&s, sampling, err);
}

wg_status wg_sampler_share(wg_sampler *out, const wg_sampler *memory, const wg_sampling *sampling, wg_error *err)
{
    *out = *memory;
    return set_chain(out, sampling, err);
}

wg_sampler wg_sampler_over(const wg_sampler *chain, const wg_sampler *memory)
{
    wg_sampler s = *memory;
    s.sampling = chain->sampling;
    s.usual = chain->usual;
    s.penalises = chain->penalises;
    memcpy(s.stage, chain->stage, sizeof s.stage);
    s.bias = chain->bias;
    s.n_bias = chain->n_bias;
    return s;
}

wg_status wg_sampler_open(wg_sampler *s, const wg_sampling *sampling, const wg_ops *ops, int vocab, wg_error *err)
{
    *s = (wg_sampler){ .ops = ops, .vocab = vocab };
    WG_TRY(set_chain(s, sampling, err));
    s->order = wg_alloc((size_t)vocab, sizeof *s->order);
    s->clean = wg_alloc((size_t)vocab, sizeof *s->clean);
    s->room = vocab / 8;
    s->id = wg_alloc((size_t)s->room, sizeof *s->id);
    s->near = wg_alloc((size_t)s->room, sizeof *s->near);
    s->weight = wg_alloc((size_t)s->room, sizeof *s->weight);
    s->whole = wg_alloc((size_t)vocab, sizeof *s->whole);
    s->count = wg_calloc((size_t)vocab, sizeof *s->count);
    s->seen = wg_alloc((size_t)vocab, sizeof *s->seen);
    s->before = wg_alloc((size_t)vocab, sizeof *s->before);
    if (s->order && s->clean && s->id && s->near && s->weight && s->whole && s->count && s->seen && s->before) return WG_OK;
    wg_sampler_close(s);
    return wg_nomem(err, (size_t)vocab * 8, "the sampler");
}

void wg_sampler_close(wg_sampler *s)
{
    wg_free(s->order);
    wg_free(s->clean);
    wg_free(s->id);
    wg_free(s->near);
    wg_free(s->weight);
    wg_free(s->whole);
    wg_free(s->count);
    wg_free(s->seen);
    wg_free(s->before);
    *s = (wg_sampler){ 0 };
}

enum { LANES = 16 };

/* A lower bound of the kth largest logit: the least of at least k groups' maxima. Sixteen groups are interleaved. */
static float kth_bound(const float *x, int n, int k)
{
    if (k > n / (2 * LANES)) return -INFINITY;
    const int blocks = (k + LANES - 1) / LANES, rows = n / LANES / blocks;
    float bound = INFINITY;
    for (int b = 0; b < blocks; b++) {
        float max[LANES];
        for (int j = 0; j < LANES; j++) max[j] = -INFINITY;
        for (int r = 0; r < rows; r++, x += LANES)
            for (int j = 0; j < LANES; j++) max[j] = x[j] > max[j] ? x[j] : max[j];
        for (int j = 0; j < LANES; j++) bound = max[j] < bound ? max[j] : bound;
    }
    return bound;
}

/* ---- prefixes of the order */

enum { BUCKETS = 1024, PER_NAT = 32 }; /* a bucket is a factor of exp(1/32) in probability */

typedef struct buckets {
    const float *x;  /* (vocab) logits */
    const double *p; /* (vocab) weights, 1 for the largest logit */
    float max;
    double per_logit;
    int32_t *id; /* (n) candidates, in any order */
    int n;
    int count[BUCKETS];
    wg_mass mass[BUCKETS];
} buckets;

/* Ascending as logits fall; equal logits share a bucket. */
static inline int bucket_of(const buckets *b, int32_t id)
{
    const double at = ((double)b->max - (double)b->x[id]) * b->per_logit;
    return at < BUCKETS - 1 ? (int)at : BUCKETS - 1;
}

static void fill_buckets(buckets *b)
{
    for (int i = 0; i < b->n; i++) {
        const int k = bucket_of(b, b->id[i]);
        b->count[k]++;
        b->mass[k] += wg_steps_of(b->p[b->id[i]]);
    }
}

static void choose_candidates(const wg_sampler *s, buckets *b, wg_mass all)
{
    const wg_sampling *o = &s->sampling;
    /* (Nearer to 1 the rounding to steps would show.) */
    const double spare = o->top_p < 1 - 1e-6 ? (1 - o->top_p) * wg_mass_value(all) / s->vocab / 2 : 0;
    const double light = o->top_k ? 0 : spare, floor = light > DBL_MIN ? light : DBL_MIN;
    const float bound = o->top_k ? kth_bound(b->x, s->vocab, o->top_k) : -INFINITY;
    for (int32_t i = 0; i < s->vocab; i++)
        if (b->p[i] >= floor && b->x[i] >= bound) b->id[b->n++] = i;
}

/* The shortest prefix with `most` tokens or the mass `enough`: its end goes to *e, which is left alone when all candidates have
 * less. Returns its mass. */
static wg_mass cut(buckets *b, int most, wg_mass enough, wg_edge *e)
{
    int kept = 0, k = 0, n = 0;
    wg_mass mass = 0;
    for (; k < BUCKETS && (b->count[k] == 0 || (kept + b->count[k] < most && mass + b->mass[k] < enough)); k++) {
        kept += b->count[k];
        mass += b->mass[k];
    }
    if (k == BUCKETS) return mass;
    for (int i = 0; i < b->n; i++) /* this bucket's to the front */
        if (bucket_of(b, b->id[i]) == k) {
            const int32_t id = b->id[i];
            b->id[i] = b->id[n];
            b->id[n++] = id;
        }
    for (int i = n / 2 - 1; i >= 0; i--) wg_sink(b->x, b->id, n, i);
    for (int i = 0; i < n && (i == 0 || (kept < most && mass < enough)); i++, kept++) {
        const int32_t id = wg_pop(b->x, b->id, n, i);
        mass += wg_steps_of(b->p[id]);
        *e = (wg_edge){ b->x[id], id };
    }
    return mass;
}

/* The part of a mass that top-p keeps; EVERYTHING without top-p. */
static wg_mass part_of(const wg_sampler *s, wg_mass all) { return wg_mass_of(s->sampling.top_p * wg_mass_value(all)); }
static const wg_mass EVERYTHING = ~(wg_mass)0;

/* The end of the prefix of top-k and top-p together. */
static wg_edge prefix(const wg_sampler *s, const float *x, int best, const double *p, wg_mass all)
{
    const wg_sampling *o = &s->sampling;
    wg_edge e = { -INFINITY, s->vocab };
    if (o->top_k == 0 && o->top_p >= 1) return e;
    buckets b = { .x = x, .p = p, .max = x[best], .per_logit = PER_NAT / o->temperature, .id = s->order };
    choose_candidates(s, &b, all);
    fill_buckets(&b);
    if (o->top_k) all = cut(&b, o->top_k, EVERYTHING, &e); /* the mass of which top-p keeps a part */
    if (o->top_p < 1) cut(&b, INT32_MAX, part_of(s, all), &e);
    return e;
}

static inline bool is_kept(float x, int32_t id, double weight, wg_edge e, double lightest)
{
    return (x > e.logit || (x == e.logit && id <= e.id)) && weight >= lightest;
}

/* ---- rows without their tail
 *
 * A truncated row is made of the tokens near its largest logit; those further below are only added up, in float. It is the same
 * row, to the bit: candidates are all tokens from some logit on, so they are the first in order; their weights are the
 * definition's; and the end of the prefix is taken only when it is the same for every mass that the tail could have:
 *   an exponent a (0 <= a <= 87.4; beyond, both weights are below 1.3e-38) is rounded three times, 3 a 2^-24 < 1.6e-5; exp32
 *   itself adds 2e-7: TAIL_ERROR of the tail's sum;
 *   its tokens, fewer than 2^20, count in steps, each within 2^-53; doubles add less: STEP_ERROR of the whole (at least 1).
 * Where that is not enough, more candidates are taken, and in the end the whole row. */
static const double TAIL_ERROR = 2e-5, STEP_ERROR = 1e-9;

/* The end of the prefix among the n candidates; false: they do not determine it. */
static bool near_prefix(const wg_sampler *s, int n, wg_mass mass, double tail, double below, wg_edge *e)
{
    const wg_sampling *o = &s->sampling;
    *e = (wg_edge){ -INFINITY, n };
    if (o->top_k == 0 && o->top_p >= 1) return below < o->min_p * (1 - 1e-9);
    if (o->top_k > n) return false;
    buckets b = {
        .x = s->near, .p = s->weight, .per_logit = PER_NAT / o->temperature, .id = s->order, .n = n, .max = -INFINITY
    };
    for (int i = 0; i < n; i++) {
        b.max = s->near[i] > b.max ? s->near[i] : b.max;
        b.id[i] = i;
    }
    fill_buckets(&b);
    if (o->top_k) {
        const wg_mass kept = cut(&b, o->top_k, EVERYTHING, e);
        if (o->top_p < 1) cut(&b, INT32_MAX, part_of(s, kept), e);
        return true;
    }
    const double whole = wg_mass_value(mass) + tail, enough = o->top_p * whole;
    const double doubt = tail * TAIL_ERROR + whole * STEP_ERROR, least = enough > doubt ? enough - doubt : 0;
    return wg_mass_value(cut(&b, INT32_MAX, wg_mass_of(least), e)) >= enough + doubt;
}

/* Writes the candidates up to the edge as the row; nothing when it is one token: the row is one-hot. */
static void near_row(const wg_sampler *s, int n, wg_edge e, wg_rows *out, int row)
{
    const double lightest = s->sampling.min_p > DBL_MIN ? s->sampling.min_p : DBL_MIN;
    wg_mass mass = 0;
    int kept = 0;
    for (int i = 0; i < n; i++) {
        if (!is_kept(s->near[i], i, s->weight[i], e, lightest)) continue;
        mass += wg_steps_of(s->weight[i]);
        s->id[kept] = s->id[i];
        s->weight[kept++] = s->weight[i];
    }
    if (kept < 2) return;
    const double scale = 1 / wg_mass_value(mass);
    for (int i = 0; i < kept; i++) s->weight[i] *= scale;
    wg_rows_set(out, row, s->id, s->weight, kept);
    out->point[row] = -1;
}

/* Estimates the candidates down to a bound, from one token in 64. CROWDED: more than half of the room for them, with which
 * materialising the whole row is faster; LIGHT: less than the mass that top-p keeps, if the tail were half of its estimate. */
typedef enum outlook { GOOD, CROWDED, LIGHT } outlook;
static outlook expect(const wg_sampler *s, const float *x, float max, float bound, double inverse)
{
    enum { STRIDE = 64 };
    const double spare = 1 - s->sampling.top_p;
    const int m = s->vocab / STRIDE;
    int n, none;
    for (int i = 0; i < m; i++) s->near[i] = x[i * STRIDE];
    const double tail = STRIDE * s->ops->split(s->near, m, bound, max, (float)inverse, NULL, 0, &n);
    if (n > s->room / (2 * STRIDE)) return CROWDED;
    if (s->sampling.top_k > 0 || spare <= 0) return GOOD;
    const double above = STRIDE * s->ops->split(s->near, m, INFINITY, max, (float)inverse, NULL, 0, &none) - tail;
    return tail / 2 > spare * (tail + (above > 1 ? above : 1)) ? LIGHT : GOOD;
}

/* Depth, in nats, of the first search for candidates; halved when there are too many. */
static const double DEPTH = 8;

static inline float bound_at(const wg_sampler *s, float max, double depth)
{
    return (float)((double)max - depth * s->sampling.temperature);
}

static bool row_without_tail(const wg_sampler *s, const float *x, float max, double inverse, wg_rows *out, int row)
{
    const wg_sampling *o = &s->sampling;
    double depth = DEPTH;
    if (o->top_k > s->room || (o->top_k == 0 && o->min_p <= 0 && o->top_p > 1 - 1e-6) || inverse > 1e30) return false;
    for (int tries = 0; tries < 2; tries++) {
        const float bound = bound_at(s, max, depth);
        const outlook seen = expect(s, x, max, bound, inverse);
        int n;
        wg_edge e;
        if (seen != GOOD) {
            depth *= seen == CROWDED ? 0.5 : 1.5;
            continue;
        }
        const double tail = s->ops->split(x, s->vocab, bound, max, (float)inverse, s->id, s->room, &n);
        if (n > s->room) {
            depth /= 2;
            continue;
        }
        for (int k = 0; k < n; k++) s->near[k] = x[s->id[k]];
        const wg_mass mass = wg_weights_of(s, s->near, n, max, inverse, s->weight);
        if (near_prefix(s, n, mass, tail, exp(((double)bound - (double)max) * inverse), &e)) {
            near_row(s, n, e, out, row);
            return true;
        }
        depth *= 1.5;
    }
    return false;
}

/* ---- rows */

/* The support of the row, in *d, and its number of tokens, or 2 where it is more; the weights of all tokens go to w. NULL:
 * to s->whole if they are needed. */
static int weigh(const wg_sampler *s, const float *x, int best, double inverse, double *w, wg_lazy_row *d)
{
    const wg_sampling *o = &s->sampling;
    const bool all_kept = o->top_k == 0 && o->top_p >= 1 && o->min_p <= 0;
    wg_mass all, kept;
    int n = 2; /* a nucleus with more mass than its largest token's has more tokens */
    wg_edge e = { -INFINITY, s->vocab };
    if (!w && (o->top_k > 0 || o->min_p > 0)) w = s->whole;
    const bool ended = wg_nucleus_weigh(s, x, x[best], inverse, w, &all, &kept, &e);
    const double lightest = all_kept ? 0 : o->min_p > DBL_MIN ? o->min_p : DBL_MIN;
    if (all_kept) {
        kept = all;
        n = s->vocab;
    } else if (ended && o->min_p <= 0) {
        n = kept > WG_MASS_ONE ? 2 : 1;
    } else {
        if (!w) wg_weights_of(s, x, s->vocab, x[best], inverse, w = s->whole);
        if (!ended) e = prefix(s, x, best, w, all);
        kept = s->ops->kept64(x, w, s->vocab, e.logit, e.id, lightest, &n);
    }
    *d = (wg_lazy_row){ .last = e.id,
                        .max = x[best],
                        .edge = e.logit,
                        .lightest = lightest,
                        .scale = 1 / wg_mass_value(kept),
                        .logits = x,
                        .sampler = d->sampler };
    return n;
}

/* Materialises the row, or, if nearly all of the vocabulary is in it, describes it in *d, with its weights in w (as weigh),
 * and returns true. */
static bool begin(const wg_sampler *s, const float *logits, wg_rows *out, int row, double *w, wg_lazy_row *d)
{
    const double inverse = 1 / s->sampling.temperature;
    const int best = d->best >= 0 ? d->best : s->ops->argmax(logits, s->vocab);
    out->point[row] = best >= 0 && logits[best] > -INFINITY ? best : 0;
    if (!isfinite(inverse) || best < 0 || isinf(logits[best]) || s->sampling.top_k == 1) return false;
    if (!(d->least > 0) && row_without_tail(s, logits, logits[best], inverse, out, row)) return false;
    out->supported[row] = -1;
    if (weigh(s, logits, best, inverse, w, d) < 2) return false; /* the row is one-hot */
    out->point[row] = -1;
    return true;
}

static void keep(const wg_sampler *s, const wg_lazy_row *d, double *p)
{
    s->ops->keep64(d->logits, p, s->vocab, d->edge, d->last, d->lightest, d->scale);
}

/* Sets the logits of all other tokens to -inf. A set without a finite logit gets one, so that the row stays inside it. */
static void keep_allowed(const uint64_t *allowed, int vocab, float *x)
{
    int32_t first = -1;
    bool any = false;
    for (int32_t from = 0; from < vocab; from += 64) {
        const uint64_t word = allowed[from / 64];
        const int32_t end = vocab - from < 64 ? vocab : from + 64;
        for (int32_t i = from; i < end; i++) {
            const bool in = word >> (i - from) & 1;
            x[i] = in ? x[i] : -INFINITY;
            any |= x[i] > -INFINITY; /* not NaN */
            if (in && first < 0) first = i;
        }
    }
    if (!any && first >= 0) x[first] = 0;
}

/* The logits with biases, of the tokens that may follow: in s->clean, or as they are where there is neither. */
static float *allowed_logits(const wg_sampler *s, float *logits, const wg_prefix *prefix)
{
    const uint64_t *allowed = prefix ? prefix->allowed : NULL;
    if (s->n_bias == 0 && !allowed) return logits;
    memcpy(s->clean, logits, (size_t)s->vocab * sizeof *logits);
    for (int i = 0; i < s->n_bias; i++) s->clean[s->bias[i].token] += s->bias[i].bias;
    if (allowed) keep_allowed(allowed, s->vocab, s->clean);
    return s->clean;
}

void wg_sampler_row_after(wg_sampler *s, float *logits, const wg_prefix *prefix, wg_rows *out, int row)
{
    logits = allowed_logits(s, logits, prefix);
    if (!s->usual) {
        out->supported[row] = -1;
        out->lazy[row].state = WG_ROW_THERE;
        wg_sampler_chain(s, logits, prefix, out, row);
        return;
    }
    wg_sampler_penalise(s, logits, prefix);
    wg_sampler_row(s, logits, out, row);
    wg_sampler_restore(s, logits);
}

void wg_sampler_row(wg_sampler *s, const float *logits, wg_rows *out, int row)
{
    wg_lazy_row d = { .state = WG_ROW_THERE, .best = -1 };
    out->lazy[row].state = WG_ROW_THERE;
    if (!s->usual) {
        out->supported[row] = -1;
        wg_sampler_chain(s, logits, NULL, out, row);
        return;
    }
    double *p = wg_rows_at(out, row);
    if (begin(s, logits, out, row, p, &d)) keep(s, &d, p);
}

/* ---- lazy rows */

void wg_sampler_lazy(wg_sampler *s, const float *logits, wg_rows *out, int row)
{
    wg_lazy_row *d = &out->lazy[row];
    if (!wg_sampler_may_wait(s)) {
        wg_sampler_row(s, logits, out, row);
        return;
    }
    *d = (wg_lazy_row){ .state = WG_ROW_LAZY, .best = -1, .logits = logits, .sampler = s };
}

void wg_rows_resolve(wg_rows *r, int row)
{
    wg_lazy_row *d = &r->lazy[row];
    if (d->state != WG_ROW_LAZY) return;
    d->state = WG_ROW_THERE;
    if (begin(d->sampler, d->logits, r, row, NULL, d)) d->state = WG_ROW_RESOLVED;
}

void wg_rows_materialise(wg_rows *r, int row)
{
    wg_lazy_row *d = &r->lazy[row];
    const wg_sampler *s = d->sampler;
    double *p = r->p + (size_t)row * (size_t)r->vocab;
    const wg_row_state state = d->state;
    d->state = WG_ROW_THERE;
    if (state == WG_ROW_RESOLVED) wg_weights_of(s, d->logits, r->vocab, d->max, 1 / s->sampling.temperature, p);
    else if (!begin(s, d->logits, r, row, p, d)) return;
    keep(s, d, p);
}

double wg_rows_lazy_prob(wg_rows *r, int row, int32_t token)
{
    wg_rows_resolve(r, row);
    const wg_lazy_row *d = &r->lazy[row];
    if (d->state != WG_ROW_RESOLVED) return wg_rows_prob(r, row, token);
    const float x[2] = { d->max, d->logits[token] };
    double w[2];
    if (!(x[1] <= x[0])) return 0; /* NaN */
    d->sampler->ops->softmax64(x, 2, 1 / d->sampler->sampling.temperature, w);
    return is_kept(x[1], token, w[1], (wg_edge){ d->edge, d->last }, d->lightest) ? w[1] * d->scale : 0;
}

/* Whether most of the vocabulary is likely to be in the row: then begin() computes it with its tail. */
static bool is_wide(const wg_sampler *s, const float *x, float max, double inverse)
{
    return expect(s, x, max, bound_at(s, max, DEPTH), inverse) == CROWDED &&
           expect(s, x, max, bound_at(s, max, DEPTH / 2), inverse) != GOOD;
}

/* top-p keeps at least that part of the total, which is summed in float (TAIL_ERROR). */
double wg_rows_bound(wg_rows *r, int row, int32_t token)
{
    wg_lazy_row *d = &r->lazy[row];
    const wg_sampler *s = d->sampler;
    if (d->state != WG_ROW_LAZY) return wg_rows_prob(r, row, token);
    const wg_sampling *o = &s->sampling;
    const float *x = d->logits;
    const double inverse = 1 / o->temperature;
    if (d->least <= 0) {
        int none;
        if (d->best < 0) d->best = s->ops->argmax(x, r->vocab);
        if (o->top_k > 0 || o->min_p > 0 || o->top_p <= 0 || !(inverse < 1e30) || d->best < 0 || isinf(x[d->best]) ||
            !is_wide(s, x, x[d->best], inverse))
            return wg_rows_prob(r, row, token);
        d->least =
            o->top_p * (1 - TAIL_ERROR) * s->ops->split(x, r->vocab, INFINITY, x[d->best], (float)inverse, NULL, 0, &none);
    }
    const float pair[2] = { x[d->best], x[token] };
    double w[2];
    if (!(pair[1] <= pair[0])) return 0; /* NaN */
    s->ops->softmax64(pair, 2, inverse, w);
    return w[1] < d->least ? w[1] / d->least : 1;
}
