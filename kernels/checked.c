/* SPDX-License-Identifier: MIT
 * The ops of the x86 levels for builds with the address sanitizer. Instrumented, their tiles are twenty to fifty times slower;
 * so they are compiled without it, and what an op reads and writes by its definition (kernels/op_list.h) is checked before it
 * runs: a buffer of a caller that is too short, or freed, is reported as the sanitizer reports any other access. That the
 * variants keep to these regions is for kernelcheck, which runs them instrumented (wg_kernels_instrumented). */
#include "kernels/variants.h"

#if WG_CHECKED_OPS

#include <sanitizer/asan_interface.h>

/* An access to the first byte that may not be accessed, if there is one; the sanitizer reports it. */
static void region(const void *p, size_t bytes)
{
    const volatile char *bad = bytes ? __asan_region_is_poisoned((void *)(uintptr_t)p, bytes) : NULL;
    if (bad) (void)*bad;
}
static void floats(const float *p, size_t n) { region(p, n * sizeof *p); }

/* Rows [r0,r1) of n floats, `apart` floats apart. */
static void rows_of(const float *p, size_t apart, int r0, int r1, int n)
{
    for (int r = r0; r < r1; r++) floats(p + (size_t)r * apart, (size_t)n);
}

/* ---- caches ------------------------------------------------------------------------------------------------------ */

/* Keys and values of the slots from .. to-1, all in one page. */
static void page_slots(const wg_kv_view *kv, int from, int to)
{
    region(&kv->page[from / kv->page_slots], sizeof *kv->page);
    const char *page = kv->pool + (size_t)kv->page[from / kv->page_slots] * kv->stride;
    const size_t row = wg_kv_row_bytes(kv->type, kv->kv_dim), at = (size_t)(from % kv->page_slots), n = (size_t)(to - from);
    for (int value = 0; value < 2; value++, page += kv->value_at) {
        region(page + at * row, n * row);
        for (int s = 0; s < wg_kv_scales(kv); s++)
            floats((const float *)(const void *)(page + kv->scale_at) + (size_t)s * (size_t)kv->page_slots + at, n);
    }
}

static void slots(const wg_kv_view *kv, int from, int to)
{
    for (int end; from < to; from = end) {
        end = (from / kv->page_slots + 1) * kv->page_slots;
        page_slots(kv, from, end < to ? end : to);
    }
}

static void keys_of(const wg_row_keys *k)
{
    slots(k->kv, 0, k->gap > 0 ? k->sinks : k->prefix);
    if (k->gap > 0) slots(k->kv, k->sinks + k->gap, k->prefix);
    wg_mask tail = k->anc;
    for (int i; (i = wg_mask_take(&tail)) >= 0;) slots(k->kv, k->tail + i, k->tail + i + 1);
}

/* ---- what an op accesses ----------------------------------------------------------------------------------------- */

static void matmul(const wg_matrix *w, const void *act, int rows, const float *y, size_t ldy, int p0, int p1)
{
    const int panels = (w->n + WG_PANEL - 1) / WG_PANEL, end = p1 * WG_PANEL < w->n ? p1 * WG_PANEL : w->n;
    const size_t panel = wg_matrix_bytes_ref(w->type, w->n, w->k) / (size_t)panels;
    region((const char *)w->data + (size_t)p0 * panel, (size_t)(p1 - p0) * panel);
    region(act, wg_act_bytes_ref(w->type, rows, w->k));
    rows_of(y + (size_t)p0 * WG_PANEL, ldy, 0, rows, end - p0 * WG_PANEL);
}

static void act_prepare(int type, const float *x, size_t ldx, int rows, int k, const void *act, int r0, int r1)
{
    rows_of(x, ldx, r0, r1, k);
    region(act, wg_act_bytes_ref(type, rows, k));
}

static void attention(const wg_attention *a)
{
    const size_t slots = (size_t)wg_attention_slots(a), all = slots * (size_t)a->of->hd;
    floats(a->q, all);
    floats(a->out, all);
    floats(a->score[0], slots * (size_t)a->chunks * WG_CHUNK_KEYS);
    floats(a->c, slots * (size_t)a->chunks);
    floats(a->m, slots);
    floats(a->l, slots);
    if (a->of->slope) floats(a->of->slope, (size_t)a->of->heads);
    if (a->of->sink) floats(a->of->sink, (size_t)a->of->heads);
    for (int r = 0; r < a->rows; r++) keys_of(&a->keys[r]);
}

static void kv_store(const wg_kv_view *kv, int32_t slot, const float *k, const float *v)
{
    floats(k, (size_t)kv->kv_dim);
    floats(v, (size_t)kv->kv_dim);
    slots(kv, slot, slot + 1);
}

static void norm(const float *x, size_t ldx, const float *weight, const float *bias, int dim, const float *y, size_t ldy,
                 int rows)
{
    rows_of(x, ldx, 0, rows, dim);
    rows_of(y, ldy, 0, rows, dim);
    floats(weight, (size_t)dim);
    if (bias) floats(bias, (size_t)dim);
}

static void floats_2(const float *x, const float *y, int n)
{
    floats(x, (size_t)n);
    floats(y, (size_t)n);
}

/* A row, and its probabilities where there are any. */
static void row(const float *x, const double *p, int n)
{
    floats(x, (size_t)n);
    if (p) region(p, (size_t)n * sizeof *p);
}

static void band_of(const wg_band *band)
{
    if (!band) return;
    region(band, sizeof *band);
    region(band->id, (size_t)band->room * sizeof *band->id);
    floats(band->x, (size_t)band->room);
}

/* ---- the ops of a level ------------------------------------------------------------------------------------------ */

#define MATMUL(level)                                                                                                          \
    void wg_matmul_##level##_checked(const wg_matrix *w, const void *act, int rows, float *y, size_t ldy, int p0, int p1)      \
    {                                                                                                                          \
        matmul(w, act, rows, y, ldy, p0, p1);                                                                                  \
        wg_matmul_##level(w, act, rows, y, ldy, p0, p1);                                                                       \
    }

#define LEVEL avx2
#include "kernels/checked_ops.h"
#define LEVEL avx512
#include "kernels/checked_ops.h"
MATMUL(avx2)
MATMUL(avx512)
#if WG_AVXVNNI
MATMUL(avxvnni)
#endif

#endif
