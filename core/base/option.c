/* SPDX-License-Identifier: MIT
 * Reading, writing and checking options by their tables. */
#include "core/base/option.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/base/number.h"

static void *field(const wg_option *row, void *o) { return (char *)o + row->at; }

static size_t field_size(const wg_option *row)
{
    switch (row->type) {
    case WG_OPT_FLOAT: return sizeof(double);
    case WG_OPT_BOOL: return sizeof(bool);
    case WG_OPT_STRING: return WG_OPTION_STRING;
    default: return sizeof(int);
    }
}

void wg_option_defaults(const wg_option *table, void *o)
{
    for (const wg_option *r = table; r && r->name; r++) {
        void *f = field(r, o);
        switch (r->type) {
        case WG_OPT_INT:
        case WG_OPT_ENUM: *(int *)f = (int)r->def; break;
        case WG_OPT_FLOAT: *(double *)f = r->def; break;
        case WG_OPT_BOOL: *(bool *)f = r->def != 0; break;
        case WG_OPT_STRING: snprintf(f, WG_OPTION_STRING, "%s", r->def_string ? r->def_string : ""); break;
        }
    }
}

const wg_option *wg_option_find(const wg_option *table, const char *name)
{
    for (const wg_option *r = table; r && r->name; r++)
        if (strcmp(r->name, name) == 0) return r;
    return NULL;
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

/* Appends to a text that may be full; returns the new length (never more than size - 1). */
static size_t append(char *buf, size_t size, size_t at, const char *a, const char *b)
{
    const int n = at < size ? snprintf(buf + at, size - at, "%s%s", a, b) : 0;
    const size_t end = at + (n > 0 ? (size_t)n : 0);
    return end < size ? end : size - 1;
}

const char *wg_option_expects(const wg_option *row, char *buf, size_t size)
{
    char lo[WG_NUMBER_TEXT], hi[WG_NUMBER_TEXT];
    wg_number_text(row->min, lo, sizeof lo);
    wg_number_text(row->max, hi, sizeof hi);
    const char *kind = row->type == WG_OPT_INT ? "integer" : "number";
    const bool from = row->type == WG_OPT_INT ? row->min > INT_MIN : isfinite(row->min);
    const bool to = row->type == WG_OPT_INT ? row->max < INT_MAX : isfinite(row->max);
    switch (row->type) {
    case WG_OPT_INT:
    case WG_OPT_FLOAT:
        if (from && to) snprintf(buf, size, "%s %s..%s", kind, lo, hi);
        else if (from) snprintf(buf, size, "%s >= %s", kind, lo);
        else if (to) snprintf(buf, size, "%s <= %s", kind, hi);
        else snprintf(buf, size, "%s", kind);
        for (int i = 0; row->choices && row->choices[i]; i++)
            append(buf, size, strlen(buf), row->choices[i + 1] ? ", " : " or ", row->choices[i]);
        break;
    case WG_OPT_BOOL: snprintf(buf, size, "true or false"); break;
    case WG_OPT_STRING: snprintf(buf, size, "text of at most %d bytes", WG_OPTION_STRING - 1); break;
    case WG_OPT_ENUM: {
        size_t at = append(buf, size, 0, "one of: ", "");
        for (int i = 0; row->choices[i]; i++) at = append(buf, size, at, i ? ", " : "", row->choices[i]);
        break;
    }
    }
    return buf;
}

const char *wg_option_value(const wg_option *row, const void *o, char *buf, size_t size)
{
    const void *f = (const char *)o + row->at;
    switch (row->type) {
    case WG_OPT_INT: snprintf(buf, size, "%d", *(const int *)f); break;
    case WG_OPT_FLOAT: wg_number_text(*(const double *)f, buf, size); break;
    case WG_OPT_BOOL: snprintf(buf, size, "%s", *(const bool *)f ? "true" : "false"); break;
    case WG_OPT_STRING: snprintf(buf, size, "%s", (const char *)f); break;
    case WG_OPT_ENUM: snprintf(buf, size, "%s", row->choices[*(const int *)f]); break;
    }
    return buf;
}

static wg_status fail_value(const wg_option *row, const char *value, wg_error *err)
{
    char expects[512];
    const char *near = row->choices ? wg_nearest(value, row->choices) : NULL;
    return wg_fail(err, WG_EINVAL, "option '%s' = '%s': expected %s%s%s%s", row->name, value,
                   wg_option_expects(row, expects, sizeof expects), near ? "; did you mean '" : "", near ? near : "",
                   near ? "'?" : "");
}

static wg_status fail_name(const wg_option *table, const char *name, wg_error *err)
{
    enum { MANY = 128 };
    const char *names[MANY + 1];
    char known[1024];
    int n = 0;
    size_t at = append(known, sizeof known, 0, table && table->name ? "; known: " : "; there are no options here", "");
    for (const wg_option *r = table; r && r->name && n < MANY; r++) {
        at = append(known, sizeof known, at, n ? ", " : "", r->name);
        names[n++] = r->name;
    }
    names[n] = NULL;
    const char *near = wg_nearest(name, names);
    return wg_fail(err, WG_EINVAL, "unknown option '%s'%s%s%s%s", name, near ? "; did you mean '" : "", near ? near : "",
                   near ? "'?" : "", known);
}

/* ---- setting ----------------------------------------------------------------------------------------------------- */

wg_status wg_option_set_number(const wg_option *table, void *o, const char *name, double value, bool is_integer, wg_error *err)
{
    const wg_option *row = wg_option_find(table, name);
    if (!row) return fail_name(table, name, err);
    char text[WG_NUMBER_TEXT];
    wg_number_text(value, text, sizeof text);
    void *f = field(row, o);
    switch (row->type) {
    case WG_OPT_INT:
        if (!is_integer || !(value >= row->min && value <= row->max) || value < INT_MIN || value > INT_MAX) break;
        *(int *)f = (int)value;
        return WG_OK;
    case WG_OPT_FLOAT:
        if (!(value >= row->min && value <= row->max)) break; /* NaN fails too */
        *(double *)f = value;
        return WG_OK;
    case WG_OPT_BOOL:
        if (value != 0 && value != 1) break;
        *(bool *)f = value != 0;
        return WG_OK;
    default: break;
    }
    return fail_value(row, text, err);
}

static bool parse_bool(const char *v, bool *out)
{
    *out = strcmp(v, "true") == 0 || strcmp(v, "1") == 0;
    return *out || strcmp(v, "false") == 0 || strcmp(v, "0") == 0;
}

/* A name of ENUM, or a word of INT. */
static bool set_word(const wg_option *row, void *f, const char *value)
{
    for (int i = 0; row->choices && row->choices[i]; i++) {
        if (strcmp(row->choices[i], value) != 0) continue;
        *(int *)f = i;
        return true;
    }
    return false;
}

wg_status wg_option_set(const wg_option *table, void *o, const char *name, const char *value, wg_error *err)
{
    const wg_option *row = wg_option_find(table, name);
    if (!row) return fail_name(table, name, err);
    void *f = field(row, o);
    double number;
    bool flag;
    switch (row->type) {
    case WG_OPT_INT:
    case WG_OPT_FLOAT:
        if (set_word(row, f, value)) return WG_OK;
        if (!wg_number_parse(value, &number)) break;
        /* the message should show the text as typed, not the parsed number */
        if (wg_option_set_number(table, o, name, number, number == floor(number), NULL) == WG_OK) return WG_OK;
        break;
    case WG_OPT_BOOL:
        if (!parse_bool(value, &flag)) break;
        *(bool *)f = flag;
        return WG_OK;
    case WG_OPT_STRING:
        if (strlen(value) >= WG_OPTION_STRING) break;
        memcpy(f, value, strlen(value) + 1);
        return WG_OK;
    case WG_OPT_ENUM:
        if (set_word(row, f, value)) return WG_OK;
        break;
    }
    return fail_value(row, value, err);
}

wg_status wg_option_set_list(const wg_option *table, void *o, size_t size, const char *list, wg_error *err)
{
    for (const wg_option *r = table; r && r->name; r++)
        wg_assert(r->at + field_size(r) <= size); /* the table fits the struct */
    for (const char *p = list; *p;) {
        char item[WG_OPTION_STRING + 128];
        const size_t n = strcspn(p, ",");
        if (n >= sizeof item) return wg_fail(err, WG_EINVAL, "option list: an item of %zu bytes is too long", n);
        memcpy(item, p, n);
        item[n] = '\0';
        char *eq = strchr(item, '=');
        if (!eq) return wg_fail(err, WG_EINVAL, "option list '%s': '%s' is not of the form name=value", list, item);
        *eq = '\0';
        if (!eq[1]) return wg_fail(err, WG_EINVAL, "option '%s' has no value; give one, or leave the option out", item);
        const size_t name = strlen(item);
        for (const char *q = list; q < p; q += strcspn(q, ",") + 1)
            if (strncmp(q, item, name) == 0 && q[name] == '=')
                return wg_fail(err, WG_EINVAL, "option list '%s': '%s' is set twice", list, item);
        WG_TRY(wg_option_set(table, o, item, eq + 1, err));
        p += n;
        if (*p == ',') p++;
    }
    return WG_OK;
}
