/* SPDX-License-Identifier: MIT
 * The JSON scan (json_scan.h). Values are skipped by counting brackets outside of strings. */
#include "experiments/base/json_scan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')) p++;
    return p;
}

/* The position after the string that starts at p (a quote); NULL when the string does not end. */
static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end; p++) {
        if (*p == '"') return p + 1;
        if (*p == '\\') p++;
    }
    return NULL;
}

static const char *skip_value(const char *p, const char *end)
{
    int depth = 0;
    while (p < end) {
        const char c = *p;
        if (c == '"') {
            p = skip_string(p, end);
            if (!p) return NULL;
            if (depth == 0) return p;
            continue;
        }
        if (c == '{' || c == '[') depth++;
        else if (c == '}' || c == ']') {
            if (depth == 0) return p; /* the bracket closes the enclosing value */
            p++;
            if (--depth == 0) return p;
            continue;
        } else if (depth == 0 && c == ',') return p;
        p++;
    }
    return depth == 0 ? p : NULL;
}

wg_json_scan wg_json_scan_open(wg_span object)
{
    if (!object.s) return (wg_json_scan){ .bad = true };
    const char *end = object.s + object.n, *p = blanks(object.s, end);
    if (p == end || *p != '{') return (wg_json_scan){ .bad = true };
    return (wg_json_scan){ .at = p + 1, .end = end };
}

bool wg_json_scan_next(wg_json_scan *s, wg_span *key, wg_span *value)
{
    if (s->bad || !s->at) return false;
    const char *p = blanks(s->at, s->end);
    if (p < s->end && *p == '}') return s->at = NULL, false;
    s->bad = true; /* until this member is complete */
    if (s->begun) {
        if (p == s->end || *p != ',') return false;
        p = blanks(p + 1, s->end);
    }
    s->begun = true;
    if (p == s->end || *p != '"') return false;
    const char *close = skip_string(p, s->end);
    if (!close) return false;
    *key = (wg_span){ p + 1, (size_t)(close - p) - 2 };
    p = blanks(close, s->end);
    if (p == s->end || *p != ':') return false;
    p = blanks(p + 1, s->end);
    const char *behind = skip_value(p, s->end);
    if (!behind || behind == p) return false;
    s->at = behind;
    while (behind > p && strchr(" \t\r\n", behind[-1])) behind--;
    *value = (wg_span){ p, (size_t)(behind - p) };
    s->bad = false;
    return true;
}

bool wg_span_is(wg_span v, const char *text)
{
    const size_t n = strlen(text);
    return v.s && v.n == n && memcmp(v.s, text, n) == 0;
}

bool wg_span_number(wg_span v, double *out)
{
    char text[40], *end;
    if (!v.s || v.n == 0 || v.n >= sizeof text || !strchr("-0123456789", v.s[0])) return false;
    memcpy(text, v.s, v.n);
    text[v.n] = '\0';
    const double x = strtod(text, &end);
    if (*end || !isfinite(x)) return false;
    *out = x;
    return true;
}

wg_span wg_span_text(wg_span v)
{
    return v.s && v.n >= 2 && v.s[0] == '"' ? (wg_span){ v.s + 1, v.n - 2 } : (wg_span){ NULL, 0 };
}
