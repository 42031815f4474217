/* SPDX-License-Identifier: MIT
 * Base64: the vectors of RFC 4648, all lengths there and back, and what is refused. */
#include "core/base/base64.h"

#include <criterion/criterion.h>
#include <string.h>

Test(base64, known_answers)
{
    static const char *const row[][2] = { { "", "" },
                                          { "f", "Zg==" },
                                          { "fo", "Zm8=" },
                                          { "foo", "Zm9v" },
                                          { "foob", "Zm9vYg==" },
                                          { "fooba", "Zm9vYmE=" },
                                          { "foobar", "Zm9vYmFy" } };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[16] = { 0 }, bytes[16] = { 0 };
        size_t n = 99;
        cr_assert_eq(wg_base64_encode(row[i][0], strlen(row[i][0]), text), strlen(row[i][1]));
        cr_expect_str_eq(text, row[i][1]);
        cr_assert(wg_base64_decode(row[i][1], strlen(row[i][1]), bytes, &n));
        cr_expect(n == strlen(row[i][0]) && memcmp(bytes, row[i][0], n) == 0);
    }
}

Test(base64, all_bytes_return)
{
    char bytes[256], text[400], back[300];
    for (int i = 0; i < 256; i++) bytes[i] = (char)(i * 7 + 3);
    for (size_t n = 0; n <= sizeof bytes; n++) {
        size_t n_back;
        const size_t chars = wg_base64_encode(bytes, n, text);
        cr_assert_eq(chars, (n + 2) / 3 * 4);
        cr_assert(wg_base64_decode(text, chars, back, &n_back));
        cr_assert(n_back == n && memcmp(back, bytes, n) == 0);
    }
}

Test(base64, refusals)
{
    static const char *const row[] = { "Z",    "Zg",   "Zg=",  "Zh==", "Zm9=",     "Z===",       "====",
                                       "Zm 9", "Zm9-", "Zm9_", "=m9v", "Zg==Zg==", "Zm\xc3\xa9", "Zm9v\n" };
    char out[16];
    size_t n;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        cr_expect_not(wg_base64_decode(row[i], strlen(row[i]), out, &n), "%s", row[i]);
}
