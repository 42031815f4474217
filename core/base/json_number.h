/* SPDX-License-Identifier: MIT
 * Numbers to JSON and back. A value that was not measured is NaN in C and null in JSON. */
#ifndef WG_CORE_BASE_JSON_NUMBER_H
#define WG_CORE_BASE_JSON_NUMBER_H

#include <jansson.h>
#include <math.h>

static inline json_t *wg_json_number(double v) { return isfinite(v) ? json_real(v) : json_null(); }

/* a / b; null where b is not positive. */
static inline json_t *wg_json_ratio(double a, double b) { return b > 0 ? wg_json_number(a / b) : json_null(); }

/* An integer (1, not 1.0) where the value is an exactly representable integer. */
static inline json_t *wg_json_plain(double v)
{
    return v == floor(v) && fabs(v) < 9e15 ? json_integer((json_int_t)v) : json_real(v);
}

/* Milliseconds with microsecond digits, for people and diffs. */
static inline json_t *wg_json_ms(double seconds) { return wg_json_number(round(seconds * 1e6) / 1e3); }

/* The number of a member; if absent, wg_json_real returns 0 and wg_json_measured NaN. */
static inline double wg_json_real(const json_t *o, const char *key) { return json_number_value(json_object_get(o, key)); }
static inline double wg_json_measured(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

/* The number of item i of a member that is a list; NaN: absent. */
static inline double wg_json_item(const json_t *o, const char *key, size_t i)
{
    const json_t *v = json_array_get(json_object_get(o, key), i);
    return json_is_number(v) ? json_number_value(v) : NAN;
}

/* The integer of a member, 0 if absent; the string of a member, "" if absent. */
static inline json_int_t wg_json_int(const json_t *o, const char *key) { return json_integer_value(json_object_get(o, key)); }
static inline const char *wg_json_word(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* A JSON string; "?" for a text that is not UTF-8. */
static inline json_t *wg_json_text(const char *s)
{
    json_t *v = json_string(s ? s : "");
    return v ? v : json_string("?");
}

#endif
