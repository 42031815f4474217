/* SPDX-License-Identifier: MIT
 * The document of the index of a folder of runs. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/json_number.h"
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

static json_t *document_of(const char *dir, const found *r)
{
    char file[4300];
    const json_t *cells = json_object_get(r->summary, "cells");
    const int best = wg_report_best(cells);
    const json_t *c = best < 0 ? NULL : json_array_get(cells, (size_t)best);
    const wg_tally t = wg_report_tally(cells);
    snprintf(file, sizeof file, "%s/%s/report.html", dir, r->path);
    return json_pack("{s:o, s:b, s:o, s:i, s:i, s:i, s:O?, s:O?, s:O?, s:o, s:b, s:i, s:i}", "path", wg_json_text(r->path),
                     "page", access(file, R_OK) == 0, "question", wg_json_text(wg_json_word(r->summary, "question")), "cells",
                     (int)json_array_size(cells), "faster", t.faster, "slower", t.slower, "speedup",
                     json_object_get(c, "speedup"), "speedup_ci", json_object_get(c, "speedup_ci"), "tau",
                     json_object_get(c, "tau"), "finished", wg_json_text(r->finished), "complete",
                     json_is_true(json_object_get(r->summary, "complete")), "failed", t.failed, "unequal", t.unequal);
}

wg_status wg_report_index(json_t **out, const char *dir, wg_error *err)
{
    list l = { 0 };
    DIR *d = opendir(dir);
    if (!d)
        return wg_fail(err, errno == ENOENT ? WG_ENOENT : WG_EIO,
                       "%s: cannot open: %s; expected the result folder of a run, or a folder of them", dir, strerror(errno));
    closedir(d);
    look(&l, dir, "", 2);
    if (l.n) qsort(l.item, (size_t)l.n, sizeof *l.item, newest_first);
    json_t *runs = json_array();
    for (int i = 0; i < l.n; i++) {
        json_array_append_new(runs, document_of(dir, &l.item[i]));
        wg_free(l.item[i].path);
        wg_free(l.item[i].finished);
        json_decref(l.item[i].summary);
    }
    wg_free(l.item);
    *out = l.n ? json_pack("{s:s, s:o}", "kind", "index", "runs", runs) : (json_decref(runs), NULL);
    wg_status s = *out ? WG_OK : wg_nomem(err, 1, "an index");
    if (!l.n && l.damaged)
        s = wg_fail(err, WG_EFORMAT, "%s/summary.json: is no summary of a run; wager run --resume writes it anew", l.damaged);
    else if (!l.n) s = wg_fail(err, WG_ENOENT, "%s: no run in it or below it (a folder with summary.json)", dir);
    wg_free(l.damaged);
    return s;
}
