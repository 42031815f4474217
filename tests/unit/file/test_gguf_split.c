/* SPDX-License-Identifier: MIT
 * Models in several GGUF files: opened by any of them as one; every part that does not belong there is refused by its name. */
#include <criterion/criterion.h>

#include "core/base/mem.h"
#include "core/file/convert.h"
#include "core/file/weights.h"
#include "tests/temp.h"
#include "tests/unit/file/gguf_bytes.h"

enum { PARTS = 3, FLOATS = 8 };

/* A file: tensors of eight floats, all of them `value` of the tensor. */
typedef struct part {
    int no, count, tensors;
    const char *file, *arch; /* arch: NULL, no such key */
    int n;
    const char *name[2];
    float value[2];
} part;

static const part whole[PARTS] = {
    { .no = 0, .count = 3, .tensors = 3, .file = "m-00001-of-00003.gguf", .arch = "llama" },
    { .no = 1, .count = 3, .tensors = 3, .file = "m-00002-of-00003.gguf", .n = 2, .name = { "a", "b" }, .value = { 1, 2 } },
    { .no = 2, .count = 3, .tensors = 3, .file = "m-00003-of-00003.gguf", .n = 1, .name = { "c" }, .value = { 3 } },
};

static size_t write_part(temp *t, const part *p)
{
    gguf_bytes g = { .n = 0 };
    gb_put(&g, "GGUF", 4), gb_u32(&g, 3), gb_u64(&g, (uint64_t)p->n), gb_u64(&g, p->arch ? 4 : 3);
    gb_key(&g, "split.no", 2), gb_put(&g, &(uint16_t){ (uint16_t)p->no }, 2);
    gb_key(&g, "split.count", 2), gb_put(&g, &(uint16_t){ (uint16_t)p->count }, 2);
    gb_key(&g, "split.tensors.count", 5), gb_u32(&g, (uint32_t)p->tensors);
    if (p->arch) gb_key(&g, "general.architecture", 8), gb_string(&g, p->arch);
    for (int i = 0; i < p->n; i++) {
        gb_string(&g, p->name[i]);
        gb_u32(&g, 1), gb_u64(&g, FLOATS), gb_u32(&g, 0), gb_u64(&g, (uint64_t)i * FLOATS * 4);
    }
    gb_pad(&g);
    for (int i = 0; i < p->n * FLOATS; i++) gb_put(&g, &p->value[i / FLOATS], 4);
    file_write(temp_at(t, p->file), (const char *)g.b, g.n);
    return g.n;
}

static size_t write_parts(temp *t, const part *p)
{
    size_t all = 0;
    for (int i = 0; i < PARTS; i++) all += p[i].file ? write_part(t, &p[i]) : 0;
    return all;
}

static void check_whole(const wg_weights *w, size_t bytes)
{
    static const char *const name[] = { "a", "b", "c" };
    int64_t v;
    wg_text arch;
    cr_assert_eq(wg_weights_count(w), 3);
    for (int i = 0; i < 3; i++) {
        const wg_tensor *x = wg_weights_at(w, i);
        cr_assert_str_eq(x->name, name[i]);
        cr_assert_eq(wg_weights_find(w, name[i]), x);
        for (int k = 0; k < FLOATS; k++) cr_assert_eq(((const float *)x->data)[k], (float)(i + 1));
        wg_weights_release(w, x);
        cr_assert_eq(((const float *)x->data)[FLOATS - 1], (float)(i + 1));
    }
    cr_assert(wg_meta_string(w, "general.architecture", &arch) && arch.n == 5);
    cr_assert(wg_meta_count(w) == 1 && !wg_meta_int(w, "split.count", &v));
    cr_assert_str_eq(wg_weights_format(w), "GGUF v3 in 3 files");
    cr_assert_eq(wg_weights_file_bytes(w), bytes);
}

Test(gguf_split, any_part_opens_all)
{
    temp t;
    temp_make(&t);
    const size_t bytes = write_parts(&t, whole), live = wg_mem_read().live_blocks;
    for (int i = 0; i < PARTS; i++) {
        wg_weights *w = NULL;
        wg_error err = { 0 };
        cr_assert_eq(wg_weights_open(&w, temp_at(&t, whole[i].file), &err), WG_OK, "%s", err.text);
        check_whole(w, bytes);
        wg_weights_close(w);
    }
    cr_assert_eq(wg_mem_read().live_blocks, live);
    temp_remove(&t);
}

/* The converted file is one, and says nothing of parts. */
Test(gguf_split, conversion_joins)
{
    temp t, to;
    wg_error err = { 0 };
    wg_weights *w;
    temp_make(&t), temp_make(&to);
    write_parts(&t, whole);
    cr_assert_eq(wg_convert(temp_at(&t, whole[1].file), NULL, temp_at(&to, "one.gguf"), -1, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_weights_open(&w, to.path, &err), WG_OK, "%s", err.text);
    cr_assert_eq(wg_weights_count(w), 3);
    cr_assert_str_eq(wg_weights_format(w), "GGUF v3");
    wg_weights_close(w);
    temp_remove(&t), temp_remove(&to);
}

Test(gguf_split, every_failed_allocation_leaks_nothing)
{
    temp t;
    temp_make(&t);
    write_parts(&t, whole);
    const char *path = temp_at(&t, whole[2].file);
    const size_t live = wg_mem_read().live_blocks;
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
        wg_weights *w = NULL;
        wg_error err;
        wg_mem_fail_at(n, false);
        const wg_status s = wg_weights_open(&w, path, &err);
        wg_mem_fail_at(0, false);
        cr_assert(s == WG_OK || (s == WG_ENOMEM && !w), "%d: %s", (int)n, err.text);
        done = s == WG_OK;
        wg_weights_close(w);
        cr_assert_eq(wg_mem_read().live_blocks, live, "allocation %d leaks", (int)n);
    }
    temp_remove(&t);
}

#define AGAIN "download all files of the model again, or join them with llama-gguf-split --merge"

/* Part `at` is another one (no file: it is missing); part `open` is opened. DIR stands for the folder in messages. */
Test(gguf_split, every_lie_is_refused_by_name)
{
    static const struct {
        int at, open;
        part is;
        wg_status code;
        const char *message;
    } row[] = {
        { 1,
          0,
          { .file = NULL },
          WG_ENOENT,
          "DIR/m-00001-of-00003.gguf: file 2 of the model's 3: DIR/m-00002-of-00003.gguf: there is no such file" },
        { 0,
          2,
          { .file = NULL },
          WG_ENOENT,
          "DIR/m-00003-of-00003.gguf: file 1 of the model's 3: DIR/m-00001-of-00003.gguf: there is no such file" },
        { 2,
          0,
          { .no = 2, .count = 4, .tensors = 3, .file = "m-00003-of-00003.gguf" },
          WG_EFORMAT,
          "DIR/m-00003-of-00003.gguf: split.count is 4, but 3 in DIR/m-00001-of-00003.gguf: these are files of different "
          "models; " AGAIN },
        { 0, /* the first of another model, opened by way of a later one */
          2,
          { .no = 0, .count = 4, .tensors = 3, .file = "m-00001-of-00003.gguf" },
          WG_EFORMAT,
          "DIR/m-00001-of-00003.gguf: split.count is 4, but 3 in DIR/m-00003-of-00003.gguf: these are files of different "
          "models; " AGAIN },
        { 2,
          0,
          { .no = 1, .count = 3, .tensors = 3, .file = "m-00003-of-00003.gguf" },
          WG_EFORMAT,
          "DIR/m-00003-of-00003.gguf: split.no is 1; expected 2 by the name of the file: it was renamed; " AGAIN },
        { 2,
          1,
          { .no = 2, .count = 3, .tensors = 9, .file = "m-00003-of-00003.gguf" },
          WG_EFORMAT,
          "DIR/m-00003-of-00003.gguf: split.tensors.count is 9, but 3 in DIR/m-00002-of-00003.gguf: these are files of "
          "different models; " AGAIN },
        { 2,
          0,
          { .no = 2, .count = 3, .tensors = 3, .file = "m-00003-of-00003.gguf", .arch = "qwen2" },
          WG_EFORMAT,
          "DIR/m-00003-of-00003.gguf: key 'general.architecture' has another value than in DIR/m-00001-of-00003.gguf: these "
          "are files of different models; " AGAIN },
        { 2,
          0,
          { .no = 2, .count = 3, .tensors = 3, .file = "m-00003-of-00003.gguf", .n = 1, .name = { "b" } },
          WG_EFORMAT,
          "DIR/m-00003-of-00003.gguf: tensor 'b' is in DIR/m-00002-of-00003.gguf, too; " AGAIN },
        { 2,
          0,
          { .no = 2, .count = 3, .tensors = 3, .file = "m-00003-of-00003.gguf" },
          WG_EFORMAT,
          "DIR/m-00001-of-00003.gguf: the model's 3 files have 2 tensors, but split.tensors.count is 3; " AGAIN },
        { 1,
          1,
          { .no = 3, .count = 3, .tensors = 3, .file = "m-00002-of-00003.gguf" },
          WG_EFORMAT,
          "DIR/m-00002-of-00003.gguf: split.no is 3 and split.count 3; expected a part from 0 on of at most 65535; " AGAIN },
        { 1,
          1,
          { .no = 1, .count = 3, .tensors = 3, .file = "mine.gguf" },
          WG_EFORMAT,
          "DIR/mine.gguf: this is one of the 3 files of a model, whose names tell their places: expected a name that ends in "
          "-00002-of-00003.gguf; rename it, or join the files with llama-gguf-split --merge" },
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        temp t;
        wg_error err = { 0 };
        wg_weights *w = NULL;
        part p[PARTS];
        char want[WG_ERROR_TEXT] = "";
        temp_make(&t);
        memcpy(p, whole, sizeof p);
        p[row[i].at] = row[i].is;
        write_parts(&t, p);
        for (const char *s = row[i].message; *s; s += strncmp(s, "DIR", 3) == 0 ? 3 : 1)
            snprintf(want + strlen(want), sizeof want - strlen(want), "%.*s", 1, strncmp(s, "DIR", 3) == 0 ? "\1" : s);
        for (char *at; (at = strchr(want, '\1'));) {
            char rest[WG_ERROR_TEXT];
            snprintf(rest, sizeof rest, "%s", at + 1);
            snprintf(at, sizeof want - (size_t)(at - want), "%s%s", t.dir, rest);
        }
        const size_t live = wg_mem_read().live_blocks;
        cr_expect_eq(wg_weights_open(&w, temp_at(&t, p[row[i].open].file), &err), row[i].code, "%d", (int)i);
        cr_expect_str_eq(err.text, want);
        cr_assert(!w && wg_mem_read().live_blocks == live);
        temp_remove(&t);
    }
}
