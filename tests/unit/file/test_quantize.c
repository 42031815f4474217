/* SPDX-License-Identifier: MIT
 * Weights in other element types (core/file/quantize.h): which tensor gets which, the bits, and what is refused. */
#include "core/file/quantize.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/mem.h"
#include "core/file/convert.h"
#include "core/file/gguf_write.h"
#include "core/file/synth.h"
#include "tests/temp.h"

static const wg_synth_shape shape = { .layers = 2, .dim = 256, .heads = 4, .hidden = 320, .vocab = 300, .context = 32 };
static wg_error err;

static void ignore(void *user, wg_log_level level, const char *text) { (void)user, (void)level, (void)text; }

static wg_weights *view_of(const char *path, const char *spec, wg_pool *pool)
{
    wg_weights *w;
    wg_quantize q;
    cr_assert_eq(wg_quantize_parse(&q, spec, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_weights_open(&w, path, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_quantize_open(&w, w, &q, pool, &err), WG_OK, "%s", err.text);
    return w;
}

static const wg_tensor *need(const wg_weights *w, const char *name)
{
    const wg_tensor *t = wg_weights_find(w, name);
    cr_assert(t, "%s", name);
    cr_assert_eq(wg_weights_need(w, t, &err), WG_OK, "%s", err.text);
    return t;
}

Test(quantize, which_tensor_gets_which_type)
{
    static const struct {
        const char *spec, *name;
        int type;
    } row[] = {
        { "q4_k", "blk.0.attn_q.weight", WG_Q4_K },
        { "q4_k", "blk.1.ffn_down.weight", WG_Q8_0 }, /* rows of 320 */
        { "q4_k", "output.weight", WG_Q6_K },
        { "q4_k", "token_embd.weight", WG_Q4_K },
        { "q4_k", "blk.0.attn_norm.weight", WG_F32 },
        { "q6_k", "output.weight", WG_Q6_K },
        { "q8_0", "output.weight", WG_Q8_0 },
        { "q4_0", "output.weight", WG_Q6_K },
        { "q5_1", "output.weight", WG_Q5_1 }, /* six bits an element */
        { "f16", "output.weight", WG_F16 },
        { "q8_2of4", "blk.0.attn_q.weight", WG_Q8_2OF4 },
        { "q8_2of4", "blk.1.ffn_down.weight", WG_Q8_2OF4 },
        { "q8_2of4", "output.weight", WG_Q8_0 },
        { "q8_2of4", "token_embd.weight", WG_Q8_0 },
        { "q8_2of4,output.weight=q8_2of4", "output.weight", WG_Q8_2OF4 },
        { "q4_0,output.weight=q4_0", "output.weight", WG_Q4_0 },
        { "q4_0,blk.1.*=f16,*=q8_0", "blk.1.ffn_up.weight", WG_F16 },
        { "q4_0,blk.1.*=f16,*=q8_0", "blk.0.ffn_up.weight", WG_Q8_0 },
    };
    temp t;
    temp_make(&t);
    wg_log_to(ignore, NULL);
    char path[256];
    strcpy(path, temp_at(&t, "m.gguf"));
    cr_assert_eq(wg_synth_write(&shape, WG_BF16, 3, path, NULL), WG_OK);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        wg_weights *w = view_of(path, row[i].spec, NULL);
        cr_expect_eq(need(w, row[i].name)->type, row[i].type, "%s: %s is %s", row[i].spec, row[i].name,
                     wg_type_name(need(w, row[i].name)->type));
        wg_weights_close(w);
    }
    temp_remove(&t);
}

/* A written file has the bits of the view, which are those of each row alone; the number of threads changes none. */
Test(quantize, bits_are_those_of_each_row)
{
    static const int types[] = { WG_F32, WG_F16, WG_Q8_0, WG_Q4_0, WG_Q4_K, WG_Q6_K, WG_Q8_2OF4 };
    temp t;
    temp_make(&t);
    wg_log_to(ignore, NULL);
    char path[256], out[256];
    strcpy(path, temp_at(&t, "m.gguf"));
    strcpy(out, temp_at(&t, "out.gguf"));
    cr_assert_eq(wg_synth_write(&shape, WG_BF16, 3, path, NULL), WG_OK);
    const size_t live = wg_mem_read().live_blocks;
    wg_weights *in;
    cr_assert_eq(wg_weights_open(&in, path, &err), WG_OK);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int threads = 1; threads <= 3; threads++) {
            wg_pool *pool;
            float row[256];
            uint8_t want[1024];
            cr_assert_eq(wg_pool_open(&pool, threads, &err), WG_OK);
            wg_weights *w = view_of(path, wg_type_name(types[i]), pool), *written;
            const wg_tensor *x = need(in, "blk.1.ffn_up.weight"), *y = need(w, "blk.1.ffn_up.weight");
            const size_t bytes = y->bytes / (size_t)y->dim[1];
            for (int64_t r = 0; r < y->dim[1]; r++) {
                wg_row_to_f32(x->type, (const char *)x->data + (size_t)r * 512, row, 256);
                cr_assert_eq(wg_row_from_f32(types[i], row, want, 256), 0);
                cr_assert_eq(memcmp(want, (const char *)y->data + (size_t)r * bytes, bytes), 0, "%s, row %d",
                             wg_type_name(types[i]), (int)r);
            }
            cr_assert_eq(wg_convert_weights(w, NULL, out, &err), WG_OK, "%s", err.text);
            cr_assert_eq(wg_weights_open(&written, out, &err), WG_OK);
            for (int k = 0; k < wg_weights_count(w); k++) {
                const wg_tensor *a = need(w, wg_weights_at(w, k)->name), *b = wg_weights_at(written, k);
                cr_assert(a->type == b->type && memcmp(a->data, b->data, a->bytes) == 0, "%s", a->name);
            }
            wg_weights_close(written);
            wg_weights_close(w);
            wg_pool_close(pool);
        }
    wg_weights_close(in);
    cr_assert_eq(wg_mem_read().live_blocks, live);
    temp_remove(&t);
}

/* The K types are searched for: these bits are the same on every machine, and the errors are below those of a search by ggml's
 * reference, which are 0.0713 and 0.0178 of the deviation on normal numbers. */
Test(quantize, blocks_of_k_types)
{
    static const struct {
        int type;
        double error;
        uint64_t hash;
    } row[] = { { WG_Q4_K, 0.0702, 0x5c50afb503294bda }, { WG_Q6_K, 0.0172, 0x39e312dbad82cab3 } };
    enum { N = 1 << 16 };
    float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
    uint8_t *q = malloc(N);
    uint32_t s = 7;
    for (int i = 0; i < N; i++) {
        float sum = -6;
        for (int k = 0; k < 12; k++) s = s * 1664525u + 1013904223u, sum += (float)(s >> 8) / 0x1p24f;
        x[i] = sum;
    }
    for (size_t i = 0; i < 2; i++) {
        double off = 0, all = 0;
        cr_assert_eq(wg_row_from_f32(row[i].type, x, q, N), 0);
        cr_assert_eq(wg_row_to_f32(row[i].type, q, y, N), 0);
        for (int k = 0; k < N; k++) off += pow((double)(x[k] - y[k]), 2), all += pow((double)x[k], 2);
        const uint64_t hash = wg_hash64(WG_HASH_START, q, wg_type_size(wg_type_get(row[i].type), N));
        fprintf(stderr, "%s: relative error %.5f\n", wg_type_name(row[i].type), sqrt(off / all));
        cr_expect(sqrt(off / all) < row[i].error, "%s: %.5f", wg_type_name(row[i].type), sqrt(off / all));
        cr_expect_eq(hash, row[i].hash, "%s: %016llx", wg_type_name(row[i].type), (unsigned long long)hash);
    }
    /* zeros, one value, all positive, all negative, and tiny numbers come back as they should */
    static const float value[][2] = { { 0, 0 }, { 3, 3 }, { 1, 2 }, { -1, -2 }, { 0x1p-130f, 0 }, { 0, -1e4f } };
    for (size_t v = 0; v < sizeof value / sizeof *value; v++)
        for (size_t i = 0; i < 2; i++) {
            const float most = fmaxf(fabsf(value[v][0]), fabsf(value[v][1]));
            for (int k = 0; k < 256; k++) x[k] = value[v][k % 2];
            wg_row_from_f32(row[i].type, x, q, 256);
            wg_row_to_f32(row[i].type, q, y, 256);
            for (int k = 0; k < 256; k++)
                cr_expect(fabsf(x[k] - y[k]) <= 0.06f * most + 0x1p-24f, "%s: %g became %g", wg_type_name(row[i].type),
                          (double)x[k], (double)y[k]);
        }
    free(x), free(y), free(q);
}

typedef struct matrix {
    float at[2][256];
} matrix;

static wg_status fill(void *user, const wg_tensor *t, void *dst, wg_error *e)
{
    (void)e;
    memcpy(dst, user, t->bytes);
    return WG_OK;
}

Test(quantize, what_is_refused)
{
    static const struct {
        const char *spec, *text;
    } bad[] = {
        { "q3_z", "'q3_z' is no type that weights are converted to: expected " WG_WRITABLE_TYPES },
        { "", "'' is no type that weights are converted to: expected " WG_WRITABLE_TYPES },
        { "q8_0,output.weight", "'output.weight' is no PATTERN=TYPE (up to 32, each pattern shorter than 64 bytes), such as "
                                "blk.0.*=f16; TYPE: expected " WG_WRITABLE_TYPES },
        { "q8_0,=f16", "'=f16' is no PATTERN=TYPE (up to 32, each pattern shorter than 64 bytes), such as blk.0.*=f16; TYPE: "
                       "expected " WG_WRITABLE_TYPES },
    };
    wg_quantize q;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(wg_quantize_parse(&q, bad[i].spec, &err), WG_EINVAL);
        cr_expect_str_eq(err.text, bad[i].text);
    }
    static const struct {
        float value;
        int type;
        const char *text;
    } row[] = {
        { NAN, WG_Q8_0,
          "m.gguf: tensor 'a.weight' holds NaN, infinity or a number too large for q8_0 at row 1, from column 5 on: it cannot "
          "be converted; is the file damaged?" },
        { -INFINITY, WG_Q4_K,
          "m.gguf: tensor 'a.weight' holds NaN, infinity or a number too large for q4_k at row 1, from column 5 on: it "
          "cannot be converted; is the file damaged?" },
        { 1e30f, WG_Q6_K,
          "m.gguf: tensor 'a.weight' holds NaN, infinity or a number too large for q6_k at row 1, from column 0 on: it "
          "cannot be converted; is the file damaged?" },
        { 1e30f, WG_Q4_0,
          "m.gguf: tensor 'a.weight' holds NaN, infinity or a number too large for q4_0 at row 1, from column 0 on: it "
          "cannot be converted; is the file damaged?" },
        { 7e4f, WG_F16,
          "m.gguf: tensor 'a.weight' holds NaN, infinity or a number too large for f16 at row 1, from column 5 on: it cannot "
          "be converted; is the file damaged?" },
        { NAN, WG_BF16, NULL },
    };
    temp t;
    temp_make(&t);
    char path[256];
    strcpy(path, temp_at(&t, "m.gguf"));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        matrix m = { 0 };
        wg_gguf_writer *g;
        wg_weights *w;
        m.at[1][5] = row[i].value;
        cr_assert_eq(wg_gguf_writer_open(&g, path, NULL), WG_OK);
        wg_gguf_add(g, &(wg_tensor){ .name = "a.weight", .type = WG_F32, .n_dims = 2, .dim = { 256, 2, 1, 1 } }, fill, &m);
        cr_assert_eq(wg_gguf_writer_finish(g, NULL), WG_OK);
        cr_assert_eq(wg_weights_open(&w, path, &err), WG_OK);
        cr_assert_eq(wg_quantize_open(&w, w, &(wg_quantize){ .type = row[i].type }, NULL, &err), WG_OK);
        const wg_status s = wg_weights_need(w, wg_weights_at(w, 0), &err);
        cr_expect_eq(s, row[i].text ? WG_EMODEL : WG_OK, "%s", wg_type_name(row[i].type));
        if (row[i].text) cr_expect_str_eq(strrchr(err.text, '/') + 1, row[i].text);
        wg_weights_close(w);
        cr_assert_eq(wg_weights_open(&w, path, &err), WG_OK);
        cr_assert_eq(wg_quantize_parse(&q, "q8_0,b.*=f16", &err), WG_OK);
        cr_assert_eq(wg_quantize_open(&w, w, &q, NULL, &err), WG_EINVAL);
        cr_expect_str_eq(strrchr(err.text, '/') + 1,
                         "m.gguf: the pattern 'b.*' matches no matrix: `wager inspect` lists the names of tensors");
    }
    temp_remove(&t);
}

static void add_up(void *user, const wg_quantize_result *r)
{
    double *worst = user;
    if (r->from != r->to && r->error / r->rms > *worst) *worst = r->error / r->rms;
    cr_assert(r->elements > 0 && (r->from != r->to || r->error == 0));
}

/* The report does not depend on the number of threads either. */
Test(quantize, errors_are_reported)
{
    temp t;
    temp_make(&t);
    wg_log_to(ignore, NULL);
    char path[256];
    strcpy(path, temp_at(&t, "m.gguf"));
    cr_assert_eq(wg_synth_write(&shape, WG_F32, 3, path, NULL), WG_OK);
    double worst[2] = { 0, 0 };
    for (int threads = 1; threads <= 2; threads++) {
        wg_pool *pool;
        cr_assert_eq(wg_pool_open(&pool, threads, &err), WG_OK);
        wg_weights *w = view_of(path, "q4_k", pool);
        wg_quantize_report(w, add_up, &worst[threads - 1]);
        for (int i = 0; i < wg_weights_count(w); i++) need(w, wg_weights_at(w, i)->name);
        wg_weights_close(w);
        wg_pool_close(pool);
    }
    cr_assert(worst[0] > 0.06 && worst[0] < 0.075 && worst[0] == worst[1], "%g %g", worst[0], worst[1]);
    temp_remove(&t);
}

/* ---- pruning */

Test(prune, rows)
{
    const float row[8] = { 1, -4, 3, 2, -1, 1, -1, 1 };
    float w[8], room[8];
    static const struct {
        const char *spec;
        float left[8];
    } of[] = {
        { "2:4", { 0, -4, 3, 0, -1, 1, 0, 0 } }, { "1:2", { 0, -4, 3, 0, -1, 0, -1, 0 } },
        { "2:5", { 0, -4, 3, 0, 0, 1, -1, 1 } }, /* three are left over */
        { "0.5", { 1, -4, 3, 2, 0, 0, 0, 0 } },  { "0", { 1, -4, 3, 2, -1, 1, -1, 1 } },
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        wg_prune p;
        cr_assert_eq(wg_prune_parse(&p, of[i].spec, strlen(of[i].spec), &err), WG_OK, "%s", err.text);
        memcpy(w, row, sizeof w);
        wg_prune_row(&p, w, 8, room);
        for (int k = 0; k < 8; k++) cr_expect_eq(w[k], of[i].left[k], "%s: %d is %g", of[i].spec, k, (double)w[k]);
    }
    static const char *const bad[] = { "", "4:2", "2:", "0:4", "2:33", "1", "-0.1", "half", "0.5x", "2:4:1", "nan" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        wg_prune p;
        cr_expect_eq(wg_prune_parse(&p, bad[i], strlen(bad[i]), &err), WG_EINVAL, "%s", bad[i]);
    }
    cr_assert_str_eq(err.text, "'nan' is no pruning: expected N:M (N of every M consecutive weights stay, such as 2:4), or a "
                               "share of each row from 0 to 0.99, such as 0.5; M is at most 32");
}

/* The layers are pruned, embedding and head are not; a type that stays is pruned too, and its codes stay. */
Test(prune, views)
{
    temp t;
    temp_make(&t);
    wg_log_to(ignore, NULL);
    char path[256];
    strcpy(path, temp_at(&t, "m.gguf"));
    cr_assert_eq(wg_synth_write(&shape, WG_Q8_0, 3, path, NULL), WG_OK);
    wg_weights *whole, *w = view_of(path, "q8_0,prune=2:4", NULL);
    cr_assert_eq(wg_weights_open(&whole, path, &err), WG_OK);
    static const char *const name[] = { "blk.0.attn_q.weight", "blk.1.ffn_down.weight", "output.weight", "token_embd.weight" };
    for (int i = 0; i < 4; i++) {
        float a[320], b[320];
        const wg_tensor *from = need(whole, name[i]), *to = need(w, name[i]);
        const size_t k = (size_t)from->dim[0];
        int zeros = 0;
        wg_row_to_f32(WG_Q8_0, from->data, a, k);
        wg_row_to_f32(WG_Q8_0, to->data, b, k);
        for (size_t j = 0; j < k; j++) {
            zeros += b[j] == 0 && a[j] != 0;
            cr_assert(b[j] == a[j] || b[j] == 0, "%s: %g became %g", name[i], (double)a[j], (double)b[j]);
        }
        cr_expect(i < 2 ? zeros > (int)k / 2 - 8 : zeros == 0, "%s: %d of %zu", name[i], zeros, k);
    }
    wg_weights_close(w);
    wg_weights_close(whole);
    temp_remove(&t);
}
