/* SPDX-License-Identifier: MIT
 * The index of a folder of runs: a table that a click, or the keyboard, sorts. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "experiments/report/html.h"
#include "experiments/report/report_parts.h"

typedef struct found {
    char *path, *finished;
    json_t *summary;
} found;
typedef struct list {
    found *item;
    int n, room;
    char *damaged; /* the first folder whose summary.json cannot be read */
} list;

static bool has_summary(const char *dir)
{
    char file[4200];
    snprintf(file, sizeof file, "%s/summary.json", dir);
    return access(file, F_OK) == 0;
}

static void look(list *l, const char *dir, const char *below, int depth)
{
    char path[4096];
    snprintf(path, sizeof path, "%s%s%s", dir, *below ? "/" : "", below);
    json_t *summary = wg_json_load(path, "summary.json");
    if (json_object_get(summary, "cells") && wg_summary_is_sound(summary)) {
        if (l->n == l->room) {
            found *grown = wg_realloc(l->item, (size_t)(l->room ? 2 * l->room : 64), sizeof *grown);
            if (grown) l->item = grown, l->room = l->room ? 2 * l->room : 64;
        }
        const char *when = json_string_value(json_object_get(summary, "finished"));
        if (l->n < l->room) l->item[l->n++] = (found){ wg_strdup(below), wg_strdup(when ? when : ""), json_incref(summary) };
    } else if (!l->damaged && has_summary(path)) l->damaged = wg_strdup(path);
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

/* A table cell with the sort key `v`; NaN sorts last in both directions. */
static void put_number(FILE *f, const char *format, double v)
{
    fputs("<td", f);
    if (isfinite(v)) fprintf(f, " data-v=\"%.17g\"", v);
    fputc('>', f);
    wg_report_put(f, format, v);
    fputs("</td>", f);
}

static void put_run(FILE *f, const char *dir, const found *r)
{
    char file[4300];
    snprintf(file, sizeof file, "%s/%s/report.html", dir, r->path);
    const bool page = access(file, R_OK) == 0;
    fputs("<tr><th scope=\"row\" class=\"w\">", f);
    if (page) fputs("<a href=\"", f), wg_html_puts(f, r->path), fputs("/report.html\">", f);
    wg_html_name(f, *r->path ? r->path : ".");
    if (page) fputs("</a>", f);
    fputs("</th>", f);
}

/* "20261121T024605Z" as "2026-11-21 02:46"; other strings unchanged. */
static void put_hour(FILE *f, const char *s)
{
    if (s && strlen(s) == 16 && strspn(s, "0123456789TZ") == 16)
        fprintf(f, "%.4s-%.2s-%.2s %.2s:%.2s", s, s + 4, s + 6, s + 9, s + 11);
    else wg_html_puts(f, s);
}

static void row(FILE *f, const char *dir, const found *r)
{
    const json_t *cells = json_object_get(r->summary, "cells");
    const int best = wg_report_best(cells);
    const json_t *c = best < 0 ? NULL : json_array_get(cells, (size_t)best);
    const wg_tally t = wg_report_tally(cells);
    put_run(f, dir, r);
    fputs("<td class=\"w l\">", f);
    wg_html_puts(f, json_string_value(json_object_get(r->summary, "question")));
    fputs("</td>", f);
    put_number(f, "%.0f", (double)json_array_size(cells));
    put_number(f, "%.0f", (double)t.faster);
    put_number(f, "%.0f", (double)t.slower);
    const double v = wg_json_measured(c, "speedup");
    fputs("<td", f);
    if (isfinite(v)) fprintf(f, " data-v=\"%.17g\"", v);
    fputc('>', f);
    wg_report_interval(f, c, "speedup", "speedup_ci", "x");
    fputs("</td>", f);
    put_number(f, "%.2f", wg_json_measured(c, "tau"));
    fputs("<td class=\"l\">", f);
    put_hour(f, r->finished);
    fputs(json_is_true(json_object_get(r->summary, "complete")) ? "" : " (interrupted)", f);
    if (t.failed) fprintf(f, " <small>%d failed</small>", t.failed);
    if (t.unequal) fprintf(f, " <small>%d cells differ from plain decoding</small>", t.unequal);
    fputs("</td></tr>\n", f);
}

/* Without scripts the table is complete, newest first. The script adds the buttons, so that none exists without a function. */
static const char script[] = "<script>\n"
                             "for (const table of document.querySelectorAll('table')) {\n"
                             "  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0]\n"
                             "  const value = (row, i) => row.cells[i].dataset.v ?? row.cells[i].textContent.trim()\n"
                             "  const order = (a, b) => isNaN(a) || isNaN(b) ? a.localeCompare(b) : a - b\n"
                             "  heads.forEach((head, i) => {\n"
                             "    const button = document.createElement('button')\n"
                             "    button.type = 'button'\n"
                             "    button.append(...head.childNodes)\n"
                             "    head.append(button)\n"
                             "    button.addEventListener('click', () => {\n"
                             "      const up = head.ariaSort ? head.ariaSort !== 'ascending' : "
                             "!body.querySelector('[data-v]:nth-child(' + (i + 1) + ')')\n"
                             "      heads.forEach(other => other.removeAttribute('aria-sort'))\n"
                             "      head.ariaSort = up ? 'ascending' : 'descending'\n"
                             "      const none = row => value(row, i) === '-'\n"
                             "      body.append(...[...body.rows].sort((a, b) =>\n"
                             "        none(a) - none(b) || (up ? 1 : -1) * order(value(a, i), value(b, i))))\n"
                             "    })\n"
                             "  })\n"
                             "}\n"
                             "</script>\n";

wg_status wg_report_index(FILE *f, const char *dir, int *runs, wg_error *err)
{
    list l = { 0 };
    DIR *d = opendir(dir);
    if (!d)
        return wg_fail(err, errno == ENOENT ? WG_ENOENT : WG_EIO,
                       "%s: cannot open: %s; expected the result folder of a run, or a folder of them", dir, strerror(errno));
    closedir(d);
    look(&l, dir, "", 2);
    if (l.n) qsort(l.item, (size_t)l.n, sizeof *l.item, newest_first);
    wg_html_begin(f, "Runs");
    fprintf(f, "<h1>Runs</h1>\n<p class=\"soft\">%d run%s</p>\n", l.n, l.n == 1 ? "" : "s");
    wg_html_table(
        f,
        "The runs of this folder. Of each its fastest cell: speed-up with its 95 % interval, and tau; and how many cells are "
        "faster or slower than plain decoding beyond chance.");
    fputs("<thead><tr><th scope=\"col\">run</th><th scope=\"col\" class=\"l\">question</th><th scope=\"col\">cells</th>"
          "<th scope=\"col\">faster</th><th scope=\"col\">slower</th><th scope=\"col\">best speed-up</th><th "
          "scope=\"col\">tau</th>"
          "<th scope=\"col\" class=\"l\" aria-sort=\"descending\">finished</th></tr></thead>\n<tbody>\n",
          f);
    for (int i = 0; i < l.n; i++) {
        row(f, dir, &l.item[i]);
        wg_free(l.item[i].path);
        wg_free(l.item[i].finished);
        json_decref(l.item[i].summary);
    }
    wg_html_table_end(f);
    fputs(script, f);
    wg_html_end(f);
    wg_free(l.item);
    *runs = l.n;
    wg_status s = WG_OK;
    if (!l.n && l.damaged)
        s = wg_fail(err, WG_EFORMAT, "%s/summary.json: is no summary of a run; wager run --resume writes it anew", l.damaged);
    else if (!l.n) s = wg_fail(err, WG_ENOENT, "%s: no run in it or below it (a folder with summary.json)", dir);
    wg_free(l.damaged);
    return s;
}
