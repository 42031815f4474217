/* SPDX-License-Identifier: MIT
 * Reading back the requests of an interrupted run. */
#include "experiments/record/resume_cursor.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/clock.h"
#include "core/base/json.h"
#include "core/base/mem.h"
#include "experiments/base/json_diff.h"
#include "experiments/record/fields.h"
#include "experiments/record/line_sum.h"

/* ---- checks ------------------------------------------------------------------------------------------------------ */

bool wg_resume_same_config(const char *dir, const wg_config *config)
{
    json_t *there = wg_json_load(dir, "config.json"), *diff = NULL;
    const json_t *both[2] = { config->resolved, there };
    if (there) diff = wg_json_diff(both, 2);
    const bool same = diff && json_array_size(diff) == 0;
    json_decref(diff);
    json_decref(there);
    return same;
}

/* The members of machine.json on which numbers or results depend. */
static wg_status check_part(const char *dir, const char *what, const json_t *now, const json_t *then, wg_error *err)
{
    char text[700];
    const json_t *both[2] = { now, then };
    json_t *diff = wg_json_diff(both, 2);
    if (!diff) return wg_nomem(err, 1, "a comparison");
    const bool same = json_array_size(diff) == 0;
    wg_json_diff_text(diff, text, sizeof text);
    json_decref(diff);
    return same ? WG_OK
                : wg_fail(err, WG_EINVAL, "%s: this run cannot go on, because %s changed: %s; start a new one with --out DIR",
                          dir, what, text);
}

wg_status wg_resume_check(const char *dir, const wg_config *config, const json_t *machine, wg_error *err)
{
    json_t *old_config = wg_json_load(dir, "config.json"), *old = wg_json_load(dir, "machine.json");
    wg_status s = old_config && old ? WG_OK
                                    : wg_fail(err, WG_EFORMAT, "%s: %s.json cannot be read; this run cannot go on", dir,
                                              old_config ? "machine" : "config");
    /* The program first: another version may have other options, and then the configs differ for that reason. */
    if (!s) s = check_part(dir, "the program", json_object_get(machine, "program"), json_object_get(old, "program"), err);
    if (!s) s = check_part(dir, "the config", config->resolved, old_config, err);
    if (!s)
        s = check_part(dir, "a file (by SHA-256)", json_object_get(machine, "files_sha256"),
                       json_object_get(old, "files_sha256"), err);
    const json_t *shard = json_object_get(machine, "shard"), *then = json_object_get(old, "shard");
    if (!s && !json_equal(shard ? shard : json_null(), then ? then : json_null()))
        s = wg_fail(err, WG_EINVAL, "%s: this is %s%s of the run, not %s%s; name its own folder with --out DIR", dir,
                    then ? "shard " : "all", then ? json_string_value(then) : "", shard ? "shard " : "all",
                    shard ? json_string_value(shard) : "");
    static const char *const parts[] = { "model", "kernels" };
    for (size_t i = 0; i < 2 && !s; i++)
        s = check_part(dir, "the processor", json_object_get(json_object_get(machine, "cpu"), parts[i]),
                       json_object_get(json_object_get(old, "cpu"), parts[i]), err);
    json_decref(old_config);
    json_decref(old);
    return s;
}

wg_status wg_resume_note(const char *dir, const json_t *machine, wg_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/machine.json", dir);
    json_t *old = wg_json_load(dir, "machine.json");
    if (!json_object_get(old, "resumed")) json_object_set_new(old, "resumed", json_array());
    json_array_append(json_object_get(old, "resumed"), json_object_get(machine, "started"));
    const wg_status s = old ? wg_json_save(old, path, err) : wg_nomem(err, 1, "machine.json");
    json_decref(old);
    return s;
}

/* ---- scanning the files ------------------------------------------------------------------------------------------ */

/* The next line without its newline; false at the end or when the line is incomplete. */
static bool whole_line(FILE *f, char **line, size_t *room, size_t *n)
{
    const ssize_t got = f ? getline(line, room, f) : -1;
    if (got <= 0 || (*line)[got - 1] != '\n') return false;
    *n = (size_t)got - 1;
    return true;
}

static wg_status push(wg_resume_cursor *k, wg_resume_end end, wg_error *err)
{
    if ((k->n & (k->n - 1)) == 0) { /* room for 1, 2, 4 ... requests */
        wg_resume_end *more = wg_realloc(k->end, k->n ? 2 * (size_t)k->n : 1, sizeof *more);
        if (!more) return wg_nomem(err, (size_t)k->n * sizeof *more, "the lines of a run");
        k->end = more;
    }
    k->end[k->n++] = end;
    return WG_OK;
}

typedef struct steps {
    FILE *file;
    char *path, *line;
    size_t room;
    json_t *ahead;
    off_t end, ahead_end;
    int number; /* number of the line */
} steps;

/* Skips the steps of one request; *n: their number. */
static wg_status skip_steps(steps *s, const json_t *request, long *n, wg_error *err)
{
    for (*n = 0;; ++*n) {
        size_t length;
        if (!s->ahead && whole_line(s->file, &s->line, &s->room, &length)) {
            WG_TRY(wg_line_sum_require(s->path, ++s->number, s->line, length, true, err));
            s->ahead = json_loadb(s->line, length, JSON_ALLOW_NUL, NULL);
            s->ahead_end = s->end + (off_t)length + 1;
        }
        if (!s->ahead || !wg_fields_same_address(s->ahead, request)) return WG_OK;
        json_decref(s->ahead);
        s->ahead = NULL;
        s->end = s->ahead_end;
    }
}

/* trace_size: bytes of trace.wgt; -1: none. */
static wg_status scan(wg_resume_cursor *k, steps *s, bool trace, off_t trace_size, wg_error *err)
{
    int number = 0;
    off_t end = 0;
    size_t n;
    wg_status st = WG_OK;
    for (bool more = true; more && st == WG_OK && whole_line(k->file, &k->line, &k->room, &n);) {
        WG_TRY(wg_line_sum_require(k->path, ++number, k->line, n, true, err));
        json_t *v = json_loadb(k->line, n, JSON_ALLOW_NUL, NULL);
        const json_t *spec = json_object_get(v, "speculative_decoding");
        more = json_is_object(v);
        long have = 0;
        if (more && trace) st = skip_steps(s, v, &have, err);
        if (more && trace) more = !st && (!spec || have == wg_fields_passes(spec)); /* a failed request has any number */
        const off_t traced = (off_t)wg_json_int(v, "trace_end");
        if (trace_size >= 0) more = more && traced <= trace_size && traced >= (k->n ? k->end[k->n - 1].trace : 0);
        end += (off_t)n + 1;
        if (more) st = push(k, (wg_resume_end){ end, s->end, traced }, err);
        json_decref(v);
    }
    return st;
}

wg_status wg_resume_cursor_open(wg_resume_cursor *k, const char *dir, bool trace, bool probs, wg_error *err)
{
    char path[4096];
    steps s = { 0 };
    *k = (wg_resume_cursor){ 0 };
    snprintf(path, sizeof path, "%s/steps.jsonl", dir);
    if (trace) s.file = fopen(path, "re"), s.path = wg_strdup(path);
    snprintf(path, sizeof path, "%s/requests.jsonl", dir);
    k->path = wg_strdup(path);
    k->file = fopen(path, "re");
    wg_status st = !k->path || (trace && !s.path) ? wg_nomem(err, 1, "a path")
                   : !k->file && errno != ENOENT  ? wg_fail(err, WG_EIO, "%s: cannot open: %s", path, strerror(errno))
                                                  : WG_OK;
    /* a crash cannot leave this state, so nothing is deleted */
    if (!st && trace && !s.file && k->file && fgetc(k->file) != EOF)
        st = wg_fail(err, WG_EFORMAT, "%s/steps.jsonl is missing; this run cannot go on without it", dir);
    if (k->file) rewind(k->file);
    struct stat traced = { 0 };
    snprintf(path, sizeof path, "%s/trace.wgt", dir);
    if (probs && stat(path, &traced) && errno != ENOENT)
        st = wg_fail(err, WG_EIO, "%s: cannot look at it: %s", path, strerror(errno));
    if (!st) st = scan(k, &s, trace, probs ? traced.st_size : -1, err);
    if (k->file) rewind(k->file);
    json_decref(s.ahead);
    if (s.file) fclose(s.file);
    free(s.line);
    wg_free(s.path);
    if (st) wg_resume_cursor_close(k);
    return st;
}

void wg_resume_cursor_close(wg_resume_cursor *k)
{
    if (k->file) fclose(k->file);
    free(k->line);
    wg_free(k->path);
    wg_free(k->end);
    *k = (wg_resume_cursor){ 0 };
}

wg_resume_end wg_resume_cursor_end(const wg_resume_cursor *k, int n) { return n ? k->end[n - 1] : (wg_resume_end){ 0, 0, 0 }; }

/* ---- a line as a request ----------------------------------------------------------------------------------------- */

wg_status wg_resume_cursor_take(wg_resume_cursor *k, wg_request *q, wg_error *err)
{
    size_t n = 0;
    json_t *v = whole_line(k->file, &k->line, &k->room, &n) ? json_loadb(k->line, n, JSON_ALLOW_NUL, NULL) : NULL;
    const bool mine = wg_fields_is_of(v, q);
    if (mine) {
        wg_fields_read(q, wg_request_fields, WG_FIELD_ALWAYS, v); /* sets its status, too */
        wg_fields_read(q, wg_request_fields, q->status ? WG_FIELD_FAILED : WG_FIELD_OK, v);
    }
    json_decref(v);
    k->next++;
    return mine ? WG_OK
                : wg_fail(err, WG_EFORMAT,
                          "%s:%d: expected prompt %d (\"%.60s\"), turn %d, repeat %d of %s%.0d: the file was changed; start a "
                          "new run with --out DIR",
                          k->path, k->next, q->prompt, q->source->id, q->turn, q->repeat,
                          q->cell < 0 ? "the baseline" : "cell ", q->cell < 0 ? 0 : q->cell);
}

/* ---- finding the folder ------------------------------------------------------------------------------------------ */

bool wg_resume_finished(const char *dir)
{
    json_t *v = wg_json_load(dir, "summary.json");
    const bool yes = json_is_true(json_object_get(v, "complete"));
    json_decref(v);
    return yes;
}

static bool same_shard(const char *dir, const wg_config *config)
{
    char text[WG_SHARD_TEXT];
    json_t *machine = wg_json_load(dir, "machine.json");
    const char *there = json_string_value(json_object_get(machine, "shard"));
    const bool same = !strcmp(there ? there : "", wg_shard_text(config->shard, text));
    json_decref(machine);
    return same;
}

wg_status wg_resume_find(char **out, const wg_config *config, wg_error *err)
{
    char base[1024], path[2048], best[2048] = "", best_utc[64] = "";
    bool best_done = true;
    int others = 0;
    snprintf(base, sizeof base, "results/%.500s", config->top.name);
    DIR *d = opendir(base);
    for (const struct dirent *e; d && (e = readdir(d));) {
        const char *utc = strrchr(e->d_name, '-');
        if (e->d_name[0] == '.' || !utc) continue;
        if (strncmp(e->d_name, config->hash, strlen(config->hash)) != 0) {
            others++;
            continue;
        }
        snprintf(path, sizeof path, "%s/%.255s", base, e->d_name);
        if (!same_shard(path, config)) continue;
        const bool done = wg_resume_finished(path);
        if (best[0] && (done > best_done || (done == best_done && strcmp(utc, best_utc) < 0))) continue;
        snprintf(best, sizeof best, "%s", path);
        snprintf(best_utc, sizeof best_utc, "%s", utc);
        best_done = done;
    }
    if (d) closedir(d);
    if (!best[0])
        return wg_fail(err, WG_ENOENT,
                       "%s: no run of this config to resume%s; name its folder with --out DIR, or start without --resume", base,
                       others ? ": the runs that are there had other configs" : "");
    *out = wg_strdup(best);
    return *out ? WG_OK : wg_nomem(err, strlen(best), "a path");
}
