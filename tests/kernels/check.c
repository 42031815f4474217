/* SPDX-License-Identifier: MIT
 * kernelcheck: every op of every level this machine has against the scalar reference, bit for bit, on odd shapes, with
 * canaries around the outputs. New variants are found by the op table. This file has products and prepared inputs; rows.c the
 * ops on rows; pages.c attention and the cache's pages; `kernelcheck --bench` measures (bench.c).
 *
 * One reference result serves many calls: a call with fewer rows, with the panels or heads in pieces, or on another level
 * must give the same bits, so equality with the reference is also the row-invariance test.
 *
 * --quick leaves the large shapes out; --digest prints one number for the bits of each op, which depends on the seed and the
 * sweep and on no machine (tests/kernels/digest.sh). */
#include "tests/kernels/check.h"
#include "tests/kernels/blocks.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GUARD = 64, CANARY = 0xA5 };

options opt = { .level = -1, .against = -1, .threads = 1 };
long calls, failures;
static uint64_t digest;

void *must_alloc(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (p) return p;
    fprintf(stderr, "kernelcheck: out of memory (%zu bytes)\n", bytes);
    exit(2);
}

float *tight_alloc(size_t floats)
{
    float *p = malloc(floats * sizeof *p);
    if (p) return p;
    fprintf(stderr, "kernelcheck: out of memory (%zu floats)\n", floats);
    exit(2);
}

const wg_ops *ops_of(int level) { return wg_ops_for((wg_cpu_level)level); }

bool level_wanted(int level) { return wg_cpu_has((wg_cpu_level)level) && (opt.level < 0 || opt.level == level); }

void fail(const char *what, int level, const char *why, const char *fmt, ...)
{
    va_list ap;
    if (failures++ > 20) return; /* the first ones suffice */
    printf("FAIL %s %s: %s: ", wg_cpu_name((wg_cpu_level)level), what, why);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf(" (seed %" PRIu64 ")\n", opt.seed);
}

/* ---- guarded outputs */

guarded guarded_new(size_t bytes)
{
    guarded g = { must_alloc(bytes + 2 * GUARD), NULL, bytes };
    g.data = g.base + GUARD;
    memset(g.base, CANARY, bytes + 2 * GUARD);
    return g;
}

void guarded_reset(guarded *g) { memset(g->base, CANARY, g->bytes + 2 * GUARD); }

bool guarded_intact(const guarded *g)
{
    for (int i = 0; i < GUARD; i++)
        if ((unsigned char)g->base[i] != CANARY || (unsigned char)g->data[g->bytes + (size_t)i] != CANARY) return false;
    return true;
}

bool same_floats(const void *a, const void *b, size_t n)
{
    if (!memcmp(a, b, n * 4)) return true;
    for (size_t i = 0; i < n; i++) {
        float x, y;
        memcpy(&x, (const char *)a + 4 * i, 4);
        memcpy(&y, (const char *)b + 4 * i, 4);
        if (memcmp(&x, &y, 4) && !(x != x && y != y)) return false;
    }
    return true;
}

/* FNV-1a */
void note(const void *bits, size_t words)
{
    for (size_t i = 0; i < words; i++) {
        uint32_t w;
        memcpy(&w, (const char *)bits + 4 * i, 4);
        if ((w & 0x7fffffffu) > 0x7f800000u) w = 0x7fc00000u;
        digest = (digest ^ w) * 0x100000001b3u;
    }
}

bool any_nonzero(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (x[i] != 0 && x[i] == x[i]) return true;
    return false;
}

/* ---- data */

void fill(source *s, float *x, size_t n, int flavour)
{
    for (size_t i = 0; i < n; i++) {
        const float u = next_unit(s);
        const int odd = next_below(s, 16);
        switch (flavour) {
        case 1: x[i] = odd == 0 ? 0.0f : odd == 1 ? u * 50 : odd == 2 ? -0.0f : u; break;
        case 2: x[i] = odd < 8 ? u * 0x1p-130f : u * 0x1p-90f; break;
        case 3: x[i] = odd < 4 ? u * 0x1p125f : u * 0x1p60f; break;
        case EXTREME: x[i] = i / 1024 % 2 ? -1 : 1; break;
        default: x[i] = u; break;
        }
    }
}

static const int weight_types[] = { WG_FLOAT_TYPES(WG_TYPE_ID) WG_DEVICE_QUANT_TYPES(WG_TYPE_ID)
                                        WG_SCALED_FLOAT_TYPES(WG_TYPE_ID) };
static const int codebook_types[] = { WG_CODEBOOK_TYPES(WG_TYPE_ID) };

/* A random packed matrix; data is to be freed. */
static wg_matrix random_matrix(source *s, int type, int n, int k, int flavour)
{
    const wg_ops *ref = ops_of(WG_CPU_REF);
    static const int extreme[] = { 0xff, 0x80, 0x7f, 0 };
    const size_t row = wg_type_size(wg_type_get(type), (size_t)k);
    float *x = must_alloc((size_t)k * 4);
    char *rows = must_alloc(row * (size_t)n), *packed = must_alloc(ref->matrix_bytes(type, n, k));
    for (int i = 0; i < n; i++) {
        fill(s, x, (size_t)k, flavour);
        for (int j = 0; flavour == 3 && j < k; j++) x[j] *= 0x1p-115f; /* f16 and the scales stay finite */
        if (flavour == EXTREME) extreme_blocks(type, extreme[i % 4], 1, rows + row * (size_t)i, (size_t)k);
        else if (wg_row_from_f32(type, x, rows + row * (size_t)i, (size_t)k))
            random_blocks(type, next_word(s), 1, rows + row * (size_t)i, (size_t)k);
    }
    ref->matrix_pack(type, n, k, rows, packed, 0, (n + WG_PANEL - 1) / WG_PANEL);
    free(x);
    free(rows);
    return (wg_matrix){ type, n, k, packed };
}

/* ---- matmul and act_prepare */
enum { ROWS_MAX = 130, ROWS_QUICK = 70, QUICK_WEIGHTS = 24000 };
static const int some_rows[] = {
    1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 23, 24, 25, 31, 32, 33, 48, 63, 64, 65, 70, 129, 130
};

/* The operands of a product, and the reference's result: x (most rows, ldx), y and want (most rows, ldy). */
typedef struct product {
    const wg_matrix *w;
    const float *x, *want;
    size_t ldx, ldy;
    guarded *y;
} product;

/* The product of the first `rows` rows; split: rows and panels in two calls each. */
static void matmul_rows(int level, const product *of, int rows, int split)
{
    const wg_matrix *w = of->w;
    guarded *y = of->y;
    const wg_ops *ops = ops_of(level);
    const int panels = (w->n + WG_PANEL - 1) / WG_PANEL, cut = split ? panels / 2 : 0, row_cut = split ? rows / 3 : 0;
    char *act = must_alloc(ops->act_bytes(w->type, rows, w->k));
    ops->act_prepare(w->type, of->x, of->ldx, rows, w->k, act, row_cut, rows);
    if (row_cut) ops->act_prepare(w->type, of->x, of->ldx, rows, w->k, act, 0, row_cut);
    guarded_reset(y);
    ops->matmul(w, act, rows, (float *)y->data, of->ldy, cut, panels);
    if (cut) ops->matmul(w, act, rows, (float *)y->data, of->ldy, 0, cut);
    calls++;
    if (!guarded_intact(y))
        fail("matmul", level, "wrote outside", "%s n=%d k=%d rows=%d", wg_type_name(w->type), w->n, w->k, rows);
    if (!same_floats(y->data, of->want, of->ldy * (size_t)rows))
        fail("matmul", level, "bits differ", "%s n=%d k=%d rows=%d split=%d", wg_type_name(w->type), w->n, w->k, rows, split);
    for (size_t i = of->ldy * (size_t)rows * 4; i < y->bytes; i++)
        if ((unsigned char)y->data[i] != CANARY) {
            fail("matmul", level, "wrote further rows", "%s n=%d k=%d rows=%d", wg_type_name(w->type), w->n, w->k, rows);
            break;
        }
    free(act);
}

static void check_matmul_shape(source *s, int type, int n, int k, int all_rows, int flavour)
{
    const size_t ldx = (size_t)k + 5, ldy = (size_t)n + 3;
    const int most = opt.quick ? ROWS_QUICK : ROWS_MAX;
    if (opt.quick && n * k > QUICK_WEIGHTS) return;
    wg_matrix w = random_matrix(s, type, n, k, flavour == 2 ? 0 : flavour); /* tiny by tiny would be nothing */
    float *x = tight_alloc((size_t)most * ldx - 5);                         /* the last row has no gap behind it */
    guarded want = guarded_new((size_t)most * ldy * 4), y = guarded_new((size_t)most * ldy * 4);
    fill(s, x, (size_t)most * ldx - 5, flavour);
    const wg_ops *ref = ops_of(WG_CPU_REF);
    char *act = must_alloc(ref->act_bytes(type, most, k));
    ref->act_prepare(type, x, ldx, most, k, act, 0, most);
    ref->matmul(&w, act, most, (float *)want.data, ldy, 0, (n + WG_PANEL - 1) / WG_PANEL);
    note(want.data, want.bytes / 4);
    bool any = false; /* a single row of few elements may be zeros */
    for (int m = 0; m < most; m++) any = any || any_nonzero((float *)want.data + (size_t)m * ldy, (size_t)n);
    if (!any) fail("matmul", WG_CPU_REF, "all zero", "n=%d k=%d", n, k);
    const product of = { .w = &w, .x = x, .ldx = ldx, .y = &y, .ldy = ldy, .want = (float *)want.data };
    for (int level = 0; level <= (int)wg_cpu_best(); level++) {
        if (!level_wanted(level)) continue;
        if (level == WG_CPU_REF) { /* a row alone, and a few */
            matmul_rows(level, &of, 1, 0);
            matmul_rows(level, &of, 3, 1);
        } else if (all_rows) {
            for (int m = 1; m <= 70; m++) matmul_rows(level, &of, m, m & 1);
            matmul_rows(level, &of, most, 1);
        } else {
            for (size_t i = 0; i < COUNT(some_rows) && some_rows[i] <= most; i++) matmul_rows(level, &of, some_rows[i], i & 1);
        }
    }
    free(act);
    free(want.base);
    free(y.base);
    free(x);
    free((void *)w.data);
}

static int whole(int k, int block) { return (k + block - 1) / block * block; }

static void check_products(source *s, const int *type, size_t types)
{
    static const int shape[][2] = { { 1, 32 },   { 31, 64 },   { 32, 96 },   { 33, 256 }, { 172, 64 },
                                    { 64, 544 }, { 161, 288 }, { 40, 2048 }, { 17, 5632 } };
    static const int odd[][2] = { { 1, 1 }, { 7, 3 }, { 64, 172 }, { 129, 77 }, { 200, 127 }, { 33, 1003 } };
    for (size_t t = 0; t < types; t++) {
        const int block = wg_type_get(type[t])->block;
        for (size_t i = 0; i < COUNT(shape); i++)
            check_matmul_shape(s, type[t], shape[i][0], whole(shape[i][1], block), i == (opt.quick ? 1 : 3), (int)i % 2);
        for (size_t i = 0; i < COUNT(odd) && block == 1; i++)
            check_matmul_shape(s, type[t], odd[i][0], odd[i][1], i == 3, (int)i % 2);
        for (int f = 2; f < (block > 1 ? EXTREME + 1 : FLAVOURS); f++)
            check_matmul_shape(s, type[t], 45, whole(320, block), 0, f);
    }
}

static void check_matmul(source *s) { check_products(s, weight_types, COUNT(weight_types)); }
static void check_codebooks(source *s) { check_products(s, codebook_types, COUNT(codebook_types)); }

static void check_prepare(source *s)
{
    static const int ks[] = { 32, 64, 256, 288, 5632 }, rows[] = { 1, 2, 64, 67 };
    for (size_t i = 0; i < COUNT(ks) * COUNT(rows) * FLAVOURS; i++) {
        const int k = ks[i % COUNT(ks)], m = rows[i / COUNT(ks) % COUNT(rows)];
        const size_t ldx = (size_t)k + 1, bytes = ops_of(WG_CPU_REF)->act_bytes(WG_Q8_0, m, k);
        float *x = tight_alloc(ldx * (size_t)m - 1); /* the last row has no gap behind it */
        guarded want = guarded_new(bytes), got = guarded_new(bytes);
        fill(s, x, ldx * (size_t)m - 1, (int)(i / COUNT(ks) / COUNT(rows)));
        ops_of(WG_CPU_REF)->act_prepare(WG_Q8_0, x, ldx, m, k, want.data, 0, m);
        note(want.data, bytes / 4);
        for (int level = 1; level <= (int)wg_cpu_best(); level++) {
            if (!level_wanted(level)) continue;
            guarded_reset(&got);
            ops_of(level)->act_prepare(WG_Q8_0, x, ldx, m, k, got.data, m / 2, m);
            ops_of(level)->act_prepare(WG_Q8_0, x, ldx, m, k, got.data, 0, m / 2);
            calls++;
            if (!guarded_intact(&got)) fail("act_prepare", level, "wrote outside", "k=%d rows=%d", k, m);
            if (memcmp(got.data, want.data, bytes)) fail("act_prepare", level, "bits differ", "k=%d rows=%d", k, m);
        }
        free(x);
        free(want.base);
        free(got.base);
    }
}

/* ---- the table */
typedef struct check {
    const char *name;
    void (*run)(source *);
} check;
static const check checks[] = {
    { "matmul", check_matmul },     { "act_prepare", check_prepare },  { "attention", check_attention },
    { "kv_store", check_kv_store }, { "rmsnorm", check_rmsnorm_rows },
};
static const check last = { "codebooks", check_codebooks }; /* behind the row ops, whose inputs follow from their numbers */

static void report(const char *name, long before, long failed, clock_t start)
{
    if (opt.digest) {
        printf("%-12s %016" PRIx64 "\n", name, digest);
        return;
    }
    printf("%-12s %7ld calls %s  %.2f s\n", name, calls - before, failures == failed ? "same bits" : "FAILED",
           (double)(clock() - start) / CLOCKS_PER_SEC);
}

static void print_levels(FILE *to)
{
    for (int l = 0; l < WG_CPU_LEVELS; l++)
        if (wg_cpu_has((wg_cpu_level)l)) fprintf(to, " %s", wg_cpu_name((wg_cpu_level)l));
    fputc('\n', to);
}

static int check_main(void)
{
    uint32_t stream = 0;
    if (!opt.digest) {
        printf("seed %" PRIu64 ", levels", opt.seed);
        print_levels(stdout);
    }
    for (size_t i = 0; i <= COUNT(checks) + (size_t)row_op_count; i++) {
        const bool row = i >= COUNT(checks) && i < COUNT(checks) + (size_t)row_op_count;
        const check *of = i < COUNT(checks) ? &checks[i] : &last;
        const char *name = row ? row_op_name((int)(i - COUNT(checks))) : of->name;
        source s = { opt.seed, stream++, 0 };
        const long before = calls, failed = failures;
        const clock_t start = clock();
        if (opt.op && !strstr(name, opt.op)) continue;
        digest = 0xcbf29ce484222325u;
        if (row) check_row_op(&s, (int)(i - COUNT(checks)));
        else of->run(&s);
        report(name, before, failed, start);
    }
    if (!calls) printf("nothing matches --op %s\n", opt.op ? opt.op : "");
    if (!opt.digest || failures) printf("%ld calls, %ld failures\n", calls, failures);
    return failures || !calls ? 1 : 0;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: kernelcheck [--bench | [--quick] [--digest]] [--op NAME] [--against TYPE] [--seed N] [--level NAME] "
            "[--threads N]\n");
    return 2;
}

int main(int argc, char **argv)
{
    opt.seed = (uint64_t)time(NULL);
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        int *flag = !strcmp(arg, "--bench")    ? &opt.bench
                    : !strcmp(arg, "--quick")  ? &opt.quick
                    : !strcmp(arg, "--digest") ? &opt.digest
                                               : NULL;
        if (flag) {
            *flag = 1;
            continue;
        }
        if (!value) return usage();
        i++;
        if (!strcmp(arg, "--op")) opt.op = value;
        else if (!strcmp(arg, "--against")) {
            opt.against = wg_type_parse(value);
            if (opt.against < 0 || !wg_type_get(opt.against)->computable) return usage();
        } else if (!strcmp(arg, "--seed")) opt.seed = strtoull(value, NULL, 10);
        else if (!strcmp(arg, "--threads")) opt.threads = atoi(value) > 0 ? atoi(value) : 1;
        else if (!strcmp(arg, "--level")) {
            for (int l = 0; l < WG_CPU_LEVELS; l++)
                if (!strcmp(value, wg_cpu_name((wg_cpu_level)l))) opt.level = l;
            if (opt.level < 0 || !wg_cpu_has((wg_cpu_level)opt.level)) {
                fprintf(stderr, "kernelcheck: level %s: this processor has", value);
                print_levels(stderr);
                return 2;
            }
        } else return usage();
    }
    return opt.bench ? bench_main(&opt) : check_main();
}
