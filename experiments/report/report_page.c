/* SPDX-License-Identifier: MIT */
#include "experiments/report/report_page.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/save.h"

void wg_page_colour(FILE *f, const char *name)
{
    char key[16];
    snprintf(key, sizeof key, "--%s:", name);
    const char *at = strstr(wg_report_page, key);
    if (at) fprintf(f, "%.7s", at + strlen(key));
}

static wg_status put_document(wg_save *to, const char *json, wg_error *err)
{
    wg_status s = WG_OK;
    for (const char *p = json; *p && s == WG_OK;) {
        const size_t n = strcspn(p, "<");
        s = wg_save_write(to, p, n, err);
        p += n;
        if (*p == '<' && s == WG_OK) s = wg_save_write(to, "\\u003c", 6, err), p++;
    }
    return s;
}

wg_status wg_page_save(const char *path, const json_t *document, wg_error *err)
{
    static const char place[] = "id=\"data\">null";
    const char *at = strstr(wg_report_page, place) + strlen("id=\"data\">"), *rest = at + strlen("null");
    char *json = document ? wg_json_canonical(document, false) : NULL;
    wg_save *to = NULL;
    if (!json) return wg_nomem(err, 1, "a page");
    wg_status s = wg_save_open(&to, path, err);
    if (s == WG_OK) s = wg_save_write(to, wg_report_page, (size_t)(at - wg_report_page), err);
    if (s == WG_OK) s = put_document(to, json, err);
    if (s == WG_OK) s = wg_save_write(to, rest, strlen(rest), err);
    if (s == WG_OK) s = wg_save_commit(to, err);
    else wg_save_abort(to);
    wg_free(json);
    return s;
}
