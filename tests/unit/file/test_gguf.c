/* SPDX-License-Identifier: MIT
 * The GGUF reader against a file composed by hand and every way to break it. The messages of broken files are golden:
 * tests/bad/gguf.txt; WG_UPDATE=1 rewrites them, git diff reviews them. */
#include <criterion/criterion.h>

#include "core/base/mem.h"
#include "core/file/weights.h"
#include "tests/temp.h"
#include "tests/transcript.h"
#include "tests/unit/file/gguf_bytes.h"

/* Touches all a reader may touch; returns something that depends on it. */
static unsigned walk(const wg_weights *w)
{
    unsigned sum = 0;
    for (int i = 0; i < wg_meta_count(w); i++) {
        const char *key = wg_meta_key(w, i);
        wg_meta_kind kind;
        int64_t v, n = wg_meta_array(w, key, &kind);
        double f;
        bool b;
        wg_text t;
        sum += (unsigned)wg_meta_kind_of(w, i);
        if (wg_meta_int(w, key, &v)) sum += (unsigned)v;
        if (wg_meta_float(w, key, &f)) sum++;
        if (wg_meta_bool(w, key, &b)) sum += b;
        if (wg_meta_string(w, key, &t))
            for (size_t k = 0; k < t.n; k++) sum += (unsigned char)t.s[k];
        for (int64_t k = 0; k < n; k++) {
            if (wg_meta_array_int(w, key, k, &v)) sum += (unsigned)v;
            if (wg_meta_array_float(w, key, k, &f)) sum++;
            if (wg_meta_array_string(w, key, k, &t))
                for (size_t c = 0; c < t.n; c++) sum += (unsigned char)t.s[c];
        }
    }
    for (int i = 0; i < wg_weights_count(w); i++) {
        const wg_tensor *t = wg_weights_at(w, i);
        cr_assert_eq(wg_weights_find(w, t->name), t);
        for (size_t k = 0; k < t->bytes; k++) sum += ((const unsigned char *)t->data)[k];
    }
    return sum;
}

/* Opens a copy that ends where the bytes end, so that the sanitizer sees any step beyond. */
static wg_status open_exact(const uint8_t *bytes, size_t n, wg_error *err)
{
    uint8_t *copy = malloc(n ? n : 1);
    memcpy(copy, bytes, n);
    wg_weights *w = NULL;
    const size_t live = wg_mem_read().live_blocks;
    const wg_status s = wg_weights_open_memory(&w, "FILE", copy, n, err);
    if (s == WG_OK) (void)walk(w);
    else cr_assert_null(w);
    wg_weights_close(w);
    cr_assert_eq(wg_mem_read().live_blocks, live);
    free(copy);
    return s;
}

Test(gguf, reads_what_is_there)
{
    for (uint32_t version = 2; version <= 3; version++) {
        gguf_bytes g = gguf_valid();
        wg_weights *w;
        wg_error err;
        memcpy(g.b + g.at[AT_VERSION], &version, 4);
        cr_assert_eq(wg_weights_open_memory(&w, "FILE", g.b, g.n, &err), WG_OK, "%s", err.text);
        cr_assert_str_eq(wg_weights_format(w), version == 2 ? "GGUF v2" : "GGUF v3");
        cr_assert_str_eq(wg_weights_path(w), "FILE");
        cr_assert_eq(wg_weights_file_bytes(w), g.n);
        cr_assert_eq(wg_meta_count(w), GB_METAS);
        cr_assert_eq(wg_weights_count(w), GB_TENSORS);

        int64_t v = 0;
        double f;
        bool b = false;
        wg_text t;
        static const struct {
            const char *key;
            int64_t v;
        } ints[] = {
            { "general.alignment", 32 },
            { "a.u8", 255 },
            { "a.i8", -1 },
            { "a.u16", 65534 },
            { "a.i16", -2 },
            { "a.i32", -7 },
            { "a.i64", -9 },
        };
        for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++) {
            cr_assert(wg_meta_int(w, ints[i].key, &v) && v == ints[i].v, "%s", ints[i].key);
            cr_assert(wg_meta_float(w, ints[i].key, &f) && f == (double)ints[i].v);
        }
        v = 1234;
        cr_assert(!wg_meta_int(w, "a.u64", &v) && !wg_meta_int(w, "a.f32", &v) && !wg_meta_int(w, "a.bool", &v) &&
                  !wg_meta_int(w, "nope", &v));
        cr_assert(!wg_meta_int(w, "a.ints", &v) && v == 1234);
        cr_assert(wg_meta_float(w, "a.f32", &f) && f == 0.5);
        cr_assert(wg_meta_float(w, "a.f64", &f) && f == 0.25);
        cr_assert(wg_meta_bool(w, "a.bool", &b) && b);
        cr_assert(!wg_meta_bool(w, "a.u8", &b));
        cr_assert(wg_meta_string(w, "general.architecture", &t) && t.n == 5 && memcmp(t.s, "llama", 5) == 0);
        cr_assert(!wg_meta_string(w, "a.words", &t));

        wg_meta_kind kind;
        cr_assert(wg_meta_array(w, "a.ints", &kind) == 3 && kind == WG_META_INT);
        cr_assert(wg_meta_array_int(w, "a.ints", 2, &v) && v == -3);
        cr_assert(!wg_meta_array_int(w, "a.ints", 3, &v) && !wg_meta_array_int(w, "a.ints", -1, &v));
        cr_assert(wg_meta_array(w, "a.floats", &kind) == 2 && kind == WG_META_FLOAT);
        cr_assert(wg_meta_array_float(w, "a.floats", 1, &f) && f == -2);
        cr_assert(wg_meta_array(w, "a.bools", &kind) == 2 && kind == WG_META_BOOL);
        cr_assert(wg_meta_array(w, "a.empty", NULL) == 0 && !wg_meta_array_string(w, "a.empty", 0, &t));
        cr_assert(wg_meta_array(w, "a.words", &kind) == 3 && kind == WG_META_STRING);
        cr_assert(wg_meta_array_string(w, "a.words", 0, &t) && t.n == 3 && memcmp(t.s, "one", 3) == 0);
        cr_assert(wg_meta_array_string(w, "a.words", 1, &t) && t.n == 0);
        cr_assert(wg_meta_array_string(w, "a.words", 2, &t) && t.n == 5 && memcmp(t.s, "three", 5) == 0);
        cr_assert(!wg_meta_array_string(w, "a.ints", 0, &t) && !wg_meta_array_int(w, "a.words", 0, &v));
        cr_assert_eq(wg_meta_array(w, "a.u8", NULL), -1);
        cr_assert_eq(wg_meta_kind_of(w, 0), WG_META_STRING);
        cr_assert_str_eq(wg_meta_key(w, 1), "general.alignment");

        const wg_tensor *mat = wg_weights_find(w, "mat");
        cr_assert(mat && mat == wg_weights_at(w, 1) && mat->type == WG_Q8_0 && mat->n_dims == 2 && mat->bytes == 136);
        cr_assert(mat->dim[0] == 64 && mat->dim[1] == 2 && mat->dim[2] == 1 && mat->dim[3] == 1);
        cr_assert_eq((const uint8_t *)mat->data, g.b + g.at[AT_DATA] + 32);
        cr_assert_null(wg_weights_find(w, "absent"));
        cr_assert_null(wg_weights_at(w, 3));
        wg_weights_close(w);
    }
    wg_weights_close(NULL);
}

/* ---- broken files ------------------------------------------------------------------------------------------------ */

typedef struct bad {
    const char *name;
    mark at;
    size_t plus; /* behind the mark */
    int width;   /* bytes of `value` to write; 0: the file ends here; -1: the file ends 3 bytes behind the mark */
    uint64_t value;
    wg_status code;
} bad;

static const bad bad_cases[] = {
    { "bad-magic", AT_MAGIC, 0, 1, 'X', WG_EFORMAT },
    { "version-1", AT_VERSION, 0, 4, 1, WG_EUNSUPPORTED },
    { "version-4", AT_VERSION, 0, 4, 4, WG_EUNSUPPORTED },
    { "big-endian", AT_VERSION, 0, 4, 0x03000000, WG_EUNSUPPORTED },
    { "cut-in-version", AT_VERSION, 0, -1, 0, WG_EFORMAT },
    { "cut-in-counts", AT_METAS, 0, -1, 0, WG_EFORMAT },
    { "cut-after-header", AT_KEY_LENGTH, 0, 0, 0, WG_EFORMAT },
    { "cut-in-key", AT_KEY, 0, -1, 0, WG_EFORMAT },
    { "cut-in-string-array", AT_ARRAY_STRING, 0, -1, 0, WG_EFORMAT },
    { "cut-in-tensor-list", AT_DIM0, 0, -1, 0, WG_EFORMAT },
    { "cut-before-data", AT_DATA, 0, 0, 0, WG_EFORMAT },
    { "cut-in-data", AT_LAST_DATA, 0, -1, 0, WG_EFORMAT },
    { "many-tensors", AT_TENSORS, 0, 8, UINT64_MAX, WG_EFORMAT },
    { "many-metadata", AT_METAS, 0, 8, 1000000000000, WG_EFORMAT },
    { "metadata-count-too-large", AT_METAS, 0, 8, GB_METAS + 1, WG_EFORMAT },
    { "metadata-count-too-small", AT_METAS, 0, 8, GB_METAS - 1, WG_EFORMAT },
    { "tensor-count-too-large", AT_TENSORS, 0, 8, GB_TENSORS + 1, WG_EFORMAT },
    { "key-empty", AT_KEY_LENGTH, 0, 8, 0, WG_EFORMAT },
    { "key-long", AT_KEY_LENGTH, 0, 8, 1 << 20, WG_EFORMAT },
    { "key-not-ascii", AT_KEY, 2, 1, 0xE9, WG_EFORMAT },
    { "key-with-nul", AT_KEY, 2, 1, 0, WG_EFORMAT },
    { "value-type-unknown", AT_VALUE_TYPE, 0, 4, 13, WG_EFORMAT },
    { "string-too-long", AT_STRING_LENGTH, 0, 8, UINT64_MAX - 3, WG_EFORMAT },
    { "array-of-arrays", AT_ARRAY_TYPE, 0, 4, 9, WG_EUNSUPPORTED },
    { "array-type-unknown", AT_ARRAY_TYPE, 0, 4, 99, WG_EFORMAT },
    { "array-count-lies", AT_ARRAY_COUNT, 0, 8, (uint64_t)1 << 61, WG_EFORMAT },
    { "array-string-too-long", AT_ARRAY_STRING, 0, 8, 1 << 30, WG_EFORMAT },
    { "bool-2", AT_BOOL, 0, 1, 2, WG_EFORMAT },
    { "bool-in-array-3", AT_BOOLS, 1, 1, 3, WG_EFORMAT },
    { "alignment-wrong-type", AT_ALIGNMENT_TYPE, 0, 4, 5, WG_EFORMAT },
    { "alignment-zero", AT_ALIGNMENT, 0, 4, 0, WG_EFORMAT },
    { "alignment-48", AT_ALIGNMENT, 0, 4, 48, WG_EFORMAT },
    { "alignment-not-the-files", AT_ALIGNMENT, 0, 4, 64, WG_EFORMAT },
    { "name-empty", AT_NAME_LENGTH, 0, 8, 0, WG_EFORMAT },
    { "name-long", AT_NAME_LENGTH, 0, 8, 64, WG_EFORMAT },
    { "name-control", AT_NAME, 1, 1, 27, WG_EFORMAT },
    { "dims-5", AT_DIMS, 0, 4, 5, WG_EFORMAT },
    { "dim-zero", AT_DIM1, 0, 8, 0, WG_EFORMAT },
    { "dims-overflow", AT_DIM1, 0, 8, (uint64_t)1 << 60, WG_EFORMAT },
    { "dim-negative", AT_DIM1, 0, 8, (uint64_t)-2, WG_EFORMAT },
    { "dim-not-whole-blocks", AT_DIM0, 0, 8, 48, WG_EFORMAT },
    { "tensor-larger-than-file", AT_DIM1, 0, 8, 1 << 20, WG_EFORMAT },
    { "type-unknown", AT_TYPE, 0, 4, 77, WG_EUNSUPPORTED },
    { "type-nvfp4", AT_TYPE, 0, 4, 40, WG_EUNSUPPORTED },
    { "type-q1_0", AT_TYPE, 0, 4, 41, WG_EUNSUPPORTED },
    { "type-negative", AT_TYPE, 0, 4, 0xFFFFFFFF, WG_EUNSUPPORTED },
    { "offset-overlaps", AT_OFFSET, 0, 8, 0, WG_EFORMAT },
    { "offset-leaves-a-gap", AT_OFFSET, 0, 8, 64, WG_EFORMAT },
    { "offset-huge", AT_OFFSET, 0, 8, UINT64_MAX - 31, WG_EFORMAT },
};

static void check_golden(const char *name, const char *text)
{
    transcript t = transcript_open("gguf");
    transcript_case *c = transcript_find(&t, name);
    cr_assert(c, "%s has no case %s", t.path, name);
    char line[WG_ERROR_TEXT + 1];
    snprintf(line, sizeof line, "%s\n", text);
    cr_expect_str_eq(line, c->message, "%s", name);
    free(c->message);
    c->message = strdup(line);
    transcript_close(&t);
}

Test(gguf, broken_files_say_what_is_wrong)
{
    for (size_t i = 0; i < sizeof bad_cases / sizeof bad_cases[0]; i++) {
        const bad *c = &bad_cases[i];
        gguf_bytes g = gguf_valid();
        wg_error err;
        if (c->width > 0) memcpy(g.b + g.at[c->at] + c->plus, &c->value, (size_t)c->width);
        else g.n = g.at[c->at] + (c->width < 0 ? 3 : 0);
        cr_assert_eq(open_exact(g.b, g.n, &err), c->code, "%s", c->name);
        check_golden(c->name, err.text);
    }
}

Test(gguf, names_must_differ)
{
    gguf_bytes g = gguf_valid();
    wg_error err;
    memcpy(g.b + g.at[AT_SECOND_NAME] - 8, "\4\0\0\0\0\0\0\0norm", 12); /* "mat" and the first byte of its dims become "norm" */
    memmove(g.b + g.at[AT_SECOND_NAME] + 4, gguf_valid().b + g.at[AT_SECOND_NAME] + 3,
            g.at[AT_DATA] - g.at[AT_SECOND_NAME] - 4);
    cr_assert_eq(open_exact(g.b, g.n, &err), WG_EFORMAT);
    check_golden("tensor-twice", err.text);

    gguf_bytes k = { .n = 0 };
    gb_put(&k, "GGUF", 4), gb_u32(&k, 3), gb_u64(&k, 0), gb_u64(&k, 3);
    for (int i = 0; i < 3; i++) gb_key(&k, i == 1 ? "a.b" : "c.d", 0), gb_put(&k, "\1", 1);
    cr_assert_eq(open_exact(k.b, k.n, &err), WG_EFORMAT);
    check_golden("key-twice", err.text);
}

/* In memory, where the others have no names; test_gguf_split.c opens files. */
Test(gguf, one_part_of_a_split_model_is_refused)
{
    for (uint16_t parts = 1; parts <= 2; parts++) {
        gguf_bytes g = { .n = 0 };
        wg_error err;
        gb_put(&g, "GGUF", 4), gb_u32(&g, 3), gb_u64(&g, 0), gb_u64(&g, 1);
        gb_key(&g, "split.count", 2), gb_put(&g, &parts, 2);
        cr_assert_eq(open_exact(g.b, g.n, &err), parts == 1 ? WG_OK : WG_EUNSUPPORTED);
        if (parts > 1) check_golden("split", err.text);
    }
}

Test(gguf, a_file_of_nothing_is_fine)
{
    gguf_bytes g = { .n = 0 };
    wg_error err;
    gb_put(&g, "GGUF", 4), gb_u32(&g, 3), gb_u64(&g, 0), gb_u64(&g, 0);
    cr_assert_eq(open_exact(g.b, g.n, &err), WG_OK);
}

Test(gguf, every_truncation_is_refused)
{
    const gguf_bytes g = gguf_valid();
    const size_t needed = g.at[AT_LAST_DATA] + 12; /* the last tensor's padding is not */
    for (size_t n = 0; n <= g.n; n++) {
        wg_error err = { 0 };
        const wg_status s = open_exact(g.b, n, &err);
        cr_assert_eq(s == WG_OK, n >= needed, "%zu bytes", n);
        if (s)
            cr_assert(s == WG_EFORMAT && strncmp(err.text, "FILE: ", 6) == 0 && strlen(err.text) > 20, "%zu: %s", n, err.text);
    }
}

/* Any byte of the header may be wrong; nothing may crash or leak, and what opens must be walkable. */
Test(gguf, every_byte_may_be_wrong)
{
    const gguf_bytes g = gguf_valid();
    int opened = 0, refused = 0;
    for (size_t i = 0; i < g.at[AT_DATA]; i++) {
        static const uint8_t flips[] = { 0x01, 0x02, 0x10, 0x80, 0xFF };
        for (size_t f = 0; f < sizeof flips; f++) {
            gguf_bytes m = g;
            wg_error err;
            m.b[i] ^= flips[f];
            if (open_exact(m.b, m.n, &err) == WG_OK) opened++;
            else refused++;
        }
    }
    cr_assert(opened > 100 && refused > 1000, "%d opened, %d refused", opened, refused);
}

Test(gguf, other_formats_are_refused_by_name)
{
    wg_error err;
    static const struct {
        const char *bytes;
        size_t n;
        const char *word;
    } row[] = {
        { "24ka\2\0\0\0", 8, "FILE: a llama2.c file of version 1 or 2; only version 0 is read: export with --version 0" },
        { "\x10\0\0\0\0\0\0\0{\"a\":1}            ", 28,
          "FILE: a safetensors file, which holds weights alone: give its folder, with config.json" },
        { "PK\3\4xxxxxxxxxx", 14,
          "FILE: a torch archive (.bin, .pt, .pth), which is a program as much as data; save it as safetensors: python3 -c "
          "\"" },
        { "\x80\2}q\0X", 6, "FILE: a pickle, which is a program as much as data; save it as safetensors: python3 -c \"" },
        { "", 0, "0 bytes, beginning with nothing" },
        { "hello", 5, "5 bytes, beginning 68 65 6c 6c 6f)" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const wg_status s = open_exact((const uint8_t *)row[i].bytes, row[i].n, &err);
        cr_assert(s == WG_EUNSUPPORTED || s == WG_EFORMAT);
        cr_assert(strstr(err.text, row[i].word), "%s", err.text);
    }
    wg_weights *w;
    temp t;
    temp_make(&t);
    cr_assert_eq(wg_weights_open(&w, "/nowhere/m.gguf", &err), WG_ENOENT);
    cr_assert_str_eq(err.text, "/nowhere/m.gguf: there is no such file");
    cr_assert_eq(wg_weights_open(&w, t.dir, &err), WG_EUNSUPPORTED);
    cr_assert(strstr(err.text, ": is a folder without config.json; give a GGUF file, or"), "%s", err.text);
    cr_assert_eq(wg_weights_open(&w, "/dev/null", &err), WG_EIO);
    cr_assert_str_eq(err.text, "/dev/null: is not a regular file; weights are mapped into memory, so save them to disk first");
    file_write(temp_at(&t, "empty"), "", 0);
    cr_assert_eq(wg_weights_open(&w, t.path, &err), WG_EFORMAT);
    cr_assert(strstr(err.text, "the file is empty"));
    temp_remove(&t);
}

/* Sizes that only claim: each tensor fits a size_t, their bytes or their end do not. */
Test(gguf, sizes_beyond_what_can_be_addressed)
{
    static const struct {
        int types[3];
        uint64_t dim, offset;
        const char *word;
    } row[] = {
        { { WG_F32, WG_F32, WG_F32 },
          (uint64_t)1 << 62,
          0,
          "byte 45: tensor 'a' has 4611686018427387904 elements of type f32, more bytes than can be addressed" },
        { { WG_I8, WG_I8, WG_I8 }, INT64_MAX - 31, INT64_MAX - 31, "byte 115: tensor 'c' ends beyond what can be addressed" },
    };
    for (int i = 0; i < 2; i++) {
        gguf_bytes g = { .n = 0 };
        wg_error err;
        gb_put(&g, "GGUF", 4), gb_u32(&g, 3), gb_u64(&g, 3), gb_u64(&g, 0);
        for (uint64_t k = 0; k < 3; k++) {
            gb_string(&g, (const char *[]){ "a", "b", "c" }[k]), gb_u32(&g, 1), gb_u64(&g, row[i].dim);
            gb_u32(&g, (uint32_t)row[i].types[k]), gb_u64(&g, k * row[i].offset);
        }
        cr_assert_eq(open_exact(g.b, g.n, &err), WG_EFORMAT);
        cr_assert(strstr(err.text, row[i].word), "%s", err.text);
    }
}

Test(gguf, any_allocation_may_fail_while_opening)
{
    const gguf_bytes g = gguf_valid();
    const size_t live = wg_mem_read().live_blocks;
    bool done = false;
    int failures = 0;
    for (uint64_t n = 1; !done; n++) {
        wg_weights *w = NULL;
        wg_error err = { 0 };
        wg_mem_fail_at(n, n % 2);
        const wg_status s = wg_weights_open_memory(&w, "FILE", g.b, g.n, &err);
        wg_mem_fail_at(0, false);
        cr_assert(s == WG_OK || (s == WG_ENOMEM && !w && strstr(err.text, "out of memory")));
        done = s == WG_OK;
        failures += !done;
        wg_weights_close(w);
        cr_assert_eq(wg_mem_read().live_blocks, live, "allocation %d leaks", (int)n);
    }
    cr_assert(failures > 20);
}
