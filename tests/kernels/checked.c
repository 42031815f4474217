/* SPDX-License-Identifier: MIT
 * Under the address sanitizer an op reports every buffer of its caller that is one element too short, although its vector code
 * is not instrumented (kernels/checked.c): each op with each of its buffers, in a process of its own that has to end with a
 * report; and with none of them too short, which has to pass. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels/cpu.h"
#include "kernels/ops.h"

enum { N = 70, ROWS = 3, K = 64, HD = 16, SLOTS = 4, PAGES = 3 };

static int brief; /* the buffer that is too short, from 1; 0: none */

/* Buffer number `at` of n elements, which hold 1. */
static void *buffer(int at, size_t n, size_t size)
{
    const size_t bytes = (n - (at == brief)) * size;
    void *made;
    if (posix_memalign(&made, 64, bytes) != 0) abort();
    unsigned char *p = made;
    for (size_t i = 0; i < bytes / size; i++) {
        if (size == sizeof(double)) memcpy(p + i * size, &(double){ 1 }, size);
        else if (size == sizeof(float)) memcpy(p + i * size, &(float){ 1 }, size);
        else p[i] = 0;
    }
    return p;
}
static float *floats(int at, int n) { return buffer(at, (size_t)n, sizeof(float)); }
static double *doubles(int at, int n) { return buffer(at, (size_t)n, sizeof(double)); }

static void matmul_of(const wg_ops *o, int type)
{
    const wg_matrix w = { type, N, K, buffer(1, o->matrix_bytes(type, N, K), 1) };
    o->matmul(&w, buffer(2, o->act_bytes(type, ROWS, K), 1), ROWS, floats(3, (ROWS - 1) * 80 + N), 80, 0,
              (N + WG_PANEL - 1) / WG_PANEL);
}
static void matmul(const wg_ops *o) { matmul_of(o, WG_F32); }
static void matmul_q8_0(const wg_ops *o) { matmul_of(o, WG_Q8_0); }

static void act_prepare(const wg_ops *o)
{
    o->act_prepare(WG_Q8_0, floats(1, (ROWS - 1) * 80 + K), 80, ROWS, K, buffer(2, o->act_bytes(WG_Q8_0, ROWS, K), 1), 0, ROWS);
}

/* A cache of PAGES pages, each an allocation's part: keys, then values; the last slot is the end of the allocation. */
static wg_kv_view cache(int at, int type, const int32_t *page)
{
    const size_t keys = SLOTS * wg_kv_row_bytes(type, 2 * HD), scales = type == WG_KV_Q8 ? SLOTS * 2 * sizeof(float) : 0;
    const size_t half = keys + scales;
    return (wg_kv_view){ .type = type,
                         .page_slots = SLOTS,
                         .kv_dim = 2 * HD,
                         .page = page,
                         .pool = buffer(at, 2 * half * PAGES, 1),
                         .stride = 2 * half,
                         .value_at = half,
                         .head_dim = HD,
                         .scale_at = keys };
}

static void kv_store_of(const wg_ops *o, int type)
{
    int32_t *page = buffer(4, 2, sizeof *page);
    page[1 - (brief == 4)] = PAGES - 1;
    const wg_kv_view kv = cache(1, type, page);
    o->kv_store(&kv, 2 * SLOTS - 1, floats(2, 2 * HD), floats(3, 2 * HD));
}
static void kv_store(const wg_ops *o) { kv_store_of(o, WG_F32); }
static void kv_store_q8(const wg_ops *o) { kv_store_of(o, WG_KV_Q8); }

/* A stage of two rows; its buffers from 2 on. */
typedef void stage_fn(const wg_attention *a, int i0, int i1);
static void attention_of(stage_fn *stage, int type)
{
    enum { CHUNKS = 1, HEADS = 4 };
    static const int32_t page[PAGES] = { 0, 1, 2 };
    const wg_kv_view kv = cache(1, type, page);
    const wg_heads of = {
        .heads = HEADS, .kv_heads = 2, .hd = HD, .scale = 1, .slope = floats(4, HEADS), .sink = floats(9, HEADS)
    };
    const wg_row_keys one = { .kv = &kv, .prefix = 9, .tail = 9, .anc = wg_mask_with(wg_mask_bit(0), 2) }, two[] = { one, one };
    const wg_attention a = { .q = floats(2, 2 * HEADS * HD),
                             .out = floats(3, 2 * HEADS * HD),
                             .keys = two,
                             .of = &of,
                             .rows = 2,
                             .chunks = CHUNKS,
                             .all = CHUNKS,
                             .score = buffer(5, (size_t)(2 * HEADS * CHUNKS * WG_CHUNK_KEYS), sizeof(float)),
                             .c = floats(6, 2 * HEADS * CHUNKS),
                             .m = floats(7, 2 * HEADS),
                             .l = floats(8, 2 * HEADS) };
    stage(&a, 0, 2 * HEADS);
}
static void attention_scores(const wg_ops *o) { attention_of(o->attention_scores, WG_F32); }
static void attention_weights(const wg_ops *o) { attention_of(o->attention_weights, WG_F32); }
static void attention_values(const wg_ops *o) { attention_of(o->attention_values, WG_F32); }
static void attention_q8(const wg_ops *o) { attention_of(o->attention_scores, WG_KV_Q8); }

static void rmsnorm(const wg_ops *o) { o->rmsnorm(floats(1, 80 + N), 80, floats(2, N), N, 1, floats(3, 90 + N), 90, 2); }
static void layernorm(const wg_ops *o)
{
    o->layernorm(floats(1, 2 * N), floats(2, N), floats(3, N), N, 1, floats(4, 2 * N), 2);
}
static void rope(const wg_ops *o) { o->rope(floats(1, 2 * HD), 2, HD, HD, floats(2, HD), 0); }
static void swiglu(const wg_ops *o) { o->swiglu(floats(1, N), floats(2, N), floats(3, N), N); }
static void geglu(const wg_ops *o) { o->geglu(floats(1, N), floats(2, N), floats(3, N), N); }
static void clamped_swiglu(const wg_ops *o) { o->clamped_swiglu(floats(1, N), floats(2, N), floats(3, N), N); }
static void gelu(const wg_ops *o) { o->gelu(floats(1, N), floats(2, N), N); }
static void gelu_erf(const wg_ops *o) { o->gelu_erf(floats(1, N), floats(2, N), N); }
static void relu2(const wg_ops *o) { o->relu2(floats(1, N), floats(2, N), N); }
static void exp32(const wg_ops *o) { o->exp32(floats(1, N), floats(2, N), N); }
static void clamp(const wg_ops *o) { o->clamp(floats(1, N), 1, N); }
static void softcap(const wg_ops *o) { o->softcap(floats(1, N), 1, N); }
static void scale(const wg_ops *o) { o->scale(floats(1, N), 1, N); }
static void add(const wg_ops *o) { o->add(floats(1, N), floats(2, N), N); }
static void add_scaled(const wg_ops *o) { o->add_scaled(floats(1, N), 1, floats(2, N), N); }
static void softmax64(const wg_ops *o) { o->softmax64(floats(1, N), N, 1, doubles(2, N)); }
static void argmax(const wg_ops *o) { o->argmax(floats(1, N), N); }
static void split(const wg_ops *o)
{
    int count;
    o->split(floats(1, N), N, 0, 1, 1, buffer(2, N, sizeof(int32_t)), N, &count);
}
static void weigh64(const wg_ops *o)
{
    wg_band band = { .low = 2, .high = 3, .room = N, .id = buffer(3, N, sizeof(int32_t)), .x = floats(4, N) };
    o->weigh64(floats(1, N), N, 1, 1, doubles(2, N), &band);
}
static void kept64(const wg_ops *o)
{
    int count;
    o->kept64(floats(1, N), doubles(2, N), N, 1, N - 1, 0, &count);
}
static void keep64(const wg_ops *o) { o->keep64(floats(1, N), doubles(2, N), N, 1, N - 1, 0, 1); }

#define CASE(op, buffers)                                                                                                      \
    {                                                                                                                          \
#op, buffers, op                                                                                                       \
    }
static const struct {
    const char *name;
    int buffers;
    void (*run)(const wg_ops *o);
} cases[] = {
    CASE(matmul, 3),
    CASE(matmul_q8_0, 3),
    CASE(act_prepare, 2),
    CASE(kv_store, 4),
    CASE(kv_store_q8, 4),
    CASE(attention_scores, 8),
    CASE(attention_weights, 8),
    CASE(attention_values, 8),
    CASE(attention_q8, 8),
    CASE(rmsnorm, 3),
    CASE(layernorm, 4),
    CASE(rope, 2),
    CASE(swiglu, 3),
    CASE(geglu, 3),
    CASE(clamped_swiglu, 3),
    CASE(gelu, 2),
    CASE(gelu_erf, 2),
    CASE(exp32, 2),
    CASE(clamp, 1),
    CASE(softcap, 1),
    CASE(scale, 1),
    CASE(add, 2),
    CASE(add_scaled, 2),
    CASE(softmax64, 2),
    CASE(argmax, 1),
    CASE(split, 2),
    CASE(weigh64, 4),
    CASE(kept64, 2),
    CASE(keep64, 2),
    CASE(relu2, 2),
};

/* Whether a process that runs the case ends with the sanitizer's report. */
static bool reports(int i, const wg_ops *o)
{
    char text[4096];
    size_t n = 0;
    int end[2], status;
    if (pipe(end) != 0) abort();
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(end[1], STDERR_FILENO);
        cases[i].run(o);
        _exit(0);
    }
    close(end[1]);
    for (ssize_t got; (got = read(end[0], text + n, sizeof text - 1 - n)) > 0;)
        if ((n += (size_t)got) == sizeof text - 1) n = 2048; /* the beginning is enough */
    close(end[0]);
    text[n] = '\0';
    waitpid(pid, &status, 0);
    return (!WIFEXITED(status) || WEXITSTATUS(status)) && strstr(text, "heap-buffer-overflow");
}

int main(void)
{
    int runs = 0, wrong = 0;
    for (int level = WG_CPU_REF + 1; level < WG_CPU_LEVELS; level++)
        for (size_t i = 0; wg_cpu_has((wg_cpu_level)level) && i < sizeof cases / sizeof *cases; i++)
            for (brief = 0; brief <= cases[i].buffers; brief++, runs++) {
                if (reports((int)i, wg_ops_for((wg_cpu_level)level)) == (brief > 0)) continue;
                printf("%s, %s: %s\n", wg_cpu_name((wg_cpu_level)level), cases[i].name,
                       brief ? "a buffer that is too short is not reported" : "a report, but no buffer is too short");
                if (brief) printf("    buffer %d\n", brief);
                wrong++;
            }
    if (runs == 0) puts("SKIPPED: no level but the reference");
    else printf("checked: %d runs, %d wrong\n", runs, wrong);
    return runs == 0 ? 77 : wrong > 0;
}
