/* SPDX-License-Identifier: MIT
 * Operators as in Python: integers of 64 bits (an overflow is an error), floats, texts, lists; the operator % of texts;
 * slices. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/text/jinja/jinja_impl.h"

static wgj_value unsupported(wgj *j, int op, wgj_value a, wgj_value b)
{
    const char sign[3] = { (char)(op > 255 ? op >> 8 : op), (char)(op > 255 ? op & 255 : 0), 0 };
    if (a.kind == WGJ_UNDEFINED || b.kind == WGJ_UNDEFINED)
        wgj_fail(j, WG_EMODEL, "%s, and is an operand of '%s'", a.kind == WGJ_UNDEFINED ? a.as.why : b.as.why, sign);
    else wgj_fail(j, WG_EMODEL, "'%s' between a %s and a %s", sign, wgj_type(a), wgj_type(b));
    return (wgj_value){ WGJ_NONE, { 0 } };
}

/* ---- numbers */

static wgj_value float_power(wgj *j, double x, double y)
{
    if (x == 0 && y < 0) wgj_fail(j, WG_EMODEL, "division by zero");
    return wgj_float(pow(x, y));
}

static bool int_power(int64_t x, int64_t y, int64_t *out)
{
    int64_t r = 1;
    for (; y > 0; y >>= 1) {
        if ((y & 1) && __builtin_mul_overflow(r, x, &r)) return false;
        if (y > 1 && __builtin_mul_overflow(x, x, &x)) return false;
    }
    *out = r;
    return true;
}

static wgj_value floats(wgj *j, int op, double x, double y)
{
    const bool divides = op == '/' || op == '%' || op == WGJ_OP2('/', '/');
    if (divides && y == 0) wgj_fail(j, WG_EMODEL, "division by zero");
    const double rest = fmod(x, y);
    switch (op) {
    case '+': return wgj_float(x + y);
    case '-': return wgj_float(x - y);
    case '*': return wgj_float(x * y);
    case '/': return wgj_float(x / y);
    case '%': return wgj_float(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
    case WGJ_OP2('/', '/'): return wgj_float(floor(x / y));
    default: return float_power(j, x, y);
    }
}

static wgj_value integers(wgj *j, int op, int64_t x, int64_t y)
{
    int64_t r = 0;
    bool fits = true;
    if (op == '/') return floats(j, op, (double)x, (double)y);
    if (op == WGJ_OP2('*', '*') && y < 0) return float_power(j, (double)x, (double)y);
    if ((op == '%' || op == WGJ_OP2('/', '/')) && y == 0) return wgj_fail(j, WG_EMODEL, "division by zero"), wgj_int(0);
    if (y == -1 && op == '%') return wgj_int(0);
    switch (op) {
    case '+': fits = !__builtin_add_overflow(x, y, &r); break;
    case '-': fits = !__builtin_sub_overflow(x, y, &r); break;
    case '*': fits = !__builtin_mul_overflow(x, y, &r); break;
    case '%': r = x % y + (x % y != 0 && (x % y < 0) != (y < 0) ? y : 0); break;
    case WGJ_OP2('/', '/'):
        if (y == -1) fits = !__builtin_sub_overflow(0, x, &r);
        else r = x / y - (x % y != 0 && (x < 0) != (y < 0));
        break;
    default: fits = int_power(x, y, &r);
    }
    if (!fits) wgj_fail(j, WG_EMODEL, "an integer outside the range of 64 bits");
    return wgj_int(r);
}

wgj_value wgj_negate(wgj *j, wgj_value v)
{
    if (v.kind == WGJ_FLOAT) return wgj_float(-v.as.f);
    if (!wgj_is_number(v)) return unsupported(j, '-', wgj_int(0), v);
    return integers(j, '-', 0, wgj_whole(v));
}

/* ---- texts and lists */

static wgj_value add_texts(wgj *j, const wgj_text *a, const wgj_text *b)
{
    wgj_buffer to = { 0 };
    const bool safe = a->safe || b->safe;
    wgj_put_text(j, &to, safe && !a->safe ? wgj_escape(j, a).as.text : a);
    wgj_put_text(j, &to, safe && !b->safe ? wgj_escape(j, b).as.text : b);
    const wgj_value v = wgj_finish(j, &to);
    return safe ? wgj_safe(j, v) : v;
}

static wgj_value add_lists(wgj *j, wgj_value a, wgj_value b)
{
    const size_t n = a.as.list->n, m = b.as.list->n;
    const wgj_value v = wgj_list_new(j, a.kind, n + m);
    if (v.as.list->n != n + m) return v;
    if (n) memcpy(v.as.list->v, a.as.list->v, n * sizeof *v.as.list->v);
    if (m) memcpy(v.as.list->v + n, b.as.list->v, m * sizeof *v.as.list->v);
    return v;
}

static wgj_value repeat(wgj *j, wgj_value v, int64_t times)
{
    wgj_buffer to = { 0 };
    if (v.kind == WGJ_TEXT) {
        for (int64_t i = 0; i < times && v.as.text->n && wgj_spend(j, 1); i++) wgj_put_text(j, &to, v.as.text);
        return wgj_finish(j, &to);
    }
    const size_t n = v.as.list->n;
    if (times > 0 && n && (size_t)times > WGJ_WORK / n) wgj_spend(j, WGJ_WORK);
    const wgj_value all = wgj_list_new(j, v.kind, times > 0 && !j->failed ? n * (size_t)times : 0);
    for (size_t i = 0; i < all.as.list->n; i++) all.as.list->v[i] = v.as.list->v[i % n];
    return all;
}

static bool is_list(wgj_value v) { return v.kind == WGJ_LIST || v.kind == WGJ_TUPLE; }

wgj_value wgj_binary(wgj *j, int op, wgj_value a, wgj_value b)
{
    if (j->failed) return a;
    const bool whole_a = a.kind == WGJ_INT || a.kind == WGJ_BOOL, whole_b = b.kind == WGJ_INT || b.kind == WGJ_BOOL;
    if (whole_a && whole_b) return integers(j, op, wgj_whole(a), wgj_whole(b));
    if (wgj_is_number(a) && wgj_is_number(b)) return floats(j, op, wgj_double(a), wgj_double(b));
    if (op == '+' && a.kind == WGJ_TEXT && b.kind == WGJ_TEXT) return add_texts(j, a.as.text, b.as.text);
    if (op == '+' && is_list(a) && a.kind == b.kind) return add_lists(j, a, b);
    if (op == '*' && (a.kind == WGJ_TEXT || is_list(a)) && whole_b) return repeat(j, a, wgj_whole(b));
    if (op == '*' && whole_a && (b.kind == WGJ_TEXT || is_list(b))) return repeat(j, b, wgj_whole(a));
    if (op == '%' && a.kind == WGJ_TEXT) {
        wgj_list one = { &b, 1 };
        return wgj_format(j, a.as.text, b.kind == WGJ_TUPLE ? b.as.list : &one);
    }
    return unsupported(j, op, a, b);
}

/* ---- the operator % of texts */

/* One conversion: its flags, width and precision are in `spec`, which ends before its letter. */
static void put_conversion(wgj *j, wgj_buffer *b, const char *spec, char letter, wgj_value v)
{
    char format[32], out[400];
    if (letter == 's' && !spec[1]) return wgj_print(j, b, v);
    if (letter == 's') {
        const wgj_text *t = wgj_str(j, v);
        snprintf(format, sizeof format, "%ss", spec);
        const int n = snprintf(out, sizeof out, format, t->n < sizeof out ? t->s : "");
        if (t->mark || t->n >= 128 || memchr(t->s, '\0', t->n) || n < 0 || n >= (int)sizeof out || wgj_chars(t) != t->n)
            wgj_fail(j, WG_EUNSUPPORTED,
                     "a width of '%%s' is not implemented for texts of the data, long ones or other than ASCII");
        else wgj_put(j, b, out, NULL, (size_t)n);
        return;
    }
    if (!wgj_is_number(v)) return wgj_fail(j, WG_EMODEL, "'%%%c' expects a number, found a %s", letter, wgj_type(v));
    const bool whole = letter == 'd' || letter == 'x';
    const double f = wgj_double(v);
    if (whole && fabs(f) > 9e18) return wgj_fail(j, WG_EMODEL, "an integer outside the range of 64 bits");
    snprintf(format, sizeof format, "%s%s%c", spec, whole ? "ll" : "", letter);
    const int n = whole ? snprintf(out, sizeof out, format, v.kind == WGJ_INT ? (long long)v.as.i : (long long)f)
                        : snprintf(out, sizeof out, format, f);
    wgj_put(j, b, out, NULL, n < 0 ? 0 : (size_t)n < sizeof out ? (size_t)n : sizeof out - 1);
}

/* The conversion after a '%' at `at`; returns the offset behind it. */
static size_t convert(wgj *j, wgj_buffer *b, const wgj_text *t, size_t at, const wgj_list *args, size_t *used)
{
    char spec[16] = "%";
    size_t n = 1, digits = 0;
    for (; at < t->n && t->s[at] && strchr("-+ 0123456789.", t->s[at]) && n + 1 < sizeof spec; at++) {
        digits = t->s[at] >= '0' && t->s[at] <= '9' ? digits + 1 : 0;
        spec[n++] = t->s[at];
        if (digits > 2) wgj_fail(j, WG_EUNSUPPORTED, "a width or precision of more than two digits after '%%'");
    }
    char letter = at < t->n ? t->s[at] : '\0';
    if (letter == '%') return wgj_puts(j, b, "%"), at + 1;
    if (letter == 'i') letter = 'd';
    if (!letter || !strchr("sdxfeg", letter))
        wgj_fail(j, WG_EUNSUPPORTED, "a conversion after '%%' other than s, d, i, x, f, e, g and %% is not implemented");
    else if (*used == args->n) wgj_fail(j, WG_EMODEL, "fewer values than conversions of '%%'");
    if (!j->failed) put_conversion(j, b, spec, letter, args->v[(*used)++]);
    return at + 1;
}

wgj_value wgj_format(wgj *j, const wgj_text *t, const wgj_list *args)
{
    wgj_buffer b = { 0 };
    size_t used = 0;
    for (size_t at = 0; at < t->n && !j->failed;) {
        const char *percent = memchr(t->s + at, '%', t->n - at);
        const size_t to = percent ? (size_t)(percent - t->s) : t->n;
        wgj_put(j, &b, t->s + at, t->mark ? t->mark + at : NULL, to - at);
        at = percent ? convert(j, &b, t, to + 1, args, &used) : to;
    }
    if (used < args->n) wgj_fail(j, WG_EMODEL, "more values than conversions of '%%'");
    return wgj_finish(j, &b);
}

/* ---- slices */

static int64_t bound(wgj *j, wgj_value v, int64_t fallback, int64_t n, int64_t least, int64_t most)
{
    if (v.kind == WGJ_ABSENT || v.kind == WGJ_NONE) return fallback;
    if (v.kind != WGJ_INT && v.kind != WGJ_BOOL)
        return wgj_fail(j, WG_EMODEL, "a bound of a slice is a %s, expected an integer", wgj_type(v)), 0;
    int64_t i = wgj_whole(v);
    if (i < 0) i = i < -n ? -1 : i + n;
    else if (i > n) i = n;
    return i < least ? least : i > most ? most : i;
}

wgj_value wgj_slice(wgj *j, wgj_value v, wgj_value from, wgj_value to, wgj_value step)
{
    const int64_t by = bound(j, step, 1, 0, INT64_MIN, INT64_MAX);
    const bool given = step.kind == WGJ_INT;
    const int64_t d = given ? step.as.i : by;
    if (v.kind == WGJ_UNDEFINED) wgj_fail(j, WG_EMODEL, "%s, and is sliced", v.as.why);
    if (d == 0) wgj_fail(j, WG_EMODEL, "a slice with step 0");
    if (j->failed) return v;
    if (v.kind != WGJ_TEXT && !is_list(v) && v.kind != WGJ_RANGE)
        return wgj_undefined(j, "a slice of a %s is undefined", wgj_type(v));
    const int64_t n = (int64_t)(v.kind == WGJ_TEXT ? wgj_chars(v.as.text) : v.as.list->n);
    const int64_t least = d < 0 ? -1 : 0, most = d < 0 ? n - 1 : n;
    const int64_t a = bound(j, from, d < 0 ? n - 1 : 0, n, least, most), b = bound(j, to, d < 0 ? -1 : n, n, least, most);
    if (v.kind == WGJ_TEXT && d == 1) {
        const size_t begin = wgj_offset(v.as.text, (size_t)a);
        const wgj_text rest = { .s = v.as.text->s + begin, .n = v.as.text->n - begin };
        wgj_spend(j, v.as.text->n / 16);
        return wgj_sub(j, v.as.text, begin, begin + (b > a ? wgj_offset(&rest, (size_t)(b - a)) : 0));
    }
    const wgj_list *l = v.kind == WGJ_TEXT ? wgj_elements(j, v) : v.as.list;
    const uint64_t width = (d > 0 ? b > a : a > b) ? (uint64_t)(d > 0 ? b - a : a - b) : 0;
    const uint64_t stride = d > 0 ? (uint64_t)d : 0 - (uint64_t)d;
    const wgj_value out =
        wgj_list_new(j, v.kind == WGJ_TEXT ? WGJ_LIST : v.kind, width ? (size_t)((width - 1) / stride + 1) : 0);
    for (size_t i = 0; i < out.as.list->n && l->n; i++)
        out.as.list->v[i] = l->v[d > 0 ? (uint64_t)a + i * stride : (uint64_t)a - i * stride];
    return v.kind == WGJ_TEXT ? wgj_join(j, &wgj_empty, out.as.list) : out;
}
