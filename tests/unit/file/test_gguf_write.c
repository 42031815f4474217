/* SPDX-License-Identifier: MIT
 * The GGUF writer against the reader. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "core/base/mem.h"
#include "core/file/gguf_write.h"
#include "core/file/weights.h"
#include "tests/temp.h"
#include "tests/unit/file/gguf_bytes.h"

enum { ROW = 64, ROWS = 3 };

/* Values that f16 and bf16 hold exactly and that a q8_0 block holds exactly: d = 1/4, integers -127..127. */
static float value_at(int type, int i)
{
    if (type == WG_Q8_0) return i % 32 == 0 ? 31.75f : (float)((i * 37) % 255 - 127) / 4;
    return (float)(i % 200 - 100) / 64;
}

static wg_status fill(void *user, const wg_tensor *t, void *dst, wg_error *err)
{
    (void)err;
    ++*(int *)user;
    cr_assert_null(t->data);
    const size_t row = t->bytes / ROWS;
    for (int r = 0; r < ROWS; r++) {
        float x[ROW];
        for (int i = 0; i < ROW; i++) x[i] = value_at(t->type, r * ROW + i);
        cr_assert_eq(wg_row_from_f32(t->type, x, (char *)dst + row * (size_t)r, ROW), 0);
    }
    return WG_OK;
}

static const int types[] = { WG_Q8_0, WG_F32, WG_F16, WG_BF16 }; /* the first one needs padding behind it */

static wg_status write_sample(const char *path, const wg_weights *copy_from, int *fills, wg_error *err)
{
    wg_gguf_writer *g;
    *fills = 0;
    WG_TRY(wg_gguf_writer_open(&g, path, err));
    wg_gguf_set_string(g, "general.architecture", "llama", 5);
    wg_gguf_set_u32(g, "x.u32", 4000000000u);
    wg_gguf_set_f32(g, "x.f32", 0.125f);
    wg_gguf_set_bool(g, "x.bool", false);
    wg_gguf_set_strings(g, "x.words", (wg_text[]){ { "a\0b", 3 }, { "", 0 }, { "\xff", 1 } }, 3);
    wg_gguf_set_f32s(g, "x.f32s", (float[]){ 1, -1 }, 2);
    wg_gguf_set_i32s(g, "x.i32s", (int32_t[]){ -5, 6, 7 }, 3);
    for (int i = 0; copy_from && i < wg_meta_count(copy_from); i++)
        if (strcmp(wg_meta_key(copy_from, i), "general.architecture") != 0) wg_gguf_copy_meta(g, copy_from, i);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        wg_tensor t = { .name = wg_type_name(types[i]), .type = types[i], .n_dims = 2, .dim = { ROW, ROWS, 1, 1 } };
        wg_gguf_add(g, &t, fill, fills);
    }
    return wg_gguf_writer_finish(g, err);
}

Test(gguf_write, what_is_written_is_read)
{
    const gguf_bytes g = gguf_valid();
    wg_weights *from, *w;
    wg_error err;
    temp t;
    int fills;
    temp_make(&t);
    const size_t live = wg_mem_read().live_blocks;
    cr_assert_eq(wg_weights_open_memory(&from, "FILE", g.b, g.n, &err), WG_OK);
    cr_assert_eq(write_sample(temp_at(&t, "m.gguf"), from, &fills, &err), WG_OK);
    cr_assert_eq(fills, 4);
    cr_assert_eq(dir_count(t.dir), 1);
    cr_assert_eq(wg_weights_open(&w, temp_at(&t, "m.gguf"), &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_weights_file_bytes(w) % 32, 0);

    int64_t v;
    double f;
    bool b = true;
    wg_text s;
    cr_assert(wg_meta_int(w, "x.u32", &v) && v == 4000000000);
    cr_assert(wg_meta_float(w, "x.f32", &f) && f == 0.125);
    cr_assert(wg_meta_bool(w, "x.bool", &b) && !b);
    cr_assert(wg_meta_array_string(w, "x.words", 0, &s) && s.n == 3 && memcmp(s.s, "a\0b", 3) == 0);
    cr_assert(wg_meta_array_string(w, "x.words", 2, &s) && s.n == 1 && s.s[0] == '\xff');
    cr_assert(wg_meta_array_float(w, "x.f32s", 1, &f) && f == -1);
    cr_assert(wg_meta_array_int(w, "x.i32s", 0, &v) && v == -5);

    /* copied keys have the same kind and value; the alignment is the writer's own */
    cr_assert_eq(wg_meta_array(w, "general.alignment", NULL), -1);
    cr_assert(!wg_meta_int(w, "general.alignment", &v));
    cr_assert_eq(wg_meta_count(w), 7 + GB_METAS - 2);
    cr_assert(wg_meta_int(w, "a.i64", &v) && v == -9);
    cr_assert(wg_meta_float(w, "a.f64", &f) && f == 0.25);
    cr_assert(wg_meta_array_int(w, "a.ints", 2, &v) && v == -3);
    cr_assert(wg_meta_array_string(w, "a.words", 2, &s) && s.n == 5 && memcmp(s.s, "three", 5) == 0);
    cr_assert_eq(wg_meta_array(w, "a.empty", NULL), 0);

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const wg_tensor *x = wg_weights_find(w, wg_type_name(types[i]));
        cr_assert(x && x->type == types[i] && x->dim[0] == ROW && x->dim[1] == ROWS && (uintptr_t)x->data % 32 == 0);
        for (int again = 0; again < 2; again++) {
            float row[ROW];
            for (int r = 0; r < ROWS; r++) {
                cr_assert_eq(wg_row_to_f32(x->type, (const char *)x->data + x->bytes / ROWS * (size_t)r, row, ROW), 0);
                for (int k = 0; k < ROW; k++) cr_assert_eq(row[k], value_at(types[i], r * ROW + k), "%s %d", x->name, k);
            }
            wg_weights_release(w, x); /* only advice: the bytes can be read again */
        }
    }
    wg_weights_close(w);
    wg_weights_close(from);
    cr_assert_eq(wg_mem_read().live_blocks, live);
    temp_remove(&t);
}

static void expect_refused(void (*misuse)(wg_gguf_writer *, int *), const char *word)
{
    temp t;
    wg_gguf_writer *g;
    wg_error err;
    int fills = 0;
    temp_make(&t);
    cr_assert_eq(wg_gguf_writer_open(&g, temp_at(&t, "m.gguf"), &err), WG_OK);
    misuse(g, &fills);
    wg_gguf_set_u32(g, "later", 1); /* the first failure stays */
    cr_assert_eq(wg_gguf_writer_finish(g, &err), WG_EINVAL);
    cr_assert(strstr(err.text, word) && strstr(err.text, t.path), "%s", err.text);
    cr_assert(fills == 0 && dir_count(t.dir) == 0);
    temp_remove(&t);
}

static void add(wg_gguf_writer *g, int *fills, const char *name, int type, int64_t k, int64_t n)
{
    wg_gguf_add(g, &(wg_tensor){ .name = name, .type = type, .n_dims = 2, .dim = { k, n, 1, 1 } }, fill, fills);
}
static void key_twice(wg_gguf_writer *g, int *f) { (void)f, wg_gguf_set_u32(g, "a", 1), wg_gguf_set_bool(g, "a", 1); }
static void key_empty(wg_gguf_writer *g, int *f) { (void)f, wg_gguf_set_u32(g, "", 1); }
static void key_ascii(wg_gguf_writer *g, int *f) { (void)f, wg_gguf_set_u32(g, "\xc3\xa9", 1); }
static void tensor_twice(wg_gguf_writer *g, int *f) { add(g, f, "x", 0, 1, 1), add(g, f, "x", 0, 1, 1); }
static void tensor_blocks(wg_gguf_writer *g, int *f) { add(g, f, "x", WG_Q8_0, 33, 1); }
static void tensor_type(wg_gguf_writer *g, int *f) { add(g, f, "x", 77, 32, 1); }
static void tensor_dim(wg_gguf_writer *g, int *f) { add(g, f, "x", 0, 4, 0); }
static void tensor_huge(wg_gguf_writer *g, int *f) { add(g, f, "x", 0, INT64_MAX, INT64_MAX); }
static void tensor_name(wg_gguf_writer *g, int *f)
{
    add(g, f, "0123456789012345678901234567890123456789012345678901234567890123", 0, 1, 1);
}

Test(gguf_write, the_writer_refuses_what_the_reader_would)
{
    expect_refused(key_twice, "metadata key 'a' is set twice");
    expect_refused(key_empty, "'' cannot be a metadata key: expected 1..65535 printable ASCII characters");
    expect_refused(key_ascii, "cannot be a metadata key: expected 1..65535 printable ASCII characters");
    expect_refused(tensor_twice, "'x' is added twice");
    expect_refused(tensor_blocks, "tensor 'x': 2 dimensions of type q8_0, rows of 33 elements: cannot be written");
    expect_refused(tensor_type, "unknown type");
    expect_refused(tensor_dim, "dimension 1 is 0");
    expect_refused(tensor_huge, "dimension 1");
    expect_refused(tensor_name,
                   "tensor name '0123456789012345678901234567890123456789012345678901234567890123' is 64 bytes long");
}

/* Two tensors of half the address space, and what stands before them. */
Test(gguf_write, a_head_of_more_than_can_be_addressed)
{
    temp t;
    wg_gguf_writer *g;
    wg_error err;
    void *head;
    size_t n, whole;
    int fills = 0;
    temp_make(&t);
    cr_assert_eq(wg_gguf_writer_open(&g, temp_at(&t, "m.gguf"), &err), WG_OK);
    add(g, &fills, "a", WG_I8, INT64_MAX - 31, 1), add(g, &fills, "b", WG_I8, INT64_MAX - 31, 1);
    cr_assert_eq(wg_gguf_writer_head(g, &head, &n, &whole, &err), WG_EINVAL);
    cr_assert(strstr(err.text, " bytes of metadata and the tensors are more than can be addressed"), "%s", err.text);
    cr_assert(fills == 0 && dir_count(t.dir) == 0);
    temp_remove(&t);
}

Test(gguf_write, any_allocation_may_fail_while_writing)
{
    const gguf_bytes g = gguf_valid();
    wg_weights *from;
    temp t;
    temp_make(&t);
    cr_assert_eq(wg_weights_open_memory(&from, "FILE", g.b, g.n, NULL), WG_OK);
    const size_t live = wg_mem_read().live_blocks;
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        wg_error err = { 0 };
        int fills;
        wg_mem_fail_at(n, n % 2);
        const wg_status s = write_sample(temp_at(&t, "m.gguf"), from, &fills, &err);
        wg_mem_fail_at(0, false);
        cr_assert(s == WG_OK || (s == WG_ENOMEM && strstr(err.text, "out of memory")), "%d: %s", (int)n, err.text);
        done = s == WG_OK;
        cr_assert_eq(dir_count(t.dir), done ? 1 : 0);
        cr_assert_eq(wg_mem_read().live_blocks, live, "allocation %d leaks", (int)n);
    }
    wg_weights_close(from);
    temp_remove(&t);
}

static wg_status fill_fails(void *user, const wg_tensor *t, void *dst, wg_error *err)
{
    (void)user, (void)dst;
    return wg_fail(err, WG_EUNSUPPORTED, "no bytes for %s", t->name);
}

Test(gguf_write, a_full_disk_leaves_nothing)
{
    temp t;
    wg_error err;
    int fills;
    temp_make(&t);
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(write_sample("/dev/full", NULL, &fills, &err), WG_EIO);
    cr_assert_str_eq(err.text,
                     "/dev/full: cannot write after 0 bytes: No space left on device; free some space or write elsewhere");
    cr_assert_eq(write_sample("/nowhere/m.gguf", NULL, &fills, &err), WG_ENOENT);
    wg_gguf_writer *g;
    cr_assert_eq(wg_gguf_writer_open(&g, temp_at(&t, "m.gguf"), &err), WG_OK);
    wg_gguf_add(g, &(wg_tensor){ .name = "x", .n_dims = 1, .dim = { 1, 1, 1, 1 } }, fill_fails, NULL);
    cr_assert_eq(wg_gguf_writer_finish(g, &err), WG_EUNSUPPORTED);
    cr_assert_str_eq(err.text, "no bytes for x");
    cr_assert_eq(dir_count(t.dir), 0);
    cr_assert_eq(wg_gguf_writer_open(&g, temp_at(&t, "m.gguf"), &err), WG_OK);
    wg_gguf_writer_abort(g);
    wg_gguf_writer_abort(NULL);
    cr_assert_eq(dir_count(t.dir), 0);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 700, 700 });
    cr_assert_eq(write_sample(temp_at(&t, "m.gguf"), NULL, &fills, &err), WG_EIO);
    cr_assert(strncmp(err.text, t.path, strlen(t.path)) == 0 && strstr(err.text, "File too large"), "%s", err.text);
    cr_assert_eq(dir_count(t.dir), 0);
}

Test(gguf_write, many_tensors_are_found)
{
    enum { MANY = 3000 };
    wg_weights *w;
    wg_error err;
    char name[32];
    gguf_bytes head = { .n = 0 };
    static uint8_t file[MANY * 80];
    size_t n = 0;
    gb_put(&head, "GGUF", 4), gb_u32(&head, 3), gb_u64(&head, MANY), gb_u64(&head, 0);
    memcpy(file, head.b, n = head.n);
    for (int i = 0; i < MANY; i++) {
        gguf_bytes e = { .n = 0 };
        snprintf(name, sizeof name, "blk.%d.x", i);
        gb_string(&e, name), gb_u32(&e, 0), gb_u32(&e, WG_I8), gb_u64(&e, (uint64_t)i * 32);
        memcpy(file + n, e.b, e.n);
        n += e.n;
    }
    n = (n + 31) / 32 * 32;
    uint8_t *all = calloc(n + MANY * 32, 1);
    memcpy(all, file, n);
    cr_assert_eq(wg_weights_open_memory(&w, "FILE", all, n + MANY * 32, &err), WG_OK, "%s", err.text);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "blk.%d.x", i);
        cr_assert_eq(wg_weights_find(w, name), wg_weights_at(w, i));
    }
    wg_weights_close(w);
    free(all);
}
