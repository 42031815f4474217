/* SPDX-License-Identifier: MIT
 * Every repeat measures passes of every number of rows, so that a period of other load affects all of them; medians. Bytes
 * are those that a pass must read (weights, head, cached keys and values, each once; of experts those that its rows chose, or
 * where the device does not count them, are expected to choose), multiply-adds those that it must do,
 * attention included; both are printed as shares of the machine's rates in the same repeats. A device with its own memory
 * keeps the logits, as in steps with device verification, and is not compared with the processor's roofline: gpu-check.sh
 * measures the device's own. */
#include "experiments/bench/bench_parts.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/json_line.h"
#include "core/base/mem.h"
#include "experiments/base/roofline.h"
#include "experiments/base/timing.h"

enum { ROWS_MAX = 512, LOGITS_ALL = 64 }; /* up to LOGITS_ALL rows all have logits, beyond that only the last */

typedef struct pass {
    const wg_forward_bench *b;
    wg_model *model;
    wg_lm *lm;
    wg_stages *stages; /* NULL: not timed */
    wg_machine_bench machine;
    wg_kv *kv;
    wg_kv_seq *seq;
    wg_batch batch;
    float *logits;
    int threads;
    const wg_device *device; /* the device whose passes are counted; NULL: it counts none */
    bool apart;              /* the device has its own memory, where logits stay; the processor waits */
    int clock;               /* argument of wg_bench_clock: threads, or 0 */
    int32_t token[ROWS_MAX];
} pass;

typedef struct timing {
    int rows, context;
    bool recorded;                   /* each timed pass replayed a recorded graph */
    double s, s1, stream, products;  /* seconds of the pass; of a pass of one row; bytes and multiply-adds per second of the
                                      * machine */
    double experts;                  /* mean of experts read per layer; 0: not counted */
    double stage[WG_FORWARD_STAGES]; /* seconds of each, means */
} timing;

static wg_status pass_open(pass *p, int context, wg_error *err)
{
    const int slots = context + ROWS_MAX;
    for (int i = 0; i < ROWS_MAX; i++) p->token[i] = (i * 31 + 7) % p->lm->vocab;
    WG_TRY(wg_kv_open(&p->kv, 16, slots / 16 + 2, slots, err));
    WG_TRY(wg_lm_attach(p->lm, p->kv, err));
    WG_TRY(wg_kv_seq_open(p->kv, &p->seq, err));
    WG_TRY(wg_batch_open(&p->batch, ROWS_MAX, err));
    if (!(p->logits = wg_alloc((size_t)LOGITS_ALL * (size_t)p->lm->vocab, sizeof *p->logits)))
        return wg_nomem(err, (size_t)LOGITS_ALL * (size_t)p->lm->vocab * sizeof *p->logits, "logits");
    return WG_OK;
}

static void pass_close(pass *p)
{
    wg_free(p->logits);
    wg_batch_close(&p->batch);
    wg_kv_seq_close(p->seq);
    wg_kv_close(p->kv);
    p->logits = NULL, p->seq = NULL, p->kv = NULL;
    p->batch = (wg_batch){ 0 };
}

/* Runs a pass of a chain of n rows after the committed tokens; logits of the last `logits` rows. */
static wg_status pass_run(pass *p, int n, int logits, double *seconds, wg_error *err)
{
    WG_TRY(wg_kv_reserve(p->seq, n, err));
    wg_batch_clear(&p->batch);
    wg_batch_chain(&p->batch, p->seq, wg_kv_len(p->seq), p->token, n, logits);
    const double start = wg_bench_clock(p->clock);
    WG_TRY(wg_lm_forward(p->lm, &p->batch, p->apart ? NULL : p->logits, err));
    *seconds = wg_bench_clock(p->clock) - start;
    return WG_OK;
}

static wg_status fill_context(pass *p, int context, wg_error *err)
{
    double unused;
    while (wg_kv_len(p->seq) < context) {
        const int left = context - wg_kv_len(p->seq), n = left < 256 ? left : 256;
        WG_TRY(pass_run(p, n, 0, &unused, err));
        wg_kv_commit_chain(p->seq, n);
    }
    return WG_OK;
}

static long replayed(const pass *p) { return p->device ? p->device->class->made(p->device).replayed : 0; }

static int logits_of(int rows) { return rows > LOGITS_ALL ? 1 : rows; }

/* Multiply-adds of a pass: the head for rows with logits only, attention over the keys that each row of the chain sees. */
static double macs_of(const wg_arch *a, int rows, int context)
{
    const double head = (double)a->dim * a->vocab, seen = (double)rows * context + rows * (rows + 1.0) / 2;
    return rows * ((double)wg_arch_macs(a) - head) + logits_of(rows) * head + 2 * seen * a->heads * a->head_dim * a->layers;
}

/* Keys and values of the context, each with its scales, and the weights. */
static double bytes_of(const pass *p, const timing *t)
{
    const wg_arch *a = wg_model_arch(p->model);
    const size_t token = wg_kv_token_bytes(p->b->kv_type, a->layers, a->kv_heads, a->head_dim);
    const double experts = t->experts > 0 ? t->experts : wg_model_experts_expected(p->model, t->rows);
    return (double)wg_model_read_bytes(p->model, experts) + (double)t->context * (double)token;
}

static void print_json(const pass *p, const timing *t, double gb_s, double gmac_s)
{
    json_t *o = json_pack("{s:i, s:i, s:f, s:f, s:f, s:f, s:f, s:i}", "rows", t->rows, "context", t->context, "ms", t->s * 1e3,
                          "tok_s", t->rows / t->s, "v", t->s / t->s1, "gb_s", gb_s, "gmac_s", gmac_s, "threads", p->threads);
    json_object_set_new(o, "stream_gb_s", p->apart ? json_null() : json_real(t->stream / 1e9));
    json_object_set_new(o, "recorded", p->device ? json_boolean(t->recorded) : json_null());
    if (wg_model_arch(p->model)->experts) {
        json_object_set_new(o, "experts", t->experts > 0 ? json_real(t->experts) : json_null());
        json_object_set_new(o, "experts_expected", json_real(wg_model_experts_expected(p->model, t->rows)));
    }
    json_object_set_new(o, "cache_gmac_s", p->apart ? json_null() : json_real(t->products / 1e9));
    if (p->stages) {
        json_t *stages = json_object();
        for (int i = 0; i < WG_FORWARD_STAGES; i++)
            json_object_set_new(stages, wg_stage_names[i], json_real(t->stage[i] * 1e3));
        json_object_set_new(o, "stages_ms", stages);
    }
    wg_json_put_line(o, 0);
}

static void print_timing(const pass *p, const timing *t)
{
    const double bytes = bytes_of(p, t) / t->s;
    const double macs = macs_of(wg_model_arch(p->model), t->rows, t->context) / t->s;
    if (p->b->json) {
        print_json(p, t, bytes / 1e9, macs / 1e9);
        return;
    }
    printf("%6d %8d %10.3f %10.1f %7.2f %8.1f ", t->rows, t->context, t->s * 1e3, t->rows / t->s, t->s / t->s1, bytes / 1e9);
    if (p->apart) printf("        - %8.1f        -", macs / 1e9);
    else printf("%7.0f%% %8.1f %7.0f%%", 100 * bytes / t->stream, macs / 1e9, 100 * macs / t->products);
    if (t->experts > 0) printf(" %8.1f", t->experts);
    else if (wg_model_arch(p->model)->experts) printf("        -");
    if (wg_model_arch(p->model)->experts) printf(" %9.1f", wg_model_experts_expected(p->model, t->rows));
    putchar('\n');
    double sum = 0;
    for (int i = 0; p->stages && i < WG_FORWARD_STAGES; i++) sum += t->stage[i];
    for (int i = 0; p->stages && i < WG_FORWARD_STAGES; i++)
        if (t->stage[i] > 0)
            printf("       %-16s %9.3f ms %5.1f %%\n", wg_stage_names[i], t->stage[i] * 1e3, 100 * t->stage[i] / sum);
}

static wg_status bench_context(pass *p, const int *rows, int n_rows, int context, wg_error *err)
{
    static const double nothing[WG_FORWARD_STAGES];
    double s[WG_BENCH_LIST][WG_BENCH_REPEATS], one[WG_BENCH_REPEATS], stream[WG_BENCH_REPEATS], products[WG_BENCH_REPEATS];
    timing t[WG_BENCH_LIST] = { 0 };
    for (int i = 0; i < n_rows; i++) t[i].recorded = true;
    WG_TRY(fill_context(p, context, err));
    const int repeats = p->b->repeats;
    for (int r = p->apart ? -3 : -1; r < repeats; r++) { /* warm-up; a device records a graph when the same pass comes again */
        const int at = r < 0 ? 0 : r;
        for (int twice = 0; twice < 2; twice++) { /* the roofline measurements have emptied the caches */
            WG_TRY(pass_run(p, 1, 1, &one[at], err));
            wg_kv_rollback(p->seq);
        }
        for (int i = 0; i < n_rows; i++) {
            if (p->stages) memcpy(p->stages->seconds, nothing, sizeof nothing);
            const long before = replayed(p);
            const double read = wg_model_experts_read(p->model);
            WG_TRY(pass_run(p, rows[i], logits_of(rows[i]), &s[i][at], err));
            if (r >= 0 && replayed(p) != before + 1) t[i].recorded = false;
            t[i].experts = wg_model_experts_read(p->model) - read; /* the same in every repeat */
            wg_kv_rollback(p->seq);
            for (int k = 0; p->stages && r >= 0 && k < WG_FORWARD_STAGES; k++) t[i].stage[k] += p->stages->seconds[k] / repeats;
        }
        stream[at] = p->apart ? 0 : wg_machine_stream(&p->machine);
        products[at] = p->apart ? 0 : wg_machine_products(&p->machine);
    }
    const double s1 = wg_bench_median(one, repeats), bytes = wg_bench_median(stream, repeats),
                 macs = wg_bench_median(products, repeats);
    if (!p->b->json) {
        if (p->apart) puts("machine: a device of its own; times of the wall, logits stay there");
        else
            printf("machine: read-only stream %.1f GB/s, products from cache %.0f GMAC/s, %d thread(s), times %s\n",
                   bytes / 1e9, macs / 1e9, p->threads, p->clock == 1 ? "of the processor" : "of the wall");
        printf("  rows  context         ms      tok/s       v     GB/s  of that   GMAC/s  of that%s\n",
               wg_model_arch(p->model)->experts ? "  experts  expected" : "");
    }
    for (int i = 0; i < n_rows; i++) {
        t[i].rows = rows[i], t[i].context = context, t[i].s = wg_bench_median(s[i], repeats), t[i].s1 = s1;
        t[i].stream = bytes, t[i].products = macs;
        print_timing(p, &t[i]);
    }
    return WG_OK;
}

static wg_status bench_all(pass *p, wg_error *err)
{
    const wg_forward_bench *b = p->b;
    int rows[WG_BENCH_LIST], context[WG_BENCH_LIST], n_rows, n_context;
    WG_TRY(wg_bench_numbers("rows", b->rows, 1, ROWS_MAX, rows, &n_rows, err));
    WG_TRY(wg_bench_numbers("context", b->context, 0, p->lm->context - 1, context, &n_context, err));
    for (int i = 0; i < n_context; i++) {
        int fit = 0; /* rows beyond the context are omitted with a message */
        while (fit < n_rows && context[i] + rows[fit] <= p->lm->context) fit++;
        if (fit < n_rows)
            fprintf(stderr, "wager bench: rows from %d on do not fit the context of %d and are left out\n", rows[fit],
                    p->lm->context);
        wg_status s = pass_open(p, context[i], err);
        if (!s) s = bench_context(p, rows, fit, context[i], err);
        pass_close(p);
        WG_TRY(s);
    }
    return WG_OK;
}

wg_status wg_bench_forward(const wg_forward_bench *b, wg_target *t, wg_error *err)
{
    const wg_model_options usual = { .kv_type = b->kv_type };
    pass p = { .b = b, .model = t->model, .lm = t->lm, .threads = wg_pool_threads(t->pool) };
    p.apart = t->device.class->finish != NULL;
    p.clock = p.apart ? 0 : p.threads;
    if (t->device.class->made && !b->stages) p.device = &t->device; /* stages timed alone are not recorded */
    wg_stages stages;
    wg_device timed = t->device;
    wg_status s = WG_OK;
    if (b->stages) { /* a second model, on the timing device */
        wg_stages_wrap(&stages, &timed);
        p.model = NULL;
        s = wg_model_open(&p.model, t->weights, &timed, &usual, err);
        if (!s) p.lm = wg_model_lm(p.model), p.stages = &stages;
    }
    if (!s && !p.apart)
        s = wg_machine_bench_open(&p.machine, t->pool, t->ops, wg_machine_type(t->weights), WG_MACHINE_STREAM, err);
    if (!s) s = bench_all(&p, err);
    wg_machine_bench_close(&p.machine);
    if (b->stages) wg_model_close(p.model);
    return s;
}
