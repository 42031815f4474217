/* SPDX-License-Identifier: MIT
 * Status names and messages. A message that does not fit is cut at a character boundary, never in the middle of one. */
#include "core/base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *wg_status_name(wg_status s)
{
    static const char *const names[] = {
#define X(name) #name,
        WG_STATUS_MAP(X)
#undef X
    };
    const int i = (int)s - WG_STATUS_BASE - 1;
    return s == WG_OK ? "OK" : i >= 0 && i < (int)(sizeof names / sizeof *names) ? names[i] : "UNKNOWN";
}

/* Drops the continuation bytes of a UTF-8 sequence that the end of the buffer cut in two. */
static void trim_cut(char *text, size_t size)
{
    const size_t n = strlen(text);
    if (n + 1 < size) return; /* it fitted */
    size_t lead = n;
    while (lead > 0 && n - lead < 4 && ((unsigned char)text[lead - 1] & 0xC0) == 0x80) lead--;
    if (lead == 0) return;
    const unsigned char c = (unsigned char)text[lead - 1];
    const size_t want = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 1;
    if (n - (lead - 1) < want) text[lead - 1] = '\0';
}

wg_status wg_fail(wg_error *err, wg_status code, const char *fmt, ...)
{
    if (!err) return code;
    err->code = code;
    va_list ap;
    va_start(ap, fmt);
    if (vsnprintf(err->text, sizeof err->text, fmt, ap) < 0) err->text[0] = '\0';
    va_end(ap);
    trim_cut(err->text, sizeof err->text);
    return code;
}

wg_status wg_fail_in(wg_error *err, wg_status code, const char *fmt, ...)
{
    if (!err) return code;
    char old[WG_ERROR_TEXT];
    memcpy(old, err->text, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    if (vsnprintf(err->text, sizeof err->text, fmt, ap) < 0) err->text[0] = '\0';
    va_end(ap);
    const size_t at = strlen(err->text), room = sizeof err->text - 1 - at, len = strlen(old);
    if (room > 2) {
        memcpy(err->text + at, ": ", 2);
        memcpy(err->text + at + 2, old, len < room - 2 ? len : room - 2);
        err->text[at + 2 + (len < room - 2 ? len : room - 2)] = '\0';
    }
    trim_cut(err->text, sizeof err->text);
    return err->code;
}

_Noreturn void wg_bug(const char *what, const char *file, int line)
{
    fprintf(stderr, "wager: bug: %s:%d: (%s) does not hold; please report this line\n", file, line, what);
    abort();
}
