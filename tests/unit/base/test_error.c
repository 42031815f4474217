/* SPDX-License-Identifier: MIT */
#include "core/base/error.h"

#include <criterion/criterion.h>
#include <string.h>

Test(error, every_code_has_a_name)
{
#define X(name) cr_assert_str_eq(wg_status_name(WG_##name), #name);
    WG_STATUS_MAP(X)
#undef X
    cr_assert_str_eq(wg_status_name(WG_OK), "OK");
    cr_assert_str_eq(wg_status_name(WG_STATUS_BASE), "UNKNOWN");
    cr_assert_str_eq(wg_status_name((wg_status)-7), "UNKNOWN");
    cr_assert_str_eq(wg_status_name((wg_status)999999), "UNKNOWN");
}

Test(error, fail_fills_and_returns)
{
    wg_error err;
    cr_assert_eq(wg_fail(&err, WG_EIO, "%s: %d", "a", 7), WG_EIO);
    cr_assert_eq(err.code, WG_EIO);
    cr_assert_str_eq(err.text, "a: 7");
    cr_assert_eq(wg_fail(NULL, WG_EIO, "nobody listens"), WG_EIO);
    cr_assert_eq(wg_fail_in(&err, WG_EINVAL, "line %d", 3), WG_EIO);
    cr_assert_str_eq(err.text, "line 3: a: 7");
    cr_assert_eq(wg_fail_in(NULL, WG_EINVAL, "x"), WG_EINVAL);
}

/* Whatever is cut off, the text stays NUL-terminated and valid at its end. */
Test(error, long_messages_are_cut_between_characters)
{
    static const char *const unit[] = { "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80" };
    for (size_t u = 0; u < 4; u++) {
        for (size_t shift = 0; shift < 4; shift++) {
            char text[2 * WG_ERROR_TEXT] = "";
            memset(text, '.', shift);
            const size_t len = strlen(unit[u]);
            size_t n = shift;
            for (; n < WG_ERROR_TEXT + 16; n += len) memcpy(text + n, unit[u], len);
            wg_error err;
            for (int in = 0; in < 2; in++) {
                if (in) wg_fail(&err, WG_EIO, "%s", text), wg_fail_in(&err, WG_EIO, "p");
                else wg_fail(&err, WG_EIO, "%s", text);
                const size_t got = strlen(err.text), skip = shift + (in ? 3 : 0);
                cr_assert(got < WG_ERROR_TEXT && got + 8 > WG_ERROR_TEXT, "%zu", got);
                cr_assert_eq((got - skip) % len, 0, "unit %zu shift %zu: cut inside a character", u, shift);
            }
            char prefix[WG_ERROR_TEXT + 1];
            memset(prefix, 'p', WG_ERROR_TEXT);
            prefix[WG_ERROR_TEXT] = '\0';
            wg_fail(&err, WG_EIO, "old");
            wg_fail_in(&err, WG_EIO, "%s", prefix);
            cr_assert_eq(strlen(err.text), WG_ERROR_TEXT - 1);
        }
    }
}

static wg_status forwards(wg_status s, int *after)
{
    WG_TRY(s);
    ++*after;
    return WG_OK;
}

Test(error, try_forwards)
{
    int after = 0;
    cr_assert_eq(forwards(WG_EVOCAB, &after), WG_EVOCAB);
    cr_assert_eq(after, 0);
    cr_assert_eq(forwards(WG_OK, &after), WG_OK);
    cr_assert_eq(after, 1);
}
