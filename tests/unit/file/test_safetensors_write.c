/* SPDX-License-Identifier: MIT
 * Safetensors files that are written: read back by the reader, refused where a reader would refuse them, never half there. */
#include <criterion/criterion.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/file/safetensors.h"
#include "tests/temp.h"

static wg_error err;
static temp t;

static void setup(void) { temp_make(&t); }
static void teardown(void)
{
    temp_remove(&t);
    cr_assert_eq(wg_mem_read().live_blocks, 0);
}

static const wg_safetensors_entry three[] = { { "hidden_states", "BF16", 3, { 2, 3, 4 } },
                                              { "token_ids", "I64", 1, { 2 } },
                                              { "nothing \"quoted\"", "F32", 2, { 0, 7 } } };

/* The data of `three`, in pieces of `piece` bytes. */
static void pieces_of(size_t piece)
{
    char name[32];
    unsigned char data[64];
    char path[512];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 7);
    snprintf(name, sizeof name, "%zu.safetensors", piece);
    snprintf(path, sizeof path, "%s", temp_at(&t, name));
    json_t *metadata = json_pack("{s:s}", "format", "pt");
    wg_safetensors_writer *w = wg_safetensors_create(path, three, 3, metadata, &err);
    json_decref(metadata);
    cr_assert(w, "%s", err.text);
    for (size_t at = 0, n; at < sizeof data; at += n) {
        n = sizeof data - at < piece ? sizeof data - at : piece;
        cr_assert_eq(wg_safetensors_write(w, data + at, n, &err), WG_OK, "%s", err.text);
        cr_assert_neq(access(path, F_OK), 0, "the file is there before it is whole");
    }
    cr_assert_eq(wg_safetensors_finish(w, &err), WG_OK, "%s", err.text);

    size_t size = 0;
    char *bytes = file_read(path, &size);
    wg_safetensors s;
    cr_assert_eq(wg_safetensors_read(&s, "FILE", bytes, size, &err), WG_OK, "%s", err.text);
    cr_assert_eq(s.n, 3);
    const uint64_t header = *(const uint64_t *)(const void *)bytes;
    cr_assert_eq(header % 8, 0);
    cr_assert(strstr(bytes + 8, "\"__metadata__\":{\"format\":\"pt\"}"));
    cr_assert_str_eq(s.tensor[0].name, "hidden_states");
    cr_assert_str_eq(s.tensor[0].dtype, "BF16");
    cr_assert(s.tensor[0].n_dims == 3 && s.tensor[0].dim[0] == 2 && s.tensor[0].dim[1] == 3 && s.tensor[0].dim[2] == 4);
    cr_assert_eq(s.tensor[0].bytes, 48);
    cr_assert_eq(memcmp(s.tensor[0].data, data, sizeof data), 0);
    wg_safetensors_free(&s);
    free(bytes);
}

Test(safetensors_write, read_back, .init = setup, .fini = teardown)
{
    pieces_of(64);
    pieces_of(5);
}

#define TWO_OF(...)                                                                                                            \
    {                                                                                                                          \
        { "a", "F32", 1, { 1 } }, __VA_ARGS__                                                                                  \
    }

Test(safetensors_write, refused, .init = setup, .fini = teardown)
{
    static const struct {
        wg_safetensors_entry entry[2];
        const char *text;
    } row[] = {
        { TWO_OF({ "", "F32", 0, { 0 } }), ": '' cannot be the name of a tensor" },
        { TWO_OF({ "__metadata__", "F32", 0, { 0 } }), ": '__metadata__' cannot be the name of a tensor" },
        { TWO_OF({ "b", "Q8_0", 0, { 0 } }), ": tensor 'b': there is no dtype 'Q8_0' in safetensors files" },
        { TWO_OF({ "b", "F32", 5, { 1, 1, 1, 1 } }),
          ": tensor 'b' cannot be written with this shape: expected at most 4 dimensions from 0 on, and bytes that can be "
          "addressed" },
        { TWO_OF({ "b", "F32", 1, { -1 } }), ": tensor 'b' cannot be written with this shape: " },
        { TWO_OF({ "b", "F32", 2, { (int64_t)1 << 40, (int64_t)1 << 40 } }), ": tensor 'b' cannot be written with this shape" },
        { TWO_OF({ "a", "F32", 0, { 0 } }), ": tensor 'a' is listed twice" },
        { TWO_OF({ "\xff", "F32", 0, { 0 } }), ": the name of tensor 2 of 2 is not UTF-8" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        err.code = WG_OK;
        cr_assert_null(wg_safetensors_create(temp_at(&t, "a"), row[i].entry, 2, NULL, &err));
        cr_assert_eq(err.code, WG_EINVAL);
        cr_assert(strstr(err.text, row[i].text), "%zu: %s", i, err.text);
    }
    json_t *list = json_pack("{s:i}", "format", 1);
    cr_assert_null(wg_safetensors_create(temp_at(&t, "a"), row[0].entry, 1, list, &err));
    cr_assert(strstr(err.text, ": metadata of a safetensors file must be an object of strings"), "%s", err.text);
    json_decref(list);
    cr_assert_null(wg_safetensors_create(temp_at(&t, "no/a"), row[0].entry, 1, NULL, &err));
    cr_assert_eq(err.code, WG_ENOENT);
    cr_assert_eq(dir_count(t.dir), 0);
}

Test(safetensors_write, long_header, .init = setup, .fini = teardown)
{
    const size_t n = WG_SAFETENSORS_HEADER;
    char *name = wg_alloc(n + 1, 1);
    memset(name, 'x', n);
    name[n] = '\0';
    const wg_safetensors_entry e = { name, "F32", 0, { 0 } };
    cr_assert_null(wg_safetensors_create(temp_at(&t, "a"), &e, 1, NULL, &err));
    wg_free(name);
    cr_assert(strstr(err.text, ": a header of 16777272 bytes for 1 tensors; at most 16777216 are read"), "%s", err.text);
    cr_assert_eq(dir_count(t.dir), 0);
}

Test(safetensors_write, never_half, .init = setup, .fini = teardown)
{
    const char data[65] = { 0 };
    wg_safetensors_writer *w = wg_safetensors_create(temp_at(&t, "a"), three, 3, NULL, &err);
    cr_assert_eq(wg_safetensors_write(w, data, 50, &err), WG_OK);
    cr_assert_eq(wg_safetensors_finish(w, &err), WG_EINVAL);
    cr_assert(strstr(err.text, ": tensor 'token_ids' was not written whole: 14 bytes of its data are missing"), "%s", err.text);
    cr_assert_eq(dir_count(t.dir), 0);

    w = wg_safetensors_create(temp_at(&t, "a"), three, 3, NULL, &err);
    cr_assert_eq(wg_safetensors_write(w, data, 60, &err), WG_OK);
    cr_assert_eq(wg_safetensors_write(w, data, 5, &err), WG_EINVAL);
    cr_assert(strstr(err.text, ": 60 bytes of data, and 5 more, are too many: its tensors have 64"), "%s", err.text);
    wg_safetensors_abandon(w);
    cr_assert_eq(dir_count(t.dir), 0);
    wg_safetensors_abandon(NULL);
}

Test(safetensors_write, out_of_memory, .init = setup, .fini = teardown)
{
    for (uint64_t nth = 1;; nth++) {
        wg_mem_fail_at(nth, false);
        wg_safetensors_writer *w = wg_safetensors_create(temp_at(&t, "a"), three, 3, NULL, &err);
        wg_mem_fail_at(0, false);
        if (w) {
            cr_assert_gt(nth, 5);
            wg_safetensors_abandon(w);
            break;
        }
        cr_assert_eq(err.code, WG_ENOMEM, "%s", err.text);
        cr_assert_eq(dir_count(t.dir), 0);
    }
}
