/* SPDX-License-Identifier: MIT
 * Opening a drafter from a text (open.h). */
#include "draft/open.h"

#include <stdio.h>
#include <string.h>

#include "core/base/mem.h"

int wg_spec_item(const char *text, char separator)
{
    int depth = 0, n = 0;
    for (; text[n] && (depth || text[n] != separator); n++) {
        depth += (text[n] == '{') - (text[n] == '}');
        if (depth < 0) return -1;
    }
    return depth ? -1 : n;
}

/* Whether one pair of braces encloses the whole item. */
static bool is_wrapped(const char *item, int n)
{
    int depth = 0;
    if (n < 2 || item[0] != '{') return false;
    for (int i = 0; i < n; i++) {
        depth += (item[i] == '{') - (item[i] == '}');
        if (depth == 0) return i == n - 1;
    }
    return false;
}

wg_status wg_spec_copy(char *to, size_t size, const char *from, int n, wg_error *err)
{
    if (is_wrapped(from, n)) from++, n -= 2;
    if ((size_t)n >= size)
        return wg_fail(err, WG_ECONFIG, "'%.40s...' is too long: %d bytes of at most %zu", from, n, size - 1);
    memcpy(to, from, (size_t)n);
    to[n] = '\0';
    return WG_OK;
}

wg_status wg_spec_bad_braces(const char *text, wg_error *err)
{
    return wg_fail(err, WG_ECONFIG, "'%s': the braces { } do not match", text);
}

wg_status wg_drafter_set(const wg_drafter_class *class, void *o, const char *list, wg_error *err)
{
    while (list && *list) {
        char item[WG_OPTION_STRING + 64], value[WG_OPTION_STRING];
        const int n = wg_spec_item(list, ';');
        if (n < 0) return wg_spec_bad_braces(list, err);
        WG_TRY(wg_spec_copy(item, sizeof item, list, n, err));
        char *eq = strchr(item, '=');
        if (!eq)
            return wg_fail(err, WG_ECONFIG,
                           "'%s' is not of the form option=value; options of an inner drafter are separated by "
                           "semicolons",
                           item);
        *eq++ = '\0';
        WG_TRY(wg_spec_copy(value, sizeof value, eq, (int)strlen(eq), err));
        WG_TRY(wg_option_set(class->options, o, item, value, err));
        list += n;
        if (*list == ';') list++;
    }
    return WG_OK;
}

const char *wg_drafter_title(const wg_drafter_class *class, const void *options, char *buf, size_t size)
{
    const wg_option *of = wg_option_find(class->options, "of");
    const char *list = of ? (const char *)options + of->at : "", *before = " (";
    size_t n = (size_t)snprintf(buf, size, "%s", class->name);
    for (int length; *list && (length = wg_spec_item(list, '|')) >= 0; list += length + (list[length] == '|')) {
        const char *name = list + strspn(list, "{");
        if (n < size) n += (size_t)snprintf(buf + n, size - n, "%s%.*s", before, (int)strcspn(name, ":|;{}"), name);
        before = ", ";
    }
    if (n < size && *before == ',') snprintf(buf + n, size - n, ")");
    return buf;
}

void wg_drafter_free(wg_drafter *d)
{
    if (!d) return;
    if (d->class->close) d->class->close(d);
    wg_free(d);
}

wg_status wg_drafter_make(wg_drafter **out, const wg_drafter_class *class, const wg_env *env, const char *options,
                          wg_error *err)
{
    wg_drafter *d = wg_calloc(1, class->size);
    *out = NULL;
    if (!d) return wg_nomem(err, class->size, "a drafter");
    d->class = class;
    d->env = env;
    char *o = (char *)d + class->options_at;
    wg_option_defaults(class->options, o);
    wg_status s = wg_drafter_set(class, o, options, err);
    if (!s && class->open) s = class->open(d, env, err);
    if (s) wg_drafter_free(d);
    else *out = d;
    return s;
}
