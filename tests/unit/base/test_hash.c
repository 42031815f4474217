/* SPDX-License-Identifier: MIT
 * Known answers: FIPS 180-4 examples, the FNV reference vectors. */
#include "core/base/hash.h"

#include <criterion/criterion.h>
#include <string.h>

#include "core/base/mem.h"
#include "tests/temp.h"

Test(hash, fnv_known_answers)
{
    cr_assert_eq(wg_hash64(WG_HASH_START, "", 0), 0xcbf29ce484222325ull);
    cr_assert_eq(wg_hash64(WG_HASH_START, "a", 1), 0xaf63dc4c8601ec8cull);
    cr_assert_eq(wg_hash64(WG_HASH_START, "foobar", 6), 0x85944171f73967e8ull);
    cr_assert_eq(wg_hash64(wg_hash64(WG_HASH_START, "foo", 3), "bar", 3), 0x85944171f73967e8ull);
}

Test(hash, sha256_known_answers)
{
    char hex[WG_SHA256_HEX];
    wg_sha256("abc", 3, hex);
    cr_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    wg_sha256(NULL, 0, hex);
    cr_assert_str_eq(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    static char a[1000000];
    memset(a, 'a', sizeof a);
    wg_sha256(a, sizeof a, hex);
    cr_assert_str_eq(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    wg_sha256_state s;
    char parts[WG_SHA256_HEX];
    wg_sha256_begin(&s);
    for (size_t at = 0, n = 1; at < sizeof a; at += n, n = n * 2 + 1)
        wg_sha256_add(&s, a, n < sizeof a - at ? n : sizeof a - at);
    wg_sha256_end(&s, parts);
    cr_assert_str_eq(parts, hex);
}

Test(hash, files)
{
    temp t;
    char hex[WG_SHA256_HEX];
    wg_error err;
    temp_make(&t);
    file_write(temp_at(&t, "f"), "abc", 3);
    const size_t live = wg_mem_read().live_blocks;
    cr_assert_eq(wg_sha256_file(temp_at(&t, "f"), hex, &err), WG_OK);
    cr_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    cr_assert_eq(wg_sha256_file(temp_at(&t, "absent"), hex, &err), WG_ENOENT);
    cr_assert(strstr(err.text, "absent"));
    cr_assert_eq(wg_sha256_file(t.dir, hex, &err), WG_EIO);
    cr_assert_eq(wg_mem_read().live_blocks, live);
    temp_remove(&t);
}
