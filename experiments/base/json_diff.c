/* SPDX-License-Identifier: MIT
 * Traverses several JSON values in parallel. */
#include "experiments/base/json_diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"

enum { PATH = 1024, MOST = 16 };

static bool same(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
    return a == b || (a && b && json_equal(a, b));
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* The keys of all objects, once each, sorted. */
static size_t keys_of(const json_t *const *value, size_t n, const char ***out)
{
    size_t room = 1, count = 0, kept = 0;
    for (size_t i = 0; i < n; i++) room += json_object_size(value[i]);
    const char **key = wg_alloc(room, sizeof *key);
    if (!key) return (size_t)-1;
    for (size_t i = 0; i < n; i++) {
        const char *k;
        json_t *v;
        json_object_foreach((json_t *)value[i], k, v) key[count++] = k;
    }
    qsort(key, count, sizeof *key, by_name);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || strcmp(key[kept - 1], key[i]) != 0) key[kept++] = key[i];
    *out = key;
    return kept;
}

static bool report(json_t *out, const char *path, const json_t *const *value, size_t n)
{
    json_t *row = json_object(), *values = json_array();
    bool ok = row && values;
    for (size_t i = 0; i < n && ok; i++)
        ok = json_array_append_new(values, value[i] ? json_incref((json_t *)value[i]) : json_null()) == 0;
    ok = ok && json_object_set_new(row, "key", json_string(path)) == 0 && json_object_set(row, "values", values) == 0;
    json_decref(values);
    return json_array_append_new(out, row) == 0 && ok;
}

static bool walk(json_t *out, char *path, size_t end, const json_t *const *value, size_t n)
{
    bool objects = false, equal = true;
    for (size_t i = 0; i < n; i++) {
        objects = objects || json_is_object(value[i]);
        equal = equal && same(value[0], value[i]);
    }
    if (equal) return true;
    for (size_t i = 0; i < n; i++) objects = objects && (!value[i] || json_is_object(value[i]));
    if (!objects) return report(out, path, value, n);
    const char **key = NULL;
    const size_t keys = keys_of(value, n, &key);
    bool ok = keys != (size_t)-1;
    for (size_t k = 0; k < keys && ok; k++) {
        const json_t *inner[MOST];
        const int more = snprintf(path + end, PATH - end, "%s%s", end ? "." : "", key[k]);
        if (more < 0 || end + (size_t)more >= PATH) break; /* deeper than any config */
        for (size_t i = 0; i < n; i++) inner[i] = json_object_get(value[i], key[k]);
        ok = walk(out, path, end + (size_t)more, inner, n);
        path[end] = '\0';
    }
    wg_free(key);
    return ok;
}

json_t *wg_json_diff(const json_t *const *value, size_t n)
{
    char path[PATH] = "";
    json_t *out = json_array();
    if (n > MOST || (out && !walk(out, path, 0, value, n))) {
        json_decref(out);
        return NULL;
    }
    return out;
}

const char *wg_json_diff_text(const json_t *diff, char *buf, size_t size)
{
    size_t at = 0, i;
    json_t *row;
    if (size) buf[0] = '\0';
    json_array_foreach((json_t *)diff, i, row) {
        const json_t *v = json_object_get(row, "values");
        char *now = wg_json_canonical(json_array_get(v, 0), false), *then = wg_json_canonical(json_array_get(v, 1), false);
        if (i < 3 && at < size)
            at += (size_t)snprintf(buf + at, size - at, "%s%.120s is %.100s, was %.100s", i ? "; " : "",
                                   json_string_value(json_object_get(row, "key")), now ? now : "?", then ? then : "?");
        wg_free(now);
        wg_free(then);
    }
    if (i > 3 && at < size) snprintf(buf + at, size - at, "; and %zu more", i - 3);
    return buf;
}
