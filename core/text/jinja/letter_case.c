/* SPDX-License-Identifier: MIT
 * Upper and lower case of characters that have one character of each. */
#include <string.h>

#include "core/text/jinja/jinja_impl.h"
#include "core/text/normal_form.h"
#include "core/text/unicode.h"

static uint32_t lower(uint32_t c)
{
    const uint32_t to = wg_normal_run_of(wg_normal_lower, WG_NORMAL_LOWER, c);
    return to ? to : c;
}

/* The first character whose lower case it is; and those that are upper or lower case of others. */
static uint32_t upper(uint32_t c)
{
    static const uint32_t others[][2] = { { 0xB5, 0x39C }, { 0x131, 'I' }, { 0x17F, 'S' }, { 0x3C2, 0x3A3 } };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i][0] == c) return others[i][1];
    for (const wg_normal_run *r = wg_normal_lower; r < wg_normal_lower + WG_NORMAL_LOWER; r++)
        if (c >= r->to && c - r->to <= r->last - r->first && (c - r->to) % r->step == 0) return r->first + (c - r->to);
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
        n = wg_utf8_decode(t->s + i, t->n - i, &cp);
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
    const wgj_value v = wgj_finish(j, &b);
    return t->safe ? wgj_safe(j, v) : v;
}
