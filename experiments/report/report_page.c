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

wg_status wg_page_save(const char *path, const json_t *document, wg_error *err)
{
    static const char place[] = "id=\"data\">null";
    const char *at = strstr(wg_report_page, place) + strlen("id=\"data\">"), *rest = at + strlen("null");
    char *json = document ? wg_json_canonical(document, false) : NULL, *text = NULL;
    size_t n = 0;
    FILE *f = json ? open_memstream(&text, &n) : NULL;
    if (f) fprintf(f, "%.*s", (int)(at - wg_report_page), wg_report_page);
    for (const char *p = json; f && *p; p++) {
        if (*p == '<') fputs("\\u003c", f);
        else fputc(*p, f);
    }
    if (f) fputs(rest, f);
    const bool ok = f && fclose(f) == 0;
    const wg_status s = ok ? wg_save_all(path, text, n, err) : wg_nomem(err, 1, "a page");
    free(text);
    wg_free(json);
    return s;
}
