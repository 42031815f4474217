/* SPDX-License-Identifier: MIT
 * Expressions of integers and numbers of JSON Schema. Digits are chosen one by one along the bounds; every text has at most
 * 15 of them, so that two texts of different value are different doubles too. */
#include "core/text/grammar/schema_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 15 };

/* ---- integers: lo .. hi as choices of digits */

static bool all_are(const char *digits, char d) { return strspn(digits, (const char[]){ d, '\0' }) == strlen(digits); }

/* lo and hi have the same number of digits. One of the two halves is full after the first difference, so this is linear. */
static void digit_range(wg_schema_writer *w, const char *lo, const char *hi)
{
    char nines[24], zeros[24];
    const size_t n = strlen(lo);
    if (all_are(lo, '0') && all_are(hi, '9')) {
        if (n > 0) wg_schema_put(w, "[0-9]{%d}", (int)n);
        return;
    }
    if (*lo == *hi) {
        wg_schema_put(w, "\"%c\" ", *lo);
        digit_range(w, lo + 1, hi + 1);
        return;
    }
    memset(nines, '9', sizeof nines), memset(zeros, '0', sizeof zeros);
    nines[n - 1] = zeros[n - 1] = '\0';
    wg_schema_put(w, "(");
    char from = *lo, to = *hi;
    if (!all_are(lo + 1, '0')) {
        wg_schema_put(w, "\"%c\" ", from++);
        digit_range(w, lo + 1, nines);
        wg_schema_put(w, " | ");
    }
    if (!all_are(hi + 1, '9')) {
        wg_schema_put(w, "\"%c\" ", to--);
        digit_range(w, zeros, hi + 1);
        if (from <= to) wg_schema_put(w, " | ");
    }
    if (from <= to) wg_schema_put(w, "[%c-%c] [0-9]{%d}", from, to, (int)n - 1);
    wg_schema_put(w, ")");
}

/* 0 <= lo <= hi, by numbers of digits; `fractions`: with any digits behind a point. */
static void natural_range(wg_schema_writer *w, int64_t lo, int64_t hi, bool fractions)
{
    char a[24], b[24];
    bool any = false;
    for (int64_t from = lo; from <= hi;) {
        int64_t most = 9;
        while (most < from) most = 10 * most + 9;
        const int64_t to = most < hi ? most : hi;
        snprintf(a, sizeof a, "%lld", (long long)from);
        snprintf(b, sizeof b, "%lld", (long long)to);
        wg_schema_put(w, "%s", any ? " | " : "");
        if (from == to) wg_schema_put(w, "\"%s\"", a);
        else digit_range(w, a, b);
        if (fractions && strlen(a) < DIGITS) wg_schema_put(w, " (\".\" [0-9]{1,%d})?", DIGITS - (int)strlen(a));
        any = true;
        from = to + 1;
    }
}

static const double LARGEST = 999999999999999; /* 15 digits: every JSON reader has them */

/* The bounds of an integer's keywords; false: there are none. */
static bool bounds(wg_schema_writer *w, const json_t *schema, double *lo, double *hi)
{
    static const char *const keys[] = { "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum" };
    bool any = false;
    *lo = -LARGEST, *hi = LARGEST;
    for (int i = 0; i < 4; i++) {
        const json_t *v = json_object_get(schema, keys[i]);
        const double x = json_number_value(v);
        if (!v) continue;
        any = true;
        if (!json_is_number(v) || (i < 2 ? x : -x) > LARGEST) /* a bound beyond all texts on the other side excludes none */
            wg_schema_fail(w, WG_EFORMAT, "%s: expected a number of at most 15 digits", keys[i]);
        else if (i < 2) *lo = fmax(*lo, i == 0 ? ceil(x) : floor(x) + 1);
        else *hi = fmin(*hi, i == 2 ? floor(x) : ceil(x) - 1);
    }
    return any;
}

void wg_schema_integer(wg_schema_writer *w, const json_t *schema)
{
    double lo, hi;
    const json_t *step = json_object_get(schema, "multipleOf");
    if (step && json_number_value(step) != 1) wg_schema_fail(w, WG_EUNSUPPORTED, "multipleOf other than 1 is not supported");
    if (!bounds(w, schema, &lo, &hi)) {
        wg_schema_put(w, "integer");
        return;
    }
    if (lo > hi) {
        wg_schema_fail(w, WG_EFORMAT, "no integer is between the bounds, so nothing satisfies the schema");
        return;
    }
    wg_schema_put(w, "(");
    if (lo < 0) {
        wg_schema_put(w, "\"-\" (");
        natural_range(w, hi < 0 ? (int64_t)-hi : 1, (int64_t)-lo, false);
        wg_schema_put(w, ")%s", hi >= 0 ? " | " : "");
    }
    if (hi >= 0) natural_range(w, lo > 0 ? (int64_t)lo : 0, (int64_t)hi, false);
    wg_schema_put(w, ")");
}

/* ---- numbers */

/* The size of a bound: a whole number and what stands behind its point, without zeros at the end. open: not itself. */
typedef struct bound {
    int64_t whole;
    char fraction[DIGITS + 1];
    bool open;
} bound;

/* The shortest decimal that is x, of at most 14 digits: one more stands between it and its neighbours. */
static bool decimal(double x, bool open, bound *out)
{
    char text[48];
    *out = (bound){ .open = open };
    if (!(x <= LARGEST)) return false;
    for (int digits = 0; digits < DIGITS; digits++) {
        snprintf(text, sizeof text, "%.*f", digits, x);
        if (strtod(text, NULL) != x) continue;
        out->whole = (int64_t)x;
        if (digits > 0) snprintf(out->fraction, sizeof out->fraction, "%s", strchr(text, '.') + 1);
        return (int)strlen(text) - (digits > 0) < DIGITS;
    }
    return false;
}

/* What is left of a bound's digits; NULL: there is no bound. */
typedef struct digits {
    const char *d;
    bool open;
} digits;

static bool is_zero(const char *d) { return all_are(d, '0'); }
static char first_of(const char *d) { return *d ? *d : '0'; }
static digits next_of(digits x) { return (digits){ *x.d ? x.d + 1 : x.d, x.open }; }

/* Whether some digits are between them. Those of lo and hi have no zeros at their ends, so they compare as texts. */
static bool some_between(digits lo, digits hi)
{
    if (!hi.d) return true;
    if (!lo.d) return !(is_zero(hi.d) && hi.open);
    const int order = strcmp(lo.d, hi.d);
    return order < 0 || (order == 0 && !lo.open && !hi.open);
}

static bool zeros_do(digits lo, digits hi)
{
    return (!lo.d || (is_zero(lo.d) && !lo.open)) && (!hi.d || !(is_zero(hi.d) && hi.open));
}

static void put_choice(wg_schema_writer *w, bool *any)
{
    if (*any) wg_schema_put(w, " | ");
    *any = true;
}

/* The digits behind a point that are between lo and hi, at most `room`; `first`: at least one. One of both bounds is left
 * behind where the two differ, so this is linear. */
static void fraction_range(wg_schema_writer *w, digits lo, digits hi, int room, bool first)
{
    const digits none = { NULL, false };
    if (lo.d && !*lo.d && !lo.open) lo = none;
    if (!lo.d && !hi.d) {
        wg_schema_put(w, "[0-9]{%d,%d}", first, room);
        return;
    }
    if (hi.d && !*hi.d) {
        wg_schema_put(w, "\"0\"{%d,%d}", first, room);
        return;
    }
    if (lo.d && !*lo.d && !hi.d) {
        wg_schema_put(w, "[0-9]{0,%d} [1-9]", room - 1);
        return;
    }
    char from = lo.d ? first_of(lo.d) : '0', to = hi.d ? first_of(hi.d) : '9';
    const bool same = lo.d && hi.d && from == to;
    bool any = false;
    wg_schema_put(w, "(");
    if (!first && zeros_do(lo, hi)) put_choice(w, &any), wg_schema_put(w, "\"\"");
    if (lo.d) {
        put_choice(w, &any);
        wg_schema_put(w, "\"%c\" ", from++);
        fraction_range(w, next_of(lo), same ? next_of(hi) : none, room - 1, false);
    }
    if (hi.d && !same && some_between(none, next_of(hi))) {
        put_choice(w, &any);
        wg_schema_put(w, "\"%c\" ", to);
        fraction_range(w, none, next_of(hi), room - 1, false);
    }
    to = (char)(to - (hi.d != NULL));
    if (from <= to && !same) put_choice(w, &any), wg_schema_put(w, "[%c-%c] [0-9]{0,%d}", from, to, room - 1);
    wg_schema_put(w, ")");
}

/* A whole number and what may stand behind it. */
static void put_whole(wg_schema_writer *w, int64_t whole, digits lo, digits hi, bool *any)
{
    char text[24];
    if (!some_between(lo, hi)) return;
    put_choice(w, any);
    const int room = DIGITS - snprintf(text, sizeof text, "%lld", (long long)whole);
    const bool alone = zeros_do(lo, hi);
    wg_schema_put(w, "\"%s\"", text);
    if (room == 0) return;
    wg_schema_put(w, alone ? " (\".\" " : " \".\" ");
    fraction_range(w, lo, hi, room, true);
    wg_schema_put(w, alone ? ")?" : "");
}

/* Sizes lo .. hi. */
static void size_range(wg_schema_writer *w, const bound *lo, const bound *hi, bool *any)
{
    const digits least = { lo->fraction, lo->open }, most = { hi->fraction, hi->open }, none = { NULL, false };
    int64_t from = lo->whole;
    if (lo->whole == hi->whole) {
        put_whole(w, lo->whole, least, most, any);
        return;
    }
    if (lo->open || *lo->fraction) put_whole(w, from++, least, none, any);
    put_whole(w, hi->whole, none, most, any);
    if (from >= hi->whole) return;
    put_choice(w, any);
    natural_range(w, from, hi->whole - 1, true);
}

/* The stricter one of two bounds; `sign` -1 for upper ones. *x stays where neither keyword is there. */
static bool number_bound(wg_schema_writer *w, const json_t *schema, const char *closed, const char *opened, int sign, double *x,
                         bool *open)
{
    const json_t *v[2] = { json_object_get(schema, closed), json_object_get(schema, opened) };
    bool any = false;
    for (int i = 0; i < 2; i++) {
        const double value = json_number_value(v[i]);
        bound b;
        if (!v[i]) continue;
        if (!json_is_number(v[i]) || !decimal(fabs(value), false, &b))
            wg_schema_fail(w, WG_EFORMAT, "%s: expected a number of at most 14 digits", i ? opened : closed);
        if (any && sign * value < sign * *x) continue;
        *open = i == 1;
        *x = value;
        any = true;
    }
    return any;
}

void wg_schema_number(wg_schema_writer *w, const json_t *schema)
{
    double lo = -LARGEST, hi = LARGEST;
    bool lo_open = false, hi_open = false, any = false;
    bound least, most;
    if (json_object_get(schema, "multipleOf"))
        wg_schema_fail(w, WG_EUNSUPPORTED, "multipleOf of numbers is not supported; use type integer, or none");
    const bool above = number_bound(w, schema, "minimum", "exclusiveMinimum", 1, &lo, &lo_open);
    const bool below = number_bound(w, schema, "maximum", "exclusiveMaximum", -1, &hi, &hi_open);
    if (w->status) return;
    if (!below && (!above || (lo == 0 && !lo_open))) {
        wg_schema_put(w, above ? "positive" : "number");
        return;
    }
    if (lo > hi || (lo == hi && (lo_open || hi_open))) {
        wg_schema_fail(w, WG_EFORMAT, "no number is between the bounds, so nothing satisfies the schema");
        return;
    }
    wg_schema_put(w, "(");
    if (lo < 0) {
        decimal(hi < 0 ? -hi : 0, hi <= 0 && hi_open, &least);
        decimal(-lo, lo_open, &most);
        wg_schema_put(w, "\"-\" (");
        size_range(w, &least, &most, &any);
        wg_schema_put(w, ")");
    }
    if (hi > 0 || (hi == 0 && !hi_open)) {
        if (lo < 0) wg_schema_put(w, " | ");
        any = false;
        decimal(lo > 0 ? lo : 0, lo >= 0 && lo_open, &least);
        decimal(hi, hi_open, &most);
        size_range(w, &least, &most, &any);
    }
    wg_schema_put(w, ")");
}
