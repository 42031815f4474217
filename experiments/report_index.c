/* SPDX-License-Identifier: MIT
 * The index of a folder of runs. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/mem.h"
#include "experiments/html.h"
#include "experiments/report_parts.h"

typedef struct found { char *path, *finished; json_t *summary; } found;
typedef struct list { found *item; int n, room; } list;

static void look(list *l, const char *dir, const char *below, int depth)
{
    char path[4096], file[4200];
    snprintf(path, sizeof path, "%s%s%s", dir, *below ? "/" : "", below);
    snprintf(file, sizeof file, "%s/summary.json", path);
    json_t *summary = json_load_file(file, 0, NULL);
    if (json_is_array(json_object_get(summary, "cells"))) {
        if (l->n == l->room) {
            found *grown = wg_realloc(l->item, (size_t)(l->room ? 2 * l->room : 64), sizeof *grown);
            if (grown) l->item = grown, l->room = l->room ? 2 * l->room : 64;
        }
        const char *when = json_string_value(json_object_get(summary, "finished"));
        if (l->n < l->room)
            l->item[l->n++] = (found){ wg_strdup(below), wg_strdup(when ? when : ""), json_incref(summary) };
    }
    json_decref(summary); /* a published run stands above the folders of others of its name */
    DIR *d = depth ? opendir(path) : NULL;
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        char next[2048];
        snprintf(next, sizeof next, "%.1500s%s%.255s", below, *below ? "/" : "", e->d_name);
        look(l, dir, next, depth - 1);
    }
    if (d) closedir(d);
}

static int newest_first(const void *a, const void *b)
{
    const found *x = a, *y = b;
    return strcmp(y->finished ? y->finished : "", x->finished ? x->finished : "");
}

static void row(FILE *f, const char *dir, const found *r)
{
    char file[4300];
    const json_t *cells = json_object_get(r->summary, "cells");
    const int best = wg_report_best(cells);
    const double v = best < 0 ? NAN : wg_report_number(json_array_get(cells, (size_t)best), "speedup");
    snprintf(file, sizeof file, "%s/%s/report.html", dir, r->path);
    const bool page = access(file, R_OK) == 0;
    fputs("<tr><td class=\"w\">", f);
    if (page) fputs("<a href=\"", f);
    if (page) wg_html_puts(f, r->path);
    if (page) fputs("/report.html\">", f);
    wg_html_puts(f, r->path);
    if (page) fputs("</a>", f);
    fputs("</td><td class=\"w l\">", f);
    wg_html_puts(f, json_string_value(json_object_get(r->summary, "question")));
    fprintf(f, "</td><td>%zu</td><td>", json_array_size(cells));
    if (isfinite(v)) fprintf(f, "%.2fx", v);
    else fputc('-', f);
    fputs("</td><td class=\"l\">", f);
    wg_html_puts(f, r->finished);
    fputs(json_is_true(json_object_get(r->summary, "complete")) ? "</td></tr>\n" : " (interrupted)</td></tr>\n", f);
}

wg_status wg_report_index(FILE *f, const char *dir, int *runs, wg_error *err)
{
    list l = { 0 };
    DIR *d = opendir(dir);
    if (!d) return wg_fail(err, errno == ENOENT ? WG_ENOENT : WG_EIO, "%s: cannot open: %s", dir, strerror(errno));
    closedir(d);
    look(&l, dir, "", 2);
    if (l.n) qsort(l.item, (size_t)l.n, sizeof *l.item, newest_first);
    wg_html_begin(f, "Runs");
    fputs("<h1>Runs</h1>\n<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">run</th><th scope=\"col\" "
          "class=\"l\">question</th>"
          "<th scope=\"col\">cells</th><th scope=\"col\">best speed-up</th><th scope=\"col\" "
          "class=\"l\">finished</th></tr></thead>\n"
          "<tbody>\n",
          f);
    for (int i = 0; i < l.n; i++) {
        row(f, dir, &l.item[i]);
        wg_free(l.item[i].path);
        wg_free(l.item[i].finished);
        json_decref(l.item[i].summary);
    }
    fputs("</tbody></table></div>\n", f);
    wg_html_end(f);
    wg_free(l.item);
    *runs = l.n;
    return l.n ? WG_OK : wg_fail(err, WG_ENOENT, "%s: no run in it or below it (a folder with summary.json)", dir);
}
