/* SPDX-License-Identifier: MIT */
#include "core/file/convert.h"

#include <criterion/criterion.h>
#include <math.h>

#include "core/base/log.h"
#include "core/base/mem.h"
#include "core/file/gguf_write.h"
#include "core/file/synth.h"
#include "core/file/weights.h"
#include "tests/temp.h"
#include "tests/unit/file/llama2c_bytes.h"

typedef struct files {
    temp t;
    char model[128], vocabulary[128], out[128], again[128];
} files;

static void make(files *f)
{
    size_t n;
    temp_make(&f->t);
    strcpy(f->model, temp_at(&f->t, "small.bin"));
    strcpy(f->vocabulary, temp_at(&f->t, "tok.bin"));
    strcpy(f->out, temp_at(&f->t, "out.gguf"));
    strcpy(f->again, temp_at(&f->t, "again.gguf"));
    float *p = llama2c_bytes(&llama2c_small, &n);
    file_write(f->model, p, n);
    free(p);
    char *v = llama2c_vocabulary(llama2c_small.vocab, &n);
    file_write(f->vocabulary, v, n);
    free(v);
}

static int warnings, misfits; /* misfits: the tensors of all warnings */
static void count_warnings(void *user, wg_log_level level, const char *text)
{
    (void)user;
    if (level == WG_LOG_WARN && strstr(text, "instead of")) warnings++, misfits += atoi(text);
}

static wg_weights *open_ok(const char *path)
{
    wg_weights *w = NULL;
    wg_error err;
    cr_assert_eq(wg_weights_open(&w, path, &err), WG_OK, "%s", err.text);
    return w;
}

/* Every tensor of b is the tensor of a, brought to b's type row by row. */
static void expect_same(const wg_weights *a, const wg_weights *b, int matrix_type)
{
    cr_assert_eq(wg_weights_count(a), wg_weights_count(b));
    for (int i = 0; i < wg_weights_count(b); i++) {
        const wg_tensor *x = wg_weights_at(a, i), *y = wg_weights_at(b, i);
        const size_t k = (size_t)x->dim[0], rows = (size_t)x->dim[1];
        const bool fits = k % (size_t)wg_type_get(matrix_type)->block == 0;
        cr_assert_str_eq(x->name, y->name);
        cr_assert_eq(y->type, x->n_dims == 1 ? WG_F32 : fits ? matrix_type : WG_F32, "%s", y->name);
        cr_assert(y->n_dims == x->n_dims && y->dim[0] == x->dim[0] && y->dim[1] == x->dim[1]);
        uint8_t *want = malloc(y->bytes);
        for (size_t r = 0; r < rows; r++)
            cr_assert_eq(wg_row_from_f32(y->type, (const float *)x->data + r * k, want + r * (y->bytes / rows), k), 0);
        cr_assert_eq(memcmp(want, y->data, y->bytes), 0, "%s differs", y->name);
        free(want);
    }
}

Test(convert, llama2c_to_gguf_in_every_type)
{
    static const struct {
        int type;
        int64_t file_type;
    } row[] = { { WG_F32, 0 }, { WG_F16, 1 }, { WG_BF16, 32 }, { WG_Q8_0, 7 } };
    files f;
    wg_error err;
    make(&f);
    wg_log_to(count_warnings, NULL);
    const size_t live = wg_mem_read().live_blocks;
    wg_weights *a = open_ok(f.model);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        warnings = misfits = 0;
        cr_assert_eq(wg_convert(f.model, f.vocabulary, f.out, row[i].type, &err), WG_OK, "%s", err.text);
        wg_weights *b = open_ok(f.out);
        expect_same(a, b, row[i].type);
        cr_assert_eq(warnings, row[i].type == WG_Q8_0);                           /* one of all tensors of a kind */
        cr_assert_eq(misfits, row[i].type == WG_Q8_0 ? llama2c_small.layers : 0); /* ffn_down: rows of 48 */
        int64_t v;
        wg_text t;
        cr_assert(wg_meta_int(b, "general.file_type", &v) && v == row[i].file_type);
        cr_assert(wg_meta_int(b, "llama.block_count", &v) && v == 2);
        cr_assert(wg_meta_string(b, "tokenizer.ggml.model", &t) && t.n == 5);
        cr_assert_eq(wg_meta_int(b, "general.quantization_version", &v), row[i].type == WG_Q8_0);
        cr_assert_eq(wg_meta_array(b, "tokenizer.ggml.tokens", NULL), llama2c_small.vocab);
        wg_weights_close(b);
    }
    wg_weights_close(a);
    cr_assert_eq(wg_mem_read().live_blocks, live);
    temp_remove(&f.t);
}

Test(convert, to_f8_e4m3_and_back)
{
    static const wg_synth_shape shape = { .layers = 1, .dim = 128, .heads = 2, .hidden = 160, .vocab = 300, .context = 32 };
    files f;
    wg_error err;
    int64_t v;
    make(&f);
    wg_log_to(count_warnings, NULL);
    warnings = 0;
    cr_assert_eq(wg_synth_write(&shape, WG_F32, 3, f.model, NULL), WG_OK);
    cr_assert_eq(wg_convert(f.model, NULL, f.out, WG_F8_E4M3, &err), WG_OK, "%s", err.text);
    cr_assert_eq(warnings, 1); /* ffn_down: rows of 160 */
    wg_weights *a = open_ok(f.model), *b = open_ok(f.out);
    expect_same(a, b, WG_F8_E4M3);
    cr_assert(wg_meta_int(b, "general.file_type", &v) && v == WG_F8_E4M3);
    wg_weights_close(a);
    cr_assert_eq(wg_convert(f.out, NULL, f.again, WG_F32, &err), WG_OK, "%s", err.text);
    a = open_ok(f.again);
    const wg_tensor *x = wg_weights_find(a, "blk.0.ffn_up.weight"), *y = wg_weights_find(b, "blk.0.ffn_up.weight");
    cr_assert(x->type == WG_F32 && y->type == WG_F8_E4M3);
    float row[128];
    wg_row_to_f32(WG_F8_E4M3, (const char *)y->data + 7 * (4 + WG_F8_RUN), row, 128);
    cr_assert_eq(memcmp(row, (const float *)x->data + 7 * 128, sizeof row), 0);
    wg_weights_close(a), wg_weights_close(b);
    cr_assert_eq(wg_synth_write(&shape, WG_F8_E4M3, 3, f.model, NULL), WG_OK);
    a = open_ok(f.model), b = open_ok(f.out); /* made in this type: but for ffn_down the converted model */
    for (int i = 0; i < wg_weights_count(a); i++) {
        x = wg_weights_at(a, i), y = wg_weights_find(b, x->name);
        if (!strstr(x->name, "ffn_down")) cr_assert(x->type == y->type && !memcmp(x->data, y->data, x->bytes), "%s", x->name);
    }
    wg_weights_close(a), wg_weights_close(b);
    temp_remove(&f.t);
}

/* Keeping the type keeps every byte; a second conversion changes nothing; a file may replace itself. */
Test(convert, gguf_to_gguf)
{
    files f;
    size_t n = 0, m = 0;
    make(&f);
    wg_log_to(count_warnings, NULL);
    for (int type = WG_F16; type <= WG_Q8_0; type += WG_Q8_0 - WG_F16) {
        cr_assert_eq(wg_synth("tiny", type, 5, f.out, NULL), WG_OK);
        cr_assert_eq(wg_convert(f.out, NULL, f.again, -1, NULL), WG_OK);
        char *a = file_read(f.out, &n), *b = file_read(f.again, &m);
        cr_assert(n == m && memcmp(a, b, n) == 0);
        free(b);
        cr_assert_eq(wg_convert(f.out, NULL, f.out, -1, NULL), WG_OK);
        b = file_read(f.out, &m);
        cr_assert(n == m && memcmp(a, b, n) == 0);
        free(a), free(b);
    }
    /* q8_0 to f32 and back is the identity: the values are multiples of the scale that lead to the same integers */
    cr_assert_eq(wg_convert(f.out, NULL, f.again, WG_F32, NULL), WG_OK);
    wg_weights *q = open_ok(f.out), *x = open_ok(f.again);
    const wg_tensor *tq = wg_weights_find(q, "blk.0.ffn_up.weight"), *tx = wg_weights_find(x, "blk.0.ffn_up.weight");
    cr_assert(tq->type == WG_Q8_0 && tx->type == WG_F32);
    float row[32];
    wg_row_to_f32(WG_Q8_0, tq->data, row, 32);
    cr_assert_eq(memcmp(row, tx->data, sizeof row), 0);
    wg_weights_close(q);
    wg_weights_close(x);
    temp_remove(&f.t);
}

/* A given tokenizer replaces the one inside. */
Test(convert, the_tokenizer_is_replaced)
{
    files f;
    wg_error err;
    make(&f);
    size_t n;
    cr_assert_eq(wg_synth("tiny", WG_F32, 5, f.out, NULL), WG_OK);
    char *v = llama2c_vocabulary(512, &n);
    file_write(f.vocabulary, v, n);
    free(v);
    cr_assert_eq(wg_convert(f.out, f.vocabulary, f.again, -1, &err), WG_OK, "%s", err.text);
    wg_weights *w = open_ok(f.again);
    wg_text t;
    cr_assert(wg_meta_array_string(w, "tokenizer.ggml.tokens", 261, &t) && t.n == 1 && t.s[0] == 'b');
    wg_weights_close(w);
    temp_remove(&f.t);
}

static wg_status fill_bytes(void *user, const wg_tensor *t, void *dst, wg_error *err)
{
    (void)user, (void)err;
    memset(dst, 3, t->bytes);
    return WG_OK;
}

static void write_matrix(const char *path, int type)
{
    wg_gguf_writer *g;
    cr_assert_eq(wg_gguf_writer_open(&g, path, NULL), WG_OK);
    wg_gguf_add(g, &(wg_tensor){ .name = "a.weight", .type = type, .n_dims = 2, .dim = { 256, 2, 1, 1 } }, fill_bytes, NULL);
    wg_gguf_add(g, &(wg_tensor){ .name = "position_embd.weight", .type = WG_F32, .n_dims = 2, .dim = { 64, 2, 1, 1 } },
                fill_bytes, NULL);
    wg_gguf_add(g, &(wg_tensor){ .name = "a.bias", .type = WG_F32, .n_dims = 1, .dim = { 64, 1, 1, 1 } }, fill_bytes, NULL);
    cr_assert_eq(wg_gguf_writer_finish(g, NULL), WG_OK);
}

static void ignore(void *user, wg_log_level level, const char *text) { (void)user, (void)level, (void)text; }

Test(convert, types_without_a_converter_are_only_copied)
{
    files f;
    wg_error err;
    make(&f);
    wg_log_to(ignore, NULL);
    write_matrix(f.out, WG_I16);
    cr_assert_eq(wg_convert(f.out, NULL, f.again, WG_F16, &err), WG_EUNSUPPORTED);
    cr_assert_str_eq(err.text + strlen(f.out),
                     ": tensor 'a.weight' is i16, which cannot be converted to f16; start from an f32, f16, "
                     "bf16 or q8_0 file");
    cr_assert_null(file_read(f.again, NULL));
    cr_assert_eq(wg_convert(f.out, NULL, f.again, -1, &err), WG_OK);
    wg_weights *w = open_ok(f.again);
    cr_assert_eq(wg_weights_at(w, 0)->type, WG_I16);
    cr_assert_eq(((const char *)wg_weights_at(w, 0)->data)[287], 3);
    wg_weights_close(w);

    /* only weight matrices change their type */
    write_matrix(f.out, WG_Q4_0);
    cr_assert_eq(wg_convert(f.out, NULL, f.again, WG_F16, &err), WG_OK);
    w = open_ok(f.again);
    cr_assert_eq(wg_weights_at(w, 0)->type, WG_F16);
    cr_assert_eq(wg_weights_at(w, 1)->type, WG_F32);
    cr_assert_eq(wg_weights_at(w, 2)->type, WG_F32);
    wg_weights_close(w);
    temp_remove(&f.t);
}

Test(convert, failures_leave_nothing)
{
    files f;
    wg_error err;
    make(&f);
    const int before = dir_count(f.t.dir);
    cr_assert_eq(wg_convert(f.model, NULL, f.out, WG_Q5_K, &err), WG_EINVAL);
    cr_assert_str_eq(err.text, "cannot convert to q5_k; expected " WG_WRITABLE_TYPES);
    cr_assert_eq(wg_convert("/nowhere/x.bin", NULL, f.out, -1, &err), WG_ENOENT);
    cr_assert_eq(wg_convert(f.model, "/nowhere/tok.bin", f.out, -1, &err), WG_ENOENT);
    cr_assert_eq(wg_convert(f.model, f.model, f.out, -1, &err), WG_EFORMAT);
    write_matrix(f.again, WG_F16);
    cr_assert_eq(wg_convert(f.again, f.vocabulary, f.out, -1, &err), WG_EMODEL);
    cr_assert_str_eq(err.text + strlen(f.again), ": there is no tensor 'token_embd.weight' to take the vocabulary size from; "
                                                 "leave out --tokenizer");
    remove(f.again);
    cr_assert_eq(wg_convert(f.model, f.vocabulary, "/dev/full", -1, &err), WG_EIO);
    cr_assert_eq(dir_count(f.t.dir), before);

    wg_log_to(count_warnings, NULL);
    const size_t live = wg_mem_read().live_blocks;
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        wg_mem_fail_at(n, n % 2);
        const wg_status s = wg_convert(f.model, f.vocabulary, f.out, WG_Q8_0, &err);
        wg_mem_fail_at(0, false);
        cr_assert(s == WG_OK || s == WG_ENOMEM, "%d: %s", (int)n, err.text);
        done = s == WG_OK;
        cr_assert_eq(dir_count(f.t.dir), before + done);
        cr_assert_eq(wg_mem_read().live_blocks, live, "allocation %d leaks", (int)n);
    }
    temp_remove(&f.t);
}
