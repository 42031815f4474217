/* SPDX-License-Identifier: MIT
 * Upper and lower case of Latin (Basic, Latin-1, Extended-A), Greek and Cyrillic letters; other characters stay as they are. */
#include <string.h>

#include "core/text/jinja/jinja_impl.h"
#include "core/text/unicode.h"

static uint32_t upper(uint32_t c)
{
    if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
    if (c == 0xB5) return 0x39C;
    if (c == 0xFF) return 0x178;
    if (c == 0x131) return 'I';
    if (c == 0x17F) return 'S';
    if (c >= 0xE0 && c <= 0xFE && c != 0xF7) return c - 32;
    if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E)) return c % 2 ? c : c - 1;
    if (c >= 0x100 && c <= 0x177 && c != 0x138 && c != 0x149) return c % 2 ? c - 1 : c;
    if (c == 0x3C2) return 0x3A3;
    if (c >= 0x3B1 && c <= 0x3CB) return c - 32;
    if (c == 0x3AC) return 0x386;
    if (c >= 0x3AD && c <= 0x3AF) return c - 37;
    if (c == 0x3CC) return 0x38C;
    if (c == 0x3CD || c == 0x3CE) return c - 63;
    if (c >= 0x430 && c <= 0x44F) return c - 32;
    if (c >= 0x450 && c <= 0x45F) return c - 80;
    if (c >= 0x460 && c <= 0x481) return c % 2 ? c - 1 : c;
    return c;
}

static uint32_t lower(uint32_t c)
{
    if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
    if (c >= 0xC0 && c <= 0xDE && c != 0xD7) return c + 32;
    if (c == 0x178) return 0xFF;
    if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E)) return c % 2 ? c + 1 : c;
    if (c >= 0x100 && c <= 0x177 && c != 0x130 && c != 0x138 && c != 0x149) return c % 2 ? c : c + 1;
    if (c >= 0x391 && c <= 0x3AB && c != 0x3A2) return c + 32;
    if (c == 0x386) return 0x3AC;
    if (c >= 0x388 && c <= 0x38A) return c + 37;
    if (c == 0x38C) return 0x3CC;
    if (c == 0x38E || c == 0x38F) return c + 63;
    if (c >= 0x410 && c <= 0x42F) return c + 32;
    if (c >= 0x400 && c <= 0x40F) return c + 80;
    if (c >= 0x460 && c <= 0x481) return c % 2 ? c : c + 1;
    return c;
}

static bool is_dash(uint32_t c) { return c == '-' || c == '(' || c == '{' || c == '[' || c == '<'; }

/* capitalize: the first character up, the others down. The method title: letters after a letter go down, others up; the filter
 * title: characters after a space or an opening bracket go up. */
wgj_value wgj_recase(wgj *j, const wgj_text *t, wgj_case how)
{
    wgj_buffer b = { 0 };
    uint32_t cp, before = ' ';
    for (size_t i = 0, n; i < t->n && !j->failed; i += n) {
        n = wgj_char(t->s + i, t->n - i, &cp);
        const bool first = how == WGJ_TITLE_METHOD   ? upper(before) == before && lower(before) == before
                           : how == WGJ_TITLE_FILTER ? wgj_is_space(before) || is_dash(before) || i == 0
                                                     : i == 0;
        const bool up = how == WGJ_UPPER || (how != WGJ_LOWER && first);
        char out[2 * WG_UTF8_MAX];
        unsigned char mark[sizeof out];
        size_t len = n;
        if (cp == WG_UTF8_BAD) memcpy(out, t->s + i, n);
        else if (cp == 0xDF && up) len = 2, memcpy(out, how == WGJ_UPPER ? "SS" : "Ss", 2);
        else len = wg_utf8_encode(up ? upper(cp) : lower(cp), out);
        memset(mark, t->mark ? t->mark[i] : 0, sizeof mark);
        wgj_put(j, &b, out, t->mark ? mark : NULL, len);
        before = cp;
    }
    wgj_value v = wgj_finish(j, &b);
    if (!t->safe || j->failed) return v;
    wgj_text *safe = wgj_take(j, 1, sizeof *safe);
    if (!safe) return v;
    *safe = *v.as.text;
    safe->safe = true;
    v.as.text = safe;
    return v;
}
