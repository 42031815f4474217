/* SPDX-License-Identifier: MIT
 * Headers of safetensors files: read, and every structural lie refused by name. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/file/safetensors.h"

static wg_error err;

/* Header and `data` bytes behind it in a block of exactly that size, so that a sanitizer sees one step too far. */
static wg_status read(const char *header, size_t data, wg_safetensors *s)
{
    const uint64_t n = strlen(header);
    char *bytes = calloc(1, 8 + n + data);
    memcpy(bytes, &n, 8);
    memcpy(bytes + 8, header, n);
    for (size_t i = 0; i < data; i++) bytes[8 + n + i] = (char)i;
    const size_t live = wg_mem_read().live_blocks;
    const wg_status status = wg_safetensors_read(s, "FILE", bytes, 8 + n + data, &err);
    if (status) cr_assert_eq(wg_mem_read().live_blocks, live);
    for (size_t i = 0; status == WG_OK && i < s->n; i++)
        for (size_t k = 0; k < s->tensor[i].bytes; k++)
            cr_assert_eq(s->tensor[i].data[k],
                         (uint8_t)(s->tensor[i].data - (const uint8_t *)bytes + (ptrdiff_t)k - 8 - (ptrdiff_t)n));
    free(bytes);
    return status;
}

Test(safetensors, tensors_by_place)
{
    wg_safetensors s;
    cr_assert_eq(
        read("{\"b\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[8,20]},\"none\":{\"dtype\":\"F16\",\"shape\":[0,4],"
             "\"data_offsets\":[8,8]},\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2],"
             "\"data_offsets\":[0,8]},\"c\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[20,28]}}    ",
             28, &s),
        WG_OK, "%s", err.text);
    cr_assert_eq(s.n, 4);
    cr_assert_str_eq(s.tensor[0].name, "a");
    cr_assert_str_eq(s.tensor[1].name, "none");
    cr_assert_str_eq(s.tensor[2].name, "b");
    cr_assert_str_eq(s.tensor[3].name, "c");
    cr_assert(s.tensor[2].type == WG_BF16 && s.tensor[2].n_dims == 2 && s.tensor[2].dim[0] == 2 && s.tensor[2].dim[1] == 3);
    cr_assert(s.tensor[3].type == -1 && s.tensor[3].n_dims == 0 && s.tensor[3].bytes == 8 && !strcmp(s.tensor[3].dtype, "I64"));
    wg_safetensors_free(&s);
    cr_assert_eq(read("{}", 0, &s), WG_OK);
    wg_safetensors_free(&s);
}

#define ONE(rest) "{\"t\":{\"dtype\":\"F32\"," rest "}}"

Test(safetensors, lies)
{
    static const struct {
        const char *header;
        size_t data;
        const char *text;
    } row[] = {
        { "[]", 0, "FILE: the header is no JSON object; the file is damaged: download it again" },
        { "{\"t\":1}", 0, "FILE: tensor 't' has no dtype, shape and data_offsets; the file is damaged: download it again" },
        { "{\"t\":{\"dtype\":\"F4\"}}", 0, "FILE: tensor 't' has the dtype F4, which is not read; expected F32, F16 or BF16" },
        { ONE("\"shape\":4,\"data_offsets\":[0,4]"), 4,
          "FILE: tensor 't': its shape is no list of up to 4 integers; the file is damaged: download it again" },
        { ONE("\"shape\":[1,1,1,1,1],\"data_offsets\":[0,4]"), 4,
          "FILE: tensor 't': its shape is no list of up to 4 integers; the file is damaged: download it again" },
        { ONE("\"shape\":[2,-1],\"data_offsets\":[0,4]"), 4,
          "FILE: tensor 't': dimension 1 of its shape is no integer from 0 on, or its bytes cannot be addressed; the file is "
          "damaged: "
          "download it again" },
        { ONE("\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]"), 4,
          "FILE: tensor 't': dimension 1 of its shape is no integer from 0 on, or its bytes cannot be addressed; the file is "
          "damaged: "
          "download it again" },
        { ONE("\"shape\":[1.0],\"data_offsets\":[0,4]"), 4,
          "FILE: tensor 't': dimension 0 of its shape is no integer from 0 on, or its bytes cannot be addressed; the file is "
          "damaged: "
          "download it again" },
        { ONE("\"shape\":[1]"), 4,
          "FILE: tensor 't': data_offsets are no two integers, beginning and end; the file is damaged: download it again" },
        { ONE("\"shape\":[1],\"data_offsets\":[4,0]"), 4,
          "FILE: tensor 't': data_offsets are no two integers, beginning and end; the file is damaged: download it again" },
        { ONE("\"shape\":[1],\"data_offsets\":[-4,0]"), 4,
          "FILE: tensor 't': data_offsets are no two integers, beginning and end; the file is damaged: download it again" },
        { ONE("\"shape\":[1000000000000],\"data_offsets\":[0,4000000000000]"), 4,
          "FILE: tensor 't' ends at byte 4000000000000 of the data, which has 4; the file is truncated: download it again" },
        { ONE("\"shape\":[2],\"data_offsets\":[0,4]"), 4,
          "FILE: tensor 't' has 4 bytes by its offsets, 8 by its shape and dtype; the file is damaged: download it again" },
        { ONE("\"shape\":[1],\"data_offsets\":[4,8]"), 8,
          "FILE: tensor 't' begins at byte 4 of the data; expected 0: tensors must follow each other without gaps; the file is "
          "damaged: "
          "download it again" },
        { "{\"t\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"u\":{\"dtype\":\"F32\",\"shape\":[1],\"data_"
          "offsets\":[4,8]}}",
          8,
          "FILE: tensor 'u' begins at byte 4 of the data; expected 8: tensors must follow each other without overlapping; the "
          "file is "
          "damaged: download it again" },
        { ONE("\"shape\":[1],\"data_offsets\":[0,4]"), 7,
          "FILE: 3 bytes behind the last tensor; the file is damaged: download it again" },
        { "{\"t\":1,\"t\":2}", 0, "FILE:1:10: duplicate object key near '\"t\"'" },
        { "{\"t\":", 0, "FILE:1:5: unexpected token near end of file" },
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        wg_safetensors s;
        cr_assert_neq(read(row[i].header, row[i].data, &s), WG_OK, "%s", row[i].header);
        cr_expect_str_eq(err.text, row[i].text);
    }
}

Test(safetensors, lengths)
{
    wg_safetensors s;
    char bytes[16] = { 9, 0, 0, 0, 0, 0, 0, 0, '{', '}' };
    for (size_t n = 0; n < 8; n++) cr_assert_eq(wg_safetensors_read(&s, "FILE", bytes, n, &err), WG_EFORMAT);
    cr_assert_str_eq(
        err.text, "FILE: a header of 0 bytes in a file of 7: it is no safetensors file, or a damaged one: download it again");
    cr_assert_eq(wg_safetensors_read(&s, "FILE", bytes, sizeof bytes, &err), WG_EFORMAT);
    cr_assert_str_eq(
        err.text, "FILE: a header of 9 bytes in a file of 16: it is no safetensors file, or a damaged one: download it again");
    memset(bytes, 0xFF, 8);
    cr_assert_eq(wg_safetensors_read(&s, "FILE", bytes, sizeof bytes, &err), WG_EFORMAT);
    const uint64_t many = WG_SAFETENSORS_HEADER + 1;
    char *large = calloc(1, many + 8);
    memcpy(large, &many, 8);
    cr_assert_eq(wg_safetensors_read(&s, "FILE", large, many + 8, &err), WG_EFORMAT);
    cr_assert_str_eq(err.text, "FILE: a header of 16777217 bytes; at most 16777216 are read");
    free(large);
}
